# SPDX-License-Identifier: MIT
"""tnk.gateway: agents, keys, rewards, records, and every way to its end."""
import asyncio
import gc
import json
import pathlib
import pickle
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request

import tnk
from tap import check
from tnk import chat
from tnk.gateway import Gateway

KEY = "tml-local"
MODEL = "tnk/byte-lm"
TALK = [{"role": "user", "content": "Hi"}]


def service_of(url):
    return tnk.ServiceClient(base_url=url, api_key=KEY)


def ask(gateway, key=None, session=None, path="/v1/chat/completions", **more):
    """The status and the response."""
    body = {"model": "any", "max_tokens": 4, "messages": TALK, **more}
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    if session:
        headers["X-Tnk-Session"] = session
    request = urllib.request.Request(gateway.address + path, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def answers(url, folder):
    service = service_of(url)
    record = folder / "record"
    with Gateway(service, record=record, model="shown") as gateway:
        check(ask(gateway)[0] == 503, "without weights nothing is sampled")
        check(gateway.use(base_model=MODEL).result(60) is None, "weights are used")
        status, answer = ask(gateway, session="one")
        check(status == 200 and answer["choices"][0]["message"]["role"] == "assistant", "an agent gets an answer", answer)
        ask(gateway, session="two")
        gateway.reward(0.5, session="one")
        gateway.reward(1.5, id=answer["id"])
        lines = gateway.datums("one")
        check(len(lines) == 1 and lines[0]["turns"][0]["reward"] == 1.5 and lines[0]["turns"][0]["version"] == 1,
              "the record has its reward, and the latest counts", lines)
        check(len(gateway.datums()) == 2 and [d["session"] for d in gateway.datums(rewarded=True)] == ["one"],
              "sessions and rewards select")
        example = gateway.examples(rewarded=True)[0]
        advantages = example.datum.loss_fn_inputs["advantages"].data
        check(example.session == "one" and sorted(set(advantages)) == [0.0, 1.5] and example.datum.model_input_spans,
              "a record is training data", example)
        training = service.create_lora_training_client(MODEL, rank=8).result(60)
        passed = training.forward_backward([example.datum], "importance_sampling").result(60)
        check("loss:sum" in passed.metrics, "on which a model is trained", passed)
        sampler = training.save_weights_and_get_sampling_client().result(60)
        gateway.use(sampler).result(60)
        check(ask(gateway)[0] == 200 and gateway.stats()["version"] == 2, "new weights are used", gateway.stats())
        check(gateway.stats()["n_answered"] == 3, "requests are counted", gateway.stats())
    check(record.stat().st_size > 0, "a closed gateway has written its record")
    again = Gateway(service, record=record)
    check(len(again.datums()) == 3, "another one continues it")
    again.close().result(60)

    async def awaits():
        async with Gateway(service) as gateway:
            await gateway.use(base_model=MODEL)
            return await asyncio.to_thread(ask, gateway)
    check(asyncio.run(awaits())[0] == 200, "asyncio opens and closes one")
    with Gateway(service, template=chat.Template.from_text("{{ messages[0].content }}")) as gateway:
        gateway.use(base_model=MODEL).result(60)
        gc.collect()
        ask(gateway)
        ids = gateway.datums()[0]["model_input"]["chunks"][0]["tokens"]
        check(bytes(ids[:2]) == b"Hi", "a template without another name is kept", ids)
    service.close().result(60)


def keys(url):
    service = service_of(url)
    gateway = Gateway(service, key="agents-only", admin_key="administrator", usd_prompt=1.0, usd_sampled=1.0)
    gateway.use(base_model=MODEL).result(60)
    check(ask(gateway, "wrong")[0] == 401 and ask(gateway, "agents-only")[0] == 200, "a gateway has a key")
    made = gateway.create_key("mine", max_turns=2)
    check(made.key not in repr(made) and made.id in repr(made), "a key is not shown", made)
    check(ask(gateway, made.key)[0] == 200 and gateway.datums("mine"), "a key belongs to its session")
    check(ask(gateway, made.key, session="other")[0] == 403, "and to no other")
    turned = gateway.rotate_key(made.id)
    check(ask(gateway, made.key)[0] == 401 and ask(gateway, turned.key)[0] == 200, "a key is rotated")
    check(ask(gateway, turned.key)[0] == 403, "a limit is kept")
    listed = gateway.keys()
    check([k["session"] for k in listed] == ["mine"] and listed[0]["used"]["turns"] == 2
          and turned.key not in json.dumps(listed), "keys are listed without secrets", listed)
    gateway.revoke_key(made.id)
    check(ask(gateway, turned.key)[0] == 401, "a key is revoked")
    gateway.leave()
    gateway.drain()
    service.close().result(60)
    check("gateway is closed" in str(raised(gateway.stats)), "a service closes its gateways")
    check(gateway.close().result(60) is None, "and such a gateway can be closed")


def raised(call):
    try:
        call()
    except BaseException as error:
        return error
    return None


# (name, call of a service, exception, what the message has)
ERRORS = [
    ("a service that is none", lambda s: Gateway("x"), TypeError, "service must be a ServiceClient, not str"),
    ("a tokenizer that is none", lambda s: Gateway(s, tokenizer="x"), TypeError, "tokenizer must be"),
    ("a template that is none", lambda s: Gateway(s, template="x"), TypeError, "template must be"),
    ("a family", lambda s: Gateway(s, family="x"), ValueError, "family must be one of"),
    ("a format", lambda s: Gateway(s, formats="x"), ValueError, "formats must be one of"),
    ("an unknown option", lambda s: Gateway(s, no_such=1), TypeError, "no_such"),
    ("an option of a wrong type", lambda s: Gateway(s, key=7), TypeError, "expected a string, not 7"),
    ("a port", lambda s: Gateway(s, port=70000), tnk.TnkError, "port"),
    ("an address", lambda s: Gateway(s, host="example.com"), tnk.TnkError, "host"),
    ("an address without a key", lambda s: Gateway(s, host="0.0.0.0"), tnk.TnkError, "key"),
    ("a record that cannot be written", lambda s: Gateway(s, record="/nonexistent/record"), tnk.TnkError, "record"),
    ("weights of a wrong type", lambda s: Gateway(s).use(7), TypeError, "weights must be"),
    ("no weights", lambda s: Gateway(s).use(), ValueError, "weights or base_model"),
    ("weights that are not there", lambda s: Gateway(s).use("tinker://no/weights/no").result(60), tnk.TinkerError, ""),
    ("an unknown session's reward", lambda s: Gateway(s).reward(1.0, session="x"), tnk.TnkError, "no such response"),
    ("a reward that is not finite", lambda s: Gateway(s).reward(float("inf")), tnk.TnkValueError, "finite"),
    ("a reward that is no number", lambda s: Gateway(s).reward("x"), TypeError, ""),
    ("a key of an open gateway", lambda s: Gateway(s).create_key(), tnk.TnkValueError, "admin_key"),
    ("a key's limit", lambda s: Gateway(s, key="k").create_key(max_turns=-1), ValueError, "max_turns"),
    ("an unknown key", lambda s: Gateway(s, key="k").rotate_key("x"), tnk.TnkError, "no key with this id"),
    ("another unknown key", lambda s: Gateway(s, key="k").revoke_key("x"), tnk.TnkError, "no key with this id"),
    ("an unknown session", lambda s: Gateway(s).datums("x"), tnk.TnkError, "no such session"),
    ("a pickled gateway", lambda s: pickle.dumps(Gateway(s)), TypeError, "cannot be pickled"),
]
CLOSED = {
    "use": lambda g: g.use(base_model=MODEL),
    "reward": lambda g: g.reward(1.0),
    "create_key": lambda g: g.create_key(),
    "rotate_key": lambda g: g.rotate_key("x"),
    "revoke_key": lambda g: g.revoke_key("x"),
    "keys": lambda g: g.keys(),
    "datums": lambda g: g.datums(),
    "examples": lambda g: g.examples(),
    "stats": lambda g: g.stats(),
    "leave": lambda g: g.leave(),
    "drain": lambda g: g.drain(),
}


def errors(url):
    service = service_of(url)
    for name, call, kind, text in ERRORS:
        error = raised(lambda call=call: call(service))
        check(isinstance(error, kind) and text in str(error) and str(error), f"{name} is refused", repr(error))
    for by in ("itself", "its service"):
        owner = service_of(url)
        gateway = Gateway(owner, key="k")
        (gateway if by == "itself" else owner).close().result(60)
        for name, call in CLOSED.items():
            error = raised(lambda call=call, gateway=gateway: call(gateway))
            check("gateway is closed" in str(error), f"{name} of a gateway closed by {by}", repr(error))
        error = raised(lambda owner=owner: Gateway(owner))
        check(by == "itself" and error is None or "closed" in str(error), f"another gateway, closed by {by}", error)
        owner.close().result(60)
    # The gateways of the table are still open.
    service.close().result(60)


def orders(url):
    """A gateway and what it uses are dropped and closed in every order."""
    for order in ("stg", "gts", "tgs", "gst", "sgt", "tsg"):
        for is_closed in (False, True):
            service = service_of(url)
            objects = {"s": service, "t": chat.Template.from_text("{{ messages[0].content }}")}
            objects["g"] = Gateway(service, template=objects["t"])
            pending = objects["g"].use(base_model=MODEL)
            del service
            for name in order:
                one = objects.pop(name)
                if is_closed and name != "t":
                    one.close()
                del one
                gc.collect()
            error = pending.exception(60)
            check(not is_closed and error is None or is_closed, f"{order}, closed: {is_closed}", error)
    check(True, "objects go in every order")


def threads(url):
    """Threads use and close one gateway."""
    service = service_of(url)
    gateway = Gateway(service, key="k")
    gateway.use(base_model=MODEL).result(60)
    found = []

    def work():
        for _ in range(5):
            found.append(ask(gateway, "k")[0])
            gateway.stats(), gateway.datums(), gateway.keys()
    running = [threading.Thread(target=work) for _ in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    check(found == [200] * 20, "threads share a gateway", found)
    ended = []

    def close():
        error = raised(lambda: [gateway.stats() for _ in range(1000)])
        ended.append(error is None or "gateway is closed" in str(error))
        gateway.close().result(60)
    running = [threading.Thread(target=close) for _ in range(3)]
    for thread in running:
        thread.start()
    service.close().result(60)
    for thread in running:
        thread.join()
    check(ended == [True] * 3, "and close it while others use it", ended)


BEGIN = """
import sys, os, tnk
from tnk.gateway import Gateway
service = tnk.ServiceClient(base_url=sys.argv[1], api_key="tml-local")
gateway = Gateway(service, record=sys.argv[2])
gateway.use(base_model="tnk/byte-lm").result(60)
"""
# (name, program, what it writes)
ENDS = [
    ("a program that ends", "print(len(gateway.address) > 10)", "True\n"),
    ("one that drops it", "del gateway, service; print(1)", "1\n"),
    ("one that changes its weights", "gateway.use(base_model='tnk/byte-lm'); print(2)", "2\n"),
    ("a forked child", """
child = os.fork()
if child == 0:
    try:
        gateway.stats()
    except RuntimeError as error:
        print(error)
    gateway.close().result(1)
    sys.exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), gateway.stats()["version"])
""", "this gateway belongs to the parent process\n0 1\n"),
    ("a child with its own", """
child = os.fork()
if child == 0:
    mine = tnk.ServiceClient(base_url=sys.argv[1], api_key="tml-local")
    print(Gateway(mine).stats()["version"])
    sys.exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), gateway.stats()["version"])
""", "0\n0 1\n"),
]


def ends(url, folder):
    for i, (name, program, wanted) in enumerate(ENDS):
        ran = subprocess.run([sys.executable, "-u", "-c", BEGIN + program, url, str(folder / f"end-{i}")],
                             capture_output=True, text=True, timeout=60, check=False)
        check(ran.returncode == 0 and ran.stdout == wanted and not ran.stderr, f"{name} ends", ran)


def run(url):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        answers(url, folder)
        keys(url)
        errors(url)
        orders(url)
        threads(url)
        ends(url, folder)
