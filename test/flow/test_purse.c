#include "lib/usage/purse.h"

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

static tnk__grant_t take(tnk__purse_t *purse, uint64_t tokens,
                         tnk__held_t *held) {
  const tnk__claim_t wanted = claim(tokens, 0);

  return tnk__purse_take(purse, &wanted, held);
}

TEST(SX_20_without_a_limit_everything_is_granted_and_counted) {
  tnk__purse_t purse = {0};
  tnk__totals_t client = {0};
  tnk__held_t held = {0};
  tnk__claim_t open = claim(5, 0);

  open.is_open = 1;
  CHECK_INT(tnk__purse_is_limited(&purse), 0);
  CHECK_INT(tnk__purse_take(&purse, &open, &held), TNK__PURSE_GRANTED);
  CHECK_INT(purse.taken_tokens, 5);
  tnk__purse_use(&purse, &client, "a", &(tnk__use_t){5, 2, 70, 3});
  tnk__purse_give_back(&purse, &held);
  CHECK_INT(purse.taken_tokens, 0);
  CHECK_INT(purse.n_held, 0);
  CHECK_INT(purse.used.prompt_tokens, 5);
  CHECK_INT(purse.used.cached_tokens, 2);
  CHECK_INT(purse.used.sampled_tokens, 70);
  CHECK_INT(purse.used.trained_tokens, 3);
  CHECK_INT(purse.used.unpriced_tokens, 78);
  CHECK_INT(memcmp(&client, &purse.used, sizeof(client)), 0);
}

/* What is used, taken and asked for may reach the limit, not pass it. */
TEST(SX_21_a_limit_in_tokens_is_reached_and_never_passed) {
  tnk__purse_t purse = {.max_tokens = 100, .before = {.trained_tokens = 10}};
  tnk__held_t a = {0};
  tnk__held_t b = {0};

  CHECK_INT(take(&purse, 91, &a), TNK__PURSE_TOKENS);
  CHECK_INT(take(&purse, 60, &a), TNK__PURSE_GRANTED);
  CHECK_INT(take(&purse, 31, &b), TNK__PURSE_TOKENS);
  CHECK_INT(b.is_taken, 0);
  /* The difference is given back. */
  tnk__purse_use(&purse, NULL, NULL, &(tnk__use_t){.prompt = 20});
  tnk__purse_give_back(&purse, &a);
  CHECK_INT(take(&purse, 71, &b), TNK__PURSE_TOKENS);
  CHECK_INT(take(&purse, 70, &b), TNK__PURSE_GRANTED);
  tnk__purse_doubt(&purse, NULL, &b);
  CHECK_INT(purse.used.doubtful_tokens, 70);
  CHECK_INT(purse.n_held, 0);
  CHECK_INT(take(&purse, 1, &a), TNK__PURSE_TOKENS);
  CHECK_INT(take(&purse, 0, &a), TNK__PURSE_GRANTED);
  tnk__purse_give_back(&purse, &a);
  /* A second time does nothing. */
  tnk__purse_give_back(&purse, &a);
  CHECK_INT(purse.n_held, 0);
}

TEST(SX_22_a_limit_in_money_counts_each_kind_at_its_price) {
  tnk__purse_t purse = {.max_cost = 100000, .prices = prices, .n_prices = 2};
  tnk__claim_t wanted = claim(100, 200); /* 10,000 and 80,000 */
  tnk__held_t held = {0};

  CHECK_INT(tnk__purse_take(&purse, &wanted, &held), TNK__PURSE_GRANTED);
  CHECK_INT(held.cost, 90000);
  tnk__purse_use(&purse, NULL, "a",
                 &(tnk__use_t){.prompt = 100, .cached = 90, .sampled = 10});
  tnk__purse_give_back(&purse, &held);
  CHECK_INT(purse.used.cost, 1000 + 900 + 4000);
  CHECK_INT(purse.used.unpriced_tokens, 0);
  wanted.most.sampled = 211; /* 94,400 with the prompt; 94,100 are left */
  CHECK_INT(tnk__purse_take(&purse, &wanted, &held), TNK__PURSE_COST);
  wanted.most.sampled = 210;
  CHECK_INT(tnk__purse_take(&purse, &wanted, &held), TNK__PURSE_GRANTED);
  tnk__purse_give_back(&purse, &held);
  /* Another model has the row for all others. */
  wanted.model = "b";
  CHECK_INT(tnk__purse_take(&purse, &wanted, &held), TNK__PURSE_GRANTED);
  CHECK_INT(held.cost, 310);
  tnk__purse_give_back(&purse, &held);
  purse.n_prices = 1;
  CHECK_INT(tnk__purse_take(&purse, &wanted, &held), TNK__PURSE_PRICE);
}

