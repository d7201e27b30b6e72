/* SPDX-License-Identifier: MIT */
/*
 * Servers that lie, other processes, and disks that refuse.
 */
#include "hub/models.h"

#include <signal.h>
#include <sys/resource.h>

#define TEXT "hello, file"

/* ---- What comes in parts ---- */

/* The next of some answers, each the whole text of one; then the connection
 * is cut. */
static void reply_raw(mock_request_t *request, void *user) {
  const char *text = user;

  mock_raw(request, text, strlen(text));
  mock_end(request, 1);
}

#define CUT                                                                    \
  "HTTP/1.1 200 OK\r\nETag: \"one\"\r\nContent-Length: 11\r\n\r\nhello, "
#define REST "HTTP/1.1 206 Partial Content\r\nContent-Length: "

TEST_LIMIT(K11_a_rest_that_is_not_all_of_the_rest_is_not_taken, 30) {
  static const char *const rests[] = {
      /* from somewhere else, of something else, not to the end, of unknown
       * length, not in bytes, nonsense */
      REST "11\r\nContent-Range: bytes 0-10/11\r\n\r\nHELLO, FILE",
      REST "4\r\nContent-Range: bytes 7-10/11\r\nETag: \"two\"\r\n\r\nFILE",
      REST "2\r\nContent-Range: bytes 7-8/11\r\n\r\nfi",
      REST "4\r\nContent-Range: bytes 7-10/*\r\n\r\nFILE",
      REST "4\r\nContent-Range: lines 7-10/11\r\n\r\nFILE",
      REST "4\r\nContent-Range: bytes 7\r\n\r\nFILE",
      REST "4\r\n\r\nFILE",
  };

  for (size_t i = 0; i < sizeof(rests) / sizeof(rests[0]); i++) {
    bench_t bench;

    bench_open(&bench);
    mock_once(bench.mock, "GET", "/f", reply_raw, (void *)CUT);
    mock_once(bench.mock, "GET", "/f", reply_raw, (void *)rests[i]);
    mock_once(bench.mock, "GET", "/f", bench_reply, (void *)TEXT);
    bench_get_ok(&bench, "/f", NULL, TEXT);
    /* It begins anew, all of it. */
    CHECK_STR(mock_header(mock_request(bench.mock, 1), "range"), "bytes=7-");
    CHECK(mock_header(mock_request(bench.mock, 2), "range") == NULL);
    bench_close(&bench);
  }
}

TEST(K11_a_part_that_nobody_asked_for_is_not_the_whole) {
  bench_t bench;

  bench_open(&bench);
  mock_on(bench.mock, "GET", "/f", reply_raw,
          (void *)(REST "5\r\nContent-Range: bytes 0-4/11\r\n\r\nhello"));
  bench_get_not(&bench, "/f", NULL, TNK_EREQUEST);
  CHECK_INT(bench_count(&bench, "out"), 0);
  bench_close(&bench);
}

/* Without an ETag every attempt begins anew. One that gets further than the
 * one before need not get further than all before. */
static void begin_only(mock_request_t *request, void *user) {
  static const char shorter[] = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na";
  static const char longer[] =
      "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc";
  int *n = user;

  ++*n;
  mock_raw(request, *n % 2 == 0 ? longer : shorter,
           *n % 2 == 0 ? sizeof(longer) - 1 : sizeof(shorter) - 1);
}

static void count_progress(const char *file, uint64_t n_bytes, uint64_t n_total,
                           void *user) {
  (void)file;
  (void)n_bytes;
  (void)n_total;
  ++*(int *)user;
}

