/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_FILES_PUSH_ASK_H
#define TNK_LIB_FILES_PUSH_ASK_H

#include "lib/base/error.h"
#include "lib/files/hub/hub.h"
#include "lib/io/http/client.h"
#include "lib/wire/format/location.h"

/* One request of a push. Strings are copied. `what`, `headers`, the body and
 * the feed are borrowed until the request ends. */
typedef struct {
  const char *what; /* static, for example "create the repository" */
  const char *method;
  const char *url;
  const char *type;   /* content type of the body; NULL: no body */
  const char *accept; /* NULL: JSON */
  int has_token;      /* send the token; only for the hub itself */
  int is_once;        /* must not run twice: no retry after it was sent */
  int may_be;         /* another successful status, such as 409; or 0 */
  const tnk_pair_t *headers;
  size_t n_headers;
  const void *body;
  size_t n_body;
  tnk__feed_t *feed;
} tnk__ask_request_t;

/*
 * Sends a request with retries.
 *
 * States: idle; asking (an exchange is in progress); pausing (a timer runs
 * before the next attempt). It ends with `done` or by a cancel. Messages and
 * logs contain only the authority of an address, because the address may be
 * signed.
 */
typedef struct tnk__ask {
  /* Set by the owner. `error` is borrowed and is NULL after a success. Then
   * `result` is the answer. The callback may start another request, or free
   * this object. */
  void (*done)(struct tnk__ask *ask, const tnk__http_result_t *result,
               tnk__error_t *error);
  tnk__exchange_t exchange;
  /* Private. */
  tnk__hub_t *hub;
  tnk__ask_request_t request; /* without its strings */
  tnk__location_t at;
  tnk__timer_t timer;
  uint32_t n_attempts;
} tnk__ask_t;

void tnk__ask_init(tnk__ask_t *ask, tnk__hub_t *hub);
/* Start the request. Returns TNK_OK or an error, and then no callback is
 * called. TNK_EPROTO: the address is not valid. */
int tnk__ask_start(tnk__ask_t *ask, const tnk__ask_request_t *request);
/* Cancel it; allowed in every state. Allocates nothing. */
void tnk__ask_cancel(tnk__ask_t *ask);
/* Describe the current step, as the end of a sentence. */
void tnk__ask_explain(const tnk__ask_t *ask, tnk__text_t *out);

#endif
