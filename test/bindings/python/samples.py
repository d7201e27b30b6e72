# SPDX-License-Identifier: MIT
"""A template, a tokenizer and conversations."""
SOURCE = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
          "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
CONFIG = {"eos_token": "<|im_end|>"}
SHOWN = [*range(33, 127), *range(161, 173), *range(174, 256)]
HIDDEN = [byte for byte in range(256) if byte not in SHOWN]
LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
# A token for each byte, one for "ab", and the end of a turn.
FILE = {
    "version": "1.0",
    "added_tokens": [{"id": 257, "content": "<|im_end|>", "single_word": False, "lstrip": False, "rstrip": False,
                      "normalized": False, "special": True}],
    "normalizer": None, "pre_tokenizer": LEVEL, "post_processor": None, "decoder": LEVEL,
    "model": {"type": "BPE", "merges": ["a b"],
              "vocab": {**{chr(byte): byte for byte in SHOWN},
                        **{chr(256 + i): byte for i, byte in enumerate(HIDDEN)}, "ab": 256}},
}
TALK = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"}, {"role": "assistant", "content": "four"}]
TOOLS = {"messages": [{"role": "user", "content": "go"}],
         "tools": [{"type": "function", "function": {"name": "f", "parameters": {
             "type": "object", "properties": {"n": {"type": "integer"}}}}}]}
