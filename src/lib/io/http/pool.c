#include "lib/io/http/pool.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/log.h"
#include "lib/io/http/conn.h"
#include "lib/io/http/exchange.h"
#include "lib/io/http/mute.h"
#include "lib/io/http/places.h"
#include "lib/io/http/refused.h"
#include "lib/io/http/room.h"
#include "lib/io/http/silence.h"
#include "lib/io/http/speak.h"
#include "lib/policy/bounds.h"
#include "lib/wire/format/http_write.h"
#include "lib/wire/format/proxy.h"
#include "tnk/error.h"

/*
 * Connections are opened while fewer are connecting than exchanges wait. Each
 * waiting exchange thus has one being opened; the first one that is ready takes
 * the first exchange of the queue. The lanes limit how many exchanges may wait.
 * The pool has a ceiling only where connections are refused. The queue (line.c)
 * then keeps one kind of exchange from blocking another.
 *
 * If a connection fails to open, the first exchange fails with it, unless more
 * connections are being opened than exchanges wait.
 *
 * This file calls nothing outside of this folder, so only its own functions
 * change the lists.
 */

static const tnk__conn_events_t conn_events;

static tnk__pool_t *find(tnk__http_t *http, const tnk__origin_t *origin,
                         int is_apart) {
  TNK__LIST_FOREACH (node, &http->pools) {
    tnk__pool_t *pool = tnk__container_of(node, tnk__pool_t, link);
    if (pool->is_apart == is_apart && tnk__origin_equal(&pool->origin, origin))
      return pool;
  }
  return NULL;
}

/* Find the route of its connections to the origin. */
static int find_way(tnk__pool_t *pool) {
  const tnk__origin_t *origin = &pool->origin;
  const tnk__proxy_t *proxy = tnk__proxies_find(
      pool->http->proxies, origin->host, origin->port, origin->is_tls);
  tnk__buf_t *request = &pool->proxy.request;
  tnk__http_head_t head = {.host = origin->host, .port = origin->port};
  int err = TNK_OK;

  tnk__buf_init(request, &pool->http->context->alloc, TNK__MAX_REQUEST_HEAD);
  if (proxy == NULL)
    return TNK_OK;
  if (proxy->why != NULL)
    return TNK_EPROXY;
  if (origin->is_tls && proxy->kind == TNK__PROXY_HTTP) {
    head.proxy_headers = proxy->headers;
    head.n_proxy_headers = proxy->n_headers;
    err = tnk__http_write_connect(request, &head);
  }
  pool->proxy.via = (tnk__via_t){.host = proxy->at.host,
                                 .port = proxy->at.port,
                                 .name = proxy->at.authority,
                                 .kind = proxy->kind,
                                 .is_tls = proxy->at.is_tls,
                                 .target = origin,
                                 .user = proxy->user,
                                 .password = proxy->password,
                                 .request = request->data,
                                 .request_len = request->len,
                                 .has_credentials = proxy->has_credentials};
  pool->via = &pool->proxy.via;
  return err;
}

static void free_pool(tnk__pool_t *pool) {
  tnk__buf_t *request = &pool->proxy.request;

  tnk__speak_keep(pool);
  tnk__timer_stop(&pool->again);
  tnk__list_remove(&pool->link);
  tnk__wipe(request->data, request->len);
  tnk__buf_deinit(request);
  tnk__free(&pool->http->context->alloc, pool);
}

static int new_pool(tnk__pool_t **out, tnk__http_t *http,
                    const tnk__origin_t *origin, int is_apart) {
  size_t n = strlen(origin->host) + 1;
  tnk__pool_t *pool =
      tnk__malloc(&http->context->alloc, sizeof(tnk__pool_t) + n);
  char *host;
  int err;

  *out = pool;
  if (pool == NULL)
    return TNK_ENOMEM;
  memset(pool, 0, sizeof(*pool));
  host = (char *)(pool + 1);
  memcpy(host, origin->host, n);
  pool->http = http;
  pool->origin = *origin;
  pool->origin.host = host;
  pool->is_apart = is_apart;
  tnk__line_init(&pool->line);
  tnk__list_init(&pool->connecting);
  tnk__list_init(&pool->idle);
  tnk__list_init(&pool->shared);
  tnk__list_init(&pool->full);
  tnk__list_append(&http->pools, &pool->link);
  err = find_way(pool);
  if (err != TNK_OK)
    free_pool(pool);
  else
    tnk__speak_begin(pool);
  return err;
}

