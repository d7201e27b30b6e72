/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_FUZZ_TENSOR_H
#define TNK_TEST_FUZZ_TENSOR_H

#include "fuzz.h"
#include "lib/wire/data/data.h"

/* Touch every byte, so that a sanitizer sees one that is not ours. */
static inline void fuzz_touch(const void *data, size_t n) {
  const volatile uint8_t *bytes = data;

  for (size_t i = 0; i < n; i++)
    (void)bytes[i];
}

/* What tnk/data.h promises of a tensor in a result. */
static inline void fuzz_tensor(const tnk_tensor_t *tensor) {
  size_t n;

  FUZZ_CHECK(tensor->dtype == TNK_I64 || tensor->dtype == TNK_F32);
  FUZZ_CHECK(tensor->n_dims <= TNK_MAX_DIMS);
  FUZZ_CHECK(tnk__tensor_elements(tensor, &n));
  FUZZ_CHECK(tensor->crow != NULL || n == tensor->n_values);
  FUZZ_CHECK((uintptr_t)tensor->data % tnk__dtype_size(tensor->dtype) == 0);
  fuzz_touch(tensor->data, tensor->n_values * tnk__dtype_size(tensor->dtype));
  if (tensor->crow == NULL)
    return;
  FUZZ_CHECK(tensor->n_dims == 2 && tensor->crow[0] == 0);
  for (int64_t row = 0; row < tensor->shape[0]; row++) {
    FUZZ_CHECK(tensor->crow[row] <= tensor->crow[row + 1]);
    for (int64_t i = tensor->crow[row]; i < tensor->crow[row + 1]; i++)
      FUZZ_CHECK(tensor->col[i] >= 0 && tensor->col[i] < tensor->shape[1]);
  }
  FUZZ_CHECK(tensor->crow[tensor->shape[0]] == (int64_t)tensor->n_values);
}

#endif
