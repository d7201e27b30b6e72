/* SPDX-License-Identifier: MIT */
/* Attributes and items, as in the sandbox of the reference. */
#include <string.h>

#include "chat/jinja/lex/chars.h"
#include "chat/jinja/run.h"
#include "tnk/error.h"

typedef struct {
  tnk__value_t self;
  const tnk__builtin_t *known;
} method_t;

static tnk__value_t call_method(tnk__run_t *run, tnk__value_t self,
                                const tnk__args_t *args) {
  const method_t *method = self.as.object;

  return tnk__builtin_call(run, method->known, method->self, args);
}

const tnk__class_t tnk__class_method = {.name = "method", .call = call_method};

/* The equivalent of getattr() in Python. Returns 0 if nothing is found. */
static int own_attr(tnk__run_t *run, tnk__value_t of, tnk__value_t name,
                    tnk__value_t *out) {
  const tnk__class_t *class = tnk__class_of(run, of);
  const tnk__builtin_t *known = NULL;
  method_t *method;

  if (class->methods != NULL)
    known = tnk__builtin_among(class->methods, name);
  if (known != NULL) {
    method = tnk__heap_alloc(run->heap, sizeof(*method));
    if (method != NULL)
      *method = (method_t){of, known};
    *out = tnk__object(TNK__OBJECT_METHOD, method);
    return 1;
  }
  if (tnk__is_hidden(name) || tnk__is_listed(class->unsafe, name)) {
    *out = tnk__undefined(name);
    out->spare = TNK__IS_UNSAFE;
    return 1;
  }
  if (tnk__is_listed(class->lacking, name)) {
    *out = tnk__fail(run, TNK_EUNSUPPORTED,
                     "there is no attribute \"%.*s\" of \"%s\" here",
                     (int)name.n_text, name.as.text, class->name);
    return 1;
  }
  if (of.kind == TNK__VALUE_TUPLE && of.spare != 0) {
    *out = of.as.list->items[tnk__value_is(name, "list")];
    return tnk__value_is(name, "list") || tnk__value_is(name, "grouper");
  }
  return class->attr != NULL && class->attr(run, of, name, out);
}

/* Get a character by its index, which counts from the end if it is negative.
 * Returns 0 if the index is out of range. */
static int char_item(tnk__run_t *run, tnk__value_t text, int64_t at,
                     tnk__value_t *out) {
  size_t place;

  if (at < 0)
    at += tnk__length(run, text);
  if (at < 0)
    return 0;
  place = tnk__chars_place(text.as.text, text.n_text, (size_t)at);
  if (!tnk__charge(run, TNK__COST_COUNT, place) || place == text.n_text)
    return 0;
  *out = tnk__char_at(text, place);
  return 1;
}

/* The equivalent of [] in Python. Returns 0 if that would fail. */
static int own_item(tnk__run_t *run, tnk__value_t of, tnk__value_t key,
                    tnk__value_t *out) {
  const tnk__range_t *range = of.as.object;
  int64_t at;
  int64_t n;

  if (of.kind == TNK__VALUE_DICT)
    return (key.kind == TNK__VALUE_TEXT || tnk__value_is_hashable(key)) &&
           tnk__value_look_up(of, key, out);
  if (!tnk__value_whole(key, &at))
    return 0;
  if (of.kind != TNK__VALUE_TEXT && of.kind != TNK__VALUE_LIST &&
      of.kind != TNK__VALUE_TUPLE && !tnk__is_object(of, TNK__OBJECT_RANGE))
    return 0;
  if (of.kind == TNK__VALUE_TEXT)
    return char_item(run, of, at, out);
  n = tnk__length(run, of);
  if (at < 0)
    at += n;
  if (at < 0 || at >= n)
    return 0;
  if (of.kind == TNK__VALUE_OBJECT)
    *out = tnk__value_int(tnk__range_at(range, (size_t)at));
  else
    *out = of.as.list->items[at];
  return 1;
}

tnk__value_t tnk__getattr(tnk__run_t *run, tnk__value_t of, tnk__value_t name) {
  tnk__value_t out;

  if (run->err != TNK_OK || !tnk__charge(run, TNK__COST_LOOKUP, 1) ||
      !tnk__charge_name(run, name) ||
      (!tnk__is_hidden(name) && tnk__refuse_undefined(run, of)))
    return tnk__value_undefined();
  if (own_attr(run, of, name, &out) || own_item(run, of, name, &out))
    return out;
  return tnk__undefined(name);
}

tnk__value_t tnk__getitem(tnk__run_t *run, tnk__value_t of, tnk__value_t key) {
  tnk__value_t out;

  if (run->err != TNK_OK || !tnk__charge(run, TNK__COST_GET, 1) ||
      tnk__refuse_undefined(run, of))
    return tnk__value_undefined();
  (void)tnk__can_be_key(run, key);
  if (run->err != TNK_OK)
    return tnk__value_undefined();
  if (own_item(run, of, key, &out))
    return out;
  if (key.kind != TNK__VALUE_TEXT)
    return tnk__value_undefined();
  if (!tnk__charge(run, TNK__COST_LOOKUP, 1))
    return tnk__value_undefined();
  return own_attr(run, of, key, &out) ? out : tnk__undefined(key);
}