/* Call this last after any step that may have removed the last member. */
static void free_if_empty(tnk__pool_t *pool) {
  if (pool->n_exchanges > 0 || !tnk__list_empty(&pool->connecting) ||
      !tnk__list_empty(&pool->idle) || !tnk__list_empty(&pool->shared) ||
      !tnk__list_empty(&pool->full))
    return;
  free_pool(pool);
}

int tnk__pool_join(tnk__http_t *http, const tnk__origin_t *origin,
                   tnk__exchange_t *ex) {
  const int is_apart = tnk__speak_is_apart(http, origin, ex->lane);
  tnk__pool_t *pool = find(http, origin, is_apart);
  int err = pool == NULL ? new_pool(&pool, http, origin, is_apart) : TNK_OK;

  if (err != TNK_OK)
    return err;
  pool->n_exchanges++;
  ex->pool = pool;
  ex->others_moved_ms = &pool->moved_ms;
  return TNK_OK;
}

/* End a member. The caller then checks whether the pool is empty. */
static void settle(tnk__pool_t *pool, tnk__exchange_t *ex, int err, int cause) {
  pool->n_exchanges--;
  ex->pool = NULL;
  tnk__exchange_settle(ex, err, cause);
}

static tnk__conn_t *conn_at(tnk__list_t *node) {
  return tnk__container_of(node, tnk__conn_t, link);
}

static uint64_t now_of(const tnk__pool_t *pool) {
  return tnk__context_now_ms(pool->http->context);
}

int tnk__pool_is_limited(const tnk__pool_t *pool) {
  return tnk__ceiling_is_set(&pool->line.ceiling);
}

/* Requests that the server did not process may be sent again, but only so
 * often. */
enum { MAX_UNSEEN = 3 };

static int repeat_unseen(tnk__pool_t *pool, tnk__exchange_t *ex) {
  if (!ex->is_unseen || ex->n_unseen >= MAX_UNSEEN)
    return 0;
  ex->is_unseen = 0;
  ex->n_unseen++;
  tnk__line_return(&pool->line, ex); /* exchanges behind it arrived later */
  tnk__exchange_wait(ex);
  return 1;
}

/* Decide about an exchange whose connection failed under it. The server may
 * have closed a kept connection long before the failure was noticed. In that
 * case it has not seen the request. If it may have seen the request, only the
 * owner knows whether a repeat does harm. */
static void fail_or_repeat(tnk__pool_t *pool, tnk__exchange_t *ex,
                           int was_reused, int is_open, int err, int cause,
                           const char *text) {
  if (repeat_unseen(pool, ex))
    return;
  if (was_reused && ex->answer == NULL && !ex->replayed &&
      (ex->replayable || !ex->sent) && err != TNK_ENOMEM) {
    ex->replayed = 1;
    tnk__line_join(&pool->line, ex, 1);
    tnk__exchange_wait(ex);
  } else if (!is_open && tnk__refused_by_closing(pool, ex, was_reused, err)) {
    ex->n_refused++;
    ex->replayed |= ex->sent;
    tnk__refused_note(pool, text);
    tnk__line_return(&pool->line, ex);
    tnk__exchange_wait(ex);
  } else {
    tnk__exchange_explain(ex, text);
    settle(pool, ex, err, cause);
  }
}

