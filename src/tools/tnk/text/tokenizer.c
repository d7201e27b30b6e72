/* SPDX-License-Identifier: MIT */
/*
 * Opens the tokenizer that the options name. A file, or a model whose name is
 * the path of a directory, is opened with libtnk-tokenizers only. Other models
 * use a hub of libtnk on a separate loop, with libtnk-tokenizers as its
 * plug-in.
 */
#include "tools/tnk/text/tokenizer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <uv.h>

#include "tnk/hub.h"

const char *cli_tokenizer_check(const cli_tokenizer_t *which) {
  if (which->path == NULL && which->model == NULL)
    return "--tokenizer or --model is missing";
  if (which->path != NULL && which->model != NULL)
    return "either --tokenizer or --model";
  if (which->revision != NULL && which->model == NULL)
    return "--revision needs --model";
  return NULL;
}

/* ---- From a hub ---- */

/* One line that is overwritten, and removed at the end. */
static void on_progress(const char *file, uint64_t n_bytes, uint64_t n_total,
                        void *user) {
  int *has_line = user;

  *has_line = 1;
  fprintf(stderr, "\r\033[K%s  %.1f MB", file, (double)n_bytes / 1e6);
  if (n_total > 0)
    fprintf(stderr, " of %.1f  %" PRIu64 "%%", (double)n_total / 1e6,
            n_bytes * 100 / n_total);
  fflush(stderr);
}

static void on_log(tnk_log_level_t level, const char *subject,
                   const char *message, size_t length, void *user) {
  (void)level;
  (void)subject;
  cli_note(user, "tnk: %.*s", (int)length, message);
}

static tnk_tokenizer_t *ask(tnk_hub_t *hub, const cli_tokenizer_t *which,
                            int *status, char *why, size_t n_why) {
  tnk_hub_tokenizer_options_t options = TNK_HUB_TOKENIZER_OPTIONS_INIT;
  tnk_tokenizer_t *tok = NULL;
  tnk_promise_t *promise;

  options.revision = which->revision;
  promise =
      tnk_hub_tokenizer(hub, tnk_tokenizer_plugin(), which->model, &options);
  if (tnk_wait(promise) == TNK_OK)
    tok = tnk_tokenizer_ref(tnk_promise_tokenizer(promise));
  else
    (void)snprintf(why, n_why, "%s", tnk_promise_text(promise));
  *status = cli_exit_of(tnk_promise_status(promise));
  tnk_promise_unref(promise);
  return tok;
}

static tnk_tokenizer_t *open_model(const cli_t *cli,
                                   const cli_tokenizer_t *which, int *status,
                                   char *why, size_t n_why) {
  const tnk_logger_t logger = {TNK_LOG_WARN, on_log, (void *)(uintptr_t)cli};
  tnk_hub_options_t options = TNK_HUB_OPTIONS_INIT;
  tnk_tokenizer_t *tok = NULL;
  tnk_hub_t *hub;
  uv_loop_t loop;
  int has_line = 0;

  *status = CLI_EXIT_FAILED;
  if (uv_loop_init(&loop) != 0) {
    (void)snprintf(why, n_why, "cannot create an event loop");
    return NULL;
  }
  options.logger = &logger;
  /* In a log the line could not be overwritten. */
  if (cli_can_rewrite(stderr) && !cli->quiet)
    options.on_progress = on_progress;
  options.progress_user = &has_line;
  if (tnk_hub_open(&hub, &loop, &options, why, n_why) == TNK_OK) {
    tok = ask(hub, which, status, why, n_why);
    tnk_hub_close(hub, NULL, NULL);
  }
  /* The hub must finish closing before the loop can be closed. */
  (void)uv_run(&loop, UV_RUN_DEFAULT);
  (void)uv_loop_close(&loop);
  if (has_line)
    fprintf(stderr, "\r\033[K");
  return tok;
}

tnk_tokenizer_t *cli_tokenizer_open(const cli_t *cli,
                                    const cli_tokenizer_t *which, int *status,
                                    char *why, size_t n_why) {
  const char *path = which->model != NULL ? which->model : which->path;
  tnk_tokenizer_error_t error;
  tnk_tokenizer_t *tok;

  /* The name of a local server's model may be a directory. */
  if (which->model != NULL && which->model[0] != '/')
    return open_model(cli, which, status, why, n_why);
  if (tnk_tokenizer_load(&tok, path, NULL, &error) < 0)
    /* Errors of the contents do not name the file. */
    (void)snprintf(why, n_why, "%.200s%s%s",
                   strstr(error.text, path) == NULL ? path : "",
                   strstr(error.text, path) == NULL ? ": " : "", error.text);
  *status = CLI_EXIT_FILE;
  return tok;
}

int cli_tokenizer_failed(const cli_t *cli, const cli_tokenizer_t *which,
                         int status, const char *why, const char *hint) {
  cli_problem_t problem = {.status = status, .message = why, .hint = hint};
  char text[1024];

  if (which->model != NULL) {
    (void)snprintf(text, sizeof(text), "the tokenizer of %.200s: %s",
                   which->model, why);
    problem.message = text;
    problem.code = "tokenizer";
  }
  return cli_report(cli, &problem);
}
