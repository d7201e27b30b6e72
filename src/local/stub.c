/*
 * The name of a future says all about it: "<kind>:<due>:<samples>:<tokens>:
 * <number>", so nothing is kept but the list of samples that finish later, for
 * batched polls.
 */
#include "local/stub.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "codec/pb.h"
#include "local/http.h"
#include "local/timers.h"
#include "tnk/error.h"

enum { MAX_TOKENS = 65536, MAX_SAMPLES = 4096, BATCH_HOLD_MS = 20000 };

/* A sample, in order of its end, for batched polls. */
typedef struct {
  char id[64];
  uint64_t due_ms;
} finished_t;

struct local_stub {
  local_http_t http;
  local_timers_t timers;
  uv_loop_t *loop;
  uint64_t latency_ms;
  tnk__buf_t config; /* the answer of client/config */
  uint64_t n_ids;
  finished_t *finished;
  size_t n_finished;
  size_t max_finished;
  int n_open; /* what libuv has not let go of */
  int32_t tokens[MAX_TOKENS];
  float logprobs[MAX_TOKENS];
};

/* A request that waits. */
typedef struct {
  local_timer_t timer;
  local_req_t *req;
  local_stub_t *stub;
} waiting_t;

static uint64_t now_ms(const local_stub_t *stub) {
  return uv_now(stub->loop);
}

static void reply(local_req_t *req, const char *json) {
  local_req_reply_text(req, 200, "application/json", json);
}

/* A number in JSON that we trust; `otherwise` when it is not there. */
static uint64_t number_in(const local_req_t *req, const char *key,
                          uint64_t otherwise) {
  const char *text = (const char *)req->body.data;
  size_t n_key = strlen(key);

  /* Near the end of long bodies, so from there. */
  for (size_t at = req->body.len; at-- > 0;)
    if (text[at] == '"' && req->body.len - at > n_key + 2 &&
        memcmp(text + at + 1, key, n_key) == 0 && text[at + 1 + n_key] == '"')
      return strtoull(text + at + n_key + 3, NULL, 10);
  return otherwise;
}

/* ---- Accepting ---- */

static void remember(local_stub_t *stub, const char *id, uint64_t due_ms) {
  finished_t *grown;

  if (stub->n_finished == stub->max_finished) {
    stub->max_finished = stub->max_finished * 2 + 1024;
    grown = tnk__realloc(stub->http.config.alloc, stub->finished,
                         stub->max_finished * sizeof(*grown));
    if (grown == NULL) {
      stub->max_finished = stub->n_finished;
      return; /* its poll goes unanswered */
    }
    stub->finished = grown;
  }
  snprintf(stub->finished[stub->n_finished].id, sizeof(stub->finished[0].id),
           "%s", id);
  stub->finished[stub->n_finished++].due_ms = due_ms;
}

static void accept_kind(local_stub_t *stub, local_req_t *req, char kind) {
  uint64_t due = now_ms(stub) + stub->latency_ms;
  uint64_t n = kind == 'S' ? number_in(req, "num_samples", 1) : 0;
  uint64_t tokens = kind == 'S' ? number_in(req, "max_tokens", 16) : 0;
  tnk__buf_t out;
  char id[64];
  size_t len;

  n = n < MAX_SAMPLES ? n : MAX_SAMPLES;
  tokens = tokens < MAX_TOKENS ? tokens : MAX_TOKENS;
  snprintf(id, sizeof(id), "%c:%" PRIu64 ":%" PRIu64 ":%" PRIu64 ":%" PRIu64,
           kind, due, n, tokens, ++stub->n_ids);
  if (kind == 'S')
    remember(stub, id, due);
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
  local_req_reply(req, 200, "application/json", NULL, tnk__buf_take(&out, &len),
                  len);
}

/* ---- Results ---- */

typedef struct {
  const local_stub_t *stub;
  uint64_t n_samples;
  uint64_t n_tokens;
} sampled_t;

