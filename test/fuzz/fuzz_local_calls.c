/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/http_read.h"
#include "lib/wire/format/json_read.h"
#include "peer.h"
#include "tnk/error.h"
#include "tools/local/call/state.h"

/*
 * The calls of the local server. The input is a row of requests, each of two
 * letters (the call, and 'p' for protobuf, 'z' for zstd or anything else for
 * JSON), the length of the body in two bytes, and the body. $S, $M and $C in a
 * body or path are the session, the model and the sampler that every run
 * begins with, and $F the last request id that was answered. A body in
 * protobuf, where texts have a length, gets the model appended instead.
 *
 * Each request has one answer, which our client's reader understands, and no
 * answer blames the server.
 */
static const char *const calls[] = {
    "POST /api/v1/client/config",
    "POST /api/v1/telemetry",
    "POST /api/v1/create_session",
    "POST /api/v1/session_heartbeat",
    "POST /api/v1/sessions/$S/finish",
    "GET /api/v1/sessions/$S",
    "GET /api/v1/sessions?limit=2&offset=1",
    "POST /api/v1/create_model",
    "POST /api/v1/get_info",
    "POST /api/v1/unload_model",
    "POST /api/v1/forward_backward",
    "POST /api/v1/forward",
    "POST /api/v1/optim_step",
    "POST /api/v1/save_weights",
    "POST /api/v1/save_weights_for_sampler",
    "POST /api/v1/load_weights",
    "POST /api/v1/create_sampling_session",
    "POST /api/v1/join_sampling_session",
    "POST /api/v1/asample",
    "GET /api/v1/samplers/$C",
    "POST /api/v1/retrieve_future",
    "POST /api/v1/retrieve_futures",
    "POST /api/v1/cancel_future",
    "POST /api/v1/weights_info",
    "GET /api/v1/training_runs",
    "GET /api/v1/checkpoints",
    "PUT /api/v1/training_runs/$M/checkpoints/weights/a/ttl",
};
enum {
  N_CALLS = sizeof(calls) / sizeof(calls[0]),
  MODEL_ID = 1, /* the field of a ForwardBackwardRequest */
  MAX_REQUEST = 8192,
  MAX_REQUESTS = 16,
  RUNS_OF_A_SERVER = 100,
  MAX_TURNS = 20000
};

typedef struct {
  uv_loop_t loop;
  local_server_t *server;
  int n_runs;
  int is_closed;
  char session[96];
  char model[96];
  char sampler[96];
  char future[96];
} rig_t;

static const char *name_of(const rig_t *rig, char letter) {
  switch (letter) {
  case 'S':
    return rig->session;
  case 'M':
    return rig->model;
  case 'C':
    return rig->sampler;
  case 'F':
    return rig->future;
  default:
    return NULL;
  }
}

static void put(tnk__buf_t *out, const rig_t *rig, const void *data, size_t n) {
  const char *text = data;

  for (size_t i = 0; i < n; i++) {
    const char *name =
        text[i] == '$' && i + 1 < n ? name_of(rig, text[i + 1]) : NULL;

    if (name != NULL)
      tnk__buf_text(out, name);
    else
      tnk__buf_byte(out, (uint8_t)text[i]);
    i += name != NULL;
  }
}

/* Of a field that comes twice the last one counts. */
static void put_proto(tnk__buf_t *out, const rig_t *rig, const void *data,
                      size_t n) {
  tnk__buf_append(out, data, n);
  tnk__buf_byte(out, MODEL_ID << 3 | 2);
  tnk__buf_byte(out, (uint8_t)strlen(rig->model));
  tnk__buf_text(out, rig->model);
}

/* ---- One request ---- */

static void check_answer(const tnk__response_t *answer) {
  const char *type = tnk__response_header(answer, "content-type");
  json_t *json;

  FUZZ_CHECK(answer->status >= 200 && answer->status < 500);
  if (type == NULL || strcmp(type, "application/json") != 0)
    return;
  FUZZ_CHECK(tnk__json_parse(&json, answer->body.data, answer->body.len) ==
             TNK_OK);
  json_decref(json);
}

/* Turn the loop until the answer is complete, or 0: it is not coming. */
static int receive(fuzz_peer_t *peer, tnk__response_t *answer) {
  tnk__http_reader_t reader;
  uint8_t bytes[4096];

  tnk__http_reader_init(&reader, answer, 0);
  for (int i = 0; i < MAX_TURNS && reader.state != TNK__HTTP_READ_DONE; i++) {
    ssize_t n = recv(peer->fd, bytes, sizeof(bytes), 0);

    if (n == 0)
      return 0;
    if (n > 0)
      FUZZ_CHECK(tnk__http_reader_feed(&reader, bytes, (size_t)n) == TNK_OK);
    else
      uv_run(peer->http->listener.loop, i < 100 ? UV_RUN_NOWAIT : UV_RUN_ONCE);
  }
  FUZZ_CHECK(reader.state == TNK__HTTP_READ_DONE);
  return 1;
}

static int ask(rig_t *rig, fuzz_peer_t *peer, const char *call, char kind,
               const void *body, size_t n, tnk__response_t *answer) {
  tnk__buf_t request, text;
  int is_answered;

  tnk__buf_init(&request, tnk__allocator_default(), (size_t)1 << 20);
  tnk__buf_init(&text, tnk__allocator_default(), (size_t)1 << 20);
  if (kind == 'p')
    put_proto(&text, rig, body, n);
  else
    put(&text, rig, body, n);
  put(&request, rig, call, strlen(call));
  tnk__buf_printf(&request, " HTTP/1.1\r\nContent-Length: %zu\r\n%s\r\n",
                  text.len,
                  kind == 'p'   ? "Content-Type: application/x-protobuf\r\n"
                  : kind == 'z' ? "Content-Encoding: zstd\r\n"
                                : "");
  tnk__buf_append(&request, text.data, text.len);
  FUZZ_CHECK(request.err == TNK_OK && text.err == TNK_OK);
  fuzz_peer_send(peer, request.data, request.len);
  tnk__response_init(answer, tnk__allocator_default(), (size_t)1 << 26);
  is_answered = receive(peer, answer);
  tnk__buf_deinit(&text);
  tnk__buf_deinit(&request);
  return is_answered;
}

