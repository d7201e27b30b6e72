/* SPDX-License-Identifier: MIT */
#include "lib/wire/message/sample_wire.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/wire/data/data_json.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/json_write.h"
#include "lib/wire/format/le.h"
#include "lib/wire/format/number_text.h"
#include "lib/wire/message/tensor_read.h"
#include "tinker.pb-c.h"
#include "tnk/error.h"

/* ---- JSON ---- */

/* The value in unused cells of a top-k matrix. */
#define NO_LOGPROB (-99999.0f)

/* The member as an array; NULL if it is absent or null. */
static const json_t *array_of(tnk__room_t *room, const json_t *object,
                              const char *key) {
  const json_t *array = NULL;

  if (tnk__json_get_array(object, key, &array) == TNK__JSON_WRONG)
    tnk__room_bad(room);
  return array;
}

static const float *floats_of(tnk__room_t *room, const json_t *object,
                              const char *key, size_t *n) {
  const json_t *array = array_of(room, object, key);

  *n = 0;
  return array == NULL ? NULL : tnk__json_floats_of(room, array, n);
}

static int32_t token_of(tnk__room_t *room, const json_t *value) {
  json_int_t id = json_integer_value(value);

  if (!json_is_integer(value) || id < INT32_MIN || id > INT32_MAX) {
    tnk__room_bad(room);
    return 0;
  }
  return (int32_t)id;
}

static const int32_t *tokens_of(tnk__room_t *room, const json_t *object,
                                size_t *n) {
  const json_t *array = array_of(room, object, "tokens");
  size_t size = json_array_size(array);
  int32_t *tokens = NULL;

  if (array == NULL)
    tnk__room_bad(room);
  if (size > 0)
    tokens = tnk__room_get(room, size, sizeof(*tokens));
  for (size_t i = 0; i < size && tokens != NULL; i++)
    tokens[i] = token_of(room, json_array_get(array, i));
  *n = tokens == NULL ? 0 : size;
  return tokens;
}

/* Read a row of pairs [id, logprob]. null is a position that was not scored. */
static void read_row(tnk__room_t *room, const json_t *row, uint32_t k,
                     int32_t *ids, float *logprobs) {
  size_t n = json_array_size(row);

  if (!json_is_array(row) && !json_is_null(row))
    tnk__room_bad(room);
  for (size_t i = 0; i < k; i++) {
    const json_t *pair = json_array_get(row, i);
    const json_t *logprob = json_array_get(pair, 1);

    ids[i] = 0;
    logprobs[i] = NO_LOGPROB;
    /* Shorter rows are filled up to the length of the longest one. */
    if (i >= n)
      continue;
    if (json_array_size(pair) != 2 || !json_is_number(logprob)) {
      tnk__room_bad(room);
      return;
    }
    ids[i] = token_of(room, json_array_get(pair, 0));
    logprobs[i] = tnk__float_of(json_number_value(logprob));
  }
}

static const tnk_topk_t *topk_of(tnk__room_t *room, const json_t *object,
                                 const char *key) {
  const json_t *rows = array_of(room, object, key);
  size_t length = json_array_size(rows);
  size_t k = 0;
  tnk_topk_t *topk;
  int32_t *ids;
  float *logprobs;

  for (size_t i = 0; i < length; i++)
    if (json_array_size(json_array_get(rows, i)) > k)
      k = json_array_size(json_array_get(rows, i));
  if (k == 0)
    return NULL;
  if (length > UINT32_MAX || k > UINT32_MAX) {
    tnk__room_bad(room);
    return NULL;
  }
  /* A single long row makes all rows long. The limit of the room bounds
   * that. */
  topk = tnk__room_zeroed(room, 1, sizeof(*topk));
  ids = tnk__room_get(room, length, k * sizeof(*ids));
  logprobs = tnk__room_get(room, length, k * sizeof(*logprobs));
  if (logprobs == NULL)
    return NULL;
  *topk = (tnk_topk_t){(uint32_t)k, (uint32_t)length, ids, logprobs};
  for (size_t i = 0; i < length && room->err == TNK_OK; i++)
    read_row(room, json_array_get(rows, i), topk->k, ids + i * k,
             logprobs + i * k);
  return topk;
}

