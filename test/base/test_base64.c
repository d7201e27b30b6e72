/* SPDX-License-Identifier: MIT */
#include "lib/base/base64.h"

#include <stdio.h>
#include <string.h>

#include "codec/bodies.h"

static const struct {
  const char *plain;
  const char *text;
} vectors[] = {{"", ""},
               {"f", "Zg=="},
               {"fo", "Zm8="},
               {"foo", "Zm9v"},
               {"foob", "Zm9vYg=="},
               {"fooba", "Zm9vYmE="},
               {"foobar", "Zm9vYmFy"},
               {"\xfb\xff\xbf", "+/+/"}};

static int read_text(const char *text, uint8_t *out, size_t *n) {
  tnk__buf_t buf;
  int err;

  tnk__buf_init(&buf, test_allocator(), 64);
  err = tnk__base64_read(&buf, text, strlen(text));
  *n = buf.len;
  if (buf.len > 0)
    memcpy(out, buf.data, buf.len);
  tnk__buf_deinit(&buf);
  return err;
}

TEST(base64_writes_the_standard_vectors) {
  size_t i;

  for (i = 1; i < sizeof(vectors) / sizeof(vectors[0]); i++)
    CHECK_WRITES(
        tnk__base64_write(&out, vectors[i].plain, strlen(vectors[i].plain)),
        vectors[i].text);
}

TEST(base64_reads_what_it_writes) {
  uint8_t out[64];
  size_t i, n;

  for (i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
    CHECK_INT(read_text(vectors[i].text, out, &n), TNK_OK);
    CHECK_MEM(out, n, vectors[i].plain, strlen(vectors[i].plain));
  }
}

TEST(base64_reads_the_other_alphabet_and_missing_padding) {
  uint8_t out[64];
  size_t n;

  CHECK_INT(read_text("-_-_", out, &n), TNK_OK);
  CHECK_MEM(out, n, "\xfb\xff\xbf", 3);
  CHECK_INT(read_text("Zg", out, &n), TNK_OK);
  CHECK_MEM(out, n, "f", 1);
  CHECK_INT(read_text("Zm9vYmE", out, &n), TNK_OK);
  CHECK_MEM(out, n, "fooba", 5);
}

TEST(base64_refuses_malformed_text) {
  static const char *const bad[] = {
      "Z",    "Z===", "Zg=",  "Zm8==", "=",       "====",  "Zm9v=", "Zg==Zg==",
      "Zh==", "Zm9=", "Zm9 ", "Zm9\n", "Zm9\xff", "Zm9vY", "Z=g="};
  uint8_t out[64];
  size_t i, n;

  for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    CHECK_INT(read_text(bad[i], out, &n), TNK_EPROTO);
    CHECK_INT(n, 0);
  }
}

/* Every split of the text into lines means the same, also in place. */
TEST(base64_reads_lines) {
  static const char *const bad[] = {
      "Z",    "Z===", "Zg=",   "Zm8",      "Zg",      "=",     "====", "Zh==",
      "Zm9=", "Z=g=", "Zm9v=", "Zg==Zg==", "Zm9\xff", "Zm9vY", "Zm9-", "Zm9,"};
  static const char text[] = "Zm9vYmFyZg==";
  char lines[64];

  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    size_t n = strlen(bad[i]);
    memcpy(lines, bad[i], n);
    CHECK(tnk__base64_read_lines((uint8_t *)lines, lines, n) == SIZE_MAX);
  }
  CHECK_INT(tnk__base64_read_lines((uint8_t *)lines, lines, 0), 0);
  for (size_t cut = 0; cut < sizeof(text); cut++) {
    snprintf(lines, sizeof(lines), " %.*s\r\n\t%s\n", (int)cut, text,
             text + cut);
    CHECK_MEM(lines,
              tnk__base64_read_lines((uint8_t *)lines, lines, strlen(lines)),
              "foobarf", 7);
  }
}

TEST(base64_reports_lack_of_memory_and_room) {
  tnk__buf_t buf;

  tnk__buf_init(&buf, test_allocator(), 2);
  CHECK_INT(tnk__base64_read(&buf, "Zm9v", 4), TNK_ETOOBIG);
  tnk__buf_deinit(&buf);
  tnk__buf_init(&buf, test_allocator(), 3);
  test_alloc_fail_at(0);
  CHECK_INT(tnk__base64_read(&buf, "Zm9v", 4), TNK_ENOMEM);
  tnk__buf_deinit(&buf);
  CHECK_INT(tnk__base64_read(&buf, "Zm9v", 4), TNK_OK);
  tnk__buf_deinit(&buf);
}
