# SPDX-License-Identifier: MIT
"""Losses of the caller's own, which the client runs between two passes.

They need torch. Where it is not installed the few calls that the client and
these cases make of it are served by standin/torch.
"""

import asyncio

import torch
from kit import case, check, check_near, done, done_async


def negative_sum(data, logprobs):
    return -sum(p.sum() for p in logprobs), {"mine": float(len(data))}


@case
def equal_to_cross_entropy(ctx):
    data = ctx.data(3)
    one, two = ctx.new_training(seed=51), ctx.new_training(seed=51)
    custom = done(one.forward_backward_custom(data, negative_sum))
    plain = done(two.forward_backward(data, "cross_entropy"))
    check_near(custom.metrics["mine"], 3)
    if "surrogate_loss:sum" in custom.metrics:
        check_near(custom.metrics["loss:sum"], plain.metrics["loss:sum"], 1e-3)
    for training in (one, two):
        done(training.optim_step(ctx.types.AdamParams(learning_rate=0.02)))
    after = [done(t.forward(data, "cross_entropy")).metrics["loss:sum"] for t in (one, two)]
    check_near(after[0], after[1], 1e-3)


@case
def one_that_is_not_linear(ctx):
    def squares(data, logprobs):
        return sum((p * p).sum() for p in logprobs), {}

    data = ctx.data(2)
    training = ctx.new_training(seed=52)
    before = sum(v * v for row in ctx.logprobs(done(training.forward(data, "cross_entropy"))) for v in row)
    for _ in range(3):
        done(training.forward_backward_custom(data, squares))
        done(training.optim_step(ctx.types.AdamParams(learning_rate=0.02)))
    after = sum(v * v for row in ctx.logprobs(done(training.forward(data, "cross_entropy"))) for v in row)
    check(after < before, f"{after} is not below {before}")


@case
def in_async_form(ctx):
    async def run():
        training = ctx.new_training()
        output = await done_async(training.forward_backward_custom_async(ctx.data(2), negative_sum))
        check(output.metrics["mine"] == 2.0)

    asyncio.run(run())


@case
def torch_tensors_as_inputs(ctx):
    tokens = list(b"tensors")
    datum = ctx.types.Datum(
        model_input=ctx.types.ModelInput.from_ints(tokens[:-1]),
        loss_fn_inputs={
            "target_tokens": torch.tensor(tokens[1:]),
            "weights": torch.tensor([1.0] * (len(tokens) - 1)),
        },
    )
    output = done(ctx.training.forward([datum], "cross_entropy"))
    check(output.metrics["loss:sum"] > 0)
