#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Structured output: tnk gateway over the stub of tnk local.

usage: run_formats.py TNK_COMMAND

Output is TAP, see test/support/tap.py.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from gateway import CLEAN, Client, events, gateway, local, records
from tap import check, plan

TNK = sys.argv[1]
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
          "additionalProperties": False}
CHAT = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": SCHEMA}}
FLAT = {"type": "json_schema", "name": "x", "strict": True, "schema": SCHEMA}
GOOD = '{"n": 1}'
BAD = '{"n": "x"}'
HINT = "Answer with one JSON value that fits this JSON schema, and with nothing else.\n"
TALK = [{"role": "user", "content": "?"}]


def answers(folder, lines):
    path = pathlib.Path(folder) / "answers"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def turns(path):
    return [line for line in records(path) if line["type"] == "turn"]


def text_of(ids):
    return bytes(i for i in ids if i < 256).decode()




def hints(folder):
    path = pathlib.Path(folder) / "hint"
    said = [GOOD, BAD, "no", "[1]", GOOD, BAD, GOOD, GOOD, GOOD]
    with local(TNK, "--stub", "--stub-answers", answers(folder, said)) as stub, \
            gateway(TNK, stub, "--record", path) as g:
        client = Client(g.url)
        a = client.chat(TALK, response_format=CHAT, max_tokens=99)[1]
        check(json.loads(a["choices"][0]["message"]["content"]) == {"n": 1}, "an answer that fits", a)
        a = client.chat(TALK, response_format=CHAT, max_tokens=99)[1]
        check(a["choices"][0]["message"]["content"] == BAD, "one that does not is sent too", a)
        client.chat(TALK, response_format={"type": "json_object"}, max_tokens=99)
        client.chat(TALK, response_format={"type": "json_object"}, max_tokens=99)
        first = client.post("/v1/responses", {"input": "?", "text": {"format": FLAT}, "instructions": "Be.",
                                              "max_output_tokens": 99})[1]
        client.post("/v1/responses", {"input": "more", "text": {"format": FLAT}, "max_output_tokens": 99,
                                      "previous_response_id": first["id"]})
        status, a = client.post("/v1/messages", {
            "max_tokens": 99, "messages": TALK, "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}})
        check(status == 200 and json.loads(a["content"][0]["text"]) == {"n": 1}, "by Anthropic's API", a)
        client.post("/v1/messages", {"max_tokens": 99, "messages": TALK,
                                     "output_format": {"type": "json_schema", "schema": SCHEMA}})
        a = client.chat(TALK, stream=True, response_format=CHAT, max_tokens=99)[1]
        check("".join(c["choices"][0]["delta"].get("content") or "" for c in events(a)) == GOOD, "as a stream", a)
        n = len(turns(path))
        for name, bad in (("pattern", {"pattern": "(?=a)"}), ("$ref", {"$ref": "#/$defs/none"})):
            status, a = client.chat(TALK, response_format={
                "type": "json_schema", "json_schema": {"name": "x", "schema": bad}})
            check(status == 400 and a["error"]["param"] == "response_format", f"refused: {name}", a)
        status, a = client.chat(TALK, response_format={"type": "json_schema", "json_schema": {"name": "x"}})
        check(status == 400 and "schema is missing" in a["error"]["message"], "no schema", a)
    lines = turns(path)
    check(n == len(lines) == 9, "one turn for each answer", lines)
    check([t.get("fits") for t in lines] == [True, False, False, False, True, False, True, True, True],
          "the record says what fits", lines)
    check([lines[i]["misfit"] for i in (1, 2, 3)] ==
          ["$.n: must be of type integer", "it is not JSON", "it is not an object"], "and why not", lines)
    first = text_of(lines[0]["prompt"])
    check(HINT + json.dumps(SCHEMA, separators=(",", ":")) in first, "the schema is in the prompt", first)
    both = text_of(lines[4]["prompt"])
    check("Be.\n\n" + HINT in both, "after the client's instructions", both)
    check(lines[5].get("parent") == lines[4]["turn"] and HINT not in text_of(lines[5]["prompt"]),
          "a later turn continues, and asks no second time", lines[5])
    check(all("attempt" not in t for t in lines), "there is one attempt each")


def retries(folder):
    path = pathlib.Path(folder) / "retry"
    said = [BAD, "no", GOOD] + [BAD] * 3 + [BAD] + ["It is.", GOOD] + [BAD, GOOD]
    with local(TNK, "--stub", "--stub-answers", answers(folder, said)) as stub, \
            gateway(TNK, stub, "--record", path, "--formats", "retry") as g:
        client = Client(g.url)
        a = client.chat(TALK, response_format=CHAT, max_tokens=99)[1]
        check(a["choices"][0]["message"]["content"] == GOOD, "sampled until it fits", a)
        check(a["id"] == f"chatcmpl-{turns(path)[2]['turn']}", "the answer is the last turn", a)
        a = client.chat(TALK, response_format=CHAT, max_tokens=99)[1]
        check(a["choices"][0]["message"]["content"] == BAD, "three times at most", a)
        a = client.chat(TALK, response_format=CHAT, max_tokens=99, temperature=0)[1]
        check(a["choices"][0]["message"]["content"] == BAD, "not at temperature 0", a)
        a = client.chat(TALK, max_tokens=99)[1]
        check(a["choices"][0]["message"]["content"] == "It is.", "not without a format", a)
        a = client.chat(TALK, response_format=CHAT, max_tokens=99)[1]
        check(a["choices"][0]["message"]["content"] == GOOD, "not if it fits", a)
        text = client.chat(TALK, response_format=CHAT, max_tokens=99, stream=True, seed=7)[1]
        check("".join(c["choices"][0]["delta"].get("content") or "" for c in events(text)) == GOOD,
              "a stream has the last one alone", text)
    lines = turns(path)
    check([t.get("attempt") for t in lines] == [1, 2, 3, 1, 2, 3, 1, None, 1, 1, 2], "each attempt is recorded", lines)
    check([t.get("fits") for t in lines] ==
          [False, False, True, False, False, False, False, None, True, False, True], "and whether it fits", lines)
    check(len({t["request"] for t in lines[:3]}) == 1, "of one request", lines)
    path.unlink()
    with local(TNK, "--stub", "--stub-answers", answers(folder, [BAD])) as stub, \
            gateway(TNK, stub, "--record", path, "--formats", "retry", "--format-attempts", "5") as g:
        Client(g.url).chat(TALK, response_format=CHAT, max_tokens=99)
    check(len(turns(path)) == 5, "as many attempts as are set")


def keys_pay(folder):
    """Each attempt counts, and a key that cannot pay gets what there is."""
    path = pathlib.Path(folder) / "paid"
    with local(TNK, "--stub", "--stub-answers", answers(folder, [BAD])) as stub, \
            gateway(TNK, stub, "--record", path, "--formats", "retry", "--admin-key", "root") as g:
        admin = Client(g.url, authorization="Bearer root")
        key = admin.post("/tnk/sessions", {"max_requests": 2})[1]
        client = Client(g.url, authorization="Bearer " + key["key"])
        status, a = client.chat(TALK, response_format=CHAT, max_tokens=99)
        check(status == 200 and a["choices"][0]["message"]["content"] == BAD, "what there is", a)
        used = admin.ask("GET", "/tnk/sessions")[1]
        check(client.chat(TALK, max_tokens=99)[0] == 403, "the key is used up", used)
    check([t["attempt"] for t in turns(path)] == [1, 2], "two attempts", turns(path))


def refuses(folder):
    with local(TNK, "--stub", "--stub-answers", answers(folder, [GOOD])) as stub, \
            gateway(TNK, stub, "--formats", "refuse") as g:
        client = Client(g.url)
        status, a = client.chat(TALK, response_format=CHAT)
        check(status == 400 and a["error"]["param"] == "response_format", "refused", a)
        check(client.chat(TALK, response_format={"type": "text"})[0] == 200, "but not text")
    for bad in (("--formats", "x"), ("--format-attempts", "2"), ("--formats", "retry", "--format-attempts", "17")):
        done = subprocess.run([TNK, "gateway", "--model", "m", *bad], capture_output=True, env=CLEAN, timeout=60)
        check(done.returncode == 2, " ".join(bad), done.stderr.decode())


def main():
    with tempfile.TemporaryDirectory() as folder:
        hints(folder)
        retries(folder)
        keys_pay(folder)
        refuses(folder)
    plan()


main()
