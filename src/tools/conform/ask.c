/* SPDX-License-Identifier: MIT */
/* Sends requests unmodified, once each, and keeps the answers as they arrive. A
 * request is sent again only if a kept connection was closed before any
 * answer. Records properties of all answers, which rules judge at the end. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/text.h"
#include "lib/base/utf8.h"
#include "lib/policy/retry_after.h"
#include "lib/wire/message/answer.h"
#include "tnk/version.h"
#include "tools/conform/state.h"

/* Maximum size of an answer. Only an unlimited list of a large account would be
 * longer. */
enum {
  MAX_ANSWER = 32 * 1024 * 1024,
  MAX_SENT = 4 * 1024 * 1024,
  MAX_TARGET = 16 * 1024,
  ANSWER_MS = 30000,
  POLL_MS = 45000
};

#define CALL(p) tnk__container_of(p, conform_call_t, exchange)

/* ---- Answers ---- */

static void copy_text(char *out, size_t size, const char *text) {
  snprintf(out, size, "%s", text != NULL ? text : "");
  tnk__utf8_repair(out);
  tnk__text_clean(out, strlen(out));
}

static void read_words(conform_call_t *call) {
  tnk__failure_t failure = {0};
  tnk__arena_t arena;

  tnk__arena_init(&arena, tnk__allocator_default(), 1 << 20);
  if (call->status >= 300 &&
      tnk__failure_read(&failure, &arena, call->body.data, call->body.len) ==
          TNK_OK)
    copy_text(call->words, sizeof(call->words), failure.message);
  tnk__arena_deinit(&arena);
}

/* A key must not appear in a report, even if it is a wrong one. */
static void hide(const conform_call_t *call, void *data, size_t n) {
  conform_hide(call->c, data, n);
  conform_hide_text(data, n, call->api_key);
}

/* An echoed credential may be escaped in JSON, so the parsed form is searched
 * too. */
static void hide_in_json(conform_call_t *call) {
  char *text = json_dumps(call->json, JSON_COMPACT | JSON_ENCODE_ANY |
                                          JSON_REAL_PRECISION(17));
  const size_t n = text != NULL ? strlen(text) : 0;
  json_t *clean;

  if (text == NULL)
    return;
  hide(call, text, n);
  if (memchr(text, '*', n) != NULL &&
      tnk__json_parse(&clean, text, n) == TNK_OK) {
    json_decref(call->json);
    call->json = clean;
  }
  free(text);
}

static void read_scheme(char *out, size_t size, const char *location) {
  const size_t n = location != NULL ? strcspn(location, ":") : 0;

  snprintf(out, size, "%.*s", (int)(n < size ? n : size - 1),
           location != NULL ? location : "");
}

static void read_answer(conform_call_t *call,
                        const tnk__http_result_t *result) {
  const char *challenge = tnk__http_result_header(result, "www-authenticate");

  copy_text(call->type, sizeof(call->type),
            tnk__http_result_header(result, "content-type"));
  call->invalid_token = call->status == 401 && challenge != NULL &&
                        strstr(challenge, "invalid_token") != NULL;
  copy_text(call->range, sizeof(call->range),
            tnk__http_result_header(result, "content-range"));
  read_scheme(call->location, sizeof(call->location),
              tnk__http_result_header(result, "location"));
  tnk__buf_append(&call->body, result->body->data, result->body->len);
  hide(call, call->body.data, call->body.len);
  if (strstr(call->type, "protobuf") == NULL &&
      tnk__json_parse(&call->json, call->body.data, call->body.len) != TNK_OK)
    call->json = NULL;
  if (call->json != NULL)
    hide_in_json(call);
  read_words(call);
}

static void no_answer(conform_call_t *call, int err, const char *detail) {
  char text[160];

  call->err = err;
  copy_text(text, sizeof(text), detail != NULL ? detail : tnk_strerror(err));
  conform_hide(call->c, text, strlen(text));
  snprintf(call->how, sizeof(call->how), "no complete response: %.130s", text);
}

static void end_call(conform_call_t *call) {
  call->is_done = 1;
  call->ms = tnk__context_now_ms(&call->c->context) - call->since_ms;
  tnk__timer_stop(&call->deadline);
  if (call->err == TNK_OK)
    call->c->n_silent = 0;
  else
    call->c->n_silent++;
}

