/* SPDX-License-Identifier: MIT */
#include "tools/local/stub/stub.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"
#include "tools/local/base/drain.h"
#include "tools/local/fault/calls.h"
#include "tools/local/stub/state.h"

/* ---- Answers ---- */

/* Limit for all answers together. */
#define MAX_BYTES ((size_t)256 << 20)

typedef struct {
  local_stub_answers_t *out;
  local_stub_encode_fn encode;
  void *user;
  int32_t *scratch; /* LOCAL_STUB_MAX_TOKENS */
  size_t n;         /* elements in it */
  const char *why;
} reader_t;

static int refuse(reader_t *r, const char *why) {
  r->why = why;
  return TNK_EINVAL;
}

static int read_text(reader_t *r, const json_t *line) {
  const char *text = json_string_value(line);
  size_t n = json_string_length(line);
  int64_t got;

  if (r->encode != NULL) {
    got = r->encode(r->user, text, n, r->scratch, LOCAL_STUB_MAX_TOKENS);
    if (got < 0)
      return got == TNK_ENOMEM ? TNK_ENOMEM
                               : refuse(r, "the tokenizer cannot encode it");
    r->n = (size_t)got;
    return TNK_OK;
  }
  if (n > LOCAL_STUB_MAX_TOKENS)
    return refuse(r, "it is longer than 65536 tokens");
  for (size_t i = 0; i < n; i++)
    r->scratch[i] = (unsigned char)text[i];
  r->n = n;
  return TNK_OK;
}

static int read_ids(reader_t *r, const json_t *line) {
  size_t n = json_array_size(line);

  if (n > LOCAL_STUB_MAX_TOKENS)
    return refuse(r, "it is longer than 65536 tokens");
  for (size_t i = 0; i < n; i++) {
    const json_t *id = json_array_get(line, i);

    if (!json_is_integer(id) || json_integer_value(id) < 0 ||
        json_integer_value(id) > INT32_MAX)
      return refuse(r, "a token id is a whole number from 0 to 2147483647");
    r->scratch[i] = (int32_t)json_integer_value(id);
  }
  r->n = n;
  return TNK_OK;
}

static int read_line(reader_t *r, const char *line, size_t n) {
  local_stub_answers_t *out = r->out;
  local_stub_answer_t *answer = &out->list[out->n];
  json_t *json = NULL;
  int err = tnk__json_parse(&json, line, n);

  if (err == TNK_ENOMEM)
    return err;
  if (err != TNK_OK || !(json_is_string(json) || json_is_array(json)))
    err = refuse(r, "an answer must be a JSON string or a list of token ids");
  else
    err = json_is_string(json) ? read_text(r, json) : read_ids(r, json);
  json_decref(json);
  if (err != TNK_OK)
    return err;
  answer->n = r->n;
  answer->tokens = tnk__arena_copy(&out->arena, r->scratch,
                                   (r->n + 1) * sizeof(*r->scratch));
  if (answer->tokens == NULL)
    return TNK_ENOMEM;
  out->n++;
  return TNK_OK;
}

static int is_blank(const char *line, size_t n) {
  while (n > 0 && strchr(" \t\r", line[n - 1]) != NULL)
    n--;
  return n == 0;
}

static int read_lines(reader_t *r, const char *text, size_t n, size_t *line) {
  const char *end = text + n;
  int err = TNK_OK;

  for (*line = 1; text < end && err == TNK_OK; ++*line) {
    const char *stop = memchr(text, '\n', (size_t)(end - text));
    size_t length = (size_t)((stop != NULL ? stop : end) - text);

    if (!is_blank(text, length))
      err = r->out->n == LOCAL_STUB_MAX_ANSWERS
                ? refuse(r, "more than 65536 answers")
                : read_line(r, text, length);
    text += length + 1;
  }
  if (err == TNK_OK && r->out->n == 0)
    return refuse(r, "no answers");
  return err;
}

