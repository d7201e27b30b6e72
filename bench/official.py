"""The official client doing what bench_samples does; prints the same JSON."""
import argparse
import asyncio
import json
import resource
import time


def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def rss_kib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() // 1024


async def watch(state):
    """The longest time that the loop did not get to us."""
    last = time.perf_counter()
    while not state["done"]:
        await asyncio.sleep(0.001)
        now = time.perf_counter()
        state["stall"] = max(state["stall"], now - last - 0.001)
        last = now


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--in-flight", type=int, default=2000)
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=8)
    args = parser.parse_args()

    import tinker
    from tinker import types

    service = tinker.ServiceClient()
    sampler = await service.create_sampling_client_async(base_model="tnk/byte-lm")
    prompt = types.ModelInput.from_ints([32 + i % 90 for i in range(args.prompt)])
    state = {"stall": 0.0, "done": False, "most": 0}
    left = iter(range(args.samples))

    async def worker():
        for i in left:
            params = types.SamplingParams(max_tokens=args.tokens, seed=i)
            await sampler.sample_async(prompt=prompt, num_samples=1, sampling_params=params)

    before = rss_kib()
    watcher = asyncio.create_task(watch(state))
    start, start_cpu = time.perf_counter(), cpu()
    tasks = [asyncio.create_task(worker()) for _ in range(min(args.in_flight, args.samples))]
    await asyncio.sleep(0.5)
    state["most"] = rss_kib()
    await asyncio.gather(*tasks)
    wall, used = time.perf_counter() - start, cpu() - start_cpu
    state["done"] = True
    await watcher
    print(json.dumps({
        "samples": args.samples, "in_flight": args.in_flight, "failed": 0,
        "wall_s": round(wall, 3), "cpu_s": round(used, 3),
        "per_s": round(args.samples / wall), "per_cpu_s": round(args.samples / used),
        "stall_ms": round(state["stall"] * 1000, 2),
        "kib_per_sample": round((max(state["most"], rss_kib()) - before) / min(args.in_flight, args.samples), 2),
        "version": tinker.__version__}))


asyncio.run(main())
