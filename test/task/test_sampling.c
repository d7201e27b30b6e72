/* SPDX-License-Identifier: MIT */
/* Samples: numbers, slots, bytes, repeats. What a 429 does to the order of
 * samples is in test_throttle.c, and between services in test_tenants.c. */
#include "task/script.h"

static const char sample_path[] = "/api/v1/asample";
static const char future_path[] = "/api/v1/retrieve_future";

static size_t n_submitted(const script_t *script) {
  return mock_count(script->mock, "POST", sample_path);
}

static void open_sampling(script_t *script, const char *flags) {
  script_open(script);
  if (flags != NULL)
    script_flags(script, flags);
  script_sampler(script);
}

/* Everything that samples hold has been given back. */
static void check_idle(const script_t *script) {
  const tnk__session_t *session = &script->service->session;

  CHECK_INT(session->limits.sample_running.n_held, 0);
  CHECK_INT(session->limits.sample_slots.n_held, 0);
  CHECK_INT(session->limits.sample_throttle.n_held, 0);
  CHECK_INT(session->limits.sample_bytes.balance,
            session->limits.sample_bytes.size);
  CHECK(tnk__list_empty(&session->limits.gate.waiting));
}

/* ---- Many at once ---- */

static int n_many;

static void count_done(tnk_promise_t *promise, int status, void *user) {
  (void)promise;
  (void)user;
  CHECK_INT(status, TNK_OK);
  n_many++;
}

TEST_LIMIT(S3_11_S3_13_S4_13_ten_thousand_samples_in_one_tick, 60) {
  enum { N = 10000 };
  static uint8_t seen[N];
  script_t script;
  tnk_stats_t stats = TNK_STATS_INIT;
  size_t before;

  open_sampling(&script, NULL);
  before = mock_n_requests(script.mock);
  for (int i = 0; i < N; i++)
    tnk_then(script_sample(&script), count_done, NULL);
  /* Nothing is sent inside the call, everything soon after it. */
  tnk_service_stats(&stats, script.service);
  CHECK_INT(stats.n_pending, N);
  CHECK_INT(mock_n_requests(script.mock), before);
  mock_turns(script.mock, 10);
  CHECK(mock_n_requests(script.mock) > before);
  mock_wait_flag(script.mock, &n_many, N);
  /* Each number from 0 on, once. */
  CHECK_INT(script.n_sent, N);
  for (size_t i = 0; i < N; i++) {
    CHECK(script.sent[i].seq >= 0 && script.sent[i].seq < N);
    CHECK_INT(seen[script.sent[i].seq]++, 0);
  }
  tnk_service_stats(&stats, script.service);
  CHECK_INT(stats.n_pending, 0);
  CHECK_INT(stats.n_late_events, 0);
  check_idle(&script);
  script_close(&script);
}

TEST(S4_11_samples_go_out_in_order_of_their_calls) {
  enum { N = 1000 };
  script_t script;

  open_sampling(&script, "{\"sample_max_concurrent_requests\":10}");
  for (int i = 0; i < N; i++)
    tnk_then(script_sample(&script), count_done, NULL);
  while (n_many < N) {
    CHECK(script.service->session.limits.sample_running.n_held <= 10);
    uv_run(&script.uv, UV_RUN_ONCE);
  }
  for (size_t i = 0; i < N; i++)
    CHECK_INT(script.sent[i].seq, (long long)i);
  check_idle(&script);
  script_close(&script);
}

static int n_refused;
static uint8_t was_refused[1000];

/* Every other one, the first time. */
static void refuse_half(mock_request_t *request, void *user) {
  const long long seq = script_number(request, "seq_id");

  CHECK(seq >= 0 && seq < 1000);
  if (seq % 2 == 0 || was_refused[seq]) {
    script_accept(request, user);
    return;
  }
  was_refused[seq] = 1;
  n_refused++;
  mock_reply_json(request, 502, "{}");
}

/* All have been with the server before any of the pauses is over. */
TEST_LIMIT(S4_11_who_pauses_leaves_its_slot_to_others, 20) {
  enum { N = 400 };
  script_t script;

  open_sampling(&script, NULL);
  mock_on(script.mock, "POST", sample_path, refuse_half, &script);
  for (int i = 0; i < N; i++)
    tnk_then(script_sample(&script), count_done, NULL);
  for (int i = 0; i < 100 && n_submitted(&script) < N; i++)
    mock_turns(script.mock, 10);
  CHECK_INT(n_submitted(&script), N);
  CHECK_INT(n_refused, N / 2);
  for (int i = 0; i < 100 && n_many < N; i++)
    script_advance(&script, 1000);
  CHECK_INT(n_many, N);
  CHECK_INT(script.n_sent, N);
  check_idle(&script);
  script_close(&script);
}

