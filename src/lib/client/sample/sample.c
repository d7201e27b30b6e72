/* SPDX-License-Identifier: MIT */
/*
 * The states of a sample:
 *
 *   waiting (sample_wait.c) --granted--> submitted --accepted--> polled
 *   polled --result--> settled, then freed
 *   submitted --429 or 402--> waiting, first in the queue, same number
 *   submitted or polled --temporary failure--> delay --> waiting, new number
 *   any --permanent failure--> settled, then freed
 *   any --cancel or close--> settled; freed, or kept in the canceler's
 *     submissions until the response names the sample to cancel
 *
 * reject() or tnk__sample_resolve() settles it, once. dispose() comes last, and
 * the sample is not touched after it. sample_stream.c has the differences of a
 * streamed sample.
 */
#include "lib/client/sample/sample.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/log.h"
#include "lib/client/call/headers.h"
#include "lib/policy/retry.h"
#include "lib/wire/data/data.h"

/* MAX_FRAME: approximate size of a request without its prompt. */
enum { MAX_FRAME = 512, MAX_WHY = 256 };

static tnk__session_t *session_of(const tnk__sample_t *sample) {
  return tnk__session_of(sample->job.future.call.endpoint);
}

static tnk__call_t *call_of(tnk__sample_t *sample) {
  return &sample->job.future.call;
}

const char *tnk__sample_name(tnk__sample_wants_t wants) {
  static const char *const names[] = {[TNK__SAMPLE_TOKENS] = "sample",
                                      [TNK__SAMPLE_LOGPROBS] =
                                          "compute_logprobs",
                                      [TNK__SAMPLE_STREAM] = "sample_stream"};

  return names[wants];
}

static const char *name_of(const tnk__sample_t *sample) {
  return tnk__sample_name((tnk__sample_wants_t)sample->wants);
}

static int wants_logprobs(const tnk__sample_t *sample) {
  return sample->wants == TNK__SAMPLE_LOGPROBS;
}

static int is_stream(const tnk__sample_t *sample) {
  return sample->wants == TNK__SAMPLE_STREAM;
}

/* Returns whether a lost result is requested again. The server's flag applies
 * only to samples, and only to this. */
static int may_resubmit(const tnk__sample_t *sample) {
  const tnk__session_t *session = session_of(sample);

  return session->config->options.retry_samples != TNK_NO &&
         !(is_stream(sample) && tnk__streamed_has_begun(sample)) &&
         (wants_logprobs(sample) || !session->start.flags.sample_fail_fast);
}

int tnk__sample_may_resubmit_lost(const tnk__sample_t *sample) {
  return may_resubmit(sample) && sample->body.data != NULL;
}

/* Only while its promise is pending: later the client may be gone. */
void tnk__sample_moved(tnk__sample_t *sample) {
  if (sample->promise != NULL)
    tnk__stall_moved(&sample->sampling->stall,
                     tnk__context_now_ms(session_of(sample)->context));
}

/* ---- Resources ---- */

void tnk__sample_forget_ids(tnk__sample_t *sample) {
  tnk__free(&session_of(sample)->context->alloc, sample->ids);
  sample->ids = NULL;
  sample->n_ids = 0;
}

static void dispose(tnk__sample_t *sample) {
  const tnk_allocator_t *alloc = &session_of(sample)->context->alloc;

  tnk__sample_moved(sample);
  tnk__list_remove(&sample->member.link);
  tnk__sample_settle(sample, 0);
  tnk__job_cancel(&sample->job);
  tnk__sample_give_back(sample);
  tnk__sample_leave(sample);
  tnk__sample_forget_ids(sample);
  tnk__buf_deinit(&sample->body);
  if (is_stream(sample))
    tnk__streamed_deinit(sample);
  tnk__free(alloc, sample);
}

/* Settle the promise and release the sample's reference to it. */
static void reject(tnk__sample_t *sample, tnk__error_t *error) {
  tnk_promise_t *promise = sample->promise;
  tnk_ran_t ran = tnk__job_ran(&sample->job);

  sample->promise = NULL;
  call_of(sample)->owner.operation = 0;
  tnk__promise_reject(promise, error->pub.code == TNK_EFAILED
                                   ? tnk__error_ref(error)
                                   : tnk__error_ran(error, ran));
}

void tnk__sample_fail(tnk__sample_t *sample, tnk__error_t *error) {
  tnk__sample_moved(sample);
  reject(sample, error);
  dispose(sample);
}

