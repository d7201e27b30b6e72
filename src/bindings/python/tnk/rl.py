# SPDX-License-Identifier: MIT
"""Arithmetic for reinforcement learning.

    advantages = tnk.rl.group_advantages(rewards, group_size=8)
    drift = tnk.rl.drift(sampled, trained)

Arrays are numpy arrays, tensors of torch on the CPU, other buffers, or lists of numbers.
Arrays of float32 that are contiguous are read in place; others are converted. `sampled`
are the logprobs of the sampled tokens under the sampler, `trained` those of the same
tokens under the trained model, and `weights` the weight of each token (None: 1 each).
Logarithms are natural. A mean without values is NaN.

Results are numpy arrays of float32 in the shape of the first argument, or flat
memoryviews if numpy is not installed. `out` names an array that is written instead; it
may be an argument. A `gradient` is an array to which derivatives are added. Both must be
writable, contiguous, and of float32. The header tnk/rl.h has the formulas.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from . import _native, _results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Buffer

    class Tensor(Protocol):
        """A tensor of torch."""

        def detach(self) -> Any: ...

    Floats = Sequence[float] | Buffer | Tensor
    Writable = Buffer | Tensor

Advantage = Literal["centered", "normalized", "leave-one-out"]
KL = Literal["k1", "k2", "k3"]
Direction = Literal["forward", "reverse", "symmetric"]

_ADVANTAGES = {"centered": 0, "normalized": 1, "leave-one-out": 2}
_KLS = {"k1": 1, "k2": 2, "k3": 3}
_DIRECTIONS = {"forward": 0, "reverse": 1, "symmetric": 2}

__all__ = [
    "Drift",
    "Tokens",
    "cispo",
    "discounted_sums",
    "dpo",
    "drift",
    "effective_sample_size",
    "elastic_net",
    "entropy",
    "entropy_penalty",
    "gradient_penalty",
    "group_advantages",
    "importance_sampling",
    "kl",
    "kl_exact",
    "kl_penalty",
    "kl_tokens",
    "l2_centered",
    "norm",
    "orthogonality",
    "ppo",
    "ratios",
    "sampled_entropy",
]


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of one sequence, for losses. Values of a token with weight 0 are
    ignored."""

    logprobs: Floats
    reference: Floats
    weights: Floats | None = None
    gradient: Writable | None = None


@dataclass(frozen=True, slots=True)
class Drift:
    """The distance between the trained model and the sampler. Members are weighted means
    per token, except for `n`, the number of tokens with a weight, and the maxima and
    minima."""

    n: int
    log_ratio: float
    abs_log_ratio: float
    max_abs_log_ratio: float
    k2: float
    k3: float
    ratio: float
    min_ratio: float
    max_ratio: float
    ratio_variance: float
    effective_tokens: float


def _plain(array: Any) -> Any:
    """A buffer of a tensor, without a copy."""
    return array.detach().numpy() if hasattr(array, "detach") else array


def _choice(name: str, value: Any, choices: dict[str, int]) -> int:
    try:
        return choices[value]
    except (KeyError, TypeError):
        known = ", ".join(map(repr, choices))
        raise ValueError(f"{name} must be one of {known}, not {value!r}") from None


def _numbers(function: str, arrays: tuple[Any, ...], *numbers: float) -> tuple[float, ...]:
    found: tuple[float, ...] = _native.rl(function, tuple(map(_plain, arrays)), numbers)
    return found


def _number(function: str, arrays: tuple[Any, ...], *numbers: float) -> float:
    return _numbers(function, arrays, *numbers)[0]


def _array(function: str, out: Any, arrays: tuple[Any, ...], *numbers: float) -> Any:
    made: Any = _native.rl(function, (_plain(out), *map(_plain, arrays)), numbers)
    if made is None:
        return out
    result = _results.array(made, "float32")
    shape = getattr(arrays[0], "shape", None)
    return result.reshape(tuple(shape)) if shape is not None and hasattr(result, "reshape") else result


def _check_divisor(name: str, number: int, array: Any, noun: str) -> None:
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"{name} must be an integer, not {number!r}")
    if number < 1:
        raise ValueError(f"{name} must be 1 or greater, not {number}")
    plain = _plain(array)
    n: Any = getattr(plain, "size", None)
    n = n if isinstance(n, int) else len(plain)
    if n % number:
        raise ValueError(f"{name} must divide the {n} {noun}, which {number} does not")


def _tokens(tokens: Tokens) -> tuple[Any, ...]:
    if not isinstance(tokens, Tokens):
        raise TypeError(f"tokens must be tnk.rl.Tokens, not {type(tokens).__name__}")
    return (tokens.logprobs, tokens.reference, tokens.weights, tokens.gradient)


def group_advantages(
    rewards: Floats, group_size: int, kind: Advantage = "centered", *, out: Writable | None = None
) -> Any:
    """The advantages of rewards in groups of `group_size` adjacent samples.

    "centered" is r - mean, "normalized" also divides by the standard deviation (GRPO), and
    "leave-one-out" is r - mean of the others (RLOO)."""
    chosen = _choice("kind", kind, _ADVANTAGES)
    _check_divisor("group_size", group_size, rewards, "rewards")
    return _array("group_advantages", out, (rewards,), group_size, chosen)


