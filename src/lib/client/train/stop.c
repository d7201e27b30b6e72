/* SPDX-License-Identifier: MIT */
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

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/client/session/member.h"

void tnk__training_known(tnk_training_t *training, uint64_t number) {
  if (number > training->known)
    training->known = number;
}

static tnk__sign_t sign_of(const tnk__seq_t *number, const tnk__asked_t *asked,
                           const tnk__reply_t *reply) {
  const tnk_training_t *training = number->training;
  const int is_gone = reply->status == 404 || reply->status == 410;

  if (reply->error == NULL || training->closing)
    return TNK__SIGN_NONE;
  /* A number above its own says that the request was run, in an attempt whose
   * response was lost. */
  if (reply->has_expected && reply->got == number->value &&
      reply->expected < reply->got && reply->expected <= training->known &&
      number->epoch == training->turns.epoch)
    return TNK__SIGN_EXPECTED;
  if (!is_gone || !asked->needs_weights)
    return TNK__SIGN_NONE;
  if (asked->is_accepted)
    return reply->verdict.err != TNK_EFAILED ? TNK__SIGN_UNKNOWN
                                             : TNK__SIGN_NONE;
  /* The caller has already checked whether the session still exists. */
  if (reply->verdict.err != TNK_EUNSUPPORTED &&
      training->session->endpoint.ended_session == NULL &&
      !training->is_unloaded && tnk__reply_names_thing(reply))
    return TNK__SIGN_GONE;
  return TNK__SIGN_NONE;
}

static void describe(const tnk_training_t *training, const tnk__stop_t *stop,
                     tnk__text_t *out) {
  tnk__text_printf(out, "%s: ", training->info.model_id);
  if (stop->sign == TNK__SIGN_EXPECTED)
    tnk__text_printf(
        out,
        "the server expects number %llu, whose result was received long ago",
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
  tnk__text_printf(
      out, "; it may have lost its memory, and its weights may differ; ");
  if (training->known > 0)
    tnk__text_printf(out, "%llu is the last number with a received result; ",
                     (unsigned long long)training->known);
  tnk__text_printf(out, "restore a saved state, or continue with "
                        "tnk_training_go_on()");
}

tnk__stop_t tnk__stop_of(const tnk__seq_t *number, const tnk__asked_t *asked,
                         const tnk__reply_t *reply) {
  const tnk__sign_t sign = sign_of(number, asked, reply);

  return (tnk__stop_t){.sign = sign,
                       .name = asked->name,
                       .number = sign == TNK__SIGN_EXPECTED ? reply->expected
                                                            : number->value,
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
  tnk__registry_tell(&session->registry, training->info.model_id,
                     TNK_QUEUE_MEMORY_LOST, text);
  /* The program may have closed or resumed the client. */
  if (training->closing || !training->is_stopped)
    return NULL;
  if (session->registry.losses != NULL)
    session->registry.losses->lost(session->registry.losses, training);
  return tnk__error_new(&session->context->alloc, TNK_ESESSION, "%s", text);
}

void tnk__training_go_on(tnk_training_t *training) {
  if (!training->is_stopped)
    return;
  training->is_stopped = 0;
  training->is_lost = training->is_told = 0;
  training->why_lost = NULL;
  training->tries = 0;
  /* The server chooses the first number, which is not known again. */
  training->known = 0;
  tnk__error_unref(training->failed);
  training->failed = NULL;
  tnk__turns_resume(&training->turns);
  tnk__training_settle_ready(training, NULL);
  tnk__log(&training->session->context->logger, TNK_LOG_WARN, "training",
           "%s: training continues with the state that the server has",
           training->info.model_id);
}

/* ---- Recovery ---- */

void tnk__training_saved(tnk_training_t *training, const char *path,
                         tnk__tally_t tally, int with_optimizer) {
  const tnk_allocator_t *alloc = &training->session->context->alloc;
  char *copy = path != NULL ? tnk__strdup(alloc, path) : NULL;

  if (copy == NULL)
    return;
  tnk__free(alloc, training->saved_path);
  training->saved_path = copy;
  training->saved_tally = tally;
  training->saved_optimizer = with_optimizer != 0;
}

void tnk__training_refuse(tnk_training_t *training, tnk__error_t *error) {
  if (!training->is_stopped || training->closing)
    return;
  tnk__error_unref(training->failed);
  training->failed = tnk__error_behind(error);
}

void tnk__training_suspend(tnk_training_t *training, tnk__error_t *error) {
  if (training->closing)
    return;
  training->is_stopped = 1;
  tnk__turns_fail(&training->turns, TNK_ESESSION);
  tnk__training_refuse(training, error);
  TNK__LIST_FOREACH_SAFE (node, next, &training->ops)
    tnk__member_abort(tnk__member_of(node), error);
}

/* Copy a string into the client's arena. Returns 0 without memory. */
static int take(tnk_training_t *training, const char **to, const char *text) {
  *to = text != NULL ? tnk__arena_strdup(&training->arena, text) : NULL;
  return text == NULL || *to != NULL;
}

int tnk__training_adopt(tnk_training_t *training, tnk_training_t *other) {
  tnk_training_info_t info = other->info;

  if (!take(training, &info.model_id, other->info.model_id) ||
      !take(training, &info.base_model, other->info.base_model) ||
      !take(training, &info.arch, other->info.arch) ||
      !take(training, &info.tokenizer_id, other->info.tokenizer_id) ||
      !take(training, &info.optimizer, other->info.optimizer))
    return TNK_ENOMEM;
  training->info = info;
  training->fresh = other->fresh;
  training->known = 0;
  training->tally = training->saved_tally;
  training->is_stopped = 0;
  training->is_unloaded = 0;
  tnk__error_unref(training->failed);
  training->failed = NULL;
  tnk__turns_restart(&training->turns, other->turns.next);
  tnk__training_close(other, NULL, NULL);
  return TNK_OK;
}
