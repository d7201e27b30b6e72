#include "tools/tnk/serve/template.h"

#include <stdio.h>
#include <stdlib.h>

#include <uv.h>

#include "tnk/hub.h"
#include "tools/common/base/input.h"

static int load(const cli_t *cli, const char *path,
                const tnk_chat_template_options_t *options,
                tnk_chat_template_t **out) {
  tnk_chat_error_t error = {0};

  if (tnk_chat_template_load(out, path, options, &error) == TNK_OK)
    return CLI_EXIT_OK;
  return error.line > 0 ? cli_fail(cli, CLI_EXIT_FILE, "%s, line %u: %s", path,
                                   error.line, error.text)
                        : cli_fail(cli, CLI_EXIT_FILE, "%s", error.text);
}

/* Cached files of a model are in separate places, so the configuration with the
 * token names is read separately. */
static int load_cached(const cli_t *cli, const char *jinja, const char *config,
                       tnk_chat_template_t **out) {
  tnk_chat_template_options_t options = TNK_CHAT_TEMPLATE_OPTIONS_INIT;
  char why[512];
  char *text = NULL;
  int status;

  if (jinja != NULL && config != NULL) {
    text = cli_read_file(config, &options.n_config, why, sizeof(why));
    if (text == NULL)
      return cli_fail(cli, CLI_EXIT_FILE, "%s", why);
    options.config = text;
  }
  status = load(cli, jinja != NULL ? jinja : config, &options, out);
  free(text);
  return status;
}

static int ask(const cli_t *cli, tnk_hub_t *hub, const char *model,
               tnk_chat_template_t **out) {
  tnk_promise_t *jinja = tnk_hub_file(hub, model, "chat_template.jinja", NULL);
  tnk_promise_t *config =
      tnk_hub_file(hub, model, "tokenizer_config.json", NULL);
  int has_jinja = tnk_wait(jinja) == TNK_OK;
  int has_config = tnk_wait(config) == TNK_OK;
  int status;

  if (has_jinja || has_config)
    status = load_cached(cli, has_jinja ? tnk_promise_path(jinja) : NULL,
                         has_config ? tnk_promise_path(config) : NULL, out);
  else
    status = cli_fail(cli, cli_exit_of(tnk_promise_status(config)),
                      "%s; --template names a file with the model's template",
                      tnk_promise_text(config));
  tnk_promise_unref(jinja);
  tnk_promise_unref(config);
  return status;
}

static int open_model(const cli_t *cli, const char *model,
                      tnk_chat_template_t **out) {
  tnk_hub_options_t options = TNK_HUB_OPTIONS_INIT;
  int status = CLI_EXIT_FAILED;
  char why[512];
  tnk_hub_t *hub;
  uv_loop_t loop;

  if (uv_loop_init(&loop) != 0)
    return cli_fail(cli, CLI_EXIT_FAILED, "no event loop can be made");
  if (tnk_hub_open(&hub, &loop, &options, why, sizeof(why)) == TNK_OK) {
    status = ask(cli, hub, model, out);
    tnk_hub_close(hub, NULL, NULL);
  } else {
    status = cli_fail(cli, CLI_EXIT_FAILED, "%s", why);
  }
  /* The hub must finish closing before the loop can be closed. */
  (void)uv_run(&loop, UV_RUN_DEFAULT);
  (void)uv_loop_close(&loop);
  return status;
}

int cli_template_open(const cli_t *cli, const char *path, const char *model,
                      tnk_chat_template_t **out) {
  /* The name of a model may be the path of a directory, as for its
   * tokenizer. */
  if (path == NULL && model[0] == '/')
    path = model;
  return path != NULL ? load(cli, path, NULL, out)
                      : open_model(cli, model, out);
}
