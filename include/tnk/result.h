/* SPDX-License-Identifier: MIT */
#ifndef TNK_RESULT_H
#define TNK_RESULT_H

#include "tnk/data.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Results are immutable, and their promise owns them. All returned pointers are
 * valid as long as the promise. An index out of range returns NULL, 0 or NaN.
 */

/** Named numbers, in the order of the server, with its keys. */
typedef struct tnk_metrics tnk_metrics_t;
/** Result of a forward or backward pass. */
typedef struct tnk_pass tnk_pass_t;
/** Result of sampling. */
typedef struct tnk_samples tnk_samples_t;
/** Capabilities of a server. */
typedef struct tnk_capabilities tnk_capabilities_t;

/** Why a sequence ended. */
typedef enum {
  TNK_STOP_SEQUENCE = 0, /**< A stop token, a stop string or the end token. */
  TNK_STOP_LENGTH = 1    /**< max_tokens was reached. */
} tnk_stop_reason_t;

/** Get the number of metrics. Thread: any. Since: 0.1 */
TNK_API size_t tnk_metrics_count(const tnk_metrics_t *metrics);
/** Get the key of metric @p index, such as "loss:sum".
 * Thread: any. Since: 0.1 */
TNK_API const char *tnk_metrics_key(const tnk_metrics_t *metrics, size_t index);
/** Get the value of metric @p index. Thread: any. Since: 0.1 */
TNK_API double tnk_metrics_value(const tnk_metrics_t *metrics, size_t index);
/** Get the value of @p key, or NaN if there is none. Thread: any. Since: 0.1 */
TNK_API double tnk_metrics_get(const tnk_metrics_t *metrics, const char *key);
/**
 * Get the value of a `hash2` metric as an unsigned 64-bit number, which a
 * double cannot represent. Protocol: training, combining chunk results.
 *
 * @param[out] out  The number.
 * @return 1, or 0 if there is no such key or it is not a hash2 metric.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_metrics_hash(uint64_t *out, const tnk_metrics_t *metrics,
                             const char *key);

/**
 * Get the loss of a pass: the metric "loss", else "loss:mean", else "loss:sum".
 * If there is none of them, the library computes the sum for cross_entropy: the
 * sum of -weight * logprob over all targets.
 *
 * Means and sums differ in scale, and servers differ in which they send. To
 * compare runs, read one key with tnk_metrics_get().
 *
 * @return NaN if there is no such metric and the sum cannot be computed: for
 *         another loss, for sparse weights, without logprobs of the server, and
 *         for data that was not copied (tnk_pass_options_t.release).
 * Thread: any. Since: 0.1
 */
TNK_API double tnk_pass_loss(const tnk_pass_t *pass);
/** Get all metrics, combined over the requests of the pass. Never NULL.
 * Thread: any. Since: 0.1 */
TNK_API const tnk_metrics_t *tnk_pass_metrics(const tnk_pass_t *pass);
/** Get the server's name for the kind of output; NULL if it sent none.
 * Thread: any. Since: 0.1 */
TNK_API const char *tnk_pass_output_type(const tnk_pass_t *pass);
/** Get the number of examples with outputs, in the order of the call's data. It
 * is the number of all examples, or less if the server has removed the outputs
 * of a request. Any other number rejects the pass with TNK_EPROTO.
 * Thread: any. Since: 0.1 */
TNK_API size_t tnk_pass_count(const tnk_pass_t *pass);
/** Get the number of tensors of example @p index. Thread: any. Since: 0.1 */
TNK_API size_t tnk_pass_field_count(const tnk_pass_t *pass, size_t index);
/** Get the name of tensor @p field of example @p index.
 * Thread: any. Since: 0.1 */
TNK_API const char *tnk_pass_field_name(const tnk_pass_t *pass, size_t index,
                                        size_t field);
/** Get tensor @p name of example @p index, such as "logprobs"; NULL without
 * one.
 * Thread: any. Since: 0.1 */
