/* SPDX-License-Identifier: MIT */
#include "tools/common/base/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/base/utf8.h"

int cli_is_terminal(FILE *file) {
  return isatty(fileno(file));
}

size_t cli_columns(FILE *file) {
  struct winsize size;

  return ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0
             ? size.ws_col
             : 80;
}

static int is_set(const char *name) {
  const char *value = getenv(name);

  return value != NULL && value[0] != '\0';
}

int cli_is_utf8(void) {
  static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

  for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
    if (is_set(names[i])) {
      const char *charset = strchr(getenv(names[i]), '.');

      return charset != NULL && (strncasecmp(charset, ".utf-8", 6) == 0 ||
                                 strncasecmp(charset, ".utf8", 5) == 0);
    }
  return 0;
}

int cli_can_rewrite(FILE *file) {
  const char *term = getenv("TERM");

  return cli_is_terminal(file) && (term == NULL || strcmp(term, "dumb") != 0);
}

int cli_has_color(FILE *file, cli_color_t when) {
  if (when != CLI_COLOR_AUTO)
    return when == CLI_COLOR_ALWAYS;
  if (is_set("NO_COLOR"))
    return 0;
  return is_set("FORCE_COLOR") || cli_can_rewrite(file);
}

/* ---- Strings from other sources ---- */

int cli_is_harmful(unsigned long code) {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) ||
         /* Line and paragraph separators; direction marks, embeddings,
          * overrides and isolates. */
         code == 0x2028 || code == 0x2029 || code == 0x061c || code == 0x200e ||
         code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

unsigned long cli_next_char(const char **text) {
  const unsigned char *p = (const unsigned char *)*text;
  size_t n = tnk__utf8_char(*text, strlen(*text));
  unsigned long code;

  if (n <= 1) {
    *text += 1;
    return n == 1 ? p[0] : 0xfffd;
  }
  code = p[0] & (0xffu >> (n + 1));
  for (size_t i = 1; i < n; i++)
    code = code << 6 | (p[i] & 0x3fu);
  *text += n;
  return code;
}

void cli_clean(char *text) {
  const char *at = text;

  tnk__utf8_repair(text);
  while (*at != '\0') {
    char *begin = text + (at - text);

    if (cli_is_harmful(cli_next_char(&at)))
      memset(begin, ' ', (size_t)(at - begin));
  }
}

/* The next character may be cut off or invalid. */
static size_t put_char(FILE *to, const char *text, size_t n) {
  const size_t length = tnk__utf8_char(text, n);
  char whole[8] = "";
  const char *at = whole;
  unsigned long code;

  if (length == 0 || *text == '\0') {
    (void)fputc(length == 0 ? '?' : ' ', to);
    return 1;
  }
  memcpy(whole, text, length);
  code = cli_next_char(&at);
  if (cli_is_harmful(code) && code != '\n' && code != '\t')
    (void)fputc(' ', to);
  else
    (void)fwrite(text, 1, length, to);
  return length;
}

void cli_put_shown(FILE *to, const char *text, size_t n) {
  if (!cli_is_terminal(to)) {
    (void)fwrite(text, 1, n, to);
    return;
  }
  for (size_t at = 0; at < n;)
    at += put_char(to, text + at, n - at);
}

/* East Asian letters and pictographs, which take two columns. */
static int is_wide(unsigned long code) {
  return (code >= 0x1100 && code <= 0x115f) ||
         (code >= 0x2e80 && code <= 0xa4cf) ||
         (code >= 0xac00 && code <= 0xd7a3) ||
         (code >= 0xf900 && code <= 0xfaff) ||
         (code >= 0xfe30 && code <= 0xfe6f) ||
         (code >= 0xff00 && code <= 0xff60) ||
         (code >= 0x1f300 && code <= 0x1faff) ||
         (code >= 0x20000 && code <= 0x3fffd);
}

/* Combining marks and joiners. */
static int is_empty(unsigned long code) {
  return (code >= 0x300 && code <= 0x36f) || code == 0x200b || code == 0x200c ||
         code == 0x200d || code == 0xfeff || (code >= 0xfe00 && code <= 0xfe0f);
}

static size_t width_of(unsigned long code) {
  return is_empty(code) ? 0 : is_wide(code) ? 2 : 1;
}

size_t cli_width(const char *text) {
  size_t n = 0;

  while (*text != '\0')
    n += width_of(cli_next_char(&text));
  return n;
}

void cli_cut(char *text, size_t columns) {
  const char *at = text;
  size_t n = 0;

  while (*at != '\0') {
    char *begin = text + (at - text);

    n += width_of(cli_next_char(&at));
    if (n > columns) {
      *begin = '\0';
      return;
    }
  }
}
