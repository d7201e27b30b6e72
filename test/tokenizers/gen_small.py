#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write data/SHAPE.json and data/SHAPE.golden: a small vocabulary for each
shape of pre-tokenizer, and the ids that the reference gives; and the same as
rank files, data/ranks.tiktoken and data/tiktoken_SHAPE.golden, and as Mistral's
kind of file, data/tekken_ranks.json.

usage: gen_small.py   (needs the packages tokenizers 0.23, tiktoken 0.14 and
                       mistral-common 1.13)

The merges are learned from text that was not cut, so that they reach over the
places where the pre-tokenizer cuts: one cut too few or too many changes ids.
"""
import base64
import collections
import json
import pathlib
import random

import tiktoken
from mistral_common.tokens.tokenizers.tekken import Tekkenizer
from tiktoken_ext import openai_public
from tokenizers import Tokenizer

DATA = pathlib.Path(__file__).parent / "data"
N_MERGES = 900
N_TEXTS = 500
CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SPACES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
PREFIX = r"[^\r\n\p{L}\p{N}]?"
UP = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}"
LO = r"\p{Ll}\p{Lm}\p{Lo}\p{M}"


def cl100k(digits):
    return (CONTRACTIONS + "|" + PREFIX + r"\p{L}+|" + digits +
            r"| ?[^\s\p{L}\p{N}]+[\r\n]*" + SPACES)


def cased(minus, contractions, digits, tail):
    return (f"{PREFIX}[{UP}{minus}]*[{LO}{minus}]+{contractions}|"
            f"{PREFIX}[{UP}{minus}]+[{LO}{minus}]*{contractions}|"
            f"{digits}| ?[^\\s\\p{{L}}\\p{{N}}]+{tail}{SPACES}")


def split(pattern):
    return {"type": "Split", "pattern": {"Regex": pattern},
            "behavior": "Isolated", "invert": False}


# name: expressions (None: ByteLevel's own), NFC, ignore_merges
SHAPES = {
    "gpt2": (None, False, False),
    "whole": ([], False, False),
    "qwen2": ([cl100k(r"\p{N}")], True, False),
    "llama3": ([cl100k(r"\p{N}{1,3}")], False, True),
    "qwen35": ([CONTRACTIONS + "|" + PREFIX + r"[\p{L}\p{M}]+|\p{N}"
                r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + SPACES], True, False),
    "o200k": ([cased("", CONTRACTIONS + "?", r"\p{N}{1,3}", r"[\r\n/]*")],
              False, True),
    "tekken": ([cased("", "", r"\p{N}", r"[\r\n/]*")], False, True),
    "kimi": ([r"[\p{Han}]+|" + cased(r"&&[^\p{Han}]", CONTRACTIONS + "?",
                                     r"\p{N}{1,3}", r"[\r\n]*")],
             False, False),
    "deepseek": ([r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
                  r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|"""
                  "[^\r\n" r"\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+"
                  "[\r\n]*" r"|\s*" "[\r\n]+" r"|\s+(?!\S)|\s+"],
                 False, False),
}
# Tokens that no merge makes: they count with ignore_merges only.
ORPHANS = {b"wordWORD", b" ?!", b"1234", b" indents"}
ADDED = [  # content, special, normalized, lstrip, rstrip
    ("<|im_start|>", True, False, False, False),
    ("<|im_end|>", True, False, False, False),
    ("<think>", False, False, False, False),
    ("<think>\n", False, False, False, False),
    ("<l>", True, False, True, False),
    ("<r>", True, False, False, True),
    ("n\u1e17", False, True, False, False),
    ("<｜User｜>", False, True, False, False),
]
# Another list, of one shape: words, and blanks that others may eat.
ADDED_WORDS = [  # the same, single_word
    ("<|im_start|>", True, False, False, False, False),
    ("<w>", True, False, False, False, True),
    ("word", False, True, False, False, True),
    ("wo", False, False, False, False, True),
    ("<l>", False, False, True, False, True),
    ("<r>", False, True, False, True, True),
    ("<b>", False, False, True, True, False),
    ("  ", False, False, False, True, False),
    (" ", False, False, True, False, False),
]
WORD_ATOMS = """word wo wor words <w> <l> <r> <b> <|im_start|> _ ² Ⅷ ٣ ⓐ ① \u200d \u200b 中
é \u0301 \u093e \uff3f \u203f - . 🅰""".split() + [" ", "  ", "\n"]
ATOMS = """a B word Word WORD wORd é e\u0301 ſ 's 'S 'ſ 're 'LL 'd n't I'm ' ''s
1 12 123 1234 ٣ Ⅷ ² 中 中文 日本語 ひらがな カタカナ ー フ゜い ア・イ っ\u3040 한국어 각 각 ا العربية
हिन्दी ไทย 😀 👨‍👩‍👧 🏳️‍🌈 \u0338 > < . , / // ! ?! ... — “ _ __ $ € + = ( ) foo_bar
x=1; http://a.b/c \x00 \x01 \x7f \ufffd \ufeff \U00018dd3 \U0001fac8 ǅ ʰ ª \u0300
\u0345 \u093c \u1100 \u1161 \u11a8 \u212b \u1e9b\u0323 ﬁ <|im_start|> <|im_end|>
<|im_end <think> <think>\u0338 <l> <r> né ne\u0301 n\u1e17 ne\u0304\u0301 <｜User｜> \u200b \u200d
\u1e37\u0307 a\u0323\u0307 a\u0307\u0323 \u0f71\u0f72""".split()
ATOMS += [" ", "  ", "   ", "\n", "\r\n", "\n\n", "\t", "\u00a0", "\u3000",
          "\u180e", "\u0085", "\u2028", " \n", "\n ", " \n \n"]