TNK_API const tnk_tensor_t *tnk_pass_tensor(const tnk_pass_t *pass,
                                            size_t index, const char *name);

/** Get the number of sequences. Thread: any. Since: 0.1 */
TNK_API size_t tnk_samples_count(const tnk_samples_t *samples);
/** Get the token ids of sequence @p index; @p n receives their number.
 * Thread: any. Since: 0.1 */
TNK_API const int32_t *tnk_samples_tokens(const tnk_samples_t *samples,
                                          size_t index, size_t *n);
/** Get the log-probability of each token of sequence @p index, or NULL if the
 * server sent none; @p n receives their number. Thread: any. Since: 0.1 */
TNK_API const float *tnk_samples_logprobs(const tnk_samples_t *samples,
                                          size_t index, size_t *n);
/** Get the reason why sequence @p index ended. Thread: any. Since: 0.1 */
TNK_API tnk_stop_reason_t tnk_samples_stop_reason(const tnk_samples_t *samples,
                                                  size_t index);
/** Get the service's id of sequence @p index, for provenance; NULL if the
 * server gives none. Thread: any. Since: 0.1 */
TNK_API const char *tnk_samples_sequence_id(const tnk_samples_t *samples,
                                            size_t index);
/** Get the logprob of each prompt token given the tokens before it; NaN if not
 * computed, as always for the first one. NULL if not requested. @p n receives
 * their number.
 * Thread: any. Since: 0.1 */
TNK_API const float *tnk_samples_prompt_logprobs(const tnk_samples_t *samples,
                                                 size_t *n);
/** Get the number of prompt tokens that were billed as cache hits.
 * Thread: any. Since: 0.1 */
TNK_API int32_t tnk_samples_cache_hit_tokens(const tnk_samples_t *samples);

/** The k likeliest tokens at each of `length` positions, row by row. */
typedef struct {
  uint32_t k;
  uint32_t length;
  const int32_t *ids;    /**< length x k; unused cells are 0 ... */
  const float *logprobs; /**< ... with the log-probability -99999. */
} tnk_topk_t;

/** Get the top-k of the prompt's positions, or NULL. Thread: any. Since: 0.1 */
TNK_API const tnk_topk_t *tnk_samples_prompt_topk(const tnk_samples_t *samples);
/** Get the top-k of the tokens of sequence @p index, or NULL.
 * Thread: any. Since: 0.1 */
TNK_API const tnk_topk_t *tnk_samples_topk(const tnk_samples_t *samples,
                                           size_t index);
/** Get the result of target_prompt_logprobs, with the same shape, or NULL.
 * Thread: any. Since: 0.1 */
TNK_API const tnk_tensor_t *
tnk_samples_target_logprobs(const tnk_samples_t *samples);
/** Get the result of prompt_alt_tokens_k: ids, i64 [prompt - 1, k], or NULL.
 * Thread: any. Since: 0.1 */
TNK_API const tnk_tensor_t *
tnk_samples_alt_tokens(const tnk_samples_t *samples);
/** Get the log-probabilities of those ids, f32 of the same shape, or NULL.
 * Thread: any. Since: 0.1 */
TNK_API const tnk_tensor_t *
tnk_samples_alt_logprobs(const tnk_samples_t *samples);

/** A model of a server. `name` may be NULL. 0 and TNK_DEFAULT mean unknown. */
typedef struct {
  const char *name;
  int64_t max_context_length;
  tnk_choice_t trainable;
  tnk_choice_t sampleable;
} tnk_model_t;

/** Get the number of models that the server lists. Thread: any. Since: 0.1 */
TNK_API size_t tnk_capabilities_count(const tnk_capabilities_t *capabilities);
/** Get model @p index; NULL beyond the last one.
 * Thread: any. Since: 0.1 */
TNK_API const tnk_model_t *
tnk_capabilities_model(const tnk_capabilities_t *capabilities, size_t index);

#ifdef __cplusplus
}
#endif

#endif