void tnk__sample_fail_text(tnk__sample_t *sample, int code, const char *text) {
  tnk_error_t pub = {.code = code, .message = text};
  tnk__error_t *error = tnk__error_from(&session_of(sample)->context->alloc,
                                        name_of(sample), &pub);

  tnk__sample_fail(sample, error);
  tnk__error_unref(error);
}

/* Returns whether the server does not know the sampler although the session
 * exists. */
static int is_lost_sampler(const tnk__sample_t *sample,
                           const tnk__reply_t *reply) {
  return (reply->status == 404 || reply->status == 410) &&
         !sample->job.is_accepted &&
         tnk__call_ended_session(&sample->job.future.call) == NULL &&
         reply->verdict.err != TNK_EUNSUPPORTED &&
         tnk__reply_names_thing(reply);
}

/* Report the loss once. The sampler may be recovered. The sample must not be
 * touched after this. */
static void tell_lost(tnk_sampling_t *sampling, const char *reason) {
  tnk__session_t *session = sampling->session;
  char text[MAX_WHY];

  if (sampling->is_told)
    return;
  sampling->is_told = 1;
  snprintf(text, sizeof(text),
           "%s: the server does not know the sampler any "
           "more; it may have lost its memory: %s",
           sampling->id, reason);
  tnk__registry_notice(&session->registry, sampling->id, TNK_QUEUE_MEMORY_LOST,
                       text);
}

/* Returns 1 if the sample waits for another sampler. The sampler of another
 * service is not created again here. */
static int waits_for_sampler(tnk__sample_t *sample, const tnk__reply_t *reply) {
  tnk_sampling_t *sampling = sample->sampling;

  if (!is_lost_sampler(sample, reply) || sampling->foreign != NULL ||
      session_of(sample)->registry.losses == NULL)
    return 0;
  session_of(sample)->registry.losses->lost_sampler(
      session_of(sample)->registry.losses, sampling);
  if (!tnk__sample_may_park(sample))
    return 0;
  tnk__sample_park(sample);
  tell_lost(sampling, reply->error->pub.text);
  return 1;
}

/* Returns whether the server has accepted the sample, and does not know it any
 * more. */
static int is_forgotten(const tnk__sample_t *sample,
                        const tnk__reply_t *reply) {
  return sample->job.is_accepted && reply->verdict.err == TNK_ENOTFOUND;
}

static void fail_reply(tnk__sample_t *sample, const tnk__reply_t *reply) {
  tnk_error_t pub = reply->error->pub;
  tnk_sampling_t *sampling = sample->sampling;
  const int is_lost = is_lost_sampler(sample, reply);
  char what[128];
  tnk__error_t *error;

  if (!is_lost && !is_forgotten(sample, reply)) {
    tnk__sample_fail(sample, reply->error);
    return;
  }
  pub.code = TNK_ESESSION;
  snprintf(what, sizeof(what), "%s in %.80s", name_of(sample), sampling->id);
  error = tnk__error_from(&session_of(sample)->context->alloc, what, &pub);
  tnk__sample_fail(sample, error);
  if (is_lost)
    tell_lost(sampling, error->pub.text);
  tnk__error_unref(error);
}

/* ---- Cancellation ---- */

/* Notify the server that the result is not wanted. Returns 1 if the sample is
 * kept until the response to its submission contains its id. */
static int tell_server(tnk__sample_t *sample) {
  tnk__canceler_t *canceler = &session_of(sample)->canceler;

  /* For a stream, the end of its connection is the notification. */
  if (!tnk__canceler_is_wanted(canceler) || is_stream(sample))
    return 0;
  if (sample->job.is_accepted) {
    if (sample->job.future.request_id != NULL)
      tnk__canceler_tell(canceler, sample->job.future.request_id);
    return 0;
  }
  if (!tnk__call_disown(call_of(sample)))
    return 0;
  call_of(sample)->owner.totals = NULL;
  call_of(sample)->owner.elsewhere = NULL;
  sample->sampling = NULL; /* the client may be freed first */
  tnk__sample_leave(sample);
  tnk__list_remove(&sample->member.link);
  tnk__list_append(&canceler->submissions, &sample->member.link);
  return 1;
}

