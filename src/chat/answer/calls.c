/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "chat/answer/state.h"
#include "lib/base/utf8.h"

/* Shared by the readers of blocks: strings, arguments and their types, and the
 * resulting calls. */

void tnk__call_trim(const char **text, size_t *n) {
  while (*n > 0 && strchr(" \t\r\n", **text) != NULL && **text != '\0')
    (*text)++, (*n)--;
  while (*n > 0 && strchr(" \t\r\n", (*text)[*n - 1]) != NULL &&
         (*text)[*n - 1] != '\0')
    (*n)--;
}

const char *tnk__call_find(const char *text, size_t n, const char *what) {
  size_t n_what = strlen(what);

  while (n >= n_what) {
    const char *at = memchr(text, what[0], n - n_what + 1);

    if (at == NULL)
      return NULL;
    if (memcmp(at, what, n_what) == 0)
      return at;
    n -= (size_t)(at - text) + 1;
    text = at + 1;
  }
  return NULL;
}

int tnk__call_skip(const char **text, size_t *n, const char *what) {
  size_t n_what = strlen(what);

  if (*n < n_what || memcmp(*text, what, n_what) != 0)
    return 0;
  *text += n_what;
  *n -= n_what;
  return 1;
}

int tnk__call_upto(const char **text, size_t *n, const char *what,
                   const char **part, size_t *n_part) {
  const char *at = tnk__call_find(*text, *n, what);

  if (at == NULL)
    return 0;
  *part = *text;
  *n_part = (size_t)(at - *text);
  *n -= *n_part + strlen(what);
  *text = at + strlen(what);
  return 1;
}

tnk__read_t tnk__call_bad(tnk__answer_t *answer, const char *format, ...) {
  va_list args;

  va_start(args, format);
  (void)vsnprintf(answer->why, sizeof(answer->why), format, args);
  va_end(args);
  /* Truncation may have split a character. */
  tnk__utf8_repair(answer->why);
  return TNK__READ_BAD;
}

tnk__read_t tnk__call_open(tnk__answer_t *answer) {
  (void)tnk__call_bad(answer, "it ends inside of a text");
  return TNK__READ_OPEN;
}

int tnk__call_json_is_open(const char *text, size_t n) {
  int is_open = 0;

  for (size_t i = 0; i < n; i++)
    if (is_open && text[i] == '\\')
      i++;
    else if (text[i] == '"')
      is_open = !is_open;
  return is_open;
}

void tnk__call_add(tnk__answer_t *answer, const char *name, size_t n_name,
                   const char *id, size_t n_id, tnk__value_t arguments) {
  tnk__heap_t *heap = &answer->heap;
  tnk__value_t call = tnk__value_dict(heap), function = tnk__value_dict(heap);
  char number[32];

  if (heap->err != TNK_OK)
    return;
  if (id != NULL) {
    tnk__value_set(heap, call, "id", tnk__value_copy_text(heap, id, n_id));
  } else {
    tnk__buf_t *buf = &answer->scratch;

    (void)snprintf(number, sizeof(number), "%05zu",
                   answer->next_id + answer->found.as.list->n);
    tnk__buf_clear(buf);
    (void)tnk__buf_text(buf, answer->id_prefix);
    if (tnk__buf_text(buf, number) != TNK_OK) {
      answer->err = buf->err;
      return;
    }
    tnk__value_set(
        heap, call, "id",
        tnk__value_copy_text(heap, (const char *)buf->data, buf->len));
  }
  tnk__value_set(heap, call, "type", tnk__value_text("function", 8));
  tnk__value_set(heap, function, "name",
                 tnk__value_copy_text(heap, name, n_name));
  tnk__value_set(heap, function, "arguments", arguments);
  tnk__value_set(heap, call, "function", function);
  tnk__value_append(heap, answer->found, call);
}

tnk__read_t tnk__call_arguments(tnk__answer_t *answer, const char *text,
                                size_t n, tnk__value_t *out) {
  tnk__heap_t *heap = &answer->heap;
  int err;

  tnk__call_trim(&text, &n);
  if (n == 0) {
    *out = tnk__value_dict(heap);
    return TNK__READ_CALLS;
  }
  err = tnk__value_from_json(heap, text, n, out);
  /* Some models write the object as a JSON string. */
  if (err == TNK_OK && out->kind == TNK__VALUE_TEXT)
    err = tnk__value_from_json(heap, out->as.text, out->n_text, out);
  if (err != TNK_OK && tnk__call_json_is_open(text, n))
    return tnk__call_open(answer);
  if (err != TNK_OK)
    return tnk__call_bad(answer, "the arguments are no JSON");
  if (out->kind != TNK__VALUE_DICT)
    return tnk__call_bad(answer, "the arguments are no object");
  return TNK__READ_CALLS;
}

