/* SPDX-License-Identifier: MIT */
/*
 * Downloads of any URL to a file. The canaries are checked in bench.h.
 */
#include "hub/bench.h"
#include "lib/files/fetch/sha256.h"
#include "task/events.h"

#define TEXT "hello, file"

TEST(O1_a_file_is_downloaded_to_its_place) {
  bench_t bench;
  outcome_t outcome;
  char path[100];

  bench_open(&bench);
  mock_on(bench.mock, "GET", "/f", bench_reply, (void *)TEXT);
  bench_get(&bench, &outcome, "/f?s=" SIGNATURE, NULL);
  CHECK_INT(outcome.status, TNK_OK);
  snprintf(path, sizeof(path), "%s/out/file", bench.dir);
  CHECK_STR(tnk_promise_path(outcome.promise), path);
  bench_check_file(&bench, "out/file", TEXT);
  CHECK_INT(bench_count(&bench, "out"), 1);
  CHECK(mock_header(mock_request(bench.mock, 0), "authorization") == NULL);
  CHECK_STR(mock_request(bench.mock, 0)->target, "/f?s=" SIGNATURE);
  outcome_drop(&outcome);
  bench_close(&bench);
}

enum { BIG = 5 * 1024 * 1024 };
static char big[BIG];

static void reply_big(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 200, NULL, big, sizeof(big));
}

typedef struct {
  int n;
  uint64_t last;
  uint64_t total;
} progress_t;

static void on_progress(const char *file, uint64_t n_bytes, uint64_t n_total,
                        void *user) {
  progress_t *progress = user;

  CHECK(strstr(file, "/out/file") != NULL);
  CHECK(n_bytes > progress->last);
  progress->n++;
  progress->last = n_bytes;
  progress->total = n_total;
}

TEST(O1_a_large_file_comes_in_pieces_and_tells_its_progress) {
  tnk_download_options_t options = TNK_DOWNLOAD_OPTIONS_INIT;
  bench_t bench;
  outcome_t outcome;
  progress_t progress = {0};
  uint64_t state = 3;
  const char *text;
  size_t n = 0;

  for (size_t i = 0; i < sizeof(big); i++)
    big[i] = (char)test_random(&state);
  bench_open(&bench);
  mock_on(bench.mock, "GET", "/f", reply_big, NULL);
  options.on_progress = on_progress;
  options.progress_user = &progress;
  options.n_bytes = BIG;
  bench_get(&bench, &outcome, "/f", &options);
  CHECK_INT(outcome.status, TNK_OK);
  CHECK(progress.n > 2);
  CHECK_INT(progress.total, BIG);
  text = bench_read(&bench, "out/file", &n);
  CHECK_MEM(text, n, big, sizeof(big));
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(O1_an_empty_file_is_a_file) {
  bench_t bench;

  bench_open(&bench);
  mock_on(bench.mock, "GET", "/f", bench_reply, (void *)"");
  bench_get_ok(&bench, "/f", NULL, "");
  bench_close(&bench);
}

/* ---- What is announced ---- */

TEST(K11_size_and_checksum_are_checked) {
  static const struct {
    const char *sum;
    uint64_t n_bytes;
    uint64_t max_bytes;
    int status;
  } cases[] = {
      {NULL, 11, 0, TNK_OK},
      {NULL, 0, 11, TNK_OK},
      {NULL, 12, 0, TNK_ECORRUPT},
      {NULL, 10, 0, TNK_ECORRUPT},
      {NULL, 0, 10, TNK_ETOOBIG},
      {"2E1E9D0F4DFB20B22F4BBA1F6BCA0D37A4B7F3DD2B6ED0D0B8CF0D8A6B0E7A11", 0, 0,
       TNK_ECORRUPT},
      {"@", 0, 0, TNK_OK}};
  char right[65];
  tnk__sha256_t sha;
  bench_t bench;
  outcome_t outcome;

  tnk__sha256_init(&sha);
  tnk__sha256_add(&sha, "abc", 3);
  tnk__sha256_end(&sha, right);
  CHECK_STR(right, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61"
                   "f20015ad");
  tnk__sha256_init(&sha);
  tnk__sha256_add(&sha, "hello,", 6);
  tnk__sha256_add(&sha, " file", 5);
  tnk__sha256_end(&sha, right);
  bench_open(&bench);
  mock_on(bench.mock, "GET", "/f", bench_reply, (void *)TEXT);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    tnk_download_options_t options = TNK_DOWNLOAD_OPTIONS_INIT;
    options.sha256 =
        cases[i].sum != NULL && cases[i].sum[0] == '@' ? right : cases[i].sum;
    options.n_bytes = cases[i].n_bytes;
    options.max_bytes = cases[i].max_bytes;
    bench_write(&bench, "out/file", "old");
    bench_get(&bench, &outcome, "/f", &options);
    if (outcome.status != cases[i].status)
      test_fail(__FILE__, __LINE__, "case %zu: %s", i, outcome.text);
    /* What was there stays when the new one is no good. */
    bench_check_file(&bench, "out/file",
                     cases[i].status == TNK_OK ? TEXT : "old");
    outcome_drop(&outcome);
  }
  bench_close_hub(&bench);
  CHECK_INT(bench_count(&bench, "out"), 1);
  bench_close(&bench);
}

