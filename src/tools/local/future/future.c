/* SPDX-License-Identifier: MIT */
#include "tools/local/future/future.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"

/* ---- Held polls ---- */

/* A minimum time. Without it, polls that wait for each other's connections
 * would cycle as fast as the machine can. */
enum { MIN_HELD_MS = 100 };

void local_hold_start(local_server_t *server, local_hold_t *hold,
                      void (*over)(local_timer_t *timer)) {
  hold->since_ms = uv_now(server->loop);
  tnk__list_append(&server->held, &hold->link);
  server->n_waiting++;
  local_timer_init(&hold->timer);
  local_timer_start(&server->timers, &hold->timer, server->options.hold_ms,
                    over);
}

void local_hold_stop(local_server_t *server, local_hold_t *hold) {
  tnk__list_remove(&hold->link);
  local_timer_stop(&hold->timer);
  server->n_waiting--;
}

void local_hold_oldest_ends(void *user) {
  local_server_t *server = user;
  tnk__list_t *node = tnk__list_first(&server->held);
  uint64_t now = uv_now(server->loop);
  local_hold_t *hold;
  uint64_t end;

  if (node == NULL)
    return;
  hold = tnk__container_of(node, local_hold_t, link);
  end = hold->since_ms + MIN_HELD_MS;
  if (end < hold->timer.due_ms)
    local_timer_start(&server->timers, &hold->timer, end > now ? end - now : 0,
                      hold->timer.fn);
}

/* ---- Futures ---- */

/*
 * A future is PENDING until its owner settles it, HIDDEN while the configured
 * latency lasts, then SETTLED and visible to polls. Settled futures are kept up
 * to a limit; the oldest are dropped first.
 */

#define FUTURE(p) tnk__container_of(p, local_future_t, link)

static void free_future(local_future_t *future) {
  local_server_t *server = future->server;

  local_timer_stop(&future->timer);
  tnk__list_remove(&future->link);
  tnk__list_remove(&future->in_sampler);
  local_table_remove(&server->futures, &future->node);
  tnk__free(server->alloc, future->result);
  tnk__free(server->alloc, future);
}

local_future_t *local_future_new(local_server_t *server, local_kind_t kind,
                                 int *full) {
  local_future_t *future;

  *full = server->n_pending >= server->options.max_pending;
  if (*full)
    return NULL;
  future = tnk__calloc(server->alloc, 1, sizeof(*future));
  if (future == NULL)
    return NULL;
  future->server = server;
  future->kind = kind;
  future->born_ms = uv_now(server->loop);
  tnk__list_init(&future->waiters);
  tnk__list_init(&future->in_sampler);
  local_timer_init(&future->timer);
  snprintf(future->id, sizeof(future->id), "%s-%llu", server->run,
           (unsigned long long)++server->n_made);
  if (local_table_add(&server->futures, &future->node, future->id) != TNK_OK) {
    tnk__free(server->alloc, future);
    return NULL;
  }
  tnk__list_append(&server->pending, &future->link);
  server->n_pending++;
  return future;
}

local_future_t *local_future_find(local_server_t *server, const char *id) {
  local_node_t *node = local_table_find(&server->futures, id);

  return node != NULL ? tnk__container_of(node, local_future_t, node) : NULL;
}

static void forget(local_future_t *future) {
  future->server->n_results--;
  future->server->n_result_bytes -= future->n_result;
  free_future(future);
}

void local_future_forget(local_future_t *future) {
  if (future->state == LOCAL_FUTURE_SETTLED)
    forget(future);
}

static void evict(local_server_t *server) {
  while (server->n_results > server->options.max_results ||
         server->n_result_bytes > server->options.max_result_bytes) {
    local_future_t *oldest = FUTURE(server->results.next);

    /* The newest is kept even if it alone exceeds the limit, because a client
     * waits for it. */
    if (server->n_results == 1)
      return;
    forget(oldest);
  }
}

/* Each waiter removes itself from the list. */
static void wake(local_future_t *future) {
  tnk__list_t *node;

  while ((node = tnk__list_first(&future->waiters)) != NULL) {
    local_waiter_t *waiter = tnk__container_of(node, local_waiter_t, link);

    waiter->wake(waiter);
  }
}

static void reveal(local_future_t *future) {
  local_server_t *server = future->server;

  future->state = LOCAL_FUTURE_SETTLED;
  future->settled_ms = uv_now(server->loop);
  tnk__list_remove(&future->link);
  tnk__list_append(&server->results, &future->link);
  server->n_pending--;
  server->n_results++;
  server->n_result_bytes += future->n_result;
  if (future->settled != NULL)
    future->settled(future);
  wake(future);
  evict(server);
}

static void on_latency(local_timer_t *timer) {
  reveal(tnk__container_of(timer, local_future_t, timer));
}

static void settle(local_future_t *future) {
  local_server_t *server = future->server;
  uint64_t age = uv_now(server->loop) - future->born_ms;

  future->owner = NULL;
  future->cancel = NULL;
  future->state = LOCAL_FUTURE_HIDDEN;
  /* A canceled future is not delayed: its client no longer waits. */
  if (age >= server->options.latency_ms || future->is_canceled)
    reveal(future);
  else
    local_timer_start(&server->timers, &future->timer,
                      server->options.latency_ms - age, on_latency);
}

static void settle_buf(local_future_t *future, tnk__buf_t *buf, int is_proto) {
  future->result = tnk__buf_take(buf, &future->n_result);
  if (buf->err != TNK_OK) {
    tnk__buf_deinit(buf);
    local_future_fail(future, 500, "server", "Out of memory");
    return;
  }
  future->status = 200;
  future->is_proto = is_proto;
  settle(future);
}

void local_future_json(local_future_t *future, tnk__buf_t *json) {
  settle_buf(future, json, 0);
}

void local_future_proto(local_future_t *future, tnk__buf_t *proto) {
  settle_buf(future, proto, 1);
}

void local_future_fail(local_future_t *future, int status, const char *category,
                       const char *format, ...) {
  char text[512];
  va_list args;

  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  future->status = status;
  future->category = category;
  future->is_proto = 0;
  /* Without memory the failure has no message. */
  future->result = (uint8_t *)tnk__strdup(future->server->alloc, text);
  future->n_result = future->result != NULL ? strlen(text) : 0;
  settle(future);
}

void local_future_fail_code(local_future_t *future, int code, const char *why) {
  static const struct {
    int code;
    int status;
    const char *category;
  } known[] = {
      {TNK_EINVAL, 400, "user"},    {TNK_EUNSUPPORTED, 400, "user"},
      {TNK_ENOTFOUND, 404, "user"}, {TNK_ECONFLICT, 409, "user"},
      {TNK_EEXPIRED, 410, "user"},  {TNK_EPROTO, 400, "user"},
      {TNK_ENOMEM, 500, "server"},
  };

  if (why == NULL || why[0] == '\0')
    why = code == TNK_ENOMEM ? "Out of memory" : "Internal error";
  for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
    if (known[i].code == code) {
      local_future_fail(future, known[i].status, known[i].category, "%s", why);
      return;
    }
  local_future_fail(future, 500, "server", "%s", why);
}

void local_future_drop(local_future_t *future) {
  future->server->n_pending--;
  free_future(future);
}

void local_futures_free(local_server_t *server) {
  local_node_t *node;

  while ((node = local_table_any(&server->futures)) != NULL)
    free_future(tnk__container_of(node, local_future_t, node));
}
