/* SPDX-License-Identifier: MIT */
#include "gateway/render.h"

#include "gateway/begin.h"
#include "gateway/prompt.h"
#include "gateway/talk.h"
#include "lib/base/alloc.h"
#include "tnk/error.h"

/*
 * A rendering is queued, then it runs, then it is done:
 *
 *   loop: queue --> thread: continue from a turn --> loop: done
 *                      ^           | the template does not allow it
 *                      +-----------+ loop: take the next turn, or none
 *
 * Without a turn to continue from, the whole conversation is rendered.
 */

/* ---- On a thread of the pool ---- */

/* What a thread found out. A negative result has a fault. */
enum { DONE = 0, NOT_ALLOWED = 1 };

static int no_memory(tnk__gw_fault_t *fault) {
  return tnk__gw_fault(fault, 500, NULL, "out of memory");
}

static int take_tokens(tnk__gw_job_t *job, const tnk_chat_tokens_t *tokens,
                       tnk__gw_fault_t *fault) {
  size_t n;
  const int32_t *ids = tnk_chat_tokens_ids(tokens, &n);

  return tnk__buf_append(&job->ids, ids, n * sizeof(*ids)) == TNK_OK
             ? DONE
             : no_memory(fault);
}

/* Append the ids after a turn, whose ids are there already. */
static int go_on(tnk__gw_job_t *job, tnk_chat_tokens_t *tokens,
                 tnk__gw_fault_t *fault) {
  const tnk_gateway_t *gateway = job->gateway;
  const tnk_chat_options_t options = tnk__gw_talk_options(job);
  tnk_chat_error_t error = {0};
  const int err =
      tnk_chat_continue(tokens, gateway->template_, &gateway->tokenizer,
                        (const int32_t *)(const void *)job->ids.data,
                        job->n_before, job->chat, job->first, &options, &error);

  if (err == TNK_ENOMEM)
    return no_memory(fault);
  return err == TNK_OK ? take_tokens(job, tokens, fault) : NOT_ALLOWED;
}

static int encode(tnk__gw_job_t *job, tnk_chat_tokens_t *tokens,
                  tnk__gw_fault_t *fault) {
  const tnk_gateway_t *gateway = job->gateway;
  const tnk_chat_options_t options = tnk__gw_talk_options(job);
  tnk_chat_error_t error = {0};

  if (tnk_chat_encode(tokens, gateway->template_, &gateway->tokenizer,
                      job->chat, &options, &error) != TNK_OK)
    return tnk__gw_talk_failed(&error, fault);
  return take_tokens(job, tokens, fault);
}

static int run(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  tnk_chat_tokens_t *tokens;
  int result;

  if (job->is_own)
    return DONE;
  tokens = tnk_chat_tokens_new(&job->gateway->alloc);
  if (tokens == NULL)
    return no_memory(fault);
  result =
      job->parent != 0 ? go_on(job, tokens, fault) : encode(job, tokens, fault);
  tnk_chat_tokens_free(tokens);
  if (result == DONE && job->ask.force != TNK__GW_FORCE_NOTHING)
    result = tnk__gw_force(job, fault);
  if (result == DONE && job->begun_list.len > 0)
    result = tnk__gw_prefill(job, fault);
  return result;
}

static void on_work(uv_work_t *work) {
  tnk__gw_render_t *render = tnk__container_of(work, tnk__gw_render_t, work);

  render->result = run(render->job, &render->fault);
}

/* ---- On the loop ---- */

static void on_done(uv_work_t *work, int status);

/* Returns 0 or -1. A job that runs keeps the gateway open. */
static int start(tnk__gw_render_t *render, tnk__gw_fault_t *fault) {
  tnk_gateway_t *gateway = render->job->gateway;
  const int err = uv_queue_work(gateway->loop, &render->work, on_work, on_done);

  if (err != 0)
    return tnk__gw_fault(fault, 500, NULL, "the prompt cannot be made: %s",
                         uv_strerror(err));
  render->is_running = 1;
  gateway->n_renders++;
  gateway->n_open++;
  return 0;
}

/* Returns 1 if the job was started again. */
static int try_again(tnk__gw_render_t *render) {
  if (!tnk__gw_job_has_client(render->job) || render->result != NOT_ALLOWED)
    return 0;
  /* Once it is started, the thread writes the result. */
  if (tnk__gw_prompt_next(render->job, &render->fault) == 0 &&
      start(render, &render->fault) == 0)
    return 1;
  render->result = -1;
  return 0;
}

/* Free the rendering of a job. */
static void drop(tnk__gw_job_t *job) {
  tnk__gw_render_t *render = job->render;

  job->render = NULL;
  tnk__list_remove(&render->link);
  tnk__free(&job->gateway->alloc, render);
}

/* Report the result of a rendering, and free the rendering first: the callback
 * may free the job. */
static void report(tnk__gw_render_t *render) {
  tnk__gw_job_t *job = render->job;
  const tnk__gw_rendered_cb done = render->done;
  const int result = render->result;
  const tnk__gw_fault_t fault = render->fault;

  drop(job);
  done(job, result == DONE ? NULL : &fault);
}

static void on_done(uv_work_t *work, int status) {
  tnk__gw_render_t *render = tnk__container_of(work, tnk__gw_render_t, work);
  tnk_gateway_t *gateway = render->job->gateway;

  (void)status; /* it is never canceled in libuv's queue */
  render->is_running = 0;
  gateway->n_renders--;
  if (!try_again(render))
    report(render);
  tnk__gw_renders_start(gateway);
  tnk__gw_release(gateway);
}

void tnk__gw_renders_start(tnk_gateway_t *gateway) {
  tnk__list_t *node;

  while (gateway->n_renders < gateway->max_renders &&
         (node = tnk__list_pop(&gateway->renders)) != NULL) {
    tnk__gw_render_t *render = tnk__container_of(node, tnk__gw_render_t, link);

    if (start(render, &render->fault) == 0)
      continue;
    render->result = -1;
    report(render);
  }
}

int tnk__gw_render(tnk__gw_job_t *job, tnk__gw_rendered_cb done,
                   tnk__gw_fault_t *fault) {
  tnk_gateway_t *gateway = job->gateway;
  tnk__gw_render_t *render = tnk__calloc(&gateway->alloc, 1, sizeof(*render));

  if (render == NULL)
    return no_memory(fault);
  render->job = job;
  render->done = done;
  tnk__list_init(&render->link);
  atomic_init(&render->is_canceled, 0);
  job->render = render;
  if (gateway->n_renders >= gateway->max_renders)
    tnk__list_append(&gateway->renders, &render->link);
  else if (start(render, fault) != 0) {
    drop(job);
    return -1;
  }
  return 0;
}

int tnk__gw_render_now(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  int result = run(job, fault);

  while (result == NOT_ALLOWED)
    result = tnk__gw_prompt_next(job, fault) == 0 ? run(job, fault) : -1;
  return result;
}

int tnk__gw_render_leave(tnk__gw_job_t *job) {
  if (job->render == NULL)
    return 1;
  if (!job->render->is_running) {
    drop(job);
    return 1;
  }
  atomic_store(&job->render->is_canceled, 1);
  return 0;
}
