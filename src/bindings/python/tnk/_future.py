# SPDX-License-Identifier: MIT
"""Futures, and the queues through which their results come.

Each asyncio loop has a queue, which the loop watches with add_reader(). All operations
that start elsewhere share another one. There a thread that waits for a result takes the
results of all others too, so no thread of our own runs, unless somebody wants callbacks.
"""
from __future__ import annotations

import atexit
import itertools
import sys
import threading
import time
import weakref
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from . import _native

if TYPE_CHECKING:
    import asyncio
    import concurrent.futures

T = TypeVar("T")

# The kinds of results, see native.h.
(NONE, HANDLE, PASS, SAMPLES, METRICS, PATH, LOGPROBS, PAGE, CAPABILITIES, SAVED) = range(10)
_BITS = 4
CLOSED = -50003  # TNK_ECLOSED
# A wait ends this often, so that a signal is seen on the main thread.
_SLICE_MS = 500

_PENDING: Any = object()


def _left(deadline: float | None) -> int:
    """Milliseconds to wait now."""
    if deadline is None:
        return _SLICE_MS
    return max(0, min(_SLICE_MS, int((deadline - time.monotonic()) * 1000 + 0.999)))


class Pump:
    """A queue, and the futures whose results it will deliver."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self.native = _native.Queue()
        self.futures: dict[int, APIFuture[Any]] = {}
        # Held while results are taken: their promises are released then, and must not
        # be canceled or explained. A finalizer may call us meanwhile.
        self.lock = threading.RLock()
        self._is_taking = False
        self._leader = threading.Lock()  # the one thread that takes
        self._followers: list[Any] = []
        self._has_thread = False
        self._is_ended = False
        self._loop = weakref.ref(loop) if loop is not None else None
        # So that no turn of a loop takes long: each result wakes a task, and what the task
        # does belongs to the same turn.
        self._batch = 512 if loop is None else 32
        if loop is not None:
            for fd in self.native.filenos():
                loop.add_reader(fd, self.on_readable)

    def on_readable(self) -> None:
        if self._leader.acquire(False):
            self._lead(0)

    def _lead(self, timeout_ms: int) -> None:
        """Take results, once. The caller has the leader's lock. Callbacks run when the lock has
        been released, so they may wait for other results."""
        deferred: list[Any] = []
        try:
            if timeout_ms > 0:
                self.native.wait(timeout_ms)
            self._take(deferred)
        finally:
            self._hand_over()
        for future, waiter in deferred:
            _copy(future, waiter)

    def _take(self, deferred: list[Any]) -> None:
        futures = self.futures
        with self.lock:
            self._is_taking = True
            try:
                done = self.native.take(self._batch)
                found = [(futures.pop(tag, None), status, value) for tag, status, value in done or ()]
            finally:
                self._is_taking = False
        for future, status, value in found:
            if future is not None:
                future._settle(status, value, deferred)
        if done is None:
            self._end()

    def has(self, tag: int) -> bool:
        """Return whether the operation can be canceled or explained. The caller has the lock."""
        return tag in self.futures and not self._is_taking

    def _end(self) -> None:
        """The runtime has stopped: nothing will come."""
        with self.lock:
            left, self.futures = self.futures, {}
            self._is_ended = True
        for future in left.values():
            future._settle(CLOSED, (CLOSED, "the runtime has stopped"))
        # The descriptor stays readable.
        loop = self._loop() if self._loop is not None else None
        if loop is not None and not loop.is_closed():
            for fd in self.native.filenos():
                loop.remove_reader(fd)

    def _hand_over(self) -> None:
        """Stop leading; another thread that waits may lead."""
        self._leader.release()
        while self._followers:
            try:
                self._followers.pop().release()
                return
            except (IndexError, RuntimeError):
                continue

    def wait(self, future: APIFuture[Any], timeout: float | None) -> bool:
        """Wait until the future is done; False after the timeout."""
        deadline = None if timeout is None else time.monotonic() + timeout
        mine = None
        try:
            while future._value is _PENDING:
                left = _left(deadline)
                if self._leader.acquire(False):
                    # Also without time left, what has come still counts.
                    self._lead(left)
                elif left > 0:
                    if mine is None:
                        mine = threading.Lock()
                        mine.acquire()
                        future._add_waiter(mine)
                    self._follow(mine, left)
                if left == 0:
                    break
        finally:
            if mine is not None:
                while mine in self._followers:
                    self._followers.remove(mine)
                # It may have been chosen as the next leader.
                if self._followers and self._leader.acquire(False):
                    self._hand_over()
        return future._value is not _PENDING

    def _follow(self, mine: Any, left_ms: int) -> None:
        """Wait until the leader has the result, or stops leading."""
        if mine not in self._followers:
            self._followers.append(mine)
        if self._leader.acquire(False):
            self._hand_over()
        else:
            mine.acquire(timeout=left_ms / 1000)

    def ensure_thread(self) -> None:
        """Results are taken although nobody waits."""
        with self.lock:
            if self._has_thread or self._is_ended:
                return
            self._has_thread = True
        threading.Thread(target=self._run, name="tnk-results", daemon=True).start()

    def _run(self) -> None:
        while not self._is_ended:
            if self._leader.acquire(timeout=_SLICE_MS / 1000):
                try:
                    self._lead(_SLICE_MS)
                except MemoryError:  # The results are still there.
                    pass

    @property
    def is_taken(self) -> bool:
        """Return whether a thread or a loop takes all results."""
        return self._has_thread or self._loop is not None


_tags = itertools.count(1)
_main: Pump | None = None
_lock = threading.Lock()
_loops: weakref.WeakKeyDictionary[Any, Pump] = weakref.WeakKeyDictionary()
_local = threading.local()


def running_loop() -> Any:
    """The asyncio loop that runs on this thread, or None. Does not import asyncio."""
    events = sys.modules.get("asyncio.events")
    return events._get_running_loop() if events is not None else None


def pump() -> Pump:
    """The queue for operations that start here and now."""
    global _main
    loop = running_loop()
    if loop is None:
        if _main is None:
            with _lock:
                if _main is None:
                    _main = Pump(None)
        return _main
    if getattr(_local, "loop", None) is loop:
        mine: Pump = _local.pump
        return mine
    with _lock:
        found = _loops.get(loop)
        if found is None:
            found = _loops[loop] = Pump(loop)
    _local.loop, _local.pump = loop, found
    return found


def threads_pump() -> Pump:
    """The queue of threads, also where a loop runs."""
    global _main
    if _main is None:
        with _lock:
            if _main is None:
                _main = Pump(None)
    return _main


class APIFuture(Generic[T]):
    """The future result of an operation.

    `.result(timeout)` waits for it, `await` does so in asyncio, and `.future()` is a
    concurrent.futures.Future of it. To cancel the operation, call `.cancel()`, or cancel
    the task that awaits it.
    """

    __slots__ = ("_value", "_error", "_pump", "_read", "_operation", "_tag", "_waiters", "_future", "__weakref__")

    _value: Any
    _error: BaseException | None
    _pump: Any
    _read: Any
    _operation: Any
    _tag: int
    _waiters: Any
    _future: Any

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result. Raises TimeoutError after `timeout` seconds."""
        if self._value is _PENDING and not self._pump.wait(self, timeout):
            raise TimeoutError
        if self._error is not None:
            raise self._error
        return cast(T, self._value)

    async def result_async(self, timeout: float | None = None) -> T:
        if timeout is None:
            return await self
        import asyncio

        async with asyncio.timeout(timeout):
            return await self

    async def coroutine(self) -> T:
        return await self

    def __await__(self) -> Generator[Any, None, T]:
        if self._value is _PENDING:
            import asyncio

            loop = asyncio.get_running_loop()
            waiter: asyncio.Future[None] = loop.create_future()
            self._add_waiter((loop, waiter))
            if not self._pump.is_taken or self._pump._loop is not None and self._pump._loop() is not loop:
                self._pump.ensure_thread()
            try:
                yield from waiter
            except asyncio.CancelledError:
                self.cancel()
                raise
        if self._error is not None:
            raise self._error
        return cast(T, self._value)

    def done(self) -> bool:
        return self._value is not _PENDING

    def cancelled(self) -> bool:
        return self._error is not None and type(self._error).__name__ == "CancelledError"

    def running(self) -> bool:
        return self._value is _PENDING

    def exception(self, timeout: float | None = None) -> BaseException | None:
        if self._value is _PENDING and not self._pump.wait(self, timeout):
            raise TimeoutError
        return self._error

    def cancel(self) -> bool:
        """Ask to cancel the operation. False if it has ended."""
        pump = self._pump
        if pump is None or self._operation is None:
            return False
        with pump.lock:
            if not pump.has(self._tag):
                return False
            self._operation.cancel()
        return True

    def explain(self) -> str:
        """Say what the operation waits for, in one sentence."""
        pump = self._pump
        if pump is not None and self._operation is not None:
            with pump.lock:
                if pump.has(self._tag):
                    return str(self._operation.explain(pump.native))
        return "it has ended" if self._value is not _PENDING else "it waits for another operation"

    def add_done_callback(self, function: Callable[[Any], object]) -> None:
        self.future().add_done_callback(lambda _: function(self))

    def future(self) -> concurrent.futures.Future[T]:
        """The concurrent.futures.Future."""
        if self._future is None:
            future = _concurrent(self)
            self._future = future
            self._add_waiter(future)
            if self._value is _PENDING:
                self._pump.ensure_thread()
        return cast("concurrent.futures.Future[T]", self._future)

    def _add_waiter(self, waiter: Any) -> None:
        if self._waiters is None:
            self._waiters = [waiter]
        else:
            self._waiters.append(waiter)
        # It may have settled on another thread before that.
        if self._value is not _PENDING:
            self._notify()

    def _settle(self, status: int, value: Any, deferred: list[Any] | None = None) -> None:
        """On the thread that takes, once."""
        self._operation = None
        try:
            if status == 0:
                read, self._read = self._read, None
                value = value if read is None else read(value)
            else:
                if status > 0:
                    self._error = value
                else:
                    from . import _errors

                    self._error = _errors.from_native(value)
                value = None
        except BaseException as error:
            self._error, value = error, None
        self._value = value
        self._pump = None
        if self._waiters is not None:
            self._notify(deferred)

    def _notify(self, deferred: list[Any] | None = None) -> None:
        waiters, self._waiters = self._waiters, None
        current = running_loop()
        for waiter in waiters or ():
            if type(waiter) is tuple:
                loop, one = waiter
                if loop is current:
                    if not one.done():
                        one.set_result(None)
                elif not loop.is_closed():
                    loop.call_soon_threadsafe(_wake, one)
            elif hasattr(waiter, "set_result"):
                if deferred is None:
                    _copy(self, waiter)
                else:
                    deferred.append((self, waiter))
            else:
                try:
                    waiter.release()
                except RuntimeError:
                    pass


