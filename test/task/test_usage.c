/* SPDX-License-Identifier: MIT */
/* What was used, and what may be: counts, limits, prices. */
#include <stdlib.h>

#include "task/script.h"

static const char sample_path[] = "/api/v1/asample";
static const char pass_path[] = "/api/v1/forward_backward";
static const char future_path[] = "/api/v1/retrieve_future";

/* A sample of a prompt of two tokens; what comes back has two as well. */
static tnk_promise_t *sample(script_t *script, int32_t max_tokens,
                             uint32_t n_samples) {
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  tnk_sample_options_t options = TNK_SAMPLE_OPTIONS_INIT;

  params.max_tokens = max_tokens;
  options.n_samples = n_samples;
  return tnk_sampling_sample(script->sampling, script_prompt(), &params,
                             &options);
}

static void set_limit(script_t *script, uint64_t max_tokens) {
  tnk_budget_t budget = TNK_BUDGET_INIT;

  budget.max_tokens = max_tokens;
  CHECK_INT(tnk_service_set_budget(script->service, &budget, NULL, 0), TNK_OK);
}

static tnk_totals_t totals_of(const script_t *script) {
  tnk_totals_t totals = TNK_TOTALS_INIT;

  CHECK_INT(tnk_service_totals(&totals, script->service), TNK_OK);
  return totals;
}

static uint64_t tokens(const tnk_totals_t *t) {
  return t->n_prompt_tokens + t->n_sampled_tokens + t->n_trained_tokens;
}

static void open_both(script_t *script) {
  script_open_train(script);
  script_sampler(script);
}

/* All that is reserved and in doubt. */
static void check_rest(const script_t *script, uint64_t reserved,
                       uint64_t doubtful) {
  CHECK_INT(totals_of(script).n_reserved_tokens, reserved);
  CHECK_INT(totals_of(script).n_doubtful_tokens, doubtful);
}

static void expect(script_t *script, tnk_promise_t *promise, int code) {
  outcome_t outcome;

  if (code == TNK_OK)
    script_ok(script, &outcome, promise);
  else
    script_fails(script, &outcome, promise, code);
  outcome_drop(&outcome);
}

/* ---- Counts ---- */

static int keep_loss(tnk_custom_loss_t *io, void *user) {
  (void)user;
  io->loss = 1;
  return 0;
}

TEST(SX_20_tokens_are_counted_by_kind_for_clients_and_the_service) {
  tnk_totals_t train = TNK_TOTALS_INIT;
  tnk_totals_t draw = TNK_TOTALS_INIT;
  tnk_totals_t all;
  script_t script;

  open_both(&script);
  mock_json_once(script.mock, "POST", future_path, 200,
                 "{\"sequences\":[{\"tokens\":[7,8,9],\"stop_reason\":\"stop\""
                 "},{\"tokens\":[7],\"stop_reason\":\"stop\"}],"
                 "\"prompt_cache_hit_tokens\":9}");
  expect(&script, sample(&script, 5, 2), TNK_OK);
  expect(&script,
         tnk_sampling_compute_logprobs(script.sampling, script_prompt(), NULL),
         TNK_OK);
  expect(&script, script_pass(&script, 3), TNK_OK);
  expect(&script,
         tnk_training_forward(script.training, script_data(1), 1, NULL),
         TNK_OK);
  expect(&script,
         tnk_training_forward_backward_custom(script.training, script_data(2),
                                              2, keep_loss, NULL, NULL),
         TNK_OK);
  expect(&script, script_step(&script), TNK_OK);
  CHECK_INT(tnk_training_totals(&train, script.training), TNK_OK);
  CHECK_INT(tnk_sampling_totals(&draw, script.sampling), TNK_OK);
  all = totals_of(&script);
  CHECK_INT(draw.n_prompt_tokens, 4);
  CHECK_INT(draw.n_cached_tokens, 2); /* no more than the prompt has */
  CHECK_INT(draw.n_sampled_tokens, 3 + 1 + 2);
  CHECK_INT(draw.n_trained_tokens, 0);
  CHECK_INT(draw.n_requests, 4);
  CHECK_INT(train.n_trained_tokens, 6 + 2 + 2 * 4);
  CHECK_INT(train.n_requests, 2 * 5);
  CHECK(train.n_bytes_sent > 0 && train.n_bytes_received > 0);
  CHECK_INT(all.n_prompt_tokens, draw.n_prompt_tokens);
  CHECK_INT(all.n_sampled_tokens, draw.n_sampled_tokens);
  CHECK_INT(all.n_trained_tokens, train.n_trained_tokens);
  CHECK_INT(all.n_unpriced_tokens, tokens(&all));
  CHECK(all.n_requests > train.n_requests + draw.n_requests);
  CHECK(all.n_bytes_sent > train.n_bytes_sent + draw.n_bytes_sent);
  check_rest(&script, 0, 0);
  script_close(&script);
}

