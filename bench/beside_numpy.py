#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Functions of tnk/rl.h beside numpy: what it does in at most five calls.

    beside_numpy.py LIBRARY [TOKENS [ROUNDS]]

Prints one line of JSON: milliseconds of CPU of both, by name.
"""
import ctypes
import json
import sys
import time

try:
    import numpy as np
except ImportError:
    print("left out, for numpy is missing: pip install numpy")
    sys.exit(0)

TNK = ctypes.CDLL(sys.argv[1])
N = int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 20
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 100
FLOATS = ctypes.POINTER(ctypes.c_float)


class Tokens(ctypes.Structure):
    _fields_ = [("n", ctypes.c_size_t), ("logprobs", FLOATS), ("reference", FLOATS),
                ("weights", FLOATS), ("gradient", FLOATS)]


def floats(array):
    return array.ctypes.data_as(FLOATS)


def place(values):
    """At the beginning of a line of the cache, wherever the allocator puts it:
    where it does not, both are slower, and not by the same."""
    memory = np.empty(N + 16, "f4")
    at = -memory.ctypes.data % 64 // 4
    memory[at:at + N] = values
    return memory[at:at + N]


rng = np.random.default_rng(0)
s = place(-3 * rng.random(N))
t = place(s + rng.normal(0, 0.1, N))
w = place(rng.random(N) > 0.3)
a = place(rng.normal(0, 1, N))
o = place(0)
g = place(0)
S, T, W, A, O, G = map(floats, (s, t, w, a, o, g))
size = ctypes.c_size_t(N)
one = ctypes.c_double(1)
tokens = ctypes.byref(Tokens(N, T, S, None, G))
for name in ("kl", "effective_sample_size", "sampled_entropy", "entropy", "norm",
             "importance_sampling", "cispo", "kl_penalty", "elastic_net", "l2_centered"):
    getattr(TNK, "tnk_rl_" + name).restype = ctypes.c_double


def advantages(n, kind):
    rows = a.reshape(-1, n)
    mean = [lambda: rows - rows.mean(1, keepdims=True),
            lambda: (rows - rows.mean(1, keepdims=True)) / rows.std(1, keepdims=True),
            lambda: (rows - rows.mean(1, keepdims=True)) * (n / (n - 1))][kind]
    return (lambda: TNK.tnk_rl_group_advantages(O, A, size, ctypes.c_size_t(n), kind), mean)


def kl(kind, weights, theirs):
    return lambda: TNK.tnk_rl_kl(S, T, weights, size, kind), theirs


def k3():
    r = t - s
    return np.expm1(r) - r


def kish():
    e = np.exp(s - s.max())
    return e.sum() ** 2 / np.dot(e, e)


def gradient(slope, value):
    np.subtract(g, slope, out=g)
    return value


def sampling():
    x = np.exp(t - s) * a
    return gradient(x, x.sum())


def cispo():
    x = np.clip(np.exp(t - s), 0, 4) * a
    return gradient(x, np.dot(x, t))


def penalty_k3():
    r = s - t
    e = np.expm1(r)
    return gradient(e, (e - r).sum())


def square():
    return gradient(2 * s, np.dot(s, s))


FUNCTIONS = {
    "advantages, groups of 8": advantages(8, 0),
    "advantages, groups of 8, normalized": advantages(8, 1),
    "advantages, groups of 8, leave one out": advantages(8, 2),
    "advantages, one group": advantages(N, 0),
    "advantages, one group, normalized": advantages(N, 1),
    "sums of what follows": (lambda: TNK.tnk_rl_discounted_sums(O, A, size, one),
                             lambda: np.cumsum(a[::-1])[::-1]),
    "k1": kl(1, None, lambda: (s - t).mean()),
    "k2": kl(2, None, lambda: (lambda r: np.dot(r, r) / 2 / N)(t - s)),
    "k3": kl(3, None, lambda: k3().mean()),
    "k1 with weights": kl(1, W, lambda: np.dot(w, s - t) / w.sum()),
    "k2 with weights": kl(2, W, lambda: np.dot(w, (t - s) ** 2) / 2 / w.sum()),
    "k3 with weights": kl(3, W, lambda: np.dot(w, k3()) / w.sum()),
    # As fast as memory is: into the same memory, then.
    "k1 of each": (lambda: TNK.tnk_rl_kl_tokens(O, S, T, size, 1), lambda: np.subtract(s, t, out=o)),
    "k2 of each": (lambda: TNK.tnk_rl_kl_tokens(O, S, T, size, 2), lambda: (t - s) ** 2 / 2),
    "k3 of each": (lambda: TNK.tnk_rl_kl_tokens(O, S, T, size, 3), k3),
    "ratios": (lambda: TNK.tnk_rl_ratios(O, S, T, size), lambda: np.exp(t - s)),
    "effective sample size": (lambda: TNK.tnk_rl_effective_sample_size(S, size), kish),
    "sampled entropy": (lambda: TNK.tnk_rl_sampled_entropy(S, None, size), lambda: -s.mean()),
    "sampled entropy with weights": (lambda: TNK.tnk_rl_sampled_entropy(S, W, size),
                                     lambda: -np.dot(w, s) / w.sum()),
    "entropy": (lambda: TNK.tnk_rl_entropy(S, size), lambda: -np.dot(np.exp(s), s)),
    "norm": (lambda: TNK.tnk_rl_norm(S, size), lambda: np.sqrt(np.dot(s, s))),
    "importance sampling": (lambda: TNK.tnk_rl_importance_sampling(tokens, A, one), sampling),
    "cispo": (lambda: TNK.tnk_rl_cispo(tokens, A, ctypes.c_double(0), ctypes.c_double(4), one), cispo),
    "penalty k1": (lambda: TNK.tnk_rl_kl_penalty(tokens, 1, one),
                   lambda: gradient(1, (t - s).sum())),
    "penalty k2": (lambda: TNK.tnk_rl_kl_penalty(tokens, 2, one),
                   lambda: (lambda r: gradient(r, np.dot(r, r) / 2))(t - s)),
    "penalty k3": (lambda: TNK.tnk_rl_kl_penalty(tokens, 3, one), penalty_k3),
    "l1": (lambda: TNK.tnk_rl_elastic_net(G, S, None, None, size, one, ctypes.c_double(0)),
           lambda: gradient(np.sign(s), np.abs(s).sum())),
    "l2": (lambda: TNK.tnk_rl_elastic_net(G, S, None, None, size, ctypes.c_double(0), one), square),
    "l2 about the mean": (lambda: TNK.tnk_rl_l2_centered(G, S, size, one),
                          lambda: (lambda x: gradient(x, np.dot(x, x)))(s - s.mean())),
}

result = {}
for name, pair in FUNCTIONS.items():
    best = [float("inf"), float("inf")]
    for _ in range(ROUNDS):
        for i, call in enumerate(pair):
            began = time.thread_time()
            call()
            best[i] = min(best[i], (time.thread_time() - began) * 1e3)
    result[name] = best
print(json.dumps(result))
