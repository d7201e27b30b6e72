/*
 * tnk inside a libuv program: an HTTP server that completes the body of each
 * POST by sampling. Any number of clients wait at the same time, on one
 * thread, and one that hangs up cancels its sample.
 *
 *   sample_server [PORT]
 *   curl --data 'The ' http://127.0.0.1:8080/
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tnk/tnk.h>
#include <uv.h>

#include "local_server.h"

enum { MAX_REQUEST = 8192, MAX_PROMPT = 2048, ANSWER_TOKENS = 64 };

static tnk_service_t *service;
static tnk_sampling_t *sampler;

/* One connection, for one request. It is freed when its handle has closed,
 * which is never before its sample has settled. */
typedef struct {
  uv_tcp_t tcp;
  uv_write_t write;
  tnk_promise_t *sample; /* NULL unless one is under way. */
  size_t n_read;
  char request[MAX_REQUEST + 1];
  char answer[256 + ANSWER_TOKENS];
} client_t;

static void on_closed(uv_handle_t *handle) {
  free(handle->data);
}

static void close_client(client_t *client) {
  uv_handle_t *handle = (uv_handle_t *)&client->tcp;

  if (client->sample != NULL)
    tnk_promise_cancel(client->sample); /* on_sample() goes on from here. */
  else if (!uv_is_closing(handle))
    uv_close(handle, on_closed);
}

static void on_written(uv_write_t *write, int status) {
  (void)status;
  close_client(write->data);
}

static void answer(client_t *client, const char *status, const char *text,
                   size_t n) {
  const int length =
      snprintf(client->answer, sizeof(client->answer),
               "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: close\r\n"
               "Content-Type: text/plain\r\n\r\n%.*s",
               status, n, (int)n, text);
  const uv_buf_t buf = uv_buf_init(client->answer, (unsigned)length);

  client->write.data = client;
  if (uv_write(&client->write, (uv_stream_t *)&client->tcp, &buf, 1,
               on_written) != 0)
    close_client(client);
}

static void on_sample(tnk_promise_t *promise, int status, void *user) {
  client_t *client = user;
  char text[ANSWER_TOKENS + 1];
  const int32_t *tokens;
  size_t n = 0;

  tnk_promise_unref(client->sample);
  client->sample = NULL;
  if (status != TNK_OK) {
    const char *why = tnk_promise_text(promise);
    n = strlen(why);
    answer(client, "502 Bad Gateway", why, n < 128 ? n : 128);
    return;
  }
  tokens = tnk_samples_tokens(tnk_promise_samples(promise), 0, &n);
  n = n < ANSWER_TOKENS ? n : ANSWER_TOKENS;
  for (size_t i = 0; i < n; i++)
    text[i] = (char)(tokens[i] >= ' ' && tokens[i] < 127 ? tokens[i] : '.');
  answer(client, "200 OK", text, n);
}

static void start_sample(client_t *client, const char *body, size_t n) {
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  int32_t tokens[MAX_PROMPT];
  tnk_chunk_t chunk;

  for (size_t i = 0; i < n; i++)
    tokens[i] = (unsigned char)body[i];
  chunk = tnk_chunk_text(tokens, n);
  params.present = TNK_HAS_MAX_TOKENS;
  params.max_tokens = ANSWER_TOKENS;
  client->sample = tnk_sampling_sample(sampler, &(tnk_model_input_t){&chunk, 1},
                                       &params, NULL);
  tnk_then(tnk_promise_ref(client->sample), on_sample, client);
}

/* A real server would use an HTTP parser: this one knows Content-Length. */
static void look_at_request(client_t *client) {
  const char *end = strstr(client->request, "\r\n\r\n");
  const char *field;
  size_t have;
  unsigned long want = 0;

  if (end == NULL)
    return;
  have = client->n_read - (size_t)(end + 4 - client->request);
  for (field = client->request; field < end; field = strchr(field, '\n') + 1)
    if (strncmp(field, "Content-Length:", 15) == 0)
      want = strtoul(field + 15, NULL, 10);
  if (strncmp(client->request, "POST ", 5) != 0 || want < 1 ||
      want > MAX_PROMPT)
    answer(client, "400 Bad Request", "POST a prompt\n", 14);
  else if (have >= want)
    start_sample(client, end + 4, want);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
  client_t *client = handle->data;

  (void)suggested;
  *buf = uv_buf_init(client->request + client->n_read,
                     (unsigned)(MAX_REQUEST - client->n_read));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  client_t *client = stream->data;

  (void)buf;
  if (n < 0) {
    uv_read_stop(stream);
    close_client(client);
    return;
  }
  client->n_read += (size_t)n;
  client->request[client->n_read] = '\0';
  if (client->sample == NULL && client->write.data == NULL)
    look_at_request(client);
}

static void on_connection(uv_stream_t *server, int status) {
  client_t *client = status == 0 ? calloc(1, sizeof(*client)) : NULL;

  if (client == NULL)
    return;
  uv_tcp_init(server->loop, &client->tcp);
  client->tcp.data = client;
  if (uv_accept(server, (uv_stream_t *)&client->tcp) != 0 ||
      uv_read_start((uv_stream_t *)&client->tcp, on_alloc, on_read) != 0)
    close_client(client);
}

static int listen_on(uv_tcp_t *server, int port) {
  struct sockaddr_in at;
  int length = sizeof(at);
  int err = uv_ip4_addr("127.0.0.1", port, &at);

  if (err == 0)
    err = uv_tcp_bind(server, (const struct sockaddr *)&at, 0);
  if (err == 0)
    err = uv_listen((uv_stream_t *)server, 128, on_connection);
  if (err == 0) /* Port 0 asks for any that is free. */
    err = uv_tcp_getsockname(server, (struct sockaddr *)&at, &length);
  if (err != 0)
    fprintf(stderr, "sample_server: port %d: %s\n", port, uv_strerror(err));
  else
    printf("listening on http://127.0.0.1:%d\n", ntohs(at.sin_port));
  fflush(stdout);
  return err;
}

/* Ctrl-C: nothing new, and what runs is called off. Clients that have asked
 * nothing yet are waited for; a second Ctrl-C does not. */
static void on_signal(uv_signal_t *signal, int number) {
  uv_tcp_t *server = signal->data;

  (void)number;
  uv_close((uv_handle_t *)server, NULL);
  uv_close((uv_handle_t *)signal, NULL);
  tnk_service_close(service, NULL, NULL);
}

int main(int argc, char **argv) {
  const int port = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 8080;
  tnk_sampler_options_t options = TNK_SAMPLER_OPTIONS_INIT;
  uv_loop_t *loop = uv_default_loop();
  static uv_tcp_t server;
  static uv_signal_t signal;
  tnk_promise_t *made;
  char why[256];

  if (local_server_unless_set() != 0)
    return 1;
  if (tnk_service_open(&service, loop, NULL, why, sizeof(why)) != TNK_OK) {
    fprintf(stderr, "sample_server: %s\n", why);
    return 1;
  }
  options.base_model = "tnk/byte-lm";
  made = tnk_service_create_sampling(service, &options);
  if (tnk_wait(made) != TNK_OK) {
    fprintf(stderr, "sample_server: %s\n", tnk_promise_text(made));
    return 1;
  }
  sampler = tnk_promise_sampling(made);
  tnk_promise_unref(made);
  uv_tcp_init(loop, &server);
  if (listen_on(&server, port) != 0)
    return 1;
  uv_signal_init(loop, &signal);
  signal.data = &server;
  uv_signal_start(&signal, on_signal, SIGINT);
  return uv_run(loop, UV_RUN_DEFAULT);
}
