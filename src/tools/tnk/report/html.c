/* SPDX-License-Identifier: MIT */
#include "tools/tnk/report/html.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/text.h"
#include "lib/base/utf8.h"
#include "lib/wire/format/time_text.h"
#include "tools/common/base/terminal.h"

/* Write a character that has a meaning in HTML. Returns 0 for another one. */
static int put_escaped(FILE *to, char c) {
  static const struct {
    char c;
    const char *entity;
  } entities[] = {{'&', "&amp;"},
                  {'<', "&lt;"},
                  {'>', "&gt;"},
                  {'"', "&quot;"},
                  {'\'', "&#39;"}};

  for (size_t i = 0; i < sizeof(entities) / sizeof(*entities); i++)
    if (entities[i].c == c) {
      fputs(entities[i].entity, to);
      return 1;
    }
  return 0;
}

void report_put_some(FILE *to, const char *text, size_t most) {
  const char *begin = text;

  while (*text != '\0') {
    const char *at = text;
    /* An invalid byte is a character of length 0. */
    const int is_valid = tnk__utf8_char(text, strlen(text)) > 0;
    const unsigned long code = cli_next_char(&text);

    if ((size_t)(text - begin) > most) {
      fputs("...", to);
      return;
    }
    if (!is_valid || (cli_is_harmful(code) && code != '\n' && code != '\t'))
      fputs("\xef\xbf\xbd", to);
    else if (!put_escaped(to, *at))
      fwrite(at, 1, (size_t)(text - at), to);
  }
}

void report_put_text(FILE *to, const char *text) {
  report_put_some(to, text, SIZE_MAX);
}

void report_put_time(FILE *to, long long time_s) {
  char text[TNK__TIME_TEXT];
  int64_t us;

  if (time_s <= 0 || !tnk__time_of_number(&us, (double)time_s)) {
    fputs("-", to);
    return;
  }
  tnk__time_write(text, us);
  /* 2026-01-02T03:04:05Z: the minute is enough. */
  fprintf(to, "<time datetime=\"%s\">%.10s %.5s</time>", text, text, text + 11);
}

void report_put_duration(FILE *to, double seconds) {
  char text[64];
  tnk__text_t out;

  tnk__text_init(&out, text, sizeof(text));
  tnk__text_time(&out, (uint64_t)fmin(fmax(seconds, 0) * 1000, 1e15));
  fputs(text, to);
}

void report_put_count(FILE *to, unsigned long long n) {
  /* A narrow space that does not break. */
  static const char space[] = "\xe2\x80\xaf";

  if (n >= 1000000000)
    fprintf(to, "%.4g%sB", (double)n / 1e9, space);
  else if (n >= 1000000)
    fprintf(to, "%.4g%sM", (double)n / 1e6, space);
  else if (n >= 10000)
    fprintf(to, "%llu%s%03llu", n / 1000, space, n % 1000);
  else
    fprintf(to, "%llu", n);
}

void report_put_lines(FILE *to, const char *const *lines) {
  for (size_t i = 0; lines[i] != NULL; i++)
    fprintf(to, "%s\n", lines[i]);
}
