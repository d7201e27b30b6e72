# SPDX-License-Identifier: MIT
"""Opening, models of every make, closing."""

import asyncio
import itertools

from kit import MODEL, Counted, case, check, check_near, done, done_async, need, raises, takes


def capabilities_are_ours(answer):
    model = answer.supported_models[0]
    check(model.model_name == MODEL)
    check(model.max_context_length is None or model.max_context_length == 4096)


@case
def capabilities(ctx):
    capabilities_are_ours(ctx.service.get_server_capabilities())


@case
def capabilities_async(ctx):
    capabilities_are_ours(asyncio.run(done_async(ctx.service.get_server_capabilities_async())))


@case
def capabilities_by_rest(ctx):
    need(hasattr(ctx.rest.raw, "get_server_capabilities"), "not in this version")
    answer = done(ctx.rest.get_server_capabilities())
    capabilities_are_ours(answer)
    check(answer.supported_models[0].trainable and answer.supported_models[0].sampleable)


@case
def every_combination_of_train_flags(ctx):
    for mlp, attn, unembed in itertools.product([True, False], repeat=3):
        flags = {"train_mlp": mlp, "train_attn": attn, "train_unembed": unembed}
        if not any(flags.values()):
            raises(lambda: ctx.service.create_lora_training_client(MODEL, 4, **flags))
            continue
        training = ctx.new_training(**flags)
        data = [ctx.datum()]
        first = done(training.forward_backward(data, "cross_entropy"))
        done(training.optim_step(ctx.types.AdamParams(learning_rate=0.01)))
        second = done(training.forward(data, "cross_entropy"))
        check(second.metrics["loss:sum"] < first.metrics["loss:sum"], f"{flags} did not learn")


@case
def ranks_and_info(ctx):
    for rank in (1, 32, 256):
        info = ctx.new_training(rank=rank).get_info()
        check(info.lora_rank in (None, rank), f"rank {info.lora_rank}")
        check(info.is_lora is not False)
        check(info.model_data.model_name == MODEL)
        check(info.model_data.arch and info.model_data.tokenizer_id)


@case
def too_large_a_rank_is_refused(ctx):
    error = raises(lambda: ctx.new_training(rank=100000))
    check("rank" in str(error), str(error))


@case
def an_unknown_base_model_is_refused(ctx):
    error = raises(lambda: ctx.service.create_lora_training_client("no/such-model", 4))
    check("no/such-model" in str(error), str(error))


@case
def seeds_decide_the_adapters(ctx):
    def loss(seed):
        training = ctx.new_training(seed=seed)
        data = [ctx.datum()]
        for _ in range(2):
            done(training.forward_backward(data, "cross_entropy"))
            done(training.optim_step(ctx.types.AdamParams(learning_rate=0.01)))
        return done(training.forward(data, "cross_entropy")).metrics["loss:sum"]

    check(loss(11) == loss(11), "equal seeds differ")
    check(loss(11) != loss(12), "different seeds agree")


@case
def without_seed_and_with_metadata(ctx):
    training = done(
        ctx.service.create_lora_training_client(MODEL, user_metadata={"purpose": "interop", "ü": "✓"})
    )
    check(training.get_info().lora_rank in (None, 32))


@case
def creation_async(ctx):
    async def run():
        training = await done_async(
            ctx.service.create_lora_training_client_async(MODEL, rank=2, seed=3)
        )
        info = await done_async(training.get_info_async())
        check(info.model_id == training.model_id or training.model_id is None)

    asyncio.run(run())


@case
def dimuon(ctx):
    types = ctx.types
    need(hasattr(types, "DimuonOptimizerConfig"), "not in this version")
    training = ctx.new_training(optimizer=types.DimuonOptimizerConfig())
    check(training.get_info().optimizer_config.type == "dimuon")
    data = [ctx.datum()]
    first = done(training.forward_backward(data, "cross_entropy")).metrics["loss:sum"]
    done(training.optim_step(types.DimuonParams(learning_rate=0.02, grad_clip_norm=1.0)))
    check(done(training.forward(data, "cross_entropy")).metrics["loss:sum"] < first)


@case
def an_optimizer_of_another_family_is_refused(ctx):
    types = ctx.types
    need(hasattr(types, "DimuonParams"), "not in this version")
    training = ctx.new_training()
    done(training.forward_backward([ctx.datum()], "cross_entropy"))
    error = raises(lambda: training.optim_step(types.DimuonParams(learning_rate=0.02)))
    check("dimuon" in str(error).lower() or "optimizer" in str(error).lower(), str(error))


@case
def service_options(ctx):
    options = {"user_metadata": {"a": "b"}, "project_id": "project-1"}
    if takes(ctx.tinker.ServiceClient.__init__, "display_name"):
        options["display_name"] = "a name"
    if takes(ctx.tinker.ServiceClient.__init__, "default_headers_overrides"):
        options["default_headers_overrides"] = {"x-extra": "1"}
    service = ctx.new_service(**options)
    sampling = done(service.create_sampling_client(base_model=MODEL))
    answer = done(sampling.sample(ctx.prompt(), 1, ctx.params()))
    check(len(answer.sequences[0].tokens) <= 8)


@case
def closing_in_each_way(ctx):
    need(hasattr(ctx.tinker.ServiceClient, "close"), "not in this version")
    for status in ("success", "errored", "interrupted"):
        service = ctx.new_service()
        done(service.create_sampling_client(base_model=MODEL))
        done(service.close(status, detail=f"ended as {status}"))
        raises(lambda: service.create_sampling_client(base_model=MODEL))
    # Nothing was made: nothing is sent.
    done(ctx.new_service().close("success"))


@case
def as_a_context(ctx):
    need(hasattr(ctx.tinker.ServiceClient, "close"), "not in this version")
    with ctx.new_service().raw as service:
        done(Counted(service).create_sampling_client(base_model=MODEL))
    try:
        with ctx.new_service().raw as service:
            done(Counted(service).create_sampling_client(base_model=MODEL))
            raise KeyError("on purpose")
    except KeyError:
        pass


@case
def closed_sessions_refuse_work(ctx):
    need(hasattr(ctx.tinker.ServiceClient, "close"), "not in this version")
    service = ctx.new_service()
    training = done(service.create_lora_training_client(MODEL, 4, seed=1))
    done(training.forward([ctx.datum()], "cross_entropy"))
    session = service.holder.get_session_id()
    done(service.close("success"))
    answer = done(ctx.rest.get_session(session))
    check(isinstance(answer.training_run_ids, list))


@case
def two_models_do_not_interfere(ctx):
    data = [ctx.datum()]
    one, two = ctx.new_training(seed=5), ctx.new_training(seed=5)
    before = done(two.forward(data, "cross_entropy")).metrics["loss:sum"]
    done(one.forward_backward(data, "cross_entropy"))
    done(one.optim_step(ctx.types.AdamParams(learning_rate=0.05)))
    after = done(two.forward(data, "cross_entropy")).metrics["loss:sum"]
    check_near(before, after, 0)
