/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "support/test.h"
#include "tnk/error.h"
#include "tokenizers/unicode/nfc.h"
#include "tokenizers/unicode/unicode.h"

static void check_form(tnk__form_t form, const char *text,
                       const char *expected) {
  tnk__buf_t out, work, changes;
  size_t n = strlen(text);

  tnk__buf_init(&out, test_allocator(), 1 << 20);
  tnk__buf_init(&work, test_allocator(), 1 << 20);
  tnk__buf_init(&changes, test_allocator(), 1 << 20);
  CHECK_INT(tnk__nfc(form, (const uint8_t *)text, n, &out, &work, &changes),
            TNK_OK);
  CHECK_MEM(out.data, out.len, expected, strlen(expected));
  if (strcmp(text, expected) == 0)
    CHECK_INT(changes.len, 0);
  else
    CHECK(changes.len > 0 &&
          tnk__nfc_check(form, (const uint8_t *)text, n) < n);
  tnk__buf_deinit(&out);
  tnk__buf_deinit(&work);
  tnk__buf_deinit(&changes);
}

static void check(const char *text, const char *expected) {
  check_form(TNK__NFC, text, expected);
}

TEST(composes) {
  check("abc", "abc");
  check("\xc3\xa9", "\xc3\xa9");
  check("xe\xcc\x81y", "x\xc3\xa9y");
  check("a\xcc\xa3\xcc\x87", "\xe1\xba\xa1\xcc\x87");
  /* marks are put in order first */
  check("a\xcc\x87\xcc\xa3", "\xe1\xba\xa1\xcc\x87");
  check("\xe2\x84\xab", "\xc3\x85"); /* angstrom sign */
  check("\xcc\x81", "\xcc\x81");     /* nothing to compose with */
  check(">\xcc\xb8", "\xe2\x89\xaf");
}

TEST(composes_hangul) {
  check("\xe1\x84\x80\xe1\x85\xa1", "\xea\xb0\x80");
  check("\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8", "\xea\xb0\x81");
  check("\xea\xb0\x80\xe1\x86\xa8", "\xea\xb0\x81");
  check("\xea\xb0\x81\xe1\x86\xa8", "\xea\xb0\x81\xe1\x86\xa8");
}

TEST(compatibility_characters_are_replaced) {
  /* A ligature, a circled digit, a wide letter, a blank of Latin 1. */
  check_form(TNK__NFKC, "\xef\xac\x81\xe2\x91\xa0\xef\xbc\xa1\xc2\xa0z",
             "fi1A z");
  check("\xef\xac\x81\xe2\x91\xa0\xef\xbc\xa1\xc2\xa0z",
        "\xef\xac\x81\xe2\x91\xa0\xef\xbc\xa1\xc2\xa0z");
  /* Half-width katakana: the mark composes with the letter before it. */
  check_form(TNK__NFKC, "\xef\xbd\xb6\xef\xbe\x9e", "\xe3\x82\xac");
  check_form(TNK__NFKC, "\xe3\x81\x8b\xef\xbe\x9e", "\xe3\x81\x8c");
  /* Compatibility letters of Hangul compose to a syllable. */
  check_form(TNK__NFKC, "\xe3\x84\xb1\xe3\x85\x8f", "\xea\xb0\x80");
  check_form(TNK__NFKC, "e\xcc\x81", "\xc3\xa9");
  /* The longest: 18 characters. */
  check_form(TNK__NFKC, "\xef\xb7\xba",
             "\xd8\xb5\xd9\x84\xd9\x89 "
             "\xd8\xa7\xd9\x84\xd9\x84\xd9\x87 "
             "\xd8\xb9\xd9\x84\xd9\x8a\xd9\x87 "
             "\xd9\x88\xd8\xb3\xd9\x84\xd9\x85");
}

TEST(a_mark_of_the_same_class_stops_composition) {
  /* dot below, dot below, then dot above */
  check("a\xcc\xa3\xcc\xa3\xcc\x87", "\xe1\xba\xa1\xcc\xa3\xcc\x87");
}

TEST(characters_younger_than_9_0_are_left_alone) {
  /* U+0C04..: U+0CC6 is old; U+1133B (10.0) is a mark that is not moved. */
  check("a\xcc\x81\xf0\x91\x8c\xbb", "\xc3\xa1\xf0\x91\x8c\xbb");
  check("\xf0\x91\x8c\xbb\xcc\xa3", "\xf0\x91\x8c\xbb\xcc\xa3");
}

/* 200,000 marks in the worst order take no quadratic time. */
TEST(long_runs_of_marks) {
  static char text[400008];
  tnk__buf_t out, work;
  size_t n = 0;

  text[n++] = 'a';
  for (int i = 0; i < 100000; i++) {
    memcpy(text + n, "\xcc\x87\xcc\xa3", 4);
    n += 4;
  }
  tnk__buf_init(&out, test_allocator(), 1 << 20);
  tnk__buf_init(&work, test_allocator(), 1 << 24);
  CHECK_INT(tnk__nfc(TNK__NFC, (uint8_t *)text, n, &out, &work, NULL), TNK_OK);
  CHECK_INT(out.len, n);
  CHECK_MEM(out.data, 5, "\xe1\xba\xa1\xcc\xa3", 5);
  tnk__buf_deinit(&out);
  tnk__buf_deinit(&work);
}
