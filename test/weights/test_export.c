/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints to train from: they are exported for the time of the download,
 * and that is cleaned up on every road.
 */
#include "weights/bench.h"

#define STATE "tinker://r:1/weights/a"
#define EXPORT                                                                 \
  "/api/v1/training_runs/model-0/checkpoints/external_weights/download"
#define EXPORT_URLS EXPORT "/external_weights_urls"
#define EXPORT_TTL EXPORT "/ttl"
#define LOAD "/api/v1/load_weights"
#define SAVE "/api/v1/save_weights_external"
#define FINISH "/api/v1/sessions/session-0/finish"

static void result(mock_request_t *request, void *user) {
  const char *id = strstr((const char *)request->body, "\"request_id\":\"");

  CHECK(id != NULL);
  id += strlen("\"request_id\":\"");
  if (strncmp(id, "load_weights", 12) == 0)
    mock_reply_json(request, 200, "{\"model_id\":\"model-0\"}");
  else if (strncmp(id, "save_weights_external", 21) == 0)
    mock_reply_json(
        request, 200,
        "{\"path\":\"tinker://model-0/external_weights/download\"}");
  else
    script_result(request, user);
}

static void open_export(bench_t *bench) {
  mock_server_t *mock;

  bench_open_adapter(bench);
  mock = bench->script.mock;
  mock_on(mock, "POST", "/api/v1/retrieve_future", result, &bench->script);
  mock_on(mock, "GET", EXPORT_URLS, bench_urls, bench);
  mock_json(mock, "DELETE", EXPORT, 204, "");
  mock_json(mock, "PUT", EXPORT_TTL, 200, "{}");
}

static tnk_promise_t *start(bench_t *bench,
                            const tnk_weights_options_t *options) {
  return tnk_weights_download(bench->script.service, STATE, bench->target,
                              options);
}

static size_t n_of(const bench_t *bench, const char *method, const char *path) {
  return mock_count(bench->script.mock, method, path);
}

static int says(const bench_t *bench, const char *path, const char *text) {
  const mock_request_t *request =
      mock_find(bench->script.mock, "POST", path, 0);

  CHECK(request != NULL);
  return strstr((const char *)request->body, text) != NULL;
}

static void wait_for(bench_t *bench, const char *method, const char *path) {
  while (n_of(bench, method, path) == 0)
    uv_run(&bench->script.uv, UV_RUN_NOWAIT);
}

TEST(P11_6_a_state_is_exported_downloaded_and_the_export_removed) {
  bench_t bench;
  outcome_t outcome;

  open_export(&bench);
  outcome_of(&outcome, start(&bench, NULL));
  bench_wait(&bench, &outcome);
  CHECK_INT(outcome.status, TNK_OK);
  bench_check(&bench);
  outcome_drop(&outcome);
  CHECK(says(&bench, LOAD, "\"path\":\"" STATE "\""));
  CHECK(says(&bench, LOAD, "\"optimizer\":false"));
  CHECK(says(&bench, LOAD, "\"created_by\":"));
  CHECK(says(&bench, SAVE, "\"path\":\"download\""));
  CHECK(says(&bench, SAVE, "\"ttl_seconds\":3600"));
  wait_for(&bench, "DELETE", EXPORT);
  bench_close(&bench);
}

TEST(P11_6_the_session_is_finished_behind_the_removal) {
  script_held_t held = {.n = 0};
  bench_t bench;
  outcome_t outcome;

  open_export(&bench);
  mock_on(bench.script.mock, "DELETE", EXPORT, script_hold, &held);
  outcome_of(&outcome, start(&bench, NULL));
  bench_wait(&bench, &outcome);
  CHECK_INT(outcome.status, TNK_OK);
  outcome_drop(&outcome);
  tnk_service_close(bench.script.service, script_closed, &bench.script);
  wait_for(&bench, "DELETE", EXPORT);
  mock_turns(bench.script.mock, 50);
  CHECK_INT(n_of(&bench, "POST", FINISH), 0);
  mock_reply(held.requests[0], 204, NULL, NULL, 0);
  mock_wait_flag(bench.script.mock, &bench.script.is_closed, 1);
  CHECK_INT(n_of(&bench, "POST", FINISH), 1);
  mock_close(bench.store);
  script_end(&bench.script);
  bench_end(&bench);
}

