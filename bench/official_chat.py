#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What bench_chat does, with transformers, in a Python that has it.

usage: official_chat.py FOLDER CONVERSATION [ROUNDS]

Prints the CPU time of one call each of apply_chat_template(), to text and to
ids, and a hash of the ids.
"""
import json
import os
import sys
import time

os.environ.update(TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1", TRANSFORMERS_VERBOSITY="error")
from transformers import AutoTokenizer  # noqa: E402


def mean_us(call, rounds):
    call()
    begin = time.process_time_ns()
    for _ in range(rounds):
        call()
    return (time.process_time_ns() - begin) / 1e3 / rounds


def main():
    folder, path = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 20
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    with open(path) as file:
        chat = json.load(file)

    def apply(tokenize):
        return tokenizer.apply_chat_template(chat["messages"], tools=chat.get("tools"), add_generation_prompt=True,
                                             tokenize=tokenize, return_dict=False)

    ids = apply(True)
    value = 0
    for i in ids:
        value = (value * 31 + i) % 2**32
    print(json.dumps({"text_us": mean_us(lambda: apply(False), rounds), "ids_us": mean_us(lambda: apply(True), rounds),
                      "n_ids": len(ids), "hash": value}))


if __name__ == "__main__":
    main()