int local_stub_answers_read(local_stub_answers_t *out, const char *text,
                            size_t n, const tnk_allocator_t *alloc,
                            local_stub_encode_fn encode, void *user, char *why,
                            size_t n_why) {
  reader_t r = {.out = out, .encode = encode, .user = user};
  size_t line = 0;
  int err = TNK_ENOMEM;

  *out = (local_stub_answers_t){0};
  tnk__arena_init(&out->arena, alloc, MAX_BYTES);
  out->list = tnk__arena_calloc(&out->arena, LOCAL_STUB_MAX_ANSWERS,
                                sizeof(*out->list));
  r.scratch = tnk__calloc(alloc, LOCAL_STUB_MAX_TOKENS + 1, sizeof(int32_t));
  if (out->list != NULL && r.scratch != NULL)
    err = read_lines(&r, text, n, &line);
  tnk__free(alloc, r.scratch);
  if (err == TNK_EINVAL)
    snprintf(why, n_why, "line %zu: %s", line > 1 ? line - 1 : 1, r.why);
  return err;
}

void local_stub_answers_free(local_stub_answers_t *answers) {
  tnk__arena_deinit(&answers->arena);
  *answers = (local_stub_answers_t){0};
}

/* ---- Values in a body ---- */

/* Parses values in a body; the stub trusts its clients. */

uint64_t local_stub_number(const tnk__srv_req_t *req, const char *key,
                           uint64_t otherwise) {
  const char *text = (const char *)req->body.data;
  size_t n_key = strlen(key);

  /* The members are near the end of long bodies, so the search begins there. */
  for (size_t at = req->body.len; at-- > 0;)
    if (text[at] == '"' && req->body.len - at > n_key + 2 &&
        memcmp(text + at + 1, key, n_key) == 0 && text[at + 1 + n_key] == '"')
      return strtoull(text + at + n_key + 3, NULL, 10);
  return otherwise;
}

const char *local_stub_id(const tnk__srv_req_t *req, char *out) {
  static const char key[] = "\"request_id\":\"";
  const char *text = (const char *)req->body.data;
  const char *end = text + req->body.len;

  for (; text + sizeof(key) < end; text++)
    if (memcmp(text, key, sizeof(key) - 1) == 0)
      break;
  text += sizeof(key) - 1;
  for (size_t n = 0; text + n < end && n < LOCAL_STUB_MAX_ID; n++) {
    out[n] = text[n];
    if (text[n] == '"') {
      out[n] = '\0';
      return n > 2 && strchr(out + 2, ':') != NULL ? out : NULL;
    }
  }
  return NULL;
}

/* ---- The stub ---- */

/*
 * Requests are answered from a table. The answer to a call that creates a
 * future contains the future's name. The only state is the list of samples for
 * batched polls (poll.c).
 */

enum { MAX_SAMPLES = 4096, HOLD_MS = 20000, MAX_CONNS = 65536 };

static void reply(tnk__srv_req_t *req, const char *json) {
  tnk__srv_req_reply_text(req, 200, "application/json", json);
}

/* ---- The stub: accepting ---- */

/* The time at which the result is available. Spread without a pattern: the
 * numbers are multiplied by an odd number. */
static uint64_t due_of(const local_stub_t *stub, uint64_t number) {
  uint64_t spread_ms = stub->options.spread_ms;
  uint64_t due = local_stub_now(stub) + stub->options.latency_ms;

  return spread_ms == 0
             ? due
             : due + (number * UINT64_C(2654435769) >> 7) % (spread_ms + 1);
}

static void accept_kind(local_stub_t *stub, tnk__srv_req_t *req, char kind) {
  uint64_t number = stub->n_ids + 1;
  uint64_t due = due_of(stub, number);
  uint64_t n = kind == 'S' ? local_stub_number(req, "num_samples", 1) : 0;
  uint64_t tokens = kind == 'S' ? local_stub_number(req, "max_tokens", 16) : 0;
  uint64_t turn = stub->n_turns;
  tnk__buf_t out;
  char id[LOCAL_STUB_MAX_ID];
  size_t len;

  if (stub->drains) {
    /* Clients retry it, possibly with the next server on this port. */
    tnk__srv_req_reply_text(req, 503, "application/json",
                            "{\"detail\":\"The server is shutting down\"}");
    return;
  }
  if (stub->n_ids == stub->n_fetched && stub->n_ids > 0) {
    stub->idle_ns += uv_hrtime() - stub->idle_since;
    stub->n_idle++;
  }
  stub->n_ids = number;
  n = n < MAX_SAMPLES ? n : MAX_SAMPLES;
  tokens = tokens < LOCAL_STUB_MAX_TOKENS ? tokens : LOCAL_STUB_MAX_TOKENS;
  if (kind == 'F')
    tokens = uv_hrtime();
  snprintf(id, sizeof(id),
           "%c:%" PRIu64 ":%" PRIu64 ":%" PRIu64 ":%" PRIu64 ":%" PRIu64, kind,
           due, n, tokens, turn, number);
  stub->n_turns += n;
  if (due > stub->last_due_ms)
    stub->last_due_ms = due;
  if (local_stub_log(stub, req, id, turn, n, tokens) != TNK_OK) {
    tnk__srv_req_reply_text(req, 500, "text/plain",
                            "the sample log cannot be written");
    return;
  }
  if (kind == 'S')
    local_stub_remember(stub, id, due);
  tnk__buf_init(&out, stub->http.config.alloc, SIZE_MAX);
  tnk__buf_text(&out, "{\"request_id\":\"");
  tnk__buf_text(&out, id);
  tnk__buf_text(&out, "\"");
  for (uint64_t i = 0; i < n; i++) {
    tnk__buf_text(&out, i == 0 ? ",\"sample_sequence_ids\":[\"" : ",\"");
    tnk__buf_text(&out, id);
    tnk__buf_text(&out, i + 1 == n ? "\"]" : "\"");
  }
  tnk__buf_text(&out, "}");
  len = out.len;
  tnk__srv_req_reply(req, 200, "application/json", NULL,
                     tnk__buf_take(&out, &len), len);
}

