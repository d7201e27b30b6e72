/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_LEARN_SERVED_H
#define TNK_TOOLS_TNK_LEARN_SERVED_H

#include "tools/local/server.h"
#include "tools/tnk/ask/ask.h"

/* The local server of --local. It has the loop of the command and closes with
 * it. */
typedef struct {
  local_server_t *server;
  char url[64];
} learn_served_t;

/* Start it after cli_ask_begin(), with its checkpoints in the folder `data`,
 * and make `options` lead to it. `n_vocab` is the number of token ids; 0: the
 * model's own. Returns the exit status; errors have been reported. */
int learn_served_open(learn_served_t *served, cli_ask_t *ask, const char *data,
                      const char *model, size_t n_vocab,
                      tnk_service_options_t *options);

#endif