def alphabet():
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = (b for b in range(256) if b not in keep)
    table = {b: chr(b) for b in keep}
    table.update((b, chr(256 + i)) for i, b in enumerate(rest))
    return table


def random_text(rng, most=9, atoms=ATOMS):
    kind = rng.random()
    if kind < 0.15:
        atom = rng.choice(atoms)
        return atom * rng.randint(1, 40) + rng.choice(atoms)
    return "".join(rng.choice(atoms) for _ in range(rng.randint(1, most)))


def learn():
    """Merges as pairs of byte strings."""
    rng = random.Random(1)
    words = [[bytes([b]) for b in random_text(rng, 30).encode()]
             for _ in range(1500)]
    merges = []
    known = {content.encode() for content, *_ in ADDED} | ORPHANS
    while len(merges) < N_MERGES:
        pairs = collections.Counter()
        for word in words:
            pairs.update(zip(word, word[1:]))
        for (a, b), _ in sorted(pairs.items(), key=lambda p: (-p[1], p[0])):
            if a + b not in known:
                break
        merges.append((a, b))
        known.add(a + b)
        for i, word in enumerate(words):
            out, j = [], 0
            while j < len(word):
                if j + 1 < len(word) and word[j] == a and word[j + 1] == b:
                    out.append(a + b)
                    j += 2
                else:
                    out.append(word[j])
                    j += 1
            words[i] = out
    return merges


def build(merges, patterns, nfc, ignore_merges, added_tokens=ADDED):
    table = alphabet()

    def name(token):
        return "".join(table[b] for b in token)

    tokens = [bytes([b]) for b in range(256)] + [a + b for a, b in merges]
    tokens += sorted(ORPHANS)
    vocab = {name(t): i for i, t in enumerate(tokens)}
    assert len(vocab) == len(tokens)
    added = [{"id": len(vocab) + i, "content": c,
              "single_word": bool(single and single[0]),
              "lstrip": ls, "rstrip": rs, "normalized": n, "special": s}
             for i, (c, s, n, ls, rs, *single) in enumerate(added_tokens)]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False,
                  "trim_offsets": True, "use_regex": patterns is None}
    start = added[0]
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": added,
        "normalizer": {"type": "NFC"} if nfc else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            *map(split, patterns or []), byte_level]},
        "post_processor": {"type": "Sequence", "processors": [
            byte_level,
            {"type": "TemplateProcessing",
             "single": [{"SpecialToken": {"id": start["content"],
                                          "type_id": 0}},
                        {"Sequence": {"id": "A", "type_id": 0}}],
             "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                      {"Sequence": {"id": "B", "type_id": 1}}],
             "special_tokens": {start["content"]: {
                 "id": start["content"], "ids": [start["id"]],
                 "tokens": [start["content"]]}}}]},
        "decoder": byte_level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None,
                  "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False,
                  "byte_fallback": False, "ignore_merges": ignore_merges,
                  "vocab": vocab,
                  "merges": [[name(a), name(b)] for a, b in merges]},
    }


def texts(rng):
    yield from ("", "a", " ", "\n", "  a", "a  ", "a  1", "a  中", "A中B",
                "中AB!", "!\n/\n", "wordWORD", " ?!", "1234", "'ſ", "x'ſy")
    yield from ATOMS
    while True:
        yield random_text(rng)


