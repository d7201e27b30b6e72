#include "lib/io/http/refused.h"

#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/io/http/exchange.h"
#include "lib/policy/bounds.h"
#include "lib/wire/format/http_read.h"
#include "tnk/error.h"

/* How many new connections may fail under one exchange. */
enum { MAX_REFUSED = 8 };
/* The same for the only connection, to a proxy that has passed requests
 * before. */
enum { MAX_ALONE = 5 };
/* A peer that refuses a connection ends it about one round trip after the
 * request was sent. Connecting took at least one round trip. A later end has
 * another cause, and the exchange must not wait for others because of it. */
enum { AT_ONCE_MS = 50, TRIPS = 2 };

static size_t n_open(const tnk__pool_t *pool) {
  return pool->n_conns - pool->n_connecting;
}

/* Count the other pool of the origin as well, because the limit applies to
 * both. Connections without recent bytes may belong to a server that has
 * stopped, so they do not count. */
static size_t n_working(const tnk__pool_t *pool) {
  const uint64_t now = tnk__context_now_ms(pool->http->context);
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
  const uint64_t now = tnk__context_now_ms(pool->http->context);

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

  tnk__ceiling_refused(&pool->line.ceiling, n_open(pool),
                       tnk__context_now_ms(context),
                       tnk__context_uniform(context));
  if (!pool->has_warned)
    tnk__log(&context->logger, TNK_LOG_WARN, "http",
             "%s:%u: no more than %zu connections are granted; requests wait "
             "for those under way%s%s",
             pool->origin.host, (unsigned)pool->origin.port, n_working(pool),
             text != NULL ? ": " : "", text != NULL ? text : "");
  pool->has_warned = 1;
}
