# SPDX-License-Identifier: MIT
"""Samples without asyncio: so many futures in flight, whose results are read in their
order. Prints JSON; `python -m tnk run` runs it with the package tnk.

usage: official_threads.py SAMPLES IN_FLIGHT
"""
import collections
import json
import os
import sys
import time

import official_measure as measure


def main():
    import tinker
    from tinker import types

    n, in_flight = int(sys.argv[1]), int(sys.argv[2])
    sampler = tinker.ServiceClient().create_sampling_client(base_model="tnk/byte-lm")
    prompt = types.ModelInput.from_ints([32 + i % 90 for i in range(128)])
    pending = collections.deque()
    used, wall = measure.cpu(), time.perf_counter()
    for i in range(n):
        if len(pending) == in_flight:
            pending.popleft().result()
        params = types.SamplingParams(max_tokens=8, seed=i)
        pending.append(sampler.sample(prompt=prompt, num_samples=1, sampling_params=params))
    for future in pending:
        future.result()
    used, wall = measure.cpu() - used, time.perf_counter() - wall
    print(json.dumps({"samples": n, "per_cpu_s": round(n / used, 1), "per_s": round(n / wall, 1),
                      "peak_mib": round(measure.status_kib("VmHWM:") / 1024, 1)}), flush=True)
    os._exit(0)


main()
