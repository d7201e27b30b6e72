/* SPDX-License-Identifier: MIT */
#include "lib/wire/message/calls_future.h"

#include <string.h>

#include "lib/wire/message/calls.h"
#include "tnk/error.h"

void tnk__retrieve_future_write(tnk__buf_t *out, const char *request_id,
                                int allow_metadata_only) {
  tnk__json_writer_t w;

  tnk__calls_begin(&w, out);
  tnk__json_put_text(&w, "request_id", request_id);
  tnk__json_put_bool(&w, "allow_metadata_only", allow_metadata_only);
  tnk__calls_end(&w);
}

void tnk__cancel_future_write(tnk__buf_t *out, const char *request_id) {
  tnk__json_writer_t w;

  tnk__calls_begin(&w, out);
  tnk__json_put_text(&w, "request_id", request_id);
  tnk__calls_end(&w);
}

void tnk__retrieve_futures_write(tnk__buf_t *out,
                                 const tnk__batch_request_t *request) {
  tnk__json_writer_t w;
  size_t i;

  tnk__calls_begin(&w, out);
  tnk__json_key(&w, "target");
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "type", "sampling_session");
  tnk__json_put_text(&w, "sampling_session_id", request->sampling_session_id);
  tnk__calls_put_uint(&w, "cloned_sampler_id", request->clone);
  tnk__json_end(&w);
  tnk__json_put_int(&w, "prev_cursor", request->prev_cursor);
  /* With 0 the server responds at once. Without the member it holds the poll as
   * long as it wants. */
  if (request->at_once)
    tnk__json_put_double(&w, "timeout", 0);
  tnk__json_key(&w, "retrieved_request_ids");
  tnk__json_begin_array(&w);
  for (i = 0; i < request->n_retrieved; i++)
    tnk__json_text(&w, request->retrieved[i]);
  tnk__json_end(&w);
  tnk__calls_end(&w);
}

/* Returns 1 if it was read, 0 if the element is to be skipped, or
 * TNK_ENOMEM. */
static int read_completion(tnk__completion_t *out, tnk__arena_t *arena,
                           const json_t *element) {
  const char *state = tnk__json_str(element, "state");
  int64_t size = 0;
  int err;

  /* The official client rejects the response. Here the element is skipped, so
   * that the other samples are not lost. */
  if (state == NULL ||
      (strcmp(state, "finished") != 0 && strcmp(state, "failed") != 0))
    return 0;
  err = tnk__calls_get_id(&out->request_id, arena, element, "request_id");
  if (err == TNK_ENOMEM)
    return err;
  if (err != TNK_OK || out->request_id == NULL)
    return 0;
  /* "finished", not "failed": only a result has a size. */
  if (state[1] == 'i')
    tnk__json_get_int(element, "response_payload_uncompressed_size", 0,
                      INT64_MAX, &size);
  out->result_bytes = (uint64_t)size;
  return 1;
}

static int read_batch(tnk__batch_answer_t *out, tnk__arena_t *arena,
                      const json_t *root) {
  const json_t *list = tnk__json_arr(root, "completions");
  tnk__completion_t *completions;
  tnk__batch_answer_t read = {0};
  size_t i;

  if (list == NULL || tnk__json_get_int(root, "cursor", INT64_MIN, INT64_MAX,
                                        &read.cursor) != TNK__JSON_FOUND)
    return TNK_EPROTO;
  completions =
      tnk__arena_calloc(arena, json_array_size(list) + 1, sizeof(*completions));
  if (completions == NULL)
    return TNK_ENOMEM;
  for (i = 0; i < json_array_size(list); i++) {
    int has =
        read_completion(&completions[read.n], arena, json_array_get(list, i));
    if (has < 0)
      return has;
    read.n += (size_t)has;
  }
  read.completions = completions;
  *out = read;
  return TNK_OK;
}

int tnk__retrieve_futures_read(tnk__batch_answer_t *out, tnk__arena_t *arena,
                               const uint8_t *body, size_t n) {
  json_t *root;
  int err = tnk__json_parse_object(&root, body, n);

  if (err != TNK_OK)
    return err;
  err = read_batch(out, arena, root);
  json_decref(root);
  return err;
}
