/* SPDX-License-Identifier: MIT */
/* str() and repr() of values, as in Python. */
#include <string.h>

#include "chat/jinja/lex/chars.h"
#include "chat/jinja/run.h"
#include "lib/wire/format/number_text.h"
#include "tnk/error.h"

void tnk__scratch(tnk__run_t *run, tnk__buf_t *buf) {
  const uint64_t payable =
      (run->env.max_work - run->n_work) / (TNK__COST_COPY + TNK__COST_MEMORY);

  tnk__buf_init(buf, run->out->alloc,
                payable < run->env.max_output ? (size_t)payable
                                              : run->env.max_output);
}

tnk__value_t tnk__scratch_text(tnk__run_t *run, tnk__buf_t *buf) {
  tnk__value_t text = tnk__value_undefined();

  if (buf->err == TNK_ETOOBIG && buf->max < run->env.max_output)
    tnk__is_too_much(run);
  else if (buf->err != TNK_OK)
    tnk__fail(run, buf->err, "a text becomes too long");
  else if (tnk__charge(run, TNK__COST_COPY + TNK__COST_MEMORY, buf->len))
    text = tnk__value_copy_text(run->heap, (const char *)buf->data, buf->len);
  tnk__buf_deinit(buf);
  return text;
}

/* Write a character as \\xXX, \\uXXXX or \\UXXXXXXXX. It is written by hand for
 * speed, as texts may consist of such characters. */
static void repr_code(tnk__buf_t *out, uint32_t c) {
  static const char digits[] = "0123456789abcdef";
  int n = c < 0x100 ? 2 : c < 0x10000 ? 4 : 8;

  tnk__buf_byte(out, '\\');
  tnk__buf_byte(out, n == 2 ? 'x' : n == 4 ? 'u' : 'U');
  while (n-- > 0)
    tnk__buf_byte(out, (uint8_t)digits[c >> 4 * n & 15]);
}

