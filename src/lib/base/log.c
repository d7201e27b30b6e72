/* SPDX-License-Identifier: MIT */
#include "lib/base/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "lib/base/limits.h"
#include "lib/base/text.h"

void tnk__log(const tnk_logger_t *logger, tnk_log_level_t level,
              const char *subject, const char *format, ...) {
  char line[TNK__MAX_LOG_LINE];
  size_t length;
  va_list args;
  int n;

  if (logger == NULL || logger->write == NULL || level > logger->level)
    return;
  va_start(args, format);
  n = vsnprintf(line, sizeof(line), format, args);
  va_end(args);
  if (n < 0)
    return;
  length = (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1;
  /* A server's text must not be able to forge a second line. */
  tnk__text_clean(line, length);
  logger->write(level, subject, line, length, logger->user);
}
