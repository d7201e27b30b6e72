#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pydantic AI, as it is, before tnk gateway: agents that call tools until they
have an answer, by each API, streamed and not, while the service fails at times.

usage: framework.py TNK_COMMAND FOLDER

FOLDER gets a virtual environment, which it shares with clients.py. Out of reach
of PyPI: status 77, with the reason. Output is TAP, see test/support/tap.py.
"""
import asyncio
import json
import pathlib
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[2] / name) for name in ("gateway", "support")]
import packages
from gateway import gateway, local, not_drawn, not_gone_on, records, turns_of, whole
from tap import check, plan

FAULTS = "seed=7,mild=5%"
CITIES = ["Zürich", "Bern", "Genf"]
CALLS = ["<think>I must ask.</think>Let me see.\n<tool_call>\n" + json.dumps(
    {"name": "weather", "arguments": {"city": city}}, ensure_ascii=False) + "\n</tool_call>" for city in CITIES]
SAID = "It is warm everywhere."
RUNS = 3  # of each kind, side by side


def model_of(kind, url, session):
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.anthropic import AnthropicProvider
    from pydantic_ai.providers.openai import OpenAIProvider
    if kind == "messages":
        return AnthropicModel("m", provider=AnthropicProvider(base_url=f"{url}/s/{session}", api_key="any"))
    model = OpenAIChatModel if kind == "chat" else OpenAIResponsesModel
    return model("m", provider=OpenAIProvider(base_url=f"{url}/s/{session}/v1", api_key="any"))


async def play(kind, is_stream, url, session):
    """One agent. Returns its answer, the cities that it asked for, and how often
    it asked the model."""
    from pydantic_ai import Agent
    asked = []
    agent = Agent(model_of(kind, url, session), instructions="Be brief.")

    @agent.tool_plain
    def weather(city: str) -> str:
        """The weather of a city."""
        asked.append(city)
        return f"warm in {city}"

    async def listen(context, events):
        async for _ in events:
            pass

    # With somebody who listens it asks for streams.
    result = await agent.run(f"Weather of {session}?", event_stream_handler=listen if is_stream else None)
    n_answers = sum(message.kind == "response" for message in result.all_messages())
    return session, result.output, asked, n_answers


async def play_all(url):
    runs = [play(kind, is_stream, url, f"{kind}{is_stream}-{i}") for i in range(RUNS)
            for kind in ("chat", "responses", "messages") for is_stream in (0, 1)]
    return await asyncio.gather(*runs)


def check_record(path, log, played):
    """A chain of turns for each agent, of the tokens that were drawn."""
    turns = turns_of(path)
    check(not not_drawn(path, log), f"{len(turns)} turns are what was drawn")
    check(not not_gone_on(turns), "each goes on behind what was sampled")
    parents = {turn.get("parent") for turn in turns.values()}
    for session, said, asked, n_answers in played:
        ends = [t for t in turns.values() if t["session"] == session and t["turn"] not in parents]
        check(len(ends) == 1, f"{session}: one conversation", ends)
        chain, turn = [], ends[0]
        while turn:
            chain.append(turn)
            turn = turns.get(turn.get("parent"))
        check(len(chain) == n_answers == len(asked) + 1, f"{session}: a turn for each answer", (chain, n_answers))
        text = bytes(i for i in whole(turns, ends[0]) if i < 256).decode()
        check(text.count("<think>") == len(asked) and all(f"warm in {city}" in text for city in asked) and
              said in text, f"{session}: with thoughts, results and the answer", text)


def main():
    tnk, folder = sys.argv[1:3]
    packages.enter(folder)
    with tempfile.TemporaryDirectory() as scratch:
        answers, log, faults, path = (pathlib.Path(scratch) / name for name in ("answers", "log", "faults", "record"))
        answers.write_text("".join(json.dumps(line) + "\n" for line in [*CALLS, SAID]))
        with local(tnk, "--stub", "--stub-answers", answers, "--sample-log", log, "--faults", FAULTS,
                   "--fault-log", faults) as service, \
                gateway(tnk, service, "--renderer", "qwen3", "--template", "plain", "--record", path) as g:
            played = asyncio.run(play_all(g.url))
        check(all(said == SAID for _, said, _, _ in played), f"{len(played)} agents have their answer", played)
        cities = {city for _, _, asked, _ in played for city in asked}
        check(cities == set(CITIES), f"{sum(len(asked) for _, _, asked, _ in played)} calls of tools", cities)
        check(faults.read_text(), f"{len(records(faults))} faults")
        check_record(path, log, played)
    plan()


main()
