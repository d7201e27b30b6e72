#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The package tnk for Python against a local server, with its own types.

usage: run_python.py PACKAGE_DIR EXTENSION TNK_COMMAND [inside]

With `inside` it leaves out the cases whose calls are all made by other processes.
Output is TAP, see test/support/tap.py.
"""
import array
import asyncio
import gc
import os
import pathlib
import pickle
import re
import signal
import subprocess
import sys
import threading
import time

SUPPORT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SUPPORT / "support"))
from tap import check, plan

sys.path.insert(0, str(SUPPORT / "bindings"))
from python_package import KEY, TORCH, install, serve

sys.dont_write_bytecode = True
PACKAGE, EXTENSION, TNK = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
FOLDER = install(PACKAGE, EXTENSION)
sys.path.insert(0, str(FOLDER))
import tnk

DATUM = tnk.Datum(tnk.ModelInput.from_ints(list(b"hell")),
                  {"target_tokens": list(b"ello"), "weights": [1.0] * 4})
PROMPT = tnk.ModelInput.from_ints(list(b"he"))
PARAMS = tnk.SamplingParams(max_tokens=3, seed=1)
URL = ""


def run(program, *arguments, **more):
    """A program with the package, in a process of its own."""
    head = f"import sys, os, tnk\nURL = {URL!r}\nKEY = {KEY!r}\n"
    return subprocess.run([sys.executable, "-c", head + program, *arguments], capture_output=True, text=True,
                          timeout=120, check=False, **more)


def raised(call):
    try:
        call()
    except BaseException as error:
        return error
    return None


def trains(training):
    first = training.forward_backward([DATUM]).result()
    for _ in range(20):
        passed = training.forward_backward([DATUM], "cross_entropy")
        stepped = training.optim_step(tnk.AdamParams(learning_rate=1e-2))
    last = passed.result(60)
    check(stepped.result(60).metrics["step"] == 20, "steps are counted", stepped.result())
    check(last.metrics["loss:sum"] < first.metrics["loss:sum"] / 2, "the loss falls", (first, last))
    outputs = last.loss_fn_outputs
    check(len(outputs) == 1 and len(outputs[0]["logprobs"].data) == 4, "a pass has its outputs", last)
    check(training.forward([DATUM]).result(60).metrics["loss:sum"] > 0, "a forward pass has a loss")
    info = training.get_info()
    check(info.model_data.model_name == "tnk/byte-lm" and info.lora_rank == 8, "a client has its model's data", info)


class Index:
    """An integer of another type, as those of numpy."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value

    def __repr__(self):
        return f"Index({self.value})"


def reads_buffers(training):
    """The same numbers in each form give the same loss."""
    def loss(tokens, targets, weights):
        datum = tnk.Datum(tnk.ModelInput.from_ints(tokens), {"target_tokens": targets, "weights": weights})
        return training.forward([datum]).result(60).metrics["loss:sum"]

    numbers = [0.5, 1.0, 0.25, 2.0]
    wanted = loss(list(b"hell"), list(b"ello"), numbers)
    ids = array.array("i", list(b"hell"))
    made = tnk.TensorData
    check(loss(ids, list(b"ello"), numbers) == wanted, "tokens are read from a buffer")
    check(loss(ids, made(array.array("q", list(b"ello")), "int64", [4]), made(array.array("f", numbers), "float32", [4]))
          == wanted, "tensors are read from buffers")
    big = tnk.Datum(tnk.ModelInput.from_ints(list(b"hell")), {"target_tokens": list(b"ello"),
                                                              "weights": made([1.0] * 4, "float32", [2, 2])})
    error = raised(lambda: training.forward([big]).result(60))
    check(isinstance(error, ValueError) and "weights" in str(error), "a wrong shape is refused", error)
    check(loss([Index(token) for token in b"hell"], list(b"ello"), numbers) == wanted, "tokens may have __index__")
    for token, kind in ((-1, ValueError), (Index(-1), ValueError), (1 << 31, OverflowError), (1 << 70, OverflowError),
                        (None, TypeError), (1.5, TypeError)):
        error = raised(lambda token=token: loss([104, token, 108, 108], list(b"ello"), numbers))
        check(isinstance(error, kind), f"the token {token!r} is refused", error)
    error = raised(lambda: training.forward([tnk.Datum(tnk.ModelInput.from_ints([1 << 40]), {})]))
    check(isinstance(error, OverflowError), "a token above 32 bits is refused", error)
    error = raised(lambda: training.forward([tnk.Datum(tnk.ModelInput.from_ints(["a"]), {})]))
    check(isinstance(error, TypeError), "a token that is no number is refused", error)


