#ifndef TNK_HTTP_POOL_H
#define TNK_HTTP_POOL_H

#include "http/client.h"

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
  size_t n_exchanges;
  tnk__list_t waiting; /* exchanges, for any connection, in order */
  tnk__list_t fresh;   /* exchanges, for a connection that is new */
  size_t n_waiting;    /* in both */
  size_t n_foreground; /* of them, those that keep uv_run() going */
  tnk__list_t connecting;
  size_t n_connecting;
  /* The connections that are open: without an exchange, latest use first; with
   * one or more and room for another; with room for none. */
  tnk__list_t idle;
  tnk__list_t shared;
  tnk__list_t full;
} tnk__pool_t;

/* Make the exchange a member of its origin's pool. TNK_OK, TNK_ENOMEM, or what
 * is wrong with the proxy: TNK_EPROXY, TNK_EINVAL, TNK_ETOOBIG. */
int tnk__pool_join(tnk__http_t *http, const tnk__origin_t *origin,
                   tnk__exchange_t *ex);
/* Give an exchange that has a slot of its lane a connection, now or later. It
 * may be DONE on return. */
void tnk__pool_run(tnk__exchange_t *ex);
/* Open the connections that could not be opened before. */
void tnk__pool_retry(tnk__pool_t *pool);
/* Take a member out in whatever state; a connection in the middle of it is
 * closed. Allocates nothing. The pool may be gone on return. */
void tnk__pool_leave(tnk__exchange_t *ex);
/* Settle all exchanges that have a slot, close all connections. */
void tnk__pool_close(tnk__pool_t *pool, int err);

#endif