def discounted_sums(rewards: Floats, discount: float, *, out: Writable | None = None) -> Any:
    """Discounted returns: g[t] = r[t] + discount * g[t+1]."""
    return _array("discounted_sums", out, (rewards,), discount)


def kl(sampled: Floats, trained: Floats, kind: KL = "k3", weights: Floats | None = None) -> float:
    """An estimate of the mean KL(sampler, model) per token."""
    return _number("kl", (sampled, trained, weights), _choice("kind", kind, _KLS))


def kl_tokens(sampled: Floats, trained: Floats, kind: KL = "k3", *, out: Writable | None = None) -> Any:
    """An estimate of KL(sampler, model) for each token."""
    return _array("kl_tokens", out, (sampled, trained), _choice("kind", kind, _KLS))


def ratios(sampled: Floats, trained: Floats, *, out: Writable | None = None) -> Any:
    """The importance ratio p / q of each token."""
    return _array("ratios", out, (sampled, trained))


def drift(sampled: Floats, trained: Floats, weights: Floats | None = None) -> Drift:
    """The drift between sampler and trained model."""
    n, *rest = _numbers("drift", (sampled, trained, weights))
    return Drift(int(n), *rest)


def effective_sample_size(log_weights: Floats) -> float:
    """(sum w)^2 / sum w^2. -inf is a weight of 0."""
    return _number("effective_sample_size", (log_weights,))


def sampled_entropy(sampled: Floats, weights: Floats | None = None) -> float:
    """An estimate of the entropy per token, in nats."""
    return _number("sampled_entropy", (sampled, weights))


def entropy(logprobs: Floats) -> float:
    """The entropy of one distribution, in nats."""
    return _number("entropy", (logprobs,))


def importance_sampling(tokens: Tokens, advantages: Floats, *, scale: float = 1.0) -> float:
    """The service's loss "importance_sampling": the sum of -r A, times `scale`."""
    return _number("importance_sampling", (*_tokens(tokens), advantages), scale)


def ppo(tokens: Tokens, advantages: Floats, low: float = 0.8, high: float = 1.2, *, scale: float = 1.0) -> float:
    """The service's loss "ppo": the sum of -min(r A, clip(r, low, high) A)."""
    return _number("ppo", (*_tokens(tokens), advantages), low, high, scale)


def cispo(tokens: Tokens, advantages: Floats, low: float = 0.0, high: float = 4.0, *, scale: float = 1.0) -> float:
    """The service's loss "cispo". Only its gradient has a meaning as an objective."""
    return _number("cispo", (*_tokens(tokens), advantages), low, high, scale)


def dpo(chosen: Tokens, rejected: Tokens, beta: float = 0.1, *, scale: float = 1.0) -> tuple[float, float]:
    """-log sigmoid(beta d) for a pair of sequences, and the margin beta d. The weights of
    prompt tokens must be 0."""
    value, margin = _numbers("dpo", (*_tokens(chosen), *_tokens(rejected)), beta, scale)
    return value, margin


def kl_penalty(tokens: Tokens, kind: KL = "k3", *, scale: float = 1.0) -> float:
    """The sum of estimates of KL(model, reference). GRPO uses "k3"."""
    return _number("kl_penalty", _tokens(tokens), _choice("kind", kind, _KLS), scale)


def kl_exact(
    logprobs: Floats,
    reference: Floats,
    direction: Direction = "forward",
    *,
    scale: float = 1.0,
    gradient: Writable | None = None,
) -> float:
    """The divergence of two distributions: "forward" is KL(model, reference)."""
    chosen = _choice("direction", direction, _DIRECTIONS)
    return _number("kl_exact", (gradient, logprobs, reference), chosen, scale)


def entropy_penalty(
    logits: Floats, temperature: float = 1.0, *, scale: float = 1.0, gradient: Writable | None = None
) -> float:
    """The entropy of softmax(logits / temperature). A negative scale is a bonus."""
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, not {temperature!r}")
    return _number("entropy_penalty", (gradient, logits), temperature, scale)


def elastic_net(
    values: Floats,
    reference: Floats | None = None,
    weights: Floats | None = None,
    *,
    l1: float = 0.0,
    l2: float = 0.0,
    gradient: Writable | None = None,
) -> float:
    """The sum of weight * (l1 |d| + l2 d^2), with d = value - reference."""
    return _number("elastic_net", (gradient, values, reference, weights), l1, l2)


def l2_centered(values: Floats, *, scale: float = 1.0, gradient: Writable | None = None) -> float:
    """The sum of (value - mean)^2."""
    return _number("l2_centered", (gradient, values), scale)


def orthogonality(values: Floats, n_rows: int, *, scale: float = 1.0, gradient: Writable | None = None) -> float:
    """|X X^T - I|^2 of a matrix with `n_rows` rows."""
    _check_divisor("n_rows", n_rows, values, "values")
    return _number("orthogonality", (gradient, values), n_rows, scale)


def gradient_penalty(
    slope: Floats,
    curvature: Floats | None = None,
    target: float = 1.0,
    *,
    scale: float = 1.0,
    gradient: Writable | None = None,
) -> float:
    """(|g| - target)^2 for the gradient g of another loss. A gradient needs `curvature`."""
    if gradient is not None and curvature is None:
        raise ValueError("curvature is needed for a gradient")
    return _number("gradient_penalty", (gradient, slope, curvature), target, scale)


def norm(values: Floats) -> float:
    """The Euclidean norm."""
    return _number("norm", (values,))
