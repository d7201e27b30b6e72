/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_RL_ADDRESS_H
#define TNK_TOOLS_TNK_RL_ADDRESS_H

/* Where the gateway listens, for --url. */
typedef struct {
  char host[64]; /* numeric */
  int port;      /* 0: a free one */
} rl_address_t;

/* Read "http://127.0.0.1:8000" or "http://[::1]:0". Returns 0, or -1 if it is
 * something else. */
int rl_address_read(rl_address_t *out, const char *url);

#endif
