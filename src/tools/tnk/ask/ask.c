/* SPDX-License-Identifier: MIT */
#include "tools/tnk/ask/ask.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tnk/observe.h"
#include "tools/common/base/terminal.h"

/* ---- Errors ---- */

/* By the HTTP status, which is more specific than the code. */
static const char *hint_of_status(int http_status) {
  switch (http_status) {
  case 401:
    return "The service rejects this credential. tnk auth status shows which "
           "one is used.";
  case 403:
    return "This credential is not permitted to do this. tnk auth status shows "
           "which one is used.";
  default:
    return NULL;
  }
}

static const char *hint_of(int err) {
  switch (err) {
  case TNK_ECREDENTIAL:
    return "Run tnk auth login to store a key, or set TINKER_API_KEY or "
           "TINKER_CREDENTIAL_CMD. tnk auth status shows which one is used.";
  case TNK_EAUTH:
    return "tnk auth status shows which credential is used.";
  case TNK_ENOTFOUND:
    return "Check the spelling and the owner. The list commands show what "
           "exists.";
  case TNK_EREQUEST:
    return "The service rejected the request. Repeating it will not help.";
  case TNK_EBILLING:
    return "The account has no credit, or its limit is reached.";
  case TNK_ERATE:
    return "Too many requests. Try again later.";
  case TNK_ESERVER:
    return "The service has a problem. Try again later.";
  case TNK_ETIMEDOUT:
    return "The service did not respond in time. tnk ping shows whether it is "
           "up.";
  case TNK_EDNS:
  case TNK_ECONN:
    return "Check the address: --base-url or TINKER_BASE_URL, else the hosted "
           "service.";
  case TNK_EPROTO:
    return "Check the address. The server there may not speak the Tinker API.";
  case TNK_EPROXY:
    return "Proxies come from https_proxy, http_proxy, all_proxy and no_proxy.";
  case TNK_ETLS:
    return "Check whether this address uses https.";
  case TNK_ECERT:
    return "Set SSL_CERT_FILE to a file with certificates to trust.";
  case TNK_EUNSUPPORTED:
    return "Not every server offers this.";
  default:
    return NULL;
  }
}

/* With the command's own, more specific hint; NULL for the usual one. */
static int failure_with_hint(const cli_t *cli, int err, const char *message,
                             const tnk_error_t *error, const char *hint) {
  if (hint == NULL)
    hint = hint_of_status(error != NULL ? error->http_status : 0);
  return cli_report(
      cli,
      &(cli_problem_t){.status = cli_exit_of(err),
                       .message = message,
                       .code = tnk_err_name(err),
                       .hint = hint != NULL ? hint : hint_of(err),
                       .http_status = error != NULL ? error->http_status : 0,
                       .n_attempts = error != NULL ? error->n_attempts : 0});
}

int cli_failure(const cli_t *cli, int err, const char *message,
                const tnk_error_t *error) {
  return failure_with_hint(cli, err, message, error, NULL);
}

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_SIGNALS = sizeof(numbers) / sizeof(*numbers) };

/* ---- Signals and timeout ---- */

static void on_signal(uv_signal_t *signal, int number) {
  cli_ask_t *ask = signal->data;

  /* A second signal ends the process at once. */
  for (size_t i = 0; i < N_SIGNALS; i++)
    uv_signal_stop(&ask->signals[i]);
  ask->signal_number = number;
  if (!ask->ends_itself)
    tnk_promise_cancel(ask->waits_for);
}

static void on_late(uv_timer_t *timer) {
  cli_ask_t *ask = timer->data;

  ask->is_late = 1;
  if (!ask->ends_itself)
    tnk_promise_cancel(ask->waits_for);
}

