# SPDX-License-Identifier: MIT
"""tnk.rl: values, every form of arrays, and errors."""
import array
import math
import threading

from tap import check
from tnk import rl

Q, P, W = [-1.0, -2.0, -0.5], [-1.25, -1.0, -0.5], [1.0, 0.0, 1.0]
R = [p - q for p, q in zip(P, Q)]
E = [math.exp(r) for r in R]
A = [1.0, -1.0, 0.5]


class Tensor:
    """What a tensor of torch has: its array, which shares memory."""

    def __init__(self, values):
        self.values = values

    def detach(self):
        return self

    def numpy(self):
        return self.values


FORMS = {
    "a list": list,
    "a tuple": tuple,
    "float32": lambda v: array.array("f", v),
    "float64": lambda v: array.array("d", v),
    "a memoryview": lambda v: memoryview(array.array("f", v)),
    "bytes of another array": lambda v: memoryview(bytes(array.array("f", v))).cast("f"),
    "every second value": lambda v: memoryview(array.array("f", [x for one in v for x in (one, 9.0)]))[::2],
    "every second float64": lambda v: memoryview(array.array("d", [x for one in v for x in (one, 9.0)]))[::2],
    "a tensor": lambda v: Tensor(array.array("f", v)),
}


def tokens(of, weights=None, gradient=None):
    return rl.Tokens(of(P), of(Q), None if weights is None else of(weights), gradient)


def clip(x, low, high):
    return min(max(x, low), high)


def log_sigmoid(x):
    return -math.log1p(math.exp(-x))


# (name, call with a form of arrays, expected)
VALUES = [
    ("centered", lambda f: rl.group_advantages(f([1.0, 3.0, 2.0, 2.0]), 2), [-1, 1, 0, 0]),
    ("normalized", lambda f: rl.group_advantages(f([1.0, 3.0, 2.0, 2.0]), 2, "normalized"), [-1, 1, 0, 0]),
    ("leave-one-out", lambda f: rl.group_advantages(f([1.0, 3.0]), 2, "leave-one-out"), [-2, 2]),
    ("discounted_sums", lambda f: rl.discounted_sums(f([1.0, 2.0, 4.0]), 0.5), [3, 4, 4]),
    ("k1", lambda f: rl.kl(f(Q), f(P), "k1"), -sum(R) / 3),
    ("k2", lambda f: rl.kl(f(Q), f(P), "k2"), sum(r * r / 2 for r in R) / 3),
    ("k3", lambda f: rl.kl(f(Q), f(P)), sum(e - 1 - r for e, r in zip(E, R)) / 3),
    ("a weighted kl", lambda f: rl.kl(f(Q), f(P), "k1", f(W)), -(R[0] + R[2]) / 2),
    ("kl_tokens", lambda f: rl.kl_tokens(f(Q), f(P), "k1"), [-r for r in R]),
    ("ratios", lambda f: rl.ratios(f(Q), f(P)), E),
    ("drift", lambda f: [rl.drift(f(Q), f(P)).n, rl.drift(f(Q), f(P)).max_abs_log_ratio], [3, 1.0]),
    ("a weighted drift", lambda f: [rl.drift(f(Q), f(P), f(W)).n, rl.drift(f(Q), f(P), f(W)).log_ratio],
     [2, (R[0] + R[2]) / 2]),
    ("drift's ratios", lambda f: [rl.drift(f(Q), f(P)).min_ratio, rl.drift(f(Q), f(P)).max_ratio], [min(E), max(E)]),
    ("effective_sample_size", lambda f: rl.effective_sample_size(f([0.0, 0.0, -math.inf])), 2.0),
    ("sampled_entropy", lambda f: rl.sampled_entropy(f(Q), f(W)), 0.75),
    ("entropy", lambda f: rl.entropy(f([math.log(0.5)] * 2)), math.log(2)),
    ("importance_sampling", lambda f: rl.importance_sampling(tokens(f), f(A), scale=2.0),
     -2 * sum(e * a for e, a in zip(E, A))),
    ("ppo", lambda f: rl.ppo(tokens(f), f(A)),
     -sum(min(e * a, clip(e, 0.8, 1.2) * a) for e, a in zip(E, A))),
    ("cispo", lambda f: rl.cispo(tokens(f), f(A), 0.0, 1.0),
     -sum(clip(e, 0.0, 1.0) * a * p for e, a, p in zip(E, A, P))),
    ("dpo", lambda f: rl.dpo(tokens(f, W), rl.Tokens(f([-1.0]), f([-1.5])), 0.5),
     [-log_sigmoid(0.5 * (R[0] + R[2] - 0.5)), 0.5 * (R[0] + R[2] - 0.5)]),
    ("kl_penalty", lambda f: rl.kl_penalty(tokens(f), "k1", scale=3.0), 3 * sum(R)),
    ("kl_exact", lambda f: rl.kl_exact(f([math.log(0.5)] * 2), f([math.log(0.25), math.log(0.75)])),
     0.5 * math.log(2) + 0.5 * math.log(0.5 / 0.75)),
    ("the other direction", lambda f: rl.kl_exact(f([math.log(0.5)] * 2), f([math.log(0.25), math.log(0.75)]),
                                                  "reverse"), 0.25 * math.log(0.5) + 0.75 * math.log(1.5)),
    ("entropy_penalty", lambda f: rl.entropy_penalty(f([1.0, 1.0]), 2.0, scale=-1.0), -math.log(2)),
    ("elastic_net", lambda f: rl.elastic_net(f([1.0, -2.0]), l1=1.0, l2=0.5), 3 + 2.5),
    ("elastic_net of two", lambda f: rl.elastic_net(f(P), f(Q), f(W), l1=1.0), abs(R[0]) + abs(R[2])),
    ("l2_centered", lambda f: rl.l2_centered(f([1.0, 3.0])), 2.0),
    ("orthogonality", lambda f: rl.orthogonality(f([1.0, 0.0, 0.0, 2.0]), 2), 9.0),
    ("gradient_penalty", lambda f: rl.gradient_penalty(f([3.0, 4.0])), 16.0),
    ("norm", lambda f: rl.norm(f([3.0, 4.0])), 5.0),
]


