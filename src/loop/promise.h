#ifndef TNK_LOOP_PROMISE_H
#define TNK_LOOP_PROMISE_H

#include "base/error.h"
#include "base/text.h"
#include "loop/loop.h"
#include "tnk/promise.h"

/* What a resolved promise holds; the api layer gives the types. */
typedef enum {
  TNK__RESULT_NONE = 0,
  TNK__RESULT_TRAINING,
  TNK__RESULT_SAMPLING,
  TNK__RESULT_PASS,
  TNK__RESULT_SAMPLES,
  TNK__RESULT_LOGPROBS,
  TNK__RESULT_METRICS,
  TNK__RESULT_PATH,
  TNK__RESULT_CAPABILITIES
} tnk__result_kind_t;

/* One registered callback. */
typedef struct tnk__then {
  struct tnk__then *next;
  tnk_promise_cb cb;
  void *user;
} tnk__then_t;

/*
 * PENDING until tnk__promise_resolve() or tnk__promise_reject(), once. Those
 * queue the callbacks; each runs from the deferred queue, in order, also when
 * it is registered after the settling. The promise may outlive its context:
 * from the context's end on it is settled and only read and freed.
 */
struct tnk_promise {
  tnk__loop_t *loop;
  tnk_allocator_t alloc; /* a copy, for after the context's end */
  tnk_logger_t logger;
  size_t refs;
  tnk_promise_state_t state;
  int observed;  /* somebody looked at the outcome */
  int is_shared; /* the context's out-of-memory promise */
  tnk__error_t *error;
  tnk__result_kind_t kind;
  void *value;
  void (*free_value)(const tnk_allocator_t *alloc, void *value);
  tnk__then_t first; /* in use when its cb is set */
  tnk__then_t *rest; /* in order of registration */
  tnk__deferred_t call;
  /* How to end the operation early; cleared by settling. The hook must settle
   * the promise before the next turn, or leave it as it is (too late). */
  void (*cancel)(void *op);
  /* Writes the sentence of tnk_promise_explain(); NULL: there is none. Changes
   * and allocates nothing. Cleared like `cancel`. */
  void (*explain)(const void *op, tnk__text_t *out);
  void *op;
  /* tnk_all, tnk_with_timeout: see promise_group.c. */
  tnk_promise_t **children;
  size_t n_children;
  size_t n_waiting;
  tnk__timer_t timer;
  tnk__list_t group_link; /* in loop->groups, while pending */
};

/* Two references: the operation's, which settling takes, and the caller's.
 * `cancel` may be NULL. Never NULL: without memory the context's shared
 * promise, rejected with TNK_ENOMEM; see tnk__promise_is_oom. */
tnk_promise_t *tnk__promise_new(tnk__loop_t *loop, void (*cancel)(void *op),
                                void *op);
/* Bind the hooks of a pending promise anew; the shared promise has none. */
void tnk__promise_bind(tnk_promise_t *promise, void (*cancel)(void *op),
                       void (*explain)(const void *op, tnk__text_t *out),
                       void *op);
/* What it waits for, or how it ended. */
void tnk__promise_explain(const tnk_promise_t *promise, tnk__text_t *out);
int tnk__promise_is_oom(const tnk_promise_t *promise);
/* A promise that is rejected already; takes `error`. */
tnk_promise_t *tnk__promise_rejected(tnk__loop_t *loop, tnk__error_t *error);

/* Settle and give up the operation's reference. `value` belongs to the promise
 * from here on; a second settling frees it, counts, and changes nothing. */
void tnk__promise_resolve(tnk_promise_t *promise, tnk__result_kind_t kind,
                          void *value,
                          void (*free_value)(const tnk_allocator_t *alloc,
                                             void *value));
/* Takes one reference of `error`. */
void tnk__promise_reject(tnk_promise_t *promise, tnk__error_t *error);

/* The value if the promise was resolved with that kind, else NULL. Follows
 * tnk_with_timeout() to what it wraps. */
void *tnk__promise_value(const tnk_promise_t *promise, tnk__result_kind_t kind);

#endif
