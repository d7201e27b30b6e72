# SPDX-License-Identifier: MIT
"""What the cases are written with: registering, checking, counting calls.

The client under test is used as its package has it; `counted()` only wraps
the objects that a case holds, to write down which public calls it made.
"""

import asyncio
import collections
import inspect

CASES = []
CALLS = collections.Counter()
# Requests that cases make themselves, which are HTTP/1.1; a list, to be added to.
OWN = []
TIMEOUT = 300  # seconds; only a call that hangs needs them
MODEL = "tnk/byte-lm"


class Skip(Exception):
    """The case does not apply to this client or this server."""


def case(fn):
    CASES.append(fn)
    return fn


def check(condition, text="condition does not hold"):
    if not condition:
        raise AssertionError(text)


def check_near(a, b, tolerance=1e-5):
    check(abs(a - b) <= tolerance, f"{a} is not {b}")


def raises(call, *kinds):
    """The exception that `call` must end with."""
    try:
        done(call())
    except kinds or Exception as error:
        return error
    raise AssertionError("no exception")


# ---- calls of the client ----------------------------------------------------

WRAPPED = ("ServiceClient", "TrainingClient", "SamplingClient", "RestClient", "AdminClient")


def kind_of(value):
    """The public class of `value`, also of a future that stands for one."""
    for name in type(value).__mro__:
        if name.__name__ in WRAPPED:
            return name.__name__
    return None


class Counted:
    """A client that counts the calls made on it."""

    def __init__(self, client):
        self.raw = client

    def __getattr__(self, name):
        value = getattr(self.raw, name)
        if name.startswith("_") or not callable(value):
            return value
        label = f"{kind_of(self.raw)}.{name}"

        def call(*args, **kwargs):
            CALLS[label] += 1
            return value(*args, **kwargs)

        return call


def settle(value, timeout=TIMEOUT):
    """What a call returned, waited for: newer clients return a future of a
    client where older ones returned the client."""
    while hasattr(value, "result") and not isinstance(value, Counted):
        value = value.result(timeout)
    return value


def done(value, timeout=TIMEOUT):
    value = settle(value, timeout)
    return Counted(value) if kind_of(value) else value


async def done_async(value):
    """The same for the forms with async."""
    while True:
        if inspect.isawaitable(value):
            value = await asyncio.wait_for(value, TIMEOUT)
        elif hasattr(value, "result_async"):
            value = await asyncio.wait_for(value.result_async(), TIMEOUT)
        elif hasattr(value, "result"):
            value = await asyncio.wrap_future(value)
        else:
            return Counted(value) if kind_of(value) else value


def takes(function, *names):
    """Whether `function` of this client's version has these parameters."""
    parameters = inspect.signature(function).parameters
    return all(name in parameters for name in names)


def need(condition, text):
    if not condition:
        raise Skip(text)


# ---- one run of cases -------------------------------------------------------


class Context:
    """A server's address, its flags, and clients that the cases share."""

    def __init__(self, url, flags, version):
        import tinker

        self.tinker = tinker
        self.types = tinker.types
        self.url = url
        self.flags = flags
        self.version = version
        self.shared = {}

    def is_on(self, flag):
        return self.flags.get(flag) == "true"

    def at_least(self, major, minor):
        """For what no signature tells."""
        return tuple(int(n) for n in self.version.split(".")[:2]) >= (major, minor)

    def new_service(self, **kwargs):
        CALLS["ServiceClient()"] += 1
        return Counted(self.tinker.ServiceClient(**kwargs))

    def once(self, name, make):
        if name not in self.shared:
            self.shared[name] = make()
        return self.shared[name]

    @property
    def service(self):
        return self.once("service", self.new_service)

    @property
    def rest(self):
        return self.once("rest", lambda: done(self.service.create_rest_client()))

    def new_training(self, **kwargs):
        kwargs.setdefault("rank", 4)
        kwargs.setdefault("seed", 1)
        return done(self.service.create_lora_training_client(MODEL, **kwargs))

    @property
    def training(self):
        return self.once("training", self.new_training)

    @property
    def sampling(self):
        return self.once(
            "sampling", lambda: done(self.service.create_sampling_client(base_model=MODEL))
        )

    # ---- data

    def prompt(self, text="the quick brown fox"):
        return self.types.ModelInput.from_ints(list(text.encode()))

    def i64(self, values, shape=None):
        return self.types.TensorData(data=values, dtype="int64", shape=shape or [len(values)])

    def f32(self, values, shape=None):
        return self.types.TensorData(data=values, dtype="float32", shape=shape or [len(values)])

    def datum(self, text="the quick brown fox", **more):
        """A text to be trained; `more` are further loss inputs, one number for
        all positions or a list."""
        tokens = list(text.encode())
        n = len(tokens) - 1
        inputs = {"target_tokens": self.i64(tokens[1:])}
        for name, value in (more or {"weights": 1.0}).items():
            inputs[name] = self.f32(value if isinstance(value, list) else [value] * n)
        return self.types.Datum(
            model_input=self.types.ModelInput.from_ints(tokens[:-1]), loss_fn_inputs=inputs
        )

    def data(self, n):
        return [self.datum(f"number {i} is " + "abcdefghij"[: i % 10 + 1]) for i in range(n)]

    def params(self, **kwargs):
        kwargs.setdefault("max_tokens", 8)
        kwargs.setdefault("seed", 7)
        return self.types.SamplingParams(**kwargs)

    def logprobs(self, output):
        return [list(o["logprobs"].data) for o in output.loss_fn_outputs]
