/* SPDX-License-Identifier: MIT */
#include "client.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "support/test.h"

void rig_open(rig_t *rig, const local_options_t *options) {
  memset(rig, 0, sizeof(*rig));
  CHECK_INT(uv_loop_init(&rig->loop), 0);
  CHECK_INT(local_server_open(&rig->server, &rig->loop, options), 0);
  CHECK(local_server_port(rig->server) != 0);
}

void rig_open_tls(rig_t *rig, local_options_t options, tls_kit_t *tls) {
  options.tls_cert = tls->cert;
  options.tls_key = tls->key;
  rig_open(rig, &options);
  rig->tls = tls;
}

void rig_close(rig_t *rig) {
  local_server_close(rig->server, NULL, NULL);
  uv_run(&rig->loop, UV_RUN_DEFAULT);
  CHECK_INT(uv_loop_close(&rig->loop), 0);
}

/* ---- One exchange ---- */

static int on_begin(llhttp_t *parser) {
  exchange_t *x = parser->data;

  x->n_body = 0;
  x->type[0] = '\0';
  return 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t n) {
  exchange_t *x = parser->data;
  size_t len = strlen(x->type);

  /* Content-Type is the first header, so its value ends at the first ';' of
   * ours; the others follow and are cut off by the room. */
  if (len + n < sizeof(x->type) && len == 0)
    memcpy(x->type, at, n);
  return 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t n) {
  exchange_t *x = parser->data;

  x->body = realloc(x->body, x->n_body + n + 1);
  CHECK(x->body != NULL);
  memcpy(x->body + x->n_body, at, n);
  x->n_body += n;
  x->body[x->n_body] = '\0';
  return 0;
}

static int on_complete(llhttp_t *parser) {
  exchange_t *x = parser->data;

  x->status = llhttp_get_status_code(parser);
  json_decref(x->json);
  x->json = NULL;
  if (x->n_body > 0)
    x->json = json_loadb(x->body, x->n_body, JSON_DECODE_ANY, NULL);
  if (x->status != 100)
    x->n_done++;
  return 0;
}

static void on_gone(uv_handle_t *handle) {
  exchange_t *x = handle->data;

  x->gone = 1;
}

static void hang_up(exchange_t *x) {
  if (!uv_is_closing((uv_handle_t *)&x->tcp))
    uv_close((uv_handle_t *)&x->tcp, on_gone);
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf) {
  static char scratch[65536];

  (void)handle;
  (void)hint;
  *buf = uv_buf_init(scratch, sizeof(scratch));
}

static void on_plain(void *user, const char *data, size_t n) {
  exchange_t *x = user;

  if (x->on_bytes != NULL) {
    x->on_bytes(x, data, n);
    return;
  }
  if (x->is_raw) {
    x->raw = realloc(x->raw, x->n_raw + n + 1);
    CHECK(x->raw != NULL);
    memcpy(x->raw + x->n_raw, data, n);
    x->n_raw += n;
    x->raw[x->n_raw] = '\0';
    return;
  }
  CHECK_INT(llhttp_execute(&x->parser, data, n), HPE_OK);
}

typedef struct {
  uv_write_t write;
  char bytes[];
} more_t;

static void on_more(uv_write_t *write, int status) {
  (void)status;
  free(write);
}

static void send_bytes(exchange_t *x, const void *bytes, size_t n) {
  more_t *more = malloc(sizeof(*more) + n);
  uv_buf_t buf;

  CHECK(more != NULL);
  memcpy(more->bytes, bytes, n);
  buf = uv_buf_init(more->bytes, (unsigned)n);
  CHECK_INT(uv_write(&more->write, (uv_stream_t *)&x->tcp, &buf, 1, on_more),
            0);
}

static void send_sealed(exchange_t *x) {
  if (x->tls->n_out > 0)
    send_bytes(x, x->tls->out, x->tls->n_out);
  x->tls->n_out = 0;
}

/* The request waits for the end of the handshake. */
static void feed_tls(exchange_t *x, const char *data, size_t n) {
  int was_open = x->tls->is_open;

  tls_peer_feed(x->tls, data, n, on_plain, x);
  if (!was_open && x->tls->is_open && x->n_out > 0)
    tls_peer_write(x->tls, x->out, x->n_out);
  if (uv_is_closing((uv_handle_t *)&x->tcp))
    return;
  send_sealed(x);
  if (x->tls->error != 0) {
    x->closed = 1;
    hang_up(x);
  }
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  exchange_t *x = stream->data;

  if (n < 0) {
    llhttp_finish(&x->parser);
    x->closed = 1;
    x->reset = n == UV_ECONNRESET;
    hang_up(x);
    return;
  }
  if (x->tls != NULL)
    feed_tls(x, buf->base, (size_t)n);
  else
    on_plain(x, buf->base, (size_t)n);
}

static void start_reading(exchange_t *x) {
  CHECK_INT(uv_read_start((uv_stream_t *)&x->tcp, on_alloc, on_read), 0);
}

