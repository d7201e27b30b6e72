/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "lib/base/alloc.h"
#include "lib/wire/message/pass_result.h"
#include "tensor.h"
#include "tnk/error.h"

/* The first byte is 'P' for protobuf; anything else is JSON. */

static void check_metrics(const tnk_metrics_t *metrics) {
  for (size_t i = 0; i < tnk_metrics_count(metrics); i++) {
    const char *key = tnk_metrics_key(metrics, i);
    double value = tnk_metrics_value(metrics, i);
    double found = tnk_metrics_get(metrics, key);

    fuzz_touch(key, strlen(key));
    FUZZ_CHECK(found == value || (isnan(found) && isnan(value)));
  }
}

static void check_pass(const tnk_pass_t *pass) {
  fuzz_touch(tnk_pass_output_type(pass), strlen(tnk_pass_output_type(pass)));
  for (size_t i = 0; i < tnk_pass_count(pass); i++)
    for (size_t f = 0; f < tnk_pass_field_count(pass, i); f++) {
      const char *name = tnk_pass_field_name(pass, i, f);

      fuzz_tensor(tnk_pass_tensor(pass, i, name));
    }
  for (size_t i = 0; i < pass->warnings.n; i++)
    fuzz_touch(pass->warnings.text[i], strlen(pass->warnings.text[i]));
  check_metrics(tnk_pass_metrics(pass));
}

/* Two copies joined hold twice what one holds. */
static void join(tnk_pass_t *first, tnk_pass_t *second) {
  const tnk_allocator_t *alloc = tnk__allocator_default();
  tnk_pass_t *parts[] = {first, second}, *pass;
  size_t n = first->n_outputs;

  FUZZ_CHECK(tnk__pass_result_combine(&pass, alloc, parts, NULL, 2) == TNK_OK);
  FUZZ_CHECK(tnk_pass_count(pass) == 2 * n);
  check_pass(pass);
  FUZZ_CHECK(tnk__pass_result_set_custom_loss(pass, 1, NULL, 0) == TNK_OK);
  FUZZ_CHECK(tnk_metrics_get(tnk_pass_metrics(pass), "loss:sum") == 1);
  tnk__pass_result_free(alloc, pass);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const tnk_allocator_t *alloc = tnk__allocator_default();
  int is_proto = size > 0 && data[0] == 'P';
  tnk_pass_t *first, *second;
  int err;

  if (size == 0)
    return 0;
  err = tnk__pass_result_read(&first, alloc, data + 1, size - 1, is_proto);
  FUZZ_CHECK(err == TNK_OK || err == TNK_EPROTO);
  if (err != TNK_OK)
    return 0;
  check_pass(first);
  err = tnk__pass_result_read(&second, alloc, data + 1, size - 1, is_proto);
  FUZZ_CHECK(err == TNK_OK);
  join(first, second);
  return 0;
}