def listed(value):
    return [value] if isinstance(value, float) else list(value)


def values():
    names = {name for name in rl.__all__ if name not in ("Tokens", "Drift")}
    used = set()
    for name, call, wanted in VALUES:
        used |= {n for n in names if n in call.__code__.co_names}
        for form, make in FORMS.items():
            got = listed(call(make))
            want = listed(wanted) if not isinstance(wanted, (int, float)) else [wanted]
            check(len(got) == len(want) and all(math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6)
                                                for a, b in zip(got, want)), f"{name} of {form}", (got, want))
    check(used == names, "every function has a value", names ^ used)
    check(math.isnan(rl.kl([], [])), "a mean of nothing is NaN")
    check(rl.kl(Q, P, "k1", array.array("b", [1, 0, 1])) == rl.kl(Q, P, "k1", W), "weights may be small integers")
    mask = memoryview(bytes([1, 0, 1])).cast("?")
    check(rl.kl(Q, P, "k1", mask) == rl.kl(Q, P, "k1", W), "or a mask")


def in_place():
    """Outputs and gradients are the caller's own memory."""
    for form, make in FORMS.items():
        if form not in ("float32", "a memoryview", "a tensor"):
            continue
        rewards = make([1.0, 3.0])
        got = rl.group_advantages(rewards, 2, out=rewards)
        plain = rewards.values if isinstance(rewards, Tensor) else rewards
        check(got is rewards and list(plain) == [-1.0, 1.0], f"an output may be an argument: {form}", plain)
        gradient = make([1.0] * 3)
        value = rl.importance_sampling(tokens(list, gradient=gradient), A)
        plain = gradient.values if isinstance(gradient, Tensor) else gradient
        want = [1 - e * a for e, a in zip(E, A)]
        check(value < 2 and all(math.isclose(a, b, rel_tol=1e-5) for a, b in zip(plain, want)),
              f"a gradient is added: {form}", (list(plain), want))
    both = [array.array("f", [0.0] * 3), array.array("f", [0.0])]
    rl.dpo(tokens(list, W, both[0]), rl.Tokens([-1.0], [-1.5], None, both[1]))
    check(both[0][0] < 0 and both[0][1] == 0 and both[1][0] > 0, "dpo has both gradients", both)


def f32(n):
    return array.array("f", [0.0] * n)


