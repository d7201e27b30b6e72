/* SPDX-License-Identifier: MIT */
/* Tokens in exchange for the key: when they are fetched, who waits for them,
 * and what happens when none comes. */
#include "task/tokens.h"

enum { HOUR_S = 3600, HOUR_MS = 3600000 };

/* ---- The first token ---- */

TEST(D2_jwt_is_exchanged_once_for_all) {
  static const char *const paths[] = {"/api/v1/client/dynamic_config",
                                      "/api/v1/create_session",
                                      "/api/v1/create_sampling_session"};
  tokens_t t;
  outcome_t outcomes[20];

  tokens_open(&t, HOUR_S);
  for (int i = 0; i < 20; i++)
    outcome_of(&outcomes[i], tnk_service_capabilities(t.script.service));
  script_sampler(&t.script);
  for (int i = 0; i < 20; i++)
    outcome_ok(&t.script, &outcomes[i]);
  CHECK_INT(t.n_made, 1);
  CHECK_STR(tokens_key(&t, "/api/v1/client/config", 0), script_key());
  CHECK_STR(tokens_key(&t, tokens_path, 0), script_key());
  for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
    CHECK_STR(tokens_key(&t, paths[i], 0), t.token);
  outcome_drop_all(outcomes, 20);
  tokens_close(&t);
}

TEST(D2_jwt_is_not_asked_for_without_the_flag) {
  tokens_t t;

  tokens_open(&t, HOUR_S);
  script_flags(&t.script, "{\"credential_default_source\":\"credential_cmd\"}");
  script_sampler(&t.script);
  CHECK_INT(t.n_made, 0);
  CHECK_STR(tokens_key(&t, "/api/v1/create_session", 0), script_key());
  tokens_close(&t);
}

TEST(D2_jwt_exchange_is_repeated_like_any_call) {
  tokens_t t;
  outcome_t outcome;

  tokens_open(&t, HOUR_S);
  mock_json_once(t.script.mock, "POST", tokens_path, 503, "{}");
  mock_once(t.script.mock, "POST", tokens_path, mock_reset, NULL);
  outcome_of(&outcome, tnk_service_capabilities(t.script.service));
  tokens_settle(&t, &outcome);
  outcome_ok(&t.script, &outcome);
  CHECK_INT(t.n_made, 1);
  outcome_drop(&outcome);
  tokens_close(&t);
}

static void cut_off(mock_request_t *request, void *user) {
  (void)user;
  mock_reply_cut(request, 200, NULL, "{\"jwt\":\"eyJ\"}", 13, 45);
}

static void reply_huge(mock_request_t *request, void *user) {
  size_t n = 5 * TNK__MIB;
  char *body = calloc(1, n);

  (void)user;
  CHECK(body != NULL);
  memset(body, 'a', n);
  memcpy(body, "{\"jwt\":\"eyJ", 11);
  memcpy(body + n - 2, "\"}", 2);
  mock_reply(request, 200, "Content-Type: application/json\r\n", body, n);
  free(body);
}

/* Whoever needs the first token learns why there is none, and the next one
 * asks again. */
TEST_LIMIT(D2_jwt_endpoint_that_gives_no_token, 20) {
  static const struct {
    int status;
    const char *body;
    mock_handler_t handler;
    int code;
  } rows[] = {
      /* Who checks how it ended looks for the canary. */
      {401, "{\"detail\":\"tml-canary-key-0123456789 is unknown\"}", NULL,
       TNK_EAUTH},
      {403, "{}", NULL, TNK_EAUTH},
      {404, "{\"detail\":\"Not Found\"}", NULL, TNK_ENOTFOUND},
      {400, "{\"detail\":\"no\"}", NULL, TNK_EREQUEST},
      {200, "{\"jwt\":\"a\\r\\nX-Evil: 1\"}", NULL, TNK_EPROTO},
      {200, "{\"jwt\":\"\"}", NULL, TNK_EPROTO},
      {200, "{\"jwt\":7}", NULL, TNK_EPROTO},
      {200, "{}", NULL, TNK_EPROTO},
      {200, "<html>", NULL, TNK_EPROTO},
      {302, "{}", NULL, TNK_EREQUEST},
      {0, NULL, reply_huge, TNK_ETOOBIG},
  };
  tokens_t t;
  outcome_t outcomes[2];

  tokens_open(&t, HOUR_S);
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    if (rows[i].handler != NULL)
      mock_once(t.script.mock, "POST", tokens_path, rows[i].handler, NULL);
    else
      mock_json_once(t.script.mock, "POST", tokens_path, rows[i].status,
                     rows[i].body);
    for (int k = 0; k < 2; k++)
      outcome_of(&outcomes[k], tnk_service_capabilities(t.script.service));
    for (int k = 0; k < 2; k++)
      outcome_fails(&t.script, &outcomes[k], rows[i].code);
    for (int k = 0; k < 2; k++)
      CHECK(strstr(outcomes[k].text, "auth/token") != NULL);
    outcome_drop_all(outcomes, 2);
  }
  script_ok(&t.script, &outcomes[0],
            tnk_service_capabilities(t.script.service));
  outcome_drop(&outcomes[0]);
  CHECK_INT(t.n_made, 1);
  tokens_close(&t);
}