TEST_LIMIT(K11_a_download_that_never_gets_further_ends, 20) {
  tnk_download_options_t options = TNK_DOWNLOAD_OPTIONS_INIT;
  bench_t bench;
  outcome_t outcome;
  int n_taken = 0;
  int n = 0;

  bench_open(&bench);
  mock_on(bench.mock, "GET", "/f", begin_only, &n);
  options.on_progress = count_progress;
  options.progress_user = &n_taken;
  outcome_of(&outcome,
             bench_download(&bench, bench.mock, "/f", "out/file", &options));
  for (int n_cut = 0; outcome.n_done == 0; bench_step(&bench)) {
    if (n_taken == n_cut)
      continue;
    n_cut = n_taken;
    mock_end(mock_request(bench.mock, mock_n_requests(bench.mock) - 1), 1);
  }
  CHECK_INT(outcome.status, TNK_ECONN);
  /* The first, the second which has got further, and four more. */
  CHECK_INT(n, 6);
  outcome_drop(&outcome);
  bench_close(&bench);
}

/* ---- Words ---- */

static void echo_stars(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 403, "X-Error-Message: no **** today\r\n", NULL, 0);
}

TEST(K11_a_token_of_stars_is_hidden_in_the_end) {
  tnk_download_options_t options = TNK_DOWNLOAD_OPTIONS_INIT;
  bench_t bench;

  bench_open(&bench);
  mock_on(bench.mock, "GET", "/f", echo_stars, NULL);
  options.token = "*";
  bench_get_not(&bench, "/f", &options, TNK_EAUTH);
  bench_close(&bench);
}

/* ---- What a hub says of its files ---- */

typedef struct {
  stage_t *stage;
  const char *headers;
} says_t;

static void reply_says(mock_request_t *request, void *user) {
  const says_t *says = user;
  char headers[600];

  snprintf(headers, sizeof(headers), "%sConnection: close\r\n", says->headers);
  mock_reply(request, 200, headers, NULL, 0);
}

TEST(K11_what_a_hub_says_stays_in_its_folder) {
  static const char *const bad[][2] = {
      {"X-Repo-Commit: ../../../../../../tmp/x0123456789abcdef0\r\n"
       "ETag: \"a\"\r\n",
       "no commit"},
      {"X-Repo-Commit: 0123456789ABCDEF0123456789abcdef01234567\r\n"
       "ETag: \"a\"\r\n",
       "no commit"},
      {"X-Repo-Commit: " COMMIT "\r\n", "no ETag"},
      {"X-Repo-Commit: " COMMIT "\r\nETag: \"\"\r\n", "no ETag"},
      {"X-Repo-Commit: " COMMIT "\r\nETag: W/\"../refs/main\"\r\n", "no ETag"},
      {"X-Repo-Commit: " COMMIT "\r\nETag: \"..\"\r\n", "no ETag"},
      {"X-Repo-Commit: " COMMIT "\r\nETag: \"a\"\r\n"
       "X-Linked-Etag: \"/etc/passwd\"\r\n",
       "no ETag"},
      {"X-Repo-Commit: " COMMIT "\r\nETag: \".a\"\r\n", "no ETag"},
  };
  stage_t stage;

  stage_open_usual(&stage);
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    says_t says = {&stage, bad[i][0]};
    mock_once(stage.bench.mock, "HEAD", NULL, reply_says, &says);
    stage_get_not(&stage, "org/model", "small.json", NULL, TNK_EPROTO,
                  bad[i][1]);
  }
  CHECK_INT(bench_count(&stage.bench, ""), 0);
  bench_close(&stage.bench);
}

TEST(K11_a_commit_is_answered_by_itself) {
  says_t says = {NULL, "X-Repo-Commit: " COMMIT2 "\r\nETag: \"a\"\r\n"};
  stage_t stage;

  stage_open_usual(&stage);
  mock_once(stage.bench.mock, "HEAD", NULL, reply_says, &says);
  stage_get_not(&stage, "org/model", "small.json", COMMIT, TNK_EPROTO,
                "another commit");
  CHECK_INT(bench_count(&stage.bench, CACHE "snapshots"), 0);
  bench_close(&stage.bench);
}

