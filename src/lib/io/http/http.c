/* SPDX-License-Identifier: MIT */
#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/io/http/client.h"
#include "lib/io/http/conn.h"
#include "lib/io/http/exchange.h"
#include "lib/io/http/pool.h"
#include "lib/io/http/queue.h"
#include "lib/io/http/speak.h"
#include "lib/io/net/net.h"
#include "lib/policy/bounds.h"
#include "lib/wire/format/http_read.h"
#include "tnk/error.h"

/*
 * The client is open and then closing for good. It makes decisions at two
 * places. Events of connections and timers change the states of exchanges at
 * once. A deferred call (`due`) does work that must not happen inside a call of
 * the owner. It runs callbacks and gives free slots to exchanges that wait in
 * the lanes.
 */

enum { MAX_HTTP2_CONNECTIONS = 256 };

static const uint32_t default_max[TNK__N_LANES] = {
    [TNK__LANE_CONTROL] = 4,      [TNK__LANE_TRAIN] = 16,
    [TNK__LANE_SAMPLE] = 64,      [TNK__LANE_POLL] = 2048,
    [TNK__LANE_TRAIN_POLL] = 256,
};

static tnk__exchange_t *exchange_at(tnk__list_t *node) {
  return tnk__container_of(node, tnk__exchange_t, link);
}

static void on_due(tnk__deferred_t *self);

int tnk__http_open(tnk__http_t *http, tnk__context_t *context,
                   const tnk__http_options_t *options) {
  int err;

  *http = (tnk__http_t){.context = context};
  http->connect_timeout_ms = options->connect_timeout_ms > 0
                                 ? options->connect_timeout_ms
                                 : TNK__CONNECT_MS;
  http->idle_timeout_ms =
      options->idle_timeout_ms > 0 ? options->idle_timeout_ms : TNK__UNUSED_MS;
  http->proxies = options->proxies;
  http->version =
      tnk__http2_library() != NULL ? options->version : TNK__HTTP_1_1;
  http->max_http2_connections = options->max_http2_connections > 0
                                    ? options->max_http2_connections
                                    : MAX_HTTP2_CONNECTIONS;
  tnk__list_init(&http->pools);
  tnk__list_init(&http->known);
  tnk__list_init(&http->news);
  tnk__list_init(&http->done);
  tnk__deferred_init(&http->due, on_due);
  for (int i = 0; i < TNK__N_LANES; i++) {
    tnk__list_init(&http->lanes[i].queue);
    http->lanes[i].max = options->max_in_flight[i] > 0
                             ? options->max_in_flight[i]
                             : default_max[i];
  }
  err = tnk__net_new(&http->net, context, options->ca_file);
  if (err == TNK_OK && options->cert_file != NULL)
    err = tnk__net_identify(http->net, options->cert_file, options->key_file);
  if (err == TNK_OK && (options->ca_file != NULL ||
                        options->cert_file != NULL || options->load_trust))
    err = tnk__net_load_trust(http->net, options->why, options->why_size);
  if (err != TNK_OK) {
    tnk__net_unref(http->net);
    http->net = NULL;
    http->closing = 1;
    return err;
  }
  http->shares_places = options->max_in_flight[TNK__LANE_SAMPLE] == 0;
  tnk__lanes_open(http);
  return TNK_OK;
}

void tnk__http_close(tnk__http_t *http) {
  tnk__list_t *node;

  if (http->closing)
    return;
  http->closing = 1;
  for (int i = 0; i < TNK__N_LANES; i++) {
    while ((node = tnk__list_first(&http->lanes[i].queue)) != NULL) {
      tnk__pool_leave(exchange_at(node));
      tnk__exchange_settle(exchange_at(node), TNK_ECLOSED, 0);
    }
  }
  while ((node = tnk__list_first(&http->pools)) != NULL)
    tnk__pool_close(tnk__container_of(node, tnk__pool_t, link), TNK_ECLOSED);
  tnk__speak_forget(http);
  tnk__net_unref(http->net);
  http->net = NULL;
}

size_t tnk__http_n_polls(const tnk__http_t *http) {
  return http->lanes[TNK__LANE_POLL].n_in_flight +
         http->lanes[TNK__LANE_TRAIN_POLL].n_in_flight;
}

/* Due work. */