static void write_sequence(tnk__pb_t *pb, const void *message) {
  const sampled_t *sampled = message;

  tnk__pb_varint(pb, 1, 1);
  tnk__pb_bytes(pb, 2, sampled->stub->tokens,
                (size_t)sampled->n_tokens * sizeof(int32_t));
  tnk__pb_bytes(pb, 3, sampled->stub->logprobs,
                (size_t)sampled->n_tokens * sizeof(float));
}

static void write_samples(tnk__pb_t *pb, const sampled_t *sampled) {
  for (uint64_t i = 0; i < sampled->n_samples; i++)
    tnk__pb_message(pb, 1, write_sequence, sampled);
}

static void write_metric(tnk__pb_t *pb, const void *message) {
  (void)message;
  tnk__pb_text(pb, 1, "loss:sum");
  tnk__pb_double(pb, 2, 1.0);
}

static void write_pass(tnk__pb_t *pb, const sampled_t *unused) {
  (void)unused;
  tnk__pb_text(pb, 1, "ArrayRecord");
  tnk__pb_message(pb, 3, write_metric, NULL);
}

static void reply_proto(local_req_t *req, const sampled_t *sampled,
                        void (*write)(tnk__pb_t *, const sampled_t *)) {
  tnk__pb_t pb = {0};
  uint8_t *body;

  write(&pb, sampled);
  body = tnk__malloc(req->http->config.alloc, pb.n + 1);
  if (body == NULL) {
    local_req_reply_text(req, 500, "text/plain", "out of memory");
    return;
  }
  pb = tnk__pb_whole(body);
  write(&pb, sampled);
  local_req_reply(req, 200, "application/x-protobuf", NULL, body, pb.n);
}

static void give_result(local_stub_t *stub, local_req_t *req, const char *id) {
  sampled_t sampled = {stub, 0, 0};
  char *at = strchr(id + 2, ':');

  if (at != NULL) {
    sampled.n_samples = strtoull(at + 1, &at, 10);
    sampled.n_tokens = strtoull(at + 1, NULL, 10);
  }
  switch (id[0]) {
  case 'S':
    reply_proto(req, &sampled, write_samples);
    break;
  case 'F':
    reply_proto(req, NULL, write_pass);
    break;
  case 'M':
    reply(req, "{\"model_id\":\"stub:train:0\",\"type\":\"create_model\"}");
    break;
  case 'O':
    reply(req, "{\"metrics\":{}}");
    break;
  default:
    reply(req, "{\"path\":\"tinker://stub/weights/w\","
               "\"sampling_session_id\":\"stub:sample:0\"}");
  }
}

static const char *id_in(const local_req_t *req) {
  static const char key[] = "\"request_id\":\"";
  const char *text = (const char *)req->body.data;
  const char *end = text + req->body.len;

  for (; text + sizeof(key) < end; text++)
    if (memcmp(text, key, sizeof(key) - 1) == 0)
      return text + sizeof(key) - 1;
  return NULL;
}

static void drop(waiting_t *waiting) {
  local_timer_stop(&waiting->timer);
  tnk__free(waiting->stub->http.config.alloc, waiting);
}

static void on_gone(local_req_t *req, void *user) {
  (void)req;
  drop(user);
}

static void wait_for(local_stub_t *stub, local_req_t *req, uint64_t due_ms,
                     void (*fn)(local_timer_t *timer)) {
  waiting_t *waiting =
      tnk__calloc(stub->http.config.alloc, 1, sizeof(*waiting));

  if (waiting == NULL) {
    local_req_reply_text(req, 500, "text/plain", "out of memory");
    return;
  }
  local_timer_init(&waiting->timer);
  waiting->req = req;
  waiting->stub = stub;
  local_req_park(req, on_gone, waiting);
  local_timer_start(&stub->timers, &waiting->timer,
                    due_ms > now_ms(stub) ? due_ms - now_ms(stub) : 0, fn);
}

static void on_due(local_timer_t *timer) {
  waiting_t *waiting = tnk__container_of(timer, waiting_t, timer);
  local_stub_t *stub = waiting->stub;
  local_req_t *req = waiting->req;

  drop(waiting);
  give_result(stub, req, id_in(req));
}

