# SPDX-License-Identifier: MIT
"""What the observer of a service is called with. Prints a line for each promise.

usage: observes.py URL KEY
"""
import sys
import threading
import time

import tnk

URL, KEY = sys.argv[1:3]
DATUM = tnk.Datum(tnk.ModelInput.from_ints(list(b"hell")), {"target_tokens": list(b"ello"), "weights": [1.0] * 4})
PROMPT = tnk.ModelInput.from_ints(list(b"he"))
PARAMS = tnk.SamplingParams(max_tokens=1, seed=1)
ENDS = {"decoded", "failed"}


def is_true(what, name, why=None):
    print("ok" if what else f"not ok {why!r:.2000}", "-", name, flush=True)


def service(observer):
    return tnk.ServiceClient(base_url=URL, api_key=KEY, observer=observer)


def settles(future):
    return type(future.exception(60)).__name__


def each_operation():
    """The events of each kind of operation, in their order."""
    events, names = [], []
    one = service(lambda event: (events.append(event), names.append(threading.current_thread().name)))
    training = one.create_lora_training_client("tnk/byte-lm", 8).result(60)
    sampler = training.save_weights_and_get_sampling_client().result(60)
    wrong = tnk.Datum(tnk.ModelInput.from_ints([104, 101]), {"target_tokens": [1 << 30, 1]})
    table = {
        "forward": (lambda: training.forward([DATUM]), "decoded"),
        "forward_backward": (lambda: training.forward_backward([DATUM]), "decoded"),
        "optim_step": (lambda: training.optim_step(tnk.AdamParams()), "decoded"),
        "save_weights": (lambda: training.save_state("observed"), "decoded"),
        "sample": (lambda: sampler.sample(PROMPT, 1, PARAMS), "decoded"),
        "wrong": (lambda: training.forward([wrong]), "failed"),
    }
    for call, _ in table.values():
        settles(call())
    one.close().result(60)
    # Events come in one order, so those of the closed service have been delivered.
    done = threading.Event()
    settles(service(lambda event: done.set()).create_sampling_client(base_model="tnk/byte-lm"))
    done.wait(60)
    by_operation = {}
    for event in tuple(events):
        by_operation.setdefault(event.operation, []).append(event)
    last = list(by_operation.values())[-len(table):]
    is_true(len(by_operation) >= len(table) + 2 and set(names) == {"tnk-observer"}, "one thread has the events of all", names)
    for (name, (_, end)), one in zip(table.items(), last):
        phases = [event.phase for event in one]
        ended = [event for event in one if event.phase in ENDS]
        is_true(phases[0] == "queued" and one[0].client and len(ended) == 1 and ended[0].phase == end
                and phases[-1] in (end, "delivered"), f"{name} begins and ends", one)
        is_true(ended[0].code == (None if end == "decoded" else "TNK_EFAILED"), f"{name}: the code of its end", ended)
        is_true("sent" in phases, f"{name} is sent", phases)
        is_true(all(event.name == one[0].name for event in one), f"{name} has one name", one)
    times = [event.time_ns for event in events]
    is_true(times == sorted(times) and times[0] > 0, "the clock does not go back")
    is_true(all(event.waits_for is None or event.phase == "waits" for event in events)
            and all(event.waits_for for event in events if event.phase == "waits"), "what waits says why")
    is_true(any(event.bytes > 0 and event.status == 200 for event in events if event.phase == "result"),
            "results have sizes and a status")


def raises():
    """An exception goes to the hook, and the next event comes, whatever the hook does."""
    seen, hooked = [], []

    def hook(args):
        hooked.append(args)
        raise RuntimeError("of the hook")
    threading.excepthook = hook

    def observer(event):
        seen.append(event)
        raise ValueError("of the observer")
    one = service(observer)
    settles(one.create_lora_training_client("tnk/byte-lm", 8))
    done = threading.Event()
    settles(service(lambda event: event.phase in ENDS and done.set()).create_sampling_client(base_model="tnk/byte-lm"))
    done.wait(60)
    is_true(len(seen) > 2 and len(hooked) == len(seen) and hooked[0].exc_type is ValueError, "exceptions go to the hook",
            (seen, hooked))
    for wrong in (1, "text"):
        try:
            service(wrong)
        except TypeError as error:
            is_true("observer must be callable" in str(error), "an observer is a function", error)


def drops():
    """A function that does not return does not hold operations; what is lost is counted."""
    may_run, ended, events = threading.Event(), threading.Event(), []

    def observer(event):
        may_run.wait()
        events.append(event)
        if event.name == "optim_step" and event.phase in ENDS:
            ended.set()
    one = service(observer)
    sampler = one.create_sampling_client(base_model="tnk/byte-lm").result(60)
    for _ in range(8):
        for future in [sampler.sample(PROMPT, 1, PARAMS) for _ in range(500)]:
            future.result(60)
    before = set(tnk.observe._functions)
    other = service(lambda event: None)
    other._handle  # opens it
    mine = set(tnk.observe._functions) - before
    other.close().result(60)
    may_run.set()
    # The end of a service comes in the order of the events, and takes no number with it.
    while mine & set(tnk.observe._functions):
        time.sleep(0.01)
    kept = len(events)
    training = one.create_lora_training_client("tnk/byte-lm", 8).result(60)
    training.optim_step(tnk.AdamParams()).result(60)
    ended.wait(60)
    lost = [(i, event.lost) for i, event in enumerate(events) if event.lost]
    is_true(kept > 16384 and len(lost) == 1 and lost[0][0] == kept and lost[0][1] > 1000,
            "the next event has the number of those that were dropped", (kept, lost[:5]))
    one.close().result(60)


def forgets():
    """The function of a closed service is gone, once its events have been delivered."""
    before = set(tnk.observe._functions)
    one = service(lambda event: None)
    settles(one.create_sampling_client(base_model="tnk/byte-lm"))
    mine = set(tnk.observe._functions) - before
    is_true(len(mine) == 1, "an open service has its function", mine)
    one.close().result(60)
    # Events come in one order, so this one is delivered later.
    done = threading.Event()
    settles(service(lambda event: done.set()).create_sampling_client(base_model="tnk/byte-lm"))
    done.wait(60)
    is_true(not mine & set(tnk.observe._functions), "a closed service keeps no function", tnk.observe._functions)


each_operation()
raises()
drops()
forgets()
# The end of the program: nothing of this is closed, and the function sees the ends.
may_end = threading.Event()
# After the runtime's end, from when on only the wait for the observer keeps the program.
tnk._future._at_end.insert(0, may_end.set)


def sees(event):
    if event.name == "forward_backward" and event.phase in ENDS:
        may_end.wait()
        print(event.phase, event.code, flush=True)


final = service(sees)
left = final.create_lora_training_client("tnk/byte-lm", 8).result(60)
for _ in range(20):
    left.forward_backward([DATUM])
print("the end", flush=True)
