/* SPDX-License-Identifier: MIT */
#include "lib/wire/message/calls_sampling.h"

#include "lib/wire/message/calls.h"
#include "tnk/error.h"

void tnk__create_sampling_write(tnk__buf_t *out, const char *session_id,
                                uint64_t sampling_seq_id,
                                const char *base_model,
                                const char *model_path) {
  tnk__json_writer_t w;

  tnk__calls_begin(&w, out);
  tnk__json_put_text(&w, "session_id", session_id);
  tnk__calls_put_uint(&w, "sampling_session_seq_id", sampling_seq_id);
  tnk__calls_put_optional(&w, "base_model", base_model);
  tnk__calls_put_optional(&w, "model_path", model_path);
  tnk__json_put_text(&w, "type", "create_sampling_session");
  tnk__calls_end(&w);
}

int tnk__create_sampling_read(const char **sampling_session_id,
                              tnk__arena_t *arena, const uint8_t *body,
                              size_t n) {
  return tnk__calls_read_one(sampling_session_id, arena, body, n,
                             "sampling_session_id");
}

void tnk__join_sampling_write(tnk__buf_t *out,
                              const char *sampling_session_id) {
  tnk__json_writer_t w;

  tnk__calls_begin(&w, out);
  tnk__json_put_text(&w, "sampling_session_id", sampling_session_id);
  tnk__json_put_text(&w, "type", "join_sampling_session");
  tnk__calls_end(&w);
}

int tnk__join_sampling_read(uint64_t *client_counter, const uint8_t *body,
                            size_t n) {
  /* The counter times 10^9 must fit in a sequence number. */
  const int64_t max = INT64_MAX / 1000000000 - 1;
  int64_t counter;
  json_t *root;
  int err = tnk__json_parse_object(&root, body, n);

  if (err != TNK_OK)
    return err;
  if (tnk__json_get_int(root, "client_counter", 0, max, &counter) ==
      TNK__JSON_FOUND)
    *client_counter = (uint64_t)counter;
  else
    err = TNK_EPROTO;
  json_decref(root);
  return err;
}

int tnk__sampler_read(tnk__sampler_t *out, tnk__arena_t *arena,
                      const uint8_t *body, size_t n) {
  tnk__sampler_t read;
  json_t *root;
  int err = tnk__json_parse_object(&root, body, n);

  if (err != TNK_OK)
    return err;
  err = tnk__calls_get_text(&read.sampler_id, arena, root, "sampler_id");
  if (err == TNK_OK)
    err = tnk__calls_get_required(&read.base_model, arena, root, "base_model");
  if (err == TNK_OK)
    err = tnk__calls_get_text(&read.model_path, arena, root, "model_path");
  json_decref(root);
  if (err == TNK_OK)
    *out = read;
  return err;
}
