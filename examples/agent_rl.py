#!/usr/bin/env python3
"""A toy agent, which knows OpenAI's API and nothing of training: it asks, says
how many vowels there were, and asks for more. Its reward is their share.

usage: agent_rl.py GATEWAY ITERATION DATUMS [WEIGHTS]

GATEWAY is the address of a tnk gateway, which samples from WEIGHTS from now on,
if they are given. DATUMS is a file that gets what was recorded, a conversation a
line, with an empty line behind those that began with the same words.
"""
import concurrent.futures
import json
import sys
import urllib.error
import urllib.request

BEGINNINGS = ["Say:", "Tell me:", "Sing:", "Answer:", "Write:", "Now:"]
GROUP = 12  # conversations that begin with the same words
TURNS = 2
GATEWAY, ITERATION = sys.argv[1], int(sys.argv[2])


def call(session, path, body=None):
    """Ask, and ask again where the service is in trouble."""
    url = f"{GATEWAY}/s/{session}{path}" if session else GATEWAY + path
    for attempt in range(5):
        try:
            data = json.dumps(body).encode() if body else None
            with urllib.request.urlopen(urllib.request.Request(url, data), timeout=60) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            if attempt == 4:
                raise RuntimeError(error.read().decode()) from error


def vowels(text):
    return sum(letter in "aeiouAEIOU" for letter in text)


def play(place):
    """One conversation in a session of its own. Returns its reward and datum."""
    session = f"iteration{ITERATION}-{place // GROUP}-{place % GROUP}"
    messages = [{"role": "user", "content": BEGINNINGS[place // GROUP]}]
    said = ""
    for turn in range(TURNS):
        answer = json.loads(call(session, "/v1/chat/completions", {
            "model": "mine", "messages": messages, "max_tokens": 16,
            "seed": (ITERATION * 1000 + place) * TURNS + turn}))
        message = answer["choices"][0]["message"]
        said += message["content"]
        messages += [message, {"role": "user", "content": f"{vowels(said)} vowels. More:"}]
    reward = vowels(said) / max(len(said), 1)
    call(session, "/tnk/reward", {"reward": reward, "id": answer["id"]})
    return reward, call(session, "/tnk/datums?rewarded=1").decode()


if len(sys.argv) > 4:
    call(None, "/tnk/sampler", {"model_path": sys.argv[4]})
with concurrent.futures.ThreadPoolExecutor(len(BEGINNINGS) * GROUP) as pool:
    played = list(pool.map(play, range(len(BEGINNINGS) * GROUP)))
with open(sys.argv[3], "w", encoding="utf-8") as file:
    for at, (_, datum) in enumerate(played):
        file.write(datum + "\n" * (at % GROUP == GROUP - 1))
print(f"iteration {ITERATION} reward {sum(reward for reward, _ in played) / len(played):.3f}", flush=True)