TEST(D2_jwt_endpoint_that_is_cut_off_is_asked_again) {
  tokens_t t;
  outcome_t outcome;

  tokens_open(&t, HOUR_S);
  mock_once(t.script.mock, "POST", tokens_path, cut_off, NULL);
  outcome_of(&outcome, tnk_service_capabilities(t.script.service));
  tokens_settle(&t, &outcome);
  outcome_ok(&t.script, &outcome);
  CHECK_INT(tokens_count(&t, tokens_path), 2);
  outcome_drop(&outcome);
  tokens_close(&t);
}

/* A server that no longer wants tokens is believed. */
TEST(jwt_flag_is_read_again_after_a_failure) {
  tokens_t t;
  outcome_t outcome;

  tokens_open(&t, HOUR_S);
  mock_json(t.script.mock, "POST", tokens_path, 404, "{}");
  script_fails(&t.script, &outcome, tnk_service_capabilities(t.script.service),
               TNK_ENOTFOUND);
  outcome_drop(&outcome);
  script_flags(&t.script, "{}");
  t.takes_keys = 1;
  script_ok(&t.script, &outcome, tnk_service_capabilities(t.script.service));
  outcome_drop(&outcome);
  tokens_close(&t);
}

/* ---- The next tokens ---- */

TEST(D2_jwt_is_refreshed_in_the_background) {
  tokens_t t;

  tokens_open(&t, HOUR_S);
  script_sampler(&t.script);
  script_advance(&t.script, HOUR_MS * 44 / 100);
  CHECK_INT(t.n_made, 1);
  /* At half its life, and so more than 5 minutes before its end. */
  script_advance(&t.script, HOUR_MS * 12 / 100);
  CHECK_INT(t.n_made, 2);
  CHECK_STR(tokens_key(&t, tokens_path, 1), script_key());
  tokens_sample(&t, TNK_OK);
  CHECK_STR(tokens_key(&t, tokens_sample_path, 0), t.token);
  for (int i = 3; i < 6; i++) {
    script_advance(&t.script, HOUR_MS * 56 / 100);
    CHECK_INT(t.n_made, i);
  }
  tokens_close(&t);
}

TEST(D2_jwt_of_an_unknown_life_is_refreshed_each_minute) {
  tokens_t t;

  tokens_open(&t, 0);
  script_sampler(&t.script);
  script_advance(&t.script, 53000);
  CHECK_INT(t.n_made, 1);
  script_advance(&t.script, 14000);
  CHECK_INT(t.n_made, 2);
  tokens_close(&t);
}

TEST(D2_jwt_refresh_that_fails_is_tried_again_after_60_s) {
  tokens_t t;
  size_t n;

  tokens_open(&t, HOUR_S);
  script_sampler(&t.script);
  mock_json(t.script.mock, "POST", tokens_path, 500, "{}");
  script_advance(&t.script, HOUR_MS * 56 / 100);
  n = tokens_count(&t, tokens_path);
  CHECK(n >= 2);
  CHECK(t.script.n_warnings > 0);
  for (size_t i = 1; i < 6; i++) {
    script_advance(&t.script, 60000);
    CHECK_INT(tokens_count(&t, tokens_path), n + i);
  }
  /* Meanwhile the old one serves. */
  tokens_sample(&t, TNK_OK);
  CHECK_STR(tokens_key(&t, tokens_sample_path, 0), t.token);
  mock_on(t.script.mock, "POST", tokens_path, tokens_give, &t);
  script_advance(&t.script, 60000);
  CHECK_INT(t.n_made, 2);
  tokens_close(&t);
}

/* Up to so many ms before the end of the first token, without a new one: the
 * refresh is refused, and so no more tried in the last two minutes. */