TEST(SX_20_a_client_that_is_closed_has_no_totals_and_the_service_keeps_them) {
  tnk_totals_t totals = TNK_TOTALS_INIT;
  script_t script;

  open_both(&script);
  expect(&script, sample(&script, 5, 1), TNK_OK);
  tnk_sampling_close(script.sampling, NULL, NULL);
  CHECK_INT(tnk_sampling_totals(&totals, script.sampling), TNK_OK);
  CHECK_INT(totals.n_prompt_tokens, 0);
  CHECK_INT(totals_of(&script).n_prompt_tokens, 2);
  totals.n_prompt_tokens = 7;
  CHECK_INT(tnk_service_totals(&totals, NULL), TNK_OK);
  CHECK_INT(totals.n_prompt_tokens, 0);
  CHECK_INT(tnk_service_totals(NULL, script.service), TNK_EINVAL);
  script_close(&script);
}

/* A run goes on in another process, which is told what was used before. */
TEST(SX_20_a_run_is_what_was_used_before_and_since) {
  tnk_budget_t budget = TNK_BUDGET_INIT;
  tnk_totals_t before = TNK_TOTALS_INIT;
  tnk_totals_t run = TNK_TOTALS_INIT;
  script_t script;

  open_both(&script);
  before.n_trained_tokens = 90;
  before.n_requests = 1000;
  before.cost_usd = 1.5;
  budget.before = &before;
  budget.max_tokens = 100;
  CHECK_INT(tnk_service_set_budget(script.service, &budget, NULL, 0), TNK_OK);
  expect(&script, script_pass(&script, 5), TNK_OK);
  expect(&script, script_pass(&script, 1), TNK_EBUDGET);
  CHECK_INT(tnk_service_run_totals(&run, script.service), TNK_OK);
  CHECK_INT(run.n_trained_tokens, 100);
  CHECK_INT(run.n_requests, 1000 + totals_of(&script).n_requests);
  CHECK(run.cost_usd == 1.5);
  CHECK_INT(totals_of(&script).n_trained_tokens, 10);
  CHECK_INT(tnk_service_run_totals(&run, NULL), TNK_OK);
  CHECK_INT(run.n_trained_tokens, 0);
  script_close(&script);
}

static void keep_dump(const char *text, size_t length, void *user) {
  snprintf(user, 8192, "%.*s", (int)length, text);
}

TEST(SX_20_the_dump_has_the_totals_and_the_budget) {
  static char text[8192];
  script_t script;

  open_both(&script);
  expect(&script, script_pass(&script, 3), TNK_OK);
  set_limit(&script, 14);
  CHECK_INT(tnk_service_dump(script.service, TNK_DUMP_JSON, keep_dump, text),
            TNK_OK);
  CHECK(strstr(text, "\"used\":{\"prompt_tokens\":0,\"cached_tokens\":0,"
                     "\"sampled_tokens\":0,\"trained_tokens\":6,") != NULL);
  CHECK(strstr(text, "\"budget\":{\"max_tokens\":14,\"before\":{") != NULL);
  CHECK_INT(tnk_service_dump(script.service, TNK_DUMP_TEXT, keep_dump, text),
            TNK_OK);
  CHECK(strstr(text, "\n  max_tokens: 14\n") != NULL);
  CHECK(strstr(text, "\n    requests: 2\n") != NULL);
  script_close(&script);
}

/* ---- Limits of samples ---- */

