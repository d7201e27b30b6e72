# SPDX-License-Identifier: MIT
"""libtnk for ctypes, from the description of its API (tnk-api.json)."""
import atexit
import concurrent.futures
import ctypes
import itertools
import json
import os
import pathlib
import threading

# The number of operations that may be in flight or wait to be taken.
MAX_HELD = 4096
BATCH = 256

BASE = {"void": None, "char": ctypes.c_char, "int": ctypes.c_int, "unsigned": ctypes.c_uint,
        "size_t": ctypes.c_size_t, "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32,
        "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64, "float": ctypes.c_float,
        "double": ctypes.c_double}


def _path(variable, name):
    """A file beside this module, unless the variable of the environment has one."""
    beside = pathlib.Path(__file__).with_name(name)
    return os.environ.get(variable) or (str(beside) if beside.exists() else name)


class Native:
    """The library: functions, types by name, and the values of enums."""

    def __init__(self):
        api = json.loads(pathlib.Path(_path("TNK_API_JSON", "tnk-api.json")).read_text())
        self.functions = ctypes.CDLL(_path("TNK_LIBRARY", "libtnk.so"))
        self.values = {name: value for enum in api["enums"] for name, value in enum["values"].items()}
        self._kinds = {enum["name"]: ctypes.c_int for enum in api["enums"]}
        self._kinds.update({callback["name"]: ctypes.c_void_p for callback in api["callbacks"]})
        self._described = {one["name"]: one for one in api["structs"] + api["unions"]}
        self._unions = {one["name"] for one in api["unions"]}
        for function in api["functions"]:
            if function["library"] == "tnk":
                self._declare(function)

    def _declare(self, function):
        native = getattr(self.functions, function["name"])
        native.restype = self.type(function["returns"]["type"])
        native.argtypes = [self.type(p["type"]) for p in function["params"]]
        setattr(self, function["name"], native)

    def type(self, text):
        """The type of ctypes for one of C. Pointers are addresses, except strings."""
        if text == "const char *":
            return ctypes.c_char_p
        if "*" in text:
            return ctypes.c_void_p
        if text.endswith("]"):
            name, n = text[:-1].split(" [")
            return self.type(name) * int(n)
        name = text.removeprefix("const ")
        return BASE[name] if name in BASE else self._kinds[name] if name in self._kinds else self._struct(name)

    def _struct(self, name):
        one = self._described[name]
        base = ctypes.Union if name in self._unions else ctypes.Structure
        fields = [(field["name"], self.type(field["type"])) for field in one["fields"]]
        made = self._kinds[name] = type(name, (base,), {"_fields_": fields})
        if ctypes.sizeof(made) != one["size"]:
            raise ImportError(f"{name} has {ctypes.sizeof(made)} bytes here and {one['size']} in libtnk")
        return made

    def new(self, name, **members):
        """A struct with its defaults, and these members."""
        made = self.type(name)()
        if "size" in dict(made._fields_):
            self.tnk_init(name.encode(), ctypes.addressof(made), ctypes.sizeof(made))
        for member, value in members.items():
            setattr(made, member, value.encode() if isinstance(value, str) else value)
        return made


class TnkError(Exception):
    """An operation failed. `code` has its name in tnk/error.h."""

    def __init__(self, text, code=0, http_status=0):
        super().__init__(text)
        self.code = code
        self.http_status = http_status


def _word(value, out):
    """Put an argument of a call into a tnk_value_t; return what must live meanwhile.
    Addresses are integers: both are members of one union."""
    if isinstance(value, float):
        out.number = value
    elif isinstance(value, int):
        out.integer = value
    elif value is None:
        out.pointer = None
    else:
        kept = ctypes.create_string_buffer(value.encode()) if isinstance(value, str) else value
        out.pointer = ctypes.addressof(kept)
        return kept
    return value


class Runtime:
    """The loop on its own thread, which never runs Python, and a thread of Python
    that takes what has settled."""

    def __init__(self, native):
        self.native = native
        self.handle = ctypes.c_void_p()
        self.queue = ctypes.c_void_p()
        self._check(native.tnk_runtime_start(ctypes.addressof(self.handle)))
        self._check(native.tnk_queue_new(ctypes.addressof(self.queue), self.handle, MAX_HELD))
        self.loop = native.tnk_runtime_loop(self.handle)
        self._room = threading.BoundedSemaphore(MAX_HELD)
        self._tags = itertools.count(1)
        self._waiting = {}
        # A finalizer may run at any time, also while this thread has the lock.
        self._lock = threading.RLock()
        self._is_stopped = False
        self._unreleased = []
        self._thread = threading.Thread(target=self._take_all, name="tnk", daemon=True)
        self._thread.start()
        atexit.register(self.stop)

    def _check(self, code):
        if code != 0:
            raise TnkError(self.native.tnk_strerror(code).decode(), code)

    def _call(self, function, args, is_watched=0, tag=0):
        call = self.native.type("tnk_call_t")(function=function.encode(), n_args=len(args),
                                              is_watched=is_watched, tag=tag)
        kept = [_word(value, call.args[i]) for i, value in enumerate(args)]
        self._check(self.native.tnk_queue_call(self.queue, ctypes.addressof(call), 1))
        del kept
        return call.result

    def call(self, function, *args):
        """Call a function on the loop's thread; its result as a tnk_value_t."""
        return self._call(function, args)

    def start(self, function, *args, read):
        """Start an operation. The future gets what read(promise) returns, on the
        thread that takes. It also gets the error of a call that cannot be made."""
        future = concurrent.futures.Future()
        future.set_running_or_notify_cancel()
        tag = next(self._tags)
        # The thread that takes must not wait for itself.
        if not self._room.acquire(blocking=threading.current_thread() is not self._thread):
            self._check(self.native.values["TNK_EFULL"])
        self._waiting[tag] = (future, read)
        try:
            self._call(function, args, 1, tag)
        except TnkError as error:
            del self._waiting[tag]
            self._room.release()
            future.set_exception(error)
        return future

    def release(self, promise):
        """Release a reference, on any thread."""
        with self._lock:
            if self.handle:
                self.native.tnk_runtime_unref(self.handle, promise)
            elif self._is_stopped:
                self.native.tnk_promise_unref(promise)
            else:
                self._unreleased.append(promise)

    def _settle(self, done):
        future, read = self._waiting.pop(done.tag)
        native = self.native
        self._room.release()
        try:
            if done.status != 0:
                error = native.type("tnk_error_t").from_address(native.tnk_promise_error(done.promise))
                future.set_exception(TnkError(error.text.decode(), error.code, error.http_status))
            else:
                future.set_result(read(done.promise))
        except Exception as error:
            future.set_exception(error)
        self.release(done.promise)

    def _take_all(self):
        done = (self.native.type("tnk_completion_t") * BATCH)()
        while True:
            n = self.native.tnk_queue_take(self.queue, ctypes.addressof(done), BATCH, -1)
            if n == self.native.values["TNK_ECLOSED"]:
                return
            for i in range(max(n, 0)):
                self._settle(done[i])

    def stop(self):
        """End: what still runs fails with TNK_ECLOSED."""
        with self._lock:
            handle, self.handle = self.handle, None
        if not handle:
            return
        self.native.tnk_runtime_stop(handle)
        self._thread.join()
        with self._lock:
            self._is_stopped = True
            queue, self.queue = self.queue, None
            for promise in self._unreleased:
                self.native.tnk_promise_unref(promise)
        self.native.tnk_queue_free(queue)
