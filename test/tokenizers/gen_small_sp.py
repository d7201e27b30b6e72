#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write data/sp_TYPE.model, small SentencePiece models, and
data/sp_TYPE.golden, the ids that the reference gives.

usage: gen_small_sp.py   (needs the package sentencepiece 0.2)
"""
import io
import pathlib
import random

import sentencepiece

DATA = pathlib.Path(__file__).parent / "data"
WORDS = """the quick brown fox jumps over lazy dogs and then some more words
follow token tokens tokenize tokenizer 中文 日本語 한국어 é naïve 123 42 foo_bar
x=1; "quoted" (round) end. Word WORD wordWORD हिन्दी ไทย العربية 😀""".split()
ODD = ["\t", "\n", "  ", "\u00a0", "\u3000", "\u2581", "\x00", "\x01", "\U0001fac8",
       "\u0301", "<s>", "</s>", "<unk>", "<user>", "<0x41>", "ﬁ", "\ufffd", " "]


def text(rng, odd):
    words = [rng.choice(ODD if rng.random() < odd else WORDS)
             for _ in range(rng.randint(1, 12))]
    return rng.choice(["", " "]).join(words)


def train(kind, **options):
    rng = random.Random(4)
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([text(rng, 0) for _ in range(3000)]),
        model_writer=model, model_type=kind, vocab_size=420,
        character_coverage=0.98, user_defined_symbols=["<user>"],
        hard_vocab_limit=False, minloglevel=2, num_threads=1, **options)
    return model.getvalue()


def main():
    identity = {"normalization_rule_name": "identity"}
    models = {
        "bpe": train("bpe", byte_fallback=True, remove_extra_whitespaces=False,
                     **identity),
        "unigram": train("unigram", **identity),
    }
    for name, model in models.items():
        (DATA / f"sp_{name}.model").write_bytes(model)
        reference = sentencepiece.SentencePieceProcessor(model_proto=model)
        rng = random.Random(5)
        lines = ["# mode (0, 1: with BOS), text in hex, ids"]
        for i in range(300):
            sample = text(rng, 0.4) if i else ""
            ids = reference.encode(sample, add_bos=i % 3 == 1)
            lines.append(f"{int(i % 3 == 1)} {sample.encode().hex() or '-'} "
                         f"{','.join(map(str, ids)) or '-'}")
        (DATA / f"sp_{name}.golden").write_text("\n".join(lines) + "\n")


main()