TEST(SX_21_a_sample_reserves_its_most_and_gives_the_difference_back) {
  script_held_t held = {{NULL}, 0};
  outcome_t outcome;
  script_t script;

  script_open(&script);
  script_sampler(&script);
  set_limit(&script, 14);
  mock_on(script.mock, "POST", future_path, script_hold, &held);
  outcome_of(&outcome, sample(&script, 3, 4)); /* 2 and 4 x 3 */
  mock_wait_flag(script.mock, &held.n, 1);
  check_rest(&script, 14, 0);
  expect(&script, sample(&script, 1, 1), TNK_EBUDGET);
  mock_on(script.mock, "POST", future_path, script_result, &script);
  script_result(held.requests[0], &script);
  outcome_ok(&script, &outcome);
  outcome_drop(&outcome);
  check_rest(&script, 0, 0);
  expect(&script, sample(&script, 8, 1), TNK_OK);
  expect(&script, sample(&script, 5, 1), TNK_EBUDGET);
  script_close(&script);
}

TEST(SX_21_a_sample_that_may_grow_without_end_is_refused_before_it_is_sent) {
  tnk_promise_t *promise;
  script_t script;

  script_open(&script);
  script_sampler(&script);
  expect(&script, script_sample(&script), TNK_OK);
  set_limit(&script, 1000000);
  promise = script_sample(&script);
  script_turns(&script);
  CHECK_INT(tnk_promise_status(promise), TNK_EBUDGET);
  CHECK_INT(tnk_promise_error(promise)->ran, TNK_RAN_NO);
  CHECK(strstr(tnk_promise_text(promise), "set max_tokens") != NULL);
  tnk_promise_unref(promise);
  CHECK_INT(script.n_sent, 1);
  /* Without a limit it is sent again. */
  set_limit(&script, 0);
  expect(&script, script_sample(&script), TNK_OK);
  script_close(&script);
}

typedef struct {
  int n_settled;
  int n_refused;
} crowd_t;

static void count_one(tnk_promise_t *promise, int status, void *user) {
  crowd_t *crowd = user;

  (void)promise;
  crowd->n_settled++;
  crowd->n_refused += status == TNK_EBUDGET;
  CHECK(status == TNK_OK || status == TNK_EBUDGET);
}

TEST_LIMIT(SX_21_ten_thousand_samples_with_a_limit_in_the_middle, 60) {
  enum { N = 10000, LIMIT = 20001 };
  crowd_t crowd = {0, 0};
  tnk_totals_t totals;
  script_t script;

  script_open(&script);
  script_sampler(&script);
  set_limit(&script, LIMIT);
  for (int i = 0; i < N; i++)
    tnk_then(sample(&script, 3, 1), count_one, &crowd);
  mock_wait_flag(script.mock, &crowd.n_settled, N);
  totals = totals_of(&script);
  CHECK(tokens(&totals) <= LIMIT);
  CHECK(tokens(&totals) > LIMIT - 5);
  CHECK_INT(tokens(&totals), 4 * (N - crowd.n_refused));
  CHECK_INT(script.n_sent, N - crowd.n_refused);
  check_rest(&script, 0, 0);
  script_close(&script);
}

/* Nothing of these was run. */
TEST(SX_21_what_is_canceled_unsent_refused_or_has_failed_is_given_back) {
  outcome_t outcome;
  tnk_promise_t *promise;
  script_t script;

  script_open(&script);
  script_sampler(&script);
  set_limit(&script, 5);
  mock_json_once(script.mock, "POST", sample_path, 422, "{}");
  expect(&script, sample(&script, 3, 1), TNK_EREQUEST);
  check_rest(&script, 0, 0);
  mock_json_once(script.mock, "POST", future_path, 200,
                 "{\"error\":\"nan\",\"category\":\"user\"}");
  expect(&script, sample(&script, 3, 1), TNK_EFAILED);
  check_rest(&script, 0, 0);
  /* It waits for the end of a back-off, and keeps what it has reserved. */
  mock_json_once(script.mock, "POST", sample_path, 429, "{}");
  promise = sample(&script, 3, 1);
  outcome_of(&outcome, tnk_promise_ref(promise));
  script_turns(&script);
  check_rest(&script, 5, 0);
  tnk_promise_cancel(promise);
  tnk_promise_unref(promise);
  outcome_fails(&script, &outcome, TNK_ECANCELED);
  outcome_drop(&outcome);
  check_rest(&script, 0, 0);
  CHECK_INT(totals_of(&script).n_prompt_tokens, 0);
  script_advance(&script, 1000);
  expect(&script, sample(&script, 3, 1), TNK_OK);
  script_close(&script);
}

