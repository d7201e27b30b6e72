#ifndef TNK_SERVER_STATE_H
#define TNK_SERVER_STATE_H

#include <llhttp.h>

#include "server/http.h"

struct tnk__srv_h1_trickle;
struct tnk__srv_h2;
struct tnk__srv_h2_shared;
struct tnk__srv_tls_conn;

/* What a connection is doing; see conn.c. */
typedef enum {
  TNK__SRV_CONN_READING,  /* requests arrive, or may */
  TNK__SRV_CONN_HANDLING, /* HTTP/1.1: one is complete and not yet answered */
  TNK__SRV_CONN_DRAINING, /* ended by us; what the peer still sends is dropped
                           */
  TNK__SRV_CONN_CLOSING
} tnk__srv_conn_state_t;

typedef struct tnk__srv_conn tnk__srv_conn_t;

/* A version of HTTP, as connections speak it. */
typedef struct {
  /* Take what the peer has sent. The connection may be closing afterwards. */
  void (*input)(tnk__srv_conn_t *conn, const char *data, size_t n);
  /* Go on from the loop, after tnk__srv_conn_go_on_later(). */
  void (*go_on)(tnk__srv_conn_t *conn);
  /* Whether nothing is under way, so that it may close for want of room. */
  int (*is_idle)(const tnk__srv_conn_t *conn);
  /* Whether it is the peer's turn, who may take too long. */
  int (*waits_for_peer)(const tnk__srv_conn_t *conn);
  /* Take no further requests, and close when those at hand are answered. */
  void (*leave)(tnk__srv_conn_t *conn);
  /* The connection closes: stop what goes on, tell whoever parked a request. */
  void (*gone)(tnk__srv_conn_t *conn);
  /* libuv has let go: free. */
  void (*deinit)(tnk__srv_conn_t *conn);
} tnk__srv_version_t;

/* What a connection keeps of HTTP/1.1. */
typedef struct {
  llhttp_t parser;
  tnk__srv_req_t req; /* served one at a time, so there is one */
  tnk__buf_t pending; /* bytes that came behind the request in hand */
  int keep_alive;
  int pumping;    /* inside input() or go_on(); answers only change the state */
  int begun;      /* a request has begun to arrive, or is in hand */
  int drains;     /* after the answer, so that the peer gets to read it */
  int refuse;     /* what the parser's callbacks refuse with */
  int is_chunked; /* the answer in pieces */
  size_t n_pieces;                     /* of it, not yet written */
  struct tnk__srv_h1_trickle *trickle; /* an answer bit by bit, or NULL */
} tnk__srv_h1_t;

struct tnk__srv_conn {
  uv_tcp_t tcp;
  tnk__list_t link;   /* in tnk__srv_t.conns */
  tnk__list_t resume; /* in tnk__srv_t.resuming */
  tnk__srv_t *http;
  const tnk__srv_version_t *version;
  tnk__srv_h1_t h1;
  struct tnk__srv_h2 *h2;        /* NULL: it speaks HTTP/1.1 */
  struct tnk__srv_tls_conn *tls; /* NULL: bytes go as they are */
  tnk__srv_conn_state_t state;
  int sniffs;       /* its first bytes tell the version */
  int wants_h2;     /* they must be those of HTTP/2 */
  size_t n_preface; /* so many were, so far */
  int is_refused;   /* there were too many: answered 503 */
  int paused;       /* the version wants no bytes now */
  int is_reading;
  int served; /* it has had an answer */
  size_t n_drained;
  uv_shutdown_t shutdown;
  uint64_t active_ms; /* when it last sent or was sent something */
};

/* Whether a connection ends with its next answer. */
static inline int tnk__srv_ends_conns(const tnk__srv_t *http) {
  return http->waiting || http->draining;
}

/* What connections share, of both versions. */
typedef struct tnk__srv_versions {
  llhttp_settings_t h1;
  struct tnk__srv_h2_shared *h2; /* NULL: this build has none */
} tnk__srv_versions_t;

/* ---- h1.c, h1_reply.c ---- */

extern const tnk__srv_version_t tnk__srv_h1;
/* Set the parser's callbacks, which all connections share. */
void tnk__srv_h1_setup(llhttp_settings_t *settings);
void tnk__srv_h1_init(tnk__srv_conn_t *conn);
extern const tnk__srv_req_ops_t tnk__srv_h1_ops;
/* Give a peer that waits for it leave to send the body. */
void tnk__srv_h1_send_continue(tnk__srv_conn_t *conn);
void tnk__srv_h1_stop_trickle(tnk__srv_conn_t *conn);

/* ---- h2.c; a build without nghttp2 has none of it ---- */

/* Make what connections share. TNK_OK or TNK_ENOMEM. */
int tnk__srv_h2_setup(struct tnk__srv_h2_shared **out,
                      const tnk_allocator_t *alloc);
void tnk__srv_h2_teardown(struct tnk__srv_h2_shared *shared);
/* Speak HTTP/2 from here on. TNK_OK or TNK_ENOMEM. */
int tnk__srv_h2_start(tnk__srv_conn_t *conn);

/* ---- conn.c ---- */

int tnk__srv_conn_init(tnk__srv_conn_t *conn, tnk__srv_t *http,
                       uv_loop_t *loop);
void tnk__srv_conn_start(tnk__srv_conn_t *conn);
/* Go on with those that wait for the idle callback, which this is. */
void tnk__srv_conn_on_resume(uv_idle_t *idle);

/* ---- life.c ---- */

void tnk__srv_conn_close(tnk__srv_conn_t *conn);
/* Send no more, and close when the peer has hung up. A peer that is still
 * sending would lose the answer to a reset otherwise. */
void tnk__srv_conn_drain(tnk__srv_conn_t *conn);
/* Close it so that the peer sees a reset. */
void tnk__srv_conn_reset(tnk__srv_conn_t *conn);
/* Have the version go on in a turn of the loop of its own. */
void tnk__srv_conn_go_on_later(tnk__srv_conn_t *conn);
/* Count one handle less that libuv knows. */
void tnk__srv_release(tnk__srv_t *http);

/* ---- write.c ---- */

/* Bytes on their way to the peer. */
typedef struct tnk__srv_write {
  uv_write_t uv;
  tnk__srv_conn_t *conn;
  tnk__buf_t sealed; /* what TLS has made of them */
  void (*done)(struct tnk__srv_write *write, int status);
} tnk__srv_write_t;

/* Send; the bytes stay where they are until `done` has run, which it does once,
 * from the loop. Not 0: a code, and it does not. */
int tnk__srv_write(tnk__srv_write_t *write, tnk__srv_conn_t *conn,
                   const uv_buf_t *bufs, unsigned n,
                   void (*done)(tnk__srv_write_t *write, int status));
/* Send what TLS has to say by itself. 0 or a code. */
int tnk__srv_write_tls(tnk__srv_conn_t *conn);

#endif