/* ---- Redirections ---- */

static void to_cdn(mock_request_t *request, void *user) {
  const bench_t *bench = user;
  char headers[300];

  snprintf(headers, sizeof(headers), "Location: %s/blob?x=" SIGNATURE "\r\n",
           mock_url(bench->cdn));
  mock_reply(request, 307, headers, "moved", 5);
}

static void to_new_name(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 302, "Location: /new\r\n", NULL, 0);
}

/* "/old" is at another place of another origin. */
static void serve_moved(bench_t *bench) {
  mock_on(bench->mock, "GET", "/old", to_new_name, NULL);
  mock_on(bench->mock, "GET", "/new", to_cdn, bench);
  mock_on(bench->cdn, "GET", "/blob", bench_reply, (void *)TEXT);
}

TEST(K11_redirections_to_another_origin_go_without_the_token) {
  tnk_download_options_t options = TNK_DOWNLOAD_OPTIONS_INIT;
  bench_t bench;
  outcome_t outcome;

  bench_open(&bench);
  serve_moved(&bench);
  options.token = TOKEN;
  bench_get(&bench, &outcome, "/old", &options);
  CHECK_INT(outcome.status, TNK_OK);
  bench_check_file(&bench, "out/file", TEXT);
  CHECK_STR(mock_header(mock_request(bench.mock, 0), "authorization"),
            "Bearer " TOKEN);
  CHECK_STR(mock_header(mock_request(bench.mock, 1), "authorization"),
            "Bearer " TOKEN);
  CHECK(mock_header(mock_request(bench.cdn, 0), "authorization") == NULL);
  CHECK_STR(mock_request(bench.cdn, 0)->target, "/blob?x=" SIGNATURE);
  outcome_drop(&outcome);
  bench_close(&bench);
}

static void to_itself(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 302, "Location: ?again=" SIGNATURE "\r\n", NULL, 0);
}

static void to_nowhere(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 302, NULL, NULL, 0);
}

TEST(K11_redirections_in_circles_or_to_nowhere_end) {
  bench_t bench;
  outcome_t outcome;

  bench_open(&bench);
  mock_on(bench.mock, "GET", "/loop", to_itself, NULL);
  mock_on(bench.mock, "GET", "/none", to_nowhere, NULL);
  bench_get(&bench, &outcome, "/loop", NULL);
  CHECK_INT(outcome.status, TNK_EPROTO);
  CHECK(strstr(outcome.text, "too often") != NULL);
  CHECK_INT(mock_n_requests(bench.mock), 6);
  outcome_drop(&outcome);
  bench_get_not(&bench, "/none", NULL, TNK_EPROTO);
  CHECK_INT(bench_count(&bench, "out"), 0);
  bench_close(&bench);
}

/* ---- Failures ---- */

TEST(O1_refusals_are_told_by_their_status) {
  static const struct {
    int http;
    int status;
  } cases[] = {{401, TNK_EAUTH},
               {403, TNK_EAUTH},
               {404, TNK_ENOTFOUND},
               {410, TNK_ENOTFOUND},
               {418, TNK_EREQUEST}};
  bench_t bench;
  outcome_t outcome;

  bench_open(&bench);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    mock_json_once(bench.mock, "GET", "/f", cases[i].http,
                   "{\"url\":\"" SIGNATURE "\"}");
    bench_get(&bench, &outcome, "/f?" SIGNATURE, NULL);
    CHECK_INT(outcome.status, cases[i].status);
    CHECK_INT(tnk_promise_error(outcome.promise)->http_status, cases[i].http);
    CHECK(strstr(outcome.text, "127.0.0.1") != NULL);
    outcome_drop(&outcome);
  }
  CHECK_INT(bench_count(&bench, "out"), 0);
  bench_close(&bench);
}

