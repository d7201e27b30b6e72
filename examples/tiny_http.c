#include "tiny_http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ANSWER = 512 };

/*
 * One connection: reading; asked, until there is an answer; writing it; closed.
 * Its memory goes with its handle.
 */
typedef struct {
  tiny_http_request_t request; /* first: the two are cast into each other */
  tiny_http_t *http;
  uv_tcp_t tcp;
  uv_write_t write;
  enum { READING, ASKED, ANSWERED } state;
  size_t n_read;
  char text[TINY_HTTP_MAX_REQUEST + 1];
  char answer[MAX_ANSWER + 128];
} client_t;

static void on_closed(uv_handle_t *handle) {
  free(handle->data);
}

static void close_client(client_t *client) {
  if (!uv_is_closing((uv_handle_t *)&client->tcp))
    uv_close((uv_handle_t *)&client->tcp, on_closed);
}

static void on_written(uv_write_t *write, int status) {
  (void)status;
  close_client(write->data);
}

void tiny_http_answer(tiny_http_request_t *request, const char *status,
                      const char *text, size_t n) {
  client_t *client = (client_t *)(void *)request;
  uv_buf_t buf = {.base = client->answer};
  int n_head;

  n = n < MAX_ANSWER ? n : MAX_ANSWER;
  n_head = snprintf(client->answer, sizeof(client->answer),
                    "HTTP/1.1 %s\r\nContent-Length: %zu\r\n"
                    "Connection: close\r\nContent-Type: text/plain\r\n\r\n",
                    status, n);
  memcpy(client->answer + n_head, text, n);
  buf.len = (size_t)n_head + n;
  client->state = ANSWERED;
  client->write.data = client;
  if (uv_write(&client->write, (uv_stream_t *)&client->tcp, &buf, 1,
               on_written) != 0)
    close_client(client);
}

static void refuse(client_t *client) {
  tiny_http_answer(&client->request, "400 Bad Request", "POST a prompt\n", 14);
}

/* Whether the request is whole. This one knows POST and Content-Length. */
static void look_at_request(client_t *client) {
  const char *end = strstr(client->text, "\r\n\r\n");
  const char *field;
  unsigned long want = 0;

  if (end == NULL && client->n_read < TINY_HTTP_MAX_REQUEST)
    return;
  for (field = client->text; end != NULL && field < end;
       field = strchr(field, '\n') + 1)
    if (strncmp(field, "Content-Length:", 15) == 0)
      want = strtoul(field + 15, NULL, 10);
  if (strncmp(client->text, "POST ", 5) != 0 || want < 1 ||
      want > TINY_HTTP_MAX_BODY) {
    refuse(client);
  } else if (client->text + client->n_read >= end + 4 + want) {
    client->state = ASKED;
    client->request.body = end + 4;
    client->request.n_body = want;
    client->http->asked(&client->request);
  }
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
  client_t *client = handle->data;

  (void)suggested;
  *buf = uv_buf_init(client->text + client->n_read,
                     (unsigned)(TINY_HTTP_MAX_REQUEST - client->n_read));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  client_t *client = stream->data;

  (void)buf;
  if (n > 0 && client->state == READING) {
    client->n_read += (size_t)n;
    client->text[client->n_read] = '\0';
    look_at_request(client);
  } else if (n < 0) {
    uv_read_stop(stream);
    if (client->state == READING)
      close_client(client);
    else if (client->state == ASKED && client->request.gone != NULL)
      client->request.gone(&client->request);
  }
}

static void on_connection(uv_stream_t *server, int status) {
  client_t *client = status == 0 ? calloc(1, sizeof(*client)) : NULL;

  if (client == NULL)
    return;
  client->http = server->data;
  client->tcp.data = client;
  uv_tcp_init(server->loop, &client->tcp);
  if (uv_accept(server, (uv_stream_t *)&client->tcp) != 0 ||
      uv_read_start((uv_stream_t *)&client->tcp, on_alloc, on_read) != 0)
    close_client(client);
}

int tiny_http_listen(tiny_http_t *http, uv_loop_t *loop, int port,
                     void (*asked)(tiny_http_request_t *request)) {
  struct sockaddr_in at;
  int length = sizeof(at);
  int err = uv_tcp_init(loop, &http->tcp);

  http->asked = asked;
  http->tcp.data = http;
  if (err == 0)
    err = uv_ip4_addr("127.0.0.1", port, &at);
  if (err == 0)
    err = uv_tcp_bind(&http->tcp, (const struct sockaddr *)&at, 0);
  if (err == 0)
    err = uv_listen((uv_stream_t *)&http->tcp, 128, on_connection);
  if (err == 0)
    err = uv_tcp_getsockname(&http->tcp, (struct sockaddr *)&at, &length);
  return err == 0 ? ntohs(at.sin_port) : err;
}

void tiny_http_close(tiny_http_t *http) {
  uv_close((uv_handle_t *)&http->tcp, NULL);
}
