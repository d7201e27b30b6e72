/* SPDX-License-Identifier: MIT */
/* What the library counts is what the server counts, and no limit is gone
 * over, whatever goes wrong. */
#include <time.h>

#include "local/e2e.h"

enum { MAX_TOKENS = 2, PROMPT = 4 };

typedef struct {
  int n_settled;
  int n_refused;
  int n_failed;
} crowd_t;

static void count_one(tnk_promise_t *promise, int status, void *user) {
  crowd_t *crowd = user;

  crowd->n_settled++;
  crowd->n_refused += status == TNK_EBUDGET;
  if (status != TNK_OK && status != TNK_EBUDGET && crowd->n_failed++ == 0)
    printf("# %s\n", tnk_promise_text(promise));
}

static tnk_totals_t totals_of(const e2e_t *e2e) {
  tnk_totals_t totals = TNK_TOTALS_INIT;

  CHECK_INT(tnk_service_totals(&totals, e2e->service), TNK_OK);
  return totals;
}

/* What the server has counted, of all sessions. */
static tnk_totals_t bill(e2e_t *e2e) {
  const int64_t hour = 3600;
  const int64_t now = (int64_t)time(NULL) / hour * hour;
  tnk_promise_t *asked = e2e_ok(tnk_rest_get_usage(
      e2e->service, (now - hour) * 1000000, (now + hour) * 1000000));
  const tnk_page_t *page = tnk_promise_page(asked);
  tnk_totals_t sum = TNK_TOTALS_INIT;

  for (size_t i = 0; i < tnk_page_count(page); i++) {
    const tnk_usage_event_t *event = tnk_page_usage(page, i)->event;
    const uint64_t n = (uint64_t)event->n_tokens;

    if (event->kind == TNK_USAGE_PREFILL)
      sum.n_prompt_tokens += n;
    else if (event->kind == TNK_USAGE_SAMPLE)
      sum.n_sampled_tokens += n;
    else if (event->kind == TNK_USAGE_TRAINING)
      sum.n_trained_tokens += n;
  }
  tnk_promise_unref(asked);
  return sum;
}

static uint64_t tokens(const tnk_totals_t *t) {
  return t->n_prompt_tokens + t->n_sampled_tokens + t->n_trained_tokens;
}

static void set_limit(e2e_t *e2e, uint64_t max_tokens) {
  tnk_budget_t budget = TNK_BUDGET_INIT;

  budget.max_tokens = max_tokens;
  CHECK_INT(tnk_service_set_budget(e2e->service, &budget, NULL, 0), TNK_OK);
}

static crowd_t draw(e2e_t *e2e, tnk_sampling_t *sampling, int n) {
  crowd_t crowd = {0, 0, 0};

  for (int i = 0; i < n; i++)
    tnk_then(e2e_sample(sampling, MAX_TOKENS, i, NULL), count_one, &crowd);
  while (crowd.n_settled < n)
    uv_run(&e2e->uv, UV_RUN_ONCE);
  return crowd;
}

TEST_LIMIT(SX_20_SX_21_ten_thousand_samples_are_counted_as_the_server_does,
           120) {
  enum { N = 10000, TRAINED = E2E_LENGTH, LIMIT = TRAINED + 6 * 2000 + 5 };
  tnk_totals_t own;
  tnk_totals_t billed;
  crowd_t crowd;
  e2e_t e2e;

  e2e_open(&e2e, (local_options_t)LOCAL_OPTIONS_INIT);
  e2e_train(&e2e, 2);
  set_limit(&e2e, LIMIT);
  e2e_done(e2e_pass(&e2e, 0));
  e2e_done(e2e_step(&e2e));
  crowd = draw(&e2e, e2e_snapshot(&e2e), N);
  CHECK_INT(crowd.n_failed, 0);
  own = totals_of(&e2e);
  billed = bill(&e2e);
  CHECK_INT(own.n_trained_tokens, TRAINED);
  CHECK_INT(own.n_trained_tokens, billed.n_trained_tokens);
  CHECK_INT(own.n_prompt_tokens, billed.n_prompt_tokens);
  CHECK_INT(own.n_sampled_tokens, billed.n_sampled_tokens);
  CHECK_INT(own.n_prompt_tokens, PROMPT * (N - crowd.n_refused));
  CHECK_INT(own.n_doubtful_tokens, 0);
  CHECK_INT(own.n_reserved_tokens, 0);
  CHECK(tokens(&own) <= LIMIT && tokens(&own) > LIMIT - 2 * 6);
  e2e_close(&e2e);
}

/* Answers and results are lost, and some samples are given up. */
TEST_LIMIT(SX_21_under_faults_no_more_is_used_than_the_limit, 120) {
  enum { N = 600, LIMIT = 6 * 200 };
  tnk_promise_t *kept[N];
  tnk_sampling_t *sampling;
  tnk_totals_t own;
  tnk_totals_t billed;
  crowd_t crowd = {0, 0, 0};
  e2e_t e2e;

  e2e_open(&e2e, (local_options_t)LOCAL_OPTIONS_INIT);
  e2e_train(&e2e, 2);
  sampling = e2e_snapshot(&e2e);
  set_limit(&e2e, LIMIT);
  e2e_faults(&e2e, "drop_after_commit/asample=10%,410/retrieve_future=5%");
  for (int i = 0; i < N; i++) {
    kept[i] = e2e_sample(sampling, MAX_TOKENS, i, NULL);
    tnk_then(tnk_promise_ref(kept[i]), count_one, &crowd);
  }
  for (int i = 0; crowd.n_settled < N; i++) {
    uv_run(&e2e.uv, UV_RUN_ONCE);
    if (i < N && i % 10 == 0)
      tnk_promise_cancel(kept[i]);
  }
  CHECK(local_faults_count(e2e.faults, NULL) > 0);
  e2e_faults(&e2e, "");
  /* One that was given up while it was sent holds its part until it is
   * answered. */
  while (totals_of(&e2e).n_reserved_tokens > 0)
    uv_run(&e2e.uv, UV_RUN_ONCE);
  own = totals_of(&e2e);
  billed = bill(&e2e);
  CHECK(tokens(&own) <= tokens(&billed));
  CHECK(tokens(&billed) <= tokens(&own) + own.n_doubtful_tokens);
  CHECK(tokens(&own) + own.n_doubtful_tokens <= LIMIT);
  CHECK(crowd.n_refused > 0);
  for (int i = 0; i < N; i++)
    tnk_promise_unref(kept[i]);
  e2e_close(&e2e);
}
