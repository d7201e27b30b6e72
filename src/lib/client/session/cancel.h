/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_SESSION_CANCEL_H
#define TNK_LIB_CLIENT_SESSION_CANCEL_H

#include "lib/client/call/endpoint.h"
#include "lib/wire/message/calls_session.h"

/*
 * Notifies the server of abandoned samples, if it supports that. One
 * cancel_future is sent per sample, as many in parallel as the server allows;
 * the rest are queued. No caller waits for the result, so a failure is only
 * logged.
 *
 * A sample that is canceled while its submission is unanswered has no id yet.
 * It stays in `submissions`, without a promise, until the response contains
 * one.
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

/* Begin with an empty queue. The flags belong to the service and may change. */
void tnk__canceler_open(tnk__canceler_t *canceler, tnk__endpoint_t *endpoint,
                        const tnk__dynamic_flags_t *flags);
/* Drop everything. Allocates nothing. */
void tnk__canceler_close(tnk__canceler_t *canceler);
/* Returns whether the server accepts cancels now. */
int tnk__canceler_is_wanted(const tnk__canceler_t *canceler);
/* Cancel a sample at the server. The id is copied. Without memory nothing is
 * sent. */
void tnk__canceler_tell(tnk__canceler_t *canceler, const char *request_id);

#endif
