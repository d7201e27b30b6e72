/* SPDX-License-Identifier: MIT */
/* One request to a running gateway, on a loop of its own. */
#include "tools/tnk/keys/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/api/config.h"
#include "lib/base/alloc.h"
#include "lib/base/arena.h"
#include "lib/io/http/client.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"
#include "tnk/version.h"
#include "tools/tnk/ask/ask.h"

enum { ANSWER_MS = 30000, MAX_ANSWER = 64 << 20, MAX_URL = 65536 };

typedef struct {
  const cli_t *cli;
  cli_ask_t ask;
  tnk__context_t context;
  tnk__http_t http;
  tnk__proxies_t proxies;
  tnk__arena_t arena; /* of the URL */
  tnk__url_t url;
  tnk__exchange_t exchange;
  int is_open; /* the context is */
  int is_done;
  int is_closed;
  int err;
  int status; /* of HTTP; 0: none */
  char detail[256];
  tnk__buf_t body; /* of the answer */
} call_t;

/* ---- Errors ---- */

#define HINT_KEY                                                               \
  "Use the admin key of the gateway: --admin-key-file, --admin-key or "        \
  "TNK_GATEWAY_ADMIN_KEY."
#define HINT_URL                                                               \
  "Check that a gateway listens at this address: --url or TNK_GATEWAY_URL."

static int fail_usage(const cli_t *cli, const char *why, const char *hint) {
  return cli_report(
      cli,
      &(cli_problem_t){.status = CLI_EXIT_USAGE, .message = why, .hint = hint});
}

static int no_answer(const call_t *call) {
  const char *hint = HINT_URL;

  if (call->ask.signal_number != 0)
    return cli_report(call->cli, &(cli_problem_t){.status = CLI_EXIT_INTERRUPT,
                                                  .message = "interrupted"});
  if (call->err == TNK_ECERT)
    hint = "Set SSL_CERT_FILE to a file with certificates to trust.";
  return cli_report(call->cli,
                    &(cli_problem_t){.status = cli_exit_of(call->err),
                                     .message = call->detail[0] != '\0'
                                                    ? call->detail
                                                    : tnk_strerror(call->err),
                                     .code = tnk_err_name(call->err),
                                     .hint = hint});
}

/* Report an answer that is an error. `json` is its body, or NULL. */
static int refused(const call_t *call, const json_t *json) {
  const char *text = tnk__json_str(tnk__json_obj(json, "error"), "message");
  const char *code = tnk__json_str(tnk__json_obj(json, "error"), "code");
  const char *hint = NULL;
  int status = CLI_EXIT_FAILED;
  char own[128];

  (void)snprintf(own, sizeof(own), "the server answers with status %d",
                 call->status);
  if (text == NULL) {
    hint = HINT_URL;
  } else if (call->status == 401 || call->status == 403) {
    status = CLI_EXIT_AUTH;
    hint = HINT_KEY;
  } else if (call->status == 404) {
    status = CLI_EXIT_NOT_FOUND;
    hint = "tnk gateway keys list shows the ids.";
  }
  return cli_report(call->cli,
                    &(cli_problem_t){.status = status,
                                     .message = text != NULL ? text : own,
                                     .code = code,
                                     .hint = hint,
                                     .http_status = call->status});
}

/* ---- The request ---- */

static void on_done(tnk__exchange_t *ex, const tnk__http_result_t *result) {
  call_t *call = tnk__container_of(ex, call_t, exchange);

  call->is_done = 1;
  call->err = result->err;
  call->status = result->status;
  if (result->detail != NULL)
    (void)snprintf(call->detail, sizeof(call->detail), "%s", result->detail);
  if (call->err == TNK_OK)
    call->err =
        tnk__buf_append(&call->body, result->body->data, result->body->len);
}

static int is_pending(const void *user) {
  return !((const call_t *)user)->is_done;
}

static int start(call_t *call, const char *method, const char *target,
                 const char *key, const char *body) {
  const tnk_pair_t headers[] = {
      {"Accept", "application/json"},
      {"User-Agent", "tnk/" TNK_VERSION_STRING},
      {"Content-Type", "application/json"},
      {"X-Api-Key", key != NULL ? key : ""},
  };
  const tnk__http_request_t request = {
      .origin = {call->url.host, call->url.port, call->url.is_tls},
      .method = method,
      .target = target,
      .headers = headers,
      .n_headers = key != NULL ? 4 : 3,
      .body = body,
      .body_len = body != NULL ? strlen(body) : 0,
      .lane = TNK__LANE_CONTROL,
      .timeout_ms = ANSWER_MS,
      .max_body = MAX_ANSWER};

  tnk__exchange_init(&call->exchange);
  call->exchange.on_done = on_done;
  return tnk__exchange_start(&call->http, &call->exchange, &request);
}

