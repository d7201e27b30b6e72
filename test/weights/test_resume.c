/* SPDX-License-Identifier: MIT */
/*
 * Weights that come in pieces: answers that are cut, stores that begin anew,
 * downloads that go on where an earlier one has ended.
 */
#include "weights/bench.h"

/* Requests of the store for a file, and what the i-th said. */
static const mock_request_t *asked(const bench_t *bench, const char *name,
                                   size_t i) {
  char path[100];

  snprintf(path, sizeof(path), "/w/%s", name);
  return mock_find(bench->store, "GET", path, i);
}

#define MODEL "adapter_model.safetensors"
#define CONFIG "adapter_config.json"

TEST(P11_10_a_cut_answer_goes_on_with_range) {
  bench_t bench;

  bench_open_adapter(&bench);
  bench.files[0].cut_at = 900000;
  bench_get_ok(&bench, NULL);
  CHECK(asked(&bench, MODEL, 0) != NULL);
  CHECK(mock_header(asked(&bench, MODEL, 0), "range") == NULL);
  CHECK(mock_header(asked(&bench, MODEL, 1), "range") != NULL);
  CHECK_STR(mock_header(asked(&bench, MODEL, 1), "if-range"), "\"big\"");
  CHECK(bench.n_sent < BIG + 2 + 1024 * 1024);
  bench_close(&bench);
}

TEST(P11_10_without_an_etag_the_rest_is_asked_for_all_the_same) {
  bench_t bench;

  bench_open_adapter(&bench);
  bench.files[0].etag = NULL;
  bench.files[0].cut_at = 900000;
  bench_get_ok(&bench, NULL);
  CHECK(mock_header(asked(&bench, MODEL, 1), "range") != NULL);
  CHECK(mock_header(asked(&bench, MODEL, 1), "if-range") == NULL);
  bench_close(&bench);
}