# (name, call, exception, what the message has)
ERRORS = [
    ("lengths", lambda: rl.kl(Q, P[:2]), ValueError, "trained has 2 values, but sampled has 3"),
    ("weights' length", lambda: rl.kl(Q, P, "k1", [1.0]), ValueError, "weights has 1 values"),
    ("an output's length", lambda: rl.ratios(Q, P, out=f32(2)), ValueError, "sampled has 3 values, but out has 2"),
    ("a gradient's length", lambda: rl.kl_penalty(rl.Tokens(P, Q, None, f32(4))), ValueError, "gradient has 4"),
    ("a pair's length", lambda: rl.dpo(rl.Tokens(P, Q), rl.Tokens(P, Q, W[:2])), ValueError, "weights of rejected"),
    ("a string", lambda: rl.norm("abc"), TypeError, "values must be numbers"),
    ("no numbers", lambda: rl.norm([1.0, "x"]), TypeError, "values[1] is no number"),
    ("nothing", lambda: rl.norm(None), TypeError, "values must be numbers"),
    ("a number", lambda: rl.norm(7), TypeError, "values must be numbers"),
    ("a wrong type", lambda: rl.norm(memoryview(bytes(8)).cast("P")), TypeError, "values must have the type float32"),
    ("an output of float64", lambda: rl.ratios(Q, P, out=array.array("d", Q)), TypeError,
     "out must have the type float32, not d"),
    ("an output that is a list", lambda: rl.ratios(Q, P, out=[0.0] * 3), TypeError, "out must be a buffer of float32"),
    ("a read-only output", lambda: rl.ratios(Q, P, out=memoryview(bytes(12)).cast("f")), ValueError,
     "out must be contiguous and writable"),
    ("a read-only gradient", lambda: rl.kl_penalty(rl.Tokens(P, Q, None, memoryview(bytes(12)).cast("f"))), ValueError,
     "gradient must be contiguous and writable"),
    ("every second value of an output", lambda: rl.ratios(Q, P, out=memoryview(f32(6))[::2]), ValueError,
     "out must be contiguous"),
    ("a group size", lambda: rl.group_advantages([1.0] * 3, 2), ValueError, "group_size must divide the 3 rewards"),
    ("a group of none", lambda: rl.group_advantages([1.0], 0), ValueError, "group_size"),
    ("a fraction of a group", lambda: rl.group_advantages([1.0], 0.5), TypeError, "group_size must be an integer"),
    ("an advantage", lambda: rl.group_advantages([1.0], 1, "mean"), ValueError, "kind must be one of 'centered'"),
    ("a kind of kl", lambda: rl.kl(Q, P, "k4"), ValueError, "kind must be one of 'k1', 'k2', 'k3', not 'k4'"),
    ("a kind that is a list", lambda: rl.kl(Q, P, []), ValueError, "kind must be one of"),
    ("a direction", lambda: rl.kl_exact(Q, P, "up"), ValueError, "direction must be one of"),
    ("no tokens", lambda: rl.ppo(P, A), TypeError, "tokens must be tnk.rl.Tokens, not list"),
    ("a discount", lambda: rl.discounted_sums([1.0], "x"), TypeError, "real number"),
    ("rows", lambda: rl.orthogonality([1.0], 0), ValueError, "n_rows must be 1"),
    ("rows that do not fit", lambda: rl.orthogonality([1.0] * 3, 2), ValueError, "n_rows must divide the 3 values"),
    ("a temperature", lambda: rl.entropy_penalty([1.0], 0.0), ValueError, "temperature must be above 0"),
    ("no curvature", lambda: rl.gradient_penalty([1.0], gradient=f32(1)), ValueError, "curvature is needed"),
]


def errors():
    for name, call, kind, text in ERRORS:
        error = None
        try:
            call()
        except Exception as found:
            error = found
        check(type(error) is kind and text in str(error), f"{name} is refused", error)


def threads():
    """One array, read by threads without the lock, and resized meanwhile."""
    values = array.array("f", [1.0] * 100000)
    found, failed = [], []

    def work():
        for _ in range(20):
            found.append(rl.norm(values))
            try:
                values.append(1.0)
                values.pop()
            except BufferError:  # another thread reads it
                failed.append(1)
    running = [threading.Thread(target=work) for _ in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    check(len(found) == 80 and all(abs(n - math.sqrt(100000)) < 1 for n in found), "threads share an array")


def run():
    values()
    in_place()
    errors()
    threads()