/* Read a string in any spelling, or the number of the protobuf enum. */
static tnk_stop_reason_t stop_reason_of(tnk__room_t *room,
                                        const json_t *object) {
  static const struct {
    const char *text;
    tnk_stop_reason_t reason;
  } words[] = {{"stop", TNK_STOP_SEQUENCE},
               {"length", TNK_STOP_LENGTH},
               {"STOP_REASON_STOP", TNK_STOP_SEQUENCE},
               {"STOP_REASON_LENGTH", TNK_STOP_LENGTH}};
  const json_t *value = json_object_get(object, "stop_reason");
  const char *text = json_string_value(value);

  if (value == NULL || json_is_null(value))
    return TNK_STOP_SEQUENCE;
  if (json_is_integer(value) &&
      (json_integer_value(value) == 0 || json_integer_value(value) == 1))
    return json_integer_value(value) == 1 ? TNK_STOP_LENGTH : TNK_STOP_SEQUENCE;
  for (size_t i = 0; text != NULL && i < sizeof(words) / sizeof(words[0]); i++)
    if (strcmp(text, words[i].text) == 0)
      return words[i].reason;
  tnk__room_bad(room);
  return TNK_STOP_SEQUENCE;
}

static void read_json_sequence(tnk__room_t *room, const json_t *object,
                               tnk__sequence_t *out) {
  if (!json_is_object(object))
    tnk__room_bad(room);
  /* Lengths are not compared, as with protobuf, because logprobs may be
   * omitted. */
  out->tokens = tokens_of(room, object, &out->n_tokens);
  out->logprobs = floats_of(room, object, "logprobs", &out->n_logprobs);
  out->stop_reason = stop_reason_of(room, object);
  out->topk = topk_of(room, object, "topk_sampled_logprobs");
}

static const tnk_tensor_t *tensor_of(tnk__room_t *room, const json_t *object,
                                     const char *key, tnk_dtype_t dtype) {
  const json_t *value = json_object_get(object, key);
  tnk_tensor_t *tensor;

  if (value == NULL || json_is_null(value))
    return NULL;
  tensor = tnk__room_zeroed(room, 1, sizeof(*tensor));
  if (tensor != NULL && tnk__json_tensor(room, value, tensor) &&
      tensor->dtype != dtype)
    tnk__room_bad(room);
  return tensor;
}

static void read_json_extras(tnk__room_t *room, tnk_samples_t *samples,
                             const json_t *root) {
  const json_t *alt = NULL;
  int64_t hits = 0;

  if (tnk__json_get_int(root, "prompt_cache_hit_tokens", 0, INT32_MAX, &hits) ==
          TNK__JSON_WRONG ||
      tnk__json_get_object(root, "prompt_alt_tokens", &alt) == TNK__JSON_WRONG)
    tnk__room_bad(room);
  samples->cache_hit_tokens = (int32_t)hits;
  samples->prompt_topk = topk_of(room, root, "topk_prompt_logprobs");
  samples->target_logprobs =
      tensor_of(room, root, "target_prompt_logprobs", TNK_F32);
  if (alt == NULL)
    return;
  samples->alt_tokens = tensor_of(room, alt, "tokens", TNK_I64);
  samples->alt_logprobs = tensor_of(room, alt, "logprobs", TNK_F32);
  if (samples->alt_tokens == NULL || samples->alt_logprobs == NULL)
    tnk__room_bad(room);
}

/* Read samples as JSON, for tnk__samples_read(). Failures are kept in
 * `room`. */
