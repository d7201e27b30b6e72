/* SPDX-License-Identifier: MIT */
#include "lib/wire/message/calls.h"

#include <string.h>

#include "lib/wire/format/number_text.h"
#include "tnk/error.h"

/* Bodies have their members in the order of the official client; test/interop
 * compares the bytes. */

void tnk__calls_begin(tnk__json_writer_t *w, tnk__buf_t *out) {
  tnk__json_writer_init(w, out);
  tnk__json_begin_object(w);
}

void tnk__calls_end(tnk__json_writer_t *w) {
  int err;

  tnk__json_end(w);
  err = tnk__json_finish(w);
  if (w->buf->err == TNK_OK)
    w->buf->err = err;
}

void tnk__calls_put_optional(tnk__json_writer_t *w, const char *key,
                             const char *text) {
  if (text != NULL)
    tnk__json_put_text(w, key, text);
}

void tnk__calls_put_pairs(tnk__json_writer_t *w, const char *key,
                          const tnk_pair_t *pairs, size_t n) {
  size_t i;

  tnk__json_key(w, key);
  tnk__json_begin_object(w);
  for (i = 0; i < n; i++)
    tnk__json_put_text(w, pairs[i].name, pairs[i].value);
  tnk__json_end(w);
}

void tnk__calls_put_metadata(tnk__json_writer_t *w, const tnk_pair_t *pairs,
                             size_t n) {
  if (n > 0)
    tnk__calls_put_pairs(w, "user_metadata", pairs, n);
}

void tnk__calls_put_uint(tnk__json_writer_t *w, const char *key,
                         uint64_t value) {
  tnk__json_key(w, key);
  tnk__json_uint(w, value);
}

static int copy(const char **out, tnk__arena_t *arena, const char *text,
                size_t n) {
  char *own = tnk__arena_strndup(arena, text, n);

  if (own == NULL)
    return TNK_ENOMEM;
  *out = own;
  return TNK_OK;
}

int tnk__calls_get_text(const char **out, tnk__arena_t *arena,
                        const json_t *object, const char *key) {
  const char *text = NULL;

  *out = NULL;
  if (tnk__json_get_text(object, key, &text) == TNK__JSON_WRONG)
    return TNK_EPROTO;
  return text != NULL ? copy(out, arena, text, strlen(text)) : TNK_OK;
}

int tnk__calls_get_required(const char **out, tnk__arena_t *arena,
                            const json_t *object, const char *key) {
  int err = tnk__calls_get_text(out, arena, object, key);

  if (err == TNK_OK && (*out == NULL || (*out)[0] == '\0'))
    err = TNK_EPROTO;
  return err;
}

int tnk__calls_get_id(const char **out, tnk__arena_t *arena,
                      const json_t *object, const char *key) {
  char number[TNK__NUMBER_TEXT];
  int64_t value;

  if (tnk__json_get_int(object, key, INT64_MIN, INT64_MAX, &value) ==
      TNK__JSON_FOUND)
    return copy(out, arena, number, tnk__int_text(number, value));
  return tnk__calls_get_text(out, arena, object, key);
}

int tnk__calls_keep_json(const char **out, size_t *n, tnk__arena_t *arena,
                         const json_t *object) {
  /* Measure it first, because jansson writes into our memory only if it
   * suffices. */
  size_t size = json_dumpb(object, NULL, 0, JSON_COMPACT);
  char *text = size > 0 ? tnk__arena_alloc(arena, size + 1) : NULL;

  if (text == NULL || json_dumpb(object, text, size, JSON_COMPACT) != size)
    return TNK_ENOMEM;
  text[size] = '\0';
  *out = text;
  if (n != NULL)
    *n = size;
  return TNK_OK;
}

int tnk__calls_read_one(const char **out, tnk__arena_t *arena,
                        const uint8_t *body, size_t n, const char *key) {
  const char *text = NULL;
  json_t *root;
  int err = tnk__json_parse_object(&root, body, n);

  if (err != TNK_OK)
    return err;
  err = tnk__calls_get_required(&text, arena, root, key);
  json_decref(root);
  if (err == TNK_OK)
    *out = text;
  return err;
}