/* Count the accepted requests, for the report of the costs. */
static void count(conform_t *c, const char *path) {
  static const struct {
    const char *path;
    size_t at;
  } kinds[] = {
      {"forward", offsetof(conform_spent_t, passes)},
      {"optim_step", offsetof(conform_spent_t, steps)},
      {"asample", offsetof(conform_spent_t, samples)},
      {"save_weights", offsetof(conform_spent_t, saves)},
      {"create_model", offsetof(conform_spent_t, models)},
      {"create_session", offsetof(conform_spent_t, sessions)},
  };

  for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
    if (strncmp(path, kinds[i].path, strlen(kinds[i].path)) == 0)
      ++*(unsigned *)(void *)((char *)&c->spent + kinds[i].at);
}

/* ---- Properties of all answers ---- */

/* The longest wait that clients accept. */
enum { MAX_WAIT_MS = 60000 };

static void note_place(char *out, size_t size, const char *path, int status) {
  tnk__text_t text;

  if (out[0] != '\0')
    return;
  tnk__text_init(&text, out, size);
  tnk__text_printf(&text, "%d to %s", status, path);
}

/* The form of the header's value. */
static const char *form_of(const char *ms, const char *value) {
  if (ms != NULL)
    return "retry-after-ms";
  if (value[0] >= '0' && value[0] <= '9')
    return "Retry-After in seconds";
  if (strchr(value, '-') != NULL)
    return "Retry-After as a date of RFC 850";
  return strchr(value, ',') != NULL ? "Retry-After as a date"
                                    : "Retry-After as a date of asctime";
}

static void note_wait(conform_t *c, const conform_call_t *call,
                      const tnk__http_result_t *result) {
  const char *ms = tnk__http_result_header(result, "retry-after-ms");
  const char *value = tnk__http_result_header(result, "retry-after");
  uint64_t wait;

  c->seen.n_waits++;
  c->seen.n_waits_state += conform_text(call, "queue_state") != NULL;
  if (ms == NULL && value == NULL)
    return;
  wait = tnk__retry_after(ms, value, tnk__http_result_header(result, "date"),
                          tnk__context_wall_s(&c->context));
  if (wait == 0 || wait > MAX_WAIT_MS)
    c->seen.n_waits_odd++;
  else
    c->seen.n_waits_told++;
  snprintf(c->seen.wait_form, sizeof(c->seen.wait_form), "%s",
           form_of(ms, value));
}

static void note_state(conform_t *c, const conform_call_t *call) {
  static const char *const known[] = {"active", "paused_capacity",
                                      "paused_rate_limit"};
  const char *state = conform_text(call, "queue_state");
  tnk__text_t text;

  if (state == NULL)
    return;
  c->seen.n_states++;
  for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
    if (strcmp(state, known[i]) == 0)
      return;
  tnk__text_init(&text, c->seen.odd_state, sizeof(c->seen.odd_state));
  tnk__text_printf(&text, "%s", state);
}

static void note_body(conform_t *c, const conform_call_t *call,
                      const char *path) {
  const int is_json = strstr(call->type, "json") != NULL;

  if (call->status >= 400 && call->body.len == 0) {
    c->seen.n_empty_errors++;
    note_place(c->seen.empty_error, sizeof(c->seen.empty_error), path,
               call->status);
  }
  if (call->status >= 300 || call->body.len == 0)
    return;
  if (is_json && call->json == NULL)
    c->seen.n_unreadable++;
  if (!is_json && call->json != NULL) {
    c->seen.n_wrong_types++;
    note_place(c->seen.wrong_type, sizeof(c->seen.wrong_type), path,
               call->status);
  }
}

static void note(conform_t *c, const conform_call_t *call,
                 const tnk__http_result_t *result, int is_poll) {
  const char *target = (const char *)call->target.data;
  const char *path = strstr(target, "/api/v1/");

  if (call->err != TNK_OK)
    return;
  path = path != NULL ? path + strlen("/api/v1/") : target;
  c->seen.n_answers++;
  if (tnk__http_result_header(result, "content-length") != NULL ||
      call->status == 204)
    c->seen.n_lengths++;
  if (tnk__http_result_header(result, "x-deprecation-note") != NULL)
    c->seen.n_deprecated++;
  if (call->status >= 500) {
    c->seen.n_server_errors++;
    note_place(c->seen.server_error, sizeof(c->seen.server_error), path,
               call->status);
  }
  if (call->status == 429 || call->status == 503 ||
      (call->status == 408 && !is_poll))
    note_wait(c, call, result);
  note_state(c, call);
  note_body(c, call, path);
}

/* ---- The end of a request ---- */

