/* SPDX-License-Identifier: MIT */
#include "tools/tnk/web/web.h"

#include <stdio.h>
#include <string.h>

#include "lib/api/config.h"
#include "lib/base/alloc.h"
#include "tnk/error.h"
#include "tnk/version.h"

enum { ANSWER_MS = 30000, MAX_ANSWER = 64 << 20, MAX_URL = 65536 };

/* A request in progress. */
typedef struct {
  tnk__exchange_t exchange;
  cli_web_answer_t *answer;
  int is_done;
  int err;
  char detail[256];
} call_t;

/* ---- Errors ---- */

static int fail_usage(const cli_t *cli, const char *why, const char *hint) {
  return cli_report(
      cli,
      &(cli_problem_t){.status = CLI_EXIT_USAGE, .message = why, .hint = hint});
}

static int no_answer(const cli_web_t *web, int err, const char *detail) {
  const char *hint = web->hint;

  if (web->ask.signal_number != 0)
    return cli_report(web->cli, &(cli_problem_t){.status = CLI_EXIT_INTERRUPT,
                                                 .message = "interrupted"});
  if (err == TNK_ECERT)
    hint = "Set SSL_CERT_FILE to a file with certificates to trust.";
  return cli_report(
      web->cli, &(cli_problem_t){
                    .status = cli_exit_of(err),
                    .message = detail[0] != '\0' ? detail : tnk_strerror(err),
                    .code = tnk_err_name(err),
                    .hint = hint});
}

/* ---- A request ---- */

static void on_done(tnk__exchange_t *ex, const tnk__http_result_t *result) {
  call_t *call = tnk__container_of(ex, call_t, exchange);

  call->is_done = 1;
  call->err = result->err;
  call->answer->status = result->status;
  if (result->detail != NULL)
    (void)snprintf(call->detail, sizeof(call->detail), "%s", result->detail);
  if (call->err == TNK_OK)
    call->err = tnk__buf_append(&call->answer->body, result->body->data,
                                result->body->len);
}

static int is_pending(const void *user) {
  return !((const call_t *)user)->is_done;
}

static int start(cli_web_t *web, call_t *call, const char *target,
                 const cli_web_request_t *request) {
  tnk_pair_t headers[3 + CLI_WEB_MAX_HEADERS] = {
      {"Accept", "application/json"},
      {"User-Agent", "tnk/" TNK_VERSION_STRING},
      {"Content-Type", "application/json"},
  };
  const tnk__http_request_t what = {
      .origin = {web->url.host, web->url.port, web->url.is_tls},
      .method = request->method,
      .target = target,
      .headers = headers,
      .n_headers = 3 + request->n_headers,
      .body = request->body,
      .body_len = request->body != NULL ? strlen(request->body) : 0,
      .lane = TNK__LANE_CONTROL,
      .timeout_ms = ANSWER_MS,
      .max_body = MAX_ANSWER};

  for (size_t i = 0; i < request->n_headers; i++)
    headers[3 + i] = request->headers[i];
  tnk__exchange_init(&call->exchange);
  call->exchange.on_done = on_done;
  return tnk__exchange_start(&web->http, &call->exchange, &what);
}

int cli_web_send(cli_web_t *web, const cli_web_request_t *request,
                 cli_web_answer_t *answer) {
  call_t call = {.answer = answer};
  char target[1024];
  const int n =
      snprintf(target, sizeof(target), "%s%s", web->url.path, request->path);

  *answer = (cli_web_answer_t){0};
  tnk__buf_init(&answer->body, tnk__allocator_default(), MAX_ANSWER);
  tnk__buf_keep_secret(&answer->body);
  if (n >= (int)sizeof(target))
    return fail_usage(web->cli, "the address is too long", web->hint);
  call.err = start(web, &call, target, request);
  if (call.err == TNK_EINVAL)
    return fail_usage(web->cli, request->why_header, request->hint_header);
  if (call.err != TNK_OK)
    return no_answer(web, call.err, "");
  /* The exchange has its own time limit. */
  cli_ask_while(&web->ask, is_pending, &call, 4 * ANSWER_MS);
  if (!call.is_done) {
    tnk__exchange_cancel(&call.exchange);
    call.err = TNK_ETIMEDOUT;
  }
  return call.err == TNK_OK ? CLI_EXIT_OK
                            : no_answer(web, call.err, call.detail);
}

void cli_web_drop(cli_web_answer_t *answer) {
  tnk__buf_deinit(&answer->body);
}

/* ---- Opening and closing ---- */

static int read_url(cli_web_t *web, const char *text, const char *option) {
  const char *why = NULL;
  char check[64];
  int err = tnk__url_parse(&web->url, &web->arena, text, &why);

  (void)snprintf(check, sizeof(check), "Check --%s.", option);
  if (err == TNK_ENOMEM)
    return cli_fail(web->cli, CLI_EXIT_FAILED, "out of memory");
  return err == TNK_OK ? CLI_EXIT_OK : fail_usage(web->cli, why, check);
}

static int open_http(cli_web_t *web) {
  const tnk_allocator_t *alloc = tnk__allocator_default();
  const tnk__proxy_options_t from = {0};
  char reason[256] = "";
  const char *cert = tnk__env("TNK_CERT_FILE");
  const char *key = tnk__env("TNK_KEY_FILE");
  tnk__http_options_t options = {.proxies = &web->proxies,
                                 .cert_file = cert,
                                 .key_file = key != NULL ? key : cert,
                                 .why = reason,
                                 .why_size = sizeof(reason)};
  const char *why = NULL;
  int err = tnk__proxies_load(&web->proxies, alloc, &from, &web->url, &why);

  if (err == TNK_OK)
    err = tnk__context_open(&web->context, &web->ask.loop, alloc, NULL);
  web->is_open = err == TNK_OK;
  if (err == TNK_OK)
    err = tnk__http_open(&web->http, &web->context, &options);
  if (err == TNK_OK)
    return CLI_EXIT_OK;
  if (why == NULL)
    why = reason[0] != '\0' ? reason : tnk_strerror(err);
  return cli_fail(web->cli, cli_exit_of(err), "%s", why);
}

int cli_web_open(cli_web_t *web, const cli_t *cli, const char *url,
                 const char *option, const char *hint) {
  int status;

  *web = (cli_web_t){.cli = cli, .hint = hint};
  tnk__arena_init(&web->arena, tnk__allocator_default(), MAX_URL);
  status = read_url(web, url, option);
  if (status == CLI_EXIT_OK)
    status = cli_ask_begin(&web->ask, cli);
  return status == CLI_EXIT_OK ? open_http(web) : status;
}

static void on_closed(void *user) {
  ((cli_web_t *)user)->is_closed = 1;
}

int cli_web_close(cli_web_t *web, int status) {
  if (web->is_open) {
    if (web->http.context != NULL)
      tnk__http_close(&web->http);
    tnk__context_close(&web->context, on_closed, web);
    while (!web->is_closed)
      uv_run(&web->ask.loop, UV_RUN_ONCE);
  }
  tnk__proxies_deinit(&web->proxies, tnk__allocator_default());
  status = cli_ask_close(&web->ask, status);
  tnk__arena_deinit(&web->arena);
  return status;
}
