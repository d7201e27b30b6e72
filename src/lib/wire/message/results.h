#ifndef TNK_LIB_WIRE_MESSAGE_RESULTS_H
#define TNK_LIB_WIRE_MESSAGE_RESULTS_H

#include "lib/wire/message/metrics.h"
#include "tnk/training.h"

/*
 * The structs of the result types of tnk/result.h. Each result is one arena
 * that also contains the struct itself. The accessors of tnk/result.h that need
 * no promise are in results.c.
 *
 * lib/wire/message/pass_result.h, lib/wire/message/sample_wire.h and
 * lib/wire/message/optim_wire.h create results, on any thread. Results are then
 * read-only. Exception: the functions below that say so.
 *
 * The tnk__*_free() functions have the signature for tnk__promise_resolve().
 * They take the allocator, because a result may outlive the allocator struct of
 * its creator. It must be the same allocator.
 */

/* A tensor of an output, with the server's name. */
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
  tnk_pass_t *parts; /* results combined into this one; owned */
  tnk_pass_t *next;  /* next of these parts */
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

/* Add the metrics of a custom loss, before the result is published. The
 * caller's metrics are copied and replace metrics of the server with the same
 * names. "loss:sum" becomes `loss`; the server's value moves to
 * "surrogate_loss:sum". Returns TNK_OK, or TNK_ENOMEM without any change. */
int tnk__pass_result_set_custom_loss(tnk_pass_t *pass, double loss,
                                     const tnk_custom_metric_t *metrics,
                                     size_t n_metrics);

/* Set the ids of the sequences, in order, before the result is published. The
 * ids come from the response to the submission. Returns TNK_OK, also without
 * any ids. Returns TNK_EPROTO if the number of ids differs from the number of
 * sequences; no id is set then. Otherwise returns TNK_ENOMEM. */
int tnk__samples_set_ids(tnk_samples_t *samples, const char *const *ids,
                         size_t n);

#endif
