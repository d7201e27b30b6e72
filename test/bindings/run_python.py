#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The module tnk for Python against a local server.

usage: run_python.py MODULE_DIR API_JSON LIBRARY TNK_COMMAND

Output is TAP, see test/support/tap.py.
"""
import asyncio
import os
import pathlib
import re
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from tap import check, plan

sys.dont_write_bytecode = True
MODULE, JSON, LIBRARY, TNK = (str(pathlib.Path(a).resolve()) for a in sys.argv[1:])
os.environ.update(TNK_API_JSON=JSON, TNK_LIBRARY=LIBRARY, no_proxy="*")
sys.path.insert(0, MODULE)
import tnk

TEXT = list(b"hell")
DATUM = tnk.Datum(tnk.ModelInput.from_ints(TEXT),
                  {"target_tokens": list(b"ello"), "weights": [1.0] * 4})


def trains(training):
    first = training.forward_backward([DATUM]).result()
    for _ in range(20):
        passed = training.forward_backward([DATUM], "cross_entropy")
        stepped = training.optim_step(tnk.AdamParams(learning_rate=1e-2))
    last = passed.result(60)
    stepped.result(60)
    check(last.metrics["loss:sum"] < first.metrics["loss:sum"] / 2, "the loss falls", (first, last))
    check(len(last.loss_fn_outputs) == 1 and len(last.loss_fn_outputs[0]["logprobs"]) == 4,
          "a pass has its outputs", last)


def samples(training):
    sampler = training.save_weights_and_get_sampling_client()
    params = tnk.SamplingParams(max_tokens=3, seed=1)
    got = [sampler.sample(tnk.ModelInput(list(b"he")), 2, params) for _ in range(50)]
    sequences = [s for one in got for s in one.result(60).sequences]
    check(len(sequences) == 100 and all(len(s.tokens) == len(s.logprobs) <= 3 for s in sequences),
          "samples have tokens and logprobs", sequences[:2])

    async def ask():
        return await asyncio.gather(*(sampler.sample_async(tnk.ModelInput(list(b"he")), 1, params) for _ in range(50)))
    awaited = asyncio.run(ask())
    check(len(awaited) == 50, "samples are awaited in asyncio")
    counts = []
    threads = [threading.Thread(target=lambda: counts.append(len(sampler.sample(
        tnk.ModelInput(list(b"he")), 1, params).result(60).sequences))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(counts == [1] * 8, "threads share a client", counts)


def fails(service, training):
    def code(call):
        try:
            call()
        except tnk.TnkError as error:
            return str(error)
        return ""
    bad = tnk.Datum(tnk.ModelInput(TEXT), {"target_tokens": [1]})
    check("target_tokens" in code(lambda: training.forward_backward([bad]).result(60)), "an error names what is wrong")
    check("no-such" in code(lambda: service.create_lora_training_client("no-such")), "an unknown model is refused")
    check("key" in code(lambda: tnk.ServiceClient(base_url="http://127.0.0.1:1", api_key="wrong")),
          "a wrong key is refused")
    service.close()
    check(code(lambda: training.optim_step().result(60)), "a closed service refuses")


def ended_by_exit(url):
    """A program that ends while operations run."""
    program = (f"import tnk; s = tnk.ServiceClient({url!r}, 'tml-local');"
               "t = s.create_lora_training_client('tnk/byte-lm', 8);"
               "d = tnk.Datum(tnk.ModelInput([1, 2]), {'target_tokens': [2, 3]});"
               "f = [t.forward_backward([d]) for _ in range(20)];"
               "f[0].future().add_done_callback(lambda _: t.optim_step())")
    ended = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": MODULE},
                           capture_output=True, text=True, timeout=60)
    check(ended.returncode == 0 and not ended.stderr, "a program ends while operations run", ended)


def main():
    server = subprocess.Popen([TNK, "local", "--port", "0", "--exit-with-stdin"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    url = re.search(r"listening on (\S+)", server.stdout.readline())[1]
    service = tnk.ServiceClient(base_url=url, api_key="tml-local")
    training = service.create_lora_training_client(base_model="tnk/byte-lm", rank=8)
    trains(training)
    samples(training)
    path = training.save_state("kept").result(60)
    check(path.startswith("tinker://"), "a save has a path", path)
    fails(service, training)
    child = os.fork()
    if child == 0:
        try:
            tnk.ServiceClient(base_url=url, api_key="tml-local")
        except tnk.TnkError as error:
            os._exit(0 if "process" in str(error) else 1)
        os._exit(2)
    check(os.waitpid(child, 0)[1] == 0, "a forked child is told so")
    ended_by_exit(url)
    server.stdin.close()
    server.wait(20)
    plan()


main()
