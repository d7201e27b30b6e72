/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_FILES_WEIGHTS_WEIGHTS_H
#define TNK_LIB_FILES_WEIGHTS_WEIGHTS_H

#include "lib/client/session/session.h"
#include "lib/io/http/client.h"
#include "tnk/weights.h"

/*
 * The downloads of weights of one service. They use a separate HTTP client,
 * because stores must not get the service's key, headers or client certificate.
 * Downloads also do not delay heartbeats. The first download opens it.
 */
typedef struct tnk__weights {
  tnk__session_t *session;
  tnk__http_t http;
  int is_open;
  tnk__list_t jobs;   /* pending downloads */
  tnk__list_t sweeps; /* pending removals of exports, see sweep.c */
  size_t n_late;      /* jobs that are over, with a removal still to come */
  tnk__timer_t patience;
  tnk__deferred_t nothing_left;
  /* An export was removed, or will not be removed. */
  void (*swept)(struct tnk__weights *self);
  void (*closed)(tnk__session_t *session); /* set at the end */
} tnk__weights_t;

void tnk__weights_init(tnk__weights_t *weights, tnk__session_t *session);
/* Reject all pending downloads with TNK_ECLOSED. Call it before the clients are
 * closed. Allocates nothing. */
void tnk__weights_shut(tnk__weights_t *weights);
/* Close for good, after the clients. `closed` is called in a later turn of the
 * loop, after the exports were removed or a few seconds have passed. */
void tnk__weights_close(tnk__weights_t *weights,
                        void (*closed)(tnk__session_t *session));
/* Implements tnk_weights_download(). Arguments have passed their checks, and
 * the defaults are applied to the options. All arguments are copied. `identity`
 * is the key for encrypted files, or NULL. */
tnk_promise_t *tnk__weights_download(tnk__weights_t *weights, const char *path,
                                     const char *directory,
                                     const tnk_weights_options_t *options,
                                     const uint8_t *identity);
/* The result in a promise's value. */
const tnk_weights_t *tnk__weights_value(const void *value);

#endif
