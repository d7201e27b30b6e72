#include "cli/input.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

char *cli_read_all(FILE *from, size_t *n, char *why, size_t n_why) {
  size_t cap = 65536;
  char *text = malloc(cap), *more;

  *n = 0;
  while (text != NULL) {
    *n += fread(text + *n, 1, cap - *n - 1, from);
    /* Less than there was room for: the end, or an error. */
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
    return cli_read_all(stdin, n, why, n_why);
  from = fopen(path, "rb");
  if (from == NULL) {
    (void)snprintf(why, n_why, "cannot open %s: %s", path, strerror(errno));
    return NULL;
  }
  text = cli_read_all(from, n, reason, sizeof(reason));
  if (text == NULL)
    (void)snprintf(why, n_why, "%s: %s", path, reason);
  (void)fclose(from);
  return text;
}

/* Bytes of the well-formed character at p, or 0. */
static size_t character(const unsigned char *p, size_t n) {
  size_t length = p[0] < 0x80                    ? 1
                  : p[0] >= 0xc2 && p[0] <= 0xdf ? 2
                  : p[0] >= 0xe0 && p[0] <= 0xef ? 3
                  : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4
                                                 : 0;

  if (length == 0 || length > n)
    return 0;
  for (size_t i = 1; i < length; i++)
    if ((p[i] & 0xc0) != 0x80)
      return 0;
  /* overlong forms, surrogates, beyond U+10FFFF */
  if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
      (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
    return 0;
  return length;
}

void cli_put_json_text(FILE *to, const char *text, size_t n) {
  const unsigned char *p = (const unsigned char *)text, *end = p + n;

  (void)fputc('"', to);
  while (p < end) {
    size_t length = character(p, (size_t)(end - p));

    /* Never dropped: the text must show that there was something. */
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
