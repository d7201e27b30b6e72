/* SPDX-License-Identifier: MIT */
/*
 * The cache of models on a file system without links, as the library's calls of
 * symlink() come here.
 */
#include <errno.h>
#include <sys/stat.h>

#include "hub/models.h"

static int refusal; /* an errno */

int __wrap_symlink(const char *target, const char *path);

int __wrap_symlink(const char *target, const char *path) {
  (void)target;
  (void)path;
  errno = refusal;
  return -1;
}

static int is_plain_file(const stage_t *stage, const char *name) {
  struct stat about;
  char path[300];

  snprintf(path, sizeof(path), "%s/%s", stage->bench.dir, name);
  return lstat(path, &about) == 0 && S_ISREG(about.st_mode);
}

TEST(S0_4_without_links_the_file_itself_is_in_the_snapshot) {
  static const int refusals[] = {EPERM, EOPNOTSUPP, ENOSYS};

  for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
    stage_t stage;
    size_t n;

    refusal = refusals[i];
    stage_open_usual(&stage);
    stage_get_ok(&stage, "org/model", "small.json", NULL, SMALL);
    CHECK(is_plain_file(&stage, SMALL));
    bench_check_file(&stage.bench, SMALL, "{\"small\":1}");
    bench_check_file(&stage.bench, CACHE "blobs/" SMALL_ETAG, NULL);
    bench_check_file(&stage.bench, CACHE "refs/main", COMMIT);
    /* One in a folder of the model. */
    stage_get_ok(&stage, "org/model", "sub/deep.json", NULL, DEEP);
    CHECK(is_plain_file(&stage, DEEP));
    /* It is found again. */
    n = mock_n_requests(stage.bench.mock);
    stage_get_ok(&stage, "org/model", "small.json", COMMIT, SMALL);
    CHECK_INT(mock_n_requests(stage.bench.mock), n);
    bench_close(&stage.bench);
  }
}

TEST(S0_4_a_link_that_fails_for_another_reason_is_told) {
  stage_t stage;
  outcome_t outcome;

  refusal = ENOSPC;
  stage_open_usual(&stage);
  stage_ask(&stage, &outcome, "org/model", "small.json", NULL);
  outcome_wait_long(&stage.bench, &outcome);
  CHECK_INT(outcome.status, TNK_EFILE);
  CHECK_INT(tnk_promise_error(outcome.promise)->cause, UV_ENOSPC);
  bench_check_file(&stage.bench, CACHE "blobs/" SMALL_ETAG, "{\"small\":1}");
  outcome_drop(&outcome);
  bench_close(&stage.bench);
}
