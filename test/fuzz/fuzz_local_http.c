/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "peer.h"
#include "tnk/error.h"

/* Requests as the local server reads them. Those to /later are answered in a
 * later turn of the loop, as polls are. */
enum { MAX_BODY = 1024, MAX_BYTES = 4096 };

typedef struct {
  tnk__buf_t log; /* what was asked, and the status of each answer */
  tnk__srv_req_t *parked;
} server_t;

static void check_head(const tnk__srv_req_t *req) {
  const char *at = (const char *)req->head.data;
  const char *end = req->head.len > 0 ? at + req->head.len : at;

  FUZZ_CHECK(at == end || end[-1] == '\0');
  while (at < end) {
    const char *value = at + strlen(at) + 1;

    FUZZ_CHECK(value < end && at[0] != '\0');
    for (; *at != '\0'; at++)
      FUZZ_CHECK(*at < 'A' || *at > 'Z');
    FUZZ_CHECK(strpbrk(value, "\r\n") == NULL);
    at = value + strlen(value) + 1;
  }
}

static void on_gone(tnk__srv_req_t *req, void *user) {
  server_t *server = user;

  FUZZ_CHECK(server->parked == req);
  server->parked = NULL;
}

static void handle(tnk__srv_req_t *req, void *user) {
  server_t *server = user;
  char value[16];

  check_head(req);
  FUZZ_CHECK(server->parked == NULL);
  FUZZ_CHECK(req->path[0] == '/' && req->body.len <= MAX_BODY);
  FUZZ_CHECK(!tnk__srv_req_query(req, "a", value, sizeof(value)) ||
             strlen(value) < sizeof(value));
  tnk__buf_text(&server->log, req->method);
  tnk__buf_append(&server->log, req->path, strlen(req->path) + 1);
  tnk__buf_append(&server->log, req->query, strlen(req->query) + 1);
  tnk__buf_append(&server->log, req->head.data, req->head.len);
  tnk__buf_byte(&server->log, '|');
  tnk__buf_append(&server->log, req->body.data, req->body.len);
  if (strcmp(req->path, "/later") != 0) {
    tnk__srv_req_reply_text(req, 200, "text/plain", "now");
    return;
  }
  server->parked = req;
  tnk__srv_req_park(req, on_gone, server);
}

static void on_reply(tnk__srv_req_t *req, int status, void *user) {
  server_t *server = user;

  (void)req;
  FUZZ_CHECK(status >= 200 && status <= 503);
  tnk__buf_printf(&server->log, "=%d;", status);
}

static tnk__srv_t *get(server_t **server) {
  static server_t state;
  static tnk__srv_t http;
  static uv_loop_t loop;
  const tnk__srv_config_t config = {.host = "127.0.0.1",
                                    .max_body = MAX_BODY,
                                    .max_conns = 8,
                                    .alloc = tnk__allocator_default(),
                                    .handle = handle,
                                    .on_reply = on_reply,
                                    .user = &state};

  *server = &state;
  if (http.config.handle == NULL) {
    FUZZ_CHECK(uv_loop_init(&loop) == 0);
    FUZZ_CHECK(tnk__srv_open(&http, &loop, &config) == 0);
  }
  return &http;
}

static void answer_parked(fuzz_peer_t *peer, server_t *server) {
  tnk__srv_req_t *req;

  while (server->parked != NULL) {
    req = server->parked;
    server->parked = NULL;
    tnk__srv_req_reply_text(req, 201, "text/plain", "later");
    fuzz_peer_turn(peer);
  }
}

/* `step` 0: pieces of many sizes. */
static tnk__buf_t run(const uint8_t *data, size_t size, size_t step) {
  server_t *server;
  fuzz_peer_t peer;
  size_t n;

  fuzz_peer_open(&peer, get(&server));
  tnk__buf_init(&server->log, tnk__allocator_default(), (size_t)1 << 24);
  for (size_t i = 0; i < size; i += n) {
    n = step > 0 ? step : 1 + (i * 7 + size) % 23;
    if (n > size - i)
      n = size - i;
    fuzz_peer_send(&peer, data + i, n);
    if (i % 3 == 0)
      answer_parked(&peer, server);
  }
  do {
    fuzz_peer_turn(&peer);
    answer_parked(&peer, server);
  } while (!tnk__list_empty(&peer.http->resuming));
  fuzz_peer_close(&peer);
  FUZZ_CHECK(server->parked == NULL && server->log.err == TNK_OK);
  FUZZ_CHECK(peer.http->n_conns == 0);
  return server->log;
}

/* However the bytes are cut, the same requests get the same answers. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const size_t steps[] = {1, 0};
  tnk__buf_t whole, cut;

  if (size > MAX_BYTES)
    size = MAX_BYTES;
  whole = run(data, size, size + 1);
  for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
    cut = run(data, size, steps[i]);
    FUZZ_CHECK(cut.len == whole.len);
    FUZZ_CHECK(cut.len == 0 || memcmp(cut.data, whole.data, cut.len) == 0);
    tnk__buf_deinit(&cut);
  }
  tnk__buf_deinit(&whole);
  return 0;
}
