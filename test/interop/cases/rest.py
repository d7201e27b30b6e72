# SPDX-License-Identifier: MIT
"""Runs, checkpoints and sessions, with the REST client."""

import asyncio
import datetime
import time
import urllib.request

from kit import Counted, CALLS, MODEL, case, check, done, done_async, need, raises, takes


def saved(ctx):
    """A training run with one checkpoint of each kind, shared by the cases."""

    def make():
        training = ctx.new_training(user_metadata={"purpose": "rest"})
        state = training.save_state("rest-state")
        sampler = training.save_weights_for_sampler("rest-sampler")
        return training, done(state).path, done(sampler).path

    return ctx.once("saved", make)


def run_of(path):
    return path.removeprefix("tinker://").split("/", 1)[0]


@case
def training_runs(ctx):
    _, state, _ = saved(ctx)
    run = run_of(state)
    page = done(ctx.rest.list_training_runs(limit=5, offset=0))
    check(page.cursor.total_count >= 1 and len(page.training_runs) <= 5)
    one = done(ctx.rest.get_training_run(run))
    check(one.training_run_id == run and one.base_model == MODEL and one.is_lora)
    check(done(ctx.rest.get_training_run_by_tinker_path(state)).training_run_id == run)
    raises(lambda: ctx.rest.get_training_run("nobody:train:0"))


@case
def training_runs_with_options(ctx):
    saved(ctx)
    done(ctx.rest.list_training_runs())
    if takes(ctx.tinker.lib.public_interfaces.rest_client.RestClient.list_training_runs, "access_scope"):
        done(ctx.rest.list_training_runs(access_scope="accessible"))
    page = done(ctx.rest.list_training_runs(limit=1, offset=1000000))
    check(page.training_runs == [])


@case
def checkpoints(ctx):
    _, state, sampler = saved(ctx)
    listed = done(ctx.rest.list_checkpoints(run_of(state))).checkpoints
    check({state, sampler} <= {c.tinker_path for c in listed})
    check({c.checkpoint_type for c in listed} >= {"training", "sampler"})
    check(all(c.size_bytes is None or c.size_bytes > 0 for c in listed))
    mine = done(ctx.rest.list_user_checkpoints(limit=500)).checkpoints
    check({state, sampler} <= {c.tinker_path for c in mine})


@case
def weights_info(ctx):
    _, state, _ = saved(ctx)
    info = done(ctx.rest.get_weights_info_by_tinker_path(state))
    check(info.base_model == MODEL and info.is_lora and info.lora_rank == 4)
    raises(lambda: ctx.rest.get_weights_info_by_tinker_path("tinker://nobody/weights/nothing"))


@case
def publishing(ctx):
    _, state, _ = saved(ctx)

    def is_public():
        listed = done(ctx.rest.list_checkpoints(run_of(state))).checkpoints
        return next(c.public for c in listed if c.tinker_path == state)

    done(ctx.rest.publish_checkpoint_from_tinker_path(state))
    check(is_public())
    done(ctx.rest.unpublish_checkpoint_from_tinker_path(state))
    check(not is_public())


@case
def expiry(ctx):
    _, state, _ = saved(ctx)
    need(hasattr(ctx.rest.raw, "set_checkpoint_ttl_from_tinker_path"), "not in this version")

    def expires():
        listed = done(ctx.rest.list_checkpoints(run_of(state))).checkpoints
        return next(c.expires_at for c in listed if c.tinker_path == state)

    done(ctx.rest.set_checkpoint_ttl_from_tinker_path(state, 7200))
    check(expires() is not None)
    done(ctx.rest.set_checkpoint_ttl_from_tinker_path(state, None))
    check(expires() is None)


@case
def deletion(ctx):
    training, _, _ = saved(ctx)
    paths = [done(training.save_state(f"gone-{i}-{time.time_ns():x}")).path for i in range(2)]
    run, checkpoint = paths[0].removeprefix("tinker://").split("/", 1)
    done(ctx.rest.delete_checkpoint(run, checkpoint))
    done(ctx.rest.delete_checkpoint_from_tinker_path(paths[1]))
    left = {c.tinker_path for c in done(ctx.rest.list_checkpoints(run)).checkpoints}
    check(not left & set(paths))
    raises(lambda: ctx.rest.delete_checkpoint_from_tinker_path(paths[1]))


