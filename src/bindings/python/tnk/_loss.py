# SPDX-License-Identifier: MIT
"""Custom losses. A thread computes them, one after the other."""
from __future__ import annotations

import array
import dataclasses
import functools
import importlib.util
import itertools
import threading
from typing import TYPE_CHECKING, Any

from . import _future, _native, _results, _types, _vendor
from ._future import HANDLE, PASS, APIFuture

if TYPE_CHECKING:
    from ._clients import ServiceClient, TrainingClient

_keys = itertools.count(1)
_jobs: dict[int, Any] = {}
_lock = threading.Lock()
_thread: threading.Thread | None = None


class _Job:
    def __init__(self, data: list[Any], loss_fn: Any) -> None:
        self.data = data
        self.loss_fn = loss_fn
        self.error: BaseException | None = None


def start(training: TrainingClient, data: list[Any], loss_fn: Any) -> APIFuture[Any]:
    try:
        import torch  # noqa: F401
    except ImportError:
        raise ImportError("PyTorch is not installed. Cannot run custom forward_backward.") from None
    if hasattr(loss_fn, "loss_id"):
        _module().check_loss_inputs(loss_fn, data)
        if loss_fn.loss_id is not None:
            return training.forward_backward(data, "custom", {"loss_id": loss_fn.loss_id})
    if not data:
        raise ValueError("No data provided")
    for datum in data:
        if "target_tokens" not in datum.loss_fn_inputs:
            raise ValueError("target_tokens must be provided when using cross_entropy")
    _ensure_thread()
    key = next(_keys)
    job = _jobs[key] = _Job(data, loss_fn)
    where = _future.pump()
    future = _future.register(where, PASS, _results.output)
    future._add_waiter(_Settled(key, job, future))
    try:
        future._operation = where.native.start_custom(future._tag, training._handle, _inputs(data), key)
    except BaseException as error:
        _jobs.pop(key, None)
        return _future.failed(where, future, error)
    return future


class _Settled:
    """Runs when the future is done: it raises the error of the loss, as it was."""

    def __init__(self, key: int, job: _Job, future: Any) -> None:
        self.key, self.job, self.future = key, job, future

    def release(self) -> None:
        _jobs.pop(self.key, None)
        if self.job.error is not None and self.future._error is not None:
            self.future._error = self.job.error


def _inputs(data: list[Any]) -> list[Any]:
    """The forward pass has target_tokens, and weights of 0 if there are none."""
    made = []
    for datum in data:
        targets = datum.loss_fn_inputs["target_tokens"]
        weights = datum.loss_fn_inputs.get("weights")
        if weights is None:
            weights = _types.get("TensorData")([0.0] * len(targets.data), "float32", targets.shape)
        made.append(
            _types.get("Datum")(
                datum.model_input,
                {"target_tokens": targets, "weights": weights},
                datum.model_input_spans,
                datum.loss_fn_input_spans,
            )
        )
    return made


def _ensure_thread() -> None:
    global _thread
    with _lock:
        if _thread is None or not _thread.is_alive():
            _thread = threading.Thread(target=_run, name="tnk-custom-loss", daemon=True)
            _thread.start()


def _run() -> None:
    while True:
        try:
            found = _native.next_loss()
        except MemoryError:  # That loss has failed.
            continue
        if found is None:
            return
        loss, key, logprobs = found
        job = _jobs.get(key)
        outputs: tuple[Any, float, dict[str, float]] = (None, 0.0, {})
        try:
            if job is not None:
                outputs = _compute(job, [_results.tensor(one) for one in logprobs])
        except BaseException as error:
            job.error = error  # type: ignore[union-attr]
        try:
            # This ends the loss, also if it raises.
            _native.finish_loss(loss, *outputs)
        except BaseException as error:
            if job is not None:
                job.error = error


def _compute(job: _Job, tensors: list[Any]) -> tuple[list[Any], float, dict[str, float]]:
    import torch

    logprobs = []
    for tensor in tensors:
        one = torch.tensor(tensor.data)
        if tensor.shape is not None:
            one = one.reshape(tensor.shape)
        logprobs.append(one.clone().detach().requires_grad_(True))
    if hasattr(job.loss_fn, "loss_id"):
        loss, metrics = _module().run_loss_handle(job.loss_fn, job.data, logprobs)
    else:
        loss, metrics = job.loss_fn(job.data, logprobs)
    value = float(loss.detach().sum().item())
    loss.backward()
    gradients = []
    for one in logprobs:
        if one.grad is None:
            raise ValueError("No gradient computed for logprob tensor")
        gradients.append(array.array("f", one.grad.reshape([-1]).tolist()))
    return gradients, value, {name: float(number) for name, number in metrics.items()}


def _close() -> None:
    """Before the runtime ends: the loss that is computed is finished."""
    _native.close_losses()
    if _thread is not None and _thread is not threading.current_thread():
        _thread.join()


_future._at_exit.append(_close)


# ---- Losses on the service ----


@functools.cache
def _module() -> Any:
    """The tracer of the official package, which does not use its clients."""
    folders = _vendor.find()
    if folders is None:
        raise NotImplementedError("losses on the service need the package tinker, which traces them")
    _types.module()
    path = f"{folders[0]}/lib/public_interfaces/custom_loss.py"
    spec = importlib.util.spec_from_file_location("tnk._custom_loss", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["tnk._custom_loss"] = module
    spec.loader.exec_module(module)
    return module


class _Fallback:
    """Runs when the future is done: without the service's help the loss runs here."""

    def __init__(self, future: Any, handle: Any) -> None:
        self.future, self.handle = future, handle

    def release(self) -> None:
        if getattr(self.future._error, "code_name", "") == "TNK_EUNSUPPORTED":
            self.future._error, self.future._value = None, self.handle


def create(service: ServiceClient, fn: Any, input_ranks: Any) -> APIFuture[Any]:
    module = _module()
    handle = module.trace_loss(fn, input_ranks, service.get_session_id() or "")
    options = {
        "name": handle.name,
        "arguments": [{"name": one.name, "n_dims": one.rank} for one in handle.inputs],
        "graph": module.encode_graph(handle).model_dump_json(),
    }

    def read(promise: Any) -> Any:
        native = _future.threads_pump().native
        loss = _future.call("tnk_promise_loss", promise)
        name = _future.native(_native.record, native, "string", "tnk_loss_id", loss)
        return dataclasses.replace(handle, loss_id=name)

    future = _future.start(
        HANDLE, read, "tnk_service_create_loss", service._handle, ("tnk_loss_options_t", options)
    )
    future._add_waiter(_Fallback(future, handle))
    return future