static void approach_end(tokens_t *t, uint64_t left_ms) {
  tokens_open(t, HOUR_S);
  script_sampler(&t->script);
  mock_json(t->script.mock, "POST", tokens_path, 401, "{}");
  script_advance(&t->script, HOUR_MS - left_ms);
}

TEST(D2_jwt_is_waited_for_in_its_last_60_s) {
  enum { N = 10 };
  tokens_t t;
  outcome_t outcomes[N];
  size_t n;

  approach_end(&t, 61000);
  tokens_sample(&t, TNK_OK);
  script_advance(&t.script, 2000);
  mock_on(t.script.mock, "POST", tokens_path, mock_hold, NULL);
  n = tokens_count(&t, tokens_path);
  for (int i = 0; i < N; i++)
    outcome_of(&outcomes[i], script_sample(&t.script));
  script_turns(&t.script);
  CHECK_INT(tokens_count(&t, tokens_sample_path), 1);
  CHECK_INT(tokens_count(&t, tokens_path), n + 1);
  CHECK_INT(mock_release(t.script.mock, 200, "{\"jwt\":\"eyJ.new-canary\"}"),
            1);
  for (int i = 0; i < N; i++) {
    outcome_ok(&t.script, &outcomes[i]);
    CHECK_STR(tokens_key(&t, tokens_sample_path, 1 + (size_t)i),
              "eyJ.new-canary");
  }
  outcome_drop_all(outcomes, N);
  tokens_close(&t);
}

TEST(D2_jwt_that_is_stale_serves_when_the_refresh_fails) {
  static const mock_handler_t handlers[] = {mock_reset, reply_huge, cut_off};
  tokens_t t;

  for (size_t i = 0; i < 4; i++) {
    approach_end(&t, 30000);
    if (i < 3)
      mock_on(t.script.mock, "POST", tokens_path, handlers[i], NULL);
    else
      mock_json(t.script.mock, "POST", tokens_path, 500, "{}");
    tokens_sample(&t, TNK_OK);
    CHECK_STR(tokens_key(&t, tokens_sample_path, 0), t.token);
    CHECK_INT(t.n_made, 1);
    tokens_close(&t);
  }
}

/* The clock that timers run by stands still while the machine sleeps. */
TEST(D2_jwt_that_has_expired_while_the_machine_slept_is_replaced) {
  tnk__context_t *context;
  outcome_t outcome;
  tokens_t t;

  tokens_open(&t, HOUR_S);
  context = &t.script.service->root.context;
  script_sampler(&t.script);
  CHECK_INT(t.n_made, 1);
  context->fake_wall_offset_s += HOUR_S / 2;
  script_ok(&t.script, &outcome, tnk_service_capabilities(t.script.service));
  outcome_drop(&outcome);
  CHECK_INT(t.n_made, 1);
  context->fake_wall_offset_s += HOUR_S / 2;
  script_ok(&t.script, &outcome, tnk_service_capabilities(t.script.service));
  outcome_drop(&outcome);
  CHECK_INT(t.n_made, 2);
  tokens_sample(&t, TNK_OK);
  CHECK_STR(tokens_key(&t, tokens_sample_path, 0), t.token);
  /* A clock that is set back tells nothing. */
  context->fake_wall_offset_s -= 2 * HOUR_S;
  script_ok(&t.script, &outcome, tnk_service_capabilities(t.script.service));
  outcome_drop(&outcome);
  CHECK_INT(t.n_made, 2);
  tokens_close(&t);
}

TEST(D2_jwt_that_has_expired_does_not_serve) {
  tokens_t t;

  approach_end(&t, 0);
  mock_json(t.script.mock, "POST", tokens_path, 400, "{\"detail\":\"gone\"}");
  tokens_sample(&t, TNK_EREQUEST);
  CHECK_INT(tokens_count(&t, tokens_sample_path), 0);
  /* The next one asks again. */
  mock_on(t.script.mock, "POST", tokens_path, tokens_give, &t);
  tokens_sample(&t, TNK_OK);
  CHECK_INT(t.n_made, 2);
  tokens_close(&t);
}

TEST(D2_jwt_key_that_is_refused_is_told_while_a_token_lives) {
  tokens_t t;
  size_t n;

  approach_end(&t, 61000);
  n = tokens_count(&t, tokens_path);
  tokens_sample(&t, TNK_OK); /* more than 60 s are left */
  script_advance(&t.script, 2000);
  CHECK_INT(tokens_count(&t, tokens_path), n); /* not unasked */
  tokens_sample(&t, TNK_EAUTH);
  CHECK_INT(tokens_count(&t, tokens_path), n + 1);
  tokens_close(&t);
}

