#ifndef TNK_LIB_FILES_PUSH_ASK_H
#define TNK_LIB_FILES_PUSH_ASK_H

#include "lib/base/error.h"
#include "lib/files/hub/hub.h"
#include "lib/io/http/client.h"
#include "lib/wire/format/location.h"

/* One request of a push. Texts are copied, but for `what`, `headers`, the body
 * and the feed, which are borrowed until it is done. */
typedef struct {
  const char *what; /* static: "create the repository" */
  const char *method;
  const char *url;
  const char *type;   /* of the body; NULL: none */
  const char *accept; /* NULL: JSON */
  int has_token;      /* it goes to the hub itself */
  int is_once;        /* it must not be run twice: no repeat once it was sent */
  int may_be;         /* a status that is an answer too, such as 409; or 0 */
  const tnk_pair_t *headers;
  size_t n_headers;
  const void *body;
  size_t n_body;
  tnk__feed_t *feed;
} tnk__ask_request_t;

/*
 * A request with its repeats.
 *
 * States: idle; asking (an exchange is under way); pausing (the timer runs
 * before the next attempt). It ends with `done` or by a cancel. No address is
 * told or logged but its authority, since it may be signed.
 */
typedef struct tnk__ask {
  /* The owner's. `error` is borrowed, NULL after a success; then `result` is
   * the answer. It may start the next one, or free it. */
  void (*done)(struct tnk__ask *ask, const tnk__http_result_t *result,
               tnk__error_t *error);
  tnk__exchange_t exchange;
  /* Private. */
  tnk__hub_t *hub;
  tnk__ask_request_t request; /* without its texts */
  tnk__location_t at;
  tnk__timer_t timer;
  uint32_t n_attempts;
} tnk__ask_t;

void tnk__ask_init(tnk__ask_t *ask, tnk__hub_t *hub);
/* Start it. TNK_OK, or a code and nothing is called: TNK_EPROTO for an address
 * that cannot be asked. */
int tnk__ask_start(tnk__ask_t *ask, const tnk__ask_request_t *request);
/* Cancel it; legal in every state. Allocates nothing. */
void tnk__ask_cancel(tnk__ask_t *ask);
/* Write what it waits for, as the end of a sentence. */
void tnk__ask_explain(const tnk__ask_t *ask, tnk__text_t *out);

#endif
