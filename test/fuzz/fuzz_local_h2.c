/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "peer.h"
#include "tnk/error.h"

/*
 * Frames as the local server reads them that speaks HTTP/2. The first byte of
 * the input says how they are cut, whether what is parked is answered in
 * between, and whether windows are closed at first; the frames follow. The
 * preface and SETTINGS are sent before.
 *
 * Requests to /later are answered in a later turn of the loop, as polls are,
 * those to /drop not at all, and those to /big at length. However it goes, each
 * one that is parked is answered or told of its end.
 */
enum { MAX_BODY = 1024, MAX_BYTES = 8192, MAX_STREAMS = 64, BIG = 300000 };

typedef struct {
  tnk__srv_req_t *parked[MAX_STREAMS];
  size_t n_parked;
} server_t;

static void check_head(const tnk__srv_req_t *req) {
  const char *at = (const char *)req->head.data;
  const char *end = req->head.len > 0 ? at + req->head.len : at;

  FUZZ_CHECK(at == end || end[-1] == '\0');
  while (at < end) {
    const char *value = at + strlen(at) + 1;

    FUZZ_CHECK(value < end && at[0] != '\0' && at[0] != ':');
    for (; *at != '\0'; at++)
      FUZZ_CHECK(*at < 'A' || *at > 'Z');
    FUZZ_CHECK(strpbrk(value, "\r\n") == NULL);
    at = value + strlen(value) + 1;
  }
}

static void unpark(server_t *server, const tnk__srv_req_t *req) {
  size_t i = 0;

  while (i < server->n_parked && server->parked[i] != req)
    i++;
  FUZZ_CHECK(i < server->n_parked);
  server->parked[i] = server->parked[--server->n_parked];
}

static void on_gone(tnk__srv_req_t *req, void *user) {
  unpark(user, req);
}

static void reply_big(tnk__srv_req_t *req) {
  uint8_t *body = tnk__calloc(req->http->config.alloc, 1, BIG);

  FUZZ_CHECK(body != NULL);
  tnk__srv_req_reply(req, 200, "text/plain", "X-One: 1\r\nX-Two: 2\r\n", body,
                     BIG);
}

static void handle(tnk__srv_req_t *req, void *user) {
  server_t *server = user;
  char value[16];

  check_head(req);
  FUZZ_CHECK(req->path[0] == '/' && req->body.len <= MAX_BODY);
  FUZZ_CHECK(!tnk__srv_req_query(req, "a", value, sizeof(value)) ||
             strlen(value) < sizeof(value));
  if (strcmp(req->path, "/later") == 0) {
    FUZZ_CHECK(server->n_parked < MAX_STREAMS);
    server->parked[server->n_parked++] = req;
    tnk__srv_req_park(req, on_gone, server);
  } else if (strcmp(req->path, "/drop") == 0) {
    tnk__srv_req_drop(req);
  } else if (strcmp(req->path, "/big") == 0) {
    reply_big(req);
  } else {
    tnk__srv_req_reply_text(req, 200, "text/plain", "now");
  }
}

static tnk__srv_t *get(server_t **server) {
  static server_t state;
  static tnk__srv_t http;
  static uv_loop_t loop;
  const tnk__srv_config_t config = {.host = "127.0.0.1",
                                    .max_body = MAX_BODY,
                                    .max_conns = 8,
                                    .max_streams = MAX_STREAMS,
                                    .alloc = tnk__allocator_default(),
                                    .handle = handle,
                                    .user = &state};

  *server = &state;
  if (http.config.handle == NULL) {
    FUZZ_CHECK(uv_loop_init(&loop) == 0);
    FUZZ_CHECK(tnk__srv_open(&http, &loop, &config) == 0);
  }
  return &http;
}

static void answer_parked(server_t *server) {
  while (server->n_parked > 0)
    tnk__srv_req_reply_text(server->parked[--server->n_parked], 201,
                            "text/plain", "later");
}

/* What the server has said does not matter; its socket must not fill. */
static void turn(fuzz_peer_t *peer) {
  char scratch[65536];

  fuzz_peer_turn(peer);
  while (read(peer->fd, scratch, sizeof(scratch)) > 0) {
  }
}

static void begin(fuzz_peer_t *peer, int has_closed_windows) {
  static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  static const char settings[] = "\0\0\0\4\0\0\0\0\0";
  static const char closed[] = "\0\0\6\4\0\0\0\0\0\0\4\0\0\0\0";

  fuzz_peer_send(peer, (const uint8_t *)preface, sizeof(preface) - 1);
  if (has_closed_windows)
    fuzz_peer_send(peer, (const uint8_t *)closed, sizeof(closed) - 1);
  else
    fuzz_peer_send(peer, (const uint8_t *)settings, sizeof(settings) - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const size_t steps[] = {MAX_BYTES, 1, 7, 64};
  server_t *server;
  fuzz_peer_t peer;
  uint8_t how = size > 0 ? data[0] : 0;
  size_t n;

  if (size > MAX_BYTES)
    size = MAX_BYTES;
  fuzz_peer_open(&peer, get(&server));
  begin(&peer, how & 8);
  for (size_t i = 1; i < size; i += n) {
    n = steps[how & 3];
    if (n > size - i)
      n = size - i;
    fuzz_peer_send(&peer, data + i, n);
    turn(&peer);
    if (how & 4)
      answer_parked(server);
  }
  for (int i = 0; i < 4 && (how & 16); i++) {
    answer_parked(server);
    turn(&peer);
  }
  fuzz_peer_close(&peer);
  FUZZ_CHECK(server->n_parked == 0);
  FUZZ_CHECK(peer.http->n_conns == 0);
  FUZZ_CHECK(tnk__list_empty(&peer.http->resuming));
  return 0;
}
