#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each citation of the protocol leads somewhere.

usage: check_protocol.py ROOT

A comment cites as "Protocol: DOCUMENT, HEADING; DOCUMENT, HEADING." with a full
stop at its end. DOCUMENT is a file of src/lib/wire/protocol without its ending;
HEADING is words of one of its headings, or the begin of a row of a table; it
may be left out. Upper and lower case are the same.
"""
import pathlib
import re
import sys

FOLDER = "src/lib/wire/protocol"
# Up to a full stop that ends a sentence, over the lines of one comment.
CITATION = re.compile(r"Protocol:((?:[^.*]|\.(?=\w)|\n[ \t]*\*(?!/)|\*(?!/))*)([.*])")
FILE_NAME = re.compile(r"\b([a-z][\w-]*\.md)\b")


def plain(text):
    """Words of a heading or cell, without number and markup."""
    text = re.sub(r"[`*\[\]]", "", text)
    return re.sub(r"^[\d.]+\s+", "", text.strip()).lower()


def anchors(path):
    """Headings of a document, and first cells of its rows."""
    lines = path.read_text().splitlines()
    return ([plain(line.lstrip("#")) for line in lines if line.startswith("#")],
            [plain(line.split("|")[1]) for line in lines if line.startswith("|")])


def leads_somewhere(heading, headings, rows):
    return any(heading in h for h in headings) or \
        any(r.startswith(heading) for r in rows)


def faults_of(text, documents):
    """A sentence for each thing wrong with the citations in a file's text."""
    for match in CITATION.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        words = " ".join(re.sub(r"\n[ \t]*(?:\*|//)", " ", match[1]).split())
        if match[2] != ".":
            yield line, f"no full stop ends \"{words}\""
            continue
        for part in words.split(";"):
            name, _, heading = (p.strip() for p in part.partition(","))
            if name not in documents:
                yield line, f"there is no document \"{name}\""
            elif heading and not leads_somewhere(plain(heading), *documents[name]):
                yield line, f"{name}.md has no heading or row \"{heading}\""
    for match in FILE_NAME.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match[1].removesuffix(".md") in documents and match[1] != "README.md":
            yield line, f"{match[1]}: write \"Protocol: DOCUMENT, HEADING\""


def main():
    root = pathlib.Path(sys.argv[1])
    documents = {p.stem: anchors(p) for p in (root / FOLDER).glob("*.md")}
    files = [p for top in ("include", "src") for p in (root / top).rglob("*")
             if p.suffix in (".h", ".c", ".cc", ".inc", ".proto")]
    bad = n = 0
    for path in sorted(files):
        text = path.read_text()
        n += text.count("Protocol:")
        for line, fault in faults_of(text, documents):
            print(f"{path.relative_to(root)}:{line}: {fault}")
            bad = 1
    if n == 0:
        print("no citation found: the check looks at the wrong place")
    return 1 if bad or n == 0 else 0


sys.exit(main())
