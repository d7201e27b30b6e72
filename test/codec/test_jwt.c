/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/jwt.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/limits.h"
#include "support/test.h"
#include "tnk/error.h"

static tnk__jwt_t read_jwt(const char *token) {
  tnk__jwt_t jwt = {-1, -1};

  CHECK_INT(tnk__jwt_read(&jwt, test_allocator(), token), TNK_OK);
  return jwt;
}

TEST(D2_jwt_times_are_read) {
  static const struct {
    const char *token;
    int64_t expires_s, issued_s;
  } rows[] = {
      /* {"exp":2000000000,"iat":1999996400} */
      {"eyJh.eyJleHAiOjIwMDAwMDAwMDAsImlhdCI6MTk5OTk5NjQwMH0.s", 2000000000,
       1999996400},
      /* {"exp":1.5e9} */
      {"eyJh.eyJleHAiOjEuNWU5fQ.s", 1500000000, 0},
      /* The same, padded. */
      {"eyJh.eyJleHAiOjEuNWU5fQ==.s", 1500000000, 0},
      /* {"exp":"1","iat":-5}, {"exp":1e300}, {"exp":null}, [1] */
      {"eyJh.eyJleHAiOiIxIiwiaWF0IjotNX0.s", 0, 0},
      {"eyJh.eyJleHAiOjFlMzAwfQ.s", 0, 0},
      {"eyJh.eyJleHAiOm51bGx9.s", 0, 0},
      {"eyJh.WzFd.s", 0, 0},
      {"eyJh.!!!.s", 0, 0},
      {"eyJh..s", 0, 0},
      {"eyJh.eyJleHAiOjEuNWU5fQ", 0, 0},
      {"eyJh", 0, 0},
      {"", 0, 0},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    tnk__jwt_t jwt = read_jwt(rows[i].token);
    CHECK_INT(jwt.expires_s, rows[i].expires_s);
    CHECK_INT(jwt.issued_s, rows[i].issued_s);
  }
}

TEST(jwt_claims_are_bounded) {
  size_t n = 4 * TNK__MAX_CREDENTIAL;
  char *token = malloc(n + 1);
  tnk__jwt_t jwt;

  CHECK(token != NULL);
  memset(token, 'A', n);
  memcpy(token, "eyJ.", 4);
  memcpy(token + n - 2, ".s", 3);
  CHECK_INT(tnk__jwt_read(&jwt, test_allocator(), token), TNK_OK);
  CHECK_INT(jwt.expires_s, 0);
  CHECK(!tnk__token_is_sound(token));
  free(token);
}

TEST(jwt_lack_of_memory_is_told) {
  tnk__jwt_t jwt;

  test_alloc_fail_at(0);
  CHECK_INT(tnk__jwt_read(&jwt, test_allocator(), "eyJh.eyJleHAiOjEuNWU5fQ.s"),
            TNK_ENOMEM);
  test_alloc_fail_at(-1);
}

TEST(tokens_that_could_end_a_header_are_unsound) {
  static const char *const bad[] = {"",      "a b",   "a\n",
                                    "a\r\n", "a\x7f", "\xc3\xa4"};

  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
    CHECK(!tnk__token_is_sound(bad[i]));
  CHECK(tnk__token_is_sound("eyJ-_.x"));
  CHECK(tnk__token_is_jwt("eyJx"));
  CHECK(!tnk__token_is_jwt("tml-x"));
}
