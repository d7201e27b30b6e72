# SPDX-License-Identifier: MIT
"""A server that wants short-lived tokens instead of the key."""

import time

from kit import MODEL, case, check, done, need


@case
def training_over_several_tokens(ctx):
    need(ctx.at_least(0, 26), "refreshes by the local clock, not by the token's life")
    training = ctx.new_training()
    sampling = done(ctx.service.create_sampling_client(base_model=MODEL))
    for _ in range(6):
        done(training.forward_backward(ctx.data(2), "cross_entropy"))
        check(len(done(sampling.sample(ctx.prompt(), 1, ctx.params())).sequences) == 1)
        time.sleep(1)
