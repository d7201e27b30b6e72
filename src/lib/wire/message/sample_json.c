#include "lib/wire/message/sample_json.h"

#include <string.h>

#include "lib/wire/format/json_read.h"
#include "lib/wire/message/tensor_read.h"
#include "tnk/error.h"

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

static void read_sequence(tnk__room_t *room, const json_t *object,
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

static void read_extras(tnk__room_t *room, tnk_samples_t *samples,
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

void tnk__samples_from_json(tnk__room_t *room, tnk_samples_t *samples,
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
    read_sequence(room, json_array_get(sequences, i), &samples->sequences[i]);
  samples->prompt_logprobs =
      floats_of(room, root, "prompt_logprobs", &samples->n_prompt_logprobs);
  read_extras(room, samples, root);
  json_decref(root);
}
