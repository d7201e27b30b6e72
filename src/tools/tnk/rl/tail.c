/* SPDX-License-Identifier: MIT */
#include "tools/tnk/rl/tail.h"

#include <ctype.h>
#include <string.h>

void rl_tail_add(rl_tail_t *tail, const char *bytes, size_t n) {
  size_t kept = tail->n;

  if (n > RL_TAIL_ROOM) {
    bytes += n - RL_TAIL_ROOM;
    n = RL_TAIL_ROOM;
    tail->is_cut = 1;
  }
  if (kept > RL_TAIL_ROOM - n) {
    kept = RL_TAIL_ROOM - n;
    memmove(tail->bytes, tail->bytes + tail->n - kept, kept);
    tail->is_cut = 1;
  }
  memcpy(tail->bytes + kept, bytes, n);
  tail->n = kept + n;
}

static void hide(rl_tail_t *tail, const char *key) {
  const size_t n_key = strlen(key);

  for (size_t at = 0; n_key > 0 && at + n_key <= tail->n; at++)
    if (memcmp(tail->bytes + at, key, n_key) == 0)
      memset(tail->bytes + at, '*', n_key);
}

void rl_tail_end(rl_tail_t *tail, const char *key) {
  hide(tail, key);
  if (tail->n > RL_TAIL) {
    memmove(tail->bytes, tail->bytes + tail->n - RL_TAIL, RL_TAIL);
    tail->n = RL_TAIL;
    tail->is_cut = 1;
  }
  for (size_t i = 0; i < tail->n; i++)
    if (tail->bytes[i] == '\0')
      tail->bytes[i] = ' ';
  tail->bytes[tail->n] = '\0';
}

char *rl_tail_lines(rl_tail_t *tail, size_t n_lines) {
  size_t at;

  while (tail->n > 0 && isspace((unsigned char)tail->bytes[tail->n - 1]))
    tail->n--;
  tail->bytes[tail->n] = '\0';
  for (at = tail->n; at > 0; at--)
    if (tail->bytes[at - 1] == '\n' && --n_lines == 0)
      break;
  return tail->bytes + at;
}
