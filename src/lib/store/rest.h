#ifndef TNK_LIB_STORE_REST_H
#define TNK_LIB_STORE_REST_H

#include "lib/client/session/session.h"
#include "lib/store/page.h"

/* What a call about what the service keeps is called, in sentences. */
const char *tnk__rest_name(tnk__ask_kind_t kind);
/* Ask. Arguments have passed their checks; what is needed of them is copied.
 * `before` is the page that the wanted one follows, or NULL. */
tnk_promise_t *tnk__rest_ask(tnk__session_t *session, const tnk__ask_t *ask,
                             const tnk_page_t *before);
/* Ask who asks: whoami.c. */
tnk_promise_t *tnk__rest_whoami(tnk__session_t *session);

#endif
