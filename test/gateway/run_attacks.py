#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What an agent with a key of its own session tries, over both versions of HTTP.

usage: run_attacks.py TNK_COMMAND

A row is one attack. It must have one of the statuses, and no effect: no reward, no
turn in another session, no other weights, no other keys.

Output is TAP, see test/support/tap.py.
"""
import concurrent.futures
import hashlib
import json
import pathlib
import re
import select
import struct
import sys
import tempfile

from gateway import Client, gateway, local, records
from tap import check, plan
from wire import (CONTINUATION, DATA, HEADERS, PING, PRIORITY, RST, SETTINGS, WINDOW, Http2, answer1, dial, fields, frame,
                  head1, http1, http2, packed)

TNK = sys.argv[1]
CHAT = "/v1/chat/completions"
HI = {"max_tokens": 4, "messages": [{"role": "user", "content": "hi"}]}
NO = (400, 401, 403, 404, 405)
FEW = 50  # connections that race


class Place:
    """A gateway with a victim's session, and with the keys of an agent."""

    def __init__(self, url):
        self.url = url
        self.admin = Client(url, x_api_key="admin")
        self.mine = self.key(session="mine")
        self.rewards = self.key(session="mine", may_reward=True)
        self.small = self.key(session="mine", max_body=300)
        self.victim = self.key(session="victim", may_reward=True)
        self.own = self.ask(self.mine["key"], CHAT, HI)["id"]
        self.other = self.ask(self.victim["key"], CHAT, HI)["id"]
        self.response = self.ask(self.victim["key"], "/v1/responses", {"input": "hi", "max_output_tokens": 4})["id"]
        self.owned = self.ask(self.mine["key"], "/v1/responses", {"input": "hi", "max_output_tokens": 4})["id"]
        self.revoked = self.key(session="mine")
        self.admin.ask("DELETE", "/tnk/sessions/" + self.revoked["id"])
        self.old = self.key(session="mine")
        self.admin.post(f"/tnk/sessions/{self.old['id']}/rotate", "")

    def key(self, **limits):
        status, made = self.admin.post("/tnk/sessions", limits)
        check(status == 200, f"a key with {limits}", made)
        return made

    def ask(self, key, path, body):
        client = Client(self.url, x_api_key=key)
        status, answer = client.post(path, body)
        client.close()
        check(status == 200, f"{path} with its own key", answer)
        return answer

    def harm(self):
        """State that no attack may change."""
        lines = self.admin.ask("GET", "/tnk/datums")[1].splitlines()
        rows = [json.loads(line) for line in lines]
        keys = self.admin.ask("GET", "/tnk/sessions")[1]["data"]
        return {"sessions": {(row["session"], turn["turn"]) for row in rows for turn in row["turns"]
                             if row["session"] != "mine"},
                "rewards": [turn["turn"] for row in rows for turn in row["turns"] if "reward" in turn
                            and turn["reward"] is not None],
                "versions": {turn["version"] for row in rows for turn in row["turns"]},
                "keys": [(k["id"], k["session"], k["limits"]) for k in keys]}


