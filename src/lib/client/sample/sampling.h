/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_SAMPLE_SAMPLING_H
#define TNK_LIB_CLIENT_SAMPLE_SAMPLING_H

#include "lib/client/future/poller.h"
#include "lib/client/session/registry.h"
#include "lib/client/session/session.h"
#include "lib/policy/queue_state.h"
#include "lib/wire/message/sampler_text.h"
#include "tnk/sampling.h"

/*
 * A sampling client: the id of weights on the service, and a counter. Its
 * samples are independent of each other.
 *
 * Its samples are numbered from clone * TNK__CLONE_NUMBERS on, because all
 * clients of one sampler share one space of numbers. The client that created
 * the sampler is clone 0. Each client that joins later has its own clone
 * number.
 *
 * Open; closing, from tnk__sampling_close() until the next turn of the loop;
 * closed. Then the caller is notified. The rest of the object refuses every
 * call. It is freed with the last promise that holds it as a value.
 */
#define TNK__CLONE_NUMBERS UINT64_C(1000000000)

struct tnk_sampling {
  uint32_t magic;
  uint32_t refs;           /* one until it is closed, and one per promise */
  tnk__list_t link;        /* in session->registry.samplings */
  tnk__session_t *session; /* NULL after it is closed */
  tnk_promise_t *kin;      /* a promise of its service, for refusals after
                              its end */
  tnk__list_t samples;     /* of tnk__member_t */
  char *id;
  char *base_model; /* or NULL */
  int record_stability_info;
  /* The source of the sampler, for recreating it: a path, or else the base
   * model. Neither is set for weights without a name. */
  char *model_path;
  int is_of_base;
  int is_lost;    /* it waits for its recovery, see lib/client/recover */
  int is_told;    /* the program knows that the sampler is lost */
  uint32_t tries; /* recovery attempts */
  tnk__foreign_t *foreign; /* the session of another service, or NULL */
  char *exported;          /* exported string; NULL until it is requested */
  uint64_t clone;
  uint64_t next_seq;
  tnk__poller_t *poller; /* NULL until the first sample that can use it */
  tnk__queue_notice_t notice;
  tnk__stall_t stall;
  tnk__totals_t totals;
  int closing;
  tnk_close_cb close_cb;
  void *close_user;
  tnk__deferred_t closed;
};

/* Make a sampling client. Options have passed their checks and are copied. */
tnk_promise_t *tnk__create_sampling(tnk__session_t *session,
                                    const tnk_sampling_options_t *options);
/* Create a client for the promise of a caller, who releases it. */
void tnk__create_sampling_for(tnk__session_t *session, tnk_promise_t *promise,
                              const tnk_sampling_options_t *options);
/* Create another client of an existing sampler. `sampler` is copied. */
tnk_promise_t *tnk__join_sampling(tnk__session_t *session, const char *name,
                                  const tnk__sampler_text_t *sampler);
/* The sampler's identity for other processes; borrowed from the client. */
tnk__sampler_text_t tnk__sampling_sampler(const tnk_sampling_t *sampling);
/* The same as a string, owned by the client. NULL without memory. */
const char *tnk__sampling_export(tnk_sampling_t *sampling);
/* Make a sampling client; NULL without memory. Strings are copied; base_model
 * may be NULL. */
tnk_sampling_t *tnk__sampling_new(tnk__session_t *session, const char *id,
                                  const char *base_model,
                                  int record_stability_info);
/* Continue with the sampler of another client, which is then closed. Pending
 * samples wait for tnk__samples_resume(). */
void tnk__sampling_adopt(tnk_sampling_t *sampling, tnk_sampling_t *other);
/* The sampler is lost. Pending samples wait for its recovery where possible,
 * until tnk__samples_resume() or tnk__samples_refuse(). */
void tnk__samples_park(tnk_sampling_t *sampling);
/* Submit the waiting samples to the new sampler, and reject the others. */
void tnk__samples_resume(tnk_sampling_t *sampling, tnk__error_t *error);
/* Reject the waiting samples. */
void tnk__samples_refuse(tnk_sampling_t *sampling, tnk__error_t *error);
void tnk__sampling_close(tnk_sampling_t *sampling, tnk_close_cb cb, void *user);
/* Reference as a promise's value, and its release. */
void *tnk__sampling_show(tnk_sampling_t *sampling);
void tnk__sampling_hide(const tnk_allocator_t *alloc, void *value);
/* The poller for completions. NULL: each sample polls for itself. */
tnk__poller_t *tnk__sampling_poller(tnk_sampling_t *sampling);
void tnk__sampling_notice(tnk_sampling_t *sampling, const char *state,
                          const char *reason);

#endif
