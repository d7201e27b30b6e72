/* SPDX-License-Identifier: MIT */
/* What a sample takes while the server works on it. There may be many
 * thousands, so a change that makes them larger should be noticed. */
#include "task/script.h"

enum {
  N_FIRST = 64, /* make the connections that submissions share */
  N = 128,
  /* Bytes a sample with a prompt of a few tokens, on 64 bits: with a held poll
   * and its connection, and with one poll for all of them. */
  MAX_POLLED = 3328,
  MAX_BATCHED = 1792
};

static tnk_promise_t *samples[N_FIRST + N];

static void start(script_t *script, size_t first, size_t n) {
  for (size_t i = first; i < first + n; i++)
    samples[i] = script_sample(script);
  while (script->n_sent < first + n)
    mock_turns(script->mock, 20);
  mock_turns(script->mock, 200);
}

static size_t bytes_each(script_t *script, const char *flags, size_t n_held) {
  size_t before;

  script_open(script);
  script_flags(script, flags);
  mock_on(script->mock, "POST", "/api/v1/retrieve_future", mock_hold, NULL);
  mock_on(script->mock, "POST", "/api/v1/retrieve_futures", mock_hold, NULL);
  script_sampler(script);
  start(script, 0, N_FIRST);
  before = test_alloc_bytes();
  start(script, N_FIRST, N);
  CHECK_INT(mock_n_held(script->mock), n_held);
  return (test_alloc_bytes() - before) / N;
}

static void stop(script_t *script) {
  script_close(script);
  for (size_t i = 0; i < N_FIRST + N; i++) {
    CHECK_INT(tnk_promise_status(samples[i]), TNK_ECLOSED);
    tnk_promise_unref(samples[i]);
  }
}

static void check(size_t bytes, size_t max) {
  if (bytes > max)
    test_fail(__FILE__, __LINE__, "%zu bytes a sample, at most %zu", bytes,
              max);
}

TEST(a_sample_with_a_held_poll_is_small) {
  script_t script;

  check(bytes_each(&script, "{}", N_FIRST + N), MAX_POLLED);
  stop(&script);
}

TEST(a_sample_that_waits_with_others_is_small) {
  script_t script;

  check(bytes_each(&script, "{\"sample_use_retrieve_futures\":true}", 1),
        MAX_BATCHED);
  stop(&script);
}

/* The most that a pass takes from the program's allocator. */
static size_t bytes_of_pass(const char *flags) {
  outcome_t outcome;
  script_t script;
  size_t before;

  script_open(&script);
  script_flags(&script, flags);
  script_train(&script);
  before = test_alloc_bytes();
  test_alloc_reset_peak();
  script_ok(&script, &outcome, script_pass(&script, 3));
  before = test_alloc_peak() - before;
  outcome_drop(&outcome);
  script_close(&script);
  return before;
}

/* zstd alone takes more than this to compress anything. */
TEST(a_compressed_pass_takes_its_memory_from_the_allocator) {
  enum { LEAST = 64 * 1024 };
  const size_t plain = bytes_of_pass("{}");
  const size_t packed = bytes_of_pass("{\"proto_compress_fwdbwd\":true}");

  if (packed < plain + LEAST)
    test_fail(__FILE__, __LINE__, "%zu bytes, and %zu compressed", plain,
              packed);
}