TEST(P11_6_the_end_of_the_service_does_not_wait_for_ever) {
  bench_t bench;
  outcome_t outcome;

  open_export(&bench);
  mock_on(bench.script.mock, "DELETE", EXPORT, mock_hold, NULL);
  outcome_of(&outcome, start(&bench, NULL));
  bench_wait(&bench, &outcome);
  outcome_drop(&outcome);
  tnk_service_close(bench.script.service, script_closed, &bench.script);
  wait_for(&bench, "DELETE", EXPORT);
  tnk__context_advance(&bench.script.service->root.context, 5000);
  mock_wait_flag(bench.script.mock, &bench.script.is_closed, 1);
  mock_close(bench.store);
  script_end(&bench.script);
  bench_end(&bench);
}

/* ---- Roads that end early ---- */

TEST(P11_6_a_failing_download_removes_the_export) {
  bench_t bench;
  outcome_t outcome;

  open_export(&bench);
  bench.files[0].status = 404;
  bench.files[0].n_status = -1;
  outcome_of(&outcome, start(&bench, NULL));
  bench_wait(&bench, &outcome);
  CHECK_INT(outcome.status, TNK_ENOTFOUND);
  outcome_drop(&outcome);
  wait_for(&bench, "DELETE", EXPORT);
  CHECK(!bench_exists(&bench, "out"));
  bench_close(&bench);
}

TEST(P11_6_a_cancel_removes_the_export) {
  bench_t bench;
  outcome_t outcome;
  tnk_promise_t *promise;

  open_export(&bench);
  mock_on(bench.store, NULL, NULL, mock_hold, NULL);
  promise = start(&bench, NULL);
  outcome_of(&outcome, tnk_promise_ref(promise));
  mock_wait(bench.store, 2);
  tnk_promise_cancel(promise);
  tnk_promise_unref(promise);
  bench_wait(&bench, &outcome);
  CHECK_INT(outcome.status, TNK_ECANCELED);
  outcome_drop(&outcome);
  wait_for(&bench, "DELETE", EXPORT);
  bench_close(&bench);
}

TEST(P11_6_the_end_of_the_service_removes_the_export) {
  bench_t bench;
  outcome_t outcome;

  open_export(&bench);
  mock_on(bench.store, NULL, NULL, mock_hold, NULL);
  outcome_of(&outcome, start(&bench, NULL));
  mock_wait(bench.store, 2);
  tnk_service_close(bench.script.service, script_closed, &bench.script);
  mock_wait_flag(bench.script.mock, &bench.script.is_closed, 1);
  CHECK_INT(outcome.status, TNK_ECLOSED);
  outcome_drop(&outcome);
  CHECK_INT(n_of(&bench, "DELETE", EXPORT), 1);
  mock_close(bench.store);
  script_end(&bench.script);
  bench_end(&bench);
}

/* What is being saved when nobody wants it any more is removed when it is
 * there. */
TEST(P11_6_a_cancel_while_it_is_saved_waits_with_the_removal) {
  script_held_t held = {.n = 0};
  bench_t bench;
  outcome_t outcome;
  tnk_promise_t *promise;

  open_export(&bench);
  mock_on(bench.script.mock, "POST", SAVE, script_hold, &held);
  promise = start(&bench, NULL);
  outcome_of(&outcome, tnk_promise_ref(promise));
  wait_for(&bench, "POST", SAVE);
  tnk_promise_cancel(promise);
  tnk_promise_unref(promise);
  bench_wait(&bench, &outcome);
  CHECK_INT(outcome.status, TNK_ECANCELED);
  outcome_drop(&outcome);
  mock_turns(bench.script.mock, 50);
  CHECK_INT(n_of(&bench, "DELETE", EXPORT), 0);
  script_accept(held.requests[0], &bench.script);
  wait_for(&bench, "DELETE", EXPORT);
  bench_close(&bench);
}

TEST(P11_6_what_cannot_be_restored_is_an_error_and_leaves_nothing) {
  bench_t bench;
  outcome_t outcome;

  open_export(&bench);
  mock_json(bench.script.mock, "POST", LOAD, 404, "{\"detail\":\"none\"}");
  outcome_of(&outcome, start(&bench, NULL));
  bench_wait(&bench, &outcome);
  CHECK_INT(outcome.status, TNK_ENOTFOUND);
  outcome_drop(&outcome);
  mock_turns(bench.script.mock, 50);
  CHECK_INT(n_of(&bench, "DELETE", EXPORT), 0);
  bench_close(&bench);
}

