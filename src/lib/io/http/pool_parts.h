#ifndef TNK_LIB_IO_HTTP_POOL_PARTS_H
#define TNK_LIB_IO_HTTP_POOL_PARTS_H

#include "lib/io/http/line.h"

/* The inside of a pool: pool.c brings exchanges and connections together,
 * speak.c decides which version of HTTP they speak. */

/* What the connections of a pool speak, as far as it is known. */
typedef enum {
  TNK__SPEAKS_UNKNOWN = 0,
  TNK__SPEAKS_HTTP_1,
  TNK__SPEAKS_HTTP_2
} tnk__speaks_t;

/*
 * The connections to one origin, which all take the same way. Lives while an
 * exchange of any state before DONE or a connection belongs to it, then frees
 * itself.
 */
typedef struct tnk__pool {
  tnk__list_t link; /* in tnk__http_t.pools */
  tnk__http_t *http;
  tnk__origin_t origin;  /* the host is a copy, behind the struct */
  const tnk__via_t *via; /* NULL: no proxy */
  struct {
    tnk__via_t via;
    tnk__buf_t request; /* the CONNECT; wiped */
  } proxy;
  int is_apart; /* of submissions of training, where HTTP/2 is possible */
  tnk__speaks_t speaks;
  const char *tls_version; /* of the latest connection; NULL: none, or no TLS */
  int n_strikes;  /* signs that the server refuses HTTP/2; 2 are enough */
  int has_spoken; /* SETTINGS of HTTP/2 have come */
  int is_trial;   /* of HTTP/1.1, after HTTP/2 has failed */
  int refuses_http1;
  int has_worked;      /* an answer has come */
  uint64_t connect_ms; /* what it took to open the latest connection */
  size_t capacity;     /* of the latest connection */
  size_t n_exchanges;
  tnk__line_t line;     /* the exchanges that wait for a connection */
  tnk__timer_t again;   /* when to look after those who wait for others */
  int has_warned;       /* that connections are refused */
  int lets_wait;        /* ... by being accepted, and not served */
  uint64_t last_served; /* the latest connection that an answer has come on */
  uint64_t answered_ms; /* when the latest submission of a sample was written
                           that has been answered */
  uint64_t heard_ms;    /* the same of any exchange */
  uint64_t moved_ms;    /* when any exchange on a connection last moved */
  uint64_t alive_ms;    /* when a connection opened, or a byte came on one */
  size_t n_mute;        /* open connections on which no answer has come */
  size_t n_conns;
  tnk__list_t connecting;
  size_t n_connecting;
  /* The connections that are open: without an exchange, latest use first; with
   * one or more and room for another; with room for none. */
  tnk__list_t idle;
  tnk__list_t shared;
  tnk__list_t full;
} tnk__pool_t;

#endif
