#include <math.h>
#include <string.h>

#include "lib/wire/format/json_read.h"
#include "lib/wire/message/sample_wire.h"
#include "lib/wire/message/tensor_read.h"
#include "tnk/error.h"

/* This mark ends the stream, also in the form of a JSON string. */
static const char mark[] = "[DONE]";

static int is_given(const json_t *value) {
  return value != NULL && !json_is_null(value) && !json_is_false(value);
}

static int read_token(tnk__sample_chunk_t *out, const json_t *json) {
  const json_t *logprob = json_object_get(json, "logprob");
  int64_t token = 0;
  tnk__json_has_t has;

  has = tnk__json_get_int(json, "token_id", 0, INT32_MAX, &token);
  if (has == TNK__JSON_WRONG ||
      tnk__json_get_int(json, "index", 0, INT32_MAX, &out->index) ==
          TNK__JSON_WRONG ||
      tnk__json_get_text(json, "token", &out->text) == TNK__JSON_WRONG)
    return TNK_EPROTO;
  out->has_token = has == TNK__JSON_FOUND;
  out->token = (int32_t)token;
  /* A text without a token id is useless, because the drawn tokens are
   * unknown. */
  if (!out->has_token && out->text != NULL && out->text[0] != '\0')
    return TNK_EPROTO;
  if (logprob == NULL || json_is_null(logprob))
    return TNK_OK;
  if (!json_is_number(logprob))
    return TNK_EPROTO;
  out->logprob = tnk__float_of(json_number_value(logprob));
  return TNK_OK;
}

static int read_end(tnk__sample_chunk_t *out, const json_t *json) {
  const char *reason = NULL;

  if (tnk__json_get_int(json, "total_tokens", 0, INT64_MAX, &out->n_total) ==
          TNK__JSON_WRONG ||
      tnk__json_get_text(json, "finish_reason", &reason) == TNK__JSON_WRONG)
    return TNK_EPROTO;
  if (reason == NULL)
    return TNK_OK;
  out->is_end = 1;
  if (strcmp(reason, "length") == 0)
    out->stop_reason = TNK_STOP_LENGTH;
  else if (strcmp(reason, "stop") != 0)
    return TNK_EPROTO;
  return TNK_OK;
}

static int read(tnk__sample_chunk_t *out, const json_t *json) {
  const char *text = json_string_value(json);
  int err;

  if (text != NULL && strcmp(text, mark) == 0)
    return TNK_OK;
  if (!json_is_object(json))
    return TNK_EPROTO;
  out->is_error = is_given(json_object_get(json, "error"));
  if (out->is_error)
    return TNK_OK;
  err = read_token(out, json);
  return err == TNK_OK ? read_end(out, json) : err;
}

int tnk__sample_chunk_read(tnk__sample_chunk_t *out, const char *data,
                           size_t n) {
  json_t *json = NULL;
  int err;

  *out = (tnk__sample_chunk_t){.logprob = NAN, .index = -1, .n_total = -1};
  if (n == sizeof(mark) - 1 && memcmp(data, mark, n) == 0)
    return TNK_OK;
  err = tnk__json_parse(&json, data, n);
  out->json = json;
  if (err == TNK_OK)
    err = read(out, json);
  if (err != TNK_OK)
    tnk__sample_chunk_clear(out);
  return err;
}

void tnk__sample_chunk_clear(tnk__sample_chunk_t *chunk) {
  json_decref(chunk->json);
  chunk->json = NULL;
  chunk->text = NULL;
}
