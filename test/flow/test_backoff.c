/* SPDX-License-Identifier: MIT */

#include "lib/policy/retry.h"
#include "support/test.h"

static const uint64_t request_maxima[] = {500,  1000,  2000,  4000,
                                          8000, 10000, 10000, 10000};
static const uint64_t slow[] = {1000,  2000,  4000,  8000,
                                16000, 30000, 30000, 30000};

TEST(delay_of_a_request_at_each_n) {
  for (uint32_t n = 0; n < 8; n++) {
    CHECK_INT(tnk__backoff_request_ms(n, 0), request_maxima[n]);
    CHECK_NEAR((double)tnk__backoff_request_ms(n, 0.5),
               (double)(request_maxima[n] * 7 / 8), 1);
    CHECK(tnk__backoff_request_ms(n, 0.999999) >= request_maxima[n] * 3 / 4);
  }
}

TEST(delay_of_the_outer_loop_at_each_n) {
  for (uint32_t n = 0; n < 8; n++) {
    CHECK_INT(tnk__backoff_slow_ms(n, 0), slow[n]);
    CHECK_INT(tnk__backoff_slow_ms(n, 0.5), slow[n] * 7 / 8);
    CHECK(tnk__backoff_slow_ms(n, 0.999999) >= slow[n] * 3 / 4);
  }
}

TEST(delay_of_a_new_sample_at_each_n) {
  for (uint32_t n = 0; n < 8; n++) {
    uint64_t high = request_maxima[n] * 5 / 4;

    CHECK_INT(tnk__backoff_sample_ms(n, 0), request_maxima[n] * 3 / 4);
    CHECK_INT(tnk__backoff_sample_ms(n, 0.5), request_maxima[n]);
    CHECK_NEAR((double)tnk__backoff_sample_ms(n, 0.9999999),
               (double)(high < 10000 ? high : 10000), 1);
  }
}

TEST(delays_stay_at_their_maximum_for_any_n) {
  static const uint32_t ns[] = {10, 31, 32, 63, 64, 65, UINT32_MAX};

  for (size_t i = 0; i < sizeof(ns) / sizeof(ns[0]); i++) {
    CHECK_INT(tnk__backoff_request_ms(ns[i], 0), 10000);
    CHECK_INT(tnk__backoff_slow_ms(ns[i], 0), 30000);
    CHECK_INT(tnk__backoff_sample_ms(ns[i], 0.9), 10000);
  }
}

TEST(a_bad_random_number_keeps_the_delay_in_range) {
  static const double us[] = {-1, 1, 2, 1e300, -1e300};

  for (size_t i = 0; i < sizeof(us) / sizeof(us[0]); i++) {
    CHECK_INT(tnk__backoff_request_ms(2, us[i]), 2000);
    CHECK_INT(tnk__backoff_sample_ms(2, us[i]), 1500);
    CHECK_INT(tnk__backoff_slow_ms(2, us[i]), 4000);
  }
}

/* ---- The repeats of one call ---- */

static tnk__verdict_t verdict_of(tnk__schedule_t schedule) {
  tnk__verdict_t verdict = {.action = TNK__ACTION_RETRY,
                            .schedule = schedule,
                            .err = TNK_ESERVER,
                            .effect = TNK__EFFECT_UNKNOWN,
                            .counts = 1};

  return verdict;
}

static int next(tnk__retry_t *retry, const tnk__verdict_t *verdict,
                uint64_t server_ms, uint64_t now_ms, uint64_t *delay_ms) {
  return tnk__retry_next(retry, verdict, TNK__RETRY_PATIENCE_MS, server_ms,
                         now_ms, 0, delay_ms);
}