static void assign(tnk__pool_t *pool, tnk__conn_t *conn, tnk__exchange_t *ex) {
  int was_reused;
  int err;

  ex->state = TNK__EXCHANGE_ACTIVE;
  err = tnk__conn_send(conn, ex);
  if (err == TNK_OK) {
    pool->line.n_on[tnk__line_rank(ex)]++;
    tnk__silence_begin(ex);
  }
  was_reused = tnk__conn_is_reused(conn);
  tnk__places_put(conn);
  if (err != TNK_OK)
    fail_or_repeat(pool, ex, was_reused, 0, err, 0, NULL);
}

/* Close the connection that has been idle longest, of any origin, to make
 * capacity for another. Returns 0 if there is none. */
static int close_one_idle(tnk__http_t *http) {
  tnk__conn_t *oldest = NULL;
  tnk__pool_t *pool;

  TNK__LIST_FOREACH (node, &http->pools) {
    pool = tnk__container_of(node, tnk__pool_t, link);
    if (!tnk__list_empty(&pool->idle)) {
      tnk__conn_t *conn = conn_at(pool->idle.prev);
      if (oldest == NULL || conn->timer.due_ms < oldest->timer.due_ms)
        oldest = conn;
    }
  }
  if (oldest == NULL)
    return 0;
  pool = oldest->pool;
  tnk__places_close(oldest);
  free_if_empty(pool);
  return 1;
}

static int open_conn(tnk__pool_t *pool) {
  tnk__conn_t *conn;
  int err;

  if (pool->http->n_connections >= pool->http->enough)
    close_one_idle(pool->http);
  err = tnk__conn_new(&conn, pool->http, &pool->origin, pool->via,
                      tnk__speak_offer(pool), &conn_events, pool);
  if (err != TNK_OK)
    return err;
  pool->n_conns++;
  tnk__list_append(&pool->connecting, &conn->link);
  pool->n_connecting++;
  return TNK_OK;
}

/* Assign waiting exchanges to connections with capacity. */
static void fill(tnk__pool_t *pool) {
  tnk__exchange_t *ex;
  tnk__conn_t *conn;

  while ((conn = tnk__room_find(pool, 1)) != NULL &&
         (ex = tnk__line_pop(&pool->line, 0, TNK__RANK_POLL)) != NULL)
    assign(pool, conn, ex);
  while (conn == NULL && (conn = tnk__room_find(pool, 0)) != NULL &&
         (ex = tnk__line_pop(&pool->line, 0, TNK__RANK_TRAIN_POLL)) != NULL) {
    assign(pool, conn, ex);
    conn = NULL;
  }
}

/* Open the next shared connection before the capacity is used up. */
static void open_ahead(tnk__pool_t *pool) {
  const size_t enough = pool->capacity / 5;

  if (pool->speaks == TNK__SPEAKS_HTTP_2 && pool->line.n_waiting == 0 &&
      pool->n_connecting == 0 && pool->n_exchanges > 0 &&
      !pool->http->closing && !pool->http->is_starved &&
      !tnk__list_empty(&pool->shared) &&
      pool->n_conns < pool->http->max_http2_connections &&
      pool->n_conns < pool->line.ceiling.max &&
      tnk__room_total(pool, enough) < enough)
    (void)open_conn(pool);
}

/* Whether an exchange needs another connection, and one may be opened. */
static int wants_conn(tnk__pool_t *pool) {
  tnk__ceiling_t *ceiling = &pool->line.ceiling;

  if (pool->http->is_starved || pool->n_connecting >= tnk__speak_wanted(pool) ||
      !tnk__mute_may_try(pool))
    return 0;
  return pool->n_conns < ceiling->max ||
         pool->n_conns < tnk__ceiling_max(ceiling, now_of(pool));
}

/* Abandoning a poll costs the server nothing; it is sent again in its turn. The
 * latest polls go first. */
static void give_up_polls(tnk__pool_t *pool, size_t n, uint64_t held_ms) {
  tnk__list_t *node = pool->full.prev;

  while (n > 0 && node != &pool->full && pool->line.n_each == 1) {
    tnk__conn_t *conn = conn_at(node);
    tnk__exchange_t *ex = tnk__conn_first(conn);

    node = node->prev;
    if (ex == NULL || tnk__line_rank(ex) != TNK__RANK_POLL ||
        ex->answer != NULL || now_of(pool) - ex->phase_ms < held_ms)
      continue;
    tnk__places_take_off(ex);
    tnk__line_join(&pool->line, ex, 0);
    /* The time of the wait does not restart, or turns could repeat without an
     * end. */
    tnk__silence_wait_on(ex);
    n--;
  }
}

