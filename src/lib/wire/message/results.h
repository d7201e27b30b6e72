#ifndef TNK_LIB_WIRE_MESSAGE_RESULTS_H
#define TNK_LIB_WIRE_MESSAGE_RESULTS_H

#include "lib/wire/message/metrics.h"
#include "tnk/training.h"

/*
 * What stands behind the result types of tnk/result.h. Each result is one arena
 * that also holds the struct itself; the accessors of tnk/result.h that do not
 * need a promise are in results.c.
 *
 * Results are made by lib/wire/message/pass_result.h,
 * lib/wire/message/sample_wire.h and lib/wire/message/optim_wire.h, on any
 * thread; from then on nobody writes to them, but for the functions below that
 * say so. The tnk__*_free() functions have the shape that
 * tnk__promise_resolve() asks for. They take the allocator, because a result
 * may outlive its maker's; it must be the same one in effect.
 */

/* A tensor of an output, under the server's name for it. */
typedef struct {
  const char *name;
  tnk_tensor_t tensor;
} tnk__field_t;

/* The outputs of one example. */
typedef struct {
  const tnk__field_t *fields;
  size_t n_fields;
} tnk__output_t;

struct tnk_pass {
  tnk_metrics_t metrics;
  double own_loss; /* computed from logprobs and weights */
  int has_own_loss;
  const char *output_type;
  const tnk__output_t *outputs;
  size_t n_outputs;
  tnk__warnings_t warnings;
  tnk_pass_t *parts; /* what was combined into this one; owned */
  tnk_pass_t *next;  /* among the parts */
  tnk__arena_t arena;
};

/* One sampled sequence. */
typedef struct {
  const int32_t *tokens;
  size_t n_tokens;
  const float *logprobs; /* NULL: none */
  size_t n_logprobs;
  tnk_stop_reason_t stop_reason;
  const char *id;         /* NULL: none */
  const tnk_topk_t *topk; /* NULL: none */
} tnk__sequence_t;

struct tnk_samples {
  tnk__sequence_t *sequences;
  size_t n_sequences;
  const float *prompt_logprobs; /* NULL: none */
  size_t n_prompt_logprobs;
  int32_t cache_hit_tokens;
  const tnk_topk_t *prompt_topk;
  const tnk_tensor_t *target_logprobs;
  const tnk_tensor_t *alt_tokens;
  const tnk_tensor_t *alt_logprobs;
  tnk__arena_t arena;
};

/* Free a tnk_pass_t, tnk_samples_t or tnk_metrics_t; NULL does nothing. */
void tnk__pass_result_free(const tnk_allocator_t *alloc, void *value);
void tnk__samples_free(const tnk_allocator_t *alloc, void *value);
void tnk__metrics_free(const tnk_allocator_t *alloc, void *value);

/* Put in the metrics of a custom loss, before the result is shown to anybody:
 * those of the caller, copied, over the server's of the same names; "loss:sum"
 * becomes `loss`, and what the server had there "surrogate_loss:sum". TNK_OK or
 * TNK_ENOMEM, which changes nothing. */
int tnk__pass_result_set_custom_loss(tnk_pass_t *pass, double loss,
                                     const tnk_custom_metric_t *metrics,
                                     size_t n_metrics);

/* Name the sequences, before the result is shown to anybody, in their order,
 * with the ids that the submission was answered with. TNK_OK; TNK_EPROTO when
 * there is another number of ids than of sequences, and none is set;
 * TNK_ENOMEM. No ids at all are fine. */
int tnk__samples_set_ids(tnk_samples_t *samples, const char *const *ids,
                         size_t n);

#endif