def rows(p):
    """name, method, path, body, headers, key, statuses; a key of None sends none."""
    m, r = p.mine["key"], p.rewards["key"]
    reward, victim = {"reward": 1}, ("X-Tnk-Session", "victim")

    def row(name, method, path, body=None, *headers, key=m, ok=NO):
        return name, method, path, body, list(headers), key, ok

    for path in ("/tnk/reward", "/s/mine/tnk/reward", "/tnk/reward/", "/tnk//reward", "//tnk/reward", "/TNK/reward",
                 "/%74nk/reward", "/tnk%2freward", "/tnk/reward?x=1", "/tnk/./reward", "/v1/../tnk/reward",
                 "/s/mine/s/mine/tnk/reward", "/tnk/reward;x", "/tnk/reward%00", "/s/mine//tnk/reward",
                 "http://localhost/tnk/reward", "/tnk/rewards", "/s/mine/%2ftnk/reward"):
        yield row(f"own reward by {path}", "POST", path, reward)
    yield row("own reward by its id", "POST", "/tnk/reward", {"id": p.own, "reward": 1})
    yield row("own reward, its session named", "POST", "/tnk/reward", reward, ("X-Tnk-Session", "mine"))
    yield row("own reward, its session after the key", "POST", "/tnk/reward", reward, key=m + ":mine")
    for method in ("PUT", "GET", "PATCH", "DELETE", "OPTIONS", "HEAD"):
        yield row(f"own reward by {method}", method, "/tnk/reward", reward)
    for name in ("X-HTTP-Method-Override", "X-Original-URL", "X-Rewrite-URL", "X-Forwarded-Path"):
        yield row(f"own reward by {name}", "GET", "/v1/models", None, (name, "/tnk/reward"), ok=(200,))

    yield row("another's reward by its id", "POST", "/tnk/reward", {"id": p.other, "reward": 1}, key=r)
    yield row("another's reward by id and own session", "POST", "/s/mine/tnk/reward", {"id": p.other, "reward": 1},
              key=r)
    yield row("another's reward by path", "POST", "/s/victim/tnk/reward", reward, key=r)
    yield row("another's reward by header", "POST", "/tnk/reward", reward, victim, key=r)
    yield row("another's reward after the key", "POST", "/tnk/reward", reward, key=r + ":victim")
    yield row("another's reward by body", "POST", "/tnk/reward", {"id": p.other, "session": "victim", "reward": 1},
              key=r)
    prefix, n = p.other.rsplit("-", 1)
    for step in range(-3, 4):
        yield row(f"a guessed id, {step:+}", "POST", "/tnk/reward", {"id": f"{prefix}-{int(n) + step}", "reward": 1}, key=r) \
            if f"{prefix}-{int(n) + step}" != p.own else row("no id", "POST", "/tnk/reward", {"reward": "x"}, key=r)
    for choice in (1, 2, 3, -1, 1 << 40):
        yield row(f"a choice beyond its own, {choice}", "POST", "/tnk/reward",
                  {"id": p.own, "choice": choice, "reward": 1}, key=r)
    yield row("weights by the key for rewards", "POST", "/tnk/sampler", {"base_model": "tnk/byte-lm"}, key=r)
    yield row("record by the key for rewards", "GET", "/tnk/datums", key=r)

    for path in ("/s/victim", "/s/%76ictim", "/s/mine%2f..%2fvictim", "/s/mine/../victim", "/s/", "/s/mine%00victim",
                 "/s/Mine", "/s/min", "/s/mine2", "/s/mine ", "/s/victim/s/mine", "/s/mine/s/victim", "/s/*",
                 "/s/default"):
        yield row(f"another session by {path}", "POST", path.replace(" ", "%20") + CHAT, HI)
    for value in ("victim", "mine, victim", "mine;victim", "victim\t", "MINE", "../victim", "default", "*"):
        yield row(f"another session by the header {value!r}", "POST", CHAT, HI, ("X-Tnk-Session", value))
    yield row("two headers", "POST", CHAT, HI, ("X-Tnk-Session", "mine"), victim)
    yield row("two headers, the other order", "POST", CHAT, HI, victim, ("X-Tnk-Session", "mine"))
    yield row("header and path", "POST", "/s/mine" + CHAT, HI, victim)
    yield row("path and header", "POST", "/s/victim" + CHAT, HI, ("X-Tnk-Session", "mine"))
    for end in (":victim", ":mine:victim", "::victim", ":victim:mine", ":default"):
        yield row(f"another session after the key, {end}", "POST", CHAT, HI, key=m + end)
    yield row("key, header and path", "POST", "/s/mine" + CHAT, HI, ("X-Tnk-Session", "mine"), key=m + ":victim")
    yield row("another's response", "POST", "/v1/responses", {"input": "x", "previous_response_id": p.response,
                                                              "max_output_tokens": 4})
    yield from responses(p, row)
    for name, value in (("session", "victim"), ("session_id", "victim"), ("user", "victim"),
                        ("metadata", {"session": "victim"}), ("model", "victim")):
        yield row(f"the body's {name}", "POST", CHAT, {**HI, name: value}, ok=(200, 400))
    yield row("the query", "POST", CHAT + "?session=victim&s=victim", HI, ok=(200,))
    for name in ("Cookie", "X-Tnk-Sessions", "X_Tnk_Session", "X-Forwarded-For", "OpenAI-Organization"):
        yield row(f"another session by {name}", "POST", CHAT, HI, (name, "victim"), ok=(200, 400))

    for path in ("/tnk/datums", "/s/mine/tnk/datums", "/s/victim/tnk/datums", "/tnk/datums?rewarded=1", "/tnk",
                 "/tnk/", "/tnk/metrics", "/metrics", "/metrics/", "/s/mine/metrics", "/s/victim/metrics",
                 "/%6detrics", "//metrics", "/healthz/../metrics", "/readyz/../tnk/datums", "/tnk/record", "/tnk/stats", "/tnk/sessions",
                 "/s/mine/tnk/sessions", "/tnk/sessions/", "/tnk/sessions/" + p.victim["id"]):
        yield row(f"read {path}", "GET", path)
        yield row(f"head of {path}", "HEAD", path)
    for body in ({"base_model": "tnk/byte-lm"}, {"model_path": "tinker://x/sampler_weights/y"}, {}):
        yield row(f"weights by {json.dumps(body)}", "POST", "/tnk/sampler", body)
        yield row(f"weights by {json.dumps(body)} in its session", "POST", "/s/mine/tnk/sampler", body)
    yield row("another key", "POST", "/tnk/sessions", {"session": "mine"})
    yield row("a key of another", "POST", "/tnk/sessions", {"session": "victim"})
    for who in (p.mine, p.victim):
        yield row(f"revoke {who['session']}", "DELETE", "/tnk/sessions/" + who["id"])
        yield row(f"rotate {who['session']}", "POST", f"/tnk/sessions/{who['id']}/rotate", {})
    yield row("longer by itself", "PATCH", "/tnk/sessions/" + p.mine["id"], {"max_requests": 0})

    hashed = hashlib.sha256(m.encode()).hexdigest()
    for name, key in (("no key", None), ("an empty key", ""), ("half a key", m[:40]), ("one digit less", m[:-1]),
                      ("one digit more", m + "0"), ("another digit", m[:-1] + ("0" if m[-1] != "0" else "1")),
                      ("in capitals", m.upper()), ("its id", p.mine["id"]), ("its hash", hashed),
                      ("its hash as a key", "tnk-" + hashed), ("tnk-", "tnk-"), ("a colon", ":"),
                      ("a session alone", ":victim"), ("the victim's id", p.victim["id"]), ("admin:", "admin2:x"),
                      ("a revoked key", p.revoked["key"]), ("a rotated key", p.old["key"]),
                      ("a space first", " " + m[4:]), ("two keys", m + "," + p.small["key"])):
        yield row(name, "POST", CHAT, HI, key=key, ok=(401,))
    for scheme in ("Basic", "Token", ""):
        yield row(f"the scheme {scheme!r}", "POST", CHAT, HI, ("Authorization", f"{scheme} {m}"), key=None, ok=(401,))
    yield row("two credentials", "POST", CHAT, HI, ("Authorization", "Bearer x"), ("Authorization", f"Bearer {m}"),
              key=None)
    yield row("two keys in headers", "POST", CHAT, HI, ("X-Api-Key", "x"), key=m)
    yield row("the key in the query", "POST", f"{CHAT}?key={m}&api_key={m}", HI, key=None, ok=(401,))
    yield row("a cookie", "POST", CHAT, HI, ("Cookie", f"key={m}"), key=None, ok=(401,))
    large = {**HI, "user": "x" * 400}
    yield row("too large a body", "POST", CHAT, large, key=p.small["key"], ok=(413,))
    yield row("a body with a coding", "POST", CHAT, HI, ("Content-Encoding", "gzip"), key=p.small["key"], ok=(415,))


