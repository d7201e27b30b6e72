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
 * rendered, that is canceled. If it hangs up while it is sampled, the sampling
 * continues for a while, because the client may repeat the request. The samples
 * are kept, and recorded when a client asks for them. If it hangs up later, the
 * response is kept.
 *
 * A repeated request is a job too. It follows the job that has the samples, its
 * leader, and gets a copy of the answer. See again.h. If another gateway of a
 * shared record has the samples, the job waits for the line of its answer. See
 * elsewhere.h.
 *
 * A response that cannot be written ends its connection, with all requests of
 * it, inside the call. So on_gone() may want to free other jobs than the
 * current one, which is not possible while the jobs are visited.
 */
#include <stdio.h>
#include <string.h>

#include "gateway/account.h"
#include "gateway/again.h"
#include "gateway/elsewhere.h"
#include "gateway/form.h"
#include "gateway/prompt.h"
#include "gateway/render.h"
#include "gateway/reply.h"
#include "gateway/send.h"
#include "gateway/telemetry/span.h"
#include "lib/base/alloc.h"
#include "lib/wire/format/json_write.h"
#include "tnk/error.h"

enum {
  MAX_IDS = 256 << 20,
  MAX_ANSWER = 1 << 30,
  HOLD_MS = 60000,
  CANCEL_AT_ONCE = 1,
  WHOLE_FACTOR = 3 /* intervals before the head of a whole response */
};

#define JOB(node) tnk__container_of(node, tnk__gw_job_t, link)
#define FOLLOWER(node) tnk__container_of(node, tnk__gw_job_t, follow)

/* ---- Responses ---- */

static void give_back(tnk__gw_job_t *job) {
  if (job->sampler != NULL)
    tnk__gw_sampler_give_back(job->sampler);
  job->sampler = NULL;
}

int tnk__gw_job_has_client(const tnk__gw_job_t *job) {
  return job->req != NULL || !tnk__list_empty(&job->followers) ||
         job->wanted != TNK__GW_NOT_WANTED;
}

static int note(tnk__gw_job_t *job, const char *type, const char *name,
                const char *value);

static void free_job(tnk__gw_job_t *job) {
  tnk_gateway_t *gateway = job->gateway;
  tnk__list_t *node;

  if (job->is_open && gateway->elsewhere.is_on)
    (void)note(job, "ended", NULL, NULL);
  tnk__gw_again_failed(job); /* nothing happens if it was answered */
  tnk__list_remove(&job->link);
  tnk__list_remove(&job->follow);
  while ((node = tnk__list_pop(&job->followers)) != NULL)
    FOLLOWER(node)->leader = NULL;
  gateway->n_jobs--;
  tnk__gw_account_end(job);
  tnk_promise_unref(job->promise);
  give_back(job);
  tnk_chat_free(job->chat);
  json_decref(job->doc);
  json_decref(job->begun);
  tnk__gw_ask_drop(&job->ask);
  tnk__buf_deinit(&job->body);
  tnk__buf_deinit(&job->variables);
  tnk__buf_deinit(&job->begun_list);
  tnk__buf_deinit(&job->begun_mark);
  tnk__buf_deinit(&job->begun_text);
  tnk__buf_deinit(&job->ids);
  tnk__buf_deinit(&job->ends);
  tnk__buf_deinit(&job->answer);
  tnk__free(&gateway->alloc, job->session);
  tnk__free(&gateway->alloc, job);
}

static void end_span(const tnk__gw_job_t *job, const tnk__gw_end_of_t *end) {
  const tnk_gateway_t *gateway = job->gateway;
  const tnk__gw_span_of_t of = {
      .end = end,
      .ask = &job->ask,
      .model = tnk__gw_metrics_model(gateway),
      .session = job->session,
      .number = job->answer_number,
      .ends = job->answer_ends,
      .n_cached = job->n_cached,
      .n_attempts = job->n_attempts,
      .version = job->sampler != NULL ? job->sampler->version : 0,
      .is_repeat = job->is_follower};

  tnk__gw_span_end(gateway->otlp, &job->span, &of);
}

