/* SPDX-License-Identifier: MIT */
#ifndef TNK_SERVER_H2_STATE_H
#define TNK_SERVER_H2_STATE_H

#include <nghttp2/nghttp2.h>

#include "server/request.h"
#include "server/slow.h"
#include "server/state.h"

/* Shared by h2.c, h2_answer.c and h2_answer.c. */

/* Shared by all connections. */
struct tnk__srv_h2_shared {
  const tnk_allocator_t *alloc;
  nghttp2_session_callbacks *callbacks;
  nghttp2_option *option;
};

/* State of a connection that speaks HTTP/2. */
typedef struct tnk__srv_h2 {
  tnk__srv_conn_t *conn;
  nghttp2_session *session;
  tnk__list_t streams;
  size_t n_streams;
  size_t n_handling; /* how many of them have a request in the handler */
  tnk__buf_t out;    /* frames to be written */
  tnk__buf_t busy;   /* frames being written */
  tnk__srv_write_t write;
  int is_writing;
  int in_session; /* inside nghttp2, which must not be called again */
  int is_leaving; /* GOAWAY was sent with `last_id` */
  int32_t last_id;
  uint64_t resets_since_ms;
  uint32_t n_resets; /* resets by the peer since `resets_since_ms` */
} tnk__srv_h2_t;

typedef enum {
  TNK__SRV_STREAM_ARRIVING, /* the request is arriving */
  TNK__SRV_STREAM_HANDLING, /* complete, without a response yet */
  TNK__SRV_STREAM_ANSWERED  /* the response or a reset is being sent */
} tnk__srv_stream_state_t;

/* A stream with its request; freed when nghttp2 closes the stream. */
typedef struct {
  tnk__srv_req_t req;
  tnk__srv_h2_t *h2;
  tnk__list_t link; /* in tnk__srv_h2_t.streams */
  int32_t id;
  tnk__srv_stream_state_t state;
  int is_whole; /* the peer has ended its half */
  int refusal;
  char method[16];
  uint64_t announced; /* announced length of the request's body */
  /* The body of the response. */
  uint8_t *body;
  size_t n_body; /* bytes to send */
  int is_cut;    /* ends before the announced length */
  int is_open;   /* streamed, and this is not the last piece */
  size_t n_sent;
  tnk__srv_slow_t *slow; /* NULL: the whole body may be sent */
  uint64_t n_due;
} tnk__srv_stream_t;

/* ---- Sending ---- */

void tnk__srv_h2_send_setup(nghttp2_session_callbacks *callbacks);
/* Send the pending output of nghttp2. The connection may be closing
 * afterwards. */
void tnk__srv_h2_flush(tnk__srv_h2_t *h2);

/* ---- h2_answer.c ---- */

extern const tnk__srv_req_ops_t tnk__srv_h2_ops;
/* Send GOAWAY: no stream after `last_id` is processed. The connection ends when
 * the earlier ones have ended. */
void tnk__srv_h2_leave(tnk__srv_h2_t *h2, int32_t last_id);
/* Reset a stream instead of sending a response. */
void tnk__srv_h2_reset(tnk__srv_stream_t *stream, uint32_t code);
void tnk__srv_h2_stop_slow(tnk__srv_stream_t *stream);

#endif