def responses(p, row):
    """Responses of another session, read, deleted, and continued."""
    m, n = p.mine["key"], int(p.response[5:])
    where = "/v1/responses/" + p.response
    for method in ("GET", "HEAD", "DELETE"):
        yield row(f"{method} another's response", method, where)
        yield row(f"{method} it by the path", method, "/s/victim" + where)
        yield row(f"{method} it by its own path", method, "/s/mine" + where)
        yield row(f"{method} it by the header", method, where, None, ("X-Tnk-Session", "victim"))
        yield row(f"{method} it after the key", method, where, key=m + ":victim")
        yield row(f"{method} it in the query", method, where + "?session=victim", ok=(400, 404))
    for name in (p.other.replace("chatcmpl-", "resp_"), p.other, str(n), f"resp_0{n}", f"resp_+{n}", f"resp_{n}%00",
                 f"resp_{n}%2finput_items", f"..%2fresponses%2f{p.response}", f"{p.response}/../{p.response}",
                 f"resp_{n + (1 << 64)}", f"{p.response}/input_items", f"{p.response}/input_items?after=x",
                 f"{p.response}/input_items/", f"{p.response}/cancel"):
        for method in ("GET", "DELETE"):
            yield row(f"{method} another's response as {name[:30]}", method, f"/v1/responses/{name}")
    for name in ("../../tnk/datums", "..%2f..%2ftnk/datums", "%2e%2e/%2e%2e/tnk/sessions"):
        yield row(f"the record as the response {name}", "GET", f"/v1/responses/{name}")
    for kind in ("msg", "rs", "fc", "msg_in"):
        yield row(f"another's item {kind}", "POST", "/v1/responses", {
            "input": [{"type": "item_reference", "id": f"{kind}_{n}_0"}], "max_output_tokens": 4})
    yield row("another's chat as a previous response", "POST", "/v1/responses", {
        "input": "x", "previous_response_id": p.other, "max_output_tokens": 4})
    yield row("its own response, by the key of the victim's path", "GET", f"/s/victim/v1/responses/{p.owned}")


