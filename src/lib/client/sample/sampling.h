#ifndef TNK_LIB_CLIENT_SAMPLE_SAMPLING_H
#define TNK_LIB_CLIENT_SAMPLE_SAMPLING_H

#include "lib/client/future/poller.h"
#include "lib/client/session/foreign.h"
#include "lib/client/session/session.h"
#include "lib/policy/queue_state.h"
#include "lib/policy/stall.h"
#include "lib/wire/message/sampler_text.h"
#include "tnk/sampling.h"

/*
 * A sampling client: a name for weights on the service, and a counter. Its
 * samples are independent of each other.
 *
 * Its samples are numbered from clone * TNK__CLONE_NUMBERS on, because all
 * clients of one sampler share one space of numbers. The client that made the
 * sampler is clone 0; of those that join it later each has a number of its own.
 *
 * Open; closing, from tnk__sampling_close() until the next turn of the loop;
 * then closed, and the caller is told: what is left refuses every call, and is
 * freed with the last promise that shows it.
 */
#define TNK__CLONE_NUMBERS UINT64_C(1000000000)

struct tnk_sampling {
  uint32_t magic;
  uint32_t refs;           /* one until it is closed, one a promise */
  tnk__list_t link;        /* in session->samplings */
  tnk__session_t *session; /* NULL once it is closed */
  tnk_promise_t *kin;      /* of its service, for refusals after its end */
  tnk__list_t samples;     /* of tnk__member_t */
  char *id;
  char *base_model; /* or NULL */
  int record_stability_info;
  /* What it was made of, for making it again: a path, or else the base model;
   * neither where nothing has a name. */
  char *model_path;
  int is_of_base;
  int is_lost;    /* it waits to be made again, see lib/client/recover */
  int is_told;    /* the program knows that its sampler is lost */
  uint32_t tries; /* that have been made of that */
  tnk__foreign_t *foreign; /* whose session it is; NULL: the service's own */
  char *exported;          /* NULL until it is asked for */
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
/* Make one for a promise of somebody else, who gives it up. */
void tnk__create_sampling_for(tnk__session_t *session, tnk_promise_t *promise,
                              const tnk_sampling_options_t *options);
/* Make one more client of a sampler that exists already. What it is known by is
 * copied. */
tnk_promise_t *tnk__join_sampling(tnk__session_t *session, const char *name,
                                  const tnk__sampler_text_t *sampler);
/* What it is known by elsewhere; borrowed from the client. */
tnk__sampler_text_t tnk__sampling_sampler(const tnk_sampling_t *sampling);
/* The same as a text, the client's; NULL without memory. */
const char *tnk__sampling_export(tnk_sampling_t *sampling);
/* Make a sampling client; NULL without memory. Texts are copied; base_model may
 * be NULL. */
tnk_sampling_t *tnk__sampling_new(tnk__session_t *session, const char *id,
                                  const char *base_model,
                                  int record_stability_info);
/* Go on with the sampler of another client, which is then closed; what is
 * pending is left to tnk__samples_resume(). */
void tnk__sampling_adopt(tnk_sampling_t *sampling, tnk_sampling_t *other);
/* Its sampler is lost: what is pending waits until it is made again, as far as
 * it can be, for tnk__samples_resume() or tnk__samples_refuse(). */
void tnk__samples_park(tnk_sampling_t *sampling);
/* Submit to the sampler of `id` what waits, and reject the others. */
void tnk__samples_resume(tnk_sampling_t *sampling, tnk__error_t *error);
/* Reject what waits. */
void tnk__samples_refuse(tnk_sampling_t *sampling, tnk__error_t *error);
void tnk__sampling_close(tnk_sampling_t *sampling, tnk_close_cb cb, void *user);
/* As a promise's value: one more reference, and how it is given up. */
void *tnk__sampling_show(tnk_sampling_t *sampling);
void tnk__sampling_hide(const tnk_allocator_t *alloc, void *value);
/* What tells of completions; NULL: each sample is to be polled for. */
tnk__poller_t *tnk__sampling_poller(tnk_sampling_t *sampling);
void tnk__sampling_notice(tnk_sampling_t *sampling, const char *state,
                          const char *reason);

#endif
