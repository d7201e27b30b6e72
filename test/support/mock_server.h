/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_SUPPORT_MOCK_SERVER_H
#define TNK_TEST_SUPPORT_MOCK_SERVER_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct tnk__context;

/*
 * A scripted server on the test's own loop, port chosen by the system. It
 * speaks HTTP/1.1 and, to a client that begins with its preface, HTTP/2 (what
 * only that has is in support/mock_http2.h). It records every request and
 * answers as told:
 *
 *   mock_server_t *mock = mock_open(&uv);
 *   mock_json(mock, "POST", "/api/v1/x", 200, "{\"a\":1}");     always
 *   mock_json_once(mock, "POST", "/api/v1/x", 429, "{}");       first
 *   mock_on(mock, "POST", "/api/v1/y", handler, user);          by code
 *   ...
 *   mock_wait(mock, 2);               until two requests have come
 *   CHECK_STR(mock_request(mock, 0)->target, "/api/v1/x");
 *   mock_close(mock);                 the loop must run once more
 *
 * A handler answers with one of the mock_reply functions, at once or later: a
 * request that is not answered is held. What nobody answers gets a 404.
 *
 * The server's handles do not keep uv_run() going; its waits do.
 */
typedef struct mock_server mock_server_t;
typedef struct mock_conn mock_conn_t;
typedef struct mock_stream mock_stream_t;

/* A request; valid until mock_close(). */
typedef struct mock_request {
  const char *method;
  const char *target; /* with the query */
  const char *path;   /* without it */
  const uint8_t *body;
  size_t body_len;
  size_t connection; /* the number of its connection, from 0 */
  int32_t stream_id; /* on HTTP/2; else 0 */
  int is_complete;   /* 0: only the head has come; see mock_on_head() */
  int is_answered;
  int is_gone; /* its connection or stream ended before the answer did */
  mock_server_t *server;
  /* Private. */
  mock_conn_t *conn;
  mock_stream_t *stream; /* of HTTP/2, or NULL */
  char *text;
  size_t *headers;
  size_t n_headers;
} mock_request_t;

typedef void (*mock_handler_t)(mock_request_t *request, void *user);

/* Whether tests run over HTTP/2: TNK_TEST_HTTP=2 in the environment. */
int mock_over_http2(void);
/* End the case as skipped when they do: it is about HTTP/1.1 alone. */
void mock_only_http1(const char *why);

mock_server_t *mock_open(uv_loop_t *uv);
/* Close all; the memory frees itself in the next turns of the loop. */
void mock_close(mock_server_t *server);
uint16_t mock_port(const mock_server_t *server);
/* "http://127.0.0.1:PORT" */
const char *mock_url(const mock_server_t *server);

/* Who answers. NULL stands for any method or any path. The `once` forms come
 * first, in the order they were given, then the latest of the others. */
void mock_on(mock_server_t *server, const char *method, const char *path,
             mock_handler_t handler, void *user);
void mock_once(mock_server_t *server, const char *method, const char *path,
               mock_handler_t handler, void *user);
void mock_json(mock_server_t *server, const char *method, const char *path,
               int status, const char *json);
void mock_json_once(mock_server_t *server, const char *method, const char *path,
                    int status, const char *json);
/* Ready-made handlers; `user` is not used. */
void mock_hold(mock_request_t *request, void *user); /* no answer yet */
/* Called by a handler that does not want the request: the next rule that
 * matches gets it. */
void mock_pass(mock_request_t *request);
/* End the request alone: close its connection in order, or on HTTP/2 reset its
 * stream with INTERNAL_ERROR. */
void mock_cut(mock_request_t *request, void *user);
/* End its connection as a crash does, with all that is on it. */
void mock_reset(mock_request_t *request, void *user);

/* Answers. `headers` is lines that end with \r\n, or NULL. A Content-Length is
 * added unless `headers` frames the body; "Connection: close" there is obeyed,
 * on HTTP/2 by a GOAWAY. All do nothing when the request is gone or answered.
 */
void mock_reply(mock_request_t *request, int status, const char *headers,
                const void *body, size_t body_len);