def attacks(p):
    n = 0
    red = []
    for name, method, path, body, headers, key, ok in rows(p):
        data = b"" if body is None else json.dumps(body).encode()
        # A second value shows whether one is looked at and the other one used.
        given = headers + ([("X-Api-Key", key)] if key is not None else [])
        for wire, ask in (("HTTP/1.1", http1), ("HTTP/2", http2)):
            before = p.harm()
            got = ask(p.url, method, path, given, data)
            # HTTP/2 has no absolute form, and ends a stream that is malformed.
            if got not in ok and not (wire == "HTTP/2" and got == 0):
                red.append(f"{name}, {wire}: status {got}")
            if p.harm() != before:
                red.append(f"{name}, {wire}: {before} became {p.harm()}")
        n += 1
    check(not red, f"{n} attacks, each over both versions", "\n".join(red))
    check(n >= 200, "so many", n)


# ---- What is told ----

def tells_nothing(p):
    """Objects of another session get the same answer as missing ones."""
    client = Client(p.url, x_api_key=p.rewards["key"])
    there, absent = p.response, "resp_" + "9" * len(p.response[5:])
    for name, ask in (
            ("a response", lambda i: client.ask("GET", f"/v1/responses/{i}")),
            ("its input", lambda i: client.ask("GET", f"/v1/responses/{i}/input_items")),
            ("its end", lambda i: client.ask("DELETE", f"/v1/responses/{i}")),
            ("what follows", lambda i: client.post("/v1/responses", {"input": "x", "previous_response_id": i})),
            ("an item", lambda i: client.post("/v1/responses", {"input": [
                {"type": "item_reference", "id": f"msg_{i[5:]}_0"}]})),
            ("a reward", lambda i: client.post("/tnk/reward", {"id": i, "reward": 1})),
            ("a key", lambda i: client.ask("DELETE", "/tnk/sessions/" + (p.victim["id"] if i == there else "x")))):
        got = [json.dumps(ask(i)).replace(i[5:], "") for i in (there, absent)]
        check(got[0] == got[1], f"{name} of another session is as none", got)


