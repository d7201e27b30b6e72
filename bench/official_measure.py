# SPDX-License-Identifier: MIT
"""What the programs with the official client measure with; see measure.h."""
import asyncio
import os
import resource
import time


def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def status_kib(name):
    with open("/proc/self/status") as file:
        return int(next(line for line in file if line.startswith(name)).split()[1])


def reset_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


class Watch:
    """The longest time for which the caller's loop did not get to us: in wall
    time, how much CPU time all threads of the process used meanwhile, and the most
    that the loop's own thread used."""

    STEP = 0.001

    def __init__(self):
        self.begin()
        self.task = asyncio.create_task(self.run())

    def begin(self):
        self.wall = self.used = self.own = 0.0
        self.mark()

    def mark(self):
        self.last = time.perf_counter(), time.process_time(), time.thread_time()

    def note(self):
        """Also of a stall that has not ended yet."""
        wall, used, own = self.last
        wall = time.perf_counter() - wall - self.STEP
        self.wall = max(self.wall, wall)
        self.used = max(self.used, min(wall, time.process_time() - used))
        self.own = max(self.own, time.thread_time() - own)

    async def run(self):
        while True:
            self.mark()
            await asyncio.sleep(self.STEP)
            self.note()

    def result(self, prefix=""):
        self.note()
        return {prefix + "stall_ms": round(self.wall * 1000, 2),
                prefix + "stall_cpu_ms": round(self.used * 1000, 2),
                prefix + "stall_own_ms": round(self.own * 1000, 2)}
