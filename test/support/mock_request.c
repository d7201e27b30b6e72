/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "support/mock_internal.h"
#include "support/test.h"

/*
 * A request as it comes in, of either version: texts are added, the head is
 * told, the body, the end. From its head on the server knows it.
 */

void mock__add(mock_text_t *text, const void *data, size_t n) {
  if (text->len + n + 1 > text->cap) {
    text->cap = 2 * (text->len + n + 1);
    text->data = realloc(text->data, text->cap);
    CHECK(text->data != NULL);
  }
  if (n > 0)
    memcpy(text->data + text->len, data, n);
  text->len += n;
  text->data[text->len] = '\0';
}

void mock__message_begin(mock_message_t *message, mock_conn_t *conn) {
  mock_request_t *request = calloc(1, sizeof(*request));

  CHECK(request != NULL);
  /* A second request before the answer would be pipelining. */
  CHECK(message->request == NULL);
  request->server = conn->server;
  request->conn = conn;
  request->connection = conn->number;
  message->request = request;
  message->text = (mock_text_t){NULL, 0, 0};
  message->n_marks = 0;
  message->target_at = 0;
}

void mock__message_mark(mock_message_t *message) {
  mock__add(&message->text, "", 1);
  CHECK(message->n_marks < sizeof(message->marks) / sizeof(message->marks[0]));
  message->marks[message->n_marks++] = message->text.len;
}

/* Point the request into its text, which may have moved. */
void mock__message_moved(mock_message_t *message) {
  mock_request_t *request = message->request;
  char *text = message->text.data;

  request->text = text;
  request->target = text + message->target_at;
  request->method = text + message->method_at;
  request->path = text + message->path_at;
  request->body =
      (uint8_t *)text + message->path_at + strlen(request->path) + 1;
  request->body_len =
      (size_t)((uint8_t *)text + message->text.len - request->body);
}

/* Copy the path out of the target, behind all else. */
static void add_path(mock_message_t *message) {
  const size_t at = message->target_at;
  size_t n = strcspn(message->text.data + at, "?");
  size_t i = 0;

  /* The host of a whole URL, as a proxy gets it, is no part of the path. */
  if (strncmp(message->text.data + at, "http://", 7) == 0)
    i = 7 + strcspn(message->text.data + at + 7, "/");
  message->path_at = message->text.len;
  for (; i < n; i++) {
    char c = message->text.data[at + i];
    mock__add(&message->text, &c, 1);
  }
  mock__add(&message->text, "", 1);
}

void mock__message_head(mock_message_t *message, const char *method) {
  mock_request_t *request = message->request;
  mock_server_t *server = request->server;
  const size_t size = message->n_marks * sizeof(size_t);

  message->method_at = message->text.len;
  mock__add(&message->text, method, strlen(method) + 1);
  add_path(message);
  request->n_headers = message->n_marks / 2;
  request->headers = malloc(size + 1);
  CHECK(request->headers != NULL);
  memcpy(request->headers, message->marks, size);
  mock__message_moved(message);
  server->requests = realloc(server->requests, (server->n_requests + 1) *
                                                   sizeof(mock_request_t *));
  CHECK(server->requests != NULL);
  server->requests[server->n_requests++] = request;
  if (server->on_head != NULL)
    server->on_head(request, server->on_head_user);
}

void mock__message_complete(mock_message_t *message) {
  mock_request_t *request = message->request;

  mock__message_moved(message);
  request->is_complete = 1;
  /* The request keeps its text. */
  message->text = (mock_text_t){NULL, 0, 0};
  if (!request->is_answered)
    mock__handle(request);
}

void mock__message_part(mock_message_t *message) {
  mock_request_t *request = message->request;

  if (request == NULL)
    return;
  request->conn = NULL;
  request->stream = NULL;
  if (!request->is_complete && request->headers != NULL) {
    request->is_gone = 1;
    mock__message_moved(message);
    message->text = (mock_text_t){NULL, 0, 0};
  } else if (!request->is_complete) {
    /* Not even its head has come: nobody knows it. */
    free(request);
  }
  message->request = NULL;
}

void mock__message_lose(mock_message_t *message) {
  if (message->request != NULL)
    message->request->is_gone = 1;
  mock__message_part(message);
}
