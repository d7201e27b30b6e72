#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Describe the API as JSON, and as declarations for cffi and LuaJIT.

usage: api.py VERSION INCLUDE_DIR OUTPUT_JSON OUTPUT_CDEF COMPILER [ARG ...]

The compiler expands the macros of the headers and pycparser reads the result.
Sizes and offsets are those of systems with 64-bit pointers and longs (LP64). The
comments provide threads ("Thread:"), versions ("Since:") and the owners of pointers. src/docs/README.md describes the JSON.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from pycparser import c_ast, c_generator, c_parser

# This header has functions of its own, in C only.
NOT_DESCRIBED = ("script.h",)
STANDARD = """typedef unsigned long size_t;
typedef signed char int8_t; typedef unsigned char uint8_t;
typedef short int16_t; typedef unsigned short uint16_t;
typedef int int32_t; typedef unsigned int uint32_t;
typedef long int64_t; typedef unsigned long uint64_t;
typedef unsigned long uintptr_t;
#define NULL ((void *)0)
"""
SIZES = {"char": 1, "short": 2, "int": 4, "long": 8, "float": 4, "double": 8}
LIBRARIES = {"tokenizers.h": "tnk-tokenizers", "chat.h": "tnk-chat", "gateway.h": "tnk-gateway"}
EXPORT = re.compile(r"/\*\*((?:(?!\*/).)*)\*/\s*TNK_API\s+[^;(]*?\b(tnk_\w+)\s*\(", re.S)
TYPE = re.compile(r"/\*\*((?:(?!\*/).)*)\*/\s*typedef\s+((?:struct|enum|union)(?:\s+\w+)?\s*\{.*?^\}\s*\w+;|[^;{]*;)", re.S | re.M)
CONSTANT = re.compile(r"^#define (TNK_[A-Z0-9_]+)\s+(\(?-?[0-9][0-9xa-fA-F -]*\)?|\"[^\"]*\")$", re.M)
WRITE = c_generator.CGenerator()


def prose(comment):
    lines = [re.sub(r"^\s*\* ?", "", line).rstrip() for line in comment.strip("\n").split("\n")]
    return "\n".join(lines).strip()


def label(text, name):
    """The sentence behind "Name:", without its full stop."""
    found = re.search(rf"\b{name}:\s*([^.]*(?:\.\d[^.]*)?)", " ".join(text.split()))
    return found[1].strip() if found else None


def comments(folder, headers):
    """Name of a function or type -> (name of its header, comment, declaration)."""
    found = {}
    for header in headers:
        text = (folder / header).read_text()
        for comment, name in EXPORT.findall(text):
            found[name] = header, prose(comment), ""
        for comment, declaration in TYPE.findall(text):
            name = re.search(r"\}\s*(\w+);$", declaration) or re.search(r"\(\*(\w+)\)|(\w+);$", declaration)
            found[name[1] or name[2]] = header, prose(comment), declaration
    return found


def parse(folder, headers, command):
    """The declarations of the standard headers and ours, in order."""
    with tempfile.TemporaryDirectory() as fake:
        for name in ("stddef.h", "stdint.h"):
            pathlib.Path(fake, name).write_text('#include "standard.h"\n')
        pathlib.Path(fake, "standard.h").write_text("#ifndef STANDARD\n#define STANDARD\n" + STANDARD + "#endif\n")
        text = subprocess.run([*command, "-E", "-x", "c", "-nostdinc", "-I", fake, "-I", str(folder.parent),
                               "-DTNK_API=", "-"], check=True, capture_output=True, text=True,
                              input="".join(f'#include "tnk/{h}"\n' for h in headers)).stdout
    # Attributes of warnings mean nothing to a binding.
    text = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", text)
    return c_parser.CParser().parse(text).ext


