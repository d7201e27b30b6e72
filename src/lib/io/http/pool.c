/* SPDX-License-Identifier: MIT */
#include "lib/io/http/pool.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/log.h"
#include "lib/io/http/conn.h"
#include "lib/io/http/exchange.h"
#include "lib/io/http/refused.h"
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
 * The pool has a ceiling only where connections are refused. The queue
 * (queue.c) then keeps one kind of exchange from blocking another.
 *
 * If a connection fails to open, the first exchange fails with it, unless more
 * connections are being opened than exchanges wait.
 *
 * The pool also runs the timeouts of the exchanges that have a slot. silence.c
 * decides about them, and refused.c recognizes connections that a peer refuses
 * or does not serve.
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
  tnk__queue_init(&pool->queue);
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

/* ---- Connections of the pool ---- */

/* Close a connection without exchanges. */
static void close_conn(tnk__conn_t *conn) {
  conn->pool->n_conns--;
  conn->pool->n_mute -= conn->is_mute != 0;
  tnk__conn_close(conn);
}

/* Move a connection to the list that fits its state. An ended connection is
 * closed once no exchange is on it. */
static void put(tnk__conn_t *conn) {
  tnk__pool_t *pool = conn->pool;

  if (conn->state == TNK__CONN_ENDED && conn->n_on == 0) {
    close_conn(conn);
    return;
  }
  tnk__list_remove(&conn->link);
  if (tnk__conn_room(conn) == 0)
    tnk__list_append(&pool->full, &conn->link);
  else if (conn->n_on > 0)
    tnk__list_append(&pool->shared, &conn->link);
  else
    tnk__list_prepend(&pool->idle, &conn->link);
}

/* Count an exchange that has left its connection. */
static void count_left(tnk__pool_t *pool, const tnk__exchange_t *ex) {
  pool->queue.n_on[tnk__queue_rank(ex)]--;
}

/* Take an exchange off its connection, which may be closed as a result. */
static void take_off(tnk__exchange_t *ex) {
  tnk__conn_t *conn = ex->conn;

  tnk__conn_abort(conn, ex);
  count_left(conn->pool, ex);
  put(conn);
}

/* Find a connection with capacity, or NULL. Used connections are preferred, so
 * that others can become idle and close. Polls leave some capacity to other
 * requests. */
static tnk__conn_t *find_room(const tnk__pool_t *pool, int is_poll) {
  const tnk__list_t *const lists[] = {&pool->shared, &pool->idle};

  for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
    TNK__LIST_FOREACH (node, lists[i]) {
      tnk__conn_t *conn = conn_at(node);
      const size_t spare =
          is_poll ? tnk__speak_spare(tnk__conn_capacity(conn)) : 0;
      if (tnk__conn_room(conn) > spare)
        return conn;
    }
  return NULL;
}

/* The last rank that may use this connection, which has capacity. */
static tnk__rank_t last_rank(const tnk__conn_t *conn) {
  return tnk__conn_room(conn) > tnk__speak_spare(tnk__conn_capacity(conn))
             ? TNK__RANK_POLL
             : TNK__RANK_TRAIN_POLL;
}

/* Returns how many more exchanges fit on the open connections. Counting stops
 * at `enough`. */
static size_t total_room(const tnk__pool_t *pool, size_t enough) {
  const tnk__list_t *const lists[] = {&pool->idle, &pool->shared};
  size_t n = 0;

  for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
    TNK__LIST_FOREACH (node, lists[i]) {
      n += tnk__conn_room(conn_at(node));
      if (n >= enough)
        return n;
    }
  return n;
}

/* ---- Timeouts ---- */

static void on_timeout(tnk__timer_t *timer);

/* Check an exchange after `after_ms`. */
static void look_in(tnk__exchange_t *ex, uint64_t after_ms) {
  if (ex->timeout_ms == 0)
    return;
  if (ex->background)
    tnk__timer_start_background(ex->http->context, &ex->timer, after_ms,
                                on_timeout);
  else
    tnk__timer_start(ex->http->context, &ex->timer, after_ms, on_timeout);
}

/* The connection may turn out to be unresponsive, which is checked sooner. */
static uint64_t soon(const tnk__exchange_t *ex, uint64_t ms) {
  const uint64_t mute_ms = tnk__mute_look_ms(ex);

  return mute_ms > 0 && mute_ms < ms ? mute_ms : ms;
}

/* Restart the timeout of an exchange on a connection. It is checked after
 * `after_ms`. */