TEST(S3_11_a_sample_is_not_queued_behind_another) {
  script_t script;
  script_held_t held = {.n = 0};
  outcome_t first;
  outcome_t second;

  open_sampling(&script, NULL);
  mock_once(script.mock, "POST", sample_path, script_hold, &held);
  outcome_of(&first, script_sample(&script));
  script_ok(&script, &second, script_sample(&script));
  CHECK_INT(first.n_done, 0);
  script_accept(held.requests[0], &script);
  outcome_ok(&script, &first);
  outcome_drop(&first);
  outcome_drop(&second);
  script_close(&script);
}

TEST(S4_11c_a_giant_among_small_ones_is_served_in_order) {
  enum { N = 20, GIANT = 7, TOKENS = 300000 };
  script_t script;
  outcome_t outcomes[N];
  int32_t *tokens = calloc(TOKENS, sizeof(*tokens));
  tnk_chunk_t chunk = tnk_chunk_text(tokens, TOKENS);
  const tnk_model_input_t giant = {.chunks = &chunk, .n_chunks = 1};

  CHECK(tokens != NULL);
  open_sampling(&script, "{\"sample_dispatch_bytes_semaphore_size\":1}");
  for (int i = 0; i < N; i++)
    outcome_of(&outcomes[i],
               i == GIANT
                   ? tnk_sampling_sample(script.sampling, &giant, NULL, NULL)
                   : script_sample(&script));
  for (int i = 0; i < N; i++)
    outcome_ok(&script, &outcomes[i]);
  for (size_t i = 0; i < N; i++)
    CHECK_INT(script.sent[i].seq, (long long)i);
  check_idle(&script);
  outcome_drop_all(outcomes, N);
  script_close(&script);
  free(tokens);
}

TEST(S4_4_bytes_cost_twenty_times_as_much_after_a_429) {
  script_t script;
  script_held_t held = {.n = 0};
  outcome_t outcome;
  const tnk__budget_t *budget;

  open_sampling(&script, NULL);
  budget = &script.service->session.limits.sample_bytes;
  mock_on(script.mock, "POST", sample_path, script_hold, &held);
  outcome_of(&outcome, script_sample(&script));
  mock_wait_flag(script.mock, &held.n, 1);
  CHECK_INT(budget->size - budget->balance, 20); /* two tokens */
  mock_reply(held.requests[0], 429, "Retry-After: 1\r\n", "{}", 2);
  script_turns(&script);
  CHECK_INT(budget->size - budget->balance, 0);
  script_advance(&script, 1000);
  mock_wait_flag(script.mock, &held.n, 2);
  CHECK_INT(budget->size - budget->balance, 400);
  script_accept(held.requests[1], &script);
  outcome_ok(&script, &outcome);
  check_idle(&script);
  outcome_drop(&outcome);
  script_close(&script);
}

/* ---- Repeats ---- */

TEST(S4_13_a_repeat_keeps_its_number_and_a_new_submission_takes_one) {
  script_t script;
  outcome_t outcomes[2];

  open_sampling(&script, NULL);
  mock_json_once(script.mock, "POST", sample_path, 503, "{}");
  mock_once(script.mock, "POST", sample_path, script_accept, &script);
  mock_json_once(script.mock, "POST", future_path, 410, "{}");
  outcome_of(&outcomes[0], script_sample(&script));
  for (int i = 0; i < 10 && outcomes[0].n_done == 0; i++)
    script_advance(&script, 10000);
  outcome_ok(&script, &outcomes[0]);
  CHECK_INT(n_submitted(&script), 3);
  CHECK_INT(
      script_number(mock_find(script.mock, "POST", sample_path, 0), "seq_id"),
      0);
  CHECK_STR(mock_header(mock_find(script.mock, "POST", sample_path, 0),
                        "X-Idempotency-Key"),
            mock_header(mock_find(script.mock, "POST", sample_path, 1),
                        "X-Idempotency-Key"));
  script_check_sent(&script, 0, "asample", 0);
  script_check_sent(&script, 1, "asample", 1);
  CHECK(strcmp(mock_header(mock_find(script.mock, "POST", sample_path, 1),
                           "X-Idempotency-Key"),
               mock_header(mock_find(script.mock, "POST", sample_path, 2),
                           "X-Idempotency-Key")) != 0);
  script_ok(&script, &outcomes[1], script_sample(&script));
  script_check_sent(&script, 2, "asample", 2);
  check_idle(&script);
  outcome_drop_all(outcomes, 2);
  script_close(&script);
}

