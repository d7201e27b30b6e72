#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write a man(3) page for each exported function, and one for each header.

usage: man.py VERSION OUTPUT_DIR HEADER ...

The page is made of the comment above the declaration, whose form the hygiene
suite checks: sentences, @param, @return, and paragraphs that begin with a word
such as "Rejects with:" or "Thread:". The page of a header, `tnk_promise.h`, has
its introduction and a list of its functions.
"""
import pathlib
import re
import sys

COMMENT = re.compile(r"/\*\*(.*?)\*/\s*(TNK_API[^;]*;)?", re.S)
TYPE = re.compile(r"^/\*\*((?:(?!\*/).)*)\*/\n(typedef (?:(?:struct|enum) \{.*?^\} \w+;|[^;{]*;))", re.S | re.M)
INTRO = re.compile(r"/\*\n(.*?)\*/", re.S)
NAME = re.compile(r"\b(tnk_\w+)\(")
LABEL = re.compile(r"^(Rejects with|Completion|Lifetime|Protocol|Thread|Since|Order|Blocks|"
                   r"Callable from callbacks): *(.*)$", re.S)
# A label inside of a line begins a sentence of its own.
SPLIT = re.compile(r"(?<=[.)\w]) +(?=(?:Thread|Since|Callable from callbacks|Lifetime|Protocol): )")
SECTIONS = {"Rejects with": "ERRORS", "Completion": "COMPLETION", "Order": "ORDER",
            "Lifetime": "LIFETIME", "Protocol": "PROTOCOL"}


def escape(text):
    """Text for groff, with the marks of the comments as fonts."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = re.sub(r"`([^`]+)`", r"\\fB\1\\fP", text)
    text = re.sub(r"@p (\w+)", r"\\fI\1\\fP", text)
    text = re.sub(r"\b(tnk_\w+)\(\)", r"\\fB\1\\fP(3)", text)
    return re.sub(r"(?m)^([.'])", r"\\&\1", text)


def body(comment):
    """The lines of a comment without its frame."""
    return [re.sub(r"^\s*\* ?", "", line).rstrip() for line in comment.strip("\n").split("\n")]


def blocks(lines):
    """Paragraphs as ("text" | "code" | "param" | "return" | label, string)."""
    kind, held = "text", []
    for line in [*lines, ""]:
        is_code = line.startswith("    ") and (kind == "code" or not held)
        begins = re.match(r"@(param|return)\b", line) or LABEL.match(line)
        if held and (begins or not line or (kind == "code") != is_code):
            yield kind, "\n".join(held)
            kind, held = "text", []
        if not line:
            continue
        if not held:
            kind = "code" if is_code else "text"
            if line.startswith("@param"):
                kind = "param"
            elif line.startswith("@return"):
                kind = "return"
            elif LABEL.match(line):
                kind = "label"
        held.append(line[4:] if is_code else line)


def joined(string):
    """One paragraph; lines that begin with a code of their own stay lines."""
    out = []
    for line in string.split("\n"):
        if re.match(r" +TNK_[A-Z]+ {2,}", line) and out:
            code, text = line.split(None, 1)
            out.append(f"\n.br\n\\fB{code}\\fP  {escape(re.sub(r'  +', ' ', text))}")
        else:
            out.append(escape(line.strip()))
    return re.sub(r" ?\n\.br\n", "\n.br\n", " ".join(out))


class Page:
    """The contents of a comment, by section."""

    def __init__(self, comment):
        self.description, self.params, self.returns = [], [], []
        self.sections, self.facts = {}, []
        for kind, string in blocks(body(comment)):
            self.add(kind, string)

    def add(self, kind, string):
        if kind == "code":
            self.description.append(f".PP\n.EX\n{escape(string)}\n.EE")
        elif kind == "param":
            match = re.match(r"@param(?:\[[\w,]+\])?\s+([\w, ]+?)(?:\s{2,}|\n\s*|$)(.*)", string, re.S) or \
                re.match(r"@param(?:\[[\w,]+\])?\s+(\w+)\s+(.*)", string, re.S)
            self.params.append((match[1], joined(match[2])))
        else:
            for piece in SPLIT.split(re.sub(r"\n(?= +TNK_)", "\0", string).replace("\n", " ").replace("\0", "\n")):
                self.add_text(kind, piece)

    def add_text(self, kind, text):
        label = LABEL.match(text)
        if label and label[1] in SECTIONS:
            words = joined(label[2])
            self.sections.setdefault(SECTIONS[label[1]], []).append(words[:1].upper() + words[1:])
        elif label:
            self.facts.append(f"{label[1]}: {joined(label[2]).rstrip('.')}")
        elif kind == "return":
            self.returns.append(joined(text.removeprefix("@return").strip()))
        elif text.strip():
            self.description.append(".PP\n" + joined(text))


def summary(page):
    """The first sentence, for NAME."""
    first = next((d for d in page.description if ".EX" not in d), ".PP\n")[4:]
    first = re.split(r"(?<=[^.].)\. |:\s|\.$", re.sub(r"\\f[BIP]", "", first))[0]
    first = re.sub(r"\n\.br\n", " ", first)
    return first[:1].lower() + first[1:]


def head(name, title, version):
    return f'.TH {name.upper()} 3 "" "tnk {version}" "tnk"\n.SH NAME\n{name} \\- {title}\n'


def function_page(name, declaration, comment, header, version, others):
    page = Page(comment)
    prototype = re.sub(r"^TNK_API\s+", "", declaration)
    out = head(name, summary(page), version)
    out += f".SH SYNOPSIS\n.nf\n.B #include <tnk/{header}>\n.sp\n{escape(prototype)}\n.fi\n"
    out += ".SH DESCRIPTION\n" + "\n".join(page.description) + "\n"
    if page.params:
        out += ".SH PARAMETERS\n" + "".join(f".TP\n.I {n}\n{t}\n" for n, t in page.params)
    if page.returns:
        out += ".SH RETURN VALUE\n" + "\n.PP\n".join(page.returns) + "\n"
    for title, texts in page.sections.items():
        out += f".SH {title}\n" + "\n.PP\n".join(texts) + "\n"
    if page.facts:
        out += ".SH ATTRIBUTES\n" + "\n.br\n".join(page.facts) + "\n"
    near = [o for o in others if o != name][:8]
    return out + ".SH SEE ALSO\n" + ",\n".join(f".BR {o} (3)" for o in [*near, f"tnk_{header}"]) + "\n"


def header_page(path, text, functions, version):
    intro = INTRO.search(text)
    page = Page(intro[1]) if intro and text.find("/**") > intro.start() else Page("")
    name = f"tnk_{path.name}"
    title = summary(page) if page.description else f"functions of tnk/{path.name}"
    out = head(name, title, version)
    out += f".SH SYNOPSIS\n.B #include <tnk/{path.name}>\n"
    out += ".SH DESCRIPTION\n" + "\n".join(page.description or [f".PP\nThe header tnk/{path.name}."]) + "\n"
    if functions:
        out += ".SH FUNCTIONS\n" + "".join(
            f".TP\n.BR {n} (3)\n{summary(Page(c))}\n" for n, _, c in functions)
    types = TYPE.findall(text)
    if types:
        out += ".SH TYPES\n"
    for comment, declaration in types:
        code = re.sub(r"(?m)^typedef (struct|enum) \{", r"typedef \1 {", declaration)
        out += "\n".join(Page(comment).description) + f"\n.PP\n.EX\n{escape(code)}\n.EE\n"
    return name, out


def main():
    version, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for path in map(pathlib.Path, sys.argv[3:]):
        text = path.read_text()
        functions, last = [], ""
        for comment, declaration in COMMENT.findall(text):
            if declaration and NAME.search(declaration):
                functions.append((NAME.search(declaration)[1], declaration, comment))
        names = [n for n, _, _ in functions]
        for i, (name, declaration, comment) in enumerate(functions):
            near = names[i + 1:] + names[:i][::-1]
            (folder / f"{name}.3").write_text(
                function_page(name, declaration, comment, path.name, version, near))
        name, page = header_page(path, text, functions, version)
        (folder / f"{name}.3").write_text(page)


main()