static void on_written(uv_write_t *write, int status) {
  exchange_t *x = tnk__container_of(write, exchange_t, write);

  /* A server that hangs up early is seen by the reader. */
  if (!x->sends_first)
    return;
  if (status == 0) {
    start_reading(x);
    return;
  }
  x->closed = x->reset = 1;
  hang_up(x);
}

static void on_connected(uv_connect_t *connect, int status) {
  exchange_t *x = connect->data;
  uv_buf_t buf = uv_buf_init(x->out, (unsigned)x->n_out);

  if (status == UV_ECONNRESET && (x->is_raw || x->tls != NULL)) {
    x->closed = x->reset = 1;
    hang_up(x);
    return;
  }
  CHECK_INT(status, 0);
  if (!x->sends_first)
    start_reading(x);
  if (x->tls != NULL)
    feed_tls(x, NULL, 0);
  else if (x->n_out > 0)
    CHECK_INT(uv_write(&x->write, (uv_stream_t *)&x->tcp, &buf, 1, on_written),
              0);
}

exchange_t *rig_raw(rig_t *rig, const void *bytes, size_t n) {
  exchange_t *x = calloc(1, sizeof(*x));
  struct sockaddr_in addr;

  CHECK(x != NULL);
  x->rig = rig;
  x->out = malloc(n + 1);
  CHECK(x->out != NULL);
  memcpy(x->out, bytes, n);
  x->n_out = n;
  llhttp_settings_init(&x->settings);
  x->settings.on_message_begin = on_begin;
  x->settings.on_header_value = on_value;
  x->settings.on_body = on_body;
  x->settings.on_message_complete = on_complete;
  llhttp_init(&x->parser, HTTP_RESPONSE, &x->settings);
  x->parser.data = x;
  if (rig->tls != NULL)
    x->tls = tls_peer_new(rig->tls);
  CHECK_INT(uv_tcp_init(&rig->loop, &x->tcp), 0);
  x->tcp.data = x;
  x->connect.data = x;
  CHECK_INT(uv_ip4_addr("127.0.0.1", local_server_port(rig->server), &addr), 0);
  CHECK_INT(uv_tcp_connect(&x->connect, &x->tcp, (struct sockaddr *)&addr,
                           on_connected),
            0);
  return x;
}

exchange_t *rig_send(rig_t *rig, const char *method, const char *path,
                     const char *headers, const void *body, size_t n) {
  size_t size = n + strlen(path) + 512 + (headers ? strlen(headers) : 0);
  char *out = malloc(size);
  int len;
  exchange_t *x;

  CHECK(out != NULL);
  len = snprintf(out, size,
                 "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n%s\r\n",
                 method, path, n, headers != NULL ? headers : "");
  CHECK(len > 0 && (size_t)len + n < size);
  if (n > 0)
    memcpy(out + len, body, n);
  x = rig_raw(rig, out, (size_t)len + n);
  free(out);
  return x;
}

void rig_more(exchange_t *x, const void *bytes, size_t n) {
  if (x->tls == NULL) {
    send_bytes(x, bytes, n);
    return;
  }
  tls_peer_write(x->tls, bytes, n);
  send_sealed(x);
}

void rig_wait(exchange_t *x, size_t n) {
  while (x->n_done < n && !x->closed)
    uv_run(&x->rig->loop, UV_RUN_ONCE);
}

void rig_free(exchange_t *x) {
  hang_up(x);
  while (!x->gone)
    uv_run(&x->rig->loop, UV_RUN_ONCE);
  json_decref(x->json);
  tls_peer_free(x->tls);
  free(x->body);
  free(x->raw);
  free(x->out);
  free(x);
}

int rig_status(exchange_t *x) {
  int status;

  rig_wait(x, 1);
  status = x->status;
  rig_free(x);
  return status;
}

static void on_tick(uv_timer_t *timer) {
  (void)timer;
}

void rig_until(rig_t *rig, int (*is)(const local_counts_t *counts)) {
  uv_timer_t tick; /* so that the loop turns though nothing happens */
  local_counts_t counts = local_server_counts(rig->server);

  CHECK_INT(uv_timer_init(&rig->loop, &tick), 0);
  CHECK_INT(uv_timer_start(&tick, on_tick, 1, 1), 0);
  while (!is(&counts)) {
    uv_run(&rig->loop, UV_RUN_ONCE);
    counts = local_server_counts(rig->server);
  }
  uv_close((uv_handle_t *)&tick, NULL);
  uv_run(&rig->loop, UV_RUN_NOWAIT);
}

/* ---- Calls ---- */

exchange_t *rig_get(rig_t *rig, const char *path) {
  char full[512];
  exchange_t *x;

  snprintf(full, sizeof(full), "/api/v1/%s", path);
  x = rig_send(rig, "GET", full, NULL, NULL, 0);
  rig_wait(x, 1);
  return x;
}

static exchange_t *start(rig_t *rig, const char *path, const char *format,
                         va_list args) {
  static char body[1 << 20];
  char full[512];
  int n = vsnprintf(body, sizeof(body), format, args);

  CHECK(n >= 0 && (size_t)n < sizeof(body));
  snprintf(full, sizeof(full), "/api/v1/%s", path);
  return rig_send(rig, "POST", full, "Content-Type: application/json\r\n", body,
                  (size_t)n);
}