static void give_up(tnk__sample_t *sample, tnk__error_t *error) {
  const int is_first = sample->promise != NULL;

  if (is_first)
    reject(sample, error);
  if (!is_first || !tell_server(sample))
    dispose(sample);
}

static void on_abort(tnk__member_t *member, tnk__error_t *error) {
  give_up(tnk__container_of(member, tnk__sample_t, member), error);
}

static void on_cancel(void *arg) {
  give_up(arg, tnk__error_static(TNK_ECANCELED));
}

/* ---- The result ---- */

/* Returns whether the response matches the request; see tnk__samples_check().
 */
static int check(const tnk__sample_t *sample, const tnk_samples_t *samples,
                 char *text, size_t size) {
  static const tnk_tensor_t targets = {0};
  const tnk_sample_options_t options = {
      .prompt_logprobs = sample->asks_logprobs ? TNK_YES : TNK_NO,
      .topk_prompt_logprobs = sample->topk_prompt_logprobs,
      .topk_sample_logprobs = sample->topk_sample_logprobs,
      .prompt_alt_tokens_k = sample->prompt_alt_tokens_k,
      .prompt_logprobs_last_n = sample->prompt_logprobs_last_n,
      .target_prompt_logprobs = sample->asks_targets ? &targets : NULL};

  return tnk__samples_check(samples, &options, text, size);
}

void tnk__sample_resolve(tnk__sample_t *sample, tnk_samples_t *samples) {
  tnk__context_t *context = session_of(sample)->context;
  char text[256] = "";

  tnk__sample_spend(sample, samples);

  if (tnk__samples_set_ids(samples, (const char *const *)sample->ids,
                           sample->n_ids) == TNK_EPROTO)
    tnk__log(
        &context->logger, TNK_LOG_WARN, "sampling",
        "%s: the server announced a different number of sequences than it sent",
        sample->sampling->id);
  if (check(sample, samples, text, sizeof(text)) != TNK_OK) {
    tnk__samples_free(&context->alloc, samples);
    tnk__sample_fail_text(sample, TNK_EUNSUPPORTED, text);
    return;
  }
  if (text[0] != '\0')
    tnk__log(&context->logger, TNK_LOG_WARN, "sampling", "%s: %s",
             sample->sampling->id, text);
  if (wants_logprobs(sample) && samples->prompt_logprobs == NULL) {
    tnk__samples_free(&context->alloc, samples);
    tnk__sample_fail_text(sample, TNK_EUNSUPPORTED,
                          "the server sent no prompt logprobs");
    return;
  }
  tnk__promise_resolve(sample->promise,
                       wants_logprobs(sample) ? TNK__RESULT_LOGPROBS
                                              : TNK__RESULT_SAMPLES,
                       samples, tnk__samples_free);
  dispose(sample);
}

static void on_resubmit_due(tnk__timer_t *timer) {
  tnk__sample_t *sample =
      tnk__container_of(tnk__job_of_timer(timer), tnk__sample_t, job);

  tnk__reach_leave(&call_of(sample)->reacher);
  sample->since_ms = tnk__context_now_ms(session_of(sample)->context);
  tnk__sample_go_on(sample);
}

/* Returns whether the submission was retried until the patience was over. A new
 * number could not recover anything, so another submission would only extend
 * the wait beyond the options. */
static int is_worn_out(const tnk__sample_t *sample, const tnk__reply_t *reply) {
  return !sample->job.is_accepted &&
         reply->verdict.schedule == TNK__SCHEDULE_LONG;
}

/* Returns 1 if the sample will be submitted again. */
static int resubmit(tnk__sample_t *sample, const tnk__reply_t *reply) {
  tnk__session_t *session = session_of(sample);
  const tnk_service_options_t *options = &session->config->options;
  uint64_t delay_ms;

  if (is_worn_out(sample, reply) || !may_resubmit(sample) ||
      sample->n_resubmits >= options->max_retries ||
      (reply->verdict.action != TNK__ACTION_RESUBMIT &&
       !tnk__sample_may_resubmit(reply->error->pub.code)))
    return 0;
  session->context->counters.n_resubmits++;
  tnk__sample_settle(sample, 0);
  tnk__sample_give_back(sample);
  tnk__sample_forget_ids(sample);
  sample->has_seq = 0;
  delay_ms = tnk__backoff_sample_ms(sample->n_resubmits++,
                                    tnk__context_uniform(session->context));
  tnk__log(&session->context->logger, TNK_LOG_WARN, "sampling",
           "%s: the sample is submitted again in %llu ms: %s",
           sample->sampling->id, (unsigned long long)delay_ms,
           reply->error->pub.text);
  tnk__call_tell_retry(call_of(sample), reply->status, reply->error->pub.code);
  tnk__timer_start(session->context, tnk__job_timer(&sample->job), delay_ms,
                   on_resubmit_due);
  tnk__reach_wait(&session->endpoint, &call_of(sample)->reacher,
                  reply->retry_after_ms);
  return 1;
}

