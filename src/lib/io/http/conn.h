/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_IO_HTTP_CONN_H
#define TNK_LIB_IO_HTTP_CONN_H

#include "lib/io/http/client.h"
#include "lib/wire/format/http_read.h"

/*
 * One connection and the exchanges on it, with HTTP/1.1 one at a time. It
 * reports to its pool and never to a caller of the client.
 */
typedef enum {
  TNK__CONN_CONNECTING = 0, /* until exchanges can be sent on it */
  TNK__CONN_OPEN,
  TNK__CONN_ENDED /* the pool closes it once no exchange is on it */
} tnk__conn_state_t;

typedef struct tnk__conn tnk__conn_t;

/* The value that `begin` returns when the connection is not OPEN at once. */
#define TNK__CONN_LATER 1

struct tnk__conn_kind;

/* The events that a connection reports to its pool, which lies above it. See
 * README.md. */
typedef struct {
  /* The stream is connected: return the version of HTTP to use. NULL means that
   * no wanted version is available; `text` then has the reason. */
  const struct tnk__conn_kind *(*on_connect)(tnk__conn_t *conn);
  /* CONNECTING has become OPEN. */
  void (*on_open)(tnk__conn_t *conn);
  /* CONNECTING has become ENDED. */
  void (*on_fail)(tnk__conn_t *conn, int err, int cause);
  /* OPEN has become ENDED while no exchange was on it. */
  void (*on_end)(tnk__conn_t *conn);
  /* The number of exchanges that it takes has changed. */
  void (*on_room)(tnk__conn_t *conn);
  /* The exchange has left the connection, which may have ENDED. */
  void (*on_result)(tnk__conn_t *conn, tnk__exchange_t *ex, int err, int cause);
} tnk__conn_events_t;

/* The functions with which a version of HTTP carries exchanges over the stream
 * of a connection. Only conn.c uses it. Exceptions: `room` and the stream's
 * events. */
typedef struct tnk__conn_kind {
  const char *name; /* name for messages */
  int is_shared;    /* several exchanges at once */
  /* Begin on an open stream. Returns TNK_OK or TNK_ENOMEM. TNK__CONN_LATER
   * means that tnk__conn_ready() or tnk__conn_fail() follows. */
  int (*begin)(tnk__conn_t *conn);
  /* Write a farewell (GOAWAY), if it can be written at once. Allocates nothing.
   * May be NULL. */
  void (*say_goodbye)(tnk__conn_t *conn);
  /* Free its state. Also called after `begin` has failed. */
  void (*end)(tnk__conn_t *conn);
  /* Write the request of an exchange that is on the connection. Returns TNK_OK
   * or an error. After an error the connection has ENDED, unless other
   * exchanges are on it. */
  int (*send)(tnk__conn_t *conn, tnk__exchange_t *ex);
  /* Detach an exchange. `is_over` means that its response is complete;
   * otherwise the exchange was abandoned. If no other response can follow, the
   * connection has ENDED. `sent` of the exchange is final after this call.
   * Allocates nothing. */
  void (*part)(tnk__conn_t *conn, tnk__exchange_t *ex, int is_over);
  /* How many exchanges it takes at once, and how many more it takes now. */
  size_t (*capacity)(const tnk__conn_t *conn);
  size_t (*room)(const tnk__conn_t *conn);
  /* The owner has taken the body, so reading may continue. */
  void (*resume)(tnk__conn_t *conn, tnk__exchange_t *ex);
  /* The feed of the exchange has bytes that it did not have before. */
  void (*go_on)(tnk__conn_t *conn, tnk__exchange_t *ex);
  /* Whether some of the request is still to be written. */
  int (*is_sending)(const tnk__conn_t *conn, const tnk__exchange_t *ex);
  /* How many bytes of the request have left this machine. */
  uint64_t (*n_sent)(const tnk__conn_t *conn, const tnk__exchange_t *ex);
  /* Any exchange on it, or NULL. */
  tnk__exchange_t *(*first)(const tnk__conn_t *conn);
  void (*on_read)(tnk__conn_t *conn, const uint8_t *data, size_t n);
  void (*on_written)(tnk__conn_t *conn, int cause);
  void (*on_end)(tnk__conn_t *conn, const tnk__net_error_t *error);
} tnk__conn_kind_t;

/* State of HTTP/1.1, for one exchange. */
typedef struct {
  tnk__exchange_t *ex;
  /* Belongs to the exchange; set once a response has begun. */
  tnk__http_reader_t *reader;
  uint64_t n_before;    /* bytes the stream had sent when the exchange began */
  size_t n_fed;         /* bytes of the feed that were written */
  tnk__deferred_t next; /* asks for the next piece of the feed */
  int is_writing;
  int is_waiting; /* the feed has no bytes yet; is_writing is set too */
  int write_failed;
} tnk__h1_t;

struct tnk__h2;

