#ifndef TNK_LIB_HOSTED_HOSTED_H
#define TNK_LIB_HOSTED_HOSTED_H

#include "lib/client/session/session.h"
#include "tnk/hosted.h"

/* The most that a body may have, and a whole answer. */
#define TNK__HOSTED_MAX_BODY ((size_t)64 * 1024 * 1024)

/* The result of a promise; its owner's. */
struct tnk_hosted {
  char *body; /* NULL: it was a stream */
  size_t n_body;
  uint64_t n_events;
};

/* What a request of that form is called, in sentences. */
const char *tnk__hosted_name(tnk_hosted_form_t form);
/* Ask. The request has passed its checks, and is copied. */
tnk_promise_t *tnk__hosted_ask(tnk__session_t *session,
                               const tnk_hosted_request_t *request);

#endif