static void samples_from_json(tnk__room_t *room, tnk_samples_t *samples,
                              const void *body, size_t n) {
  const json_t *sequences = NULL;
  json_t *root;
  int err = tnk__json_parse_object(&root, body, n);

  if (err != TNK_OK) {
    room->err = err;
    return;
  }
  if (tnk__json_get_array(root, "sequences", &sequences) != TNK__JSON_FOUND)
    tnk__room_bad(room);
  samples->n_sequences = json_array_size(sequences);
  samples->sequences =
      tnk__room_zeroed(room, samples->n_sequences, sizeof(*samples->sequences));
  for (size_t i = 0; i < samples->n_sequences && room->err == TNK_OK; i++)
    read_json_sequence(room, json_array_get(sequences, i),
                       &samples->sequences[i]);
  samples->prompt_logprobs =
      floats_of(room, root, "prompt_logprobs", &samples->n_prompt_logprobs);
  read_json_extras(room, samples, root);
  json_decref(root);
}

/* ---- Chunks ---- */

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

/* ---- Protobuf ---- */

typedef TinkerPublic__SampleResponse message_t;
typedef TinkerPublic__SampledSequence sequence_t;

/* Approximate size of a result without its arrays. */
enum { FRAME_SIZE = 640 };

/* An empty matrix counts as not sent. */
static const tnk_topk_t *read_topk(tnk__room_t *room,
                                   const TinkerPublic__TopkLogprobs *message) {
  const uint64_t cells =
      message == NULL ? 0 : (uint64_t)message->k * message->length;
  tnk_topk_t *topk;

  if (cells == 0)
    return NULL;
  /* Longer arrays than the cells need are accepted, as in the official
   * client. */
  if (message->token_ids.len % 4 != 0 || message->logprobs.len % 4 != 0 ||
      message->token_ids.len / 4 < cells || message->logprobs.len / 4 < cells) {
    tnk__room_bad(room);
    return NULL;
  }
  topk = tnk__room_zeroed(room, 1, sizeof(*topk));
  if (topk == NULL)
    return NULL;
  topk->k = message->k;
  topk->length = message->length;
  tnk__le_copy(message->token_ids.data, message->token_ids.data, (size_t)cells,
               4);
  tnk__le_copy(message->logprobs.data, message->logprobs.data, (size_t)cells,
               4);
  topk->ids = (const int32_t *)(const void *)message->token_ids.data;
  topk->logprobs = (const float *)(const void *)message->logprobs.data;
  return topk;
}

static void read_sequence(tnk__room_t *room, const sequence_t *message,
                          tnk__sequence_t *out) {
  if (message->stop_reason != TINKER_PUBLIC__STOP_REASON__STOP_REASON_STOP &&
      message->stop_reason != TINKER_PUBLIC__STOP_REASON__STOP_REASON_LENGTH)
    tnk__room_bad(room);
  out->stop_reason =
      message->stop_reason == TINKER_PUBLIC__STOP_REASON__STOP_REASON_LENGTH
          ? TNK_STOP_LENGTH
          : TNK_STOP_SEQUENCE;
  out->tokens = tnk__wire_array(room, &message->tokens, 4, &out->n_tokens);
  if (message->has_logprobs_case ==
      TINKER_PUBLIC__SAMPLED_SEQUENCE__HAS_LOGPROBS_LOGPROBS)
    out->logprobs =
        tnk__wire_array(room, &message->logprobs, 4, &out->n_logprobs);
  if (message->has_topk_sampled_logprobs_case ==
      TINKER_PUBLIC__SAMPLED_SEQUENCE__HAS_TOPK_SAMPLED_LOGPROBS_TOPK_SAMPLED_LOGPROBS)
    out->topk = read_topk(room, message->topk_sampled_logprobs);
}

static const tnk_tensor_t *read_tensor(tnk__room_t *room,
                                       const TinkerPublic__Tensor *message,
                                       tnk_dtype_t dtype) {
  tnk_tensor_t *tensor = tnk__room_zeroed(room, 1, sizeof(*tensor));

  if (message == NULL) {
    tnk__room_bad(room);
    return NULL;
  }
  if (tensor != NULL && tnk__wire_tensor(room, message, tensor) &&
      tensor->dtype != dtype)
    tnk__room_bad(room);
  return tensor;
}

