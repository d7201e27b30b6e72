/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_SESSION_START_H
#define TNK_LIB_CLIENT_SESSION_START_H

#include "lib/base/buf.h"
#include "lib/client/call/call.h"
#include "lib/client/call/renewal.h"
#include "lib/client/session/heartbeat.h"
#include "lib/client/session/limits.h"
#include "lib/client/session/registry.h"
#include "lib/wire/message/calls_session.h"

/* Progress of the start-up. */
typedef enum {
  TNK__SESSION_NEW,        /* no request was sent */
  TNK__SESSION_CONFIGURED, /* the server's flags are known */
  TNK__SESSION_READY       /* the session exists */
} tnk__session_level_t;

/* A waiter for a level, embedded in the operation. */
typedef struct tnk__need {
  tnk__list_t link;
  tnk__session_level_t level;
  tnk__deferred_t call;
  tnk__error_t *error; /* one reference, while `call` is queued */
  /* Called once, from the deferred queue. `error` is NULL on success, and
   * borrowed. */
  void (*done)(struct tnk__need *self, tnk__error_t *error);
  struct tnk__start *start;
} tnk__need_t;

/* The form of passes that the server has accepted in this session. */
typedef enum {
  TNK__FORM_UNKNOWN = 0, /* no pass accepted yet; protobuf is tried first */
  TNK__FORM_PROTO,
  TNK__FORM_JSON
} tnk__form_t;

/* The progress of the present session. A new session begins with zeros. */
typedef struct {
  uint64_t next_model_seq;
  uint64_t next_loss_seq;
  uint64_t next_sampling_seq; /* one counter for all calls that create a
                                 sampler */
  tnk__form_t pass_form;
} tnk__progress_t;

/*
 * Makes the session at the server, keeps it, and reports its end.
 *
 * The level only rises, one step at a time, when an operation needs it. Only
 * one start-up call is active at a time (`busy`). If it fails, all waiting
 * operations fail with it, and the next operation tries again. Closing fails
 * the waiting operations.
 */
typedef struct tnk__start {
  tnk__endpoint_t *endpoint;
  tnk__renewal_t *renewal;
  tnk__limits_t *limits;
  tnk__registry_t *registry;
  tnk__session_level_t level;
  int busy;
  tnk__list_t needs;
  tnk__call_t call;    /* also used for the report of the end */
  tnk__buf_t body;     /* body of `call`, and in READY of `refresh` */
  tnk__call_t refresh; /* requests the dynamic configuration, with its timer */
  tnk__heartbeat_t heartbeat;
  tnk__flags_t flags;
  tnk__dynamic_flags_t dynamic;
  char *id;
  tnk__progress_t progress;
  int restores_in_calls; /* the server has refused to restore in one call */
  void (*finished)(struct tnk__start *self);
  tnk__timer_t finish_timer; /* limits the report of the end */
  tnk__deferred_t no_finish; /* there is nothing to report */
} tnk__start_t;

/* Begin without a session. The four pointers are set, and the rest is zeroed.
 */
void tnk__start_open(tnk__start_t *start);
/* Stop timers and calls, and fail the operations that wait for a level. */
void tnk__start_shut(tnk__start_t *start);
void tnk__start_close(tnk__start_t *start);

void tnk__need_init(tnk__need_t *need,
                    void (*done)(tnk__need_t *self, tnk__error_t *error));
/* Wait for a level; `done` is called in a later turn of the loop. */
void tnk__start_need(tnk__start_t *start, tnk__need_t *need,
                     tnk__session_level_t level);
void tnk__need_cancel(tnk__need_t *need);

/* Leave a session that the server has ended. The next operation that needs a
 * session creates a new one. Until then `id` is the old one. */
void tnk__start_renew(tnk__start_t *start);
/* Report the end of the session, if there is one, and wait for the response for
 * at most two seconds. `done` is called in a later turn of the loop. */
void tnk__start_finish(tnk__start_t *start, void (*done)(tnk__start_t *self));
/* Write the end of a sentence: the reason why the start-up waits. */
void tnk__start_explain(const tnk__start_t *start, tnk__text_t *out);

#endif
