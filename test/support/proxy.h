/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_SUPPORT_PROXY_H
#define TNK_TEST_SUPPORT_PROXY_H

#include "support/tls_server.h"

struct test_pipe;

/*
 * A proxy that makes tunnels (CONNECT, or SOCKS5), on the loop of the test. It
 * writes down what it is asked. Whatever name is asked for, the tunnel goes to
 * 127.0.0.1 and `target_port`.
 *
 * A front asks nobody: each connection goes to the target at once, and the
 * front takes TLS off it if it has an identity.
 */
typedef struct {
  test_server_t server;
  int target_port;
  /* What it says instead of connecting, as often as it is asked; NULL: it
   * connects. After that the connection is closed with `cuts`, and reset if
   * that is 2. */
  const char *answer;
  int cuts;
  int is_front;
  /* What it says when it has connected; NULL: a plain 200. */
  const char *agreement;
  /* It speaks SOCKS5. */
  int is_socks;
  const char *login; /* user, blank, password that it wants; NULL: nobody's */
  int method;        /* that it chooses instead, from 1; 0: what it has to */
  int reply;         /* that it gives instead of connecting, from 1 */
  int n_asked;
  char head[4096]; /* the last CONNECT, or request of SOCKS, whole */
  size_t n_head;
  size_t n_up; /* bytes that went through to the target */
  struct test_pipe *pipes;
} test_proxy_t;

/* `chop` as in test_server_options_t. */
void test_proxy_open(test_proxy_t *proxy, uv_loop_t *loop, int target_port,
                     size_t chop);
/* `alpn` as in test_server_options_t; no identity: plain TCP. */
void test_front_open(test_proxy_t *front, uv_loop_t *loop, int target_port,
                     const test_identity_t *identity, const char *const *alpn);
void test_proxy_close(test_proxy_t *proxy);

#endif
