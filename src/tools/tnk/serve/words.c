/* SPDX-License-Identifier: MIT */
#include "tools/tnk/serve/words.h"

#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "tnk/hub.h"
#include "tnk/tokenizers.h"
#include "tools/common/base/input.h"

/* The model of tnk local; its tokens are bytes. */
#define BYTE_MODEL "tnk/byte-lm"

/* ---- Templates ---- */

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
    return cli_fail(cli, CLI_EXIT_FAILED, "cannot create an event loop");
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

/* Open the chat template of a file or folder or, if `path` is NULL, of a model
 * on the hub. Returns the exit status; errors have been reported. *out receives
 * one reference. */
static int template_open(const cli_t *cli, const char *path, const char *model,
                         tnk_chat_template_t **out) {
  /* The name of a model may be the path of a directory, as for its
   * tokenizer. */
  if (path == NULL && model[0] == '/')
    path = model;
  return path != NULL ? load(cli, path, NULL, out)
                      : open_model(cli, model, out);
}

/* ---- Words ---- */

const char *cli_words_check(const cli_words_args_t *args) {
  if (args->renderer != NULL && tnk_chat_find(args->renderer) == NULL)
    return "--renderer: unknown renderer";
  for (size_t i = 0; i < args->sets.n; i++)
    if (strchr(args->sets.items[i], '=') == NULL)
      return "--set needs NAME=JSON";
  return NULL;
}

static int set_variables(cli_words_t *words, const cli_t *cli,
                         const cli_words_args_t *args) {
  const tnk_chat_renderer_t *renderer =
      args->renderer != NULL ? tnk_chat_find(args->renderer) : NULL;

  words->family = renderer != NULL ? renderer->family : TNK_CHAT_PLAIN;
  for (size_t i = 0; renderer != NULL && i < renderer->n_variables; i++)
    if (words->n_variables < CLI_MAX_VARIABLES)
      words->variables[words->n_variables++] = renderer->variables[i];
  for (size_t i = 0; i < args->sets.n; i++) {
    const char *text = args->sets.items[i];
    const size_t at = words->n_variables;
    const size_t n = strcspn(text, "=");

    if (at == CLI_MAX_VARIABLES || n >= sizeof(words->names[0]))
      return cli_fail(cli, CLI_EXIT_USAGE,
                      "--set: too many variables, or too long a name");
    memcpy(words->names[at], text, n);
    words->names[at][n] = '\0';
    words->variables[at] = (tnk_pair_t){words->names[at], text + n + 1};
    words->n_variables++;
  }
  return CLI_EXIT_OK;
}

static int open_tokenizer(cli_words_t *words, const cli_t *cli,
                          const cli_words_args_t *args) {
  cli_tokenizer_t which = args->which;
  char why[512] = "";
  int status = CLI_EXIT_OK;

  if (which.path == NULL)
    which.model = args->model;
  words->tokenizer = cli_tokenizer_open(cli, &which, &status, why, sizeof(why));
  return words->tokenizer != NULL
             ? CLI_EXIT_OK
             : cli_tokenizer_failed(cli, &which, status, why, NULL);
}

int cli_words_open(cli_words_t *words, const cli_t *cli,
                   const cli_words_args_t *args) {
  const int is_bytes =
      args->which.path == NULL && strcmp(args->model, BYTE_MODEL) == 0;
  const int is_plain = args->template_ == NULL
                           ? is_bytes
                           : strcmp(args->template_, "plain") == 0;
  int status;

  *words = (cli_words_t){0};
  status = is_bytes ? CLI_EXIT_OK : open_tokenizer(words, cli, args);
  if (status == CLI_EXIT_OK && !is_plain)
    status =
        template_open(cli, args->template_, args->model, &words->template_);
  return status == CLI_EXIT_OK ? set_variables(words, cli, args) : status;
}

void cli_words_give(const cli_words_t *words, tnk_gateway_options_t *options) {
  options->tokenizer =
      (tnk_chat_tokenizer_t){words->tokenizer != NULL ? tnk_tokenizer_plugin()
                                                      : tnk_chat_bytes_plugin(),
                             words->tokenizer};
  options->template_ = words->template_;
  options->variables = words->variables;
  options->n_variables = words->n_variables;
  options->family = words->family;
}

void cli_words_close(cli_words_t *words) {
  tnk_chat_template_unref(words->template_);
  tnk_tokenizer_unref(words->tokenizer);
}
