/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include "lib/base/alloc.h"
#include "lib/base/base64.h"
#include "lib/base/limits.h"
#include "lib/wire/message/calls_future.h"
#include "lib/wire/message/calls_sampling.h"
#include "lib/wire/message/calls_session.h"
#include "lib/wire/message/calls_training.h"
#include "lib/wire/message/sampler_text.h"
#include "tnk/error.h"

static void read_flags(const uint8_t *data, size_t size) {
  tnk__dynamic_flags_t dynamic;
  tnk__flags_t flags;

  tnk__flags_default(&flags);
  tnk__dynamic_flags_default(&dynamic);
  tnk__flags_read(&flags, data, size);
  tnk__dynamic_flags_read(&dynamic, data, size);
  FUZZ_CHECK(flags.train_chunk_items > 0 && flags.sample_concurrency > 0);
  FUZZ_CHECK(flags.result_bytes < (uint64_t)1 << 62);
  FUZZ_CHECK(flags.billing_pause_s < UINT64_MAX / 1000);
  FUZZ_CHECK(dynamic.sample_cancel_batch > 0);
  FUZZ_CHECK(dynamic.refresh_interval_s < UINT64_MAX / 1000);
}

static void read_results(tnk__arena_t *arena, const uint8_t *data,
                         size_t size) {
  tnk__create_session_reply_t session;
  tnk_capabilities_t *capabilities;
  tnk__weights_info_t weights;
  tnk_training_info_t info;
  tnk__sampler_t sampler;
  tnk__saved_t saved;
  tnk__batch_answer_t batch;
  const char *id;
  uint64_t counter;

  if (tnk__create_session_read(&session, arena, data, size) == TNK_OK)
    FUZZ_CHECK(session.session_id[0] != '\0');
  if (tnk__capabilities_read(&capabilities, arena, data, size) == TNK_OK)
    tnk_capabilities_model(capabilities, 0);
  if (tnk__weights_info_read(&weights, arena, data, size) == TNK_OK)
    FUZZ_CHECK(weights.base_model != NULL && weights.optimizer != NULL);
  if (tnk__get_info_read(&info, arena, data, size) == TNK_OK)
    FUZZ_CHECK(info.model_id != NULL && info.optimizer != NULL);
  if (tnk__sampler_read(&sampler, arena, data, size) == TNK_OK)
    FUZZ_CHECK(sampler.base_model != NULL);
  tnk__saved_read(&saved, arena, data, size);
  if (tnk__create_model_read(&id, arena, data, size) == TNK_OK)
    FUZZ_CHECK(id[0] != '\0');
  if (tnk__join_sampling_read(&counter, data, size) == TNK_OK)
    FUZZ_CHECK(counter < UINT64_MAX / 1000000000);
  if (tnk__retrieve_futures_read(&batch, arena, data, size) == TNK_OK)
    for (size_t i = 0; i < batch.n; i++)
      FUZZ_CHECK(batch.completions[i].request_id != NULL);
  tnk__health_read(data, size);
}

/* As JSON, written as the text that it would be in. */
static void read_sampler(tnk__arena_t *arena, const uint8_t *data,
                         size_t size) {
  tnk__sampler_text_t sampler = {0};
  const char *why;
  tnk__buf_t text;

  tnk__buf_init(&text, arena->alloc, TNK__MIB);
  tnk__base64_write(&text, data, size);
  tnk__buf_byte(&text, '\0');
  if (text.err == TNK_OK &&
      tnk__sampler_text_read(&sampler, arena, (const char *)text.data, &why) ==
          TNK_OK)
    FUZZ_CHECK(sampler.session_id[0] != '\0' &&
               sampler.sampling_session_id[0] != '\0');
  tnk__buf_deinit(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tnk__arena_t arena;

  tnk__arena_init(&arena, tnk__allocator_default(), 64 * TNK__MIB);
  read_flags(data, size);
  read_results(&arena, data, size);
  read_sampler(&arena, data, size);
  tnk__arena_deinit(&arena);
  return 0;
}