TEST(P11_10_a_store_that_ignores_range_begins_the_file_anew) {
  bench_t bench;
  outcome_t outcome;

  bench_open_adapter(&bench);
  bench.ignores_range = 1;
  bench.files[0].cut_at = 900000;
  bench_get(&bench, &outcome, NULL);
  CHECK_INT(outcome.status, TNK_OK);
  bench_check(&bench);
  CHECK(tnk_promise_weights(outcome.promise)->n_fetched > BIG + 2);
  CHECK_INT(tnk_promise_weights(outcome.promise)->n_bytes, BIG + 2);
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(P11_10_what_has_come_is_not_fetched_again_by_the_next_download) {
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;
  bench_t bench;
  outcome_t outcome;

  bench_open_adapter(&bench);
  bench.files[0].cut_at = 900000;
  options.max_retries = UINT32_MAX;
  options.max_parallel = 1;
  bench_get_not(&bench, &options, TNK_ECONN, MODEL);
  CHECK(bench_exists(&bench, "out.incomplete/journal"));
  CHECK(!bench_exists(&bench, "out"));
  bench_get(&bench, &outcome, &options);
  CHECK_INT(outcome.status, TNK_OK);
  bench_check(&bench);
  CHECK_INT(tnk_promise_weights(outcome.promise)->n_bytes, BIG + 2);
  /* The small one was complete: one byte shows that it still is that. */
  CHECK_STR(mock_header(asked(&bench, CONFIG, 1), "range"), "bytes=1-");
  CHECK(tnk_promise_weights(outcome.promise)->n_fetched < BIG - 600000);
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(P11_10_a_file_that_is_another_one_now_begins_anew) {
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;
  bench_t bench;

  bench_open_adapter(&bench);
  bench.files[0].cut_at = 900000;
  options.max_retries = UINT32_MAX;
  options.max_parallel = 1;
  bench_get_not(&bench, &options, TNK_ECONN, MODEL);
  bench.files[0].etag = "\"new\"";
  bench.files[0].data = bench_big + 1;
  bench.files[0].n = BIG - 1;
  bench.files[1].etag = "\"other\"";
  bench.files[1].data = "[]";
  bench_get_ok(&bench, NULL);
  bench_close(&bench);
}

TEST(P11_10_other_names_than_last_time_begin_all_anew) {
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;
  bench_t bench;

  bench_open_adapter(&bench);
  bench.files[0].cut_at = 900000;
  options.max_retries = UINT32_MAX;
  options.max_parallel = 1;
  bench_get_not(&bench, &options, TNK_ECONN, MODEL);
  bench.files[1].name = "config.json";
  bench_get_ok(&bench, NULL);
  CHECK(!bench_exists(&bench, "out/" CONFIG));
  bench_close(&bench);
}

TEST(P11_10_another_checkpoint_takes_nothing_of_what_the_first_has_left) {
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;
  bench_t bench;
  outcome_t outcome;

  bench_open_adapter(&bench);
  bench.files[0].cut_at = 900000;
  options.max_retries = UINT32_MAX;
  bench_get_not(&bench, &options, TNK_ECONN, MODEL);
  mock_on(bench.script.mock, "GET",
          "/api/v1/training_runs/r:1/checkpoints/external_weights/b/"
          "external_weights_urls",
          bench_urls, &bench);
  outcome_of(&outcome, tnk_weights_download(bench.script.service,
                                            "tinker://r:1/external_weights/b",
                                            bench.target, NULL));
  bench_wait(&bench, &outcome);
  CHECK_INT(outcome.status, TNK_OK);
  CHECK(mock_header(asked(&bench, MODEL, 1), "range") == NULL);
  bench_check(&bench);
  outcome_drop(&outcome);
  bench_close(&bench);
}

/* What a process that was killed leaves: a journal, and the first byte of one
 * file. `run` says since when the system runs. */
static void leave(bench_t *bench, const char *run, const char *total) {
  char sum[TNK__SHA256_DIGITS + 1];
  char text[500];
  tnk__sha256_t sha;

  tnk__sha256_init(&sha);
  tnk__sha256_add(&sha, CONFIG, sizeof(CONFIG));
  tnk__sha256_add(&sha, MODEL, sizeof(MODEL));
  tnk__sha256_end(&sha, sum);
  snprintf(text, sizeof(text),
           "tnk-download 1\t%s\t" PATH
           "\nnames\t%s\nfile\t%s\t\"small\"\t" CONFIG "\n",
           run, sum, total);
  bench_write(bench, "out.incomplete/journal", text);
  bench_write(bench, "out.incomplete/files/" CONFIG, "{");
}

static const char *this_run(void) {
  static char run[64];
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");

  if (file == NULL)
    return "";
  CHECK(fscanf(file, "%63s", run) == 1);
  fclose(file);
  return run;
}

TEST(P11_10_a_journal_of_another_run_of_the_system_is_not_believed) {
  for (int is_other = 0; is_other < 2; is_other++) {
    bench_t bench;
    bench_open_adapter(&bench);
    leave(&bench, is_other ? "other" : this_run(), "2");
    bench_get_ok(&bench, NULL);
    CHECK_INT(mock_header(asked(&bench, CONFIG, 0), "range") == NULL, is_other);
    bench_close(&bench);
  }
}

/* The store has a longer file now and calls it by the same ETag. */
TEST(P11_10_a_rest_of_another_length_is_not_taken) {
  bench_t bench;

  bench_open_adapter(&bench);
  leave(&bench, this_run(), "3");
  bench_get_ok(&bench, NULL);
  CHECK(mock_header(asked(&bench, CONFIG, 0), "range") != NULL);
  CHECK(mock_header(asked(&bench, CONFIG, 1), "range") == NULL);
  bench_close(&bench);
}

/* Killed between giving the name and removing what is left. */
TEST(P11_10_a_download_that_was_all_but_over_is_complete) {
  char text[400];
  struct stat about;
  bench_t bench;
  outcome_t outcome;

  bench_open_adapter(&bench);
  bench_get_ok(&bench, NULL);
  CHECK_INT(stat(bench.target, &about), 0);
  snprintf(text, sizeof(text),
           "tnk-download 1\t%s\t" PATH "\nready\t%llu:%llu\t2\t1500002\n",
           this_run(), (unsigned long long)about.st_dev,
           (unsigned long long)about.st_ino);
  bench_write(&bench, "out.incomplete/journal", text);
  bench_write(&bench, "out.incomplete/files/old", "old");
  bench_get(&bench, &outcome, NULL);
  CHECK_INT(outcome.status, TNK_OK);
  CHECK_INT(tnk_promise_weights(outcome.promise)->n_files, 2);
  CHECK_INT(tnk_promise_weights(outcome.promise)->n_bytes, BIG + 2);
  CHECK_INT(tnk_promise_weights(outcome.promise)->n_fetched, 0);
  CHECK_INT(bench.n_signed, 1);
  bench_check(&bench);
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(P11_10_a_directory_that_was_moved_aside_comes_back) {
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;
  bench_t bench;

  bench_open_adapter(&bench);
  bench_write(&bench, "out.incomplete/journal", "");
  bench_write(&bench, "out.incomplete/old/mine", "mine");
  bench.files[0].status = 404;
  bench.files[0].n_status = -1;
  options.force = TNK_YES;
  bench_get_not(&bench, &options, TNK_ENOTFOUND, MODEL);
  bench_check_file(&bench, "out/mine", "mine", 4);
  bench.files[0].n_status = 0;
  bench_get_ok(&bench, &options);
  bench_close(&bench);
}

/* ---- URLs ---- */

TEST(P11_10_urls_that_are_refused_are_renewed_and_the_file_goes_on) {
  bench_t bench;

  bench_open_adapter(&bench);
  bench.files[0].cut_at = 900000;
  bench.oldest = 0;
  mock_once(bench.store, NULL, "/w/" MODEL, store_get, &bench);
  mock_json_once(bench.store, NULL, "/w/" MODEL, 403, "{}");
  bench_get_ok(&bench, NULL);
  CHECK_INT(bench.n_signed, 2);
  CHECK(mock_header(asked(&bench, MODEL, 2), "range") != NULL);
  CHECK(strstr(asked(&bench, MODEL, 2)->target, "&n=2") != NULL);
  bench_close(&bench);
}

TEST(P11_10_urls_that_are_always_refused_are_an_error) {
  bench_t bench;

  bench_open_adapter(&bench);
  bench.oldest = 1000;
  bench_get_not(&bench, NULL, TNK_EAUTH, "HTTP 403");
  CHECK(bench.n_signed <= 4);
  bench_close(&bench);
}

TEST(P11_10_urls_are_renewed_before_they_expire) {
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;
  script_held_t held = {.n = 0};
  char expires[40];
  bench_t bench;
  outcome_t outcome;
  time_t at;
  struct tm tm;

  bench_open(&bench);
  bench_add(&bench, "a", "1", 1, NULL);
  bench_add(&bench, "b", "1", 1, NULL);
  at = (time_t)tnk__context_wall_s(&bench.script.service->root.context) + 3600;
  gmtime_r(&at, &tm);
  strftime(expires, sizeof(expires), "%Y-%m-%dT%H:%M:%SZ", &tm);
  bench.expires = expires;
  mock_once(bench.store, NULL, NULL, script_hold, &held);
  options.max_parallel = 1;
  outcome_of(&outcome, bench_start(&bench, &options));
  mock_wait(bench.store, 1);
  /* The clock of the wall goes on. */
  bench.script.service->root.context.fake_wall_offset_s += 3301;
  bench.expires = LATER;
  mock_reply(held.requests[0], 200, NULL, "1", 1);
  bench_wait(&bench, &outcome);
  CHECK_INT(outcome.status, TNK_OK);
  CHECK_INT(bench.n_signed, 2);
  CHECK(strstr(asked(&bench, "b", 0)->target, "&n=2") != NULL);
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(P11_10_other_names_at_a_renewal_are_an_error) {
  bench_t bench;
  outcome_t outcome;

  bench_open_adapter(&bench);
  bench.oldest = 2;
  outcome_of(&outcome, bench_start(&bench, NULL));
  mock_wait(bench.store, 1);
  bench.files[1].name = "other.json";
  bench_wait(&bench, &outcome);
  CHECK_INT(outcome.status, TNK_ECORRUPT);
  CHECK(strstr(outcome.text, "different files than before") != NULL);
  outcome_drop(&outcome);
  bench_close(&bench);
}
