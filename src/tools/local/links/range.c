#include "tools/local/links/range.h"

#include <string.h>

/* Parse a digit string; large numbers saturate. Returns its end, or NULL
 * without a digit. */
static const char *number(const char *at, uint64_t *out) {
  const char *start = at;
  uint64_t n = 0;

  for (; *at >= '0' && *at <= '9'; at++)
    n = n > UINT64_MAX / 20 ? UINT64_MAX / 20 : n * 10 + (uint64_t)(*at - '0');
  *out = n;
  return at > start ? at : NULL;
}

/* "-N": the last N bytes. */
static local_range_t suffix(const char *at, uint64_t size) {
  local_range_t range = {LOCAL_RANGE_ALL, 0, size};
  uint64_t n;

  at = number(at, &n);
  if (at == NULL || *at != '\0')
    return range;
  range.kind = n > 0 && size > 0 ? LOCAL_RANGE_PART : LOCAL_RANGE_NONE;
  range.first = n < size ? size - n : 0;
  return range;
}

local_range_t local_range_read(const char *text, uint64_t size) {
  static const char unit[] = "bytes=";
  const local_range_t all = {LOCAL_RANGE_ALL, 0, size};
  local_range_t range = all;
  uint64_t last;
  const char *at;

  if (text == NULL || strncmp(text, unit, sizeof(unit) - 1) != 0)
    return all;
  text += sizeof(unit) - 1;
  if (*text == '-')
    return suffix(text + 1, size);
  at = number(text, &range.first);
  if (at == NULL || *at++ != '-')
    return all;
  if (*at != '\0') {
    at = number(at, &last);
    /* Several ranges may be answered with the whole object. */
    if (at == NULL || *at != '\0' || last < range.first)
      return all;
    range.end = last < size ? last + 1 : size;
  }
  range.kind = range.first < size ? LOCAL_RANGE_PART : LOCAL_RANGE_NONE;
  return range;
}
