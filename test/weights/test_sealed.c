/* SPDX-License-Identifier: MIT */
/* Files that come encrypted with age, and the key that opens them. */
#include "weights/bench.h"

#include "lib/files/age/age.h"

static const char recipient[] =
    "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj";
static const char identity[] =
    "AGE-SECRET-KEY-"
    "1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";
/* That of somebody else. */
static const char other[] =
    "AGE-SECRET-KEY-"
    "1ZUT3W9CHZUT3W9CHZUT3W9CHZUT3W9CHZUT3W9CHZUT3W9CHZUTSGU5XK6";

enum { SEALED = BIG + 2000 };
static char sealed[SEALED];

static int random_bytes(void *user, unsigned char *out, size_t n) {
  uint64_t *state = user;

  for (size_t i = 0; i < n; i++)
    out[i] = (unsigned char)test_random(state);
  return 0;
}

static size_t seal(char *to, const char *data, size_t n) {
  uint8_t keys[1][TNK__AGE_KEY];
  uint64_t state = 5;
  tnk__age_seal_t sealing;
  tnk__buf_t out;
  size_t len;

  CHECK(tnk__age_recipient_read(keys[0], recipient) == NULL);
  tnk__buf_init(&out, test_allocator(), SEALED);
  CHECK_INT(tnk__age_seal_init(&sealing, test_allocator(),
                               (const uint8_t(*)[TNK__AGE_KEY])keys, 1,
                               random_bytes, &state, &out),
            TNK_OK);
  CHECK_INT(tnk__age_seal_feed(&sealing, &out, data, n), TNK_OK);
  CHECK_INT(tnk__age_seal_finish(&sealing, &out), TNK_OK);
  tnk__age_seal_deinit(&sealing);
  len = out.len;
  memcpy(to, out.data, len);
  tnk__buf_deinit(&out);
  return len;
}

/* A large file in a folder, encrypted, and one that is not. */
static void open_sealed(bench_t *bench) {
  bench_open(bench);
  bench_add(bench, "deep/model.bin.age", sealed, seal(sealed, bench_big, BIG),
            "\"s\"");
  bench_add(bench, "plain.txt", "plain", 5, "\"p\"");
}

static tnk_weights_options_t with(const char *key) {
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;

  options.identity = key;
  return options;
}

TEST(sealed_files_are_opened_with_an_identity) {
  const tnk_weights_options_t options = with(identity);
  bench_t bench;
  outcome_t outcome;

  open_sealed(&bench);
  bench_get(&bench, &outcome, &options);
  CHECK_INT(outcome.status, TNK_OK);
  CHECK_INT(tnk_promise_weights(outcome.promise)->n_bytes, BIG + 5);
  bench_check_file(&bench, "out/deep/model.bin", bench_big, BIG);
  bench_check_file(&bench, "out/plain.txt", "plain", 5);
  CHECK(!bench_exists(&bench, "out/deep/model.bin.age"));
  CHECK(!bench_exists(&bench, "out.incomplete"));
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(sealed_files_come_as_they_are_without_an_identity) {
  bench_t bench;
  outcome_t outcome;

  open_sealed(&bench);
  bench_get(&bench, &outcome, NULL);
  CHECK_INT(outcome.status, TNK_OK);
  bench_check_file(&bench, "out/plain.txt", "plain", 5);
  CHECK(bench_exists(&bench, "out/deep/model.bin.age"));
  outcome_drop(&outcome);
  bench_close(&bench);
}

/* A download that fails for its contents; the right ones come later without
 * being fetched again. */
static void check_refused(size_t flip, size_t n, int status, const char *text) {
  const tnk_weights_options_t options = with(identity);
  bench_t bench;

  open_sealed(&bench);
  if (flip > 0)
    sealed[flip] ^= 1;
  if (n > 0)
    bench.files[0].n = n;
  bench_get_not(&bench, &options, status, text);
  CHECK(!bench_exists(&bench, "out"));
  bench_close(&bench);
}

TEST(sealed_files_that_were_changed_are_refused) {
  check_refused(BIG / 2, 0, TNK_ECORRUPT, "model.bin.age: ");
}

TEST(sealed_files_that_were_cut_are_refused) {
  check_refused(0, BIG / 2, TNK_ECORRUPT, "model.bin.age: ");
}

TEST(sealed_files_that_are_none_are_refused) {
  check_refused(3, 0, TNK_EPROTO, "model.bin.age: ");
}

TEST(sealed_files_wait_for_the_right_key) {
  const tnk_weights_options_t right = with(identity);
  tnk_weights_options_t wrong = with(NULL);
  bench_t bench;
  outcome_t outcome;

  open_sealed(&bench);
  /* What is no key is said at once. */
  wrong.identity = "AGE-SECRET-KEY-1NONE";
  bench_get_not(&bench, &wrong, TNK_EINVAL, "the identity");
  CHECK_INT(mock_n_requests(bench.script.mock), 0);
  wrong.identity = other;
  bench_get_not(&bench, &wrong, TNK_EINVAL, "model.bin.age: ");
  CHECK(!bench_exists(&bench, "out"));
  bench_get(&bench, &outcome, &right);
  CHECK_INT(outcome.status, TNK_OK);
  bench_check_file(&bench, "out/deep/model.bin", bench_big, BIG);
  /* What has come is not fetched again for another key. */
  CHECK_INT(tnk_promise_weights(outcome.promise)->n_fetched, 2);
  outcome_drop(&outcome);
  bench_close(&bench);
}

static int without_memory(long n) {
  const tnk_weights_options_t options = with(identity);
  bench_t bench;
  outcome_t outcome;
  int did_fail;

  open_sealed(&bench);
  test_alloc_fail_at(n);
  outcome_of(&outcome, bench_start(&bench, &options));
  bench_wait(&bench, &outcome);
  did_fail = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  if (outcome.status != TNK_OK && (outcome.status != TNK_ENOMEM || !did_fail))
    test_fail(__FILE__, __LINE__, "allocation %ld: %s", n, outcome.text);
  CHECK_INT(bench_exists(&bench, "out"), outcome.status == TNK_OK);
  outcome_drop(&outcome);
  bench_settle(&bench);
  bench_close(&bench);
  return !did_fail;
}

/* Behind what every download needs. */
TEST_LIMIT(sealed_files_and_each_allocation, 60) {
  long n = 90;

  while (!without_memory(n))
    CHECK(++n < 2000);
}
