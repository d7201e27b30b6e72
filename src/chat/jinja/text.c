/* SPDX-License-Identifier: MIT */
#include "chat/jinja/text.h"

#include <string.h>

#include "chat/jinja/lex/chars.h"
#include "tnk/error.h"

tnk__value_t tnk__text_part(tnk__value_t text, size_t from, size_t to) {
  text.as.text += from;
  text.n_text = (uint32_t)(to - from);
  return text;
}

static int is_in(uint32_t c, tnk__value_t chars) {
  const char *p = chars.as.text;
  const char *end;

  if (chars.kind != TNK__VALUE_TEXT)
    return tnk__char_is_blank(c);
  for (end = p + chars.n_text; p < end;)
    if (tnk__char_next(&p) == c)
      return 1;
  return 0;
}

tnk__value_t tnk__text_strip(tnk__run_t *run, tnk__value_t text,
                             tnk__value_t chars, int ends) {
  const uint64_t price =
      TNK__COST_TRY + (uint64_t)TNK__COST_SCAN *
                          (chars.kind == TNK__VALUE_TEXT ? chars.n_text : 0);
  const char *from = text.as.text;
  const char *to = from + text.n_text;
  const char *next;

  while ((ends & TNK__STRIP_LEFT) && from < to && tnk__charge(run, price, 1)) {
    next = from;
    if (!is_in(tnk__char_next(&next), chars))
      break;
    from = next;
  }
  while ((ends & TNK__STRIP_RIGHT) && from < to && tnk__charge(run, price, 1)) {
    next = to;
    if (!is_in(tnk__char_prev(&next), chars))
      break;
    to = next;
  }
  return tnk__text_part(text, (size_t)(from - text.as.text),
                        (size_t)(to - text.as.text));
}

/* Replace an empty text: insert before every character and at the end. */
static void replace_nothing(tnk__run_t *run, tnk__buf_t *buf, tnk__value_t text,
                            tnk__value_t to, int64_t most) {
  const char *p = text.as.text;
  const char *end = p + text.n_text;
  const char *from = p;

  for (; buf->err == TNK_OK && tnk__charge(run, TNK__COST_TRY, 1); from = p) {
    if (most != 0)
      tnk__put(run, buf, to);
    most -= most > 0;
    if (p == end)
      return;
    tnk__char_next(&p);
    tnk__buf_append(buf, from, (size_t)(p - from));
  }
}

tnk__value_t tnk__text_replace(tnk__run_t *run, tnk__value_t text,
                               tnk__value_t from, tnk__value_t to,
                               int64_t most) {
  const uint8_t is_markup = text.is_markup;
  tnk__buf_t buf;
  size_t at = 0;
  size_t found;

  if (most == 0 ||
      (from.n_text > 0 && tnk__text_find(run, text, from, 0) == SIZE_MAX))
    return text;
  tnk__scratch(run, &buf);
  if (from.n_text == 0) {
    replace_nothing(run, &buf, text, to, most);
  } else {
    for (; most != 0 && buf.err == TNK_OK; most--) {
      found = tnk__text_find(run, text, from, at);
      if (found == SIZE_MAX)
        break;
      tnk__put(run, &buf, tnk__text_part(text, at, found));
      tnk__put(run, &buf, to);
      at = found + from.n_text;
    }
    tnk__put(run, &buf, tnk__text_part(text, at, text.n_text));
  }
  text = tnk__scratch_text(run, &buf);
  text.is_markup = is_markup;
  return text;
}

/* ---- Upper and lower case ---- */

/* Returns whether a capital sigma is at the end of a word. */
static int is_final(tnk__value_t text, const char *from, const char *to) {
  const char *end = text.as.text + text.n_text;
  uint32_t c = 0;
  int is_cased = 0;

  while (from > text.as.text && !is_cased) {
    c = tnk__char_prev(&from);
    if (tnk__char_is(c, TNK__CHAR_IGNORABLE))
      continue;
    if (!tnk__char_is_cased(c))
      return 0;
    is_cased = 1;
  }
  while (is_cased && to < end) {
    c = tnk__char_next(&to);
    if (!tnk__char_is(c, TNK__CHAR_IGNORABLE))
      return !tnk__char_is_cased(c);
  }
  return is_cased;
}

static void put_changed(tnk__run_t *run, tnk__buf_t *buf, tnk__value_t text,
                        const char *from, const char *to, tnk__char_to_t how) {
  const char *p = from;
  const uint32_t c = tnk__char_next(&p);
  uint32_t out[3];
  char bytes[4];
  size_t n = tnk__char_to(c, how, out);

  if (c == 0x3a3 && how == TNK__CASE_LOWER &&
      tnk__charge(run, TNK__COST_SIGMA, 1) && is_final(text, from, to))
    out[0] = 0x3c2;
  for (size_t i = 0; i < n; i++)
    tnk__buf_append(buf, bytes, tnk__char_put(bytes, out[i]));
}

/* The part of a text that a case conversion changes. */
typedef enum { ALL_UPPER, ALL_LOWER, EVERY_WORD, FIRST, SWAPPED } spread_t;

static tnk__char_to_t case_of(spread_t spread, int in_word, uint32_t c) {
  if (spread == SWAPPED)
    return tnk__char_is(c, TNK__CHAR_UPPER) ? TNK__CASE_LOWER : TNK__CASE_UPPER;
  return spread == ALL_UPPER              ? TNK__CASE_UPPER
         : spread == ALL_LOWER || in_word ? TNK__CASE_LOWER
                                          : TNK__CASE_TITLE;
}

