/* SPDX-License-Identifier: MIT */
#ifndef TNK_BATCH_H
#define TNK_BATCH_H

#include "tnk/data.h"
#include "tnk/result.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A batch is training data that owns its memory. Add examples, pass
 * tnk_batch_data() to a forward or forward_backward call, then clear or free
 * the batch. The batch shifts targets and builds the loss inputs. If you have
 * these arrays already, use the views of data.h instead.
 *
 * Only one thread at a time may use a batch.
 */

/** Examples to train on. */
typedef struct tnk_batch tnk_batch_t;

/**
 * Create an empty batch.
 *
 * @param allocator  Copied; NULL selects malloc and its family.
 * @return Freed by the caller with tnk_batch_free(); NULL if out of memory.
 * Thread: any. Since: 0.1
 */
TNK_API tnk_batch_t *tnk_batch_new(const tnk_allocator_t *allocator);

/**
 * Add an example of next-token training (loss cross_entropy). The model reads
 * all tokens except the last. The target of each token is the next one.
 *
 * @param tokens   Token ids [n]. Copied.
 * @param weights  f32 [n]: the weight of each token as a target. The first
 *                 value is not used, because no token precedes it. Copied.
 *                 NULL means 1 for every token.
 * @param n        At least 2.
 *
 * @return TNK_OK; TNK_EINVAL for NULL, fewer than two tokens, or weights that
 *         are not finite; TNK_ENOMEM. After an error the batch is unchanged and
 *         tnk_batch_text() gives the reason.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_batch_add_tokens(tnk_batch_t *batch, const int32_t *tokens,
                                 const float *weights, size_t n);

/**
 * Add a sampled sequence for a policy-gradient loss (importance_sampling, ppo,
 * cispo and similar). The example holds the prompt, the sampled tokens, their
 * logprobs, and one advantage for all sampled tokens. Prompt tokens get the
 * advantage 0 and the logprob 0.
 *
 * @param prompt     Token ids [n_prompt] of the prompt that was sampled from.
 *                   Copied.
 * @param n_prompt   At least 1.
 * @param samples    Read during the call.
 * @param index      Index of the sequence in @p samples.
 * @param advantage  Must be finite.
 *
 * @return TNK_OK; TNK_EINVAL for NULL, an empty prompt, an advantage that is
 *         not finite, or a sequence that does not exist, is empty or has no
 *         logprobs; TNK_ENOMEM. After an error the batch is unchanged and
 *         tnk_batch_text() gives the reason.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_batch_add_sample(tnk_batch_t *batch, const int32_t *prompt,
                                 size_t n_prompt, const tnk_samples_t *samples,
                                 size_t index, double advantage);

/** A segment of a conversation: tokens that the model was given, or tokens that
 * it sampled. */
typedef struct {
  tnk_span_kind_t kind;    /**< TNK_SPAN_PROMPT (given) or TNK_SPAN_SAMPLED. */
  const int32_t *tokens;   /**< Token ids [n_tokens]. */
  size_t n_tokens;         /**< At least 1. */
  const float *logprobs;   /**< Sampled: f32 [n_tokens], from the sampler. */
  double advantage;        /**< Sampled: advantage of each of its tokens. */
  const char *sequence_id; /**< Sampled: the id of the sequence, from
                                tnk_samples_sequence_id(), or NULL. */
} tnk_segment_t;

/**
 * Create a view of @p n_tokens ids that the model was given: a prompt, a user
 * message, or a tool result. Never fails; the data is not read.
 * Lifetime: the view is valid as long as @p tokens. Thread: any. Since: 0.1
 */
TNK_API tnk_segment_t tnk_segment_given(const int32_t *tokens, size_t n_tokens);

/**
 * Create a view of sequence @p index of @p samples. Never fails. If the
 * sequence does not exist or has no logprobs, tnk_batch_add_trajectory()
 * rejects the segment.
 * Lifetime: the view is valid as long as @p samples. Thread: any. Since: 0.1
 */
TNK_API tnk_segment_t tnk_segment_sampled(const tnk_samples_t *samples,
                                          size_t index, double advantage);

/**
 * Add a trajectory of several turns for a policy-gradient loss. Its segments
 * follow each other, and the prompt of each sampled segment is everything
 * before it. The layout is as in tnk_batch_add_sample(): given tokens have the
 * advantage 0 and the logprob 0. If all sampled segments have a sequence id,
 * the example also has provenance spans (`input_spans` and
 * `loss_input_spans`), as the loss stable_reinforce requires. Given tokens
 * after the last sampled segment are left out, because nothing is learned from
 * them.
 *
 * @param segments    The first one must be given. Copied.
 * @param n_segments  At least 2.
 * @param mask        Name of an additional loss input that is 1 for sampled
 *                    tokens and 0 for others. Some losses need it because the
 *                    advantage 0 does not exclude a token: "weights" for dro,
 *                    "sequence_ratio_mask" for gspo. NULL adds none. Copied.
 *
 * @return TNK_OK; TNK_EINVAL for NULL, an empty segment, a segment of unknown
 *         kind, a sampled segment without logprobs, numbers that are not
 *         finite, a first segment that is sampled, no sampled segment, or
 *         sequence ids on some sampled segments only; TNK_ENOMEM. After an
 *         error the batch is unchanged and tnk_batch_text() gives the reason.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_batch_add_trajectory(tnk_batch_t *batch,
                                     const tnk_segment_t *segments,
                                     size_t n_segments, const char *mask);

/**
 * Get one sentence that says why the last example was not added. It names the
 * invalid value.
 *
 * @return Never NULL; "success" if the last example was added. Lifetime: until
 *         the batch changes. Thread: any. Since: 0.1
 */
TNK_API const char *tnk_batch_text(const tnk_batch_t *batch);

/**
 * Get the examples in the order in which they were added.
 *
 * @param[out] n  Number of examples; 0 if the batch is empty. Training calls
 *                reject an empty batch.
 *
 * @return NULL if the batch is empty. Lifetime: until the batch changes. A
 *         training call copies the data before it returns.
 * Thread: any. Since: 0.1
 */
TNK_API const tnk_datum_t *tnk_batch_data(const tnk_batch_t *batch, size_t *n);

/**
 * Get the total weight of all targets. Divide a summed loss by it to get the
 * mean per token. A sampled token has the weight 1, a token of its prompt 0.
 * Thread: any. Since: 0.1
 */
TNK_API double tnk_batch_weight(const tnk_batch_t *batch);

/** Remove all examples, so that the batch can be filled again. NULL does
 * nothing. Thread: any. Since: 0.1 */
TNK_API void tnk_batch_clear(tnk_batch_t *batch);

/** Free the batch. NULL does nothing. Thread: any. Since: 0.1 */
TNK_API void tnk_batch_free(tnk_batch_t *batch);

#ifdef __cplusplus
}
#endif

#endif
