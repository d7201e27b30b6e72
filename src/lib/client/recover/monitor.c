/*
 * Asks the service, now and then, whether it marks the run of a training client
 * as corrupted: one question at a time, for one client after the other. Each
 * round asks every client once.
 *
 *   WAITING --every so often--> ASKING the first client of a round
 *   ASKING --an answer--> ASKING the next one, or WAITING
 */
#include "lib/client/recover/recover.h"

#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/store/page.h"
#include "lib/store/rest.h"

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

static int is_corrupted(tnk_promise_t *promise) {
  const tnk_page_t *page = tnk__promise_value(promise, TNK__RESULT_PAGE);
  const tnk_run_t *run;

  if (page == NULL || page->kind != TNK__PAGE_RUNS || page->n == 0)
    return 0;
  run = page->items;
  return run->is_corrupted;
}

/* Servers need not keep runs, and are not asked again then. */
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
      is_corrupted(promise)) {
    tnk__log(&session->context->logger, TNK_LOG_WARN, "recovery",
             "%s: the server marks its run as corrupted",
             training->info.model_id);
    session->lost(session, training);
  }
  if (!session->endpoint.closing)
    ask_next(recovery);
  tnk__training_hide(&session->context->alloc, training);
}

static void ask(tnk__recovery_t *recovery, tnk_training_t *training) {
  const tnk__ask_t question = {.kind = TNK__ASK_GET_RUN,
                               .id = training->info.model_id};

  training->round = recovery->round;
  recovery->asked = tnk__training_show(training);
  tnk_then(tnk__rest_ask(recovery->session, &question, NULL), on_answer,
           recovery);
}

static void ask_next(tnk__recovery_t *recovery) {
  TNK__LIST_FOREACH (node, &recovery->session->trainings) {
    tnk_training_t *training = tnk__container_of(node, tnk_training_t, link);

    if (training->round != recovery->round && !training->closing &&
        !training->is_lost && !training->has_no_run) {
      ask(recovery, training);
      return;
    }
  }
  tnk__monitor_start(recovery);
}
