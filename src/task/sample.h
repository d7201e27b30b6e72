#ifndef TNK_TASK_SAMPLE_H
#define TNK_TASK_SAMPLE_H

#include "codec/sample_wire.h"
#include "task/job.h"
#include "task/member.h"
#include "task/sampling.h"

/*
 * One sample. It waits, in this order, for its turn among those under way, for
 * a slot, for the end of a back-off, for a second slot, of which there are few
 * while a back-off is recent, for bytes of the dispatch budget, and again for
 * the end of a back-off; takes its sequence number and is submitted; then its
 * future is polled. A 429 gives everything back and starts from the top, first
 * in line and with the same number. A result that is lost, and failures that
 * may pass, start from the top with a new number, after a delay and a limited
 * number of times.
 *
 * When it is given up, the server is told if it wants to know. For that, one
 * whose submission is on the wire outlives its promise, and perhaps its client,
 * until the answer tells its id.
 */
typedef struct tnk__sample {
  tnk__member_t member; /* in sampling->samples, or session->canceler's */
  tnk__session_t *session;
  tnk_sampling_t *sampling;
  tnk_promise_t *promise; /* NULL once it was given up */
  tnk__buf_t body;        /* kept for as long as it may be sent again */
  tnk__sample_seq_t seq_place;
  uint64_t seq;
  int has_seq;
  uint64_t since_ms; /* when it began, or began anew, to wait */
  uint64_t n_bytes;  /* estimate for the budget */
  tnk__waiter_t running;
  tnk__waiter_t slot;
  tnk__waiter_t throttle;
  tnk__payer_t payer;
  tnk__gate_waiter_t gate;
  int is_running; /* what it holds */
  int has_slot;
  int has_throttle;
  int has_paid;
  tnk__deferred_t go;
  tnk__timer_t timer;
  tnk__job_t job;
  uint32_t n_resubmits;
  char **ids; /* of the sequences, in one piece of memory */
  size_t n_ids;
  tnk_sample_options_t options; /* numbers only; what the answer must hold */
  int wants_logprobs;           /* compute_logprobs rather than sample */
} tnk__sample_t;

/* Arguments have passed their checks and are copied. */
tnk_promise_t *tnk__sample_start(tnk_sampling_t *sampling,
                                 const tnk_model_input_t *prompt,
                                 const tnk_sampling_params_t *params,
                                 const tnk_sample_options_t *options,
                                 int wants_logprobs);

#endif