static void on_again(tnk__timer_t *timer);

/* A timer checks exchanges that wait for others, because none of the others may
 * end for a long time. */
static void look_again(tnk__pool_t *pool, uint64_t ms) {
  tnk__context_t *context = pool->http->context;

  if (pool->line.n_waiting == 0 || !tnk__pool_is_limited(pool))
    tnk__timer_stop(&pool->again);
  else if (pool->line.n_foreground > 0)
    tnk__timer_start(context, &pool->again, ms, on_again);
  else
    tnk__timer_start_background(context, &pool->again, ms, on_again);
}

/* Assign exchanges to connections, and open connections. */
static void serve(tnk__pool_t *pool) {
  fill(pool);
  if (pool->n_connecting == 0)
    give_up_polls(pool, tnk__line_n_excess(&pool->line), 0);
  while (wants_conn(pool)) {
    int err = open_conn(pool);
    if (err != TNK_OK)
      settle(pool, tnk__line_pop_any(&pool->line), err, 0);
  }
  open_ahead(pool);
  if (tnk__pool_is_limited(pool) && !tnk__timer_is_active(&pool->again))
    look_again(pool, tnk__line_look_ms(&pool->line, now_of(pool)));
}

static void on_again(tnk__timer_t *timer) {
  tnk__pool_t *pool = tnk__container_of(timer, tnk__pool_t, again);

  give_up_polls(pool, pool->line.n[TNK__RANK_POLL], TNK__TURN_MS);
  serve(pool);
  free_if_empty(pool);
}

void tnk__pool_run(tnk__exchange_t *ex) {
  tnk__pool_t *pool = ex->pool;

  ex->since_ms = (uint32_t)now_of(pool);
  tnk__line_join(&pool->line, ex, ex->wants_fresh);
  serve(pool);
  free_if_empty(pool);
}

/* libuv always waits for a connection that is being opened. Once the last
 * exchange that keeps uv_run() running has left, connections opened for such
 * exchanges are closed. */
static void close_surplus(tnk__pool_t *pool) {
  while (pool->line.n_foreground == 0 &&
         pool->n_connecting > pool->line.n_waiting) {
    tnk__places_close(conn_at(pool->connecting.prev));
    pool->n_connecting--;
  }
}

void tnk__pool_leave(tnk__exchange_t *ex) {
  tnk__pool_t *pool = ex->pool;
  tnk__conn_t *conn = ex->conn;

  if (pool == NULL)
    return;
  if (ex->state == TNK__EXCHANGE_WAITING) {
    tnk__line_leave(&pool->line, ex);
    close_surplus(pool);
  }
  tnk__list_remove(&ex->link);
  pool->n_exchanges--;
  ex->pool = NULL;
  if (conn != NULL) {
    tnk__conn_abort(conn, ex);
    tnk__places_left(pool, ex);
    tnk__places_put(conn);
  }
  look_again(pool, 0); /* capacity may be free */
  free_if_empty(pool);
}

int tnk__pool_rescue(tnk__exchange_t *ex) {
  tnk__pool_t *pool = ex->pool;

  if (!tnk__mute_is_waiting(ex))
    return 0;
  tnk__mute_bring_back(ex);
  serve(pool);
  return 1; /* it is still a member of the pool */
}

void tnk__pool_retry(tnk__pool_t *pool) {
  serve(pool);
  free_if_empty(pool);
}

/* Close all connections of a list and settle the exchanges on them. */
static void close_conns(tnk__pool_t *pool, tnk__list_t *list, int err) {
  tnk__exchange_t *ex;
  tnk__list_t *node;

  while ((node = tnk__list_first(list)) != NULL) {
    while ((ex = tnk__conn_first(conn_at(node))) != NULL) {
      tnk__conn_abort(conn_at(node), ex);
      tnk__places_left(pool, ex);
      settle(pool, ex, err, 0);
    }
    tnk__places_close(conn_at(node));
  }
}

