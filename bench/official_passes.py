# SPDX-License-Identifier: MIT
"""The official client doing what bench_passes does; prints the same JSON. It is
given numpy arrays where it accepts them, which is its fastest way. With `arrays`, which
only the types of tnk accept, the model inputs are arrays too."""
import asyncio
import json
import os
import sys
import time

import numpy as np
import tinker
from tinker import types

import official_measure as measure


def make_batch(n, length, loss):
    names = ["weights"] if loss == "cross_entropy" else ["logprobs", "advantages"]
    tokens = (np.arange(n * length, dtype=np.int64) * 7919) % 150000
    values = (1.0 / (1 + np.arange(n * length) % 13)).astype(np.float32)
    data = []
    for i in range(n):
        part = slice(i * length, (i + 1) * length)
        inputs = {"target_tokens": types.TensorData.from_numpy(tokens[part])}
        for name in names:
            inputs[name] = types.TensorData.from_numpy(values[part])
        ids = tokens[part].astype(np.int32) if "arrays" in sys.argv else tokens[part].tolist()
        data.append(types.Datum(model_input=types.ModelInput.from_ints(ids), loss_fn_inputs=inputs))
    return data


async def watched(training, data, loss):
    watch = measure.Watch()
    await asyncio.sleep(0.1)
    watch.begin()
    result = await training.forward_backward(data, loss)
    return result, watch.result()


def main():
    n, length, loss = (sys.argv[1:] + ["256", "4096", "cross_entropy"][len(sys.argv) - 1:])[:3]
    data = make_batch(int(n), int(length), loss)
    training = tinker.ServiceClient().create_lora_training_client(base_model="tnk/byte-lm").result()
    stalls = {}
    measure.reset_peak()
    before = measure.status_kib("VmRSS:")
    used, start, start_ns = measure.cpu(), time.perf_counter(), time.monotonic_ns()
    if "stall" in sys.argv:
        result, stalls = asyncio.run(watched(training, data, loss))
    else:
        result = training.forward_backward(data, loss).result()
    wall, used = time.perf_counter() - start, measure.cpu() - used
    print(json.dumps({
        "tokens": int(n) * int(length), "loss": loss, "cpu_ms": round(used * 1e3, 2), "wall_ms": round(wall * 1e3, 2),
        "sent_ms": round((result.metrics["arrived_ns:max"] - start_ns) / 1e6, 2),
        "peak_mib": round((measure.status_kib("VmHWM:") - before) / 1024, 1), **stalls}), flush=True)
    os._exit(0)


main()
