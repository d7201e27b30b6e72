#include "tools/common/frame/wrap.h"

#include <string.h>

enum { LAST_COLUMN = 79 };

/* Write `n` spaces. */
static void put_blanks(FILE *to, size_t n) {
  fprintf(to, "%*s", (int)n, "");
}

/* Leading spaces of a line are kept. */
static const char *skip_blanks(const char *text, size_t *n) {
  *n = strspn(text, " ");
  return text + *n;
}

void cli_wrap(FILE *to, const char *text, size_t indent, size_t at) {
  int is_first = 1; /* first word of its line */
  size_t more;

  /* The existing output leaves no gap, so begin on the next line. */
  if (at > 0 && at + 2 > indent) {
    fputc('\n', to);
    at = 0;
  }
  text = skip_blanks(text, &more);
  while (*text != '\0') {
    size_t n = strcspn(text, " \n");

    if (!is_first && at + 1 + n > LAST_COLUMN) {
      fputc('\n', to);
      at = 0;
      is_first = 1;
    }
    if (is_first && n > 0) {
      put_blanks(to, indent + more > at ? indent + more - at : 0);
      at = indent + more > at ? indent + more : at;
      is_first = 0;
    } else if (n > 0) {
      fputc(' ', to);
      at++;
    }
    fwrite(text, 1, n, to);
    at += n;
    text += n;
    if (*text == '\n') {
      fputc('\n', to);
      at = 0;
      is_first = 1;
      text = skip_blanks(text + 1, &more);
    } else if (*text == ' ') {
      text++;
    }
  }
  fputc('\n', to);
}