static void cut_after_7(mock_request_t *request, void *user) {
  (void)user;
  mock_begin(request, 200, "ETag: \"one\"\r\nContent-Length: 11\r\n");
  mock_piece(request, "hello, ", 7);
  mock_end(request, 1);
}

static void reply_rest(mock_request_t *request, void *user) {
  (void)user;
  CHECK_STR(mock_header(request, "range"), "bytes=7-");
  CHECK_STR(mock_header(request, "if-range"), "\"one\"");
  mock_reply(request, 206, "ETag: \"one\"\r\nContent-Range: bytes 7-10/11\r\n",
             &TEXT[7], 4);
}

TEST(O1_a_lost_connection_goes_on_where_it_ended) {
  tnk_download_options_t options = TNK_DOWNLOAD_OPTIONS_INIT;
  bench_t bench;

  bench_open(&bench);
  mock_once(bench.mock, "GET", "/f", cut_after_7, NULL);
  mock_once(bench.mock, "GET", "/f", reply_rest, NULL);
  options.n_bytes = 11;
  bench_get_ok(&bench, "/f", &options, TEXT);
  CHECK_INT(mock_n_requests(bench.mock), 2);
  bench_close(&bench);
}

TEST(O1_what_is_not_the_rest_is_not_taken_for_it) {
  bench_t bench;

  bench_open(&bench);
  /* It has changed: all of it comes anew. */
  mock_once(bench.mock, "GET", "/f", cut_after_7, NULL);
  mock_once(bench.mock, "GET", "/f", bench_reply,
            (void *)"another text, longer");
  bench_get_ok(&bench, "/f", NULL, "another text, longer");
  bench_close(&bench);
}

TEST(O1_what_may_pass_is_repeated_and_then_told) {
  bench_t bench;
  outcome_t outcome;

  bench_open(&bench);
  mock_json_once(bench.mock, "GET", "/f", 503, "{}");
  mock_once(bench.mock, "GET", "/f", mock_reset, NULL);
  mock_json_once(bench.mock, "GET", "/f", 429, "{}");
  mock_once(bench.mock, "GET", "/f", bench_reply, (void *)TEXT);
  bench_get_ok(&bench, "/f", NULL, TEXT);
  CHECK_INT(mock_n_requests(bench.mock), 4);
  mock_json(bench.mock, "GET", "/f", 500, "{}");
  bench_get(&bench, &outcome, "/f", NULL);
  CHECK_INT(outcome.status, TNK_ESERVER);
  CHECK_INT(tnk_promise_error(outcome.promise)->n_attempts, 5);
  CHECK_INT(mock_n_requests(bench.mock), 9);
  outcome_drop(&outcome);
  bench_close(&bench);
}

static void bench_open_heard(bench_t *bench, heard_t *heard) {
  tnk_hub_options_t options = TNK_HUB_OPTIONS_INIT;

  memset(heard, 0, sizeof(*heard));
  options.observer = heard_event;
  options.observer_user = heard;
  bench_open(bench);
  bench_close_hub(bench);
  bench_open_hub(bench, &options);
}

TEST(observe_a_download_is_told_with_its_requests) {
  heard_t heard;
  bench_t bench;
  outcome_t outcome;

  bench_open_heard(&bench, &heard);
  mock_json_once(bench.mock, "GET", "/f", 503, "{}");
  mock_on(bench.mock, "GET", "/f", bench_reply, (void *)TEXT);
  bench_get_ok(&bench, "/f", NULL, TEXT);
  CHECK_STR(heard_op(&heard, 1)->name, "download");
  CHECK_STR(heard_op(&heard, 1)->words,
            "queued sent result retry sent result decoded delivered");
  mock_json(bench.mock, "GET", "/f", 404, "{}");
  bench_get(&bench, &outcome, "/f", NULL);
  CHECK_STR(heard_op(&heard, 2)->words, "queued sent result failed delivered");
  CHECK_INT(heard_op(&heard, 2)->code, TNK_ENOTFOUND);
  outcome_drop(&outcome);
  bench_close(&bench);
  heard_close(&heard);
}

TEST(observe_of_a_download_that_is_canceled_nothing_more_is_told) {
  heard_t heard;
  bench_t bench;
  outcome_t outcome;
  char url[200];
  char path[100];

  bench_open_heard(&bench, &heard);
  mock_on(bench.mock, "GET", "/f", mock_hold, NULL);
  snprintf(url, sizeof(url), "%s/f", mock_url(bench.mock));
  snprintf(path, sizeof(path), "%s/out/file", bench.dir);
  outcome_of(&outcome, tnk_hub_download(bench.hub, url, path, NULL));
  while (mock_n_held(bench.mock) < 1)
    mock_turns(bench.mock, 1);
  tnk_promise_cancel(outcome.promise);
  outcome_wait(&bench, &outcome);
  outcome_drop(&outcome);
  bench_close(&bench);
  CHECK_STR(heard_op(&heard, 1)->words, "queued sent failed delivered");
  heard_close(&heard);
}

