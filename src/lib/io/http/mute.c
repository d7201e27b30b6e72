#include "lib/io/http/mute.h"

#include "lib/base/alloc.h"
#include "lib/io/http/exchange.h"
#include "lib/io/http/places.h"
#include "lib/io/http/refused.h"
#include "lib/policy/bounds.h"

/* How often one exchange may be returned to the queue. */
enum { MAX_BACK = 8 };

static uint64_t now_of(const tnk__exchange_t *ex) {
  return tnk__context_now_ms(ex->http->context);
}

/* When its request was written. */
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
  return pool->lets_wait && tnk__ceiling_is_set(&pool->line.ceiling);
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
          (lets_wait(pool) || tnk__line_rank(ex) == TNK__RANK_SHORT));
}

int tnk__mute_has(const tnk__exchange_t *ex) {
  const tnk__conn_t *conn = ex->conn;

  return conn != NULL && conn->is_mute && ex->answer == NULL &&
         conn->number > ex->pool->last_served;
}

static int may_be(const tnk__exchange_t *ex) {
  return tnk__mute_has(ex) && may_go(ex->pool, ex);
}

/* How long it must be silent. Every server accepts a sample quickly, but it may
 * need time to accept a training operation or to answer a query. */
static uint64_t limit_ms(const tnk__exchange_t *ex) {
  return ex->lane == TNK__LANE_SAMPLE || lets_wait(ex->pool)
             ? TNK__UNSERVED_MS
             : TNK__UNSERVED_LONG_MS;
}

uint64_t tnk__mute_look_ms(const tnk__exchange_t *ex) {
  uint64_t silent_ms;

  if (!may_be(ex))
    return 0;
  silent_ms = now_of(ex) - ex->moved_ms;
  return silent_ms < limit_ms(ex) ? limit_ms(ex) - silent_ms
                                  : TNK__UNSERVED_AGAIN_MS;
}

/* Whether a request that was written later got its response on another
 * connection. A sample is compared only with samples, because other requests
 * may get a response sooner. */
static int was_overtaken(const tnk__exchange_t *ex) {
  const tnk__pool_t *pool = ex->pool;

  if (ex->lane == TNK__LANE_SAMPLE)
    return pool->answered_ms >= ex->moved_ms;
  return tnk__line_rank(ex) != TNK__RANK_SHORT || pool->heard_ms > ex->moved_ms;
}

int tnk__mute_is_waiting(const tnk__exchange_t *ex) {
  const tnk__pool_t *pool = ex->pool;

  return may_be(ex) && !tnk__conn_is_sending(ex) &&
         now_of(ex) - ex->moved_ms >= limit_ms(ex) &&
         ex->n_refused < MAX_BACK &&
         pool->n_conns > pool->n_connecting + pool->n_mute && was_overtaken(ex);
}

static tnk__conn_t *conn_at(tnk__list_t *node) {
  return tnk__container_of(node, tnk__conn_t, link);
}

static void bring_back(tnk__pool_t *pool, tnk__exchange_t *ex) {
  tnk__places_take_off(ex);
  if (tnk__line_rank(ex) == TNK__RANK_SHORT) {
    ex->n_refused++;
    ex->replayed |= ex->sent;
  }
  tnk__line_return(&pool->line, ex);
  tnk__exchange_wait(ex);
}

/* From the latest to the oldest, so that the oldest becomes the first in the
 * queue. */
static void bring_back_all(tnk__pool_t *pool, uint64_t number) {
  tnk__list_t *node = pool->full.prev;

  while (node != &pool->full) {
    tnk__conn_t *conn = conn_at(node);
    tnk__exchange_t *ex = tnk__conn_first(conn);

    node = node->prev;
    if (conn->is_mute && conn->number >= number && ex != NULL &&
        ex->answer == NULL &&
        (may_go(pool, ex) || ex->is_long ||
         tnk__line_rank(ex) != TNK__RANK_SHORT))
      bring_back(pool, ex);
  }
}

/* Unused connections would not be served either. */
static void close_unused(tnk__pool_t *pool) {
  TNK__LIST_FOREACH_SAFE (node, next, &pool->idle)
    if (conn_at(node)->is_mute)
      tnk__places_close(conn_at(node));
  while (!tnk__list_empty(&pool->connecting)) {
    tnk__places_close(conn_at(pool->connecting.prev));
    pool->n_connecting--;
  }
}

void tnk__mute_bring_back(const tnk__exchange_t *ex) {
  tnk__pool_t *pool = ex->pool;

  pool->lets_wait = 1;
  bring_back_all(pool, ex->conn->number);
  close_unused(pool);
  tnk__refused_note(pool, "more are accepted, and not served");
}

int tnk__mute_may_try(const tnk__pool_t *pool) {
  return !lets_wait(pool) || pool->n_mute + pool->n_connecting == 0;
}
