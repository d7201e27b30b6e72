/* SPDX-License-Identifier: MIT */
/* Methods of texts in Python that return a text. */
#include <string.h>

#include "chat/jinja/lex/chars.h"
#include "chat/jinja/text.h"
#include "tnk/error.h"

#define METHOD(name)                                                           \
  static tnk__value_t name(tnk__run_t *run, tnk__value_t self,                 \
                           const tnk__value_t *v, const tnk__args_t *args)

static tnk__value_t strip_ends(tnk__run_t *run, tnk__value_t self,
                               tnk__value_t chars, int ends) {
  if (tnk__is_given(chars) && chars.kind != TNK__VALUE_NONE &&
      chars.kind != TNK__VALUE_TEXT)
    return tnk__bad_type(run, "characters to strip must be a text", chars);
  return tnk__text_strip(run, self, chars, ends);
}

METHOD(strip) {
  (void)args;
  return strip_ends(run, self, v[0], TNK__STRIP_LEFT | TNK__STRIP_RIGHT);
}

METHOD(lstrip) {
  (void)args;
  return strip_ends(run, self, v[0], TNK__STRIP_LEFT);
}

METHOD(rstrip) {
  (void)args;
  return strip_ends(run, self, v[0], TNK__STRIP_RIGHT);
}

METHOD(lower) {
  (void)v, (void)args;
  return tnk__text_lower(run, self);
}

METHOD(upper) {
  (void)v, (void)args;
  return tnk__text_upper(run, self);
}

METHOD(title) {
  (void)v, (void)args;
  return tnk__text_title(run, self);
}

METHOD(capitalize) {
  (void)v, (void)args;
  return tnk__text_capitalize(run, self);
}

METHOD(swapcase) {
  (void)v, (void)args;
  return tnk__text_swapcase(run, self);
}

METHOD(replace) {
  tnk__value_t from;
  tnk__value_t to;
  int64_t most;

  (void)args;
  if (!tnk__arg_text(run, v[0], NULL, &from) ||
      !tnk__arg_text(run, v[1], NULL, &to) ||
      !tnk__arg_whole(run, v[2], -1, &most))
    return tnk__value_undefined();
  if (self.is_markup)
    to = tnk__escape(run, to);
  return tnk__text_replace(run, self, from, to, most);
}

METHOD(join) {
  (void)args;
  return tnk__text_join(run, self, v[0], 0);
}

METHOD(format) {
  (void)v;
  return tnk__text_format(run, self, args);
}

static tnk__value_t pad(tnk__run_t *run, tnk__value_t self,
                        const tnk__value_t *v, char where) {
  tnk__value_t fill;
  int64_t width;

  if (!tnk__arg_whole(run, v[0], 0, &width) ||
      !tnk__arg_text(run, v[1], " ", &fill))
    return tnk__value_undefined();
  return tnk__text_pad(run, self, width, fill, where);
}

METHOD(center) {
  (void)args;
  return pad(run, self, v, '^');
}

METHOD(ljust) {
  (void)args;
  return pad(run, self, v, '<');
}

METHOD(rjust) {
  (void)args;
  return pad(run, self, v, '>');
}

METHOD(zfill) {
  const int has_sign =
      self.n_text > 0 && (*self.as.text == '+' || *self.as.text == '-');
  tnk__value_t rest = tnk__text_part(self, (size_t)has_sign, self.n_text);
  int64_t width;

  (void)args;
  if (!tnk__arg_whole(run, v[0], 0, &width))
    return tnk__value_undefined();
  if (width <= 0)
    return self;
  rest =
      tnk__text_pad(run, rest, width - has_sign, tnk__value_text("0", 1), '>');
  if (!has_sign || run->err != TNK_OK)
    return rest;
  return tnk__add_texts(run, tnk__text_part(self, 0, 1), rest);
}

static tnk__value_t remove_end(tnk__run_t *run, tnk__value_t self,
                               tnk__value_t part, int is_front) {
  tnk__value_t end;

  if (!tnk__arg_text(run, part, NULL, &part) || part.n_text > self.n_text ||
      !tnk__charge(run, TNK__COST_COPY, part.n_text))
    return self;
  end = is_front ? tnk__text_part(self, 0, part.n_text)
                 : tnk__text_part(self, self.n_text - part.n_text, self.n_text);
  if (part.n_text == 0 || !tnk__value_equal(end, part))
    return self;
  return is_front ? tnk__text_part(self, part.n_text, self.n_text)
                  : tnk__text_part(self, 0, self.n_text - part.n_text);
}

