/* SPDX-License-Identifier: MIT */
/*
 * Files of models: the cache that Python shares, and the hub's answers.
 */
#include "hub/models.h"

static void stage_reopen(stage_t *stage, tnk_choice_t offline) {
  tnk_hub_options_t options = TNK_HUB_OPTIONS_INIT;

  options.offline = offline;
  bench_reopen_hub(&stage->bench, &options);
}

static void check_link(const stage_t *stage, const char *name,
                       const char *target) {
  char path[300];
  char is[300];
  ssize_t n;

  snprintf(path, sizeof(path), "%s/%s", stage->bench.dir, name);
  n = readlink(path, is, sizeof(is) - 1);
  CHECK(n > 0);
  is[n] = '\0';
  CHECK_STR(is, target);
}

TEST(S0_4_files_come_into_the_cache_as_python_lays_it_out) {
  stage_t stage;
  char sum[65];
  char target[100];

  stage_open_usual(&stage);
  models_sum(sum, "{\"large\":2}");
  stage_get_ok(&stage, "org/model", "small.json", NULL, SMALL);
  bench_check_file(&stage.bench, CACHE "refs/main", COMMIT);
  bench_check_file(&stage.bench, CACHE "blobs/" SMALL_ETAG, "{\"small\":1}");
  check_link(&stage, SMALL, "../../blobs/" SMALL_ETAG);
  CHECK_STR(mock_request(stage.bench.mock, 0)->method, "HEAD");
  CHECK_STR(mock_request(stage.bench.mock, 0)->target,
            "/org/model/resolve/main/small.json");
  CHECK_STR(mock_header(mock_request(stage.bench.mock, 0), "authorization"),
            "Bearer " TOKEN);
  CHECK_STR(mock_request(stage.bench.mock, 1)->target,
            "/org/model/resolve/" COMMIT "/small.json");
  stage_get_ok(&stage, "org/model", "large.json", NULL, LARGE);
  snprintf(target, sizeof(target), "../../blobs/%s", sum);
  check_link(&stage, LARGE, target);
  bench_check_file(&stage.bench, LARGE, "{\"large\":2}");
  CHECK_INT(mock_n_requests(stage.bench.cdn), 1);
  stage_get_ok(&stage, "gpt2", "small.json", NULL,
               "cache/models--gpt2/snapshots/" COMMIT "/small.json");
  CHECK_INT(bench_count(&stage.bench, CACHE "blobs"), 2);
  bench_close(&stage.bench);
}

TEST(S0_4_files_in_folders_and_revisions_with_slashes) {
  stage_t stage;

  stage_open_usual(&stage);
  stage_get_ok(&stage, "org/model", "sub/deep.json", NULL, DEEP);
  check_link(&stage, DEEP, "../../../blobs/" SMALL_ETAG);
  bench_close(&stage.bench);
  /* The blob's name is shared by all small files of the script. */
  stage_open_usual(&stage);
  mock_once(stage.bench.mock, "HEAD",
            "/org/model/resolve/refs%2Fpr%2F1/small.json", models_answer,
            &(models_t){&stage.bench,
                        &(model_entry_t){"org/model", "refs%2Fpr%2F1", COMMIT2,
                                         "small.json", "{\"pr\":4}", 0},
                        1, 0});
  stage_get_ok(&stage, "org/model", "small.json", "refs/pr/1",
               CACHE "snapshots/" COMMIT2 "/small.json");
  bench_check_file(&stage.bench, CACHE "refs/refs/pr/1", COMMIT2);
  bench_check_file(&stage.bench, CACHE "snapshots/" COMMIT2 "/small.json",
                   "{\"pr\":4}");
  bench_close(&stage.bench);
}

TEST(S0_4_what_is_in_the_cache_is_not_fetched_again) {
  stage_t stage;
  size_t n;

  stage_open_usual(&stage);
  bench_write(&stage.bench, CACHE "refs/main", COMMIT);
  bench_write(&stage.bench, SMALL, "mine");
  /* A branch may have moved: one question, no download. */
  stage_get_ok(&stage, "org/model", "small.json", NULL, SMALL);
  CHECK_INT(mock_n_requests(stage.bench.mock), 1);
  /* A commit has not. */
  stage_get_ok(&stage, "org/model", "small.json", COMMIT, SMALL);
  CHECK_INT(mock_n_requests(stage.bench.mock), 1);
  bench_check_file(&stage.bench, SMALL, "mine");
  /* It has moved: the new commit's file, and the ref follows. */
  bench_write(&stage.bench, CACHE "refs/main", COMMIT2);
  bench_write(&stage.bench, CACHE "snapshots/" COMMIT2 "/small.json", "old");
  stage_get_ok(&stage, "org/model", "small.json", NULL, SMALL);
  bench_check_file(&stage.bench, CACHE "refs/main", COMMIT);
  n = mock_n_requests(stage.bench.mock);
  CHECK_INT(n, 2);
  /* The blob is there, the commit's link is not. */
  bench_write(&stage.bench, CACHE "blobs/" SMALL_ETAG, "blob");
  stage_get_ok(&stage, "org/model", "sub/deep.json", NULL, DEEP);
  bench_check_file(&stage.bench, DEEP, "blob");
  CHECK_INT(mock_n_requests(stage.bench.mock), n + 1);
  bench_close(&stage.bench);
}