/* The service may have run what was on the wire when it was given up. */
TEST(SX_21_what_is_canceled_on_the_wire_stays_in_doubt) {
  tnk_totals_t client = TNK_TOTALS_INIT;
  script_held_t held = {{NULL}, 0};
  tnk_promise_t *promise;
  script_t script;

  script_open(&script);
  script_sampler(&script);
  set_limit(&script, 9);
  mock_on(script.mock, "POST", sample_path, script_hold, &held);
  promise = sample(&script, 3, 1);
  mock_wait_flag(script.mock, &held.n, 1);
  tnk_promise_cancel(promise);
  tnk_promise_unref(promise);
  script_accept(held.requests[0], &script);
  script_turns(&script);
  check_rest(&script, 0, 5);
  CHECK_INT(tnk_sampling_totals(&client, script.sampling), TNK_OK);
  CHECK_INT(client.n_prompt_tokens, 0);
  mock_on(script.mock, "POST", sample_path, script_accept, &script);
  expect(&script, sample(&script, 3, 1), TNK_EBUDGET);
  expect(&script, sample(&script, 2, 1), TNK_OK);
  script_close(&script);
}

/* A result that is lost may have cost its tokens, and the sample that is
 * submitted in its place costs them anew. */
TEST(SX_21_a_sample_that_is_submitted_anew_reserves_anew) {
  outcome_t outcome;
  script_t script;

  script_open(&script);
  script_sampler(&script);
  set_limit(&script, 12);
  mock_json(script.mock, "POST", future_path, 410, "{}");
  outcome_of(&outcome, sample(&script, 3, 1));
  for (int i = 0; i < 20 && outcome.n_done == 0; i++)
    script_advance(&script, 10000);
  outcome_fails(&script, &outcome, TNK_EBUDGET);
  outcome_drop(&outcome);
  CHECK_INT(script.n_sent, 2);
  check_rest(&script, 0, 10);
  script_close(&script);
}

/* ---- Limits of training ---- */

TEST(SX_21_a_pass_over_the_budget_is_refused_and_so_is_the_step_after_it) {
  outcome_t outcomes[6];
  script_t script;

  script_open_train(&script);
  set_limit(&script, 6);
  outcome_of(&outcomes[0], script_pass(&script, 2));
  outcome_of(&outcomes[1], script_pass(&script, 2)); /* 8 of 6 */
  outcome_of(&outcomes[2], script_step(&script));
  outcome_of(&outcomes[3], tnk_training_save_state(script.training, "a", NULL));
  for (int i = 0; i < 4; i++)
    outcome_wait(&script, &outcomes[i]);
  CHECK_INT(outcomes[0].status, TNK_OK);
  CHECK_INT(outcomes[1].status, TNK_EBUDGET);
  CHECK_INT(outcomes[2].status, TNK_EBUDGET);
  CHECK_INT(outcomes[3].status, TNK_OK);
  CHECK_STR(outcomes[1].text,
            "forward_backward: the budget of the program does not allow it: it "
            "may take 4 tokens; of the 6 of the budget, 0 are used and 4 "
            "reserved; it was not run");
  CHECK_STR(outcomes[2].text,
            "optim_step: the budget of the program does not allow it: a pass "
            "before it was refused; it was not run");
  CHECK_INT(script.n_sent, 2);
  /* A pass that fits in, or a larger budget, and steps go on. */
  set_limit(&script, 8);
  script_ok(&script, &outcomes[4], script_pass(&script, 2));
  script_ok(&script, &outcomes[5], script_step(&script));
  CHECK_INT(totals_of(&script).n_trained_tokens, 8);
  check_rest(&script, 0, 0);
  outcome_drop_all(outcomes, 6);
  script_close(&script);
}

static void count_release(void *user) {
  ++*(int *)user;
}

TEST(SX_21_data_that_was_lent_to_a_refused_pass_is_given_back) {
  tnk_pass_options_t options = TNK_PASS_OPTIONS_INIT;
  script_t script;
  int n = 0;

  script_open_train(&script);
  set_limit(&script, 1);
  options.release = count_release;
  options.release_user = &n;
  expect(&script,
         tnk_training_forward_backward(script.training, script_data(1), 1,
                                       &options),
         TNK_EBUDGET);
  script_turns(&script);
  CHECK_INT(n, 1);
  expect(&script,
         tnk_training_forward_backward_custom(script.training, script_data(1),
                                              1, keep_loss, NULL, NULL),
         TNK_EBUDGET);
  script_close(&script);
}

