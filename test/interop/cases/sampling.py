# SPDX-License-Identifier: MIT
"""Samples with every parameter, logprobs of every kind, many at once."""

import asyncio
import concurrent.futures
import math
import pickle
import threading

from kit import CALLS, MODEL, Counted, case, check, check_near, done, done_async, need, raises, takes


def sample(ctx, prompt="the quick brown", n=1, params=None, **options):
    return done(ctx.sampling.sample(ctx.prompt(prompt), n, params or ctx.params(), **options))


def offers(ctx, *names):
    need(takes(ctx.tinker.SamplingClient.sample, *names), "not in this version")


@case
def plain(ctx):
    sequence = sample(ctx, params=ctx.params(stop=[])).sequences[0]
    check(len(sequence.tokens) == 8 and len(sequence.logprobs) == 8)
    check(sequence.stop_reason == "length")
    check(all(0 <= t < 258 for t in sequence.tokens) and all(p <= 0 for p in sequence.logprobs))


@case
def nothing_but_a_prompt(ctx):
    answer = sample(ctx, "x" * 4000, params=ctx.types.SamplingParams())
    check(answer.sequences[0].stop_reason in ("stop", "length"))


@case
def several_samples(ctx):
    params = ctx.params(max_tokens=12, seed=5, stop=[])
    one = [s.tokens for s in sample(ctx, n=4, params=params).sequences]
    two = [s.tokens for s in sample(ctx, n=4, params=params).sequences]
    other = [s.tokens for s in sample(ctx, n=4, params=ctx.params(max_tokens=12, seed=6, stop=[])).sequences]
    check(len(one) == 4 and one == two and one != other)
    check(len({tuple(t) for t in one}) > 1, "all samples are the same")


@case
def sequence_ids_differ(ctx):
    answer = sample(ctx, n=3)
    need(hasattr(answer.sequences[0], "sequence_id"), "not in this version")
    check(len({s.sequence_id for s in answer.sequences}) == 3)


@case
def temperatures(ctx):
    greedy = [sample(ctx, params=ctx.params(temperature=0.0, seed=s)).sequences[0].tokens for s in (1, 2)]
    check(greedy[0] == greedy[1])
    for temperature in (0.01, 0.5, 1.0, 2.0):
        sample(ctx, params=ctx.params(temperature=temperature))


@case
def top_k_and_top_p(ctx):
    best = sample(ctx, params=ctx.params(temperature=0.0)).sequences[0].tokens
    for seed in (1, 2, 3):
        check(sample(ctx, params=ctx.params(top_k=1, seed=seed)).sequences[0].tokens == best)
    check(sample(ctx, params=ctx.params(top_p=1e-6)).sequences[0].tokens == best)
    for more in ({"top_k": 5}, {"top_k": -1}, {"top_p": 0.9}, {"top_k": 3, "top_p": 0.5}):
        sample(ctx, params=ctx.params(**more))


@case
def without_a_seed(ctx):
    params = ctx.types.SamplingParams(max_tokens=24, stop=[])
    check(sample(ctx, params=params).sequences[0].tokens != sample(ctx, params=params).sequences[0].tokens)


@case
def seeds_of_every_size(ctx):
    for seed in (0, 1, 2**31 - 1):
        sample(ctx, params=ctx.params(seed=seed))


@case
def stop_texts_and_tokens(ctx):
    free = sample(ctx, params=ctx.params(max_tokens=40, stop=[])).sequences[0].tokens
    token = next(t for t in free if t < 128)
    at = free.index(token) + 1
    for stop in ([token], chr(token), [chr(token)], [chr(token), "never seen"], [token, 257]):
        sequence = sample(ctx, params=ctx.params(max_tokens=40, stop=stop)).sequences[0]
        check(sequence.stop_reason == "stop", f"{stop!r} did not stop")
        check(list(sequence.tokens) == list(free[:at]), f"{stop!r} stopped elsewhere")
    check(sample(ctx, params=ctx.params(stop="never seen")).sequences[0] is not None)


@case
def chunks_of_a_prompt(ctx):
    text = ctx.types.EncodedTextChunk
    whole = list(b"in several chunks")
    split = ctx.types.ModelInput(
        chunks=[text(tokens=whole[:5]), text(tokens=[]), text(tokens=whole[5:])]
    )
    one = done(ctx.sampling.sample(split, 1, ctx.params())).sequences[0].tokens
    two = done(ctx.sampling.sample(ctx.types.ModelInput.from_ints(whole), 1, ctx.params()))
    check(one == two.sequences[0].tokens)


@case
def prompts_that_are_refused(ctx):
    types = ctx.types
    for prompt, params in (
        (types.ModelInput.from_ints([99999]), ctx.params()),
        (types.ModelInput.from_ints(list(b"x" * 5000)), ctx.params()),
        (types.ModelInput(chunks=[]), ctx.params()),
        (ctx.prompt(), ctx.params(temperature=-1.0)),
        (ctx.prompt(), ctx.params(top_p=2.0)),
    ):
        raises(lambda prompt=prompt, params=params: ctx.sampling.sample(prompt, 1, params))


