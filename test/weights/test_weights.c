/* SPDX-License-Identifier: MIT */
/*
 * Weights that are taken home: the way things go, and the directory that they
 * go to.
 */
#include "weights/bench.h"

TEST(P11_10_files_come_to_a_directory) {
  const tnk_weights_t *weights;
  bench_t bench;
  outcome_t outcome;

  bench_open_adapter(&bench);
  bench_add(&bench, "parts/1/a.bin", "abc", 3, NULL);
  bench_get(&bench, &outcome, NULL);
  CHECK_INT(outcome.status, TNK_OK);
  bench_check(&bench);
  weights = tnk_promise_weights(outcome.promise);
  CHECK_STR(weights->directory, bench.target);
  CHECK_INT(weights->n_files, 3);
  CHECK_INT(weights->n_bytes, BIG + 5);
  CHECK_INT(weights->n_fetched, BIG + 5);
  CHECK_INT(bench.n_signed, 1);
  CHECK_INT(mock_n_requests(bench.store), 3);
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(observe_files_of_weights_are_told_with_their_requests) {
  bench_t bench;
  outcome_t outcome;
  const heard_t *heard = &bench.script.heard;
  size_t n = 0;

  bench_open_adapter(&bench);
  bench_get(&bench, &outcome, NULL);
  CHECK_INT(outcome.status, TNK_OK);
  for (size_t i = 0; i < heard->n; i++)
    if (strcmp(heard->ops[i].name, "download") == 0) {
      n++;
      CHECK_INT(heard->ops[i].n_sent, 2);
      CHECK_INT(heard->ops[i].n_results, 2);
    }
  CHECK_INT(n, 1);
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(P11_10_a_directory_that_is_there_is_left_alone_and_nothing_is_asked) {
  bench_t bench;

  bench_open_adapter(&bench);
  bench_write(&bench, "out/mine", "mine");
  bench_get_not(&bench, NULL, TNK_EFILE, "only the option force");
  CHECK_INT(mock_n_requests(bench.script.mock), 0);
  bench_check_file(&bench, "out/mine", "mine", 4);
  CHECK(!bench_exists(&bench, "out.incomplete"));
  bench_close(&bench);
}

TEST(P11_10_an_empty_directory_is_filled) {
  bench_t bench;

  bench_open_adapter(&bench);
  CHECK_INT(mkdir(bench.target, 0777), 0);
  bench_get_ok(&bench, NULL);
  bench_close(&bench);
}

TEST(P11_10_a_file_of_that_name_is_in_the_way) {
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;
  bench_t bench;

  bench_open_adapter(&bench);
  bench_write(&bench, "out", "mine");
  bench_get_not(&bench, NULL, TNK_EFILE, "not a directory");
  options.force = TNK_YES;
  bench_get_not(&bench, &options, TNK_EFILE, "not a directory");
  bench_check_file(&bench, "out", "mine", 4);
  bench_close(&bench);
}

TEST(P11_10_force_replaces_a_directory_when_the_new_one_is_complete) {
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;
  bench_t bench;

  bench_open_adapter(&bench);
  bench_write(&bench, "out/mine/deep", "mine");
  options.force = TNK_YES;
  bench_get_ok(&bench, &options);
  CHECK(!bench_exists(&bench, "out/mine"));
  bench_close(&bench);
}

TEST(P11_10_force_on_a_failing_download_leaves_the_old_directory) {
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;
  bench_t bench;

  bench_open_adapter(&bench);
  bench_write(&bench, "out/mine", "mine");
  bench.files[0].status = 404;
  bench.files[0].n_status = -1;
  options.force = TNK_YES;
  bench_get_not(&bench, &options, TNK_ENOTFOUND, "adapter_model.safetensors");
  bench_check_file(&bench, "out/mine", "mine", 4);
  bench_close(&bench);
}

/* ---- Several at once ---- */

TEST(P11_10_files_are_loaded_side_by_side_as_many_as_wanted) {
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;
  script_held_t held = {.n = 0};
  bench_t bench;
  outcome_t outcome;

  bench_open(&bench);
  bench_add(&bench, "a", "1", 1, NULL);
  bench_add(&bench, "b", "1", 1, NULL);
  bench_add(&bench, "c", "1", 1, NULL);
  mock_on(bench.store, NULL, NULL, script_hold, &held);
  options.max_parallel = 2;
  outcome_of(&outcome, bench_start(&bench, &options));
  mock_wait(bench.store, 2);
  mock_turns(bench.store, 20);
  CHECK_INT(held.n, 2);
  mock_reply(held.requests[0], 200, NULL, "1", 1);
  mock_wait(bench.store, 3);
  mock_reply(held.requests[1], 200, NULL, "1", 1);
  mock_reply(held.requests[2], 200, NULL, "1", 1);
  bench_wait(&bench, &outcome);
  CHECK_INT(outcome.status, TNK_OK);
  bench_check(&bench);
  outcome_drop(&outcome);
  bench_close(&bench);
}

/* ---- What it waits for ---- */

typedef struct {
  char text[20000];
} dumped_t;

static void on_dump(const char *text, size_t length, void *user) {
  dumped_t *dumped = user;

  CHECK(length < sizeof(dumped->text));
  memcpy(dumped->text, text, length);
  dumped->text[length] = '\0';
  CHECK(strstr(dumped->text, SIGNATURE) == NULL);
  CHECK(strstr(dumped->text, "canary") == NULL);
  CHECK(strstr(dumped->text, "/w/") == NULL);
}

/* That both forms of the dump say this of a download; NULL: that there is
 * none. */
static void check_dump(const bench_t *bench, const char *sentence) {
  static dumped_t dumped;

  for (int is_json = 0; is_json < 2; is_json++) {
    CHECK_INT(tnk_service_dump(bench->script.service,
                               is_json ? TNK_DUMP_JSON : TNK_DUMP_TEXT, on_dump,
                               &dumped),
              TNK_OK);
    if (sentence == NULL)
      CHECK(strstr(dumped.text, is_json ? "\"downloads\":[]"
                                        : "downloads:\nexports") != NULL);
    else if (strstr(dumped.text, sentence) == NULL)
      test_fail(__FILE__, __LINE__, "%s", dumped.text);
  }
}

TEST(A22_the_dump_tells_what_downloads_wait_for_and_no_url) {
  script_held_t held = {.n = 0};
  script_held_t urls = {.n = 0};
  bench_t bench;
  outcome_t outcome;

  bench_open_adapter(&bench);
  check_dump(&bench, NULL);
  mock_on(bench.script.mock, "GET", URLS, script_hold, &urls);
  mock_on(bench.store, NULL, NULL, script_hold, &held);
  outcome_of(&outcome, bench_start(&bench, NULL));
  check_dump(&bench, "download: the files on the disk are being checked");
  while (urls.n == 0)
    uv_run(&bench.script.uv, UV_RUN_NOWAIT);
  check_dump(&bench, "get_external_files: waits for the server's answer");
  bench_urls(urls.requests[0], &bench);
  mock_wait(bench.store, 2);
  check_dump(&bench, "download: 0 of 2 files are complete; ");
  check_dump(&bench, "waits for the server's answer");
  mock_reply(held.requests[0], 503, NULL, SIGNATURE, strlen(SIGNATURE));
  mock_reply(held.requests[1], 503, NULL, SIGNATURE, strlen(SIGNATURE));
  while (!bench_is_idle(&bench))
    uv_run(&bench.script.uv, UV_RUN_NOWAIT);
  check_dump(&bench, "pauses after attempt 1 failed");
  mock_on(bench.store, NULL, NULL, store_get, &bench);
  bench_wait(&bench, &outcome);
  CHECK_INT(outcome.status, TNK_OK);
  check_dump(&bench, NULL);
  outcome_drop(&outcome);
  bench_close(&bench);
}

/* ---- How far it is ---- */

typedef struct {
  int n;
  tnk_weights_progress_t last;
} progress_t;

static void on_progress(const tnk_weights_progress_t *now, void *user) {
  progress_t *progress = user;

  CHECK(now->n_bytes >= progress->last.n_bytes);
  progress->last = *now;
  progress->n++;
}

TEST(P11_10_progress_is_told_with_bytes_and_files) {
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;
  progress_t progress = {0};
  bench_t bench;

  bench_open_adapter(&bench);
  options.on_progress = on_progress;
  options.progress_user = &progress;
  bench_get_ok(&bench, &options);
  CHECK(progress.n >= 2);
  CHECK_INT(progress.last.n_bytes, BIG + 2);
  CHECK_INT(progress.last.n_total, BIG + 2);
  CHECK_INT(progress.last.n_fetched, BIG + 2);
  CHECK_INT(progress.last.n_files, 2);
  CHECK_INT(progress.last.n_files_done, 2);
  bench_close(&bench);
}

TEST(two_downloads_to_one_directory_are_one_too_many) {
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;
  script_held_t held = {.n = 0};
  bench_t bench;
  outcome_t first;
  outcome_t second;

  bench_open(&bench);
  bench_add(&bench, "a", "1", 1, NULL);
  mock_once(bench.store, NULL, NULL, script_hold, &held);
  options.silence_timeout_ms = 1000000000; /* it is held while the clock runs */
  outcome_of(&first, bench_start(&bench, &options));
  mock_wait(bench.store, 1);
  outcome_of(&second, bench_start(&bench, NULL));
  while (second.n_done == 0) {
    uv_run(&bench.script.uv, UV_RUN_NOWAIT);
    tnk__context_advance(&bench.script.service->root.context, 10);
  }
  CHECK_INT(second.status, TNK_ECONFLICT);
  mock_reply(held.requests[0], 200, NULL, "1", 1);
  bench_wait(&bench, &first);
  CHECK_INT(first.status, TNK_OK);
  bench_check(&bench);
  outcome_drop(&first);
  outcome_drop(&second);
  bench_close(&bench);
}

/* ---- Arguments ---- */

TEST(P9_13_paths_and_directories_are_looked_at_before_anything_is_sent) {
  static const char *const paths[] = {NULL,
                                      "",
                                      "tinker://r/weights/",
                                      "tinker://r/sampler_weights/a",
                                      "tinker://r/external_weights/../a",
                                      "http://r/external_weights/a"};
  static const char *const directories[] = {NULL, "", "/", ".", "a/..", "a/./"};
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;
  bench_t bench;
  outcome_t outcome;

  bench_open(&bench);
  for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
    script_fails(&bench.script, &outcome,
                 tnk_weights_download(bench.script.service, paths[i],
                                      bench.target, NULL),
                 TNK_EINVAL);
    outcome_drop(&outcome);
  }
  for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
    script_fails(
        &bench.script, &outcome,
        tnk_weights_download(bench.script.service, PATH, directories[i], NULL),
        TNK_EINVAL);
    outcome_drop(&outcome);
  }
  options.max_parallel = 65;
  script_fails(&bench.script, &outcome, bench_start(&bench, &options),
               TNK_EINVAL);
  outcome_drop(&outcome);
  CHECK(tnk_promise_weights(NULL) == NULL);
  CHECK_INT(mock_n_requests(bench.script.mock), 0);
  CHECK(!bench_exists(&bench, "out.incomplete"));
  bench_close(&bench);
}

