#ifndef TNK_LOCAL_HTTP_H2_STATE_H
#define TNK_LOCAL_HTTP_H2_STATE_H

#include <nghttp2/nghttp2.h>

#include "local/http/request.h"
#include "local/http/slow.h"
#include "local/http/state.h"

/* What h2.c, h2_answer.c and h2_send.c share. */

/* What connections share. */
struct local_h2_shared {
  const tnk_allocator_t *alloc;
  nghttp2_session_callbacks *callbacks;
  nghttp2_option *option;
};

/* What a connection keeps of HTTP/2. */
typedef struct local_h2 {
  local_conn_t *conn;
  nghttp2_session *session;
  tnk__list_t streams;
  size_t n_streams;
  size_t n_handling; /* of them, those whose request is in hand */
  tnk__buf_t out;    /* frames that are ready */
  tnk__buf_t busy;   /* frames on their way */
  local_write_t write;
  int is_writing;
  int in_session; /* inside nghttp2, which is not called again from there */
  int is_leaving; /* it takes no requests behind this one: */
  int32_t last_id;
  uint64_t resets_since_ms;
  uint32_t n_resets; /* by the peer, since then */
} local_h2_t;

typedef enum {
  LOCAL_STREAM_ARRIVING, /* the request is */
  LOCAL_STREAM_HANDLING, /* it is in hand */
  LOCAL_STREAM_ANSWERED  /* the answer is on its way, or a reset */
} local_stream_state_t;

/* A stream, with its request; freed when nghttp2 closes it. */
typedef struct {
  local_req_t req;
  local_h2_t *h2;
  tnk__list_t link; /* in local_h2_t.streams */
  int32_t id;
  local_stream_state_t state;
  int is_whole; /* the peer has ended its half */
  int refusal;
  char method[16];
  uint64_t announced; /* of its body */
  /* The answer. */
  uint8_t *body;
  size_t n_body; /* are sent, */
  int is_cut;    /* though more is announced */
  size_t n_sent;
  local_slow_t *slow; /* NULL: all of it is due */
  uint64_t n_due;
} local_stream_t;

/* ---- h2_send.c ---- */

void local_h2_send_setup(nghttp2_session_callbacks *callbacks);
/* Send what nghttp2 has to send; the connection may be closing afterwards. */
void local_h2_flush(local_h2_t *h2);

/* ---- h2_answer.c ---- */

extern const local_req_ops_t local_h2_ops;
/* Send the peer away: requests behind those that have come are not taken, and
 * the connection ends with the last of these. */
void local_h2_leave(local_h2_t *h2, int32_t last_id);
/* Reset the stream instead of answering. */
void local_h2_reset(local_stream_t *stream, uint32_t code);
void local_h2_stop_slow(local_stream_t *stream);

#endif