static void arm(tnk__exchange_t *ex, uint64_t after_ms) {
  ex->moved_ms = ex->phase_ms = tnk__context_now_ms(ex->http->context);
  ex->n_seen = 0;
  look_in(ex, after_ms);
}

static void begin_timeout(tnk__exchange_t *ex) {
  const uint64_t ms = tnk__silence_first_ms(ex);

  arm(ex, ms);
  if (soon(ex, ms) < ms)
    look_in(ex, soon(ex, ms));
}

/* Begin to wait for a connection, with the full timeout. */
static void begin_wait(tnk__exchange_t *ex) {
  ex->since_ms = (uint32_t)tnk__context_now_ms(ex->http->context);
  look_in(ex, ex->timeout_ms);
}

/* ---- Assigning ---- */

/* Requests that the server did not process may be sent again, but only so
 * often. */
enum { MAX_UNSEEN = 3 };

static int repeat_unseen(tnk__pool_t *pool, tnk__exchange_t *ex) {
  if (!ex->is_unseen || ex->n_unseen >= MAX_UNSEEN)
    return 0;
  ex->is_unseen = 0;
  ex->n_unseen++;
  tnk__queue_return(&pool->queue, ex); /* exchanges behind it arrived later */
  begin_wait(ex);
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
    tnk__queue_join(&pool->queue, ex, 1);
    begin_wait(ex);
  } else if (!is_open && tnk__refused_by_closing(pool, ex, was_reused, err)) {
    ex->n_refused++;
    ex->replayed |= ex->sent;
    tnk__refused_note(pool, text);
    tnk__queue_return(&pool->queue, ex);
    begin_wait(ex);
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
    pool->queue.n_on[tnk__queue_rank(ex)]++;
    begin_timeout(ex);
  }
  was_reused = tnk__conn_is_reused(conn);
  put(conn);
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
  close_conn(oldest);
  free_if_empty(pool);
  return 1;
}

static int open_conn(tnk__pool_t *pool) {
  tnk__conn_t *conn;
  int err;

  if (pool->http->n_connections >= pool->http->enough)
    close_one_idle(pool->http);
  tnk__speak_reconsider(pool);
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

  while ((conn = find_room(pool, 1)) != NULL &&
         (ex = tnk__queue_pop(&pool->queue, 0, TNK__RANK_POLL)) != NULL)
    assign(pool, conn, ex);
  while (conn == NULL && (conn = find_room(pool, 0)) != NULL &&
         (ex = tnk__queue_pop(&pool->queue, 0, TNK__RANK_TRAIN_POLL)) != NULL) {
    assign(pool, conn, ex);
    conn = NULL;
  }
}

/* Open the next shared connection before the capacity is used up. */
static void open_ahead(tnk__pool_t *pool) {
  const size_t enough = pool->capacity / 5;

  if (pool->speaks == TNK__SPEAKS_HTTP_2 && pool->queue.n_waiting == 0 &&
      pool->n_connecting == 0 && pool->n_exchanges > 0 &&
      !pool->http->closing && !pool->http->is_starved &&
      !tnk__list_empty(&pool->shared) &&
      pool->n_conns < pool->http->max_http2_connections &&
      pool->n_conns < pool->queue.ceiling.max &&
      total_room(pool, enough) < enough)
    (void)open_conn(pool);
}

/* Returns whether an exchange needs another connection, and one may be opened.
 */
static int wants_conn(tnk__pool_t *pool) {
  tnk__ceiling_t *ceiling = &pool->queue.ceiling;

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

  while (n > 0 && node != &pool->full && pool->queue.n_each == 1) {
    tnk__conn_t *conn = conn_at(node);
    tnk__exchange_t *ex = tnk__conn_first(conn);

    node = node->prev;
    if (ex == NULL || tnk__queue_rank(ex) != TNK__RANK_POLL ||
        ex->answer != NULL || now_of(pool) - ex->phase_ms < held_ms)
      continue;
    take_off(ex);
    tnk__queue_join(&pool->queue, ex, 0);
    /* The time of the wait does not restart, or turns could repeat without an
     * end. */
    look_in(ex, tnk__silence_wait_left_ms(ex));
    n--;
  }
}

static void on_again(tnk__timer_t *timer);

/* A timer checks exchanges that wait for others, because none of the others may
 * end for a long time. */
static void look_again(tnk__pool_t *pool, uint64_t ms) {
  tnk__context_t *context = pool->http->context;

  if (pool->queue.n_waiting == 0 || !tnk__queue_is_limited(&pool->queue))
    tnk__timer_stop(&pool->again);
  else if (pool->queue.n_foreground > 0)
    tnk__timer_start(context, &pool->again, ms, on_again);
  else
    tnk__timer_start_background(context, &pool->again, ms, on_again);
}