TEST(K11_a_weak_etag_names_a_blob_as_in_python) {
  says_t says = {NULL, "X-Repo-Commit: " COMMIT "\r\nETag: W/\"weak-1\"\r\n"
                       "Content-Length: 11\r\n"};
  stage_t stage;

  stage_open_usual(&stage);
  mock_once(stage.bench.mock, "HEAD", NULL, reply_says, &says);
  stage_get_ok(&stage, "org/model", "small.json", NULL, SMALL);
  bench_check_file(&stage.bench, CACHE "blobs/weak-1", "{\"small\":1}");
  bench_close(&stage.bench);
}

TEST(K11_a_size_that_differs_is_told) {
  says_t says = {NULL, "X-Repo-Commit: " COMMIT "\r\nETag: \"a\"\r\n"
                       "X-Linked-Size: 10\r\n"};
  says_t none = {NULL, "X-Repo-Commit: " COMMIT "\r\nETag: \"a\"\r\n"
                       "Transfer-Encoding: chunked\r\n"};
  stage_t stage;

  stage_open_usual(&stage);
  mock_once(stage.bench.mock, "HEAD", NULL, reply_says, &says);
  stage_get_not(&stage, "org/model", "small.json", NULL, TNK_ECORRUPT,
                "and not 10");
  /* No size is no lie. */
  mock_once(stage.bench.mock, "HEAD", NULL, reply_says, &none);
  stage_get_ok(&stage, "org/model", "small.json", NULL, SMALL);
  bench_close(&stage.bench);
}

/* ---- Redirections of questions ---- */

static void to_other_hub(mock_request_t *request, void *user) {
  const bench_t *bench = user;
  char headers[300];

  snprintf(headers, sizeof(headers), "Location: %s%s\r\nConnection: close\r\n",
           mock_url(bench->cdn), request->path);
  mock_reply(request, 308, headers, NULL, 0);
}

static void to_new_name(mock_request_t *request, void *user) {
  const char *file = strstr(request->path, "/resolve/");
  char headers[300];

  (void)user;
  snprintf(headers, sizeof(headers),
           "Location: /org/model%s\r\nConnection: close\r\n", file);
  mock_reply(request, 307, headers, NULL, 0);
}

static void other_hub(mock_request_t *request, void *user) {
  CHECK(mock_header(request, "authorization") == NULL);
  models_answer(request, user);
}

TEST(S0_4_a_model_that_has_moved_is_found) {
  stage_t stage;

  stage_open_usual(&stage);
  mock_on(stage.bench.mock, NULL, "/old/name/resolve/main/small.json",
          to_new_name, NULL);
  mock_on(stage.bench.mock, NULL, "/old/name/resolve/" COMMIT "/small.json",
          to_new_name, NULL);
  stage_get_ok(&stage, "old/name", "small.json", NULL,
               "cache/models--old--name/snapshots/" COMMIT "/small.json");
  CHECK_STR(mock_header(mock_request(stage.bench.mock, 1), "authorization"),
            "Bearer " TOKEN);
  bench_close(&stage.bench);
}

TEST(S0_4_a_hub_that_has_moved_is_followed_without_the_token) {
  stage_t stage;

  stage_open_usual(&stage);
  mock_on(stage.bench.cdn, NULL, NULL, other_hub, &stage.models);
  mock_on(stage.bench.mock, NULL, NULL, to_other_hub, &stage.bench);
  stage_get_ok(&stage, "org/model", "small.json", NULL, SMALL);
  bench_close(&stage.bench);
}

/* ---- The disk ---- */

TEST(S0_4_a_folder_is_no_file) {
  stage_t stage;

  stage_open_usual(&stage);
  stage_get_ok(&stage, "org/model", "sub/deep.json", NULL, DEEP);
  stage_get_not(&stage, "org/model", "sub", COMMIT, TNK_ENOTFOUND,
                "no such file");
  bench_close(&stage.bench);
}