/* Three requests: the first is run, the second refused, the third not sent. */
TEST(SX_21_a_pass_in_parts_gives_back_those_that_were_not_run) {
  outcome_t outcome;
  script_t script;

  script_open(&script);
  script_flags(&script, "{\"fwdbwd_max_chunk_len\":1}");
  script_train(&script);
  set_limit(&script, 100);
  mock_once(script.mock, "POST", pass_path, script_accept, &script);
  mock_json_once(script.mock, "POST", pass_path, 422, "{}");
  script_fails(&script, &outcome, script_pass(&script, 3), TNK_EREQUEST);
  outcome_drop(&outcome);
  script_turns(&script);
  CHECK_INT(totals_of(&script).n_reserved_tokens, 0);
  CHECK_INT(totals_of(&script).n_trained_tokens +
                totals_of(&script).n_doubtful_tokens,
            2);
  script_close(&script);
}

TEST(SX_21_a_pass_canceled_in_the_queue_is_given_back_on_the_wire_in_doubt) {
  tnk_promise_t *passes[2];
  script_held_t held = {{NULL}, 0};
  script_t script;

  script_open_train(&script);
  set_limit(&script, 100);
  mock_on(script.mock, "POST", pass_path, script_hold, &held);
  passes[0] = script_pass(&script, 1);
  passes[1] = script_pass(&script, 2);
  mock_wait_flag(script.mock, &held.n, 1);
  check_rest(&script, 6, 0);
  tnk_promise_cancel(passes[1]);
  tnk_promise_cancel(passes[0]);
  script_accept(held.requests[0], &script);
  script_turns(&script);
  check_rest(&script, 0, 2);
  tnk_promise_unref(passes[0]);
  tnk_promise_unref(passes[1]);
  script_close(&script);
}

/* ---- Prices, and what is said wrongly ---- */

static const tnk_price_t prices[] = {{"other", 1, 1, 1, 1},
                                     {"base", 10, 1, 40, 30}};

TEST(SX_22_a_limit_in_money_is_that_of_the_prices) {
  tnk_budget_t budget = TNK_BUDGET_INIT;
  script_t script;

  open_both(&script);
  budget.prices = prices;
  budget.n_prices = 2;
  budget.max_usd = 0.000220;
  CHECK_INT(tnk_service_set_budget(script.service, &budget, NULL, 0), TNK_OK);
  expect(&script, sample(&script, 6, 1), TNK_EBUDGET); /* 20 and 240 */
  expect(&script, sample(&script, 5, 1), TNK_OK);
  CHECK(totals_of(&script).cost_usd == 0.000100);
  CHECK_INT(totals_of(&script).n_unpriced_tokens, 0);
  expect(&script, script_pass(&script, 2), TNK_OK); /* 120 more */
  CHECK(totals_of(&script).cost_usd == 0.000220);
  expect(&script, script_pass(&script, 1), TNK_EBUDGET);
  budget.n_prices = 1; /* not this model's */
  CHECK_INT(tnk_service_set_budget(script.service, &budget, NULL, 0), TNK_OK);
  expect(&script, script_pass(&script, 1), TNK_EBUDGET);
  script_close(&script);
}

