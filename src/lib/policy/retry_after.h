/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_POLICY_RETRY_AFTER_H
#define TNK_LIB_POLICY_RETRY_AFTER_H

#include <stdint.h>

/* The longest delay a server may ask for. A longer one is ignored. */
#define TNK__RETRY_AFTER_MAX_MS 60000

/*
 * The delay a server asks for, 1..TNK__RETRY_AFTER_MAX_MS. 0 if it gave none,
 * or none that is honored. Header values are NUL-terminated, NULL when absent.
 *
 * `retry_after_ms` (a number of ms) takes precedence. `retry_after` is a number
 * of seconds or an HTTP date. A date is compared with the response's own `date`
 * if that is valid, else with `wall_s` (Unix seconds).
 */
uint64_t tnk__retry_after(const char *retry_after_ms, const char *retry_after,
                          const char *date, int64_t wall_s);

/* Parse a date in one of the three HTTP formats into Unix seconds. `now_s`
 * resolves years of two digits. Returns 0 if it is not a date. */
int tnk__http_date_read(const char *text, int64_t now_s, int64_t *unix_s);

/* Value of the header x-should-retry: exactly "true", exactly "false", or
 * neither. */
typedef enum {
  TNK__SHOULD_RETRY_UNSAID = 0,
  TNK__SHOULD_RETRY_YES = 1,
  TNK__SHOULD_RETRY_NO = 2
} tnk__should_retry_t;

tnk__should_retry_t tnk__should_retry(const char *value);

#endif
