/* SPDX-License-Identifier: MIT */
#include "tokenizers/format/format.h"

#include "tokenizers/format/json.h"
#include "tokenizers/unicode/unicode.h"

static int malformed(const tnk__jread_t *json, tnk_tokenizer_error_t *error) {
  return tnk__fault(error, TNK_EPROTO, (uint64_t)(json->p - json->base),
                    "tokenizer_config.json, byte %zu: malformed JSON",
                    (size_t)(json->p - json->base));
}

/* Read a token given as a string, or as an object with its `content`. *id is -1
 * if the model does not have it: some files name tokens that the model
 * lacks. */
static int read_token(tnk_tokenizer_t *tok, tnk__jread_t *json, int32_t *id) {
  tnk__jread_text_t key, text = {NULL, 0, 0};
  size_t n = 0, n_text;
  tnk__buf_t room;
  uint8_t *out;
  int more = 1, err = TNK_OK;

  if (tnk__jread_peek(json) == '"') {
    err = tnk__jread_text(json, &text);
  } else if (tnk__jread_peek(json) == '{') {
    json->p++;
    while (err == TNK_OK && (more = tnk__jread_next_key(json, &n, &key)) > 0)
      err = tnk__jread_is(&key, "content") ? tnk__jread_text(json, &text)
                                           : tnk__jread_skip(json);
  } else {
    return tnk__jread_skip(json);
  }
  if (err < 0 || more < 0)
    return TNK_EPROTO;
  if (text.p == NULL)
    return TNK_OK;
  tnk__buf_init(&room, &tok->alloc, SIZE_MAX / 2);
  out = tnk__buf_reserve(&room, text.n + 1);
  err = out == NULL ? TNK_ENOMEM : tnk__jread_unescape(&text, out, &n_text);
  if (err == TNK_OK)
    *id = tnk_tokenizer_id(tok, (const char *)out, n_text);
  tnk__buf_deinit(&room);
  return err;
}

typedef int (*put_fn)(tnk_tokenizer_t *tok, uint32_t id, const uint8_t *text,
                      size_t n, unsigned flags);

/* {"content": "[BOS]", "special": true, ...} */
static int read_added(tnk_tokenizer_t *tok, tnk__jread_t *json, uint32_t id,
                      put_fn put) {
  tnk__jread_text_t key, text = {NULL, 0, 0};
  size_t n = 0, n_text;
  int more, special = 0, err = tnk__jread_take(json, '{');
  tnk__buf_t room;
  uint8_t *out;

  while (err == TNK_OK && (more = tnk__jread_next_key(json, &n, &key)) != 0) {
    if (more < 0)
      return TNK_EPROTO;
    err = tnk__jread_is(&key, "content")   ? tnk__jread_text(json, &text)
          : tnk__jread_is(&key, "special") ? tnk__jread_bool(json, &special)
                                           : tnk__jread_skip(json);
  }
  if (err < 0 || text.p == NULL)
    return TNK_EPROTO;
  tnk__buf_init(&room, &tok->alloc, SIZE_MAX / 2);
  out = tnk__buf_reserve(&room, text.n + 1);
  err = out == NULL ? TNK_ENOMEM : tnk__jread_unescape(&text, out, &n_text);
  if (err == TNK_OK && n_text == 0)
    err = TNK_EPROTO;
  if (err == TNK_OK)
    err = put(tok, id, out, n_text, special ? TNK__ADDED_SPECIAL : 0);
  tnk__buf_deinit(&room);
  return err;
}

/* {"163584": {...}, ...} */
static int read_decoder(tnk_tokenizer_t *tok, tnk__jread_t *json, put_fn put) {
  tnk__jread_text_t key;
  size_t n = 0;
  int more, err = tnk__jread_take(json, '{');

  while (err == TNK_OK && (more = tnk__jread_next_key(json, &n, &key)) != 0) {
    tnk__jread_t number;
    uint32_t id;

    if (more < 0)
      return TNK_EPROTO;
    tnk__jread_init(&number, key.p, key.n);
    if (tnk__jread_uint(&number, &id) < 0 || number.p != number.end)
      return TNK_EPROTO;
    err = read_added(tok, json, id, put);
  }
  return err;
}

/* Reads or skips the value of one key of the file. */
typedef int (*member_fn)(tnk_tokenizer_t *tok, tnk__jread_t *json,
                         const tnk__jread_text_t *key, put_fn put);

static int read_file(tnk_tokenizer_t *tok, const uint8_t *data, size_t n,
                     member_fn read_member, put_fn put,
                     tnk_tokenizer_error_t *error) {
  tnk__jread_t json;
  tnk__jread_text_t key;
  size_t count = 0;
  int more = -1, err = TNK_OK;

  tnk__jread_init(&json, data, n);
  if (tnk__utf8_valid(data, n) < n || tnk__jread_take(&json, '{') < 0)
    return malformed(&json, error);
  while (err == TNK_OK && (more = tnk__jread_next_key(&json, &count, &key)) > 0)
    err = read_member(tok, &json, &key, put);
  if (err == TNK_ENOMEM)
    return tnk__fault_memory(error);
  return err < 0 || more < 0 ? malformed(&json, error) : TNK_OK;
}

static int added_member(tnk_tokenizer_t *tok, tnk__jread_t *json,
                        const tnk__jread_text_t *key, put_fn put) {
  return tnk__jread_is(key, "added_tokens_decoder")
             ? read_decoder(tok, json, put)
             : tnk__jread_skip(json);
}

int tnk__config_added(tnk_tokenizer_t *tok, const uint8_t *data, size_t n,
                      put_fn put, tnk_tokenizer_error_t *error) {
  return read_file(tok, data, n, added_member, put, error);
}

static int name_member(tnk_tokenizer_t *tok, tnk__jread_t *json,
                       const tnk__jread_text_t *key, put_fn put) {
  (void)put;
  return tnk__jread_is(key, "bos_token")   ? read_token(tok, json, &tok->bos)
         : tnk__jread_is(key, "eos_token") ? read_token(tok, json, &tok->eos)
                                           : tnk__jread_skip(json);
}

int tnk__config_names(tnk_tokenizer_t *tok, const uint8_t *data, size_t n,
                      tnk_tokenizer_error_t *error) {
  return read_file(tok, data, n, name_member, NULL, error);
}
