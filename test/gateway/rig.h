/* SPDX-License-Identifier: MIT */
#ifndef TEST_GATEWAY_RIG_H
#define TEST_GATEWAY_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../local/e2e.h"
#include "gateway/state.h"
#include "lib/base/alloc.h"

/* The gateway, the library and the local server on one loop, in real time. */

enum { LONG_MS = 3600000, NEVER = 1 /* no weights are used */ };

typedef struct {
  e2e_t e2e;
  tnk_gateway_t *gateway;
  int n_closed;
} rig_t;

/* A client: sends one request, and keeps what comes. */
typedef struct {
  uv_tcp_t tcp;
  uv_connect_t connect;
  uv_write_t write;
  char request[2048];
  char scratch[4096];
  char got[65536];
  size_t n_got;
  int is_closed; /* by either side */
} peer_t;

static inline void on_peer_closed(uv_handle_t *handle) {
  ((peer_t *)handle->data)->is_closed = 1;
}

static inline void peer_close(peer_t *peer) {
  if (!uv_is_closing((uv_handle_t *)&peer->tcp))
    uv_close((uv_handle_t *)&peer->tcp, on_peer_closed);
}

static inline void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf) {
  peer_t *peer = handle->data;

  (void)hint;
  *buf = uv_buf_init(peer->scratch, sizeof(peer->scratch));
}

static inline void on_read(uv_stream_t *stream, ssize_t n,
                           const uv_buf_t *buf) {
  peer_t *peer = stream->data;

  if (n < 0) {
    peer_close(peer);
    return;
  }
  CHECK(peer->n_got + (size_t)n < sizeof(peer->got));
  memcpy(peer->got + peer->n_got, buf->base, (size_t)n);
  peer->n_got += (size_t)n;
  peer->got[peer->n_got] = '\0';
}

static inline void on_sent(uv_write_t *write, int status) {
  (void)write;
  (void)status;
}

static inline void on_connect(uv_connect_t *connect, int status) {
  peer_t *peer = connect->data;
  uv_buf_t buf = uv_buf_init(peer->request, (unsigned)strlen(peer->request));

  CHECK_INT(status, 0);
  CHECK_INT(uv_read_start((uv_stream_t *)&peer->tcp, on_alloc, on_read), 0);
  CHECK_INT(uv_write(&peer->write, (uv_stream_t *)&peer->tcp, &buf, 1, on_sent),
            0);
}

/* `key` may be NULL. */
static inline peer_t *ask_as(rig_t *rig, const char *key, const char *method,
                             const char *path, const char *body) {
  peer_t *peer = calloc(1, sizeof(*peer));
  const char *colon = strrchr(tnk_gateway_address(rig->gateway), ':');
  struct sockaddr_in to;

  CHECK(peer != NULL);
  snprintf(peer->request, sizeof(peer->request),
           "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
           "%s%s%sContent-Length: %zu\r\n\r\n%s",
           method, path, key != NULL ? "X-Api-Key: " : "",
           key != NULL ? key : "", key != NULL ? "\r\n" : "", strlen(body),
           body);
  CHECK_INT(uv_tcp_init(&rig->e2e.uv, &peer->tcp), 0);
  peer->tcp.data = peer->connect.data = peer;
  uv_ip4_addr("127.0.0.1", (int)strtol(colon + 1, NULL, 10), &to);
  CHECK_INT(uv_tcp_connect(&peer->connect, &peer->tcp, (struct sockaddr *)&to,
                           on_connect),
            0);
  return peer;
}

static inline peer_t *ask_by(rig_t *rig, const char *method, const char *path,
                             const char *body) {
  return ask_as(rig, NULL, method, path, body);
}

static inline peer_t *ask(rig_t *rig, const char *path, const char *body) {
  return ask_by(rig, "POST", path, body);
}

/* Each request is a new one. */
static inline peer_t *chat(rig_t *rig) {
  static int n;
  char body[128];

  snprintf(body, sizeof(body),
           "{\"max_tokens\":3,\"user\":\"%d\",\"messages\":[{\"role\":\"user\","
           "\"content\":\"hi\"}]}",
           n++);
  return ask(rig, "/s/me/v1/chat/completions", body);
}