def samples(training):
    sampler = training.save_weights_and_get_sampling_client().result(60)
    got = [sampler.sample(PROMPT, 2, PARAMS) for _ in range(50)]
    sequences = [s for one in got for s in one.result(60).sequences]
    check(len(sequences) == 100 and all(len(s.tokens) == len(s.logprobs) <= 3 for s in sequences),
          "samples have tokens and logprobs", sequences[:2])
    check(len({tuple(s.tokens) for s in sequences}) <= 2, "a seed repeats a sample")
    more = sampler.sample(PROMPT, 1, PARAMS, include_prompt_logprobs=True, topk_prompt_logprobs=2).result(60)
    check(more.prompt_logprobs[0] is None and len(more.prompt_logprobs) == 2, "prompts have logprobs", more)
    check(sampler.compute_logprobs(PROMPT).result(60) == more.prompt_logprobs, "logprobs are computed alone")
    check(sampler.get_base_model() == "tnk/byte-lm", "a sampler has its model's name")
    error = raised(lambda: sampler.sample(PROMPT, 1, PARAMS, prompt_logprobs_last_n=0, include_prompt_logprobs=True))
    check(isinstance(error, ValueError), "a wrong option raises at once", error)
    return sampler


def awaits(sampler):
    async def ask():
        started = [sampler.sample(PROMPT, 1, PARAMS) for _ in range(25)]
        both = await asyncio.gather(*(sampler.sample_async(PROMPT, 1, PARAMS) for _ in range(25)), *started)
        # Also a result that another thread started, and one that is waited for.
        outside = await asyncio.to_thread(sampler.sample, PROMPT, 1, PARAMS)
        return both + [await outside, sampler.sample(PROMPT, 1, PARAMS).result(60)]
    for _ in range(3):
        awaited = asyncio.run(ask())
        check(len(awaited) == 52, "samples are awaited in asyncio")
    earlier = sampler.sample(PROMPT, 1, PARAMS)

    async def later():
        return await earlier
    check(asyncio.run(later()).sequences, "a result that began outside of asyncio is awaited")

    async def left():
        return sampler.sample(PROMPT, 1, PARAMS)
    check(asyncio.run(left()).result(60).sequences, "a result outlives its loop")

    async def at_once():
        started = [sampler.sample(PROMPT, 1, PARAMS) for _ in range(200)]
        time.sleep(0.2)  # They have probably arrived.
        counts = [0]
        while counts[-1] < len(started):
            await asyncio.sleep(0)
            counts.append(sum(future.done() for future in started))
        return [after - before for before, after in zip(counts, counts[1:])]
    settled = asyncio.run(at_once())
    check(max(settled) <= 32, "a turn of a loop takes few results", settled)
    names = [thread.name for thread in threading.enumerate()]

    async def plain():
        await asyncio.gather(*(sampler.sample(PROMPT, 1, PARAMS) for _ in range(10)))
        return [thread.name for thread in threading.enumerate()]
    check(asyncio.run(plain()) == names, "asyncio needs no thread", names)


