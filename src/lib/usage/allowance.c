/* SPDX-License-Identifier: MIT */
#include "lib/usage/allowance.h"

#include <string.h>

/* ---- Prices ---- */

/* The row of a model, or the default row. NULL if neither exists. */
static const tnk__price_t *price_of(const tnk__allowance_t *allowance,
                                    const char *model) {
  const tnk__price_t *other = NULL;
  size_t i;

  for (i = 0; i < allowance->n_prices; i++) {
    const tnk__price_t *price = &allowance->prices[i];
    if (price->model == NULL)
      other = price;
    else if (model != NULL && strcmp(price->model, model) == 0)
      return price;
  }
  return other;
}

static uint64_t cost_of(const tnk__price_t *price, const tnk__use_t *use) {
  uint64_t cost = tnk__product(use->prompt - use->cached, price->prompt);

  cost = tnk__sum(cost, tnk__product(use->cached, price->cached));
  cost = tnk__sum(cost, tnk__product(use->sampled, price->sampled));
  return tnk__sum(cost, tnk__product(use->trained, price->trained));
}

/* ---- Taking ---- */

/* Tokens that count against the limit: used, doubtful or reserved. */
static uint64_t tokens_of(const tnk__totals_t *totals) {
  const tnk__use_t use = {.prompt = totals->prompt_tokens,
                          .sampled = totals->sampled_tokens,
                          .trained = totals->trained_tokens};

  return tnk__sum(tnk__use_tokens(&use), totals->doubtful_tokens);
}

static uint64_t used_tokens(const tnk__allowance_t *allowance) {
  return tnk__sum(tokens_of(&allowance->before), tokens_of(&allowance->used));
}

static uint64_t used_cost(const tnk__allowance_t *allowance) {
  return tnk__sum(
      tnk__sum(allowance->before.cost, allowance->before.doubtful_cost),
      tnk__sum(allowance->used.cost, allowance->used.doubtful_cost));
}

static int is_over(uint64_t used, uint64_t taken, uint64_t more, uint64_t max) {
  const uint64_t sum = tnk__sum(tnk__sum(used, taken), more);

  return max != 0 && (sum > max || sum == UINT64_MAX);
}

int tnk__allowance_is_limited(const tnk__allowance_t *allowance) {
  return allowance->max_tokens != 0 || allowance->max_cost != 0;
}

static tnk__grant_t grant_of(const tnk__allowance_t *allowance,
                             const tnk__claim_t *claim,
                             const tnk__price_t *price, uint64_t tokens,
                             uint64_t cost) {
  if (!tnk__allowance_is_limited(allowance))
    return TNK__ALLOWANCE_GRANTED;
  if (claim->is_open)
    return TNK__ALLOWANCE_OPEN;
  if (allowance->max_cost != 0 && price == NULL)
    return TNK__ALLOWANCE_PRICE;
  if (is_over(used_tokens(allowance), allowance->taken_tokens, tokens,
              allowance->max_tokens) ||
      (allowance->is_lost && allowance->max_tokens != 0))
    return TNK__ALLOWANCE_TOKENS;
  if (is_over(used_cost(allowance), allowance->taken_cost, cost,
              allowance->max_cost) ||
      (allowance->is_lost && allowance->max_cost != 0))
    return TNK__ALLOWANCE_COST;
  return TNK__ALLOWANCE_GRANTED;
}

tnk__grant_t tnk__allowance_take(tnk__allowance_t *allowance,
                                 const tnk__claim_t *claim, tnk__held_t *held) {
  const tnk__price_t *price = price_of(allowance, claim->model);
  const uint64_t tokens = tnk__use_tokens(&claim->most);
  const uint64_t cost = price != NULL ? cost_of(price, &claim->most) : 0;
  const tnk__grant_t grant = grant_of(allowance, claim, price, tokens, cost);

  if (grant != TNK__ALLOWANCE_GRANTED)
    return grant;
  *held = (tnk__held_t){.tokens = tokens, .cost = cost, .is_taken = 1};
  allowance->taken_tokens = tnk__sum(allowance->taken_tokens, tokens);
  allowance->taken_cost = tnk__sum(allowance->taken_cost, cost);
  allowance->n_held++;
  if (allowance->taken_tokens == UINT64_MAX ||
      allowance->taken_cost == UINT64_MAX)
    allowance->is_lost = 1;
  return TNK__ALLOWANCE_GRANTED;
}

/* ---- Giving back ---- */

static void lower(uint64_t *sum, uint64_t by) {
  *sum -= by < *sum ? by : *sum;
}

