# SPDX-License-Identifier: MIT
"""Each step of each operation of a service, and how long it takes.

    def on_event(event: tnk.observe.Event) -> None:
        if event.phase == "failed":
            print(event.name, event.code)

    service = tnk.ServiceClient(observer=on_event)

The function is called on one thread, which all services of the process share, in the order
of the steps of each service. So it may take its time and may call this package; operations
do not wait for it. If it is too slow, 16,384 events wait; further ones are dropped, and the
next event has their number in `lost`. An exception of the function goes to
threading.excepthook, and the next event follows. At the end of the program, the function
has up to five seconds for the events that wait.

An event contains no credential, no prompt and no body. The names and the meaning of the
phases are those of tnk/observe.h.
"""
from __future__ import annotations

import contextlib
import dataclasses
import itertools
import sys
import threading
from collections.abc import Callable
from typing import Any, Literal, get_args

from . import _future, _native

__all__ = ["Event", "Phase", "WaitsFor"]

Phase = Literal["queued", "waits", "sent", "accepted", "held", "result", "decoded", "failed", "delivered", "unknown"]
WaitsFor = Literal[
    "session",
    "turn",
    "slot",
    "bytes",
    "back_off",
    "token",
    "worker",
    "connection",
    "retry",
    "poll",
    "loss",
    "unknown",
]
# By the numbers of tnk/observe.h.
_PHASES: tuple[Phase, ...] = get_args(Phase)[:-1]
_WAITS: tuple[WaitsFor | None, ...] = (None, *get_args(WaitsFor)[:-1])
# How long the end of the program waits for the function, in seconds.
_LAST_S = 5.0


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """One step of one operation. Members that do not apply are 0 or None."""

    phase: Phase
    waits_for: WaitsFor | None  # with "waits" only
    operation: int  # from 1, in the order of the calls of the service
    time_ns: int  # of a clock that never goes back, that of time.monotonic_ns()
    name: str  # of the operation, such as "forward_backward"
    client: str | None  # with "queued": the id of the training or sampling client
    part: int  # index of the request, if the operation is split into several
    attempt: int  # at a request, or the poll for a result, from 1
    bytes: int  # of a body
    status: int  # of HTTP
    code: str | None  # with "failed" and "retry": the name of the error, such as "TNK_ECONN"
    request_id: str | None  # the service's
    span: int  # of the header traceparent
    lost: int  # events of all services that were dropped before this one


_keys = itertools.count(1)
_functions: dict[int, Callable[[Event], object]] = {}
_lock = threading.Lock()
_thread: threading.Thread | None = None


def add(function: Callable[[Event], object]) -> int:
    """A key for a service. The function is called until remove()."""
    global _thread
    with _lock:
        key = next(_keys)
        _functions[key] = function
        if _thread is None or not _thread.is_alive():
            thread = threading.Thread(target=_run, name="tnk-observer", daemon=True)
            try:
                thread.start()
            except BaseException:
                del _functions[key]
                raise
            _thread = thread
    return key


class Removed:
    """Waits for the end of a service, as a waiter of its future."""

    def __init__(self, key: int) -> None:
        self.key = key

    def release(self) -> None:
        remove(self.key)


def remove(key: int) -> None:
    """The service has closed: forget the function after the events that wait."""
    try:
        _native.end_events(key)
    except MemoryError:  # The function stays until the end of the program.
        pass


def _event(row: tuple[Any, ...]) -> Event:
    phase, waits_for, operation, time_ns, name, client, part, attempt, size, status, code, request_id, span, lost = row
    return Event(
        _PHASES[phase] if phase < len(_PHASES) else "unknown",
        _WAITS[waits_for] if waits_for < len(_WAITS) else "unknown",
        operation,
        time_ns,
        name,
        client,
        part,
        attempt,
        size,
        status,
        _native.error_name(code) if code else None,
        request_id,
        span,
        lost,
    )


def _call(key: int, row: tuple[Any, ...] | None) -> None:
    if row is None:
        _functions.pop(key, None)
        return
    function = _functions.get(key)
    if function is None:
        return
    try:
        function(_event(row))
    except BaseException:
        kind, value, trace = sys.exc_info()
        assert kind is not None
        # The hook may be the program's own. The other observers need this thread.
        with contextlib.suppress(BaseException):
            threading.excepthook(threading.ExceptHookArgs((kind, value, trace, threading.current_thread())))


def _run() -> None:
    while True:
        try:
            found = _native.next_events()
        except MemoryError:  # Those events are lost.
            continue
        if found is None:
            return
        for key, row in found:
            _call(key, row)


def _end() -> None:
    if _thread is not None:
        _thread.join(_LAST_S)


def _after_fork() -> None:
    global _thread, _lock
    _thread = None
    _lock = threading.Lock()
    _functions.clear()


_future._at_end.append(_end)


def _register_fork() -> None:
    import os

    os.register_at_fork(after_in_child=_after_fork)


_register_fork()