/* An operation that fails on the service does not say why. The path is asked
 * about, and the answer tells a wrong path from any other failure. */
TEST(P11_6_a_state_that_is_not_there_is_not_found_and_leaves_nothing) {
  static const struct {
    int status; /* of the question for the path */
    int wanted;
  } cases[] = {{404, TNK_ENOTFOUND}, {200, TNK_EFAILED}, {403, TNK_EFAILED}};

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    bench_t bench;
    outcome_t outcome;

    open_export(&bench);
    mock_json(bench.script.mock, "POST", "/api/v1/retrieve_future", 200,
              "{\"error\":\"Checkpoint not found\",\"category\":\"user\"}");
    mock_json(bench.script.mock, "POST", "/api/v1/weights_info",
              cases[i].status,
              "{\"base_model\":\"m\",\"is_lora\":true,\"lora_rank\":8}");
    outcome_of(&outcome, start(&bench, NULL));
    bench_wait(&bench, &outcome);
    CHECK_INT(outcome.status, cases[i].wanted);
    outcome_drop(&outcome);
    mock_turns(bench.script.mock, 50);
    CHECK_INT(n_of(&bench, "POST", "/api/v1/weights_info"), 1);
    CHECK(!bench_exists(&bench, "out.incomplete"));
    bench_close(&bench);
  }
}

/* ---- Begun anew ---- */

/* What a process that was killed in the middle leaves. */
static void leave(bench_t *bench) {
  char text[500];
  char run[64] = "";
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");

  if (file != NULL) {
    CHECK(fscanf(file, "%63s", run) == 1);
    fclose(file);
  }
  snprintf(text, sizeof(text),
           "tnk-download 1\t%s\t" STATE
           "\nexport\ttinker://model-0/external_weights/download\n",
           run);
  bench_write(bench, "out.incomplete/journal", text);
}

TEST(P11_6_an_export_of_a_killed_download_is_found_again) {
  bench_t bench;
  outcome_t outcome;

  open_export(&bench);
  leave(&bench);
  outcome_of(&outcome, start(&bench, NULL));
  bench_wait(&bench, &outcome);
  CHECK_INT(outcome.status, TNK_OK);
  bench_check(&bench);
  outcome_drop(&outcome);
  CHECK_INT(n_of(&bench, "POST", LOAD), 0);
  CHECK_INT(n_of(&bench, "PUT", EXPORT_TTL), 1);
  wait_for(&bench, "DELETE", EXPORT);
  bench_close(&bench);
}

TEST(P11_6_an_export_that_is_gone_is_replaced) {
  bench_t bench;
  outcome_t outcome;

  open_export(&bench);
  leave(&bench);
  mock_json_once(bench.script.mock, "GET", EXPORT_URLS, 404,
                 "{\"detail\":\"there is no such checkpoint\"}");
  outcome_of(&outcome, start(&bench, NULL));
  bench_wait(&bench, &outcome);
  CHECK_INT(outcome.status, TNK_OK);
  bench_check(&bench);
  outcome_drop(&outcome);
  CHECK_INT(n_of(&bench, "POST", SAVE), 1);
  wait_for(&bench, "DELETE", EXPORT);
  bench_close(&bench);
}

/* ---- Memory ---- */

static int without_memory(long n) {
  bench_t bench;
  outcome_t outcome;
  int did_fail;

  open_export(&bench);
  bench.files[0].n = 1000;
  test_alloc_fail_at(n);
  outcome_of(&outcome, start(&bench, NULL));
  bench_wait(&bench, &outcome);
  did_fail = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  if (outcome.status != TNK_OK && (outcome.status != TNK_ENOMEM || !did_fail))
    test_fail(__FILE__, __LINE__, "allocation %ld: %s", n, outcome.text);
  outcome_drop(&outcome);
  bench_settle(&bench);
  bench_close(&bench);
  return !did_fail;
}

TEST_LIMIT(P11_6_each_allocation_may_fail, 60) {
  long n = 0;

  while (!without_memory(n))
    CHECK(++n < 2000);
  CHECK(n > 100);
}
