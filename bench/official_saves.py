# SPDX-License-Identifier: MIT
"""The official client doing what bench_saves does; prints the same JSON."""
import asyncio
import json
import os
import sys

import tinker

import official_measure as measure


async def main():
    service = tinker.ServiceClient()
    training = await service.create_lora_training_client_async(base_model="tnk/byte-lm")
    watch = measure.Watch()
    await asyncio.sleep(0.1)
    watch.begin()
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 5):
        await training.save_weights_and_get_sampling_client()
        await asyncio.sleep(0)
    await asyncio.sleep(0.1)
    print(json.dumps(watch.result()), flush=True)
    os._exit(0)


asyncio.run(main())
