#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk gateway under the AI SDK of Vercel, and under the helpers of the official
clients of OpenAI and Anthropic for Node, as they are: tool loops and structured
output, streamed and not.

usage: aisdk.py TNK_COMMAND FOLDER

FOLDER gets npm's packages, which it shares with clients.py. Without Node, or out
of reach of npm: status 77, with the reason. Output is TAP, see test/support/tap.py.
"""
import json
import pathlib
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[2] / name) for name in ("gateway", "support")]
from gateway import CALLING, CLEAN, gateway, local, not_drawn, not_gone_on, turns_of, whole
from node_packages import node_folder, run_node
from tap import check, plan

CALL = ("<think>I must ask.</think>Let me see.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": "
        "{\"city\": \"Zürich\"}}\n</tool_call>")
SAID = "It is warm in Zürich."
PLACE = ('{"name": "Zürich", "kind": "city", "size": {"people": 400000}, "near": [{"name": "Uster", "km": 14.5}], '
         '"mail": "info@stadt.example", "since": "1218-01-01", "is": 1}')
CALLS = ("--renderer", "qwen3", "--template", "plain")
# Script, part, answers of the model in turn, options of the gateway.
PARTS = [
    ("aisdk.mjs", "loops", [CALL, SAID], CALLS),
    ("aisdk.mjs", "objects", [PLACE], ()),
    ("aisdk.mjs", "elements", ['{"elements": [["Bern", 1], ["Genf", 2]]}'], ()),
    ("aisdk.mjs", "choices", ['{"result": "Genf"}'], ()),
    ("aisdk.mjs", "both", [CALL, PLACE], CALLS),
    ("aisdk.mjs", "forced", [PLACE[1:] + "}\n</tool_call>"], None),
    ("official.mjs", "loops", [CALL, SAID], CALLS),
    ("official.mjs", "objects", [PLACE], ()),
]


def check_session(scenario, turns):
    """One conversation of as many turns as there were answers, and its formats."""
    what, n, fits = scenario["what"], scenario["turns"], scenario["fits"]
    own = [turn for turn in turns.values() if turn["session"] == scenario["session"]]
    check(len(own) == n and sum(not turn.get("parent") for turn in own) == 1, f"{what}: {n} turns in a chain", own)
    check([turn["fits"] for turn in own if turn.get("fits") is not None] == [True] * fits, f"{what}: {fits} fit", own)
    if n > 1:
        text = bytes(i for i in whole(turns, own[-1]) if i < 256).decode()
        check(text.count("<think>") == n // 2 and "warm" in text, f"{what}: with thoughts and results", text)


def play(tnk, where, scratch, script, part, answers, options):
    """One part, with a service and a gateway of its own."""
    path, log, lines, template = (scratch / f"{script}-{part}.{name}" for name in ("record", "log", "lines", "jinja"))
    lines.write_text("".join(json.dumps(answer) + "\n" for answer in answers))
    template.write_text(CALLING)
    if options is None:
        options = ("--renderer", "qwen3", "--template", template)
    with local(tnk, "--stub", "--stub-answers", lines, "--sample-log", log) as service, \
            gateway(tnk, service, *options, "--record", path) as g:
        done = run_node(where, script, part, g.url, env={**CLEAN, "PLACE": PLACE})
    scenarios = [json.loads(line) for line in done.stdout.splitlines()]
    turns = turns_of(path)
    for scenario in scenarios:
        check("error" not in scenario, scenario["what"], (scenario, done.stderr))
        if "session" in scenario:
            check_session(scenario, turns)
    check(done.returncode == 0 and scenarios, f"{script} {part} ends", done.stderr)
    check(len(turns) == sum(scenario.get("turns", 0) for scenario in scenarios), "no other turns", len(turns))
    check(not not_gone_on(turns) and not not_drawn(path, log), "what goes on begins with what was drawn")


def main():
    tnk, folder = sys.argv[1:3]
    where, why = node_folder(folder)
    if where is None:
        print("skipped:", why)
        sys.exit(77)
    with tempfile.TemporaryDirectory() as scratch:
        for part in PARTS:
            play(tnk, where, pathlib.Path(scratch), *part)
    plan()


main()
