#include "lib/wire/message/metrics.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/utf8.h"
#include "tnk/error.h"

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
