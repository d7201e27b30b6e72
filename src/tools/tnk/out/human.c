/* SPDX-License-Identifier: MIT */
#include "tools/tnk/out/human.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/wire/format/time_text.h"

void cli_human_size(char out[CLI_HUMAN_TEXT], int64_t n) {
  static const char *const units[] = {"KB", "MB", "GB", "TB", "PB", "EB"};
  double size = (double)n / 1024;
  size_t unit = 0;

  if (n < 0) {
    snprintf(out, CLI_HUMAN_TEXT, "N/A");
    return;
  }
  if (n < 1024) {
    snprintf(out, CLI_HUMAN_TEXT, "%" PRId64 " B", n);
    return;
  }
  for (; size >= 1024 && unit < 5; unit++)
    size /= 1024;
  snprintf(out, CLI_HUMAN_TEXT, "%.1f %s", size, units[unit]);
}

static void put_count(char out[CLI_HUMAN_TEXT], int64_t n, const char *unit,
                      int is_future) {
  snprintf(out, CLI_HUMAN_TEXT, "%s%" PRId64 " %s%s%s", is_future ? "in " : "",
           n, unit, n == 1 ? "" : "s", is_future ? "" : " ago");
}

void cli_human_age(char out[CLI_HUMAN_TEXT], int64_t us, int64_t now_us) {
  enum { MINUTE = 60, HOUR = 3600, DAY = 86400, WEEK = 7 * DAY };
  int is_future = us > now_us;
  /* Both are in the years 1 to 9999. */
  int64_t s = (is_future ? us - now_us : now_us - us) / 1000000;

  if (s > (int64_t)30 * DAY) {
    char text[TNK__TIME_TEXT];

    tnk__time_write(text, us);
    snprintf(out, CLI_HUMAN_TEXT, "%.10s", text);
  } else if (s > WEEK) {
    put_count(out, s / WEEK, "week", is_future);
  } else if (s >= DAY) {
    put_count(out, s / DAY, "day", is_future);
  } else if (s > HOUR) {
    put_count(out, s / HOUR, "hour", is_future);
  } else if (s > MINUTE) {
    put_count(out, s / MINUTE, "minute", is_future);
  } else {
    snprintf(out, CLI_HUMAN_TEXT, "%s",
             is_future ? "in less than a minute" : "just now");
  }
}

int64_t cli_now_us(void) {
  struct timespec now;

  return clock_gettime(CLOCK_REALTIME, &now) == 0
             ? (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000
             : 0;
}
