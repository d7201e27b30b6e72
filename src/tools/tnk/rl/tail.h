/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_RL_TAIL_H
#define TNK_TOOLS_TNK_RL_TAIL_H

#include <stddef.h>

#include "tnk/gateway.h"

enum {
  RL_TAIL = 2048, /* bytes that can be shown */
  /* The key of an environment is hidden. A key whose start was dropped ends
   * before the bytes that can be shown. */
  RL_TAIL_ROOM = RL_TAIL + TNK_GATEWAY_KEY_SIZE
};

/* The last bytes of an output, however long it is. */
typedef struct {
  char bytes[RL_TAIL_ROOM + 1];
  size_t n;
  int is_cut; /* there were more */
} rl_tail_t;

void rl_tail_add(rl_tail_t *tail, const char *bytes, size_t n);
/* At the end of the output: replace `key` by asterisks, and cut the tail to
 * what can be shown. The bytes are then a string. */
void rl_tail_end(rl_tail_t *tail, const char *key);
/* Returns the last `n_lines` lines of an ended tail, as a part of it. Blank
 * lines at its end are removed. */
char *rl_tail_lines(rl_tail_t *tail, size_t n_lines);

#endif