void mock_reply_json(mock_request_t *request, int status, const char *json);
/* The same after a time on the clock of mock_set_clock(). */
void mock_reply_json_after(mock_request_t *request, uint64_t delay_ms,
                           int status, const char *json);
/* Only the first n bytes of the answer, head included, then the end as of
 * mock_cut(). On HTTP/2 n counts as if it were HTTP/1.1. */
void mock_reply_cut(mock_request_t *request, int status, const char *headers,
                    const void *body, size_t body_len, size_t n);
/* An answer in steps: heads of the class 1xx, if any; the head, with `headers`
 * alone; pieces of the body; and mock_end(), which says that it was all, and
 * may close the connection then. */
void mock_inform(mock_request_t *request, int status, const char *headers);
void mock_begin(mock_request_t *request, int status, const char *headers);
void mock_piece(mock_request_t *request, const void *data, size_t n);
void mock_end(mock_request_t *request, int close);
/* It ends here, as of mock_cut(), behind what has been said of it. */
void mock_break(mock_request_t *request);
/* An answer that is none: no HTTP, or on HTTP/2 a head without a status. */
void mock_nonsense(mock_request_t *request);
/* Bytes as they are, instead of head and pieces; HTTP/1.1 only. */
void mock_raw(mock_request_t *request, const void *data, size_t n);
/* Answer all that are held, in order of their coming; returns how many. */
size_t mock_release(mock_server_t *server, int status, const char *json);

/* What came. */
size_t mock_n_requests(const mock_server_t *server);
mock_request_t *mock_request(const mock_server_t *server, size_t i);
/* The requests with that method and path (NULL: any): how many, and the i-th
 * of them or NULL. */
size_t mock_count(const mock_server_t *server, const char *method,
                  const char *path);
mock_request_t *mock_find(const mock_server_t *server, const char *method,
                          const char *path, size_t i);
size_t mock_n_held(const mock_server_t *server);
/* The value of a header by its name in any case, or NULL; of repeats the
 * first. */
const char *mock_header(const mock_request_t *request, const char *name);
/* Connections accepted so far, and open now. */
size_t mock_n_connections(const mock_server_t *server);
size_t mock_n_open(const mock_server_t *server);
/* Bytes read and written so far, on all connections. */
size_t mock_n_bytes(const mock_server_t *server);
/* 1 while the system has not taken all that was written. */
int mock_is_writing(const mock_server_t *server);

/* Run the loop until so many requests have come in all. */
void mock_wait(mock_server_t *server, size_t n_requests);
/* Run the loop until *flag is at least n. */
void mock_wait_flag(mock_server_t *server, const int *flag, int n);
/* Run the loop until so many connections are open. */
void mock_wait_open(mock_server_t *server, size_t n_open);
/* Turn the loop n times without waiting. */
void mock_turns(mock_server_t *server, int n);

/* Manners. */
void mock_set_clock(mock_server_t *server, struct tnk__context *loop);
/* Every answer goes out byte by byte. */
void mock_set_drip(mock_server_t *server, int drip);
/* A client that was lied to may send a request before we know that the one
 * before is over: with this its connection is reset, and the test does not
 * fail. */
void mock_set_lenient(mock_server_t *server, int lenient);
/* Lines that are added to the head of every answer; NULL: none. Not copied. */
void mock_set_headers(mock_server_t *server, const char *lines);
/* 0: stop reading from all connections, so that requests get stuck. */
void mock_set_reading(mock_server_t *server, int reading);
/* Called when a head is in, before the body; the handlers come afterwards
 * unless it answers. */
void mock_on_head(mock_server_t *server, mock_handler_t handler, void *user);
/* Close the connections that have no request on them: in order, or as a
 * crash does. */
void mock_close_idle(mock_server_t *server, int reset);
/* Close all connections, whatever is on them. */
void mock_close_all(mock_server_t *server, int reset);
/* Write to the connections that have no request on them. */
void mock_write_idle(mock_server_t *server, const char *text);
/* Accept no further connections; they are refused. */
void mock_stop_listening(mock_server_t *server);
/* The same port is there again. */
void mock_listen_again(mock_server_t *server);

#endif
