/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_LOCAL_H2_CLIENT_H
#define TNK_TEST_LOCAL_H2_CLIENT_H

#include <nghttp2/nghttp2.h>

#include "client.h"

/* A raw client of HTTP/2 on the rig's loop, over TLS if the rig has it. */

enum { H2_MAX_STREAMS = 2100 };

typedef struct h2_client h2_client_t;

/* One request and its answer. */
typedef struct {
  h2_client_t *client;
  int32_t id;
  const uint8_t *out; /* the request's body */
  size_t n_out;
  int holds;      /* its end is not sent */
  int n_continue; /* answers 100 */
  int status;
  char head[1024]; /* "name: value\n" ... */
  char *body;
  size_t n_body;
  int is_done;   /* whole */
  int is_closed; /* whole, or reset, or gone with its connection */
  uint32_t code; /* with which it was reset */
  int order;     /* the how manieth to be done */
} h2_stream_t;

struct h2_client {
  exchange_t *x;
  nghttp2_session *session;
  h2_stream_t *streams[H2_MAX_STREAMS];
  size_t n_streams;
  int n_done;
  int n_goaway;
  int32_t last_id; /* in the last GOAWAY, */
  uint32_t code;   /* and its code */
  int n_settings;
};

/* Connect; nothing is sent that the caller does not ask for but the preface. */
h2_client_t *h2_open(rig_t *rig);
void h2_close(h2_client_t *client);
/* Begin a request; `headers` is NULL or a row of name, value, ..., NULL. */
h2_stream_t *h2_send(h2_client_t *client, const char *method, const char *path,
                     const char *const *headers, const void *body, size_t n);
/* The same, and the end is not sent. */
h2_stream_t *h2_begin(h2_client_t *client, const char *path, const char *length,
                      const void *body, size_t n);
h2_stream_t *h2_get(h2_client_t *client, const char *path);
/* A request in JSON to /api/v1. */
h2_stream_t *h2_post(h2_client_t *client, const char *call, const char *json);
void h2_reset(h2_stream_t *stream, uint32_t code);
/* Send what the session has to send. */
void h2_flush(h2_client_t *client);
/* Run the loop until the stream is closed; until the connection is. */
void h2_wait(h2_stream_t *stream);
void h2_wait_closed(h2_client_t *client);
/* The status of the answer, waited for. 0: there was none. */
int h2_status(h2_stream_t *stream);

#endif