def threads_share(sampler):
    counts = []

    def work():
        futures = [sampler.sample(PROMPT, 1, PARAMS) for _ in range(20)]
        counts.append(sum(len(f.result(60).sequences) for f in futures))
    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(counts == [20] * 16, "threads share a client", counts)
    done = threading.Event()
    future = sampler.sample(PROMPT, 1, PARAMS).future()
    future.add_done_callback(lambda _: done.set())
    check(done.wait(60) and future.result().sequences, "a callback needs nobody who waits")
    inner = threading.Event()

    def callback(_):
        if sampler.sample(PROMPT, 1, PARAMS).result(60).sequences:
            inner.set()
    future = sampler.sample(PROMPT, 1, PARAMS)
    future.future().add_done_callback(callback)
    future.result(60)
    check(inner.wait(60), "a callback may wait for another result")


def threads_share_service():
    """Each call of a service, by two threads at once, on a service that neither has opened."""
    def trains_and_steps(service):
        training = service.create_lora_training_client("tnk/byte-lm", 8).result(60)
        training.forward_backward([DATUM])
        return training.optim_step(tnk.AdamParams()).result(60).metrics["step"] == 1

    calls = {
        "create and train": trains_and_steps,
        "create_sampling_client": lambda s: s.create_sampling_client(base_model="tnk/byte-lm").result(60),
        "create_rest_client": lambda s: s.create_rest_client().list_training_runs(limit=1).result(60),
        "get_session_id": lambda s: s.create_sampling_client(base_model="tnk/byte-lm").result(60) and s.get_session_id(),
        "dump": lambda s: s.dump(),
        "totals": lambda s: s.totals(),
        "set_budget": lambda s: s.set_budget(max_tokens=1 << 40) is None,
        "close": lambda s: s.dump() and s.close().result(60) is None,
    }
    for name, call in calls.items():
        service = tnk.ServiceClient(base_url=URL, api_key=KEY)
        start, found = threading.Barrier(2), []

        def work(call=call, service=service, start=start, found=found):
            start.wait()
            try:
                found.append(bool(call(service)))
            except RuntimeError as error:  # the other thread has closed it
                found.append("ServiceClient is closed" in str(error) and name == "close")
        both = [threading.Thread(target=work) for _ in range(2)]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
        check(found == [True, True], f"two threads share a service: {name}", found)
        service.close().result(60)


def cancels_much(sampler):
    """Operations that are canceled while their results are taken."""
    for _ in range(20):
        futures = [sampler.sample(PROMPT, 1, PARAMS) for _ in range(50)]
        errors = []
        canceler = threading.Thread(target=lambda: errors.append(raised(lambda: [(f.cancel(), f.explain()) for f in futures])))
        canceler.start()
        kinds = {type(f.exception(60)).__name__ for f in futures}
        canceler.join()
        if errors != [None]:
            kinds.add(repr(errors))
    check(kinds <= {"NoneType", "CancelledError"}, "operations are canceled on another thread", kinds)


def taken_together():
    """Of two results that are taken at once, the second is neither canceled nor explained while
    the first is read: its promise has been released."""
    ran = run("""
import asyncio
t = tnk.ServiceClient(base_url=URL, api_key=KEY).create_lora_training_client("tnk/byte-lm", 8).result(60)
first, second = t.optim_step(tnk.AdamParams()), t.optim_step(tnk.AdamParams())
async def third():  # It has a queue of its own, and ends after them.
    await t.optim_step(tnk.AdamParams())
asyncio.run(third())
seen, read = [], first._read
def reader(value):
    seen.append((second.done(), second.cancel(), type(second.explain())))
    return read(value)
first._read = reader
first.result(60), second.result(60)
assert seen == [(False, False, str)], seen
assert (second.cancel(), second.explain()) == (False, "it has ended")
""")
    check(ran.returncode == 0 and not ran.stderr, "a result that was taken is left alone", ran)


def leaves_nothing(sampler):
    """Loops that come and go leave no descriptors."""
    async def one():
        await sampler.sample(PROMPT, 1, PARAMS)

    def count():
        gc.collect()
        return len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
    asyncio.run(one())
    before = count()
    for _ in range(30):
        asyncio.run(one())
    check(count() <= before, "a loop that ends leaves no descriptors", (before, count()))