def _wake(waiter: Any) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _concurrent(source: APIFuture[Any]) -> Any:
    import concurrent.futures

    class Future(concurrent.futures.Future):  # type: ignore[type-arg]
        def cancel(self) -> bool:
            if self.done() or not super().cancel():
                return False
            source.cancel()
            self.set_running_or_notify_cancel()
            return True

    return Future()


def _copy(source: APIFuture[Any], future: Any) -> None:
    from concurrent.futures import InvalidStateError

    try:
        if source._error is not None:
            future.set_exception(source._error)
        else:
            future.set_result(source._value)
    except InvalidStateError:  # canceled
        pass


def new(where: Pump | None, read: Any = None) -> APIFuture[Any]:
    """A future that `_settle()` ends."""
    future: APIFuture[Any] = APIFuture.__new__(APIFuture)
    future._value = _PENDING
    future._error = None
    future._pump = where
    future._read = read
    future._operation = None
    future._waiters = None
    future._future = None
    future._tag = 0
    return future


def register(where: Pump, reader: int, read: Any) -> APIFuture[Any]:
    """A future with a tag; the caller starts the operation and calls began()."""
    future = new(where, read)
    tag = next(_tags) << _BITS | reader
    future._tag = tag
    where.futures[tag] = future
    return future


def failed(where: Pump, future: APIFuture[Any], error: BaseException) -> APIFuture[Any]:
    """The operation of a registered future could not be started: raises the error. At the
    end of the program the future has it, as those of earlier operations do."""
    where.futures.pop(future._tag, None)
    if not isinstance(error, OSError) or error.errno is None or error.errno > -50000:
        raise error from None
    if error.errno == CLOSED:
        future._settle(CLOSED, (CLOSED, "the runtime has stopped"))
        return future
    from . import _errors

    raise _errors.from_native((error.errno, error.strerror)) from None


