/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "fuzz.h"
#include "lib/base/alloc.h"
#include "lib/wire/message/sample_wire.h"
#include "tensor.h"
#include "tnk/error.h"

/* The first byte is 'P' for protobuf, 'C' for an event of a stream; anything
 * else is JSON. */

static void check_topk(const tnk_topk_t *topk) {
  if (topk == NULL)
    return;
  FUZZ_CHECK(topk->k > 0 && topk->length > 0);
  fuzz_touch(topk->ids, (size_t)4 * topk->k * topk->length);
  fuzz_touch(topk->logprobs, (size_t)4 * topk->k * topk->length);
}

static void check_tensor(const tnk_tensor_t *tensor, tnk_dtype_t dtype) {
  if (tensor == NULL)
    return;
  FUZZ_CHECK(tensor->dtype == dtype);
  fuzz_tensor(tensor);
}

static void check_sequence(const tnk_samples_t *samples, size_t i) {
  size_t n;
  const void *data = tnk_samples_tokens(samples, i, &n);

  FUZZ_CHECK((data == NULL) == (n == 0));
  fuzz_touch(data, 4 * n);
  data = tnk_samples_logprobs(samples, i, &n);
  FUZZ_CHECK((data == NULL) == (n == 0));
  fuzz_touch(data, 4 * n);
  FUZZ_CHECK(tnk_samples_stop_reason(samples, i) <= TNK_STOP_LENGTH);
  check_topk(tnk_samples_topk(samples, i));
}

static void check_chunk(const uint8_t *data, size_t n) {
  tnk__sample_chunk_t chunk;
  const int err = tnk__sample_chunk_read(&chunk, (const char *)data, n);

  FUZZ_CHECK(err == TNK_OK || err == TNK_EPROTO);
  if (err != TNK_OK)
    return;
  FUZZ_CHECK(chunk.is_error || chunk.has_token || chunk.text == NULL ||
             chunk.text[0] == '\0');
  FUZZ_CHECK(chunk.token >= 0 && chunk.index >= -1 && chunk.n_total >= -1);
  FUZZ_CHECK(chunk.stop_reason <= TNK_STOP_LENGTH);
  if (chunk.text != NULL)
    fuzz_touch(chunk.text, strlen(chunk.text));
  tnk__sample_chunk_clear(&chunk);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const ids[] = {"a", "b"};
  const tnk_allocator_t *alloc = tnk__allocator_default();
  tnk_samples_t *samples;
  const float *logprobs;
  size_t n;
  int err;

  if (size == 0)
    return 0;
  if (data[0] == 'C') {
    check_chunk(data + 1, size - 1);
    return 0;
  }
  err = tnk__samples_read(&samples, alloc, data + 1, size - 1, data[0] == 'P');
  FUZZ_CHECK(err == TNK_OK || err == TNK_EPROTO);
  if (err != TNK_OK)
    return 0;
  for (size_t i = 0; i < tnk_samples_count(samples); i++)
    check_sequence(samples, i);
  logprobs = tnk_samples_prompt_logprobs(samples, &n);
  fuzz_touch(logprobs, 4 * n);
  check_topk(tnk_samples_prompt_topk(samples));
  check_tensor(tnk_samples_target_logprobs(samples), TNK_F32);
  check_tensor(tnk_samples_alt_tokens(samples), TNK_I64);
  check_tensor(tnk_samples_alt_logprobs(samples), TNK_F32);
  FUZZ_CHECK((samples->alt_tokens == NULL) == (samples->alt_logprobs == NULL));
  err = tnk__samples_set_ids(samples, ids, 2);
  FUZZ_CHECK((err == TNK_OK) == (samples->n_sequences == 2));
  tnk__samples_free(alloc, samples);
  return 0;
}