TEST(S3_16_results_that_are_always_lost_are_given_up) {
  script_t script;
  outcome_t outcome;

  open_sampling(&script, NULL);
  mock_json(script.mock, "POST", future_path, 410, "{}");
  outcome_of(&outcome, script_sample(&script));
  for (int i = 0; i < 30 && outcome.n_done == 0; i++)
    script_advance(&script, 15000);
  outcome_fails(&script, &outcome, TNK_EEXPIRED);
  CHECK_INT(n_submitted(&script), 11); /* max_retries is 10 */
  for (size_t i = 0; i < 11; i++)
    CHECK_INT(script.sent[i].seq, (long long)i);
  CHECK_INT(script.n_warnings, 10);
  check_idle(&script);
  outcome_drop(&outcome);
  script_close(&script);
}

static void open_without_repeats(script_t *script) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  options.retry_samples = TNK_NO;
  script_open_with(script, options);
  script_sampler(script);
}

TEST(S3_16_without_repeats_the_first_failure_is_reported) {
  static const struct {
    int status;
    int code;
  } cases[] = {{429, TNK_ERATE},     {503, TNK_ESERVER},  {408, TNK_ESERVER},
               {409, TNK_ECONFLICT}, {402, TNK_EBILLING}, {404, TNK_ESESSION},
               {400, TNK_EREQUEST}};
  script_t script;
  outcome_t outcome;

  open_without_repeats(&script);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    mock_json_once(script.mock, "POST", sample_path, cases[i].status,
                   "{\"detail\":\"no\"}");
    outcome_of(&outcome, script_sample(&script));
    /* An earlier 429 or 402 holds up those that come after it. */
    for (int k = 0; k < 10 && outcome.n_done == 0; k++)
      script_advance(&script, 1000);
    outcome_fails(&script, &outcome, cases[i].code);
    CHECK_INT(n_submitted(&script), i + 1);
    CHECK_INT(tnk_promise_error(outcome.promise)->http_status, cases[i].status);
    CHECK_INT(tnk_promise_error(outcome.promise)->n_attempts, 1);
    outcome_drop(&outcome);
  }
  check_idle(&script);
  script_close(&script);
}