METHOD(removeprefix) {
  (void)args;
  return remove_end(run, self, v[0], 1);
}

METHOD(removesuffix) {
  (void)args;
  return remove_end(run, self, v[0], 0);
}

const tnk__builtin_t tnk__methods_text[] = {
    {"capitalize", "/", 0, capitalize},
    {"center", "/width fillchar", 1, center},
    {"format", NULL, 0, format},
    {"join", "/iterable", 1, join},
    {"ljust", "/width fillchar", 1, ljust},
    {"lower", "/", 0, lower},
    {"lstrip", "/chars", 0, lstrip},
    {"removeprefix", "/prefix", 1, removeprefix},
    {"removesuffix", "/suffix", 1, removesuffix},
    {"replace", "/old new count", 2, replace},
    {"rjust", "/width fillchar", 1, rjust},
    {"rstrip", "/chars", 0, rstrip},
    {"strip", "/chars", 0, strip},
    {"swapcase", "/", 0, swapcase},
    {"title", "/", 0, title},
    {"upper", "/", 0, upper},
    {"zfill", "/width", 1, zfill},
    {NULL, NULL, 0, NULL},
};

/* ---- Splitting and searching ---- */

/* Methods of texts in Python that split or search a text. */

static void add(tnk__run_t *run, tnk__value_t list, tnk__value_t text,
                size_t from, size_t to) {
  tnk__value_append(run->heap, list, tnk__text_part(text, from, to));
}

/* ---- split ---- */

static void split_blanks(tnk__run_t *run, tnk__value_t list, tnk__value_t text,
                         int64_t most) {
  const char *base = text.as.text;
  size_t at = tnk__blank_prefix(base, text.n_text);
  size_t end;
  const char *p;
  const char *next;

  while (at < text.n_text && tnk__charge(run, TNK__COST_ITEM, 1)) {
    if (most-- == 0) {
      end = text.n_text - tnk__blank_suffix(base + at, text.n_text - at);
      add(run, list, text, at, end);
      return;
    }
    for (p = base + at; p < base + text.n_text; p = next) {
      next = p;
      if (tnk__char_is_blank(tnk__char_next(&next)))
        break;
    }
    end = (size_t)(p - base);
    add(run, list, text, at, end);
    at = end + tnk__blank_prefix(p, text.n_text - end);
  }
}

static void split_text(tnk__run_t *run, tnk__value_t list, tnk__value_t text,
                       tnk__value_t by, int64_t most) {
  size_t at = 0;
  size_t found;

  while (most-- != 0 && tnk__charge(run, TNK__COST_ITEM, 1)) {
    found = tnk__text_find(run, text, by, at);
    if (found == SIZE_MAX)
      break;
    add(run, list, text, at, found);
    at = found + by.n_text;
  }
  add(run, list, text, at, text.n_text);
}

/* The last occurrence of a substring before a byte offset, or SIZE_MAX. */
static size_t find_back(tnk__run_t *run, tnk__value_t text, tnk__value_t part,
                        size_t end) {
  const uint64_t price = TNK__COST_TRY + (uint64_t)TNK__COST_COPY * part.n_text;

  if (part.n_text > end)
    return SIZE_MAX;
  for (size_t at = end - part.n_text + 1; at-- > 0;) {
    if (!tnk__charge(run, TNK__COST_SCAN, 1))
      break;
    if (part.n_text == 0)
      return at;
    if (text.as.text[at] != part.as.text[0])
      continue;
    if (!tnk__charge(run, price, 1))
      break;
    if (memcmp(text.as.text + at, part.as.text, part.n_text) == 0)
      return at;
  }
  return SIZE_MAX;
}

static void reverse(tnk__value_t list) {
  tnk__value_list_t *l = list.as.list;

  for (size_t i = 0; list.kind == TNK__VALUE_LIST && i < l->n / 2; i++) {
    const tnk__value_t item = l->items[i];

    l->items[i] = l->items[l->n - 1 - i];
    l->items[l->n - 1 - i] = item;
  }
}

static void rsplit_text(tnk__run_t *run, tnk__value_t list, tnk__value_t text,
                        tnk__value_t by, int64_t most) {
  size_t end = text.n_text;
  size_t found;

  while (most-- != 0 && tnk__charge(run, TNK__COST_ITEM, 1)) {
    found = find_back(run, text, by, end);
    if (found == SIZE_MAX)
      break;
    add(run, list, text, found + by.n_text, end);
    end = found;
  }
  add(run, list, text, 0, end);
  reverse(list);
}

