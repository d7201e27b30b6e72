/* SPDX-License-Identifier: MIT */
#include "lib/io/http/refused.h"

#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/io/http/exchange.h"
#include "lib/policy/bounds.h"
#include "lib/wire/format/http_read.h"
#include "tnk/error.h"

/* Maximum of new connections that may fail under one exchange. */
enum { MAX_REFUSED = 8 };
/* The same for the only connection, to a proxy that has passed requests
 * before. */
enum { MAX_ALONE = 5 };
/* A peer that refuses a connection ends it about one round trip after the
 * request was sent. Connecting took at least one round trip. A later end has
 * another cause, and the exchange must not wait for others because of it. */
enum { AT_ONCE_MS = 50, TRIPS = 2 };

static uint64_t now_of(const tnk__pool_t *pool) {
  return tnk__context_now_ms(pool->http->context);
}

/* ---- Refused connections ---- */

static size_t n_open(const tnk__pool_t *pool) {
  return pool->n_conns - pool->n_connecting;
}

/* Count the other pool of the origin as well, because the limit applies to
 * both. Connections without recent bytes may belong to a server that has
 * stopped, so they do not count. */
static size_t n_working(const tnk__pool_t *pool) {
  const uint64_t now = now_of(pool);
  size_t n = 0;

  TNK__LIST_FOREACH (node, &pool->http->pools) {
    const tnk__pool_t *other = tnk__container_of(node, tnk__pool_t, link);
    if (tnk__origin_equal(&other->origin, &pool->origin) &&
        now - other->alive_ms <= TNK__WORKING_MS)
      n += n_open(other);
  }
  return n;
}

int tnk__refused_by_failing(const tnk__pool_t *pool, int err) {
  return (err == TNK_ECONN || err == TNK_EPROXY || err == TNK_ETIMEDOUT) &&
         n_working(pool) > 0;
}

static int came_at_once(const tnk__pool_t *pool, const tnk__exchange_t *ex) {
  const uint64_t now = now_of(pool);

  return now - ex->moved_ms <= AT_ONCE_MS + TRIPS * pool->connect_ms;
}

int tnk__refused_by_closing(const tnk__pool_t *pool, const tnk__exchange_t *ex,
                            int was_reused, int err) {
  return !was_reused && !ex->wants_fresh &&
         (!ex->replayed || ex->n_refused > 0) && err == TNK_ECONN &&
         ex->answer == NULL && (ex->replayable || !ex->sent) &&
         ex->n_refused < MAX_REFUSED && n_working(pool) > 0 &&
         came_at_once(pool, ex);
}

int tnk__refused_by_answer(const tnk__pool_t *pool, const tnk__exchange_t *ex,
                           int was_reused, int is_open) {
  return !was_reused && !is_open && ex->answer != NULL &&
         ex->answer->status == 503 && n_working(pool) > 0;
}

int tnk__refused_by_proxy(const tnk__pool_t *pool, const tnk__exchange_t *ex) {
  /* The proxy may still count recently closed connections. */
  return pool->has_worked && (pool->n_conns > 1 ? ex->n_refused < MAX_REFUSED
                                                : ex->n_unseen < MAX_ALONE);
}

void tnk__refused_note(tnk__pool_t *pool, const char *text) {
  tnk__context_t *context = pool->http->context;

  tnk__ceiling_refused(&pool->queue.ceiling, n_open(pool),
                       tnk__context_now_ms(context),
                       tnk__context_uniform(context));
  if (!pool->has_warned)
    tnk__log(&context->logger, TNK_LOG_WARN, "http",
             "%s:%u: at most %zu connections are possible; requests wait for "
             "these%s%s",
             pool->origin.host, (unsigned)pool->origin.port, n_working(pool),
             text != NULL ? ": " : "", text != NULL ? text : "");
  pool->has_warned = 1;
}

/* ---- Unresponsive connections ---- */

/* Maximum of returns of one exchange to the queue. */
enum { MAX_BACK = 8 };

