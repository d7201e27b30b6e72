#ifndef TNK_LIB_POLICY_RETRY_AFTER_H
#define TNK_LIB_POLICY_RETRY_AFTER_H

#include <stdint.h>

/* The longest wait a server may ask for; a longer one counts as none. */
#define TNK__RETRY_AFTER_MAX_MS 60000

/*
 * The delay a server asks for, 1..TNK__RETRY_AFTER_MAX_MS, or 0: it named
 * none that is honoured. Header values are NUL-terminated, NULL when absent.
 *
 * `retry_after_ms` (a number of ms) goes first; then `retry_after`, a number
 * of seconds or an HTTP date, which is compared with the answer's own `date`
 * when that can be read and with `wall_s` (Unix seconds) otherwise.
 */
uint64_t tnk__retry_after(const char *retry_after_ms, const char *retry_after,
                          const char *date, int64_t wall_s);

/* Read a date in one of the three forms that HTTP has, as Unix seconds. `now_s`
 * is for years of two digits. 0: it is none. */
int tnk__http_date_read(const char *text, int64_t now_s, int64_t *unix_s);

/* What the header x-should-retry says: exactly "true", "false", or nothing. */
typedef enum {
  TNK__SHOULD_RETRY_UNSAID = 0,
  TNK__SHOULD_RETRY_YES = 1,
  TNK__SHOULD_RETRY_NO = 2
} tnk__should_retry_t;

tnk__should_retry_t tnk__should_retry(const char *value);

#endif