static void repr_char(tnk__buf_t *out, const char *from, const char *to,
                      uint32_t c, char quote) {
  if (c == '\\' || c == (uint32_t)(unsigned char)quote) {
    tnk__buf_byte(out, '\\');
    tnk__buf_byte(out, (uint8_t)c);
  } else if (c == '\n' || c == '\r' || c == '\t') {
    tnk__buf_text(out, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
  } else if (c < 0x20 || c == 0x7f) {
    repr_code(out, c);
  } else if (c < 0x7f || !tnk__char_is(c, TNK__CHAR_HIDDEN)) {
    tnk__buf_append(out, from, (size_t)(to - from));
  } else {
    repr_code(out, c);
  }
}

static void repr_text(tnk__buf_t *out, tnk__value_t text) {
  const char *p = text.as.text;
  const char *end = p + text.n_text;
  const int has_single =
      text.n_text > 0 && memchr(p, '\'', text.n_text) != NULL;
  const int has_double = text.n_text > 0 && memchr(p, '"', text.n_text) != NULL;
  const char quote = has_single && !has_double ? '"' : '\'';
  const char *from;
  uint32_t c;

  if (text.is_markup)
    tnk__buf_text(out, "Markup(");
  tnk__buf_byte(out, (uint8_t)quote);
  while (p < end) {
    from = p;
    c = tnk__char_next(&p);
    repr_char(out, from, p, c, quote);
  }
  tnk__buf_byte(out, (uint8_t)quote);
  if (text.is_markup)
    tnk__buf_byte(out, ')');
}

static void print_depth(tnk__run_t *run, tnk__buf_t *out, tnk__value_t value,
                        int depth);

static void print_items(tnk__run_t *run, tnk__buf_t *out,
                        const tnk__value_list_t *list, int depth) {
  for (size_t i = 0; i < list->n && run->err == TNK_OK; i++) {
    if (i > 0)
      tnk__buf_text(out, ", ");
    print_depth(run, out, list->items[i], depth + 1);
  }
}

void tnk__print_members(tnk__run_t *run, tnk__buf_t *out,
                        const tnk__value_dict_t *dict, int depth) {
  tnk__buf_byte(out, '{');
  for (size_t i = 0; i < dict->n && run->err == TNK_OK; i++) {
    if (i > 0)
      tnk__buf_text(out, ", ");
    print_depth(run, out, dict->entries[i].key, depth + 1);
    tnk__buf_text(out, ": ");
    print_depth(run, out, dict->entries[i].value, depth + 1);
  }
  tnk__buf_byte(out, '}');
}

static void print_view(tnk__run_t *run, tnk__buf_t *out,
                       const tnk__view_t *view, int depth) {
  const tnk__value_t of =
      tnk__object(TNK__OBJECT_VIEW, (void *)(uintptr_t)(const void *)view);

  tnk__buf_text(out, view->kind == 'i'   ? "dict_items("
                     : view->kind == 'k' ? "dict_keys("
                                         : "dict_values(");
  print_depth(run, out, tnk__list_of(run, of), depth + 1);
  tnk__buf_byte(out, ')');
}

static void print_range(tnk__buf_t *out, const tnk__range_t *range) {
  if (range->step == 1)
    tnk__buf_printf(out, "range(%lld, %lld)", (long long)range->start,
                    (long long)range->stop);
  else
    tnk__buf_printf(out, "range(%lld, %lld, %lld)", (long long)range->start,
                    (long long)range->stop, (long long)range->step);
}

static void print_object(tnk__run_t *run, tnk__buf_t *out, tnk__value_t value,
                         int depth) {
  const tnk__class_t *class = tnk__class_of(run, value);

  if (tnk__is_object(value, TNK__OBJECT_VIEW))
    print_view(run, out, value.as.object, depth);
  else if (tnk__is_object(value, TNK__OBJECT_RANGE))
    print_range(out, value.as.object);
  else if (class->print != NULL)
    class->print(run, out, value, depth);
  else
    tnk__fail(run, TNK_EUNSUPPORTED, "a %s has no text", class->name);
}

/* repr(). */
static void print_depth(tnk__run_t *run, tnk__buf_t *out, tnk__value_t value,
                        int depth) {
  char number[TNK__VALUE_NUMBER];

  if (depth > TNK__VALUE_DEPTH || tnk__stack_is_used_up(&run->stack))
    tnk__fail(run, TNK_ETOOBIG, "a value is nested too deep to be printed");
  if (!tnk__charge(run, TNK__COST_PRINT, 1))
    return;
  switch (value.kind) {
  case TNK__VALUE_UNDEFINED:
    tnk__buf_text(out, "Undefined");
    return;
  case TNK__VALUE_NONE:
    tnk__buf_text(out, "None");
    return;
  case TNK__VALUE_BOOL:
    tnk__buf_text(out, value.as.is_true ? "True" : "False");
    return;
  case TNK__VALUE_INT:
    tnk__buf_append(out, number, tnk__int_text(number, value.as.number));
    return;
  case TNK__VALUE_FLOAT:
    if (tnk__charge(run, TNK__COST_FLOAT, 1))
      tnk__buf_append(out, number,
                      tnk__value_float_text(number, value.as.real));
    return;
  case TNK__VALUE_TEXT:
    if (tnk__charge(run, TNK__COST_ESCAPE, value.n_text))
      repr_text(out, value);
    return;
  case TNK__VALUE_LIST:
    tnk__buf_byte(out, '[');
    print_items(run, out, value.as.list, depth);
    tnk__buf_byte(out, ']');
    return;
  case TNK__VALUE_TUPLE:
    tnk__buf_byte(out, '(');
    print_items(run, out, value.as.list, depth);
    tnk__buf_text(out, value.as.list->n == 1 ? ",)" : ")");
    return;
  case TNK__VALUE_DICT:
    tnk__print_members(run, out, value.as.dict, depth);
    return;
  default:
    print_object(run, out, value, depth);
  }
}

void tnk__print_repr(tnk__run_t *run, tnk__buf_t *out, tnk__value_t value) {
  print_depth(run, out, value, 0);
}

void tnk__put(tnk__run_t *run, tnk__buf_t *out, tnk__value_t text) {
  if (tnk__charge(run, TNK__COST_PRINT, 1) &&
      tnk__charge(run, TNK__COST_COPY, text.n_text))
    tnk__buf_append(out, text.as.text, text.n_text);
}

void tnk__print(tnk__run_t *run, tnk__buf_t *out, tnk__value_t value) {
  if (run->err != TNK_OK)
    return;
  if (value.kind == TNK__VALUE_TEXT)
    tnk__put(run, out, value);
  else if (value.kind != TNK__VALUE_UNDEFINED)
    print_depth(run, out, value, 0);
}

tnk__value_t tnk__text_of(tnk__run_t *run, tnk__value_t value) {
  tnk__buf_t buf;

  if (value.kind == TNK__VALUE_TEXT)
    return value;
  tnk__scratch(run, &buf);
  tnk__print(run, &buf, value);
  return tnk__scratch_text(run, &buf);
}

tnk__value_t tnk__escape(tnk__run_t *run, tnk__value_t text) {
  static const char from[] = "&<>'\"";
  static const char *const to[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
  const char *known;
  tnk__buf_t buf;

  text = tnk__text_of(run, text);
  if (text.is_markup || text.kind != TNK__VALUE_TEXT)
    return text;
  if (!tnk__charge(run, TNK__COST_ESCAPE, text.n_text))
    return tnk__value_undefined();
  tnk__scratch(run, &buf);
  for (uint32_t i = 0; i < text.n_text; i++) {
    known = text.as.text[i] == '\0'
                ? NULL
                : memchr(from, text.as.text[i], sizeof(from) - 1);
    if (known != NULL)
      tnk__buf_text(&buf, to[known - from]);
    else
      tnk__buf_byte(&buf, (uint8_t)text.as.text[i]);
  }
  text = tnk__scratch_text(run, &buf);
  text.is_markup = 1;
  return text;
}
