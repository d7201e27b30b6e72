/* SPDX-License-Identifier: MIT */
#include "lib/policy/retry_after.h"

#include <stdlib.h>

#include "support/test.h"

#define NOW_S INT64_C(784111777) /* Sun, 06 Nov 1994 08:49:37 GMT */

static uint64_t after(const char *text) {
  return tnk__retry_after(NULL, text, NULL, NOW_S);
}

typedef struct {
  const char *text;
  uint64_t ms;
} row_t;

#define CHECK_ROWS(rows, call)                                                 \
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {                \
    const char *text = (rows)[i].text;                                         \
    uint64_t got = call;                                                       \
    if (got != (rows)[i].ms)                                                   \
      test_fail(__FILE__, __LINE__, "'%s' is %llu, expected %llu", text,       \
                (unsigned long long)got, (unsigned long long)(rows)[i].ms);    \
  }

TEST(S1_5_retry_after_in_seconds) {
  static const row_t rows[] = {
      {"1", 1000},
      {"60", 60000},
      {"0.5", 500},
      {"1.25", 1250},
      {" 7 ", 7000},
      {"+3", 3000},
      {".5", 500},
      {"5.", 5000},
      {"1e1", 10000},
      {"1.5E+0", 1500},
      {"50e-1", 5000},
      {"0.0001", 1},
      {"0060", 60000},
      {"0", 0},
      {"0.0", 0},
      {"-1", 0},
      {"-0.5", 0},
      {"60.001", 0},
      {"61", 0},
      {"86400", 0},
      {"1e400", 0},
      {"1e99999999999", 0},
      {"99999999999999999999999999999999", 0},
      {"1e-99999999999", 0},
      {"0.000000000000000000000000000000000000001e39", 1000},
  };

  CHECK_ROWS(rows, after(text));
}

TEST(S1_5_retry_after_in_milliseconds) {
  static const row_t rows[] = {
      {"1", 1},         {"250", 250}, {"0.2", 1}, {"60000", 60000},
      {"1500.5", 1501}, {"60001", 0}, {"0", 0},   {"-3", 0},
  };

  /* Whatever it says goes before the other header, if it is a number. */
  CHECK_ROWS(rows, tnk__retry_after(text, "5", NULL, NOW_S));
}

TEST(S1_5_milliseconds_that_are_no_number_give_way) {
  CHECK_INT(tnk__retry_after("soon", "5", NULL, NOW_S), 5000);
  CHECK_INT(tnk__retry_after("", "5", NULL, NOW_S), 5000);
  CHECK_INT(tnk__retry_after("soon", NULL, NULL, NOW_S), 0);
  CHECK_INT(tnk__retry_after("Sun, 06 Nov 1994 08:49:40 GMT", "5", NULL, NOW_S),
            5000);
}

TEST(S1_5_no_header_is_no_wish) {
  CHECK_INT(tnk__retry_after(NULL, NULL, NULL, NOW_S), 0);
  CHECK_INT(tnk__retry_after(NULL, NULL, "Sun, 06 Nov 1994 08:49:37 GMT", 0),
            0);
}