/* Count the end of a request. Counting tokens has none of the usual values. */
static void count(const tnk__gw_job_t *job, int status) {
  const tnk__gw_end_of_t end = {.api = job->ask.api,
                                .status = status,
                                .is_stream = job->ask.is_stream,
                                .took_ns = uv_hrtime() - job->began_ns,
                                .n_prompt = job->ids.len / sizeof(int32_t),
                                .n_sampled = job->n_sampled};

  if (job->ask.only_counts)
    return;
  tnk__gw_metrics_add(&job->gateway->metrics, &end);
  if (job->span.span_id != 0)
    end_span(job, &end);
}

/* Take the next job that waits for the answer of this one. */
static tnk__gw_job_t *next_follower(tnk__gw_job_t *job) {
  tnk__list_t *node = tnk__list_pop(&job->followers);

  if (node == NULL)
    return NULL;
  FOLLOWER(node)->leader = NULL;
  return FOLLOWER(node);
}

/* While the jobs are visited, end_walk() frees a follower. */
static void free_follower(tnk__gw_job_t *job) {
  if (!job->gateway->is_walking)
    free_job(job);
}

static void tell_fault(tnk__gw_job_t *job, const tnk__gw_fault_t *fault) {
  tnk__srv_req_t *req = job->req;

  job->req = NULL;
  if (req == NULL)
    return;
  job->gateway->stats.n_failed++;
  count(job, fault->status);
  tnk__gw_log_job(job, req, fault->status);
  if (job->is_begun)
    tnk__gw_break_stream(job->gateway, req, &job->ask, fault);
  else
    tnk__gw_refuse(job->gateway, req, job->ask.api, fault);
}

static void fail(tnk__gw_job_t *job, const tnk__gw_fault_t *fault) {
  tnk__gw_job_t *follower;

  job->is_ending = 1;
  tnk__gw_again_failed(job);
  while ((follower = next_follower(job)) != NULL) {
    tell_fault(follower, fault);
    free_follower(follower);
  }
  tell_fault(job, fault);
  free_job(job);
}

/* Send the answer, which is taken. */
static void tell(tnk__gw_job_t *job) {
  tnk__srv_req_t *req = job->req;

  job->req = NULL;
  if (req == NULL)
    return;
  job->gateway->stats.n_answered += !job->ask.only_counts;
  count(job, 200);
  tnk__gw_log_job(job, req, 200);
  if (job->is_begun)
    tnk__gw_end_stream(req, &job->answer);
  else
    tnk__gw_send(req, 200, job->ask.is_stream, &job->answer);
}

static void tell_follower(tnk__gw_job_t *job, const tnk__buf_t *answer) {
  tnk__gw_fault_t fault;

  if (tnk__buf_append(&job->answer, answer->data, answer->len) == TNK_OK) {
    tell(job);
    return;
  }
  (void)tnk__gw_fault(&fault, 500, NULL, "out of memory");
  tell_fault(job, &fault);
}

static void succeed(tnk__gw_job_t *job) {
  tnk__gw_job_t *follower;

  job->is_ending = 1;
  tnk__gw_again_answered(job);
  while ((follower = next_follower(job)) != NULL) {
    tell_follower(follower, &job->answer);
    free_follower(follower);
  }
  tell(job);
  free_job(job);
}

/* The record has the outcome of each request. The first line is of type
 * "asked". The turns of the request follow, or a line with the reason for their
 * absence. If neither follows, the process ended before. */
static int note(tnk__gw_job_t *job, const char *type, const char *name,
                const char *value) {
  const tnk__gw_about_t about = {job->session, TNK__GW_IS_ENDED, job->number};

  job->is_open = 0;
  return tnk__gw_record_note(job->gateway->record, &about, type, name, value,
                             job->number);
}

static int not_recorded(tnk__gw_fault_t *fault, int err) {
  return tnk__gw_fault(fault,
                       err == TNK_ETOOBIG || err == TNK_ECONN ? 503 : 500, NULL,
                       "the answer cannot be recorded: %s", tnk_strerror(err));
}

