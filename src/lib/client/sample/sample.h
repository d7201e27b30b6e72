#ifndef TNK_LIB_CLIENT_SAMPLE_SAMPLE_H
#define TNK_LIB_CLIENT_SAMPLE_SAMPLE_H

#include "lib/wire/message/sample_wire.h"
#include "lib/client/future/job.h"
#include "lib/client/session/member.h"
#include "lib/client/sample/sampling.h"

/* What a sample takes before it is submitted, one after the other. */
typedef enum {
  TNK__SAMPLE_NOTHING = 0,
  TNK__SAMPLE_RUNNING,  /* among those under way */
  TNK__SAMPLE_SLOT,     /* of all submissions */
  TNK__SAMPLE_GATE,     /* the end of a back-off; nobody holds that */
  TNK__SAMPLE_THROTTLE, /* the second slot */
  TNK__SAMPLE_BYTES     /* of the dispatch budget */
} tnk__sample_need_t;

/* What is asked for. */
typedef enum {
  TNK__SAMPLE_TOKENS = 0,
  TNK__SAMPLE_LOGPROBS, /* compute_logprobs */
  TNK__SAMPLE_STREAM    /* tokens, one by one */
} tnk__sample_wants_t;

struct tnk__sample;

/* What differs for a sample that is streamed. */
typedef struct {
  size_t size; /* of one, which begins with a tnk__sample_t */
  void (*init)(struct tnk__sample *sample,
               const tnk_sample_stream_options_t *options);
  void (*deinit)(struct tnk__sample *sample);
  /* Submit it; the call has been bound. */
  void (*start)(struct tnk__sample *sample);
  /* Whether a token has been given out, so that it cannot begin anew. */
  int (*has_begun)(const struct tnk__sample *sample);
  /* Write what it waits for while it is under way. */
  void (*explain)(const struct tnk__sample *sample, tnk__text_t *out);
} tnk__streaming_t;

/*
 * One sample. It waits, in this order, for a slot among those under way, for a
 * slot to submit, for the end of a back-off, for another slot, of which there
 * are few while a back-off is recent, for bytes of the dispatch budget, and
 * again for the end of a back-off; takes its sequence number and is submitted;
 * then its future is polled. A 429 gives everything back and starts from the
 * top, first in line and with the same number. A result that is lost, and
 * failures that may pass, start from the top with a new number, after a delay
 * and a limited number of times. Where recovery is on, what the server does not
 * know any more waits until it is certain whether the session is lost.
 *
 * When it is given up, the server is told if it wants to know. For that, one
 * whose submission is on the wire outlives its promise, and perhaps its client,
 * until the answer tells its id.
 *
 * There may be many thousands, so it is kept small. Until it is accepted it
 * waits with what its future lends: the timer, the deferred call, the node in a
 * queue.
 */
typedef struct tnk__sample {
  tnk__member_t member;     /* in sampling->samples, or session->canceler's */
  tnk_sampling_t *sampling; /* NULL once it has outlived it */
  tnk_promise_t *promise;   /* NULL once it was given up */
  const tnk__streaming_t *streaming; /* NULL: it is polled for */
  tnk__buf_t body; /* kept for as long as it may be sent again */
  tnk__sample_seq_t seq_place;
  uint64_t seq;
  uint64_t since_ms; /* when it began, or began anew, to wait */
  uint64_t n_bytes;  /* estimate for the budget */
  /* Its places in the lines for the two slots, for when it is turned away. */
  uint64_t slot_ticket;
  uint64_t throttle_ticket;
  tnk__held_t held; /* of the purse, from its submission until its end */
  char **ids;       /* of the sequences, in one piece of memory */
  uint32_t n_ids;
  uint32_t n_resubmits;
  /* What it may use. */
  uint32_t n_prompt_tokens;
  uint32_t max_tokens; /* of a sequence; 0: any number */
  uint32_t n_samples;
  /* What the answer must hold, as in tnk_sample_options_t. */
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
  uint8_t n_unknown; /* times that it was refused while its session exists */
  uint8_t waits_for; /* a tnk__sample_need_t */
  uint8_t holds;     /* a set of 1 << tnk__sample_need_t */
  tnk__job_t job;
} tnk__sample_t;

