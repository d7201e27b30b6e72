/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_FUTURE_FUTURE_H
#define TNK_TOOLS_LOCAL_FUTURE_FUTURE_H
#include "tools/local/call/call.h"
#include "tools/local/call/state.h"

/* A held poll. It is held for hold_ms, or less if connections are scarce and it
 * is the oldest one. */
typedef struct {
  tnk__list_t link; /* in local_server_t.held, oldest first */
  local_timer_t timer;
  uint64_t since_ms;
} local_hold_t;

/* `over` is called when its time has expired, unless it is stopped before. */
void local_hold_start(local_server_t *server, local_hold_t *hold,
                      void (*over)(local_timer_t *timer));
void local_hold_stop(local_server_t *server, local_hold_t *hold);
/* For tnk__srv_config_t.on_full. */
void local_hold_oldest_ends(void *user);

typedef enum {
  LOCAL_CREATE_MODEL,
  LOCAL_FORWARD,
  LOCAL_FORWARD_BACKWARD,
  LOCAL_OPTIM_STEP,
  LOCAL_SAVE_WEIGHTS,
  LOCAL_SAVE_FOR_SAMPLER,
  LOCAL_SAVE_EXTERNAL,
  LOCAL_LOAD_WEIGHTS,
  LOCAL_UNLOAD_MODEL,
  LOCAL_SAMPLE
} local_kind_t;

typedef enum {
  LOCAL_FUTURE_PENDING,
  LOCAL_FUTURE_HIDDEN, /* settled, but still delayed by the latency */
  LOCAL_FUTURE_SETTLED
} local_future_state_t;

/* Waits for a future; `wake` must remove it from the future's list. */
typedef struct local_waiter {
  tnk__list_t link;
  void (*wake)(struct local_waiter *waiter);
} local_waiter_t;

/*
 * A result, now or later. While it is PENDING, it belongs to an operation or a
 * sample, which settles it exactly once. Afterwards it belongs to the server,
 * which drops the oldest results if there are too many.
 */
typedef struct local_future {
  local_node_t node;
  tnk__list_t link;    /* in the server's pending or results */
  tnk__list_t waiters; /* held polls, local_waiter_t */
  local_server_t *server;
  char id[LOCAL_ID];
  local_kind_t kind;
  local_future_state_t state;
  int status;           /* 200, or the status of the failure */
  const char *category; /* of a failure: "user", "server", "unknown" */
  uint8_t *result;      /* protobuf, JSON, or the error message */
  size_t n_result;
  int is_proto;
  int is_canceled;
  int is_fetched; /* a poll has returned it */
  uint64_t born_ms;
  uint64_t settled_ms; /* when it became SETTLED */
  local_timer_t timer;
  /* Stops the work; set by the owner while pending, may be NULL. */
  void (*cancel)(void *owner);
  void *owner;
  /* Called before the waiters when it is settled; may be NULL. The following
   * members are for completions of a sampling session (batch.c). */
  void (*settled)(struct local_future *future);
  struct local_sampler *sampler;
  tnk__list_t in_sampler;
  uint64_t clone;
  uint64_t cursor;
} local_future_t;

/* Create a pending future. Returns NULL without memory, or if too many are
 * pending (*full is set). */
local_future_t *local_future_new(local_server_t *server, local_kind_t kind,
                                 int *full);
local_future_t *local_future_find(local_server_t *server, const char *id);
/* Settle the future. The buffer's contents are taken. If the buffer has failed,
 * it settles with a server error. */
void local_future_json(local_future_t *future, tnk__buf_t *json);
void local_future_proto(local_future_t *future, tnk__buf_t *proto);
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
void local_future_fail(local_future_t *future, int status, const char *category,
                       const char *format, ...);
/* Fail with the status and category for an error code of the library. */
void local_future_fail_code(local_future_t *future, int code, const char *why);
/* Drop a future whose id was not returned to a client. */
void local_future_drop(local_future_t *future);
/* Free a settled future that the client has fetched and no poll waits for. */
void local_future_forget(local_future_t *future);
/* Free all futures in any state, at the end. */
void local_futures_free(local_server_t *server);

/* Append a protobuf result in the JSON format of older servers. Errors are kept
 * in the buffer. */
void local_result_json(tnk__buf_t *out, int is_sample, const uint8_t *proto,
                       size_t n);
/* Handle the calls with these names. */
void local_retrieve_future(local_call_t *call);
void local_cancel_future(local_call_t *call);

#endif
