/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_DATA_PRICES_H
#define TNK_LIB_WIRE_DATA_PRICES_H

#include "lib/base/arena.h"
#include "tnk/usage.h"

enum { TNK__MAX_PRICES = 1024 * 1024 };

/* Check prices from a caller or a file. Returns TNK_OK, or TNK_EINVAL with a
 * sentence in `text`, truncated to `size`. */
int tnk__prices_check(const tnk_price_t *prices, size_t n, char *text,
                      size_t size);
/* Parse a file of prices into the arena, without checking them. Returns TNK_OK,
 * TNK_ENOMEM, or TNK_EFILE with a sentence. */
int tnk__prices_read(tnk_price_t **out, size_t *n_out, tnk__arena_t *arena,
                     const void *data, size_t n_data, char *text, size_t size);

#endif