void tnk__pool_close(tnk__pool_t *pool, int err) {
  tnk__exchange_t *ex;

  while ((ex = tnk__line_pop_any(&pool->line)) != NULL)
    settle(pool, ex, err, 0);
  close_conns(pool, &pool->full, err);
  close_conns(pool, &pool->shared, err);
  close_conns(pool, &pool->connecting, err);
  close_conns(pool, &pool->idle, err);
  pool->n_connecting = 0;
  free_if_empty(pool);
}

/* Events of connections. */

static const tnk__conn_kind_t *on_connect(tnk__conn_t *conn) {
  conn->pool->tls_version = tnk__stream_tls_version(conn->stream);
  return tnk__speak_choose(conn->pool, conn);
}

static void on_open(tnk__conn_t *conn) {
  tnk__pool_t *pool = conn->pool;
  tnk__exchange_t *ex;

  pool->n_connecting--;
  pool->alive_ms = now_of(pool);
  pool->connect_ms = pool->alive_ms - conn->began_ms;
  conn->is_mute = !conn->kind->is_shared;
  pool->n_mute += conn->is_mute != 0;
  tnk__speak_opened(pool, conn);
  tnk__conn_hold(conn);
  tnk__places_put(conn);
  while (tnk__conn_room(conn) > 0 &&
         (ex = tnk__line_pop(&pool->line, 1, tnk__room_rank(conn))) != NULL)
    assign(pool, conn, ex);
  (void)tnk__conn_release(conn);
  serve(pool);
  free_if_empty(pool);
}

static void on_room(tnk__conn_t *conn) {
  tnk__pool_t *pool = conn->pool;

  (void)tnk__speak_fell_back(pool, conn);
  if (!conn->drains)
    pool->capacity = pool->line.n_each = tnk__conn_capacity(conn);
  tnk__places_put(conn);
  serve(pool);
  free_if_empty(pool);
}

static size_t n_active(const tnk__http_t *http) {
  size_t n = 0;

  for (int i = 0; i < TNK__N_LANES; i++)
    n += http->lanes[i].n_in_flight;
  TNK__LIST_FOREACH (node, &http->pools) {
    n -= tnk__container_of(node, tnk__pool_t, link)->line.n_waiting;
  }
  return n;
}

/* The lanes keep within the limit of descriptors, but the rest of the program
 * may need more than was left to it. Closing an idle connection frees one.
 * Otherwise the exchange waits until others end. */
static int can_wait(tnk__http_t *http, int cause) {
  if (cause != UV_EMFILE && cause != UV_ENFILE)
    return 0;
  if (!http->has_warned)
    tnk__log(&http->context->logger, TNK_LOG_WARN, "http",
             "the process is out of descriptors: requests wait for those that "
             "are under way; raise the limit (ulimit -n)");
  http->has_warned = 1;
  if (close_one_idle(http))
    return 1;
  http->is_starved = n_active(http) > 0;
  return http->is_starved;
}

/* A connection could not be opened, and too few others are being opened. Fail
 * the waiting exchanges: one over HTTP/1.1, or the share of one connection over
 * HTTP/2. */
static void fail_waiting(tnk__pool_t *pool, int err, int cause,
                         const char *text, uint8_t is_final) {
  size_t n = tnk__speak_share(pool);

  for (; n > 0 && pool->line.n_waiting > 0; n--) {
    tnk__exchange_t *ex = tnk__line_pop_any(&pool->line);
    ex->is_final = is_final;
    tnk__exchange_explain(ex, text);
    settle(pool, ex, err, cause);
  }
}

