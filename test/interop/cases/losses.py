# SPDX-License-Identifier: MIT
"""Every loss that can be named, with its settings."""

import math

from kit import case, check, check_near, done, need, raises


def rl_datum(ctx, text="reinforce", **more):
    n = len(text) - 1
    inputs = {"logprobs": [-2.0 - 0.1 * i for i in range(n)],
              "advantages": [1.0 - 0.3 * i for i in range(n)]}
    inputs.update(more)
    return ctx.datum(text, **inputs)


def rows(ctx, output, datum):
    p = ctx.logprobs(output)[0]
    q = list(datum.loss_fn_inputs["logprobs"].data)
    a = list(datum.loss_fn_inputs["advantages"].data)
    return zip(p, q, a, strict=True)


def run(ctx, loss_fn, config, expected, **more):
    """Forward and backward agree, and the metric is what the formula says."""
    datum = rl_datum(ctx, **more)
    training = ctx.new_training(seed=31)
    forward = done(training.forward([datum], loss_fn, config))
    backward = done(training.forward_backward([datum], loss_fn, config))
    done(training.optim_step(ctx.types.AdamParams(learning_rate=0.01)))
    check_near(forward.metrics["loss:sum"], backward.metrics["loss:sum"], 1e-4)
    want = sum(expected(*row) for row in rows(ctx, forward, datum))
    check(abs(forward.metrics["loss:sum"] - want) <= 1e-3 * max(1, abs(want)),
          f"{loss_fn}: {forward.metrics['loss:sum']} is not {want}")
    after = done(training.forward([datum], loss_fn, config)).metrics["loss:sum"]
    check(math.isfinite(after))


def clip(low, high):
    return lambda r: min(max(r, low), high)


@case
def cross_entropy(ctx):
    output = done(ctx.training.forward_backward([ctx.datum()], "cross_entropy"))
    check_near(output.metrics["loss:sum"], -sum(ctx.logprobs(output)[0]), 1e-3)


@case
def importance_sampling(ctx):
    run(ctx, "importance_sampling", None, lambda p, q, a: -math.exp(p - q) * a)


def ppo_row(cut):
    return lambda p, q, a: -min(math.exp(p - q) * a, cut(math.exp(p - q)) * a)


@case
def ppo(ctx):
    run(ctx, "ppo", None, ppo_row(clip(0.8, 1.2)))
    run(ctx, "ppo", {"clip_low_threshold": 0.5, "clip_high_threshold": 1.5},
        ppo_row(clip(0.5, 1.5)))


def cispo_row(cut):
    return lambda p, q, a: -cut(math.exp(p - q)) * p * a


@case
def cispo(ctx):
    config = {"clip_low_threshold": 0.7, "clip_high_threshold": 1.1}
    run(ctx, "cispo", config, cispo_row(clip(0.7, 1.1)))


@case
def dro(ctx):
    beta = 0.1
    run(ctx, "dro", {"beta": beta}, lambda p, q, a: -(p * a - 0.5 * beta * (p - q) ** 2))


@case
def gspo(ctx):
    text = "sequence"
    n = len(text) - 1
    datum = rl_datum(ctx, text, sequence_ratio_mask=[1.0] * n)
    config = {"clip_low_threshold": 0.9, "clip_high_threshold": 1.1}
    training = ctx.new_training(seed=32)
    output = done(training.forward_backward([datum], "gspo", config))
    triples = list(rows(ctx, output, datum))
    s = math.exp(sum(p - q for p, q, _ in triples) / n)
    cut = clip(0.9, 1.1)
    want = sum(-min(s * a, cut(s) * a) for _, _, a in triples)
    check_near(output.metrics["loss:sum"], want, 1e-2)


@case
def settings_that_a_loss_does_not_have(ctx):
    training = ctx.new_training()
    raises(lambda: training.forward([ctx.datum()], "cross_entropy", {"beta": 1.0}))
    raises(lambda: training.forward([rl_datum(ctx)], "ppo", {"nonsense": 1.0}))
    done(training.forward([ctx.datum()], "cross_entropy", {}))


@case
def settings_that_are_texts(ctx):
    training = ctx.new_training()
    need(ctx.at_least(0, 27), "texts cannot be settings yet")
    raises(lambda: training.forward([rl_datum(ctx)], "ppo", {"clip_low_threshold": "low"}))
    done(training.forward([ctx.datum()], "cross_entropy"))


@case
def mixed_lengths_in_one_pass(ctx):
    data = [rl_datum(ctx, "a" * n) for n in (2, 9, 3, 30)]
    output = done(ctx.training.forward_backward(data, "importance_sampling"))
    check([len(v) for v in ctx.logprobs(output)] == [1, 8, 2, 29])
