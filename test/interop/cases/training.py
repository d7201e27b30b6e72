# SPDX-License-Identifier: MIT
"""Passes, steps, saves and loads."""

import asyncio
import time

from kit import MODEL, case, check, check_near, done, done_async, need, raises, takes


def adam(ctx, rate=0.01, **more):
    return ctx.types.AdamParams(learning_rate=rate, **more)


def loss(training, data):
    return done(training.forward(data, "cross_entropy")).metrics["loss:sum"]


def name(prefix):
    return f"{prefix}-{time.time_ns():x}"


@case
def a_loop_learns(ctx):
    training = ctx.new_training()
    data = ctx.data(3)
    first = loss(training, data)
    for _ in range(4):
        # Both are under way before either is waited for.
        pass_ = training.forward_backward(data, "cross_entropy")
        step = training.optim_step(adam(ctx, 0.02))
        output, stepped = done(pass_), done(step)
        check(len(output.loss_fn_outputs) == 3)
        check(stepped.metrics is None or isinstance(stepped.metrics, dict))
    check(output.metrics["loss:sum"] < 0.9 * first)


@case
def outputs_have_their_shapes(ctx):
    data = ctx.data(4)
    output = done(ctx.training.forward(data, "cross_entropy"))
    check(isinstance(output.loss_fn_output_type, str))
    for datum, values in zip(data, ctx.logprobs(output), strict=True):
        check(len(values) == datum.model_input.length)
        check(all(v < 0 for v in values))


@case
def loss_is_the_weighted_sum_of_logprobs(ctx):
    weights = [0.5, 0.0, 2.0, 1.0, 0.25]
    output = done(ctx.training.forward([ctx.datum("abcdef", weights=weights)], "cross_entropy"))
    expected = -sum(w * p for w, p in zip(weights, ctx.logprobs(output)[0], strict=True))
    check_near(output.metrics["loss:sum"], expected, 1e-3)


@case
def chunks_keep_their_order(ctx):
    """Cut into many requests or not, in parallel or not: the same outputs."""
    data = ctx.data(7)
    whole = ctx.logprobs(done(ctx.training.forward(data, "cross_entropy")))
    for datum, expected in zip(data, whole, strict=True):
        single = ctx.logprobs(done(ctx.training.forward([datum], "cross_entropy")))[0]
        check(single == expected, "an output is at another's place")


@case
def chunks_add_their_gradients(ctx):
    data = ctx.data(6)

    def trained(parts):
        training = ctx.new_training(seed=9)
        passes = [training.forward_backward(part, "cross_entropy") for part in parts]
        done(training.optim_step(adam(ctx)))
        total = sum(done(p).metrics["loss:sum"] for p in passes)
        return total, loss(training, data)

    one, many = trained([data]), trained([[d] for d in data])
    check_near(one[0], many[0], 1e-2)
    check_near(one[1], many[1], 1e-2)


@case
def a_hundred_operations_at_once(ctx):
    training = ctx.new_training()
    futures = []
    for i in range(50):
        futures.append(training.forward_backward([ctx.datum(f"item {i}")], "cross_entropy"))
        futures.append(training.optim_step(adam(ctx, 0.001)))
    for future in futures:
        done(future)


@case
def every_parameter_of_adam(ctx):
    training = ctx.new_training()
    data = [ctx.datum()]
    for parameters in (
        {},
        {"beta1": 0.8, "beta2": 0.9, "eps": 1e-6},
        {"weight_decay": 0.1} if takes(ctx.types.AdamParams, "weight_decay") else {},
        {"grad_clip_norm": 0.5} if takes(ctx.types.AdamParams, "grad_clip_norm") else {},
    ):
        done(training.forward_backward(data, "cross_entropy"))
        done(training.optim_step(adam(ctx, **parameters)))
    before = loss(training, data)
    done(training.optim_step(adam(ctx, 0.0)))
    check_near(loss(training, data), before, 0)


