/* SPDX-License-Identifier: MIT */
/*
 *   IDLE --something is lost--> OPENING, if it is the session, else RESTORING
 *   OPENING --a new session--> RESTORING the first client
 *   RESTORING --its client is there, or cannot be had--> the next one, or IDLE
 *   OPENING, RESTORING --a failure--> PAUSING --> the same again, or the object
 *     that was lost meanwhile; after the last attempt the next client, or IDLE
 *   RESTORING, PAUSING --the new session is lost too--> OPENING, after a pause
 *     if that was not the first time
 *   any --tnk__recovery_shut()--> IDLE forever
 *
 * The program may close clients, or the service, in every callback.
 */
#include "lib/client/recover/recover.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/client/service/service.h"
#include "lib/client/train/stop.h"

/* ---- The circuit breaker ---- */

void tnk__breaker_init(tnk__breaker_t *breaker, uint64_t max_failures,
                       uint64_t pause_ms) {
  *breaker =
      (tnk__breaker_t){.max_failures = max_failures, .pause_ms = pause_ms};
}

uint64_t tnk__breaker_wait_ms(const tnk__breaker_t *breaker, uint64_t now_ms) {
  return breaker->until_ms > now_ms ? breaker->until_ms - now_ms : 0;
}

void tnk__breaker_failed(tnk__breaker_t *breaker, uint64_t now_ms) {
  breaker->n_failures++;
  if (breaker->max_failures == 0 || breaker->n_failures < breaker->max_failures)
    return;
  breaker->until_ms = breaker->pause_ms < UINT64_MAX - now_ms
                          ? now_ms + breaker->pause_ms
                          : UINT64_MAX;
}

void tnk__breaker_worked(tnk__breaker_t *breaker) {
  breaker->n_failures = 0;
  breaker->until_ms = 0;
}

/* ---- Recovery ---- */

/* Values of is_lost: whether the loss was reported. */
enum { NEWS = 1, KNOWN };
/* Consecutive losses after which a new session is created at once. */
enum { FREE_LOSSES = 2 };

static const tnk_service_options_t *
options_of(const tnk__recovery_t *recovery) {
  return &recovery->session->config->options;
}

static void go_on(tnk__recovery_t *recovery) {
  recovery->state = TNK__RECOVERY_IDLE;
  recovery->n_attempts = 0;
  tnk__defer(recovery->session->context, &recovery->next);
}

/* ---- Reports to the program ---- */

/* Words of the log. */
static const char *const words[] = {
    [TNK_RECOVERY_DETECTED] = "is lost, and will be made again",
    [TNK_RECOVERY_STARTED] = "is being made again",
    [TNK_RECOVERY_COMPLETED] = "is there again",
    [TNK_RECOVERY_FAILED] = "could not be made again, and is tried once more",
    [TNK_RECOVERY_EXHAUSTED] = "cannot be made again",
};

static void log_event(const tnk__recovery_t *recovery,
                      const tnk_recovery_event_t *event) {
  const int is_end = event->state == TNK_RECOVERY_EXHAUSTED;

  tnk__log(
      &recovery->session->context->logger,
      is_end ? TNK_LOG_ERROR : TNK_LOG_WARN, "recovery", "%s: %s%s%s%s%s",
      event->client, words[event->state], event->path != NULL ? ", from " : "",
      event->path != NULL ? event->path : "", event->reason != NULL ? ": " : "",
      event->reason != NULL ? event->reason : "");
}

/* Call the program, and log the event. Returns 0 if it has closed the
 * service. */
static int tell(const tnk__recovery_t *recovery, tnk_recovery_event_t event) {
  tnk__session_t *session = recovery->session;
  const tnk_service_options_t *options = &session->config->options;

  event.attempt = recovery->n_attempts;
  log_event(recovery, &event);
  if (options->on_recovery != NULL) {
    tnk__callout_begin();
    options->on_recovery(&event, options->recovery_user);
    tnk__callout_end();
  }
  return !session->endpoint.closing;
}

/* ---- Attempts ---- */

static void on_pause_over(tnk__timer_t *timer) {
  tnk__recovery_t *recovery = tnk__container_of(timer, tnk__recovery_t, timer);

  recovery->state = TNK__RECOVERY_IDLE;
  tnk__defer(recovery->session->context, &recovery->next);
}