exchange_t *rig_start(rig_t *rig, const char *path, const char *format, ...) {
  va_list args;
  exchange_t *x;

  va_start(args, format);
  x = start(rig, path, format, args);
  va_end(args);
  return x;
}

exchange_t *rig_post(rig_t *rig, const char *path, const char *format, ...) {
  va_list args;
  exchange_t *x;

  va_start(args, format);
  x = start(rig, path, format, args);
  va_end(args);
  rig_wait(x, 1);
  return x;
}

const char *rig_text(const exchange_t *x, const char *key) {
  const char *text = json_string_value(json_object_get(x->json, key));

  return text != NULL ? text : "";
}

void rig_id(exchange_t *x, char out[96]) {
  rig_wait(x, 1);
  if (x->status / 100 != 2)
    test_fail(__FILE__, __LINE__, "status %d: %s", x->status,
              x->body != NULL ? x->body : "");
  snprintf(out, 96, "%s", rig_text(x, "request_id"));
  CHECK(out[0] != '\0');
  rig_free(x);
}

exchange_t *rig_result(rig_t *rig, const char *id) {
  for (;;) {
    exchange_t *x =
        rig_post(rig, "retrieve_future", "{\"request_id\":\"%s\"}", id);

    if (x->status != 408 && strcmp(rig_text(x, "type"), "try_again") != 0)
      return x;
    rig_free(x);
  }
}

exchange_t *rig_done(rig_t *rig, exchange_t *post) {
  char id[96];

  rig_id(post, id);
  return rig_result(rig, id);
}

/* ---- What most tests need ---- */

void rig_session(rig_t *rig, char out[96]) {
  exchange_t *x = rig_post(rig, "create_session",
                           "{\"tags\":[],\"user_metadata\":{\"k\":\"v\"},"
                           "\"sdk_version\":\"0.38.0\","
                           "\"type\":\"create_session\"}");

  CHECK_INT(x->status / 100, 2);
  snprintf(out, 96, "%s", rig_text(x, "session_id"));
  rig_free(x);
}

void rig_model(rig_t *rig, const char *session, char out[96]) {
  exchange_t *x = rig_done(
      rig, rig_start(rig, "create_model",
                     "{\"session_id\":\"%s\",\"base_model\":\"tnk/byte-lm\","
                     "\"lora_config\":{\"rank\":4,\"seed\":1},"
                     "\"type\":\"create_model\"}",
                     session));

  CHECK_INT(x->status, 200);
  snprintf(out, 96, "%s", rig_text(x, "model_id"));
  CHECK(out[0] != '\0');
  rig_free(x);
}

static size_t numbers(char *out, size_t size, const char *text, size_t n) {
  size_t len = 0;

  for (size_t i = 0; i < n; i++)
    len += (size_t)snprintf(out + len, size - len, "%s%d", i > 0 ? "," : "",
                            (unsigned char)text[i]);
  return len;
}

exchange_t *rig_pass(rig_t *rig, const char *model, int seq, const char *text) {
  char tokens[2048] = "";
  char targets[2048] = "";
  size_t n = strlen(text);

  numbers(tokens, sizeof(tokens), text, n - 1);
  numbers(targets, sizeof(targets), text + 1, n - 1);
  return rig_start(rig, "forward_backward",
                   "{\"model_id\":\"%s\",\"seq_id\":%d,"
                   "\"forward_backward_input\":{\"loss_fn\":\"cross_entropy\","
                   "\"data\":[{\"model_input\":{\"chunks\":[{\"type\":"
                   "\"encoded_text\",\"tokens\":[%s]}]},\"loss_fn_inputs\":{"
                   "\"target_tokens\":{\"data\":[%s],\"dtype\":\"int64\"}}}]}}",
                   model, seq, tokens, targets);
}

exchange_t *rig_step(rig_t *rig, const char *model, int seq, double rate) {
  return rig_start(rig, "optim_step",
                   "{\"model_id\":\"%s\",\"seq_id\":%d,\"type\":\"optim_step\","
                   "\"adam_params\":{\"learning_rate\":%.17g}}",
                   model, seq, rate);
}

void rig_sampler(rig_t *rig, const char *session, char out[96]) {
  exchange_t *x =
      rig_post(rig, "create_sampling_session",
               "{\"session_id\":\"%s\",\"sampling_session_seq_id\":0,"
               "\"base_model\":\"tnk/byte-lm\"}",
               session);

  CHECK_INT(x->status, 200);
  snprintf(out, 96, "%s", rig_text(x, "sampling_session_id"));
  rig_free(x);
}

double rig_loss(const exchange_t *result) {
  json_t *loss =
      json_object_get(json_object_get(result->json, "metrics"), "loss:sum");

  if (result->status != 200 || !json_is_number(loss))
    test_fail(__FILE__, __LINE__, "status %d: %s", result->status,
              result->body != NULL ? result->body : "");
  return json_number_value(loss);
}