@case
def sessions(ctx):
    _, state, _ = saved(ctx)
    session = ctx.service.holder.get_session_id()
    check(session in done(ctx.rest.list_sessions(limit=1000)).sessions)
    answer = done(ctx.rest.get_session(session))
    check(run_of(state) in answer.training_run_ids)
    raises(lambda: ctx.rest.get_session("no-such-session"))


@case
def samplers(ctx):
    _, _, path = saved(ctx)
    done(ctx.service.create_sampling_client(model_path=path))
    session = done(ctx.rest.get_session(ctx.service.holder.get_session_id()))
    found = [done(ctx.rest.get_sampler(id)) for id in session.sampler_ids]
    check(any(s.model_path == path and s.base_model == MODEL for s in found))


@case
def in_async_form(ctx):
    _, state, _ = saved(ctx)

    async def run():
        rest, id = ctx.rest, run_of(state)
        session = ctx.service.holder.get_session_id()
        for call in (
            rest.list_training_runs_async(), rest.get_training_run_async(id),
            rest.get_training_run_by_tinker_path_async(state), rest.list_checkpoints_async(id),
            rest.list_user_checkpoints_async(), rest.get_session_async(session),
            rest.list_sessions_async(), rest.publish_checkpoint_from_tinker_path_async(state),
            rest.unpublish_checkpoint_from_tinker_path_async(state),
        ):
            await done_async(call)

    asyncio.run(run())


@case
def a_client_of_its_own(ctx):
    need(hasattr(ctx.tinker, "RestClient"), "not in this version")
    try:
        rest = ctx.tinker.RestClient(base_url=ctx.url)
    except TypeError:
        need(False, "not in this version")
    CALLS["RestClient()"] += 1
    check(done(Counted(rest).list_training_runs()).cursor is not None)


@case
def a_copy_of_weights_samples_like_them(ctx):
    need(hasattr(ctx.rest.raw, "copy_weights"), "not in this version")
    _, _, sampler = saved(ctx)
    copy = done(ctx.rest.copy_weights(sampler, "project-1"))
    check(run_of(copy) != run_of(sampler) and "/sampler_weights/" in copy, copy)
    done(ctx.service.create_sampling_client(model_path=copy))


@case
def a_session_is_moved(ctx):
    need(hasattr(ctx.rest.raw, "assign_session_project"), "not in this version")
    done(ctx.rest.assign_session_project(ctx.service.holder.get_session_id(), "project-1"))


def fetched(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read()


@case
def a_trace(ctx):
    need(hasattr(ctx.rest.raw, "export_session_trace"), "not in this version")
    session = ctx.service.holder.get_session_id()
    check(fetched(done(ctx.rest.export_session_trace(session))))
    raises(lambda: ctx.rest.export_session_trace("no-such-session"))


@case
def files_for_other_programs(ctx):
    need(hasattr(ctx.rest.raw, "get_external_weights_urls"), "not in this version")
    training, state, _ = saved(ctx)
    path = done(training.save_weights_external("rest-external")).path
    answer = done(ctx.rest.get_external_weights_urls(path))
    check(set(answer.urls) == {"adapter_config.json", "adapter_model.safetensors"}, str(list(answer.urls)))
    check(all(fetched(url) for url in answer.urls.values()))
    raises(lambda: ctx.rest.get_external_weights_urls(state))


@case
def sessions_are_searched(ctx):
    need(hasattr(ctx.rest.raw, "search_sessions"), "not in this version")
    session = ctx.service.holder.get_session_id()
    request = ctx.types.SessionSearchRequest(session_id=session)
    check([s.session_id for s in done(ctx.rest.search_sessions(request)).sessions] == [session])


@case
def administration(ctx):
    need(hasattr(ctx.tinker, "AdminClient"), "not in this version")
    CALLS["AdminClient()"] += 1
    admin = Counted(ctx.tinker.AdminClient(base_url=ctx.url))
    saved(ctx)
    hour = datetime.timedelta(hours=1)
    now = datetime.datetime.now(datetime.timezone.utc).replace(minute=0, second=0, microsecond=0)
    usage = done(admin.get_billing_usage(now - hour, now + hour))
    check(usage.data and {e.session_id for e in usage.data if e.session_id} <= set(usage.sessions))
    check(sum(row.checkpoint_count for row in done(admin.get_current_checkpoint_storage_usage()).data) > 0)
    check(done(admin.get_audit_log()).entries is not None)
    check(done(admin.get_audit_log("checkpoints", datetime.date(2020, 1, 1))).entries == [])
