/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/relative.h"

#include <string.h>

#include "lib/base/utf8.h"

/* Control characters affect terminals. On systems where the file may be used
 * later, a backslash separates components, and a colon at the second position
 * names a drive. */
static int is_text(const unsigned char *s, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (s[i] < ' ' || s[i] == 0x7f || s[i] == '\\' ||
        (s[i] == 0xc2 && i + 1 < n && s[i + 1] < 0xa0))
      return 0;
  return n < 2 || s[1] != ':';
}

static const char *check_part(const char *part, size_t n) {
  if (n == 0)
    return "has an empty part";
  if (n > TNK__RELATIVE_PART_MAX)
    return "has a part that is too long";
  if (part[0] == '.' && n == 1)
    return "names a directory";
  if (part[0] == '.' && part[1] == '.' && n == 2)
    return "leaves the directory";
  return NULL;
}

const char *tnk__relative_check(const char *name, size_t n) {
  size_t n_parts = 0;

  if (n == 0)
    return "is empty";
  if (n > TNK__RELATIVE_MAX)
    return "is too long";
  if (name[0] == '/')
    return "is absolute";
  if (name[n - 1] == '/')
    return "names a directory";
  if (tnk__utf8_valid((const uint8_t *)name, n) != n)
    return "is not UTF-8";
  if (!is_text((const unsigned char *)name, n))
    return "has a character that names of files must not have";
  for (size_t at = 0; at <= n; n_parts++) {
    const char *slash = memchr(name + at, '/', n - at);
    const size_t end = slash != NULL ? (size_t)(slash - name) : n;
    const char *why = check_part(name + at, end - at);
    if (why != NULL)
      return why;
    at = end + 1;
  }
  return n_parts > TNK__RELATIVE_MAX_PARTS ? "has too many parts" : NULL;
}

int tnk__relative_clash(const char *a, const char *b) {
  while (*a != '\0' && *a == *b) {
    a++;
    b++;
  }
  return (*a == '\0' && (*b == '\0' || *b == '/')) || (*b == '\0' && *a == '/');
}