static const row_t dates[] = {
    /* the three forms */
    {"Sun, 06 Nov 1994 08:49:40 GMT", 3000},
    {"Sunday, 06-Nov-94 08:49:40 GMT", 3000},
    {"Sun Nov  6 08:49:40 1994", 3000},
    {"Sun Nov 06 08:49:40 1994", 3000},
    /* tolerated */
    {"Wed, 06 Nov 1994 08:49:40 GMT", 3000},
    {"sun, 06 nov 1994 08:49:40 gmt", 3000},
    {"SUN, 06 NOV 1994 08:49:40 GMT", 3000},
    {"  Sun, 06 Nov 1994 08:49:40 GMT \t", 3000},
    {"Sun, 6 Nov 1994 08:49:40 GMT", 3000},
    {"Sun, 06 Nov 1994 08:49:40 UTC", 3000},
    {"Sun, 06 Nov 1994 08:49:60 GMT", 23000},
    {"Sun, 06 Nov 1994 08:50:37 GMT", 60000},
    /* too far, or over */
    {"Sun, 06 Nov 1994 08:50:38 GMT", 0},
    {"Sun, 06 Nov 1994 08:49:37 GMT", 0},
    {"Sun, 06 Nov 1994 08:49:36 GMT", 0},
    {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
    {"Mon, 01 Jan 0000 00:00:00 GMT", 0},
    {"Fri, 31 Dec 9999 23:59:59 GMT", 0},
    /* no dates */
    {"Sun, 30 Feb 1994 08:49:40 GMT", 0},
    {"Sun, 00 Nov 1994 08:49:40 GMT", 0},
    {"Sun, 31 Nov 1994 08:49:40 GMT", 0},
    {"Sun, 06 Nov 1994 24:49:40 GMT", 0},
    {"Sun, 06 Nov 1994 08:60:40 GMT", 0},
    {"Sun, 06 Nov 1994 08:49:61 GMT", 0},
    {"Sun, 06 Nov 1994 08:49:40", 0},
    {"Sun, 06 Nov 1994 08:49:40 EST", 0},
    {"Sun, 06 Nov 1994 08:49:40 +0000", 0},
    {"Sun, 06 Nov 1994 8:49:40 GMT", 0},
    {"Sun, 06 Nov 994 08:49:40 GMT", 0},
    {"Sun, 06 Nov 11994 08:49:40 GMT", 0},
    {"Sun, 06-Nov 1994 08:49:40 GMT", 0},
    {"Sun, 006 Nov 1994 08:49:40 GMT", 0},
    {"Sun, 06 Nov 1994 08:49:40 GMT x", 0},
    {"Sun, 06 Xov 1994 08:49:40 GMT", 0},
    {"06 Nov 1994 08:49:40 GMT", 0},
    {"1994-11-06T08:49:40Z", 0},
    {"Sun Nov  6 08:49:40 94", 0},
    {"Sun", 0},
    {"Sun,", 0},
    {"Su", 0},
    {"S", 0},
};

TEST(S1_5_retry_after_dates) {
  CHECK_ROWS(dates, after(text));
}

TEST(S1_5_dates_do_not_depend_on_the_environment) {
  setenv("LC_ALL", "tr_TR.UTF-8", 1);
  setenv("TZ", "America/New_York", 1);
  CHECK_ROWS(dates, after(text));
}

TEST(S1_5_garbage_is_no_wish) {
  static const row_t rows[] = {
      {"", 0},     {" ", 0},   {"soon", 0}, {"1 2", 0},      {"1,5", 0},
      {"0x10", 0}, {"--1", 0}, {".", 0},    {"e5", 0},       {"5e", 0},
      {"5s", 0},   {"nan", 0}, {"inf", 0},  {"\xff\xfe", 0}, {"1_000", 0},
  };

  CHECK_ROWS(rows, after(text));
}

TEST(S1_5_the_answers_own_date_is_now) {
  static const char then[] = "Sun, 06 Nov 1994 08:49:40 GMT";

  CHECK_INT(tnk__retry_after(NULL, then, "Sun, 06 Nov 1994 08:49:30 GMT", 0),
            10000);
  CHECK_INT(
      tnk__retry_after(NULL, then, "Sunday, 06-Nov-94 08:49:30 GMT", NOW_S),
      10000);
  CHECK_INT(tnk__retry_after(NULL, then, "yesterday", NOW_S), 3000);
  CHECK_INT(tnk__retry_after(NULL, then, "", NOW_S), 3000);
}

TEST(S1_5_years_of_two_digits_are_near_now) {
  int64_t y2026 = INT64_C(1767225599); /* 31 Dec 2025 23:59:59 */
  int64_t y1999 = INT64_C(946684799);  /* 31 Dec 1999 23:59:59 */

  CHECK_INT(
      tnk__retry_after(NULL, "Thursday, 01-Jan-26 00:00:05 GMT", NULL, y2026),
      6000);
  CHECK_INT(
      tnk__retry_after(NULL, "Saturday, 01-Jan-00 00:00:05 GMT", NULL, y1999),
      6000);
  CHECK_INT(
      tnk__retry_after(NULL, "Sunday, 06-Nov-94 08:49:40 GMT", NULL, y2026), 0);
}

TEST(S1_5_leap_years) {
  static const struct {
    const char *text;
    int64_t day; /* since 1970 */
  } rows[] = {
      {"Tue, 29 Feb 2000 00:00:10 GMT", 11016},
      {"Wed, 01 Mar 2000 00:00:10 GMT", 11017},
      {"Thu, 29 Feb 2024 00:00:10 GMT", 19782},
      {"Mon, 01 Mar 2100 00:00:10 GMT", 47541},
      {"Thu, 01 Jan 1970 00:00:10 GMT", 0},
      {"Wed, 31 Dec 1969 00:00:10 GMT", -1},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    CHECK_INT(tnk__retry_after(NULL, rows[i].text, NULL, rows[i].day * 86400),
              10000);
  CHECK_INT(tnk__retry_after(NULL, "Mon, 29 Feb 2100 00:00:10 GMT", NULL,
                             INT64_C(47540) * 86400),
            0);
}

/* Damaged dates: any result is fine that is within the limit. */
TEST(S1_5_random_damage_stays_within_the_limit) {
  static const char date[] = "Sunday, 06-Nov-94 08:49:40 GMT";
  uint64_t seed = 3;

  for (int n = 0; n < 20000; n++) {
    char text[sizeof(date)];

    for (size_t i = 0; i < sizeof(date); i++)
      text[i] = date[i];
    for (int k = 0; k < 2; k++)
      text[test_random(&seed) % (sizeof(date) - 1)] =
          (char)(test_random(&seed) % 256);
    CHECK(after(text) <= TNK__RETRY_AFTER_MAX_MS);
  }
}

TEST(S3_2a_should_retry_is_exact) {
  CHECK_INT(tnk__should_retry(NULL), TNK__SHOULD_RETRY_UNSAID);
  CHECK_INT(tnk__should_retry("true"), TNK__SHOULD_RETRY_YES);
  CHECK_INT(tnk__should_retry("false"), TNK__SHOULD_RETRY_NO);
  CHECK_INT(tnk__should_retry("True"), TNK__SHOULD_RETRY_UNSAID);
  CHECK_INT(tnk__should_retry("FALSE"), TNK__SHOULD_RETRY_UNSAID);
  CHECK_INT(tnk__should_retry("true "), TNK__SHOULD_RETRY_UNSAID);
  CHECK_INT(tnk__should_retry("1"), TNK__SHOULD_RETRY_UNSAID);
  CHECK_INT(tnk__should_retry(""), TNK__SHOULD_RETRY_UNSAID);
}