static void rsplit_blanks(tnk__run_t *run, tnk__value_t list, tnk__value_t text,
                          int64_t most) {
  const char *base = text.as.text;
  size_t end = text.n_text - tnk__blank_suffix(base, text.n_text);
  const char *p;
  const char *next;

  while (end > 0 && tnk__charge(run, TNK__COST_ITEM, 1)) {
    if (most-- == 0) {
      add(run, list, text, tnk__blank_prefix(base, end), end);
      break;
    }
    for (p = base + end; p > base; p = next) {
      next = p;
      if (tnk__char_is_blank(tnk__char_prev(&next)))
        break;
    }
    add(run, list, text, (size_t)(p - base), end);
    end = (size_t)(p - base);
    end -= tnk__blank_suffix(base, end);
  }
  reverse(list);
}

static tnk__value_t split_any(tnk__run_t *run, tnk__value_t self,
                              const tnk__value_t *v, int is_back) {
  const tnk__value_t list = tnk__value_list(run->heap);
  tnk__value_t by = v[0];
  int64_t most;

  if (!tnk__arg_whole(run, v[1], -1, &most))
    return tnk__value_undefined();
  if (!tnk__is_given(by) || by.kind == TNK__VALUE_NONE) {
    if (!tnk__charge(run, TNK__COST_SCAN, self.n_text))
      return tnk__value_undefined();
    if (is_back)
      rsplit_blanks(run, list, self, most);
    else
      split_blanks(run, list, self, most);
    return list;
  }
  if (!tnk__arg_text(run, by, NULL, &by))
    return tnk__value_undefined();
  if (by.n_text == 0)
    return tnk__fail(run, TNK_EINVAL, "an empty text separates nothing");
  if (is_back)
    rsplit_text(run, list, self, by, most);
  else
    split_text(run, list, self, by, most);
  return list;
}

METHOD(split) {
  (void)args;
  return split_any(run, self, v, 0);
}

METHOD(rsplit) {
  (void)args;
  return split_any(run, self, v, 1);
}

METHOD(splitlines) {
  (void)args;
  return tnk__text_lines(run, self, tnk__arg_truth(v[0], 0));
}

static tnk__value_t cut_in_three(tnk__run_t *run, tnk__value_t self,
                                 tnk__value_t by, int is_back) {
  const tnk__value_t tuple = tnk__value_tuple(run->heap);
  size_t found;
  size_t n;

  if (!tnk__arg_text(run, by, NULL, &by))
    return tnk__value_undefined();
  if (by.n_text == 0)
    return tnk__fail(run, TNK_EINVAL, "an empty text separates nothing");
  found = is_back ? find_back(run, self, by, self.n_text)
                  : tnk__text_find(run, self, by, 0);
  n = by.n_text;
  if (found == SIZE_MAX) {
    found = is_back ? 0 : self.n_text;
    n = 0;
  }
  add(run, tuple, self, 0, found);
  add(run, tuple, self, found, found + n);
  add(run, tuple, self, found + n, self.n_text);
  return tuple;
}

METHOD(partition) {
  (void)args;
  return cut_in_three(run, self, v[0], 0);
}

METHOD(rpartition) {
  (void)args;
  return cut_in_three(run, self, v[0], 1);
}

/* ---- Searching ---- */

/* Cut a text to the range from start to end. Returns 0 if the range is invalid,
 * even for an empty substring. */
static int cut_range(tnk__run_t *run, tnk__value_t *text, const tnk__value_t *v,
                     size_t *before) {
  int64_t from = 0;
  int64_t to;
  int64_t n;

  *before = 0;
  if (!tnk__is_given(v[0]) && !tnk__is_given(v[1]))
    return 1;
  n = tnk__length(run, *text);
  to = n;

  if (v[0].kind != TNK__VALUE_NONE && !tnk__arg_whole(run, v[0], 0, &from))
    return 0;
  if (v[1].kind != TNK__VALUE_NONE && !tnk__arg_whole(run, v[1], n, &to))
    return 0;
  from = from < 0 ? (from + n < 0 ? 0 : from + n) : from;
  to = to < 0 ? (to + n < 0 ? 0 : to + n) : to > n ? n : to;
  if (from > to)
    return 0;
  if (!tnk__charge(run, 2 * TNK__COST_COUNT, text->n_text))
    return 0;
  *before = tnk__chars_place(text->as.text, text->n_text, (size_t)from);
  *text =
      tnk__text_part(*text, *before,
                     tnk__chars_place(text->as.text, text->n_text, (size_t)to));
  return 1;
}