static void on_recorded(tnk__gw_waiter_t *waiter, int err) {
  tnk__gw_job_t *job = tnk__container_of(waiter, tnk__gw_job_t, waiter);
  tnk__gw_fault_t fault;

  job->is_waiting = 0;
  if (err != TNK_OK) {
    (void)not_recorded(&fault, err);
    fail(job, &fault);
  } else if (job->is_too_long) {
    (void)tnk__gw_fault(&fault, 413, NULL,
                        "the answer cannot be recorded: its line is too long "
                        "for the store of the record");
    fail(job, &fault);
  } else if (tnk__gw_check_session(job->gateway, job->session, &fault) != 0) {
    fail(job, &fault);
  } else {
    succeed(job);
  }
}

static void on_sample(tnk_promise_t *promise, int status, void *user);

/* Returns whether only other gateways wait. No key would pay for more. */
static int is_for_others(const tnk__gw_job_t *job) {
  return job->req == NULL && tnk__list_empty(&job->followers);
}

/* Sample again if the response does not have the requested format. Returns
 * whether it is being sampled. If that is not possible or fails, the client
 * gets what there is. */
static int try_again(tnk__gw_job_t *job) {
  tnk__gw_fault_t fault;

  if (is_for_others(job) || !tnk__gw_form_retries(job) ||
      tnk__gw_account_again(job, &fault) != 0 ||
      tnk__gw_draw(job, on_sample, &fault) != 0)
    return 0;
  return 1;
}

/* Send the answer once its turns are written. */
static void wait_for_record(tnk__gw_job_t *job) {
  int written;

  if (tnk__gw_elsewhere_answered(job) == TNK_OK)
    job->is_open = 0;
  job->waiter.done = on_recorded;
  written = tnk__gw_record_wait(job->gateway->record, &job->waiter);
  job->is_waiting = written == 0;
  if (written != 0)
    on_recorded(&job->waiter, written < 0 ? written : TNK_OK);
}

/* Returns whether the sample of a client that has disconnected ends. */
static int is_canceled_at(const tnk__gw_job_t *job, uint64_t now_ms) {
  return job->promise != NULL && !job->is_kept && !job->is_waiting &&
         !tnk__gw_job_has_client(job) &&
         now_ms - job->gone_ms >= job->gateway->repeat_ms;
}

/* A canceled sample cannot be joined any more. */
static void cancel(tnk__gw_job_t *job) {
  tnk__gw_again_failed(job);
  tnk_promise_cancel(job->promise);
}

/* End a job whose samples no client has seen. They are not recorded. */
static void drop(tnk__gw_job_t *job, int status) {
  (void)note(job, "gone", "why", tnk_err_name(status));
  free_job(job);
}

/* Record the samples, and send the answer. */
static void take_samples(tnk__gw_job_t *job) {
  tnk__gw_fault_t fault;

  if (tnk__gw_reply(job, &fault) != 0)
    fail(job, &fault);
  else if (!try_again(job))
    wait_for_record(job);
}

/* The client has disconnected, and may repeat its request. A turn is not
 * recorded before a client receives it. */
static void keep(tnk__gw_job_t *job) {
  tnk__gw_account_end(job);
  tnk__gw_again_keep(job);
}

static void account(tnk__gw_job_t *job) {
  for (size_t i = 0; i < tnk__gw_n_prompts(job); i++)
    tnk__gw_account_samples(job, i,
                            tnk_promise_samples(tnk__gw_draw_at(job, i)));
}

static void on_sample(tnk_promise_t *promise, int status, void *user) {
  tnk__gw_job_t *job = user;
  int has_client = tnk__gw_job_has_client(job);
  tnk__gw_fault_t fault;

  if (status == TNK_OK || status == TNK_ESESSION)
    job->sampler->is_lost = status != TNK_OK;
  if (status != TNK_OK && has_client && job->answer.len > 0) {
    wait_for_record(job); /* of an earlier attempt */
    return;
  }
  if (status == TNK_OK) {
    account(job);
    if (has_client)
      take_samples(job);
    else if (job->once != NULL)
      keep(job);
    else
      drop(job, status);
    return;
  }
  if (!has_client)
    tnk__gw_account_lost(job);
  else
    tnk__gw_account_failed(job);
  tnk__gw_draw_stop(job);
  if (!has_client) {
    drop(job, status);
    return;
  }
  tnk__gw_service_fault(&fault, promise);
  (void)note(job, "failed", "why", tnk_err_name(status));
  fail(job, &fault);
}

