/* SPDX-License-Identifier: MIT */
/*
 * A request of an API, from its body to its response:
 *
 *   read --> rendered --> sampled --> recorded, on the disk --> answered
 *
 * A request that arrives while the first model is being loaded is held before
 * its conversation is read, for at most HOLD_MS. A plain prompt is not
 * rendered.
 *
 * Each step may reject the request. If the client hangs up while its request is
 * rendered or sampled, that is canceled. If it hangs up later, the response is
 * dropped.
 *
 * A response that cannot be written ends its connection, with all requests of
 * it, inside the call. So on_gone() may want to free other jobs than the
 * current one, which is not possible while the jobs are visited.
 */
#include <stdio.h>
#include <string.h>

#include "gateway/account.h"
#include "gateway/prompt.h"
#include "gateway/render.h"
#include "gateway/reply.h"
#include "gateway/send.h"
#include "gateway/stop.h"
#include "lib/base/alloc.h"
#include "tnk/error.h"

enum { MAX_IDS = 256 << 20, MAX_ANSWER = 1 << 30, HOLD_MS = 60000 };

#define JOB(node) tnk__container_of(node, tnk__gw_job_t, link)

/* ---- Responses ---- */

static void give_back(tnk__gw_job_t *job) {
  if (job->sampler != NULL)
    tnk__gw_sampler_give_back(job->sampler);
  job->sampler = NULL;
}

static void free_job(tnk__gw_job_t *job) {
  tnk_gateway_t *gateway = job->gateway;

  tnk__list_remove(&job->link);
  gateway->n_jobs--;
  tnk__gw_account_end(job);
  tnk_promise_unref(job->promise);
  give_back(job);
  tnk_chat_free(job->chat);
  json_decref(job->doc);
  tnk__gw_ask_drop(&job->ask);
  tnk__buf_deinit(&job->variables);
  tnk__buf_deinit(&job->ids);
  tnk__buf_deinit(&job->answer);
  tnk__free(&gateway->alloc, job->session);
  tnk__free(&gateway->alloc, job);
}

static void count(const tnk__gw_job_t *job, int status) {
  const tnk__gw_end_of_t end = {.api = job->ask.api,
                                .status = status,
                                .is_stream = job->ask.is_stream,
                                .took_ns = uv_hrtime() - job->began_ns,
                                .n_prompt = job->ids.len / sizeof(int32_t),
                                .n_sampled = job->n_sampled};

  tnk__gw_metrics_add(&job->gateway->metrics, &end);
}

static void fail(tnk__gw_job_t *job, const tnk__gw_fault_t *fault) {
  tnk__srv_req_t *req = job->req;

  job->req = NULL;
  if (req != NULL) {
    job->gateway->stats.n_failed++;
    count(job, fault->status);
    tnk__gw_log_job(job, req, fault->status);
    if (job->is_begun)
      tnk__gw_break_stream(job->gateway, req, job->ask.api, fault);
    else
      tnk__gw_refuse(job->gateway, req, job->ask.api, fault);
  }
  free_job(job);
}

static void succeed(tnk__gw_job_t *job) {
  tnk__srv_req_t *req = job->req;

  job->req = NULL;
  job->gateway->stats.n_answered += req != NULL;
  if (req != NULL) {
    count(job, 200);
    tnk__gw_log_job(job, req, 200);
  }
  if (req != NULL && job->is_begun)
    tnk__gw_end_stream(req, &job->answer);
  else if (req != NULL)
    tnk__gw_send(req, 200, job->ask.is_stream, &job->answer);
  free_job(job);
}

/* The record has the outcome of each request. The first line is of type
 * "asked". The turns of the request follow, or a line with the reason for their
 * absence. If neither follows, the process ended before. */
static int note(const tnk__gw_job_t *job, const char *type, const char *name,
                const char *value) {
  return tnk__gw_record_note(job->gateway->record, type, name, value,
                             job->number);
}

static int not_recorded(tnk__gw_fault_t *fault, int err) {
  return tnk__gw_fault(fault, err == TNK_ETOOBIG ? 503 : 500, NULL,
                       "the answer cannot be recorded: %s", tnk_strerror(err));
}

static void on_recorded(tnk__gw_waiter_t *waiter, int err) {
  tnk__gw_job_t *job = tnk__container_of(waiter, tnk__gw_job_t, waiter);
  tnk__gw_fault_t fault;

  job->is_waiting = 0;
  if (err == TNK_OK) {
    succeed(job);
    return;
  }
  (void)not_recorded(&fault, err);
  fail(job, &fault);
}

