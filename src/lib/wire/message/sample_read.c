#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tinker.pb-c.h"

#include "lib/wire/format/le.h"
#include "lib/wire/message/sample_json.h"
#include "lib/wire/message/sample_wire.h"
#include "lib/wire/message/tensor_read.h"
#include "tnk/error.h"

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
    tnk__samples_from_json(&room, samples, body, n);
  if (room.err != TNK_OK) {
    tnk__arena_deinit(&room.arena);
    return room.err;
  }
  samples->arena = room.arena;
  *out = samples;
  return TNK_OK;
}

/* ---- Checking the options ---- */

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
