/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/http_write.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/limits.h"
#include "support/test.h"
#include "tnk/error.h"

static tnk__http_head_t post(void) {
  return (tnk__http_head_t){.method = "POST",
                            .target = "/api/v1/x?a=b",
                            .host = "h.example",
                            .port = 443,
                            .default_port = 443};
}

static void check_head(const tnk__http_head_t *head, const char *expected) {
  tnk__buf_t out;

  tnk__buf_init(&out, test_allocator(), TNK__MAX_REQUEST_HEAD);
  CHECK_INT(tnk__http_write_head(&out, head), TNK_OK);
  CHECK_STR(tnk__buf_cstr(&out), expected);
  tnk__buf_deinit(&out);
}

static void check_refused(const tnk__http_head_t *head) {
  tnk__buf_t out;

  tnk__buf_init(&out, test_allocator(), TNK__MAX_REQUEST_HEAD);
  CHECK_INT(tnk__http_write_head(&out, head), TNK_EINVAL);
  CHECK_INT(out.len, 0);
  tnk__buf_deinit(&out);
}

TEST(both_lists_in_order) {
  const tnk_pair_t first[] = {{"Accept", "application/json"}, {"X-Empty", ""}};
  const tnk_pair_t second[] = {{"X-API-Key", "tml-k\xc3\xa9y\ttab"}};
  tnk__http_head_t head = post();
  char expected[300];

  head.headers = first;
  head.n_headers = 2;
  head.more_headers = second;
  head.n_more_headers = 1;
  head.body_len = (size_t)1234567890123;
  snprintf(expected, sizeof(expected),
           "POST /api/v1/x?a=b HTTP/1.1\r\n"
           "Host: h.example\r\n"
           "Accept: application/json\r\n"
           "X-Empty: \r\n"
           "X-API-Key: tml-k\xc3\xa9y\ttab\r\n"
           "Accept-Encoding: zstd\r\n"
           "Connection: keep-alive\r\n"
           "Content-Length: %zu\r\n\r\n",
           head.body_len);
  check_head(&head, expected);
}

TEST(a_whole_line_follows_both_lists) {
  const tnk_pair_t more[] = {{"X-A", "b"}};
  tnk__http_head_t head = post();

  head.more_headers = more;
  head.n_more_headers = 1;
  head.lines = "X-Line: c\r\nnot this";
  head.lines_len = 11;
  head.body_len = 1;
  check_head(&head, "POST /api/v1/x?a=b HTTP/1.1\r\n"
                    "Host: h.example\r\n"
                    "X-A: b\r\n"
                    "X-Line: c\r\n"
                    "Accept-Encoding: zstd\r\n"
                    "Connection: keep-alive\r\n"
                    "Content-Length: 1\r\n\r\n");
}

TEST(host_with_port_and_v6) {
  tnk__http_head_t head = post();

  head.method = "GET";
  head.target = "/";
  head.host = "::1";
  head.port = 8080;
  check_head(&head, "GET / HTTP/1.1\r\nHost: [::1]:8080\r\n"
                    "Accept-Encoding: zstd\r\n"
                    "Connection: keep-alive\r\n\r\n");
}

/* transport.md 2.1: an empty POST says Content-Length: 0, GET and DELETE
 * nothing. */
TEST(length_of_an_empty_body) {
  static const struct {
    const char *method;
    int has_length;
  } rows[] = {{"POST", 1},   {"PUT", 1},  {"PATCH", 1},
              {"DELETE", 0}, {"HEAD", 0}, {"GET", 0}};

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    tnk__http_head_t head = post();
    tnk__buf_t out;
    head.method = rows[i].method;
    tnk__buf_init(&out, test_allocator(), TNK__MAX_REQUEST_HEAD);
    CHECK_INT(tnk__http_write_head(&out, &head), TNK_OK);
    CHECK_INT(strstr(tnk__buf_cstr(&out), "Content-Length: 0\r\n") != NULL,
              rows[i].has_length);
    tnk__buf_deinit(&out);
  }
}

TEST(nothing_can_smuggle_a_line) {
  static const char *const bad_values[] = {"a\r\nX: y", "a\n", "a\r", "\x01",
                                           "a\x7f"};
  static const char *const bad_names[] = {
      "", "A B", "A:", "A\r\nB", "\xc3\xa9", "(x)"};
  static const char *const bad_targets[] = {"", "/a b", "/a\r\nX: y", "/\x7f"};
  static const char *const bad_hosts[] = {"",    "a b", "a\r\nX: y",
                                          "a/b", "u@h", "[::1]"};

  for (size_t i = 0; i < sizeof(bad_values) / sizeof(bad_values[0]); i++) {
    const tnk_pair_t pair = {"X", bad_values[i]};
    tnk__http_head_t head = post();
    head.more_headers = &pair;
    head.n_more_headers = 1;
    check_refused(&head);
  }
  for (size_t i = 0; i < sizeof(bad_names) / sizeof(bad_names[0]); i++) {
    const tnk_pair_t pair = {bad_names[i], "v"};
    tnk__http_head_t head = post();
    head.headers = &pair;
    head.n_headers = 1;
    check_refused(&head);
  }
  for (size_t i = 0; i < sizeof(bad_targets) / sizeof(bad_targets[0]); i++) {
    tnk__http_head_t head = post();
    head.target = bad_targets[i];
    check_refused(&head);
  }
  for (size_t i = 0; i < sizeof(bad_hosts) / sizeof(bad_hosts[0]); i++) {
    tnk__http_head_t head = post();
    head.host = bad_hosts[i];
    check_refused(&head);
  }
}