/* Find the function of a tool by its name. */
static tnk__value_t find_tool(const tnk__answer_t *answer, const char *name,
                              size_t n_name) {
  tnk__value_t tools = answer->tools;

  if (tools.kind != TNK__VALUE_LIST)
    return tnk__value_undefined();
  for (size_t i = 0; i < tools.as.list->n; i++) {
    tnk__value_t function = tnk__value_get(tools.as.list->items[i], "function");
    tnk__value_t its = tnk__value_get(function, "name");

    if (its.kind == TNK__VALUE_TEXT && its.n_text == n_name &&
        memcmp(its.as.text, name, n_name) == 0)
      return function;
  }
  return tnk__value_undefined();
}

int tnk__call_is_known(const tnk__answer_t *answer, const char *name,
                       size_t n_name) {
  return answer->tools.kind != TNK__VALUE_LIST ||
         answer->tools.as.list->n == 0 ||
         find_tool(answer, name, n_name).kind == TNK__VALUE_DICT;
}

/* Types of JSON schema, as bits. 0: unknown. */
enum {
  IS_STRING = 1,
  IS_NUMBER = 2,
  IS_BOOLEAN = 4,
  IS_NULL = 8,
  IS_ARRAY = 16,
  IS_OBJECT = 32,
  MAX_DEPTH = 8 /* maximum nesting of a schema */
};

static unsigned type_named(tnk__value_t name) {
  static const struct {
    const char *name;
    unsigned type;
  } types[] = {{"string", IS_STRING},  {"number", IS_NUMBER},
               {"integer", IS_NUMBER}, {"boolean", IS_BOOLEAN},
               {"null", IS_NULL},      {"array", IS_ARRAY},
               {"object", IS_OBJECT}};

  for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
    if (tnk__value_is(name, types[i].name))
      return types[i].type;
  return 0;
}

static unsigned type_of(tnk__value_t value) {
  switch (value.kind) {
  case TNK__VALUE_TEXT:
    return IS_STRING;
  case TNK__VALUE_INT:
  case TNK__VALUE_FLOAT:
    return IS_NUMBER;
  case TNK__VALUE_BOOL:
    return IS_BOOLEAN;
  case TNK__VALUE_NONE:
    return IS_NULL;
  case TNK__VALUE_LIST:
    return IS_ARRAY;
  default:
    return IS_OBJECT;
  }
}

/* The types that a schema allows, as far as its simple keywords say so. */
static unsigned types_of(tnk__value_t schema, unsigned depth) {
  static const char *const ways[] = {"anyOf", "oneOf"};
  tnk__value_t type = tnk__value_get(schema, "type");
  tnk__value_t values = tnk__value_get(schema, "enum");
  unsigned types = type_named(type);

  if (depth > MAX_DEPTH)
    return 0;
  if (type.kind == TNK__VALUE_LIST)
    for (size_t i = 0; i < type.as.list->n; i++)
      types |= type_named(type.as.list->items[i]);
  for (size_t i = 0; types == 0 && i < 2; i++) {
    tnk__value_t any = tnk__value_get(schema, ways[i]);

    if (any.kind == TNK__VALUE_LIST)
      for (size_t k = 0; k < any.as.list->n; k++)
        types |= types_of(any.as.list->items[k], depth + 1);
  }
  if (types == 0 && values.kind == TNK__VALUE_LIST)
    for (size_t i = 0; i < values.as.list->n; i++)
      types |= type_of(values.as.list->items[i]);
  return types;
}

static int is_text(const char *text, size_t n, const char *what) {
  return n == strlen(what) && memcmp(text, what, n) == 0;
}

tnk__value_t tnk__call_typed(tnk__answer_t *answer, const char *tool,
                             size_t n_tool, const char *key, size_t n_key,
                             const char *text, size_t n) {
  tnk__heap_t *heap = &answer->heap;
  tnk__value_t schema = tnk__value_get(
      tnk__value_get(find_tool(answer, tool, n_tool), "parameters"),
      "properties");
  unsigned types =
      types_of(tnk__value_find(schema, tnk__value_text(key, n_key)), 0);
  tnk__value_t value;

  if (types != IS_STRING &&
      tnk__value_from_json(heap, text, n, &value) == TNK_OK &&
      (types == 0 || (types & type_of(value) & ~(unsigned)IS_STRING)))
    return value;
  /* Templates write these values as Python does. */
  if (types & IS_NULL && is_text(text, n, "None"))
    return tnk__value_none();
  if (types & IS_BOOLEAN && is_text(text, n, "True"))
    return tnk__value_bool(1);
  if (types & IS_BOOLEAN && is_text(text, n, "False"))
    return tnk__value_bool(0);
  return tnk__value_copy_text(heap, text, n);
}
