#ifndef TNK_BATCH_H
#define TNK_BATCH_H

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
 * @return TNK_OK; TNK_EINVAL for NULL or fewer than two tokens; TNK_ENOMEM.
 *         On failure the batch is as it was.
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
 *         it was.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_batch_add_sample(tnk_batch_t *batch, const int32_t *prompt,
                                 size_t n_prompt, const tnk_samples_t *samples,
                                 size_t index, double advantage);

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
