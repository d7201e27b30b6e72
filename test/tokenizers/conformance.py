#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare libtnk-tokenizers with the reference implementations.

usage: conformance.py LIBRARY CACHE_DIR [--megabytes N] [--strings N]

For each vocabulary of reference.py: mixed text (what this machine has of
English and code, and text put together from the vocabulary's own tokens in all
its languages) and random strings that are made to hit the seams. Ids must be
equal, and so must decoded text. Then files with other normalizers and
pre-tokenizers, rank files against tiktoken, Whisper's and Mistral's files
against their packages, and models of every type against sentencepiece. Ends with a skip and its reason when the
registries are out of reach. One process a core.
"""
import argparse
import base64
import concurrent.futures
import functools
import importlib.util
import io
import json
import os
import pathlib
import random
import sys
import sysconfig
import time

import reference

ATOMS = """a B word Word WORD wORd é e\u0301 ſ 's 'S 'ſ 're 'LL 'd n't I'm ' ''s
1 12 123 1234 ٣ Ⅷ ² 中 中文 日本語 ひらがな カタカナ ー 한국어 각 각 ا العربية
हिन्दी ไทย 😀 👨‍👩‍👧 🏳️‍🌈 \u0338 > < . , / // ! ?! ... — “ _ __ $ € + = ( ) foo_bar
x=1; http://a.b/c \x00 \x01 \x7f \ufffd \ufeff \U00018dd3 \U0001fac8 ǅ ʰ ª \u0300
\u0345 \u093c \u1100 \u1161 \u11a8 \u212b \u1e9b\u0323 ﬁ <|im_end|> <|fim_pad|>
<|im_end <think> <|eot_id|> <｜User｜> <|begin_of_text|> <|start|> \u200b \u200d
\u1e37\u0307 a\u0323\u0307 a\u0307\u0323 \u0f71\u0f72 <s> </s>""".split()
ATOMS += [" ", "  ", "   ", "\n", "\r\n", "\n\n", "\t", "\u00a0", "\u3000",
          "\u180e", "\u0085", "\u2028", " \n", "\n ", " \n \n", "\n    "]
RANGES = [(0, 0x7f), (0x80, 0x7ff), (0x800, 0xd7ff), (0xe000, 0xffff),
          (0x10000, 0x1ffff), (0x300, 0x36f), (0x900, 0xdff), (0x3000, 0x30ff)]
KIMI = (r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def random_string(rng):
    kind = rng.random()
    if kind < 0.6:
        return "".join(rng.choices(ATOMS, k=rng.randint(1, 12)))
    if kind < 0.85:
        return "".join(chr(first + int(rng.random() * (last - first + 1)))
                       for first, last in rng.choices(RANGES, k=rng.randint(1, 20)))
    atom = rng.choice(ATOMS)
    return atom * rng.choice((2, 5, 30, 97, 260)) + rng.choice(ATOMS)


def broken_bytes(rng):
    data = bytearray(random_string(rng).encode())
    for _ in range(rng.randint(1, 4)):
        data.insert(rng.randint(0, len(data)), rng.randint(0x80, 0xff))
    return bytes(data)


def texts_at_hand(limit):
    """English and code, in portions."""
    total = 0
    for path in sorted(pathlib.Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text = path.read_text(errors="replace")
        for i in range(0, len(text), 20000):
            if total >= limit:
                return
            total += len(text[i:i + 20000].encode())
            yield text[i:i + 20000]


def whole_tokens(tokenizer, n):
    """The text of each token that is whole characters."""
    return [t for i in range(n)
            if (t := tokenizer.decode([i])) and "\ufffd" not in t]


def texts_of_tokens(tokens, limit, rng):
    """Runs of tokens of one script after the other."""
    scripts = {}
    for text in tokens:
        scripts.setdefault(ord(text.lstrip()[:1] or " ") >> 8, []).append(text)
    scripts = [s for s in scripts.values() if len(s) >= 20]
    total = 0
    while total < limit:
        parts = []
        for _ in range(rng.randint(2, 12)):
            parts += rng.choices(rng.choice(scripts), k=rng.randint(1, 150))
        text = "".join(parts)
        total += len(text.encode())
        yield text


class Check:
    def __init__(self, name):
        self.name, self.bad, self.n, self.n_bytes = name, 0, 0, 0
        self.began = time.time()

    def equal(self, what, text, ours, theirs):
        self.n += 1
        self.n_bytes += len(text.encode()) if isinstance(text, str) else len(text)
        if ours != theirs:
            self.bad += 1
            if self.bad <= 5:
                print(f"{self.name}: {what} differs for {text[:60]!r}: "
                      f"{str(ours)[:80]}, reference {str(theirs)[:80]}")

    def report(self):
        print(f"{self.name}: {self.n} texts, {self.n_bytes / 1e6:.1f} MB, "
              f"{self.bad} differences, {time.time() - self.began:.0f} s",
              flush=True)
        return self.bad


def batches(texts, size=2000):
    batch = []
    for text in texts:
        batch.append(text)
        if len(batch) == size:
            yield batch
            batch = []
    yield batch


def mixed_texts(tokens, megabytes, rng):
    """Half of it English and code, half of it all languages of the tokens."""
    left = megabytes * 1e6
    for text in texts_at_hand(left / 2):
        left -= len(text.encode())
        yield text
    yield from texts_of_tokens(tokens, left, rng)


def compare(check, ours, theirs, texts):
    for batch in batches(texts):
        for text, got in zip(batch, theirs.encode_batch_fast(
                batch, add_special_tokens=False)):
            check.equal("ids", text, ours.encode(text), got.ids)
            check.equal("text", "", ours.decode(got.ids),
                        theirs.decode(got.ids, skip_special_tokens=False))


def metaspace(replacement="▁", **options):
    return {"type": "Metaspace", "replacement": replacement, **options}


def digits(individual):
    return {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Digits", "individual_digits": individual},
        {"type": "ByteLevel", "add_prefix_space": False,
         "trim_offsets": True, "use_regex": True}]}}


# Vocabularies with members of their files replaced.
VARIANTS = {
    "digits": ("claude", digits(True)),
    "numbers": ("claude", digits(False)),
    "steps": ("llama2", {"normalizer": {"type": "Sequence", "normalizers": [
        {"type": "NFKC"},
        {"type": "Replace", "pattern": {"String": "aa"}, "content": "é b"},
        {"type": "Prepend", "prepend": "▁"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}}),
    "metaspace always": ("llama2", {
        "normalizer": None,
        "pre_tokenizer": metaspace(prepend_scheme="always", split=True),
        "decoder": metaspace(prepend_scheme="always", split=True)}),
    "metaspace first": ("llama2", {
        "normalizer": None,
        "pre_tokenizer": metaspace(prepend_scheme="first", split=False)}),
    "metaspace first, split": ("llama2", {
        "normalizer": {"type": "NFKC"},
        "pre_tokenizer": metaspace(prepend_scheme="first", split=True),
        "decoder": metaspace(prepend_scheme="first")}),
    "metaspace never": ("llama2", {
        "normalizer": None,
        "pre_tokenizer": metaspace(prepend_scheme="never", split=True),
        "decoder": metaspace(prepend_scheme="never", split=True)}),
    "metaspace, older file": ("llama2", {
        "normalizer": None,
        "pre_tokenizer": metaspace("_", str_rep="_", add_prefix_space=True),
        "decoder": metaspace("_", str_rep="_", add_prefix_space=True)}),
    "metaspace, no option": ("llama2", {
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": metaspace("é", split=False),
        "decoder": metaspace("é")}),
}


def variant(folder, name):
    base, members = VARIANTS[name]
    file = json.loads((reference.vocabulary(folder, base) /
                       "tokenizer.json").read_text())
    file.update(members)
    path = folder / "variants" / name
    path.mkdir(parents=True, exist_ok=True)
    (path / "tokenizer.json").write_text(json.dumps(file))
    return path


def hugging_face(library, folder, name, megabytes, n_strings):
    from tokenizers import Tokenizer
    path = (variant(folder, name) if name in VARIANTS
            else reference.vocabulary(folder, name))
    theirs = Tokenizer.from_file(str(path / "tokenizer.json"))
    ours = library.load(path)
    rng = random.Random(name)
    check = Check(name)
    known = whole_tokens(ours, theirs.get_vocab_size())
    compare(check, ours, theirs, mixed_texts(known, megabytes, rng))
    compare(check, ours, theirs, (random_string(rng) for _ in range(n_strings)))
    n = n_strings // 20
    texts = [random_string(rng) for _ in range(n)]
    for text, got in zip(texts, theirs.encode_batch_fast(texts)):
        check.equal("ids with specials", text,
                    ours.encode(text, reference.ADD_SPECIAL), got.ids)
    broken = [broken_bytes(rng) for _ in range(n)]
    for data, got in zip(broken, theirs.encode_batch_fast(
            [data.decode(errors="replace") for data in broken],
            add_special_tokens=False)):
        check.equal("ids of broken text", data,
                    ours.encode(data, reference.LOSSY), got.ids)
    some = [rng.choices(range(len(known) + 900), k=20) for _ in range(n)]
    for ids, text in zip(some, theirs.decode_batch(some, skip_special_tokens=True)):
        check.equal("text of random ids", "",
                    ours.decode(ids, reference.SKIP_SPECIAL), text)
    theirs.encode_special_tokens = True
    texts = [random_string(rng) for _ in range(n)]
    for text, got in zip(texts, theirs.encode_batch_fast(
            texts, add_special_tokens=False)):
        check.equal("ids with specials split", text,
                    ours.encode(text, reference.SPLIT_SPECIAL), got.ids)
    return check.report()


def byte_alphabet():
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = (b for b in range(256) if b not in keep)
    table = {chr(b): b for b in keep}
    table.update((chr(256 + i), b) for i, b in enumerate(rest))
    return table


@functools.cache
def gptoss(folder):
    """Its ranks and its expression. A process needs them for several files."""
    path = reference.vocabulary(folder, "gptoss")
    file = json.loads((path / "tokenizer.json").read_text())
    table = byte_alphabet()
    return ({bytes(table[ch] for ch in token): i
             for token, i in file["model"]["vocab"].items()},
            file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"])


@functools.cache
def tokens_of_gptoss(folder):
    """Those that are whole characters."""
    texts = (token.decode(errors="replace") for token in gptoss(folder)[0])
    return [text for text in texts if text and "\ufffd" not in text]


def rank_file(library, folder, name, megabytes, n_strings):
    import tiktoken
    ranks, o200k = gptoss(folder)
    path = folder / "ranks" / name / "tiktoken.model"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{base64.b64encode(t).decode()} {i}\n"
                            for t, i in ranks.items()))
    reserved = {f"<|reserved_token_{i}|>": i
                for i in range(len(ranks), len(ranks) + 256)}
    pattern, option, specials = {"o200k": (o200k, o200k, {}),
                                 "kimi": (KIMI, None, reserved)}[name]
    check = Check(f"tiktoken {name}")
    theirs = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks,
                               special_tokens=specials)
    ours = library.load(path, option)
    rng = random.Random(name)
    for texts in (mixed_texts(tokens_of_gptoss(folder), megabytes, rng),
                  (random_string(rng) for _ in range(n_strings))):
        check_both(check, ours, lambda t: theirs.encode(
            t, allowed_special="all"), theirs.decode, texts)
    return check.report()


def check_both(check, ours, encode, decode, texts):
    for text in texts:
        ids = encode(text)
        check.equal("ids", text, ours.encode(text), ids)
        check.equal("text", "", ours.decode(ids), decode(ids))


def named_file(library, folder, name, megabytes, n_strings):
    """A rank file whose name tells its expression and special tokens."""
    import tiktoken
    from tiktoken_ext import openai_public
    path = folder / "ranks" / f"{name}.tiktoken"
    path.parent.mkdir(parents=True, exist_ok=True)
    if name in ("multilingual", "gpt2"):
        source = reference.whisper(folder)
        spec = importlib.util.spec_from_file_location(
            "whisper_tokenizer", source / "tokenizer.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assets = source / "assets"
        assets.mkdir(exist_ok=True)
        (assets / f"{name}.tiktoken").write_bytes(
            (source / f"{name}.tiktoken").read_bytes())
        theirs, path = module.get_encoding(name), assets / f"{name}.tiktoken"
    else:
        ranks, _ = gptoss(folder)
        if name == "cl100k_base":  # the expression matters, not the ranks
            ranks = {t: i for t, i in ranks.items() if i < 100256}
        path.write_text("".join(f"{base64.b64encode(t).decode()} {i}\n"
                                for t, i in ranks.items()))
        openai_public.load_tiktoken_bpe = lambda *args, **kw: ranks
        theirs = tiktoken.Encoding(**getattr(openai_public, name)())
    check = Check(f"tiktoken {name}")
    ours = library.load(path)
    rng = random.Random(name)
    known = whole_tokens(ours, len(theirs._mergeable_ranks))
    specials = sorted(theirs.special_tokens_set)

    def strings():
        for _ in range(n_strings):
            text = random_string(rng)
            yield text + rng.choice(specials) * (rng.random() < 0.2)

    for texts in (mixed_texts(known, megabytes, rng), strings()):
        check_both(check, ours, lambda t: theirs.encode(
            t, allowed_special="all"), theirs.decode, texts)
    for text in specials:
        check.equal("special", text, ours.encode(text),
                    [theirs._special_tokens[text]])
    return check.report()


def tekken(library, folder, name, megabytes, n_strings):
    from mistral_common.tokens.tokenizers import tekken as module
    path = pathlib.Path(module.__file__).parents[2] / "data" / f"{name}.json"
    theirs = module.Tekkenizer.from_file(path)
    # A property, which decoding reads once or twice a token.
    module.Tekkenizer.num_special_tokens = theirs.num_special_tokens
    ours = library.load(path)
    check = Check(f"mistral {name}")
    rng = random.Random(name)
    known = whole_tokens(ours, theirs.n_words)[1000:]
    for texts in (mixed_texts(known, megabytes, rng),
                  (random_string(rng) for _ in range(n_strings))):
        check_both(check, ours, lambda t: theirs.encode(t, bos=False, eos=False),
                   theirs.decode, texts)
    check.equal("bos", "a", ours.encode("a", reference.ADD_SPECIAL),
                theirs.encode("a", bos=True, eos=False))
    for i in range(theirs.num_special_tokens):
        check.equal("special", "", ours.decode([i]), theirs.id_to_piece(i))
    return check.report()


MODEL_TYPES = ("unigram", "bpe", "char", "word")
NORMALIZERS = ("identity", "nmt_nfkc", "nfkc", "nfkc_cf")


def train(kind, rule):
    import sentencepiece
    lines = [line for text in texts_at_hand(3e5) for line in text.splitlines()]
    rng = random.Random(6)
    lines += ["".join(rng.choice(ATOMS[:-16]) + " " for _ in range(8))
              .replace("\0", "") for _ in range(2000)]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model,
        model_type=kind, vocab_size=2000, hard_vocab_limit=False,
        normalization_rule_name=rule, minloglevel=2, num_threads=1,
        byte_fallback=kind in ("unigram", "bpe"),
        remove_extra_whitespaces=rule != "identity",
        user_defined_symbols=["<|im_end|>"])
    return model.getvalue()


def sentencepiece_model(library, folder, name, megabytes, n_strings):
    """The amounts are those of all models together."""
    import sentencepiece
    kind, rule = name
    path = folder / f"sp/{kind}_{rule}.model"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(train(kind, rule))
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(path))
    ours = library.load(path)
    n_models = len(MODEL_TYPES) * len(NORMALIZERS)
    check = Check(f"sentencepiece {kind} {rule}")
    rng = random.Random(f"{kind} {rule}")
    for texts in (mixed_texts(tokens_of_gptoss(folder), megabytes / n_models, rng),
                  (random_string(rng) for _ in range(n_strings // n_models))):
        check_both(check, ours, theirs.encode, theirs.decode, texts)
    return check.report()


def run(job):
    compare_one, path, *args = job
    return compare_one(reference.Library(path), *args)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tokenizers", type=pathlib.Path,
                        help="the shared object of libtnk-tokenizers")
    parser.add_argument("cache", type=pathlib.Path)
    parser.add_argument("--megabytes", type=float, default=20)
    parser.add_argument("--strings", type=int, default=1000000)
    parser.add_argument("--nice", type=int, default=0,
                        help="added when all is fetched, for that has a limit of time")
    args = parser.parse_args()
    args.cache.mkdir(parents=True, exist_ok=True)
    folder = args.cache.resolve()
    try:
        reference.enter_venv(folder)
        for name in reference.VOCABULARIES:
            reference.vocabulary(folder, name)
        reference.whisper(folder)
    except reference.Skip as e:
        print(f"conformance: skipped: {e}")
        return 0
    os.nice(args.nice)
    models = [(kind, rule) for kind in MODEL_TYPES for rule in NORMALIZERS]
    jobs = [(compare_one, args.tokenizers.resolve(), folder, name,
             args.megabytes, args.strings)
            for compare_one, names in ((hugging_face,
                                        [*reference.VOCABULARIES, *VARIANTS]),
                                       (rank_file, ("o200k", "kimi")),
                                       (named_file,
                                        ("o200k_base", "o200k_harmony",
                                         "cl100k_base", "multilingual",
                                         "gpt2")),
                                       (tekken, ("tekken_240718",
                                                 "tekken_240911")),
                                       (sentencepiece_model, models))
            for name in names]
    with concurrent.futures.ProcessPoolExecutor() as pool:
        bad = sum(pool.map(run, jobs))
    print("conformance:", "identical" if bad == 0 else f"{bad} differences")
    return bad != 0


sys.exit(main())
