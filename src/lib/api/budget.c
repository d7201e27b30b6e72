/* SPDX-License-Identifier: MIT */
/* Converts the caller's limits and prices to the allowance's form. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/api/service.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/limits.h"
#include "lib/base/options.h"
#include "lib/wire/data/prices.h"

enum { TEXT = 256 };

/* The largest amount of money that fits into 64 bits. */
static const double max_usd = 1.8e7;

/* ---- Money ---- */

static uint64_t parts_of(double usd) {
  if (!(usd > 0)) /* also rejects NaN */
    return 0;
  return usd < max_usd ? (uint64_t)(usd * (double)TNK__USD + 0.5) : UINT64_MAX;
}

/* The price of one token, from the price of a million. */
static uint64_t token_parts(double usd) {
  return parts_of(usd / 1e6);
}

/* ---- Prices ---- */

static int read_file(tnk__buf_t *buf, FILE *file) {
  for (;;) {
    uint8_t *to = tnk__buf_reserve(buf, 4096);
    size_t n;
    if (to == NULL)
      return buf->err == TNK_ENOMEM ? TNK_ENOMEM : TNK_EFILE;
    n = fread(to, 1, 4096, file);
    buf->len += n;
    if (n < 4096)
      return ferror(file) ? TNK_EFILE : TNK_OK;
  }
}

/* Replace the budget's prices by those of its file. */
static int load_file(tnk_budget_t *budget, tnk__arena_t *arena, char *why) {
  FILE *file = fopen(budget->prices_file, "re");
  tnk_price_t *prices;
  char said[TEXT / 2];
  tnk__buf_t buf;
  int err;

  if (file == NULL) {
    snprintf(why, TEXT, "prices_file cannot be read: %.80s", strerror(errno));
    return TNK_EFILE;
  }
  tnk__buf_init(&buf, arena->alloc, TNK__MAX_PRICES);
  snprintf(said, sizeof(said), "it cannot be read, or is too large");
  err = read_file(&buf, file);
  fclose(file);
  if (err == TNK_OK)
    err = tnk__prices_read(&prices, &budget->n_prices, arena, buf.data, buf.len,
                           said, sizeof(said));
  if (err == TNK_OK)
    budget->prices = prices;
  else if (err == TNK_EFILE)
    snprintf(why, TEXT, "prices_file: %s", said);
  tnk__buf_deinit(&buf);
  return err;
}

/* Copy the prices for the allowance. */
static int make_prices(tnk__price_t **out, tnk__arena_t *arena,
                       const tnk_budget_t *budget) {
  size_t i;

  *out = tnk__arena_calloc(arena, budget->n_prices + 1, sizeof(**out));
  if (*out == NULL)
    return TNK_ENOMEM;
  for (i = 0; i < budget->n_prices; i++) {
    const tnk_price_t *from = &budget->prices[i];
    tnk__price_t *to = &(*out)[i];
    *to = (tnk__price_t){.prompt = token_parts(from->prompt),
                         .cached = token_parts(from->cached),
                         .sampled = token_parts(from->sampled),
                         .trained = token_parts(from->trained)};
    if (from->model == NULL)
      continue;
    to->model = tnk__arena_strdup(arena, from->model);
    if (to->model == NULL)
      return TNK_ENOMEM;
  }
  return TNK_OK;
}

/* ---- The budget ---- */

static int check(const tnk_budget_t *budget, char *why) {
  if (!isfinite(budget->max_usd) || budget->max_usd < 0 ||
      budget->max_usd > max_usd) {
    snprintf(why, TEXT, "max_usd is not from 0 to 18,000,000");
    return TNK_EINVAL;
  }
  if (budget->prices_file != NULL && budget->n_prices > 0) {
    snprintf(why, TEXT, "both prices and prices_file are given");
    return TNK_EINVAL;
  }
  if (budget->prices == NULL && budget->n_prices > 0) {
    snprintf(why, TEXT, "prices is NULL");
    return TNK_EINVAL;
  }
  return TNK_OK;
}

static int check_prices(const tnk_budget_t *budget, char *why) {
  int err = tnk__prices_check(budget->prices, budget->n_prices, why, TEXT);

  if (err == TNK_OK && budget->max_usd > 0 && budget->n_prices == 0) {
    snprintf(why, TEXT, "max_usd needs prices");
    err = TNK_EINVAL;
  }
  return err == TNK_EINVAL && budget->prices_file != NULL ? TNK_EFILE : err;
}

static tnk__totals_t totals_of(const tnk_totals_t *totals) {
  return (tnk__totals_t){.prompt_tokens = totals->n_prompt_tokens,
                         .cached_tokens = totals->n_cached_tokens,
                         .sampled_tokens = totals->n_sampled_tokens,
                         .trained_tokens = totals->n_trained_tokens,
                         .unpriced_tokens = totals->n_unpriced_tokens,
                         .doubtful_tokens = totals->n_doubtful_tokens,
                         .cost = parts_of(totals->cost_usd),
                         .doubtful_cost = parts_of(totals->doubtful_usd),
                         .n_requests = totals->n_requests,
                         .n_bytes_sent = totals->n_bytes_sent,
                         .n_bytes_received = totals->n_bytes_received};
}

/* Do all steps that can fail first, so that a failure changes nothing. */
static int prepare(tnk_budget_t *own, tnk_totals_t *before,
                   const tnk_budget_t *budget, tnk__arena_t *arena,
                   tnk__price_t **prices, char *why) {
  int err = TNK__LOAD(tnk_budget_t, own, budget, why, TEXT);

  if (err == TNK_OK)
    err = TNK__LOAD(tnk_totals_t, before, own->before, why, TEXT);
  if (err == TNK_OK)
    err = check(own, why);
  if (err == TNK_OK && own->prices_file != NULL)
    err = load_file(own, arena, why);
  if (err == TNK_OK)
    err = check_prices(own, why);
  return err != TNK_OK ? err : make_prices(prices, arena, own);
}

int tnk_service_set_budget(tnk_service_t *service, const tnk_budget_t *budget,
                           char *why, size_t why_size) {
  tnk_budget_t own = TNK_BUDGET_INIT;
  tnk_totals_t before = TNK_TOTALS_INIT;
  tnk__price_t *prices = NULL;
  tnk__allowance_t *allowance;
  tnk__arena_t arena;
  char said[TEXT] = "";
  int err;

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return tnk__root_say(why, why_size, TNK_EINVAL, "no service was given");
  tnk__arena_init(&arena, &service->root.alloc, 4 * (size_t)TNK__MAX_PRICES);
  err = prepare(&own, &before, budget, &arena, &prices, said);
  if (err != TNK_OK) {
    tnk__arena_deinit(&arena);
    return tnk__root_say(why, why_size, err, said[0] != '\0' ? said : NULL);
  }
  allowance = &service->session.limits.allowance;
  tnk__arena_deinit(&service->prices);
  service->prices = arena;
  allowance->max_tokens = own.max_tokens;
  allowance->max_cost = parts_of(own.max_usd);
  allowance->prices = prices;
  allowance->n_prices = own.n_prices;
  allowance->before = own.before != NULL ? totals_of(&before) : allowance->kept;
  return tnk__root_say(why, why_size, TNK_OK, NULL);
}