def steals(p, record):
    """Answers and tokens of the victim, by its words, its keys and its answers."""
    words = {"max_tokens": 4, "messages": [{"role": "user", "content": "a secret of mine"}]}
    victim, mine = (Client(p.url, x_api_key=key) for key in (p.victim["key"], p.mine["key"]))
    for name, headers in (("the same body", {}), ("its Idempotency-Key", {"idempotency_key": "k"}),
                          ("a retry", {"x_stainless_retry_count": "1"})):
        body = {**words, "user": name}
        a = victim.post(CHAT, body, **headers)[1]
        b = mine.post(CHAT, body, **headers)[1]
        check(a["id"] != b["id"], f"{name} gives another answer", (a, b))
    said = a["choices"][0]["message"]["content"]
    asks = [{**words, "messages": [*words["messages"], {"role": "assistant", "content": said}], "user": "more",
             "continue_final_message": True},
            {**words, "messages": [*words["messages"], {"role": "assistant", "content": said},
                                   {"role": "user", "content": "more"}]}]
    ids = []
    for body in asks:
        status, b = mine.post(CHAT, body)
        check(status == 200, "a history of the victim's", b)
        ids.append(int(b["id"][9:]))
    turns = {r["turn"]: r for r in records(record) if r["type"] == "turn"}
    check(all("parent" not in turns[i] for i in ids), "does not go on from the victim's tokens", ids)
    check({turns[i]["session"] for i in ids} == {"mine"}, "and stays in its own session")


def hides_nothing(p):
    """An agent that deletes its response removes no example."""
    def examples():
        return [row for row in map(json.loads, p.admin.ask("GET", "/tnk/datums")[1].splitlines())
                if any(turn["turn"] == int(p.owned[5:]) for turn in row["turns"])]
    before = examples()
    status = Client(p.url, x_api_key=p.mine["key"]).ask("DELETE", "/v1/responses/" + p.owned)[0]
    check(status == 200 and len(before) == 1 and examples() == before, "a deleted response is still an example")
    check(p.admin.post("/tnk/reward", {"id": p.owned, "reward": 0})[0] == 200, "which can be rewarded")


# ---- Connections ----

def raw(p, *pieces):
    """Send this, and return all statuses until the connection ends."""
    with dial(p.url) as peer, peer.makefile("rb") as answer:
        peer.sendall(b"".join(pieces))
        return [int(status) for status in re.findall(rb"HTTP/1.1 (\d+) ", answer.read())]


