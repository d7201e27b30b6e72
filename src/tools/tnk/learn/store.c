/* SPDX-License-Identifier: MIT */
#include "tools/tnk/learn/store.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/data/data.h"
#include "tnk/error.h"
#include "tools/common/base/digest.h"

void learn_store_init(learn_store_t *store) {
  *store = (learn_store_t){0};
  tnk__arena_init(&store->arena, tnk__allocator_default(), SIZE_MAX / 2);
}

static int append(learn_store_t *store, const tnk_datum_t *datum) {
  if (store->n == store->room) {
    const size_t room = (store->n + 64) * 2;
    tnk_datum_t *data = realloc(store->data, room * sizeof(*data));

    if (data == NULL)
      return TNK_ENOMEM;
    store->data = data;
    store->room = room;
  }
  store->data[store->n++] = *datum;
  return TNK_OK;
}

/* The targets are the ids behind the first. As 64-bit integers they would need
 * twice the memory of the ids, and each step reads them from there. */
int learn_datum(tnk_datum_t *out, tnk__arena_t *arena, const int32_t *ids,
                const float *weights, size_t n) {
  tnk_loss_input_t *targets = tnk__arena_alloc(arena, sizeof(*targets));

  if (targets == NULL)
    return TNK_ENOMEM;
  *targets = (tnk_loss_input_t){
      .name = "target_tokens",
      .tensor = {.dtype = TNK_I32, .data = ids + 1, .n_values = n - 1}};
  *out = (tnk_datum_t){.input = {.tokens = ids, .n_tokens = n - 1},
                       .weights = weights + 1,
                       .loss_inputs = targets,
                       .n_loss_inputs = 1};
  return TNK_OK;
}

int learn_store_add_tokens(learn_store_t *store, const int32_t *ids,
                           const float *weights, size_t n, float scale) {
  tnk__arena_t *arena = &store->arena;
  const int32_t *own = tnk__arena_copy(arena, ids, n * sizeof(*own));
  float *scaled = tnk__arena_alloc(arena, n * sizeof(*scaled));
  tnk_datum_t datum;
  int err;

  if (own == NULL || scaled == NULL)
    return TNK_ENOMEM;
  for (size_t i = 0; i < n; i++)
    scaled[i] = weights[i] * scale;
  err = learn_datum(&datum, arena, own, scaled, n);
  return err == TNK_OK ? append(store, &datum) : err;
}

int learn_store_add_prompt(learn_store_t *store, const int32_t *ids, size_t n) {
  const tnk_datum_t datum = {
      .input = {.tokens = tnk__arena_copy(&store->arena, ids, n * sizeof(*ids)),
                .n_tokens = n}};

  return datum.input.tokens != NULL ? append(store, &datum) : TNK_ENOMEM;
}

int learn_store_add(learn_store_t *store, const tnk_datum_t *datum) {
  const tnk_datum_t *copy = tnk__data_copy(&store->arena, datum, 1);

  return copy != NULL ? append(store, copy) : TNK_ENOMEM;
}

void learn_store_free(learn_store_t *store) {
  free(store->data);
  tnk__arena_deinit(&store->arena);
}

/* ---- Digest ---- */

static uint64_t digest_tensor(uint64_t sum, const tnk_tensor_t *tensor) {
  const size_t n_crow = tnk__tensor_n_crow(tensor);

  for (uint32_t i = 0; i < tensor->n_dims; i++)
    sum = cli_digest(sum, &tensor->shape[i], sizeof(tensor->shape[i]));
  for (size_t i = 0; i < tensor->n_values; i++) {
    const int64_t whole =
        tnk__dtype_is_int(tensor->dtype) ? tnk__tensor_int(tensor, i) : 0;
    const double real =
        tnk__dtype_is_int(tensor->dtype) ? 0 : tnk__tensor_float(tensor, i);

    sum = cli_digest(sum, &whole, sizeof(whole));
    sum = cli_digest(sum, &real, sizeof(real));
  }
  if (n_crow == 0)
    return sum;
  sum = cli_digest(sum, tensor->crow, n_crow * sizeof(*tensor->crow));
  return cli_digest(sum, tensor->col, tensor->n_values * sizeof(*tensor->col));
}

uint64_t learn_store_digest(uint64_t sum, const tnk_datum_t *datum) {
  for (size_t i = 0; i < tnk__input_n_chunks(&datum->input); i++) {
    const tnk_chunk_t chunk = tnk__input_chunk(&datum->input, i);

    sum = cli_digest(sum, &chunk.n_tokens, sizeof(chunk.n_tokens));
    sum = cli_digest(sum, chunk.tokens, chunk.n_tokens * sizeof(*chunk.tokens));
    sum = cli_digest(sum, chunk.bytes, chunk.n_bytes);
    if (chunk.location != NULL)
      sum = cli_digest(sum, chunk.location, strlen(chunk.location) + 1);
  }
  for (size_t i = 0; i < tnk__datum_n_inputs(datum); i++) {
    const tnk_loss_input_t input = tnk__datum_input_at(datum, i);

    sum = cli_digest(sum, input.name, strlen(input.name) + 1);
    sum = digest_tensor(sum, &input.tensor);
  }
  return sum;
}
