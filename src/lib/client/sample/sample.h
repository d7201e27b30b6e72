/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_SAMPLE_SAMPLE_H
#define TNK_LIB_CLIENT_SAMPLE_SAMPLE_H

#include "lib/wire/message/sample_wire.h"
#include "lib/client/future/future.h"
#include "lib/client/session/member.h"
#include "lib/client/sample/sampling.h"

/* The resources that a sample needs before it is submitted, in this order. */
typedef enum {
  TNK__SAMPLE_NOTHING = 0,
  TNK__SAMPLE_RUNNING,  /* a slot among running samples */
  TNK__SAMPLE_SLOT,     /* a slot among all submissions */
  TNK__SAMPLE_GATE,     /* the end of a back-off; not a resource that is held */
  TNK__SAMPLE_THROTTLE, /* the second slot, scarce after a back-off */
  TNK__SAMPLE_BYTES     /* bytes of the dispatch budget */
} tnk__sample_need_t;

/* The kind of result. */
typedef enum {
  TNK__SAMPLE_TOKENS = 0,
  TNK__SAMPLE_LOGPROBS, /* compute_logprobs */
  TNK__SAMPLE_STREAM    /* tokens, one at a time */
} tnk__sample_wants_t;

/*
 * One sample.
 *
 * Before its submission it waits, in this order: for a slot among running
 * samples; for a slot to submit; for the end of a back-off; for a second slot,
 * of which there are few after a recent back-off; for bytes of the dispatch
 * budget; and again for the end of a back-off. Then it takes its sequence
 * number and is submitted, and its future is polled.
 *
 * After a 429 it returns everything and starts from the top, first in line and
 * with the same number. After a lost result or a temporary failure it starts
 * from the top with a new number, after a delay and a limited number of times.
 * If recovery is enabled and the server does not know the sample, it waits
 * until it is certain whether the session is lost.
 *
 * When a sample is canceled, the server is notified if it supports that. For
 * this, a sample whose submission is in flight outlives its promise, and
 * possibly its client, until the response contains its id.
 *
 * There may be many thousands, so it is kept small. Until it is accepted, it
 * uses fields of its future: the timer, the deferred call, the queue node.
 */
typedef struct tnk__sample {
  tnk__member_t member;     /* in sampling->samples, or in the canceler's
                               list */
  tnk_sampling_t *sampling; /* NULL if it outlives the client */
  tnk_promise_t *promise;   /* NULL after it was given up */
  tnk__buf_t body;          /* kept as long as it may be sent again */
  tnk__sample_seq_t seq_place;
  uint64_t seq;
  uint64_t since_ms; /* when it began, or restarted, to wait */
  uint64_t n_bytes;  /* estimate for the dispatch budget */
  /* Its places in the queues of the two slots, kept for a 429. */
  uint64_t slot_ticket;
  uint64_t throttle_ticket;
  tnk__held_t held; /* tokens taken from the allowance, from its submission
                       to its end */
  char **ids;       /* ids of the sequences, in one allocation */
  uint32_t n_ids;
  uint32_t n_resubmits;
  /* The tokens that it may use. */
  uint32_t n_prompt_tokens;
  uint32_t max_tokens; /* per sequence; 0: unlimited */
  uint32_t n_samples;
  /* Requested contents of the result, as in tnk_sample_options_t. */
  uint32_t topk_prompt_logprobs;
  uint32_t topk_sample_logprobs;
  uint32_t prompt_alt_tokens_k;
  uint32_t prompt_logprobs_last_n;
  uint8_t asks_logprobs;
  uint8_t asks_targets;
  uint8_t is_uncounted; /* its prompt has more tokens than were counted */
  uint8_t wants;        /* a tnk__sample_wants_t */
  uint8_t has_seq;
  uint8_t is_parked;
  uint8_t n_unknown; /* refusals while its session exists */
  uint8_t waits_for; /* a tnk__sample_need_t */
  uint8_t holds;     /* a set of 1 << tnk__sample_need_t */
  tnk__job_t job;
} tnk__sample_t;

/* A call for a sample. All fields have passed their checks, and are copied. */
typedef struct {
  tnk__sample_wants_t wants;
  const tnk_model_input_t *prompt;
  const tnk_sampling_params_t *params;
  const tnk_sample_options_t *options;
  const tnk_sample_stream_options_t *stream; /* for a stream; else NULL */
} tnk__sample_start_t;

