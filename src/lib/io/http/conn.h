#ifndef TNK_LIB_IO_HTTP_CONN_H
#define TNK_LIB_IO_HTTP_CONN_H

#include "lib/io/http/client.h"
#include "lib/wire/format/http_read.h"

/*
 * One connection, and the exchanges on it: with HTTP/1.1 one at a time. It
 * reports to its pool and never to a caller of the client.
 */
typedef enum {
  TNK__CONN_CONNECTING = 0, /* until exchanges can be sent on it */
  TNK__CONN_OPEN,
  TNK__CONN_ENDED /* to be closed by the pool, once no exchange is on it */
} tnk__conn_state_t;

typedef struct tnk__conn tnk__conn_t;

/* What `begin` returns when the connection is not OPEN at once. */
#define TNK__CONN_LATER 1

struct tnk__conn_kind;

typedef struct {
  /* Connected: the version of HTTP that is spoken from here on. NULL: none that
   * is wanted; then `text` says why. */
  const struct tnk__conn_kind *(*on_connect)(tnk__conn_t *conn);
  /* From CONNECTING to OPEN. */
  void (*on_open)(tnk__conn_t *conn);
  /* From CONNECTING to ENDED. */
  void (*on_fail)(tnk__conn_t *conn, int err, int cause);
  /* From OPEN to ENDED while no exchange was on it. */
  void (*on_end)(tnk__conn_t *conn);
  /* It takes more exchanges than it did, or fewer. */
  void (*on_room)(tnk__conn_t *conn);
  /* The exchange has parted from the connection, which may have ENDED. */
  void (*on_result)(tnk__conn_t *conn, tnk__exchange_t *ex, int err, int cause);
} tnk__conn_events_t;

/* How a version of HTTP carries exchanges over the stream of a connection. All
 * but `room` and the streams' events are for conn.c alone. */
typedef struct tnk__conn_kind {
  const char *name; /* for people */
  int is_shared;    /* several exchanges at once */
  /* Begin on a stream that is open. TNK_OK; TNK__CONN_LATER, then
   * tnk__conn_ready() or tnk__conn_fail() follows; or TNK_ENOMEM. */
  int (*begin)(tnk__conn_t *conn);
  /* Write a farewell, if that is possible at once. Allocates nothing. May be
   * NULL. */
  void (*say_goodbye)(tnk__conn_t *conn);
  /* Free what it has; also after `begin` has failed. */
  void (*end)(tnk__conn_t *conn);
  /* Write the request of an exchange that is on the connection. TNK_OK, or a
   * code and then the connection has ENDED, unless others are on it. */
  int (*send)(tnk__conn_t *conn, tnk__exchange_t *ex);
  /* Let go of an exchange. `is_over`: the answer is complete. Else nobody waits
   * for it any more; where nothing else can follow, the connection has ENDED.
   * Whether anything was sent is known from here on. Allocates nothing. */
  void (*part)(tnk__conn_t *conn, tnk__exchange_t *ex, int is_over);
  /* How many exchanges it takes at once, and how many more now. */
  size_t (*capacity)(const tnk__conn_t *conn);
  size_t (*room)(const tnk__conn_t *conn);
  /* The owner has taken the body: what was held back may come. */
  void (*resume)(tnk__conn_t *conn, tnk__exchange_t *ex);
  /* The exchange's feed has what it did not have when it was asked. */
  void (*go_on)(tnk__conn_t *conn, tnk__exchange_t *ex);
  /* Whether some of the request is still to be written. */
  int (*is_sending)(const tnk__conn_t *conn, const tnk__exchange_t *ex);
  /* How many bytes of the request have left this machine. */
  uint64_t (*n_sent)(const tnk__conn_t *conn, const tnk__exchange_t *ex);
  /* Any exchange that is on it. */
  tnk__exchange_t *(*first)(const tnk__conn_t *conn);
  void (*on_read)(tnk__conn_t *conn, const uint8_t *data, size_t n);
  void (*on_written)(tnk__conn_t *conn, int cause);
  void (*on_end)(tnk__conn_t *conn, const tnk__net_error_t *error);
} tnk__conn_kind_t;

/* What HTTP/1.1 keeps: of one exchange. */
typedef struct {
  tnk__exchange_t *ex;
  tnk__http_reader_t *reader; /* the exchange's, once an answer has begun */
  uint64_t n_before;    /* what the stream had sent when the exchange began */
  size_t n_fed;         /* bytes of the exchange's feed that were written */
  tnk__deferred_t next; /* piece of the feed */
  int is_writing;
  int is_waiting; /* is_writing too: the feed has nothing yet */
  int write_failed;
} tnk__h1_t;

