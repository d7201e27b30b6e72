/* SPDX-License-Identifier: MIT */
#include "lib/io/http/speak.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "tnk/error.h"
#if TNK__HAS_HTTP2
#include <nghttp2/nghttp2.h>
#endif

/*
 * Over TLS the handshake decides (ALPN). Until the first connection of a pool
 * has shown which version the server speaks, no second one is opened. Over
 * HTTP/2 all waiting exchanges may fit on it.
 *
 * Training submissions have a separate pool wherever HTTP/2 is possible. They
 * are large and would delay everything else on a shared connection. In one flow
 * control window all of them would share the speed of one connection. With AUTO
 * they use HTTP/1.1, each on a connection of its own, at the full speed of the
 * link. README.md has figures.
 *
 * The pool changes to HTTP/1.1 if a server agrees to HTTP/2 and then does not
 * speak it, breaks it, or asks for HTTP/1.1. HTTP/1.1 is then a trial until a
 * response has arrived, unless the server asked for it. If the trial fails,
 * HTTP/2 is used again. If HTTP/2 has worked before, a connection that ends
 * before SETTINGS proves nothing. If it has not, two of them turn the pool to
 * HTTP/1.1 for a while: the server may have accepted no connections then.
 */

/* Maximum of origins that are remembered. The oldest one is forgotten. */
enum { MAX_KNOWN = 16 };
/* Strikes after which HTTP/2 is given up. */
enum { ENOUGH_STRIKES = 2 };
/* Time after which a new connection offers HTTP/2 again, if the strikes were
 * connections that ended before SETTINGS. */
enum { AGAIN_MS = 300000 };
/* Connections that sample polls leave to other requests. */
enum { SPARE_CONNECTIONS = 4 };

typedef struct {
  tnk__list_t link;
  tnk__origin_t origin; /* the host is after the struct */
  int is_apart;
  tnk__speaks_t speaks;
  int n_strikes;
  int has_spoken;
  int is_trial;
  int refuses_http1;
  uint64_t http2_ms;
} known_t;

const char *tnk__http2_library(void) {
#if TNK__HAS_HTTP2
  return nghttp2_version(0)->version_str;
#else
  return NULL;
#endif
}

static known_t *known_at(tnk__list_t *node) {
  return tnk__container_of(node, known_t, link);
}

static known_t *find(const tnk__http_t *http, const tnk__origin_t *origin,
                     int is_apart) {
  TNK__LIST_FOREACH (node, &http->known)
    if (known_at(node)->is_apart == is_apart &&
        tnk__origin_equal(&known_at(node)->origin, origin))
      return known_at(node);
  return NULL;
}

static void drop(tnk__http_t *http, known_t *known) {
  tnk__list_remove(&known->link);
  tnk__free(&http->context->alloc, known);
}

void tnk__speak_forget(tnk__http_t *http) {
  tnk__list_t *node;

  while ((node = tnk__list_first(&http->known)) != NULL)
    drop(http, known_at(node));
}

static void bound_known(tnk__http_t *http) {
  size_t n = 0;

  TNK__LIST_FOREACH_SAFE (node, next, &http->known)
    if (++n > MAX_KNOWN)
      drop(http, known_at(node));
}

/* Returns whether HTTP/2 is possible at all. */
static int is_possible(const tnk__http_t *http, const tnk__origin_t *origin) {
  return http->version == TNK__HTTP_2_PRIOR_KNOWLEDGE ||
         (http->version != TNK__HTTP_1_1 && origin->is_tls);
}

int tnk__speak_is_apart(const tnk__http_t *http, const tnk__origin_t *origin,
                        uint8_t lane) {
  return lane == TNK__LANE_TRAIN && is_possible(http, origin);
}

