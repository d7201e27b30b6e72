#ifndef TNK_TASK_SAMPLE_CREATE_SAMPLING_H
#define TNK_TASK_SAMPLE_CREATE_SAMPLING_H

#include "task/session/session.h"

/* Make a sampling client. Options have passed their checks and are copied. */
tnk_promise_t *tnk__create_sampling(tnk__session_t *session,
                                    const tnk_sampling_options_t *options);
/* Make one for a promise of somebody else, who gives it up. */
void tnk__create_sampling_for(tnk__session_t *session, tnk_promise_t *promise,
                              const tnk_sampling_options_t *options);

#endif
