/* SPDX-License-Identifier: MIT */
#include "lib/base/number.h"

#include <stddef.h>
#include <string.h>

#include "support/test.h"
#include "tnk/error.h"

TEST(a_number_ends_at_the_first_byte_that_is_no_digit) {
  static const char *const texts[] = {"42",  "42 ",    "42x", "42.0",
                                      "42-", "42\xff", "0042"};

  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
    const char *at = texts[i];
    uint64_t value;

    CHECK_INT(tnk__read_u64(&at, NULL, UINT64_MAX, &value), TNK_OK);
    CHECK_INT(value, 42);
    CHECK_INT(at - texts[i], i == 6 ? 4 : 2);
  }
}

TEST(a_number_ends_where_its_text_ends) {
  const char digits[] = {'1', '2', '3', '4'};
  const char *at = digits;
  uint64_t value;

  CHECK_INT(tnk__read_u64(&at, digits + 2, UINT64_MAX, &value), TNK_OK);
  CHECK_INT(value, 12);
  CHECK(at == digits + 2);
  CHECK_INT(tnk__read_u64(&at, digits + 2, UINT64_MAX, &value), TNK_EINVAL);
  CHECK_INT(tnk__read_u64(&at, digits + 4, UINT64_MAX, &value), TNK_OK);
  CHECK_INT(value, 34);
}

TEST(signs_blanks_and_nothing_are_no_number) {
  static const char *const texts[] = {"", " 1", "-1", "+1", "x", ".5"};

  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
    const char *at = texts[i];
    uint64_t value = 7;

    CHECK_INT(tnk__read_u64(&at, NULL, UINT64_MAX, &value), TNK_EINVAL);
    CHECK(at == texts[i]);
    CHECK_INT(tnk__text_u64(texts[i], UINT64_MAX, &value), TNK_EINVAL);
    CHECK_INT(value, 7);
  }
}

TEST(the_largest_number_is_read_and_the_next_is_too_large) {
  static const struct {
    const char *text;
    uint64_t max;
    int err;
  } cases[] = {{"18446744073709551615", UINT64_MAX, TNK_OK},
               {"18446744073709551616", UINT64_MAX, TNK_ETOOBIG},
               {"18446744073709551620", UINT64_MAX, TNK_ETOOBIG},
               {"99999999999999999999", UINT64_MAX, TNK_ETOOBIG},
               {"000018446744073709551615", UINT64_MAX, TNK_OK},
               {"65535", 65535, TNK_OK},
               {"65536", 65535, TNK_ETOOBIG},
               {"655350", 65535, TNK_ETOOBIG},
               {"9", 9, TNK_OK},
               {"10", 9, TNK_ETOOBIG},
               {"10", 10, TNK_OK},
               {"0", 0, TNK_OK},
               {"00", 0, TNK_OK},
               {"1", 0, TNK_ETOOBIG}};

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    const char *at = cases[i].text;
    uint64_t value = 7;

    CHECK_INT(tnk__read_u64(&at, NULL, cases[i].max, &value), cases[i].err);
    CHECK(at == cases[i].text + (cases[i].err ? 0 : strlen(cases[i].text)));
    CHECK(value == (cases[i].err ? 7 : cases[i].max));
    CHECK_INT(tnk__text_u64(cases[i].text, cases[i].max, &value), cases[i].err);
  }
}

TEST(a_whole_text_is_the_number_and_nothing_else) {
  uint64_t value = 7;

  CHECK_INT(tnk__text_u64("12", 100, &value), TNK_OK);
  CHECK_INT(value, 12);
  CHECK_INT(tnk__text_u64("13 ", 100, &value), TNK_EINVAL);
  CHECK_INT(tnk__text_u64("1e1", 100, &value), TNK_EINVAL);
  CHECK_INT(value, 12);
}
