/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_IO_HTTP_POOL_PARTS_H
#define TNK_LIB_IO_HTTP_POOL_PARTS_H

#include "lib/io/http/queue.h"

/* The internal interface of a pool. pool.c assigns exchanges to connections;
 * speak.c decides which version of HTTP they use. */

/* The version of HTTP on the pool's connections, as far as it is known. */
typedef enum {
  TNK__SPEAKS_UNKNOWN = 0,
  TNK__SPEAKS_HTTP_1,
  TNK__SPEAKS_HTTP_2
} tnk__speaks_t;

/*
 * The connections to one origin, all over the same route. A pool exists while a
 * connection or an exchange that is not DONE belongs to it. Then it frees
 * itself.
 */
typedef struct tnk__pool {
  tnk__list_t link; /* in tnk__http_t.pools */
  tnk__http_t *http;
  tnk__origin_t origin;  /* the host is a copy after the struct */
  const tnk__via_t *via; /* NULL: no proxy */
  struct {
    tnk__via_t via;
    tnk__buf_t request; /* the CONNECT request; wiped when freed */
  } proxy;
  int is_apart; /* for training submissions, where HTTP/2 is possible */
  tnk__speaks_t speaks;
  /* TLS version of the latest connection; NULL without TLS */
  const char *tls_version;
  int n_strikes;  /* signs that the server refuses HTTP/2; 2 are enough */
  int has_spoken; /* SETTINGS of HTTP/2 have arrived */
  int is_trial;   /* HTTP/1.1 is tried because HTTP/2 has failed */
  int refuses_http1;
  uint64_t http2_ms;   /* when HTTP/2 is tried again; 0: it is not given up, or
                          for good */
  int has_worked;      /* a response has arrived */
  uint64_t connect_ms; /* time to open the latest connection */
  size_t capacity;     /* capacity of the latest connection */
  size_t n_exchanges;
  tnk__queue_t queue;   /* the exchanges that wait for a connection */
  tnk__timer_t again;   /* when to check waiting exchanges again */
  int has_warned;       /* a warning about refused connections was logged */
  int lets_wait;        /* further connections are accepted but not served */
  uint64_t last_served; /* number of the latest connection with a response */
  /* When the latest answered sample submission was written. */
  uint64_t answered_ms;
  uint64_t heard_ms; /* the same for any answered exchange */
  uint64_t moved_ms; /* when any exchange on a connection last made progress */
  uint64_t alive_ms; /* when a connection last opened or received a byte */
  size_t n_mute;     /* open connections without any response */
  size_t n_conns;
  tnk__list_t connecting;
  size_t n_connecting;
  /* The open connections. idle: without an exchange, latest use first. shared:
   * with exchanges and capacity for more. full: without capacity. */
  tnk__list_t idle;
  tnk__list_t shared;
  tnk__list_t full;
} tnk__pool_t;

#endif