/* ---- The stub: routes ---- */

static const struct {
  const char *path; /* after /api/v1/ */
  char kind;        /* kind of the future, or 0 */
  const char *json; /* the answer, if no future is created */
} routes[] = {
    {"asample", 'S', NULL},
    {"forward_backward", 'F', NULL},
    {"optim_step", 'O', NULL},
    {"create_model", 'M', NULL},
    {"save_weights", 'W', NULL},
    {"save_weights_for_sampler", 'W', NULL},
    {"load_weights", 'W', NULL},
    {"client/dynamic_config", 0, "{}"},
    {"create_session", 0,
     "{\"session_id\":\"stub\",\"type\":\"create_session\"}"},
    {"create_sampling_session", 0,
     "{\"sampling_session_id\":\"stub:sample:0\"}"},
    {"get_info", 0,
     "{\"model_id\":\"stub:train:0\",\"model_data\":{\"arch\":\"stub\","
     "\"model_name\":\"tnk/byte-lm\",\"tokenizer_id\":null}}"},
    {"get_server_capabilities", 0,
     "{\"supported_models\":[{\"model_name\":\"tnk/byte-lm\"}]}"},
    {"healthz", 0, "{\"status\":\"ok\"}"},
    {"telemetry", 0, "{\"status\":\"accepted\"}"},
};

/* Progress, for measurements. */
static void reply_counts(const local_stub_t *stub, tnk__srv_req_t *req) {
  const tnk__srv_t *http = &stub->http;
  char json[320];

  snprintf(json, sizeof(json),
           "{\"accepted\":%" PRIu64 ",\"idle\":%" PRIu64 ",\"idle_ns\":%" PRIu64
           ",\"held\":%zu,\"cut\":%" PRIu64
           ",\"connections\":%zu,\"most_connections\":%zu,"
           "\"http2_requests\":%" PRIu64 "}",
           stub->n_ids, stub->n_idle, stub->idle_ns, stub->n_held, stub->n_cut,
           http->n_conns, http->most_conns, http->n_requests_h2);
  reply(req, json);
}

static void handle(tnk__srv_req_t *req, void *user) {
  static const char prefix[] = "/api/v1/";
  local_stub_t *stub = user;
  const char *path = req->path;

  if (local_faults_control(req->http->config.hooks_user, req) ||
      local_fault_answers(req))
    return;
  /* strtoull() reads numbers in the body, so it needs a terminator. */
  if (tnk__buf_cstr(&req->body) == NULL) {
    tnk__srv_req_reply_text(req, 500, "text/plain", "out of memory");
    return;
  }
  if (strncmp(path, prefix, sizeof(prefix) - 1) == 0)
    path += sizeof(prefix) - 1;
  if (strcmp(path, "retrieve_future") == 0) {
    local_stub_retrieve(stub, req);
    return;
  }
  if (strcmp(path, "retrieve_futures") == 0) {
    local_stub_retrieve_batch(stub, req);
    return;
  }
  if (strcmp(path, "stub/counts") == 0) {
    reply_counts(stub, req);
    return;
  }
  if (strcmp(path, "create_sampling_session") == 0)
    local_stub_forget_samples(stub);
  if (strcmp(path, "client/config") == 0) {
    reply(req, tnk__buf_cstr(&stub->config));
    return;
  }
  for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
    if (strcmp(routes[i].path, path) != 0)
      continue;
    if (routes[i].kind != 0)
      accept_kind(stub, req, routes[i].kind);
    else
      reply(req, routes[i].json);
    return;
  }
  reply(req, "{\"sampler_id\":\"stub:sample:0\","
             "\"base_model\":\"tnk/byte-lm\"}");
}