/* No request waits for the answer any more. The sampling continues for a while,
 * because the client may repeat the request. The callback of the rendering or
 * of the promise frees the job. */
static void abandon(tnk__gw_job_t *job) {
  if (job->is_ending)
    return;
  job->gone_ms = uv_now(job->gateway->loop);
  if (job->claim == TNK__GW_CLAIMING)
    (void)note(job, "gone", "why", tnk_err_name(TNK_ECANCELED));
  if (job->promise == NULL || job->gateway->repeat_ms <= CANCEL_AT_ONCE)
    cancel(job);
  if (tnk__gw_render_leave(job) && job->promise == NULL &&
      !job->gateway->is_walking)
    free_job(job);
}

/* A held request is read later. */
static void save_body(tnk__gw_job_t *job, tnk__srv_req_t *req) {
  tnk__buf_t empty;

  if (!job->is_held || tnk__list_empty(&job->followers))
    return;
  tnk__buf_init(&empty, req->body.alloc, req->body.max);
  tnk__buf_deinit(&job->body);
  job->body = req->body;
  req->body = empty;
}

static void on_gone(tnk__srv_req_t *req, void *user) {
  tnk__gw_job_t *job = user;
  tnk__gw_job_t *leader = job->leader;

  save_body(job, req);
  job->req = NULL;
  job->gateway->stats.n_gone++;
  count(job, TNK__GW_CLIENT_GONE);
  tnk__gw_log_job(job, req, -1);
  if (leader != NULL) {
    tnk__list_remove(&job->follow);
    job->leader = NULL;
    free_follower(job);
    job = leader;
  }
  if (!tnk__gw_job_has_client(job))
    abandon(job);
}

/* ---- Sampling ---- */

/* Returns 0, or -1 if a prompt has no tokens. */
static int check_prompts(const tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  size_t n_prompts = tnk__gw_n_prompts(job);

  for (size_t i = 0; i < n_prompts; i++) {
    size_t n;

    (void)tnk__gw_prompt_at(job, i, &n);
    if (n == 0 && n_prompts > 1)
      return tnk__gw_fault(fault, 400, "prompt", "prompt[%zu] has no tokens",
                           i);
    if (n == 0)
      return tnk__gw_fault(fault, 400, NULL, "the prompt has no tokens");
  }
  return 0;
}

/* No other gateway has the request. */
static int sample_claimed(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  if (tnk__gw_check_session(job->gateway, job->session, fault) == 0 &&
      tnk__gw_account_begin(job, fault) == 0) {
    job->gateway->stats.n_continued += job->parent != 0;
    if (tnk__gw_draw(job, on_sample, fault) == 0)
      return 0;
  }
  (void)note(job, "failed", "why", tnk_err_name(TNK_ECANCELED));
  return -1;
}

static int sample(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  tnk__gw_same_t same;
  int err;

  if (check_prompts(job, fault) != 0 ||
      tnk__gw_check_session(job->gateway, job->session, fault) != 0)
    return -1;
  if (tnk__gw_again_same(job, &same)) {
    job->number = tnk__gw_record_number(job->gateway->record);
    err = tnk__gw_again_asked(job);
    if (err != TNK_OK)
      return not_recorded(fault, err);
    job->is_open = 1;
    tnk__gw_elsewhere_claim(job, &same);
    return 0;
  }
  job->number = tnk__gw_record_number(job->gateway->record);
  if (tnk__gw_account_begin(job, fault) != 0)
    return -1;
  /* Do not sample if the result could not be recorded. */
  err = tnk__gw_again_asked(job);
  if (err != TNK_OK)
    return not_recorded(fault, err);
  job->is_open = 1;
  job->gateway->stats.n_continued += job->parent != 0;
  return tnk__gw_draw(job, on_sample, fault);
}