static void on_fail(tnk__conn_t *conn, int err, int cause) {
  tnk__pool_t *pool = conn->pool;
  const char *text = conn->text;
  const uint8_t is_final = conn->is_final;
  const int is_other = tnk__speak_fell_back(pool, conn) ||
                       ((conn->kind == NULL || !conn->kind->is_shared) &&
                        tnk__speak_turned(pool, err));

  tnk__places_close(conn);
  pool->n_connecting--;
  /* If no exchange needs the connection, no capacity is needed. Only a waiting
   * exchange keeps the pool alive; can_wait() may close its last idle
   * connection. */
  if (pool->line.n_waiting > pool->n_connecting && !is_other &&
      !can_wait(pool->http, cause)) {
    if (tnk__refused_by_failing(pool, err)) {
      tnk__refused_note(pool, text);
    } else {
      tnk__ceiling_init(&pool->line.ceiling); /* no connection works */
      pool->lets_wait = 0;
      fail_waiting(pool, err, cause, text, is_final);
    }
  }
  serve(pool);
  free_if_empty(pool);
}

static void on_end(tnk__conn_t *conn) {
  tnk__pool_t *pool = conn->pool;

  (void)tnk__speak_fell_back(pool, conn);
  tnk__places_close(conn);
  /* The server may have accepted no stream on it, so exchanges may wait. */
  serve(pool);
  free_if_empty(pool);
}

/* Return an exchange to the queue after the proxy's 403. The proxy has passed
 * nothing on. */
static void repeat_denied(tnk__pool_t *pool, tnk__exchange_t *ex) {
  tnk__exchange_forget_answer(ex);
  ex->sent = 0;
  if (pool->n_conns > 0)
    ex->n_refused++;
  else
    ex->n_unseen++;
  tnk__refused_note(pool, "HTTP 403 of the proxy");
  tnk__line_return(&pool->line, ex);
  tnk__exchange_wait(ex);
}

/* Handle a failure over HTTP/1.1 of a server that may speak only HTTP/2. Such a
 * server has not understood the request. */
static void note_failure(tnk__pool_t *pool, tnk__exchange_t *ex, int err) {
  const int was_trial = pool->is_trial;

  if (ex->answer != NULL && ex->answer->status != 0)
    return;
  if (!tnk__speak_turned(pool, err) || !was_trial || err != TNK_EPROTO)
    return;
  tnk__exchange_forget_answer(ex);
  ex->is_unseen = 1;
}

static void note_answer(tnk__pool_t *pool) {
  pool->has_worked = 1;
  pool->moved_ms = now_of(pool);
  tnk__speak_worked(pool);
}

static void on_result(tnk__conn_t *conn, tnk__exchange_t *ex, int err,
                      int cause) {
  tnk__pool_t *pool = conn->pool;
  /* If the connection is still open, the server ended only this request. */
  const int was_reused =
      tnk__conn_is_reused(conn) && conn->state == TNK__CONN_ENDED;
  const int is_open = conn->state == TNK__CONN_OPEN;
  const int is_denied =
      err == TNK_OK && conn->is_denied && tnk__refused_by_proxy(pool, ex);
  const char *text = conn->text;

  (void)tnk__speak_fell_back(pool, conn);
  tnk__mute_note(conn, ex);
  if (err != TNK_OK && !conn->kind->is_shared)
    note_failure(pool, ex, err);
  else if (err == TNK_OK && !is_denied)
    note_answer(pool);
  tnk__places_left(pool, ex);
  tnk__places_put(conn);
  if (err == TNK_OK && tnk__refused_by_answer(pool, ex, was_reused, is_open))
    tnk__refused_note(pool, "HTTP 503 on a new one");
  if (is_denied)
    repeat_denied(pool, ex);
  else if (err == TNK_OK)
    settle(pool, ex, TNK_OK, 0);
  else
    fail_or_repeat(pool, ex, was_reused, is_open, err, cause, text);
  serve(pool);
  free_if_empty(pool);
}

static const tnk__conn_events_t conn_events = {
    .on_connect = on_connect,
    .on_room = on_room,
    .on_open = on_open,
    .on_fail = on_fail,
    .on_end = on_end,
    .on_result = on_result,
};
