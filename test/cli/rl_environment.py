# SPDX-License-Identifier: MIT
"""The environment of examples/agent_rl.py, which starts sooner: the model is asked, hears how many vowels it
has said, and is asked for more. The reward is their share.

usage: rl_environment.py [post | posts | loud | branches | HOW_TO_FAIL [WHICH]]

Without an argument it prints its reward. WHICH are the members of a group that fail, such as
01. It is started hundreds of times, so it loads the parts in C of the modules for JSON and
for sockets, and not the modules: they would take most of its time.
"""
import os
import sys

import _json
import _socket

BEGINNINGS = ["Say:", "Tell me:", "Sing:", "Answer:", "Write:", "Now:"]
HOST, PORT = os.environ["TNK_GATEWAY_URL"].removeprefix("http://").split(":")
KEY = os.environ["OPENAI_API_KEY"]


class Rules:
    """What the scanner of JSON must know."""
    strict, object_hook, object_pairs_hook = True, None, None
    parse_float, parse_int, parse_constant = float, int, float


SCAN = _json.make_scanner(Rules)


def dumps(value):
    """As JSON; numbers are finite."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{dumps(key)}:{dumps(member)}" for key, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(dumps, value)) + "]"
    if isinstance(value, str):
        return _json.encode_basestring_ascii(value)
    return {None: "null", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else repr(value)


def call(path, body):
    text = dumps(body).encode()
    stream = _socket.socket()
    stream.connect((HOST, int(PORT)))
    stream.sendall(f"POST {path} HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer {KEY}\r\n"
                   f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n".encode() + text)
    answer = b""
    while part := stream.recv(65536):
        answer += part
    stream.close()
    head, _, text = answer.partition(b"\r\n\r\n")
    if b" 200 " not in head.splitlines()[0]:
        sys.exit(f"{path}: {head.decode()}")
    return SCAN(text.decode(), 0)[0]


def vowels(text):
    return sum(letter in "aeiouAEIOU" for letter in text)


def play(n_turns=2):
    """Returns the reward and the ids of the answers."""
    messages = [{"role": "user", "content": BEGINNINGS[int(os.environ["TNK_RL_TASK"]) % len(BEGINNINGS)]}]
    said, ids = "", []
    for turn in range(n_turns):
        answer = call("/v1/chat/completions", {"model": "mine", "messages": messages, "max_tokens": 16,
                                               "seed": int(os.environ["TNK_RL_SEED"]) + turn})
        message = answer["choices"][0]["message"]
        said += message["content"]
        ids.append(answer["id"])
        messages += [message, {"role": "user", "content": f"{vowels(said)} vowels. More:"}]
    return vowels(said) / max(len(said), 1), ids


def fail(how):
    if how == "crash":
        play(1)
        print(0.5, flush=True)
        sys.exit(f"first\nsecond\nthird, and the key is {KEY}")
    if how == "hang":
        play(1)
        os.execvp("sleep", ["sleep", "600"])
    if how == "deaf":  # also to SIGTERM
        os.execvp("sh", ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"])
    if how == "silent":
        print(1)
    if how == "untold":
        play(1)
    if how == "text":
        play(1)
        print(f"nothing like {KEY}")
    if how == "infinite":
        play(1)
        print("1e999")
    if how == "long":  # without the end of a line
        play(1)
        sys.stdout.write("1" * (1 << 20))
    sys.exit(0)


def succeed(how):
    reward, ids = play()
    if how == "post":
        call("/tnk/reward", {"id": ids[-1], "reward": reward / 2})
        call("/tnk/reward", {"id": ids[-1], "reward": reward})
        print("this is no reward")
    elif how == "posts":
        call("/tnk/reward", {"id": ids[0], "reward": reward / 4})
        call("/tnk/reward", {"reward": reward * 3 / 4})
        print(7)
    elif how == "loud":  # a megabyte on both outputs, and then a reward
        for _ in range(1024):
            sys.stdout.write("x" * 1023 + "\n")
            sys.stderr.write("y" * 1023 + "\n")
        print(reward)
    elif how == "branches":  # the first member has a second conversation in its session
        if os.environ["TNK_RL_MEMBER"] == "0":
            play(1)
            call("/v1/chat/completions", {"messages": [{"role": "user", "content": "Other"}], "max_tokens": 16})
        print(1 + int(os.environ["TNK_RL_MEMBER"]))
    else:
        print(reward)


if __name__ == "__main__":
    HOW = sys.argv[1] if len(sys.argv) > 1 else ""
    WHICH = sys.argv[2] if len(sys.argv) > 2 else ""
    if os.environ["TNK_RL_MEMBER"] in WHICH:
        fail(HOW)
    succeed(HOW)
