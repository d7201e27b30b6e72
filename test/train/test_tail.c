/* SPDX-License-Identifier: MIT */
#include "tools/tnk/rl/tail.h"

#include <string.h>

#include "support/test.h"

static const char key[] = "tnk-0123456789abcdef0123456789abcdef0123456789abcdef"
                          "0123456789abcdef";

static void add(rl_tail_t *tail, const char *text) {
  rl_tail_add(tail, text, strlen(text));
}

TEST(the_last_lines_without_blanks) {
  rl_tail_t tail = {0};

  add(&tail, "one\ntwo\nthr");
  add(&tail, "ee\n\n \n");
  rl_tail_end(&tail, key);
  CHECK(strcmp(rl_tail_lines(&tail, 2), "two\nthree") == 0);
  CHECK(strcmp(rl_tail_lines(&tail, 9), "one\ntwo\nthree") == 0);
  CHECK(strcmp(rl_tail_lines(&tail, 1), "three") == 0);
}

TEST(no_output_is_an_empty_line) {
  rl_tail_t tail = {0};

  rl_tail_end(&tail, key);
  CHECK(strcmp(rl_tail_lines(&tail, 3), "") == 0);
}

TEST(only_the_end_of_much_output_stays) {
  static rl_tail_t tail;
  static char much[3 * RL_TAIL_ROOM];

  memset(&tail, 0, sizeof(tail));
  memset(much, 'x', sizeof(much));
  rl_tail_add(&tail, much, sizeof(much));
  rl_tail_add(&tail, much, 5);
  add(&tail, "\nend\n");
  rl_tail_end(&tail, key);
  CHECK(tail.n == RL_TAIL && tail.is_cut);
  CHECK(strcmp(rl_tail_lines(&tail, 1), "end") == 0);
}

TEST(a_zero_byte_does_not_end_the_output) {
  rl_tail_t tail = {0};

  rl_tail_add(&tail, "a\0b\n", 4);
  rl_tail_end(&tail, key);
  CHECK(strcmp(rl_tail_lines(&tail, 1), "a b") == 0);
}

/* Wherever the key is, and however the output is cut, no part of it stays. */
TEST(the_key_is_hidden_at_each_place) {
  static rl_tail_t tail;
  static char much[2 * RL_TAIL_ROOM];
  const size_t n_key = strlen(key);

  for (size_t at = 0; at + n_key <= sizeof(much); at++)
    for (size_t first = 0; first < 2; first++) {
      const size_t n = first == 0 ? 0 : at + n_key / 2;

      memset(&tail, 0, sizeof(tail));
      memset(much, '.', sizeof(much));
      memcpy(much + at, key, n_key);
      rl_tail_add(&tail, much, n);
      rl_tail_add(&tail, much + n, sizeof(much) - n);
      rl_tail_end(&tail, key);
      CHECK(strpbrk(tail.bytes, "tnk0123456789abcdef") == NULL);
    }
}
