/* SPDX-License-Identifier: MIT */
#include "fuzz.h"
#include "lib/wire/message/page.h"

#include <string.h>

#include "lib/base/utf8.h"
#include "lines.h"

/*
 * A refusal of something between us and the service. Lines: the type, the
 * server, the way, the location, the cause; what follows is the body, behind
 * one byte for the status.
 */

#define HUSHED                                                                 \
  "the answer is of proxy proxy.test, or of something behind it that is not "  \
  "the service"
#define BASE "http://tinker.test/services/x"

static const int statuses[] = {200, 301, 307, 400, 401, 403, 404, 405,
                               407, 413, 429, 500, 502, 503, 504, 304};

/* Nothing acts on a terminal, and it is one line of clean UTF-8. */
static void check_text(const char *text, size_t size) {
  const size_t n = strlen(text);
  size_t step;

  FUZZ_CHECK(n < size);
  for (size_t i = 0; i < n; i += step) {
    const uint8_t c = (uint8_t)text[i];
    step = tnk__utf8_char(text + i, n - i);
    FUZZ_CHECK(step > 0 && c >= 0x20 && c != 0x7f);
    FUZZ_CHECK(c != 0xc2 || (uint8_t)text[i + 1] >= 0xa0);
  }
}

/* A URL is told without the user and the query in it. */
static void check_redirect(const char *text) {
  const char *url = strstr(text, "://");
  size_t n_host;

  if (strncmp(text, "redirects to ", 13) != 0 || url == NULL)
    return;
  url += 3;
  n_host = strcspn(url, "/;, ");
  FUZZ_CHECK(memchr(url, '@', n_host) == NULL);
  FUZZ_CHECK(memchr(url, '?', n_host) == NULL ||
             memchr(url, '#', n_host) == NULL);
}

static void check(tnk__page_t *page) {
  char text[TNK__MAX_PAGE_TEXT];
  char again[40];
  const int is_told = tnk__page_explain(page, text, sizeof(text));

  FUZZ_CHECK(is_told == (text[0] != '\0'));
  check_text(text, sizeof(text));
  check_redirect(text);
  FUZZ_CHECK(tnk__page_explain(page, again, sizeof(again)) == is_told);
  check_text(again, sizeof(again));
  /* With a credential about, nothing of the answer is told. */
  page->confidant = "proxy.test";
  if (tnk__page_explain(page, text, sizeof(text)))
    FUZZ_CHECK(strcmp(text, HUSHED) == 0 ||
               strcmp(text, HUSHED "; the user and password for the proxy may "
                                   "be wrong") == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *text[5];
  size_t n_lines = 0;
  fuzz_lines_t lines;
  tnk__page_t page;

  fuzz_lines_open(&lines, data, size);
  for (int i = 0; i < 5; i++) {
    text[i] = fuzz_lines_next(&lines);
    n_lines += text[i] != NULL ? strlen(text[i]) + 1 : 0;
  }
  page = (tnk__page_t){.status = 502,
                       .type = text[0],
                       .server = text[1],
                       .via = text[2],
                       .location = text[3],
                       .cause = text[4],
                       .sent_len = size,
                       .base_url = BASE,
                       .path = "/api/v1/"};
  if (n_lines < size) {
    page.status = statuses[data[n_lines] % 16];
    page.body = data + n_lines + 1;
    page.body_len = size - n_lines - 1;
  }
  check(&page);
  fuzz_lines_close(&lines);
  return 0;
}
