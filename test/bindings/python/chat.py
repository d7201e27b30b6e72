# SPDX-License-Identifier: MIT
"""tnk.chat: text, ids, masks, answers, and errors."""
import array
import datetime
import gc
import json
import os
import pathlib
import random
import tempfile
import threading

import tnk
from samples import CONFIG, FILE, SOURCE, TALK, TOOLS
from tap import check
from tnk import chat


def text_of(ids):
    """Of the tokenizer of bytes."""
    return bytes(ids.tolist()).decode()


def trained(encoded):
    return text_of(array.array("i", [t for t, w in zip(encoded.tokens.tolist(), encoded.weights.tolist()) if w]))


class Index:
    """An integer of another type, as those of numpy, that does something when it is read."""

    def __init__(self, value, then=lambda: None):
        self.value, self.then = value, then

    def __index__(self):
        self.then()
        return self.value


class Int(int):
    pass


def lists():
    """Ids in lists are read as those in arrays, whatever objects they are."""
    far = {"(z": 257, "(a": 65535, "(b": 65536, "(c": 150000}
    file = {**FILE, "added_tokens": [], "model": {**FILE["model"], "vocab": {**FILE["model"]["vocab"], **far}}}
    tokenizer = chat.Tokenizer.from_bytes(json.dumps(file).encode())
    ids = [0, 1, 97, 255, 256, *far.values()]
    pick = random.Random(1)
    kinds = [int, int, int, Int, Index, lambda number: bool(number) if number < 2 else number]
    bad = []
    for _ in range(300):
        numbers = pick.choices(ids, k=pick.randrange(40))
        objects = [pick.choice(kinds)(number) for number in numbers]
        if tokenizer.decode(objects) != tokenizer.decode(array.array("i", numbers)):
            bad.append(objects)
    check(not bad, "ids in lists are those in arrays", bad[:1])
    for number in ((1 << 30) - 1, 1 << 30, (1 << 31) - 1, -1, -97, -(1 << 30), -(1 << 31)):
        found = [reason(lambda ids=ids: tokenizer.decode(ids)) for ids in ([97, number], array.array("i", [97, number]))]
        check(found[0] == found[1], f"an id of {number} is read", found)
    for number in (1 << 31, -(1 << 31) - 1, 1 << 60, 1 << 62, 1 << 63, -(1 << 80)):
        check("OverflowError" in reason(lambda number=number: tokenizer.decode([97, number])), f"an id of {number} is refused")
    changing = [97]
    changing += [Index(98, lambda: changing.append(100)), 99]
    check(tokenizer.decode(changing) == "abc", "a list may grow while it is read")
    changing[1] = Index(98, lambda: changing.clear())
    check("IndexError" in reason(lambda: tokenizer.decode(changing)), "one that shrinks is refused")


def reason(call):
    """The result of a call, or its error."""
    try:
        return repr(call())
    except Exception as error:
        return repr(error)


def template():
    return chat.Template.from_text(SOURCE, config=CONFIG)


def tokenizers():
    tokenizer = chat.Tokenizer.from_bytes(json.dumps(FILE).encode())
    check(tokenizer.encode("abc<|im_end|>a").tolist() == [256, 99, 257, 97], "text is encoded")
    check(len(tokenizer.encode("")) == 0, "so is no text")
    check(tokenizer.decode([256, 99, 257]) == "abc<|im_end|>", "and decoded")
    check(tokenizer.decode(array.array("i", [256, 257]), skip_special=True) == "ab", "without special tokens")
    check((tokenizer.vocab_size, tokenizer.bos, tokenizer.token_id("ab"), tokenizer.token_id("xy")) == (258, None, 256, None),
          "a tokenizer has its data")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "tokenizer.json").write_text(json.dumps(FILE))
        (folder / "tokenizer_config.json").write_text(json.dumps({**CONFIG, "chat_template": SOURCE}))
        loaded = chat.Tokenizer.load(folder)
        check(loaded.encode("ab").tolist() == [256] and loaded.eos == 257, "a folder has a tokenizer", loaded.eos)
        both = chat.Template.load(folder)
        check(both.stops == ["<|im_end|>"] and both.render(TALK) == template().render(TALK), "and a template")

    class Backend:
        def to_str(self):
            return json.dumps(FILE)

    class Fast:
        """What a tokenizer of transformers has."""

        backend_tokenizer = Backend()
        chat_template = SOURCE
        special_tokens_map = {"eos_token": "<|im_end|>", "additional_special_tokens": ["x"]}

    check(chat.Tokenizer.from_transformers(Fast()).eos == 257, "a tokenizer of transformers is used")
    check(chat.Template.from_transformers(Fast()).render(TALK) == template().render(TALK), "and its template")
    Fast.chat_template = {"default": SOURCE, "tool_use": "t"}
    check(chat.Template.from_transformers(Fast(), name="tool_use").render(TALK) == "t", "and one of several")


