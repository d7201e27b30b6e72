/* SPDX-License-Identifier: MIT */
#include "tools/local/base/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <uv.h>

int64_t local_wall_ms(void) {
  uv_timeval64_t now;

  if (uv_gettimeofday(&now) != 0)
    return 0;
  return now.tv_sec * 1000 + now.tv_usec / 1000;
}

void local_time_text(int64_t ms, char *out) {
  time_t seconds = (time_t)(ms / 1000);
  struct tm tm;
  size_t n;

  if (gmtime_r(&seconds, &tm) == NULL)
    memset(&tm, 0, sizeof(tm));
  n = strftime(out, 24, "%Y-%m-%dT%H:%M:%S", &tm);
  snprintf(out + n, 32 - n, ".%03uZ", (unsigned)(ms % 1000) % 1000u);
}

/* strftime() would use the program's locale. */
void local_http_date(int64_t ms, char *out) {
  static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed",
                                  "Thu", "Fri", "Sat"};
  static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  time_t seconds = (time_t)(ms / 1000);
  struct tm tm;

  if (gmtime_r(&seconds, &tm) == NULL)
    memset(&tm, 0, sizeof(tm));
  snprintf(out, 32, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT",
           days[(unsigned)tm.tm_wday % 7], (unsigned)tm.tm_mday % 100u,
           months[(unsigned)tm.tm_mon % 12],
           ((unsigned)tm.tm_year + 1900) % 10000u, (unsigned)tm.tm_hour % 100u,
           (unsigned)tm.tm_min % 100u, (unsigned)tm.tm_sec % 100u);
}