static void on_sample(tnk_promise_t *promise, int status, void *user) {
  tnk__gw_job_t *job = user;
  tnk__gw_fault_t fault;
  int written;

  if (status == TNK_OK || status == TNK_ESESSION)
    job->sampler->is_lost = status != TNK_OK;
  if (status != TNK_OK)
    tnk__gw_service_fault(&fault, promise);
  else
    tnk__gw_account_samples(job, tnk_promise_samples(promise));
  if (status != TNK_OK && job->req == NULL)
    tnk__gw_account_lost(job);
  if (status != TNK_OK || job->req == NULL)
    (void)note(job, job->req == NULL ? "gone" : "failed", "why",
               tnk_err_name(status));
  /* A sample that arrived too late to be canceled is not recorded, as no client
   * has seen it. */
  if (status != TNK_OK || job->req == NULL ||
      tnk__gw_reply(job, tnk_promise_samples(promise), &fault) != 0) {
    fail(job, &fault);
    return;
  }
  job->waiter.done = on_recorded;
  written = tnk__gw_journal_wait(tnk__gw_record_journal(job->gateway->record),
                                 &job->waiter);
  job->is_waiting = written == 0;
  if (written != 0)
    on_recorded(&job->waiter, written < 0 ? written : TNK_OK);
}

static void on_gone(tnk__srv_req_t *req, void *user) {
  tnk__gw_job_t *job = user;

  job->req = NULL;
  job->gateway->stats.n_gone++;
  count(job, TNK__GW_CLIENT_GONE);
  tnk__gw_log_job(job, req, -1);
  /* The callback of the rendering or of the promise frees the job. */
  if (!tnk__gw_render_leave(job))
    return;
  tnk_promise_cancel(job->promise);
  if (job->promise == NULL && !job->gateway->is_walking)
    free_job(job);
}

/* ---- Sampling ---- */

static int sample(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  const tnk__gw_ask_t *ask = &job->ask;
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  tnk_sample_options_t options = TNK_SAMPLE_OPTIONS_INIT;
  const tnk_model_input_t prompt = {
      .tokens = (const int32_t *)(const void *)job->ids.data,
      .n_tokens = job->ids.len / sizeof(int32_t)};
  tnk__gw_stops_t stops;
  int err;

  if (prompt.n_tokens == 0)
    return tnk__gw_fault(fault, 400, NULL, "the prompt has no tokens");
  params.max_tokens = ask->max_tokens != TNK_ABSENT ? (int32_t)ask->max_tokens
                                                    : job->gateway->max_tokens;
  params.top_k = (int32_t)ask->top_k;
  params.seed = ask->seed;
  params.temperature = ask->temperature;
  params.top_p = ask->top_p;
  tnk__gw_stops_find(job, &stops);
  params.stop_tokens = stops.n_ids > 0 ? stops.ids : NULL;
  params.n_stop_tokens = stops.n_ids;
  params.stop_texts = stops.n_texts > 0 ? stops.texts : NULL;
  params.n_stop_texts = stops.n_texts;
  options.n_samples = (uint32_t)ask->n;
  options.topk_sample_logprobs = (uint32_t)ask->n_top;
  job->number = tnk__gw_record_number(job->gateway->record);
  if (tnk__gw_account_begin(job, params.max_tokens, fault) != 0)
    return -1;
  /* Do not sample if the result could not be recorded. */
  err = note(job, "asked", "session", job->session);
  if (err != TNK_OK)
    return not_recorded(fault, err);
  job->promise =
      tnk_sampling_sample(job->sampler->sampling, &prompt, &params, &options);
  job->gateway->stats.n_continued += job->parent != 0;
  if (tnk_then(tnk_promise_ref(job->promise), on_sample, job) == TNK_OK)
    return 0;
  return tnk__gw_fault(fault, 503, NULL, "the service is closed");
}

static void on_rendered(tnk__gw_job_t *job, const tnk__gw_fault_t *fault) {
  tnk__gw_fault_t own;

  if (job->req == NULL) {
    free_job(job);
    return;
  }
  if (fault == NULL && sample(job, &own) != 0)
    fault = &own;
  if (fault != NULL)
    fail(job, fault);
}

/* ---- Starting a job ---- */

static tnk__gw_job_t *new_job(tnk_gateway_t *gateway, tnk__srv_req_t *req,
                              const char *session) {
  tnk__gw_job_t *job = tnk__calloc(&gateway->alloc, 1, sizeof(*job));

  if (job == NULL)
    return NULL;
  job->gateway = gateway;
  job->req = req;
  job->began_ns = uv_hrtime();
  job->told_ms = uv_now(gateway->loop);
  tnk__buf_init(&job->variables, &gateway->alloc, SIZE_MAX);
  tnk__buf_init(&job->ids, &gateway->alloc, MAX_IDS);
  tnk__buf_init(&job->answer, &gateway->alloc, MAX_ANSWER);
  tnk__list_append(&gateway->jobs, &job->link);
  gateway->n_jobs++;
  job->session = tnk__strdup(&gateway->alloc, session);
  if (job->session != NULL) {
    job->grant = req->owner;
    req->owner = NULL;
    tnk__gw_log_later(req);
    return job;
  }
  job->req = NULL;
  free_job(job);
  return NULL;
}

static int no_model(tnk__gw_fault_t *fault) {
  return tnk__gw_fault(fault, 503, NULL, "there is no model yet");
}