/* A member of a JSON answer, if it is there. */
static void note(char out[96], const tnk__response_t *answer, const char *key) {
  json_t *json;
  const char *text;

  if (tnk__json_parse(&json, answer->body.data, answer->body.len) != TNK_OK)
    return;
  text = tnk__json_str(json, key);
  if (text != NULL)
    snprintf(out, 96, "%s", text);
  json_decref(json);
}

/* ---- The server ---- */

/* Asked again until it is there: a model takes its time. */
static void prepare(rig_t *rig, fuzz_peer_t *peer, const char *call,
                    const char *body, char out[96], const char *key) {
  tnk__response_t answer;

  for (int i = 0; i < MAX_TURNS && out[0] == '\0'; i++) {
    FUZZ_CHECK(ask(rig, peer, call, 'j', body, strlen(body), &answer));
    check_answer(&answer);
    note(out, &answer, key);
    tnk__response_deinit(&answer);
  }
  FUZZ_CHECK(out[0] != '\0');
}

static int is_alive(rig_t *rig, fuzz_peer_t *peer, const char *call,
                    const char *body) {
  tnk__response_t answer;
  int status;

  FUZZ_CHECK(ask(rig, peer, call, 'j', body, strlen(body), &answer));
  status = answer.status;
  tnk__response_deinit(&answer);
  return status / 100 == 2;
}

/* Unless an earlier run has left them alone. */
static void prepare_all(rig_t *rig, fuzz_peer_t *peer) {
  if (is_alive(rig, peer, calls[3], "{\"session_id\":\"$S\"}") &&
      is_alive(rig, peer, calls[8], "{\"model_id\":\"$M\"}"))
    return;
  rig->session[0] = rig->model[0] = rig->sampler[0] = rig->future[0] = '\0';
  prepare(rig, peer, calls[2], "{\"sdk_version\":\"1\",\"tags\":[]}",
          rig->session, "session_id");
  prepare(rig, peer, calls[7],
          "{\"session_id\":\"$S\",\"model_seq_id\":0,\"base_model\":"
          "\"tnk/byte-lm\",\"lora_config\":{\"rank\":2}}",
          rig->future, "request_id");
  prepare(rig, peer, calls[20], "{\"request_id\":\"$F\"}", rig->model,
          "model_id");
  prepare(rig, peer, calls[16],
          "{\"session_id\":\"$S\",\"sampling_session_seq_id\":0,"
          "\"base_model\":\"tnk/byte-lm\"}",
          rig->sampler, "sampling_session_id");
}

static void on_closed(void *user) {
  ((rig_t *)user)->is_closed = 1;
}

static void open_server(rig_t *rig) {
  local_options_t options = LOCAL_OPTIONS_INIT;

  options.hold_ms = 1;
  options.latency_ms = 0;
  options.n_threads = 1;
  options.session_timeout_ms = 0;
  options.max_body = MAX_REQUEST * 4;
  options.max_pending = 64;
  options.max_results = 64;
  options.sequence = LOCAL_LENIENT;
  FUZZ_CHECK(uv_loop_init(&rig->loop) == 0);
  FUZZ_CHECK(local_server_open(&rig->server, &rig->loop, &options) == TNK_OK);
}

/* A new one now and then, so that what piles up is limited, and what one run
 * did seldom matters to another. */
static void close_server(rig_t *rig) {
  rig->is_closed = 0;
  local_server_close(rig->server, on_closed, rig);
  while (!rig->is_closed)
    uv_run(&rig->loop, UV_RUN_ONCE);
  while (uv_loop_close(&rig->loop) != 0)
    uv_run(&rig->loop, UV_RUN_NOWAIT);
  rig->server = NULL;
}

/* Takes one request off the input; 0 when there is none. */
static int take(const uint8_t **data, size_t *size, uint8_t head[2],
                const uint8_t **body, size_t *n) {
  if (*size < 4)
    return 0;
  memcpy(head, *data, 2);
  *n = (*data)[2] | (size_t)(*data)[3] << 8;
  if (*n > *size - 4)
    *n = *size - 4;
  if (*n > MAX_REQUEST)
    *n = MAX_REQUEST;
  *body = *data + 4;
  *data += 4 + *n;
  *size -= 4 + *n;
  return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static rig_t rig;
  tnk__response_t answer;
  const uint8_t *body;
  fuzz_peer_t peer;
  uint8_t head[2];
  size_t n;

  if (rig.server == NULL)
    open_server(&rig);
  fuzz_peer_open(&peer, &rig.server->http);
  prepare_all(&rig, &peer);
  for (int i = 0; i < MAX_REQUESTS && take(&data, &size, head, &body, &n);
       i++) {
    const char *call = calls[head[0] % N_CALLS];

    FUZZ_CHECK(ask(&rig, &peer, call, (char)head[1], body, n, &answer));
    check_answer(&answer);
    note(rig.future, &answer, "request_id");
    tnk__response_deinit(&answer);
  }
  fuzz_peer_close(&peer);
  if (++rig.n_runs % RUNS_OF_A_SERVER == 0)
    close_server(&rig);
  return 0;
}