def smuggles(p):
    key, body = [("X-Api-Key", p.mine["key"])], json.dumps(HI).encode()
    inner = head1("POST", "/s/victim" + CHAT, [("X-Api-Key", p.victim["key"][:-1])], len(body)) + body
    before = p.harm()
    chunked = [*key, ("Transfer-Encoding", "chunked")]
    large = json.dumps({**HI, "user": "x" * 400}).encode()
    small = [("X-Api-Key", p.small["key"]), ("Transfer-Encoding", "chunked")]
    end = [*key, ("Connection", "close")]
    for name, pieces, ok in (
            ("two lengths", (head1("POST", CHAT, [*chunked, ("Content-Length", "5")]), b"0\r\n\r\n", inner), NO),
            ("a folded header", (head1("POST", CHAT, [*end, ("X-Tnk-Session", "mine\r\n victim")], len(body)), body), NO),
            ("a header in a value", (head1("POST", CHAT, [*end, ("X-A", "b\r\nX-Tnk-Session: victim")], len(body)),
                                     body), NO),
            ("a chunked body that is too large", (head1("POST", CHAT, small), b"%x\r\n" % len(large), large,
                                                  b"\r\n0\r\n\r\n"), (413,)),
            ("a session in a trailer", (head1("POST", CHAT, [*chunked, ("Connection", "close")]), b"%x\r\n" % len(body),
                                        body, b"\r\n0\r\nX-Tnk-Session: victim\r\n\r\n"), (200, *NO))):
        got = raw(p, *pieces)
        check(all(status in ok for status in got) and p.harm() == before, name, got)
    got = raw(p, head1("POST", CHAT, key, len(body)), body, head1("POST", CHAT, [("Connection", "close")], len(body)),
              body)
    check(got == [200, 401], "HTTP/1.1: a key is of one request", got)


def pseudo_headers(p):
    key, body = [("x-api-key", p.mine["key"])], json.dumps(HI).encode()
    usual = fields("POST", CHAT, key)
    before = p.harm()
    for name, head in (
            ("two paths", [*usual[:4], (":path", "/s/victim" + CHAT), *key]),
            ("a path at the end", [*usual, (":path", "/s/victim" + CHAT)]),
            ("a session as pseudo-header", [*usual[:4], (":x-tnk-session", "victim"), *key]),
            ("a header in capitals", [*usual, ("X-Tnk-Session", "victim")]),
            ("a line end in a value", [*usual, ("x-a", "b\r\nx-tnk-session: victim")]),
            ("two methods", [(":method", "GET"), *usual]),
            ("a path in the authority", [*usual[:2], (":authority", "localhost/s/victim"), *usual[3:]]),
            ("an empty path", [*usual[:3], (":path", ""), *key])):
        with Http2(p.url) as conn:
            stream = conn.head(head)
            try:
                conn.data(stream, body)
            except OSError:
                pass
            got = conn.answer(stream)
        check((got in (0, *NO) or name == "a path in the authority") and p.harm() == before,
              f"HTTP/2: {name}", got)
    with Http2(p.url) as conn:
        got = []
        for head in (usual, usual[:4]):
            stream = conn.head(head)
            conn.data(stream, body)
            got.append(conn.answer(stream))
    check(got == [200, 401], "HTTP/2: a key is of one request", got)
    with Http2(p.url) as conn:
        stream = conn.head(fields("POST", CHAT, [("x-api-key", p.small["key"])]))
        conn.data(stream, json.dumps({**HI, "user": "x" * 400}).encode())
        got = conn.answer(stream)
    check(got == 413, "HTTP/2: a body without a length that is too large", got)


# ---- Limits ----

def race(p, key, body=None, n=FEW):
    """The statuses of requests that are sent at once, half of them by HTTP/2.
    They differ, as equal ones would be taken for repetitions."""
    def send(i):
        data = json.dumps({**(body or HI), "user": str(i)}).encode()
        return (http1, http2)[i % 2](p.url, "POST", CHAT, [("X-Api-Key", key)], data)
    with concurrent.futures.ThreadPoolExecutor(n) as pool:
        return list(pool.map(send, range(n)))


def state(p, made):
    return next(k for k in p.admin.ask("GET", "/tnk/sessions")[1]["data"] if k["id"] == made["id"])


def used(p, made):
    return state(p, made)["used"]


def active(p, made):
    return state(p, made)["active"]


