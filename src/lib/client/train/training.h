#ifndef TNK_LIB_CLIENT_TRAIN_TRAINING_H
#define TNK_LIB_CLIENT_TRAIN_TRAINING_H

#include "lib/base/arena.h"
#include "lib/client/session/session.h"
#include "lib/policy/queue_state.h"
#include "lib/policy/stall.h"
#include "lib/policy/turns.h"
#include "lib/wire/format/zstd.h"
#include "tnk/training.h"

/* As many operations that wait for their turn are worth a warning; then twice
 * as many, and so on. */
#define TNK__TRAINING_DEEP 1024
/* Warnings about results that are told once; what differs is only noted. */
#define TNK__TRAINING_MAX_WARNED 16

/* What weights contain, of what was sent by this client. */
typedef struct {
  uint64_t n_steps;
  uint64_t n_passes; /* with gradients */
} tnk__tally_t;

/*
 * A training client: the queue of its operations and what is known of its
 * model.
 *
 * Open; closing, from tnk__training_close() until the last operation is gone;
 * then closed, and the caller is told: what is left refuses every call, and is
 * freed with the last promise that shows it.
 */
struct tnk_training {
  uint32_t magic;
  uint32_t refs;           /* one until it is closed, one a promise */
  tnk__list_t link;        /* in session->trainings */
  tnk__session_t *session; /* NULL once it is closed */
  tnk_promise_t *kin;      /* of its service, for refusals after its end */
  tnk__turns_t turns;
  tnk__list_t ops;    /* of tnk__member_t */
  tnk__arena_t arena; /* of the strings of info, and of `warned` */
  tnk_training_info_t info;
  size_t deep;         /* as many in the queue are worth the next warning */
  uint64_t fresh;      /* no number from here on has been sent */
  tnk__tally_t tally;  /* of the operation that is accepted next */
  size_t n_due;        /* operations that wait for their tally to be final */
  tnk__deferred_t due; /* one of them may end; initialized by the first op */
  const char *warned[TNK__TRAINING_MAX_WARNED];
  size_t n_warned;
  tnk__queue_notice_t notice;
  tnk__stall_t stall;
  tnk__totals_t totals;
  int lacks_pass; /* the last pass was refused for the budget: no step is taken
                     on what came before it alone */
  tnk__zstd_t zstd;     /* for the next body to be compressed */
  tnk__error_t *failed; /* why nothing can be submitted any more */
  uint64_t known;       /* the highest number whose result has come; 0: none */
  int is_stopped;       /* see stop.h */
  /* The last state that was saved or loaded, or NULL; what it contains, and
   * whether the optimizer's moments belong to it. */
  char *saved_path;
  tnk__tally_t saved_tally;
  int saved_optimizer;
  /* How the model was made, for making it again while no state of it was saved;
   * NULL: not known. In `arena`. */
  tnk_lora_options_t *origin;
  tnk__list_t waits;    /* promises of ready.c */
  int is_unloaded;      /* by the program */
  uint32_t restarts;    /* of the server that it was told of */
  const char *why_lost; /* static, or NULL */
  int is_unheard; /* it was restored, and the program does not know that yet */
  int is_lost;    /* it waits to be restored, see lib/client/recover */
  uint32_t tries; /* that have been made of that */
  uint32_t round; /* of the questions about runs in which it was asked for */
  int has_no_run; /* that the service would tell of */
  int closing;
  tnk_close_cb close_cb;
  void *close_user;
  tnk__deferred_t closed;
};

/* Make a training client; NULL without memory. The id is copied. */
tnk_training_t *tnk__training_new(tnk__session_t *session,
                                  const char *model_id);
void tnk__training_close(tnk_training_t *training, tnk_close_cb cb, void *user);
/* As a promise's value: one more reference, and how it is given up. */
void *tnk__training_show(tnk_training_t *training);
void tnk__training_hide(const tnk_allocator_t *alloc, void *value);
/* Make a promise that resolves when the client accepts operations. It rejects
 * if the client stays lost, or is closed: ready.c. */
tnk_promise_t *tnk__training_ready(tnk_training_t *training);
/* Settle these promises: with the error, or if it is NULL with what the weights
 * contain. Only schedules. */
void tnk__training_settle_ready(tnk_training_t *training, tnk__error_t *error);
/* Note that the server has reported the state of its queue. */
void tnk__training_notice(tnk_training_t *training, const char *state,
                          const char *reason);
/* Warn, once a client, that the result of operation `name` lacks something, as
 * in all likelihood each of them does. */
void tnk__training_warn(tnk_training_t *training, const char *name,
                        const char *text);
/* Note that something has begun or ended, which shows that the client does not
 * hang. */
void tnk__training_moved(tnk_training_t *training);
/* Note that an operation is gone. */
void tnk__training_op_gone(tnk_training_t *training);

#endif
