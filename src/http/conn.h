#ifndef TNK_HTTP_CONN_H
#define TNK_HTTP_CONN_H

#include "codec/format/http_read.h"
#include "http/client.h"

/*
 * One HTTP/1.1 connection: one exchange at a time. It reports to its pool and
 * never to a caller of the client.
 */
typedef enum {
  TNK__CONN_CONNECTING = 0,
  TNK__CONN_IDLE,
  TNK__CONN_ACTIVE,
  TNK__CONN_ENDED /* to be closed by the pool */
} tnk__conn_state_t;

typedef struct tnk__conn tnk__conn_t;

typedef struct {
  /* From CONNECTING to IDLE. */
  void (*on_open)(tnk__conn_t *conn);
  /* From CONNECTING to ENDED. */
  void (*on_fail)(tnk__conn_t *conn, int err, int cause);
  /* From IDLE to ENDED. */
  void (*on_end)(tnk__conn_t *conn);
  /* The exchange has parted from the connection, which is IDLE or ENDED. */
  void (*on_result)(tnk__conn_t *conn, tnk__exchange_t *ex, int err, int cause);
} tnk__conn_events_t;

struct tnk__conn {
  tnk__list_t link; /* the pool's */
  tnk__http_t *http;
  struct tnk__pool *pool;
  const tnk__conn_events_t *events;
  tnk__stream_t *stream;
  tnk__conn_state_t state;
  /* The proxy that gets the requests themselves, or NULL. */
  const tnk__via_t *relay;
  tnk__exchange_t *ex;        /* while ACTIVE */
  tnk__http_reader_t *reader; /* the exchange's, once an answer has begun */
  tnk__timer_t timer;         /* of being unused */
  uint64_t n_before;    /* what the stream had sent when the exchange began */
  size_t n_fed;         /* bytes of the exchange's feed that were written */
  tnk__deferred_t next; /* piece of the feed */
  size_t n_exchanges;   /* begun on it */
  int is_writing;
  int write_failed;
  const char *text; /* why it ended, while that is reported; or NULL */
};

/* Make a connection, which begins to connect. TNK_OK or TNK_ENOMEM. `via` is
 * NULL, or stays. */
int tnk__conn_new(tnk__conn_t **out, tnk__http_t *http,
                  const tnk__origin_t *origin, const tnk__via_t *via,
                  const tnk__conn_events_t *events, struct tnk__pool *pool);
/* Close and free, in whatever state, without a report. An exchange on it has
 * been taken off before. */
void tnk__conn_close(tnk__conn_t *conn);
/* Write the request: from IDLE to ACTIVE. TNK_OK, or a code and then the
 * exchange is not on the connection, which is ENDED. */
int tnk__conn_send(tnk__conn_t *conn, tnk__exchange_t *ex);
/* Take the exchange off and leave the connection ENDED. */
void tnk__conn_abort(tnk__conn_t *conn);
/* Whether an exchange had been on it before the present one. */
int tnk__conn_is_reused(const tnk__conn_t *conn);

#endif
