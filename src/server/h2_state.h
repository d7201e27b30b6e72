#ifndef TNK_SERVER_H2_STATE_H
#define TNK_SERVER_H2_STATE_H

#include <nghttp2/nghttp2.h>

#include "server/request.h"
#include "server/slow.h"
#include "server/state.h"

/* What h2.c, h2_answer.c and h2_send.c share. */

/* What connections share. */
struct tnk__srv_h2_shared {
  const tnk_allocator_t *alloc;
  nghttp2_session_callbacks *callbacks;
  nghttp2_option *option;
};

/* What a connection keeps of HTTP/2. */
typedef struct tnk__srv_h2 {
  tnk__srv_conn_t *conn;
  nghttp2_session *session;
  tnk__list_t streams;
  size_t n_streams;
  size_t n_handling; /* of them, those whose request is in hand */
  tnk__buf_t out;    /* frames that are ready */
  tnk__buf_t busy;   /* frames on their way */
  tnk__srv_write_t write;
  int is_writing;
  int in_session; /* inside nghttp2, which is not called again from there */
  int is_leaving; /* it takes no requests behind this one: */
  int32_t last_id;
  uint64_t resets_since_ms;
  uint32_t n_resets; /* by the peer, since then */
} tnk__srv_h2_t;

typedef enum {
  TNK__SRV_STREAM_ARRIVING, /* the request is */
  TNK__SRV_STREAM_HANDLING, /* it is in hand */
  TNK__SRV_STREAM_ANSWERED  /* the answer is on its way, or a reset */
} tnk__srv_stream_state_t;

/* A stream, with its request; freed when nghttp2 closes it. */
typedef struct {
  tnk__srv_req_t req;
  tnk__srv_h2_t *h2;
  tnk__list_t link; /* in tnk__srv_h2_t.streams */
  int32_t id;
  tnk__srv_stream_state_t state;
  int is_whole; /* the peer has ended its half */
  int refusal;
  char method[16];
  uint64_t announced; /* of its body */
  /* The answer. */
  uint8_t *body;
  size_t n_body; /* are sent, */
  int is_cut;    /* though more is announced */
  int is_open;   /* it comes in pieces, and this is not the last */
  size_t n_sent;
  tnk__srv_slow_t *slow; /* NULL: all of it is due */
  uint64_t n_due;
} tnk__srv_stream_t;

/* ---- h2_send.c ---- */

void tnk__srv_h2_send_setup(nghttp2_session_callbacks *callbacks);
/* Send what nghttp2 has to send; the connection may be closing afterwards. */
void tnk__srv_h2_flush(tnk__srv_h2_t *h2);

/* ---- h2_answer.c ---- */

extern const tnk__srv_req_ops_t tnk__srv_h2_ops;
/* Send the peer away: requests behind those that have come are not taken, and
 * the connection ends with the last of these. */
void tnk__srv_h2_leave(tnk__srv_h2_t *h2, int32_t last_id);
/* Reset the stream instead of answering. */
void tnk__srv_h2_reset(tnk__srv_stream_t *stream, uint32_t code);
void tnk__srv_h2_stop_slow(tnk__srv_stream_t *stream);

#endif
