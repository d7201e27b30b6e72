/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_FUZZ_PEER_H
#define TNK_TEST_FUZZ_PEER_H

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "lib/base/alloc.h"
#include "server/state.h"

/*
 * A peer of the local server without a network: what it sends is put into the
 * connection's read callback, cut as the caller likes, and what the server
 * writes goes into a socket pair that nobody needs to read.
 */
typedef struct {
  tnk__srv_t *http;
  tnk__srv_conn_t *conn;
  size_t n_open; /* handles of the server before this peer */
  int fd;
} fuzz_peer_t;

static inline void fuzz_peer_open(fuzz_peer_t *peer, tnk__srv_t *http) {
  int fds[2];

  FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0);
  peer->http = http;
  peer->n_open = http->n_open;
  peer->fd = fds[1];
  peer->conn = tnk__calloc(http->config.alloc, 1, sizeof(*peer->conn));
  FUZZ_CHECK(peer->conn != NULL);
  FUZZ_CHECK(tnk__srv_conn_init(peer->conn, http, http->listener.loop) == 0);
  tnk__list_append(&http->conns, &peer->conn->link);
  http->n_conns++;
  http->n_open++;
  FUZZ_CHECK(uv_tcp_open(&peer->conn->tcp, fds[0]) == 0);
  tnk__srv_conn_start(peer->conn);
}

static inline int fuzz_peer_is_open(const fuzz_peer_t *peer) {
  return peer->http->n_open > peer->n_open;
}

static inline void fuzz_peer_turn(fuzz_peer_t *peer) {
  uv_run(peer->http->listener.loop, UV_RUN_NOWAIT);
}

static inline void fuzz_peer_send(fuzz_peer_t *peer, const uint8_t *data,
                                  size_t n) {
  uv_stream_t *stream = (uv_stream_t *)&peer->conn->tcp;
  uv_buf_t buf;

  if (!fuzz_peer_is_open(peer) || peer->conn->state == TNK__SRV_CONN_CLOSING)
    return;
  /* Reading is stopped when more is pending than an input has. */
  FUZZ_CHECK(stream->read_cb != NULL);
  stream->alloc_cb((uv_handle_t *)stream, 65536, &buf);
  FUZZ_CHECK(n <= buf.len);
  memcpy(buf.base, data, n);
  stream->read_cb(stream, (ssize_t)n, &buf);
}

static inline void fuzz_peer_close(fuzz_peer_t *peer) {
  if (fuzz_peer_is_open(peer))
    tnk__srv_conn_close(peer->conn);
  while (fuzz_peer_is_open(peer))
    fuzz_peer_turn(peer);
  close(peer->fd);
}

#endif
