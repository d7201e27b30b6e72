#include "lib/usage/purse.h"

#include <string.h>

/* ---- Prices ---- */

/* The row of a model, or the default row. NULL if neither exists. */
static const tnk__price_t *price_of(const tnk__purse_t *purse,
                                    const char *model) {
  const tnk__price_t *other = NULL;
  size_t i;

  for (i = 0; i < purse->n_prices; i++) {
    const tnk__price_t *price = &purse->prices[i];
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

static uint64_t used_tokens(const tnk__purse_t *purse) {
  return tnk__sum(tokens_of(&purse->before), tokens_of(&purse->used));
}

static uint64_t used_cost(const tnk__purse_t *purse) {
  return tnk__sum(tnk__sum(purse->before.cost, purse->before.doubtful_cost),
                  tnk__sum(purse->used.cost, purse->used.doubtful_cost));
}

static int is_over(uint64_t used, uint64_t taken, uint64_t more, uint64_t max) {
  const uint64_t sum = tnk__sum(tnk__sum(used, taken), more);

  return max != 0 && (sum > max || sum == UINT64_MAX);
}

int tnk__purse_is_limited(const tnk__purse_t *purse) {
  return purse->max_tokens != 0 || purse->max_cost != 0;
}

static tnk__grant_t grant_of(const tnk__purse_t *purse,
                             const tnk__claim_t *claim,
                             const tnk__price_t *price, uint64_t tokens,
                             uint64_t cost) {
  if (!tnk__purse_is_limited(purse))
    return TNK__PURSE_GRANTED;
  if (claim->is_open)
    return TNK__PURSE_OPEN;
  if (purse->max_cost != 0 && price == NULL)
    return TNK__PURSE_PRICE;
  if (is_over(used_tokens(purse), purse->taken_tokens, tokens,
              purse->max_tokens) ||
      (purse->is_lost && purse->max_tokens != 0))
    return TNK__PURSE_TOKENS;
  if (is_over(used_cost(purse), purse->taken_cost, cost, purse->max_cost) ||
      (purse->is_lost && purse->max_cost != 0))
    return TNK__PURSE_COST;
  return TNK__PURSE_GRANTED;
}

tnk__grant_t tnk__purse_take(tnk__purse_t *purse, const tnk__claim_t *claim,
                             tnk__held_t *held) {
  const tnk__price_t *price = price_of(purse, claim->model);
  const uint64_t tokens = tnk__use_tokens(&claim->most);
  const uint64_t cost = price != NULL ? cost_of(price, &claim->most) : 0;
  const tnk__grant_t grant = grant_of(purse, claim, price, tokens, cost);

  if (grant != TNK__PURSE_GRANTED)
    return grant;
  *held = (tnk__held_t){.tokens = tokens, .cost = cost, .is_taken = 1};
  purse->taken_tokens = tnk__sum(purse->taken_tokens, tokens);
  purse->taken_cost = tnk__sum(purse->taken_cost, cost);
  purse->n_held++;
  if (purse->taken_tokens == UINT64_MAX || purse->taken_cost == UINT64_MAX)
    purse->is_lost = 1;
  return TNK__PURSE_GRANTED;
}

/* ---- Giving back ---- */

static void lower(uint64_t *sum, uint64_t by) {
  *sum -= by < *sum ? by : *sum;
}

void tnk__purse_give_back(tnk__purse_t *purse, tnk__held_t *held) {
  if (!held->is_taken)
    return;
  lower(&purse->taken_tokens, held->tokens);
  lower(&purse->taken_cost, held->cost);
  *held = (tnk__held_t){0};
  if (--purse->n_held > 0)
    return;
  purse->taken_tokens = purse->taken_cost = 0;
  purse->is_lost = 0;
}

/* The part of a reservation that belongs to n_tokens. */
static tnk__held_t part_of(const tnk__held_t *held, uint64_t n_tokens) {
  if (n_tokens >= held->tokens)
    return *held;
  return (tnk__held_t){.tokens = n_tokens,
                       .cost = held->cost / held->tokens * n_tokens};
}

void tnk__purse_give_part(tnk__purse_t *purse, tnk__held_t *held,
                          uint64_t n_tokens) {
  const tnk__held_t part = part_of(held, n_tokens);

  lower(&purse->taken_tokens, part.tokens);
  lower(&purse->taken_cost, part.cost);
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

void tnk__purse_use(tnk__purse_t *purse, tnk__totals_t *client,
                    const char *model, const tnk__use_t *use) {
  const tnk__price_t *price = price_of(purse, model);

  count(&purse->used, price, use);
  if (client != NULL)
    count(client, price, use);
}

static void doubt(tnk__totals_t *totals, const tnk__held_t *held) {
  totals->doubtful_tokens = tnk__sum(totals->doubtful_tokens, held->tokens);
  totals->doubtful_cost = tnk__sum(totals->doubtful_cost, held->cost);
}

void tnk__purse_doubt_part(tnk__purse_t *purse, tnk__totals_t *client,
                           tnk__held_t *held, uint64_t n_tokens) {
  const tnk__held_t part = part_of(held, n_tokens);

  doubt(&purse->used, &part);
  if (client != NULL)
    doubt(client, &part);
  tnk__purse_give_part(purse, held, n_tokens);
}

void tnk__purse_doubt(tnk__purse_t *purse, tnk__totals_t *client,
                      tnk__held_t *held) {
  tnk__purse_doubt_part(purse, client, held, held->tokens);
  tnk__purse_give_back(purse, held);
}

/* ---- Words ---- */

static double usd(uint64_t cost) {
  return (double)cost / (double)TNK__USD;
}

void tnk__purse_explain(const tnk__purse_t *purse, tnk__grant_t grant,
                        const tnk__claim_t *claim, tnk__text_t *out) {
  const tnk__price_t *price = price_of(purse, claim->model);

  switch (grant) {
  case TNK__PURSE_GRANTED:
    break;
  case TNK__PURSE_TOKENS:
    tnk__text_printf(out,
                     "it may take %llu tokens; of the %llu of the budget, "
                     "%llu are used and %llu reserved",
                     (unsigned long long)tnk__use_tokens(&claim->most),
                     (unsigned long long)purse->max_tokens,
                     (unsigned long long)used_tokens(purse),
                     (unsigned long long)purse->taken_tokens);
    break;
  case TNK__PURSE_COST:
    tnk__text_printf(out,
                     "it may cost %.6f USD; of the %.6f of the budget, %.6f "
                     "are used and %.6f reserved",
                     usd(price != NULL ? cost_of(price, &claim->most) : 0),
                     usd(purse->max_cost), usd(used_cost(purse)),
                     usd(purse->taken_cost));
    break;
  case TNK__PURSE_PRICE:
    tnk__text_printf(out, "the budget is in USD, and there is no price for %s",
                     claim->model != NULL ? claim->model : "its model");
    break;
  case TNK__PURSE_OPEN:
    tnk__text_printf(out, "there is a budget, and how many tokens it takes is "
                          "not known: set max_tokens, and expected_tokens of "
                          "images");
    break;
  }
}
