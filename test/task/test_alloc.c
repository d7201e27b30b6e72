/* SPDX-License-Identifier: MIT */
/*
 * Every public operation with each of its allocations failing in turn. It
 * succeeds or reports TNK_ENOMEM, leaks nothing, and the client goes on as if
 * it had never been called. The runner counts what is left behind.
 */
#include "task/kinds.h"

enum { MAX_ALLOCATIONS = 3000 };

static void check_status(const char *name, long n, const outcome_t *outcome) {
  if (outcome->n_done != 1 ||
      (outcome->status != TNK_OK && outcome->status != TNK_ENOMEM))
    test_fail(__FILE__, __LINE__, "%s, allocation %ld: settled %d times, %s",
              name, n, outcome->n_done, outcome->text);
}

static void check_live(const char *name, long n) {
  if (test_alloc_live() != 0)
    test_fail(__FILE__, __LINE__, "%s, allocation %ld: %zu blocks are left",
              name, n, test_alloc_live());
}

/* Start it, let its n-th allocation fail, wait for its end. Whether there were
 * that many. */
static int start_without(script_t *script, const script_kind_t *kind, long n,
                         outcome_t *outcome) {
  int did_fail;

  test_alloc_fail_at(n);
  outcome_of(outcome, kind->start(script));
  script_settle(script, outcome);
  did_fail = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  check_status(kind->name, n, outcome);
  return did_fail;
}

/* 1 when all allocations of the operation were made before the n-th. */
static int run(const script_kind_t *kind, const char *flags, long n) {
  script_t script;
  outcome_t outcome;
  int did_fail;

  script_open_for(&script, kind, flags);
  did_fail = start_without(&script, kind, n, &outcome);
  if (!did_fail)
    CHECK_INT(outcome.status, TNK_OK);
  script_check_next(&script);
  outcome_drop(&outcome);
  script_close(&script);
  check_live(kind->name, n);
  return !did_fail;
}

static void run_all(const script_kind_t *kind, const char *flags) {
  long n = 0;

  while (!run(kind, flags, n))
    CHECK(++n < MAX_ALLOCATIONS);
}

static void run_of(script_owner_t owner) {
  for (size_t i = 0; i < SCRIPT_N_KINDS; i++)
    if (script_kinds[i].owner == owner)
      run_all(&script_kinds[i], NULL);
}

TEST_LIMIT(S3_26a_training_without_memory, 60) {
  run_of(OWNER_TRAINING);
}

TEST_LIMIT(S3_26a_passes_in_chunks_without_memory, 60) {
  run_all(&script_kinds[0], "{\"fwdbwd_max_chunk_len\":1}");
  run_all(&script_kinds[0], "{\"fwdbwd_max_chunk_len\":1,"
                            "\"parallel_fwdbwd_chunks\":false}");
  run_all(&script_kinds[0], "{\"proto_compress_fwdbwd\":true}");
}

TEST_LIMIT(S3_26a_sampling_without_memory, 60) {
  run_of(OWNER_SAMPLING);
}

TEST_LIMIT(S3_26a_samples_that_wait_together_without_memory, 60) {
  for (size_t i = 0; i < SCRIPT_N_KINDS; i++)
    if (script_kinds[i].owner == OWNER_SAMPLING)
      run_all(&script_kinds[i], script_batched);
}

TEST_LIMIT(S4_1b_making_clients_without_memory, 60) {
  run_of(OWNER_SERVICE);
}

/* The start-up too: its failure is everybody's who waits for it. */
static int run_fresh(const script_kind_t *kind, long n) {
  script_t script;
  outcome_t outcome;
  outcome_t next;
  int did_fail;

  script_open(&script);
  did_fail = start_without(&script, kind, n, &outcome);
  outcome_of(&next, kind->start(&script));
  script_settle(&script, &next);
  outcome_ok(&script, &next);
  outcome_drop(&next);
  outcome_drop(&outcome);
  script_close(&script);
  check_live(kind->name, n);
  return !did_fail;
}

TEST_LIMIT(S4_1b_starting_up_without_memory, 60) {
  for (size_t i = 0; i < SCRIPT_N_KINDS; i++) {
    long n = 0;
    if (script_kinds[i].owner != OWNER_SERVICE)
      continue;
    while (!run_fresh(&script_kinds[i], n))
      CHECK(++n < MAX_ALLOCATIONS);
  }
}

/* An answer under way, repeats, polls that tell of a queue. */
static int run_hard(const script_kind_t *kind, long n) {
  script_t script;
  outcome_t outcome;
  int did_fail;
  char path[64];

  script_open_for(&script, kind, NULL);
  snprintf(path, sizeof(path), "/api/v1/%s", kind->call);
  mock_json_once(script.mock, "POST", path, 429, "{}");
  mock_json_once(script.mock, "POST", "/api/v1/retrieve_future", 200,
                 "{\"type\":\"try_again\",\"request_id\":\"r\","
                 "\"queue_state\":\"paused_capacity\"}");
  mock_json_once(script.mock, "POST", "/api/v1/retrieve_future", 200,
                 "{\"status\":\"complete_metadata\","
                 "\"response_payload_size\":100}");
  mock_json_once(script.mock, "POST", "/api/v1/retrieve_future",
                 kind->owner == OWNER_SAMPLING ? 410 : 503, "{}");
  did_fail = start_without(&script, kind, n, &outcome);
  script_check_next(&script);
  outcome_drop(&outcome);
  script_close(&script);
  check_live(kind->name, n);
  return !did_fail;
}

