/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_SUPPORT_MOCK_INTERNAL_H
#define TNK_TEST_SUPPORT_MOCK_INTERNAL_H

#include <llhttp.h>

#include "lib/base/list.h"
#include "lib/io/loop/context.h"
#include "support/mock_http2.h"
#include "support/mock_server.h"

/* What the mock's files share: mock_server.c (the script), mock_answer.c
 * (answers), mock_request.c (a request as it comes in), mock_conn.c (the wire),
 * mock_http1.c and mock_http2.c (what is said on it). Memory is the test's own
 * (malloc), so that the counting allocator sees only the library. All of it is
 * freed when the last handle has closed. */

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

/* A request while it comes in. Its text is in this order: target, names and
 * values, method, path, body; each but the body ends with a NUL. */
typedef struct {
  mock_request_t *request; /* NULL: none */
  mock_text_t text;
  size_t marks[2 * 256]; /* starts of names and values */
  size_t n_marks;
  size_t target_at;
  size_t method_at;
  size_t path_at;
} mock_message_t;

typedef struct mock_session mock_session_t;
typedef struct mock_stream mock_stream_t;

struct mock_conn {
  tnk__list_t link;
  mock_server_t *server;
  uv_tcp_t tcp;
  size_t number;
  char first[3]; /* bytes, which tell the version */
  size_t n_first;
  int is_refused; /* HTTP/2 was, and the rest is not read */
  llhttp_t parser;
  mock_message_t message;  /* of HTTP/1.1 */
  mock_session_t *session; /* of HTTP/2, or NULL */
  mock_text_t out; /* being written; `out_at` bytes of it are with the kernel */
  size_t out_at;
  mock_text_t queue; /* to be written next */
  uv_write_t write;
  int is_writing;
  int ends;        /* the answer is complete with `queue`; HTTP/1.1 */
  int close_after; /* close when that is written; HTTP/1.1 */
  int is_closing;
};

enum { MOCK_MAX_SETTINGS = 8 };

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
  size_t n_bytes; /* read and written on all of them */
  size_t n_open;
  size_t n_handles;
  tnk__context_t *clock;
  mock_handler_t on_head;
  void *on_head_user;
  const char *headers; /* of every answer, or NULL */
  int passes;          /* the handler did not want the request */
  int is_lenient;
  int drip;
  int is_deaf;
  int is_closing;
  int is_listening;
  int is_listener_closed; /* and nothing of it is left */
  int held;               /* keeps the port meanwhile; 0: not */
  /* HTTP/2. */
  struct {
    uint32_t ids[MOCK_MAX_SETTINGS];
    uint32_t values[MOCK_MAX_SETTINGS];
    size_t n_settings;
    size_t n_sessions;
    size_t n_streams;
    size_t most_streams;
    size_t n_refused;
    size_t n_resets;
    size_t most_resets;
    size_t n_pings;
    size_t n_pongs;
    size_t n_goaways;
    size_t n_calmed;
    size_t max_resets; /* 0: any number */
    uint64_t resets_ms;
    int is_unknown;
    int is_alone; /* HTTP/1.1 is refused */
    int is_silent;
    int no_windows;
    int no_pongs;
  } h2;
};

void mock__add(mock_text_t *text, const void *data, size_t n);

/* mock_server.c */
/* One handle less; after the last one all memory is freed. */
void mock__release_handle(mock_server_t *server);
/* A complete request: find who answers it. */
void mock__handle(mock_request_t *request);

/* mock_answer.c */
/* A copy of a text, or NULL of NULL. */
char *mock__copy(const char *text);
/* Drop the answers that were to come later. */
void mock__forget_delayed(mock_server_t *server);

/* mock_request.c */
void mock__message_begin(mock_message_t *message, mock_conn_t *conn);
/* End a text and note where the next begins. */
void mock__message_mark(mock_message_t *message);
void mock__message_head(mock_message_t *message, const char *method);
/* Some of the body has been added to the text, which may have moved. */
void mock__message_moved(mock_message_t *message);
void mock__message_complete(mock_message_t *message);
/* Part the request from its connection; it keeps its text. */
void mock__message_part(mock_message_t *message);
/* The same where the request has not been answered. */
void mock__message_lose(mock_message_t *message);

/* mock_conn.c */
void mock__on_connection(uv_stream_t *listener, int status);
void mock__start_reading(mock_conn_t *conn);
/* Write what is queued, and end the request after it. */
void mock__flush(mock_conn_t *conn);
int mock__is_flushed(const mock_conn_t *conn);
void mock__close_conn(mock_conn_t *conn, int reset);
/* Whether there is no request on it. */
int mock__is_idle(const mock_conn_t *conn);

/* mock_http1.c */
void mock__http1_init(mock_conn_t *conn);
void mock__http1_read(mock_conn_t *conn, const char *data, size_t n);
/* All that was queued is written. */
void mock__http1_flushed(mock_conn_t *conn);

/* mock_http2.c */
void mock__http2_open(mock_conn_t *conn);
void mock__http2_read(mock_conn_t *conn, const char *data, size_t n);
/* Queue what the session has to say. */
void mock__http2_fill(mock_conn_t *conn);
void mock__http2_flushed(mock_conn_t *conn);
/* The connection closes: its requests are gone. */
void mock__http2_lose(mock_conn_t *conn);
void mock__http2_free(mock_conn_t *conn);
size_t mock__http2_n_streams(const mock_conn_t *conn);
void mock__http2_begin(mock_stream_t *stream, int status, const char *headers,
                       int is_empty);
void mock__http2_piece(mock_stream_t *stream, const void *data, size_t n);
void mock__http2_end(mock_stream_t *stream);
/* What has been said of the answer is all of it. */
void mock__http2_cut(mock_stream_t *stream);
void mock__http2_inform(mock_stream_t *stream, int status, const char *headers);
void mock__http2_nonsense(mock_stream_t *stream);
/* Take no further streams, and close when the present ones have ended. */
void mock__http2_finish(mock_conn_t *conn);

#endif
