#ifndef TNK_LIB_FILES_WEIGHTS_WEIGHTS_H
#define TNK_LIB_FILES_WEIGHTS_WEIGHTS_H

#include "lib/client/session/session.h"
#include "lib/io/http/client.h"
#include "tnk/weights.h"

/*
 * Downloads of weights of one service. Stores of files have an HTTP client of
 * their own: what the service's shows to servers that ask who we are does not
 * go to them, and no download takes the place of a heartbeat. It is opened by
 * the first download.
 */
typedef struct tnk__weights {
  tnk__session_t *session;
  tnk__http_t http;
  int is_open;
  tnk__list_t jobs;   /* under way */
  tnk__list_t sweeps; /* exports that are being removed, see sweep.c */
  size_t n_late; /* jobs that are over, of which a sweep is still to come */
  tnk__timer_t patience;
  tnk__deferred_t nothing_left;
  /* An export is gone, or will not be removed. */
  void (*swept)(struct tnk__weights *self);
  void (*closed)(tnk__session_t *session); /* set by the end */
} tnk__weights_t;

void tnk__weights_init(tnk__weights_t *weights, tnk__session_t *session);
/* Reject everything under way with TNK_ECLOSED. Before the clients are closed;
 * allocates nothing. */
void tnk__weights_shut(tnk__weights_t *weights);
/* Close for ever, after the clients: `closed` is called in a later turn of the
 * loop, when exports have been removed or a few seconds have passed. */
void tnk__weights_close(tnk__weights_t *weights,
                        void (*closed)(tnk__session_t *session));
/* Do what tnk_weights_download() is asked for. Arguments have passed their
 * checks and options have defaults in place of zeros; all is copied. `identity`
 * opens encrypted files, or is NULL. */
tnk_promise_t *tnk__weights_download(tnk__weights_t *weights, const char *path,
                                     const char *directory,
                                     const tnk_weights_options_t *options,
                                     const uint8_t *identity);
/* The result behind a promise's value. */
const tnk_weights_t *tnk__weights_value(const void *value);

#endif