static tnk__value_t change_case(tnk__run_t *run, tnk__value_t text,
                                spread_t spread) {
  const uint8_t is_markup = text.is_markup;
  const char *p;
  const char *end;
  const char *from;
  int in_word = 0;
  tnk__buf_t buf;

  if (!tnk__charge(run, TNK__COST_CALL, 1) ||
      !tnk__charge(run, TNK__COST_CASE, text.n_text))
    return tnk__value_undefined();
  p = text.as.text;
  end = p + text.n_text;
  tnk__scratch(run, &buf);
  while (p < end && buf.err == TNK_OK) {
    uint32_t c;

    from = p;
    c = tnk__char_next(&p);
    if (spread == SWAPPED &&
        tnk__char_is(
            c, TNK__CHAR_TITLE)) /* title case is neither upper nor lower */
      tnk__buf_append(&buf, from, (size_t)(p - from));
    else
      put_changed(run, &buf, text, from, p, case_of(spread, in_word, c));
    in_word = spread == FIRST || tnk__char_is_cased(c);
  }
  text = tnk__scratch_text(run, &buf);
  text.is_markup = is_markup;
  return text;
}

tnk__value_t tnk__text_lower(tnk__run_t *run, tnk__value_t text) {
  return change_case(run, text, ALL_LOWER);
}

tnk__value_t tnk__text_upper(tnk__run_t *run, tnk__value_t text) {
  return change_case(run, text, ALL_UPPER);
}

tnk__value_t tnk__text_title(tnk__run_t *run, tnk__value_t text) {
  return change_case(run, text, EVERY_WORD);
}

tnk__value_t tnk__text_capitalize(tnk__run_t *run, tnk__value_t text) {
  return change_case(run, text, FIRST);
}

tnk__value_t tnk__text_swapcase(tnk__run_t *run, tnk__value_t text) {
  return change_case(run, text, SWAPPED);
}

/* ---- Padding, joining, lines ---- */

tnk__value_t tnk__text_pad(tnk__run_t *run, tnk__value_t text, int64_t width,
                           tnk__value_t fill, char where) {
  const int64_t n = tnk__length(run, text);
  const uint8_t is_markup = text.is_markup;
  int64_t left;
  int64_t right;
  tnk__buf_t buf;

  if (tnk__length(run, fill) != 1)
    return tnk__fail(run, TNK_EINVAL, "the fill must be one character");
  if (width <= n)
    return text;
  if ((uint64_t)width > run->env.max_output)
    return tnk__fail(run, TNK_ETOOBIG, "a text becomes too long");
  left = where == '<' ? 0 : width - n;
  /* An odd remainder goes to the left if the width is odd too. */
  if (where == '^')
    left = (width - n) / 2 + ((width - n) & width & 1);
  if (where == 'c') /* in formats it always goes to the right */
    left = (width - n) / 2;
  right = width - n - left;
  if (!tnk__charge(run, TNK__COST_WRITE, (uint64_t)(width - n)))
    return tnk__value_undefined();
  tnk__scratch(run, &buf);
  for (; left > 0; left--)
    tnk__buf_append(&buf, fill.as.text, fill.n_text);
  tnk__buf_append(&buf, text.as.text, text.n_text);
  for (; right > 0; right--)
    tnk__buf_append(&buf, fill.as.text, fill.n_text);
  text = tnk__scratch_text(run, &buf);
  text.is_markup = is_markup;
  return text;
}

tnk__value_t tnk__text_join(tnk__run_t *run, tnk__value_t between,
                            tnk__value_t items, int is_any) {
  tnk__iter_t iter;
  tnk__value_t item;
  tnk__buf_t buf;
  int is_first = 1;

  if (!tnk__iter_begin(run, &iter, items))
    return tnk__value_undefined();
  tnk__scratch(run, &buf);
  while (buf.err == TNK_OK && tnk__iter_next(run, &iter, &item)) {
    if (!is_first)
      tnk__put(run, &buf, between);
    is_first = 0;
    if (!is_any && item.kind != TNK__VALUE_TEXT)
      tnk__bad_type(run, "a text is needed to be joined", item);
    else if (between.is_markup && !is_any)
      item = tnk__escape(run, item);
    tnk__print(run, &buf, item);
  }
  item = tnk__scratch_text(run, &buf);
  item.is_markup = between.is_markup;
  return item;
}

static int is_line_end(uint32_t c) {
  return (c >= 10 && c <= 13) || (c >= 0x1c && c <= 0x1e) || c == 0x85 ||
         c == 0x2028 || c == 0x2029;
}

tnk__value_t tnk__text_lines(tnk__run_t *run, tnk__value_t text, int keeps) {
  const tnk__value_t lines = tnk__value_list(run->heap);
  const char *p = text.as.text;
  const char *end = p + text.n_text;
  const char *from = p;
  const char *at;
  uint32_t c;

  if (!tnk__charge(run, TNK__COST_SCAN, text.n_text))
    return lines;
  while (p < end && run->err == TNK_OK) {
    at = p;
    c = tnk__char_next(&p);
    if (!is_line_end(c))
      continue;
    if (c == '\r' && p < end && *p == '\n')
      p++;
    tnk__charge(run, TNK__COST_ITEM, 1);
    tnk__value_append(
        run->heap, lines,
        tnk__text_part(text, (size_t)(from - text.as.text),
                       (size_t)((keeps ? p : at) - text.as.text)));
    from = p;
  }
  if (from < end)
    tnk__value_append(
        run->heap, lines,
        tnk__text_part(text, (size_t)(from - text.as.text), text.n_text));
  return lines;
}
