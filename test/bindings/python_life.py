# SPDX-License-Identifier: MIT
"""A program whose allocations fail, one after the other, see preload.c.

usage: python_life.py URL FIRST STEP

It repeats its life and fails allocation FIRST of the binding, then FIRST + STEP, up to
the last one. With a STEP of 0 it lives once, and imports the package only then.
"""
import asyncio
import mmap
import os
import struct
import sys

URL, FIRST, STEP = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with open(os.environ["TNK_TEST_CONTROL"], "r+b") as file:
    CONTROL = mmap.mmap(file.fileno(), 24)
# Seconds. The library repeats some requests after a second.
LIMIT = 60


def fail_at(n):
    CONTROL[0:8] = struct.pack("q", n)


def has_failed():
    return struct.unpack("q", CONTROL[0:8])[0] <= 0


def close(service):
    try:
        service.close().result(LIMIT)
    except MemoryError:
        service.close().result(LIMIT)


def live():
    import tnk

    def loss(data, logprobs):
        return logprobs[0].sum() * -1.0, {"mine": 7.0}

    async def await_sample():
        return (await sampler.sample(prompt, 1, params)).sequences[0].tokens

    datum = tnk.Datum(tnk.ModelInput.from_ints(list(b"hell")), {"target_tokens": list(b"ello"), "weights": [1.0] * 4})
    prompt, params = tnk.ModelInput.from_ints(list(b"he")), tnk.SamplingParams(max_tokens=3, seed=1)
    events = []
    service = tnk.ServiceClient(base_url=URL, api_key="tml-local", observer=events.append)
    try:
        training = service.create_lora_training_client("tnk/byte-lm", 8).result(LIMIT)
        passed = training.forward_backward([datum])
        passed.explain()
        custom = training.forward_backward_custom([datum], loss)
        results = [passed.result(LIMIT).metrics["loss:sum"], custom.result(LIMIT).metrics["mine"]]
        sampler = training.save_weights_and_get_sampling_client().result(LIMIT)
        results.append(sampler.sample(prompt, 1, params).result(LIMIT).sequences[0].tokens)
        results.append(asyncio.run(asyncio.wait_for(await_sample(), LIMIT)))
        runs = service.create_rest_client().list_training_runs(limit=1).result(LIMIT)
        results.append(len(runs.training_runs))
        canceled = sampler.sample(prompt, 1, params)
        canceled.cancel()
        canceled.exception(LIMIT)
        return results
    finally:
        close(service)


def fails(n, wanted):
    """Return whether the life had that many allocations."""
    fail_at(n)
    try:
        results = live()
        if wanted is not None and results != wanted:
            sys.exit(f"allocation {n}: the results are wrong: {results}, not {wanted}")
    except TimeoutError as error:
        if not hasattr(error, "code_name"):
            sys.exit(f"allocation {n}: an operation does not end")
    except Exception as error:
        if not has_failed():
            raise
        print(f"# {n}: {error!r}")
    was_reached = has_failed()
    fail_at(0)
    return was_reached


wanted = live() if STEP > 0 else None
n = FIRST
while fails(n, wanted) and STEP > 0:
    n += STEP
print("ended at", n)