TEST(D2_jwt_endpoint_that_is_slow_is_given_up_soon) {
  tokens_t t;
  outcome_t outcome;

  approach_end(&t, 30000);
  mock_on(t.script.mock, "POST", tokens_path, mock_hold, NULL);
  outcome_of(&outcome, script_sample(&t.script));
  script_turns(&t.script);
  script_advance(&t.script, 9000);
  CHECK_INT(outcome.n_done, 0);
  script_advance(&t.script, 1000);
  outcome_ok(&t.script, &outcome);
  CHECK_STR(tokens_key(&t, tokens_sample_path, 0), t.token);
  outcome_drop(&outcome);
  tokens_close(&t);
}

TEST(D2_jwt_refresh_holds_up_nobody_with_a_token) {
  tokens_t t;

  tokens_open(&t, HOUR_S);
  script_sampler(&t.script);
  mock_on(t.script.mock, "POST", tokens_path, mock_hold, NULL);
  script_advance(&t.script, HOUR_MS * 56 / 100);
  CHECK(mock_n_held(t.script.mock) > 0);
  tokens_sample(&t, TNK_OK);
  tokens_close(&t);
}

TEST(jwt_of_a_short_life_is_not_fetched_for_every_request) {
  tokens_t t;

  tokens_open(&t, 20);
  script_sampler(&t.script);
  for (int i = 0; i < 10; i++)
    tokens_sample(&t, TNK_OK);
  CHECK_INT(t.n_made, 1);
  tokens_close(&t);
}

TEST(jwt_refresh_does_not_keep_the_loop_alive_but_who_waits_does) {
  tokens_t t;
  outcome_t outcome;

  tokens_open(&t, HOUR_S);
  script_sampler(&t.script);
  mock_on(t.script.mock, "POST", tokens_path, mock_hold, NULL);
  while (mock_n_held(t.script.mock) == 0)
    script_advance(&t.script, 9000);
  CHECK_INT(t.script.service->root.context.timers.n_foreground, 0);
  CHECK(!uv_run(&t.script.uv, UV_RUN_NOWAIT));
  t.script.service->session.renewal.auth.due_ms =
      0; /* as if its end had come */
  outcome_of(&outcome, script_sample(&t.script));
  script_turns(&t.script);
  CHECK(uv_run(&t.script.uv, UV_RUN_NOWAIT));
  tokens_close(&t);
  CHECK_INT(outcome.status, TNK_ECLOSED);
  outcome_drop(&outcome);
}

/* ---- Tokens that are rejected ---- */

static void check_same(const tokens_t *t, const char *path, const char *name) {
  CHECK_STR(mock_header(mock_find(t->script.mock, "POST", path, 0), name),
            mock_header(mock_find(t->script.mock, "POST", path, 1), name));
}

TEST(D2_jwt_that_is_rejected_is_replaced_and_the_request_sent_again) {
  tokens_t t;
  const char *path = tokens_sample_path;
  const mock_request_t *first;
  const mock_request_t *second;

  tokens_open(&t, HOUR_S);
  script_sampler(&t.script);
  mock_once(t.script.mock, "POST", path, tokens_reject, NULL);
  tokens_sample(&t, TNK_OK);
  CHECK_INT(t.n_made, 2);
  CHECK_INT(tokens_count(&t, path), 2);
  first = mock_find(t.script.mock, "POST", path, 0);
  second = mock_find(t.script.mock, "POST", path, 1);
  CHECK_MEM(first->body, first->body_len, second->body, second->body_len);
  check_same(&t, path, "x-idempotency-key");
  check_same(&t, path, "x-stainless-retry-count");
  CHECK_STR(tokens_key(&t, path, 1), t.token);
  tokens_close(&t);
}

TEST(D2_jwt_second_rejection_is_final) {
  tokens_t t;

  tokens_open(&t, HOUR_S);
  script_sampler(&t.script);
  mock_on(t.script.mock, "POST", tokens_sample_path, tokens_reject, NULL);
  tokens_sample(&t, TNK_EAUTH);
  CHECK_INT(tokens_count(&t, tokens_sample_path), 2);
  tokens_close(&t);
}