static void read_extras(tnk__room_t *room, tnk_samples_t *samples,
                        const message_t *message) {
  if (message->has_topk_prompt_logprobs_case ==
      TINKER_PUBLIC__SAMPLE_RESPONSE__HAS_TOPK_PROMPT_LOGPROBS_TOPK_PROMPT_LOGPROBS)
    samples->prompt_topk = read_topk(room, message->topk_prompt_logprobs);
  if (message->has_target_prompt_logprobs_case ==
      TINKER_PUBLIC__SAMPLE_RESPONSE__HAS_TARGET_PROMPT_LOGPROBS_TARGET_PROMPT_LOGPROBS)
    samples->target_logprobs =
        read_tensor(room, message->target_prompt_logprobs, TNK_F32);
  if (message->has_prompt_alt_tokens_case ==
          TINKER_PUBLIC__SAMPLE_RESPONSE__HAS_PROMPT_ALT_TOKENS_PROMPT_ALT_TOKENS &&
      message->prompt_alt_tokens != NULL) {
    samples->alt_tokens =
        read_tensor(room, message->prompt_alt_tokens->tokens, TNK_I64);
    samples->alt_logprobs =
        read_tensor(room, message->prompt_alt_tokens->logprobs, TNK_F32);
  }
}

static void read_protobuf(tnk__room_t *room, tnk_samples_t *samples,
                          const void *body, size_t n) {
  ProtobufCAllocator alloc = tnk__room_protobuf(room);
  const message_t *message =
      tinker_public__sample_response__unpack(&alloc, n, body);

  if (message == NULL) {
    tnk__room_bad(room);
    return;
  }
  samples->n_sequences = message->n_sequences;
  samples->sequences =
      tnk__room_zeroed(room, message->n_sequences, sizeof(*samples->sequences));
  for (size_t i = 0; i < message->n_sequences && room->err == TNK_OK; i++)
    read_sequence(room, message->sequences[i], &samples->sequences[i]);
  if (message->has_prompt_logprobs_case ==
      TINKER_PUBLIC__SAMPLE_RESPONSE__HAS_PROMPT_LOGPROBS_PROMPT_LOGPROBS)
    samples->prompt_logprobs = tnk__wire_array(room, &message->prompt_logprobs,
                                               4, &samples->n_prompt_logprobs);
  /* Billed once for each prompt, whatever the number of samples. */
  samples->cache_hit_tokens = message->prompt_cache_hit_tokens;
  read_extras(room, samples, message);
}

int tnk__samples_read(tnk_samples_t **out, const tnk_allocator_t *alloc,
                      const void *body, size_t n, int is_proto) {
  tnk__room_t room;
  tnk_samples_t *samples;

  *out = NULL;
  tnk__room_init(&room, alloc, n);
  /* protobuf arrays are copied unchanged, so the size is known. */
  if (is_proto)
    tnk__arena_expect(&room.arena, n + FRAME_SIZE);
  samples = tnk__room_zeroed(&room, 1, sizeof(*samples));
  if (samples != NULL && is_proto)
    read_protobuf(&room, samples, body, n);
  else if (samples != NULL)
    samples_from_json(&room, samples, body, n);
  if (room.err != TNK_OK) {
    tnk__arena_deinit(&room.arena);
    return room.err;
  }
  samples->arena = room.arena;
  *out = samples;
  return TNK_OK;
}

/* ---- Protobuf: checking the options ---- */

static int is_scored_before(const tnk_samples_t *samples, uint32_t last_n) {
  for (size_t i = 0; i + last_n < samples->n_prompt_logprobs; i++)
    if (!isnan(samples->prompt_logprobs[i]))
      return 1;
  return 0;
}

static int has_no_topk(const tnk_samples_t *samples) {
  for (size_t i = 0; i < samples->n_sequences; i++)
    /* A sequence without tokens has no rows. */
    if (samples->sequences[i].n_tokens > 0 &&
        samples->sequences[i].topk == NULL)
      return 1;
  return 0;
}