static void on_done(tnk__exchange_t *ex, const tnk__http_result_t *result) {
  conform_call_t *call = CALL(ex);
  const char *path;

  call->status = result->status;
  if (result->err == TNK_OK) {
    snprintf(call->how, sizeof(call->how), "%d", result->status);
    read_answer(call, result);
  } else {
    no_answer(call, result->err, result->detail);
    call->status = 0;
  }
  end_call(call);
  path = strstr((const char *)call->target.data, "/api/v1/");
  if (path == NULL) /* not a call of the protocol, but a file */
    return;
  if (conform_is_ok(call))
    count(call->c, path + strlen("/api/v1/"));
  note(call->c, call, result, ex->lane == TNK__LANE_POLL);
}

static void on_deadline(tnk__timer_t *timer) {
  conform_call_t *call = tnk__container_of(timer, conform_call_t, deadline);
  char text[64];
  tnk__text_t time;

  tnk__exchange_cancel(&call->exchange);
  snprintf(text, sizeof(text), "nothing within ");
  tnk__text_init(&time, text + strlen(text), sizeof(text) - strlen(text));
  tnk__text_time(&time,
                 tnk__context_now_ms(&call->c->context) - call->since_ms);
  no_answer(call, TNK_ETIMEDOUT, text);
  end_call(call);
}

/* ---- Sending ---- */

static void put(tnk_pair_t *headers, size_t *n, const char *name,
                const char *value) {
  if (value != NULL && value[0] != '\0')
    headers[(*n)++] = (tnk_pair_t){name, value};
}

/* Before there is a token, two calls use the key itself. */
static const char *credential(const conform_t *c, const conform_ask_t *ask) {
  if (ask->api_key != NULL)
    return ask->api_key;
  if (ask->url != NULL)
    return NULL;
  if (strcmp(ask->path, "client/config") == 0 ||
      strcmp(ask->path, "auth/token") == 0)
    return c->config.api_key;
  return c->token != NULL ? c->token : c->config.api_key;
}

static int write_body(conform_call_t *call, const conform_ask_t *ask) {
  char *text;

  if (ask->json == NULL)
    return tnk__buf_append(&call->sent, ask->body, ask->n_body);
  text = json_dumps(ask->json, JSON_COMPACT);
  json_decref(ask->json);
  if (text == NULL)
    return TNK_ENOMEM;
  tnk__buf_text(&call->sent, text);
  free(text);
  return call->sent.err;
}

static int start(conform_t *c, conform_call_t *call, const conform_ask_t *ask) {
  const uint64_t limit = ask->is_poll ? POLL_MS : ANSWER_MS;
  const uint64_t ms =
      c->options.timeout_ms != 0 ? c->options.timeout_ms : limit;
  tnk_pair_t headers[8];
  size_t n = 0;
  char key[64];
  tnk__http_request_t request = {
      .origin = {c->config.url.host, c->config.url.port, c->config.url.is_tls},
      .method = ask->method,
      .target = tnk__buf_cstr(&call->target),
      .headers = headers,
      .body = call->sent.data,
      .body_len = call->sent.len,
      .lane = ask->is_poll ? TNK__LANE_POLL : TNK__LANE_CONTROL,
      .timeout_ms = ms,
      .max_body = MAX_ANSWER,
      /* Some servers close a connection after an error without announcing it. A
       * request on that connection then says nothing about the rule. */
      .replayable = 1};

  snprintf(key, sizeof(key), "tnk-conform-%08x-%u",
           (unsigned)tnk__context_random(&c->context), c->n_keys++);
  put(headers, &n, "X-API-Key", credential(c, ask));
  put(headers, &n, "Accept",
      ask->accept != NULL ? ask->accept : "application/json");
  put(headers, &n, "User-Agent", "tnk-conform/" TNK_VERSION_STRING);
  if (call->sent.len > 0)
    put(headers, &n, "Content-Type",
        ask->type != NULL ? ask->type : "application/json");
  put(headers, &n, "Content-Encoding", ask->encoding);
  put(headers, &n, "Range", ask->range);
  if (strcmp(ask->method, "GET") != 0)
    put(headers, &n, "X-Idempotency-Key",
        ask->idempotency_key != NULL ? ask->idempotency_key : key);
  request.n_headers = n;
  if (ask->url == NULL) { /* other hosts do not get the configured headers */
    request.more_headers = c->config.headers;
    request.n_more_headers = c->config.n_headers;
  } else {
    request.origin =
        (tnk__origin_t){call->at.host, call->at.port, call->at.is_tls};
  }
  tnk__timer_start(&c->context, &call->deadline, ms, on_deadline);
  return tnk__exchange_start(&c->http, &call->exchange, &request);
}

