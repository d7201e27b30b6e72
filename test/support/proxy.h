#ifndef TNK_TEST_SUPPORT_PROXY_H
#define TNK_TEST_SUPPORT_PROXY_H

#include "support/tls_server.h"

struct test_pipe;

/*
 * A proxy that makes tunnels (CONNECT, or SOCKS5), on the loop of the test. It
 * writes down what it is asked. Whatever name is asked for, the tunnel goes to
 * 127.0.0.1 and `target_port`.
 */
typedef struct {
  test_server_t server;
  int target_port;
  /* What it says instead of connecting, as often as it is asked; NULL: it
   * connects. Cut off after that with `cuts`. */
  const char *answer;
  int cuts;
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
void test_proxy_close(test_proxy_t *proxy);

#endif
