/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_IO_LOOP_PROMISE_H
#define TNK_LIB_IO_LOOP_PROMISE_H

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/io/loop/context.h"
#include "tnk/promise.h"

/* The kind of value in a resolved promise. The api layer defines the types. */
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
  TNK__RESULT_HOSTED,
  TNK__RESULT_EVAL
} tnk__result_kind_t;

/* One registered callback. */
typedef struct tnk__then {
  struct tnk__then *next;
  tnk_promise_cb cb; /* NULL: end mark of the callbacks that are being called */
  void *user;
  uint8_t origin; /* owner of the node's memory */
} tnk__then_t;

/* The data that the promises of a context share. It is reference-counted, with
 * one reference for each promise, because promises may outlive the context. */
typedef struct {
  tnk_allocator_t alloc;
  tnk_logger_t logger;
  tnk__context_t *context;    /* NULL after the context's end */
  void (*closed)(void *user); /* callback for the context's end */
  void *closed_user;
  size_t refs;
} tnk__home_t;

/* Additional state of a promise made of others, for example by tnk_all(). See
 * promise_group.c. Freed with its promise. */
typedef struct {
  /* While pending: called if the context ends before. */
  tnk__deferred_t end;
  tnk_promise_t *promise;
  tnk__timer_t timer;
  size_t n_waiting;
  size_t n_wanted; /* for a quorum: promises that must still resolve; else 0 */
  size_t n_children;
  uint8_t is_wrapper; /* the result of the child is the result of the promise */
  struct {
    tnk_promise_t *promise;
    /* Node of the callback, so that watching needs no memory. */
    tnk__then_t then;
  } children[];
} tnk__group_t;

/*
 * PENDING until tnk__promise_resolve() or tnk__promise_reject(), once. They
 * queue the callbacks. Each callback runs from the deferred queue, in order,
 * even if it is registered after the promise has settled. A promise may outlive
 * its context. From the context's end on it is settled, and can only be read
 * and freed.
 *
 * One exists for each operation in flight, so it is kept small.
 */
struct tnk_promise {
  uint32_t magic;
  uint32_t refs;
  tnk__home_t *home;
  tnk_promise_state_t state;
  uint8_t observed;   /* the caller has read the outcome */
  uint8_t is_shared;  /* the context's out-of-memory promise */
  uint8_t kind;       /* tnk__result_kind_t, once resolved */
  uint8_t delivered;  /* the delivery was reported to the observer */
  uint64_t operation; /* number for the observer; 0: not reported */
  union {
    struct {
      /* Hook that cancels the operation. It must settle the promise before the
       * next turn of the loop, or leave it unchanged if it is too late. */
      void (*cancel)(void *op);
      /* Hook that writes the text of tnk_promise_explain(); NULL: none. It must
       * not change or allocate anything. */
      void (*explain)(const void *op, tnk__text_t *out);
      void *op;
    } pending;
    struct {
      void *value;
      void (*free_value)(const tnk_allocator_t *alloc, void *value);
    } resolved;
    tnk__error_t *error; /* set when rejected */
  } as;
  /* Name of the operation for messages: a static string, or NULL. */
  const char *name;
  tnk_promise_cb first_cb; /* the first callback, if any */
  void *first_user;
  tnk__then_t *rest; /* other callbacks in order of registration */
  tnk__deferred_t call;
  tnk__group_t *group; /* NULL for most promises */
};

/* Reserve memory for promises that are created when no memory is left. Returns
 * TNK_OK or TNK_ENOMEM. */
int tnk__promise_reserve(tnk__context_t *context);
/* Free the reserve. Only for a context that was not started;
 * tnk__context_close() frees it otherwise. */
void tnk__promise_release(tnk__context_t *context);

/* Create a pending promise with two references. One belongs to the operation
 * and is dropped by settling; the other belongs to the caller. `cancel` may be
 * NULL. Never returns NULL. If out of memory, returns the context's shared
 * promise, rejected with TNK_ENOMEM; see tnk__promise_is_oom(). */
tnk_promise_t *tnk__promise_new(tnk__context_t *context,
                                void (*cancel)(void *op), void *op);
/* Replace the hooks of a pending promise. The shared promise has none. After it
 * has settled they are not called any more. */
void tnk__promise_bind(tnk_promise_t *promise, void (*cancel)(void *op),
                       void (*explain)(const void *op, tnk__text_t *out),
                       void *op);
/* Write what it waits for, or how it ended. */
void tnk__promise_explain(const tnk_promise_t *promise, tnk__text_t *out);
int tnk__promise_is_oom(const tnk_promise_t *promise);
/* Set the name of the operation. A rejection with a static error then begins
 * with the name. */
void tnk__promise_name(tnk_promise_t *promise, const char *name);
/* The same for an operation of a service or hub. From here on the operation is
 * reported to the observer, unless it is already. `client` may be NULL. */
void tnk__promise_enter(tnk_promise_t *promise, const char *name,
                        const char *client);
/* Report to the observer that the operation of a pending promise waits. */
void tnk__promise_waits(const tnk_promise_t *promise, tnk_waits_for_t what,
                        size_t part);
/* The error of a rejected promise, with the name of its operation if memory
 * suffices. Borrowed. */
tnk__error_t *tnk__promise_error(tnk_promise_t *promise);
/* tnk_then() for groups. It takes a reference, uses `node` if it needs one, and
 * cannot fail. The promise's context must still exist. */
void tnk__promise_watch(tnk_promise_t *promise, tnk__then_t *node,
                        tnk_promise_cb cb, void *user);
/* Create a rejected promise with one reference after its context has ended.
 * Takes `error`. NULL if out of memory. */
tnk_promise_t *tnk__promise_orphan(tnk__home_t *home, tnk__error_t *error);
/* Create a promise that is already rejected. Takes `error`. */
tnk_promise_t *tnk__promise_rejected(tnk__context_t *context,
                                     tnk__error_t *error);

/* Resolve it and drop the operation's reference. `value` then belongs to the
 * promise. A second call frees `value` and increments a counter, but changes
 * nothing else. */
void tnk__promise_resolve(tnk_promise_t *promise, tnk__result_kind_t kind,
                          void *value,
                          void (*free_value)(const tnk_allocator_t *alloc,
                                             void *value));
/* Reject it and drop the operation's reference. Takes a reference of
 * `error`. */
void tnk__promise_reject(tnk_promise_t *promise, tnk__error_t *error);

/* The value if the promise was resolved with this kind, otherwise NULL. For
 * tnk_with_timeout() it is the value of the wrapped promise. */
void *tnk__promise_value(const tnk_promise_t *promise, tnk__result_kind_t kind);

#endif