void tnk__allowance_give_back(tnk__allowance_t *allowance, tnk__held_t *held) {
  if (!held->is_taken)
    return;
  lower(&allowance->taken_tokens, held->tokens);
  lower(&allowance->taken_cost, held->cost);
  *held = (tnk__held_t){0};
  if (--allowance->n_held > 0)
    return;
  allowance->taken_tokens = allowance->taken_cost = 0;
  allowance->is_lost = 0;
}

/* The part of a reservation that belongs to n_tokens. */
static tnk__held_t part_of(const tnk__held_t *held, uint64_t n_tokens) {
  if (n_tokens >= held->tokens)
    return *held;
  return (tnk__held_t){.tokens = n_tokens,
                       .cost = held->cost / held->tokens * n_tokens};
}

void tnk__allowance_give_part(tnk__allowance_t *allowance, tnk__held_t *held,
                              uint64_t n_tokens) {
  const tnk__held_t part = part_of(held, n_tokens);

  lower(&allowance->taken_tokens, part.tokens);
  lower(&allowance->taken_cost, part.cost);
  lower(&held->tokens, part.tokens);
  lower(&held->cost, part.cost);
}

/* ---- Counting ---- */

static void count(tnk__totals_t *totals, const tnk__price_t *price,
                  const tnk__use_t *use) {
  tnk__totals_use(totals, use);
  if (price != NULL)
    totals->cost = tnk__sum(totals->cost, cost_of(price, use));
  else
    totals->unpriced_tokens =
        tnk__sum(totals->unpriced_tokens, tnk__use_tokens(use));
}

void tnk__allowance_use(tnk__allowance_t *allowance, tnk__totals_t *client,
                        const char *model, const tnk__use_t *use) {
  const tnk__price_t *price = price_of(allowance, model);

  count(&allowance->used, price, use);
  if (client != NULL)
    count(client, price, use);
}

static void doubt(tnk__totals_t *totals, const tnk__held_t *held) {
  totals->doubtful_tokens = tnk__sum(totals->doubtful_tokens, held->tokens);
  totals->doubtful_cost = tnk__sum(totals->doubtful_cost, held->cost);
}

void tnk__allowance_doubt_part(tnk__allowance_t *allowance,
                               tnk__totals_t *client, tnk__held_t *held,
                               uint64_t n_tokens) {
  const tnk__held_t part = part_of(held, n_tokens);

  doubt(&allowance->used, &part);
  if (client != NULL)
    doubt(client, &part);
  tnk__allowance_give_part(allowance, held, n_tokens);
}

void tnk__allowance_doubt(tnk__allowance_t *allowance, tnk__totals_t *client,
                          tnk__held_t *held) {
  tnk__allowance_doubt_part(allowance, client, held, held->tokens);
  tnk__allowance_give_back(allowance, held);
}

/* ---- Words ---- */

static double usd(uint64_t cost) {
  return (double)cost / (double)TNK__USD;
}

void tnk__allowance_explain(const tnk__allowance_t *allowance,
                            tnk__grant_t grant, const tnk__claim_t *claim,
                            tnk__text_t *out) {
  const tnk__price_t *price = price_of(allowance, claim->model);

  switch (grant) {
  case TNK__ALLOWANCE_GRANTED:
    break;
  case TNK__ALLOWANCE_TOKENS:
    tnk__text_printf(out,
                     "it may take %llu tokens; of the %llu of the budget, "
                     "%llu are used and %llu reserved",
                     (unsigned long long)tnk__use_tokens(&claim->most),
                     (unsigned long long)allowance->max_tokens,
                     (unsigned long long)used_tokens(allowance),
                     (unsigned long long)allowance->taken_tokens);
    break;
  case TNK__ALLOWANCE_COST:
    tnk__text_printf(out,
                     "it may cost %.6f USD; of the %.6f of the budget, %.6f "
                     "are used and %.6f reserved",
                     usd(price != NULL ? cost_of(price, &claim->most) : 0),
                     usd(allowance->max_cost), usd(used_cost(allowance)),
                     usd(allowance->taken_cost));
    break;
  case TNK__ALLOWANCE_PRICE:
    tnk__text_printf(out, "the budget is in USD, but there is no price for %s",
                     claim->model != NULL ? claim->model : "its model");
    break;
  case TNK__ALLOWANCE_OPEN:
    tnk__text_printf(out, "there is a budget, but how many tokens it takes is "
                          "not known: set max_tokens, and expected_tokens of "
                          "images");
    break;
  }
}