tnk__alpn_t tnk__speak_offer(const tnk__pool_t *pool) {
  const tnk__http_t *http = pool->http;

  /* A proxy that gets the requests themselves is used with HTTP/1.1. */
  if (!is_possible(http, &pool->origin) || pool->n_strikes >= ENOUGH_STRIKES ||
      (!pool->origin.is_tls && pool->via != NULL &&
       pool->via->kind == TNK__PROXY_HTTP))
    return TNK__ALPN_HTTP_1;
  if (http->version != TNK__HTTP_AUTO)
    return TNK__ALPN_HTTP_2;
  return pool->is_apart && !pool->refuses_http1 ? TNK__ALPN_HTTP_1
                                                : TNK__ALPN_BOTH;
}

/* The assumption before the first connection. */
static tnk__speaks_t guess(const tnk__pool_t *pool) {
  static const tnk__speaks_t guesses[TNK__N_ALPN] = {
      [TNK__ALPN_HTTP_1] = TNK__SPEAKS_HTTP_1,
      [TNK__ALPN_HTTP_2] = TNK__SPEAKS_HTTP_2,
      [TNK__ALPN_BOTH] = TNK__SPEAKS_UNKNOWN,
      [TNK__ALPN_NONE] = TNK__SPEAKS_UNKNOWN, /* never offered */
  };

  return guesses[tnk__speak_offer(pool)];
}

/* An assumption; the first connection replaces it with the server's limit. */
enum { FIRST_CAPACITY = 100 };

/* The other pool of the same origin, or NULL. */
static tnk__pool_t *sibling_of(const tnk__pool_t *pool) {
  TNK__LIST_FOREACH (node, &pool->http->pools) {
    tnk__pool_t *other = tnk__container_of(node, tnk__pool_t, link);
    if (other != pool && tnk__origin_equal(&other->origin, &pool->origin))
      return other;
  }
  return NULL;
}

void tnk__speak_begin(tnk__pool_t *pool) {
  const known_t *known = find(pool->http, &pool->origin, pool->is_apart);
  const tnk__pool_t *sibling = sibling_of(pool);

  pool->capacity = FIRST_CAPACITY;
  if (known != NULL) {
    pool->n_strikes = known->n_strikes;
    pool->has_spoken = known->has_spoken;
    pool->is_trial = known->is_trial;
    pool->refuses_http1 = known->refuses_http1;
    pool->http2_ms = known->http2_ms;
  }
  if (sibling != NULL && sibling->n_strikes > pool->n_strikes) {
    pool->n_strikes = sibling->n_strikes;
    pool->is_trial = sibling->is_trial;
    pool->http2_ms = sibling->http2_ms;
  }
  pool->speaks = guess(pool);
  if (known != NULL && pool->speaks == TNK__SPEAKS_UNKNOWN)
    pool->speaks = known->speaks;
}

/* If memory is short, nothing is kept, and the version must be learned
 * again. */
void tnk__speak_keep(const tnk__pool_t *pool) {
  tnk__http_t *http = pool->http;
  known_t *known = find(http, &pool->origin, pool->is_apart);
  const size_t n = strlen(pool->origin.host) + 1;

  if (known != NULL)
    drop(http, known);
  if (http->closing || !is_possible(http, &pool->origin) ||
      (!pool->has_worked && !pool->has_spoken && pool->n_strikes == 0))
    return;
  known = tnk__malloc(&http->context->alloc, sizeof(*known) + n);
  if (known == NULL)
    return;
  *known = (known_t){.origin = pool->origin,
                     .is_apart = pool->is_apart,
                     .speaks = pool->speaks,
                     .n_strikes = pool->n_strikes,
                     .has_spoken = pool->has_spoken,
                     .is_trial = pool->is_trial,
                     .refuses_http1 = pool->refuses_http1,
                     .http2_ms = pool->http2_ms};
  memcpy(known + 1, pool->origin.host, n);
  known->origin.host = (const char *)(known + 1);
  tnk__list_prepend(&http->known, &known->link);
  bound_known(http);
}

/* Without TLS there is no negotiation. */
static int is_http2(const tnk__pool_t *pool, const tnk__conn_t *conn) {
  const char *chosen = tnk__stream_chosen(conn->stream);

  return conn->is_tls ? chosen != NULL && strcmp(chosen, "h2") == 0
                      : tnk__speak_offer(pool) == TNK__ALPN_HTTP_2;
}

