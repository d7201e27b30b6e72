/* SPDX-License-Identifier: MIT */
/*
 * Servers that have an archive of a checkpoint and no list of its files: it is
 * found, fetched as any file is, and unpacked; and what such an archive must
 * not have in it.
 */
#include "codec/tar_make.h"
#include "weights/bench.h"

#define STATE "tinker://r:1/weights/a"
#define RUN "/api/v1/training_runs/r:1/checkpoints/"
#define ARCHIVE RUN "external_weights/hf/archive"
#define STATE_ARCHIVE RUN "weights/a/archive"
#define RUN_OF_ITS_OWN                                                         \
  "/api/v1/training_runs/model-0/checkpoints/external_weights/download"
#define SAMPLER_ARCHIVE RUN "sampler_weights/a/archive"

enum { MODEL = 700000 };

typedef struct {
  bench_t bench;
  tnk__buf_t tar;
  int is_json;
} old_t;

/* Where it is, as a redirection or as JSON. */
static void archive_url(mock_request_t *request, void *user) {
  old_t *old = user;
  char url[300];
  char text[500];

  CHECK_STR(mock_header(request, "accept"), "application/json");
  CHECK(mock_header(request, "x-api-key") != NULL);
  snprintf(url, sizeof(url), "%s/w/archive.tar?s=" SIGNATURE "&n=%d",
           mock_url(old->bench.store), ++old->bench.n_signed);
  if (old->is_json) {
    snprintf(text, sizeof(text), "{\"url\":\"%s\",\"expires\":\"%s\"}", url,
             old->bench.expires);
    mock_reply_json(request, 200, text);
    return;
  }
  snprintf(text, sizeof(text),
           "Location: %s\r\nExpires: Fri, 01 Jan 2100 00:00:00 GMT\r\n", url);
  mock_reply(request, 302, text, NULL, 0);
}

static void fill_tar(tnk__buf_t *tar) {
  tar_entry(tar, "adapter_config.json", '0', "{}", 2);
  tar_entry(tar, "deep", '5', "", 0);
  tar_entry(tar, "deep/adapter_model.bin", '0', bench_big, MODEL);
  tar_entry(tar, "checkpoint_complete", '0', "", 0);
  tar_end(tar);
}

/* A server that lists no files, and its archive. */
static void open_old(old_t *old) {
  mock_server_t *mock;

  memset(old, 0, sizeof(*old));
  bench_open(&old->bench);
  tnk__buf_init(&old->tar, test_allocator(), TAR_ROOM);
  fill_tar(&old->tar);
  CHECK_INT(old->tar.err, TNK_OK);
  bench_add(&old->bench, "archive.tar", (const char *)old->tar.data,
            old->tar.len, "\"tar\"");
  mock = old->bench.script.mock;
  mock_json(mock, "GET", URLS, 404, "{\"detail\":\"Not Found\"}");
  mock_on(mock, "GET", ARCHIVE, archive_url, old);
}

/* Another archive at the same place. */
static void put_tar(old_t *old, const tnk__buf_t *tar) {
  old->bench.files[0].data = (const char *)tar->data;
  old->bench.files[0].n = tar->len;
}

static void close_old(old_t *old) {
  bench_close(&old->bench);
  tnk__buf_deinit(&old->tar);
}

static void check_out(const old_t *old) {
  bench_check_file(&old->bench, "out/adapter_config.json", "{}", 2);
  bench_check_file(&old->bench, "out/deep/adapter_model.bin", bench_big, MODEL);
  bench_check_file(&old->bench, "out/checkpoint_complete", "", 0);
  CHECK(!bench_exists(&old->bench, "out/archive.tar"));
  CHECK(!bench_exists(&old->bench, "out.incomplete"));
}

