/* SPDX-License-Identifier: MIT */
#include "tools/tnk/learn/served.h"

#include <stdio.h>
#include <string.h>

#include "tools/local/lm/lm.h"

static void close_server(void *user) {
  learn_served_t *served = user;

  local_server_close(served->server, NULL, NULL);
}

int learn_served_open(learn_served_t *served, cli_ask_t *ask, const char *data,
                      const char *model, size_t n_vocab,
                      tnk_service_options_t *options) {
  local_options_t with = LOCAL_OPTIONS_INIT;
  char why[256] = "";

  if (n_vocab > TNK__LM_MAX_VOCAB)
    return cli_fail(ask->cli, CLI_EXIT_FILE,
                    "the tokenizer has more than %d token ids",
                    (int)TNK__LM_MAX_VOCAB);
  with.data = data;
  with.n_vocab = n_vocab > TNK__LM_VOCAB ? (int32_t)n_vocab : 0;
  if (strcmp(model, TNK__LM_NAME) != 0)
    with.model = model;
  with.why = why;
  with.n_why = sizeof(why);
  if (local_server_open(&served->server, &ask->loop, &with) != 0)
    return cli_fail(ask->cli, CLI_EXIT_FAILED, "the local server: %s", why);
  ask->on_closed = close_server;
  ask->user = served;
  snprintf(served->url, sizeof(served->url), "http://127.0.0.1:%u",
           (unsigned)local_server_port(served->server));
  options->base_url = served->url;
  /* The server accepts any key of this form, and no proxy leads to it. */
  options->api_key = "tml-local";
  options->proxy = "";
  return CLI_EXIT_OK;
}
