#ifndef TNK_LOCAL_HTTP_CONN_H
#define TNK_LOCAL_HTTP_CONN_H

#include <llhttp.h>

#include "local/http/http.h"

struct local_slow;

/* What a connection is doing; see conn.c. */
typedef enum {
  LOCAL_CONN_READING,  /* a request is arriving */
  LOCAL_CONN_HANDLING, /* it is complete and not yet answered */
  LOCAL_CONN_DRAINING, /* refused; what the peer still sends is dropped */
  LOCAL_CONN_CLOSING
} local_conn_state_t;

typedef struct local_conn {
  uv_tcp_t tcp;
  tnk__list_t link;   /* in local_http_t.conns */
  tnk__list_t resume; /* in local_http_t.resuming */
  local_http_t *http;
  llhttp_t parser;
  local_req_t req;
  tnk__buf_t url;
  tnk__buf_t pending; /* bytes that came behind the request in hand */
  local_conn_state_t state;
  int keep_alive;
  int pumping; /* inside on_read or pump(); answers only change the state */
  int paused;  /* reading is stopped: too much is pending */
  int begun;   /* a request has begun to arrive, or is in hand */
  int served;  /* it has had an answer */
  int drains;  /* after the answer, so that the peer gets to read it */
  size_t n_drained;
  uv_shutdown_t shutdown;
  int refuse; /* status with which the parser's callbacks refuse */
  size_t n_headers;
  struct local_slow *slow; /* the answer that trickles out, or NULL */
  /* Ends what goes on by itself, set together with it. */
  void (*on_close)(struct local_conn *conn);
  uint64_t active_ms; /* when it last sent or was sent something */
} local_conn_t;

/* Set the parser's callbacks, which all connections share. */
void local_conn_setup(llhttp_settings_t *settings);
int local_conn_init(local_conn_t *conn, local_http_t *http, uv_loop_t *loop);
void local_conn_start(local_conn_t *conn);
void local_conn_close(local_conn_t *conn);
/* Send no more, and close when the peer has hung up. A peer that is still
 * sending would lose the answer to a reset otherwise. */
void local_conn_drain(local_conn_t *conn);
/* Close it so that the peer sees a reset. */
void local_conn_reset(local_conn_t *conn);
/* Count one handle less that libuv knows. */
void local_http_release(local_http_t *http);
/* Read on, now that the answer is on its way, but never from in here. */
void local_conn_answered(local_conn_t *conn);
/* Go on with those that wait for the idle callback, which this is. */
void local_conn_on_resume(uv_idle_t *idle);
/* Send the body of an answer at `rate` bytes a second; it is taken. Goes on
 * with the next request, or closes. TNK_OK or a code. */
int local_slow_start(local_conn_t *conn, uint8_t *body, size_t len,
                     uint64_t rate, int close_after);
/* Give a peer that waits for it leave to send the body. */
void local_conn_send_continue(local_conn_t *conn);
/* Percent-decode in place; 0 when malformed or when a NUL would come out. */
int local_url_decode(char *text);

#endif
