/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "chat/message/shapes.h"
#include "lib/base/text.h"

/* Positions, members, strings and parts, shared by all formats. */

static void print_place(tnk__text_t *text, const tnk__place_t *place) {
  if (place == NULL)
    return;
  print_place(text, place->up);
  if (place->name == NULL)
    tnk__text_printf(text, "[%zu]", place->index);
  else
    tnk__text_printf(text, "%s%.64s", text->len > 0 ? "." : "", place->name);
}

int tnk__io_fail(tnk__io_t *io, const tnk__place_t *place, int code,
                 const char *format, ...) {
  char where[128], what[200];
  tnk__text_t text;
  va_list args;

  tnk__text_init(&text, where, sizeof(where));
  print_place(&text, place);
  va_start(args, format);
  (void)vsnprintf(what, sizeof(what), format, args);
  va_end(args);
  return tnk__why(io->why, code, 0, "%s%s%s", where, text.len > 0 ? ": " : "",
                  what);
}

int tnk__io_text(tnk__io_t *io, const tnk__place_t *place, tnk__value_t dict,
                 const char *name, tnk__value_t *out) {
  tnk__place_t here = {place, name, 0};

  *out = tnk__value_get(dict, name);
  if (out->kind == TNK__VALUE_NONE)
    *out = tnk__value_undefined();
  if (out->kind != TNK__VALUE_UNDEFINED && out->kind != TNK__VALUE_TEXT)
    return tnk__io_fail(io, &here, TNK_EINVAL, "this is no text");
  return TNK_OK;
}

int tnk__io_need(tnk__io_t *io, const tnk__place_t *place, tnk__value_t dict,
                 const char *name, tnk__value_t *out) {
  int err = tnk__io_text(io, place, dict, name, out);

  if (err == TNK_OK && out->kind == TNK__VALUE_UNDEFINED)
    err = tnk__io_fail(io, place, TNK_EINVAL, "the member \"%s\" is missing",
                       name);
  return err;
}

int tnk__io_type(tnk__io_t *io, const tnk__place_t *place, tnk__value_t dict,
                 tnk__value_t *type) {
  if (dict.kind != TNK__VALUE_DICT)
    return tnk__io_fail(io, place, TNK_EINVAL, "this is no object");
  return tnk__io_need(io, place, dict, "type", type);
}

int tnk__io_no_type(tnk__io_t *io, const tnk__place_t *place,
                    tnk__value_t type) {
  int n = type.n_text < 64 ? (int)type.n_text : 64;

  return tnk__io_fail(io, place, TNK_EUNSUPPORTED,
                      "the type \"%.*s\" is not supported", n, type.as.text);
}

int tnk__io_list(tnk__io_t *io, const tnk__place_t *place, tnk__value_t value) {
  if (value.kind != TNK__VALUE_LIST)
    return tnk__io_fail(io, place, TNK_EINVAL, "this is no list");
  for (size_t i = 0; i < value.as.list->n; i++) {
    tnk__place_t here = {place, NULL, i};

    if (value.as.list->items[i].kind != TNK__VALUE_DICT)
      return tnk__io_fail(io, &here, TNK_EINVAL, "this is no object");
  }
  return TNK_OK;
}

tnk__value_t tnk__io_word(const char *word) {
  return tnk__value_text(word, strlen(word));
}

void tnk__io_set(tnk__io_t *io, tnk__value_t dict, const char *name,
                 tnk__value_t value) {
  tnk__value_set(io->heap, dict, name, value);
}

tnk__value_t tnk__io_typed(tnk__io_t *io, const char *word) {
  tnk__value_t dict = tnk__value_dict(io->heap);

  tnk__io_set(io, dict, "type", tnk__io_word(word));
  return dict;
}

tnk__value_t tnk__io_message(tnk__io_t *io, const char *role) {
  tnk__value_t dict = tnk__value_dict(io->heap);

  tnk__io_set(io, dict, "role", tnk__io_word(role));
  return dict;
}

