#ifndef TNK_LIB_CLIENT_TRAIN_SEQ_H
#define TNK_LIB_CLIENT_TRAIN_SEQ_H

#include "lib/client/call/call.h"
#include "lib/client/train/cargo.h"
#include "lib/client/train/training.h"

/*
 * The sequence number of a request, and what is done when the server does not
 * agree with it. lib/policy/turns counts; here is known what one request has
 * had.
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
  int is_reused;  /* it had been sent before, and was refused */
  int is_unread;  /* the server could not read the last request under it */
  int is_doubted; /* it had been sent before, and nobody knows what became of
                     that ... */
  int is_repeat;  /* ... which was the same */
  uint64_t mark;  /* of what is sent under it, while it is doubted */
  uint32_t n_heals;
  uint32_t n_skipped; /* numbers that the server has for somebody else */
  uint64_t suspects[TNK__NUMBER_MAX_SUSPECTS];
  uint32_t n_suspects;
  tnk__error_t *refusal; /* of the first suspect */
} tnk__seq_t;

void tnk__seq_init(tnk__seq_t *number, tnk_training_t *training,
                   tnk__turn_t *turn);
/* Free what it holds; it has been settled. */
void tnk__seq_deinit(tnk__seq_t *number);
/* Take a number, unless there is one. TNK_OK, or what has stopped the
 * numbering. */
int tnk__seq_take(tnk__seq_t *number);
/* Note that the cargo is sent under it. */
void tnk__seq_use(tnk__seq_t *number, tnk__cargo_t *cargo);
/* Note that the server could not read the request that was sent under it, and
 * so cannot know the number. The same request is sent again in another form:
 * that is no reuse. */
void tnk__seq_unread(tnk__seq_t *number);
/* Settle it: the fate of all that was sent under it is known, or what is sent
 * under it next will tell: then `cargo` is what was sent, else it may be
 * NULL. */
void tnk__seq_settle(tnk__seq_t *number, tnk__effect_t effect, int err,
                     tnk__cargo_t *cargo);
/* Decide about a refusal of a number that had been given back: the number may
 * be at fault rather than the request. 1: try the next one; when that is taken,
 * the server counts refused numbers as used. */
int tnk__seq_suspect(tnk__seq_t *number, const tnk__reply_t *reply);
/* Decide about a submission that was refused because the server counts
 * differently; `alone` when no other request is on its way under numbers that
 * are as wrong. 1: try the number that it expects. */
int tnk__seq_heal(tnk__seq_t *number, const tnk__reply_t *reply, int alone);
/* Learn from a result how the server counts: those that follow can use it. */
void tnk__seq_learn(const tnk__seq_t *number, const tnk__reply_t *reply);

#endif