int tnk__samples_check(const tnk_samples_t *samples,
                       const tnk_sample_options_t *options, char *text,
                       size_t size) {
  static const char ignored[] = "the server does not know %s";
  const char *missing = NULL;
  int err = TNK_OK;

  if (text == NULL)
    size = 0;
  if (size > 0)
    text[0] = '\0';
  if (options == NULL)
    return TNK_OK;
  if (options->prompt_alt_tokens_k > 0 && samples->alt_tokens == NULL) {
    err = TNK_EUNSUPPORTED;
    missing = "prompt_alt_tokens_k";
  } else if (options->prompt_logprobs_last_n > 0 &&
             is_scored_before(samples, options->prompt_logprobs_last_n)) {
    err = TNK_EUNSUPPORTED;
    missing = "prompt_logprobs_last_n";
  } else if (options->prompt_logprobs == TNK_YES &&
             samples->prompt_logprobs == NULL) {
    missing = "prompt_logprobs";
  } else if (options->topk_prompt_logprobs > 0 &&
             samples->prompt_topk == NULL) {
    missing = "topk_prompt_logprobs";
  } else if (options->topk_sample_logprobs > 0 && has_no_topk(samples)) {
    missing = "topk_sample_logprobs";
  } else if (options->target_prompt_logprobs != NULL &&
             samples->target_logprobs == NULL) {
    missing = "target_prompt_logprobs";
  }
  if (missing != NULL && size > 0)
    snprintf(text, size, ignored, missing);
  return err;
}

/* ---- Requests ---- */

static void put_stop(tnk__json_writer_t *w,
                     const tnk_sampling_params_t *params) {
  if (params->stop_tokens != NULL) {
    tnk__json_key(w, "stop");
    tnk__json_int32s(w, params->stop_tokens, params->n_stop_tokens);
  } else if (params->stop_texts != NULL) {
    tnk__json_key(w, "stop");
    tnk__json_begin_array(w);
    for (size_t i = 0; i < params->n_stop_texts; i++)
      tnk__json_text(w, params->stop_texts[i]);
    tnk__json_end(w);
  }
}

static double double_or(double value, double absent) {
  return value != TNK_ABSENT ? value : absent;
}

/* The last three are always sent; absent ones are sent as their defaults. */
static void put_params(tnk__json_writer_t *w,
                       const tnk_sampling_params_t *params) {
  tnk__json_key(w, "sampling_params");
  tnk__json_begin_object(w);
  if (params->max_tokens != TNK_ABSENT)
    tnk__json_put_int(w, "max_tokens", params->max_tokens);
  if (params->seed != TNK_ABSENT)
    tnk__json_put_int(w, "seed", params->seed);
  put_stop(w, params);
  /* With a decimal point, as the official client sends these two. */
  tnk__json_put_double(w, "temperature", double_or(params->temperature, 1.0));
  tnk__json_put_int(w, "top_k",
                    params->top_k != TNK_ABSENT ? params->top_k : -1);
  tnk__json_put_double(w, "top_p", double_or(params->top_p, 1.0));
  tnk__json_end(w);
}

static void put_target(tnk__json_writer_t *w,
                       const tnk__sample_request_t *request,
                       tnk__sample_seq_t *seq) {
  size_t id_at;

  if (request->base_model != NULL)
    tnk__json_put_text(w, "base_model", request->base_model);
  if (request->model_path != NULL)
    tnk__json_put_text(w, "model_path", request->model_path);
  if (request->sampling_session_id == NULL)
    return;
  tnk__json_key(w, "sampling_session_id");
  id_at = w->buf->len;
  tnk__json_text(w, request->sampling_session_id);
  seq->id_n = (uint32_t)(w->buf->len - id_at);
  tnk__json_key(w, "seq_id");
  /* A sample that is submitted again gets another number. Its prompt may be
   * long and is not written again. */
  seq->at = w->buf->len;
  tnk__json_int(w, request->seq_id);
  seq->n = (uint32_t)(w->buf->len - seq->at);
}

/* Options that version 0.25 of the official client does not send are omitted if
 * they have their defaults. Some servers reject unknown members. */
