/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/base/alloc.h"
#include "support/mock_internal.h"
#include "support/test.h"

/* What a request is answered, on either version. */

char *mock__copy(const char *text) {
  size_t n;
  char *copy;

  if (text == NULL)
    return NULL;
  n = strlen(text) + 1;
  copy = malloc(n);
  CHECK(copy != NULL);
  memcpy(copy, text, n);
  return copy;
}

typedef struct delayed {
  tnk__list_t link;
  tnk__timer_t timer;
  mock_request_t *request;
  int status;
  char *json;
} delayed_t;

static mock_conn_t *answerable(mock_request_t *request) {
  if (request->is_answered || request->is_gone)
    return NULL;
  return request->conn;
}

void mock_raw(mock_request_t *request, const void *data, size_t n) {
  mock_conn_t *conn = answerable(request);

  if (conn == NULL)
    return;
  /* They would be no frames. */
  CHECK(request->stream == NULL);
  mock__add(&conn->queue, data, n);
  mock__flush(conn);
}

void mock_nonsense(mock_request_t *request) {
  if (answerable(request) == NULL)
    return;
  if (request->stream != NULL) {
    mock__http2_nonsense(request->stream);
    return;
  }
  mock_raw(request, "no HTTP at all\r\n\r\n", 18);
  mock_end(request, 1);
}

void mock_end(mock_request_t *request, int close) {
  mock_conn_t *conn = answerable(request);

  if (conn == NULL)
    return;
  request->is_answered = 1;
  if (request->stream != NULL) {
    mock__http2_end(request->stream);
    if (close)
      mock__http2_finish(conn);
  } else {
    conn->ends = 1;
    conn->close_after |= close;
  }
  mock__flush(conn);
}

void mock_break(mock_request_t *request) {
  mock_conn_t *conn = answerable(request);

  if (conn == NULL)
    return;
  if (request->stream == NULL) {
    mock_end(request, 1);
    return;
  }
  request->is_answered = 1;
  mock__http2_cut(request->stream);
  mock__flush(conn);
}

static int has(const char *headers, const char *name) {
  for (const char *p = headers; *p != '\0'; p++)
    if ((p == headers || p[-1] == '\n') &&
        strncasecmp(p, name, strlen(name)) == 0)
      return 1;
  return 0;
}

/* The head of HTTP/1.1. */
static void build_head(mock_text_t *out, int status, const char *headers) {
  char line[64];
  int n = snprintf(line, sizeof(line), "HTTP/1.1 %d Status\r\n", status);

  mock__add(out, line, (size_t)n);
  mock__add(out, headers, strlen(headers));
  mock__add(out, "\r\n", 2);
}

/* The headers, with a Content-Length if nothing else frames the body. */
static void frame(mock_text_t *out, const mock_request_t *request,
                  const char *headers, size_t body_len) {
  const char *more = request->server->headers;
  char line[64];
  int n;

  if (more != NULL)
    mock__add(out, more, strlen(more));
  mock__add(out, headers, headers != NULL ? strlen(headers) : 0);
  if (headers == NULL || (!has(headers, "content-length:") &&
                          !has(headers, "transfer-encoding:"))) {
    n = snprintf(line, sizeof(line), "Content-Length: %zu\r\n", body_len);
    mock__add(out, line, (size_t)n);
  }
}

void mock_begin(mock_request_t *request, int status, const char *headers) {
  mock_text_t head = {NULL, 0, 0};
  mock_conn_t *conn = answerable(request);

  if (conn == NULL)
    return;
  if (headers == NULL)
    headers = "";
  if (request->stream != NULL) {
    mock__http2_begin(request->stream, status, headers, 0);
    mock__flush(conn);
    return;
  }
  build_head(&head, status, headers);
  mock_raw(request, head.data, head.len);
  free(head.data);
}

void mock_piece(mock_request_t *request, const void *data, size_t n) {
  mock_conn_t *conn = answerable(request);

  if (conn == NULL)
    return;
  if (request->stream == NULL) {
    mock_raw(request, data, n);
    return;
  }
  mock__http2_piece(request->stream, data, n);
  mock__flush(conn);
}

