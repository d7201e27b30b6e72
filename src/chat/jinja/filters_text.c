/* SPDX-License-Identifier: MIT */
/* Filters that return a text. */
#include <string.h>

#include "chat/jinja/lex/chars.h"
#include "chat/jinja/text.h"
#include "tnk/error.h"

#define FILTER(name)                                                           \
  static tnk__value_t name(tnk__run_t *run, tnk__value_t self,                 \
                           const tnk__value_t *v, const tnk__args_t *args)

FILTER(string) {
  (void)v, (void)args;
  return tnk__text_of(run, self);
}

FILTER(lower) {
  (void)v, (void)args;
  return tnk__text_lower(run, tnk__text_of(run, self));
}

FILTER(upper) {
  (void)v, (void)args;
  return tnk__text_upper(run, tnk__text_of(run, self));
}

FILTER(capitalize) {
  (void)v, (void)args;
  return tnk__text_capitalize(run, tnk__text_of(run, self));
}

FILTER(escape) {
  (void)v, (void)args;
  return tnk__escape(run, self);
}

FILTER(forceescape) {
  (void)v, (void)args;
  self.is_markup = 0;
  return tnk__escape(run, self);
}

FILTER(safe) {
  (void)v, (void)args;
  self = tnk__text_of(run, self);
  self.is_markup = 1;
  return self;
}

FILTER(trim) {
  (void)args;
  if (tnk__is_given(v[0]) && v[0].kind != TNK__VALUE_NONE &&
      v[0].kind != TNK__VALUE_TEXT)
    return tnk__bad_type(run, "characters to trim must be a text", v[0]);
  self = tnk__text_of(run, self);
  if (run->err != TNK_OK)
    return tnk__value_undefined();
  return tnk__text_strip(run, self, v[0], TNK__STRIP_LEFT | TNK__STRIP_RIGHT);
}

FILTER(replace) {
  const tnk__value_t from = tnk__text_of(run, v[0]);
  const tnk__value_t to = tnk__text_of(run, v[1]);
  int64_t most = -1;

  (void)args;
  self = tnk__text_of(run, self);
  if (run->err != TNK_OK ||
      (v[2].kind != TNK__VALUE_NONE && !tnk__arg_whole(run, v[2], -1, &most)))
    return tnk__value_undefined();
  self.is_markup = 0;
  return tnk__text_replace(run, self, from, to, most);
}

FILTER(center) {
  int64_t width;

  (void)args;
  self = tnk__text_of(run, self);
  if (run->err != TNK_OK || !tnk__arg_whole(run, v[0], 80, &width))
    return tnk__value_undefined();
  return tnk__text_pad(run, self, width, tnk__value_text(" ", 1), '^');
}

FILTER(format) {
  const tnk__value_t tuple = tnk__value_tuple(run->heap);
  const tnk__value_t dict = tnk__value_dict(run->heap);

  (void)v;
  if (args->n > 0 && args->n_named > 0)
    return tnk__fail(run, TNK_EINVAL,
                     "a format has arguments with names, or without");
  for (size_t i = 0; i < args->n; i++)
    tnk__value_append(run->heap, tuple, args->items[i]);
  for (size_t i = 0; i < args->n_named; i++)
    tnk__value_put(run->heap, dict, args->names[i], args->values[i]);
  self = tnk__text_of(run, self);
  if (!tnk__is_fine(run))
    return tnk__value_undefined();
  return tnk__percent(run, self, args->n_named > 0 ? dict : tuple);
}

/* Words start after white space and opening brackets. */
FILTER(title) {
  const char *p;
  const char *end;
  const char *from;
  const char *next;
  tnk__buf_t buf;
  int is_first = 1;
  uint8_t is_markup;

  (void)v, (void)args;
  self = tnk__text_of(run, self);
  if (run->err != TNK_OK || !tnk__charge(run, TNK__COST_WRITE, self.n_text))
    return tnk__value_undefined();
  is_markup = 0;
  p = self.as.text;
  end = p + self.n_text;
  tnk__scratch(run, &buf);
  while (p < end && tnk__is_fine(run)) {
    uint32_t c;
    tnk__value_t part;

    from = p;
    c = tnk__char_next(&p);
    if (tnk__char_is_blank(c) ||
        (c < 0x80 && strchr("-({[<", (int)c) != NULL && c != 0)) {
      tnk__buf_append(&buf, from, (size_t)(p - from));
      is_first = 1;
      continue;
    }
    while (!is_first && p < end) {
      next = p;
      c = tnk__char_next(&next);
      if (tnk__char_is_blank(c) ||
          (c < 0x80 && strchr("-({[<", (int)c) != NULL && c != 0))
        break;
      p = next;
    }
    part = tnk__value_text(from, (size_t)(p - from));
    tnk__print(run, &buf,
               is_first ? tnk__text_upper(run, part)
                        : tnk__text_lower(run, part));
    is_first = 0;
  }
  self = tnk__scratch_text(run, &buf);
  self.is_markup = is_markup;
  return self;
}

