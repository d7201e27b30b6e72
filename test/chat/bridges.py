#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Go on from sampled answers with the chat templates of many models.

usage: bridges.py CHAT_LIBRARY CACHE_DIR [--chats N] [--seed N]

N random conversations for each template of the package that templates.py
fetches, with a token a byte: what was sampled up to the last answer, and the
tokens that follow it, must be the text of a fresh rendering, or it is refused
with a reason. Ends with a skip (77) and its reason when the registry is out of
reach.
"""
import argparse
import ctypes as c
import json
import pathlib
import random
import sys

import templates
import tokens

class Bytes(tokens.Chat):
    """One template, with bytes for tokens."""

    def __init__(self, library, text, end="</s>"):
        self.c, self.error = library, tokens.Error()
        library.tnk_chat_new.restype = library.tnk_chat_tokens_new.restype = c.c_void_p
        library.tnk_chat_bytes_plugin.restype = c.c_void_p
        library.tnk_chat_tokens_ids.restype = c.POINTER(c.c_int32)
        library.tnk_chat_tokens_weights.restype = c.POINTER(c.c_float)
        self.coder = tokens.With(library.tnk_chat_bytes_plugin(), None)
        self.template = c.c_void_p()
        config = json.dumps({"bos_token": "<s>", "eos_token": end}).encode()
        options = tokens.TemplateOptions(size=c.sizeof(tokens.TemplateOptions),
                                         config=config, n_config=len(config))
        data = text.encode()
        self.check(library.tnk_chat_template_open(
            c.byref(self.template), data, c.c_size_t(len(data)), c.byref(options),
            c.byref(self.error)))
        self.tokens = c.c_void_p(library.tnk_chat_tokens_new(None))


def text_of(ids):
    """Of bytes, and of the marks that have ids of their own."""
    return b"".join(bytes([i]) if i < 256 else b"<%d>" % i for i in ids)


def open_template(library, text):
    """With what it writes behind an answer as the text that ends one."""
    chat, one = Bytes(library, text), b""
    for tools in (None, tokens.TOOLS):
        try:
            one = one or text_of(chat.encode(
                [{"role": "user", "content": "a"},
                 {"role": "assistant", "content": "XYZ"}], tools, False)[0])
        except tokens.Refused:
            pass
    end = one.rpartition(b"XYZ")[2]
    end = end.strip() or end
    return Bytes(library, text, end.decode()) if end else chat, end


def go_on(chat, end, messages, tools):
    """None, a reason, or False where the text is another one."""
    first = max(i for i, m in enumerate(messages) if m["role"] == "assistant") + 1
    try:
        whole = chat.encode(messages, tools, True)[0]
        so_far = chat.encode(messages[:first], tools, False)[0]
    except tokens.Refused:
        return "the template refuses the conversation"
    # Blanks behind the end of an answer are not sampled.
    while end.strip() and so_far and so_far[-1] in (9, 10, 13, 32):
        so_far.pop()
    if not text_of(so_far).endswith(end):
        return "the template writes no end behind this answer"
    try:
        ids = so_far + chat.go_on(so_far, messages, tools, first)
    except tokens.Refused as e:
        return str(e)
    if whole[:len(so_far)] != so_far:
        return "the answer stays as it was sampled, and is written otherwise later"
    return None if ids == whole else False


def compare(library, name, text, n_chats, seed):
    chat, end = open_template(library, text)
    rng = random.Random(f"{name} {seed}")
    n_same, n_refused, bad, left = 0, {}, 0, n_chats
    while left > 0:
        messages = tokens.conversation(rng, "tool" in text)
        while messages[-1]["role"] == "assistant":
            messages.pop()
        if not any(m["role"] == "assistant" for m in messages):
            continue
        left -= 1
        tools = tokens.TOOLS if "tools" in text and rng.random() < 0.4 else None
        why = go_on(chat, end, messages, tools)
        if why is None:
            n_same += 1
        elif not why:
            bad += 1
            if bad == 1:
                print(f"{name}: another text behind {messages[-3:]}")
        else:
            why = why.split(":")[0][:60]
            n_refused[why] = n_refused.get(why, 0) + 1
    most = max(n_refused, key=n_refused.get, default="")
    print(f"{name}: {n_same} go on, {sum(n_refused.values())} refused, {bad} wrong"
          f"{'; ' + most if most else ''}", flush=True)
    return n_same, sum(n_refused.values()), bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("chat", type=pathlib.Path)
    parser.add_argument("cache", type=pathlib.Path)
    parser.add_argument("--chats", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    try:
        sources = templates.fetch(args.cache)
    except templates.OutOfReach as reason:
        print(f"skipped: {reason}")
        return 77
    library = c.CDLL(str(args.chat.resolve()))
    rows = [compare(library, name, text, args.chats, args.seed)
            for name, text in sources.items()]
    n_same, n_refused, bad = (sum(column) for column in zip(*rows))
    print(f"bridges: {len(rows)} templates, {sum(r[0] > 0 for r in rows)} of them go on; "
          f"{n_same} conversations go on, {n_refused} refused, {bad} wrong")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