class Layout:
    """Sizes and offsets from the declarations."""

    def __init__(self):
        self.types = {}
        self.values = {}

    def learn(self, node):
        if isinstance(node, c_ast.Typedef):
            self.types[node.name] = node.type
        self.learn_enum(node)

    def learn_enum(self, node):
        if isinstance(node, c_ast.Enum) and node.values:
            following = 0
            for item in node.values.enumerators:
                self.values[item.name] = following = self.value(item.value) if item.value else following
                following += 1
        for _, child in node.children():
            self.learn_enum(child)

    def value(self, node):
        if isinstance(node, c_ast.Constant):
            return int(node.value.rstrip("uUlL"), 0)
        if isinstance(node, c_ast.ID):
            return self.values[node.name]
        if isinstance(node, c_ast.UnaryOp):
            inner = self.value(node.expr)
            return -inner if node.op == "-" else ~inner if node.op == "~" else inner
        left, right = self.value(node.left), self.value(node.right)
        return {"+": left + right, "-": left - right, "*": left * right, "|": left | right,
                "<<": left << right if 0 <= right < 64 else 0}[node.op]

    def measure(self, node):
        """(size, alignment)"""
        if isinstance(node, c_ast.PtrDecl):
            return 8, 8
        if isinstance(node, c_ast.ArrayDecl):
            size, align = self.measure(node.type)
            return size * self.value(node.dim), align
        if isinstance(node, (c_ast.Struct, c_ast.Union)):
            fields, size, align = self.fields(node)
            return size, align
        if isinstance(node, c_ast.Enum):
            return 4, 4
        if isinstance(node, c_ast.IdentifierType):
            if node.names[-1] in self.types:
                return self.measure(self.types[node.names[-1]])
            size = next((SIZES[n] for n in reversed(node.names) if n in SIZES), 4)
            return size, size
        return self.measure(node.type)

    def fields(self, node):
        """([(declaration, offset)], size, alignment)"""
        at, align, largest, found = 0, 1, 0, []
        for field in node.decls:
            size, own = self.measure(field.type)
            align = max(align, own)
            offset = 0 if isinstance(node, c_ast.Union) else -(-at // own) * own
            found.append((field, offset))
            at, largest = offset + size, max(largest, offset + size)
        return found, -(-largest // align) * align, align


def type_text(node):
    """The C type without the name of what has it."""
    return WRITE.visit(c_ast.Typename(None, [], None, strip(node)))


def strip(node):
    """A copy of the type whose innermost declaration has no name."""
    if isinstance(node, c_ast.TypeDecl):
        return c_ast.TypeDecl(None, node.quals, None, node.type)
    if isinstance(node, c_ast.FuncDecl):
        return c_ast.FuncDecl(node.args, strip(node.type))
    if isinstance(node, c_ast.ArrayDecl):
        return c_ast.ArrayDecl(strip(node.type), node.dim, node.dim_quals)
    return c_ast.PtrDecl(node.quals, strip(node.type))


def parameters(function, text):
    found = []
    for node in function.args.params if function.args else []:
        if node.name is None:
            continue
        about = re.search(rf"@param(?:\[out\])?\s+(?:\w+, )*{node.name}\b(.*?)(?=\n\s*\n|@param|@return|\Z)", text, re.S)
        words = " ".join(about[1].split()) if about else ""
        one = {"name": node.name, "type": type_text(node.type)}
        if isinstance(node.type, c_ast.PtrDecl):
            taken = re.search(r"reference of each is taken|[Oo]ne reference is taken|reference is released", words)
            one["ownership"] = "taken" if taken else "borrowed"
        found.append(one)
    return found


def returned(function, name, text):
    kind = type_text(function.type)
    one = {"type": kind}
    if not isinstance(function.type, c_ast.PtrDecl):
        return one
    if "Static string" in text:
        one["ownership"] = "static"
    elif (kind == "tnk_promise_t *" and "Borrowed" not in text) or name.endswith("_new"):
        one["ownership"] = "caller"
    else:
        one["ownership"] = "borrowed"
    return one


def describe_function(node, about):
    header, text, _ = about[node.name]
    return {"name": node.name, "header": "tnk/" + header, "library": LIBRARIES.get(header, "tnk"),
            "returns": returned(node.type, node.name, text), "params": parameters(node.type, text),
            "thread": label(text, "Thread"), "since": label(text, "Since"),
            "callable_from_callbacks": "Callable from callbacks: no" not in " ".join(text.split()), "doc": text}


def member_comment(declaration, name):
    found = re.search(rf"\b{name}(?:\[[^\]]*\])?(?: = [^,]*)?[;,]\s*/\*\*<(.*?)\*/", declaration, re.S) or \
        re.search(rf"/\*\*((?:(?!\*/).)*)\*/\s*[^;/]*\b{name}(?:\[[^\]]*\])?;", declaration, re.S)
    return " ".join(prose(found[1]).split()) if found else ""


def describe_type(node, layout, about):
    """(kind of the list in the JSON, description)"""
    header, text, declaration = about.get(node.name, (pathlib.Path(node.coord.file).name, "", ""))
    one = {"name": node.name, "header": "tnk/" + header, "doc": text}
    inner = node.type.type
    if isinstance(node.type, c_ast.PtrDecl) and isinstance(inner, c_ast.FuncDecl):
        return "callbacks", {**one, "returns": {"type": type_text(inner.type)}, "params": parameters(inner, text)}
    if isinstance(inner, c_ast.Enum):
        return "enums", {**one, "values": {v.name: layout.values[v.name] for v in inner.values.enumerators}}
    if isinstance(inner, (c_ast.Struct, c_ast.Union)) and inner.decls:
        fields, size, align = layout.fields(inner)
        return ("unions" if isinstance(inner, c_ast.Union) else "structs"), {
            **one, "size": size, "align": align,
            "fields": [{"name": f.name, "type": type_text(f.type), "offset": at,
                        "doc": member_comment(declaration, f.name)} for f, at in fields]}
    if isinstance(inner, c_ast.Struct):
        return "handles", one
    return "aliases", {**one, "type": type_text(node.type)}


def constants(folder, headers):
    found = {}
    for header in headers:
        for name, text in CONSTANT.findall((folder / header).read_text()):
            # Numbers and differences of numbers only, as the pattern says.
            found[name] = text.strip('"') if text.startswith('"') else eval(text)
    return found


def main():
    version, folder = sys.argv[1], pathlib.Path(sys.argv[2], "tnk")
    headers = sorted(p.name for p in folder.glob("*.h") if p.name not in NOT_DESCRIBED)
    about = comments(folder, headers)
    layout = Layout()
    api = {"version": version, "data_model": "LP64", "functions": []}
    api.update({kind: [] for kind in ("structs", "unions", "enums", "callbacks", "handles", "aliases")})
    declarations = []
    for node in parse(folder, headers, sys.argv[5:]):
        layout.learn(node)
        if "/tnk/" not in node.coord.file:
            continue
        if isinstance(node, c_ast.Typedef):
            kind, one = describe_type(node, layout, about)
            api[kind].append(one)
        elif isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.FuncDecl):
            api["functions"].append(describe_function(node, about))
        else:
            continue
        declarations.append(WRITE.visit(node) + ";\n")
    api["constants"] = constants(folder, headers)
    pathlib.Path(sys.argv[3]).write_text(json.dumps(api, indent=1) + "\n")
    pathlib.Path(sys.argv[4]).write_text(f"/* libtnk {version}: for cffi and LuaJIT. Written by api.py. */\n"
                                         + "".join(declarations))


main()
