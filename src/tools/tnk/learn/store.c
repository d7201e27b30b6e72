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

int learn_datum(tnk_datum_t *out, tnk__arena_t *arena, const int32_t *ids,
                const float *weights, size_t n, float scale) {
  int64_t *targets = tnk__arena_alloc(arena, (n - 1) * sizeof(int64_t));
  float *scaled = tnk__arena_alloc(arena, (n - 1) * sizeof(*scaled));

  *out = (tnk_datum_t){
      .input = {.tokens = tnk__arena_copy(arena, ids, (n - 1) * sizeof(*ids)),
                .n_tokens = n - 1}};
  if (targets == NULL || out->input.tokens == NULL || scaled == NULL)
    return TNK_ENOMEM;
  for (size_t i = 0; i + 1 < n; i++) {
    targets[i] = ids[i + 1];
    scaled[i] = weights[i + 1] * scale;
  }
  out->targets = targets;
  out->weights = scaled;
  return TNK_OK;
}

int learn_store_add_tokens(learn_store_t *store, const int32_t *ids,
                           const float *weights, size_t n, float scale) {
  tnk_datum_t datum;
  const int err = learn_datum(&datum, &store->arena, ids, weights, n, scale);

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