struct tnk__conn {
  tnk__list_t link; /* in a list of the pool */
  tnk__http_t *http;
  struct tnk__pool *pool;
  const tnk__conn_events_t *events;
  tnk__stream_t *stream;
  const tnk__conn_kind_t *kind;
  tnk__conn_state_t state;
  /* The HTTP proxy that the requests themselves are sent to, or NULL. */
  const tnk__via_t *relay;
  int is_tls;
  uint64_t began_ms; /* when it began to connect */
  uint64_t number;   /* number among the connections of its client, from 1 */
  int is_mute; /* open, and no response has arrived yet; set by the pool */
  /* Before it is open: time to get ready; later: idle time. */
  tnk__timer_t timer;
  size_t n_begun;      /* exchanges begun on it so far */
  size_t n_on;         /* exchanges on it now */
  size_t n_foreground; /* exchanges on it that keep uv_run() running */
  const char *text;    /* reason of its end, while it is reported; or NULL */
  uint8_t is_final;    /* a new connection would end in the same way */
  /* Whether the server does not speak HTTP/2. 1: likely, as the connection
   * ended before SETTINGS. 2: it broke HTTP/2. 3: it asked for HTTP/1.1. */
  int refuses_http2;
  int n_holds;   /* keeps the memory while nonzero ... */
  int is_closed; /* ... even after it was closed */
  int has_ended; /* the stream has ended, so nothing is written any more */
  int is_denied; /* the latest response is the proxy's own 403 */
  int drains;    /* it takes no further exchange, whatever its capacity */
  tnk__h1_t h1;
  struct tnk__h2 *h2;
};

extern const tnk__conn_kind_t tnk__conn_h1;
#if TNK__HAS_HTTP2
extern const tnk__conn_kind_t tnk__conn_h2;
#endif

/* Create a connection, which begins to connect. Returns TNK_OK or TNK_ENOMEM.
 * `via` is NULL, or must stay valid. `offer` lists the versions that a server
 * with TLS may choose from. */
int tnk__conn_new(tnk__conn_t **out, tnk__http_t *http,
                  const tnk__origin_t *origin, const tnk__via_t *via,
                  tnk__alpn_t offer, const tnk__conn_events_t *events,
                  struct tnk__pool *pool);
/* Close and free it in any state, without a report. No exchange may be on
 * it. */
void tnk__conn_close(tnk__conn_t *conn);
/* Returns how many exchanges it takes at once, and how many more it takes now.
 */
static inline size_t tnk__conn_capacity(const tnk__conn_t *conn) {
  return conn->state == TNK__CONN_OPEN ? conn->kind->capacity(conn) : 0;
}
static inline size_t tnk__conn_room(const tnk__conn_t *conn) {
  return conn->state == TNK__CONN_OPEN ? conn->kind->room(conn) : 0;
}
/* Write the request on a connection that has capacity. Returns TNK_OK or an
 * error; after an error the exchange is not on it. */
int tnk__conn_send(tnk__conn_t *conn, tnk__exchange_t *ex);
/* Take an exchange off. The connection may have ENDED on return. */
void tnk__conn_abort(tnk__conn_t *conn, tnk__exchange_t *ex);
/* Any exchange that is on it, or NULL. */
tnk__exchange_t *tnk__conn_first(const tnk__conn_t *conn);
/* Returns whether another exchange was on it before the latest one. */
int tnk__conn_is_reused(const tnk__conn_t *conn);
/* The owner of an exchange that was paused has taken the body. */
void tnk__conn_resume(tnk__exchange_t *ex);
/* The feed of the exchange has bytes that it did not have before. */
void tnk__conn_go_on(tnk__exchange_t *ex);
/* Returns whether some of the request of an active exchange is still to be
 * written. */
static inline int tnk__conn_is_sending(const tnk__exchange_t *ex) {
  return ex->conn->kind->is_sending(ex->conn, ex);
}
/* Returns how many bytes of the request of an active exchange have left. */
static inline uint64_t tnk__conn_n_sent(const tnk__exchange_t *ex) {
  return ex->conn->kind->n_sent(ex->conn, ex);
}

/* For the kinds: detach an exchange and report how it ended. The connection is
 * idle after the last one. The connection may be gone on return. */
void tnk__conn_finish(tnk__conn_t *conn, tnk__exchange_t *ex, int err,
                      int cause);
/* Report the end of a connection without an exchange. It may be gone on
 * return. */
void tnk__conn_end(tnk__conn_t *conn);
/* Change CONNECTING to OPEN, or to ENDED. The connection may be gone on
 * return. */
void tnk__conn_ready(tnk__conn_t *conn);
void tnk__conn_fail(tnk__conn_t *conn, int err, int cause);
/* Keep the memory of a connection that may be closed meanwhile; check
 * `is_closed`. tnk__conn_release() returns 0 if the connection is gone. */
void tnk__conn_hold(tnk__conn_t *conn);
int tnk__conn_release(tnk__conn_t *conn);

#endif
