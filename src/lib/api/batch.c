/* SPDX-License-Identifier: MIT */
/* Training data that owns its memory: examples are copied into an arena, which
 * is freed as a whole. */
#include "tnk/batch.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/arena.h"
#include "tnk/error.h"

struct tnk_batch {
  tnk_allocator_t alloc;
  tnk__arena_t arena; /* memory of the examples */
  tnk_datum_t *data;
  size_t n;
  size_t max;
  double weight;
  char text[160]; /* why the last example was refused; empty: it was added */
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

/* Memory for one more example; NULL without memory. */
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

/* ---- Refusals ---- */

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static int
refuse(tnk_batch_t *batch, const char *format, ...) {
  va_list args;

  va_start(args, format);
  vsnprintf(batch->text, sizeof(batch->text), format, args);
  va_end(args);
  return TNK_EINVAL;
}

static int out_of_memory(tnk_batch_t *batch) {
  refuse(batch, "%s", tnk_strerror(TNK_ENOMEM));
  return TNK_ENOMEM;
}

/* Index of the first value that is not finite, or n. */
static size_t first_odd(const float *values, size_t n) {
  size_t i = 0;

  while (i < n && isfinite(values[i]))
    i++;
  return i;
}

const char *tnk_batch_text(const tnk_batch_t *batch) {
  if (batch == NULL)
    return "there is no batch: it is NULL";
  return batch->text[0] != '\0' ? batch->text : tnk_strerror(TNK_OK);
}

/* Count the complete example. */
static int finish(tnk_batch_t *batch, double weight) {
  batch->weight += weight;
  batch->n++;
  batch->text[0] = '\0';
  return TNK_OK;
}

/* ---- Tokens and weights ---- */

/* Use all tokens but the last as the input, and the next token of each as its
 * target. `tokens` belongs to the batch. */
static int put_tokens(tnk_batch_t *batch, tnk_datum_t *datum,
                      const int32_t *tokens, size_t n_tokens) {
  const size_t n = n_tokens - 1;
  int64_t *targets;

  if (n > SIZE_MAX / sizeof(*targets))
    return TNK_ENOMEM;
  targets = tnk__arena_alloc(&batch->arena, n * sizeof(*targets));
  if (tokens == NULL || targets == NULL)
    return TNK_ENOMEM;
  for (size_t i = 0; i < n; i++)
    targets[i] = tokens[i + 1];
  datum->input.tokens = tokens;
  datum->input.n_tokens = n;
  datum->targets = targets;
  return TNK_OK;
}

static int check_tokens(tnk_batch_t *batch, const int32_t *tokens,
                        const float *weights, size_t n) {
  size_t odd;

  if (tokens == NULL)
    return refuse(batch, "tokens is NULL");
  if (n < 2)
    return refuse(batch, "there are %zu tokens, at least 2 are needed", n);
  odd = weights != NULL ? first_odd(weights + 1, n - 1) + 1 : n;
  if (odd < n)
    return refuse(batch, "the weight of token %zu is not finite", odd);
  return TNK_OK;
}

int tnk_batch_add_tokens(tnk_batch_t *batch, const int32_t *tokens,
                         const float *weights, size_t n) {
  double weight = (double)n - 1;
  tnk_datum_t *datum;
  const int32_t *copy;

  if (batch == NULL || check_tokens(batch, tokens, weights, n) != TNK_OK)
    return TNK_EINVAL;
  datum = next(batch);
  if (datum == NULL || n > SIZE_MAX / sizeof(*tokens))
    return out_of_memory(batch);
  copy = tnk__arena_copy(&batch->arena, tokens, n * sizeof(*tokens));
  if (put_tokens(batch, datum, copy, n) != TNK_OK)
    return out_of_memory(batch);
  if (weights != NULL) {
    float *own =
        tnk__arena_copy(&batch->arena, weights + 1, (n - 1) * sizeof(*weights));
    if (own == NULL)
      return out_of_memory(batch);
    weight = 0;
    for (size_t i = 0; i < n - 1; i++)
      weight += (double)own[i];
    datum->weights = own;
  }
  return finish(batch, weight);
}

/* ---- Trajectories ---- */

tnk_segment_t tnk_segment_given(const int32_t *tokens, size_t n_tokens) {
  return (tnk_segment_t){
      .kind = TNK_SPAN_PROMPT, .tokens = tokens, .n_tokens = n_tokens};
}

tnk_segment_t tnk_segment_sampled(const tnk_samples_t *samples, size_t index,
                                  double advantage) {
  tnk_segment_t segment = {.kind = TNK_SPAN_SAMPLED, .advantage = advantage};
  size_t n_logprobs = 0;

  if (samples == NULL)
    return segment;
  segment.tokens = tnk_samples_tokens(samples, index, &segment.n_tokens);
  segment.logprobs = tnk_samples_logprobs(samples, index, &n_logprobs);
  segment.sequence_id = tnk_samples_sequence_id(samples, index);
  if (n_logprobs != segment.n_tokens)
    segment.logprobs = NULL;
  return segment;
}

static int is_sampled(const tnk_segment_t *segment) {
  return segment->kind == TNK_SPAN_SAMPLED;
}

static int check_segment(tnk_batch_t *batch, const tnk_segment_t *segment,
                         size_t i) {
  size_t odd;

  if (!is_sampled(segment) && segment->kind != TNK_SPAN_PROMPT)
    return refuse(batch, "segment %zu: its kind %d is none", i,
                  (int)segment->kind);
  if (segment->tokens == NULL || segment->n_tokens == 0)
    return refuse(batch, "segment %zu has no tokens", i);
  if (!is_sampled(segment))
    return TNK_OK;
  if (i == 0)
    return refuse(batch, "segment 0 is sampled: nothing stands before it");
  if (segment->logprobs == NULL)
    return refuse(batch, "segment %zu is sampled and has no log-probabilities",
                  i);
  if (!isfinite((float)segment->advantage))
    return refuse(batch, "segment %zu: its advantage is not finite", i);
  odd = first_odd(segment->logprobs, segment->n_tokens);
  if (odd < segment->n_tokens)
    return refuse(batch,
                  "segment %zu: the log-probability of token %zu is not finite",
                  i, odd);
  return TNK_OK;
}

/* A trajectory to add. */
typedef struct {
  const tnk_segment_t *segments;
  size_t n_segments; /* up to the last sampled segment */
  size_t n_tokens;
  size_t n_sampled; /* number of sampled tokens */
  int has_ids;
} trajectory_t;

/* Checks and measures the trajectory. Returns TNK_OK or the reason for a
 * refusal. */
static int check_trajectory(tnk_batch_t *batch, trajectory_t *t) {
  size_t last = 0;
  size_t n_with = 0;
  size_t n = 0;

  if (t->segments == NULL)
    return refuse(batch, "segments is NULL");
  for (size_t i = 0; i < t->n_segments; i++) {
    const tnk_segment_t *segment = &t->segments[i];

    if (check_segment(batch, segment, i) != TNK_OK)
      return TNK_EINVAL;
    if (segment->n_tokens > SIZE_MAX / 16 - n)
      return refuse(batch, "segment %zu is too long", i);
    n += segment->n_tokens;
    if (!is_sampled(segment))
      continue;
    if (n_with != 0 && (segment->sequence_id == NULL) == (t->has_ids != 0))
      return refuse(batch, "segment %zu has %s sequence id, unlike segment %zu",
                    i, segment->sequence_id != NULL ? "a" : "no", last);
    t->has_ids = segment->sequence_id != NULL;
    n_with++;
    last = i;
    t->n_tokens = n;
    t->n_sampled += segment->n_tokens;
  }
  if (n_with == 0)
    return refuse(batch, "no segment was sampled");
  t->n_segments = last + 1;
  return TNK_OK;
}

/* Arrays with a value for each target. Prompt tokens have zeros and do not
 * count. */
typedef struct {
  float *logprobs;
  float *advantages;
  float *mask;
} columns_t;

static int32_t *fill_columns(tnk_batch_t *batch, const trajectory_t *t,
                             columns_t *out) {
  const size_t n = t->n_tokens;
  int32_t *tokens = tnk__arena_calloc(&batch->arena, n, sizeof(*tokens));
  size_t at = 0;

  out->logprobs = tnk__arena_calloc(&batch->arena, n, sizeof(float));
  out->advantages = tnk__arena_calloc(&batch->arena, n, sizeof(float));
  out->mask = tnk__arena_calloc(&batch->arena, n, sizeof(float));
  if (tokens == NULL || out->logprobs == NULL || out->advantages == NULL ||
      out->mask == NULL)
    return NULL;
  for (size_t i = 0; i < t->n_segments; i++) {
    const tnk_segment_t *segment = &t->segments[i];

    for (size_t k = 0; k < segment->n_tokens; k++, at++) {
      tokens[at] = segment->tokens[k];
      if (!is_sampled(segment))
        continue;
      out->logprobs[at - 1] = segment->logprobs[k];
      out->advantages[at - 1] = (float)segment->advantage;
      out->mask[at - 1] = 1;
    }
  }
  return tokens;
}

static int put_inputs(tnk_batch_t *batch, tnk_datum_t *datum,
                      const columns_t *columns, const char *mask) {
  const size_t n = datum->input.n_tokens;
  tnk_loss_input_t *inputs =
      tnk__arena_calloc(&batch->arena, 3, sizeof(*inputs));
  const char *name = NULL;

  if (mask != NULL) {
    name = tnk__arena_strdup(&batch->arena, mask);
    if (name == NULL)
      return TNK_ENOMEM;
  }
  if (inputs == NULL)
    return TNK_ENOMEM;
  inputs[0] =
      (tnk_loss_input_t){"logprobs", tnk_tensor_f32(columns->logprobs, n)};
  inputs[1] =
      (tnk_loss_input_t){"advantages", tnk_tensor_f32(columns->advantages, n)};
  inputs[2] = (tnk_loss_input_t){name, tnk_tensor_f32(columns->mask, n)};
  datum->loss_inputs = inputs;
  datum->n_loss_inputs = mask != NULL ? 3 : 2;
  return TNK_OK;
}

/* The sequence id of a sampled segment. For a prompt segment, the id of the
 * next sampled segment. */
static const char *id_of(const trajectory_t *t, size_t i) {
  while (!is_sampled(&t->segments[i]))
    i++;
  return t->segments[i].sequence_id;
}

/* Make spans that cover the tokens from `begin` to `end`. */
static const tnk_span_t *make_spans(tnk_batch_t *batch, const trajectory_t *t,
                                    size_t begin, size_t end, size_t *n) {
  tnk_span_t *spans =
      tnk__arena_calloc(&batch->arena, t->n_segments, sizeof(*spans));
  size_t at = 0;

  *n = 0;
  for (size_t i = 0; i < t->n_segments && spans != NULL; i++) {
    const size_t after = at + t->segments[i].n_tokens;
    const size_t from = at > begin ? at : begin;
    const size_t to = after < end ? after : end;

    if (from < to) {
      spans[*n] = (tnk_span_t){
          .kind = t->segments[i].kind,
          .sequence_id = tnk__arena_strdup(&batch->arena, id_of(t, i)),
          .offset = (int64_t)(is_sampled(&t->segments[i]) ? from - at : from),
          .length = (int64_t)(to - from)};
      if (spans[(*n)++].sequence_id == NULL)
        return NULL;
    }
    at = after;
  }
  return spans;
}

static int put_spans(tnk_batch_t *batch, tnk_datum_t *datum,
                     const trajectory_t *t) {
  datum->input_spans =
      make_spans(batch, t, 0, t->n_tokens - 1, &datum->n_input_spans);
  datum->loss_input_spans =
      make_spans(batch, t, 1, t->n_tokens, &datum->n_loss_input_spans);
  return datum->input_spans != NULL && datum->loss_input_spans != NULL
             ? TNK_OK
             : TNK_ENOMEM;
}

/* Add a trajectory that has passed its checks. */
static int add_trajectory(tnk_batch_t *batch, const trajectory_t *t,
                          const char *mask) {
  tnk_datum_t *datum = next(batch);
  columns_t columns;
  const int32_t *tokens;

  if (datum == NULL)
    return out_of_memory(batch);
  tokens = fill_columns(batch, t, &columns);
  if (tokens == NULL ||
      put_tokens(batch, datum, tokens, t->n_tokens) != TNK_OK ||
      put_inputs(batch, datum, &columns, mask) != TNK_OK ||
      (t->has_ids && put_spans(batch, datum, t) != TNK_OK))
    return out_of_memory(batch);
  return finish(batch, (double)t->n_sampled);
}

int tnk_batch_add_trajectory(tnk_batch_t *batch, const tnk_segment_t *segments,
                             size_t n_segments, const char *mask) {
  trajectory_t t = {.segments = segments, .n_segments = n_segments};

  if (batch == NULL || check_trajectory(batch, &t) != TNK_OK)
    return TNK_EINVAL;
  return add_trajectory(batch, &t, mask);
}

static int check_sample(tnk_batch_t *batch, const int32_t *prompt,
                        size_t n_prompt, const tnk_samples_t *samples,
                        size_t index) {
  size_t n = 0;

  if (prompt == NULL || n_prompt == 0)
    return refuse(batch, "the prompt is empty");
  if (samples == NULL)
    return refuse(batch, "samples is NULL");
  if (index >= tnk_samples_count(samples))
    return refuse(batch, "there is no sequence %zu, there are %zu", index,
                  tnk_samples_count(samples));
  if (tnk_samples_tokens(samples, index, &n) == NULL || n == 0)
    return refuse(batch, "sequence %zu is empty", index);
  if (tnk_samples_logprobs(samples, index, &n) == NULL)
    return refuse(batch, "sequence %zu came without log-probabilities", index);
  return TNK_OK;
}

int tnk_batch_add_sample(tnk_batch_t *batch, const int32_t *prompt,
                         size_t n_prompt, const tnk_samples_t *samples,
                         size_t index, double advantage) {
  tnk_segment_t segments[2] = {tnk_segment_given(prompt, n_prompt),
                               tnk_segment_sampled(samples, index, advantage)};

  if (batch == NULL ||
      check_sample(batch, prompt, n_prompt, samples, index) != TNK_OK)
    return TNK_EINVAL;
  segments[1].sequence_id = NULL; /* a single turn needs no id */
  return tnk_batch_add_trajectory(batch, segments, 2, NULL);
}

/* ---- The whole ---- */

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
  batch->text[0] = '\0';
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
