/* SPDX-License-Identifier: MIT */
/* Iteration over all kinds of iterable values. */
#include <string.h>

#include "chat/jinja/lex/chars.h"
#include "chat/jinja/run.h"
#include "tnk/error.h"

tnk__value_t tnk__char_at(tnk__value_t text, size_t place) {
  const char *p = text.as.text + place;

  tnk__char_next(&p);
  text.n_text = (uint32_t)(p - (text.as.text + place));
  text.as.text += place;
  return text;
}

int tnk__is_iterable(tnk__value_t value) {
  switch (value.kind) {
  case TNK__VALUE_UNDEFINED:
    return 1;
  case TNK__VALUE_TEXT:
  case TNK__VALUE_LIST:
  case TNK__VALUE_TUPLE:
  case TNK__VALUE_DICT:
    return 1;
  case TNK__VALUE_OBJECT:
    return value.spare == TNK__OBJECT_RANGE ||
           value.spare == TNK__OBJECT_STREAM || value.spare == TNK__OBJECT_VIEW;
  default:
    return 0;
  }
}

int tnk__iter_begin(tnk__run_t *run, tnk__iter_t *iter, tnk__value_t of) {
  *iter = (tnk__iter_t){.of = of};
  if (tnk__is_iterable(of))
    return run->err == TNK_OK;
  iter->of = tnk__value_undefined();
  tnk__bad_type(run, "something with items is needed", of);
  return 0;
}

static tnk__value_t pair(tnk__run_t *run, const tnk__value_entry_t *entry) {
  const tnk__value_t tuple = tnk__value_tuple(run->heap);

  tnk__value_append(run->heap, tuple, entry->key);
  tnk__value_append(run->heap, tuple, entry->value);
  return tuple;
}

static int next_of_stream(tnk__run_t *run, tnk__stream_t *stream,
                          tnk__value_t *out) {
  if (stream->at < stream->items.as.list->n) {
    *out = stream->items.as.list->items[stream->at++];
    return 1;
  }
  if (stream->why != NULL && run->err == TNK_OK) {
    if (run->why != NULL)
      *run->why = *stream->why;
    run->err = stream->why->code;
  }
  return 0;
}

static int next_of_object(tnk__run_t *run, tnk__iter_t *iter,
                          tnk__value_t *out) {
  const tnk__view_t *view = iter->of.as.object;
  const tnk__range_t *range = iter->of.as.object;
  const tnk__value_entry_t *entry;

  if (iter->of.spare == TNK__OBJECT_STREAM)
    return next_of_stream(run, iter->of.as.object, out);
  if (iter->of.spare == TNK__OBJECT_RANGE) {
    if (iter->at >= range->n)
      return 0;
    *out = tnk__value_int(tnk__range_at(range, iter->at++));
    return 1;
  }
  if (iter->at >= view->dict.as.dict->n)
    return 0;
  entry = &view->dict.as.dict->entries[iter->at++];
  *out = view->kind == 'k'   ? entry->key
         : view->kind == 'v' ? entry->value
                             : pair(run, entry);
  return 1;
}

int tnk__iter_next(tnk__run_t *run, tnk__iter_t *iter, tnk__value_t *out) {
  const tnk__value_t of = iter->of;

  if (!tnk__charge(run, TNK__COST_ITEM, 1))
    return 0;
  switch (of.kind) {
  case TNK__VALUE_LIST:
  case TNK__VALUE_TUPLE:
    if (iter->at >= of.as.list->n)
      return 0;
    *out = of.as.list->items[iter->at++];
    return 1;
  case TNK__VALUE_DICT:
    if (iter->at >= of.as.dict->n)
      return 0;
    *out = of.as.dict->entries[iter->at++].key;
    return 1;
  case TNK__VALUE_TEXT:
    if (iter->at >= of.n_text)
      return 0;
    *out = tnk__char_at(of, iter->at);
    out->is_markup = 0;
    iter->at += out->n_text;
    return 1;
  case TNK__VALUE_OBJECT:
    return next_of_object(run, iter, out);
  default:
    return 0;
  }
}

static int64_t object_length(tnk__value_t value) {
  const tnk__range_t *range = value.as.object;
  const tnk__view_t *view = value.as.object;

  if (value.spare == TNK__OBJECT_RANGE)
    return (int64_t)range->n;
  return value.spare == TNK__OBJECT_VIEW ? (int64_t)view->dict.as.dict->n : -1;
}

int64_t tnk__length(tnk__run_t *run, tnk__value_t value) {
  switch (value.kind) {
  case TNK__VALUE_UNDEFINED:
    return 0;
  case TNK__VALUE_TEXT:
    return tnk__charge(run, TNK__COST_COUNT, value.n_text)
               ? (int64_t)tnk__chars_count(value.as.text, value.n_text)
               : 0;
  case TNK__VALUE_LIST:
  case TNK__VALUE_TUPLE:
    return (int64_t)value.as.list->n;
  case TNK__VALUE_DICT:
    return (int64_t)value.as.dict->n;
  case TNK__VALUE_OBJECT:
    return object_length(value);
  default:
    return -1;
  }
}

int tnk__truth(tnk__value_t value) {
  return value.kind == TNK__VALUE_OBJECT ? object_length(value) != 0
                                         : tnk__value_truth(value);
}

tnk__value_t tnk__list_of(tnk__run_t *run, tnk__value_t value) {
  const tnk__value_t list = tnk__value_list(run->heap);
  tnk__iter_t iter;
  tnk__value_t item;

  if (!tnk__iter_begin(run, &iter, value))
    return tnk__value_undefined();
  while (tnk__iter_next(run, &iter, &item))
    tnk__value_append(run->heap, list, item);
  return tnk__is_fine(run) ? list : tnk__value_undefined();
}

tnk__value_t tnk__stream(tnk__run_t *run, tnk__value_t list) {
  tnk__stream_t *stream = tnk__heap_alloc(run->heap, sizeof(*stream));

  if (stream == NULL || list.kind != TNK__VALUE_LIST)
    return tnk__value_undefined();
  *stream = (tnk__stream_t){.items = list};
  if (run->err == TNK_EINVAL || run->err == TNK_EUNSUPPORTED) {
    stream->why = tnk__heap_alloc(run->heap, sizeof(*stream->why));
    if (stream->why == NULL)
      return tnk__value_undefined();
    *stream->why = (tnk__why_t){.code = run->err, .line = run->line};
    if (run->why != NULL)
      *stream->why = *run->why;
    run->err = TNK_OK;
    tnk__charge(run, TNK__COST_FAILURE, 1);
  }
  return tnk__object(TNK__OBJECT_STREAM, stream);
}

int tnk__contains(tnk__run_t *run, tnk__value_t in, tnk__value_t item) {
  tnk__iter_t iter;
  tnk__value_t other;

  if (in.kind == TNK__VALUE_TEXT) {
    if (item.kind == TNK__VALUE_TEXT)
      return tnk__text_find(run, in, item, 0) != SIZE_MAX;
    tnk__bad_type(run, "a text is needed to be looked for in a text", item);
    return 0;
  }
  if (in.kind == TNK__VALUE_DICT) {
    if (!tnk__can_be_key(run, item))
      tnk__bad_type(run, "the name of a member is needed", item);
    return run->err == TNK_OK && tnk__value_has(in, item);
  }
  if (!tnk__iter_begin(run, &iter, in))
    return 0;
  while (tnk__iter_next(run, &iter, &other))
    if (tnk__charge_equal(run, other, item) && tnk__value_equal(other, item))
      return 1;
  return 0;
}