# ---- logprobs ----------------------------------------------------------------


@case
def prompt_logprobs(ctx):
    values = sample(ctx, "abcdef", include_prompt_logprobs=True).prompt_logprobs
    check(len(values) == 6 and values[0] is None and all(v < 0 for v in values[1:]))
    check(sample(ctx, "abcdef").prompt_logprobs is None)
    check(done(ctx.sampling.compute_logprobs(ctx.prompt("abcdef"))) == values)


@case
def topk_of_the_prompt(ctx):
    for k in (1, 5, 20):
        answer = sample(ctx, "abcdef", include_prompt_logprobs=True, topk_prompt_logprobs=k)
        rows = answer.topk_prompt_logprobs
        check(len(rows) == 6 and rows[0] is None)
        for row in rows[1:]:
            check(len(row) == k and row == sorted(row, key=lambda cell: -cell[1]))


@case
def topk_of_the_prompt_alone(ctx):
    rows = sample(ctx, "abcdef", topk_prompt_logprobs=2).topk_prompt_logprobs
    check(len(rows) == 6)


@case
def passes_and_samples_agree(ctx):
    """The same model says the same in a pass and when it scores a prompt."""
    tokens = list(b"they must agree")
    training = ctx.new_training(seed=41)
    sampling = done(training.save_weights_and_get_sampling_client())
    scored = done(sampling.compute_logprobs(ctx.types.ModelInput.from_ints(tokens)))
    passed = ctx.logprobs(done(training.forward([ctx.datum(bytes(tokens).decode())], "cross_entropy")))[0]
    for a, b in zip(scored[1:], passed, strict=True):
        check_near(a, b, 1e-5)


@case
def topk_of_the_sample(ctx):
    offers(ctx, "topk_sample_logprobs")
    sequence = sample(ctx, params=ctx.params(stop=[]), topk_sample_logprobs=3).sequences[0]
    check(len(sequence.topk_logprobs) == 8 and all(len(row) == 3 for row in sequence.topk_logprobs))


@case
def chosen_targets(ctx):
    offers(ctx, "target_prompt_logprobs")
    tokens = list(b"abcdef")
    rows = len(tokens) - 1
    cells = [c for t in tokens[1:] for c in (t, -1)]
    target = ctx.i64(cells, [rows, 2])
    answer = sample(ctx, "abcdef", include_prompt_logprobs=True, target_prompt_logprobs=target)
    got = answer.target_prompt_logprobs.to_numpy()
    for i in range(rows):
        check_near(got[i][0], answer.prompt_logprobs[i + 1], 1e-5)
        check(got[i][1] == 0.0)
    sparse = ctx.types.TensorData(
        data=[tokens[-1]], dtype="int64", shape=[rows, 2],
        sparse_crow_indices=[0] * rows + [1], sparse_col_indices=[0],
    )
    answer = sample(ctx, "abcdef", include_prompt_logprobs=True, target_prompt_logprobs=sparse)
    check_near(answer.target_prompt_logprobs.data[0], answer.prompt_logprobs[-1], 1e-5)


@case
def alternatives(ctx):
    offers(ctx, "prompt_alt_tokens_k")
    drawn = sample(ctx, "abcdef", prompt_alt_tokens_k=4).prompt_alt_tokens
    check(list(drawn.tokens.shape) == [5, 4] and list(drawn.logprobs.shape) == [5, 4])


@case
def the_last_positions_only(ctx):
    offers(ctx, "prompt_logprobs_last_n")
    whole = done(ctx.sampling.compute_logprobs(ctx.prompt("abcdef")))
    for n in (1, 3, 5):
        values = done(ctx.sampling.compute_logprobs(ctx.prompt("abcdef"), n))
        check(values[-n:] == whole[-n:] and all(v is None for v in values[:-n]))
    answer = sample(ctx, "abcdef", include_prompt_logprobs=True, topk_prompt_logprobs=2,
                    prompt_logprobs_last_n=2)
    check([row is None for row in answer.topk_prompt_logprobs] == [True] * 4 + [False] * 2)


@case
def everything_at_once(ctx):
    offers(ctx, "prompt_alt_tokens_k", "target_prompt_logprobs")
    answer = sample(
        ctx, "abcdef", n=2, params=ctx.params(temperature=0.7, top_k=20, top_p=0.95, stop=["\n"]),
        include_prompt_logprobs=True, topk_prompt_logprobs=3, topk_sample_logprobs=2,
        target_prompt_logprobs=ctx.i64([1, 2, 3, 4, 5], [5, 1]), prompt_alt_tokens_k=2,
        prompt_logprobs_last_n=3,
    )
    check(len(answer.sequences) == 2 and answer.prompt_alt_tokens is not None)


@case
def stability_info(ctx):
    create = ctx.tinker.ServiceClient.create_sampling_client
    need(takes(create, "record_stability_info"), "not in this version")
    sampling = done(ctx.service.create_sampling_client(base_model=MODEL, record_stability_info=True))
    done(sampling.sample(ctx.prompt(), 1, ctx.params()))


