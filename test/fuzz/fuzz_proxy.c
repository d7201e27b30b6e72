/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/wire/format/http_read.h"
#include "lib/wire/format/http_write.h"
#include "lib/wire/format/proxy.h"
#include "lib/wire/format/socks.h"
#include "lines.h"
#include "tnk/error.h"

/*
 * What a proxy brings. Lines: its URL, a header for it (name, value), the hosts
 * that do without, a host; what follows is its answer to CONNECT, or all that
 * it says in SOCKS.
 */

/* A proxy that was taken can be asked, in exactly the lines that were meant,
 * and what is told of it has no user. */
static void check_proxy(const tnk__proxy_t *proxy, const char *host) {
  const tnk__http_head_t head = {.host = host,
                                 .port = 443,
                                 .proxy_headers = proxy->headers,
                                 .n_proxy_headers = proxy->n_headers};
  size_t n_lines = 0;
  const char *text;
  tnk__buf_t out;
  int err;

  FUZZ_CHECK(proxy->at.host[0] != '\0' && proxy->at.port != 0);
  FUZZ_CHECK(proxy->why == NULL);
  FUZZ_CHECK(proxy->kind == TNK__PROXY_HTTP ||
             (!proxy->at.is_tls && proxy->n_headers == 0));
  FUZZ_CHECK(proxy->user == NULL || strlen(proxy->user) <= 255);
  FUZZ_CHECK(strchr(proxy->at.authority, '@') == NULL);
  FUZZ_CHECK(strchr(proxy->at.text, '@') == NULL);
  tnk__buf_init(&out, tnk__allocator_default(), TNK__MAX_REQUEST_HEAD);
  err = tnk__http_write_connect(&out, &head);
  FUZZ_CHECK(err == TNK_OK || (err == TNK_EINVAL && out.len == 0) ||
             err == TNK_ETOOBIG);
  text = tnk__buf_cstr(&out);
  FUZZ_CHECK(err != TNK_OK || strlen(text) == out.len);
  for (; err == TNK_OK && *text != '\0'; text++) {
    FUZZ_CHECK((*text == '\r') == (text[1] == '\n'));
    n_lines += *text == '\r';
  }
  FUZZ_CHECK(err != TNK_OK || n_lines == 3 + proxy->n_headers);
  tnk__buf_deinit(&out);
}

static void check_url(const char *url, const tnk_pair_t *header,
                      const char *host) {
  const tnk_allocator_t *alloc = tnk__allocator_default();
  const char *why = NULL;
  tnk__proxy_t proxy;
  int err = tnk__proxy_parse(&proxy, alloc, url, header, 1, &why);

  if (err != TNK_OK) {
    FUZZ_CHECK(err == TNK_EINVAL && why != NULL);
    err = tnk__proxy_parse(&proxy, alloc, url, NULL, 0, &why);
  }
  if (err == TNK_OK)
    check_proxy(&proxy, host);
  if (err == TNK_OK)
    tnk__proxy_deinit(&proxy, alloc);
}

/* Longer lists have what shorter ones have. */
static void check_list(const char *list, const char *host) {
  const int has = tnk__no_proxy_has(list, host, 443);
  tnk__buf_t longer;

  FUZZ_CHECK(has == 0 || has == 1);
  tnk__buf_init(&longer, tnk__allocator_default(), SIZE_MAX / 2);
  tnk__buf_text(&longer, "other.example:1 ,");
  tnk__buf_text(&longer, list);
  FUZZ_CHECK(!has || tnk__no_proxy_has(tnk__buf_cstr(&longer), host, 443) == 1);
  tnk__buf_text(&longer, ",*");
  FUZZ_CHECK(tnk__no_proxy_has(tnk__buf_cstr(&longer), host, 443) == 1);
  tnk__buf_deinit(&longer);
}

typedef struct {
  int err;
  int status;
  int state;
  int has_more;
} reading_t;

static reading_t read_answer(const uint8_t *data, size_t n, size_t piece) {
  tnk__response_t response;
  tnk__http_reader_t reader;
  reading_t out;
  int err = TNK_OK;

  tnk__response_init(&response, tnk__allocator_default(), 0);
  tnk__http_reader_init(&reader, &response, 1);
  for (size_t i = 0; i < n && err == TNK_OK; i += piece)
    err =
        tnk__http_reader_feed(&reader, data + i, n - i < piece ? n - i : piece);
  FUZZ_CHECK(response.body.len == 0);
  out = (reading_t){err, response.status, (int)reader.state, reader.has_more};
  tnk__response_deinit(&response);
  return out;
}

/* However it is cut, it means the same, bytes behind its end included. */
static void check_answer(const uint8_t *data, size_t n) {
  const reading_t whole = read_answer(data, n, n + 1);
  const reading_t bytes = read_answer(data, n, 1);

  FUZZ_CHECK(whole.err == bytes.err && whole.status == bytes.status);
  FUZZ_CHECK(whole.state == bytes.state && whole.has_more == bytes.has_more);
}

/* It says piece after piece, each when it has been asked for. */
static void check_socks(const uint8_t *data, size_t n, const char *user) {
  char host[256];
  tnk__socks_target_t target = {
      .user = user, .password = user, .host = host, .port = 443};
  tnk__socks_result_t result = TNK__SOCKS_MORE;
  tnk__socks_t socks;
  size_t n_said = 0;

  snprintf(host, sizeof(host), "%s", user != NULL ? user : "far.test");
  tnk__socks_hello(&socks, &target);
  for (size_t i = 0; i < n && result <= TNK__SOCKS_SAY; i++) {
    FUZZ_CHECK(socks.n_out <= TNK__SOCKS_MAX_MESSAGE && socks.n_out > 0);
    result = tnk__socks_feed(&socks, &target, data + i, 1);
    FUZZ_CHECK(socks.n_in <= sizeof(socks.in));
    n_said += result == TNK__SOCKS_SAY;
  }
  FUZZ_CHECK(n_said <= 2);
  FUZZ_CHECK(result != TNK__SOCKS_AGREED || n_said > 0);
  FUZZ_CHECK((result == TNK__SOCKS_FAILED) == (socks.text != NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *text[5];
  size_t n_lines = 0;
  fuzz_lines_t lines;

  fuzz_lines_open(&lines, data, size);
  for (int i = 0; i < 5; i++) {
    text[i] = fuzz_lines_next(&lines);
    n_lines += text[i] != NULL ? strlen(text[i]) + 1 : 0;
    if (text[i] == NULL)
      text[i] = "";
  }
  check_url(text[0], &(tnk_pair_t){text[1], text[2]}, text[4]);
  check_list(text[3], text[4]);
  if (n_lines < size)
    check_answer(data + n_lines, size - n_lines);
  if (n_lines < size)
    check_socks(data + n_lines, size - n_lines,
                data[n_lines] & 1 ? text[4] : NULL);
  fuzz_lines_close(&lines);
  return 0;
}
