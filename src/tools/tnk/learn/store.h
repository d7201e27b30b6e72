/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_LEARN_STORE_H
#define TNK_TOOLS_TNK_LEARN_STORE_H

#include "lib/base/arena.h"
#include "tnk/data.h"

/* The examples of a run, which it owns. */
typedef struct {
  tnk__arena_t arena;
  tnk_datum_t *data;
  size_t n, room;
} learn_store_t;

void learn_store_init(learn_store_t *store);
/* Make an example of next-token training, as a view of its ids and weights: the
 * model reads all ids except the last, and the weight of an id applies to it as
 * a target. The caller has checked them. Needs a little memory of the arena.
 * All functions return TNK_OK or TNK_ENOMEM. */
int learn_datum(tnk_datum_t *out, tnk__arena_t *arena, const int32_t *ids,
                const float *weights, size_t n);
/* Add one, a copy, with its weights times `scale`. */
int learn_store_add_tokens(learn_store_t *store, const int32_t *ids,
                           const float *weights, size_t n, float scale);
/* Add a prompt, which has only an input. */
int learn_store_add_prompt(learn_store_t *store, const int32_t *ids, size_t n);
/* Add a copy of an example. */
int learn_store_add(learn_store_t *store, const tnk_datum_t *datum);
void learn_store_free(learn_store_t *store);

/* The digest of the contents of an example. */
uint64_t learn_store_digest(uint64_t sum, const tnk_datum_t *datum);

#endif
