/* SPDX-License-Identifier: MIT */
/*
 * What services and stores may send: lengths that are not true, redirections,
 * addresses and names that must not be followed.
 */
#include "weights/bench.h"

#include <signal.h>
#include <sys/resource.h>

typedef struct {
  const char *headers;
  const char *body;
  size_t n; /* that are sent, then the end; 0: all */
  int status;
} answer_t;

static void reply(mock_request_t *request, void *user) {
  const answer_t *answer = user;

  if (answer->n > 0)
    mock_reply_cut(request, answer->status, answer->headers, answer->body,
                   strlen(answer->body), answer->n);
  else
    mock_reply(request, answer->status, answer->headers, answer->body,
               strlen(answer->body));
}

static void open_one(bench_t *bench) {
  bench_open(bench);
  bench_add(bench, "a", "0123456789", 10, "\"e\"");
}

static void check_answer(answer_t answer, int status, const char *text) {
  bench_t bench;

  open_one(&bench);
  mock_on(bench.store, NULL, NULL, reply, &answer);
  bench_get_not(&bench, NULL, status, text);
  CHECK(!bench_exists(&bench, "out"));
  bench_close(&bench);
}

TEST(P11_10_an_answer_that_is_always_cut_is_no_file) {
  check_answer((answer_t){"Content-Length: 1000\r\nConnection: close\r\n",
                          "0123456789", 0, 200},
               TNK_ECONN, "a from 127.0.0.1");
}

/* Where the body ends, the connection does. */
static void reply_unframed(mock_request_t *request, void *user) {
  (void)user;
  mock_begin(request, 200, "Connection: close\r\n");
  mock_piece(request, "0123456789", 10);
  mock_end(request, 1);
}

TEST(P11_10_an_answer_without_a_length_is_not_taken) {
  bench_t bench;

  open_one(&bench);
  mock_on(bench.store, NULL, NULL, reply_unframed, NULL);
  bench_get_not(&bench, NULL, TNK_EPROTO, "does not state its length");
  CHECK(!bench_exists(&bench, "out"));
  bench_close(&bench);
}

/* Behind a part that is there, parts that are not what they say. */
static void check_part(const char *range, const char *body, int status) {
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;
  answer_t answer = {.status = 206, .body = body};
  char headers[200];
  bench_t bench;

  open_one(&bench);
  mock_once(bench.store, NULL, NULL, store_get, &bench);
  bench.files[0].cut_at = 60;
  bench.files[0].data = bench_big;
  bench.files[0].n = 1000;
  snprintf(headers, sizeof(headers), "ETag: \"e\"\r\nContent-Range: %s\r\n",
           range);
  answer.headers = headers;
  mock_on(bench.store, NULL, NULL, reply, &answer);
  options.max_retries = 3;
  bench_get_not(&bench, &options, status, "a from 127.0.0.1");
  CHECK(!bench_exists(&bench, "out"));
  bench_close(&bench);
}

TEST(P11_10_a_part_that_is_not_the_rest_is_not_taken) {
  check_part("bytes 0-9/10", "0123456789", TNK_EREQUEST);
  check_part("bytes 900-999/1000", "0123456789", TNK_EREQUEST);
  check_part("bytes 0-999/2000", "0123456789", TNK_EREQUEST);
  check_part("none", "0123456789", TNK_EREQUEST);
}

/* ---- Redirections ---- */

static void redirect(mock_request_t *request, void *user) {
  char headers[300];

  store_check(request);
  snprintf(headers, sizeof(headers), "Location: %s\r\n", (const char *)user);
  mock_reply(request, 302, headers, NULL, 0);
}

TEST(P11_10_a_redirection_to_another_origin_is_followed_with_nothing_of_ours) {
  bench_t bench;
  mock_server_t *other;
  char location[200];

  open_one(&bench);
  other = mock_open(&bench.script.uv);
  snprintf(location, sizeof(location), "%s/w/a?s=" SIGNATURE "&n=9",
           mock_url(other));
  mock_on(bench.store, NULL, NULL, redirect, location);
  mock_on(other, NULL, NULL, store_get, &bench);
  bench_get_ok(&bench, NULL);
  CHECK_INT(mock_n_requests(other), 1);
  mock_close(other);
  bench_close(&bench);
}