static int exchange(call_t *call, const char *method, const char *path,
                    const char *key, const char *body) {
  char target[1024];
  int n = snprintf(target, sizeof(target), "%s%s", call->url.path, path);

  if (n >= (int)sizeof(target))
    return fail_usage(call->cli, "the address is too long", HINT_URL);
  call->err = start(call, method, target, key, body);
  if (call->err == TNK_EINVAL)
    return fail_usage(call->cli,
                      "the admin key has characters that no request can have",
                      HINT_KEY);
  if (call->err != TNK_OK)
    return no_answer(call);
  /* The exchange has its own time limit. */
  cli_ask_while(&call->ask, is_pending, call, 4 * ANSWER_MS);
  if (!call->is_done) {
    tnk__exchange_cancel(&call->exchange);
    call->err = TNK_ETIMEDOUT;
  }
  return call->err == TNK_OK ? CLI_EXIT_OK : no_answer(call);
}

static int read_answer(const call_t *call, json_t **out) {
  int status = CLI_EXIT_OK;

  if (tnk__json_parse_object(out, call->body.data, call->body.len) != TNK_OK)
    *out = NULL;
  if (call->status != 200) {
    status = refused(call, *out);
  } else if (*out == NULL) {
    status = cli_report(
        call->cli,
        &(cli_problem_t){.status = CLI_EXIT_FAILED,
                         .message = "the answer is not one of a gateway",
                         .hint = HINT_URL});
  }
  if (status == CLI_EXIT_OK)
    return status;
  json_decref(*out);
  *out = NULL;
  return status;
}

/* ---- Opening and closing ---- */

static int read_url(call_t *call, const char *text) {
  const char *why = NULL;
  int err;

  if (text == NULL || text[0] == '\0')
    text = tnk__env("TNK_GATEWAY_URL");
  if (text == NULL)
    return fail_usage(call->cli, "the address of the gateway is missing",
                      "Use --url or TNK_GATEWAY_URL. tnk gateway prints its "
                      "address when it listens.");
  err = tnk__url_parse(&call->url, &call->arena, text, &why);
  if (err == TNK_ENOMEM)
    return cli_fail(call->cli, CLI_EXIT_FAILED, "out of memory");
  return err == TNK_OK ? CLI_EXIT_OK
                       : fail_usage(call->cli, why, "Check --url.");
}

static int open_http(call_t *call) {
  const tnk_allocator_t *alloc = tnk__allocator_default();
  const tnk__proxy_options_t from = {0};
  char reason[256] = "";
  tnk__http_options_t options = {
      .proxies = &call->proxies, .why = reason, .why_size = sizeof(reason)};
  const char *why = NULL;
  int err = tnk__proxies_load(&call->proxies, alloc, &from, &call->url, &why);

  if (err == TNK_OK)
    err = tnk__context_open(&call->context, &call->ask.loop, alloc, NULL);
  call->is_open = err == TNK_OK;
  if (err == TNK_OK)
    err = tnk__http_open(&call->http, &call->context, &options);
  if (err == TNK_OK)
    return CLI_EXIT_OK;
  if (why == NULL)
    why = reason[0] != '\0' ? reason : tnk_strerror(err);
  return cli_fail(call->cli, cli_exit_of(err), "%s", why);
}

static void on_closed(void *user) {
  ((call_t *)user)->is_closed = 1;
}

static void close_http(call_t *call) {
  if (call->is_open) {
    if (call->http.context != NULL)
      tnk__http_close(&call->http);
    tnk__context_close(&call->context, on_closed, call);
    while (!call->is_closed)
      uv_run(&call->ask.loop, UV_RUN_ONCE);
  }
  tnk__proxies_deinit(&call->proxies, tnk__allocator_default());
}

int cli_gateway_call(const cli_t *cli, const cli_place_t *place,
                     const char *method, const char *path, const char *body,
                     json_t **out) {
  call_t call = {.cli = cli};
  char *key = NULL;
  int status;

  *out = NULL;
  tnk__arena_init(&call.arena, tnk__allocator_default(), MAX_URL);
  tnk__buf_init(&call.body, tnk__allocator_default(), MAX_ANSWER);
  tnk__buf_keep_secret(&call.body); /* it may have a new key */
  status = cli_admin_read(cli, &place->admin, &key);
  if (status == CLI_EXIT_OK)
    status = read_url(&call, place->url);
  if (status == CLI_EXIT_OK)
    status = cli_ask_begin(&call.ask, cli);
  if (status == CLI_EXIT_OK)
    status = open_http(&call);
  if (status == CLI_EXIT_OK)
    status = exchange(&call, method, path, key, body);
  if (status == CLI_EXIT_OK)
    status = read_answer(&call, out);
  close_http(&call);
  status = cli_ask_close(&call.ask, status);
  cli_admin_free(key);
  tnk__buf_deinit(&call.body);
  tnk__arena_deinit(&call.arena);
  return status;
}
