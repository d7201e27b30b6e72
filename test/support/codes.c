/* SPDX-License-Identifier: MIT */
#include "support/codes.h"

#include <stddef.h>
#include <string.h>

#include "tnk/error.h"

static const struct {
  const char *name;
  int code;
} listed[] = {
#include "listed_codes.inc"
};

int test_code_is_listed(const char *sentence, int code) {
  const size_t n = strcspn(sentence, ":");
  int is_known = 0;

  for (size_t i = 0; i < sizeof(listed) / sizeof(listed[0]); i++) {
    if (strlen(listed[i].name) != n ||
        strncmp(listed[i].name, sentence, n) != 0)
      continue;
    if (listed[i].code == code)
      return 1;
    is_known = 1;
  }
  return !is_known;
}
