/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_TRAIN_SEQ_H
#define TNK_LIB_CLIENT_TRAIN_SEQ_H

#include "lib/client/call/call.h"
#include "lib/client/train/cargo.h"
#include "lib/client/train/training.h"

/*
 * The sequence number of a request, and the handling of disagreements with the
 * server about it. lib/policy/turns assigns the numbers; this file keeps the
 * history of one request.
 */

/* Numbers that were refused after an earlier operation had given them back.
 * Some servers count those as used. */
#define TNK__NUMBER_MAX_SUSPECTS 8

typedef struct {
  tnk_training_t *training;
  tnk__turn_t *turn; /* turn of the request's operation */
  uint64_t value;
  uint32_t epoch; /* numbering in which it was taken */
  int is_taken;
  int is_reused;  /* it was sent before, and refused */
  int is_unread;  /* the server could not read the last request under it */
  int is_doubted; /* it was sent before, with an unknown effect ... */
  int is_repeat;  /* ... and with the same bytes */
  uint64_t mark;  /* hash of the bytes sent under it, while it is doubted */
  uint32_t n_heals;
  uint32_t n_skipped; /* numbers that the server has with other bytes */
  uint64_t suspects[TNK__NUMBER_MAX_SUSPECTS];
  uint32_t n_suspects;
  tnk__error_t *refusal; /* refusal of the first suspect */
} tnk__seq_t;

void tnk__seq_init(tnk__seq_t *number, tnk_training_t *training,
                   tnk__turn_t *turn);
/* Free its resources. It must be settled. */
void tnk__seq_deinit(tnk__seq_t *number);
/* Take a number, unless it has one. Returns TNK_OK, or the code with which
 * numbering has stopped. */
int tnk__seq_take(tnk__seq_t *number);
/* Record that the body in `cargo` is sent under it. */
void tnk__seq_use(tnk__seq_t *number, tnk__cargo_t *cargo);
/* The server could not read the request under this number, so it does not know
 * the number. The same request is sent again in another form, which does not
 * count as reuse. */
void tnk__seq_unread(tnk__seq_t *number);
/* Settle the number. Either the effect of all requests under it is known, and
 * `cargo` may be NULL. Or the next request under it will show the effect, and
 * `cargo` is the body that was sent. */
void tnk__seq_settle(tnk__seq_t *number, tnk__effect_t effect, int err,
                     tnk__cargo_t *cargo);
/* Handle a refusal of a number that had been given back. The number may be at
 * fault rather than the request. Returns 1 to try the next number. If the
 * server accepts that one, it counts refused numbers as used. */
int tnk__seq_suspect(tnk__seq_t *number, const tnk__reply_t *reply);
/* Handle a submission that was refused because the server counts differently.
 * alone: no other request is in flight under equally wrong numbers. Returns 1
 * to try the number that the server expects. */
int tnk__seq_heal(tnk__seq_t *number, const tnk__reply_t *reply, int alone);
/* Learn the server's numbering from a result, for later requests. */
void tnk__seq_learn(const tnk__seq_t *number, const tnk__reply_t *reply);

#endif