static void put_options(tnk__json_writer_t *w,
                        const tnk__sample_request_t *request,
                        const tnk_sample_options_t *options) {
  tnk__json_put_bool(w, "prompt_logprobs", options->prompt_logprobs == TNK_YES);
  tnk__json_put_int(w, "topk_prompt_logprobs", options->topk_prompt_logprobs);
  if (options->topk_sample_logprobs > 0)
    tnk__json_put_int(w, "topk_sample_logprobs", options->topk_sample_logprobs);
  if (options->target_prompt_logprobs != NULL) {
    tnk__json_key(w, "target_prompt_logprobs");
    tnk__data_json_tensor(w, options->target_prompt_logprobs);
  }
  if (options->prompt_alt_tokens_k > 0)
    tnk__json_put_int(w, "prompt_alt_tokens_k", options->prompt_alt_tokens_k);
  if (options->prompt_logprobs_last_n > 0)
    tnk__json_put_int(w, "prompt_logprobs_last_n",
                      options->prompt_logprobs_last_n);
  if (request->record_stability_info)
    tnk__json_put_bool(w, "record_stability_info",
                       request->record_stability_info);
}

int tnk__sample_write(tnk__buf_t *out, const tnk__sample_request_t *request,
                      tnk__sample_seq_t *seq) {
  static const tnk_sampling_params_t no_params = TNK_SAMPLING_PARAMS_INIT;
  static const tnk_sample_options_t no_options;
  const tnk_sample_options_t *options =
      request->options == NULL ? &no_options : request->options;
  tnk__sample_seq_t ignored;
  tnk__json_writer_t w;

  if (seq == NULL)
    seq = &ignored;
  *seq = (tnk__sample_seq_t){0};
  tnk__json_writer_init(&w, out);
  tnk__json_begin_object(&w);
  tnk__json_put_int(&w, "num_samples",
                    options->n_samples == 0 ? 1 : options->n_samples);
  tnk__json_key(&w, "prompt");
  tnk__data_json_input(&w, request->prompt);
  put_params(&w, request->params == NULL ? &no_params : request->params);
  put_target(&w, request, seq);
  put_options(&w, request, options);
  tnk__json_put_text(&w, "type", "sample");
  tnk__json_end(&w);
  return tnk__json_finish(&w);
}

/* Replace `n_old` bytes. */
static int replace(tnk__buf_t *out, size_t at, size_t n_old, const void *text,
                   size_t n) {
  const size_t behind = at + n_old;

  if (out->err != TNK_OK ||
      (n > n_old && tnk__buf_reserve(out, n - n_old) == NULL))
    return out->err;
  memmove(out->data + at + n, out->data + behind, out->len - behind);
  memcpy(out->data + at, text, n);
  out->len = out->len - n_old + n;
  return TNK_OK;
}

int tnk__sample_renumber(tnk__buf_t *out, tnk__sample_seq_t *seq,
                         int64_t seq_id) {
  char text[TNK__NUMBER_TEXT];
  const size_t n = tnk__int_text(text, seq_id);
  int err;

  if (seq->n == 0)
    return out->err;
  err = replace(out, seq->at, seq->n, text, n);
  if (err == TNK_OK)
    seq->n = (uint32_t)n;
  return err;
}

/* The text between the id and the number. */
enum { GAP = sizeof(",\"seq_id\":") - 1 };

int tnk__sample_retarget(tnk__buf_t *out, tnk__sample_seq_t *seq,
                         const char *sampling_session_id) {
  const size_t id_at = seq->at - GAP - seq->id_n;
  tnk__json_writer_t w;
  tnk__buf_t id;
  int err;

  if (seq->n == 0)
    return out->err;
  tnk__buf_init(&id, out->alloc, out->max);
  tnk__json_writer_init(&w, &id);
  tnk__json_text(&w, sampling_session_id);
  err = tnk__json_finish(&w);
  if (err == TNK_OK)
    err = replace(out, id_at, seq->id_n, id.data, id.len);
  if (err == TNK_OK) {
    seq->at = seq->at - seq->id_n + id.len;
    seq->id_n = (uint32_t)id.len;
  }
  tnk__buf_deinit(&id);
  return err;
}
