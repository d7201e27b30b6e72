/*
 * There are two signs that a server may have lost its memory: it does not know
 * the result of an accepted request, or it expects a number that it has run.
 * Then the state of its weights is unknown. So no request is sent until the
 * program resumes the client, or a state has been restored.
 *
 *   running --a sign of it--> stopped: the program is notified, and unless it
 *     resumes in the callback, waiting and later operations are rejected
 *   stopped --tnk__training_go_on()--> running, with the next number
 */
#include "lib/client/train/stop.h"

#include "lib/base/log.h"

void tnk__training_known(tnk_training_t *training, uint64_t number) {
  if (number > training->known)
    training->known = number;
}

/* For loads, such a response means that the state does not exist. */
static int depends_on_weights(const tnk__op_t *op) {
  return op->type->route != TNK__ROUTE_LOAD_STATE && !op->type->is_unnumbered;
}

tnk__sign_t tnk__stop_sign(const tnk__part_t *part, const tnk__reply_t *reply) {
  const tnk_training_t *training = part->op->training;

  if (reply->error == NULL || training->closing)
    return TNK__SIGN_NONE;
  if (reply->has_expected && reply->got == part->number.value &&
      reply->expected <= training->known &&
      part->number.epoch == training->turns.epoch)
    return TNK__SIGN_EXPECTED;
  if (part->job.is_accepted && (reply->status == 404 || reply->status == 410) &&
      reply->verdict.err != TNK_EFAILED && depends_on_weights(part->op))
    return TNK__SIGN_UNKNOWN;
  /* The caller has already checked whether the session still exists. */
  if (!part->job.is_accepted &&
      (reply->status == 404 || reply->status == 410) &&
      reply->verdict.err != TNK_EUNSUPPORTED && depends_on_weights(part->op) &&
      training->session->endpoint.ended_session == NULL &&
      !training->is_unloaded && tnk__reply_names_thing(reply))
    return TNK__SIGN_GONE;
  return TNK__SIGN_NONE;
}

static void describe(const tnk_training_t *training, const tnk__stop_t *stop,
                     tnk__text_t *out) {
  tnk__text_printf(out, "%s: ", training->info.model_id);
  if (stop->sign == TNK__SIGN_EXPECTED)
    tnk__text_printf(out,
                     "the server expects number %llu, whose result has come "
                     "long ago",
                     (unsigned long long)stop->number);
  else if (stop->sign == TNK__SIGN_GONE)
    tnk__text_printf(out, "the server does not know the model (HTTP %d)",
                     stop->status);
  else if (stop->sign == TNK__SIGN_RESTARTED)
    tnk__text_printf(out,
                     "the server refused connections and answers again, so "
                     "that it was probably restarted");
  else
    tnk__text_printf(out,
                     "the server does not know the result of %s under number "
                     "%llu, which it had accepted (HTTP %d)",
                     stop->name, (unsigned long long)stop->number,
                     stop->status);
  tnk__text_printf(out, "; it may have lost its memory, and the weights may be "
                        "others; ");
  if (training->known > 0)
    tnk__text_printf(out, "%llu is the last number whose result has come; ",
                     (unsigned long long)training->known);
  tnk__text_printf(out, "restore a saved state, or train on with "
                        "tnk_training_go_on()");
}

tnk__stop_t tnk__stop_of(const tnk__part_t *part, const tnk__reply_t *reply,
                         tnk__sign_t sign) {
  return (tnk__stop_t){.sign = sign,
                       .name = part->op->type->name,
                       .number = sign == TNK__SIGN_EXPECTED
                                     ? reply->expected
                                     : part->number.value,
                       .status = reply->status};
}

tnk__error_t *tnk__training_stop(tnk_training_t *training,
                                 const tnk__stop_t *stop) {
  tnk__session_t *session = training->session;
  char text[512];
  tnk__text_t out;

  if (stop->sign == TNK__SIGN_NONE || training->is_stopped ||
      training->turns.err != TNK_OK || training->closing)
    return NULL;
  tnk__text_init(&out, text, sizeof(text));
  describe(training, stop, &out);
  training->is_stopped = 1;
  tnk__turns_fail(&training->turns, TNK_ESESSION);
  tnk__session_tell(session, training->info.model_id, TNK_QUEUE_MEMORY_LOST,
                    text);
  /* The program may have closed or resumed the client. */
  if (training->closing || !training->is_stopped)
    return NULL;
  if (session->losses != NULL)
    session->losses->lost(session->losses, training);
  return tnk__error_new(&session->context->alloc, TNK_ESESSION, "%s", text);
}

void tnk__training_go_on(tnk_training_t *training) {
  if (!training->is_stopped)
    return;
  training->is_stopped = 0;
  training->is_lost = 0;
  training->why_lost = NULL;
  training->tries = 0;
  /* The server chooses the first number, which is not known again. */
  training->known = 0;
  tnk__error_unref(training->failed);
  training->failed = NULL;
  tnk__turns_resume(&training->turns);
  tnk__training_settle_ready(training, NULL);
  tnk__log(&training->session->context->logger, TNK_LOG_WARN, "training",
           "%s: trained on with what the server has", training->info.model_id);
}
