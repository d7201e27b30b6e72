#!/usr/bin/env python3
"""A toy agent, which knows OpenAI's API and nothing of training: it asks, says
how many vowels there were, and asks for more. Its reward is their share.

It is an environment of tnk rl, which sets its variables (agent_rl.sh).
"""
import json
import os
import urllib.request

BEGINNINGS = ["Say:", "Tell me:", "Sing:", "Answer:", "Write:", "Now:"]
TURNS = 2


def ask(messages, seed):
    """Returns the message of the model."""
    body = {"model": "mine", "messages": messages, "max_tokens": 16, "seed": seed}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(),
                                     {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["choices"][0]["message"]


def vowels(text):
    return sum(letter in "aeiouAEIOU" for letter in text)


messages = [{"role": "user", "content": BEGINNINGS[int(os.environ["TNK_RL_TASK"]) % len(BEGINNINGS)]}]
said = ""
for turn in range(TURNS):
    message = ask(messages, int(os.environ["TNK_RL_SEED"]) + turn)
    said += message["content"]
    messages += [message, {"role": "user", "content": f"{vowels(said)} vowels. More:"}]
print(vowels(said) / max(len(said), 1))
