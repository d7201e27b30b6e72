/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_HTTP_PEER_H
#define TNK_TEST_HTTP_PEER_H

#include <string.h>
#include <unistd.h>

#include "support/test.h"
#include "support/tls_server.h"

/* A server with TLS and an authority of its own, which keeps what it is asked
 * and says what it is told to. */
typedef struct {
  test_identity_t ca;
  test_identity_t leaf;
  char ca_path[256];
  test_server_t server;
  const char *answer;
  const char *request_end;
  int ends; /* after the answer: 1 with a goodbye, 2 without */
  int n_requests;
  char request[4096]; /* the last one */
  size_t n;
} peer_t;

static inline void peer_on_request(test_conn_t *conn, const unsigned char *data,
                                   size_t n) {
  peer_t *peer = conn->server->options.user;

  CHECK(peer->n + n < sizeof(peer->request));
  memcpy(peer->request + peer->n, data, n);
  peer->n += n;
  peer->request[peer->n] = '\0';
  if (strstr(peer->request, peer->request_end) == NULL)
    return;
  peer->n = 0;
  peer->n_requests++;
  test_conn_write(conn, peer->answer, strlen(peer->answer));
  if (peer->ends == 1)
    test_conn_end(conn);
  if (peer->ends == 2)
    test_conn_cut(conn);
}

/* Its authority, in a file at ca_path, and its certificate from there. */
static inline void peer_init(peer_t *peer, test_cert_t leaf) {
  const test_cert_t authority = {.subject = "CN=test authority", .is_ca = 1};

  memset(peer, 0, sizeof(*peer));
  leaf.issuer = &peer->ca;
  test_identity_make(&peer->ca, &authority);
  test_identity_save(&peer->ca, peer->ca_path, sizeof(peer->ca_path));
  test_identity_make(&peer->leaf, &leaf);
  peer->answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  peer->request_end = "\r\n\r\n";
}

static inline void peer_open(peer_t *peer, uv_loop_t *uv) {
  const test_server_options_t options = {
      .identity = &peer->leaf, .on_read = peer_on_request, .user = peer};

  test_server_open(&peer->server, uv, &options);
}

static inline void peer_free(peer_t *peer) {
  test_identity_free(&peer->leaf);
  test_identity_free(&peer->ca);
  CHECK_INT(unlink(peer->ca_path), 0);
}

#endif
