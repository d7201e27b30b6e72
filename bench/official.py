# SPDX-License-Identifier: MIT
"""The official client doing what bench_samples does; prints the same JSON."""
import argparse
import asyncio
import json
import os
import time

import official_measure as measure


def arguments():
    parser = argparse.ArgumentParser()
    for name, value in [("samples", 2000), ("in-flight", 2000), ("prompt", 128), ("tokens", 8),
                        ("stall", 0), ("delays", 0)]:
        parser.add_argument("--" + name, type=int, default=value)
    return parser.parse_args()


class Samples:
    def __init__(self, args, sampler, types):
        self.args, self.sampler, self.types = args, sampler, types
        self.prompt = types.ModelInput.from_ints([32 + i % 90 for i in range(args.prompt)])
        self.left = iter(range(args.samples))
        self.delays = []
        self.first = None
        self.watch = None
        self.sent = {}

    def on_first(self):
        self.first = {"first_ns": time.monotonic_ns(), "first_cpu_ms": round(measure.cpu() * 1000, 2)}
        if self.watch:
            self.sent = self.watch.result("send_")
            self.watch.begin()

    async def worker(self):
        for i in self.left:
            params = self.types.SamplingParams(max_tokens=self.args.tokens, seed=i)
            result = await self.sampler.sample(prompt=self.prompt, num_samples=1, sampling_params=params)
            if self.args.delays:
                low, middle, high = result.sequences[0].tokens[:3]
                self.delays.append((time.monotonic_ns() - (low | middle << 21 | high << 42)) / 1e6)
            if self.first is None:
                self.on_first()

    async def run(self):
        if self.args.stall:
            self.watch = measure.Watch()
        await asyncio.gather(*[asyncio.create_task(self.worker())
                               for _ in range(min(self.args.in_flight, self.args.samples))])

    def result(self, wall, used):
        result = {"samples": self.args.samples, "in_flight": self.args.in_flight, "failed": 0,
                  "wall_s": round(wall, 3), "cpu_s": round(used, 3),
                  "per_s": round(self.args.samples / wall, 1), "per_cpu_s": round(self.args.samples / used, 1),
                  **self.first}
        if self.args.delays:
            d, n = sorted(self.delays), len(self.delays)
            result.update(delay_p50_ms=d[n // 2], delay_p99_ms=d[(n * 99 + 99) // 100 - 1], delay_max_ms=d[-1])
        if self.watch:
            result.update(self.sent, **self.watch.result())
        return result


async def main():
    args = arguments()
    import tinker
    from tinker import types

    service = tinker.ServiceClient()
    sampler = await service.create_sampling_client_async(base_model="tnk/byte-lm")
    samples = Samples(args, sampler, types)
    print(json.dumps({"rss_kib": measure.status_kib("VmRSS:"), "cpu_s": measure.cpu()}), flush=True)
    start, used = time.perf_counter(), measure.cpu()
    await samples.run()
    print(json.dumps(samples.result(time.perf_counter() - start, measure.cpu() - used)), flush=True)
    os._exit(0)


asyncio.run(main())