/* Set the target of a request. */
static int aim(conform_call_t *call, const conform_ask_t *ask) {
  int err = TNK_OK;

  if (ask->url == NULL)
    tnk__buf_printf(&call->target, "%s/api/v1/%s", call->c->config.url.path,
                    ask->path);
  else
    err = tnk__location_parse(&call->at, tnk__allocator_default(), ask->url);
  if (err == TNK_OK && ask->url != NULL)
    tnk__buf_text(&call->target, call->at.target);
  return err;
}

/* Replaces a call if there is no memory for one. */
static conform_call_t no_memory = {
    .is_done = 1, .err = TNK_ENOMEM, .how = "out of memory"};

conform_call_t *conform_send(conform_t *c, const conform_ask_t *ask) {
  const tnk_allocator_t *alloc = tnk__allocator_default();
  conform_call_t *call = tnk__calloc(alloc, 1, sizeof(*call));
  int err;

  if (call == NULL) {
    json_decref(ask->json);
    return &no_memory;
  }
  call->c = c;
  call->api_key = ask->api_key;
  tnk__list_append(&c->calls, &call->link);
  tnk__exchange_init(&call->exchange);
  call->exchange.on_done = on_done;
  tnk__buf_init(&call->target, alloc, MAX_TARGET);
  tnk__buf_init(&call->sent, alloc, MAX_SENT);
  tnk__buf_init(&call->body, alloc, MAX_ANSWER);
  err = aim(call, ask);
  call->since_ms = tnk__context_now_ms(&c->context);
  if (err == TNK_OK)
    err = write_body(call, ask);
  else
    json_decref(ask->json);
  if (err == TNK_OK)
    err = tnk__buf_cstr(&call->target) == NULL ? call->target.err
                                               : start(c, call, ask);
  if (err != TNK_OK) {
    no_answer(call, err, NULL);
    end_call(call);
  }
  return call;
}

void conform_wait(conform_t *c, conform_call_t *call) {
  while (!call->is_done && !c->is_interrupted)
    uv_run(&c->loop, UV_RUN_ONCE);
  if (!call->is_done) {
    tnk__exchange_cancel(&call->exchange);
    no_answer(call, TNK_ECANCELED, "interrupted");
    end_call(call);
  }
}

void conform_give_up(conform_call_t *call) {
  if (call->is_done)
    return;
  tnk__exchange_cancel(&call->exchange);
  no_answer(call, TNK_ECANCELED, "given up");
  call->is_done = 1;
  tnk__timer_stop(&call->deadline);
}

void conform_forget_calls(conform_t *c) {
  tnk__list_t *node;

  while ((node = tnk__list_pop(&c->calls)) != NULL) {
    conform_call_t *call = tnk__container_of(node, conform_call_t, link);

    conform_give_up(call);
    tnk__location_deinit(&call->at, tnk__allocator_default());
    tnk__buf_deinit(&call->target);
    tnk__buf_deinit(&call->sent);
    tnk__buf_deinit(&call->body);
    json_decref(call->json);
    tnk__free(tnk__allocator_default(), call);
  }
}

conform_call_t *conform_ask(conform_t *c, const conform_ask_t *ask) {
  conform_call_t *call = conform_send(c, ask);

  conform_wait(c, call);
  return call;
}

conform_call_t *conform_post_json(conform_t *c, const char *path,
                                  json_t *json) {
  const conform_ask_t ask = {.method = "POST", .path = path, .json = json};

  return json != NULL ? conform_ask(c, &ask) : &no_memory;
}

conform_call_t *conform_post(conform_t *c, const char *path, const char *format,
                             ...) {
  json_error_t error;
  va_list args;
  json_t *json;

  va_start(args, format);
  json = json_vpack_ex(&error, 0, format, args);
  va_end(args);
  return conform_post_json(c, path, json);
}

conform_call_t *conform_get(conform_t *c, const char *path) {
  const conform_ask_t ask = {.method = "GET", .path = path};

  return conform_ask(c, &ask);
}

conform_call_t *conform_get_about(conform_t *c) {
  return conform_get(c, c->about);
}

/* A pause waits for a timer as a call waits for an answer. */
typedef struct {
  tnk__timer_t timer;
  int is_over;
} pause_t;

static void on_pause_over(tnk__timer_t *timer) {
  tnk__container_of(timer, pause_t, timer)->is_over = 1;
}

void conform_pause(conform_t *c, uint64_t ms) {
  pause_t pause = {0};

  tnk__timer_start(&c->context, &pause.timer, ms, on_pause_over);
  while (!pause.is_over && !c->is_interrupted)
    uv_run(&c->loop, UV_RUN_ONCE);
  tnk__timer_stop(&pause.timer);
}
