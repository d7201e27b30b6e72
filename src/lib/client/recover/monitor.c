/*
 * Queries at intervals whether the service marks the run of a training client
 * as corrupted. There is one query at a time, and each round queries every
 * client once.
 *
 *   WAITING --every so often--> ASKING the first client of a round
 *   ASKING --an answer--> ASKING the next one, or WAITING
 */
#include "lib/client/recover/recover.h"

#include "lib/base/alloc.h"
#include "lib/base/log.h"

static void ask_next(tnk__recovery_t *recovery);

static void on_due(tnk__timer_t *timer) {
  tnk__recovery_t *recovery =
      tnk__container_of(timer, tnk__recovery_t, monitor);

  recovery->round++;
  ask_next(recovery);
}

void tnk__monitor_start(tnk__recovery_t *recovery) {
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
    session->losses->lost(session->losses, training);
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
  tnk__monitor_start(recovery);
}
