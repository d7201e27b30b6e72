/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_SESSION_HEARTBEAT_H
#define TNK_LIB_CLIENT_SESSION_HEARTBEAT_H

#include "lib/client/call/call.h"

/*
 * Keeps a session at the server alive: one heartbeat every ten seconds, the
 * first after ten seconds. States: not begun; beating; ended, when the server
 * reports the end of the session or the heartbeat is stopped. It does not keep
 * the loop alive.
 *
 * Calls that doubt the existence of the session request a heartbeat at once. A
 * heartbeat that is in flight may have been answered before the doubt arose, so
 * another one follows it.
 */
typedef struct tnk__heartbeat {
  tnk__call_t call; /* its timer runs between two heartbeats */
  tnk__buf_t body;
  const char *session_id; /* borrowed from the owner */
  uint64_t ok_ms;         /* time of the last success, or of the start */
  int has_warned;         /* failures have been logged since the last success */
  int is_asked;           /* another one must follow at once */
  int is_asking;          /* a call waits for the next response */
  /* Called once when the server has ended the session. Must be last: it may
   * free the heartbeat. */
  void (*ended)(struct tnk__heartbeat *self, tnk__error_t *error);
  /* Called when a heartbeat was requested, or a restart of the server is
   * suspected, and the response does not report the end of the session. Must be
   * last; may be NULL. */
  void (*kept)(struct tnk__heartbeat *self);
} tnk__heartbeat_t;

void tnk__heartbeat_open(tnk__heartbeat_t *heartbeat,
                         const tnk_allocator_t *alloc);
/* Encode the request, which never changes, without starting. TNK_OK or
 * TNK_ENOMEM. */
int tnk__heartbeat_prepare(tnk__heartbeat_t *heartbeat,
                           tnk__endpoint_t *endpoint, const char *session_id);
void tnk__heartbeat_begin(tnk__heartbeat_t *heartbeat);
/* Check now whether the session exists; `kept` or `ended` reports the result.
 * The heartbeat must be beating. */
void tnk__heartbeat_ask(tnk__heartbeat_t *heartbeat);
/* Returns whether a call of `kept` or `ended` is pending. */
int tnk__heartbeat_is_asked(const tnk__heartbeat_t *heartbeat);
/* Does nothing when it has not begun. */
void tnk__heartbeat_stop(tnk__heartbeat_t *heartbeat);
void tnk__heartbeat_close(tnk__heartbeat_t *heartbeat);

#endif