TEST(S3_16_without_repeats_a_429_tells_the_servers_wish) {
  script_t script;
  outcome_t outcome;

  open_without_repeats(&script);
  mock_once(script.mock, "POST", sample_path, mock_hold, NULL);
  outcome_of(&outcome, script_sample(&script));
  script_turns(&script);
  mock_reply(mock_find(script.mock, "POST", sample_path, 0), 429,
             "Retry-After: 7\r\n", "{}", 2);
  outcome_fails(&script, &outcome, TNK_ERATE);
  CHECK_INT(tnk_promise_error(outcome.promise)->retry_after_ms, 7000);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(S3_16_without_repeats_a_lost_result_is_reported) {
  script_t script;
  outcome_t outcome;

  open_without_repeats(&script);
  mock_json_once(script.mock, "POST", future_path, 410, "{}");
  script_fails(&script, &outcome, script_sample(&script), TNK_EEXPIRED);
  CHECK_INT(n_submitted(&script), 1);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(S3_16_the_server_can_switch_new_submissions_off) {
  script_t script;
  outcome_t outcomes[2];

  open_sampling(&script, "{\"sample_no_retries\":true}");
  /* Repeats of the same submission are another matter. */
  mock_json_once(script.mock, "POST", sample_path, 503, "{}");
  mock_json_once(script.mock, "POST", sample_path, 429, "{}");
  mock_json_once(script.mock, "POST", future_path, 410, "{}");
  outcome_of(&outcomes[0], script_sample(&script));
  for (int i = 0; i < 5 && outcomes[0].n_done == 0; i++)
    script_advance(&script, 10000);
  outcome_fails(&script, &outcomes[0], TNK_EEXPIRED);
  CHECK_INT(n_submitted(&script), 3);
  /* Of samples only, not of compute_logprobs. */
  mock_json_once(script.mock, "POST", future_path, 410, "{}");
  outcome_of(&outcomes[1], tnk_sampling_compute_logprobs(
                               script.sampling, script_prompt(), NULL));
  script_turns(&script);
  script_advance(&script, 10000);
  outcome_ok(&script, &outcomes[1]);
  outcome_drop_all(outcomes, 2);
  script_close(&script);
}

/* ---- What a 429 asks for ---- */

enum { LARGE = 20000 };

/* Milliseconds from a 429 with these headers to the next submission. */
static uint64_t pause_after(const char *headers, size_t n_tokens) {
  static int32_t tokens[LARGE];
  tnk_chunk_t chunk = tnk_chunk_text(tokens, n_tokens);
  const tnk_model_input_t prompt = {.chunks = &chunk, .n_chunks = 1};
  script_t script;
  outcome_t outcome;
  uint64_t ms = 0;

  open_sampling(&script, NULL);
  mock_once(script.mock, "POST", sample_path, mock_hold, NULL);
  outcome_of(&outcome,
             tnk_sampling_sample(script.sampling, &prompt, NULL, NULL));
  while (n_submitted(&script) == 0)
    script_turns(&script);
  mock_reply(mock_find(script.mock, "POST", sample_path, 0), 429, headers, "{}",
             2);
  script_turns(&script);
  while (n_submitted(&script) == 1) {
    script_advance(&script, 250);
    ms += 250;
    CHECK(ms < 120000);
  }
  outcome_ok(&script, &outcome);
  outcome_drop(&outcome);
  script_advance(&script, 200000); /* forget the back-off */
  script_close(&script);
  return ms;
}

TEST_LIMIT(S3_15_a_429_waits_as_the_server_says, 20) {
  static const struct {
    const char *headers;
    uint64_t ms; /* 0: what is usual for the size */
  } cases[] = {
      {NULL, 0},
      {"Retry-After-Ms: 2500\r\n", 2500},
      {"Retry-After: 3\r\n", 3000},
      {"Retry-After: 0.5\r\n", 500},
      {"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
       "Retry-After: Sun, 06 Nov 1994 08:49:41 GMT\r\n",
       4000},
      {"Retry-After: Sunday, 06-Nov-94 08:49:41 GMT\r\n", 0}, /* past */
      {"Retry-After: 3600\r\n", 0},
      {"Retry-After: -1\r\n", 0},
      {"Retry-After: soon\r\n", 0},
  };

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    uint64_t ms = cases[i].ms;
    CHECK_INT(pause_after(cases[i].headers, 2), ms != 0 ? ms : 1000);
    CHECK_INT(pause_after(cases[i].headers, LARGE), ms != 0 ? ms : 5000);
  }
}

TEST(S1_10_a_503_waits_as_the_server_says) {
  script_t script;
  outcome_t outcome;

  open_sampling(&script, NULL);
  mock_once(script.mock, "POST", sample_path, mock_hold, NULL);
  outcome_of(&outcome, script_sample(&script));
  script_turns(&script);
  mock_reply(mock_find(script.mock, "POST", sample_path, 0), 503,
             "Retry-After: 20\r\n", "{}", 2);
  script_turns(&script);
  script_advance(&script, 19999);
  CHECK_INT(n_submitted(&script), 1);
  script_advance(&script, 1);
  outcome_ok(&script, &outcome);
  CHECK_INT(n_submitted(&script), 2);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(S4_3_a_back_off_that_is_cleared_lets_all_go_at_once) {
  script_t script;
  script_held_t held = {.n = 0};
  outcome_t outcomes[3];

  open_sampling(&script, NULL);
  mock_once(script.mock, "POST", sample_path, script_hold, &held);
  outcome_of(&outcomes[0], script_sample(&script));
  mock_wait_flag(script.mock, &held.n, 1);
  mock_reply(held.requests[0], 429, "Retry-After: 5\r\n", "{}", 2);
  script_turns(&script);
  outcome_of(&outcomes[1], script_sample(&script));
  outcome_of(&outcomes[2], script_sample(&script));
  script_advance(&script, 1000);
  CHECK_INT(n_submitted(&script), 1);
  tnk__limiter_clear(&script.service->session.limits.limiter,
                     tnk__context_now_ms(&script.service->root.context));
  script_advance(&script, 0);
  for (int i = 0; i < 3; i++)
    outcome_ok(&script, &outcomes[i]);
  CHECK_INT(n_submitted(&script), 4);
  outcome_drop_all(outcomes, 3);
  script_close(&script);
}