def rank_files(merges):
    """Rank files give other ids for the same tokens: any two tokens that make
    up a third one are merged."""
    tokens = [bytes([b]) for b in range(256)] + [a + b for a, b in merges]
    tokens += sorted(ORPHANS)
    ranks = {t: i for i, t in enumerate(tokens)}
    (DATA / "ranks.tiktoken").write_text("".join(
        f"{base64.b64encode(t).decode()} {i}\n" for t, i in ranks.items()))
    names = {len(ranks): "[BOS]", len(ranks) + 1: "[EOS]",
             len(ranks) + 2: "<|im_end|>", len(ranks) + 16: "<think>"}
    (DATA / "kimi_config.json").write_text(json.dumps({
        "added_tokens_decoder": {
            str(i): {"content": c, "lstrip": False, "normalized": False,
                     "rstrip": False, "single_word": False,
                     "special": c != "<think>"} for i, c in names.items()},
        "bos_token": "[BOS]", "eos_token": "[EOS]"}, indent=1) + "\n")
    specials = {names.get(i, f"<|reserved_token_{i}|>"): i
                for i in range(len(ranks), len(ranks) + 256)}
    openai_public.load_tiktoken_bpe = lambda *args, **options: ranks
    patterns = {name: SHAPES[name][0][0]
                for name in ("kimi", "o200k", "tekken", "llama3", "qwen2")}
    patterns |= {name: getattr(openai_public, name)()["pat_str"]
                 for name in ("cl100k_base", "r50k_base")}
    for name, pattern in patterns.items():
        reference = tiktoken.Encoding(
            name, pat_str=pattern, mergeable_ranks=ranks,
            special_tokens=specials if name == "kimi" else {})
        lines = ["# mode (0), text in hex, ids"]
        source = texts(random.Random(3))
        for _ in range(N_TEXTS):
            sample = next(source)
            ids = reference.encode(sample, allowed_special="all")
            lines.append(f"0 {sample.encode().hex() or '-'} "
                         f"{','.join(map(str, ids)) or '-'}")
        (DATA / f"tiktoken_{name}.golden").write_text("\n".join(lines) + "\n")


def tekken_file(merges):
    """Mistral's: special tokens first, and more ranks than are used."""
    tokens = [bytes([b]) for b in range(256)] + [a + b for a, b in merges]
    n_special, n_unused = 20, 100
    path = DATA / "tekken_ranks.json"
    path.write_text(json.dumps({
        "config": {"pattern": SHAPES["tekken"][0][0],
                   "num_vocab_tokens": len(tokens),
                   "default_vocab_size": len(tokens) - n_unused + n_special,
                   "default_num_special_tokens": n_special, "version": "v11"},
        "vocab": [{"rank": i, "token_bytes": base64.b64encode(t).decode(),
                   "token_str": None} for i, t in enumerate(tokens)],
        "special_tokens": [
            {"rank": i, "token_str": text, "is_control": True}
            for i, text in enumerate(("<unk>", "<s>", "</s>", "[INST]"))],
    }, indent=0) + "\n")
    reference = Tekkenizer.from_file(path)
    lines = ["# mode (0, 1 with specials), text in hex, ids"]
    source = texts(random.Random(5))
    for i in range(N_TEXTS):
        sample = next(source)
        ids = reference.encode(sample, bos=i % 3 == 0, eos=False)
        lines.append(f"{int(i % 3 == 0)} {sample.encode().hex() or '-'} "
                     f"{','.join(map(str, ids)) or '-'}")
    (DATA / "tekken_ranks.golden").write_text("\n".join(lines) + "\n")


def by_chars(merges, prepend):
    """A file as those that were made from SentencePiece models."""
    added = [{"id": i, "content": c, "single_word": False, "lstrip": False,
              "rstrip": False, "normalized": False, "special": True}
             for i, c in enumerate(("<unk>", "<s>", "</s>"))]
    words = [list(text.replace(" ", "▁")) for text in (
        random_text(random.Random(i), 30) for i in range(600))]
    tokens = [a["content"] for a in added]
    tokens += [f"<0x{b:02X}>" for b in range(256)]
    # Half of the characters have no token and become bytes.
    chars = sorted({c for word in words for c in word})
    tokens += [c for i, c in enumerate(chars) if i % 2 or c in "▁ aA😀"]
    pairs = []
    while len(pairs) < 300:
        count = collections.Counter()
        for word in words:
            count.update((a, b) for a, b in zip(word, word[1:])
                         if a in tokens and b in tokens)
        (a, b), _ = min(count.items(), key=lambda p: (-p[1], p[0]))
        pairs.append((a, b))
        if a + b not in tokens:
            tokens.append(a + b)
        for i, word in enumerate(words):
            out = []
            for part in word:
                if out and out[-1] == a and part == b:
                    out[-1] = a + b
                else:
                    out.append(part)
            words[i] = out
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    back = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
    joined = [back, {"type": "ByteFallback"}, {"type": "Fuse"}]
    start = added[1]
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": added,
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"}, replace]}
        if prepend else replace,
        "pre_tokenizer": None if prepend else {
            "type": "Split", "pattern": {"String": " "},
            "behavior": "MergedWithPrevious", "invert": False},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                       {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                     {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [start["id"]],
                                       "tokens": ["<s>"]}}},
        "decoder": {"type": "Sequence", "decoders": joined + (
            [{"type": "Strip", "content": " ", "start": 1, "stop": 0}]
            if prepend else [])},
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>",
                  "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": True,
                  "byte_fallback": True, "ignore_merges": False,
                  "vocab": {t: i for i, t in enumerate(tokens)},
                  "merges": [[a, b] for a, b in pairs]},
    }


