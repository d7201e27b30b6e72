/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/limits.h"
#include "support/test.h"
#include "tnk/error.h"

enum { ARENA = 1 << 20 };

static int parse(tnk__url_t *url, tnk__arena_t *arena, const char *text,
                 const char **why) {
  tnk__arena_init(arena, test_allocator(), ARENA);
  return tnk__url_parse(url, arena, text, why);
}

typedef struct {
  const char *text;
  const char *normal;
  const char *host;
  const char *path;
  const char *authority;
  int port;
  int is_tls;
} good_t;

static const good_t good[] = {
    {"https://tinker.example/services/prod",
     "https://tinker.example/services/prod", "tinker.example", "/services/prod",
     "tinker.example", 443, 1},
    {"HTTP://LocalHost:8000///", "http://localhost:8000", "localhost", "",
     "localhost:8000", 8000, 0},
    {"http://a:80/", "http://a", "a", "", "a", 80, 0},
    {"https://A.b.:444/c", "https://a.b.:444/c", "a.b.", "/c", "a.b.:444", 444,
     1},
    {"https://a:443", "https://a", "a", "", "a", 443, 1},
    {"https://a:80/x/", "https://a:80/x", "a", "/x", "a:80", 80, 1},
    {"http://a:", "http://a", "a", "", "a", 80, 0},
    {"http://a:00080", "http://a", "a", "", "a", 80, 0},
    {"http://127.0.0.1:65535/v", "http://127.0.0.1:65535/v", "127.0.0.1", "/v",
     "127.0.0.1:65535", 65535, 0},
    {"http://[::1]:9/", "http://[::1]:9", "::1", "", "[::1]:9", 9, 0},
    {"https://[2001:DB8:0:0:0:0:0:1]/a", "https://[2001:db8::1]/a",
     "2001:db8::1", "/a", "[2001:db8::1]", 443, 1},
    {"http://a_b.c-d/%7euser/%2F", "http://a_b.c-d/%7Euser/%2F", "a_b.c-d",
     "/%7Euser/%2F", "a_b.c-d", 80, 0},
    {"http://h/a:b@c//d/...", "http://h/a:b@c//d/...", "h", "/a:b@c//d/...",
     "h", 80, 0},
};

TEST(A3_base_url_is_taken_apart_and_normalized) {
  size_t i;

  for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
    tnk__arena_t arena;
    tnk__url_t url;
    CHECK_INT(parse(&url, &arena, good[i].text, NULL), TNK_OK);
    CHECK_STR(url.text, good[i].normal);
    CHECK_STR(url.host, good[i].host);
    CHECK_STR(url.path, good[i].path);
    CHECK_STR(url.authority, good[i].authority);
    CHECK_INT(url.port, good[i].port);
    CHECK_INT(url.is_tls, good[i].is_tls);
    tnk__arena_deinit(&arena);
  }
}

TEST(normal_text_is_its_own_normal_text) {
  size_t i;

  for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
    tnk__arena_t arena;
    tnk__url_t url;
    CHECK_INT(parse(&url, &arena, good[i].normal, NULL), TNK_OK);
    CHECK_STR(url.text, good[i].normal);
    tnk__arena_deinit(&arena);
  }
}

static const struct {
  const char *text;
  const char *part; /* of the phrase */
} bad[] = {{"", "begin with"},
           {"a.example", "begin with"},
           {"ftp://a", "begin with"},
           {"http:/a", "begin with"},
           {" http://a", "begin with"},
           {"http://", "no host"},
           {"http:///x", "no host"},
           {"http://:80", "no host"},
           {"http://u@a", "user name"},
           {"http://u:p@a/", "user name"},
           {"http://a?x=1", "query"},
           {"http://a/b?", "query"},
           {"http://a#f", "fragment"},
           {"http://a/#", "fragment"},
           {"http://a b", "not allowed"},
           {"http://a%41", "not allowed"},
           {"http://a\\b", "not allowed"},
           {"http://\xc3\xa4", "not allowed"},
           {"http://a\r\nX: y", "not a number"},
           {"http://a.\r\n", "not allowed"},
           {"http://a..b", "empty part"},
           {"http://.a", "empty part"},
           {"http://a..", "empty part"},
           {"http://.", "empty part"},
           {"http://a:x", "not a number"},
           {"http://a:-1", "not a number"},
           {"http://a:8 ", "not a number"},
           {"http://a:1:2", "not a number"},
           {"http://a:65536", "above"},
           {"http://a:99999999999999999999", "above"},
           {"http://a:0", "is 0"},
           {"http://::1", "not a number"},
           {"http://[::1", "bracket"},
           {"http://[]", "is none"},
           {"http://[::g]", "is none"},
           {"http://[127.0.0.1]", "is none"},
           {"http://[fe80::1%25eth0]", "is none"},
           {"http://[::1]x", "between"},
           {"http://a/ b", "must be encoded"},
           {"http://a/\x7f", "must be encoded"},
           {"http://a/\xc3\xa4", "must be encoded"},
           {"http://a/<", "must be encoded"},
           {"http://a/%", "two digits"},
           {"http://a/%4", "two digits"},
           {"http://a/%4g", "two digits"},
           {"http://a/../b", ". or .."},
           {"http://a/b/.", ". or .."},
           {"http://a/b/%2E.", ". or .."},
           {"http://a/%2e", ". or .."}};

