/*
 * A server that refused connections and responds again may have loaded an older
 * state of its models. The protocol does not show which. So the weights of
 * every training client that has changed them count as lost.
 */
#include "lib/client/recover/recover.h"

#include "lib/client/train/restart.h"
#include "lib/client/train/stop.h"

static const char why[] =
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
static void lose(tnk_training_t *training) {
  const tnk__stop_t sign = {.sign = TNK__SIGN_RESTARTED};
  tnk__error_t *error;

  training->why_lost = why;
  error = tnk__training_stop(training, &sign);
  if (error != NULL)
    tnk__training_suspend(training, error);
  tnk__error_unref(error);
}

void tnk__recovery_restarted(tnk__losses_t *losses) {
  tnk__recovery_t *recovery =
      tnk__container_of(losses, tnk__recovery_t, losses);
  tnk__session_t *session = recovery->session;
  const uint32_t restarts = ++recovery->n_restarts;
  tnk_training_t *training;

  while (!session->endpoint.closing &&
         (training = next_of(session, restarts)) != NULL) {
    training->restarts = restarts;
    lose(training);
  }
}
