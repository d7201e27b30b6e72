/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <string.h>

#include "gateway/schema/pattern.h"
#include "lib/base/utf8.h"

/* A regular expression of a schema, a line feed, and a text that is searched.
 */

enum { MAX = 4096, PLENTY = 1 << 30 };

static int find(const tnk__gw_pattern_t *pattern, const char *text, size_t n,
                size_t budget) {
  const size_t given = budget;
  const int is_there = tnk__gw_pattern_find(pattern, text, n, &budget);

  FUZZ_CHECK(is_there >= -1 && is_there <= 1 && budget <= given);
  /* At most all states for each character, and the end. A class counts for
   * its ranges too. */
  FUZZ_CHECK(given - budget <=
             (n + 1) * (1 + pattern->n_states +
                        pattern->n_states * (pattern->ranges.n / 8)));
  return is_there;
}

/* A pattern is the same in a group, and beside itself. */
static void compare(const char *expression, size_t n, const char *text,
                    size_t n_text, int is_there) {
  static const char *const parts[] = {"(?:", ")|(?:", "){1}"};
  char other[2 * MAX + 16];
  tnk__gw_pattern_t pattern;
  size_t at = 0;

  for (int i = 0; i < 3; i++) {
    memcpy(other + at, parts[i], strlen(parts[i]));
    at += strlen(parts[i]);
    if (i < 2)
      memcpy(other + at, expression, n);
    at += i < 2 ? n : 0;
  }
  if (tnk__gw_pattern_read(&pattern, other, at) == NULL)
    FUZZ_CHECK(find(&pattern, text, n_text, PLENTY) == is_there);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint8_t *end = size > 0 ? memchr(data, '\n', size) : NULL;
  const char *expression = (const char *)data, *text;
  tnk__gw_pattern_t pattern;
  size_t n, n_text;
  const char *why;
  int is_there;

  if (end == NULL || size > MAX || tnk__utf8_valid(data, size) != size)
    return 0;
  n = (size_t)(end - data);
  text = expression + n + 1;
  n_text = size - n - 1;
  why = tnk__gw_pattern_read(&pattern, expression, n);
  FUZZ_CHECK(tnk__gw_pattern_cost(&pattern) <= 2048);
  if (why != NULL) {
    FUZZ_CHECK(why[0] != '\0');
    return 0;
  }
  FUZZ_CHECK(pattern.n_states <= TNK__GW_PATTERN_STATES &&
             pattern.ranges.n <= TNK__GW_EXPRESSION_RANGES);
  is_there = find(&pattern, text, n_text, PLENTY);
  FUZZ_CHECK(is_there >= 0);
  if (find(&pattern, text, n_text, 100) != is_there)
    FUZZ_CHECK(find(&pattern, text, n_text, 100) == -1);
  compare(expression, n, text, n_text, is_there);
  return 0;
}