/* A signal that the parent process ignores stays ignored, as with nohup(1). */
static int is_ignored(int number) {
  struct sigaction now;

  return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

/* ---- Progress messages ---- */

enum { PATIENCE_MS = 2000, REDRAW_MS = 1000 };

static void clear_line(cli_ask_t *ask) {
  if (ask->has_line)
    fprintf(stderr, "\r\033[K");
  ask->has_line = 0;
}

/* On a terminal one line is updated; elsewhere a line follows after 2 s, 4 s, 8
 * s ... */
static void on_patience(uv_timer_t *timer) {
  cli_ask_t *ask = timer->data;
  char text[512];

  if (ask->waits_for == NULL)
    return;
  tnk_promise_explain(ask->waits_for, text, sizeof(text));
  if (!cli_can_rewrite(stderr)) {
    cli_note(ask->cli, "%s", text);
    ask->waited_ms = ask->waited_ms == 0 ? PATIENCE_MS : ask->waited_ms * 2;
    uv_timer_start(timer, on_patience, ask->waited_ms, 0);
    return;
  }
  cli_clean(text);
  cli_cut(text, cli_columns(stderr) - 1);
  fprintf(stderr, "\r\033[K%s", text);
  fflush(stderr);
  ask->has_line = 1;
  uv_timer_start(timer, on_patience, REDRAW_MS, 0);
}

static void begin_patience(cli_ask_t *ask) {
  ask->waited_ms = 0;
  uv_update_time(&ask->loop);
  if (!ask->cli->quiet)
    uv_timer_start(&ask->patience, on_patience, PATIENCE_MS, 0);
}

static void end_patience(cli_ask_t *ask) {
  uv_timer_stop(&ask->patience);
  clear_line(ask);
}

void cli_ask_hush(cli_ask_t *ask) {
  end_patience(ask);
}

/* ---- Opening and closing ---- */

static int watch(cli_ask_t *ask) {
  if (uv_loop_init(&ask->loop) != 0)
    return -1;
  ask->has_loop = 1;
  for (size_t i = 0; i < N_SIGNALS; i++) {
    uv_signal_init(&ask->loop, &ask->signals[i]);
    ask->signals[i].data = ask;
    if (!is_ignored(numbers[i]))
      uv_signal_start(&ask->signals[i], on_signal, numbers[i]);
    uv_unref((uv_handle_t *)&ask->signals[i]);
  }
  uv_timer_init(&ask->loop, &ask->timer);
  ask->timer.data = ask;
  if (ask->cli->timeout_s > 0)
    uv_timer_start(&ask->timer, on_late, (uint64_t)ask->cli->timeout_s * 1000,
                   0);
  uv_unref((uv_handle_t *)&ask->timer);
  uv_timer_init(&ask->loop, &ask->patience);
  ask->patience.data = ask;
  uv_unref((uv_handle_t *)&ask->patience);
  return 0;
}

/* ---- The service ---- */

static const char *log_name(const cli_ask_t *ask) {
  return ask->log_name != NULL ? ask->log_name : "tnk";
}

static void on_log(tnk_log_level_t level, const char *subject,
                   const char *message, size_t length, void *user) {
  cli_ask_t *ask = user;

  (void)level;
  (void)subject;
  clear_line(ask);
  cli_note(ask->cli, "%s: %.*s", log_name(ask), (int)length, message);
}

tnk_logger_t cli_ask_logger(cli_ask_t *ask) {
  return (tnk_logger_t){ask->cli->verbose ? TNK_LOG_DEBUG : TNK_LOG_WARN,
                        on_log, ask};
}

/* Called inside the library. Its log has the retries. */
void cli_ask_event(const tnk_event_t *event, void *user) {
  cli_ask_t *ask = user;
  char what[64] = "";

  if (event->phase == TNK_PHASE_SENT)
    snprintf(what, sizeof(what), "request of %" PRIu64 " bytes", event->bytes);
  else if (event->phase == TNK_PHASE_RESULT)
    snprintf(what, sizeof(what), "status %d, %" PRIu64 " bytes", event->status,
             event->bytes);
  if (what[0] == '\0')
    return;
  clear_line(ask);
  cli_note(ask->cli, "%s: %s %" PRIu64 ": %s", log_name(ask), event->name,
           event->operation, what);
}

/* The time for which a command retries failed requests. */
enum { ASK_PATIENCE_MS = 60000 };

int cli_ask_serve(cli_ask_t *ask, const tnk_service_options_t *given) {
  const cli_t *cli = ask->cli;
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  const tnk_logger_t logger = cli_ask_logger(ask);
  char why[512];
  int err;

  if (given != NULL)
    options = *given;
  options.logger = &logger;
  /* A user at a terminal should see at once that credit is missing. */
  if (options.max_billing_pause_ms == 0)
    options.max_billing_pause_ms = UINT64_MAX;
  /* A user can repeat the command. */
  if (options.patience_ms == 0)
    options.patience_ms = ASK_PATIENCE_MS;
  if (cli->verbose && options.observer == NULL) {
    options.observer = cli_ask_event;
    options.observer_user = ask;
  }
  if (cli->base_url != NULL)
    options.base_url = cli->base_url;
  if (cli->retries >= 0)
    options.max_retries = cli_max_retries(cli);
  err = tnk_service_open(&ask->service, &ask->loop, &options, why, sizeof(why));
  return err == TNK_OK ? CLI_EXIT_OK : cli_failure(cli, err, why, NULL);
}

int cli_ask_begin(cli_ask_t *ask, const cli_t *cli) {
  memset(ask, 0, sizeof(*ask));
  ask->cli = cli;
  if (watch(ask) != 0)
    return cli_fail(cli, CLI_EXIT_FAILED, "cannot create an event loop");
  return CLI_EXIT_OK;
}

int cli_ask_open(cli_ask_t *ask, const cli_t *cli,
                 const tnk_service_options_t *options) {
  const int status = cli_ask_begin(ask, cli);

  return status == CLI_EXIT_OK ? cli_ask_serve(ask, options) : status;
}

int cli_ask_is_over(const cli_ask_t *ask) {
  return ask->signal_number != 0 || ask->is_late;
}

int cli_ask_wait(cli_ask_t *ask, tnk_promise_t *promise) {
  int err;

  ask->waits_for = promise;
  /* A signal or timeout between two waits ends this one too. */
  if (cli_ask_is_over(ask) && !ask->ends_itself)
    tnk_promise_cancel(promise);
  begin_patience(ask);
  err = tnk_wait(promise);
  end_patience(ask);
  ask->waits_for = NULL;
  return err;
}

static void on_enough(uv_timer_t *timer) {
  cli_ask_t *ask = timer->data;

  ask->waited_ms = 0;
}

void cli_ask_while(cli_ask_t *ask, int (*is_needed)(const void *user),
                   const void *user, uint64_t max_ms) {
  ask->waited_ms = max_ms;
  uv_update_time(&ask->loop);
  uv_timer_start(&ask->patience, on_enough, max_ms, 0);
  while (ask->waited_ms > 0 && is_needed(user) && !cli_ask_is_over(ask) &&
         uv_run(&ask->loop, UV_RUN_ONCE) != 0)
    continue;
  uv_timer_stop(&ask->patience);
}

int cli_ask_failed(const cli_ask_t *ask, const tnk_promise_t *promise) {
  return cli_ask_failed_with_hint(ask, promise, NULL);
}

int cli_ask_failed_with_hint(const cli_ask_t *ask, const tnk_promise_t *promise,
                             const char *hint) {
  const cli_t *cli = ask->cli;

  if (ask->signal_number != 0)
    return cli_report(cli, &(cli_problem_t){.status = CLI_EXIT_INTERRUPT,
                                            .message = "interrupted"});
  if (ask->is_late)
    return cli_report(cli,
                      &(cli_problem_t){.status = CLI_EXIT_NETWORK,
                                       .message = "timed out (--timeout)",
                                       .code = tnk_err_name(TNK_ETIMEDOUT)});
  return failure_with_hint(cli, tnk_promise_status(promise),
                           tnk_promise_text(promise),
                           tnk_promise_error(promise), hint);
}

/* Returns 1 if the service lists its models without this one. */
static int is_no_model(cli_ask_t *ask, const char *model) {
  tnk_promise_t *promise = tnk_service_capabilities(ask->service);
  const tnk_capabilities_t *offer;
  int is_missing = 0;

  if (cli_ask_wait(ask, promise) == TNK_OK) {
    offer = tnk_promise_capabilities(promise);
    is_missing = tnk_capabilities_count(offer) > 0;
    for (size_t i = 0; i < tnk_capabilities_count(offer); i++) {
      const char *name = tnk_capabilities_model(offer, i)->name;

      if (name != NULL && strcmp(name, model) == 0)
        is_missing = 0;
    }
  }
  tnk_promise_unref(promise);
  return is_missing;
}

int cli_ask_model_failed(cli_ask_t *ask, const tnk_promise_t *promise,
                         const char *model) {
  const tnk_error_t *error = tnk_promise_error(promise);
  const int err = tnk_promise_status(promise);
  const int is_refused =
      err == TNK_EFAILED || err == TNK_EREQUEST || err == TNK_ENOTFOUND;

  if (cli_ask_is_over(ask) || !is_refused || !is_no_model(ask, model))
    return cli_ask_failed(ask, promise);
  return cli_report(
      ask->cli,
      &(cli_problem_t){.status = CLI_EXIT_NOT_FOUND,
                       .message = tnk_promise_text(promise),
                       .code = tnk_err_name(err),
                       .hint = "The service does not list this model. tnk "
                               "model list shows its models.",
                       .http_status = error->http_status,
                       .n_attempts = error->n_attempts});
}

static void close_others(void *user) {
  const cli_ask_t *ask = user;

  if (ask->on_closed != NULL)
    ask->on_closed(ask->user);
}

int cli_ask_close(cli_ask_t *ask, int status) {
  if (!ask->has_loop)
    return status;
  if (ask->service != NULL)
    tnk_service_close(ask->service, close_others, ask);
  else
    close_others(ask);
  for (size_t i = 0; i < N_SIGNALS; i++)
    uv_close((uv_handle_t *)&ask->signals[i], NULL);
  uv_close((uv_handle_t *)&ask->timer, NULL);
  uv_close((uv_handle_t *)&ask->patience, NULL);
  uv_run(&ask->loop, UV_RUN_DEFAULT);
  uv_loop_close(&ask->loop);
  return ask->signal_number != 0 ? 128 + ask->signal_number : status;
}

int cli_ask_run(cli_t *cli) {
  cli_ask_t ask;
  int status = cli_ask_open(&ask, cli, NULL);

  if (status == CLI_EXIT_OK)
    status = cli->command->work(&ask);
  return cli_ask_close(&ask, status);
}

static int show_one(cli_ask_t *ask) {
  const cli_t *cli = ask->cli;
  tnk_promise_t *promise = cli->command->begin(ask->service, cli);
  int status = cli_ask_wait(ask, promise) == TNK_OK
                   ? cli->command->show(cli, promise)
                   : cli_ask_failed(ask, promise);

  tnk_promise_unref(promise);
  return status;
}

int cli_ask_once(cli_t *cli) {
  cli_ask_t ask;
  int status = cli_ask_open(&ask, cli, NULL);

  if (status == CLI_EXIT_OK)
    status = show_one(&ask);
  return cli_ask_close(&ask, status);
}
