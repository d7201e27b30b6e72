#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Answers that the models' own templates write are parsed back to the messages
that they were written from.

usage: answers.py TOOL CACHE_DIR [--each N]

For each template of TEMPLATES, conversations with a last answer that thinks,
speaks and calls, as the template allows. The prompt is rendered without the
answer, the whole with it; what is added is what the model would have sampled.
Ends with a skip and its reason when the registry is out of reach.
"""
import argparse
import json
import random
import subprocess
import sys

import templates

(PLAIN, THINK, HERMES, XML, DEEPSEEK, DSML, KIMI, GLM, HARMONY, MISTRAL,
 LLAMA, XTML) = range(12)

# name -> family, variables, what its answers may have: thinking (2: always; 3:
# only beside calls), how many calls, content beside calls
TEMPLATES = {
    "Qwen-Qwen2.5-7B-Instruct": (HERMES, {}, 0, 3, True),
    "Qwen-Qwen3-0.6B": (HERMES, {}, 2, 3, True),
    "Qwen-QwQ-32B": (HERMES, {}, 0, 3, True),
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": (HERMES, {}, 0, 3, False),
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": (HERMES, {}, 0, 3, False),
    "Bielik-11B-v3.0-Instruct": (HERMES, {}, 0, 3, True),
    "MiMo-VL": (HERMES, {}, 0, 3, True),
    "ibm-granite-granite-4.0": (HERMES, {}, 0, 3, True),
    "ibm-granite-granite-4.1": (HERMES, {}, 0, 3, True),
    "Qwen3.5-4B": (XML, {}, 2, 3, True),
    "Qwen3-Coder": (XML, {}, 0, 3, True),
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": (XML, {"enable_thinking": True},
                                            2, 3, True),
    "StepFun3.5-Flash": (XML, {}, 2, 3, True),
    "deepseek-ai-DeepSeek-V3.1": (DEEPSEEK, {}, 0, 3, True),
    "llama-cpp-deepseek-r1": (DEEPSEEK, {"tools": None}, 0, 3, False),
    "deepseek-ai-DeepSeek-V3.2": (DSML, {"thinking": True}, 2, 3, True),
    "deepseek-ai-DeepSeek-V4": (DSML, {"thinking": True}, 2, 3, True),
    "deepseek-ai-DeepSeek-V4-Flash-0731": (DSML, {"thinking": True},
                                           2, 3, True),
    "moonshotai-Kimi-K2": (KIMI, {}, 0, 3, True),
    "Kimi-K2-Instruct": (KIMI, {}, 0, 3, True),
    "Kimi-K2-Thinking": (KIMI, {}, 3, 3, True),
    "Kimi-K3": (XTML, {}, 1, 3, True),
    "GLM-4.6": (GLM, {}, 1, 3, True),
    "GLM-4.7-Flash": (GLM, {}, 2, 3, True),
    "Spark2.5": (GLM, {}, 2, 3, True),
    "inclusionai-ling-3.0-flash": (GLM, {}, 2, 3, True),
    "openai-gpt-oss-120b": (HARMONY, {}, 1, 1, False),
    "Mistral-Small-3.2-24B-Instruct-2506": (MISTRAL, {}, 0, 3, False),
    "mistralai-Mistral-Nemo-Instruct-2407": (MISTRAL, {}, 0, 3, False),
    "mistralai-Ministral-3-14B-Reasoning-2512": (MISTRAL, {}, 0, 3, True),
    "unsloth-mistral-Devstral-Small-2507": (MISTRAL, {}, 0, 3, False),
    "meta-llama-Llama-3.1-8B-Instruct": (LLAMA, {}, 0, 1, False),
    "meta-llama-Llama-3.2-3B-Instruct": (LLAMA, {}, 0, 1, False),
    "meta-llama-Llama-3.3-70B-Instruct": (LLAMA, {}, 0, 1, False),
}
# Prompts that are no beginning of the whole: the answer is behind this.
BEHIND = {"llama-cpp-deepseek-r1": "<｜Assistant｜>",
          "Qwen-QwQ-32B": "<|im_start|>assistant\n"}
# What ends an answer where that is not the family's.
STOPS = {"ibm-granite-granite-4.0": "<|end_of_text|>",
         "ibm-granite-granite-4.1": "<|end_of_text|>",
         "Spark2.5": "<｜end▁of▁sentence｜>",
         "inclusionai-ling-3.0-flash": "<|role_end|>"}
# What comes behind an answer and is not sampled.
CUTS = ("<|im_end|>\n", "<|end_of_text|>\n")

PROPERTIES = {
    "city": {"type": "string"}, "days": {"type": "integer"},
    "exact": {"type": "boolean"}, "where": {"type": "object"},
    "lines": {"type": "array"},
    "unit": {"anyOf": [{"type": "string"}, {"type": "null"}]},
}
TOOLS = [{"type": "function", "function": {
    "name": name, "description": "It does things.",
    "parameters": {"type": "object", "properties": PROPERTIES,
                   "required": []}}} for name in ("weather", "set_lines")]
WORDS = ["Oslo", "two\nlines", "7", "true", "null", "a \"quote\"", "é😀", "{}",
         "</p> & <b>", "x\\y", "[1]"]


def some_arguments(rng):
    values = {"city": rng.choice(WORDS), "days": rng.randint(-5, 500),
              "exact": rng.random() < 0.5,
              "where": {"a": rng.choice(WORDS), "b": [1, 2.5, None]},
              "lines": [rng.choice(WORDS) for _ in range(rng.randint(0, 3))],
              "unit": rng.choice([None, "C", "long unit"])}
    return {k: v for k, v in values.items() if rng.random() < 0.5}


def some_answer(rng, thinking, most_calls, beside):
    message = {"role": "assistant"}
    n_calls = rng.randint(0, most_calls)
    text = " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 9)))
    if n_calls and (not beside or rng.random() < 0.5):
        text = ""
    message["content"] = "So, " + text + "." if text else ""
    if thinking == 3:
        thinking = 2 if n_calls else 0
    if thinking == 2 or (thinking and rng.random() < 0.5):
        message["reasoning_content"] = "Hm, " + rng.choice(WORDS) + "\n\nso."
    if n_calls:
        message["tool_calls"] = [
            {"id": f"abcdefg{i:02}", "type": "function", "function": {
                "name": rng.choice(TOOLS)["function"]["name"],
                "arguments": some_arguments(rng)}} for i in range(n_calls)]
    return message


def for_template(name, message):
    """What this template wants differently."""
    message = dict(message)
    if name == "openai-gpt-oss-120b":
        if "reasoning_content" in message:
            message["thinking"] = message.pop("reasoning_content")
        if "tool_calls" in message:
            del message["content"]
    return message


def plain(message):
    """What counts: calls without their ids, which most models do not write."""
    return (message.get("content") or "", message.get("reasoning_content", ""),
            [(c["function"]["name"], c["function"]["arguments"])
             for c in message.get("tool_calls", [])])


def one_sample(template, name, rng):
    family, variables, thinking, most_calls, beside = TEMPLATES[name]
    answer = some_answer(rng, thinking, most_calls, beside)
    messages = [{"role": "user", "content": "How is it?"}]
    given = dict(tools=TOOLS, bos_token="<s>", eos_token="</s>") | variables
    prompt = template.render(messages=messages, add_generation_prompt=True,
                             **given)
    whole = template.render(messages=messages + [for_template(name, answer)],
                            add_generation_prompt=False, **given)
    if name in BEHIND:
        prompt = whole[:whole.rindex(BEHIND[name]) + len(BEHIND[name])]
    if not whole.startswith(prompt):
        raise SystemExit(f"{name}: the prompt is no beginning:\n{prompt[-80:]!r}"
                         f"\n{whole[-400:]!r}")
    text = whole[len(prompt):]
    if text.endswith(CUTS):
        text = text[:-1]
    return answer, {"family": family, "prompt": prompt, "text": text,
                    "tools": TOOLS, "stop": STOPS.get(name)}


def check(tool, env, name, source, n):
    rng = random.Random(name)
    template = env.from_string(source)
    samples = [one_sample(template, name, rng) for _ in range(n)]
    lines = "".join(json.dumps(s, ensure_ascii=False) + "\n"
                    for _, s in samples)
    out = subprocess.run([tool], input=lines, capture_output=True, text=True,
                         check=True).stdout.splitlines()
    bad = 0
    assert len(out) == len(samples)
    for (answer, sample), line in zip(samples, out):
        got = json.loads(line)
        if plain(got["message"]) != plain(answer) or got["unparsed"]:
            bad += 1
            if bad == 1:
                print(f"{name}: {sample['text']!r}\n  became {line}\n"
                      f"  and was {json.dumps(answer, ensure_ascii=False)}")
    print(f"{name}: {len(samples)} answers, {bad} differ", flush=True)
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("cache")
    parser.add_argument("--each", type=int, default=50)
    args = parser.parse_args()
    try:
        templates.enter_venv(args.cache)
        env = templates.environment()
        sources = templates.fetch(args.cache)
    except templates.OutOfReach as reason:
        print(f"skipped: {reason}")
        return 77
    bad = sum(check(args.tool, env, name, sources[name], args.each)
              for name in TEMPLATES)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