/* Returns whether the same request is sent again after the back-off. The wait
 * holds neither slot nor bytes. */
static int waits(tnk__sample_t *sample, const tnk__reply_t *reply) {
  if (session_of(sample)->config->options.retry_samples == TNK_NO ||
      sample->job.is_accepted)
    return 0;
  return reply->verdict.action == TNK__ACTION_BACK_OFF ||
         (reply->verdict.action == TNK__ACTION_PAUSE &&
          tnk__call_may_pause(call_of(sample)));
}

void tnk__sample_fail_reply(tnk__sample_t *sample, const tnk__reply_t *reply) {
  tnk__session_t *session = session_of(sample);

  if (reply->verdict.backs_off)
    tnk__sample_back_off(sample, reply);
  if (reply->error->pub.code == TNK_EFAILED)
    tnk__sample_settle(sample, 1);
  if (sample->promise == NULL) {
    session->context->counters.n_late_events++;
    dispose(sample); /* there is nothing to cancel */
  } else if (tnk__sample_may_park(sample)) {
    tnk__sample_park(sample);
  } else if (waits_for_sampler(sample, reply) ||
             tnk__sample_insists(sample, reply)) {
    return;
  } else if (waits(sample, reply)) {
    tnk__call_tell_retry(call_of(sample), reply->status,
                         reply->error->pub.code);
    tnk__sample_give_back(sample);
    sample->since_ms = tnk__context_now_ms(session->context);
    tnk__sample_go_on(sample);
  } else if (!resubmit(sample, reply)) {
    fail_reply(sample, reply);
  }
}

static void on_done(tnk__job_t *job, const tnk__reply_t *reply) {
  tnk__sample_t *sample = tnk__container_of(job, tnk__sample_t, job);
  tnk_samples_t *samples = NULL;
  int err;

  if (reply->error != NULL) {
    tnk__sample_fail_reply(sample, reply);
    return;
  }
  err = tnk__samples_read(&samples, &session_of(sample)->context->alloc,
                          reply->body, reply->body_len, reply->is_proto);
  if (err != TNK_OK)
    tnk__sample_fail_text(sample, err, NULL);
  else
    tnk__sample_resolve(sample, samples);
}

/* ---- Submitting ---- */

/* Copy the ids and their array into one allocation. Without memory there are no
 * ids. */
static void keep_ids(tnk__sample_t *sample, const tnk__accepted_t *answer) {
  size_t size = answer->n_sequence_ids * sizeof(char *);
  char *text;
  size_t i;

  tnk__sample_forget_ids(sample);
  if (answer->n_sequence_ids == 0)
    return;
  for (i = 0; i < answer->n_sequence_ids; i++)
    size += strlen(answer->sequence_ids[i]) + 1;
  sample->ids = tnk__malloc(&session_of(sample)->context->alloc, size);
  if (sample->ids == NULL)
    return;
  text = (char *)(sample->ids + answer->n_sequence_ids);
  for (i = 0; i < answer->n_sequence_ids; i++) {
    size_t n = strlen(answer->sequence_ids[i]) + 1;
    memcpy(text, answer->sequence_ids[i], n);
    sample->ids[i] = text;
    text += n;
  }
  sample->n_ids = (uint32_t)answer->n_sequence_ids;
}

/* The duration of a submission decides how many may be in flight. */
static void note_window(tnk__sample_t *sample, int is_accepted) {
  tnk__session_t *session = session_of(sample);
  tnk__window_t *window = &session->limits.sample_window;
  const uint64_t now = tnk__context_now_ms(session->context);
  const size_t before = window->limit;

  if (is_accepted)
    tnk__window_answered(window, call_of(sample)->exchange.took_ms,
                         session->limits.sample_slots.n_waiting > 0, now);
  else
    tnk__window_failed(window, now);
  if (window->limit != before)
    tnk__semaphore_set_limit(&session->limits.sample_slots, window->limit);
}