TEST_LIMIT(S3_26a_repeats_without_memory, 60) {
  for (size_t i = 0; i < SCRIPT_N_KINDS; i++) {
    long n = 0;
    if (script_kinds[i].start != script_step &&
        script_kinds[i].start != script_sample)
      continue;
    while (!run_hard(&script_kinds[i], n))
      CHECK(++n < MAX_ALLOCATIONS);
  }
}

/* ---- Opening and closing ---- */

static int open_service(tnk_service_t **service, uv_loop_t *uv) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  static const tnk_pair_t pair = {"name", "value"};
  char text[256];

  options.api_key = script_key();
  options.base_url = "http://127.0.0.1:1";
  options.tags = "a, b";
  options.project_id = "p";
  options.display_name = "d";
  options.headers = &pair;
  options.n_headers = 1;
  options.user_metadata = &pair;
  options.n_user_metadata = 1;
  options.allocator = test_allocator();
  return tnk_service_open(service, uv, &options, text, sizeof(text));
}

TEST(S4_1b_opening_a_service_without_memory) {
  uv_loop_t uv;
  int err = TNK_ENOMEM;

  for (long n = 0; err != TNK_OK; n++) {
    tnk_service_t *service;
    CHECK_INT(uv_loop_init(&uv), 0);
    test_alloc_fail_at(n);
    err = open_service(&service, &uv);
    test_alloc_fail_at(-1);
    CHECK(err == TNK_OK || err == TNK_ENOMEM);
    CHECK((service != NULL) == (err == TNK_OK));
    tnk_service_close(service, NULL, NULL);
    uv_run(&uv, UV_RUN_DEFAULT);
    CHECK_INT(uv_loop_close(&uv), 0);
    CHECK(n < MAX_ALLOCATIONS);
  }
}

/* Closing must not depend on memory, whatever is going on. */
TEST(S1_7_closing_allocates_nothing) {
  script_t script;
  script_held_t held = {.n = 0};
  outcome_t outcomes[6];
  size_t before;

  script_open_train(&script);
  script_sampler(&script);
  mock_on(script.mock, "POST", "/api/v1/retrieve_future", script_hold, &held);
  for (int i = 0; i < 3; i++) {
    outcome_of(&outcomes[i], script_pass(&script, 1));
    outcome_of(&outcomes[3 + i], script_sample(&script));
  }
  mock_wait_flag(script.mock, &held.n, 6);
  before = test_alloc_count();
  tnk_training_close(script.training, NULL, NULL);
  tnk_sampling_close(script.sampling, NULL, NULL);
  CHECK_INT(test_alloc_count(), before);
  for (int i = 0; i < 6; i++)
    outcome_fails(&script, &outcomes[i], TNK_ECLOSED);
  outcome_drop_all(outcomes, 6);
  script_close(&script);
}

TEST(S1_7_closing_a_service_without_memory) {
  for (long n = 0; n < 40; n++) {
    script_t script;
    outcome_t outcome;
    script_open_train(&script);
    mock_on(script.mock, "POST", "/api/v1/retrieve_future", mock_hold, NULL);
    outcome_of(&outcome, script_pass(&script, 1));
    script_turns(&script);
    test_alloc_fail_at(n);
    script_close(&script);
    test_alloc_fail_at(-1);
    CHECK_INT(outcome.status, TNK_ECLOSED);
    outcome_drop(&outcome);
  }
}

/* A sample given up at every stage, while the server wants to be told. */
TEST_LIMIT(S3_26a_giving_up_a_sample_without_memory, 20) {
  for (int turns = 0; turns < 8; turns++)
    for (long n = 0; n < 12; n++) {
      script_t script;
      outcome_t outcome;
      tnk_promise_t *promise;
      script_open(&script);
      script_sampler(&script);
      script.service->session.start.dynamic.sample_cancel = 1;
      mock_json(script.mock, "POST", "/api/v1/cancel_future", 200, "{}");
      promise = script_sample(&script);
      outcome_of(&outcome, tnk_promise_ref(promise));
      mock_turns(script.mock, turns);
      test_alloc_fail_at(n);
      tnk_promise_cancel(promise);
      tnk_promise_unref(promise);
      script_settle(&script, &outcome);
      test_alloc_fail_at(-1);
      CHECK(outcome.status == TNK_OK || outcome.status == TNK_ECANCELED);
      script_check_next(&script);
      outcome_drop(&outcome);
      script_close(&script);
      check_live("sample", n);
    }
}