FILTER(indent) {
  const int with_first = tnk__arg_truth(v[1], 0);
  const int with_blank = tnk__arg_truth(v[2], 0);
  tnk__value_t by = v[0];
  tnk__value_t lines;
  tnk__value_t line;
  tnk__buf_t buf;
  int64_t width;
  int ends_open;

  (void)args;
  if (self.kind != TNK__VALUE_TEXT)
    return tnk__bad_type(run, "a text is needed to be indented", self);
  if (by.kind != TNK__VALUE_TEXT) {
    if (!tnk__arg_whole(run, v[0], 4, &width))
      return tnk__value_undefined();
    by = tnk__binary(run, TNK__OP_MUL, tnk__value_text(" ", 1),
                     tnk__value_int(width));
  }
  lines = tnk__text_lines(run, self, 0);
  /* The reference appends a newline first, so that a trailing newline is
   * kept. */
  line = tnk__text_lines(run, self, 1);
  if (!tnk__is_fine(run))
    return tnk__value_undefined();
  ends_open = self.n_text == 0 ||
              (lines.as.list->n > 0 &&
               lines.as.list->items[lines.as.list->n - 1].n_text !=
                   line.as.list->items[line.as.list->n - 1].n_text &&
               self.as.text[self.n_text - 1] != '\r');
  if (ends_open)
    tnk__value_append(run->heap, lines, tnk__value_text("", 0));
  tnk__scratch(run, &buf);
  for (size_t i = 0; tnk__is_fine(run) && i < lines.as.list->n; i++) {
    line = lines.as.list->items[i];
    if (i > 0)
      tnk__buf_byte(&buf, '\n');
    if (i == 0 ? with_first : with_blank || line.n_text > 0)
      tnk__print(run, &buf, by);
    tnk__print(run, &buf, line);
  }
  line = tnk__scratch_text(run, &buf);
  line.is_markup = self.is_markup;
  return line;
}

FILTER(truncate) {
  const int kills = tnk__arg_truth(v[1], 0);
  tnk__value_t end;
  tnk__value_t cut;
  int64_t length;
  int64_t leeway;
  int64_t n_end;
  size_t at;

  (void)args;
  if (tnk__length(run, self) < 0)
    return tnk__bad_type(run, "a text is needed to be cut", self);
  if (!tnk__arg_whole(run, v[0], 255, &length) ||
      !tnk__arg_text(run, v[2], "...", &end))
    return tnk__value_undefined();
  leeway = 5;
  if (v[3].kind != TNK__VALUE_NONE && !tnk__arg_whole(run, v[3], 5, &leeway))
    return tnk__value_undefined();
  n_end = tnk__length(run, end);
  if (length < n_end || leeway < 0)
    return tnk__fail(run, TNK_EINVAL, "the length to cut to is too small");
  if (tnk__length(run, self) - leeway <= length)
    return self;
  if (self.kind != TNK__VALUE_TEXT)
    return tnk__bad_type(run, "a text is needed to be cut", self);
  if (!tnk__charge(run, 2 * TNK__COST_COUNT, self.n_text))
    return tnk__value_undefined();
  cut = tnk__text_part(
      self, 0,
      tnk__chars_place(self.as.text, self.n_text, (size_t)(length - n_end)));
  if (!kills)
    for (at = cut.n_text; at-- > 0;)
      if (cut.as.text[at] == ' ') {
        cut.n_text = (uint32_t)at;
        break;
      }
  return tnk__add_texts(run, cut, end);
}

FILTER(join) {
  tnk__value_t between =
      tnk__text_of(run, tnk__is_given(v[0]) ? v[0] : tnk__value_text("", 0));

  (void)args;
  if (tnk__is_given(v[1]) && v[1].kind != TNK__VALUE_NONE)
    self = tnk__pick_all(run, self, v[1]);
  if (run->err != TNK_OK)
    return tnk__value_undefined();
  between.is_markup = 0;
  return tnk__text_join(run, between, self, 1);
}