static int on_accepted(tnk__job_t *job, const tnk__accepted_t *answer) {
  tnk__sample_t *sample = tnk__container_of(job, tnk__sample_t, job);

  if (sample->promise == NULL) {
    session_of(sample)->context->counters.n_late_events++;
    if (answer->request_id != NULL)
      tnk__canceler_tell(&session_of(sample)->canceler, answer->request_id);
    dispose(sample);
    return 0;
  }
  tnk__sample_moved(sample);
  note_window(sample, 1);
  job->future.poller = tnk__sampling_poller(sample->sampling);
  keep_ids(sample, answer);
  tnk__sample_give_back(sample);
  /* Only refused samples keep their place in the queue. */
  sample->slot_ticket = 0;
  sample->throttle_ticket = 0;
  if (!may_resubmit(sample))
    tnk__buf_deinit(&sample->body);
  return 1;
}

static void on_state(tnk__future_t *future, const char *state,
                     const char *reason) {
  tnk__job_t *job = tnk__container_of(future, tnk__job_t, future);
  tnk__sample_t *sample = tnk__container_of(job, tnk__sample_t, job);

  tnk__sampling_notice(sample->sampling, state, reason);
}

static void add_headers(const tnk__call_t *call, tnk__headers_t *headers) {
  (void)call;
  tnk__headers_add_text(headers, "X-Tinker-Sampling-Backpressure", "1");
}

/* A paused sample holds no resources that others need, but keeps its place in
 * the queue. */
static void in_pause(tnk__call_t *call, int is_over) {
  tnk__job_t *job = tnk__container_of(call, tnk__job_t, future.call);
  tnk__sample_t *sample = tnk__container_of(job, tnk__sample_t, job);

  if (is_over) {
    sample->since_ms = tnk__context_now_ms(session_of(sample)->context);
    tnk__sample_go_on(sample);
  } else {
    note_window(sample, 0);
    tnk__sample_give_back(sample);
  }
}

void tnk__sample_submit(tnk__sample_t *sample) {
  tnk_sampling_t *sampling = sample->sampling;
  tnk__call_t *call = call_of(sample);
  char why[MAX_WHY];

  if (tnk__call_is_active(call)) {
    tnk__call_go_on(call);
    return;
  }
  if (!tnk__sample_take(sample, why, sizeof(why))) {
    tnk__sample_fail_text(sample, TNK_EBUDGET, why);
    return;
  }
  if (!sample->has_seq) {
    /* The next numbers belong to another client. */
    if (sampling->next_seq / TNK__CLONE_NUMBERS != sampling->clone) {
      tnk__sample_fail_text(
          sample, TNK_EFULL,
          "the client has used up its numbers, 10^9; go on with "
          "tnk_sampling_clone()");
      return;
    }
    sample->seq = sampling->next_seq++;
    sample->has_seq = 1;
    if (tnk__sample_renumber(&sample->body, &sample->seq_place,
                             (int64_t)sample->seq) != TNK_OK) {
      tnk__sample_fail_text(sample, TNK_ENOMEM, NULL);
      return;
    }
  }
  tnk__call_rebind(call, is_stream(sample) ? TNK__ROUTE_STREAM_SAMPLE
                                           : TNK__ROUTE_SAMPLE);
  call->request.add_headers = add_headers;
  call->request.in_pause = in_pause;
  call->request.once =
      sampling->session->config->options.retry_samples == TNK_NO;
  if (is_stream(sample))
    tnk__streamed_start(sample);
  else
    tnk__job_start(&sample->job, sample->body.data, sample->body.len, on_done);
}

static int explain_member(const tnk__member_t *member, tnk__text_t *out) {
  const tnk__sample_t *sample =
      tnk__container_of_const(member, tnk__sample_t, member);

  if (sample->promise != NULL && out != NULL)
    tnk__sample_explain(sample, out);
  return sample->promise != NULL;
}

static int advances(tnk__member_t *member) {
  tnk__sample_t *sample = tnk__container_of(member, tnk__sample_t, member);

  return sample->promise != NULL && tnk__call_advances(call_of(sample));
}

static const tnk__member_type_t member_type = {on_abort, explain_member,
                                               advances};

/* ---- Start ---- */