TEST(P11_10_a_redirection_to_http_elsewhere_is_not_followed) {
  static char *const locations[] = {
      "http://192.0.2.1/?s=" SIGNATURE, "http://127.0.0.1.example/",
      "//store.example/x", "ftp://127.0.0.1/", "file:///etc/passwd"};

  for (size_t i = 0; i < sizeof(locations) / sizeof(locations[0]); i++) {
    bench_t bench;
    open_one(&bench);
    mock_on(bench.store, NULL, NULL, redirect, locations[i]);
    bench_get_not(&bench, NULL, TNK_EPROTO, "redirected to");
    CHECK_INT(mock_n_requests(bench.store), 1);
    bench_close(&bench);
  }
}

/* ---- What the service says ---- */

static void check_urls(const char *urls, int status, const char *text) {
  char json[600];
  bench_t bench;

  open_one(&bench);
  snprintf(json, sizeof(json), "{\"urls\":%s,\"expires\":\"" LATER "\"}", urls);
  mock_json(bench.script.mock, "GET", URLS, 200, json);
  bench_get_not(&bench, NULL, status, text);
  CHECK_INT(mock_n_requests(bench.store), 0);
  CHECK(!bench_exists(&bench, "out"));
  CHECK(!bench_exists(&bench, "x"));
  bench_close(&bench);
}

TEST(P11_10_only_https_and_this_machine_are_asked) {
  check_urls("{\"a\":\"http://192.0.2.1/" SIGNATURE "\"}", TNK_EPROTO,
             "a: the service gives an address");
  check_urls("{\"a\":\"http://127.0.0.1.example/" SIGNATURE "\"}", TNK_EPROTO,
             "an address");
  check_urls("{\"a\":\"file:///etc/passwd\"}", TNK_EPROTO, "an address");
  check_urls("{\"a\":\"" SIGNATURE "\"}", TNK_EPROTO, "an address");
}

TEST(P11_10_names_that_leave_the_directory_are_refused) {
  static const char *const names[] = {
      "../x",      "/tmp/x", "..",           ".",         "",
      "a/../../x", "a//b",   "a\\\\..\\\\x", "a\\u001bb", "a\\nb"};

  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    char urls[200];
    snprintf(urls, sizeof(urls), "{\"%s\":\"https://127.0.0.1:1/\"}", names[i]);
    check_urls(urls, TNK_EPROTO, "");
  }
}

TEST(P11_10_names_in_each_others_way_are_refused) {
  check_urls("{\"a\":\"https://127.0.0.1:1/\",\"b\":\"https://127.0.0.1:1/\","
             "\"a\":\"https://127.0.0.1:1/\"}",
             TNK_EPROTO, "");
  check_urls("{\"a/b\":\"https://127.0.0.1:1/\",\"a.b\":"
             "\"https://127.0.0.1:1/\",\"a\":\"https://127.0.0.1:1/\"}",
             TNK_EPROTO, "each other's way");
}

TEST(P11_10_no_files_at_all_are_an_error) {
  check_urls("{}", TNK_EPROTO, "no files");
}

/* ---- The disk ---- */

TEST(P11_10_a_place_that_cannot_be_written_is_said_before_anything_is_asked) {
  bench_t bench;
  outcome_t outcome;
  char target[200];

  open_one(&bench);
  bench_write(&bench, "file", "mine");
  snprintf(target, sizeof(target), "%s/file/out", bench.dir);
  outcome_of(&outcome,
             tnk_weights_download(bench.script.service, PATH, target, NULL));
  bench_wait(&bench, &outcome);
  CHECK_INT(outcome.status, TNK_EFILE);
  CHECK_INT(tnk_promise_error(outcome.promise)->cause, UV_ENOTDIR);
  CHECK_INT(mock_n_requests(bench.script.mock), 0);
  outcome_drop(&outcome);
  bench_close(&bench);
}

/* A file system that is full says so as a limit on the size of files does. */
TEST(P11_10_a_full_disk_is_an_error_and_the_download_can_go_on_later) {
  struct rlimit limit;
  struct rlimit small;
  bench_t bench;
  outcome_t outcome;

  bench_open_adapter(&bench);
  signal(SIGXFSZ, SIG_IGN);
  CHECK_INT(getrlimit(RLIMIT_FSIZE, &limit), 0);
  small = limit;
  small.rlim_cur = 800000;
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &small), 0);
  bench_get(&bench, &outcome, NULL);
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
  CHECK_INT(outcome.status, TNK_EFILE);
  CHECK_INT(tnk_promise_error(outcome.promise)->cause, UV_EFBIG);
  outcome_drop(&outcome);
  bench_settle(&bench);
  CHECK(!bench_exists(&bench, "out"));
  bench_get_ok(&bench, NULL);
  bench_close(&bench);
}
