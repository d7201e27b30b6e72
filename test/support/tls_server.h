/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_SUPPORT_TLS_SERVER_H
#define TNK_TEST_SUPPORT_TLS_SERVER_H

#include <mbedtls/ssl.h>
#include <mbedtls/ssl_ticket.h>
#include <uv.h>

#include "support/certs.h"

struct test_server;

/* One accepted connection; freed when it is closed. */
typedef struct test_conn {
  struct test_server *server;
  struct test_conn *next;
  uv_tcp_t tcp;
  uv_idle_t trickle; /* runs while bytes wait to be sent in pieces */
  mbedtls_ssl_context ssl;
  const unsigned char *in;
  size_t in_len;
  unsigned char *out; /* waits to be sent */
  size_t out_len;
  size_t n_sent;    /* on the wire */
  int is_open;      /* the handshake is over */
  int is_closing;   /* no more events */
  int n_handles;    /* that libuv knows */
  size_t n_written; /* by the test */
  char *head; /* of a proxy: what has come of the CONNECT; from malloc() */
  size_t n_head;
  void *user;
} test_conn_t;

/* What becomes of a connection once so many bytes were sent on it. */
typedef enum {
  TEST_LIVES = 0,
  TEST_IS_SILENT, /* stays open, and nothing more is sent */
  TEST_ENDS,      /* is closed, without TLS's goodbye */
  TEST_RESETS
} test_end_t;

/* What a test's server does. Zero: plain TCP that swallows everything. */
typedef struct {
  const test_identity_t *identity; /* NULL: no TLS */
  /* Whose clients it takes, by their certificates; NULL: nobody is asked. */
  const test_identity_t *client_ca;
  const char *address;     /* to listen on; NULL: 127.0.0.1 */
  const char *const *alpn; /* what it chooses from; NULL: it does not */
  void (*on_open)(test_conn_t *conn);
  void (*on_read)(test_conn_t *conn, const unsigned char *data, size_t n);
  /* The peer ended it; the connection closes after that. */
  void (*on_end)(test_conn_t *conn);
  size_t chop;      /* send so many bytes a turn of the loop; 0: all */
  size_t cut_after; /* close when so many bytes were sent; 0: never */
  test_end_t end;   /* of each connection, at once or ... */
  size_t end_after; /* ... when so many bytes were sent; may be changed */
  size_t noise_at;  /* spoil this byte of what is sent, from 1; 0: none */
  int deaf;         /* accept and read nothing */
  int no_tickets;   /* no resumption */
  int is_old;       /* TLS 1.1 at most, where mbedTLS still has it */
  int is_tls_1_2;   /* at most */
  int may_renegotiate;
  void *user;
} test_server_options_t;

/*
 * A server on the loop of the test, TCP or TLS. It keeps the loop alive, so
 * run the loop in single turns until what is waited for has happened.
 */
typedef struct test_server {
  test_server_options_t options;
  uv_tcp_t listener;
  int port;
  test_conn_t *conns; /* open ones, latest first */
  mbedtls_ssl_config config;
  mbedtls_ssl_ticket_context tickets;
  int is_deaf; /* the listener is closed or about to be */
  int is_gone; /* and nothing is left of it */
  int held;    /* keeps the port meanwhile; 0: not */
  int n_accepted;
  int n_open;    /* connections now */
  int n_handles; /* the listener, and the connections */
  int n_handshakes;
  int n_resumed;
  int n_ended;    /* connections that the peer ended */
  int n_goodbyes; /* close_notify received */
  int n_resets;
  size_t n_received; /* the peer's bytes, decrypted */
} test_server_t;

void test_server_open(test_server_t *server, uv_loop_t *loop,
                      const test_server_options_t *options);
/* Make the TLS settings anew, after options.identity was changed. */
void test_server_configure(test_server_t *server);
/* Refuse further connections; and accept them again, at the same port. */
void test_server_stop_listening(test_server_t *server);
void test_server_listen_again(test_server_t *server);
/* Close the listener and what is connected; run the loop afterwards. */
void test_server_close(test_server_t *server);

/* The bytes are copied. */
void test_conn_write(test_conn_t *conn, const void *data, size_t n);
/* Say goodbye and close. */
void test_conn_end(test_conn_t *conn);
/* Close without TLS's goodbye; or so that the peer sees a reset. */
void test_conn_cut(test_conn_t *conn);
void test_conn_reset(test_conn_t *conn);
/* Stop or go on reading. */
void test_conn_pause(test_conn_t *conn, int paused);

/* Not 0 while a server computes, for tests that tell it from the client. */
int test_server_depth(void);

/* Run single turns of the loop until it is true. The case's time limit ends a
 * wait that is in vain. */
#define TEST_RUN_UNTIL(loop, cond)                                             \
  do {                                                                         \
    while (!(cond))                                                            \
      uv_run(loop, UV_RUN_ONCE);                                               \
  } while (0)

#endif
