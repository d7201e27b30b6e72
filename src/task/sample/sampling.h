#ifndef TNK_TASK_SAMPLE_SAMPLING_H
#define TNK_TASK_SAMPLE_SAMPLING_H

#include "flow/queue_state.h"
#include "flow/stall.h"
#include "task/future/poller.h"
#include "task/session/session.h"
#include "tnk/sampling.h"

/*
 * A sampling client: a name for weights on the service, and a counter. Its
 * samples are independent of each other.
 *
 * Open; closing, from tnk__sampling_close() until the next turn of the loop;
 * then the caller is told and the memory freed.
 */
struct tnk_sampling {
  tnk__list_t link; /* in session->samplings */
  tnk__session_t *session;
  tnk__list_t samples; /* of tnk__member_t */
  char *id;
  char *base_model; /* or NULL */
  int record_stability_info;
  uint64_t next_seq;
  tnk__poller_t *poller; /* NULL until the first sample that can use it */
  tnk__queue_notice_t notice;
  tnk__stall_t stall;
  int closing;
  tnk_close_cb close_cb;
  void *close_user;
  tnk__deferred_t closed;
};

/* Make a sampling client; NULL without memory. Texts are copied; base_model may
 * be NULL. */
tnk_sampling_t *tnk__sampling_new(tnk__session_t *session, const char *id,
                                  const char *base_model,
                                  int record_stability_info);
void tnk__sampling_close(tnk_sampling_t *sampling, tnk_close_cb cb, void *user);
/* What tells of completions; NULL: each sample is to be polled for. */
tnk__poller_t *tnk__sampling_poller(tnk_sampling_t *sampling);
void tnk__sampling_notice(tnk_sampling_t *sampling, const char *state,
                          const char *reason);

#endif
