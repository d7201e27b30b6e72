/* SPDX-License-Identifier: MIT */
#include "tools/common/base/input.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/utf8.h"

static char *read_all(FILE *from, size_t *n, char *why, size_t n_why) {
  size_t cap = 65536;
  char *text = malloc(cap), *more;

  *n = 0;
  while (text != NULL) {
    *n += fread(text + *n, 1, cap - *n - 1, from);
    /* A short read: the end, or an error. */
    if (*n < cap - 1)
      break;
    more = cap > SIZE_MAX / 4 ? NULL : realloc(text, cap * 2);
    if (more == NULL)
      free(text);
    text = more;
    cap *= 2;
  }
  if (text == NULL) {
    (void)snprintf(why, n_why, "the input is larger than the memory");
    return NULL;
  }
  if (ferror(from)) {
    (void)snprintf(why, n_why, "cannot read: %s", strerror(errno));
    free(text);
    return NULL;
  }
  text[*n] = '\0';
  return text;
}

char *cli_read_file(const char *path, size_t *n, char *why, size_t n_why) {
  char *text, reason[256];
  FILE *from;

  if (strcmp(path, "-") == 0)
    return read_all(stdin, n, why, n_why);
  from = fopen(path, "rb");
  if (from == NULL) {
    (void)snprintf(why, n_why, "cannot open %s: %s", path, strerror(errno));
    return NULL;
  }
  text = read_all(from, n, reason, sizeof(reason));
  if (text == NULL)
    (void)snprintf(why, n_why, "%s: %s", path, reason);
  (void)fclose(from);
  return text;
}

void cli_put_json_text(FILE *to, const char *text, size_t n) {
  const unsigned char *p = (const unsigned char *)text, *end = p + n;

  (void)fputc('"', to);
  while (p < end) {
    size_t length = tnk__utf8_char((const char *)p, (size_t)(end - p));

    /* Never omitted, so that the output shows an invalid byte. */
    if (length == 0)
      (void)fputs("\xef\xbf\xbd", to);
    else if (*p == '"' || *p == '\\')
      (void)fprintf(to, "\\%c", *p);
    else if (*p == '\n')
      (void)fputs("\\n", to);
    else if (*p < 0x20 || *p == 0x7f)
      (void)fprintf(to, "\\u%04x", *p);
    else
      (void)fwrite(p, 1, length, to);
    p += length == 0 ? 1 : length;
  }
  (void)fputc('"', to);
}
