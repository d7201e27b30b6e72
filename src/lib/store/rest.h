/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_STORE_REST_H
#define TNK_LIB_STORE_REST_H

#include "lib/client/recover/run_query.h"
#include "lib/client/session/session.h"
#include "lib/store/page.h"

/* Name of a call in error messages. */
const char *tnk__rest_name(tnk__ask_kind_t kind);
/* Send a call. The arguments must be valid; they are copied where they are
 * needed later. `before` is the previous page, or NULL. */
tnk_promise_t *tnk__rest_ask(tnk__session_t *session, const tnk__ask_t *ask,
                             const tnk_page_t *before);
/* Request the caller's identity: whoami.c. */
tnk_promise_t *tnk__rest_whoami(tnk__session_t *session);

/* The query for the monitor of lost runs. */
extern const tnk__run_query_t tnk__store_run_query;

#endif
