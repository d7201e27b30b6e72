/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_TRAIN_TRAINING_H
#define TNK_LIB_CLIENT_TRAIN_TRAINING_H

#include "lib/base/arena.h"
#include "lib/client/session/session.h"
#include "lib/policy/queue_state.h"
#include "lib/policy/turns.h"
#include "lib/wire/format/zstd.h"
#include "tnk/training.h"

/* Queue length that causes a warning. Each further warning needs twice as
 * many. */
#define TNK__TRAINING_DEEP 1024
/* Warnings about results, logged once each. Further ones are debug messages. */
#define TNK__TRAINING_MAX_WARNED 16

/* Content of the weights: operations of this client. */
typedef struct {
  uint64_t n_steps;
  uint64_t n_passes; /* with gradients */
} tnk__tally_t;

/*
 * A training client: the queue of its operations and the state of its model.
 *
 * Open; closing, from tnk__training_close() until the last operation is gone;
 * closed. Then the caller is notified. The rest of the object refuses every
 * call. It is freed with the last promise that holds it as a value.
 */
struct tnk_training {
  uint32_t magic;
  uint32_t refs;           /* one until it is closed, and one per promise */
  tnk__list_t link;        /* in session->registry.trainings */
  tnk__session_t *session; /* NULL after it is closed */
  tnk_promise_t *kin;      /* a promise of its service, for refusals after
                              its end */
  tnk__turns_t turns;
  tnk__list_t ops;    /* of tnk__member_t */
  tnk__arena_t arena; /* holds the strings of info, and of `warned` */
  tnk_training_info_t info;
  size_t deep;         /* queue length of the next warning */
  uint64_t fresh;      /* this and higher numbers were never sent */
  tnk__tally_t tally;  /* tally of the operation that is accepted next */
  size_t n_due;        /* operations that wait for their tally to be final */
  tnk__deferred_t due; /* ends these operations; initialized by the first
                          operation */
  const char *warned[TNK__TRAINING_MAX_WARNED];
  size_t n_warned;
  tnk__queue_notice_t notice;
  tnk__stall_t stall;
  tnk__totals_t totals;
  int lacks_pass;   /* the budget refused the last pass: no step is taken with
                       the earlier gradients only */
  tnk__zstd_t zstd; /* context for the next compression */
  tnk__error_t *failed; /* why no request can be submitted any more */
  uint64_t known;       /* highest number with a known result; 0: none */
  int is_stopped;       /* see stop.h */
  /* The last state that was saved or loaded, or NULL; its tally, and whether it
   * includes the optimizer's moments. */
  char *saved_path;
  tnk__tally_t saved_tally;
  int saved_optimizer;
  /* The options with which the model was made, for making it again if no state
   * was saved. NULL: not known. In `arena`. */
  tnk_lora_options_t *origin;
  tnk__list_t waits;    /* promises of tnk__training_ready() */
  int is_unloaded;      /* by the program */
  uint32_t restarts;    /* restarts of the server that the client was
                           notified of */
  const char *why_lost; /* static, or NULL */
  int is_unheard; /* it was restored, and the program was not notified yet */
  int is_lost;    /* it waits for its recovery, see lib/client/recover */
  int is_told;    /* its loss was reported to the program */
  uint32_t tries; /* recovery attempts */
  uint32_t round; /* round of run queries that included it */
  int has_no_run; /* the service reports no run for it */
  int closing;
  tnk_close_cb close_cb;
  void *close_user;
  tnk__deferred_t closed;
};

/* Make a training client; NULL without memory. The id is copied. */
tnk_training_t *tnk__training_new(tnk__session_t *session,
                                  const char *model_id);
void tnk__training_close(tnk_training_t *training, tnk_close_cb cb, void *user);
/* Reference as a promise's value, and its release. */
void *tnk__training_show(tnk_training_t *training);
void tnk__training_hide(const tnk_allocator_t *alloc, void *value);
/* Make a promise that resolves when the client accepts operations. It rejects
 * if the client stays lost, or is closed. */
tnk_promise_t *tnk__training_ready(tnk_training_t *training);
/* Settle these promises: with the error, or if it is NULL with the content of
 * the weights. Only schedules. */
void tnk__training_settle_ready(tnk_training_t *training, tnk__error_t *error);
/* Record a state of the queue that the server has reported. */
void tnk__training_notice(tnk_training_t *training, const char *state,
                          const char *reason);
/* Warn, once per client, that the result of operation `name` is incomplete.
 * Later results will probably have the same defect. */
void tnk__training_warn(tnk_training_t *training, const char *name,
                        const char *text);
/* Record that an operation has begun or ended, so the client is not stalled. */
void tnk__training_moved(tnk_training_t *training);
/* An operation was removed. */
void tnk__training_op_gone(tnk_training_t *training);
/* The tally of the next operation if no pending one fails:
 * tally.c. */
tnk__tally_t tnk__tally_expected(const tnk_training_t *training);

#endif