@case
def numpy_and_lists_as_inputs(ctx):
    import numpy

    tokens = list(b"numbers")
    results = []
    for make in (numpy.asarray, list):
        datum = ctx.types.Datum(
            model_input=ctx.types.ModelInput.from_ints(tokens[:-1]),
            loss_fn_inputs={
                "target_tokens": make(tokens[1:]),
                "weights": make([1.0] * (len(tokens) - 1)),
            },
        )
        results.append(ctx.logprobs(done(ctx.training.forward([datum], "cross_entropy"))))
    check(results[0] == results[1])


@case
def several_targets_a_position(ctx):
    n, k = 5, 3
    inputs = {
        "target_tokens": ctx.i64([65 + i % 20 for i in range(n * k)], [n, k]),
        "weights": ctx.f32([0.1 * (i % 4) for i in range(n * k)], [n, k]),
    }
    datum = ctx.types.Datum(model_input=ctx.prompt("abcde"), loss_fn_inputs=inputs)
    output = done(ctx.training.forward([datum], "cross_entropy"))
    tensor = output.loss_fn_outputs[0]["logprobs"]
    check(list(tensor.shape or []) == [n, k], f"shape {tensor.shape}")
    expected = -sum(w * p for w, p in zip(inputs["weights"].data, tensor.data, strict=True))
    check_near(output.metrics["loss:sum"], expected, 1e-3)


@case
def sparse_inputs(ctx):
    need(takes(ctx.types.TensorData, "sparse_crow_indices"), "not in this version")
    n, k = 4, 6
    sparse = {"sparse_crow_indices": [0, 1, 1, 2, 3], "sparse_col_indices": [0, 2, 5]}
    weights = ctx.types.TensorData(data=[1.0, 0.5, 2.0], dtype="float32", shape=[n, k], **sparse)
    dense = [0.0] * (n * k)
    dense[0], dense[2 * k + 2], dense[3 * k + 5] = 1.0, 0.5, 2.0
    losses = []
    for tensor in (weights, ctx.f32(dense, [n, k])):
        inputs = {"target_tokens": ctx.i64(list(range(60, 60 + n * k)), [n, k]), "weights": tensor}
        datum = ctx.types.Datum(model_input=ctx.prompt("wxyz"), loss_fn_inputs=inputs)
        losses.append(done(ctx.training.forward([datum], "cross_entropy")).metrics["loss:sum"])
    check_near(losses[0], losses[1], 1e-4)


@case
def provenance(ctx):
    need(hasattr(ctx.types, "SampledProvenanceSpan"), "not in this version")
    answer = done(ctx.sampling.sample(ctx.prompt("abc"), 1, ctx.params(max_tokens=4, stop=[])))
    sequence = answer.sequences[0]
    tokens = list(b"abc") + list(sequence.tokens)
    datum = ctx.types.Datum(
        model_input=ctx.types.ModelInput.from_ints(tokens[:-1]),
        loss_fn_inputs={"target_tokens": ctx.i64(tokens[1:]), "weights": ctx.f32([1.0] * 6)},
    )
    prompt, sampled = ctx.types.PromptProvenanceSpan, ctx.types.SampledProvenanceSpan
    made_by = sequence.sequence_id
    datum = datum.with_provenance(
        [prompt(sequence_id=made_by, length=3), sampled(sequence_id=made_by, length=3)],
        [
            prompt(sequence_id=made_by, offset=1, length=2),
            sampled(sequence_id=made_by, length=4),
        ],
    )
    done(ctx.training.forward([datum], "cross_entropy"))


