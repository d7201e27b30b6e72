# SPDX-License-Identifier: MIT
"""The Tinker training API, on libtnk.

    service = tnk.ServiceClient(base_url="http://127.0.0.1:8000", api_key="tml-local")
    training = service.create_lora_training_client(base_model="tnk/byte-lm", rank=8)
    passed = training.forward_backward([datum], "cross_entropy")
    stepped = training.optim_step(tnk.AdamParams(learning_rate=1e-3))
    print(passed.result().metrics, stepped.result())

Names and results are those of the official client. Every operation returns a future:
`.result(timeout)` waits for it, `await` does so in asyncio. Operations of one training
client run in the order of the calls.
"""
import array
import asyncio
import ctypes
import dataclasses
import threading
import weakref

from ._native import Native, Runtime, TnkError

__all__ = ["APIFuture", "AdamParams", "Datum", "ForwardBackwardOutput", "ModelInput", "SampledSequence",
           "SampleResponse", "SamplingClient", "SamplingParams", "ServiceClient", "TnkError", "TrainingClient"]

_native = None
_runtime = None
_lock = threading.Lock()
INTEGERS = ("target_tokens",)


def _start():
    """The runtime of the process, which begins with the first service."""
    global _native, _runtime
    with _lock:
        if _runtime is None:
            _native = Native()
            _runtime = Runtime(_native)
    return _native, _runtime


class APIFuture:
    """The future result of an operation."""

    def __init__(self, future):
        self._future = future

    def result(self, timeout=None):
        return self._future.result(timeout)

    async def result_async(self, timeout=None):
        return await asyncio.wait_for(asyncio.wrap_future(self._future), timeout)

    def future(self):
        """The concurrent.futures.Future."""
        return self._future

    def __await__(self):
        return asyncio.wrap_future(self._future).__await__()


@dataclasses.dataclass
class ModelInput:
    tokens: list

    @classmethod
    def from_ints(cls, tokens):
        return cls(list(tokens))


@dataclasses.dataclass
class Datum:
    """A training example: one value of each loss input for each token."""
    model_input: ModelInput
    loss_fn_inputs: dict


@dataclasses.dataclass
class AdamParams:
    learning_rate: float = 1e-4
    beta1: float = 0.9
    beta2: float = 0.95
    eps: float = 1e-12
    weight_decay: float = 0.0
    grad_clip_norm: float = 0.0


@dataclasses.dataclass
class SamplingParams:
    max_tokens: int = None
    seed: int = None
    temperature: float = 1.0
    top_k: int = -1
    top_p: float = 1.0


@dataclasses.dataclass
class ForwardBackwardOutput:
    metrics: dict
    loss_fn_outputs: list


@dataclasses.dataclass
class SampledSequence:
    tokens: list
    logprobs: list
    stop_reason: str


@dataclasses.dataclass
class SampleResponse:
    sequences: list


def _values(kind, values):
    """An array of ctypes with a copy of the numbers."""
    data = array.array(kind, values)
    code = {"i": ctypes.c_int32, "q": ctypes.c_int64, "f": ctypes.c_float}[kind]
    return (code * len(data)).from_buffer(data)


def _list(kind, address, n):
    return list((kind * n).from_address(address)) if address else []


def _counted(function, *args):
    """(address, number) of an accessor whose last argument is a size_t *."""
    n = ctypes.c_size_t()
    return function(*args, ctypes.addressof(n)), n.value


def _input(tokens, kept):
    ids = _values("i", tokens)
    kept.append(ids)
    return _native.new("tnk_model_input_t", tokens=ctypes.addressof(ids), n_tokens=len(ids))


def _loss_inputs(inputs, kept):
    rows = (_native.type("tnk_loss_input_t") * len(inputs))()
    for row, (name, values) in zip(rows, inputs.items()):
        is_int = name in INTEGERS
        data = _values("q" if is_int else "f", values)
        kept.append(data)
        row.name = name.encode()
        row.tensor.dtype = _native.values["TNK_I64" if is_int else "TNK_F32"]
        row.tensor.n_dims = 1
        row.tensor.shape[0] = row.tensor.n_values = len(data)
        row.tensor.data = ctypes.addressof(data)
    kept.append(rows)
    return rows


def _data(data, kept):
    rows = (_native.type("tnk_datum_t") * len(data))()
    for row, datum in zip(rows, data):
        inputs = _loss_inputs(datum.loss_fn_inputs, kept)
        row.input = _input(datum.model_input.tokens, kept)
        row.loss_inputs = ctypes.addressof(inputs)
        row.n_loss_inputs = len(inputs)
    return rows


def _metrics(metrics):
    return {_native.tnk_metrics_key(metrics, i).decode(): _native.tnk_metrics_value(metrics, i)
            for i in range(_native.tnk_metrics_count(metrics))}


def _fields(passed, index):
    kinds = {_native.values["TNK_I64"]: ctypes.c_int64, _native.values["TNK_F32"]: ctypes.c_float,
             _native.values["TNK_I32"]: ctypes.c_int32, _native.values["TNK_F64"]: ctypes.c_double}
    found = {}
    for i in range(_native.tnk_pass_field_count(passed, index)):
        name = _native.tnk_pass_field_name(passed, index, i)
        tensor = _native.type("tnk_tensor_t").from_address(_native.tnk_pass_tensor(passed, index, name))
        found[name.decode()] = _list(kinds[tensor.dtype], tensor.data, tensor.n_values)
    return found


