/* SPDX-License-Identifier: MIT */
#include "lib/wire/message/sampler_text.h"

#include <string.h>

#include "lib/base/base64.h"
#include "lib/wire/message/calls.h"
#include "tnk/error.h"

/* Handles of the official client contain all of its flags, a few KiB. */
enum { MAX_SAMPLER_TEXT = 64 * 1024 };

/* ---- Writing ---- */

static void put_empty(tnk__json_writer_t *w, const char *key) {
  tnk__json_key(w, key);
  tnk__json_begin_object(w);
  tnk__json_end(w);
}

static void put_null(tnk__json_writer_t *w, const char *key) {
  tnk__json_key(w, key);
  tnk__json_null(w);
}

static void put_sampler(tnk__buf_t *out, const tnk__sampler_text_t *sampler) {
  tnk__json_writer_t w;

  tnk__calls_begin(&w, out);
  tnk__json_put_text(&w, "session_id", sampler->session_id);
  tnk__json_put_text(&w, "sampling_session_id", sampler->sampling_session_id);
  tnk__json_key(&w, "holder");
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "base_url", sampler->base_url);
  put_empty(&w, "default_headers_overrides");
  put_empty(&w, "client_config");
  put_empty(&w, "client_dynamic_config");
  put_null(&w, "api_key");
  tnk__json_end(&w);
  tnk__json_put_text(&w, "base_model", sampler->base_model);
  tnk__json_put_bool(&w, "record_stability_info",
                     sampler->record_stability_info);
  tnk__calls_end(&w);
}

/* Convert the standard base64 alphabet to the one that needs no quoting in URLs
 * and shells. */
static void make_safe(uint8_t *text, size_t n) {
  for (size_t i = 0; i < n; i++)
    text[i] = text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i];
}

void tnk__sampler_text_write(tnk__buf_t *out,
                             const tnk__sampler_text_t *sampler) {
  const size_t at = out->len;
  tnk__buf_t json;

  tnk__buf_init(&json, out->alloc, MAX_SAMPLER_TEXT);
  put_sampler(&json, sampler);
  if (json.err == TNK_OK)
    tnk__base64_write(out, json.data, json.len);
  else if (out->err == TNK_OK)
    out->err = json.err;
  if (out->err == TNK_OK)
    make_safe(out->data + at, out->len - at);
  tnk__buf_deinit(&json);
}

/* ---- Reading ---- */

/* Ids appear in messages and logs, so only safe characters are accepted. */
static int is_id(const char *text) {
  for (; *text != '\0'; text++)
    if ((unsigned char)*text < 0x21 || *text == 0x7f)
      return 0;
  return 1;
}

static int get_id(const char **out, tnk__arena_t *arena, const json_t *root,
                  const char *key) {
  int err = tnk__calls_get_required(out, arena, root, key);

  return err == TNK_OK && !is_id(*out) ? TNK_EPROTO : err;
}

static int read_members(tnk__sampler_text_t *out, tnk__arena_t *arena,
                        const json_t *root) {
  const json_t *holder = tnk__json_obj(root, "holder");
  int err = get_id(&out->session_id, arena, root, "session_id");

  if (err == TNK_OK)
    err = get_id(&out->sampling_session_id, arena, root, "sampling_session_id");
  if (err == TNK_OK && holder != NULL)
    err = tnk__calls_get_text(&out->base_url, arena, holder, "base_url");
  if (err == TNK_OK)
    err = tnk__calls_get_text(&out->base_model, arena, root, "base_model");
  if (err == TNK_OK &&
      tnk__json_get_bool(root, "record_stability_info",
                         &out->record_stability_info) == TNK__JSON_WRONG)
    err = TNK_EPROTO;
  return err;
}

static int read_json(tnk__sampler_text_t *out, tnk__arena_t *arena,
                     const tnk__buf_t *json) {
  tnk__sampler_text_t read = {0};
  json_t *root;
  int err = tnk__json_parse_object(&root, json->data, json->len);

  if (err != TNK_OK)
    return err;
  err = read_members(&read, arena, root);
  json_decref(root);
  if (err == TNK_OK)
    *out = read;
  return err;
}

int tnk__sampler_text_read(tnk__sampler_text_t *out, tnk__arena_t *arena,
                           const char *text, const char **why) {
  const size_t n = strlen(text);
  tnk__buf_t json;
  int err;

  *why = "it is too long";
  if (n > MAX_SAMPLER_TEXT)
    return TNK_EINVAL;
  tnk__buf_init(&json, arena->alloc, MAX_SAMPLER_TEXT);
  err = tnk__base64_read(&json, text, n);
  *why = "it was cut or changed on the way";
  if (err == TNK_OK)
    err = read_json(out, arena, &json);
  tnk__buf_deinit(&json);
  return err == TNK_OK || err == TNK_ENOMEM ? err : TNK_EINVAL;
}