static void retrieve(local_stub_t *stub, local_req_t *req) {
  const char *id = id_in(req);
  uint64_t due = id != NULL ? strtoull(id + 2, NULL, 10) : 0;

  if (id == NULL)
    local_req_reply_text(req, 404, "text/plain", "no such request");
  else if (due <= now_ms(stub))
    give_result(stub, req, id);
  else
    wait_for(stub, req, due, on_due);
}

/* ---- Batched polls ---- */

static void give_batch(local_stub_t *stub, local_req_t *req) {
  uint64_t cursor = number_in(req, "prev_cursor", 0);
  uint64_t now = now_ms(stub);
  tnk__buf_t out;
  uint64_t at;
  size_t len;

  tnk__buf_init(&out, stub->http.config.alloc, SIZE_MAX);
  tnk__buf_text(&out, "{\"completions\":[");
  for (at = cursor; at < stub->n_finished && stub->finished[at].due_ms <= now;
       at++)
    tnk__buf_printf(&out,
                    "%s{\"state\":\"finished\",\"request_id\":\"%s\","
                    "\"response_payload_uncompressed_size\":null}",
                    at > cursor ? "," : "", stub->finished[at].id);
  tnk__buf_printf(&out, "],\"cursor\":%" PRIu64 "}", at);
  len = out.len;
  local_req_reply(req, 200, "application/json", NULL, tnk__buf_take(&out, &len),
                  len);
}

static void on_batch(local_timer_t *timer) {
  waiting_t *waiting = tnk__container_of(timer, waiting_t, timer);
  local_stub_t *stub = waiting->stub;
  local_req_t *req = waiting->req;

  drop(waiting);
  give_batch(stub, req);
}

static void retrieve_batch(local_stub_t *stub, local_req_t *req) {
  uint64_t cursor = number_in(req, "prev_cursor", 0);
  int has_timeout = number_in(req, "timeout", UINT64_MAX) == 0;
  uint64_t due = now_ms(stub) + BATCH_HOLD_MS;

  if (cursor < stub->n_finished)
    due = stub->finished[cursor].due_ms;
  if (has_timeout || due <= now_ms(stub))
    give_batch(stub, req);
  else
    wait_for(stub, req, due, on_batch);
}

/* ---- Routes ---- */

static const struct {
  const char *path; /* behind /api/v1/ */
  char kind;        /* of a future, or 0 */
  const char *json; /* the answer, if there is no future */
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

static void handle(local_req_t *req, void *user) {
  static const char prefix[] = "/api/v1/";
  local_stub_t *stub = user;
  const char *path = req->path;

  if (local_faults_control(req->http->config.faults, req) ||
      local_fault_answers(req))
    return;
  if (strncmp(path, prefix, sizeof(prefix) - 1) == 0)
    path += sizeof(prefix) - 1;
  if (strcmp(path, "retrieve_future") == 0) {
    retrieve(stub, req);
    return;
  }
  if (strcmp(path, "retrieve_futures") == 0) {
    retrieve_batch(stub, req);
    return;
  }
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

/* ---- Life ---- */

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
  tnk__free(stub->http.config.alloc, stub->finished);
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
  const local_http_config_t config = {
      .host = options->host != NULL ? options->host : "127.0.0.1",
      .port = options->port,
      .max_body = (size_t)1 << 30,
      .max_conns = 65536,
      .alloc = alloc,
      .faults = options->faults,
      .handle = handle,
      .user = stub};
  int err;

  *out = NULL;
  if (stub == NULL)
    return TNK_ENOMEM;
  stub->loop = loop;
  stub->latency_ms = options->latency_ms;
  write_config(stub, options);
  for (size_t i = 0; i < MAX_TOKENS; i++) {
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
  err = local_http_open(&stub->http, loop, &config);
  if (err != TNK_OK)
    local_stub_close(stub);
  else
    *out = stub;
  return err;
}

uint16_t local_stub_port(const local_stub_t *stub) {
  return (uint16_t)stub->http.port;
}

void local_stub_close(local_stub_t *stub) {
  local_http_close(&stub->http, on_http_closed, stub);
  local_timers_close(&stub->timers, on_timers_closed);
}
