#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tnk gateway under the official clients of OpenAI and Anthropic for Python and
for Node, as they are.

usage: clients.py TNK_COMMAND FOLDER

FOLDER gets a virtual environment with the packages, of PyPI, and those of npm,
which a later run finds there. Out of reach of PyPI: status 77, with the reason;
without Node or npm's packages its part is skipped. Output is TAP, see
test/support/tap.py.
"""
import json
import pathlib
import select
import socket
import sys
import tempfile
import threading

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[2] / name) for name in ("gateway", "support")]
import packages
from gateway import CALLING, Client, gateway, local, not_gone_on, records, turns_of
from node_packages import node_folder, run_node
from tap import check, plan, skip

CALL = ("<think>I must ask.</think>Let me see.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": "
        "{\"city\": \"Zürich\"}}\n</tool_call>")
PLACE = ('{"name": "Zürich", "kind": "city", "size": {"people": 400000}, "near": [{"name": "Uster", "kind": "town", '
         '"size": {"people": 35000}, "near": [], "tags": [], "since": null}], "tags": ["lake"], "since": "1218-01-01"}')
SAID = "It is warm in Zürich."
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FAULTS = "seed=7,mild=5%"


def node_speaks(folder, url, calls):
    where, why = node_folder(folder)
    if where is None:
        skip("node", why)
        return
    done = run_node(where, "clients.mjs", url, calls)
    check(done.returncode == 0 and done.stdout.count("ok") >= 10, "node", done.stdout + done.stderr)


def openai_speaks(url):
    import openai
    client = openai.OpenAI(base_url=url + "/v1", api_key="any:openai", max_retries=5)
    check(client.models.list().data[0].id == "tnk/byte-lm", "openai: models")
    ask = {"model": "tnk/byte-lm", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 12}
    a = client.chat.completions.create(**ask, n=2, seed=3, logprobs=True, top_logprobs=3)
    check(len(a.choices) == 2 and a.choices[0].logprobs.content[0].top_logprobs, "openai: choices", a)
    said = ""
    for chunk in client.chat.completions.create(**ask, seed=3, stream=True,
                                                stream_options={"include_usage": True}):
        if chunk.choices:
            said += chunk.choices[0].delta.content or ""
    check(said == a.choices[0].message.content and chunk.usage.total_tokens > 0, "openai: a stream", said)
    with client.chat.completions.stream(**ask, seed=3) as stream:
        try:
            last = stream.get_final_completion()
        except openai.LengthFinishReasonError as e:  # as the package wants it
            last = e.completion
    check(last.choices[0].message.content == said, "openai: its helper", last)
    a = client.completions.create(model="m", prompt="Once", max_tokens=5, logprobs=2, seed=1)
    b = "".join(c.choices[0].text for c in client.completions.create(
        model="m", prompt="Once", max_tokens=5, seed=1, stream=True))
    check(a.choices[0].text == b and len(a.choices[0].logprobs.tokens) <= 5, "openai: completions", a)
    a = client.responses.create(model="m", input="Hello", max_output_tokens=6, instructions="Be brief.")
    b = client.responses.create(model="m", input="And?", max_output_tokens=6, previous_response_id=a.id)
    check(b.usage.input_tokens > a.usage.total_tokens, "openai: responses", b)
    kinds = []
    with client.responses.stream(model="m", input="Hello", max_output_tokens=6) as stream:
        for event in stream:  # its helper knows no end at the limit
            kinds.append(event.type)
    check(kinds[0] == "response.created" and kinds[-1] == "response.incomplete" and
          event.response.output_text, "openai: responses, a stream", kinds)
    for wrong, kind in (({"temperature": -1}, openai.BadRequestError), ({"n": 0}, openai.BadRequestError)):
        try:
            client.chat.completions.create(**ask, **wrong)
            check(False, "openai: refusals")
        except kind as e:
            check(e.param in wrong, f"openai: refuses {wrong}", e)


def anthropic_speaks(url):
    import anthropic
    client = anthropic.Anthropic(base_url=url, api_key="any:anthropic", max_retries=5)
    ask = {"model": "tnk/byte-lm", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 12}
    a = client.messages.create(**ask, system="Be brief.", extra_body={"temperature": 0.5, "top_k": 20})
    check(a.content[0].type == "text" and a.usage.output_tokens > 0, "anthropic: a message", a)
    with client.messages.stream(**ask) as stream:
        said = "".join(stream.text_stream)
        last = stream.get_final_message()
    check(last.content[0].text == said and last.stop_reason == "max_tokens", "anthropic: a stream", last)
    check(client.models.list().data[0].id == "tnk/byte-lm", "anthropic: models")
    try:
        client.messages.create(**ask, tool_choice={"type": "any"})
        check(False, "anthropic: refusals")
    except anthropic.BadRequestError as e:
        check("tool_choice" in str(e), "anthropic: refuses by name", e)


def openai_calls(url, stream):
    import openai
    client = openai.OpenAI(base_url=f"{url}/s/openai{stream}/v1", api_key="any")
    tools = [{"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}]
    talk = [{"role": "user", "content": "Weather?"}]

    def ask():
        how = {"model": "m", "messages": talk, "tools": tools, "max_tokens": 400}
        if not stream:
            return client.chat.completions.create(**how)
        with client.chat.completions.stream(**how) as s:
            return s.get_final_completion()
    a = ask().choices[0]
    check(a.finish_reason == "tool_calls" and json.loads(a.message.tool_calls[0].function.arguments) ==
          {"city": "Zürich"}, f"openai: a call, stream {stream}", a)
    talk += [a.message.to_dict(), {"role": "tool", "tool_call_id": a.message.tool_calls[0].id, "content": "warm"}]
    check(ask().choices[0].message.content == SAID, "openai: its result")


def responses_call(url):
    import openai
    client = openai.OpenAI(base_url=f"{url}/s/responses/v1", api_key="any")
    tools = [{"type": "function", "name": "weather", "parameters": PARAMETERS, "strict": False}]
    a = client.responses.create(model="m", input="Weather?", tools=tools, max_output_tokens=400)
    call = [item for item in a.output if item.type == "function_call"][0]
    check(json.loads(call.arguments) == {"city": "Zürich"}, "openai: a call of responses", a)
    b = client.responses.create(model="m", tools=tools, max_output_tokens=400, previous_response_id=a.id, input=[
        {"type": "function_call_output", "call_id": call.call_id, "output": "warm"}])
    check(b.output_text == SAID, "openai: its result", b)


def anthropic_calls(url, stream):
    import anthropic
    client = anthropic.Anthropic(base_url=f"{url}/s/anthropic{stream}", api_key="any")
    tools = [{"name": "weather", "input_schema": PARAMETERS}]
    talk = [{"role": "user", "content": "Weather?"}]

    def ask():
        how = {"model": "m", "messages": talk, "tools": tools, "max_tokens": 400}
        if not stream:
            return client.messages.create(**how)
        with client.messages.stream(**how) as s:
            return s.get_final_message()
    a = ask()
    call = [block for block in a.content if block.type == "tool_use"][0]
    check(a.stop_reason == "tool_use" and call.input == {"city": "Zürich"}, f"anthropic: a call, stream {stream}", a)
    talk += [{"role": "assistant", "content": [block.to_dict() for block in a.content]},
             {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "warm"}]}]
    a = ask()
    check(a.content[0].text == SAID, "anthropic: its result", a)


def anthropic_runs(url):
    """The loop of the package, which would start a thread at the server."""
    import anthropic

    @anthropic.beta_tool
    def weather(city: str) -> str:
        """The weather of a city."""
        return f"warm in {city}"

    client = anthropic.Anthropic(base_url=f"{url}/s/runner", api_key="any")
    a = client.beta.messages.tool_runner(model="m", max_tokens=400, tools=[weather],
                                         messages=[{"role": "user", "content": "Weather?"}]).until_done()
    check(a.content[0].text == SAID, "anthropic: a tool runner", a)


def forced_calls(url):
    """What the model has drawn is the end of the call alone."""
    import anthropic
    import openai
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="any")
    tools = [{"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}]
    ask = {"model": "m", "messages": [{"role": "user", "content": "Weather?"}], "max_tokens": 400}
    named = {"type": "function", "function": {"name": "weather"}}
    a = client.chat.completions.create(**ask, tools=tools, tool_choice=named).choices[0].message.tool_calls
    with client.chat.completions.stream(**ask, tools=tools, tool_choice="required") as s:
        b = s.get_final_completion().choices[0].message.tool_calls
    check([(c.function.name, json.loads(c.function.arguments)) for c in a + b] ==
          [("weather", {"city": "Zürich"})] * 2, "openai: a call that must be", (a, b))
    a = client.responses.create(model="m", input="Weather?", max_output_tokens=400, tool_choice={
        "type": "function", "name": "weather"}, tools=[{"type": "function", "name": "weather", "strict": False,
                                                         "parameters": PARAMETERS}])
    check(a.output[0].name == "weather" and json.loads(a.output[0].arguments) == {"city": "Zürich"},
          "openai: one of responses", a)
    client = anthropic.Anthropic(base_url=url, api_key="any")
    for choice in ({"type": "any"}, {"type": "tool", "name": "weather"}):
        with client.messages.stream(**ask, tools=[{"name": "weather", "input_schema": PARAMETERS}],
                                    tool_choice=choice) as s:
            a = s.get_final_message()
        check(a.content[0].type == "tool_use" and a.content[0].input == {"city": "Zürich"}, f"anthropic: {choice}", a)


def check_record(path):
    """Whatever goes on from a turn begins with its very tokens. Returns how many do."""
    turns = turns_of(path)
    check(not not_gone_on(turns), "what goes on begins with what was sampled")
    return sum(turn.get("parent") is not None for turn in turns.values())


def models():
    """What a program wants to get, as types."""
    import datetime
    import typing
    import pydantic

    class Size(pydantic.BaseModel):
        people: int = pydantic.Field(ge=0, description="How many live there.")

    class Place(pydantic.BaseModel):
        name: str
        kind: typing.Literal["city", "town"]
        size: Size
        near: typing.List["Place"] = []
        tags: typing.List[str] = []
        since: typing.Optional[datetime.date] = None

    Place.model_rebuild(_types_namespace={"Place": Place})
    return Place


def parses(url):
    """The default calls for structured output."""
    import anthropic
    import openai
    place = models()
    want = place.model_validate_json(PLACE)
    client = openai.OpenAI(base_url=url + "/v1", api_key="any:parse")
    ask = {"model": "m", "messages": [{"role": "user", "content": "Where?"}]}
    a = client.chat.completions.parse(**ask, response_format=place)
    check(a.choices[0].message.parsed == want, "openai: chat.completions.parse", a)
    with client.chat.completions.stream(**ask, response_format=place) as stream:
        a = stream.get_final_completion()
    check(a.choices[0].message.parsed == want, "openai: chat.completions.stream", a)
    a = client.responses.parse(model="m", input="Where?", text_format=place)
    check(a.output_parsed == want, "openai: responses.parse", a)
    with client.responses.stream(model="m", input="Where?", text_format=place) as stream:
        a = stream.get_final_response()
    check(a.output_parsed == want, "openai: responses.stream", a)
    client = anthropic.Anthropic(base_url=url, api_key="any:parse")
    a = client.messages.parse(**ask, max_tokens=999, output_format=place)
    check(a.parsed_output == want, "anthropic: messages.parse", a)


class Cutter:
    """A proxy that cuts each second response."""

    def __init__(self, url):
        host, port = url.split("/")[2].split(":")
        self.to = host, int(port)
        self.n = 0
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            peer, _ = self.socket.accept()
            threading.Thread(target=self.carry, args=(peer,), daemon=True).start()

    def carry(self, peer):
        is_new = False  # a request is there whose response has not begun
        with peer, socket.create_connection(self.to) as other:
            while True:
                for end in select.select([peer, other], [], [])[0]:
                    data = end.recv(65536)
                    if end is other and is_new:
                        is_new = False
                        self.n += 1
                        if self.n % 2:
                            return
                    if not data:
                        return
                    is_new = is_new or end is peer
                    (other if end is peer else peer).sendall(data)


def retries(url, drawn, path):
    """Responses are lost, and the SDKs repeat their requests by default."""
    import anthropic
    import openai
    through = Cutter(url)
    n_drawn, n_turns = len(records(drawn)), len(turns_of(path))
    client = openai.OpenAI(base_url=through.url + "/v1", api_key="any:retry")
    talk = {"model": "m", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 5}
    client.chat.completions.create(**talk)
    client.responses.create(model="m", input="Hello", max_output_tokens=5)
    for chunk in client.chat.completions.create(**talk, stream=True):
        pass
    client.chat.completions.create(**talk, extra_headers={"Idempotency-Key": "mine"})
    anthropic.Anthropic(base_url=through.url, api_key="any:retry").messages.create(**talk)
    check(through.n == 10, "each response was lost once", through.n)
    check(len(records(drawn)) - n_drawn == 5, "five samples for five calls", len(records(drawn)) - n_drawn)
    check(len(turns_of(path)) - n_turns == 5, "and five turns", len(turns_of(path)) - n_turns)


def main():
    tnk, folder = sys.argv[1:3]
    packages.enter(folder)
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "record"
        with local(tnk, "--faults", FAULTS) as service, gateway(tnk, service, "--record", path) as g:
            openai_speaks(g.url)
            anthropic_speaks(g.url)
        check(check_record(path) >= 1, "recorded")
        lines = pathlib.Path(scratch) / "answers"
        lines.write_text(json.dumps(CALL) + "\n" + json.dumps(SAID) + "\n")
        path = pathlib.Path(scratch) / "calls"
        with local(tnk, "--stub", "--stub-answers", lines) as service, \
                gateway(tnk, service, "--renderer", "qwen3", "--template", "plain", "--record", path) as g:
            for stream in (0, 1):
                openai_calls(g.url, stream)
                anthropic_calls(g.url, stream)
            responses_call(g.url)
            anthropic_runs(g.url)
            with local(tnk, "--faults", FAULTS) as real, gateway(tnk, real) as other:
                node_speaks(folder, other.url, g.url)
            check(Client(g.url).ask("GET", "/tnk/datums")[0] == 200, "examples")
        check(check_record(path) >= 5, "each result goes on behind its call")
        lines.write_text(json.dumps('"city": "Zürich"}}\n</tool_call>') + "\n")
        template = pathlib.Path(scratch) / "calling.jinja"
        template.write_text(CALLING)
        with local(tnk, "--stub", "--stub-answers", lines) as service, \
                gateway(tnk, service, "--renderer", "qwen3", "--template", template) as g:
            forced_calls(g.url)
        path = pathlib.Path(scratch) / "parsed"
        lines.write_text(json.dumps(PLACE) + "\n")
        with local(tnk, "--stub", "--stub-answers", lines) as service, gateway(tnk, service, "--record", path) as g:
            parses(g.url)
        turns = list(turns_of(path).values())
        check(len(turns) == 5 and all(turn["fits"] for turn in turns), "all of it fits", turns)
        path, drawn = pathlib.Path(scratch) / "retried", pathlib.Path(scratch) / "drawn"
        with local(tnk, "--sample-log", drawn) as service, gateway(tnk, service, "--record", path) as g:
            retries(g.url, drawn, path)
    plan()


main()