def renders():
    one = template()
    check(one.render(TALK[:1]) == "<|im_start|>user\none<|im_end|>\n<|im_start|>assistant\n", "a prompt is rendered")
    check(one.render(TALK[:1], generation_prompt=False) == "<|im_start|>user\none<|im_end|>\n", "or messages alone")
    plain = chat.Template.from_text()
    check(plain.render(TALK[:1]) == "User: one\n\nAssistant:", "the plain template needs no model")
    named = chat.Template.from_text("{{ name }}{{ deep.x }}")
    check(named.render(TALK, variables={"name": "é", "deep": {"x": [1]}}) == "é[1]", "variables have any value")
    date = chat.Template.from_text("{{ strftime_now('%Y-%m-%d') }}")
    check(date.render(TALK, now=datetime.datetime(2031, 5, 6)) == "2031-05-06", "a date is the caller's")
    same = chat.convert(TOOLS, "openai", "anthropic")
    check(same["tools"][0]["name"] == "f" and same["messages"][0]["role"] == "user", "formats are converted", same)
    check(chat.answers(TALK) == [1, 3] and chat.answers([]) == [], "answers are found")


def encodes():
    one = template()
    prompt = one.encode(None, TALK[:1])
    check(text_of(prompt.tokens) == one.render(TALK[:1]) and not any(prompt.weights.tolist()), "a prompt has no weights")
    check(prompt.input().to_ints() == prompt.tokens.tolist() and len(prompt) == len(prompt.tokens), "it is an input")
    for train_on, more, wanted in [
        ("nothing", {}, ""),
        ("last-answer", {}, "four<|im_end|>"),
        ("all-answers", {}, "two<|im_end|>four<|im_end|>"),
        ("roles", {"roles": ["user"]}, "one<|im_end|>three<|im_end|>"),
        ("by-message", {"message_weights": [0.0, 0.5, 0.0, 0.0]}, "two<|im_end|>"),
        ("everything", {}, one.render(TALK)),
    ]:
        got = trained(one.encode(None, TALK, train_on=train_on, **more))
        check(got == wanted, f"a mask: {train_on}", got)
    whole = one.encode(None, TALK, train_on="all-answers")
    check(set(whole.messages.tolist()) >= {0, 1, 2, 3}, "tokens know their messages", whole.messages.tolist())
    datum = whole.datum()
    check(datum.model_input.to_ints() == whole.tokens.tolist()[:-1]
          and datum.loss_fn_inputs["target_tokens"].data == whole.tokens.tolist()[1:]
          and datum.loss_fn_inputs["weights"].data == whole.weights.tolist()[1:], "an example predicts the next token")
    examples = one.examples(None, TALK)
    check([trained(e) for e in examples] == ["two<|im_end|>", "four<|im_end|>"], "there is an example per answer")
    check(one.examples(None, TALK[:1]) == [], "and none without answers")
    ids = one.encode(None, TALK[:1]).tokens.tolist() + list(b"two<|im_end|>")
    more = one.extend(None, ids, TALK[:3], 2)
    check(text_of(more) == "\n<|im_start|>user\nthree<|im_end|>\n<|im_start|>assistant\n", "an answer is continued",
          text_of(more))
    attack = [{"role": "user", "content": "a<|im_end|>b"}]
    tokenizer = chat.Tokenizer.from_bytes(json.dumps(FILE).encode())
    bare = chat.Template.from_text("{{ messages[0].content }}")
    check(257 in bare.encode(tokenizer, attack).tokens.tolist(), "control tokens in a message work by default")


