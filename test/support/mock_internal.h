#ifndef TNK_TEST_SUPPORT_MOCK_INTERNAL_H
#define TNK_TEST_SUPPORT_MOCK_INTERNAL_H

#include <llhttp.h>

#include "base/list.h"
#include "loop/context.h"
#include "support/mock_server.h"

/* What mock_server.c (the script) and mock_conn.c (the wire) share. Memory is
 * the test's own (malloc), so that the counting allocator sees only the
 * library. All of it is freed when the last handle has closed. */

typedef struct mock_rule {
  tnk__list_t link;
  char *method;
  char *path;
  mock_handler_t handler;
  void *user;
  int status; /* of a rule with ready-made JSON */
  char *json;
} mock_rule_t;

typedef struct {
  char *data;
  size_t len;
  size_t cap;
} mock_text_t;

struct mock_conn {
  tnk__list_t link;
  mock_server_t *server;
  uv_tcp_t tcp;
  size_t number;
  llhttp_t parser;
  mock_request_t *request; /* being read or answered; NULL: idle */
  mock_text_t text;      /* of the request: target, names, values, path, body */
  size_t marks[2 * 256]; /* starts of names and values */
  size_t n_marks;
  size_t path_at;
  mock_text_t out; /* being written; `out_at` bytes of it are with the kernel */
  size_t out_at;
  mock_text_t queue; /* to be written next */
  uv_write_t write;
  int is_writing;
  int ends;        /* the answer is complete with `queue` */
  int close_after; /* close when that is written */
  int is_closing;
};

struct mock_server {
  uv_loop_t *uv;
  uv_tcp_t listener;
  uv_idle_t spin; /* keeps uv_run() from waiting in mock_turns() */
  uint16_t port;
  char url[40];
  tnk__list_t once;
  tnk__list_t rules; /* latest first */
  tnk__list_t conns;
  tnk__list_t delayed;
  mock_request_t **requests;
  size_t n_requests;
  size_t n_connections;
  size_t n_open;
  size_t n_handles;
  tnk__context_t *clock;
  mock_handler_t on_head;
  void *on_head_user;
  int drip;
  int is_deaf;
  int is_closing;
  int is_listening;
};

void mock__add(mock_text_t *text, const void *data, size_t n);
/* One handle less; after the last one all memory is freed. */
void mock__release_handle(mock_server_t *server);
/* A complete request: find who answers it. */
void mock__handle(mock_request_t *request);

void mock__on_connection(uv_stream_t *listener, int status);
void mock__start_reading(mock_conn_t *conn);
/* Write what is queued, and end the request after it. */
void mock__flush(mock_conn_t *conn);
void mock__close_conn(mock_conn_t *conn, int reset);

#endif