def races(p):
    price = 20 * 1e-6 + 4 * 2e-6  # the prompt has 20 tokens
    for limits, body, n, refused in (
            ({"max_requests": 5}, HI, 5, 403), ({"max_turns": 6}, {**HI, "n": 2}, 3, 403),
            ({"max_tokens": 24 * 7 + 23}, HI, 7, 403), ({"max_usd": 4.5 * price}, HI, 4, 403),
            ({"max_per_minute": 1}, HI, 1, 429)):
        made = p.key(session="mine", **limits)
        got = race(p, made["key"], {**body, "seed": 1})
        check(got.count(200) <= n and got.count(200) + got.count(refused) == FEW,
              f"{limits}: at most {n} of {FEW}", got)
        while race(p, made["key"], {**body, "seed": 1}, 1) == [200]:
            got.append(200)
        check(got.count(200) == n, f"{limits}: {n} in the end", (got, used(p, made)))


def exceeds(p):
    """More in one request than a key permits."""
    many = {"prompt": ["abcd"] * 10, "max_tokens": 4}
    for limits, path, body in (
            ({"max_turns": 9}, "/v1/completions", many), ({"max_tokens": 79}, "/v1/completions", many),
            ({"max_turns": 7}, "/v1/completions", {**many, "prompt": ["a"] * 2, "n": 4}),
            ({"max_turns": 3}, CHAT, {**HI, "n": 4}), ({"max_tokens": 35}, CHAT, {**HI, "n": 4}),
            ({"max_tokens": 100}, CHAT, {**HI, "max_tokens": 1 << 30}),
            ({"max_usd": 1e-5}, "/v1/completions", many)):
        made = p.key(session="mine", **limits)
        got = Client(p.url, x_api_key=made["key"]).post(path, body)
        check(got[0] == 403 and got[1]["error"]["code"] == "key_limit", f"{limits} by {path}", got)
        check(not any(used(p, made).values()), "nothing was used", used(p, made))


def hangs_up(p):
    """A sample costs as much if nobody waits for it."""
    made = p.key(session="mine", max_tokens=60)
    body = json.dumps({**HI, "max_tokens": 30}).encode()
    with dial(p.url) as peer:
        peer.sendall(head1("POST", CHAT, [("X-Api-Key", made["key"])], len(body)) + body)
        while not used(p, made)["tokens"]:
            pass
    while active(p, made) > 0:
        pass
    check(used(p, made)["tokens"] == 50, "tokens of a sample that was abandoned count", used(p, made))
    check(http1(p.url, "POST", CHAT, [("X-Api-Key", made["key"])], body) == 403, "and none are left")


def floods(p):
    """Slow bodies and slow samples hold what the key may hold, and no more."""
    made = p.key(session="mine", max_concurrent=3)
    head = head1("POST", CHAT, [("X-Api-Key", made["key"])], 100)
    peers = [dial(p.url) for _ in range(FEW)]
    for peer in peers:
        peer.sendall(head + b"{")
    p.ask(p.victim["key"], CHAT, HI)
    # Three wait for the rest of their bodies; the others are refused without.
    waiting = list(peers)
    got = []
    while len(waiting) > 3:
        for peer in select.select(waiting, [], [], 60)[0]:
            waiting.remove(peer)
            got.append(answer1(peer))
    check(got == [429] * (FEW - 3) and active(p, made) == 3, "3 slow bodies of 50", got)
    for peer in peers:
        peer.close()
    while active(p, made) > 0:
        pass
    with Http2(p.url) as conn:
        streams = [conn.head(fields("POST", CHAT, [("x-api-key", made["key"])])) for _ in range(20)]
        got = [conn.answer(stream) for stream in streams[3:]]
        check(got == [429] * 17, "3 slow bodies of 20 on a connection of HTTP/2", got)
        for stream in streams[:3]:
            conn.data(stream, json.dumps(HI).encode())
        got = [conn.answer(stream) for stream in streams[:3]]
        check(got == [200] * 3, "and those are answered", got)