tnk__speaks_t tnk__speak_choose(tnk__pool_t *pool, tnk__conn_t *conn) {
  if (!is_http2(pool, conn) && tnk__speak_offer(pool) == TNK__ALPN_HTTP_2) {
    conn->text = "the server does not support HTTP/2, and the options allow "
                 "nothing else";
    return TNK__SPEAKS_UNKNOWN;
  }
  pool->speaks = is_http2(pool, conn) ? TNK__SPEAKS_HTTP_2 : TNK__SPEAKS_HTTP_1;
  return pool->speaks;
}

/* HTTP/2 works, so earlier strikes are cleared. */
void tnk__speak_opened(tnk__pool_t *pool, const tnk__conn_t *conn) {
  pool->capacity = pool->queue.n_each = tnk__conn_capacity(conn);
  if (!pool->is_apart)
    tnk__lanes_share_polls(pool->http, conn->kind->is_shared);
  if (conn->kind->is_shared) {
    pool->n_strikes = 0;
    pool->has_spoken = 1;
    pool->http2_ms = 0;
  }
}

static int has_spoken(const tnk__pool_t *pool, const tnk__pool_t *sibling) {
  return pool->has_spoken || (sibling != NULL && sibling->has_spoken);
}

/* Choose the version that this number of strikes allows. */
static void turn_to(tnk__pool_t *pool, int n_strikes, int is_trial) {
  pool->n_strikes = n_strikes;
  pool->is_trial = is_trial;
  pool->speaks = guess(pool);
}

void tnk__speak_reconsider(tnk__pool_t *pool) {
  /* A connection on the way has offered HTTP/1.1, which must stay allowed. */
  if (pool->n_strikes >= ENOUGH_STRIKES && pool->http2_ms != 0 &&
      pool->n_connecting == 0 &&
      tnk__context_now_ms(pool->http->context) >= pool->http2_ms)
    turn_to(pool, ENOUGH_STRIKES - 1, 0);
}

int tnk__speak_fell_back(tnk__pool_t *pool, tnk__conn_t *conn) {
  tnk__context_t *context = pool->http->context;
  tnk__pool_t *sibling = sibling_of(pool);
  const int n = conn->refuses_http2;
  const int is_known = pool->http2_ms != 0;

  conn->refuses_http2 = 0;
  if (n == 0 || pool->n_strikes >= ENOUGH_STRIKES)
    return 0;
  /* A server that has spoken HTTP/2 can speak it. A new connection that ends at
   * once then means too many connections, or an accident. */
  if (n < ENOUGH_STRIKES && has_spoken(pool, sibling))
    return 0;
  pool->n_strikes += n;
  if (pool->n_strikes < ENOUGH_STRIKES)
    return 0;
  pool->http2_ms =
      n < ENOUGH_STRIKES ? tnk__context_now_ms(context) + AGAIN_MS : 0;
  turn_to(pool, pool->n_strikes, n <= ENOUGH_STRIKES);
  tnk__lanes_share_polls(pool->http, 0);
  if (sibling != NULL) {
    sibling->http2_ms = pool->http2_ms;
    turn_to(sibling, pool->n_strikes, pool->is_trial);
  }
  tnk__log(&context->logger, is_known ? TNK_LOG_INFO : TNK_LOG_WARN, "http",
           "HTTP/2 with %s port %u does not work: HTTP/1.1 from here on%s%s",
           pool->origin.host, (unsigned)pool->origin.port,
           conn->text != NULL ? "; " : "",
           conn->text != NULL ? conn->text : "");
  return 1;
}

void tnk__speak_worked(tnk__pool_t *pool) {
  tnk__pool_t *sibling = sibling_of(pool);

  if (!pool->is_trial || pool->speaks != TNK__SPEAKS_HTTP_1)
    return;
  pool->is_trial = 0;
  if (sibling != NULL)
    sibling->is_trial = 0;
}

