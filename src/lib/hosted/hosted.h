/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_HOSTED_HOSTED_H
#define TNK_LIB_HOSTED_HOSTED_H

#include "lib/client/session/session.h"
#include "tnk/hosted.h"

/* Maximum size of a request body, and of a whole answer. */
#define TNK__HOSTED_MAX_BODY ((size_t)64 * 1024 * 1024)

/* The value of a promise, which owns it. */
struct tnk_hosted {
  char *body; /* NULL: the answer was a stream */
  size_t n_body;
  uint64_t n_events;
};

/* Name of a request of that form in messages. */
const char *tnk__hosted_name(tnk_hosted_form_t form);
/* Send a request. It has passed its checks and is copied. */
tnk_promise_t *tnk__hosted_ask(tnk__session_t *session,
                               const tnk_hosted_request_t *request);

#endif