def floods2(p):
    """Frames that cost a server more than their sender. Meanwhile the victim is
    served, and in the end nothing is in progress."""
    made = p.key(session="mine", max_concurrent=5)
    head = fields("POST", CHAT, [("x-api-key", made["key"])])
    body = json.dumps(HI).encode()
    reset = struct.pack("!I", 8)

    def resets(conn):
        for _ in range(2000):
            conn.peer.sendall(frame(RST, 0, conn.head(head), reset))

    def many_resets_of_bodies(conn):
        for _ in range(500):
            stream = conn.head(head)
            conn.data(stream, body)
            conn.peer.sendall(frame(RST, 0, stream, reset))

    floods_of = (
        ("streams that are reset", resets),
        ("requests that are reset", many_resets_of_bodies),
        ("pings", lambda conn: conn.peer.sendall(frame(PING, 0, 0, b"x" * 8) * 20000)),
        ("settings", lambda conn: conn.peer.sendall(frame(SETTINGS, 0, 0, struct.pack("!HI", 3, 100)) * 20000)),
        ("empty data", lambda conn: conn.peer.sendall(frame(DATA, 0, conn.head(head), b"") * 20000)),
        ("a head without an end", lambda conn: conn.peer.sendall(
            frame(HEADERS, 0, 1, packed(head)) + frame(CONTINUATION, 0, 1, packed([("x-a", "b" * 1000)])) * 2000)),
        ("priorities", lambda conn: conn.peer.sendall(frame(PRIORITY, 0, 1, b"\0\0\0\3\1") * 20000)),
        ("windows", lambda conn: conn.peer.sendall(frame(WINDOW, 0, 0, struct.pack("!I", 1)) * 20000)))
    for name, flood in floods_of:
        with Http2(p.url) as conn:
            try:
                flood(conn)
            except OSError:
                pass  # the gateway has ended the connection
            p.ask(p.victim["key"], CHAT, {**HI, "user": name})
        while active(p, made) > 0:
            pass
        check(True, f"HTTP/2: a flood of {name}")


def crawls(p):
    """Heads that never end hold connections, and no requests of other clients."""
    peers = [dial(p.url) for _ in range(FEW)]
    for i, peer in enumerate(peers):
        peer.sendall((b"POST ", b"PRI * HTTP/2.0\r\n", b"POST /v1 HTTP/1.1\r\nX-A: ", b"\r\n")[i % 4])
    p.ask(p.victim["key"], CHAT, {**HI, "user": "slow heads"})
    for peer in peers:
        peer.close()
    check(True, "50 heads that never end")
    got = raw(p, b"POST /v1/models HTTP/1.1\r\nHost: localhost\r\n", b"X-A: b\r\n" * 20000, b"\r\n")
    check(got in ([431], [400], []), "a head without an end", got)


def waits_together(tnk):
    """Requests in progress are limited while they are sampled, too."""
    with local(tnk, "--latency-ms", "300") as service:
        with gateway(tnk, service, "--admin-key", "admin", "--repeat-s", "0") as g:
            p = Place(g.url)
            hangs_up(p)
            made = p.key(session="mine", max_concurrent=4)
            got = race(p, made["key"])
            check(got.count(200) >= 4 and got.count(429) > 0 and got.count(200) + got.count(429) == FEW,
                  "4 in progress of 50", got)


def main():
    with tempfile.TemporaryDirectory() as folder:
        record = pathlib.Path(folder) / "record"
        with local(TNK) as service:
            with gateway(TNK, service, "--key", "shared", "--admin-key", "admin", "--record", record, "--prices",
                         "1,2", "-v", log=pathlib.Path(folder) / "log") as g:
                p = Place(g.url)
                attacks(p)
                tells_nothing(p)
                steals(p, record)
                hides_nothing(p)
                smuggles(p)
                pseudo_headers(p)
                races(p)
                exceeds(p)
                floods(p)
                floods2(p)
                crawls(p)
                secret = [k["key"] for k in (p.mine, p.rewards, p.victim, p.small, p.revoked, p.old)]
            said = g.said + record.read_text()
            check(not any(key in said for key in secret), "no key is in the log or in the record")
            check("hash" in records(record)[2], "but its hash is", records(record)[:3])
        waits_together(TNK)
    plan()


main()