/* Assign exchanges to connections, and open connections. */
static void serve(tnk__pool_t *pool) {
  fill(pool);
  if (pool->n_connecting == 0)
    give_up_polls(pool, tnk__queue_n_excess(&pool->queue), 0);
  while (wants_conn(pool)) {
    int err = open_conn(pool);
    if (err != TNK_OK)
      settle(pool, tnk__queue_pop_any(&pool->queue), err, 0);
  }
  open_ahead(pool);
  if (tnk__queue_is_limited(&pool->queue) &&
      !tnk__timer_is_active(&pool->again))
    look_again(pool, tnk__queue_look_ms(&pool->queue, now_of(pool)));
}

static void on_again(tnk__timer_t *timer) {
  tnk__pool_t *pool = tnk__container_of(timer, tnk__pool_t, again);

  give_up_polls(pool, pool->queue.n[TNK__RANK_POLL], TNK__TURN_MS);
  serve(pool);
  free_if_empty(pool);
}

void tnk__pool_run(tnk__exchange_t *ex) {
  tnk__pool_t *pool = ex->pool;

  ex->since_ms = (uint32_t)now_of(pool);
  tnk__queue_join(&pool->queue, ex, ex->wants_fresh);
  serve(pool);
  /* If it already has a connection, its timeout is running. */
  if (ex->state == TNK__EXCHANGE_WAITING)
    look_in(ex, tnk__silence_wait_left_ms(ex));
  free_if_empty(pool);
}

/* libuv always waits for a connection that is being opened. Once the last
 * exchange that keeps uv_run() running has left, connections opened for such
 * exchanges are closed. */
static void close_surplus(tnk__pool_t *pool) {
  while (pool->queue.n_foreground == 0 &&
         pool->n_connecting > pool->queue.n_waiting) {
    close_conn(conn_at(pool->connecting.prev));
    pool->n_connecting--;
  }
}

void tnk__pool_leave(tnk__exchange_t *ex) {
  tnk__pool_t *pool = ex->pool;
  tnk__conn_t *conn = ex->conn;

  if (pool == NULL)
    return;
  if (ex->state == TNK__EXCHANGE_WAITING) {
    tnk__queue_leave(&pool->queue, ex);
    close_surplus(pool);
  }
  tnk__list_remove(&ex->link);
  pool->n_exchanges--;
  ex->pool = NULL;
  if (conn != NULL) {
    tnk__conn_abort(conn, ex);
    count_left(pool, ex);
    put(conn);
  }
  look_again(pool, 0); /* capacity may be free */
  free_if_empty(pool);
}

void tnk__pool_resume(tnk__exchange_t *ex) {
  ex->is_paused = 0;
  arm(ex, ex->timeout_ms);
  tnk__conn_resume(ex);
}

void tnk__pool_retry(tnk__pool_t *pool) {
  serve(pool);
  free_if_empty(pool);
}

/* ---- Timeouts of exchanges ---- */

static void bring_back(tnk__pool_t *pool, tnk__exchange_t *ex) {
  take_off(ex);
  if (tnk__queue_rank(ex) == TNK__RANK_SHORT) {
    ex->n_refused++;
    ex->replayed |= ex->sent;
  }
  tnk__queue_return(&pool->queue, ex);
  begin_wait(ex);
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
        ex->answer == NULL && tnk__mute_may_follow(ex))
      bring_back(pool, ex);
  }
}

/* Unused connections would not be served either. */
static void close_unused(tnk__pool_t *pool) {
  TNK__LIST_FOREACH_SAFE (node, next, &pool->idle)
    if (conn_at(node)->is_mute)
      close_conn(conn_at(node));
  while (!tnk__list_empty(&pool->connecting)) {
    close_conn(conn_at(pool->connecting.prev));
    pool->n_connecting--;
  }
}

/* Return the exchange on an unresponsive connection to the queue, and the
 * exchanges on all later connections. These connections are closed. For a while
 * no more are opened. */
static void bring_back_from(const tnk__exchange_t *ex) {
  tnk__pool_t *pool = ex->pool;

  pool->lets_wait = 1;
  bring_back_all(pool, ex->conn->number);
  close_unused(pool);
  tnk__refused_note(pool, "more are accepted but not served");
}

/* Return an active exchange to the queue if its connection is unresponsive.
 * Returns 1 if it was. */
