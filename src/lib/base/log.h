/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_BASE_LOG_H
#define TNK_LIB_BASE_LOG_H

#include "tnk/common.h"

/*
 * Write a log line. `subject` names the part of the library. The text begins
 * with the id of the object concerned. Callers never pass credentials, prompts,
 * bodies or signed addresses. A NULL logger, or one below `level`, costs one
 * comparison.
 */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
void tnk__log(const tnk_logger_t *logger, tnk_log_level_t level,
              const char *subject, const char *format, ...);

#endif