def cancels():
    """Of a server that has no answer for long."""
    with subprocess.Popen([TNK, "local", "--port", "0", "--exit-with-stdin", "--stub", "--hold-ms", "600000",
                           "--latency-ms", "600000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as slow:
        url = re.search(r"listening on (\S+)", slow.stdout.readline())[1]
        one = tnk.ServiceClient(base_url=url, api_key=KEY)
        training = one.create_lora_training_client("tnk/byte-lm")
        check(isinstance(raised(lambda: training.result(0.05)), TimeoutError), "a wait has a timeout")
        check(training.cancel(), "an operation is canceled")
        check(type(raised(lambda: training.result(60))).__name__ == "CancelledError", "and raises that")
        check(not training.cancel(), "and not twice")

        async def impatient():
            pending = one.create_lora_training_client("tnk/byte-lm")
            error = None
            try:
                await asyncio.wait_for(pending.coroutine(), 0.05)
            except TimeoutError as found:
                error = found
            return error, type(pending.exception(60)).__name__
        check(asyncio.run(impatient())[1] == "CancelledError", "a canceled task cancels its operation")
        waiting = one.create_lora_training_client("tnk/byte-lm")
        check(isinstance(waiting.explain(), str) and waiting.explain(), "a future explains what it waits for")
        one.close()
        check("closed" in str(raised(lambda: waiting.result(60))), "a closed service ends what runs")
        slow.stdin.close()


def custom_losses():
    """In a process that imports a torch."""
    (FOLDER / "torch.py").write_text(TORCH)
    ran = run("""
t = tnk.ServiceClient(base_url=URL, api_key=KEY).create_lora_training_client("tnk/byte-lm", 8).result()
d = tnk.Datum(tnk.ModelInput.from_ints(list(b"hell")), {"target_tokens": list(b"ello")})
def loss(data, logprobs):
    return logprobs[0].sum() * -1.0, {"mine": 7.0}
plain = t.forward([d]).result(60).metrics["loss:sum"]
passed = t.forward_backward_custom([d], loss)
stepped = t.optim_step(tnk.AdamParams(learning_rate=1e-2))
m = passed.result(60).metrics
assert abs(m["loss:sum"] - plain) < 1e-3 and m["mine"] == 7.0, m
custom = stepped.result(60).metrics["grad_norm"]
u = tnk.ServiceClient(base_url=URL, api_key=KEY).create_lora_training_client("tnk/byte-lm", 8).result()
u.forward_backward([tnk.Datum(d.model_input, {**d.loss_fn_inputs, "weights": [1.0] * 4})])
norm = u.optim_step(tnk.AdamParams(learning_rate=1e-2)).result(60).metrics["grad_norm"]
assert abs(custom - norm) < 1e-6 * norm, (custom, norm)
def bad(data, logprobs):
    raise KeyError("mine")
try:
    t.forward_backward_custom([d], bad).result(60)
except KeyError as error:
    print("raised", error)
assert t.forward([d]).result(60).metrics["loss:sum"] < plain
# The last one is still computed when the program ends.
t.forward_backward_custom([d], loss)
""")
    (FOLDER / "torch.py").unlink()
    check(ran.returncode == 0 and ran.stdout == "raised 'mine'\n", "custom losses run on a thread", ran)


def fails(service, training):
    bad = tnk.Datum(tnk.ModelInput.from_ints([1, 2, 3, 4]), {"target_tokens": [1]})
    error = raised(lambda: training.forward_backward([bad]).result(60))
    check(isinstance(error, tnk.TinkerError) and isinstance(error, ValueError) and "target_tokens" in str(error)
          and error.ran == "no" and error.code_name == "TNK_EINVAL", "an error names what is wrong", error)
    error = raised(lambda: service.create_lora_training_client("no-such").result(60))
    check(isinstance(error, tnk.RequestFailedError) and "no-such" in str(error), "an unknown model is refused", error)
    error = raised(lambda: service.create_rest_client().get_training_run("none").result(60))
    check(isinstance(error, tnk.NotFoundError) and error.status_code == 404, "a missing run is not found", error)
    copy = pickle.loads(pickle.dumps(error))
    check(type(copy) is type(error) and str(copy) == str(error), "an error can be pickled", copy)
    error = raised(lambda: tnk.ServiceClient(base_url="http://127.0.0.1:1", api_key="wrong")
                   .create_sampling_client(base_model="x"))
    check(isinstance(error, tnk.TinkerError) and "key" in str(error), "a wrong key is refused", error)
    error = raised(lambda: training.optim_step(None))
    check(isinstance(error, TypeError), "a step needs its parameters", error)
    error = raised(lambda: tnk.ServiceClient(base_url=URL, api_key=KEY, no_such=1).create_rest_client().whoami())
    check(isinstance(error, TypeError) and "no_such" in str(error), "an unknown option is named", error)


def other_calls(service, training, sampler):
    path = training.save_state("kept").result(60).path
    check(path.startswith("tinker://"), "a save has a path", path)
    rest = service.create_rest_client()
    runs = rest.list_training_runs(limit=5).result(60)
    check(training.model_id in [r.training_run_id for r in runs.training_runs] and runs.cursor.limit == 5,
          "runs are listed", runs)
    listed = rest.list_checkpoints(training.model_id).result(60).checkpoints
    check([c.tinker_path for c in listed if c.checkpoint_type == "training"] == [path], "checkpoints are listed",
          listed)
    check(rest.get_weights_info_by_tinker_path(path).result(60).lora_rank == 8, "weights have a description")
    again = service.create_training_client_from_state_with_optimizer(path).result(60)
    check(again.optim_step(tnk.AdamParams()).result(60).metrics["step"] > 20, "a state is restored with its optimizer")
    rest.delete_checkpoint_from_tinker_path(path).result(60)
    check(rest.list_checkpoints(training.model_id).result(60).checkpoints != listed, "a checkpoint is deleted")
    models = rest.get_server_capabilities().result(60).supported_models
    check("tnk/byte-lm" in [m.model_name for m in models], "models are listed", models)
    copy = pickle.loads(pickle.dumps(sampler))
    check(copy.sample(PROMPT, 1, PARAMS).result(60).sequences[0].tokens
          == sampler.sample(PROMPT, 1, PARAMS).result(60).sequences[0].tokens, "a sampler can be pickled")
    check('"counters"' in service.dump(True) or "requests" in service.dump(), "a service has a dump")
    check(service.totals()["n_trained_tokens"] > 0, "tokens are counted", service.totals())
    service.set_budget(max_tokens=service.totals()["n_trained_tokens"] + service.totals()["n_prompt_tokens"])
    error = raised(lambda: training.forward([DATUM]).result(60))
    check(getattr(error, "code_name", "") == "TNK_EBUDGET", "a budget is kept", error)
    service.set_budget()


def ends():
    """Programs that end while operations run, by themselves and by a signal."""
    begin = """
t = tnk.ServiceClient(base_url=URL, api_key=KEY).create_lora_training_client("tnk/byte-lm", 8)
d = tnk.Datum(tnk.ModelInput.from_ints([1, 2]), {"target_tokens": [2, 3]})
f = [t.result().forward_backward([d]) for _ in range(20)]
"""
    ran = run(begin)
    check(ran.returncode == 0 and not ran.stderr, "a program ends while operations run", ran)
    ran = run(begin + "f[0].future().add_done_callback(lambda _: t.optim_step(tnk.AdamParams()))")
    check(ran.returncode == 0 and not ran.stderr, "and while a callback starts others", ran)
    ran = run(begin + """
import asyncio
async def main():
    tasks = [asyncio.create_task(t.result().forward([d]).coroutine()) for _ in range(20)]
    await asyncio.sleep(0)
asyncio.run(main())
""")
    check(ran.returncode == 0 and not ran.stderr, "and while tasks await them", ran)


def interrupted():
    program = """
s = tnk.ServiceClient(base_url="http://127.0.0.1:9", api_key=KEY)
print("waits", flush=True)
s.create_lora_training_client("tnk/byte-lm", 8).result()
"""
    head = f"import tnk\nKEY = {KEY!r}\n"
    with subprocess.Popen([sys.executable, "-c", head + program], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as one:
        one.stdout.readline()
        one.send_signal(signal.SIGINT)
        text = one.communicate(timeout=60)[1]
    check("KeyboardInterrupt" in text and one.returncode in (1, -signal.SIGINT), "a wait is interrupted", text)


def forks():
    ran = run("""
s = tnk.ServiceClient(base_url=URL, api_key=KEY)
t = s.create_lora_training_client("tnk/byte-lm", 8).result()
d = tnk.Datum(tnk.ModelInput.from_ints([1, 2]), {"target_tokens": [2, 3]})
import warnings
warnings.simplefilter("ignore")  # newer versions warn of threads
child = os.fork()
if child == 0:
    try:
        t.forward([d]).result(60)
    except RuntimeError as error:
        assert "parent" in str(error), error
    else:
        os._exit(3)
    mine = tnk.ServiceClient(base_url=URL, api_key=KEY).create_lora_training_client("tnk/byte-lm", 8).result(60)
    mine.forward([d]).result(60)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
t.forward([d]).result(60)
""")
    check(ran.returncode == 0 and not ran.stderr, "a forked child has an error, and can begin anew", ran)
    ran = run("""
try:
    import _xxsubinterpreters as inter
except ImportError:
    import _interpreters as inter
i = inter.create()
inter.run_string(i, '''
try:
    import tnk
except ImportError as error:
    assert "interpreter" in str(error), error
else:
    raise AssertionError("imported")
''')
""")
    check(ran.returncode == 0, "a subinterpreter is refused with a reason", ran)


TRAINER = """
import time
s = tnk.ServiceClient(base_url=URL, api_key=KEY)
ledger = tnk.Ledger.open(s, sys.argv[1], every_steps=2).result(60)
first = 0
if ledger.last() is None:
    t = s.create_lora_training_client("tnk/byte-lm", 8, seed=1).result(60)
else:
    t = ledger.resume().result(60)
    first = ledger.resumed()["batch"]
print("from", first, flush=True)
d = tnk.Datum(tnk.ModelInput.from_ints(list(b"hell")), {"target_tokens": list(b"ello")})
for step in range(first, 8):
    passed = t.forward_backward([d])
    t.optim_step(tnk.AdamParams(learning_rate=1e-2)).result(60)
    print("loss", step, passed.result(60).metrics["loss:sum"], flush=True)
    if step == 4 and len(sys.argv) > 2:
        sys.stdin.read()  # until the kill
    if ledger.due(t):
        ledger.save(t, batch=step + 1).result(60)
        print("saved", step + 1, flush=True)
ledger.save(t, batch=8, is_final=True).result(60)
print("end", flush=True)
"""


def observes():
    """Its lines, and the ends of operations that the end of the program ends."""
    ran = subprocess.run([sys.executable, SUPPORT / "bindings/python/observes.py", URL, KEY], capture_output=True,
                         text=True, timeout=120, check=False)
    lines = ran.stdout.splitlines()
    check(ran.returncode == 0 and not ran.stderr and "the end" in lines, "a program observes", ran)
    for line in lines[:lines.index("the end")]:
        check(line.startswith("ok"), line.partition(" - ")[2], line)
    after = lines[lines.index("the end") + 1:]
    # The first ones may have had their results.
    check(len(after) == 20 and set(after) <= {"failed TNK_ECLOSED", "decoded None"}, "it sees the ends at its own",
          after)


def resumes():
    """A program that is killed after a step continues from its last save."""
    whole = run(TRAINER, str(FOLDER / "whole"))
    wanted = [line for line in whole.stdout.splitlines() if line.startswith("loss")]
    check(len(wanted) == 8 and whole.returncode == 0, "a run ends", whole)
    head = f"import sys, os, tnk\nURL = {URL!r}\nKEY = {KEY!r}\n"
    with subprocess.Popen([sys.executable, "-c", head + TRAINER, str(FOLDER / "killed"), "waits"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as one:
        lines = []
        for line in one.stdout:
            lines.append(line.strip())
            if line.startswith("loss 4"):
                one.kill()
    again = run(TRAINER, str(FOLDER / "killed"))
    lines += again.stdout.splitlines()
    check("from 4" in lines and again.returncode == 0, "a killed run resumes from its last save", (lines, again))
    found = {line.split()[1]: line for line in lines if line.startswith("loss")}
    check([found.get(str(i)) for i in range(8)] == wanted, "with the losses of the whole run", (found, wanted))


def installs():
    script = FOLDER / "script.py"
    script.write_text("""
import sys
import tinker
from tinker import types
from tinker.types import ModelInput
from tinker.lib.public_interfaces import APIFuture
assert sys.argv[1:] == ["--flag"], sys.argv
service = tinker.ServiceClient()
training = service.create_lora_training_client("tnk/byte-lm", rank=8)
datum = types.Datum(model_input=ModelInput.from_ints([1, 2]), loss_fn_inputs={"target_tokens": [2, 3]})
future = training.forward_backward([datum], "cross_entropy")
assert isinstance(future, APIFuture)
print(type(service).__module__, sorted(future.result().metrics))
try:
    service.create_rest_client().get_training_run("none").result()
except tinker.NotFoundError as error:
    print("not found")
""")
    env = {**os.environ, "TINKER_BASE_URL": URL, "TINKER_API_KEY": KEY}
    ran = subprocess.run([sys.executable, "-m", "tnk", "run", str(script), "--flag"], capture_output=True, text=True,
                         timeout=60, check=False, env=env)
    check(ran.stdout == "tnk._clients ['loss:sum']\nnot found\n", "a program of the official client runs", ran)
    ran = subprocess.run([sys.executable, "-m", "tnk"], capture_output=True, text=True, timeout=60, check=False)
    check(ran.returncode != 0 and ran.stderr.startswith("usage"), "without a script there is a usage", ran)


def documents():
    """The programs of the README and the guide, as they are."""
    root = SUPPORT.parent
    env = {**os.environ, "TINKER_BASE_URL": URL, "TINKER_API_KEY": KEY}
    n_blocks = 0
    for path in ("src/bindings/python/README.md", "examples/guides/python.md"):
        for block in re.findall(r"```python\n(.*?)```", (root / path).read_text(), re.S):
            n_blocks += 1
            ran = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, timeout=120, env=env,
                                 check=False, cwd=FOLDER)
            check(ran.returncode == 0 and ran.stdout and not ran.stderr, f"program {n_blocks} of {path} runs", ran)
    check(n_blocks == 8, "all programs of the documents were found", n_blocks)


def main():
    global URL
    server, URL = serve(TNK)
    service = tnk.ServiceClient(base_url=URL, api_key=KEY)
    training = service.create_lora_training_client(base_model="tnk/byte-lm", rank=8).result(60)
    trains(training)
    reads_buffers(training)
    sampler = samples(training)
    awaits(sampler)
    threads_share(sampler)
    threads_share_service()
    cancels_much(sampler)
    leaves_nothing(sampler)
    fails(service, training)
    other_calls(service, training, sampler)
    cancels()
    if sys.argv[4:] != ["inside"]:
        for case in (taken_together, custom_losses, ends, interrupted, forks, observes, resumes, installs, documents):
            case()
    service.close().result(60)
    error = raised(lambda: service.create_lora_training_client("tnk/byte-lm"))
    check("closed" in str(error), "a closed service refuses", error)
    error = raised(lambda: training.forward([DATUM]).result(60))
    check(error is not None, "and so do its clients", error)
    server.stdin.close()
    server.wait(20)
    plan()


main()
