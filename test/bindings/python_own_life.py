# SPDX-License-Identifier: MIT
"""As python_life.py, for what only this package has: each call of CALLS is repeated and
fails its first allocation of the binding, then its second one, up to the last.

usage: python_own_life.py URL NAME
"""
import array
import json
import mmap
import os
import pathlib
import struct
import sys
import urllib.error
import urllib.request

sys.dont_write_bytecode = True
URL, NAME = sys.argv[1:]
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "python"))
import tnk
from samples import FILE, SOURCE, TALK, TOOLS
from tnk import chat, rl
from tnk.gateway import Gateway

with open(os.environ["TNK_TEST_CONTROL"], "r+b") as file:
    CONTROL = mmap.mmap(file.fileno(), 24)
LIMIT = 60
SERVICE = tnk.ServiceClient(base_url=URL, api_key="tml-local")
TOKENIZER = chat.Tokenizer.from_bytes(json.dumps(FILE).encode())
TEMPLATE = chat.Template.from_text(SOURCE, stops=["<|im_end|>"])
BODY = json.dumps({"model": "x", "max_tokens": 3, "messages": TALK[:3]}).encode()


def numbers():
    gradient = array.array("f", [0.0] * 2)
    rl.ppo(rl.Tokens([1.0, 2.0], array.array("d", [1.0, 2.5]), None, gradient), memoryview(array.array("f", [1, 0, 2]))[::2])
    return [list(rl.ratios([1.0], [2.0])), list(gradient), rl.drift([1.0], [2.0]).n]


def texts():
    tokenizer = chat.Tokenizer.from_bytes(json.dumps(FILE).encode())
    return [tokenizer.encode("abc").tolist(), tokenizer.decode([97, 256]), tokenizer.token_id("a")]


def conversations():
    template = chat.Template.from_text(SOURCE, stops=["<|im_end|>"])
    encoded = template.encode(TOKENIZER, TALK, train_on="last-answer", variables={"x": 1}, text_roles=["user"])
    return [template.render(TALK), encoded.tokens.tolist(), len(template.examples(None, TALK)),
            template.extend(None, list(b"two<|im_end|>"), TALK, 2).tolist(), chat.convert(TOOLS, "openai", "anthropic")]


def parsers():
    parser = chat.Parser(TOKENIZER, family="hermes", messages=TOOLS, prompt=[97], stops=["<|im_end|>"])
    deltas = parser.feed(list(b'<tool_call>\n{"name": "f", "arguments": {"n": 7}}\n</tool_call>x'))
    rest, message = parser.finish()
    return [[d.text for d in deltas + rest], message["tool_calls"][0]["function"], chat.renderer("qwen3").stops]


def ask(gateway, key):
    request = urllib.request.Request(gateway.address + "/v1/chat/completions", BODY,
                                     {"Content-Type": "application/json", "Authorization": "Bearer " + key})
    try:
        with urllib.request.urlopen(request, timeout=LIMIT) as answer:
            return len(json.loads(answer.read())["choices"])
    except urllib.error.HTTPError as error:
        with error:
            raise OSError(f"{error.code}: {error.read()}") from None


def close(one):
    try:
        one.close().result(LIMIT)
    except MemoryError:
        one.close().result(LIMIT)


def gateways():
    gateway = Gateway(SERVICE, tokenizer=TOKENIZER, template=TEMPLATE, key="k", admin_key="a", variables={"x": 1})
    try:
        gateway.use(base_model="tnk/byte-lm").result(LIMIT)
        key = gateway.create_key("one", max_turns=5)
        results = [ask(gateway, key.key)]
        gateway.reward(1.0, session="one")
        gateway.rotate_key(key.id)
        results += [len(gateway.keys()), len(gateway.examples()), gateway.stats()["version"]]
        gateway.revoke_key(key.id)
        return results
    finally:
        close(gateway)


def services():
    service = tnk.ServiceClient(base_url=URL, api_key="tml-local")
    try:
        gateway = Gateway(service)
        return len(gateway.address) > 0
    finally:
        close(service)


CALLS = {call.__name__: call for call in (numbers, texts, conversations, parsers, gateways, services)}


def fail_at(n):
    CONTROL[0:8] = struct.pack("q", n)


def has_failed():
    return struct.unpack("q", CONTROL[0:8])[0] <= 0


def fails(call, n, wanted):
    """Whether the call had that many allocations."""
    fail_at(n)
    try:
        result = call()
        if result != wanted:
            sys.exit(f"{NAME}, allocation {n}: {result}, not {wanted}")
    except (MemoryError, tnk.TinkerError, urllib.error.URLError, OSError, KeyError) as error:
        if not has_failed():
            raise
        print(f"# {n}: {error!r}")
    was_reached = has_failed()
    fail_at(0)
    return was_reached


def main():
    call = CALLS[NAME]
    call()
    wanted = call()
    n = 1
    while fails(call, n, wanted):
        n += 1
    if call() != wanted:
        sys.exit(f"{NAME}: another result after the failures")
    print("ended at", n)


main()