TEST(SX_22_a_budget_that_makes_no_sense_is_refused_and_changes_nothing) {
  static const tnk_price_t dear = {NULL, 1, 2, 1, 1};
  static const tnk_price_t endless = {NULL, 1, 1, 1.0 / 0.0, 1};
  const struct {
    tnk_budget_t budget;
    int code;
    const char *why;
  } rows[] = {
      {{.max_usd = -1}, TNK_EINVAL, "max_usd is not from 0 to 18,000,000"},
      {{.max_usd = 1}, TNK_EINVAL, "max_usd needs prices"},
      {{.n_prices = 1}, TNK_EINVAL, "prices is NULL"},
      {{.prices = prices, .n_prices = 1, .prices_file = "x"},
       TNK_EINVAL,
       "both prices and prices_file are given"},
      {{.prices = &dear, .n_prices = 1},
       TNK_EINVAL,
       "price 0: cached tokens cost more than others"},
      {{.prices = &endless, .n_prices = 1},
       TNK_EINVAL,
       "price 0: an amount is not from 0 to 1,000,000"},
      {{.prices_file = "/dev/null/x"},
       TNK_EFILE,
       "prices_file cannot be read: Not a directory"},
      {{.prices_file = "/dev/null"},
       TNK_EFILE,
       "prices_file: there is no list \"prices\" in it"},
  };
  script_t script;
  char why[256];

  script_open_train(&script);
  set_limit(&script, 1);
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    tnk_budget_t budget = rows[i].budget;
    budget.size = sizeof(budget);
    CHECK_INT(tnk_service_set_budget(script.service, &budget, why, sizeof(why)),
              rows[i].code);
    CHECK_STR(why, rows[i].why);
  }
  expect(&script, script_pass(&script, 1), TNK_EBUDGET);
  CHECK_INT(tnk_service_set_budget(script.service, NULL, why, sizeof(why)),
            TNK_OK);
  CHECK_STR(why, "");
  expect(&script, script_pass(&script, 1), TNK_OK);
  CHECK_INT(tnk_service_set_budget(NULL, NULL, why, sizeof(why)), TNK_EINVAL);
  script_close(&script);
}

static void write_file(char *path, const char *text) {
  FILE *file;
  int fd;

  snprintf(path, 64, "/tmp/tnk-prices-XXXXXX");
  fd = mkstemp(path);
  CHECK(fd >= 0);
  file = fdopen(fd, "w");
  CHECK(file != NULL);
  fputs(text, file);
  fclose(file);
}

static int set_file(script_t *script, const char *text, char *why) {
  tnk_budget_t budget = TNK_BUDGET_INIT;
  char path[64];
  int err;

  write_file(path, text);
  budget.prices_file = path;
  budget.max_usd = 1;
  err = tnk_service_set_budget(script->service, &budget, why, 256);
  remove(path);
  return err;
}

TEST(SX_22_prices_come_from_a_file) {
  static const char bad[] = "price 1: \"prompt\", \"sampled\" and "
                            "\"trained\" must be numbers, \"cached\" may be "
                            "one, and \"model\" a text";
  script_t script;
  char why[256];

  open_both(&script);
  CHECK_INT(set_file(&script,
                     "{\"prices\":[{\"model\":\"x\",\"prompt\":1,\"sampled\":1,"
                     "\"trained\":1},{\"prompt\":0.5,\"sampled\":2,"
                     "\"trained\":4,\"note\":1}]}",
                     why),
            TNK_OK);
  expect(&script, sample(&script, 5, 1), TNK_OK);
  expect(&script, script_pass(&script, 1), TNK_OK);
  CHECK(totals_of(&script).cost_usd == (2 * 0.5 + 2 * 2 + 2 * 4) / 1e6);
  CHECK_INT(set_file(&script,
                     "{\"prices\":[{\"prompt\":1,\"sampled\":1,\"trained\":1},"
                     "{\"prompt\":1,\"sampled\":\"1\",\"trained\":1}]}",
                     why),
            TNK_EFILE);
  CHECK(strncmp(why, "prices_file: ", 13) == 0);
  CHECK_STR(why + 13, bad);
  CHECK_INT(set_file(&script, "{\"prices\":[", why), TNK_EFILE);
  script_close(&script);
}

TEST(SX_21_without_memory_a_budget_changes_nothing) {
  tnk_budget_t budget = TNK_BUDGET_INIT;
  script_t script;
  int err;
  long n = 0;

  script_open_train(&script);
  set_limit(&script, 1);
  budget.prices = prices;
  budget.n_prices = 2;
  do {
    test_alloc_fail_at(n++);
    err = tnk_service_set_budget(script.service, &budget, NULL, 0);
    if (err == TNK_ENOMEM) {
      test_alloc_fail_at(-1);
      expect(&script, script_pass(&script, 1), TNK_EBUDGET);
    }
  } while (test_alloc_did_fail() || err == TNK_ENOMEM);
  test_alloc_fail_at(-1);
  CHECK(n > 1);
  CHECK_INT(err, TNK_OK);
  expect(&script, script_pass(&script, 1), TNK_OK);
  script_close(&script);
}
