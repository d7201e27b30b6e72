# SPDX-License-Identifier: MIT
"""Reads protobuf with the messages of a .proto file, for where no protobuf
package is: just what tinker.proto uses of the language."""

import re
import struct

SCALARS = {"int32", "int64", "uint32", "uint64", "bool", "double", "string", "bytes"}
FIELD = re.compile(r"(repeated\s+|optional\s+)?(map<\s*string\s*,\s*\w+\s*>|\w+)\s+(\w+)\s*=\s*(\d+)")


class Schema:
    def __init__(self, text):
        text = re.sub(r"//[^\n]*", "", text)
        self.enums = set(re.findall(r"enum\s+(\w+)", text))
        self.messages = {}
        for name, body in self.blocks(text):
            fields = {}
            for label, kind, field, number in FIELD.findall(body):
                fields[int(number)] = (field, kind.replace(" ", ""), label.strip() == "repeated")
            self.messages[name] = fields

    @staticmethod
    def blocks(text):
        for found in re.finditer(r"message\s+(\w+)\s*{", text):
            depth, at = 1, found.end()
            while depth:
                depth += {"{": 1, "}": -1}.get(text[at], 0)
                at += 1
            yield found[1], text[found.end(): at - 1]

    @staticmethod
    def varint(data, at):
        value = shift = 0
        while True:
            byte = data[at]
            value |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                return value, at

    def number(self, kind, value):
        if kind == "bool":
            return bool(value)
        return value - (1 << 64) if kind.startswith("int") and value >> 63 else value

    def value(self, kind, wire, data, at):
        if wire == 0:
            raw, at = self.varint(data, at)
            return self.number(kind, raw), at
        if wire == 1:
            return struct.unpack_from("<d", data, at)[0], at + 8
        if wire != 2:
            raise ValueError(f"wire type {wire}")
        size, at = self.varint(data, at)
        part, at = data[at: at + size], at + size
        if kind == "string":
            return part.decode(), at
        if kind == "bytes":
            return part.hex(), at
        if kind in SCALARS:
            numbers, place = [], 0
            while place < len(part):
                raw, place = self.varint(part, place)
                numbers.append(self.number(kind, raw))
            return numbers, at
        return self.read(kind, part), at

    def entry(self, kind, part):
        self.messages["an entry"] = {1: ("key", "string", False), 2: ("value", kind, False)}
        return self.read("an entry", part)

    def read(self, name, data):
        """A message as a dict of what is present."""
        out, at = {}, 0
        while at < len(data):
            tag, at = self.varint(data, at)
            field, kind, repeated = self.messages[name][tag >> 3]
            if kind.startswith("map<"):
                size, at = self.varint(data, at)
                entry = self.entry(kind[4:-1].split(",")[1], data[at: at + size])
                at += size
                out.setdefault(field, {})[entry.get("key", "")] = entry.get("value")
                continue
            value, at = self.value("int32" if kind in self.enums else kind, tag & 7, data, at)
            if repeated:
                out.setdefault(field, []).extend(value if isinstance(value, list) else [value])
            else:
                out[field] = value
        return out


def with_protobuf(message):
    """The same form of a message of the protobuf package."""
    out = {}
    for field, value in message.ListFields():
        is_message = field.type == field.TYPE_MESSAGE
        if is_message and field.message_type.GetOptions().map_entry:
            of_messages = field.message_type.fields_by_name["value"].type == field.TYPE_MESSAGE
            out[field.name] = {k: with_protobuf(value[k]) if of_messages else value[k] for k in value}
        elif hasattr(value, "append") or type(value).__name__.startswith("Repeated"):
            out[field.name] = [with_protobuf(v) if is_message else v for v in value]
        elif is_message:
            out[field.name] = with_protobuf(value)
        else:
            out[field.name] = value.hex() if isinstance(value, bytes) else value
    return out