tnk__value_t tnk__io_join(tnk__io_t *io, tnk__value_t a, const char *between,
                          tnk__value_t b) {
  size_t n_between = strlen(between), n_a, n_b;
  char *text;

  if (b.kind != TNK__VALUE_TEXT || b.n_text == 0)
    return a.kind == TNK__VALUE_TEXT ? a : tnk__io_word("");
  if (a.kind != TNK__VALUE_TEXT || a.n_text == 0)
    return b;
  n_a = a.n_text;
  n_b = b.n_text;
  text = tnk__heap_alloc(io->heap, n_a + n_between + n_b);
  if (text == NULL)
    return tnk__io_word("");
  memcpy(text, a.as.text, n_a);
  memcpy(text + n_a, between, n_between);
  memcpy(text + n_a + n_between, b.as.text, n_b);
  return tnk__value_text(text, n_a + n_between + n_b);
}

int tnk__io_to_json(tnk__io_t *io, const tnk__place_t *place,
                    tnk__value_t value, tnk__value_t *text) {
  tnk__buf_t buf;
  int err;

  tnk__buf_init(&buf, io->heap->arena.alloc, io->heap->arena.max);
  err = tnk__value_to_json(&buf, value, NULL);
  *text = err == TNK_OK
              ? tnk__value_copy_text(io->heap, (char *)buf.data, buf.len)
              : tnk__value_undefined();
  tnk__buf_deinit(&buf);
  if (err == TNK_EINVAL)
    return tnk__io_fail(io, place, err, "the arguments are no JSON");
  /* Record the error in the heap, as some callers ignore the result. */
  if (err != TNK_OK && io->heap->err == TNK_OK)
    io->heap->err = err;
  return io->heap->err;
}

tnk__value_t tnk__io_call(tnk__io_t *io, tnk__value_t id, tnk__value_t name,
                          tnk__value_t arguments) {
  tnk__value_t call = tnk__value_dict(io->heap);
  tnk__value_t function = tnk__value_dict(io->heap), read;

  if (arguments.kind == TNK__VALUE_TEXT) {
    if (arguments.n_text == 0)
      arguments = tnk__value_dict(io->heap);
    else if (tnk__value_from_json(io->heap, arguments.as.text, arguments.n_text,
                                  &read) == TNK_OK &&
             read.kind == TNK__VALUE_DICT)
      arguments = read;
  }
  if (id.kind == TNK__VALUE_TEXT)
    tnk__io_set(io, call, "id", id);
  tnk__io_set(io, call, "type", tnk__io_word("function"));
  tnk__io_set(io, function, "name", name);
  tnk__io_set(io, function, "arguments", arguments);
  tnk__io_set(io, call, "function", function);
  return call;
}

tnk__value_t tnk__part_text(tnk__io_t *io, tnk__value_t text) {
  tnk__value_t part = tnk__io_typed(io, "text");

  tnk__io_set(io, part, "text", text);
  return part;
}

tnk__value_t tnk__part_image(tnk__io_t *io, tnk__value_t url) {
  tnk__value_t part = tnk__io_typed(io, "image");

  tnk__io_set(io, part, "image", url);
  return part;
}

tnk__value_t tnk__part_content(tnk__io_t *io, tnk__value_t parts,
                               int is_joined) {
  tnk__value_t text = tnk__io_word("");

  if (io->heap->err != TNK_OK || parts.as.list->n == 0)
    return text;
  if (parts.as.list->n > 1 && !is_joined)
    return parts;
  for (size_t i = 0; i < parts.as.list->n; i++) {
    tnk__value_t one = tnk__value_get(parts.as.list->items[i], "text");

    if (one.kind != TNK__VALUE_TEXT)
      return parts;
    text = tnk__io_join(io, text, "", one);
  }
  return text;
}

int tnk__part_list(tnk__io_t *io, const tnk__place_t *place,
                   tnk__value_t content, tnk__value_t *parts) {
  tnk__place_t here = {place, "content", 0};

  if (content.kind == TNK__VALUE_LIST) {
    *parts = content;
    return tnk__io_list(io, &here, content);
  }
  *parts = tnk__value_list(io->heap);
  if (content.kind == TNK__VALUE_TEXT)
    tnk__value_append(io->heap, *parts, tnk__part_text(io, content));
  else if (content.kind != TNK__VALUE_NONE &&
           content.kind != TNK__VALUE_UNDEFINED)
    return tnk__io_fail(io, &here, TNK_EINVAL,
                        "this is neither a text nor a list of parts");
  return io->heap->err;
}
