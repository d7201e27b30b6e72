/* SPDX-License-Identifier: MIT */
#include "lib/wire/message/results.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/utf8.h"
#include "tnk/error.h"

/* ---- Metrics ---- */

/* Merge two adjacent sorted runs. Of equal keys the left one comes first. */
static void merge(const tnk__metric_t **to, const tnk__metric_t **from,
                  size_t left, size_t middle, size_t right) {
  size_t a = left, b = middle;

  for (size_t i = left; i < right; i++) {
    int take_left = b == right;

    if (a < middle && b < right)
      take_left = strcmp(from[a]->key, from[b]->key) <= 0;
    to[i] = take_left ? from[a++] : from[b++];
  }
}

/* Merge sort, because the peer chooses the keys: no order makes it slow. It
 * uses only our memory. */
static const tnk__metric_t **sort(tnk__room_t *room, const tnk__metric_t *items,
                                  size_t n) {
  const tnk__metric_t **from = tnk__room_get(room, n, sizeof(*from));
  const tnk__metric_t **to = tnk__room_get(room, n, sizeof(*to));

  if (to == NULL)
    return NULL;
  for (size_t i = 0; i < n; i++)
    from[i] = &items[i];
  /* Bottom-up in two alternating arrays, so that no recursion is needed. */
  for (size_t width = 1; width < n; width *= 2) {
    const tnk__metric_t **other = from;

    for (size_t left = 0; left < n; left += 2 * width) {
      size_t middle = left + width < n ? left + width : n;
      size_t right = middle + width < n ? middle + width : n;

      merge(to, from, left, middle, right);
    }
    from = to;
    to = other;
  }
  return from;
}

/* Remove duplicate keys. Returns how many remain. */
static size_t drop_repeated(tnk__metric_t *items, const tnk__metric_t **by_key,
                            size_t n) {
  size_t first = 0; /* start of a run of equal keys */
  size_t kept = 0;

  for (size_t i = 1; i < n; i++) {
    tnk__metric_t *item = items + (by_key[i] - items);

    if (strcmp(by_key[first]->key, item->key) != 0) {
      first = i;
      continue;
    }
    items[by_key[first] - items].value = item->value;
    item->key = NULL;
    /* The first key of the run is kept, because later comparisons need it. */
  }
  for (size_t i = 0; i < n; i++)
    if (items[i].key != NULL)
      items[kept++] = items[i];
  return kept;
}

void tnk__metrics_build(tnk_metrics_t *metrics, tnk__room_t *room,
                        tnk__metric_t *items, size_t n) {
  const tnk__metric_t **by_key = NULL;
  size_t kept = n;

  if (n > 0)
    by_key = sort(room, items, n);
  if (room->err != TNK_OK)
    return;
  if (n > 0)
    kept = drop_repeated(items, by_key, n);
  /* Its pointers refer to entries that have moved. */
  if (kept < n)
    by_key = sort(room, items, kept);
  if (room->err != TNK_OK)
    return;
  metrics->items = items;
  metrics->by_key = by_key;
  metrics->n = kept;
}

void tnk__metrics_from_json(tnk_metrics_t *metrics, tnk__room_t *room,
                            const json_t *object, tnk__warnings_t *warnings) {
  /* jansson's iterator takes a non-const object but does not modify it. */
  json_t *members = (json_t *)object;
  size_t n = 0;
  tnk__metric_t *items =
      tnk__room_zeroed(room, json_object_size(object), sizeof(*items));
  const char *key;
  json_t *value;

  json_object_foreach(members, key, value) {
    if (room->err != TNK_OK)
      return;
    if (!json_is_number(value) && !json_is_null(value)) {
      if (warnings != NULL)
        tnk__warnings_add(warnings, room, "metric \"%.64s\" is not a number",
                          key);
      continue;
    }
    /* Servers whose JSON has no NaN write null instead. */
    items[n].key = tnk__room_text(room, key);
    items[n++].value = json_is_null(value) ? NAN : json_number_value(value);
  }
  tnk__metrics_build(metrics, room, items, n);
}