/* Returns when its request was written. */
static uint64_t written_ms(const tnk__exchange_t *ex) {
  return ex->has_head ? ex->phase_ms - ex->took_ms : ex->phase_ms;
}

void tnk__mute_note(tnk__conn_t *conn, const tnk__exchange_t *ex) {
  tnk__pool_t *pool = conn->pool;

  if (ex->answer == NULL || conn->kind->is_shared)
    return;
  pool->n_mute -= conn->is_mute != 0;
  conn->is_mute = 0;
  if (conn->number > pool->last_served)
    pool->last_served = conn->number;
  if (written_ms(ex) > pool->heard_ms)
    pool->heard_ms = written_ms(ex);
  if (ex->lane == TNK__LANE_SAMPLE && written_ms(ex) > pool->answered_ms)
    pool->answered_ms = written_ms(ex);
}

static int lets_wait(const tnk__pool_t *pool) {
  return pool->lets_wait && tnk__ceiling_is_set(&pool->queue.ceiling);
}

/* Abandoning a poll costs nothing, but a poll is silent for long by design. It
 * is moved only where connections are known to be unresponsive. Repeating a
 * short request costs little, unless the request is large. A generation must
 * not be repeated, because it would run twice. */
static int may_go(const tnk__pool_t *pool, const tnk__exchange_t *ex) {
  if ((ex->sent && !ex->replayable) || ex->is_long)
    return 0;
  return ex->lane == TNK__LANE_SAMPLE ||
         (tnk__exchange_size(ex) < TNK__MIN_UPLOAD &&
          (lets_wait(pool) || tnk__queue_rank(ex) == TNK__RANK_SHORT));
}

int tnk__mute_may_follow(const tnk__exchange_t *ex) {
  return may_go(ex->pool, ex) || ex->is_long ||
         tnk__queue_rank(ex) != TNK__RANK_SHORT;
}

int tnk__mute_has(const tnk__exchange_t *ex) {
  const tnk__conn_t *conn = ex->conn;

  return conn != NULL && conn->is_mute && ex->answer == NULL &&
         conn->number > ex->pool->last_served;
}

static int may_be(const tnk__exchange_t *ex) {
  return tnk__mute_has(ex) && may_go(ex->pool, ex);
}

/* Returns how long it must be silent. Every server accepts a sample quickly,
 * but it may need time to accept a training operation or to answer a query. */
static uint64_t limit_ms(const tnk__exchange_t *ex) {
  return ex->lane == TNK__LANE_SAMPLE || lets_wait(ex->pool)
             ? TNK__UNSERVED_MS
             : TNK__UNSERVED_LONG_MS;
}

uint64_t tnk__mute_look_ms(const tnk__exchange_t *ex) {
  uint64_t silent_ms;

  if (!may_be(ex))
    return 0;
  silent_ms = now_of(ex->pool) - ex->moved_ms;
  return silent_ms < limit_ms(ex) ? limit_ms(ex) - silent_ms
                                  : TNK__UNSERVED_AGAIN_MS;
}

/* Returns whether a request that was written later got its response on another
 * connection. A sample is compared only with samples, because other requests
 * may get a response sooner. */
static int was_overtaken(const tnk__exchange_t *ex) {
  const tnk__pool_t *pool = ex->pool;

  if (ex->lane == TNK__LANE_SAMPLE)
    return pool->answered_ms >= ex->moved_ms;
  return tnk__queue_rank(ex) != TNK__RANK_SHORT ||
         pool->heard_ms > ex->moved_ms;
}

int tnk__mute_is_waiting(const tnk__exchange_t *ex) {
  const tnk__pool_t *pool = ex->pool;

  return may_be(ex) && !tnk__conn_is_sending(ex) &&
         now_of(ex->pool) - ex->moved_ms >= limit_ms(ex) &&
         ex->n_refused < MAX_BACK &&
         pool->n_conns > pool->n_connecting + pool->n_mute && was_overtaken(ex);
}

int tnk__mute_may_try(const tnk__pool_t *pool) {
  return !lets_wait(pool) || pool->n_mute + pool->n_connecting == 0;
}
