/* SPDX-License-Identifier: MIT */
#ifndef TNK_SERVER_STATE_H
#define TNK_SERVER_STATE_H

#include <llhttp.h>

#include "server/http.h"

struct tnk__srv_h1_trickle;
struct tnk__srv_h2;
struct tnk__srv_h2_shared;
struct tnk__srv_tls_conn;

/* State of a connection; see conn.c. */
typedef enum {
  TNK__SRV_CONN_READING,  /* requests may arrive */
  TNK__SRV_CONN_HANDLING, /* HTTP/1.1: a request is complete and has no response
                             yet */
  TNK__SRV_CONN_DRAINING, /* ended by the server; further input is discarded */
  TNK__SRV_CONN_CLOSING
} tnk__srv_conn_state_t;

typedef struct tnk__srv_conn tnk__srv_conn_t;

/* Operations of a version of HTTP. */
typedef struct {
  /* Process input. The connection may be closing afterwards. */
  void (*input)(tnk__srv_conn_t *conn, const char *data, size_t n);
  /* Resume from the loop, after tnk__srv_conn_go_on_later(). */
  void (*go_on)(tnk__srv_conn_t *conn);
  /* Returns whether the connection may be closed to make room. */
  int (*is_idle)(const tnk__srv_conn_t *conn);
  /* Returns whether the next step is the peer's, so a timeout applies. */
  int (*waits_for_peer)(const tnk__srv_conn_t *conn);
  /* Take no more requests, and close when the current ones are answered. */
  void (*leave)(tnk__srv_conn_t *conn);
  /* The connection closes: stop timers, and call `on_gone` of parked
   * requests. */
  void (*gone)(tnk__srv_conn_t *conn);
  /* libuv has closed the handle: free everything. */
  void (*deinit)(tnk__srv_conn_t *conn);
} tnk__srv_version_t;

/* State of a connection that speaks HTTP/1.1. */
typedef struct {
  llhttp_t parser;
  tnk__srv_req_t req; /* one, as requests are handled one at a time */
  tnk__buf_t pending; /* input after the request that is being handled */
  int keep_alive;
  int pumping; /* inside input() or go_on(); responses only change the state */
  int begun;   /* a request is arriving or being handled */
  int drains;  /* drain after the response, so that the peer can read it */
  int refuse;  /* refusal of a parser callback */
  int is_chunked;                      /* the streamed response uses chunks */
  size_t n_pieces;                     /* its pieces that are not yet written */
  struct tnk__srv_h1_trickle *trickle; /* a slow response, or NULL */
} tnk__srv_h1_t;

struct tnk__srv_conn {
  uv_tcp_t tcp;
  tnk__list_t link;   /* in tnk__srv_t.conns */
  tnk__list_t resume; /* in tnk__srv_t.resuming */
  tnk__srv_t *http;
  const tnk__srv_version_t *version;
  tnk__srv_h1_t h1;
  struct tnk__srv_h2 *h2;        /* NULL: HTTP/1.1 */
  struct tnk__srv_tls_conn *tls; /* NULL: no TLS */
  tnk__srv_conn_state_t state;
  int sniffs;       /* the version is not known yet */
  int wants_h2;     /* ALPN has selected HTTP/2 */
  size_t n_preface; /* bytes of the preface received so far */
  int is_refused;   /* beyond the limit: gets 503 */
  int paused;       /* the version wants no input now */
  int is_reading;
  int served; /* has had a response */
  size_t n_drained;
  uv_shutdown_t shutdown;
  uint64_t active_ms; /* loop time of the last input or response */
};

/* Returns whether a connection ends with its next response. */
static inline int tnk__srv_ends_conns(const tnk__srv_t *http) {
  return http->waiting || http->draining;
}

/* Shared by all connections, for each version. */
typedef struct tnk__srv_versions {
  llhttp_settings_t h1;
  struct tnk__srv_h2_shared *h2; /* NULL: built without HTTP/2 */
} tnk__srv_versions_t;

/* ---- h1.c, h1_reply.c ---- */

extern const tnk__srv_version_t tnk__srv_h1;
/* Set the parser's callbacks. All connections share them. */
void tnk__srv_h1_setup(llhttp_settings_t *settings);
void tnk__srv_h1_init(tnk__srv_conn_t *conn);
extern const tnk__srv_req_ops_t tnk__srv_h1_ops;
/* Send 100 Continue, as the peer waits for it before it sends the body. */
void tnk__srv_h1_send_continue(tnk__srv_conn_t *conn);
void tnk__srv_h1_stop_trickle(tnk__srv_conn_t *conn);

/* ---- h2.c; without nghttp2: h2_none.c ---- */

/* Create the shared objects. Returns TNK_OK or TNK_ENOMEM. */
int tnk__srv_h2_setup(struct tnk__srv_h2_shared **out,
                      const tnk_allocator_t *alloc);
void tnk__srv_h2_teardown(struct tnk__srv_h2_shared *shared);
/* Switch the connection to HTTP/2. Returns TNK_OK or TNK_ENOMEM. */
int tnk__srv_h2_start(tnk__srv_conn_t *conn);

/* ---- conn.c ---- */

int tnk__srv_conn_init(tnk__srv_conn_t *conn, tnk__srv_t *http,
                       uv_loop_t *loop);
void tnk__srv_conn_start(tnk__srv_conn_t *conn);
/* The idle callback: resumes the connections that wait for it. */
void tnk__srv_conn_on_resume(uv_idle_t *idle);

/* ---- Lifetime ---- */

void tnk__srv_conn_close(tnk__srv_conn_t *conn);
/* Send nothing more, and close when the peer has closed. Closing at once while
 * the peer sends would cause a reset, and the peer would lose the response. */
void tnk__srv_conn_drain(tnk__srv_conn_t *conn);
/* Close the connection with a reset. */
void tnk__srv_conn_reset(tnk__srv_conn_t *conn);
/* Call the version's go_on() in a later turn of the loop. */
void tnk__srv_conn_go_on_later(tnk__srv_conn_t *conn);
/* Count one closed handle. */
void tnk__srv_release(tnk__srv_t *http);

/* ---- Writing ---- */

/* A write in progress. */
typedef struct tnk__srv_write {
  uv_write_t uv;
  tnk__srv_conn_t *conn;
  tnk__buf_t sealed; /* TLS records */
  void (*done)(struct tnk__srv_write *write, int status);
} tnk__srv_write_t;

/* Write to the peer. The bytes must stay valid until `done` runs, which it does
 * once, from the loop. On failure returns a code, and `done` does not run. */
int tnk__srv_write(tnk__srv_write_t *write, tnk__srv_conn_t *conn,
                   const uv_buf_t *bufs, unsigned n,
                   void (*done)(tnk__srv_write_t *write, int status));
/* Write the pending output of TLS, such as alerts. Returns 0 or a code. */
int tnk__srv_write_tls(tnk__srv_conn_t *conn);

#endif