static void get_out(old_t *old, const char *path,
                    const tnk_weights_options_t *options) {
  outcome_t outcome;

  outcome_of(&outcome, tnk_weights_download(old->bench.script.service, path,
                                            old->bench.target, options));
  bench_wait(&old->bench, &outcome);
  if (outcome.status != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", outcome.text);
  CHECK_INT(tnk_promise_weights(outcome.promise)->n_files, 3);
  CHECK_INT(tnk_promise_weights(outcome.promise)->n_bytes, MODEL + 2);
  outcome_drop(&outcome);
  check_out(old);
}

static size_t n_of(const old_t *old, const char *method, const char *path) {
  return mock_count(old->bench.script.mock, method, path);
}

/* ---- The way to it ---- */

TEST(N7_where_no_files_are_listed_the_archive_is_unpacked) {
  for (int is_json = 0; is_json < 2; is_json++) {
    old_t old;
    open_old(&old);
    old.is_json = is_json;
    get_out(&old, PATH, NULL);
    CHECK_INT(n_of(&old, "GET", URLS), 1);
    CHECK_INT(n_of(&old, "GET", ARCHIVE), 1);
    CHECK_INT(mock_n_requests(old.bench.store), 1);
    close_old(&old);
  }
}

TEST(N7_an_archive_in_the_making_is_waited_for) {
  old_t old;

  open_old(&old);
  for (int i = 0; i < 3; i++)
    mock_json_once(old.bench.script.mock, "GET", ARCHIVE, 503, "{}");
  get_out(&old, PATH, NULL);
  CHECK_INT(n_of(&old, "GET", ARCHIVE), 4);
  close_old(&old);
}

TEST(N7_a_checkpoint_that_is_neither_way_there_is_not_found) {
  old_t old;

  open_old(&old);
  mock_json(old.bench.script.mock, "GET", URLS, 404,
            "{\"detail\":\"no such checkpoint\"}");
  mock_json(old.bench.script.mock, "GET", ARCHIVE, 405, "{}");
  bench_get_not(&old.bench, NULL, TNK_ENOTFOUND, "no such checkpoint");
  close_old(&old);
}

TEST(N7_an_archive_is_not_asked_for_against_the_programs_will) {
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;
  old_t old;

  open_old(&old);
  options.archive = TNK_NO;
  bench_get_not(&old.bench, &options, TNK_ENOTFOUND, "get_external_files");
  CHECK_INT(n_of(&old, "GET", ARCHIVE), 0);
  /* None is encrypted, so with a key there is nothing to be had from it. */
  options.archive = TNK_DEFAULT;
  options.identity =
      "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EG"
      "AEX";
  bench_get_not(&old.bench, &options, TNK_ENOTFOUND, "get_external_files");
  CHECK_INT(n_of(&old, "GET", ARCHIVE), 0);
  options.archive = TNK_YES;
  bench_get_not(&old.bench, &options, TNK_EINVAL, "no archive is encrypted");
  close_old(&old);
}

TEST(N7_an_archive_that_is_wished_for_is_of_any_kind_and_asked_for_at_once) {
  static const struct {
    const char *path;
    const char *archive;
  } rows[] = {{PATH, ARCHIVE},
              {STATE, STATE_ARCHIVE},
              {"tinker://r:1/sampler_weights/a", SAMPLER_ARCHIVE}};
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;

  options.archive = TNK_YES;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    old_t old;
    open_old(&old);
    mock_on(old.bench.script.mock, "GET", rows[i].archive, archive_url, &old);
    get_out(&old, rows[i].path, &options);
    CHECK_INT(n_of(&old, "GET", rows[i].archive), 1);
    CHECK_INT(n_of(&old, "GET", URLS), 0);
    CHECK_INT(n_of(&old, "POST", "/api/v1/create_session"), 0);
    close_old(&old);
  }
}

static void result(mock_request_t *request, void *user) {
  const char *id = strstr((const char *)request->body, "\"request_id\":\"");

  CHECK(id != NULL);
  if (strncmp(id + 14, "load_weights", 12) == 0)
    mock_reply_json(request, 200, "{\"model_id\":\"model-0\"}");
  else
    script_result(request, user);
}

TEST(N7_a_state_that_cannot_be_saved_for_other_programs_comes_as_an_archive) {
  old_t old;

  open_old(&old);
  mock_on(old.bench.script.mock, "POST", "/api/v1/retrieve_future", result,
          &old.bench.script);
  mock_json(old.bench.script.mock, "POST", "/api/v1/save_weights_external", 404,
            "{\"detail\":\"Not Found\"}");
  mock_on(old.bench.script.mock, "GET", STATE_ARCHIVE, archive_url, &old);
  get_out(&old, STATE, NULL);
  /* Nothing was saved, so nothing is to be removed. */
  mock_turns(old.bench.script.mock, 50);
  CHECK_INT(n_of(&old, "DELETE", RUN_OF_ITS_OWN), 0);
  close_old(&old);
}

static void redirect(mock_request_t *request, void *user) {
  mock_reply(request, 302, user, NULL, 0);
}

/* Of what is elsewhere no key of ours is told, and what is nowhere is not
 * asked. */