/* Write the number of tokens of the prompt. */
static int write_count(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  tnk__json_writer_t w;

  tnk__json_writer_init(&w, &job->answer);
  tnk__json_begin_object(&w);
  if (job->ask.api == TNK__GW_RESPONSE)
    tnk__json_put_text(&w, "object", "response.input_tokens");
  tnk__json_put_int(&w, "input_tokens",
                    (int64_t)(job->ids.len / sizeof(int32_t)));
  tnk__json_end(&w);
  if (tnk__json_finish(&w) != TNK_OK)
    return tnk__gw_fault(fault, 500, NULL, "out of memory");
  return 0;
}

/* The prompt is there. */
static int go_on(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  return job->ask.only_counts ? write_count(job, fault) : sample(job, fault);
}

static void on_rendered(tnk__gw_job_t *job, const tnk__gw_fault_t *fault) {
  tnk__gw_fault_t own;

  if (!tnk__gw_job_has_client(job)) {
    free_job(job);
    return;
  }
  if (fault == NULL && go_on(job, &own) != 0)
    fault = &own;
  if (fault != NULL)
    fail(job, fault);
  else if (job->ask.only_counts)
    succeed(job);
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
  if (gateway->otlp != NULL)
    tnk_otlp_begin(&job->span, gateway->otlp,
                   tnk__srv_req_header(req, "traceparent"));
  job->told_ms = uv_now(gateway->loop);
  tnk__list_init(&job->follow);
  tnk__list_init(&job->followers);
  tnk__buf_init(&job->body, &gateway->alloc, 0);
  tnk__buf_init(&job->variables, &gateway->alloc, SIZE_MAX);
  tnk__buf_init(&job->begun_list, &gateway->alloc, SIZE_MAX);
  tnk__buf_init(&job->begun_mark, &gateway->alloc, SIZE_MAX);
  tnk__buf_init(&job->begun_text, &gateway->alloc, SIZE_MAX);
  tnk__buf_init(&job->ids, &gateway->alloc, MAX_IDS);
  tnk__buf_init(&job->ends, &gateway->alloc, SIZE_MAX);
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

/* Returns whether the tokens have been counted, and nothing else is to do. */
static int is_counted(const tnk__gw_job_t *job) {
  return job->ask.only_counts && job->answer.len > 0;
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
  return go_on(job, fault);
}

static int prepare(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  tnk__gw_sampler_t *sampler;

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

    if (!tnk__gw_job_has_client(job) && job->promise == NULL &&
        job->render == NULL)
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

    if (!job->is_held || !tnk__gw_job_has_client(job))
      continue;
    job->is_held = 0;
    if (gateway->sampler != NULL)
      gateway->sampler->n_jobs++;
    if (begin(job, gateway->sampler, &fault) != 0)
      fail(job, &fault);
    else if (is_counted(job))
      succeed(job);
  }
  end_walk(gateway);
}

/* Free the jobs that were kept for too long. */
static void expire(tnk_gateway_t *gateway, uint64_t now_ms) {
  tnk__gw_job_t *job;

  while ((job = tnk__gw_again_expired(&gateway->again, now_ms)) != NULL)
    drop(job, TNK_OK);
}

/* Wait for the answer of the leader. */
static void follow(tnk__gw_job_t *job) {
  tnk__gw_job_t *leader = job->leader;

  job->is_follower = 1;
  tnk__list_append(&leader->followers, &job->follow);
  if (!leader->is_kept)
    return;
  tnk__gw_again_take(leader);
  /* The key of this request pays for what is sampled from now on. */
  leader->grant = job->grant;
  job->grant = NULL;
  take_samples(leader);
}