static int has_failed_trial(tnk__pool_t *pool, int err) {
  tnk__pool_t *sibling = sibling_of(pool);

  if (!pool->is_trial || pool->speaks != TNK__SPEAKS_HTTP_1 ||
      (err != TNK_ETLS && err != TNK_ECONN && err != TNK_EPROTO))
    return 0;
  turn_to(pool, 0, 0);
  if (sibling != NULL && sibling->is_trial)
    turn_to(sibling, 0, 0);
  tnk__log(&pool->http->context->logger, TNK_LOG_INFO, "http",
           "HTTP/1.1 with %s port %u does not work either: HTTP/2 again",
           pool->origin.host, (unsigned)pool->origin.port);
  return 1;
}

int tnk__speak_turned(tnk__pool_t *pool, int err) {
  const tnk__pool_t *sibling;

  if (has_failed_trial(pool, err))
    return 1;
  if (!pool->is_apart || pool->has_worked || pool->refuses_http1 ||
      pool->http->version != TNK__HTTP_AUTO ||
      pool->speaks != TNK__SPEAKS_HTTP_1 ||
      (err != TNK_ETLS && err != TNK_ECONN && err != TNK_EPROTO))
    return 0;
  sibling = sibling_of(pool);
  if (sibling == NULL || !sibling->has_worked ||
      sibling->speaks != TNK__SPEAKS_HTTP_2)
    return 0;
  pool->refuses_http1 = 1;
  pool->speaks = TNK__SPEAKS_UNKNOWN;
  return 1;
}

size_t tnk__speak_spare(size_t capacity) {
  return capacity >= 32 ? 4 : capacity / 8;
}

/* Returns whether an open connection will take exchanges again, now or after
 * others end. */
static int has_lasting(const tnk__pool_t *pool) {
  const tnk__list_t *const lists[] = {&pool->idle, &pool->shared, &pool->full};

  for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
    TNK__LIST_FOREACH (node, lists[i]) {
      const tnk__conn_t *conn = tnk__container_of(node, tnk__conn_t, link);
      if (conn->state == TNK__CONN_OPEN && !conn->drains)
        return 1;
    }
  return 0;
}

uint64_t tnk__speak_moved_ms(const tnk__pool_t *pool) {
  const tnk__pool_t *sibling = sibling_of(pool);

  return sibling != NULL && sibling->moved_ms > pool->moved_ms
             ? sibling->moved_ms
             : pool->moved_ms;
}

int tnk__speak_allows_none(const tnk__pool_t *pool) {
  return pool->speaks == TNK__SPEAKS_HTTP_2 && pool->capacity == 0 &&
         has_lasting(pool);
}

/* The number of HTTP/2 connections that the waiting exchanges need. */
static size_t wanted_shared(const tnk__pool_t *pool) {
  const size_t usable = pool->capacity - tnk__speak_spare(pool->capacity);
  const size_t n_open = pool->n_conns - pool->n_connecting;
  const size_t n_ready = tnk__queue_n_ready(&pool->queue);
  size_t max = pool->http->max_http2_connections;
  size_t n;

  /* A server that accepts no stream now may do so later. */
  if (usable == 0)
    return n_ready > 0 && !has_lasting(pool);
  if (pool->queue.n[TNK__RANK_POLL] == pool->queue.n_waiting)
    max = max > SPARE_CONNECTIONS ? max - SPARE_CONNECTIONS : 1;
  max = max > n_open ? max - n_open : 0;
  n = (n_ready + usable - 1) / usable;
  return n < max ? n : max;
}

size_t tnk__speak_wanted(const tnk__pool_t *pool) {
  switch (pool->speaks) {
  case TNK__SPEAKS_HTTP_2:
    return wanted_shared(pool);
  case TNK__SPEAKS_HTTP_1:
    return tnk__queue_n_ready(&pool->queue);
  case TNK__SPEAKS_UNKNOWN:
    break;
  }
  return tnk__queue_n_ready(&pool->queue) > 0;
}

size_t tnk__speak_share(const tnk__pool_t *pool) {
  if (pool->speaks == TNK__SPEAKS_HTTP_1)
    return 1;
  /* The open connections will have capacity for them. */
  if (has_lasting(pool))
    return 0;
  return pool->queue.n_waiting / (pool->n_connecting + 1);
}