TEST(characters_of_names) {
  static const char letters[] = "!#$%&'*+-.^_`|~0123456789"
                                "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

  for (int c = 1; c < 256; c++) {
    const char name[] = {'a', (char)c, '\0'};
    CHECK_INT(tnk__http_is_token(name), strchr(letters, c) != NULL);
  }
}

/* Eight bytes are tested at once. */
TEST(every_byte_of_a_value_is_looked_at) {
  for (unsigned c = 1; c < 256; c++)
    for (size_t at = 0; at < 20; at++)
      for (size_t behind = 0; behind < 9; behind++) {
        char value[32];
        memset(value, at % 2 == 0 ? '~' : '\t', sizeof(value));
        value[at] = (char)c;
        value[at + 1 + behind] = '\0';
        CHECK_INT(tnk__http_is_field_value(value),
                  (c >= ' ' || c == '\t') && c != 0x7f);
      }
}

TEST(our_own_headers_are_refused) {
  static const char *const names[] = {"Host",       "CONTENT-LENGTH",
                                      "connection", "Transfer-Encoding",
                                      "Expect",     "accept-encoding"};

  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    const tnk_pair_t pair = {names[i], "0"};
    tnk__http_head_t head = post();
    head.headers = &pair;
    head.n_headers = 1;
    check_refused(&head);
  }
  CHECK(!tnk__http_is_reserved("Host-"));
  CHECK(!tnk__http_is_reserved("Hos"));
}

TEST(too_long_and_out_of_memory) {
  static char value[TNK__MAX_REQUEST_HEAD];
  const tnk_pair_t pair = {"X", value};
  tnk__http_head_t head = post();
  tnk__buf_t out;

  memset(value, 'v', sizeof(value) - 1);
  head.headers = &pair;
  head.n_headers = 1;
  tnk__buf_init(&out, test_allocator(), TNK__MAX_REQUEST_HEAD);
  CHECK_INT(tnk__http_write_head(&out, &head), TNK_ETOOBIG);
  tnk__buf_deinit(&out);
  head.n_headers = 0;
  test_alloc_fail_at(0);
  CHECK_INT(tnk__http_write_head(&out, &head), TNK_ENOMEM);
  tnk__buf_deinit(&out);
}

TEST(one_allocation_so_that_no_key_stays_behind) {
  static char value[20000];
  const tnk_pair_t pair = {"X-API-Key", value};
  tnk__http_head_t head = post();
  tnk__buf_t out;
  size_t before = test_alloc_count();

  memset(value, 'k', sizeof(value) - 1);
  head.headers = &pair;
  head.n_headers = 1;
  tnk__buf_init(&out, test_allocator(), TNK__MAX_REQUEST_HEAD);
  CHECK_INT(tnk__http_write_head(&out, &head), TNK_OK);
  CHECK_INT(test_alloc_count() - before, 1);
  tnk__buf_deinit(&out);
}

TEST(names_compare_without_case) {
  CHECK_INT(tnk__http_compare_names("Retry-After", "rETRY-aFTER"), 0);
  CHECK(tnk__http_compare_names("a", "ab") < 0);
  CHECK(tnk__http_compare_names("b", "A") > 0);
  /* Only ASCII letters have a case. */
  CHECK(tnk__http_compare_names("[", "{") != 0);
  CHECK(tnk__http_compare_names("\xc9", "\xe9") != 0);
}

TEST(A16_a_request_to_a_proxy_has_the_whole_url) {
  const tnk_pair_t more[] = {{"Proxy-Authorization", "Basic x"}};
  tnk__http_head_t head = post();

  head.method = "GET";
  head.port = 8080;
  head.default_port = 80;
  head.is_absolute = 1;
  head.proxy_headers = more;
  head.n_proxy_headers = 1;
  check_head(&head, "GET http://h.example:8080/api/v1/x?a=b HTTP/1.1\r\n"
                    "Host: h.example:8080\r\n"
                    "Proxy-Authorization: Basic x\r\n"
                    "Accept-Encoding: zstd\r\n"
                    "Connection: keep-alive\r\n\r\n");
  head.host = "::1";
  head.port = 80;
  check_head(&head, "GET http://[::1]/api/v1/x?a=b HTTP/1.1\r\n"
                    "Host: [::1]\r\n"
                    "Proxy-Authorization: Basic x\r\n"
                    "Accept-Encoding: zstd\r\n"
                    "Connection: keep-alive\r\n\r\n");
}
