#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare libtnk-chat's tokens with those of transformers' apply_chat_template.

usage: tokens.py CHAT_LIBRARY TOKENIZERS_LIBRARY CACHE_DIR [--chats N]
                 [--transformers VERSION]

Two versions of transformers are the references, one after the other. Since 5.24
it drops null members and knows thoughts by three names, and so does the library;
the older version is given messages with that done to them.

For each vocabulary that the tokenizers are tested with, with the template in its
tokenizer_config.json, or a small one of our own where there is none: random
conversations, with tools where the template knows them. Ids must be equal, or
both must refuse. Then the mask of the last answer: the ids before it are those
of the prompt that the reference makes of the messages before the answer. Then
the bridge: where it is not refused, the ids so far and those that follow are
text of a fresh rendering. At last the texts of the templates of many models, for
conversations with null members and with thoughts by each name: equal, or both
refuse. And control tokens in messages that are plain text: with no template does
one of them count. Ends with a skip (77) and its reason when the registries are out of reach.
"""
import argparse
import ctypes as c
import datetime
import functools
import json
import os
import pathlib
import random
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parent.parent / name) for name in ("tokenizers", "support")]
import conversations  # noqa: E402
import own_venv  # noqa: E402
import reference  # noqa: E402
import templates  # noqa: E402

VERSIONS = ["5.24.0", "4.57.6"]
THOUGHTS = ("reasoning_content", "thinking", "reasoning")
TURNS = ("{% for m in messages %}{{ '<|start|>' + m.role + '<|message|>' + "
         "m.content + '<|end|>' }}{% endfor %}{% if add_generation_prompt %}"
         "{{ '<|start|>assistant<|message|>' }}{% endif %}")
WORDS = """Hello world, é ü 中文 日本語 😀 <b> "quoted" it's  \n \n\n \t 123 4.5 {x} a_b
<|im_end|> <think> </think> user assistant . ! ? — ... \u00a0 e\u0301""".split(" ")
TOOLS = [{"type": "function", "function": {
    "name": "add", "description": "Adds <two> numbers é.",
    "parameters": {"type": "object", "properties": {
        "a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a"]}}}]


def packages_of(version):
    return [f"transformers=={version}", "jinja2==3.1.6"]


# ---- The library ----


class Error(c.Structure):
    _fields_ = [("code", c.c_int), ("line", c.c_uint32), ("text", c.c_char * 368)]


NOW = c.CFUNCTYPE(c.c_int64, c.c_void_p)


class Options(c.Structure):
    _fields_ = [("size", c.c_size_t), ("generation_prompt", c.c_int),
                ("by_parts", c.c_int), ("train_on", c.c_int), ("n_roles", c.c_uint32),
                ("roles", c.c_void_p), ("message_weights", c.c_void_p),
                ("n_message_weights", c.c_size_t), ("now_s", NOW), ("user", c.c_void_p),
                ("text_roles", c.POINTER(c.c_char_p)), ("n_text_roles", c.c_size_t)]


class TemplateOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("allocator", c.c_void_p),
                ("config", c.c_char_p), ("n_config", c.c_size_t),
                ("name", c.c_char_p), ("stops", c.c_void_p)]


class With(c.Structure):
    _fields_ = [("plugin", c.c_void_p), ("tokenizer", c.c_void_p)]


class Refused(Exception):
    pass


@NOW
def now(_):
    here = datetime.datetime.now().replace(tzinfo=datetime.timezone.utc)
    return int(here.timestamp())


@functools.cache
def tokenizer_of(tokenizers, folder):
    """One for all templates: to load it takes longer than to render."""
    return tokenizers.load(folder)


class Chat:
    """One template with one tokenizer."""

    def __init__(self, library, tokenizers, folder, template):
        self.c, self.error = library, Error()
        for name in ("tnk_chat_new", "tnk_chat_tokens_new"):
            getattr(library, name).restype = c.c_void_p
        library.tnk_chat_tokens_ids.restype = c.POINTER(c.c_int32)
        library.tnk_chat_tokens_weights.restype = c.POINTER(c.c_float)
        plugin = tokenizers.c.tnk_tokenizer_plugin
        plugin.restype = c.c_void_p
        self.tokenizer = tokenizer_of(tokenizers, folder)
        self.coder = With(plugin(), self.tokenizer.handle)
        self.template = c.c_void_p()
        config = (folder / "tokenizer_config.json").read_bytes()
        options = TemplateOptions(size=c.sizeof(TemplateOptions))
        if template is not None:
            options.config, options.n_config = config, len(config)
        text = template and template.encode()
        self.check(library.tnk_chat_template_open(
            c.byref(self.template), text, c.c_size_t(len(text or "")),
            c.byref(options), c.byref(self.error)))
        self.tokens = c.c_void_p(library.tnk_chat_tokens_new(None))

    def check(self, err):
        if err < 0:
            raise Refused(self.error.text.decode())

    def make(self, messages, tools=None, variables=()):
        body = {"messages": messages}
        if tools:
            body["tools"] = tools
        data = json.dumps(body).encode()
        chat = c.c_void_p(self.c.tnk_chat_new(None))
        self.check(self.c.tnk_chat_read(chat, 0, data, c.c_size_t(len(data)),
                                        c.byref(self.error)))
        for name, value in variables:
            self.check(self.c.tnk_chat_set(chat, name.encode(),
                                           json.dumps(value).encode(),
                                           c.byref(self.error)))
        return chat

    def take(self):
        n = c.c_size_t()
        ids = self.c.tnk_chat_tokens_ids(self.tokens, c.byref(n))
        weights = self.c.tnk_chat_tokens_weights(self.tokens)
        return ids[:n.value], weights[:n.value]

    def encode(self, messages, tools, prompt, train_on=0, by_parts=False, variables=(),
               weights=(), text_roles=()):
        chat = self.make(messages, tools, variables)
        message_weights = (c.c_float * len(weights))(*weights)
        options = Options(size=c.sizeof(Options), train_on=train_on, now_s=now,
                          generation_prompt=1 if prompt else 2,
                          by_parts=1 if by_parts else 2,
                          message_weights=c.addressof(message_weights),
                          n_message_weights=len(weights),
                          text_roles=(c.c_char_p * len(text_roles))(*text_roles),
                          n_text_roles=len(text_roles))
        try:
            self.check(self.c.tnk_chat_encode(
                self.tokens, self.template, c.byref(self.coder), chat,
                c.byref(options), c.byref(self.error)))
        finally:
            self.c.tnk_chat_free(chat)
        return self.take()

    def text(self, messages, tools, prompt, variables):
        chat = self.make(messages, tools, variables)
        options = Options(size=c.sizeof(Options), now_s=now,
                          generation_prompt=1 if prompt else 2)
        text, n = c.c_void_p(), c.c_size_t()
        try:
            self.check(self.c.tnk_chat_text(
                c.byref(text), c.byref(n), self.template, chat, c.byref(options),
                c.byref(self.error)))
            return c.string_at(text, n.value).decode()
        finally:
            self.c.tnk_chat_free_text(chat, text)
            self.c.tnk_chat_free(chat)

    def go_on(self, ids, messages, tools, first):
        chat = self.make(messages, tools)
        options = Options(size=c.sizeof(Options), now_s=now)
        array = (c.c_int32 * len(ids))(*ids)
        try:
            self.check(self.c.tnk_chat_continue(
                self.tokens, self.template, c.byref(self.coder), array,
                c.c_size_t(len(ids)), chat, c.c_size_t(first), c.byref(options),
                c.byref(self.error)))
        finally:
            self.c.tnk_chat_free(chat)
        return self.take()[0]


# ---- Conversations ----


def words(rng):
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(0, 12)))


def conversation(rng, knows_tools):
    messages = []
    if rng.random() < 0.5:
        messages.append({"role": "system", "content": words(rng)})
    for _ in range(rng.randint(1, 4)):
        messages.append({"role": "user", "content": words(rng)})
        if knows_tools and rng.random() < 0.3:
            messages.append({"role": "assistant", "content": rng.choice(["", "", "", None]),
                             "tool_calls": [
                {"id": "c1", "type": "function", "function": {
                    "name": "add", "arguments": {"a": 1, "b": "é"}}}]})
            messages.append({"role": "tool", "tool_call_id": "c1", "content": words(rng)})
        messages.append({"role": "assistant", "content": words(rng)})
        for message in messages:
            if message["role"] == "assistant" and rng.random() < 0.2:
                message[rng.choice(THOUGHTS)] = rng.choice([words(rng).strip(), None])
    return messages if rng.random() < 0.5 else messages[:-1]


class Tally:
    def __init__(self, name):
        self.name, self.n, self.bad, self.refused = name, 0, 0, {}

    def expect(self, ok, what, *details):
        self.n += 1
        if not ok:
            self.bad += 1
            if self.bad <= 5:
                print(f"{self.name}: {what}:", *(str(d)[:300] for d in details))

    def refuse(self, what):
        self.refused[what] = self.refused.get(what, 0) + 1

    def report(self):
        print(f"{self.name}: {self.n} checks, {self.bad} differences, refused {self.refused}",
              flush=True)
        return self.bad


def normalized(message):
    """As 5.24 hands it to a template."""
    message = {k: v for k, v in message.items() if v is not None}
    for name in THOUGHTS:
        if name in message:
            return ({"thinking": message[name]} | message
                    | {"reasoning_content": message[name]})
    return message


def theirs(tokenizer, template, messages, tools, prompt):
    import transformers
    if transformers.__version__.startswith("4."):
        messages = [normalized(m) for m in messages]
    try:
        return list(tokenizer.apply_chat_template(
            messages, tools=tools, chat_template=template, add_generation_prompt=prompt,
            return_dict=False))
    except Exception as e:  # whatever a template raises
        return f"{type(e).__name__}: {e}"


def ours(chat, *args, **kwargs):
    try:
        return chat.encode(*args, **kwargs)[0]
    except Refused as e:
        return str(e)


def same(a, b):
    return isinstance(a, str) == isinstance(b, str) and (isinstance(a, str) or a == b)


def check_mask(tally, chat, tokenizer, template, messages, tools):
    """What is trained of the last answer begins where the prompt ends."""
    try:
        ids, weights = chat.encode(messages, tools, False, train_on=1)
    except Refused as e:
        tally.refuse("mask")
        return
    prompt = theirs(tokenizer, template, messages[:-1], tools, True)
    first = next((i for i, w in enumerate(weights) if w), len(ids))
    tally.expect(ids[:first] == prompt, "prompt of a mask", messages, ids[:first], prompt)
    tally.expect(first < len(ids), "something is trained", messages)


def check_bridge(tally, chat, messages, tools):
    answers = [i for i, m in enumerate(messages[:-1]) if m["role"] == "assistant"
               and i + 1 < len(messages)]
    if not answers or messages[-1]["role"] == "assistant":
        return
    first = answers[-1] + 1
    try:
        whole = chat.tokenizer.decode(chat.encode(messages, tools, True)[0])
        so_far = chat.tokenizer.decode(chat.encode(messages[:first], tools, False)[0])
    except Refused:
        tally.refuse("no rendering to go on from")
        return
    if not whole.startswith(so_far):
        tally.refuse("an answer written otherwise later")
        return
    # The blanks behind the end of a turn are not sampled.
    sampled = chat.tokenizer.encode(so_far.rstrip())
    try:
        text = chat.tokenizer.decode(sampled + chat.go_on(sampled, messages, tools, first))
    except Refused as e:
        tally.refuse(f"bridge: {e}"[:100])
        return
    tally.expect(text == whole, "bridge", messages, text, whole)


@functools.cache
def load(folder, name):
    """Of a vocabulary: where it is, its config, and what transformers makes of it. One
    for all that compare with it: to load it takes a second."""
    from transformers import PreTrainedTokenizerFast
    path = reference.vocabulary(folder, name)
    config = json.loads((path / "tokenizer_config.json").read_text())
    special = {key: value["content"] if isinstance(value, dict) else value
               for key, value in config.items()
               if key in ("bos_token", "eos_token", "pad_token") and value}
    if config.get("additional_special_tokens"):
        special["additional_special_tokens"] = config["additional_special_tokens"]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(path / "tokenizer.json"), clean_up_tokenization_spaces=False,
        **special)
    return path, config, tokenizer


def compare(library, tokenizers, folder, name, n_chats):
    path, config, tokenizer = load(folder, name)
    template = config.get("chat_template") or TURNS
    chat = Chat(library, tokenizers, path, template)
    rng = random.Random(name)
    tally = Tally(name)
    for _ in range(n_chats):
        messages = conversation(rng, "tool" in template)
        tools = TOOLS if "tools" in template and rng.random() < 0.4 else None
        for prompt in (True, False):
            got = ours(chat, messages, tools, prompt)
            want = theirs(tokenizer, template, messages, tools, prompt)
            if isinstance(want, str):
                tally.refuse("template")
            tally.expect(same(got, want), "ids", messages, got, want)
        if messages[-1]["role"] == "assistant":
            check_mask(tally, chat, tokenizer, template, messages, tools)
        check_bridge(tally, chat, messages, tools)
    return tally.report()


def compare_texts(library, tokenizers, folder, n_chats):
    """Texts of the templates of many models."""
    import transformers
    path, _, tokenizer = load(folder, "qwen3")
    is_old = transformers.__version__.startswith("4.")
    tally = Tally("texts")
    for name, template in templates.fetch(folder).items():
        try:
            chat = Chat(library, tokenizers, path, template)
        except Refused as e:
            tally.refuse(f"{name}: {e}"[:100])
            continue
        rng = random.Random(name)
        for _ in range(n_chats):
            given = conversations.conversation(rng)
            messages, tools = given.pop("messages"), given.pop("tools", None)
            prompt = given.pop("add_generation_prompt")
            if not messages:
                continue
            try:
                got = chat.text(messages, tools, prompt, given.items())
            except Refused as e:
                got = e
            if is_old:
                messages = [normalized(m) for m in messages]
            try:
                want = tokenizer.apply_chat_template(
                    messages, tools=tools, chat_template=template, tokenize=False,
                    add_generation_prompt=prompt, **given)
            except Exception as e:  # whatever a template raises
                want = e
            if isinstance(want, Exception):
                tally.refuse("template")
            tally.expect(got == want or isinstance(got, Refused) and isinstance(want, Exception),
                         name, messages, got, want)
    return tally.report()


def with_controls(rng, controls):
    """A text in which each of the control tokens occurs."""
    return "".join(f"{rng.choice(['', ' ', 'word', '<', chr(10)])}{control}"
                   for control in rng.sample(controls, len(controls)))


def control_tokens(tokenizer, texts, rng):
    """The added tokens of a vocabulary: all that occur in one of `texts`, and at most
    some hundred others. Tokens that its model makes of plain text too, such as Gemma's
    runs of blanks, are left out."""
    import tokenizers
    whole = tokenizer.backend_tokenizer
    plain = tokenizers.Tokenizer(whole.model)
    plain.normalizer, plain.pre_tokenizer = whole.normalizer, whole.pre_tokenizer
    named, special, others = [], [], []
    for i, token in tokenizer.added_tokens_decoder.items():
        text = token.content
        if not text.strip() or i in plain.encode(text, add_special_tokens=False).ids:
            continue
        if any(text in other for other in texts):
            named.append(text)
        else:
            (special if token.special else others).append(text)
    return named + [t for of in (special, others) for t in rng.sample(of, min(len(of), 50))]


def guarded_chat(user, result):
    return [{"role": "user", "content": user},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "call00000", "type": "function", "function": {
                    "name": "add", "arguments": {"a": 1}}}]},
            {"role": "tool", "tool_call_id": "call00000", "name": "add", "content": result}]


def check_guard(tally, chat, tokenizer, name, rng, controls):
    """Control tokens in what a user and a tool say are never such: of each there
    are as many as with harmless words in their place."""
    texts = [with_controls(rng, controls), with_controls(rng, controls)]
    counts = []
    for messages in (guarded_chat(*texts), guarded_chat("word", "word")):
        try:
            ids, _ = chat.encode(messages, TOOLS, True, text_roles=(b"user", b"tool"))
        except Refused as e:
            tally.refuse(f"guard: {e}"[:60])
            return None
        counts.append({control: ids.count(tokenizer.convert_tokens_to_ids(control))
                       for control in controls})
    tally.expect(counts[0] == counts[1], f"{name}: a control token of a message", counts)
    return texts


def compare_guard(library, tokenizers, folder, name):
    """The templates of many models with all control tokens of a vocabulary; and
    the ids of 5.24, which can do the same."""
    import transformers
    path, config, tokenizer = load(folder, name)
    tally = Tally(f"{name}: control tokens in messages")
    given = {**templates.fetch(folder), "own": config.get("chat_template"), "turns": TURNS}
    named = {what: template for what, template in given.items() if template is not None}
    ends = [tokenizer.bos_token or "", tokenizer.eos_token or "", tokenizer.pad_token or ""]
    controls = control_tokens(tokenizer, [*ends, *named.values()], random.Random(name))
    for what, template in named.items():
        chat, rng = Chat(library, tokenizers, path, template), random.Random(what)
        texts = check_guard(tally, chat, tokenizer, what, rng, controls)
        if what not in ("own", "turns") or texts is None:
            continue
        known = [t.content for t in tokenizer.added_tokens_decoder.values()
                 if t.special or t.content in template]
        if transformers.__version__.startswith("4."):
            continue
        for _ in range(20):
            messages = guarded_chat(with_controls(rng, known), with_controls(rng, known))
            got = chat.encode(messages, None, True, text_roles=(b"user", b"tool"))[0]
            want = list(tokenizer.apply_chat_template(
                messages, chat_template=template, add_generation_prompt=True,
                return_dict=False, sanitize_control_tokens=True))
            tally.expect(got == want, "ids of sanitized messages", messages, got, want)
    return tally.report()


def both(versions):
    """This script again with each version; the first bad status counts."""
    statuses = [subprocess.run([sys.executable, *sys.argv, "--transformers", version],
                               check=False).returncode for version in versions]
    return next((s for s in statuses if s not in (0, 77)), max(statuses))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("chat", type=pathlib.Path)
    parser.add_argument("tokenizers", type=pathlib.Path)
    parser.add_argument("cache", type=pathlib.Path)
    parser.add_argument("--chats", type=int, default=100)
    parser.add_argument("--transformers", choices=VERSIONS)
    parser.add_argument("--nice", type=int, default=0,
                        help="added when all is fetched, for that has a limit of time")
    args = parser.parse_args()
    if args.transformers is None:
        return both(VERSIONS)
    args.cache.mkdir(parents=True, exist_ok=True)
    folder = args.cache.resolve()
    try:
        for name in reference.VOCABULARIES:
            reference.vocabulary(folder, name)
        own_venv.enter(folder / f"venv-chat-{args.transformers}",
                       *packages_of(args.transformers))
        templates.fetch(folder)
    except own_venv.Unreachable as e:
        print(f"skipped: {e}")
        return 77
    os.nice(args.nice)
    library = c.CDLL(str(args.chat.resolve()))
    tokenizers = reference.Library(args.tokenizers.resolve())
    bad = sum(compare(library, tokenizers, folder, name, args.chats)
              for name in reference.VOCABULARIES)
    bad += sum(compare_guard(library, tokenizers, folder, name)
               for name in reference.VOCABULARIES)
    bad += compare_texts(library, tokenizers, folder, args.chats // 6 + 1)
    print(f"tokens, transformers {args.transformers}:", "identical" if bad == 0 else f"{bad} differences")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
