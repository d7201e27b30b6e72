#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Frameworks for agents in Python, as they are, before tnk gateway: their default
calls for structured output, for tools and for streams.

usage: frameworks.py TNK_COMMAND FOLDER [FRAMEWORK...]

FOLDER gets the virtual environments with the packages of PyPI, which a later run
finds there. The frameworks of an environment that cannot be made are skipped, with
the reason. Output is TAP, see test/support/tap.py.

A framework runs in a process of its environment. It knows the gateway by
OPENAI_BASE_URL alone, as its users would do it.
"""
import asyncio
import json
import pathlib
import subprocess
import sys
import tempfile
import traceback

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[2] / name) for name in ("gateway", "support")]
import own_venv
from gateway import CALLING, CLEAN, gateway, local, not_gone_on, turns_of
from tap import check, plan, skip

PACKAGES = {
    "frameworks": ["langchain-openai==1.7.4", "openai-agents==0.24.0", "dspy==3.4.1", "autogen-agentchat==0.7.5",
                   "autogen-ext[openai]==0.7.5", "pydantic-ai-slim[openai]==2.68.0", "openai==3.57.0"],
    # It needs an older jiter than the others.
    "instructor": ["instructor==1.17.0", "openai==3.3.0"],
}
# No process asks anything but the gateway.
QUIET = {"OPENAI_AGENTS_DISABLE_TRACING": "1", "LANGCHAIN_TRACING_V2": "false", "LANGSMITH_TRACING": "false",
         "LITELLM_LOCAL_MODEL_COST_MAP": "True", "OTEL_SDK_DISABLED": "true"}
TIMEOUT_S = 300

ZURICH = {"name": "Zürich", "kind": "city", "size": {"people": 400000}, "tags": ["lake"], "since": "1218-01-01",
          "near": [{"name": "Uster", "kind": "town", "size": {"people": 35000}, "tags": [], "since": None, "near": []}]}
FITS = json.dumps(ZURICH, ensure_ascii=False)
CITY = {"city": "Zürich"}
SAID = "It is warm in Zürich."
CALL = "<tool_call>\n" + json.dumps({"name": "weather", "arguments": CITY}, ensure_ascii=False) + "\n</tool_call>"
LOOP = ["<think>I must ask.</think>Let me see.\n" + CALL, SAID]
# The end of a call whose begin the gateway has forced: of the one tool, or of some tool.
FORCED = FITS[1:] + "}\n</tool_call>"
FORCED_ANY = [f'{name}", "arguments": {arguments}}}\n</tool_call>' for name, arguments in
              (("weather", json.dumps(CITY, ensure_ascii=False)), ("final_result", FITS))]
PLAYS = {}


def play(name, environment, answers, n_fits, n_children=0):
    """For a function that yields what it has tried, what it got, and what it wanted: the answers of the
    model in turn, how many of them are to a request for JSON, and how many continue from an earlier one."""
    def register(function):
        PLAYS[name] = function, environment, answers, n_fits, n_children
        return function
    return register


def place():
    import datetime
    import typing
    import pydantic

    class Size(pydantic.BaseModel):
        people: int = pydantic.Field(ge=0, description="How many live there.")

    class Place(pydantic.BaseModel):
        """A place and its neighbors."""
        name: str
        kind: typing.Literal["city", "town"]
        size: Size
        near: typing.List["Place"] = []
        tags: typing.List[str] = []
        since: typing.Optional[datetime.date] = None

    Place.model_rebuild(_types_namespace={"Place": Place})
    return Place


def plain(value):
    return value.model_dump(mode="json")


def weather(city: str) -> str:
    """The weather of a city."""
    return f"warm in {city}"


@play("langchain-openai", "frameworks", [FITS, FORCED, FITS, *LOOP, SAID, *LOOP, SAID], n_fits=2, n_children=2)
def langchain():
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_openai import ChatOpenAI
    model = ChatOpenAI(model="m")
    for how in ({}, {"method": "function_calling"}, {"method": "json_mode"}):
        got = model.with_structured_output(place(), **how).invoke("Where?")
        yield f"with_structured_output({how})", plain(got), ZURICH
    for how in ({}, {"use_responses_api": True}):
        model = ChatOpenAI(model="m", **how)
        tools, talk = model.bind_tools([weather]), [HumanMessage("Weather?")]
        talk.append(tools.invoke(talk))
        yield f"bind_tools, {how}", talk[-1].tool_calls[0]["args"], CITY
        talk.append(ToolMessage(weather(**CITY), tool_call_id=talk[-1].tool_calls[0]["id"]))
        yield "its result", tools.invoke(talk).text, SAID
        yield "stream", "".join(part.text for part in model.stream("Hello")), SAID


@play("openai-agents", "frameworks", [FITS, *LOOP, *LOOP] * 2, n_fits=2, n_children=4)
def openai_agents():
    import openai
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool

    async def stream(agent):
        result = Runner.run_streamed(agent, "Weather?")
        async for _ in result.stream_events():
            pass
        return result

    with asyncio.Runner() as loop:
        for api, model in (("responses", "m"), ("chat", OpenAIChatCompletionsModel("m", openai.AsyncOpenAI()))):
            agent = Agent("places", model=model, output_type=place())
            yield f"{api}: output_type", plain(loop.run(Runner.run(agent, "Where?")).final_output), ZURICH
            agent = Agent("weather", model=model, instructions="Be brief.", tools=[function_tool(weather)])
            yield f"{api}: a tool", loop.run(Runner.run(agent, "Weather?")).final_output, SAID
            yield f"{api}: run_streamed", loop.run(stream(agent)).final_output, SAID


def marked(**fields):
    """As the first adapter of DSPy wants it."""
    return "".join(f"[[ ## {name} ## ]]\n{value}\n\n" for name, value in fields.items()) + "[[ ## completed ## ]]"


@play("dspy", "frameworks", [marked(answer=SAID), marked(reasoning="Hm.", answer=SAID), marked(place=FITS), "no marks",
                             *[json.dumps({"place": ZURICH})] * 2], n_fits=2)
def dspy_predicts():
    import dspy
    dspy.configure(lm=dspy.LM("openai/m"))
    yield "Predict", dspy.Predict("question -> answer")(question="Weather?").answer, SAID
    got = dspy.ChainOfThought("question -> answer")(question="Weather?")
    yield "ChainOfThought", [got.reasoning, got.answer], ["Hm.", SAID]
    typed = dspy.Predict(dspy.Signature("question -> place: Place", custom_types={"Place": place()}))
    yield "a typed signature", plain(typed(question="Where?").place), ZURICH
    yield "and without the marks", plain(typed(question="Where is it?").place), ZURICH
    with dspy.context(adapter=dspy.JSONAdapter()):
        yield "JSONAdapter", plain(typed(question="Where?").place), ZURICH


@play("autogen", "frameworks", [*LOOP, *LOOP, CALL, FITS, SAID], n_fits=1, n_children=1)
def autogen():
    from autogen_agentchat.agents import AssistantAgent
    from autogen_core.tools import FunctionTool
    from autogen_ext.models.openai import OpenAIChatCompletionClient
    model = OpenAIChatCompletionClient(model="m", model_info={
        "vision": False, "function_calling": True, "json_output": True, "structured_output": True,
        "family": "unknown"})
    strict = FunctionTool(weather, weather.__doc__, strict=True)  # no others are allowed with a type of the answer
    with asyncio.Runner() as loop:
        def last(**how):
            return loop.run(AssistantAgent("helper", model, **how).run(task="Zürich?")).messages[-1].content
        yield "tools", last(tools=[weather], max_tool_iterations=2), SAID
        yield "reflect_on_tool_use", last(tools=[weather], reflect_on_tool_use=True), SAID  # it sends no tools then
        yield "output_content_type", plain(last(tools=[strict], output_content_type=place())), ZURICH
        yield "model_client_stream", last(model_client_stream=True), SAID


@play("instructor", "instructor", [FORCED, FORCED, FITS, FORCED, FORCED], n_fits=1)
def instructor_creates():
    import instructor
    import openai
    ask = {"response_model": place(), "messages": [{"role": "user", "content": "Where?"}]}
    for mode in (None, "TOOLS", "JSON_SCHEMA", "RESPONSES_TOOLS"):
        how = {"mode": instructor.Mode[mode]} if mode else {}
        client = instructor.from_openai(openai.OpenAI(), **how)
        yield f"from_openai, mode {mode}", plain(client.chat.completions.create(model="m", **ask)), ZURICH
    yield "from_provider", plain(instructor.from_provider("openai/m").chat.completions.create(**ask)), ZURICH


@play("pydantic-ai", "frameworks", [FITS, FITS, FORCED, *LOOP, *FORCED_ANY] * 2, n_fits=4, n_children=4)
def pydantic_ai():
    from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput
    for model in ("openai:m", "openai-chat:m"):
        for kind in (NativeOutput, PromptedOutput, ToolOutput):
            got = Agent(model, output_type=kind(place())).run_sync("Where?").output
            yield f"{model}: {kind.__name__}", plain(got), ZURICH
        yield f"{model}: a tool", Agent(model, tools=[weather]).run_sync("Weather?").output, SAID
        got = Agent(model, output_type=place(), tools=[weather]).run_sync("Where?").output
        yield f"{model}: a tool and a type of the answer", plain(got), ZURICH


def act(name):
    """In the process of a framework: a line for each call, and why the next one failed."""
    out, sys.stdout = sys.stdout, sys.stderr  # a framework may print
    try:
        for what, got, wanted in PLAYS[name][0]():
            print(json.dumps([what, got == wanted, repr(got)]), file=out)
    except Exception as e:  # each framework has its own
        traceback.print_exc()
        print(json.dumps([f"ends with {type(e).__name__}", False, str(e)]), file=out)


def watch(tnk, name, python, scratch):
    _, _, answers, n_fits, n_children = PLAYS[name]
    lines, template, path = scratch / "answers", scratch / "template", scratch / f"{name}.record"
    lines.write_text("".join(json.dumps(answer) + "\n" for answer in answers))
    template.write_text(CALLING)
    with local(tnk, "--stub", "--stub-answers", lines) as service, \
            gateway(tnk, service, "--renderer", "qwen3", "--template", template, "--record", path, "-v") as g:
        env = {**CLEAN, **QUIET, "OPENAI_BASE_URL": f"{g.url}/s/{name}/v1", "OPENAI_API_KEY": "any",
               "DSPY_CACHEDIR": str(scratch / "cache"), "HOME": str(scratch),
               # Most of the time is for imports. The frameworks share packages.
               "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(python.parents[1] / "compiled")}
        done = subprocess.run([python, __file__, "--play", name], capture_output=True, text=True, timeout=TIMEOUT_S,
                              env=env)
    for line in done.stdout.splitlines():
        what, ok, got = json.loads(line)
        check(ok, f"{name}: {what}", f"{got}\n{done.stderr}\n{g.said}")
    turns = turns_of(path)
    check(done.returncode == 0 and len(turns) == len(answers), f"{name}: {len(turns)} answers, as many turns",
          (len(answers), done.stderr, g.said))
    fits = [turn["fits"] for turn in turns.values() if "fits" in turn]
    check(fits == [True] * n_fits, f"{name}: {n_fits} fit", turns)
    children = sum(turn.get("parent") is not None for turn in turns.values())
    check(children == n_children and not not_gone_on(turns), f"{name}: {children} continue from what was sampled",
          turns)


def main():
    tnk, folder, *only = sys.argv[1:]
    if tnk == "--play":
        act(folder)
        return
    with tempfile.TemporaryDirectory() as scratch:
        for environment, packages in PACKAGES.items():
            names = [name for name in PLAYS if PLAYS[name][1] == environment and (not only or name in only)]
            try:
                python = own_venv.make(pathlib.Path(folder).resolve() / environment, *packages)
            except own_venv.Unreachable as e:
                for name in names:
                    skip(name, e)
                continue
            for name in names:
                watch(tnk, name, python, pathlib.Path(scratch))
    plan()


main()