def more_shapes(merges):
    """Other normalizers and pre-tokenizers."""
    for name, individual in (("digits", True), ("numbers", False)):
        file = build(merges, None, False, False)
        file["pre_tokenizer"]["pretokenizers"].insert(
            0, {"type": "Digits", "individual_digits": individual})
        write_shape(name, file, texts(random.Random(7)))
    # NFKC changes the content of the last token.
    file = build(merges, None, False, False, ADDED[:-1])
    file["normalizer"] = {"type": "NFKC"}
    write_shape("nfkc", file, texts(random.Random(8)))
    for name, prepend in (("llama2", True), ("gemma", False)):
        file = by_chars(merges, prepend)
        write_shape(name, file, texts(random.Random(9)))
        write_decoded(name, file)
    for name, scheme, split, own_decoder in (
            ("metaspace", "always", True, True),
            ("metaspace_first", "first", False, False),
            ("metaspace_never", "never", True, True)):
        file = by_chars(merges, True)
        blanks = {"type": "Metaspace", "replacement": "▁",
                  "prepend_scheme": scheme, "split": split}
        file["normalizer"] = None
        file["pre_tokenizer"] = blanks
        if own_decoder:
            file["decoder"] = blanks
        # Added tokens: what follows one is not first.
        write_shape(name, file, (t.replace("<|im_start|>", "<s>") for t in
                                 texts(random.Random(11))))
        write_decoded(name, file)


def write_decoded(name, file):
    """Ids and their text, with many bytes."""
    reference = Tokenizer.from_str(json.dumps(file))
    rng = random.Random(10)
    n = len(file["model"]["vocab"])
    lines = ["# 0, text in hex, ids"]
    for _ in range(N_TEXTS):
        ids = []
        for _ in range(rng.randint(1, 8)):
            kind = rng.random()
            if kind < 0.4:
                ids += [3 + b for b in rng.choice(ATOMS).encode()]
            elif kind < 0.6:
                ids += [3 + rng.randrange(256)]
            elif kind < 0.7:
                ids += [file["model"]["vocab"]["▁"]] * rng.randint(1, 3)
            else:
                ids += [rng.randrange(n)]
        text = reference.decode(ids, skip_special_tokens=False)
        lines.append(f"0 {text.encode().hex() or '-'} "
                     f"{','.join(map(str, ids))}")
    (DATA / f"{name}_decoded.golden").write_text("\n".join(lines) + "\n")


def write_shape(name, file, source):
    text = json.dumps(file, ensure_ascii=name == "qwen2", indent=0)
    (DATA / f"{name}.json").write_text(text + "\n")
    reference = Tokenizer.from_str(text)
    lines = ["# mode (0 plain call, 1 with specials, 2 split specials),"
             " text in hex, ids"]
    for i in range(N_TEXTS):
        sample = next(source)
        mode = 0 if i < 120 else i % 3
        reference.encode_special_tokens = mode == 2
        try:
            ids = reference.encode(sample, add_special_tokens=mode == 1).ids
        except BaseException:  # it panics when two tokens eat one blank
            continue
        lines.append(f"{mode} {sample.encode().hex() or '-'} "
                     f"{','.join(map(str, ids)) or '-'}")
    (DATA / f"{name}.golden").write_text("\n".join(lines) + "\n")


def main():
    DATA.mkdir(exist_ok=True)
    merges = learn()
    rank_files(merges)
    tekken_file(merges)
    more_shapes(merges)
    for name, shape in SHAPES.items():
        write_shape(name, build(merges, *shape), texts(random.Random(2)))
    rng = random.Random(4)
    words = build(merges[:100], None, True, False, ADDED_WORDS)
    # The older form of merges, which may begin as a merges.txt does.
    words["model"]["merges"] = ["#version: 0.2", *map(
        " ".join, words["model"]["merges"])]
    write_shape("words", words,
                (random_text(rng, 9, WORD_ATOMS) for _ in range(N_TEXTS)))


main()
