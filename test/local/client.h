/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_LOCAL_CLIENT_H
#define TNK_TEST_LOCAL_CLIENT_H

#include <jansson.h>
#include <llhttp.h>
#include <uv.h>

#include "tls_peer.h"
#include "tools/local/server.h"

/* A server and a raw HTTP client on one loop, for tests. A check that fails
 * ends the test. */
typedef struct {
  uv_loop_t loop;
  local_server_t *server;
  tls_kit_t *tls; /* NULL: the server has none */
} rig_t;

/* One request on a connection of its own, or on one given. */
typedef struct exchange {
  uv_tcp_t tcp;
  uv_connect_t connect;
  uv_write_t write;
  llhttp_t parser;
  llhttp_settings_t settings;
  rig_t *rig;
  char *out;
  size_t n_out;
  /* The answer; of several the last. */
  int status;
  char type[64];
  char *body;
  size_t n_body;
  json_t *json;  /* NULL when the body is none */
  size_t n_done; /* answers complete */
  int closed;    /* the server hung up */
  int reset;     /* by a reset */
  /* It reads nothing before all is sent, as a simple program does; set before
   * the loop runs. */
  int sends_first;
  /* All that came, NUL-terminated; kept, and not parsed, while is_raw. */
  int is_raw;
  char *raw;
  size_t n_raw;
  /* Gets what comes instead of the parser, if there is one. */
  void (*on_bytes)(struct exchange *x, const char *data, size_t n);
  void *user;
  tls_peer_t *tls; /* NULL: bytes go as they are */
  int gone;        /* libuv has let go */
} exchange_t;

void rig_open(rig_t *rig, const local_options_t *options);
/* With TLS, which then everything here speaks; the options' files are set. */
void rig_open_tls(rig_t *rig, local_options_t options, tls_kit_t *tls);
/* Closes the server too; the loop must have nothing left. */
void rig_close(rig_t *rig);

/* Start; `headers` is NULL or whole lines. */
exchange_t *rig_send(rig_t *rig, const char *method, const char *path,
                     const char *headers, const void *body, size_t n);
exchange_t *rig_raw(rig_t *rig, const void *bytes, size_t n);
/* More bytes on its connection. */
void rig_more(exchange_t *x, const void *bytes, size_t n);
/* Run the loop until it has n answers, or the server has hung up. */
void rig_wait(exchange_t *x, size_t n);
void rig_free(exchange_t *x);
/* The status of its one answer, waited for. Frees it. */
int rig_status(exchange_t *x);
/* Run the loop until it is true of the server's counts. */
void rig_until(rig_t *rig, int (*is)(const local_counts_t *counts));

/* A JSON request to /api/v1 and its answer. Free it. */
exchange_t *rig_get(rig_t *rig, const char *path);
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
exchange_t *
rig_post(rig_t *rig, const char *path, const char *format, ...);
/* The same without waiting. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
exchange_t *
rig_start(rig_t *rig, const char *path, const char *format, ...);
/* Members of the answer. */
const char *rig_text(const exchange_t *x, const char *key);
/* "request_id" of a post that was accepted, into `out`; frees it. */
void rig_id(exchange_t *x, char out[96]);
/* Poll until the result is there. */
exchange_t *rig_result(rig_t *rig, const char *id);
/* Post was accepted, its result is there with this status. Frees it. */
exchange_t *rig_done(rig_t *rig, exchange_t *post);

/* ---- What most tests need ---- */

void rig_session(rig_t *rig, char out[96]);
void rig_model(rig_t *rig, const char *session, char out[96]);
/* A pass over one example in JSON, with the number `seq`; not waited for. */
exchange_t *rig_pass(rig_t *rig, const char *model, int seq, const char *text);
exchange_t *rig_step(rig_t *rig, const char *model, int seq, double rate);
/* A sampler of the base model. */
void rig_sampler(rig_t *rig, const char *session, char out[96]);
double rig_loss(const exchange_t *result);

#endif
