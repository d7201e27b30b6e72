/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/time_text.h"

#include <string.h>

#include "support/test.h"

#define DAY INT64_C(86400000000)

static void check_read(const char *text, int64_t expected) {
  int64_t us = -1;

  if (!tnk__time_read(&us, text, strlen(text)) || us != expected)
    test_fail(__FILE__, __LINE__, "%s is %lld, expected %lld", text,
              (long long)us, (long long)expected);
}

TEST(times_are_read_in_all_forms_that_servers_use) {
  check_read("1970-01-01", 0);
  check_read("1970-01-01T00:00:00Z", 0);
  check_read("1970-01-02 00:00", DAY);
  check_read("1970-01-01t01:00:00+01:00", 0);
  check_read("1969-12-31T23:30:00-0030", 0);
  check_read("1970-01-01T02:00:00+02", 0);
  check_read("1970-01-01T00:00:01.5", 1500000);
  check_read("1970-01-01T00:00:00.123456789Z", 123456);
  check_read("1969-12-31T23:59:59.999999Z", -1);
  check_read("2000-02-29T12:00:00z", INT64_C(951825600000000));
  check_read("2026-01-02T03:04:05.000678+00:00", INT64_C(1767323045000678));
  check_read("0001-01-01T00:00:00Z", INT64_C(-62135596800000000));
  check_read("9999-12-31T23:59:59.999999Z", INT64_C(253402300799999999));
}

TEST(what_is_no_time_is_refused) {
  static const char *const bad[] = {"",
                                    "today",
                                    "2026",
                                    "2026-1-2",
                                    "2026-13-01",
                                    "2026-00-01",
                                    "2026-02-29",
                                    "2100-02-29",
                                    "2026-04-31",
                                    "0000-01-01",
                                    "2026-01-02T",
                                    "2026-01-02T03",
                                    "2026-01-02T24:00",
                                    "2026-01-02T03:60",
                                    "2026-01-02T03:04:61",
                                    "2026-01-02T03:04:05.",
                                    "2026-01-02T03:04:05 Z",
                                    "2026-01-02T03:04:05Zx",
                                    "2026-01-02T03:04+1",
                                    "2026-01-02T03:04+24:00",
                                    "2026-01-02T03:04+01:60",
                                    "2026-01-02T03:04 01:00",
                                    "2026-01-02X03:04",
                                    "0001-01-01T00:00:00+00:01",
                                    "9999-12-31T23:59:60Z",
                                    "9999-12-31T23:59:59-00:01"};
  int64_t us = 7;

  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
    if (tnk__time_read(&us, bad[i], strlen(bad[i])))
      test_fail(__FILE__, __LINE__, "%s is read", bad[i]);
  CHECK_INT(us, 7);
}

TEST(numbers_are_seconds_or_milliseconds) {
  int64_t us = 0;

  CHECK(tnk__time_of_number(&us, 1.5));
  CHECK_INT(us, 1500000);
  CHECK(tnk__time_of_number(&us, 1767323045));
  CHECK_INT(us, INT64_C(1767323045000000));
  CHECK(tnk__time_of_number(&us, 1767323045000.0));
  CHECK_INT(us, INT64_C(1767323045000000));
  CHECK(tnk__time_of_number(&us, -1));
  CHECK_INT(us, -1000000);
  CHECK(!tnk__time_of_number(&us, 1e18));
  CHECK(!tnk__time_of_number(&us, -1e18));
  CHECK(!tnk__time_of_number(&us, 1e300));
}

/* Every day from year 1 to year 9999, each with another time of day. */
TEST_LIMIT(what_is_written_reads_back, 30) {
  char text[TNK__TIME_TEXT];
  int64_t back;
  int64_t n = 0;

  for (int64_t us = INT64_C(-62135596800000000);
       us <= INT64_C(253402300799999999); us += DAY - 1234567, n++) {
    tnk__time_write(text, us);
    if (!tnk__time_read(&back, text, strlen(text)) || back != us)
      test_fail(__FILE__, __LINE__, "%lld is written as %s", (long long)us,
                text);
  }
  CHECK(n > 3600000);
  tnk__time_write(text, 0);
  CHECK_STR(text, "1970-01-01T00:00:00Z");
  tnk__time_write(text, INT64_MAX);
  CHECK_STR(text, "9999-12-31T23:59:59.999999Z");
  tnk__time_write(text, INT64_MIN);
  CHECK_STR(text, "0001-01-01T00:00:00Z");
}
