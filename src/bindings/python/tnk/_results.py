# SPDX-License-Identifier: MIT
"""Results of libtnk as objects of the official client's types."""
from __future__ import annotations

from typing import Any

from . import _types

_numpy: Any = None


def _frombuffer() -> Any:
    global _numpy
    if _numpy is None:
        try:
            import numpy

            _numpy = numpy
        except ImportError:
            _numpy = _Views
    return _numpy


class _Views:
    """Without numpy an array is a memoryview."""

    int32, float32, int64 = "i", "f", "q"

    @staticmethod
    def frombuffer(data: Any, dtype: str) -> Any:
        return memoryview(data).cast("B").cast(dtype)  # type: ignore[call-overload]


def array(data: Any, dtype: str) -> Any:
    """A view of the bytes, or None."""
    if data is None:
        return None
    np = _numpy or _frombuffer()
    return np.frombuffer(data, getattr(np, dtype))


def tensor(value: Any) -> Any:
    """TensorData of (dtype, shape, values, crow, col)."""
    if value is None:
        return None
    dtype, shape, data, crow, col = value
    return _types.get("TensorData")(array(data, dtype), dtype, shape, crow, col)


def output(value: Any) -> Any:
    """ForwardBackwardOutput"""
    kind, rows, metrics = value
    return _types.get("ForwardBackwardOutput")(
        loss_fn_output_type=kind or "",
        loss_fn_outputs=[{name: tensor(one) for name, one in row.items()} for row in rows],
        metrics=metrics,
    )


def _matrix(data: Any, dtype: str, length: int, width: int) -> Any:
    flat = array(data, dtype)
    if hasattr(flat, "reshape"):
        return flat.reshape((length, width))
    return flat.cast("B").cast(flat.format, [length, width]) if len(flat) else flat


def _topk(value: Any) -> Any:
    if value is None:
        return None
    length, k, ids, logprobs = value
    made = _types.get("TopkLogprobs") if hasattr(_types.module(), "TopkLogprobs") else _topk_class()
    return made(_matrix(ids, "int32", length, k), _matrix(logprobs, "float32", length, k))


def _topk_class() -> Any:
    from . import _vendor

    return _vendor.load("types.topk_logprobs").TopkLogprobs


_sequence: Any = None
_response: Any = None


def samples(value: Any) -> Any:
    """SampleResponse"""
    global _sequence, _response
    if _response is None:
        _sequence, _response = _types.get("SampledSequence"), _types.get("SampleResponse")
        _frombuffer()
    rows, hits, more = value
    np = _numpy
    sequences = [
        _sequence(
            stop,
            name or "",
            np.frombuffer(tokens, np.int32),
            None if logprobs is None else np.frombuffer(logprobs, np.float32),
            None if topk is None else _topk(topk),
        )
        for stop, name, tokens, logprobs, topk in rows
    ]
    if more is None:
        return _response(sequences, prompt_cache_hit_tokens=hits)
    prompt, topk, target, alt, alt_logprobs = more
    return _response(
        sequences,
        array(prompt, "float32"),
        _topk(topk),
        tensor(target),
        hits,
        None if alt is None else _types.get("PromptAltTokens")(tokens=tensor(alt), logprobs=tensor(alt_logprobs)),
    )


def made(name: str, **fixed: Any) -> Any:
    """A reader that makes a type of its only member `path`."""
    return lambda path: _types.get(name)(path=path, **fixed)


def step(metrics: Any) -> Any:
    return _types.get("OptimStepResponse")(metrics=metrics)


def logprobs(values: Any) -> Any:
    return values
