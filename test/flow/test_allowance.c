/* SPDX-License-Identifier: MIT */
#include "lib/usage/allowance.h"

#include <string.h>

#include "support/test.h"

static const tnk__price_t prices[] = {
    {.model = "a", .prompt = 100, .cached = 10, .sampled = 400, .trained = 300},
    {.model = NULL, .prompt = 1, .cached = 1, .sampled = 1, .trained = 1},
};

static tnk__claim_t claim(uint64_t prompt, uint64_t sampled) {
  return (tnk__claim_t){.model = "a",
                        .most = {.prompt = prompt, .sampled = sampled}};
}

static tnk__grant_t take(tnk__allowance_t *allowance, uint64_t tokens,
                         tnk__held_t *held) {
  const tnk__claim_t wanted = claim(tokens, 0);

  return tnk__allowance_take(allowance, &wanted, held);
}

TEST(SX_20_without_a_limit_everything_is_granted_and_counted) {
  tnk__allowance_t allowance = {0};
  tnk__totals_t client = {0};
  tnk__held_t held = {0};
  tnk__claim_t open = claim(5, 0);

  open.is_open = 1;
  CHECK_INT(tnk__allowance_is_limited(&allowance), 0);
  CHECK_INT(tnk__allowance_take(&allowance, &open, &held),
            TNK__ALLOWANCE_GRANTED);
  CHECK_INT(allowance.taken_tokens, 5);
  tnk__allowance_use(&allowance, &client, "a", &(tnk__use_t){5, 2, 70, 3});
  tnk__allowance_give_back(&allowance, &held);
  CHECK_INT(allowance.taken_tokens, 0);
  CHECK_INT(allowance.n_held, 0);
  CHECK_INT(allowance.used.prompt_tokens, 5);
  CHECK_INT(allowance.used.cached_tokens, 2);
  CHECK_INT(allowance.used.sampled_tokens, 70);
  CHECK_INT(allowance.used.trained_tokens, 3);
  CHECK_INT(allowance.used.unpriced_tokens, 78);
  CHECK_INT(memcmp(&client, &allowance.used, sizeof(client)), 0);
}

/* What is used, taken and asked for may reach the limit, not pass it. */
TEST(SX_21_a_limit_in_tokens_is_reached_and_never_passed) {
  tnk__allowance_t allowance = {.max_tokens = 100,
                                .before = {.trained_tokens = 10}};
  tnk__held_t a = {0};
  tnk__held_t b = {0};

  CHECK_INT(take(&allowance, 91, &a), TNK__ALLOWANCE_TOKENS);
  CHECK_INT(take(&allowance, 60, &a), TNK__ALLOWANCE_GRANTED);
  CHECK_INT(take(&allowance, 31, &b), TNK__ALLOWANCE_TOKENS);
  CHECK_INT(b.is_taken, 0);
  /* The difference is given back. */
  tnk__allowance_use(&allowance, NULL, NULL, &(tnk__use_t){.prompt = 20});
  tnk__allowance_give_back(&allowance, &a);
  CHECK_INT(take(&allowance, 71, &b), TNK__ALLOWANCE_TOKENS);
  CHECK_INT(take(&allowance, 70, &b), TNK__ALLOWANCE_GRANTED);
  tnk__allowance_doubt(&allowance, NULL, &b);
  CHECK_INT(allowance.used.doubtful_tokens, 70);
  CHECK_INT(allowance.n_held, 0);
  CHECK_INT(take(&allowance, 1, &a), TNK__ALLOWANCE_TOKENS);
  CHECK_INT(take(&allowance, 0, &a), TNK__ALLOWANCE_GRANTED);
  tnk__allowance_give_back(&allowance, &a);
  /* A second time does nothing. */
  tnk__allowance_give_back(&allowance, &a);
  CHECK_INT(allowance.n_held, 0);
}

TEST(SX_22_a_limit_in_money_counts_each_kind_at_its_price) {
  tnk__allowance_t allowance = {
      .max_cost = 100000, .prices = prices, .n_prices = 2};
  tnk__claim_t wanted = claim(100, 200); /* 10,000 and 80,000 */
  tnk__held_t held = {0};

  CHECK_INT(tnk__allowance_take(&allowance, &wanted, &held),
            TNK__ALLOWANCE_GRANTED);
  CHECK_INT(held.cost, 90000);
  tnk__allowance_use(&allowance, NULL, "a",
                     &(tnk__use_t){.prompt = 100, .cached = 90, .sampled = 10});
  tnk__allowance_give_back(&allowance, &held);
  CHECK_INT(allowance.used.cost, 1000 + 900 + 4000);
  CHECK_INT(allowance.used.unpriced_tokens, 0);
  wanted.most.sampled = 211; /* 94,400 with the prompt; 94,100 are left */
  CHECK_INT(tnk__allowance_take(&allowance, &wanted, &held),
            TNK__ALLOWANCE_COST);
  wanted.most.sampled = 210;
  CHECK_INT(tnk__allowance_take(&allowance, &wanted, &held),
            TNK__ALLOWANCE_GRANTED);
  tnk__allowance_give_back(&allowance, &held);
  /* Another model has the row for all others. */
  wanted.model = "b";
  CHECK_INT(tnk__allowance_take(&allowance, &wanted, &held),
            TNK__ALLOWANCE_GRANTED);
  CHECK_INT(held.cost, 310);
  tnk__allowance_give_back(&allowance, &held);
  allowance.n_prices = 1;
  CHECK_INT(tnk__allowance_take(&allowance, &wanted, &held),
            TNK__ALLOWANCE_PRICE);
}