/* ---- Slices ---- */

/* Get the start or stop of a slice as an index. An index beyond the ends
 * becomes -1 or n. */
static int slice_part(tnk__run_t *run, tnk__value_t part, int64_t otherwise,
                      int64_t n, int is_backward, int64_t *out) {
  int64_t at;

  *out = otherwise;
  if (part.kind == TNK__VALUE_NONE || !tnk__is_given(part))
    return 1;
  if (!tnk__value_whole(part, &at)) {
    tnk__bad_type(run, "a slice needs whole numbers", part);
    return 0;
  }
  if (at < 0)
    at += n;
  if (at < 0)
    at = is_backward ? -1 : 0;
  if (at >= n)
    at = is_backward ? n - 1 : n;
  *out = at;
  return 1;
}

/* Move by n characters from a byte offset, backward if n is negative. Stops at
 * the ends of the text. */
static size_t walk(tnk__value_t text, size_t place, int64_t n) {
  const char *at = text.as.text + place;

  for (; n < 0 && at > text.as.text; n++)
    (void)tnk__char_prev(&at);
  place = (size_t)(at - text.as.text);
  if (n <= 0)
    return place;
  return place + tnk__chars_place(at, text.n_text - place, (size_t)n);
}

static tnk__value_t slice_text(tnk__run_t *run, tnk__value_t text,
                               int64_t start, int64_t step, int64_t count) {
  size_t place = tnk__chars_place(text.as.text, text.n_text, (size_t)start);
  tnk__value_t part;
  tnk__buf_t buf;

  if (!tnk__charge(run, TNK__COST_COUNT, text.n_text))
    return tnk__value_undefined();
  if (count <= 0 || step == 1) {
    part = tnk__value_text(text.as.text + place,
                           count <= 0 ? 0 : walk(text, place, count) - place);
    part.is_markup = text.is_markup;
    return part;
  }
  if (!tnk__charge(run, TNK__COST_WRITE, text.n_text))
    return tnk__value_undefined();
  tnk__scratch(run, &buf);
  for (int64_t i = 0; i < count; i++) {
    if (i > 0)
      place = walk(text, place, step);
    part = tnk__char_at(text, place);
    tnk__buf_append(&buf, part.as.text, part.n_text);
  }
  part = tnk__scratch_text(run, &buf);
  part.is_markup = text.is_markup;
  return part;
}

tnk__value_t tnk__slice(tnk__run_t *run, tnk__value_t of, tnk__value_t start,
                        tnk__value_t stop, tnk__value_t step) {
  tnk__value_t list;
  int64_t n;
  int64_t from;
  int64_t to;
  int64_t by = 1;
  int64_t count;

  if (run->err != TNK_OK || tnk__refuse_undefined(run, of))
    return tnk__value_undefined();
  n = tnk__length(run, of);
  if (of.kind != TNK__VALUE_TEXT && of.kind != TNK__VALUE_LIST &&
      of.kind != TNK__VALUE_TUPLE)
    return tnk__bad_type(run, "a slice needs a text or list", of);
  if (step.kind != TNK__VALUE_NONE && !tnk__arg_whole(run, step, 1, &by))
    return tnk__value_undefined();
  if (by == 0 || by == INT64_MIN)
    return tnk__fail(run, TNK_EINVAL, "the step of a slice is zero");
  if (!slice_part(run, start, by < 0 ? n - 1 : 0, n, by < 0, &from) ||
      !slice_part(run, stop, by < 0 ? -1 : n, n, by < 0, &to))
    return tnk__value_undefined();
  if (by > 0)
    count = to > from ? (to - from - 1) / by + 1 : 0;
  else
    count = from > to ? (from - to - 1) / -by + 1 : 0;
  if (of.kind == TNK__VALUE_TEXT)
    return slice_text(run, of, count > 0 ? from : 0, by, count);
  list = of.kind == TNK__VALUE_LIST ? tnk__value_list(run->heap)
                                    : tnk__value_tuple(run->heap);
  if (by == 1 && count > 0 && tnk__is_fine(run)) {
    /* Lists never change, so a slice can share the items. Its capacity is full,
     * so appending to it makes a copy. */
    *list.as.list = (tnk__value_list_t){of.as.list->items + from, (size_t)count,
                                        (size_t)count};
    return list;
  }
  if (!tnk__charge(run, TNK__COST_ITEM, (uint64_t)count))
    return tnk__value_undefined();
  for (int64_t i = 0; i < count; i++)
    tnk__value_append(run->heap, list, of.as.list->items[from + i * by]);
  return list;
}