static int rescue(tnk__exchange_t *ex) {
  tnk__pool_t *pool = ex->pool;

  if (!tnk__mute_is_waiting(ex))
    return 0;
  bring_back_from(ex);
  serve(pool);
  return 1; /* it is still a member of the pool */
}

static void on_timeout(tnk__timer_t *timer) {
  tnk__exchange_t *ex = tnk__container_of(timer, tnk__exchange_t, timer);
  char text[TNK__MAX_ERROR_TEXT];
  uint64_t left_ms;
  tnk__text_t why;

  if (rescue(ex))
    return;
  left_ms = tnk__silence_left_ms(ex);
  if (left_ms > 0) {
    look_in(ex, soon(ex, left_ms));
    return;
  }
  tnk__text_init(&why, text, sizeof(text));
  tnk__exchange_describe_end(ex, &why);
  tnk__exchange_explain(ex, text);
  ex->was_on_mute = (uint8_t)tnk__mute_has(ex);
  tnk__pool_leave(ex);
  tnk__exchange_settle(ex, TNK_ETIMEDOUT, 0);
}

/* ---- Closing ---- */

/* Close all connections of a list and settle the exchanges on them. */
static void close_conns(tnk__pool_t *pool, tnk__list_t *list, int err) {
  tnk__exchange_t *ex;
  tnk__list_t *node;

  while ((node = tnk__list_first(list)) != NULL) {
    while ((ex = tnk__conn_first(conn_at(node))) != NULL) {
      tnk__conn_abort(conn_at(node), ex);
      count_left(pool, ex);
      settle(pool, ex, err, 0);
    }
    close_conn(conn_at(node));
  }
}

void tnk__pool_close(tnk__pool_t *pool, int err) {
  tnk__exchange_t *ex;

  while ((ex = tnk__queue_pop_any(&pool->queue)) != NULL)
    settle(pool, ex, err, 0);
  close_conns(pool, &pool->full, err);
  close_conns(pool, &pool->shared, err);
  close_conns(pool, &pool->connecting, err);
  close_conns(pool, &pool->idle, err);
  pool->n_connecting = 0;
  free_if_empty(pool);
}

/* ---- Events of connections ---- */

static const tnk__conn_kind_t *on_connect(tnk__conn_t *conn) {
  conn->pool->tls_version = tnk__stream_tls_version(conn->stream);
  switch (tnk__speak_choose(conn->pool, conn)) {
#if TNK__HAS_HTTP2
  case TNK__SPEAKS_HTTP_2:
    return &tnk__conn_h2;
#endif
  case TNK__SPEAKS_HTTP_1:
    return &tnk__conn_h1;
  default:
    return NULL;
  }
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
  put(conn);
  while (tnk__conn_room(conn) > 0 &&
         (ex = tnk__queue_pop(&pool->queue, 1, last_rank(conn))) != NULL)
    assign(pool, conn, ex);
  (void)tnk__conn_release(conn);
  serve(pool);
  free_if_empty(pool);
}

static void on_room(tnk__conn_t *conn) {
  tnk__pool_t *pool = conn->pool;

  (void)tnk__speak_fell_back(pool, conn);
  if (!conn->drains)
    pool->capacity = pool->queue.n_each = tnk__conn_capacity(conn);
  put(conn);
  serve(pool);
  free_if_empty(pool);
}

static size_t n_active(const tnk__http_t *http) {
  size_t n = 0;

  for (int i = 0; i < TNK__N_LANES; i++)
    n += http->lanes[i].n_in_flight;
  TNK__LIST_FOREACH (node, &http->pools) {
    n -= tnk__container_of(node, tnk__pool_t, link)->queue.n_waiting;
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
             "the process has no free descriptors, so requests wait for open "
             "connections; raise the limit (ulimit -n)");
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

  for (; n > 0 && pool->queue.n_waiting > 0; n--) {
    tnk__exchange_t *ex = tnk__queue_pop_any(&pool->queue);
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

  close_conn(conn);
  pool->n_connecting--;
  /* If no exchange needs the connection, no capacity is needed. Only a waiting
   * exchange keeps the pool alive; can_wait() may close its last idle
   * connection. */
  if (pool->queue.n_waiting > pool->n_connecting && !is_other &&
      !can_wait(pool->http, cause)) {
    if (tnk__refused_by_failing(pool, err)) {
      tnk__refused_note(pool, text);
    } else {
      tnk__ceiling_init(&pool->queue.ceiling); /* no connection works */
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
  close_conn(conn);
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
  tnk__queue_return(&pool->queue, ex);
  begin_wait(ex);
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
  count_left(pool, ex);
  put(conn);
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