TEST(SX_21_what_may_grow_without_end_is_refused_under_a_limit) {
  tnk__allowance_t allowance = {.max_tokens = 1000000};
  tnk__claim_t wanted = claim(1, 0);
  tnk__held_t held = {0};

  wanted.is_open = 1;
  CHECK_INT(tnk__allowance_take(&allowance, &wanted, &held),
            TNK__ALLOWANCE_OPEN);
}

/* A pass in three requests: one used, one refused, one lost. */
TEST(SX_21_the_parts_of_an_operation_end_one_by_one) {
  tnk__allowance_t allowance = {
      .max_cost = 1000000, .prices = prices, .n_prices = 2};
  const tnk__claim_t pass = {.model = "a", .most = {.trained = 100}};
  tnk__held_t held = {0};

  CHECK_INT(tnk__allowance_take(&allowance, &pass, &held),
            TNK__ALLOWANCE_GRANTED);
  CHECK_INT(allowance.taken_cost, 30000);
  tnk__allowance_give_part(&allowance, &held, 50);
  CHECK_INT(allowance.taken_tokens, 50);
  CHECK_INT(allowance.taken_cost, 15000);
  tnk__allowance_doubt_part(&allowance, NULL, &held, 20);
  CHECK_INT(allowance.used.doubtful_tokens, 20);
  CHECK_INT(allowance.used.doubtful_cost, 6000);
  CHECK_INT(held.tokens, 30);
  CHECK_INT(held.cost, 9000);
  /* More than there is, is all. */
  tnk__allowance_give_part(&allowance, &held, 31);
  CHECK_INT(allowance.taken_tokens, 0);
  CHECK_INT(allowance.taken_cost, 0);
  CHECK_INT(allowance.n_held, 1);
  tnk__allowance_give_back(&allowance, &held);
  CHECK_INT(allowance.n_held, 0);
}

TEST(SX_20_counts_stay_at_the_largest_number) {
  tnk__allowance_t allowance = {.prices = prices, .n_prices = 2};
  tnk__held_t a = {0};
  tnk__held_t b = {0};

  tnk__allowance_use(&allowance, NULL, "a",
                     &(tnk__use_t){.sampled = UINT64_MAX / 8});
  CHECK(allowance.used.cost == UINT64_MAX);
  tnk__allowance_use(&allowance, NULL, "a",
                     &(tnk__use_t){.sampled = UINT64_MAX});
  CHECK(allowance.used.sampled_tokens == UINT64_MAX);
  /* What is taken cannot be told any more, until all is back. */
  CHECK_INT(take(&allowance, UINT64_MAX - 1, &a), TNK__ALLOWANCE_GRANTED);
  CHECK_INT(take(&allowance, UINT64_MAX - 1, &b), TNK__ALLOWANCE_GRANTED);
  tnk__allowance_give_back(&allowance, &a);
  memset(&allowance.used, 0, sizeof(allowance.used));
  allowance.max_tokens = 1000;
  CHECK_INT(take(&allowance, 1, &a), TNK__ALLOWANCE_TOKENS);
  tnk__allowance_give_back(&allowance, &b);
  CHECK_INT(take(&allowance, 1000, &a), TNK__ALLOWANCE_GRANTED);
  tnk__allowance_give_back(&allowance, &a);
  /* A number that no limit could hold is refused by the largest. */
  allowance.max_tokens = UINT64_MAX;
  CHECK_INT(take(&allowance, UINT64_MAX, &a), TNK__ALLOWANCE_TOKENS);
}

static const char *sentence(const tnk__allowance_t *allowance,
                            tnk__grant_t grant) {
  static char said[256];
  const tnk__claim_t wanted = claim(2, 3);
  tnk__text_t text;

  tnk__text_init(&text, said, sizeof(said));
  tnk__allowance_explain(allowance, grant, &wanted, &text);
  return said;
}

TEST(SX_21_a_refusal_says_what_there_is_and_what_it_takes) {
  tnk__allowance_t allowance = {
      .max_tokens = 9,
      .max_cost = TNK__USD / 2,
      .taken_tokens = 1,
      .used = {.sampled_tokens = 7, .cost = TNK__USD / 4},
      .prices = prices,
      .n_prices = 1};

  CHECK_STR(sentence(&allowance, TNK__ALLOWANCE_GRANTED), "");
  CHECK_STR(sentence(&allowance, TNK__ALLOWANCE_TOKENS),
            "it may take 5 tokens; of the 9 of the budget, 7 are used and 1 "
            "reserved");
  CHECK_STR(sentence(&allowance, TNK__ALLOWANCE_COST),
            "it may cost 0.000000 USD; of the 0.500000 of the budget, "
            "0.250000 are used and 0.000000 reserved");
  CHECK_STR(sentence(&allowance, TNK__ALLOWANCE_PRICE),
            "the budget is in USD, but there is no price for a");
  CHECK_STR(sentence(&allowance, TNK__ALLOWANCE_OPEN),
            "there is a budget, but how many tokens it takes is not known: "
            "set max_tokens, and expected_tokens of images");
}
