#ifndef TNK_LIB_IO_LOOP_PROMISE_H
#define TNK_LIB_IO_LOOP_PROMISE_H

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/io/loop/context.h"
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
  TNK__RESULT_CAPABILITIES,
  TNK__RESULT_TOKENIZER,
  TNK__RESULT_LOSS,
  TNK__RESULT_PAGE,
  TNK__RESULT_PUSHED,
  TNK__RESULT_WEIGHTS,
  TNK__RESULT_SAVED,
  TNK__RESULT_LEDGER,
  TNK__RESULT_ENTRY,
  TNK__RESULT_HOSTED
} tnk__result_kind_t;

/* One registered callback. */
typedef struct tnk__then {
  struct tnk__then *next;
  tnk_promise_cb cb; /* NULL: the end of those that are being called */
  void *user;
  uint8_t origin; /* whose memory it is */
} tnk__then_t;

/* What the promises of a context share. Counted, one reference a promise,
 * because they may outlive the context. */
typedef struct {
  tnk_allocator_t alloc;
  tnk_logger_t logger;
  tnk__context_t *context; /* NULL after its end */
  size_t refs;
} tnk__home_t;

/* What a promise that is made of others has beyond the rest: tnk_all() and the
 * like, see promise_group.c. Freed with its promise. */
typedef struct {
  tnk__list_t link; /* in context->groups, while pending */
  tnk_promise_t *promise;
  tnk__timer_t timer;
  size_t n_waiting;
  size_t n_wanted; /* of a quorum: how many still have to resolve; else 0 */
  size_t n_children;
  uint8_t is_wrapper; /* the child's result is also that of the promise */
  struct {
    tnk_promise_t *promise;
    tnk__then_t then; /* so that to watch it needs no memory */
  } children[];
} tnk__group_t;

/*
 * PENDING until tnk__promise_resolve() or tnk__promise_reject(), once. Those
 * queue the callbacks; each runs from the deferred queue, in order, also when
 * it is registered after the settling. The promise may outlive its context:
 * from the context's end on it is settled and only read and freed.
 *
 * There is one for each operation in flight, so it is kept small.
 */
struct tnk_promise {
  uint32_t magic;
  uint32_t refs;
  tnk__home_t *home;
  tnk_promise_state_t state;
  uint8_t observed;   /* somebody looked at the outcome */
  uint8_t is_shared;  /* the context's out-of-memory promise */
  uint8_t kind;       /* tnk__result_kind_t, once resolved */
  uint8_t delivered;  /* the observer was told so */
  uint64_t operation; /* its number for the observer; 0: nobody hears of it */
  union {
    struct {
      /* How to end the operation early. The hook must settle the promise before
       * the next turn of the loop, or leave it as it is (too late). */
      void (*cancel)(void *op);
      /* Writes the sentence of tnk_promise_explain(); NULL: there is none.
       * Changes and allocates nothing. */
      void (*explain)(const void *op, tnk__text_t *out);
      void *op;
    } pending;
    struct {
      void *value;
      void (*free_value)(const tnk_allocator_t *alloc, void *value);
    } resolved;
    tnk__error_t *error; /* when rejected */
  } as;
  /* What the operation is called, for sentences; static, or NULL. */
  const char *name;
  tnk_promise_cb first_cb; /* the first callback, if there is one */
  void *first_user;
  tnk__then_t *rest; /* the others, in order of registration */
  tnk__deferred_t call;
  tnk__group_t *group; /* NULL for most */
};

/* Set aside memory for promises that are made when there is none left; the
 * context's end frees it. TNK_OK or TNK_ENOMEM. */
int tnk__promise_reserve(tnk__context_t *context);

/* Make a pending promise with two references: the operation's, which settling
 * takes, and the caller's. `cancel` may be NULL. Never returns NULL: without
 * memory it is the context's shared promise, rejected with TNK_ENOMEM; see
 * tnk__promise_is_oom. */
tnk_promise_t *tnk__promise_new(tnk__context_t *context,
                                void (*cancel)(void *op), void *op);
/* Bind the hooks of a pending promise anew; the shared promise has none. They
 * are not called any more once it is settled. */
void tnk__promise_bind(tnk_promise_t *promise, void (*cancel)(void *op),
                       void (*explain)(const void *op, tnk__text_t *out),
                       void *op);
/* Write what it waits for, or how it ended. */
void tnk__promise_explain(const tnk_promise_t *promise, tnk__text_t *out);
int tnk__promise_is_oom(const tnk_promise_t *promise);
/* Say what the operation is called: a rejection with a static error then begins
 * with that. */
void tnk__promise_name(tnk_promise_t *promise, const char *name);
/* The same for an operation of a service or hub, whose observer hears from here
 * on what becomes of it, unless it knows the promise already. `client` may be
 * NULL. */
void tnk__promise_enter(tnk_promise_t *promise, const char *name,
                        const char *client);
/* Tell the observer that the operation of a pending promise waits. */
void tnk__promise_waits(const tnk_promise_t *promise, tnk_waits_for_t what,
                        size_t part);
/* That it has settled, if it is an operation's; for promise.c alone, in
 * promise_observe.c as the next. */
void tnk__promise_tell_end(const tnk_promise_t *promise);
/* That somebody looks at the outcome, the first time; the same. */
void tnk__promise_tell_delivery(tnk_promise_t *promise);
/* The error of a rejected promise, with the name of its operation if there is
 * memory for that. Borrowed. */
tnk__error_t *tnk__promise_error(tnk_promise_t *promise);
/* tnk_then() for groups: takes a reference, uses `node` if it needs one, and
 * cannot fail. The promise's context is not gone. */
void tnk__promise_watch(tnk_promise_t *promise, tnk__then_t *node,
                        tnk_promise_cb cb, void *user);
/* A rejected promise with one reference where the context has gone; takes
 * `error`. NULL without memory. */
tnk_promise_t *tnk__promise_orphan(tnk__home_t *home, tnk__error_t *error);
/* A promise that is rejected already; takes `error`. */
tnk_promise_t *tnk__promise_rejected(tnk__context_t *context,
                                     tnk__error_t *error);

/* Settle and give up the operation's reference. `value` belongs to the promise
 * from here on; a second settling frees it, counts, and changes nothing. */
void tnk__promise_resolve(tnk_promise_t *promise, tnk__result_kind_t kind,
                          void *value,
                          void (*free_value)(const tnk_allocator_t *alloc,
                                             void *value));
/* Reject it and give up the operation's reference. Takes one of `error`. */
void tnk__promise_reject(tnk_promise_t *promise, tnk__error_t *error);

/* The value if the promise was resolved with that kind, else NULL. Follows
 * tnk_with_timeout() to what it wraps. */
void *tnk__promise_value(const tnk_promise_t *promise, tnk__result_kind_t kind);

#endif