struct tnk__h2;

struct tnk__conn {
  tnk__list_t link; /* the pool's */
  tnk__http_t *http;
  struct tnk__pool *pool;
  const tnk__conn_events_t *events;
  tnk__stream_t *stream;
  const tnk__conn_kind_t *kind;
  tnk__conn_state_t state;
  /* The proxy that gets the requests themselves, or NULL. */
  const tnk__via_t *relay;
  int is_tls;
  uint64_t began_ms;   /* to connect */
  uint64_t number;     /* among those of its client, from 1 */
  int is_mute;         /* it is open, and no answer has come; the pool's */
  tnk__timer_t timer;  /* of being unused; before, of becoming ready */
  size_t n_begun;      /* exchanges begun on it */
  size_t n_on;         /* on it now */
  size_t n_foreground; /* of them, those that keep uv_run() going */
  const char *text;    /* why it ended, while that is reported; or NULL */
  uint8_t is_final;    /* it would end the same way again */
  /* Whether the server does not speak HTTP/2: 1, perhaps, as the connection
   * ended before SETTINGS; 2, it broke HTTP/2; 3, it asks for HTTP/1.1. */
  int refuses_http2;
  int n_holds;   /* the memory stays ... */
  int is_closed; /* ... after closing */
  int has_ended; /* the stream, so that nothing is written any more */
  int is_denied; /* the latest answer is a proxy's own, which lets nothing by */
  int drains;    /* it takes no further exchange, whatever its capacity */
  tnk__h1_t h1;
  struct tnk__h2 *h2;
};

extern const tnk__conn_kind_t tnk__conn_h1;
#if TNK__HAS_HTTP2
extern const tnk__conn_kind_t tnk__conn_h2;
#endif

/* Make a connection, which begins to connect. TNK_OK or TNK_ENOMEM. `via` is
 * NULL, or stays. `offer` is what a server with TLS may choose from. */
int tnk__conn_new(tnk__conn_t **out, tnk__http_t *http,
                  const tnk__origin_t *origin, const tnk__via_t *via,
                  tnk__alpn_t offer, const tnk__conn_events_t *events,
                  struct tnk__pool *pool);
/* Close and free, in whatever state, without a report. No exchange is on it. */
void tnk__conn_close(tnk__conn_t *conn);
/* How many exchanges it takes at once, and how many more now. */
size_t tnk__conn_capacity(const tnk__conn_t *conn);
size_t tnk__conn_room(const tnk__conn_t *conn);
/* Write the request on a connection that has room. TNK_OK, or a code and then
 * the exchange is not on it. */
int tnk__conn_send(tnk__conn_t *conn, tnk__exchange_t *ex);
/* Take an exchange off; the connection may have ENDED after that. */
void tnk__conn_abort(tnk__conn_t *conn, tnk__exchange_t *ex);
/* Any exchange that is on it, or NULL. */
tnk__exchange_t *tnk__conn_first(const tnk__conn_t *conn);
/* Whether an exchange had been on it before the latest one. */
int tnk__conn_is_reused(const tnk__conn_t *conn);
/* The owner of an exchange that was paused has taken the body. */
void tnk__conn_resume(tnk__exchange_t *ex);
/* Its feed has what it did not have when it was asked. */
void tnk__conn_go_on(tnk__exchange_t *ex);
/* Whether some of the request of an active exchange is still to be written. */
int tnk__conn_is_sending(const tnk__exchange_t *ex);
/* How many bytes of the request of an active exchange have left. */
uint64_t tnk__conn_n_sent(const tnk__exchange_t *ex);

/* For the kinds. Part an exchange from the connection, which is unused after
 * the last one, and report how it ended. Then the connection may be gone. */
void tnk__conn_finish(tnk__conn_t *conn, tnk__exchange_t *ex, int err,
                      int cause);
/* Report the end of a connection without an exchange. It may be gone then. */
void tnk__conn_end(tnk__conn_t *conn);
/* From CONNECTING to OPEN, or to ENDED. It may be gone then. */
void tnk__conn_ready(tnk__conn_t *conn);
void tnk__conn_fail(tnk__conn_t *conn, int err, int cause);
/* Keep the memory of a connection that may be closed meanwhile: look at
 * `is_closed`. Releasing it returns 0 when it is gone. */
void tnk__conn_hold(tnk__conn_t *conn);
int tnk__conn_release(tnk__conn_t *conn);

#endif