def _read_pass(promise):
    passed = _native.tnk_promise_pass(promise)
    return ForwardBackwardOutput(_metrics(_native.tnk_pass_metrics(passed)),
                                 [_fields(passed, i) for i in range(_native.tnk_pass_count(passed))])


def _read_samples(promise):
    samples = _native.tnk_promise_samples(promise)
    sequences = []
    for i in range(_native.tnk_samples_count(samples)):
        tokens = _list(ctypes.c_int32, *_counted(_native.tnk_samples_tokens, samples, i))
        logprobs = _list(ctypes.c_float, *_counted(_native.tnk_samples_logprobs, samples, i))
        is_length = _native.tnk_samples_stop_reason(samples, i) == _native.values["TNK_STOP_LENGTH"]
        sequences.append(SampledSequence(tokens, logprobs, "length" if is_length else "stop"))
    return SampleResponse(sequences)


def _read_metrics(promise):
    metrics = _native.tnk_promise_metrics(promise)
    return _metrics(metrics) if metrics else {}


def _read_path(promise):
    return _native.tnk_promise_path(promise).decode()


class _Client:
    """A client of libtnk; its promise, which it holds, keeps the handle valid."""
    _accessor = None

    def __init__(self, promise):
        self._handle = _runtime.call(self._accessor, promise).pointer
        if not self._handle:
            raise TnkError("the client has been closed")
        held = _runtime.call("tnk_promise_ref", promise).pointer
        weakref.finalize(self, _runtime.release, held)

    def _start(self, function, *args, read):
        return APIFuture(_runtime.start(function, self._handle, *args, read=read))


class SamplingClient(_Client):
    _accessor = "tnk_promise_sampling"

    def sample(self, prompt, num_samples=1, sampling_params=None):
        kept = []
        given = sampling_params or SamplingParams()
        params = _native.new("tnk_sampling_params_t", temperature=given.temperature, top_k=given.top_k,
                             top_p=given.top_p)
        if given.max_tokens is not None:
            params.max_tokens = given.max_tokens
        if given.seed is not None:
            params.seed = given.seed
        options = _native.new("tnk_sample_options_t", n_samples=num_samples)
        return self._start("tnk_sampling_sample", _input(prompt.tokens, kept), params, options, read=_read_samples)

    async def sample_async(self, prompt, num_samples=1, sampling_params=None):
        return await self.sample(prompt, num_samples, sampling_params)


class TrainingClient(_Client):
    _accessor = "tnk_promise_training"

    def _pass(self, function, data, loss_fn):
        kept = []
        options = _native.new("tnk_pass_options_t", loss_fn=loss_fn)
        return self._start(function, _data(data, kept), len(data), options, read=_read_pass)

    def forward(self, data, loss_fn="cross_entropy"):
        return self._pass("tnk_training_forward", data, loss_fn)

    def forward_backward(self, data, loss_fn="cross_entropy"):
        return self._pass("tnk_training_forward_backward", data, loss_fn)

    async def forward_backward_async(self, data, loss_fn="cross_entropy"):
        return self.forward_backward(data, loss_fn)

    def optim_step(self, adam_params=None):
        optim = _native.new("tnk_optim_t", **dataclasses.asdict(adam_params or AdamParams()))
        return self._start("tnk_training_optim_step", optim, read=_read_metrics)

    async def optim_step_async(self, adam_params=None):
        return self.optim_step(adam_params)

    def save_state(self, name):
        return self._start("tnk_training_save_state", name, None, read=_read_path)

    def save_weights_for_sampler(self, name):
        return self._start("tnk_training_save_weights_for_sampler", name, None, read=_read_path)

    def save_weights_and_get_sampling_client(self):
        return self._start("tnk_training_save_weights_and_get_sampling", _native.values["TNK_SAMPLING_SNAPSHOT"], None,
                           read=SamplingClient).result()


class ServiceClient:
    """A connection to a service. Without arguments, as the environment says."""

    def __init__(self, base_url=None, api_key=None):
        native, runtime = _start()
        options = native.new("tnk_service_options_t", keep_loop_alive=native.values["TNK_YES"])
        if base_url is not None:
            options.base_url = base_url.encode()
        if api_key is not None:
            options.api_key = api_key.encode()
        handle = ctypes.c_void_p()
        why = ctypes.create_string_buffer(512)
        code = runtime.call("tnk_service_open", handle, runtime.loop, options, why, len(why)).integer
        if code != 0:
            raise TnkError(why.value.decode(), code)
        self._handle = handle.value

    def _create_lora(self, base_model, rank):
        options = _native.new("tnk_lora_options_t", base_model=base_model, rank=rank)
        return APIFuture(_runtime.start("tnk_service_create_lora", self._handle, options, read=TrainingClient))

    def create_lora_training_client(self, base_model, rank=32):
        return self._create_lora(base_model, rank).result()

    async def create_lora_training_client_async(self, base_model, rank=32):
        return await self._create_lora(base_model, rank)

    def _create_sampling(self, model_path, base_model):
        members = {"model_path": model_path, "base_model": base_model}
        options = _native.new("tnk_sampling_options_t", **{k: v for k, v in members.items() if v is not None})
        return APIFuture(_runtime.start("tnk_service_create_sampling", self._handle, options, read=SamplingClient))

    def create_sampling_client(self, model_path=None, base_model=None):
        return self._create_sampling(model_path, base_model).result()

    def close(self):
        """Close the service and its clients. What still runs fails."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            _runtime.call("tnk_service_close", handle, None, None)