static void start(tnk__gw_job_t *job) {
  tnk__srv_req_t *req = job->req;
  struct tnk__gw_other *other = NULL;
  tnk__gw_fault_t fault;

  if (tnk__gw_check_session(job->gateway, job->session, &fault) != 0) {
    fail(job, &fault);
    return;
  }
  switch (job->ask.only_counts ? TNK__GW_AGAIN_NEW
                               : tnk__gw_again_find(job, &other, &fault)) {
  case TNK__GW_AGAIN_WRONG:
    fail(job, &fault);
    return;
  case TNK__GW_AGAIN_NEW:
    if (prepare(job, &fault) != 0)
      fail(job, &fault);
    else if (is_counted(job))
      succeed(job);
    else
      tnk__srv_req_park(req, on_gone, job);
    return;
  case TNK__GW_AGAIN_JOINED:
    tnk__srv_req_park(req, on_gone, job);
    follow(job);
    return;
  case TNK__GW_AGAIN_ELSEWHERE:
    tnk__srv_req_park(req, on_gone, job);
    job->is_follower = 1;
    tnk__gw_elsewhere_wait(job, other);
    return;
  case TNK__GW_AGAIN_ANSWERED:
    succeed(job);
    return;
  }
}

void tnk__gw_job_claimed(tnk__gw_job_t *job, struct tnk__gw_other *other,
                         int err) {
  tnk__gw_fault_t fault;

  if (err != TNK_OK || other != NULL)
    (void)note(job, "gone", "why", tnk_err_name(TNK_ECANCELED));
  if (err == TNK_OK && other != NULL) {
    job->wanted = TNK__GW_NOT_WANTED;
    job->is_follower = 1;
    tnk__gw_elsewhere_wait(job, other);
    return;
  }
  if (err == TNK_EINVAL)
    (void)tnk__gw_again_other_body(job, &fault);
  else if (err != TNK_OK)
    (void)not_recorded(&fault, err);
  else if (sample_claimed(job, &fault) == 0)
    return;
  fail(job, &fault);
}

/* The gateway that had the request before this one has no answer. */
static void claim_again(tnk__gw_job_t *job) {
  tnk__gw_fault_t fault;

  if (sample(job, &fault) != 0)
    fail(job, &fault);
}

void tnk__gw_job_told(tnk__gw_job_t *job, const tnk__buf_t *answer, int err) {
  tnk__gw_fault_t fault;

  if (err != TNK_OK) {
    (void)not_recorded(&fault, err);
    fail(job, &fault);
  } else if (answer == NULL) {
    job->is_follower = 0;
    if (job->once != NULL)
      claim_again(job);
    else
      start(job);
  } else if (answer->err == TNK_OK &&
             tnk__buf_append(&job->answer, answer->data, answer->len) ==
                 TNK_OK) {
    succeed(job);
  } else {
    (void)tnk__gw_fault(&fault, 500, NULL, "out of memory");
    fail(job, &fault);
  }
}

void tnk__gw_jobs_too_long(tnk_gateway_t *gateway, uint64_t request) {
  TNK__LIST_FOREACH (node, &gateway->jobs) {
    if (JOB(node)->number == request)
      JOB(node)->is_too_long = 1;
  }
}

void tnk__gw_jobs_wanted(tnk_gateway_t *gateway) {
  begin_walk(gateway);
  TNK__LIST_FOREACH_SAFE (node, next, &gateway->jobs) {
    tnk__gw_job_t *job = JOB(node);
    const tnk__gw_about_t about = {.session = job->session};

    if (job->wanted != TNK__GW_WANTED)
      continue;
    job->wanted = TNK__GW_WANTED_TOLD;
    (void)tnk__gw_record_note(gateway->record, &about, "here", NULL, NULL,
                              job->number);
    if (!job->is_kept)
      continue;
    tnk__gw_again_take(job);
    take_samples(job);
  }
  end_walk(gateway);
}

typedef int (*read_t)(tnk__gw_ask_t *ask, tnk__gw_api_t api, const void *body,
                      size_t n, tnk__gw_fault_t *fault);