static int has_end(tnk__run_t *run, tnk__value_t text, tnk__value_t part,
                   int is_front) {
  if (part.n_text > text.n_text ||
      !tnk__charge(run, TNK__COST_COPY, part.n_text))
    return 0;
  text = is_front
             ? tnk__text_part(text, 0, part.n_text)
             : tnk__text_part(text, text.n_text - part.n_text, text.n_text);
  return tnk__value_equal(text, part);
}

static tnk__value_t ends(tnk__run_t *run, tnk__value_t self,
                         const tnk__value_t *v, int is_front) {
  size_t before;
  tnk__value_t one;

  if (v[0].kind != TNK__VALUE_TUPLE && !tnk__arg_text(run, v[0], NULL, &one))
    return tnk__value_undefined();
  if (!cut_range(run, &self, v + 1, &before))
    return tnk__value_bool(0);
  if (v[0].kind != TNK__VALUE_TUPLE)
    return tnk__value_bool(has_end(run, self, v[0], is_front));
  for (size_t i = 0; i < v[0].as.list->n && tnk__charge(run, TNK__COST_ITEM, 1);
       i++) {
    if (!tnk__arg_text(run, v[0].as.list->items[i], NULL, &one))
      return tnk__value_undefined();
    if (has_end(run, self, one, is_front))
      return tnk__value_bool(1);
  }
  return tnk__value_bool(0);
}

METHOD(startswith) {
  (void)args;
  return ends(run, self, v, 1);
}

METHOD(endswith) {
  (void)args;
  return ends(run, self, v, 0);
}

/* The index of the character where a substring is found, or -1. */
static int64_t find_place(tnk__run_t *run, tnk__value_t self,
                          const tnk__value_t *v, int is_back) {
  const tnk__value_t all = self;
  tnk__value_t part;
  size_t before;
  size_t found;

  if (!tnk__arg_text(run, v[0], NULL, &part) ||
      !cut_range(run, &self, v + 1, &before))
    return -1;
  found = is_back ? find_back(run, self, part, self.n_text)
                  : tnk__text_find(run, self, part, 0);
  return found == SIZE_MAX || !tnk__charge(run, TNK__COST_COUNT, before + found)
             ? -1
             : (int64_t)tnk__chars_count(all.as.text, before + found);
}

METHOD(find) {
  (void)args;
  return tnk__value_int(find_place(run, self, v, 0));
}

METHOD(rfind) {
  (void)args;
  return tnk__value_int(find_place(run, self, v, 1));
}

METHOD(index_of) {
  const int64_t place = find_place(run, self, v, 0);

  (void)args;
  return place < 0 ? tnk__fail(run, TNK_EINVAL, "the text has no such part")
                   : tnk__value_int(place);
}

METHOD(last_index_of) {
  const int64_t place = find_place(run, self, v, 1);

  (void)args;
  return place < 0 ? tnk__fail(run, TNK_EINVAL, "the text has no such part")
                   : tnk__value_int(place);
}

METHOD(count) {
  tnk__value_t part;
  int64_t n = 0;
  size_t before;

  (void)args;
  if (!tnk__arg_text(run, v[0], NULL, &part))
    return tnk__value_undefined();
  if (!cut_range(run, &self, v + 1, &before))
    return tnk__value_int(0);
  if (part.n_text == 0)
    return tnk__value_int(tnk__length(run, self) + 1);
  for (size_t at = 0; (at = tnk__text_find(run, self, part, at)) != SIZE_MAX;
       at += part.n_text)
    n++;
  return tnk__value_int(n);
}

const tnk__builtin_t tnk__methods_split[] = {
    {"count", "/sub start end", 1, count},
    {"endswith", "/suffix start end", 1, endswith},
    {"find", "/sub start end", 1, find},
    {"index", "/sub start end", 1, index_of},
    {"partition", "/sep", 1, partition},
    {"rfind", "/sub start end", 1, rfind},
    {"rindex", "/sub start end", 1, last_index_of},
    {"rpartition", "/sep", 1, rpartition},
    {"rsplit", "sep maxsplit", 0, rsplit},
    {"split", "sep maxsplit", 0, split},
    {"splitlines", "keepends", 0, splitlines},
    {"startswith", "/prefix start end", 1, startswith},
    {NULL, NULL, 0, NULL},
};
