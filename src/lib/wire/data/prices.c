/* SPDX-License-Identifier: MIT */
#include "lib/wire/data/prices.h"

#include <math.h>
#include <stdio.h>

#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

/* USD for a million tokens. Higher prices would make sums too large. */
static const double max_price = 1e6;

static int is_price(double price) {
  return isfinite(price) && price >= 0 && price <= max_price;
}

static int complain(char *text, size_t size, int err, size_t i,
                    const char *what) {
  snprintf(text, size, "price %zu: %s", i, what);
  return err;
}

int tnk__prices_check(const tnk_price_t *prices, size_t n, char *text,
                      size_t size) {
  size_t i;

  for (i = 0; i < n; i++) {
    const tnk_price_t *price = &prices[i];
    if (!is_price(price->prompt) || !is_price(price->cached) ||
        !is_price(price->sampled) || !is_price(price->trained))
      return complain(text, size, TNK_EINVAL, i,
                      "an amount is not from 0 to 1,000,000");
    if (price->cached > price->prompt)
      return complain(text, size, TNK_EINVAL, i,
                      "cached tokens cost more than others");
  }
  return TNK_OK;
}

/* Returns 0 if a member is missing or has another type. */
static int read_row(const json_t *row, tnk_price_t *price) {
  tnk__json_has_t has;

  if (tnk__json_get_text(row, "model", &price->model) == TNK__JSON_WRONG ||
      tnk__json_get_double(row, "prompt", &price->prompt) != TNK__JSON_FOUND ||
      tnk__json_get_double(row, "sampled", &price->sampled) !=
          TNK__JSON_FOUND ||
      tnk__json_get_double(row, "trained", &price->trained) != TNK__JSON_FOUND)
    return 0;
  price->cached = price->prompt;
  has = tnk__json_get_double(row, "cached", &price->cached);
  return has == TNK__JSON_FOUND || has == TNK__JSON_ABSENT;
}

static int read_rows(tnk_price_t *prices, const json_t *rows,
                     tnk__arena_t *arena, char *text, size_t size) {
  size_t i;

  for (i = 0; i < json_array_size(rows); i++) {
    if (!read_row(json_array_get(rows, i), &prices[i]))
      return complain(text, size, TNK_EFILE, i,
                      "\"prompt\", \"sampled\" and \"trained\" must be "
                      "numbers, \"cached\" may be one, and \"model\" a text");
    if (prices[i].model == NULL)
      continue;
    prices[i].model = tnk__arena_strdup(arena, prices[i].model);
    if (prices[i].model == NULL)
      return TNK_ENOMEM;
  }
  return TNK_OK;
}

int tnk__prices_read(tnk_price_t **out, size_t *n_out, tnk__arena_t *arena,
                     const void *data, size_t n_data, char *text, size_t size) {
  json_t *root;
  const json_t *rows;
  int err = tnk__json_parse_object(&root, data, n_data);

  if (err == TNK_ENOMEM)
    return err;
  rows = err == TNK_OK ? tnk__json_arr(root, "prices") : NULL;
  if (rows == NULL) {
    snprintf(text, size, "there is no list \"prices\" in it");
    err = TNK_EFILE;
  } else {
    *n_out = json_array_size(rows);
    *out = tnk__arena_calloc(arena, *n_out + 1, sizeof(**out));
    err = *out != NULL ? read_rows(*out, rows, arena, text, size) : TNK_ENOMEM;
  }
  if (root != NULL)
    json_decref(root);
  return err;
}
