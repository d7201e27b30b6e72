#ifndef TNK_BATCH_H
#define TNK_BATCH_H

#include "tnk/data.h"
#include "tnk/result.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Training data that owns its memory: add examples, hand tnk_batch_data() to a
 * pass, and clear or free the batch. The views of data.h do without it; this
 * shifts targets and lays out what the losses read.
 *
 * A batch belongs to one thread at a time.
 */

/** Examples to train on. */
typedef struct tnk_batch tnk_batch_t;

/**
 * A batch without examples.
 *
 * @param allocator  Copied; NULL for malloc and its family.
 * @return To be freed by the caller; NULL when there is no memory.
 * Thread: any. Since: 0.1
 */
TNK_API tnk_batch_t *tnk_batch_new(const tnk_allocator_t *allocator);

/**
 * Add an example of next-token training (loss cross_entropy): the model reads
 * all tokens but the last, and each is to be followed by the one after it.
 *
 * @param tokens   Ids [n]. Copied.
 * @param weights  f32 [n], how much each token counts as a target; that of the
 *                 first is not used, since nothing stands before it. Copied.
 *                 NULL: all 1.
 * @param n        At least 2.
 *
 * @return TNK_OK; TNK_EINVAL for NULL, fewer than two tokens, and weights that
 *         are not finite; TNK_ENOMEM. On failure the batch is as it was, and
 *         tnk_batch_text() says why.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_batch_add_tokens(tnk_batch_t *batch, const int32_t *tokens,
                                 const float *weights, size_t n);

/**
 * Add a sampled sequence to learn from (importance_sampling, ppo, cispo and
 * their like): the prompt and what was sampled, with the log-probabilities it
 * was sampled with, and one advantage for each of its tokens. Those of the
 * prompt have the advantage 0 and the log-probability 0.
 *
 * @param prompt     Ids [n_prompt], as they were sampled from. Copied.
 * @param n_prompt   At least 1.
 * @param samples    Read during the call.
 * @param index      Which sequence of @p samples.
 * @param advantage  Finite.
 *
 * @return TNK_OK; TNK_EINVAL for NULL, an empty prompt, a sequence that does
 *         not exist, is empty or came without log-probabilities, and an
 *         advantage that is not finite; TNK_ENOMEM. On failure the batch is as
 *         it was, and tnk_batch_text() says why.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_batch_add_sample(tnk_batch_t *batch, const int32_t *prompt,
                                 size_t n_prompt, const tnk_samples_t *samples,
                                 size_t index, double advantage);

/** A part of a conversation: what the model was given, or what it said. */
typedef struct {
  tnk_span_kind_t kind;    /**< TNK_SPAN_PROMPT: given, TNK_SPAN_SAMPLED. */
  const int32_t *tokens;   /**< Ids [n_tokens]. */
  size_t n_tokens;         /**< At least 1. */
  const float *logprobs;   /**< Sampled: f32 [n_tokens], as it was sampled. */
  double advantage;        /**< Sampled: of each of its tokens. */
  const char *sequence_id; /**< Sampled: NULL, or what it came from, of
                                tnk_samples_sequence_id(). */
} tnk_segment_t;

/**
 * A view of @p n_tokens ids that the model was given: a prompt, the words of a
 * user, the answer of a tool. Never fails; the data is not read.
 * Lifetime: the view is valid as long as @p tokens. Thread: any. Since: 0.1
 */
TNK_API tnk_segment_t tnk_segment_given(const int32_t *tokens, size_t n_tokens);

/**
 * A view of sequence @p index of @p samples. Never fails: one that does not
 * exist, or came without log-probabilities, is refused where it is added.
 * Lifetime: the view is valid as long as @p samples. Thread: any. Since: 0.1
 */
TNK_API tnk_segment_t tnk_segment_sampled(const tnk_samples_t *samples,
                                          size_t index, double advantage);

/**
 * Add a trajectory of several turns to learn from: what was given and what was
 * sampled, one behind the other, where each sampled segment had all before it
 * as its prompt. It is laid out as tnk_batch_add_sample() does it: given tokens
 * have the advantage 0 and the log-probability 0. Where all sampled segments
 * have a sequence id, the example tells where its tokens are from
 * (`input_spans` and `loss_input_spans`), as stable_reinforce wants it. What
 * was given after the last sampled segment is left out: nothing is learnt from
 * it.
 *
 * @param segments    The first is given. Copied.
 * @param n_segments  At least 2.
 * @param mask        The name of an input that is to be 1 for sampled tokens
 *                    and 0 for others, needed where the advantage 0 does not
 *                    make a token count for nothing: "weights" for dro,
 *                    "sequence_ratio_mask" for gspo. NULL: none. Copied.
 *
 * @return TNK_OK; TNK_EINVAL for NULL, a segment that is empty, of no kind, or
 *         sampled and without log-probabilities, numbers that are not finite, a
 *         first segment that was sampled, none that was, and sequence ids of
 *         some sampled segments only; TNK_ENOMEM. On failure the batch is as it
 *         was, and tnk_batch_text() says why.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_batch_add_trajectory(tnk_batch_t *batch,
                                     const tnk_segment_t *segments,
                                     size_t n_segments, const char *mask);

/**
 * One sentence on why the last example was not added, which names what is wrong
 * with it; "success" if it was.
 *
 * @return Never NULL. Lifetime: until the batch changes. Thread: any.
 * Since: 0.1
 */
TNK_API const char *tnk_batch_text(const tnk_batch_t *batch);

/**
 * The examples, in the order in which they were added.
 *
 * @param[out] n  Their number; 0 of an empty batch, which no pass takes.
 *
 * @return NULL of an empty batch. Lifetime: until the batch changes. A pass
 *         copies what it needs before it returns.
 * Thread: any. Since: 0.1
 */
TNK_API const tnk_datum_t *tnk_batch_data(const tnk_batch_t *batch, size_t *n);

/**
 * What a loss that is a sum is divided by to be a mean: the weights of all
 * targets together, where a sampled token counts 1 and one of its prompt 0.
 * Thread: any. Since: 0.1
 */
TNK_API double tnk_batch_weight(const tnk_batch_t *batch);

/** Empty the batch, to fill it anew. NULL does nothing.
 * Thread: any. Since: 0.1 */
TNK_API void tnk_batch_clear(tnk_batch_t *batch);

/** Free the batch. NULL does nothing. Thread: any. Since: 0.1 */
TNK_API void tnk_batch_free(tnk_batch_t *batch);

#ifdef __cplusplus
}
#endif

#endif