@case
def refused_input_leaves_the_client_usable(ctx):
    training = ctx.new_training()
    for data, loss_fn in (
        ([ctx.datum()], "no_such_loss"),
        ([ctx.datum("abc", weights=[1.0])], "cross_entropy"),
        ([ctx.types.Datum(model_input=ctx.prompt(), loss_fn_inputs={})], "cross_entropy"),
        ([ctx.datum()], "importance_sampling"),
    ):
        raises(lambda data=data, loss_fn=loss_fn: training.forward_backward(data, loss_fn))
    raises(lambda: training.optim_step(adam(ctx, -1.0)))
    raises(lambda: training.save_state("a/b"))
    raises(lambda: training.save_weights_for_sampler(""))
    raises(lambda: training.load_state("tinker://nowhere"))
    raises(lambda: training.load_state("tinker://nobody/weights/nothing"))
    check(loss(training, [ctx.datum()]) > 0)


@case
def images_are_refused_in_words(ctx):
    chunk = ctx.types.ImageChunk(data=b"\x89PNG....", format="png", expected_tokens=4)
    inputs = {"target_tokens": ctx.i64([1] * 4), "weights": ctx.f32([1.0] * 4)}
    datum = ctx.types.Datum(
        model_input=ctx.types.ModelInput(chunks=[chunk]), loss_fn_inputs=inputs
    )
    training = ctx.new_training()
    error = raises(lambda: training.forward([datum], "cross_entropy"))
    check("image" in str(error).lower() or "chunk" in str(error).lower(), str(error))


@case
def async_forms(ctx):
    async def run():
        training = await done_async(
            ctx.service.create_lora_training_client_async(MODEL, rank=2, seed=4)
        )
        data = ctx.data(3)
        first = await done_async(training.forward_async(data, "cross_entropy"))
        output = await done_async(training.forward_backward_async(data, "cross_entropy"))
        await done_async(training.optim_step_async(adam(ctx, 0.02)))
        check_near(first.metrics["loss:sum"], output.metrics["loss:sum"], 1e-3)
        path = (await done_async(training.save_state_async(name("async")))).path
        await done_async(training.load_state_async(path))
        await done_async(training.load_state_with_optimizer_async(path))
        sampler = await done_async(training.save_weights_for_sampler_async(name("async")))
        sampling = await done_async(training.create_sampling_client_async(sampler.path))
        answer = await done_async(sampling.sample_async(ctx.prompt(), 2, ctx.params()))
        check(len(answer.sequences) == 2)
        sampling = await done_async(training.save_weights_and_get_sampling_client_async())
        await done_async(sampling.compute_logprobs_async(ctx.prompt()))
        again = await done_async(ctx.service.create_training_client_from_state_async(path))
        await done_async(again.forward_async(data, "cross_entropy"))
        again = await done_async(
            ctx.service.create_training_client_from_state_with_optimizer_async(path)
        )
        await done_async(again.optim_step_async(adam(ctx)))

    asyncio.run(run())


# ---- saves and loads ---------------------------------------------------------


def train(ctx, training, data, n):
    for _ in range(n):
        done(training.forward_backward(data, "cross_entropy"))
        done(training.optim_step(adam(ctx, 0.02)))
    return loss(training, data)


@case
def a_saved_state_goes_on(ctx):
    data = ctx.data(2)
    training = ctx.new_training(seed=21)
    train(ctx, training, data, 3)
    path = done(training.save_state(name("state"))).path
    check(path.startswith("tinker://") and "/weights/" in path, path)
    at_save = loss(training, data)
    goes_on = train(ctx, training, data, 2)

    with_optimizer = done(ctx.service.create_training_client_from_state_with_optimizer(path))
    check_near(loss(with_optimizer, data), at_save, 0)
    check_near(train(ctx, with_optimizer, data, 2), goes_on, 0)

    weights_only = done(ctx.service.create_training_client_from_state(path))
    check_near(loss(weights_only, data), at_save, 0)
    check(train(ctx, weights_only, data, 2) != goes_on, "the moments were loaded as well")


