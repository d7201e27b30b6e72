/* SPDX-License-Identifier: MIT */
#include "lib/client/train/seq.h"

#include "lib/base/log.h"

enum { MAX_HEALS = 3, MAX_SKIPS = 8 };

/*
 * States: no number; taken, until its effect is known. A suspected number is
 * set aside and the next one is taken. The result of that one decides about all
 * numbers that were set aside.
 */

void tnk__seq_init(tnk__seq_t *number, tnk_training_t *training,
                   tnk__turn_t *turn) {
  *number = (tnk__seq_t){.training = training, .turn = turn};
}

void tnk__seq_deinit(tnk__seq_t *number) {
  tnk__error_unref(number->refusal);
  number->refusal = NULL;
}

int tnk__seq_take(tnk__seq_t *number) {
  int err;

  if (number->is_taken)
    return TNK_OK;
  err = tnk__turns_take(&number->training->turns, number->turn, &number->value);
  number->is_taken = err == TNK_OK;
  number->epoch = number->turn->epoch;
  return err;
}

void tnk__seq_use(tnk__seq_t *number, tnk__cargo_t *cargo) {
  uint64_t *fresh = &number->training->fresh;
  const tnk__doubt_t *doubt =
      number->is_taken
          ? tnk__turns_doubt_of(&number->training->turns, number->value)
          : NULL;

  if (!number->is_unread)
    number->is_reused = number->value < *fresh;
  number->is_unread = 0;
  number->is_doubted = doubt != NULL;
  number->is_repeat = doubt != NULL && doubt->mark == tnk__cargo_mark(cargo);
  if (number->is_taken && !number->is_reused)
    *fresh = number->value + 1;
}

void tnk__seq_unread(tnk__seq_t *number) {
  number->is_unread = 1;
}

/* Log whether the server had received the earlier request under a doubted
 * number. The log shows users how the doubt ended. */
static void tell(const tnk__seq_t *number, int was_run) {
  const tnk_training_t *training = number->training;

  if (!number->is_taken || !number->is_doubted)
    return;
  tnk__log(&training->session->context->logger, TNK_LOG_WARN, "training",
           "%s: the request with number %llu, whose outcome was unknown, %s",
           training->info.model_id, (unsigned long long)number->value,
           number->is_repeat ? "was sent again, and is run once"
           : was_run         ? "had been run"
                             : "had not been run, and will not be");
}

/* The effect is unknown: give the number back. Its next use shows the
 * effect. */
static void doubt(tnk__seq_t *number, int err, tnk__cargo_t *cargo) {
  tnk__turns_doubt(&number->training->turns, number->turn, number->value,
                   cargo != NULL ? tnk__cargo_mark(cargo) : 0, err);
}

void tnk__seq_settle(tnk__seq_t *number, tnk__effect_t effect, int err,
                     tnk__cargo_t *cargo) {
  tnk__turns_t *turns = &number->training->turns;
  uint32_t i;

  if (effect == TNK__EFFECT_ACCEPTED)
    tell(number, number->is_repeat);

  for (i = 0; i < number->n_suspects; i++)
    tnk__turns_settle(turns, number->turn, number->suspects[i],
                      effect == TNK__EFFECT_NONE ? TNK__EFFECT_NONE
                                                 : TNK__EFFECT_ACCEPTED,
                      TNK_OK);
  number->n_suspects = 0;
  if (number->is_taken && effect == TNK__EFFECT_UNKNOWN)
    doubt(number, err, cargo);
  else if (number->is_taken)
    tnk__turns_settle(turns, number->turn, number->value, effect, err);
  number->is_taken = 0;
}

int tnk__seq_suspect(tnk__seq_t *number, const tnk__reply_t *reply) {
  if (!number->is_taken || !number->is_reused ||
      number->n_suspects == TNK__NUMBER_MAX_SUSPECTS ||
      (reply->status != 422 && reply->status != 409))
    return 0;
  if (number->refusal == NULL)
    number->refusal = tnk__error_ref(reply->error);
  number->suspects[number->n_suspects++] = number->value;
  number->is_taken = 0;
  return 1;
}

static int learn(const tnk__seq_t *number, uint64_t expected) {
  return tnk__turns_heal(&number->training->turns, number->epoch, number->value,
                         expected);
}

/* The server has other bytes under this number: continue with the next one. */
static int skip(tnk__seq_t *number, int alone) {
  tell(number, 1);
  tnk__turns_settle(&number->training->turns, number->turn, number->value,
                    TNK__EFFECT_ACCEPTED, TNK_OK);
  number->is_taken = 0;
  return alone && number->n_skipped++ < MAX_SKIPS;
}

int tnk__seq_heal(tnk__seq_t *number, const tnk__reply_t *reply, int alone) {
  if (reply->verdict.action == TNK__ACTION_HEAL && number->is_taken &&
      reply->is_taken)
    return skip(number, alone);
  if (reply->verdict.action != TNK__ACTION_HEAL || !number->is_taken ||
      !reply->has_expected || reply->got != number->value ||
      number->n_suspects > 0)
    return 0;
  if (reply->expected > number->value)
    tell(number, 1);
  tnk__seq_settle(number, TNK__EFFECT_NONE, TNK_OK, NULL);
  if (!learn(number, reply->expected) || !alone || number->n_heals == MAX_HEALS)
    return 0;
  number->n_heals++;
  return 1;
}

void tnk__seq_learn(const tnk__seq_t *number, const tnk__reply_t *reply) {
  if (reply->has_expected && reply->got == number->value)
    learn(number, reply->expected);
}
