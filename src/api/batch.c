/* Training data that owns its memory: what is added is copied into an arena,
 * which is emptied as a whole. */
#include "tnk/batch.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "tnk/error.h"

struct tnk_batch {
  tnk_allocator_t alloc;
  tnk__arena_t arena; /* all that the examples point to */
  tnk_datum_t *data;
  size_t n;
  size_t max;
  double weight;
};

tnk_batch_t *tnk_batch_new(const tnk_allocator_t *allocator) {
  const tnk_allocator_t *alloc =
      allocator != NULL ? allocator : tnk__allocator_default();
  tnk_batch_t *batch = tnk__calloc(alloc, 1, sizeof(*batch));

  if (batch == NULL)
    return NULL;
  batch->alloc = *alloc;
  tnk__arena_init(&batch->arena, &batch->alloc, SIZE_MAX);
  return batch;
}

/* Room for one more example; NULL without memory. */
static tnk_datum_t *next(tnk_batch_t *batch) {
  const size_t max = batch->max != 0 ? 2 * batch->max : 16;
  tnk_datum_t *data;

  if (batch->n == batch->max) {
    if (max > SIZE_MAX / sizeof(*data))
      return NULL;
    data = tnk__realloc(&batch->alloc, batch->data, max * sizeof(*data));
    if (data == NULL)
      return NULL;
    batch->data = data;
    batch->max = max;
  }
  memset(&batch->data[batch->n], 0, sizeof(*data));
  return &batch->data[batch->n];
}

/* All tokens but the last, and what follows each of them. The tokens are those
 * of two arrays, one behind the other. */
static int put_tokens(tnk_batch_t *batch, tnk_datum_t *datum,
                      const int32_t *head, size_t n_head, const int32_t *tail,
                      size_t n_tail) {
  const size_t n = n_head + n_tail - 1;
  int32_t *tokens;
  int64_t *targets;

  if (n > SIZE_MAX / sizeof(*targets))
    return TNK_ENOMEM;
  tokens = tnk__arena_alloc(&batch->arena, n * sizeof(*tokens));
  targets = tnk__arena_alloc(&batch->arena, n * sizeof(*targets));
  if (tokens == NULL || targets == NULL)
    return TNK_ENOMEM;
  for (size_t i = 0; i < n; i++) {
    const size_t after = i + 1;

    tokens[i] = i < n_head ? head[i] : tail[i - n_head];
    targets[i] = after < n_head ? head[after] : tail[after - n_head];
  }
  datum->input.tokens = tokens;
  datum->input.n_tokens = n;
  datum->targets = targets;
  return TNK_OK;
}

int tnk_batch_add_tokens(tnk_batch_t *batch, const int32_t *tokens,
                         const float *weights, size_t n) {
  double weight = (double)n - 1;
  tnk_datum_t *datum;
  int err;

  if (batch == NULL || tokens == NULL || n < 2)
    return TNK_EINVAL;
  datum = next(batch);
  if (datum == NULL)
    return TNK_ENOMEM;
  err = put_tokens(batch, datum, tokens, n, NULL, 0);
  if (err != TNK_OK)
    return err;
  if (weights != NULL) {
    float *copy =
        tnk__arena_copy(&batch->arena, weights + 1, (n - 1) * sizeof(*weights));
    if (copy == NULL)
      return TNK_ENOMEM;
    weight = 0;
    for (size_t i = 0; i < n - 1; i++)
      weight += (double)copy[i];
    datum->weights = copy;
  }
  batch->weight += weight;
  batch->n++;
  return TNK_OK;
}

/* Log-probabilities and advantages: of the prompt zeros, which count for
 * nothing, then those of what was sampled. */
static int put_sampled(tnk_batch_t *batch, tnk_datum_t *datum,
                       const float *logprobs, size_t n_sampled,
                       float advantage) {
  const size_t n = datum->input.n_tokens;
  const size_t n_zeros = n - n_sampled;
  tnk_loss_input_t *inputs =
      tnk__arena_calloc(&batch->arena, 2, sizeof(*inputs));
  float *old = tnk__arena_calloc(&batch->arena, n, sizeof(*old));
  float *advantages = tnk__arena_calloc(&batch->arena, n, sizeof(*advantages));

  if (inputs == NULL || old == NULL || advantages == NULL)
    return TNK_ENOMEM;
  memcpy(old + n_zeros, logprobs, n_sampled * sizeof(*old));
  for (size_t i = n_zeros; i < n; i++)
    advantages[i] = advantage;
  inputs[0] = (tnk_loss_input_t){"logprobs", tnk_tensor_f32(old, n)};
  inputs[1] = (tnk_loss_input_t){"advantages", tnk_tensor_f32(advantages, n)};
  datum->loss_inputs = inputs;
  datum->n_loss_inputs = 2;
  return TNK_OK;
}

int tnk_batch_add_sample(tnk_batch_t *batch, const int32_t *prompt,
                         size_t n_prompt, const tnk_samples_t *samples,
                         size_t index, double advantage) {
  size_t n = 0, n_logprobs = 0;
  const int32_t *tokens;
  const float *logprobs;
  tnk_datum_t *datum;
  int err;

  if (batch == NULL || prompt == NULL || n_prompt == 0 || samples == NULL ||
      !isfinite((float)advantage))
    return TNK_EINVAL;
  tokens = tnk_samples_tokens(samples, index, &n);
  logprobs = tnk_samples_logprobs(samples, index, &n_logprobs);
  if (n == 0 || logprobs == NULL || n_logprobs != n)
    return TNK_EINVAL;
  datum = next(batch);
  if (datum == NULL)
    return TNK_ENOMEM;
  err = put_tokens(batch, datum, prompt, n_prompt, tokens, n);
  if (err == TNK_OK)
    err = put_sampled(batch, datum, logprobs, n, (float)advantage);
  if (err != TNK_OK)
    return err;
  batch->weight += (double)n;
  batch->n++;
  return TNK_OK;
}

const tnk_datum_t *tnk_batch_data(const tnk_batch_t *batch, size_t *n) {
  const size_t count = batch != NULL ? batch->n : 0;

  if (n != NULL)
    *n = count;
  return count > 0 ? batch->data : NULL;
}

double tnk_batch_weight(const tnk_batch_t *batch) {
  return batch != NULL ? batch->weight : 0;
}

void tnk_batch_clear(tnk_batch_t *batch) {
  if (batch == NULL)
    return;
  tnk__arena_deinit(&batch->arena);
  tnk__arena_init(&batch->arena, &batch->alloc, SIZE_MAX);
  batch->n = 0;
  batch->weight = 0;
}

void tnk_batch_free(tnk_batch_t *batch) {
  tnk_allocator_t alloc;

  if (batch == NULL)
    return;
  alloc = batch->alloc;
  tnk__arena_deinit(&batch->arena);
  tnk__free(&alloc, batch->data);
  tnk__free(&alloc, batch);
}
