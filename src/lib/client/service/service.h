/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_SERVICE_SERVICE_H
#define TNK_LIB_CLIENT_SERVICE_SERVICE_H

#include "lib/client/session/session.h"
#include "tnk/service.h"

/*
 * Operations of a service that do not belong to a client. Options have passed
 * their checks and are copied.
 */

/* ---- Making training clients ---- */

tnk_promise_t *tnk__create_lora(tnk__session_t *session,
                                const tnk_lora_options_t *options);
tnk_promise_t *tnk__restore(tnk__session_t *session,
                            const tnk_restore_options_t *options);

/* ---- Queries that need no session ---- */

tnk_promise_t *tnk__query_capabilities(tnk__session_t *session);
tnk_promise_t *tnk__query_health(tnk__session_t *session);
/* The capabilities behind a promise's value. */
const tnk_capabilities_t *tnk__query_value(const void *value);

/* ---- Monitoring of pending operations: watch.c ---- */

typedef struct {
  tnk__session_t *session;
  tnk__timer_t timer;
} tnk__watch_t;

void tnk__watch_open(tnk__watch_t *watch, tnk__session_t *session);
void tnk__watch_close(tnk__watch_t *watch);
/* Start the watch before an operation becomes pending. It checks once a second
 * whether clients and operations progress, and reports those that have not for
 * long. It also measures the delay of the loop, and does not keep it alive. It
 * ends when nothing is pending or the session is shut. */
void tnk__watch_arm(tnk__watch_t *watch);

/* ---- The end ---- */

/* Fail all operations of a session that is closing, and close its clients.
 * Their memory is freed in later turns of the loop. */
void tnk__clients_close(tnk__session_t *session);

#endif