static int encode(tnk__sample_t *sample, const tnk_model_input_t *prompt,
                  const tnk_sampling_params_t *params,
                  const tnk_sample_options_t *options) {
  tnk__sample_request_t request = {.prompt = prompt,
                                   .params = params,
                                   .options = options,
                                   .sampling_session_id = sample->sampling->id,
                                   .seq_id = INT64_MAX, /* reserves space for
                                                           any number */
                                   .record_stability_info =
                                       sample->sampling->record_stability_info};
  const size_t n_bytes = tnk__prompt_bytes(prompt);
  int err;

  sample->n_bytes = n_bytes;
  tnk__sample_measure(sample, prompt, params, options);
  tnk__buf_reserve(&sample->body, n_bytes + MAX_FRAME);
  err = tnk__sample_write(&sample->body, &request, &sample->seq_place);
  tnk__buf_trim(&sample->body);
  return err;
}

static void keep_options(tnk__sample_t *sample,
                         const tnk_sample_options_t *options) {
  sample->asks_logprobs = options->prompt_logprobs == TNK_YES;
  sample->asks_targets = options->target_prompt_logprobs != NULL;
  sample->topk_prompt_logprobs = options->topk_prompt_logprobs;
  sample->topk_sample_logprobs = options->topk_sample_logprobs;
  sample->prompt_alt_tokens_k = options->prompt_alt_tokens_k;
  sample->prompt_logprobs_last_n = options->prompt_logprobs_last_n;
}

/* The official client's name. It has no name for streams. */
static const char *method_name(const tnk__sample_t *sample) {
  if (is_stream(sample))
    return NULL;
  return wants_logprobs(sample) ? "SamplingClient.compute_logprobs"
                                : "SamplingClient.sample";
}

static void prepare(tnk__sample_t *sample, tnk_sampling_t *sampling,
                    const tnk__sample_start_t *start) {
  tnk__context_t *context = sampling->session->context;

  sample->since_ms = tnk__context_now_ms(context);
  sample->sampling = sampling;
  sample->wants = (uint8_t)start->wants;
  tnk__list_init(&sample->member.link);
  sample->member.type = &member_type;
  tnk__buf_init(&sample->body, &context->alloc, TNK__MAX_REQUEST_BODY);
  tnk__job_init(&sample->job, sampling->session, TNK__ROUTE_SAMPLE,
                name_of(sample), "Sample");
  call_of(sample)->owner.totals = &sampling->totals;
  call_of(sample)->owner.method_name = method_name(sample);
  if (sampling->foreign != NULL)
    call_of(sample)->owner.elsewhere = &sampling->foreign->ended;
  sample->job.future.is_proto = 1;
  sample->job.future.is_sample = 1;
  sample->job.future.on_state = on_state;
  sample->job.accepted = on_accepted;
  if (is_stream(sample))
    tnk__streamed_init(sample, start->stream);
}

tnk_promise_t *tnk__sample_start(tnk_sampling_t *sampling,
                                 const tnk__sample_start_t *start) {
  tnk__context_t *context = sampling->session->context;
  const tnk_allocator_t *alloc = &context->alloc;
  tnk__sample_t *sample = tnk__calloc(
      alloc, 1, start->stream != NULL ? tnk__streamed_size() : sizeof(*sample));
  tnk__moment_t moment;
  tnk_promise_t *promise;
  int err;

  if (sample == NULL)
    return tnk__promise_rejected(
        context, tnk__error_ran(tnk__error_static(TNK_ENOMEM), TNK_RAN_NO));
  promise = tnk__promise_new(context, NULL, NULL);
  tnk__promise_bind(promise, on_cancel, tnk__sample_explain, sample);
  tnk__context_stop_time(context, &moment);
  prepare(sample, sampling, start);
  tnk__promise_enter(promise, name_of(sample), sampling->id);
  tnk__context_let_time_pass(context, &moment);
  call_of(sample)->owner.operation = promise->operation;
  keep_options(sample, start->options);
  sample->promise = promise;
  if (tnk__promise_is_oom(promise)) {
    tnk__free(alloc, sample);
    return promise;
  }
  if (tnk__list_empty(&sampling->samples))
    tnk__stall_moved(&sampling->stall, tnk__context_now_ms(context));
  tnk__list_append(&sampling->samples, &sample->member.link);
  err = encode(sample, start->prompt, start->params, start->options);
  if (err != TNK_OK)
    tnk__sample_fail_text(sample, err, NULL);
  else
    tnk__sample_go_later(sample);
  return promise;
}