/* Until it has come so often. */
static inline void until_got(rig_t *rig, const peer_t *peer, const char *text,
                             int n) {
  const char *at;
  int found = 0;

  while (found < n) {
    CHECK(!peer->is_closed);
    uv_run(&rig->e2e.uv, UV_RUN_ONCE);
    for (found = 0, at = peer->got; (at = strstr(at, text)) != NULL; found++)
      at++;
  }
}

static inline void until_closed(rig_t *rig, const peer_t *peer) {
  while (!peer->is_closed)
    uv_run(&rig->e2e.uv, UV_RUN_ONCE);
}

/* Until the connection has ended; the status of the answer, 0 without one. */
static inline int peer_end(rig_t *rig, peer_t *peer) {
  int status = 0;

  until_closed(rig, peer);
  if (strncmp(peer->got, "HTTP/1.1 ", 9) == 0)
    status = (int)strtol(peer->got + 9, NULL, 10);
  free(peer);
  return status;
}

/* ---- Life ---- */

static inline void use(rig_t *rig) {
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;

  options.base_model = "tnk/byte-lm";
  e2e_done(tnk_gateway_use(rig->gateway, &options));
}

/* Requests under way at a time; 0: the default. */
static uint32_t rig_max_requests;
/* The template of a stranger; NULL: the plain one. */
static tnk_chat_template_t *rig_template;
static tnk_chat_family_t rig_family;
/* NULL: no key is needed. */
static const char *rig_admin_key;
static tnk_gateway_formats_t rig_formats;
/* USD per million tokens: of prompts, sampled, cached. */
static double rig_usd[3];

/* `record` may be NULL; 0 stands for defaults. */
static inline void rig_open_with(rig_t *rig, uint64_t latency_ms,
                                 const char *record, uint64_t max_memory,
                                 uint32_t keep_alive_ms) {
  static const local_options_t defaults = LOCAL_OPTIONS_INIT;
  local_options_t local = defaults;
  const tnk_gateway_options_t options = {
      .size = sizeof(options),
      .tokenizer = {tnk_chat_bytes_plugin(), NULL},
      .record = record,
      .max_memory = max_memory,
      .keep_alive_ms = keep_alive_ms,
      .max_requests = rig_max_requests,
      .template_ = rig_template,
      .family = rig_family,
      .admin_key = rig_admin_key,
      .formats = rig_formats,
      .usd_prompt = rig_usd[0],
      .usd_sampled = rig_usd[1],
      .usd_cached = rig_usd[2],
      .allocator = test_allocator()};
  char why[256];

  memset(rig, 0, sizeof(*rig));
  local.latency_ms = (uint32_t)latency_ms;
  e2e_open(&rig->e2e, local);
  if (tnk_gateway_open(&rig->gateway, &rig->e2e.uv, rig->e2e.service, &options,
                       why, sizeof(why)) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", why);
  if (latency_ms != NEVER)
    use(rig);
}

static inline void rig_open(rig_t *rig, uint64_t latency_ms) {
  rig_open_with(rig, latency_ms, NULL, 0, 0);
}

static inline void on_closed(void *user) {
  ((rig_t *)user)->n_closed++;
}

static inline void rig_close(rig_t *rig) {
  tnk_gateway_close(rig->gateway, on_closed, rig);
  while (rig->n_closed == 0)
    uv_run(&rig->e2e.uv, UV_RUN_ONCE);
  CHECK_INT(rig->n_closed, 1);
  e2e_close(&rig->e2e);
}

static inline int n_calls(const rig_t *rig, const char *call) {
  int n = 0;

  for (size_t i = 0; i < rig->e2e.n_seen; i++)
    n += strcmp(rig->e2e.seen[i].call, call) == 0;
  return n;
}

static inline void until_sampled(rig_t *rig, int n) {
  while (n_calls(rig, "asample") < n)
    uv_run(&rig->e2e.uv, UV_RUN_ONCE);
}

#endif
