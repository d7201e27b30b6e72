#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The functions of tnk/rl.h beside the same formulas in numpy.

    python3 rl_numpy.py LIBRARY

Single precision arrays go in, double precision says what is right: values to
1e-6 of themselves, elements to 1e-6 of the largest. Skips where numpy is not
installed:

    python3 -m venv /tmp/v && /tmp/v/bin/pip install numpy
    /tmp/v/bin/python test/codec/rl_numpy.py BUILD/src/libtnk.so
"""
import ctypes
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from tap import check, plan  # noqa: E402

try:
    import numpy as np
except ImportError as missing:
    print(f"1..0 # SKIP {missing}")
    sys.exit(0)

TNK = ctypes.CDLL(sys.argv[1])
FLOATS = ctypes.POINTER(ctypes.c_float)
SIZE = 10007


class Tokens(ctypes.Structure):
    _fields_ = [("n", ctypes.c_size_t), ("logprobs", FLOATS), ("reference", FLOATS),
                ("weights", FLOATS), ("gradient", FLOATS)]


def floats(array):
    return None if array is None else array.ctypes.data_as(FLOATS)


def call(name, *args):
    """Arrays, Python floats as doubles, the rest as sizes and kinds."""
    fn = getattr(TNK, name)
    fn.restype = ctypes.c_double
    return fn(*[floats(a) if isinstance(a, np.ndarray) else
                ctypes.c_double(a) if isinstance(a, float) else
                ctypes.c_size_t(a) if isinstance(a, int) else a for a in args])


def near(name, got, expected):
    expected = np.asarray(expected)
    off = np.max(np.abs(np.asarray(got, dtype="f8") - expected)) / np.max(np.abs(expected))
    check(off < 1e-6, f"{name} agrees with numpy", f"off by {off}")


rng = np.random.default_rng(15)
q = -rng.gamma(1.0, 1.0, SIZE).astype("f4")
p = (q + rng.normal(0, 0.3, SIZE)).astype("f4")
w = (rng.random(SIZE) * (rng.random(SIZE) > 0.3)).astype("f4")
a = rng.normal(0, 1, SIZE).astype("f4")
Q, P, W, A = (x.astype("f8") for x in (q, p, w, a))
R = P - Q
KL = {1: -R, 2: R * R / 2, 3: np.expm1(R) - R}


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def statistics():
    out = np.empty_like(q)
    for size in (8, 100, 8000):
        rewards = a[:8000]
        rows = A[:8000].reshape(-1, size)
        by = rows - rows.mean(1, keepdims=True)
        for kind, expected in ((0, by), (1, by / rows.std(1, keepdims=True)),
                               (2, by * size / (size - 1))):
            call("tnk_rl_group_advantages", out, rewards, 8000, size, kind)
            near(f"advantages of kind {kind} in groups of {size}", out[:8000],
                 expected.ravel())
    for discount in (1.0, 0.9):
        call("tnk_rl_discounted_sums", out, a, SIZE, discount)
        sums = np.empty(SIZE + 1)
        sums[SIZE] = 0
        for i in reversed(range(SIZE)):
            sums[i] = A[i] + discount * sums[i + 1]
        near(f"sums with the discount {discount}", out, sums[:SIZE])
    for kind, each in KL.items():
        near(f"k{kind}", call("tnk_rl_kl", q, p, None, SIZE, kind), each.mean())
        near(f"k{kind} with weights", call("tnk_rl_kl", q, p, w, SIZE, kind),
             np.average(each, weights=W))
        call("tnk_rl_kl_tokens", out, q, p, SIZE, kind)
        near(f"k{kind} of each token", out, each)
    call("tnk_rl_ratios", out, q, p, SIZE)
    near("ratios", out / np.exp(R), np.ones(SIZE))
    near("the effective sample size", call("tnk_rl_effective_sample_size", p, SIZE),
         np.exp(P).sum() ** 2 / np.exp(2 * P).sum())
    near("sampled entropy", call("tnk_rl_sampled_entropy", q, None, SIZE), -Q.mean())
    near("sampled entropy with weights", call("tnk_rl_sampled_entropy", q, w, SIZE),
         -np.average(Q, weights=W))
    lp = np.log(softmax(A)).astype("f4")
    near("entropy", call("tnk_rl_entropy", lp, SIZE),
         -(np.exp(lp.astype("f8")) * lp).sum())
    near("the norm", call("tnk_rl_norm", a, SIZE), np.linalg.norm(A))


def losses():
    ratio = np.exp(R)
    held = np.clip(ratio, 0.8, 1.2)
    ppo = np.minimum(ratio * A, held * A)
    for name, bounds, value, slope in (
            ("importance_sampling", (), ratio * A, ratio * A),
            ("ppo", (0.8, 1.2), ppo, np.where(ratio * A <= held * A, ratio * A, 0)),
            ("cispo", (0.8, 1.2), held * A * P, held * A)):
        g = np.zeros_like(q)
        tokens = Tokens(SIZE, floats(p), floats(q), floats(w), floats(g))
        got = call("tnk_rl_" + name, ctypes.byref(tokens), a, *bounds, 0.5)
        near(name, got, -0.5 * (W * value).sum())
        near(name + "'s gradient", g, -0.5 * W * slope)
    for kind, slope in ((1, np.ones(SIZE)), (2, -R), (3, -np.expm1(R))):
        g = np.zeros_like(q)
        tokens = Tokens(SIZE, floats(q), floats(p), floats(w), floats(g))
        got = call("tnk_rl_kl_penalty", ctypes.byref(tokens), kind, 2.0)
        near(f"the penalty k{kind}", got, 2 * (W * KL[kind]).sum())
        near(f"the gradient of the penalty k{kind}", g, 2 * W * slope)
    gc, gr = np.zeros_like(q), np.zeros_like(q)
    chosen = Tokens(100, floats(p), floats(q), floats(w), floats(gc))
    rejected = Tokens(100, floats(q), floats(p), floats(w), floats(gr))
    d = 0.1 * 2 * (W * R)[:100].sum()
    near("dpo", call("tnk_rl_dpo", ctypes.byref(chosen), ctypes.byref(rejected),
                     0.1, 1.0, None), np.logaddexp(0, -d))
    near("dpo's gradient", gc[:100], -0.1 / (1 + np.exp(d)) * W[:100])
    near("dpo's other gradient", gr[:100], 0.1 / (1 + np.exp(d)) * W[:100])


def regularizers():
    g = np.zeros_like(q)
    near("l1 and l2", call("tnk_rl_elastic_net", g, p, q, w, SIZE, 0.3, 0.7),
         (W * (0.3 * np.abs(R) + 0.7 * R * R)).sum())
    near("their gradient", g, W * (0.3 * np.sign(R) + 1.4 * R))
    g[:] = 0
    near("l2 about the mean", call("tnk_rl_l2_centered", g, a, SIZE, 0.5),
         0.5 * ((A - A.mean()) ** 2).sum())
    near("its gradient", g, A - A.mean())
    g[:] = 0
    near("the entropy of logits", call("tnk_rl_entropy_penalty", g, a, 50, 2.0, 3.0),
         -3 * (softmax(A[:50] / 2) * np.log(softmax(A[:50] / 2))).sum())
    s = softmax(A[:50] / 2)
    near("its gradient", g[:50], -1.5 * s * (np.log(s) - (s * np.log(s)).sum()))
    for direction, forth in ((0, 1), (1, 0), (2, 0.5)):
        g[:] = 0
        x, y = forth * np.exp(P), (1 - forth) * np.exp(Q)
        near(f"divergence {direction}",
             call("tnk_rl_kl_exact", g, p, q, SIZE, direction, 1.0), ((x - y) * R).sum())
        near("its gradient", g, x * (R + 1) - y)
    g[:] = 0
    rows = A[:600].reshape(20, 30)
    by = rows @ rows.T - np.eye(20)
    near("orthogonality", call("tnk_rl_orthogonality", g, a, 20, 30, 0.1),
         0.1 * (by ** 2).sum())
    near("its gradient", g[:600], 0.4 * (by @ rows).ravel())
    g[:] = 0
    norm = np.linalg.norm(A)
    near("the gradient penalty",
         call("tnk_rl_gradient_penalty", g, a, p, SIZE, 1.0, 0.5), 0.5 * (norm - 1) ** 2)
    near("its gradient", g, (norm - 1) / norm * P)


statistics()
losses()
regularizers()
plan()
