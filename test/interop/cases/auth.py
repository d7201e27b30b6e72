# SPDX-License-Identifier: MIT
"""A server that wants a key."""

from kit import MODEL, case, check, done, raises


@case
def the_right_key(ctx):
    sampling = done(ctx.service.create_sampling_client(base_model=MODEL))
    check(len(done(sampling.sample(ctx.prompt(), 1, ctx.params())).sequences) == 1)


@case
def a_wrong_key(ctx):
    def call():
        service = ctx.new_service(api_key="tml-wrong")
        return service.create_sampling_client(base_model=MODEL)

    error = raises(call)
    check(getattr(error, "status_code", None) in (401, 403), repr(error))
