/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/policy/retry_after.h"
#include "lines.h"

/* Lines: Retry-After-Ms, Retry-After, Date. An empty one is absent. */
static const char *value(char *line) {
  return line != NULL && line[0] != '\0' ? line : NULL;
}

static void check_padded(const char *text, int64_t wall_s, uint64_t ms) {
  size_t n = strlen(text);
  char *padded = malloc(n + 5);

  FUZZ_CHECK(padded != NULL);
  snprintf(padded, n + 5, "\t %s \t", text);
  FUZZ_CHECK(tnk__retry_after(NULL, padded, NULL, wall_s) == ms);
  free(padded);
}

static void check_headers(const uint8_t *data, size_t size, int64_t wall_s) {
  fuzz_lines_t lines;
  const char *ms, *after, *date;
  uint64_t wait;

  fuzz_lines_open(&lines, data, size);
  ms = value(fuzz_lines_next(&lines));
  after = value(fuzz_lines_next(&lines));
  date = value(fuzz_lines_next(&lines));
  wait = tnk__retry_after(ms, after, date, wall_s);
  FUZZ_CHECK(wait <= TNK__RETRY_AFTER_MAX_MS);
  if (after != NULL)
    check_padded(after, wall_s, tnk__retry_after(NULL, after, NULL, wall_s));
  /* The same date twice is no wait, whatever the clock says. */
  if (date != NULL && date[strspn(date, " \t")] > '9')
    FUZZ_CHECK(tnk__retry_after(NULL, date, date, wall_s) <=
               TNK__RETRY_AFTER_MAX_MS);
  tnk__should_retry(after);
  fuzz_lines_close(&lines);
}

static void format(char out[3][64], int64_t unix_s) {
  static const char *const days[] = {"Sun", "Mon", "Tue", "Wed",
                                     "Thu", "Fri", "Sat"};
  static const char *const months[] = {"Jan", "Feb", "Mar", "Apr",
                                       "May", "Jun", "Jul", "Aug",
                                       "Sep", "Oct", "Nov", "Dec"};
  const time_t t = (time_t)unix_s;
  struct tm tm;

  FUZZ_CHECK(gmtime_r(&t, &tm) != NULL);
  snprintf(out[0], 64, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[tm.tm_wday],
           tm.tm_mday, months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour,
           tm.tm_min, tm.tm_sec);
  snprintf(out[1], 64, "%sday, %02d-%s-%02d %02d:%02d:%02d GMT",
           days[tm.tm_wday], tm.tm_mday, months[tm.tm_mon], tm.tm_year % 100,
           tm.tm_hour, tm.tm_min, tm.tm_sec);
  snprintf(out[2], 64, "%s %s %2d %02d:%02d:%02d %04d", days[tm.tm_wday],
           months[tm.tm_mon], tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
           tm.tm_year + 1900);
}

/* Every second from 1971 to 2400 is read from all three forms of a date. */
static void check_calendar(int64_t now_s, int64_t wait_s) {
  char now[3][64], then[3][64];

  format(now, now_s);
  format(then, now_s + wait_s);
  for (int i = 0; i < 3; i++) {
    FUZZ_CHECK(tnk__retry_after(NULL, then[i], NULL, now_s) ==
               (uint64_t)wait_s * 1000);
    FUZZ_CHECK(tnk__retry_after(NULL, then[i], now[(i + 1) % 3], now_s) ==
               (uint64_t)wait_s * 1000);
    FUZZ_CHECK(tnk__retry_after(NULL, now[i], NULL, now_s + wait_s) == 0);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint64_t from = 31536000, until = 13569465600;
  uint64_t at;

  if (size < 8)
    return 0;
  memcpy(&at, data, sizeof(at));
  check_calendar((int64_t)(from + at % (until - from)), 1 + (int64_t)(at % 60));
  check_headers(data + 8, size - 8, (int64_t)(at % until));
  return 0;
}