def start(reader: int, read: Any, function: str, *arguments: Any, where: Pump | None = None) -> APIFuture[Any]:
    """Start an operation of libtnk by its name."""
    place = where or pump()
    future = register(place, reader, read)
    try:
        future._operation = place.native.start(future._tag, function, arguments)
    except BaseException as error:
        return failed(place, future, error)
    return future




def native(function: Any, *arguments: Any) -> Any:
    """Call a function of the native module that returns at once."""
    try:
        return function(*arguments)
    except OSError as error:
        if error.errno is None or error.errno > -50000:
            raise
        from . import _errors

        raise _errors.from_native((error.errno, error.strerror)) from None


def call(function: str, *arguments: Any) -> int:
    return int(native(threads_pump().native.call, function, arguments))


def completed(value: Any = None) -> APIFuture[Any]:
    future = new(None)
    future._value = value
    return future


def chained(source: APIFuture[Any], then: Callable[[Any], Any]) -> APIFuture[Any]:
    """A future of what then(result) returns; then() runs on the thread that takes."""
    read = source._read
    source._read = then if read is None else lambda value: then(read(value))
    return source


_at_exit: list[Callable[[], None]] = []
_at_end: list[Callable[[], None]] = []  # after the runtime


def _stop() -> None:
    """End the runtime. Operations that have not ended fail with TNK_ECLOSED."""
    for function in _at_exit:
        function()
    _native.stop()
    for function in _at_end:
        function()


def _after_fork() -> None:
    """A child starts its own runtime. Clients of the parent do not work in it."""
    global _main, _lock, _loops, generation
    _main = None
    _lock = threading.Lock()
    _loops = weakref.WeakKeyDictionary()
    _local.__dict__.clear()
    generation += 1


generation = 0
atexit.register(_stop)


def _register_fork() -> None:
    import os

    os.register_at_fork(after_in_child=_after_fork)


_register_fork()
