#include "local/base/clock.h"

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