TEST(request_schedule_is_limited_by_number_only) {
  tnk__verdict_t verdict = verdict_of(TNK__SCHEDULE_REQUEST);
  tnk__retry_t retry;
  uint64_t delay_ms;

  tnk__retry_init(&retry, 8, 0);
  for (uint32_t n = 0; n < 8; n++) {
    CHECK_INT(next(&retry, &verdict, 0, 10000000, &delay_ms), 1);
    CHECK_INT(delay_ms, request_maxima[n]);
  }
  CHECK_INT(next(&retry, &verdict, 0, 10000000, &delay_ms), 0);
}

TEST(no_retries_means_one_attempt) {
  static const tnk__schedule_t schedules[] = {TNK__SCHEDULE_REQUEST,
                                              TNK__SCHEDULE_LONG};
  tnk__retry_t retry;

  for (size_t i = 0; i < 2; i++) {
    tnk__verdict_t verdict = verdict_of(schedules[i]);
    uint64_t delay_ms = 77;

    tnk__retry_init(&retry, 0, 0);
    CHECK_INT(next(&retry, &verdict, 500, 0, &delay_ms), 0);
    CHECK_INT(delay_ms, 0);
  }
}

TEST(no_schedule_means_no_retry) {
  tnk__verdict_t verdict = verdict_of(TNK__SCHEDULE_NONE);
  tnk__retry_t retry;
  uint64_t delay_ms;

  tnk__retry_init(&retry, 10, 0);
  CHECK_INT(next(&retry, &verdict, 500, 0, &delay_ms), 0);
}

/* 1+2+4+8+16 = 31 s, then 30 s each: the eighth of those would end at 301 s
 * and is cut, the last attempt is made at 300 s. A limit of eight retries has
 * no say. */
TEST(C5_the_long_schedule_ends_300_s_after_the_first_failure) {
  tnk__verdict_t verdict = verdict_of(TNK__SCHEDULE_LONG);
  tnk__retry_t retry;
  uint64_t now_ms = 5000;
  uint64_t delay_ms;
  int n = 0;

  tnk__retry_init(&retry, 8, 0);
  while (next(&retry, &verdict, 0, now_ms, &delay_ms)) {
    if (n < 8)
      CHECK_INT(delay_ms, slow[n]);
    now_ms += delay_ms;
    n++;
  }
  CHECK_INT(now_ms, 305000);
  CHECK_INT(n, 14);
}

TEST(C5_patience_of_hours_has_no_number_of_attempts) {
  const uint64_t patience_ms = 6 * 3600 * 1000;
  tnk__verdict_t verdict = verdict_of(TNK__SCHEDULE_LONG);
  tnk__retry_t retry;
  uint64_t now_ms = 5000;
  uint64_t delay_ms;
  int n = 0;

  tnk__retry_init(&retry, 10, 0);
  while (
      tnk__retry_next(&retry, &verdict, patience_ms, 0, now_ms, 0, &delay_ms)) {
    now_ms += delay_ms;
    n++;
  }
  CHECK_INT(now_ms, 5000 + patience_ms);
  CHECK_INT(n, 5 + (21600 - 31 + 29) / 30);
  CHECK_INT(tnk__retry_left_ms(&retry, patience_ms, now_ms - 7), 7);
  CHECK_INT(
      tnk__retry_next(&retry, &verdict, UINT64_MAX, 0, now_ms, 0, &delay_ms),
      1);
}

TEST(S3_15_the_server_decides_when_not_whether) {
  tnk__verdict_t verdict = verdict_of(TNK__SCHEDULE_LONG);
  tnk__retry_t retry;
  uint64_t delay_ms;

  tnk__retry_init(&retry, 2, 0);
  CHECK_INT(next(&retry, &verdict, 42, 0, &delay_ms), 1);
  CHECK_INT(delay_ms, 42);
  /* It never reaches beyond the patience. */
  CHECK_INT(next(&retry, &verdict, 60000, 299000, &delay_ms), 1);
  CHECK_INT(delay_ms, 1000);
  CHECK_INT(next(&retry, &verdict, 42, 300000, &delay_ms), 0);
}
