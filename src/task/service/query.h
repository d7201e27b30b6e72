#ifndef TNK_TASK_SERVICE_QUERY_H
#define TNK_TASK_SERVICE_QUERY_H

#include "task/session/session.h"

/* Ask the service what needs no session. */
tnk_promise_t *tnk__query_capabilities(tnk__session_t *session);
tnk_promise_t *tnk__query_health(tnk__session_t *session);
/* The capabilities behind a promise's value. */
const tnk_capabilities_t *tnk__query_value(const void *value);

#endif