/* ---- The stub: lifetime ---- */

static void write_config(local_stub_t *stub,
                         const local_stub_options_t *options) {
  tnk__buf_init(&stub->config, tnk__allocator_default(), SIZE_MAX);
  tnk__buf_text(&stub->config, "{");
  for (size_t i = 0; i < options->n_flags; i++)
    tnk__buf_printf(&stub->config, "%s\"%s\":%s", i > 0 ? "," : "",
                    options->flags[i].name, options->flags[i].value);
  tnk__buf_text(&stub->config, "}");
}

static void let_go(local_stub_t *stub) {
  if (--stub->n_open > 0)
    return;
  tnk__buf_deinit(&stub->config);
  tnk__free(stub->http.config.alloc, stub->samples);
  tnk__free(stub->http.config.alloc, stub->fates);
  tnk__free(stub->http.config.alloc, stub);
}

static void on_http_closed(void *user) {
  let_go(user);
}

static void on_timers_closed(uv_handle_t *handle) {
  local_timers_t *timers =
      tnk__container_of((uv_timer_t *)(void *)handle, local_timers_t, uv);

  let_go(tnk__container_of(timers, local_stub_t, timers));
}

int local_stub_open(local_stub_t **out, uv_loop_t *loop,
                    const local_stub_options_t *options) {
  const tnk_allocator_t *alloc = tnk__allocator_default();
  local_stub_t *stub = tnk__calloc(alloc, 1, sizeof(*stub));
  const tnk__srv_config_t config = {
      .host = options->host != NULL ? options->host : "127.0.0.1",
      .port = options->port,
      .tls_cert = options->tls_cert,
      .tls_key = options->tls_key,
      .max_body = (size_t)1 << 30,
      .max_conns = options->max_conns > 0 ? options->max_conns : MAX_CONNS,
      .full = options->full,
      .max_streams = options->max_streams,
      .why = options->why,
      .n_why = options->n_why,
      .alloc = alloc,
      .hooks = options->faults != NULL ? &local_fault_hooks : NULL,
      .hooks_user = options->faults,
      .handle = handle,
      .user = stub};
  int err;

  *out = NULL;
  if (stub == NULL)
    return TNK_ENOMEM;
  stub->loop = loop;
  stub->options = *options;
  if (options->hold_ms == 0)
    stub->options.hold_ms = HOLD_MS;
  stub->first = 1;
  tnk__list_init(&stub->batch_polls);
  write_config(stub, options);
  for (size_t i = 0; i < LOCAL_STUB_MAX_TOKENS; i++) {
    stub->tokens[i] = (int32_t)(32 + i % 90);
    stub->logprobs[i] = -0.5f;
  }
  err = local_timers_open(&stub->timers, loop);
  if (err != 0) {
    tnk__buf_deinit(&stub->config);
    tnk__free(alloc, stub);
    return err;
  }
  stub->n_open = 2;
  err = tnk__srv_open(&stub->http, loop, &config);
  if (err != TNK_OK)
    local_stub_close(stub);
  else
    *out = stub;
  return err;
}

uint16_t local_stub_port(const local_stub_t *stub) {
  return (uint16_t)stub->http.port;
}

void local_stub_drain(local_stub_t *stub, uint64_t absence_ms) {
  stub->drains = 1;
  local_drain_begin(&stub->drain, local_stub_now(stub), absence_ms);
}

int local_stub_is_drained(local_stub_t *stub) {
  const uint64_t now = local_stub_now(stub);
  const int has_work =
      stub->n_fetched < stub->n_ids && now < stub->last_due_ms + LOCAL_FETCH_MS;

  if (local_drain_waits(&stub->drain, now, stub->http.n_conns, has_work))
    return 0;
  tnk__srv_drain(&stub->http);
  return stub->http.n_conns == 0;
}

void local_stub_close(local_stub_t *stub) {
  tnk__srv_close(&stub->http, on_http_closed, stub);
  local_timers_close(&stub->timers, on_timers_closed);
}
