#ifndef TNK_LIB_CLIENT_SESSION_CANCEL_H
#define TNK_LIB_CLIENT_SESSION_CANCEL_H

#include "lib/client/call/endpoint.h"
#include "lib/wire/message/calls_session.h"

/*
 * Tells the server of samples that nobody waits for any more, if it wants to
 * know: one cancel_future each, as many side by side as it asks for, the rest
 * in a queue. There is nobody to report a failure to, so it is only logged.
 *
 * A sample that is given up while its submission is unanswered has no id yet.
 * It stays in `submissions`, without a promise, until the answer names one.
 */
typedef struct {
  tnk__endpoint_t *endpoint;
  const tnk__dynamic_flags_t *flags;
  tnk__list_t waiting; /* cancels, in order */
  tnk__list_t sent;
  size_t n_waiting;
  size_t n_sent;
  tnk__list_t submissions; /* of tnk__member_t */
} tnk__canceler_t;

/* Begin with nothing to tell. The flags are the service's, which change. */
void tnk__canceler_open(tnk__canceler_t *canceler, tnk__endpoint_t *endpoint,
                        const tnk__dynamic_flags_t *flags);
/* Forget all of it. Allocates nothing. */
void tnk__canceler_close(tnk__canceler_t *canceler);
/* Whether the server wants to be told now. */
int tnk__canceler_is_wanted(const tnk__canceler_t *canceler);
/* Tell the server of a sample. The id is copied; without memory nothing is
 * told. */
void tnk__canceler_tell(tnk__canceler_t *canceler, const char *request_id);

#endif
