/*
 * Requests are answered from a table. The answer to a call that creates a
 * future contains the future's name. The only state is the list of samples for
 * batched polls (poll.c).
 */
#include "tools/local/stub/stub.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "tnk/error.h"
#include "tools/local/base/clock.h"
#include "tools/local/fault/calls.h"
#include "tools/local/stub/state.h"

enum { MAX_SAMPLES = 4096, HOLD_MS = 20000, MAX_CONNS = 65536 };

static void reply(tnk__srv_req_t *req, const char *json) {
  tnk__srv_req_reply_text(req, 200, "application/json", json);
}

/* ---- Accepting ---- */

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

/* ---- Routes ---- */

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
  char json[256];

  snprintf(json, sizeof(json),
           "{\"accepted\":%" PRIu64 ",\"held\":%zu,\"cut\":%" PRIu64
           ",\"connections\":%zu,\"most_connections\":%zu,"
           "\"http2_requests\":%" PRIu64 "}",
           stub->n_ids, stub->n_held, stub->n_cut, http->n_conns,
           http->most_conns, http->n_requests_h2);
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

/* ---- Lifetime ---- */

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
  stub->absence_ms = absence_ms;
  stub->seen_ms = local_stub_now(stub);
}

int local_stub_is_drained(local_stub_t *stub) {
  const uint64_t now = local_stub_now(stub);
  const int has_work =
      stub->n_fetched < stub->n_ids && now < stub->last_due_ms + LOCAL_FETCH_MS;

  if (stub->http.n_conns > 0)
    stub->seen_ms = now;
  if (now - stub->seen_ms < stub->absence_ms && has_work)
    return 0;
  tnk__srv_drain(&stub->http);
  return stub->http.n_conns == 0;
}

void local_stub_close(local_stub_t *stub) {
  tnk__srv_close(&stub->http, on_http_closed, stub);
  local_timers_close(&stub->timers, on_timers_closed);
}