/* The delay doubles each time. */
static uint64_t delay_after(const tnk__recovery_t *recovery, uint32_t n) {
  const tnk_service_options_t *options = options_of(recovery);
  uint64_t ms = options->recovery_delay_ms;
  uint32_t i;

  for (i = 1; i < n && ms < options->recovery_max_delay_ms; i++)
    ms *= 2;
  return ms < options->recovery_max_delay_ms ? ms
                                             : options->recovery_max_delay_ms;
}

/* Every attempt before a new session exists would fail like the last one. */
static int has_lost_session(const tnk__recovery_t *recovery) {
  return recovery->is_lost == NEWS;
}

/* Returns whether the error may be temporary. */
static int may_pass(const tnk__error_t *error) {
  return tnk_err_is_retryable(error->pub.code) ||
         error->pub.code == TNK_ESESSION || error->pub.code == TNK_EPROTO ||
         error->pub.code == TNK_ENOMEM;
}

static uint64_t longer(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

static uint64_t breaker_ms(const tnk__recovery_t *recovery) {
  return tnk__breaker_wait_ms(&recovery->breaker,
                              tnk__context_now_ms(recovery->session->context));
}

static void pause(tnk__recovery_t *recovery, uint64_t ms) {
  recovery->state = TNK__RECOVERY_PAUSING;
  tnk__timer_start(recovery->session->context, &recovery->timer, ms,
                   on_pause_over);
}

/* Too many consecutive failures. */
static int waits_for_breaker(tnk__recovery_t *recovery) {
  const uint64_t ms = breaker_ms(recovery);

  if (ms > 0)
    pause(recovery, ms);
  return ms > 0;
}

static void note_failure(tnk__recovery_t *recovery, const tnk__error_t *error) {
  tnk__context_t *context = recovery->session->context;

  if (!may_pass(error))
    return;
  tnk__breaker_failed(&recovery->breaker, tnk__context_now_ms(context));
  if (breaker_ms(recovery) > 0)
    tnk__log(&context->logger, TNK_LOG_WARN, "recovery",
             "%llu attempts in a row have failed: the next one follows in %llu "
             "ms",
             (unsigned long long)recovery->breaker.n_failures,
             (unsigned long long)breaker_ms(recovery));
}

/* Returns 1 after a pause was started for another attempt, 0 if there is
 * none. */
static int tries_again(tnk__recovery_t *recovery, const tnk__error_t *error,
                       tnk_recovery_event_t event) {
  note_failure(recovery, error);
  if (!may_pass(error) ||
      recovery->n_attempts >= options_of(recovery)->recovery_attempts)
    return 0;
  event.state = TNK_RECOVERY_FAILED;
  event.reason = error->pub.text;
  event.retry_ms =
      longer(delay_after(recovery, recovery->n_attempts), breaker_ms(recovery));
  pause(recovery, event.retry_ms);
  tell(recovery, event);
  return 1;
}

/* ---- A training client ---- */

static tnk_recovery_event_t event_of_training(tnk_training_t *training) {
  return (tnk_recovery_event_t){.client = training->info.model_id,
                                .training = training,
                                .path = training->saved_path,
                                .n_steps = training->saved_tally.n_steps};
}

/* The error of its calls from now on. */
static tnk__error_t *refusal(const tnk_training_t *training, const char *why) {
  return tnk__error_new(&training->session->context->alloc, TNK_ESESSION,
                        "%s: the server lost this client's state%s",
                        training->info.model_id, why);
}

static const char never_saved[] = "no state of it was ever saved";

static void suspend(tnk_training_t *training) {
  tnk__error_t *error = refusal(
      training, training->saved_path != NULL
                    ? ", and is being restored; wait for "
                      "tnk_training_ready()"
                : training->origin != NULL
                    ? ", and a new model is being created, because no state "
                      "was ever saved; wait for tnk_training_ready()"
                    : ", and no state of it was ever saved");

  tnk__training_suspend(training, error);
  tnk__error_unref(error);
}

static void refuse_for_good(tnk_training_t *training) {
  tnk__error_t *error = refusal(
      training, training->saved_path != NULL
                    ? ", and could not be restored; restore a saved state, or "
                      "continue with tnk_training_go_on()"
                    : ", and no state of it was ever saved, so that nothing "
                      "can be restored; create a new client, or continue with "
                      "tnk_training_go_on()");

  tnk__training_refuse(training, error);
  training->is_lost = training->is_told = 0;
  training->tries = 0;
  tnk__training_settle_ready(training, error);
  tnk__error_unref(error);
}

static void give_up_training(tnk__recovery_t *recovery,
                             tnk_training_t *training, const char *why) {
  tnk_recovery_event_t event = event_of_training(training);

  refuse_for_good(training);
  event.state = TNK_RECOVERY_EXHAUSTED;
  event.reason = why;
  if (tell(recovery, event))
    go_on(recovery);
}

static void training_is_back(tnk__recovery_t *recovery,
                             tnk_training_t *training) {
  tnk_recovery_event_t event = event_of_training(training);

  training->is_lost = training->is_told = 0;
  training->why_lost = NULL;
  training->tries = 0;
  training->has_no_run = 0;
  /* The program must know that the weights are of an earlier step. */
  training->is_unheard = options_of(recovery)->on_recovery == NULL &&
                         tnk__list_empty(&training->waits);
  tnk__training_settle_ready(training, NULL);
  tnk__breaker_worked(&recovery->breaker);
  event.state = TNK_RECOVERY_COMPLETED;
  if (tell(recovery, event))
    go_on(recovery);
}

/* There is not enough memory for it. */
static void give_up_adopting(tnk__recovery_t *recovery,
                             tnk_training_t *training, tnk_training_t *other) {
  tnk__training_close(other, NULL, NULL);
  give_up_training(recovery, training, tnk_strerror(TNK_ENOMEM));
}

/* The client may have been closed, or resumed by the program. */
static void on_restored(tnk__recovery_t *recovery, tnk_training_t *training,
                        tnk_promise_t *promise) {
  tnk_training_t *other = tnk__promise_value(promise, TNK__RESULT_TRAINING);
  tnk__error_t *error = other == NULL ? tnk__promise_error(promise) : NULL;

  if (training->closing || !training->is_lost || has_lost_session(recovery)) {
    if (other != NULL)
      tnk__training_close(other, NULL, NULL);
    go_on(recovery);
    return;
  }
  if (other != NULL && tnk__training_adopt(training, other) == TNK_OK)
    training_is_back(recovery, training);
  else if (other != NULL)
    give_up_adopting(recovery, training, other);
  else if (!tries_again(recovery, error, event_of_training(training)))
    give_up_training(recovery, training, error->pub.text);
}

/* ---- A sampling client ---- */

static tnk_recovery_event_t event_of_sampling(tnk_sampling_t *sampling) {
  return (tnk_recovery_event_t){.client = sampling->id,
                                .sampling = sampling,
                                .path = sampling->model_path};
}

static void refuse_samples(tnk_sampling_t *sampling) {
  tnk__error_t *error = tnk__error_new(
      &sampling->session->context->alloc, TNK_ESESSION,
      "%s: the server lost the sampler, and it could not be created again",
      sampling->id);

  sampling->is_lost = 0;
  sampling->tries = 0;
  tnk__samples_refuse(sampling, error);
  tnk__error_unref(error);
}

static void give_up_sampling(tnk__recovery_t *recovery,
                             tnk_sampling_t *sampling, const char *why) {
  tnk_recovery_event_t event = event_of_sampling(sampling);

  refuse_samples(sampling);
  event.state = TNK_RECOVERY_EXHAUSTED;
  event.reason = why;
  if (tell(recovery, event))
    go_on(recovery);
}

static void adopt_sampler(tnk__recovery_t *recovery, tnk_sampling_t *sampling,
                          tnk_sampling_t *other) {
  tnk_recovery_event_t event;
  tnk__error_t *error =
      tnk__error_new(&recovery->session->context->alloc, TNK_ESESSION,
                     "%s: the server lost the sampler, and a new one was "
                     "created; submit the sample again",
                     sampling->id);

  sampling->is_lost = 0;
  sampling->tries = 0;
  tnk__sampling_adopt(sampling, other);
  tnk__samples_resume(sampling, error);
  tnk__error_unref(error);
  tnk__breaker_worked(&recovery->breaker);
  event = event_of_sampling(sampling);
  event.state = TNK_RECOVERY_COMPLETED;
  if (tell(recovery, event))
    go_on(recovery);
}

static void on_made(tnk__recovery_t *recovery, tnk_sampling_t *sampling,
                    tnk_promise_t *promise) {
  tnk_sampling_t *other = tnk__promise_value(promise, TNK__RESULT_SAMPLING);
  tnk__error_t *error = other == NULL ? tnk__promise_error(promise) : NULL;

  if (sampling->closing || has_lost_session(recovery)) {
    if (other != NULL)
      tnk__sampling_close(other, NULL, NULL);
    go_on(recovery);
  } else if (other != NULL) {
    adopt_sampler(recovery, sampling, other);
  } else if (!tries_again(recovery, error, event_of_sampling(sampling))) {
    give_up_sampling(recovery, sampling, error->pub.text);
  }
}

/* ---- Clients in sequence ---- */

/* Release the references last: the program may have closed the client. */
static void on_settled(tnk_promise_t *promise, int status, void *user) {
  tnk__recovery_t *recovery = user;
  const tnk_allocator_t alloc = recovery->session->context->alloc;
  tnk_training_t *training = recovery->training;
  tnk_sampling_t *sampling = recovery->sampling;

  (void)status;
  recovery->training = NULL;
  recovery->sampling = NULL;
  if (!recovery->session->endpoint.closing && training != NULL)
    on_restored(recovery, training, promise);
  else if (!recovery->session->endpoint.closing)
    on_made(recovery, sampling, promise);
  if (training != NULL)
    tnk__training_hide(&alloc, training);
  if (sampling != NULL)
    tnk__sampling_hide(&alloc, sampling);
}

static void restore(tnk__recovery_t *recovery, tnk_training_t *training) {
  tnk_restore_options_t options = TNK_RESTORE_OPTIONS_INIT;
  tnk_recovery_event_t event = event_of_training(training);

  if (training->saved_path == NULL && training->origin == NULL) {
    give_up_training(recovery, training, never_saved);
    return;
  }
  recovery->state = TNK__RECOVERY_RESTORING;
  recovery->n_attempts = ++training->tries;
  recovery->training = tnk__training_show(training);
  options.path = training->saved_path;
  options.with_optimizer = training->saved_optimizer ? TNK_YES : TNK_NO;
  tnk_then(training->saved_path != NULL
               ? tnk__restore(recovery->session, &options)
               : tnk__create_lora(recovery->session, training->origin),
           on_settled, recovery);
  event.state = TNK_RECOVERY_STARTED;
  tell(recovery, event);
}

/* The first attempt. If the new session was lost during the recovery, the
 * program knows that the client is lost. Returns 0 if the service is closing.
 */
static int tell_training(tnk__recovery_t *recovery, tnk_training_t *training) {
  tnk_recovery_event_t event = event_of_training(training);

  suspend(training);
  if (training->is_told)
    return 1;
  training->is_told = 1;
  event.state = TNK_RECOVERY_DETECTED;
  event.reason = training->why_lost;
  if (training->saved_path == NULL && event.reason == NULL)
    event.reason = never_saved;
  return tell(recovery, event);
}

/* The program may resume with the present weights, or close the client. */
static void begin_training(tnk__recovery_t *recovery,
                           tnk_training_t *training) {
  if (waits_for_breaker(recovery))
    return;
  /* Another client may have paused before it. */
  recovery->n_attempts = training->tries;
  if (recovery->n_attempts == 0 && !tell_training(recovery, training))
    return;
  if (training->is_lost && !training->closing)
    restore(recovery, training);
  else
    go_on(recovery);
}

static void make_sampler(tnk__recovery_t *recovery, tnk_sampling_t *sampling) {
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;
  tnk_recovery_event_t event = event_of_sampling(sampling);

  recovery->n_attempts = sampling->tries;
  if (sampling->model_path == NULL && !sampling->is_of_base) {
    give_up_sampling(recovery, sampling,
                     "its weights were not saved under a name");
    return;
  }
  if (waits_for_breaker(recovery))
    return;
  recovery->state = TNK__RECOVERY_RESTORING;
  recovery->n_attempts = ++sampling->tries;
  recovery->sampling = tnk__sampling_show(sampling);
  options.model_path = sampling->model_path;
  options.base_model = sampling->is_of_base ? sampling->base_model : NULL;
  options.record_stability_info =
      sampling->record_stability_info ? TNK_YES : TNK_NO;
  tnk_then(tnk__create_sampling(recovery->session, &options), on_settled,
           recovery);
  event.state = TNK_RECOVERY_STARTED;
  tell(recovery, event);
}

static void next_client(tnk__recovery_t *recovery) {
  tnk__session_t *session = recovery->session;

  TNK__LIST_FOREACH (node, &session->registry.trainings) {
    tnk_training_t *training = tnk__container_of(node, tnk_training_t, link);

    if (training->is_lost && !training->closing) {
      begin_training(recovery, training);
      return;
    }
  }
  TNK__LIST_FOREACH (node, &session->registry.samplings) {
    tnk_sampling_t *sampling = tnk__container_of(node, tnk_sampling_t, link);

    if (sampling->is_lost && !sampling->closing) {
      make_sampler(recovery, sampling);
      return;
    }
  }
}

/* ---- Runs that the service marks as corrupted ---- */

/*
 * Queries at intervals whether the service marks the run of a training client
 * as corrupted. There is one query at a time, and each round queries every
 * client once.
 *
 *   WAITING --every so often--> ASKING the first client of a round
 *   ASKING --an answer--> ASKING the next one, or WAITING
 */

static void ask_next(tnk__recovery_t *recovery);
static void on_lost(tnk__losses_t *losses, tnk_training_t *training);

static void on_due(tnk__timer_t *timer) {
  tnk__recovery_t *recovery =
      tnk__container_of(timer, tnk__recovery_t, monitor);

  recovery->round++;
  ask_next(recovery);
}

/* Query the runs repeatedly, the first time after an interval. */
static void start_monitor(tnk__recovery_t *recovery) {
  const tnk_service_options_t *options = &recovery->session->config->options;

  recovery->is_watching = 1;
  if (options->recovery_poll_ms != UINT64_MAX)
    tnk__timer_start_background(recovery->session->context, &recovery->monitor,
                                options->recovery_poll_ms, on_due);
}

/* Servers may not keep runs. Then they are not queried again. */
static void note_answer(tnk_training_t *training, tnk_promise_t *promise) {
  const tnk_error_t *error = tnk_promise_error(promise);

  if (error != NULL)
    training->has_no_run =
        error->http_status == 404 || error->http_status == 405;
}

static void on_answer(tnk_promise_t *promise, int status, void *user) {
  tnk__recovery_t *recovery = user;
  tnk__session_t *session = recovery->session;
  tnk_training_t *training = recovery->asked;

  (void)status;
  recovery->asked = NULL;
  note_answer(training, promise);
  if (!session->endpoint.closing && !training->closing && !training->is_lost &&
      recovery->runs->is_corrupted(promise)) {
    tnk__log(&session->context->logger, TNK_LOG_WARN, "recovery",
             "%s: the server marks its run as corrupted",
             training->info.model_id);
    on_lost(&recovery->losses, training);
  }
  if (!session->endpoint.closing)
    ask_next(recovery);
  tnk__training_hide(&session->context->alloc, training);
}

static void ask(tnk__recovery_t *recovery, tnk_training_t *training) {
  training->round = recovery->round;
  recovery->asked = tnk__training_show(training);
  tnk_then(recovery->runs->ask(recovery->session, training->info.model_id),
           on_answer, recovery);
}

static void ask_next(tnk__recovery_t *recovery) {
  TNK__LIST_FOREACH (node, &recovery->session->registry.trainings) {
    tnk_training_t *training = tnk__container_of(node, tnk_training_t, link);

    if (training->round != recovery->round && !training->closing &&
        !training->is_lost && !training->has_no_run) {
      ask(recovery, training);
      return;
    }
  }
  start_monitor(recovery);
}

/* ---- The session ---- */

static tnk_recovery_event_t event_of_session(const tnk__recovery_t *recovery) {
  return (tnk_recovery_event_t){.client = recovery->session->start.id};
}

/* Samples that are refused from now on wait as well. */
static void lose_samplers(tnk__session_t *session) {
  TNK__LIST_FOREACH (node, &session->registry.samplings) {
    tnk_sampling_t *sampling = tnk__container_of(node, tnk_sampling_t, link);

    sampling->is_lost = !sampling->closing && sampling->foreign == NULL;
    sampling->tries = 0;
  }
}

/* tnk_training_ready() waits for clients that refuse calls from now on. */
static void lose_trainings(tnk__session_t *session) {
  TNK__LIST_FOREACH (node, &session->registry.trainings) {
    tnk_training_t *training = tnk__container_of(node, tnk_training_t, link);

    training->is_lost = !training->closing;
    training->tries = 0;
  }
}

/* Everything in the session is lost with it. No more requests are sent for
 * it. */
static void lose_clients(tnk__session_t *session) {
  lose_trainings(session);
  TNK__LIST_FOREACH (node, &session->registry.trainings) {
    tnk_training_t *training = tnk__container_of(node, tnk_training_t, link);

    if (training->is_lost)
      suspend(training);
  }
  lose_samplers(session);
  TNK__LIST_FOREACH (node, &session->registry.samplings)
    tnk__samples_park(tnk__container_of(node, tnk_sampling_t, link));
}

static void give_up_session(tnk__recovery_t *recovery, const char *why) {
  tnk_recovery_event_t event = event_of_session(recovery);

  recovery->is_lost = 0;
  TNK__LIST_FOREACH (node, &recovery->session->registry.trainings)
    refuse_for_good(tnk__container_of(node, tnk_training_t, link));
  TNK__LIST_FOREACH (node, &recovery->session->registry.samplings)
    refuse_samples(tnk__container_of(node, tnk_sampling_t, link));
  event.state = TNK_RECOVERY_EXHAUSTED;
  event.reason = why;
  if (tell(recovery, event))
    go_on(recovery);
}

static void on_session(tnk__need_t *need, tnk__error_t *error) {
  tnk__recovery_t *recovery = tnk__container_of(need, tnk__recovery_t, need);
  tnk_recovery_event_t event = event_of_session(recovery);

  if (error != NULL) {
    if (!tries_again(recovery, error, event))
      give_up_session(recovery, error->pub.text);
    return;
  }
  recovery->is_lost = 0;
  tnk__breaker_worked(&recovery->breaker);
  event.state = TNK_RECOVERY_COMPLETED;
  if (tell(recovery, event))
    go_on(recovery);
}

static void open_session(tnk__recovery_t *recovery) {
  tnk_recovery_event_t event = event_of_session(recovery);

  if (waits_for_breaker(recovery))
    return;
  recovery->state = TNK__RECOVERY_OPENING;
  recovery->n_attempts++;
  event.state = TNK_RECOVERY_STARTED;
  if (!tell(recovery, event))
    return;
  tnk__start_renew(&recovery->session->start);
  tnk__need_init(&recovery->need, on_session);
  tnk__start_need(&recovery->session->start, &recovery->need,
                  TNK__SESSION_READY);
}

/* Limits the rate of new sessions at a server that loses every session. The
 * first two consecutive losses cause no pause. */
static uint64_t loss_delay_ms(tnk__recovery_t *recovery) {
  const uint64_t now = tnk__context_now_ms(recovery->session->context);
  const uint64_t longest = options_of(recovery)->recovery_max_delay_ms;

  if (now - recovery->lost_ms > longest)
    recovery->n_losses = 0;
  recovery->lost_ms = now;
  return ++recovery->n_losses > FREE_LOSSES
             ? delay_after(recovery, recovery->n_losses - FREE_LOSSES)
             : 0;
}

static void begin_session(tnk__recovery_t *recovery) {
  tnk_recovery_event_t event = event_of_session(recovery);
  uint64_t ms;

  if (recovery->is_lost == KNOWN) {
    open_session(recovery);
    return;
  }
  recovery->is_lost = KNOWN;
  recovery->n_attempts = 0;
  lose_clients(recovery->session);
  ms = loss_delay_ms(recovery);
  event.state = TNK_RECOVERY_DETECTED;
  event.retry_ms = ms;
  if (!tell(recovery, event))
    return;
  if (ms > 0)
    pause(recovery, ms);
  else
    open_session(recovery);
}

static void on_next(tnk__deferred_t *next) {
  tnk__recovery_t *recovery = tnk__container_of(next, tnk__recovery_t, next);

  if (recovery->session->endpoint.closing ||
      recovery->state != TNK__RECOVERY_IDLE)
    return;
  if (!recovery->is_watching)
    start_monitor(recovery);
  if (recovery->is_lost)
    begin_session(recovery);
  else
    next_client(recovery);
}

/* ---- Losses ---- */

/* Only schedules, because the caller is not finished yet. */
static void on_lost(tnk__losses_t *losses, tnk_training_t *training) {
  tnk__recovery_t *recovery =
      tnk__container_of(losses, tnk__recovery_t, losses);
  tnk__session_t *session = recovery->session;

  if (options_of(recovery)->recovery != TNK_YES || session->endpoint.closing)
    return;
  if (training != NULL) {
    training->is_lost = 1;
  } else {
    recovery->is_lost = NEWS;
    lose_trainings(session);
    lose_samplers(session);
  }
  /* A pause between two attempts would only delay the new session. */
  if (recovery->state == TNK__RECOVERY_PAUSING && has_lost_session(recovery)) {
    tnk__timer_stop(&recovery->timer);
    recovery->state = TNK__RECOVERY_IDLE;
  }
  if (recovery->state == TNK__RECOVERY_IDLE)
    tnk__defer(session->context, &recovery->next);
}

static void on_lost_sampler(tnk__losses_t *losses, tnk_sampling_t *sampling) {
  tnk__recovery_t *recovery =
      tnk__container_of(losses, tnk__recovery_t, losses);
  tnk__session_t *session = recovery->session;

  if (options_of(recovery)->recovery != TNK_YES || session->endpoint.closing ||
      sampling->is_lost || sampling->closing)
    return;
  sampling->is_lost = 1;
  sampling->tries = 0;
  if (recovery->state == TNK__RECOVERY_IDLE)
    tnk__defer(session->context, &recovery->next);
}

/* ---- A server that was probably restarted ---- */

/*
 * A server that refused connections and responds again may have loaded an older
 * state of its models. The protocol does not show which. So the weights of
 * every training client that has changed them count as lost.
 */

static const char why_restarted[] =
    "connections were refused: the server was restarted, and its weights may "
    "be older";

/* A model without changes is the same in every state of the server. */
static int has_changed(const tnk_training_t *training) {
  return training->tally.n_steps > 0 || training->tally.n_passes > 0 ||
         training->saved_path != NULL;
}

static tnk_training_t *next_of(tnk__session_t *session, uint32_t restarts) {
  TNK__LIST_FOREACH (node, &session->registry.trainings) {
    tnk_training_t *training = tnk__container_of(node, tnk_training_t, link);

    if (training->restarts != restarts && !training->closing &&
        !training->is_lost && !training->is_stopped && has_changed(training))
      return training;
  }
  return NULL;
}

/* Reject all operations, including requests in flight: a retry would change
 * weights in an unknown state. */
static void lose_training(tnk_training_t *training) {
  const tnk__stop_t sign = {.sign = TNK__SIGN_RESTARTED};
  tnk__error_t *error;

  training->why_lost = why_restarted;
  error = tnk__training_stop(training, &sign);
  if (error != NULL)
    tnk__training_suspend(training, error);
  tnk__error_unref(error);
}

/* Stop the training clients whose weights may be older, and notify the program,
 * which may close everything. With recovery they are restored. */
static void on_restarted(tnk__losses_t *losses) {
  tnk__recovery_t *recovery =
      tnk__container_of(losses, tnk__recovery_t, losses);
  tnk__session_t *session = recovery->session;
  const uint32_t restarts = ++recovery->n_restarts;
  tnk_training_t *training;

  while (!session->endpoint.closing &&
         (training = next_of(session, restarts)) != NULL) {
    training->restarts = restarts;
    lose_training(training);
  }
}

/* ---- Lifetime ---- */

void tnk__recovery_open(tnk__recovery_t *recovery, tnk__session_t *session,
                        const tnk__run_query_t *runs) {
  memset(recovery, 0, sizeof(*recovery));
  recovery->session = session;
  recovery->runs = runs;
  tnk__deferred_init(&recovery->next, on_next);
  tnk__need_init(&recovery->need, on_session);
  recovery->losses = (tnk__losses_t){.lost = on_lost,
                                     .lost_sampler = on_lost_sampler,
                                     .restarted = on_restarted};
  session->registry.losses = &recovery->losses;
  tnk__breaker_init(&recovery->breaker, options_of(recovery)->recovery_breaker,
                    options_of(recovery)->recovery_breaker_ms);
  if (options_of(recovery)->recovery == TNK_YES)
    tnk__defer(session->context, &recovery->next);
}

void tnk__recovery_shut(tnk__recovery_t *recovery) {
  tnk__timer_stop(&recovery->timer);
  tnk__timer_stop(&recovery->monitor);
  tnk__defer_cancel(&recovery->next);
  tnk__need_cancel(&recovery->need);
}
