#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare libtnk-chat's tokens and masks with those of the renderers of Tinker's
cookbook.

usage: renderers.py CHAT_LIBRARY TOKENIZERS_LIBRARY CACHE_DIR [--chats N] [--seed N]

For each renderer of CASES, with the vocabulary of its model and the variables
that tnk_chat_find() has for its name: random conversations as a prompt, and as
examples with each kind of mask, tokenized by parts. Ids and weights must be
equal, but for the differences that README.md here explains; those are counted by
their names. Ends with a skip (77) and its reason when the registries are out of
reach.
"""
import argparse
import ctypes as c
import json
import logging
import os
import pathlib
import random
import sys

import cookbook
import tokens
from tokens import own_venv, reference

PACKAGES = ["transformers==4.57.6", "jinja2==3.1.6", "pydantic==2.12.4"]
COOKBOOK = ["tinker-cookbook==0.6.1"]
LLAMA3 = ("{{ bos_token }}{% for m in messages %}{{ '<|start_header_id|>' + m.role"
          " + '<|end_header_id|>\n\n' + m.content + '<|eot_id|>' }}{% endfor %}"
          "{% if add_generation_prompt %}"
          "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}")
# That of V3.1 without tools; the vocabulary's package has that of V3.
DEEPSEEK = ("{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}"
            "{{ m.content }}{% elif m.role == 'user' %}"
            "{{ '<｜User｜>' + m.content }}{% else %}{{ '<｜Assistant｜></think>' + "
            "m.content + '<｜end▁of▁sentence｜>' }}{% endif %}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<｜Assistant｜>' }}"
            "{{ '<think>' if thinking else '</think>' }}{% endif %}")
TURNS = ("{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + "
         "'<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}"
         "{{ '<|im_start|>assistant\n' }}{% endif %}")
# Without tools and images.
QWEN3_5 = ("{% set ns = namespace(user=-1) %}{% for m in messages %}"
           "{% if m.role == 'user' %}{% set ns.user = loop.index0 %}{% endif %}{% endfor %}"
           "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}"
           "{% if m.role == 'assistant' and loop.index0 > ns.user %}"
           "{{ '<think>\n' + (m.reasoning_content or '') | trim + '\n</think>\n\n' }}"
           "{% endif %}{{ m.content | trim + '<|im_end|>\n' }}{% endfor %}"
           "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
           "{{ '<think>\n\n</think>\n\n' if enable_thinking is defined and "
           "enable_thinking is false else '<think>\n' }}{% endif %}")
OWN, PLAIN = "the model's own", None
# renderer: vocabulary, template, whether answers may have thoughts
CASES = {
    "role_colon": ("llama3_2", PLAIN, False),
    "llama3": ("llama3_2", LLAMA3, False),
    "qwen3": ("qwen3", OWN, True),
    "qwen3_disable_thinking": ("qwen3", OWN, False),
    "qwen3_instruct": ("qwen3", TURNS, False),
    "qwen3_5": ("qwen3", QWEN3_5, True),
    "qwen3_5_disable_thinking": ("qwen3", QWEN3_5, False),
    "deepseekv3": ("deepseek_v3", DEEPSEEK, False),
    "deepseekv3_disable_thinking": ("deepseek_v3", DEEPSEEK, False),
}
WORDS = """Hello world, é ü 中文 日本語 😀 <b> "quoted" it's \n \n\n \t 123 4.5 {x} a_b
user assistant . ! ? — ... \u00a0 e\u0301""".split(" ")
MARK = "<|im_end|>"
# What the prompt of the last answer ends with.
PREFILLS = {"qwen3_disable_thinking": "<think>\n\n</think>\n\n", "qwen3_5": "<think>\n"}
# The cookbook's word: our option, and of which messages the weight is 1.
MASKS = {
    "last_assistant_message": (1, None),
    "all_assistant_messages": (2, None),
    "all_tokens": (4, None),
    "all_messages": (5, lambda m: True),
    "all_user_and_system_messages": (5, lambda m: m["role"] != "assistant"),
    "customized": (5, lambda m: m["trainable"]),
}


class Renderer(c.Structure):
    _fields_ = [("name", c.c_char_p), ("family", c.c_int),
                ("n_variables", c.c_uint32), ("variables", c.c_void_p),
                ("stops", c.c_void_p), ("note", c.c_char_p)]


class Pair(c.Structure):
    _fields_ = [("name", c.c_char_p), ("value", c.c_char_p)]


def variables_of(library, name):
    library.tnk_chat_find.restype = c.POINTER(Renderer)
    row = library.tnk_chat_find(name.encode()).contents
    pairs = c.cast(row.variables, c.POINTER(Pair))
    return [(pairs[i].name.decode(), json.loads(pairs[i].value))
            for i in range(row.n_variables)]


def words(rng):
    text = " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 12)))
    return text + rng.choice(["", ""] * 8 + [MARK, " "])


def conversation(rng, has_thoughts):
    """Ends with an answer; some answers have thoughts."""
    messages = [{"role": "system", "content": words(rng)}][:rng.randint(0, 1)]
    for _ in range(rng.randint(1, 4)):
        messages.append({"role": "user", "content": words(rng)})
        messages.append({"role": "assistant", "content": words(rng)})
        if has_thoughts and rng.random() < 0.3:
            messages[-1]["reasoning_content"] = words(rng).strip()
    return messages


def for_cookbook(messages):
    made = []
    for message in messages:
        message = dict(message)
        thoughts = message.pop("reasoning_content", None)
        if thoughts is not None:
            message["content"] = [
                {"type": "thinking", "thinking": thoughts},
                {"type": "text", "text": message["content"]}]
        made.append(message)
    return made


class Case:
    def __init__(self, library, tokenizers, folder, name):
        vocabulary, template, self.has_thoughts = CASES[name]
        path, config, self.tokenizer = tokens.load(folder, vocabulary)
        if template is OWN:
            template = config["chat_template"]
        self.name = name
        self.chat = tokens.Chat(library, tokenizers, path, template)
        self.variables = variables_of(library, name)
        if template is PLAIN:
            self.variables.append(("bos_token", self.tokenizer.bos_token))
        self.theirs = cookbook.renderer(name, self.tokenizer)
        self.n, self.n_same, self.explained, self.bad = 0, 0, {}, 0

    def ours(self, messages, mask):
        train_on, has_weight = MASKS.get(mask, (0, None))
        weights = [float(has_weight(m)) for m in messages] if has_weight else ()
        messages = [{k: v for k, v in m.items() if k != "trainable"} for m in messages]
        try:
            return self.chat.encode(messages, None, mask is None, train_on, True,
                                    self.variables, weights)
        except tokens.Refused as e:
            return str(e)

    def reference(self, messages, mask):
        messages = for_cookbook(messages)
        try:
            if mask is None:
                ids = cookbook.prompt(self.theirs, messages)
                return ids, [0.0] * len(ids)
            return cookbook.example(self.theirs, messages, mask)
        except Exception as e:  # its own kinds
            return f"{type(e).__name__}: {e}"

    def check(self, messages, mask):
        """One kind of mask, or a prompt."""
        got = self.ours(messages, mask)
        want = self.reference(messages, mask)
        self.n += 1
        if got == want:
            self.n_same += 1
            return
        why = self.explain(messages, mask, got, want)
        if why is not None:
            self.explained[why] = self.explained.get(why, 0) + 1
            return
        self.bad += 1
        if self.bad <= 1:
            self.show(messages, mask, got, want)

    def explain(self, messages, mask, got, want):
        """Rows of the table in README.md that say why; None: it is not known."""
        names = []
        if isinstance(got, str):
            return "history" if "cannot be trained" in got and mask != "all_tokens" else None
        if isinstance(want, str):
            return None
        (ids, weights), (their_ids, their_weights) = got, list(map(list, want))
        if mask and self.name[:4] == "qwen" and ids[-1] != their_ids[-1]:
            names.append("behind")
            ids, weights = ids[:-1], weights[:-1]
        if mask == "all_tokens" and their_weights[0] == 0 and weights[0] == 1:
            names.append("first")
            their_weights[0] = 1.0
        if self.name in PREFILLS and ids == their_ids:
            other = [i for i, w in enumerate(weights) if w != their_weights[i]]
            if self.tokenizer.decode([ids[i] for i in other]) == PREFILLS[self.name]:
                names.append("prefill")
                weights = their_weights
        if (ids, weights) == (their_ids, their_weights):
            return ", ".join(names)
        if MARK in json.dumps(messages) and (
                self.tokenizer.decode(ids) == self.tokenizer.decode(their_ids)):
            return "special"
        return None

    def show(self, messages, mask, got, want):
        print(f"{self.name}, {mask}: {messages}")
        for who, made in (("ours", got), ("cookbook", want)):
            if isinstance(made, str):
                print(f"  {who}: {made[:300]}")
            else:
                print(f"  {who}: {self.marked(*made)}")

    def marked(self, ids, weights):
        """The tokens; what is trained is in brackets."""
        return " ".join(f"[{t!r}]" if w else repr(t) for t, w in zip(
            (self.tokenizer.decode([i]) for i in ids), weights))


def compare(case, n_chats, seed):
    rng = random.Random(f"{case.name} {seed}")
    for _ in range(n_chats):
        messages = conversation(rng, case.has_thoughts)
        case.check(messages[:-1], None)
        for mask in MASKS:
            if mask == "customized":
                messages = [m | {"trainable": rng.random() < 0.5} for m in messages]
                messages[-1]["trainable"] = True
            case.check(messages, mask)
    told = "".join(f"; {n} {why}" for why, n in sorted(case.explained.items()))
    print(f"{case.name}: {case.n} checks, {case.n_same} equal, "
          f"{case.bad} different without a reason{told}", flush=True)
    return case.bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("chat", type=pathlib.Path)
    parser.add_argument("tokenizers", type=pathlib.Path)
    parser.add_argument("cache", type=pathlib.Path)
    parser.add_argument("--chats", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=CASES)
    parser.add_argument("--nice", type=int, default=0,
                        help="added when all is fetched, for that has a limit of time")
    args = parser.parse_args()
    args.cache.mkdir(parents=True, exist_ok=True)
    folder = args.cache.resolve()
    try:
        for name in reference.VOCABULARIES:
            reference.vocabulary(folder, name)
        own_venv.enter(folder / "venv-renderers", *PACKAGES, alone=COOKBOOK)
    except reference.Skip as e:
        print(f"skipped: {e}")
        return 77
    os.nice(args.nice)
    cookbook.stand_in()
    logging.disable()
    library = c.CDLL(str(args.chat.resolve()))
    tokenizers = reference.Library(args.tokenizers.resolve())
    bad = sum(compare(Case(library, tokenizers, folder, name), args.chats, args.seed)
              for name in CASES if args.only in (None, name))
    print("renderers:", "as explained" if bad == 0 else f"{bad} differences")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
