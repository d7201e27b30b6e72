# SPDX-License-Identifier: MIT
"""The reference of chat templates: Jinja2 in the environment that the usual
loaders of models set up for them, and the tool that renders with the library.
"""
import json
import subprocess

import jinja2
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = 1767225600 + 36 * 3600 + 754  # 2026-01-02 12:12:34, as local time


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_body")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def refuse(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None,
           sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent,
                      separators=separators, sort_keys=sort_keys)


def strftime_now(format):
    import datetime
    zone = datetime.timezone.utc
    return datetime.datetime.fromtimestamp(NOW, zone).strftime(format)


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True,
        extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = refuse
    env.globals["strftime_now"] = strftime_now
    return env


class Reference:
    def __init__(self):
        self.env = environment()
        self.text, self.template = None, None

    def render(self, text, variables):
        """(text, None) or (None, what went wrong)."""
        try:
            if text != self.text:
                self.text = None
                self.template = self.env.from_string(text)
                self.text = text
            return self.template.render(variables), None
        except RecursionError:
            return None, "RecursionError"
        except Exception as e:
            return None, f"{type(e).__name__}: {e}"


class Tool:
    """The library, in a process of its own."""

    def __init__(self, path):
        self.run = subprocess.Popen([path], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE)

    def render(self, text, variables):
        line = json.dumps({"template": text, "variables": variables,
                           "now": NOW})
        self.run.stdin.write(line.encode() + b"\n")
        self.run.stdin.flush()
        reply = self.run.stdout.readline()
        if not reply:
            raise SystemExit(f"the tool has died of {text!r} {variables!r}")
        reply = json.loads(reply)
        return reply.get("text"), reply.get("error")
