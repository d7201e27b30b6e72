/* SPDX-License-Identifier: MIT */
#include "lib/io/http/conn.h"
#include "lib/io/http/exchange.h"
#include "lib/io/http/pool.h"
#include "lib/io/http/silence.h"
#include "lib/io/http/speak.h"
#include "lib/wire/format/http_read.h"

static const char *const lane_names[TNK__N_LANES] = {
    [TNK__LANE_CONTROL] = "control requests",
    [TNK__LANE_TRAIN] = "requests",
    [TNK__LANE_SAMPLE] = "sample submissions",
    [TNK__LANE_POLL] = "long polls for samples",
    [TNK__LANE_TRAIN_POLL] = "long polls",
};

static void put_origin(const tnk__exchange_t *ex, tnk__text_t *out) {
  const tnk__origin_t *origin = &ex->pool->origin;

  tnk__text_printf(out, "%s:%u", origin->host, (unsigned)origin->port);
  if (ex->pool->via != NULL)
    tnk__text_printf(out, " through proxy %s", ex->pool->via->name);
}

static void describe_queued(const tnk__exchange_t *ex, tnk__text_t *out) {
  const tnk__http_lane_t *lane = &ex->http->lanes[ex->lane];
  size_t ahead = 0;

  TNK__LIST_FOREACH (node, &lane->queue) {
    if (node == &ex->link)
      break;
    ahead++;
  }
  if (lane->n_in_flight < lane->allowed)
    tnk__text_printf(out, "goes out in the next turns of the loop");
  else
    tnk__text_printf(out,
                     "waits for one of the %zu slots for %s, with %zu ahead",
                     lane->allowed, lane_names[ex->lane], ahead);
}

/* Write why exchanges of a pool get no connection. Writes nothing if one is
 * merely being opened. */
static void put_obstacle(const tnk__pool_t *pool, const char *before,
                         tnk__text_t *out) {
  const size_t max = pool->queue.ceiling.max;

  if (pool->http->is_starved && pool->n_connecting == 0)
    tnk__text_printf(out, "%sthis process has no free descriptor", before);
  else if (tnk__speak_allows_none(pool))
    tnk__text_printf(out,
                     "%sthe server allows no streams "
                     "(SETTINGS_MAX_CONCURRENT_STREAMS is 0)",
                     before);
  else if (tnk__queue_is_limited(&pool->queue) && max > 0)
    tnk__text_printf(out, "%sno more than %zu are granted, and none is free",
                     before, max);
  else if (tnk__queue_is_limited(&pool->queue))
    tnk__text_printf(out, "%snone is granted", before);
}

static void describe_waiting(const tnk__exchange_t *ex, tnk__text_t *out) {
  const tnk__pool_t *pool = ex->pool;

  if (pool->http->is_starved && pool->n_connecting == 0) {
    tnk__text_printf(out, "waits for a free descriptor to connect to ");
    put_origin(ex, out);
    return;
  }
  if (tnk__speak_allows_none(pool)) {
    tnk__text_printf(out, "waits for a stream to ");
    put_origin(ex, out);
    put_obstacle(pool, ": ", out);
    return;
  }
  if (tnk__queue_is_limited(&pool->queue)) {
    const size_t n = pool->queue.ceiling.max;

    if (n > 0)
      tnk__text_printf(out, "waits for one of the %zu connections that are ",
                       n);
    else
      tnk__text_printf(out, "waits for a connection, none of which is now ");
    tnk__text_printf(out, "granted to ");
    put_origin(ex, out);
    return;
  }
  tnk__text_printf(out, "waits for a %sconnection to ",
                   ex->replayed ? "fresh " : "");
  put_origin(ex, out);
  tnk__text_printf(out, " (%zu on the way)", pool->n_connecting);
}

static void put_sending(const tnk__exchange_t *ex, tnk__text_t *out) {
  tnk__text_printf(out, "is being sent, ");
  tnk__silence_put_sent(ex, out);
}

static void describe_active(const tnk__exchange_t *ex, tnk__text_t *out) {
  if (ex->answer != NULL)
    tnk__text_printf(out, "receives the server's answer, %zu bytes so far",
                     ex->answer->body.len);
  else if (tnk__conn_is_sending(ex))
    put_sending(ex, out);
  else
    tnk__text_printf(out, "waits for the server's answer");
}

void tnk__exchange_describe_end(const tnk__exchange_t *ex, tnk__text_t *out) {
  if (ex->state != TNK__EXCHANGE_WAITING) {
    tnk__silence_explain(ex, out);
    return;
  }
  tnk__text_printf(out, "no connection within ");
  tnk__text_time(out, ex->timeout_ms);
  put_obstacle(ex->pool, ": ", out);
}

void tnk__exchange_describe(const tnk__exchange_t *ex, tnk__text_t *out) {
  switch ((tnk__exchange_state_t)ex->state) {
  case TNK__EXCHANGE_QUEUED:
    describe_queued(ex, out);
    break;
  case TNK__EXCHANGE_WAITING:
    describe_waiting(ex, out);
    break;
  case TNK__EXCHANGE_ACTIVE:
    describe_active(ex, out);
    break;
  case TNK__EXCHANGE_DONE:
    tnk__text_printf(out, "has its answer, which is about to be read");
    break;
  case TNK__EXCHANGE_IDLE:
    tnk__text_printf(out, "is about to begin");
    break;
  }
}