static void tell_wait(tnk__exchange_t *ex) {
  ex->tells_wait = 0;
  ex->http->on_wait(ex);
}

static void give_slot(tnk__exchange_t *ex) {
  tnk__lane_enter(ex);
  tnk__pool_run(ex);
  if (ex->state == TNK__EXCHANGE_WAITING && ex->tells_wait)
    tell_wait(ex);
}

/* Exchanges that arrived since the last call are at the end. */
static void tell_queued(const tnk__http_lane_t *lane) {
  tnk__list_t *node = lane->queue.prev;

  for (; node != &lane->queue && exchange_at(node)->tells_wait;
       node = node->prev)
    tell_wait(exchange_at(node));
}

static void fill_lane(tnk__http_t *http, int i) {
  tnk__http_lane_t *lane = &http->lanes[i];
  int budget = TNK__LOOP_BUDGET;

  while (budget > 0 && tnk__lane_has_slot(http, (tnk__lane_t)i) &&
         !tnk__list_empty(&lane->queue)) {
    give_slot(exchange_at(tnk__list_pop(&lane->queue)));
    budget--;
  }
  if (!tnk__lane_has_slot(http, (tnk__lane_t)i))
    tell_queued(lane);
}

/* An exchange has ended since, so its connection may have closed. */
static void retry_starved(tnk__http_t *http) {
  tnk__list_t pools;
  tnk__list_t *node;

  if (!http->is_starved)
    return;
  http->is_starved = 0;
  /* Making capacity for one pool may free another. */
  tnk__list_move(&pools, &http->pools);
  while ((node = tnk__list_pop(&pools)) != NULL) {
    tnk__list_append(&http->pools, node);
    tnk__pool_retry(tnk__container_of(node, tnk__pool_t, link));
  }
}

static int is_work_left(const tnk__http_t *http) {
  if (!tnk__list_empty(&http->news) || !tnk__list_empty(&http->done))
    return 1;
  for (int i = 0; i < TNK__N_LANES; i++) {
    if (!tnk__list_empty(&http->lanes[i].queue) &&
        tnk__lane_has_slot(http, (tnk__lane_t)i))
      return 1;
  }
  return 0;
}

static void on_due(tnk__deferred_t *self) {
  tnk__http_t *http = tnk__container_of(self, tnk__http_t, due);
  tnk__list_t *node;

  retry_starved(http);
  for (int n = 0; n < TNK__LOOP_BUDGET; n++) {
    node = tnk__list_pop(&http->news);
    if (node == NULL)
      node = tnk__list_pop(&http->done);
    if (node == NULL)
      break;
    tnk__exchange_deliver(exchange_at(node));
  }
  for (int i = 0; i < TNK__N_LANES; i++)
    fill_lane(http, i);
  if (is_work_left(http))
    tnk__defer(http->context, &http->due);
}

/* The functions for owners of exchanges. */

void tnk__exchange_take_body(tnk__exchange_t *ex, tnk__buf_t *out) {
  if (ex->answer == NULL)
    return;
  *out = ex->answer->body;
  tnk__buf_init(&ex->answer->body, out->alloc, out->max);
  if (ex->is_paused && ex->conn != NULL)
    tnk__pool_resume(ex);
}

void tnk__exchange_go_on(tnk__exchange_t *ex) {
  if (ex->conn != NULL)
    tnk__conn_go_on(ex);
}

int tnk__exchange_start(tnk__http_t *http, tnk__exchange_t *ex,
                        const tnk__http_request_t *request) {
  int err;

  if (http->closing)
    return TNK_ECLOSED;
  if (ex->state != TNK__EXCHANGE_IDLE)
    return TNK_EINVAL;
  err = tnk__exchange_load(ex, http, request);
  if (err != TNK_OK)
    return err;
  err = tnk__pool_join(http, &request->origin, ex);
  if (err != TNK_OK) {
    tnk__exchange_drop(ex);
    return err;
  }
  ex->state = TNK__EXCHANGE_QUEUED;
  tnk__list_append(&http->lanes[ex->lane].queue, &ex->link);
  tnk__defer(http->context, &http->due);
  return TNK_OK;
}

void tnk__exchange_cancel(tnk__exchange_t *ex) {
  if (ex->state == TNK__EXCHANGE_IDLE)
    return;
  tnk__pool_leave(ex);
  tnk__exchange_drop(ex);
}