/* The name of such a call, for messages. */
const char *tnk__sample_name(tnk__sample_wants_t wants);
tnk_promise_t *tnk__sample_start(tnk_sampling_t *sampling,
                                 const tnk__sample_start_t *start);

/* ---- sample_wait.c: from its start, or a refusal, to its submission ---- */

/* Take the resources that are missing. With all of them, call
 * tnk__sample_submit(). */
void tnk__sample_go_on(tnk__sample_t *sample);
/* Continue in the next turn of the loop. */
void tnk__sample_go_later(tnk__sample_t *sample);
/* Return all resources that only the submission needs, or leave their
 * queues. */
void tnk__sample_give_back(tnk__sample_t *sample);
/* Return the slot among running samples. */
void tnk__sample_leave(tnk__sample_t *sample);
/* Returns whether it waits for the recovery of its lost sampler instead of
 * failing. */
int tnk__sample_may_park(const tnk__sample_t *sample);
/* Cancel its requests, and wait for the recovery. */
void tnk__sample_park(tnk__sample_t *sample);
/* Returns whether to submit a sample once more that the server did not find.
 * Its session exists, so the 404 may be out of date. */
int tnk__sample_insists(tnk__sample_t *sample, const tnk__reply_t *reply);
/* Handle a 429 or 402. */
void tnk__sample_back_off(tnk__sample_t *sample, const tnk__reply_t *reply);
/* Describe why a sample waits, in a sentence. */
void tnk__sample_explain(const void *sample, tnk__text_t *out);

/* ---- sample_allowance.c: the allowance of a sample ---- */

/* Record the maximum usage. */
void tnk__sample_measure(tnk__sample_t *sample, const tnk_model_input_t *prompt,
                         const tnk_sampling_params_t *params,
                         const tnk_sample_options_t *options);
/* Take the maximum usage of a submission from the allowance, unless it is
 * already taken. Returns 0 if there is not enough, with the reason in `why`. */
int tnk__sample_take(tnk__sample_t *sample, char *why, size_t size);
/* Count the usage of its result. */
void tnk__sample_spend(tnk__sample_t *sample, const tnk_samples_t *samples);
/* Count the usage without a result. Nothing was used if it was not run, or
 * if the service reports that it failed. Otherwise the maximum usage is in
 * doubt. */
void tnk__sample_settle(tnk__sample_t *sample, int has_failed);

/* ---- sample_stream.c: samples with TNK__SAMPLE_STREAM ---- */

/* Size of its struct, which begins with a tnk__sample_t. */
size_t tnk__streamed_size(void);
void tnk__streamed_init(tnk__sample_t *sample,
                        const tnk_sample_stream_options_t *options);
void tnk__streamed_deinit(tnk__sample_t *sample);
/* Submit it. The call is bound. */
void tnk__streamed_start(tnk__sample_t *sample);
/* Returns whether a token was passed to the program, so that it cannot restart.
 */
int tnk__streamed_has_begun(const tnk__sample_t *sample);
/* Describe why an active sample waits. */
void tnk__streamed_explain(const tnk__sample_t *sample, tnk__text_t *out);

/* ---- sample.c ---- */

/* Record progress. */
void tnk__sample_moved(tnk__sample_t *sample);
/* Reject with an error and free the sample. `text` may be NULL. */
void tnk__sample_fail(tnk__sample_t *sample, tnk__error_t *error);
void tnk__sample_fail_text(tnk__sample_t *sample, int code, const char *text);
/* Reject with the error of a response, unless the sample waits and is submitted
 * once more. */
void tnk__sample_fail_reply(tnk__sample_t *sample, const tnk__reply_t *reply);
/* Resolve with the result, which is taken over, and free the sample. */
void tnk__sample_resolve(tnk__sample_t *sample, tnk_samples_t *samples);
void tnk__sample_submit(tnk__sample_t *sample);
/* Returns whether it may be submitted again: that is enabled, and its body is
 * still in memory. */
int tnk__sample_may_resubmit_lost(const tnk__sample_t *sample);
/* Free the ids of its sequences. */
void tnk__sample_forget_ids(tnk__sample_t *sample);

#endif
