/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/relative.h"

#include <string.h>

#include "support/test.h"

static const char *check(const char *name) {
  return tnk__relative_check(name, strlen(name));
}

TEST(O2_names_below_a_directory_pass) {
  static const char *const good[] = {
      "adapter_config.json",
      "a/b/c.safetensors",
      ".gitattributes",
      "...",
      "..a/b..",
      "a b",
      "run:1/weights",
      "\xc3\xa4/\xe4\xb8\xad.age",
      "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16",
  };

  for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
    CHECK_STR(check(good[i]), NULL);
}

TEST(O2_names_that_leave_the_directory_or_are_no_file_are_refused) {
  static const struct {
    const char *name, *why;
  } bad[] = {
      {"", "is empty"},
      {"/etc/passwd", "is absolute"},
      {"/", "is absolute"},
      {"..", "leaves the directory"},
      {"../x", "leaves the directory"},
      {"a/../../x", "leaves the directory"},
      {"a/..", "leaves the directory"},
      {".", "names a directory"},
      {"./x", "names a directory"},
      {"a/./x", "names a directory"},
      {"a/", "names a directory"},
      {"a//b", "has an empty part"},
      {"..\\x", "has a character that names of files must not have"},
      {"C:x", "has a character that names of files must not have"},
      {"a\nb", "has a character that names of files must not have"},
      {"a\x7f", "has a character that names of files must not have"},
      {"a\xc2\x9b", "has a character that names of files must not have"},
      {"a\xff", "is not UTF-8"},
      {"a\xc2", "is not UTF-8"},
      {"a\xc0\xae", "is not UTF-8"},
      {"1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", "has too many parts"},
  };

  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
    CHECK_STR(check(bad[i].name), bad[i].why);
  CHECK_STR(tnk__relative_check("a\0b", 3),
            "has a character that names of files must not have");
}

TEST(O2_names_are_as_long_as_file_systems_take) {
  char name[TNK__RELATIVE_MAX + 2];

  memset(name, 'a', sizeof(name));
  CHECK_STR(tnk__relative_check(name, TNK__RELATIVE_PART_MAX), NULL);
  CHECK_STR(tnk__relative_check(name, TNK__RELATIVE_PART_MAX + 1),
            "has a part that is too long");
  for (size_t i = 100; i < sizeof(name); i += 100)
    name[i] = '/';
  CHECK_STR(tnk__relative_check(name, TNK__RELATIVE_MAX), NULL);
  CHECK_STR(tnk__relative_check(name, TNK__RELATIVE_MAX + 1), "is too long");
}

TEST(names_that_cannot_stand_side_by_side_are_told) {
  CHECK(tnk__relative_clash("a", "a"));
  CHECK(tnk__relative_clash("a", "a/b"));
  CHECK(tnk__relative_clash("a/b/c", "a/b"));
  CHECK(!tnk__relative_clash("a", "ab"));
  CHECK(!tnk__relative_clash("a/b", "a/bc"));
  CHECK(!tnk__relative_clash("a/b", "a/c"));
  CHECK(!tnk__relative_clash("a.b", "a/b"));
}