TEST(A21_what_is_no_base_url_is_named) {
  size_t i;

  for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    const char *why = "";
    tnk__arena_t arena;
    tnk__url_t url = {0};
    int err = parse(&url, &arena, bad[i].text, &why);
    if (err != TNK_EINVAL || strstr(why, bad[i].part) == NULL)
      test_fail(__FILE__, __LINE__, "\"%s\": %d, %s", bad[i].text, err, why);
    CHECK(url.host == NULL);
    tnk__arena_deinit(&arena);
  }
}

TEST(length_has_a_ceiling) {
  char *text = malloc(TNK__MAX_URL + 2);
  const char *why = "";
  tnk__arena_t arena;
  tnk__url_t url;

  memset(text, 'a', TNK__MAX_URL + 1);
  memcpy(text, "http://h/", 9);
  text[TNK__MAX_URL + 1] = '\0';
  CHECK_INT(parse(&url, &arena, text, &why), TNK_EINVAL);
  CHECK(strstr(why, "too long") != NULL);
  tnk__arena_deinit(&arena);
  text[TNK__MAX_URL] = '\0';
  CHECK_INT(parse(&url, &arena, text, &why), TNK_OK);
  tnk__arena_deinit(&arena);
  memcpy(text, "http://hh", 9);
  CHECK_INT(parse(&url, &arena, text, &why), TNK_EINVAL);
  CHECK(strstr(why, "too long") != NULL);
  tnk__arena_deinit(&arena);
  text[7 + 64] = '\0';
  CHECK_INT(parse(&url, &arena, text, &why), TNK_EINVAL);
  text[7 + 63] = '\0';
  tnk__arena_deinit(&arena);
  CHECK_INT(parse(&url, &arena, text, &why), TNK_OK);
  tnk__arena_deinit(&arena);
  free(text);
}

TEST(url_reports_lack_of_memory) {
  long n;

  for (n = 0; n < 100; n++) {
    tnk__arena_t arena;
    tnk__url_t url;
    int err;
    test_alloc_fail_at(n);
    err = parse(&url, &arena, "https://[::1]:8/a/b", NULL);
    tnk__arena_deinit(&arena);
    CHECK_INT(err, test_alloc_did_fail() ? TNK_ENOMEM : TNK_OK);
    if (!test_alloc_did_fail())
      break;
  }
  test_alloc_fail_at(-1);
  CHECK(n >= 2 && n < 100);
}

static void check_segments(int many, const char *text, const char *expected) {
  tnk__buf_t buf;

  tnk__buf_init(&buf, test_allocator(), 256);
  if (many)
    tnk__url_put_segments(&buf, text);
  else
    tnk__url_put_segment(&buf, text);
  CHECK_INT(buf.err, expected != NULL ? TNK_OK : TNK_EINVAL);
  if (expected != NULL)
    CHECK_STR(tnk__buf_cstr(&buf), expected);
  tnk__buf_deinit(&buf);
}

TEST(segments_are_percent_encoded) {
  check_segments(0, "s-1:train:0", "s-1:train:0");
  check_segments(0, "a/b", "a%2Fb");
  check_segments(0, "a b?c#d%2F\r\n", "a%20b%3Fc%23d%252F%0D%0A");
  check_segments(0, "\xc3\xa4+\xff", "%C3%A4+%FF");
  check_segments(0, "...", "...");
  check_segments(0, "%2e%2e", "%252e%252e");
  check_segments(0, "..", NULL);
  check_segments(0, ".", NULL);
  check_segments(0, "", NULL);
  check_segments(1, "weights/step 10", "weights/step%2010");
  check_segments(1, "weights/../x", NULL);
  check_segments(1, "/weights", NULL);
  check_segments(1, "weights/", NULL);
  check_segments(1, "a//b", NULL);
}