TEST(S0_4_what_is_there_is_not_absent) {
  stage_t stage;

  stage_open_usual(&stage);
  stage_get_ok(&stage, "org/model", "small.json", NULL, SMALL);
  bench_write(&stage.bench, CACHE ".no_exist/" COMMIT "/small.json", "");
  stage_get_ok(&stage, "org/model", "small.json", COMMIT, SMALL);
  bench_close(&stage.bench);
}

/* Its folders for refs and blobs are files, so nothing can be put there. */
TEST(S0_4_a_cache_that_can_only_be_read_is_read) {
  stage_t stage;

  stage_open_usual(&stage);
  bench_write(&stage.bench, SMALL, "mine");
  bench_write(&stage.bench, CACHE "refs", "no folder");
  bench_write(&stage.bench, CACHE "blobs", "no folder");
  bench_write(&stage.bench, CACHE ".no_exist", "no folder");
  stage_get_ok(&stage, "org/model", "small.json", NULL, SMALL);
  stage_get_not(&stage, "org/model", "none.json", NULL, TNK_ENOTFOUND,
                "no such file");
  stage_get_not(&stage, "org/model", "large.json", NULL, TNK_EFILE,
                "cannot write");
  bench_check_file(&stage.bench, SMALL, "mine");
  bench_close(&stage.bench);
}

static void reply_much(mock_request_t *request, void *user) {
  static char much[64 * 1024];

  (void)user;
  mock_reply(request, 200, NULL, much, sizeof(much));
}

TEST(K11_a_disk_that_is_full_leaves_nothing_behind) {
  const struct rlimit limit = {4096, RLIM_INFINITY};
  const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
  bench_t bench;
  outcome_t outcome;

  bench_open(&bench);
  mock_on(bench.mock, "GET", "/f", reply_much, NULL);
  bench_write(&bench, "out/file", "old");
  signal(SIGXFSZ, SIG_IGN);
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
  bench_get(&bench, &outcome, "/f", NULL);
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &none), 0);
  CHECK_INT(outcome.status, TNK_EFILE);
  CHECK_INT(tnk_promise_error(outcome.promise)->cause, UV_EFBIG);
  CHECK(strstr(outcome.text, "/out/file") != NULL);
  outcome_drop(&outcome);
  bench_close_hub(&bench);
  CHECK_INT(bench_count(&bench, "out"), 1);
  bench_check_file(&bench, "out/file", "old");
  bench_close(&bench);
}

/* Two hubs stand for two processes: they share nothing but the folder. */
TEST(S0_4b_two_hubs_fetch_one_file_side_by_side) {
  const tnk_hub_options_t options = TNK_HUB_OPTIONS_INIT;
  stage_t stage;
  tnk_hub_t *first;
  outcome_t outcomes[2];

  stage_open_usual(&stage);
  first = stage.bench.hub;
  stage_ask(&stage, &outcomes[0], "org/model", "large.json", NULL);
  bench_open_hub(&stage.bench, &options);
  stage_ask(&stage, &outcomes[1], "org/model", "large.json", NULL);
  for (int i = 0; i < 2; i++) {
    outcome_wait(&stage.bench, &outcomes[i]);
    CHECK_INT(outcomes[i].status, TNK_OK);
    outcome_drop(&outcomes[i]);
  }
  CHECK_INT(mock_n_requests(stage.bench.cdn), 2);
  bench_check_file(&stage.bench, LARGE, "{\"large\":2}");
  bench_close_hub(&stage.bench);
  stage.bench.hub = first;
  bench_close_hub(&stage.bench);
  CHECK_INT(bench_count(&stage.bench, CACHE "blobs"), 1);
  CHECK_INT(bench_count(&stage.bench, CACHE "snapshots/" COMMIT), 1);
  CHECK_INT(bench_count(&stage.bench, CACHE "refs"), 1);
  bench_close(&stage.bench);
}