static void open_job(tnk_gateway_t *gateway, tnk__srv_req_t *req,
                     tnk__gw_api_t api, const char *session, read_t read) {
  const tnk__buf_t *body = &req->body;
  tnk__gw_fault_t fault;
  tnk__gw_job_t *job = NULL;

  expire(gateway, uv_now(gateway->loop));
  if (gateway->n_jobs - gateway->again.n_kept >= gateway->max_jobs)
    (void)tnk__gw_fault(&fault, 503, NULL, "too many requests are under way");
  else if ((job = new_job(gateway, req, session)) == NULL)
    (void)tnk__gw_fault(&fault, 500, NULL, "out of memory");
  gateway->stats.n_failed += job == NULL;
  if (job == NULL) {
    const tnk__gw_end_of_t end = {.api = api, .status = fault.status};

    tnk__gw_metrics_add(&gateway->metrics, &end);
    tnk__gw_refuse(gateway, req, api, &fault);
  } else if (read(&job->ask, api, body->data, body->len, &fault) != 0) {
    fail(job, &fault);
  } else {
    start(job);
  }
}

void tnk__gw_job_begin(tnk_gateway_t *gateway, tnk__srv_req_t *req,
                       tnk__gw_api_t api, const char *session) {
  open_job(gateway, req, api, session, tnk__gw_ask_read);
}

void tnk__gw_job_count(tnk_gateway_t *gateway, tnk__srv_req_t *req,
                       tnk__gw_api_t api, const char *session) {
  open_job(gateway, req, api, session, tnk__gw_ask_read_count);
}

/* Returns whether a client needs data before the next check. The head of a
 * response has its status. A response that is not a stream gets its head later,
 * and only while it is sampled, so that most errors still have their status. */
static int is_silent_at(const tnk__gw_job_t *job, uint64_t now_ms) {
  const tnk_gateway_t *gateway = job->gateway;
  const tnk__gw_job_t *leader = job->leader != NULL ? job->leader : job;
  int is_elsewhere = job->is_follower && job->leader == NULL;
  uint64_t most_ms = gateway->keep_alive_ms;

  if (!job->ask.is_stream && !job->is_begun) {
    if ((leader->promise == NULL && !is_elsewhere) || !job->req->is_framed)
      return 0;
    most_ms *= WHOLE_FACTOR;
  }
  return now_ms - job->told_ms + gateway->keep_tick_ms > most_ms;
}

void tnk__gw_jobs_keep(tnk_gateway_t *gateway, uint64_t now_ms) {
  begin_walk(gateway);
  TNK__LIST_FOREACH_SAFE (node, next, &gateway->jobs) {
    tnk__gw_job_t *job = JOB(node);
    tnk__gw_fault_t fault;

    if (job->is_held && now_ms - job->held_ms >= HOLD_MS &&
        tnk__gw_job_has_client(job)) {
      (void)no_model(&fault);
      fail(job, &fault);
      continue;
    }
    if (is_canceled_at(job, now_ms))
      cancel(job);
    if (job->req == NULL || !is_silent_at(job, now_ms))
      continue;
    job->told_ms = now_ms;
    if (!job->is_begun)
      tnk__gw_begin_stream(job->req, job->ask.is_stream);
    job->is_begun = 1;
    /* The write above may have detected that the client is gone. */
    if (job->req != NULL)
      tnk__srv_req_keep(job->req,
                        tnk__gw_keep_alive(job->ask.api, job->ask.is_stream));
  }
  end_walk(gateway);
  expire(gateway, now_ms);
}

void tnk__gw_jobs_drop(tnk_gateway_t *gateway) {
  begin_walk(gateway);
  TNK__LIST_FOREACH_SAFE (node, next, &gateway->jobs) {
    tnk__gw_job_t *job = JOB(node);
    tnk__srv_req_t *req = job->req;

    job->req = NULL;
    job->is_ending = 1;
    if (job->is_kept)
      (void)note(job, "gone", "why", tnk_err_name(TNK_ECLOSED));
    else if (job->is_waiting)
      tnk__gw_record_leave(&job->waiter);
    else if (job->promise != NULL)
      (void)tnk_promise_forget(job->promise, on_sample, job);
    if (job->promise != NULL && !job->is_kept)
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