TEST(SX_21_what_may_grow_without_end_is_refused_under_a_limit) {
  tnk__purse_t purse = {.max_tokens = 1000000};
  tnk__claim_t wanted = claim(1, 0);
  tnk__held_t held = {0};

  wanted.is_open = 1;
  CHECK_INT(tnk__purse_take(&purse, &wanted, &held), TNK__PURSE_OPEN);
}

/* A pass in three requests: one used, one refused, one lost. */
TEST(SX_21_the_parts_of_an_operation_end_one_by_one) {
  tnk__purse_t purse = {.max_cost = 1000000, .prices = prices, .n_prices = 2};
  const tnk__claim_t pass = {.model = "a", .most = {.trained = 100}};
  tnk__held_t held = {0};

  CHECK_INT(tnk__purse_take(&purse, &pass, &held), TNK__PURSE_GRANTED);
  CHECK_INT(purse.taken_cost, 30000);
  tnk__purse_give_part(&purse, &held, 50);
  CHECK_INT(purse.taken_tokens, 50);
  CHECK_INT(purse.taken_cost, 15000);
  tnk__purse_doubt_part(&purse, NULL, &held, 20);
  CHECK_INT(purse.used.doubtful_tokens, 20);
  CHECK_INT(purse.used.doubtful_cost, 6000);
  CHECK_INT(held.tokens, 30);
  CHECK_INT(held.cost, 9000);
  /* More than there is, is all. */
  tnk__purse_give_part(&purse, &held, 31);
  CHECK_INT(purse.taken_tokens, 0);
  CHECK_INT(purse.taken_cost, 0);
  CHECK_INT(purse.n_held, 1);
  tnk__purse_give_back(&purse, &held);
  CHECK_INT(purse.n_held, 0);
}

TEST(SX_20_counts_stay_at_the_largest_number) {
  tnk__purse_t purse = {.prices = prices, .n_prices = 2};
  tnk__held_t a = {0};
  tnk__held_t b = {0};

  tnk__purse_use(&purse, NULL, "a", &(tnk__use_t){.sampled = UINT64_MAX / 8});
  CHECK(purse.used.cost == UINT64_MAX);
  tnk__purse_use(&purse, NULL, "a", &(tnk__use_t){.sampled = UINT64_MAX});
  CHECK(purse.used.sampled_tokens == UINT64_MAX);
  /* What is taken cannot be told any more, until all is back. */
  CHECK_INT(take(&purse, UINT64_MAX - 1, &a), TNK__PURSE_GRANTED);
  CHECK_INT(take(&purse, UINT64_MAX - 1, &b), TNK__PURSE_GRANTED);
  tnk__purse_give_back(&purse, &a);
  memset(&purse.used, 0, sizeof(purse.used));
  purse.max_tokens = 1000;
  CHECK_INT(take(&purse, 1, &a), TNK__PURSE_TOKENS);
  tnk__purse_give_back(&purse, &b);
  CHECK_INT(take(&purse, 1000, &a), TNK__PURSE_GRANTED);
  tnk__purse_give_back(&purse, &a);
  /* A number that no limit could hold is refused by the largest. */
  purse.max_tokens = UINT64_MAX;
  CHECK_INT(take(&purse, UINT64_MAX, &a), TNK__PURSE_TOKENS);
}

static const char *sentence(const tnk__purse_t *purse, tnk__grant_t grant) {
  static char said[256];
  const tnk__claim_t wanted = claim(2, 3);
  tnk__text_t text;

  tnk__text_init(&text, said, sizeof(said));
  tnk__purse_explain(purse, grant, &wanted, &text);
  return said;
}

TEST(SX_21_a_refusal_says_what_there_is_and_what_it_takes) {
  tnk__purse_t purse = {.max_tokens = 9,
                        .max_cost = TNK__USD / 2,
                        .taken_tokens = 1,
                        .used = {.sampled_tokens = 7, .cost = TNK__USD / 4},
                        .prices = prices,
                        .n_prices = 1};

  CHECK_STR(sentence(&purse, TNK__PURSE_GRANTED), "");
  CHECK_STR(sentence(&purse, TNK__PURSE_TOKENS),
            "it may take 5 tokens; of the 9 of the budget, 7 are used and 1 "
            "reserved");
  CHECK_STR(sentence(&purse, TNK__PURSE_COST),
            "it may cost 0.000000 USD; of the 0.500000 of the budget, "
            "0.250000 are used and 0.000000 reserved");
  CHECK_STR(sentence(&purse, TNK__PURSE_PRICE),
            "the budget is in USD, and there is no price for a");
  CHECK_STR(sentence(&purse, TNK__PURSE_OPEN),
            "there is a budget, and how many tokens it takes is not known: "
            "set max_tokens, and expected_tokens of images");
}