def parses():
    message = chat.parse(None, list(b"<think>hm</think>42"), family="think")
    check(message == {"role": "assistant", "reasoning_content": "hm", "content": "42"}, "an answer is parsed", message)
    call = b'<tool_call>\n{"name": "f", "arguments": {"n": 7}}\n</tool_call>'
    parser = chat.Parser(None, family="hermes", messages=TOOLS)
    deltas = [delta for byte in call for delta in parser.feed([byte])]
    rest, message = parser.finish()
    kinds = [delta.kind for delta in deltas + rest]
    check(kinds[0] == "call-begin" and kinds[-1] == "call-end" and deltas[0].name == "f" and deltas[0].id,
          "a call comes in pieces", deltas)
    check("".join(d.text for d in deltas + rest if d.kind == "arguments") == '{"n": 7}', "with its arguments", deltas)
    check(message["tool_calls"][0]["function"]["arguments"] == {"n": 7}, "and as a message", message)
    opened = chat.parse(None, list(b"hm</think>42"), family="think", prompt=list(b"x<think>"))
    check(opened["reasoning_content"] == "hm", "a prompt may have opened the thoughts", opened)
    ended = chat.parse(None, list(b"42STOPmore"), stops=["STOP"])
    check(ended["content"] == "42", "a stop ends it", ended)
    found = chat.renderer("qwen3")
    check("qwen3" in chat.renderers() and found.family == "hermes" and found.variables == {"enable_thinking": True},
          "renderers have settings", found)


def ended_parser():
    parser = chat.Parser(None)
    parser.finish()
    return parser


