/* SPDX-License-Identifier: MIT */
/*
 * Several who want the same thing at one time.
 */
#include "hub/models.h"

enum { MANY = 50 };

typedef struct {
  stage_t stage;
  outcome_t outcomes[MANY];
  int n;
} crowd_t;

static void crowd_open(crowd_t *crowd) {
  crowd->n = 0;
  stage_open_usual(&crowd->stage);
}

static void want(crowd_t *crowd, const char *file, const char *revision) {
  stage_ask(&crowd->stage, &crowd->outcomes[crowd->n++], "org/model", file,
            revision);
}

static void crowd_wait(crowd_t *crowd) {
  for (int i = 0; i < crowd->n; i++)
    outcome_wait_long(&crowd->stage.bench, &crowd->outcomes[i]);
}

static void crowd_close(crowd_t *crowd) {
  for (int i = 0; i < crowd->n; i++)
    outcome_drop(&crowd->outcomes[i]);
  bench_close(&crowd->stage.bench);
}

static size_t n_asked(const crowd_t *crowd) {
  return mock_n_requests(crowd->stage.bench.mock);
}

static size_t n_loaded(const crowd_t *crowd) {
  return mock_n_requests(crowd->stage.bench.cdn);
}

TEST(S0_4b_fifty_who_want_a_file_in_one_turn_are_one_download) {
  crowd_t crowd;

  crowd_open(&crowd);
  for (int i = 0; i < MANY; i++)
    want(&crowd, "large.json", i % 2 == 0 ? NULL : "main");
  crowd_wait(&crowd);
  for (int i = 0; i < MANY; i++) {
    CHECK_INT(crowd.outcomes[i].status, TNK_OK);
    CHECK_STR(tnk_promise_path(crowd.outcomes[i].promise),
              tnk_promise_path(crowd.outcomes[0].promise));
  }
  CHECK_INT(n_asked(&crowd), 2);
  CHECK_INT(n_loaded(&crowd), 1);
  bench_check_file(&crowd.stage.bench, LARGE, "{\"large\":2}");
  crowd_close(&crowd);
}

TEST(S0_4b_a_failure_rejects_all_who_want_a_file_and_is_forgotten) {
  crowd_t crowd;

  crowd_open(&crowd);
  crowd.stage.models.is_down = 1;
  for (int i = 0; i < MANY; i++)
    want(&crowd, "large.json", NULL);
  crowd_wait(&crowd);
  for (int i = 0; i < MANY; i++)
    CHECK_INT(crowd.outcomes[i].status, TNK_ESERVER);
  CHECK_INT(n_asked(&crowd), 5); /* one question, with its repeats */
  crowd.stage.models.is_down = 0;
  stage_get_ok(&crowd.stage, "org/model", "large.json", NULL, LARGE);
  crowd_close(&crowd);
}

TEST(S0_4b_a_branch_its_commit_and_equal_files_are_one_download) {
  crowd_t crowd;

  crowd_open(&crowd);
  want(&crowd, "large.json", NULL);
  want(&crowd, "large.json", COMMIT);
  want(&crowd, "copy.json", NULL);
  crowd_wait(&crowd);
  for (int i = 0; i < crowd.n; i++)
    CHECK_INT(crowd.outcomes[i].status, TNK_OK);
  CHECK_INT(n_loaded(&crowd), 1);
  bench_check_file(&crowd.stage.bench, LARGE, "{\"large\":2}");
  bench_check_file(&crowd.stage.bench, CACHE "snapshots/" COMMIT "/copy.json",
                   "{\"large\":2}");
  CHECK_INT(bench_count(&crowd.stage.bench, CACHE "blobs"), 1);
  crowd_close(&crowd);
}

TEST(S0_4b_who_waits_for_a_download_that_fails_is_told_too) {
  crowd_t crowd;

  crowd_open(&crowd);
  mock_once(crowd.stage.bench.cdn, "GET", NULL, wrong_blob, NULL);
  want(&crowd, "large.json", NULL);
  want(&crowd, "large.json", COMMIT);
  crowd_wait(&crowd);
  CHECK_INT(crowd.outcomes[0].status, TNK_ECORRUPT);
  CHECK_INT(crowd.outcomes[1].status, TNK_ECORRUPT);
  CHECK_INT(n_loaded(&crowd), 1);
  crowd_close(&crowd);
}

/* One of those who share a question and one of those who share a download. */
TEST(S0_4b_one_who_cancels_does_not_take_a_file_from_the_others) {
  crowd_t crowd;

  crowd_open(&crowd);
  mock_once(crowd.stage.bench.cdn, "GET", NULL, mock_hold, NULL);
  want(&crowd, "large.json", NULL);
  want(&crowd, "large.json", NULL);
  mock_wait(crowd.stage.bench.cdn, 1);
  want(&crowd, "large.json", COMMIT);
  mock_wait(crowd.stage.bench.mock, 3);
  mock_turns(crowd.stage.bench.mock, 20);
  tnk_promise_cancel(crowd.outcomes[0].promise);
  mock_turns(crowd.stage.bench.mock, 20);
  CHECK_INT(crowd.outcomes[0].status, TNK_ECANCELED);
  CHECK_INT(crowd.outcomes[1].n_done + crowd.outcomes[2].n_done, 0);
  CHECK_INT(n_loaded(&crowd), 1);
  /* It led the download; the last one begins it anew. */
  tnk_promise_cancel(crowd.outcomes[1].promise);
  crowd_wait(&crowd);
  CHECK_INT(crowd.outcomes[1].status, TNK_ECANCELED);
  CHECK_INT(crowd.outcomes[2].status, TNK_OK);
  CHECK_INT(n_loaded(&crowd), 2);
  crowd_close(&crowd);
}

/* ---- Cancel and close in every state ---- */

static int end_after(int n, int closes) {
  crowd_t crowd;
  int was_done;

  crowd_open(&crowd);
  want(&crowd, "large.json", NULL);
  want(&crowd, "large.json", COMMIT);
  want(&crowd, "copy.json", NULL);
  was_done = bench_end_after(&crowd.stage.bench, n, closes, crowd.outcomes,
                             closes ? 3 : 2);
  crowd_wait(&crowd);
  if (!closes)
    CHECK_INT(crowd.outcomes[2].status, TNK_OK);
  crowd_close(&crowd);
  CHECK_INT(test_alloc_live(), 0);
  return was_done;
}

TEST_LIMIT(S3_26_shared_files_are_canceled_and_closed_at_every_turn, 150) {
  bench_end_everywhere(end_after);
}

static int run_without_memory(long n) {
  crowd_t crowd;
  int is_over;

  crowd_open(&crowd);
  test_alloc_fail_at(n);
  want(&crowd, "large.json", NULL);
  want(&crowd, "large.json", NULL);
  want(&crowd, "large.json", COMMIT);
  crowd_wait(&crowd);
  is_over = bench_check_memory(&crowd.outcomes[0], n);
  for (int i = 1; i < crowd.n; i++)
    CHECK(crowd.outcomes[i].status == TNK_OK ||
          (crowd.outcomes[i].status == TNK_ENOMEM && !is_over));
  crowd_close(&crowd);
  CHECK_INT(test_alloc_live(), 0);
  return is_over;
}

TEST_LIMIT(S3_26a_shared_files_without_memory, 150) {
  bench_without_memory(run_without_memory);
}