TEST(S0_4_a_file_that_a_model_lacks_is_remembered) {
  stage_t stage;
  size_t n;

  stage_open_usual(&stage);
  stage_get_not(&stage, "org/model", "none.json", NULL, TNK_ENOTFOUND,
                "org/model/none.json: there is no such file");
  bench_check_file(&stage.bench, CACHE ".no_exist/" COMMIT "/none.json", "");
  bench_check_file(&stage.bench, CACHE "refs/main", COMMIT);
  n = mock_n_requests(stage.bench.mock);
  stage_get_not(&stage, "org/model", "none.json", COMMIT, TNK_ENOTFOUND,
                "no such file");
  CHECK_INT(mock_n_requests(stage.bench.mock), n);
  stage_get_not(&stage, "org/unknown", "small.json", NULL, TNK_EAUTH,
                "Repository not found");
  CHECK_INT(bench_count(&stage.bench, "cache/models--org--unknown"), 0);
  bench_close(&stage.bench);
}

TEST(S0_4_offline_nobody_is_asked) {
  stage_t stage;

  stage_open_usual(&stage);
  stage_get_ok(&stage, "org/model", "small.json", NULL, SMALL);
  CHECK_INT(mock_n_requests(stage.bench.mock), 2);
  setenv("HF_HUB_OFFLINE", "yes", 1);
  stage_reopen(&stage, TNK_DEFAULT);
  stage_get_ok(&stage, "org/model", "small.json", NULL, SMALL);
  stage_get_ok(&stage, "org/model", "small.json", COMMIT, SMALL);
  stage_get_not(&stage, "org/model", "large.json", NULL, TNK_ENOTFOUND,
                "the hub is offline");
  stage_get_not(&stage, "org/other", "large.json", NULL, TNK_ENOTFOUND,
                "/cache");
  CHECK_INT(mock_n_requests(stage.bench.mock), 2);
  /* The option wins. */
  stage_reopen(&stage, TNK_NO);
  stage_get_ok(&stage, "org/model", "small.json", NULL, SMALL);
  CHECK_INT(mock_n_requests(stage.bench.mock), 3);
  bench_close(&stage.bench);
}

TEST(S0_4_a_hub_that_is_down_is_covered_by_the_cache) {
  stage_t stage;
  size_t n;

  stage_open_usual(&stage);
  stage_get_ok(&stage, "org/model", "small.json", NULL, SMALL);
  n = mock_n_requests(stage.bench.mock);
  stage.models.is_down = 1;
  stage_get_ok(&stage, "org/model", "small.json", NULL, SMALL);
  /* At once: no repeats. */
  CHECK_INT(mock_n_requests(stage.bench.mock), n + 1);
  stage_get_not(&stage, "org/model", "large.json", NULL, TNK_ESERVER,
                "HTTP 503");
  CHECK_INT(mock_n_requests(stage.bench.mock), n + 6);
  bench_close(&stage.bench);
}

static void no_commit(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 200, "ETag: \"a\"\r\nConnection: close\r\n", NULL, 0);
}

static void bad_etag(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 200,
             "ETag: \"../../x\"\r\nX-Repo-Commit: " COMMIT
             "\r\nConnection: close\r\n",
             NULL, 0);
}

