#ifndef TNK_TASK_TRAIN_SEQ_H
#define TNK_TASK_TRAIN_SEQ_H

#include "task/call/call.h"
#include "task/train/training.h"

/*
 * The sequence number of a request, and what is done when the server does not
 * agree with it. flow/turns counts; here is known what one request has had.
 */

/* Numbers that were refused although an operation before had given them
 * back: some servers count those as used. */
#define TNK__NUMBER_MAX_SUSPECTS 8

typedef struct {
  tnk_training_t *training;
  tnk__turn_t *turn; /* of the request's operation */
  uint64_t value;
  uint32_t epoch; /* of the numbering when it was taken */
  int is_taken;
  int is_reused; /* it had been sent before, and was refused */
  uint32_t n_heals;
  uint32_t n_skipped; /* numbers that the server has for somebody else */
  uint64_t suspects[TNK__NUMBER_MAX_SUSPECTS];
  uint32_t n_suspects;
  tnk__error_t *refusal; /* of the first suspect */
} tnk__seq_t;

void tnk__seq_init(tnk__seq_t *number, tnk_training_t *training,
                   tnk__turn_t *turn);
/* It has been settled. */
void tnk__seq_deinit(tnk__seq_t *number);
/* TNK_OK, also when there is one; or what has stopped the numbering. */
int tnk__seq_take(tnk__seq_t *number);
/* The request is sent under it. */
void tnk__seq_use(tnk__seq_t *number);
/* The fate of all it has been is known, or can never be. */
void tnk__seq_settle(tnk__seq_t *number, tnk__effect_t effect, int err);
/* A number that had been given back is refused: it may be the number rather
 * than the request. 1: try the next one; when that is taken, the server counts
 * refused numbers as used. */
int tnk__seq_suspect(tnk__seq_t *number, const tnk__reply_t *reply);
/* The submission was refused because the server counts differently; `alone`
 * when no other request is on its way under numbers that are as wrong. 1: try
 * the number that it expects. */
int tnk__seq_heal(tnk__seq_t *number, const tnk__reply_t *reply, int alone);
/* The same learnt from a result: those that follow can use it. */
void tnk__seq_learn(const tnk__seq_t *number, const tnk__reply_t *reply);

#endif