TEST(observe_files_and_tokenizers_are_told_from_beginning_to_end) {
  heard_t heard;
  bench_t bench;
  outcome_t outcome;

  bench_open_heard(&bench, &heard);
  outcome_of(&outcome, tnk_hub_file(bench.hub, "a/b", "c", NULL));
  outcome_wait_long(&bench, &outcome);
  CHECK(outcome.status != TNK_OK);
  CHECK_STR(heard_op(&heard, 1)->name, "file");
  CHECK_STR(heard_op(&heard, 1)->words, "queued failed delivered");
  outcome_drop(&outcome);
  bench_close(&bench);
  heard_close(&heard);
}

TEST(O1_a_file_that_cannot_be_written_is_told) {
  bench_t bench;
  outcome_t outcome;

  bench_open(&bench);
  mock_on(bench.mock, "GET", "/f", bench_reply, (void *)TEXT);
  bench_write(&bench, "out", "a file where a folder should be");
  bench_get(&bench, &outcome, "/f", NULL);
  CHECK_INT(outcome.status, TNK_EFILE);
  CHECK(strstr(outcome.text, "/out/file") != NULL);
  CHECK_INT(tnk_promise_error(outcome.promise)->cause, UV_ENOTDIR);
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(O1_bad_arguments_are_refused_without_a_request) {
  tnk_download_options_t options = TNK_DOWNLOAD_OPTIONS_INIT;
  bench_t bench;
  outcome_t outcome;

  bench_open(&bench);
  options.sha256 = "abc";
  bench_get_not(&bench, "/f", &options, TNK_EINVAL);
  outcome_of(&outcome,
             tnk_hub_download(bench.hub, "ftp://h/" SIGNATURE, "/tmp/x", NULL));
  outcome_wait(&bench, &outcome);
  CHECK_INT(outcome.status, TNK_EINVAL);
  outcome_drop(&outcome);
  options = (tnk_download_options_t)TNK_DOWNLOAD_OPTIONS_INIT;
  options.token = TOKEN "\r\nX: y";
  bench_get_not(&bench, "/f", &options, TNK_EINVAL);
  outcome_of(&outcome, tnk_hub_download(bench.hub, NULL, "/tmp/x", NULL));
  outcome_wait(&bench, &outcome);
  CHECK_INT(outcome.status, TNK_EINVAL);
  outcome_drop(&outcome);
  CHECK(tnk_hub_download(NULL, "http://h/", "/tmp/x", NULL) == NULL);
  CHECK_INT(mock_n_requests(bench.mock), 0);
  bench_close(&bench);
}

TEST(O1_one_download_a_path_at_a_time) {
  bench_t bench;
  outcome_t first;
  outcome_t other;

  bench_open(&bench);
  mock_once(bench.mock, "GET", "/f", mock_hold, NULL);
  mock_on(bench.mock, "GET", "/f", bench_reply, (void *)TEXT);
  outcome_of(&first,
             bench_download(&bench, bench.mock, "/f", "out/file", NULL));
  mock_wait(bench.mock, 1);
  bench_get(&bench, &other, "/f", NULL);
  CHECK_INT(other.status, TNK_ECONFLICT);
  CHECK(strstr(other.text, "/out/file") != NULL);
  outcome_drop(&other);
  /* Another path is another matter; and the path is free again at the end. */
  outcome_of(&other,
             bench_download(&bench, bench.mock, "/f", "out/other", NULL));
  outcome_wait(&bench, &other);
  CHECK_INT(other.status, TNK_OK);
  outcome_drop(&other);
  tnk_promise_cancel(first.promise);
  bench_get(&bench, &other, "/f", NULL);
  CHECK_INT(other.status, TNK_OK);
  CHECK_INT(first.status, TNK_ECANCELED);
  CHECK_STR(first.text, "download: canceled");
  bench_check_file(&bench, "out/file", TEXT);
  outcome_drop(&other);
  outcome_drop(&first);
  bench_close(&bench);
}

/* ---- Cancel and close in every state ---- */

/* How far it may come before it is ended: waiting for the head, in the middle,
 * pausing, writing. */
static void begin(bench_t *bench, outcome_t *outcome, int how) {
  mock_request_t *request;

  if (how == 2) {
    mock_json_once(bench->mock, "GET", "/f", 503, "{}");
  } else if (how == 3) {
    mock_once(bench->mock, "GET", "/f", reply_big, NULL);
  } else {
    mock_once(bench->mock, "GET", "/f", mock_hold, NULL);
  }
  outcome_of(outcome,
             bench_download(bench, bench->mock, "/f", "out/file", NULL));
  if (how == 0)
    return;
  mock_wait(bench->mock, mock_n_requests(bench->mock) + 1);
  request = mock_request(bench->mock, mock_n_requests(bench->mock) - 1);
  if (how == 1) {
    mock_begin(request, 200, "Content-Length: 9\r\n");
    mock_piece(request, "abc", 3);
    while (bench_count(bench, "out") == 0)
      uv_run(&bench->uv, UV_RUN_ONCE);
  }
  mock_turns(bench->mock, 3);
}

TEST(O1_downloads_are_canceled_in_every_state) {
  bench_t bench;
  outcome_t outcome;

  bench_open(&bench);
  for (int how = 0; how < 4; how++) {
    begin(&bench, &outcome, how);
    tnk_promise_cancel(outcome.promise);
    outcome_wait(&bench, &outcome);
    CHECK_INT(outcome.status, TNK_ECANCELED);
    outcome_drop(&outcome);
  }
  bench_close_hub(&bench);
  CHECK_INT(bench_count(&bench, "out"), 0);
  bench_close(&bench);
}

TEST(O1_a_hub_closes_in_every_state_of_a_download) {
  for (int how = 0; how < 4; how++) {
    bench_t bench;
    outcome_t outcome;

    bench_open(&bench);
    begin(&bench, &outcome, how);
    bench_close_hub(&bench);
    CHECK_INT(outcome.n_done, 1);
    CHECK_INT(outcome.status, TNK_ECLOSED);
    CHECK_INT(bench_count(&bench, "out"), 0);
    outcome_drop(&outcome);
    bench_close(&bench);
  }
}

typedef struct {
  bench_t *bench;
  outcome_t *outcome;
  int closes;
  int n;
} breaker_t;

static void break_off(const char *file, uint64_t n_bytes, uint64_t n_total,
                      void *user) {
  breaker_t *breaker = user;

  (void)file;
  (void)n_bytes;
  (void)n_total;
  CHECK_INT(++breaker->n, 1);
  if (breaker->closes)
    tnk_hub_close(breaker->bench->hub, bench_hub_closed, breaker->bench);
  else
    tnk_promise_cancel(breaker->outcome->promise);
}

TEST(O1_canceling_and_closing_from_the_progress_callback) {
  for (int closes = 0; closes < 2; closes++) {
    tnk_download_options_t options = TNK_DOWNLOAD_OPTIONS_INIT;
    bench_t bench;
    outcome_t outcome;
    breaker_t breaker = {&bench, &outcome, closes, 0};

    bench_open(&bench);
    mock_on(bench.mock, "GET", "/f", reply_big, NULL);
    options.on_progress = break_off;
    options.progress_user = &breaker;
    outcome_of(&outcome,
               bench_download(&bench, bench.mock, "/f", "out/file", &options));
    outcome_wait(&bench, &outcome);
    CHECK_INT(outcome.status, closes ? TNK_ECLOSED : TNK_ECANCELED);
    if (closes) {
      mock_wait_flag(bench.mock, &bench.is_closed, 1);
      bench.hub = NULL;
    }
    outcome_drop(&outcome);
    bench_close(&bench);
  }
}

/* ---- Memory ---- */

static int run_without_memory(long n) {
  tnk_download_options_t options = TNK_DOWNLOAD_OPTIONS_INIT;
  bench_t bench;
  outcome_t outcome;
  int is_over;

  bench_open(&bench);
  serve_moved(&bench);
  options.token = TOKEN;
  test_alloc_fail_at(n);
  bench_get(&bench, &outcome, "/old", &options);
  is_over = bench_check_memory(&outcome, n);
  if (outcome.status != TNK_OK) {
    outcome_drop(&outcome);
    bench_get(&bench, &outcome, "/old", &options);
    CHECK_INT(outcome.status, TNK_OK);
  }
  outcome_drop(&outcome);
  bench_close(&bench);
  CHECK_INT(test_alloc_live(), 0);
  return is_over;
}

TEST_LIMIT(S3_26a_downloads_without_memory, 60) {
  bench_without_memory(run_without_memory);
}