FILTER(wordcount) {
  const char *p;
  const char *end;
  int64_t n = 0;
  int in_word = 0;

  (void)v, (void)args;
  self = tnk__text_of(run, self);
  if (run->err != TNK_OK || !tnk__charge(run, TNK__COST_CLASSIFY, self.n_text))
    return tnk__value_undefined();
  p = self.as.text;
  for (end = p + self.n_text; p < end;) {
    const uint32_t c = tnk__char_next(&p);
    const int is_word = c == '_' || tnk__char_is(c, TNK__CHAR_ALPHA) ||
                        tnk__char_is(c, TNK__CHAR_DECIMAL) ||
                        tnk__char_is(c, TNK__CHAR_DIGIT) ||
                        tnk__char_is(c, TNK__CHAR_NUMERIC);

    n += is_word && !in_word;
    in_word = is_word;
  }
  return tnk__value_int(n);
}

/* Copy a text as a C string. NULL: out of memory. */
static const char *copy_cstr(tnk__run_t *run, tnk__value_t text) {
  char *copy = tnk__charge(run, TNK__COST_COPY, text.n_text)
                   ? tnk__heap_alloc(run->heap, (size_t)text.n_text + 1)
                   : NULL;

  if (copy == NULL)
    return NULL;
  if (text.n_text > 0)
    memcpy(copy, text.as.text, text.n_text);
  copy[text.n_text] = '\0';
  return copy;
}

/* Get the separators "," and ": " of json.dumps(). */
static const char *separator(tnk__run_t *run, tnk__value_t separators,
                             size_t i) {
  if (!tnk__is_given(separators) || separators.kind == TNK__VALUE_NONE)
    return NULL;
  if ((separators.kind != TNK__VALUE_LIST &&
       separators.kind != TNK__VALUE_TUPLE) ||
      separators.as.list->n != 2 ||
      separators.as.list->items[i].kind != TNK__VALUE_TEXT) {
    tnk__fail(run, TNK_EINVAL, "\"separators\" needs two texts");
    return NULL;
  }
  return copy_cstr(run, separators.as.list->items[i]);
}

/* Cost of writing a byte as JSON, as a multiple of TNK__COST_COPY. */
enum { WRITES = TNK__COST_ESCAPE / TNK__COST_COPY };

FILTER(tojson) {
  const tnk__value_t indent = v[1];
  tnk__value_json_t how = {.is_ascii = tnk__arg_truth(v[0], 0),
                           .is_sorted = tnk__arg_truth(v[3], 0),
                           .has_wide = 1};
  tnk__buf_t buf;
  int64_t width;
  int err;

  (void)args;
  how.between = separator(run, v[2], 0);
  how.behind_key = separator(run, v[2], 1);
  if (indent.kind == TNK__VALUE_TEXT) {
    how.indent = 1;
    how.indent_text = copy_cstr(run, indent);
  } else if (tnk__is_given(indent) && indent.kind != TNK__VALUE_NONE) {
    if (!tnk__arg_whole(run, indent, 0, &width))
      return tnk__value_undefined();
    how.indent = width <= 0 ? -1 : width > 1000 ? 1000 : (int)width;
  }
  if (!tnk__is_fine(run) || tnk__refuse_undefined(run, self))
    return tnk__value_undefined();
  if (!tnk__charge_value(run, self, WRITES) ||
      (how.is_sorted && !tnk__charge_value(run, self, TNK__COST_SORT)))
    return tnk__value_undefined();
  tnk__scratch(run, &buf);
  err = tnk__value_to_json(&buf, self, &how);
  if (err == TNK_EINVAL)
    tnk__fail(run, err, "the value cannot be written as JSON");
  else if (err == TNK_ENOMEM)
    tnk__fail(run, err, "no memory is left");
  return tnk__scratch_text(run, &buf);
}

const tnk__builtin_t tnk__filters_text[] = {
    {"tojson", "ensure_ascii indent separators sort_keys", 0, tojson},
    {"trim", "chars", 0, trim},
    {"string", "", 0, string},
    {"join", "d attribute", 0, join},
    {"replace", "old new count", 2, replace},
    {"lower", "", 0, lower},
    {"upper", "", 0, upper},
    {"capitalize", "", 0, capitalize},
    {"title", "", 0, title},
    {"indent", "width first blank", 0, indent},
    {"safe", "", 0, safe},
    {"escape", "", 0, escape},
    {"e", "", 0, escape},
    {"forceescape", "", 0, forceescape},
    {"center", "width", 0, center},
    {"format", NULL, 0, format},
    {"truncate", "length killwords end leeway", 0, truncate},
    {"wordcount", "", 0, wordcount},
    {NULL, NULL, 0, NULL},
};
