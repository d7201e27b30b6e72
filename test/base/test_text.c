/* SPDX-License-Identifier: MIT */
#include "lib/base/text.h"

#include <stdio.h>
#include <string.h>

#include "support/test.h"

TEST(text_grows_piece_by_piece) {
  char data[32];
  tnk__text_t text;

  tnk__text_init(&text, data, sizeof(data));
  CHECK_STR(data, "");
  tnk__text_printf(&text, "%s-%d", "a", 7);
  tnk__text_printf(&text, "%s", "b\tc\n\x1b");
  CHECK_STR(data, "a-7b c  ");
  CHECK_INT(text.len, 8);
}

/* U+009B begins an escape sequence, U+0085 a line; U+00A9 is a letter. */
TEST(text_holds_nothing_that_acts_on_a_terminal) {
  char data[32];
  tnk__text_t text;

  tnk__text_init(&text, data, sizeof(data));
  tnk__text_printf(&text, "a%sb", "\xc2\x9b\x7f\xc2\x85\xc2\xa9");
  CHECK_STR(data, "a     \xc2\xa9"
                  "b");
  CHECK_INT(text.len, 9);
}

TEST(text_is_cut_but_counted) {
  char data[6];
  tnk__text_t text;

  tnk__text_init(&text, data, sizeof(data));
  tnk__text_printf(&text, "1234");
  tnk__text_printf(&text, "5678");
  CHECK_STR(data, "12345");
  tnk__text_printf(&text, "9");
  CHECK_STR(data, "12345");
  CHECK_INT(text.len, 9);
  tnk__text_init(&text, NULL, 0);
  tnk__text_printf(&text, "1234");
  CHECK_INT(text.len, 4);
}

TEST(text_is_never_cut_inside_a_character) {
  static const char whole[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80";
  static const size_t good[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};
  char data[16];
  tnk__text_t text;

  for (size_t size = 1; size <= 11; size++) {
    tnk__text_init(&text, data, size);
    tnk__text_printf(&text, "%s", whole);
    CHECK_INT(text.len, 10);
    CHECK_INT(strlen(data), good[size - 1]);
    CHECK(memcmp(data, whole, good[size - 1]) == 0);
  }
}

TEST(text_of_times) {
  static const struct {
    uint64_t ms;
    const char *text;
  } rows[] = {{0, "0 ms"},
              {999, "999 ms"},
              {1000, "1.0 s"},
              {119999, "119.9 s"},
              {120000, "2 min 0 s"},
              {7199999, "119 min 59 s"},
              {7200000, "2 h 0 min"},
              {UINT64_MAX, "5124095576030 h 25 min"}};
  char data[32];
  tnk__text_t text;

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    tnk__text_init(&text, data, sizeof(data));
    tnk__text_time(&text, rows[i].ms);
    CHECK_STR(data, rows[i].text);
  }
}

TEST(text_of_bytes) {
  static const struct {
    uint64_t n;
    const char *text;
  } rows[] = {{0, "0 bytes"},           {9999, "9999 bytes"},
              {10000, "10.0 kB"},       {999999, "999.9 kB"},
              {1000000, "1.0 MB"},      {3912345, "3.9 MB"},
              {1073741824, "1073.7 MB"}};
  char data[32];
  tnk__text_t text;

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    tnk__text_init(&text, data, sizeof(data));
    tnk__text_bytes(&text, rows[i].n);
    CHECK_STR(data, rows[i].text);
  }
}
