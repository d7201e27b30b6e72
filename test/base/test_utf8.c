/* SPDX-License-Identifier: MIT */
#include "lib/base/utf8.h"

#include <string.h>

#include "support/test.h"

TEST(text_ends_where_it_is_broken) {
  static const struct {
    const char *text;
    size_t good, bad;
    int cut;
  } cases[] = {{"ab\x80", 2, 1, 0},           {"\xc0\xaf", 0, 1, 0},
               {"\xe2\x82", 0, 2, 1},         {"a\xe2\x82z", 1, 2, 0},
               {"\xed\xa0\x80", 0, 1, 0},     {"\xf0\x90\x80", 0, 3, 1},
               {"\xf4\x90\x80\x80", 0, 1, 0}, {"\xf5", 0, 1, 0},
               {"12345678\xff", 8, 1, 0},     {"\xe0\x80\x80", 0, 1, 0}};

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    const uint8_t *p = (const uint8_t *)cases[i].text;
    size_t n = strlen(cases[i].text), bad;
    int cut;

    CHECK_INT(tnk__utf8_valid(p, n), cases[i].good);
    CHECK_INT(tnk__utf8_check(p + cases[i].good, n - cases[i].good, &bad, &cut),
              0);
    CHECK_INT(bad, cases[i].bad);
    CHECK_INT(cut, cases[i].cut);
  }
}

/* The length of the character at the front by the definition: its number must
 * be what these bytes are written for. 0: there is none. */
static size_t decode(const uint8_t *s, size_t n) {
  static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  size_t length = s[0] < 0x80             ? 1
                  : (s[0] & 0xe0) == 0xc0 ? 2
                  : (s[0] & 0xf0) == 0xe0 ? 3
                  : (s[0] & 0xf8) == 0xf0 ? 4
                                          : 0;
  uint32_t cp = length < 2 ? s[0] : s[0] & (0x7fu >> length);

  if (length == 0 || length > n)
    return 0;
  for (size_t i = 1; i < length; i++) {
    if ((s[i] & 0xc0) != 0x80)
      return 0;
    cp = cp << 6 | (s[i] & 0x3fu);
  }
  if (cp < smallest[length] || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
    return 0;
  return length;
}

static void check_all(uint8_t *s) {
  size_t n = decode(s, 4), good = tnk__utf8_valid(s, 4);

  CHECK_INT(tnk__utf8_char((char *)s, 4), n);
  CHECK_INT(tnk__utf8_char((char *)s, 2), decode(s, 2));
  CHECK(n == 0 ? good == 0 : good >= n);
}

/* The first two bytes are all there are; behind them stand those at which the
 * answer may change. */
TEST_LIMIT(the_length_of_a_character_is_that_of_its_definition, 30) {
  static const uint8_t edges[] = {0, 0x7f, 0x80, 0xbf, 0xc0, 0xff};
  uint8_t s[4];

  for (unsigned v = 0; v < 1u << 16; v++)
    for (size_t i = 0; i < sizeof(edges) * sizeof(edges); i++) {
      s[0] = (uint8_t)(v >> 8);
      s[1] = (uint8_t)v;
      s[2] = edges[i / sizeof(edges)];
      s[3] = edges[i % sizeof(edges)];
      check_all(s);
    }
}

/* Each character is written as what is read as it. */
TEST(characters_are_written) {
  uint8_t s[4];

  for (uint32_t c = 0; c <= 0x10ffff; c++) {
    size_t n = tnk__utf8_put(s, c);
    uint32_t back = n == 1 ? s[0] : s[0] & (0x7fu >> n);

    if (c >= 0xd800 && c <= 0xdfff)
      continue;
    CHECK_INT(decode(s, n), n);
    for (size_t i = 1; i < n; i++)
      back = back << 6 | (s[i] & 0x3fu);
    CHECK_INT(back, c);
  }
}

TEST(each_byte_that_belongs_to_no_character_becomes_a_question_mark) {
  char text[] = "a\xc3\xa9\xe2\x82z\xff\xf0\x9f\x98\x80\xc3";

  tnk__utf8_repair(text);
  CHECK_STR(text, "a\xc3\xa9??z?\xf0\x9f\x98\x80?");
}
