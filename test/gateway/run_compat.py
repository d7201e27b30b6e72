#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What clients of OpenAI and Anthropic do beside plain requests.

usage: run_compat.py TNK_COMMAND

Output is TAP, see test/support/tap.py.
"""
import json
import pathlib
import sys
import tempfile

from gateway import CALLING, Client, gateway, local, records, turns_of, whole
from tap import check, plan

TNK = sys.argv[1]
TOOLS = [{"type": "function", "name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}]


def answers(folder, lines):
    path = pathlib.Path(folder) / "answers"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def said(response):
    """The output without what the record does not have."""
    return [{**item, "status": "completed"} for item in response["output"]]


def reads_responses(service, folder):
    path = pathlib.Path(folder) / "responses"
    with gateway(TNK, service, "--record", path) as g:
        mine, other = Client(g.url, x_tnk_session="mine"), Client(g.url, x_tnk_session="other")
        a = mine.post("/v1/responses", {"input": "hi", "instructions": "be kind", "max_output_tokens": 5})[1]
        b = mine.post("/v1/responses", {"input": [{"role": "user", "content": [{"type": "input_text", "text": "more"}]}],
                                        "max_output_tokens": 6, "previous_response_id": a["id"]})[1]
        where = f"/v1/responses/{a['id']}"
        status, got = mine.ask("GET", where)
        for name in ("id", "object", "status", "model", "output", "usage", "created_at", "incomplete_details",
                     "instructions", "error", "tools"):
            check(status == 200 and got[name] == a[name], f"read again: {name}", (got, a))
        check(set(got) == set(a), "all members", set(got) ^ set(a))
        check(mine.ask("GET", f"/v1/responses/{b['id']}")[1]["previous_response_id"] == a["id"], "the one before")
        check(mine.ask("HEAD", where) == (200, ""), "its head")
        got = mine.ask("GET", f"/v1/responses/{b['id']}/input_items?order=asc")[1]
        check([(i["role"], i["content"][0]["text"]) for i in got["data"]] == [
            ("user", "hi"), ("assistant", a["output"][0]["content"][0]["text"]), ("user", "more")], "its input", got)
        check(got["object"] == "list" and not got["has_more"] and got["first_id"] == got["data"][0]["id"] and
              got["last_id"] == got["data"][2]["id"], "as a list", got)
        ids = [i["id"] for i in got["data"]]
        items = f"/v1/responses/{b['id']}/input_items"
        got = mine.ask("GET", f"{items}?limit=2")[1]
        check([i["id"] for i in got["data"]] == ids[:0:-1] and got["has_more"], "the latest two", got)
        got = mine.ask("GET", f"{items}?limit=2&after={ids[1]}")[1]
        check([i["id"] for i in got["data"]] == ids[:1] and not got["has_more"], "and what is before them", got)
        for query in ("limit=0", "limit=101", "limit=x", "order=up", "after=x", "include[]=y", "x"):
            status, got = mine.ask("GET", f"{items}?{query}")
            check(status == 400 and query.split("=")[0] in got["error"]["message"], f"{query} is refused by name", got)
        check(mine.ask("GET", f"{where}?stream=true")[0] == 400, "no stream of what has ended")
        for name in ("resp_", "resp_0", "resp_x", a["id"] + "0", a["id"].replace("resp_", "chatcmpl-"),
                     a["id"] + "/", a["id"] + "/x", a["id"] + "/input_items/x"):
            got = mine.ask("GET", f"/v1/responses/{name}")[0]
            check(got == 404 or name == a["id"] + "/" and got == 200, f"no response {name}", got)
        for method in ("POST", "PUT"):
            check(mine.ask(method, where, "")[0] == 405 and mine.answer.getheader("allow") == "GET, HEAD, DELETE",
                  f"{method} is not allowed")
        check(mine.ask("DELETE", items)[0] == 405, "the input cannot be deleted")
        for method in ("GET", "HEAD", "DELETE"):
            check(other.ask(method, where)[0] == 404, f"{method} by another session")
        check(other.ask("GET", f"{where}/input_items")[0] == 404, "its input by another session")
        check(mine.ask("DELETE", where) == (200, {"id": a["id"], "object": "response", "deleted": True}), "deleted")
        gone(mine, a)
    with gateway(TNK, service, "--record", path) as g:
        mine = Client(g.url, x_tnk_session="mine")
        gone(mine, a)
        check(mine.ask("GET", f"/v1/responses/{b['id']}")[0] == 200, "the other one is there")
    turns = turns_of(path)
    check(len(turns) == 2 and turns[int(a["id"][5:])]["messages"], "the record keeps what was deleted", turns)
    check([r["number"] for r in records(path) if r["type"] == "deleted"] == [int(a["id"][5:])], "and that it was")


def gone(client, a):
    for method in ("GET", "DELETE"):
        check(client.ask(method, f"/v1/responses/{a['id']}")[0] == 404, f"{method} of a deleted one")
    check(client.ask("GET", f"/v1/responses/{a['id']}/input_items")[0] == 404, "nor its input")
    check(client.post("/v1/responses", {"input": "x", "previous_response_id": a["id"]})[0] == 404, "nor what follows")
    item = a["output"][0]["id"] if a["output"] else "msg_1_0"
    check(client.post("/v1/responses", {"input": [{"type": "item_reference", "id": item}]})[0] == 404, "nor an item")


def reads_calls(folder):
    """A response with thoughts, a text and a call."""
    text = "<think>hm</think>Let me see.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>"
    with local(TNK, "--stub", "--stub-answers", answers(folder, [text, "done"])) as service, \
            gateway(TNK, service, "--renderer", "qwen3", "--template", "plain") as g:
        client = Client(g.url)
        a = client.post("/v1/responses", {"input": "f?", "tools": TOOLS})[1]
        status, got = client.ask("GET", f"/v1/responses/{a['id']}")
        check(status == 200 and [i["type"] for i in a["output"]] == ["reasoning", "message", "function_call"],
              "three items", a)
        check([i["id"] for i in got["output"]] == [i["id"] for i in a["output"]], "with the same ids", got)
        check(json.loads(got["output"][2].pop("arguments")) == json.loads(a["output"][2].pop("arguments")), "arguments")
        for item in (got["output"][1]["content"][0], a["output"][1]["content"][0]):
            item["text"] = item["text"].strip()
        check(said(got) == said(a) and got["tools"][0]["name"] == "f", "and the same content", (got, a))
        a = client.post("/v1/responses", {"input": [{"type": "function_call_output", "output": "2",
                                                     "call_id": a["output"][2]["call_id"]}],
                                          "previous_response_id": a["id"], "tools": TOOLS})[1]
        got = client.ask("GET", f"/v1/responses/{a['id']}/input_items?order=asc")[1]["data"]
        check([i["type"] for i in got] == ["message", "reasoning", "message", "function_call", "function_call_output"] and
              len({i["id"] for i in got}) == 5, "all of them as input", got)


def main():
    with tempfile.TemporaryDirectory() as folder:
        with local(TNK) as service:
            reads_responses(service, folder)
        reads_calls(folder)
    plan()


main()