static void check_location(const char *location, int status, const char *text) {
  char headers[300];
  old_t old;

  open_old(&old);
  snprintf(headers, sizeof(headers), "Location: %s\r\n", location);
  mock_on(old.bench.script.mock, "GET", ARCHIVE, redirect, headers);
  bench_get_not(&old.bench, NULL, status, text);
  CHECK_INT(mock_n_requests(old.bench.store), 0);
  CHECK(!bench_exists(&old.bench, "out"));
  close_old(&old);
}

TEST(N7_an_archive_elsewhere_than_at_https_or_here_is_not_fetched) {
  check_location("http://192.0.2.1/?s=" SIGNATURE, TNK_EPROTO, "is not used");
  check_location("file:///etc/passwd", TNK_EPROTO, "cannot be used");
  check_location("ftp://127.0.0.1/x", TNK_EPROTO, "cannot be used");
}

/* ---- Pieces ---- */

static void put_gzip(old_t *old, tnk__buf_t *gz) {
  tnk__buf_init(gz, test_allocator(), TAR_ROOM);
  gzip_member(gz, old->tar.data, old->tar.len);
  put_tar(old, gz);
}

TEST(N7_a_compressed_archive_that_is_cut_goes_on_where_it_ended) {
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;
  const mock_request_t *again;
  tnk__buf_t gz;
  old_t old;

  open_old(&old);
  put_gzip(&old, &gz);
  old.bench.files[0].cut_at = 300000;
  options.max_retries = UINT32_MAX;
  bench_get_not(&old.bench, &options, TNK_ECONN, "archive.tar");
  CHECK(bench_exists(&old.bench, "out.incomplete/files/archive.tar"));
  get_out(&old, PATH, NULL);
  again = mock_find(old.bench.store, "GET", "/w/archive.tar", 1);
  CHECK(again != NULL);
  CHECK(mock_header(again, "range") != NULL);
  CHECK(strcmp(mock_header(again, "range"), "bytes=0-") != 0);
  close_old(&old);
  tnk__buf_deinit(&gz);
}

TEST(N7_a_url_of_an_archive_that_has_expired_is_renewed) {
  old_t old;

  open_old(&old);
  old.bench.oldest = 2;
  get_out(&old, PATH, NULL);
  CHECK_INT(n_of(&old, "GET", ARCHIVE), 2);
  CHECK_INT(n_of(&old, "GET", URLS), 1);
  close_old(&old);
}

TEST(N7_a_directory_that_is_replaced_is_there_until_the_archive_is_unpacked) {
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;
  old_t old;

  open_old(&old);
  bench_write(&old.bench, "out/mine", "mine");
  options.force = TNK_YES;
  old.bench.files[0].n -= 2000;
  bench_get_not(&old.bench, &options, TNK_ECORRUPT, "truncated");
  bench_check_file(&old.bench, "out/mine", "mine", 4);
  put_tar(&old, &old.tar);
  get_out(&old, PATH, &options);
  CHECK(!bench_exists(&old.bench, "out/mine"));
  close_old(&old);
}

/* As after a disk that lost something: the store's file is the same, by its
 * length and ETag, but what is here is not that. */
TEST(N7_an_archive_that_cannot_be_unpacked_is_fetched_anew) {
  old_t old;

  open_old(&old);
  old.tar.data[3] ^= 1;
  bench_get_not(&old.bench, NULL, TNK_EPROTO, "archive");
  CHECK(!bench_exists(&old.bench, "out.incomplete/files/archive.tar"));
  old.tar.data[3] ^= 1;
  get_out(&old, PATH, NULL);
  CHECK_INT(old.bench.n_sent, 2 * old.tar.len);
  close_old(&old);
}

/* ---- Hostile ones ---- */

static void check_entry(const char *name, char kind, int status,
                        const char *text) {
  tnk__buf_t tar;
  old_t old;

  open_old(&old);
  tnk__buf_init(&tar, test_allocator(), TAR_ROOM);
  tar_entry(&tar, "adapter_config.json", '0', "{}", 2);
  tar_entry(&tar, name, kind, "x", kind == '0' ? 1 : 0);
  tar_end(&tar);
  put_tar(&old, &tar);
  bench_get_not(&old.bench, NULL, status, text);
  CHECK(!bench_exists(&old.bench, "out"));
  CHECK(!bench_exists(&old.bench, "x"));
  CHECK(!bench_exists(&old.bench, "out.incomplete/x"));
  tnk__buf_deinit(&tar);
  close_old(&old);
}