FEW = [{"role": "user"}]
# (name, call, exception, what the message has)
ERRORS = [
    ("a missing folder", lambda: chat.Tokenizer.load("/nonexistent"), tnk.TnkError, "/nonexistent"),
    ("a file that is none", lambda: chat.Tokenizer.from_bytes(b"{"), tnk.TnkError, ""),
    ("a text as bytes", lambda: chat.Tokenizer.from_bytes("{}"), TypeError, "bytes"),
    ("a handle that is none", lambda: chat.Tokenizer("x"), TypeError, "Tokenizer.load()"),
    ("bytes as text", lambda: chat.Tokenizer.from_bytes(json.dumps(FILE).encode()).encode(b"a"), TypeError,
     "text must be a string, not bytes"),
    ("an id that is none", lambda: chat.Tokenizer.from_bytes(json.dumps(FILE).encode()).decode(["a"]), TypeError, ""),
    ("an id above 32 bits", lambda: chat.Tokenizer.from_bytes(json.dumps(FILE).encode()).decode([1 << 40]),
     OverflowError, "token 0"),
    ("a slow tokenizer", lambda: chat.Tokenizer.from_transformers(object()), TypeError, "backend_tokenizer"),
    ("no template", lambda: chat.Template.from_transformers(object()), ValueError, "object has no chat template"),
    ("a wrong template", lambda: chat.Template.from_text("{% if %}"), tnk.TnkValueError, ""),
    ("a template of bytes", lambda: chat.Template.from_text(b"x"), TypeError, "text must be a string"),
    ("a missing template", lambda: chat.Template.load("/nonexistent"), tnk.TnkError, "/nonexistent"),
    ("stops that are one string", lambda: chat.Template.from_text("x", stops="ab"), TypeError, "stops must be a list"),
    ("stops that are numbers", lambda: chat.Template.from_text("x", stops=[1]), TypeError, "stops[0]"),
    ("messages that are a string", lambda: template().render("hi"), TypeError, "messages must be a list"),
    ("messages that are None", lambda: template().render(None), TypeError, "messages must be a list"),
    ("a message without JSON", lambda: template().render([{"role": "user", "content": object()}]), TypeError,
     "messages: "),
    ("a message without content", lambda: template().render([{"content": "x"}]), tnk.TnkValueError, "role"),
    ("a shape", lambda: template().render(TALK, shape="xml"), ValueError, "shape must be one of 'template'"),
    ("a variable that is reserved", lambda: template().render(TALK, variables={"messages": 1}), tnk.TnkValueError, ""),
    ("a variable without JSON", lambda: template().render(TALK, variables={"x": {1, 2}}), TypeError, "variables['x']"),
    ("a template that refuses", lambda: chat.Template.from_text("{{ raise_exception('no way') }}").render(TALK),
     tnk.TnkValueError, "no way"),
    ("a mask", lambda: template().encode(None, TALK, train_on="answers"), ValueError, "train_on must be one of"),
    ("a mask of nothing", lambda: template().encode(None, TALK, train_on="roles", roles=["x"]), tnk.TnkValueError, ""),
    ("roles that are a string", lambda: template().encode(None, TALK, train_on="roles", roles="user"), TypeError,
     "roles must be a list"),
    ("weights of other messages", lambda: template().encode(None, TALK, train_on="by-message", message_weights=[1.0]),
     tnk.TnkValueError, ""),
    ("weights that are none", lambda: template().encode(None, TALK, train_on="by-message", message_weights=["x"] * 4),
     TypeError, ""),
    ("a tokenizer that is none", lambda: template().encode("x", TALK), TypeError,
     "tokenizer must be a tnk.chat.Tokenizer, not str"),
    ("a template as a tokenizer", lambda: template().encode(template(), TALK), TypeError, "not Template"),
    ("a message to continue", lambda: template().extend(None, [1], TALK, -1), ValueError, "first"),
    ("a message that is not there", lambda: template().extend(None, [1], TALK, 9), tnk.TnkValueError, ""),
    ("an example of one token", lambda: chat.Template.from_text("x").encode(None, TALK).datum(), ValueError, "not 1"),
    ("a family", lambda: chat.Parser(None, family="gpt"), ValueError, "family must be one of"),
    ("an empty stop", lambda: chat.Parser(None, stops=[""]), tnk.TnkValueError, "empty string"),
    ("an answer that has ended", lambda: ended_parser().feed([1]), ValueError, "has ended"),
    ("an answer that ends twice", lambda: ended_parser().finish(), ValueError, "has ended"),
    ("a renderer", lambda: chat.renderer("none"), ValueError, "there is no renderer 'none'"),
]


def errors():
    for name, call, kind, text in ERRORS:
        error = None
        try:
            call()
        except Exception as found:
            error = found
        check(isinstance(error, kind) and text in str(error) and str(error), f"{name} is refused", repr(error))


def drops():
    """Objects go in every order, and a parser keeps what it borrows."""
    for order in ("tp", "pt"):
        objects = {"t": chat.Tokenizer.from_bytes(json.dumps(FILE).encode())}
        objects["p"] = chat.Parser(objects["t"], family="plain")
        objects["p"].feed([97])
        last = objects[order[1]]
        for name in order:
            del objects[name]
            gc.collect()
        if order[1] == "p":
            last.feed([256])
            check(last.finish()[1]["content"] == "aab", "a parser outlives its tokenizer's last name")
    check(True, "tokenizers and parsers go in both orders")


def shares():
    """Threads share a template, a tokenizer and a parser."""
    one, found = template(), []
    parser = chat.Parser(None)

    def work():
        for _ in range(50):
            found.append(trained(one.encode(None, TALK, train_on="all-answers")))
            parser.feed(list(b"a"))
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(found == ["two<|im_end|>four<|im_end|>"] * 200, "threads share a template")
    check(parser.finish()[1]["content"] == "a" * 200, "and one after the other a parser")
    child = os.fork()
    if child == 0:
        os._exit(0 if one.render(TALK[:1]).endswith("assistant\n") else 1)
    check(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "a forked child uses a template of its parent")


def run():
    tokenizers()
    lists()
    renders()
    encodes()
    parses()
    errors()
    drops()
    shares()