TEST(P11_10_slashes_at_the_end_and_missing_directories_are_no_matter) {
  char target[200];
  bench_t bench;
  outcome_t outcome;

  bench_open_adapter(&bench);
  snprintf(target, sizeof(target), "%s/a/b/out//", bench.dir);
  outcome_of(&outcome,
             tnk_weights_download(bench.script.service, PATH, target, NULL));
  bench_wait(&bench, &outcome);
  CHECK_INT(outcome.status, TNK_OK);
  bench_check_file(&bench, "a/b/out/adapter_config.json", "{}", 2);
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(the_whole_has_a_time_if_one_is_given) {
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;
  bench_t bench;
  outcome_t outcome;

  bench_open_adapter(&bench);
  mock_on(bench.store, NULL, NULL, mock_hold, NULL);
  options.timeout_ms = 5000;
  outcome_of(&outcome, bench_start(&bench, &options));
  mock_wait(bench.store, 2);
  tnk__context_advance(&bench.script.service->root.context, 4999);
  script_turns(&bench.script);
  CHECK_INT(outcome.n_done, 0);
  tnk__context_advance(&bench.script.service->root.context, 1);
  bench_wait(&bench, &outcome);
  CHECK_INT(outcome.status, TNK_ETIMEDOUT);
  outcome_drop(&outcome);
  bench_close(&bench);
}