TEST(N7_an_archive_with_what_leaves_the_directory_makes_no_directory) {
  check_entry("../x", '0', TNK_EPROTO, "a name that");
  check_entry("../../x", '0', TNK_EPROTO, "a name that");
  check_entry("/tmp/x", '0', TNK_EPROTO, "a name that");
  check_entry("a/../../x", '0', TNK_EPROTO, "a name that");
  check_entry("x", '1', TNK_EPROTO, "a link");
  check_entry("x", '2', TNK_EPROTO, "a link");
  check_entry("x", '3', TNK_EPROTO, "a device");
  check_entry("x", 'S', TNK_EUNSUPPORTED, "a sparse file");
  check_entry("adapter_config.json", '0', TNK_EPROTO, "twice");
  check_entry("adapter_config.json/x", '0', TNK_EPROTO, "twice");
}

static void check_bytes(const char *bytes, size_t n, int status,
                        const char *text) {
  const tnk__buf_t tar = {.data = (uint8_t *)(uintptr_t)bytes, .len = n};
  old_t old;

  open_old(&old);
  put_tar(&old, &tar);
  bench_get_not(&old.bench, NULL, status, text);
  CHECK(!bench_exists(&old.bench, "out"));
  close_old(&old);
}

TEST(N7_what_is_no_archive_makes_no_directory) {
  static const char zeros[1024];

  check_bytes(bench_big, 4096, TNK_EPROTO, "archive");
  check_bytes("PK\x03\x04 and more of it", 20, TNK_EUNSUPPORTED, "zip");
  check_bytes("tar", 3, TNK_EPROTO, "too short");
  check_bytes(zeros, sizeof(zeros), TNK_EPROTO, "empty");
}

/* Lengths are believed only as far as the archive could hold them. */
TEST(N7_an_archive_that_would_fill_the_disk_is_refused_before_it_does) {
  tnk__buf_t tar;
  old_t old;

  open_old(&old);
  tnk__buf_init(&tar, test_allocator(), TAR_ROOM);
  tar_header(&tar, "adapter_model.bin", '0', 4ull << 30);
  put_tar(&old, &tar);
  bench_get_not(&old.bench, NULL, TNK_ETOOBIG, "too many bytes");
  CHECK(!bench_exists(&old.bench, "out"));
  tnk__buf_deinit(&tar);
  close_old(&old);
}

/* ---- Ends ---- */

static int cancel_after(int n_turns) {
  outcome_t outcome;
  tnk_promise_t *promise;
  int was_done;
  old_t old;

  open_old(&old);
  promise = bench_start(&old.bench, NULL);
  outcome_of(&outcome, tnk_promise_ref(promise));
  for (int i = 0; i < n_turns && outcome.n_done == 0; i++)
    uv_run(&old.bench.script.uv, UV_RUN_ONCE);
  was_done = outcome.n_done > 0;
  tnk_promise_cancel(promise);
  bench_wait(&old.bench, &outcome);
  CHECK(outcome.status == TNK_ECANCELED || outcome.status == TNK_OK);
  bench_settle(&old.bench);
  CHECK_INT(bench_exists(&old.bench, "out"), outcome.status == TNK_OK);
  if (outcome.status == TNK_OK)
    check_out(&old);
  outcome_drop(&outcome);
  tnk_promise_unref(promise);
  close_old(&old);
  return was_done;
}

TEST(N7_a_cancel_is_clean_at_any_time) {
  int n = 0;

  while (!cancel_after(n))
    CHECK((n += 1 + n / 8) < 5000);
  CHECK(n > 10);
}

static int without_memory(long n) {
  outcome_t outcome;
  int did_fail;
  old_t old;

  open_old(&old);
  test_alloc_fail_at(n);
  outcome_of(&outcome, bench_start(&old.bench, NULL));
  bench_wait(&old.bench, &outcome);
  did_fail = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  if (outcome.status != TNK_OK && (outcome.status != TNK_ENOMEM || !did_fail))
    test_fail(__FILE__, __LINE__, "allocation %ld: %s", n, outcome.text);
  CHECK_INT(bench_exists(&old.bench, "out"), outcome.status == TNK_OK);
  outcome_drop(&outcome);
  bench_settle(&old.bench);
  close_old(&old);
  return !did_fail;
}

TEST_LIMIT(N7_each_allocation_may_fail, 60) {
  long n = 0;

  while (!without_memory(n))
    CHECK(++n < 2000);
  CHECK(n > 50);
}