@case
def loading_into_a_live_model(ctx):
    data = ctx.data(2)
    training = ctx.new_training(seed=22)
    train(ctx, training, data, 2)
    path = done(training.save_state(name("live"))).path
    at_save = loss(training, data)
    train(ctx, training, data, 2)
    answer = done(training.load_state(path))
    check(answer.path in (None, path))
    check_near(loss(training, data), at_save, 0)
    train(ctx, training, data, 1)
    done(training.load_state_with_optimizer(path))
    check_near(loss(training, data), at_save, 0)


@case
def options_of_saving(ctx):
    training = ctx.new_training()
    options = {"ttl_seconds": 3600}
    if takes(type(training.raw).save_state, "user_metadata"):
        options["user_metadata"] = {"step": "1"}
    once = name("options")
    first = done(training.save_state(once, **options)).path
    if takes(type(training.raw).save_state, "overwrite"):
        check(done(training.save_state(once, overwrite=True)).path == first)
    done(training.save_weights_for_sampler(name("options"), **options))


@case
def from_state_with_options(ctx):
    path = done(ctx.training.save_state(name("from"))).path
    options = {"user_metadata": {"from": "state"}}
    create = ctx.tinker.ServiceClient.create_training_client_from_state
    if takes(create, "base_model"):
        options["base_model"] = MODEL
    training = done(ctx.service.create_training_client_from_state(path, **options))
    check(training.get_info().model_data.model_name == MODEL)
    if takes(create, "optimizer") and hasattr(ctx.types, "DimuonOptimizerConfig"):
        config = ctx.types.DimuonOptimizerConfig()
        training = done(ctx.service.create_training_client_from_state(path, optimizer=config))
        check(training.get_info().optimizer_config.type == "dimuon")


@case
def an_unknown_state_is_refused(ctx):
    path = "tinker://nobody:train:0/weights/nothing"
    raises(lambda: ctx.service.create_training_client_from_state(path))


@case
def samplers_of_a_training(ctx):
    training = ctx.new_training(seed=23)
    data = [ctx.datum("abababababababab")]
    before = training.save_weights_and_get_sampling_client()
    train(ctx, training, data, 6)
    named = done(training.save_weights_for_sampler(name("sampler")))
    check("/sampler_weights/" in named.path, named.path)
    after = training.save_weights_and_get_sampling_client()
    by_path = training.create_sampling_client(named.path)
    by_service = ctx.service.create_sampling_client(model_path=named.path)

    def scored(sampling):
        values = done(done(sampling).compute_logprobs(ctx.prompt("abababab")))
        return sum(v for v in values if v is not None)

    score = scored(after)
    check(score > scored(before) + 1, "the sampler has not trained")
    check_near(scored(by_path), score, 0)
    check_near(scored(by_service), score, 0)


@case
def kinds_of_samplers(ctx):
    training = ctx.new_training(seed=24)
    save = type(training.raw).save_weights_and_get_sampling_client
    need(takes(save, "kind"), "not in this version")
    data = [ctx.datum("xyxyxyxyxyxyxy")]
    snapshot = done(training.save_weights_and_get_sampling_client(kind="snapshot"))
    inflight = done(training.save_weights_and_get_sampling_client(kind="inflight"))
    before = done(snapshot.compute_logprobs(ctx.prompt("xyxyxy")))
    train(ctx, training, data, 4)
    done(training.save_weights_and_get_sampling_client(kind="inflight", record_stability_info=True))
    check(done(snapshot.compute_logprobs(ctx.prompt("xyxyxy"))) == before, "a snapshot moved")
    # Whether these weights moved is the server's to say; ours makes snapshots.
    done(inflight.compute_logprobs(ctx.prompt("xyxyxy")))


@case
def external_weights(ctx):
    training = ctx.new_training()
    need(hasattr(type(training.raw), "save_weights_external"), "not in this version")
    saved = done(training.save_weights_external(name("external"), ttl_seconds=3600))
    check("/external_weights/" in saved.path, saved.path)
