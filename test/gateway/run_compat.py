#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Requests of clients of OpenAI and Anthropic other than plain ones.

usage: run_compat.py TNK_COMMAND

Output is TAP, see test/support/tap.py.
"""
import json
import pathlib
import sys
import tempfile

from gateway import CALLING, Client, events, gateway, local, not_drawn, records, turns_of
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


def completes_several(service, folder):
    path = pathlib.Path(folder) / "several"
    log = {"max_tokens": 4, "temperature": 0}
    with gateway(TNK, service, "--record", path) as g:
        client = Client(g.url, x_tnk_session="me")
        prompts = ["one", "two!", "three"]
        alone = [client.post("/v1/completions", {"prompt": p, **log})[1] for p in prompts]
        for what in (prompts, [list(p.encode()) for p in prompts], ["one", list(b"two!"), "three"]):
            status, a = client.post("/v1/completions", {"prompt": what, **log, "user": str(what)})
            check(status == 200 and [(c["index"], c["text"]) for c in a["choices"]] ==
                  [(i, b["choices"][0]["text"]) for i, b in enumerate(alone)], f"the same as each alone: {what}", a)
        check(a["usage"]["prompt_tokens"] == 12 and a["usage"]["completion_tokens"] ==
              sum(b["usage"]["completion_tokens"] for b in alone), "usage of all", a["usage"])
        a = client.post("/v1/completions", {"prompt": prompts, "max_tokens": 4, "n": 2})[1]
        check([c["index"] for c in a["choices"]] == list(range(6)), "two choices for each", a)
        check([client.post("/tnk/reward", {"id": a["id"], "choice": i, "reward": i})[0] for i in range(7)] ==
              [200] * 6 + [404], "each has a reward")
        text = client.post("/v1/completions", {"prompt": prompts, **log, "stream": True})[1]
        got = ["", "", ""]
        for chunk in events(text):
            got[chunk["choices"][0]["index"]] += chunk["choices"][0]["text"]
        check(got == [b["choices"][0]["text"] for b in alone], "a stream", text)
        for what, why in (([], "no tokens"), (["a", 1], "prompt must be"), (["a", ""], "prompt[1] has no tokens"),
                          ([[1], [-1]], "is not a token id"), (["a"] * 129, "128"), ([["a"]], "is not a token id"),
                          (1, "prompt must be"), (None, "prompt must be")):
            status, got = client.post("/v1/completions", {"prompt": what})
            check(status == 400 and why in got["error"]["message"], f"{str(what)[:40]}: {why}", (status, got))
        check(client.post("/v1/completions", {"prompt": ["a"] * 65, "n": 2})[0] == 400, "nor so many choices")
        check(client.post("/v1/completions", {"prompt": ["a"] * 64, "n": 2, "max_tokens": 1})[0] == 200, "but these")
        number = int(a["id"].split("-")[1])
    turns = turns_of(path)
    six = [turns[number + i] for i in range(6)]
    check([bytes(t["prompt"]).decode() for t in six] == [p for p in prompts for _ in range(2)], "their prompts", six)
    check(len({t["request"] for t in six}) == 1 and not any("parent" in t for t in six), "of one request")
    check(not not_drawn(path, service.samples), "as they were drawn")


def echoes(service):
    with gateway(TNK, service) as g:
        client = Client(g.url)
        ask = {"prompt": "h\u00e9llo", "max_tokens": 3, "temperature": 0}
        said = client.post("/v1/completions", {**ask, "logprobs": 2})[1]["choices"][0]
        a = client.post("/v1/completions", {**ask, "echo": True})[1]["choices"][0]
        check(a["text"] == "h\u00e9llo" + said["text"] and a["logprobs"] is None, "the prompt, then the answer", a)
        a = client.post("/v1/completions", {**ask, "echo": True, "logprobs": 2})[1]["choices"][0]
        got = a["logprobs"]
        check(len(got["tokens"]) == 6 + len(said["logprobs"]["tokens"]) and
              got["tokens"][6:] == said["logprobs"]["tokens"], "a token for each", got)
        check(got["token_logprobs"][0] is None and got["top_logprobs"][0] is None, "none of the first token", got)
        check(all(isinstance(v, float) and v < 0 for v in got["token_logprobs"][1:]) and
              got["token_logprobs"][6:] == said["logprobs"]["token_logprobs"], "logprobs", got)
        check(all(t and max(t.values()) < 0 for t in got["top_logprobs"][1:]), "the likeliest tokens", got)
        check(got["text_offset"] == list(range(len(got["tokens"]))), "offsets", got)
        # A prompt of the same tokens has the same logprobs as sampled ones.
        b = client.post("/v1/completions", {"prompt": list(b"h\xc3\xa9llo"), "max_tokens": 1, "echo": True,
                                            "logprobs": 0})[1]["choices"][0]["logprobs"]
        check(b["token_logprobs"][:6] == got["token_logprobs"][:6], "the same by ids", b)
        text = client.post("/v1/completions", {**ask, "echo": True, "stream": True, "logprobs": 2})[1]
        chunks = [c["choices"][0] for c in events(text)]
        check("".join(c["text"] for c in chunks) == a["text"] and chunks[0]["text"] == "h\u00e9llo", "a stream", chunks)
        check(chunks[-1]["logprobs"] == got, "with the logprobs at its end", chunks[-1])
        a = client.post("/v1/completions", {"prompt": ["ab", "c"], "max_tokens": 1, "echo": True, "logprobs": 0})[1]
        check([c["text"][:n] for c, n in zip(a["choices"], (2, 1))] == ["ab", "c"] and
              [len(c["logprobs"]["tokens"]) for c in a["choices"]] == [3, 2], "of each prompt", a)
        status, a = client.post("/v1/completions", {"prompt": "a", "echo": "x"})
        check(status == 400 and "echo" in a["error"]["message"], "it is true or false", a)
        status, a = client.chat("hi", echo=True)
        check(status == 400 and a["error"]["param"] == "echo", "for completions alone", a)


USER = {"role": "user", "content": "hi"}


def begun(text):
    return [USER, {"role": "assistant", "content": text}]


ON = {"continue_final_message": True, "add_generation_prompt": False}


def prefills(service, folder):
    """A response that the client begins, in words that nobody has sampled."""
    path = pathlib.Path(folder) / "prefill"
    with gateway(TNK, service, "--record", path) as g:
        client = Client(g.url, x_tnk_session="me")
        status, a = client.post("/v1/messages", {"max_tokens": 4, "messages": begun("The answer is")})
        check(status == 200, "a prefill of Anthropic's", a)
        rest = a["content"][0]["text"]
        n = client.post("/v1/messages/count_tokens", {"messages": begun("The answer is")})[1]["input_tokens"]
        check(n == a["usage"]["input_tokens"], "its tokens are counted", (n, a["usage"]))
        status, b = client.chat([*begun("The answer is" + rest), {"role": "user", "content": "?"}])
        check(status == 200, "the next turn", b)
        status, c = client.chat(begun("Well"), **ON, stop=["W"], n=2)
        check(status == 200 and not c["choices"][0]["message"]["content"].startswith("Well"),
              "continue_final_message; a stop before it is none", c)
        text = client.chat(begun("Well"), **ON, stream=True, seed=3)[1]
        said = "".join(e["choices"][0]["delta"].get("content") or "" for e in events(text))
        d = client.chat(begun("Well"), **ON, seed=3)[1]
        check(said == d["choices"][0]["message"]["content"], "a stream says the same", text)
        status, e = client.post("/v1/messages", {"max_tokens": 4, "messages": [USER, {"role": "assistant", "content": [
            {"type": "text", "text": "The answer is"}]}]})
        check(status == 200 and e["usage"]["input_tokens"] == n, "as a list of one part", e)
    turns = turns_of(path)
    first, second = turns[int(a["id"][4:])], turns[int(b["id"][9:])]
    check(bytes(first["prompt"]).endswith(b"Assistant: The answer is"), "the prompt ends with it",
          bytes(first["prompt"]))
    check(first["messages"][-1]["content"].lstrip() == "The answer is" + rest, "the record has the whole response", first)
    check(first["forced"] == len(" The answer is"), "and how much was given", first)
    check(second["parent"] == first["turn"], "so the next turn goes on from it", second)
    check(bytes(turns[int(c["id"][9:])]["prompt"]).endswith(b"Assistant: Well"), "of chat completions")


def continues_own(service, folder):
    """A response that was cut off is continued from its very tokens."""
    path = pathlib.Path(folder) / "own"
    with gateway(TNK, service, "--record", path) as g:
        client = Client(g.url, x_tnk_session="me")
        whole_text, ids = "", []
        for i in range(3):
            status, a = client.chat(begun(whole_text) if i else "hi", max_tokens=3, seed=i + 1,
                                    **(ON if i else {}))
            check(status == 200 and a["choices"][0]["finish_reason"] == "length", f"part {i}", a)
            whole_text += a["choices"][0]["message"]["content"]
            ids.append(int(a["id"][9:]))
        a = client.chat([*begun(whole_text), {"role": "user", "content": "more"}])[1]
        b = client.post("/v1/responses", {"input": "x", "max_output_tokens": 2, "previous_response_id": a["id"]})[1]
        got = client.ask("GET", f"/v1/responses/{b['id']}/input_items?order=asc")[1]["data"]
        check([i["role"] for i in got] == ["user", "assistant", "user", "assistant", "user"] and
              got[1]["content"][0]["text"] == whole_text, "one message in the history", got)
        status, lines = client.ask("GET", "/tnk/datums")
        check(status == 200 and len(lines.splitlines()) == 1 and len(json.loads(lines)["turns"]) == 5, "one example", lines)
    turns = turns_of(path)
    parts = [turns[i] for i in ids]
    check([t.get("parent") for t in parts] == [None, *ids[:2]] and [t["prompt"] for t in parts[1:]] == [[], []],
          "no token is tokenized again", parts)
    check([t.get("forced", 0) for t in parts] == [0, 3, 6], "what is given grows", parts)
    check(parts[2]["messages"] == [{"role": "assistant", "content": whole_text}], "the message is whole", parts[2])
    check(turns[int(a["id"][9:])]["parent"] == ids[2], "the next turn goes on", turns)
    check(not not_drawn(path, service.samples), "as they were drawn")


def continues_ended(service, folder):
    """A response that has ended is continued without its stop."""
    config = pathlib.Path(folder) / "tokenizer_config.json"
    config.write_text(json.dumps({"eos_token": "<|end|>", "chat_template":
        "{% for m in messages %}{{ m.role }}:{{ m.content }}<|end|>{% endfor %}"
        "{% if add_generation_prompt %}assistant:{% endif %}"}))
    path = pathlib.Path(folder) / "ended"
    stop = list("abcdefghijklmnop")
    with gateway(TNK, service, "--template", config, "--record", path) as g:
        client = Client(g.url, x_tnk_session="me")
        a = client.chat("hi", stop=stop, max_tokens=400, seed=1)[1]
        said = a["choices"][0]["message"]["content"]
        b = client.chat(begun(said), **ON, stop=stop, max_tokens=400, seed=2)[1]
        more = b["choices"][0]["message"]["content"]
    turns = turns_of(path)
    first, second = (turns[int(x["id"][9:])] for x in (a, b))
    check(first["end"] == second["end"] == "stop" and chr(first["sampled"][-1]) in stop, "both have ended", first)
    check("parent" not in second and second["prompt"] == first["prompt"] + first["sampled"][:-1],
          "a branch with the same tokens, without the stop", (first, second))
    check(second["messages"][-1]["content"] == said + more, "the whole response", second)
    with local(TNK, "--stub", "--stub-answers", answers(folder, ["Hello", " you", "!"])) as stub, \
            gateway(TNK, stub, "--template", config, "--record", path.with_suffix(".stub")) as g:
        client = Client(g.url, x_tnk_session="me")
        a = client.chat("hi")[1]
        b = client.chat(begun("Hello"), **ON)[1]
        c = client.chat(begun("Hel"), **ON)[1]
    turns = turns_of(path.with_suffix(".stub"))
    first, second, third = (turns[int(x["id"][9:])] for x in (a, b, c))
    check(b["choices"][0]["message"]["content"] == " you", "what follows it", b)
    check(second["parent"] == first["turn"] and second["prompt"] == [], "a service that keeps the stop", second)
    check(third["prompt"] == first["prompt"] + list(b"Hel"), "and words that nobody has sampled", third)


def continues_thoughts(folder):
    """The client gets what follows: the rest of the thoughts, and a call."""
    template = pathlib.Path(folder) / "calling.jinja"
    template.write_text(CALLING)
    path = pathlib.Path(folder) / "thoughts"
    said = ["ore</think>\n\nHi", 'tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>']
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    with local(TNK, "--stub", "--stub-answers", answers(folder, said)) as stub, \
            gateway(TNK, stub, "--renderer", "qwen3", "--template", template, "--record", path) as g:
        client = Client(g.url)
        a = client.chat(begun("<think>\nhm m"), **ON, max_tokens=500)[1]["choices"][0]["message"]
        b = client.chat(begun("Yes: <"), **ON, tools=tools, max_tokens=500)[1]["choices"][0]["message"]
    turns = list(turns_of(path).values())
    check(a["reasoning_content"] == "ore" and a["content"] == "Hi", "the rest of the thoughts", a)
    check(turns[0]["messages"][-1]["reasoning_content"].strip() == "hm more", "the record has all of them", turns[0])
    check(b["tool_calls"][0]["function"]["name"] == "f" and not b["content"], "a call that the client has begun", b)


def continues_not(service, folder):
    """Conversations that cannot be continued are rejected with the reason."""
    thinks = pathlib.Path(folder) / "thinks.jinja"
    thinks.write_text(CALLING.replace("assistant\n{% endif", "assistant\n<think>\n{% endif"))
    trims = pathlib.Path(folder) / "trims.jinja"
    trims.write_text(CALLING.replace("m.content or ''", "m.content | trim"))
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    for template, messages, more, why in (
            ("plain", begun("Well"), {}, "continue_final_message"),
            ("plain", begun("Well"), {"continue_final_message": True, "add_generation_prompt": True}, "to be false"),
            ("plain", [USER], {"add_generation_prompt": False}, "add_generation_prompt"),
            ("plain", [USER], ON, "is not the assistant's"),
            ("plain", begun("Well")[1:], ON, "no message before it"),
            ("plain", begun("Well"), {**ON, "continue_final_message": "x"}, "continue_final_message"),
            ("plain", [USER, {"role": "assistant", "content": "", "tool_calls": [call]}], ON, "calls a tool"),
            ("plain", [USER, {"role": "assistant", "content": [{"type": "text", "text": "a"},
                                                               {"type": "text", "text": "b"}]}], ON, None),
            ("plain", begun("Well"), {**ON, "tools": tools, "tool_choice": "required"}, "tool_choice"),
            (thinks, begun("Well"), ON, "after the begin of a new response"),
            (trims, begun("Well "), ON, "white space"),
            (trims, begun("Well"), ON, None)):
        with gateway(TNK, service, "--template", template) as g:
            status, a = Client(g.url).chat(messages, **more)
            check(status == 200 if why is None else status == 400 and why in a["error"]["message"],
                  f"{getattr(template, 'name', template)}: {why}", (status, a))
    with gateway(TNK, service) as g:
        status, a = Client(g.url).post("/v1/responses", {"input": begun("Well")})
        check(status == 400 and "the last message is the assistant's" in a["error"]["message"], "responses have none", a)


def main():
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "samples"
        with local(TNK, "--sample-log", log) as service:
            service.samples = log
            reads_responses(service, folder)
            completes_several(service, folder)
            echoes(service)
            prefills(service, folder)
            continues_own(service, folder)
            continues_ended(service, folder)
            continues_not(service, folder)
        reads_calls(folder)
        continues_thoughts(folder)
    plan()


main()
