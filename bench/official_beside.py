# SPDX-License-Identifier: MIT
"""The official client doing what bench_beside does; prints the same JSON."""
import asyncio
import json
import os
import sys
import time

import numpy as np
import tinker
from tinker import types

WARM_UP_S = 1


class Bench:
    def __init__(self, sampler):
        self.sampler = sampler
        self.delays = []
        self.is_measuring = False

    async def worker(self, seed):
        prompt = types.ModelInput.from_ints(list(range(1, 9)))
        while True:
            seed += 1000
            params = types.SamplingParams(max_tokens=8, seed=seed)
            result = await self.sampler.sample(prompt=prompt, num_samples=1, sampling_params=params)
            if self.is_measuring:
                low, middle, high = result.sequences[0].tokens[:3]
                self.delays.append((time.monotonic_ns() - (low | middle << 21 | high << 42)) / 1e6)


def make_data(n, length):
    tokens = (np.arange(length, dtype=np.int64) * 7919) % 150000
    inputs = {"target_tokens": types.TensorData.from_numpy(tokens),
              "weights": types.TensorData.from_numpy(np.ones(length, np.float32))}
    return [types.Datum(model_input=types.ModelInput.from_ints(tokens.tolist()), loss_fn_inputs=inputs)] * n


async def main():
    n_samples, n, length = (int(a) for a in sys.argv[1:4])
    data = make_data(n, length)
    service = tinker.ServiceClient()
    training = await service.create_lora_training_client_async(base_model="tnk/byte-lm")
    bench = Bench(await service.create_sampling_client_async(base_model="tnk/byte-lm"))
    workers = [asyncio.create_task(bench.worker(i)) for i in range(n_samples)]
    if workers:
        await asyncio.sleep(WARM_UP_S)
    bench.is_measuring = True
    began = time.monotonic_ns()
    result = await training.forward_backward(data, "cross_entropy")
    if asyncio.isfuture(result) or hasattr(result, "result_async"):
        result = await result.result_async()
    out = {"sent_ms": (result.metrics["arrived_ns:max"] - began) / 1e6, "n_delays": len(bench.delays)}
    if bench.delays:
        d = sorted(bench.delays)
        out.update(delay_p50_ms=d[len(d) // 2], delay_p99_ms=d[(len(d) * 99 + 99) // 100 - 1], delay_max_ms=d[-1])
    print(json.dumps(out), flush=True)
    os._exit(0)


asyncio.run(main())