/* Start a job with the current sampler, which may be NULL. */
static int begin(tnk__gw_job_t *job, tnk__gw_sampler_t *sampler,
                 tnk__gw_fault_t *fault) {
  job->sampler = sampler;
  if (sampler == NULL)
    return no_model(fault);
  if (tnk__gw_prompt_read(job, fault) != 0)
    return -1;
  if (job->chat != NULL && !job->gateway->is_plain)
    return tnk__gw_render(job, on_rendered, fault);
  if (job->chat != NULL && tnk__gw_render_now(job, fault) != 0)
    return -1;
  return sample(job, fault);
}

static int prepare(tnk__gw_job_t *job, tnk__gw_api_t api,
                   tnk__gw_fault_t *fault) {
  const tnk__buf_t *body = &job->req->body;
  tnk__gw_sampler_t *sampler;

  if (tnk__gw_ask_read(&job->ask, api, body->data, body->len, fault) != 0)
    return -1;
  sampler = tnk__gw_sampler_take(job->gateway);
  job->is_held = sampler == NULL && !tnk__list_empty(&job->gateway->uses);
  job->held_ms = uv_now(job->gateway->loop);
  return job->is_held ? 0 : begin(job, sampler, fault);
}

/* Visit the jobs. Until end_walk() only the current one may be freed. */
static void begin_walk(tnk_gateway_t *gateway) {
  gateway->is_walking = 1;
}

/* Free the jobs whose clients have gone meanwhile. */
static void end_walk(tnk_gateway_t *gateway) {
  gateway->is_walking = 0;
  TNK__LIST_FOREACH_SAFE (node, next, &gateway->jobs) {
    tnk__gw_job_t *job = JOB(node);

    if (job->req == NULL && job->promise == NULL && job->render == NULL)
      free_job(job);
  }
}

void tnk__gw_jobs_resume(tnk_gateway_t *gateway) {
  if (gateway->sampler == NULL && !tnk__list_empty(&gateway->uses))
    return;
  begin_walk(gateway);
  TNK__LIST_FOREACH_SAFE (node, next, &gateway->jobs) {
    tnk__gw_job_t *job = JOB(node);
    tnk__gw_fault_t fault;

    if (!job->is_held || job->req == NULL)
      continue;
    job->is_held = 0;
    if (gateway->sampler != NULL)
      gateway->sampler->n_jobs++;
    if (begin(job, gateway->sampler, &fault) != 0)
      fail(job, &fault);
  }
  end_walk(gateway);
}

void tnk__gw_job_begin(tnk_gateway_t *gateway, tnk__srv_req_t *req,
                       tnk__gw_api_t api, const char *session) {
  tnk__gw_fault_t fault;
  tnk__gw_job_t *job = NULL;

  if (gateway->n_jobs >= gateway->max_jobs)
    (void)tnk__gw_fault(&fault, 503, NULL, "too many requests are under way");
  else if ((job = new_job(gateway, req, session)) == NULL)
    (void)tnk__gw_fault(&fault, 500, NULL, "out of memory");
  gateway->stats.n_failed += job == NULL;
  if (job == NULL) {
    const tnk__gw_end_of_t end = {.api = api, .status = fault.status};

    tnk__gw_metrics_add(&gateway->metrics, &end);
    tnk__gw_refuse(gateway, req, api, &fault);
  } else if (prepare(job, api, &fault) != 0) {
    fail(job, &fault);
  } else {
    tnk__srv_req_park(req, on_gone, job);
  }
}

void tnk__gw_jobs_keep(tnk_gateway_t *gateway, uint64_t now_ms) {
  begin_walk(gateway);
  TNK__LIST_FOREACH_SAFE (node, next, &gateway->jobs) {
    tnk__gw_job_t *job = JOB(node);
    tnk__gw_fault_t fault;

    if (job->req == NULL)
      continue;
    if (job->is_held && now_ms - job->held_ms >= HOLD_MS) {
      (void)no_model(&fault);
      fail(job, &fault);
      continue;
    }
    if (!job->ask.is_stream ||
        now_ms - job->told_ms + gateway->keep_tick_ms <= gateway->keep_alive_ms)
      continue;
    job->told_ms = now_ms;
    if (!job->is_begun)
      tnk__gw_begin_stream(job->req);
    job->is_begun = 1;
    /* The write above may have detected that the client is gone. */
    if (job->req != NULL)
      tnk__srv_req_keep(job->req, tnk__gw_keep_alive(job->ask.api));
  }
  end_walk(gateway);
}

void tnk__gw_jobs_drop(tnk_gateway_t *gateway) {
  begin_walk(gateway);
  TNK__LIST_FOREACH_SAFE (node, next, &gateway->jobs) {
    tnk__gw_job_t *job = JOB(node);
    tnk__srv_req_t *req = job->req;

    job->req = NULL;
    if (job->is_waiting)
      tnk__gw_journal_leave(&job->waiter);
    else if (job->promise != NULL)
      (void)tnk_promise_forget(job->promise, on_sample, job);
    if (job->promise != NULL)
      tnk__gw_account_lost(job);
    tnk_promise_cancel(job->promise);
    if (req != NULL)
      tnk__srv_req_drop(req);
    /* on_rendered() frees a job that is rendered. */
    if (tnk__gw_render_leave(job))
      free_job(job);
    else
      give_back(job);
  }
  end_walk(gateway);
}