# ---- many --------------------------------------------------------------------


@case
def hundreds_at_once(ctx):
    futures = [
        ctx.sampling.sample(ctx.prompt(f"sample number {i}"), 1 + i % 3, ctx.params(seed=i))
        for i in range(400)
    ]
    for i, future in enumerate(futures):
        check(len(done(future).sequences) == 1 + i % 3)
    alone = done(ctx.sampling.sample(ctx.prompt("sample number 123"), 1, ctx.params(seed=123)))
    check(done(futures[123]).sequences[0].tokens == alone.sequences[0].tokens)


@case
def hundreds_with_async(ctx):
    async def run():
        sampling = await done_async(ctx.service.create_sampling_client_async(base_model=MODEL))
        samples = [
            done_async(sampling.sample_async(ctx.prompt(f"number {i}"), 1, ctx.params()))
            for i in range(200)
        ]
        scores = [done_async(sampling.compute_logprobs_async(ctx.prompt(f"p{i}"))) for i in range(50)]
        answers = await asyncio.gather(*samples, *scores)
        check(len(answers) == 250)
        check(await done_async(sampling.get_base_model_async()) == MODEL)

    asyncio.run(run())


@case
def from_several_threads(ctx):
    def work(i):
        return len(done(ctx.sampling.sample(ctx.prompt(f"t{i}"), 2, ctx.params())).sequences)

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        check(sum(pool.map(work, range(64))) == 128)
    check(threading.active_count() > 0)


@case
def samples_while_training(ctx):
    training = ctx.new_training()
    samples = [ctx.sampling.sample(ctx.prompt(f"w{i}"), 1, ctx.params()) for i in range(30)]
    passes = [training.forward_backward(ctx.data(2), "cross_entropy") for _ in range(10)]
    for future in samples + passes:
        done(future)


@case
def canceled_samples(ctx):
    """Abandoned samples; with the server's flag they are canceled there."""
    long = ctx.params(max_tokens=3000, stop=[])
    futures = [ctx.sampling.sample(ctx.prompt(f"c{i}"), 1, long) for i in range(12)]
    need(hasattr(futures[0], "cancel") or hasattr(futures[0], "future"), "cannot be canceled")
    kept = ctx.sampling.sample(ctx.prompt("kept"), 1, ctx.params())
    done(kept)
    for future in futures:
        (future.future() if hasattr(future, "future") else future).cancel()
        CALLS["APIFuture.cancel"] += 1
    check(len(done(ctx.sampling.sample(ctx.prompt("after"), 1, ctx.params())).sequences) == 1)


@case
def waiting_with_a_limit(ctx):
    future = ctx.sampling.sample(ctx.prompt("slow"), 1, ctx.params(max_tokens=2000, stop=[]))
    try:
        future.result(timeout=0.001)
    except (TimeoutError, concurrent.futures.TimeoutError):
        pass
    check(len(done(future).sequences) == 1)


# ---- one sampler, several clients ---------------------------------------------


@case
def a_handle_for_others(ctx):
    need(hasattr(ctx.tinker.SamplingClient, "get_sampler_handle"), "not in this version")
    handle = ctx.sampling.get_sampler_handle()
    for _ in range(2):
        CALLS["SamplingClient.from_sampler_handle"] += 1
        other = Counted(ctx.tinker.SamplingClient.from_sampler_handle(handle))
        futures = [other.sample(ctx.prompt(f"h{i}"), 1, ctx.params(seed=3)) for i in range(5)]
        own = done(ctx.sampling.sample(ctx.prompt("h0"), 1, ctx.params(seed=3)))
        check(done(futures[0]).sequences[0].tokens == own.sequences[0].tokens)
        for future in futures:
            done(future)


@case
def a_pickled_client(ctx):
    need(not hasattr(ctx.sampling.raw, "_sampling_client_sidecar_handle"), "runs a subprocess")
    CALLS["pickle of SamplingClient"] += 1
    other = Counted(pickle.loads(pickle.dumps(ctx.sampling.raw)))
    check(len(done(other.sample(ctx.prompt(), 2, ctx.params())).sequences) == 2)


@case
def base_models(ctx):
    check(done(ctx.sampling.get_base_model()) == MODEL)
    named = done(ctx.training.save_weights_for_sampler("base-models", ttl_seconds=3600))
    by_path = done(ctx.service.create_sampling_client(model_path=named.path))
    check(done(by_path.get_base_model()) == MODEL)


@case
def samplers_that_are_refused(ctx):
    raises(lambda: ctx.service.create_sampling_client(base_model="no/such"))
    raises(lambda: ctx.service.create_sampling_client(model_path="/no/path"))
    raises(lambda: ctx.service.create_sampling_client())
    path = "tinker://nobody:train:0/sampler_weights/nothing"
    raises(lambda: ctx.service.create_sampling_client(model_path=path))


@case
def numbers_are_finite(ctx):
    answer = sample(ctx, params=ctx.params(max_tokens=64, temperature=1.5), include_prompt_logprobs=True)
    check(all(math.isfinite(p) for p in answer.sequences[0].logprobs))