TEST(S0_4_what_is_no_hub_and_what_would_leave_the_cache_is_refused) {
  static const char *const bad[][3] = {{"../model", "f", NULL},
                                       {"org/model/x", "f", NULL},
                                       {"/abs", "f", NULL},
                                       {"", "f", NULL},
                                       {"org/model", "../f", NULL},
                                       {"org/model", "/f", NULL},
                                       {"org/model", "a/../../f", NULL},
                                       {"org/model", "a//f", NULL},
                                       {"org/model", "f/", NULL},
                                       {"org/model", "a/./f", NULL},
                                       {"org/model", "a\\f", NULL},
                                       {"org/model", "a\nf", NULL},
                                       {"org--model", "f", NULL},
                                       {"org--x/model", "f", NULL},
                                       {"org/model", "f", "../main"},
                                       {"org/model", "f", ""},
                                       {"org/mo del", "f", NULL},
                                       {"org\\model", "f", NULL}};
  stage_t stage;

  stage_open_usual(&stage);
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
    stage_get_not(&stage, bad[i][0], bad[i][1], bad[i][2], TNK_EINVAL,
                  "hub_file");
  CHECK_INT(mock_n_requests(stage.bench.mock), 0);
  mock_once(stage.bench.mock, "HEAD", NULL, no_commit, NULL);
  stage_get_not(&stage, "org/model", "small.json", NULL, TNK_EPROTO,
                "no commit");
  mock_once(stage.bench.mock, "HEAD", NULL, bad_etag, NULL);
  stage_get_not(&stage, "org/model", "small.json", NULL, TNK_EPROTO, "ETag");
  bench_close(&stage.bench);
}

TEST(K11_a_blob_that_is_not_as_announced_never_enters_the_cache) {
  stage_t stage;

  stage_open_usual(&stage);
  mock_once(stage.bench.cdn, "GET", NULL, wrong_blob, NULL);
  stage_get_not(&stage, "org/model", "large.json", NULL, TNK_ECORRUPT,
                "checksum");
  bench_check_file(&stage.bench, LARGE, NULL);
  stage_get_ok(&stage, "org/model", "large.json", NULL, LARGE);
  bench_close_hub(&stage.bench);
  CHECK_INT(bench_count(&stage.bench, CACHE "blobs"), 1);
  bench_close(&stage.bench);
}

TEST(S0_4_a_cache_that_cannot_be_written_is_told) {
  stage_t stage;

  stage_open_usual(&stage);
  bench_write(&stage.bench, "cache", "a file where a folder should be");
  stage_get_not(&stage, "org/model", "small.json", NULL, TNK_EFILE,
                "cannot write");
  bench_close(&stage.bench);
}

/* ---- Cancel and close in every state ---- */

static void close_it(const char *file, uint64_t n_bytes, uint64_t n_total,
                     void *user) {
  stage_t *stage = user;

  CHECK_STR(file, "org/model/large.json");
  CHECK_INT(n_bytes, 11);
  CHECK_INT(n_total, 11);
  tnk_hub_close(stage->bench.hub, bench_hub_closed, &stage->bench);
}

TEST(S3_26_a_hub_closes_in_the_progress_callback_of_a_file) {
  tnk_hub_options_t options = TNK_HUB_OPTIONS_INIT;
  stage_t stage;
  outcome_t outcome;

  stage_open_usual(&stage);
  options.on_progress = close_it;
  options.progress_user = &stage;
  bench_reopen_hub(&stage.bench, &options);
  stage.bench.is_closed = 0;
  stage_get(&stage, &outcome, "org/model", "large.json", NULL);
  CHECK_INT(outcome.status, TNK_ECLOSED);
  CHECK_STR(outcome.text, "file: the object is closed or closing");
  mock_wait_flag(stage.bench.mock, &stage.bench.is_closed, 1);
  stage.bench.hub = NULL;
  CHECK_INT(bench_count(&stage.bench, CACHE "blobs"), 0);
  outcome_drop(&outcome);
  bench_close(&stage.bench);
}

/* Turn the loop n times and end it there, whatever it is doing. */
static int end_after(int n, int closes) {
  stage_t stage;
  outcome_t outcome;
  int was_done;

  stage_open_usual(&stage);
  outcome_of(&outcome,
             tnk_hub_file(stage.bench.hub, "org/model", "large.json", NULL));
  was_done = bench_end_after(&stage.bench, n, closes, &outcome, 1);
  outcome_drop(&outcome);
  bench_close(&stage.bench);
  return was_done;
}

TEST_LIMIT(S3_26_files_are_canceled_and_closed_at_every_turn, 30) {
  bench_end_everywhere(end_after);
}

static int run_without_memory(long n) {
  stage_t stage;
  outcome_t outcome;
  int is_over;

  stage_open_usual(&stage);
  test_alloc_fail_at(n);
  stage_get(&stage, &outcome, "org/model", "large.json", NULL);
  is_over = bench_check_memory(&outcome, n);
  outcome_drop(&outcome);
  stage_get_ok(&stage, "org/model", "large.json", NULL, LARGE);
  bench_close(&stage.bench);
  CHECK_INT(test_alloc_live(), 0);
  return is_over;
}

TEST_LIMIT(S3_26a_files_of_models_without_memory, 60) {
  bench_without_memory(run_without_memory);
}
