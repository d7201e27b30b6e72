/* SPDX-License-Identifier: MIT */
#include "lib/wire/data/secret.h"

static char lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static int has(const char *text, const char *word) {
  for (; *text != '\0'; text++) {
    int n = 0;

    while (word[n] != '\0' && lower(text[n]) == lower(word[n]))
      n++;
    if (word[n] == '\0')
      return 1;
  }
  return 0;
}

int tnk__is_secret_key(const char *text) {
  return has(text, "AGE-SECRET-KEY") || has(text, "PRIVATE KEY");
}
