#ifndef TNK_TASK_SERVICE_CREATE_H
#define TNK_TASK_SERVICE_CREATE_H

#include "task/session/session.h"
#include "tnk/service.h"

/* Make training clients. Options have passed their checks and are copied. */
tnk_promise_t *tnk__create_lora(tnk__session_t *session,
                                const tnk_lora_options_t *options);
tnk_promise_t *tnk__restore(tnk__session_t *session,
                            const tnk_restore_options_t *options);

#endif