TEST(D2_jwt_401_without_the_word_is_final) {
  tokens_t t;

  tokens_open(&t, HOUR_S);
  script_sampler(&t.script);
  mock_json(t.script.mock, "POST", tokens_sample_path, 401, "{}");
  tokens_sample(&t, TNK_EAUTH);
  CHECK_INT(tokens_count(&t, tokens_sample_path), 1);
  CHECK_INT(t.n_made, 1);
  tokens_close(&t);
}

TEST(D2_jwt_rejected_for_many_is_exchanged_once) {
  enum { N = 10 };
  tokens_t t;
  outcome_t outcomes[N];

  tokens_open(&t, HOUR_S);
  script_sampler(&t.script);
  for (int i = 0; i < N; i++)
    mock_once(t.script.mock, "POST", tokens_sample_path, tokens_reject, NULL);
  for (int i = 0; i < N; i++)
    outcome_of(&outcomes[i], script_sample(&t.script));
  for (int i = 0; i < N; i++)
    outcome_ok(&t.script, &outcomes[i]);
  CHECK_INT(t.n_made, 2);
  CHECK_INT(tokens_count(&t, tokens_sample_path), 2 * N);
  outcome_drop_all(outcomes, N);
  tokens_close(&t);
}

TEST(D2_key_that_is_rejected_is_not_replayed) {
  tokens_t t;

  tokens_open(&t, HOUR_S);
  script_flags(&t.script, "{}");
  script_sampler(&t.script);
  mock_on(t.script.mock, "POST", tokens_sample_path, tokens_reject, NULL);
  tokens_sample(&t, TNK_EAUTH);
  CHECK_INT(tokens_count(&t, tokens_sample_path), 1);
  tokens_close(&t);
}

/* ---- Waiting and closing ---- */

TEST(explain_tells_of_the_wait_for_a_token) {
  tokens_t t;
  tnk_promise_t *promise;
  char text[300];

  approach_end(&t, 0);
  mock_on(t.script.mock, "POST", tokens_path, mock_hold, NULL);
  promise = script_sample(&t.script);
  script_turns(&t.script);
  tnk_promise_explain(promise, text, sizeof(text));
  CHECK(strstr(text, "waits for a token; auth/token") != NULL);
  tnk_promise_unref(promise);
  tokens_close(&t);
}

TEST(jwt_wait_can_be_canceled) {
  tokens_t t;
  tnk_promise_t *promise;
  outcome_t outcomes[2];

  approach_end(&t, 0);
  mock_on(t.script.mock, "POST", tokens_path, mock_hold, NULL);
  promise = script_sample(&t.script);
  outcome_of(&outcomes[0], promise);
  outcome_of(&outcomes[1], script_sample(&t.script));
  script_turns(&t.script);
  tnk_promise_cancel(promise);
  script_turns(&t.script);
  CHECK_INT(outcomes[0].status, TNK_ECANCELED);
  CHECK_INT(mock_release(t.script.mock, 200, "{\"jwt\":\"eyJ\"}"), 1);
  outcome_ok(&t.script, &outcomes[1]);
  CHECK_INT(tokens_count(&t, tokens_sample_path), 1);
  outcome_drop_all(outcomes, 2);
  tokens_close(&t);
}

TEST(jwt_close_in_the_middle_of_an_exchange) {
  tokens_t t;
  outcome_t outcome;

  tokens_open(&t, HOUR_S);
  mock_on(t.script.mock, "POST", tokens_path, mock_hold, NULL);
  outcome_of(&outcome, tnk_service_capabilities(t.script.service));
  while (mock_n_held(t.script.mock) == 0)
    script_turns(&t.script);
  tokens_close(&t);
  CHECK_INT(outcome.status, TNK_ECLOSED);
  outcome_drop(&outcome);
}

TEST(jwt_close_waits_for_no_token) {
  tokens_t t;

  approach_end(&t, 1);
  mock_on(t.script.mock, "POST", tokens_path, mock_hold, NULL);
  tokens_close(&t);
}

/* ---- Memory ---- */

static int run_without_memory(long n) {
  tokens_t t;
  int is_over;

  tokens_open(&t, HOUR_S);
  is_over = tokens_ask_without_memory(&t, n);
  script_sampler(&t.script);
  tokens_close(&t);
  CHECK_INT(test_alloc_live(), 0);
  return is_over;
}

TEST_LIMIT(D2_jwt_without_memory, 30) {
  long n = 0;

  while (!run_without_memory(n))
    CHECK(++n < 1000);
}