/* A call for a sample; all of it has passed its checks, and is copied. */
typedef struct {
  tnk__sample_wants_t wants;
  const tnk_model_input_t *prompt;
  const tnk_sampling_params_t *params;
  const tnk_sample_options_t *options;
  const tnk__streaming_t *streaming; /* of a stream; else NULL */
  const tnk_sample_stream_options_t *stream;
} tnk__sample_start_t;

/* The name of such a call. */
const char *tnk__sample_name(tnk__sample_wants_t wants);
tnk_promise_t *tnk__sample_start(tnk_sampling_t *sampling,
                                 const tnk__sample_start_t *start);

/* ---- sample_wait.c: from its start, or a refusal, to its submission ---- */

/* Take what is still missing; when all is there, tnk__sample_submit(). */
void tnk__sample_go_on(tnk__sample_t *sample);
/* Go on from the next turn of the loop. */
void tnk__sample_go_later(tnk__sample_t *sample);
/* Give back, or stop waiting for, all that is needed for submitting only. */
void tnk__sample_give_back(tnk__sample_t *sample);
/* Give back the slot among those under way. */
void tnk__sample_leave(tnk__sample_t *sample);
/* Whether it waits until its sampler, which is lost, is made again, rather than
 * failing. */
int tnk__sample_may_park(const tnk__sample_t *sample);
/* Give up what is under way of it, and wait for that. */
void tnk__sample_park(tnk__sample_t *sample);
/* Whether a sample that the server did not find is submitted once more, because
 * its session exists: the 404 may be out of date. */
int tnk__sample_insists(tnk__sample_t *sample, const tnk__reply_t *reply);
/* It was answered with 429 or 402. */
void tnk__sample_back_off(tnk__sample_t *sample, const tnk__reply_t *reply);
/* Write what a sample waits for, as a sentence. */
void tnk__sample_explain(const void *sample, tnk__text_t *out);

/* ---- sample_purse.c: what it may use, and has used ---- */

/* Note what it may use. */
void tnk__sample_measure(tnk__sample_t *sample, const tnk_model_input_t *prompt,
                         const tnk_sampling_params_t *params,
                         const tnk_sample_options_t *options);
/* Take what a submission may use out of the purse, unless it is held already.
 * 0: there is not enough, and `why` says so. */
int tnk__sample_take(tnk__sample_t *sample, char *why, size_t size);
/* Count what its result has used. */
void tnk__sample_spend(tnk__sample_t *sample, const tnk_samples_t *samples);
/* Count what it has without a result: nothing if it was not run, or if the
 * service has said that it failed; else all it may have used is in doubt. */
void tnk__sample_settle(tnk__sample_t *sample, int has_failed);

/* ---- sample_stream.c ---- */

extern const tnk__streaming_t tnk__streaming;

/* ---- sample.c ---- */

/* It has made progress. */
void tnk__sample_moved(tnk__sample_t *sample);
/* Settle with a failure; the sample is gone then. `text` may be NULL. */
void tnk__sample_fail(tnk__sample_t *sample, tnk__error_t *error);
void tnk__sample_fail_text(tnk__sample_t *sample, int code, const char *text);
/* The same of an answer, unless it waits and is submitted once more. */
void tnk__sample_fail_reply(tnk__sample_t *sample, const tnk__reply_t *reply);
/* Settle with the result, which is taken; the sample is gone then. */
void tnk__sample_resolve(tnk__sample_t *sample, tnk_samples_t *samples);
void tnk__sample_submit(tnk__sample_t *sample);
/* Whether it could be submitted anew: that is wanted, and its bytes are here.
 */
int tnk__sample_may_resubmit_lost(const tnk__sample_t *sample);
/* Forget the ids of its sequences. */
void tnk__sample_forget_ids(tnk__sample_t *sample);

#endif