void mock_inform(mock_request_t *request, int status, const char *headers) {
  mock_conn_t *conn = answerable(request);

  if (conn == NULL)
    return;
  if (request->stream == NULL) {
    mock_begin(request, status, headers);
    return;
  }
  mock__http2_inform(request->stream, status, headers);
  mock__flush(conn);
}

void mock_reply(mock_request_t *request, int status, const char *headers,
                const void *body, size_t body_len) {
  mock_reply_cut(request, status, headers, body, body_len, SIZE_MAX);
}

/* On HTTP/2: as much of the body as would be in n bytes of HTTP/1.1. */
static void reply_on_stream(mock_stream_t *stream, int status,
                            const char *headers, const void *body,
                            size_t body_len, size_t n) {
  mock_text_t head = {NULL, 0, 0};
  size_t n_head;

  build_head(&head, status, headers);
  n_head = head.len;
  free(head.data);
  if (n < n_head) {
    mock__http2_cut(stream);
    return;
  }
  n = n - n_head < body_len ? n - n_head : body_len;
  mock__http2_begin(stream, status, headers, body_len == 0);
  if (body_len > 0)
    mock__http2_piece(stream, body, n);
  if (n < body_len)
    mock__http2_cut(stream);
  else
    mock__http2_end(stream);
}

static void reply_on_conn(mock_request_t *request, int status,
                          const char *headers, const void *body,
                          size_t body_len, size_t n) {
  mock_text_t out = {NULL, 0, 0};

  build_head(&out, status, headers);
  mock__add(&out, body, body_len);
  if (n == SIZE_MAX)
    n = out.len;
  CHECK(n <= out.len);
  mock_raw(request, out.data, n);
  free(out.data);
}

void mock_reply_cut(mock_request_t *request, int status, const char *headers,
                    const void *body, size_t body_len, size_t n) {
  const int closes = headers != NULL && has(headers, "connection: close");
  mock_text_t framed = {NULL, 0, 0};
  mock_conn_t *conn = answerable(request);

  if (conn == NULL)
    return;
  frame(&framed, request, headers, body_len);
  if (request->stream != NULL) {
    request->is_answered = 1;
    if (closes)
      mock__http2_finish(conn);
    reply_on_stream(request->stream, status, framed.data, body, body_len, n);
    mock__flush(conn);
  } else {
    conn->close_after |= closes || n != SIZE_MAX;
    reply_on_conn(request, status, framed.data, body, body_len, n);
    mock_end(request, 0);
  }
  free(framed.data);
}

void mock_reply_json(mock_request_t *request, int status, const char *json) {
  mock_reply(request, status, "Content-Type: application/json\r\n", json,
             strlen(json));
}

static void free_delayed(delayed_t *delayed) {
  tnk__timer_stop(&delayed->timer);
  tnk__list_remove(&delayed->link);
  free(delayed->json);
  free(delayed);
}

static void on_delay(tnk__timer_t *timer) {
  delayed_t *delayed = tnk__container_of(timer, delayed_t, timer);

  mock_reply_json(delayed->request, delayed->status, delayed->json);
  free_delayed(delayed);
}

void mock_reply_json_after(mock_request_t *request, uint64_t delay_ms,
                           int status, const char *json) {
  delayed_t *delayed = calloc(1, sizeof(*delayed));

  CHECK(delayed != NULL);
  CHECK(request->server->clock != NULL);
  delayed->request = request;
  delayed->status = status;
  delayed->json = mock__copy(json);
  tnk__list_append(&request->server->delayed, &delayed->link);
  tnk__timer_start_background(request->server->clock, &delayed->timer, delay_ms,
                              on_delay);
}

void mock_hold(mock_request_t *request, void *user) {
  (void)request;
  (void)user;
}

void mock_cut(mock_request_t *request, void *user) {
  mock_conn_t *conn = request->conn;

  (void)user;
  if (conn == NULL)
    return;
  if (request->stream != NULL) {
    mock__http2_cut(request->stream);
    mock__flush(conn);
  } else {
    mock__close_conn(conn, 0);
  }
}

void mock_reset(mock_request_t *request, void *user) {
  (void)user;
  if (request->conn != NULL)
    mock__close_conn(request->conn, 1);
}

void mock__forget_delayed(mock_server_t *server) {
  tnk__list_t *node;

  while ((node = tnk__list_first(&server->delayed)) != NULL)
    free_delayed(tnk__container_of(node, delayed_t, link));
}