const tnk__metric_t *tnk__metrics_find(const tnk_metrics_t *metrics,
                                       const char *key) {
  size_t low = 0, high = metrics->n;

  while (low < high) {
    size_t middle = low + (high - low) / 2;
    int order = strcmp(metrics->by_key[middle]->key, key);

    if (order == 0)
      return metrics->by_key[middle];
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}

/* Keys come from the peer, and truncation may split a character. */
static void clean(char *text) {
  size_t n = strlen(text);
  size_t step;

  for (size_t i = 0; i < n; i += step) {
    step = tnk__utf8_char(text + i, n - i);
    if (step == 0 || (unsigned char)text[i] < 0x20) {
      text[i] = '?';
      step = 1;
    }
  }
}

void tnk__warnings_add(tnk__warnings_t *warnings, tnk__room_t *room,
                       const char *format, ...) {
  char text[160];
  va_list args;

  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  clean(text);
  for (size_t i = 0; i < warnings->n; i++)
    if (strcmp(warnings->text[i], text) == 0)
      return;
  /* A peer with thousands of invalid keys must not fill the log. */
  if (warnings->n == TNK__MAX_WARNINGS)
    return;
  warnings->text[warnings->n] = tnk__room_text(room, text);
  if (warnings->text[warnings->n] != NULL)
    warnings->n++;
}

/* ---- Results ---- */

/* The struct itself is in its arena, so copy the arena before freeing it. */
static void end_arena(tnk__arena_t arena, const tnk_allocator_t *alloc) {
  arena.alloc = alloc;
  tnk__arena_deinit(&arena);
}

void tnk__pass_result_free(const tnk_allocator_t *alloc, void *value) {
  tnk_pass_t *pass = value;
  tnk_pass_t *part = pass == NULL ? NULL : pass->parts;

  while (part != NULL) {
    tnk_pass_t *next = part->next;

    end_arena(part->arena, alloc);
    part = next;
  }
  if (pass != NULL)
    end_arena(pass->arena, alloc);
}

void tnk__samples_free(const tnk_allocator_t *alloc, void *value) {
  if (value != NULL)
    end_arena(((tnk_samples_t *)value)->arena, alloc);
}

void tnk__metrics_free(const tnk_allocator_t *alloc, void *value) {
  if (value != NULL)
    end_arena(((tnk_metrics_t *)value)->arena, alloc);
}

/* Overwrite the metric with this name, or append one. */
static void put(tnk__metric_t *items, size_t *n, const char *key,
                double value) {
  size_t i = 0;

  while (i < *n && strcmp(items[i].key, key) != 0)
    i++;
  if (i == *n)
    items[(*n)++].key = key;
  items[i].value = value;
}

int tnk__pass_result_set_custom_loss(tnk_pass_t *pass, double loss,
                                     const tnk_custom_metric_t *own,
                                     size_t n_own) {
  static const char sum[] = "loss:sum";
  const tnk_metrics_t *old = &pass->metrics;
  tnk__room_t room = {.arena = pass->arena};
  tnk__metric_t *items =
      tnk__room_zeroed(&room, old->n + n_own + 2, sizeof(tnk__metric_t));
  const tnk__metric_t *surrogate = tnk__metrics_find(old, sum);
  tnk_metrics_t metrics = {0};
  size_t n = 0;

  for (size_t i = 0; i < old->n && items != NULL; i++)
    if (strcmp(old->items[i].key, sum) != 0)
      items[n++] = old->items[i];
  for (size_t i = 0; i < n_own && items != NULL; i++) {
    const char *name = tnk__room_text(&room, own[i].name);
    if (name != NULL)
      put(items, &n, name, own[i].value);
  }
  if (items != NULL) {
    put(items, &n, sum, loss);
    if (surrogate != NULL)
      put(items, &n, "surrogate_loss:sum", surrogate->value);
    tnk__metrics_build(&metrics, &room, items, n);
  }
  pass->arena = room.arena; /* it may have grown */
  if (room.err != TNK_OK)
    return TNK_ENOMEM;
  pass->metrics = metrics;
  return TNK_OK;
}

int tnk__samples_set_ids(tnk_samples_t *samples, const char *const *ids,
                         size_t n) {
  const char **copies;
  int is_out = 0;

  if (n == 0)
    return TNK_OK;
  /* The assignment of ids to sequences would be a guess. */
  if (n != samples->n_sequences)
    return TNK_EPROTO;
  /* The arena's limit followed from the body of the result. The ids come from
   * another response, which had its own limit. */
  samples->arena.max = SIZE_MAX;
  copies = tnk__arena_calloc(&samples->arena, n, sizeof(*copies));
  for (size_t i = 0; i < n && copies != NULL && !is_out; i++) {
    copies[i] = tnk__arena_strdup(&samples->arena, ids[i]);
    is_out = copies[i] == NULL;
  }
  if (copies == NULL || is_out)
    return TNK_ENOMEM;
  for (size_t i = 0; i < n; i++)
    samples->sequences[i].id = copies[i];
  return TNK_OK;
}

/* ---- Results: accessors of tnk/result.h ---- */

size_t tnk_metrics_count(const tnk_metrics_t *metrics) {
  return metrics == NULL ? 0 : metrics->n;
}

const char *tnk_metrics_key(const tnk_metrics_t *metrics, size_t index) {
  return index < tnk_metrics_count(metrics) ? metrics->items[index].key : NULL;
}

double tnk_metrics_value(const tnk_metrics_t *metrics, size_t index) {
  return index < tnk_metrics_count(metrics) ? metrics->items[index].value : NAN;
}

static const tnk__metric_t *find(const tnk_metrics_t *metrics,
                                 const char *key) {
  if (metrics == NULL || key == NULL)
    return NULL;
  return tnk__metrics_find(metrics, key);
}

double tnk_metrics_get(const tnk_metrics_t *metrics, const char *key) {
  const tnk__metric_t *metric = find(metrics, key);

  return metric == NULL ? NAN : metric->value;
}

int tnk_metrics_hash(uint64_t *out, const tnk_metrics_t *metrics,
                     const char *key) {
  const tnk__metric_t *metric = find(metrics, key);

  if (metric == NULL || !metric->is_hash || out == NULL)
    return 0;
  *out = metric->hash;
  return 1;
}

double tnk_pass_loss(const tnk_pass_t *pass) {
  static const char *const keys[] = {"loss", "loss:mean", "loss:sum"};

  for (size_t i = 0; pass != NULL && i < sizeof(keys) / sizeof(keys[0]); i++) {
    const tnk__metric_t *metric = find(&pass->metrics, keys[i]);

    if (metric != NULL)
      return metric->value;
  }
  return pass != NULL && pass->has_own_loss ? pass->own_loss : NAN;
}

const tnk_metrics_t *tnk_pass_metrics(const tnk_pass_t *pass) {
  static const tnk_metrics_t none;

  return pass == NULL ? &none : &pass->metrics;
}

const char *tnk_pass_output_type(const tnk_pass_t *pass) {
  return pass == NULL ? NULL : pass->output_type;
}

size_t tnk_pass_count(const tnk_pass_t *pass) {
  return pass == NULL ? 0 : pass->n_outputs;
}

size_t tnk_pass_field_count(const tnk_pass_t *pass, size_t index) {
  return index < tnk_pass_count(pass) ? pass->outputs[index].n_fields : 0;
}

const char *tnk_pass_field_name(const tnk_pass_t *pass, size_t index,
                                size_t field) {
  if (field >= tnk_pass_field_count(pass, index))
    return NULL;
  return pass->outputs[index].fields[field].name;
}

const tnk_tensor_t *tnk_pass_tensor(const tnk_pass_t *pass, size_t index,
                                    const char *name) {
  /* Search backward: if a name occurs twice, the last one counts. */
  for (size_t i = tnk_pass_field_count(pass, index); i > 0 && name != NULL;
       i--) {
    const tnk__field_t *field = &pass->outputs[index].fields[i - 1];

    if (strcmp(field->name, name) == 0)
      return &field->tensor;
  }
  return NULL;
}

size_t tnk_samples_count(const tnk_samples_t *samples) {
  return samples == NULL ? 0 : samples->n_sequences;
}

static const tnk__sequence_t *sequence(const tnk_samples_t *samples,
                                       size_t index) {
  static const tnk__sequence_t none;

  if (index >= tnk_samples_count(samples))
    return &none;
  return &samples->sequences[index];
}

const int32_t *tnk_samples_tokens(const tnk_samples_t *samples, size_t index,
                                  size_t *n) {
  const tnk__sequence_t *found = sequence(samples, index);

  if (n != NULL)
    *n = found->n_tokens;
  return found->tokens;
}

const float *tnk_samples_logprobs(const tnk_samples_t *samples, size_t index,
                                  size_t *n) {
  const tnk__sequence_t *found = sequence(samples, index);

  if (n != NULL)
    *n = found->n_logprobs;
  return found->logprobs;
}

tnk_stop_reason_t tnk_samples_stop_reason(const tnk_samples_t *samples,
                                          size_t index) {
  return sequence(samples, index)->stop_reason;
}

const char *tnk_samples_sequence_id(const tnk_samples_t *samples,
                                    size_t index) {
  return sequence(samples, index)->id;
}

const float *tnk_samples_prompt_logprobs(const tnk_samples_t *samples,
                                         size_t *n) {
  if (n != NULL)
    *n = samples == NULL ? 0 : samples->n_prompt_logprobs;
  return samples == NULL ? NULL : samples->prompt_logprobs;
}

int32_t tnk_samples_cache_hit_tokens(const tnk_samples_t *samples) {
  return samples == NULL ? 0 : samples->cache_hit_tokens;
}

const tnk_topk_t *tnk_samples_prompt_topk(const tnk_samples_t *samples) {
  return samples == NULL ? NULL : samples->prompt_topk;
}

const tnk_topk_t *tnk_samples_topk(const tnk_samples_t *samples, size_t index) {
  return sequence(samples, index)->topk;
}

const tnk_tensor_t *tnk_samples_target_logprobs(const tnk_samples_t *samples) {
  return samples == NULL ? NULL : samples->target_logprobs;
}

const tnk_tensor_t *tnk_samples_alt_tokens(const tnk_samples_t *samples) {
  return samples == NULL ? NULL : samples->alt_tokens;
}

const tnk_tensor_t *tnk_samples_alt_logprobs(const tnk_samples_t *samples) {
  return samples == NULL ? NULL : samples->alt_logprobs;
}
