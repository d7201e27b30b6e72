/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_HTTP_FIXTURE_H
#define TNK_TEST_HTTP_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/io/http/client.h"
#include "loop/fixture.h"
#include "support/mock_server.h"

/* A client and a scripted server on one loop with a fake clock. */
typedef struct {
  context_t c;
  mock_server_t *mock;
  tnk__http_t http;
} fixture_t;

/* An exchange that writes down how it ended. */
typedef struct call {
  tnk__exchange_t ex; /* first: the callbacks cast it back */
  int n_sent;
  int n_done;
  int err;
  int cause;
  int sent;
  int status;
  char detail[256];
  int order; /* among all calls, from 1 */
  size_t body_len;
  char body[200];                     /* its start, NUL-terminated */
  char header[64];                    /* X-Header */
  void (*on_sent)(struct call *call); /* in the next turn of the loop */
  tnk__deferred_t sent_call;
  void (*on_done)(struct call *call);
  fixture_t *f;
} call_t;

static int n_calls_done;

static void call_after_sent(tnk__deferred_t *self) {
  call_t *call = tnk__container_of(self, call_t, sent_call);

  if (call->on_sent != NULL && tnk__exchange_is_active(&call->ex))
    call->on_sent(call);
}

static void call_sent(tnk__exchange_t *ex) {
  call_t *call = (call_t *)(void *)ex;

  CHECK(tnk__exchange_is_active(ex));
  CHECK_INT(++call->n_sent, 1);
  tnk__deferred_init(&call->sent_call, call_after_sent);
  tnk__defer(ex->http->context, &call->sent_call);
}

static void call_done(tnk__exchange_t *ex, const tnk__http_result_t *result) {
  call_t *call = (call_t *)(void *)ex;
  const char *header = tnk__http_result_header(result, "x-header");
  size_t n = result->body->len;

  CHECK(!tnk__exchange_is_active(ex));
  call->n_done++;
  call->order = ++n_calls_done;
  call->err = result->err;
  call->cause = result->cause;
  call->sent = result->sent;
  call->status = result->status;
  snprintf(call->detail, sizeof(call->detail), "%s",
           result->detail != NULL ? result->detail : "");
  call->body_len = n;
  if (n >= sizeof(call->body))
    n = sizeof(call->body) - 1;
  if (n > 0)
    memcpy(call->body, result->body->data, n);
  call->body[n] = '\0';
  if (header != NULL && strlen(header) < sizeof(call->header))
    memcpy(call->header, header, strlen(header) + 1);
  if (call->on_done != NULL)
    call->on_done(call);
}

/* A feed of pieces of at most `max` bytes out of `data`, each in memory that
 * goes stale with the next one. */
typedef struct {
  tnk__feed_t feed;
  const char *data;
  size_t max;
  size_t n_pieces;
  size_t fail_at; /* this piece and later ones fail; 0: none */
  uint8_t *piece;
} feeder_t;

static const uint8_t *feeder_piece(tnk__feed_t *feed, size_t at, size_t *n) {
  feeder_t *feeder = (feeder_t *)(void *)feed;

  CHECK(at < feed->len);
  feeder->n_pieces++;
  if (feeder->fail_at != 0 && feeder->n_pieces >= feeder->fail_at)
    return NULL;
  *n = feed->len - at < feeder->max ? feed->len - at : feeder->max;
  free(feeder->piece);
  feeder->piece = malloc(*n);
  CHECK(feeder->piece != NULL);
  memcpy(feeder->piece, feeder->data + at, *n);
  return feeder->piece;
}

static inline void feeder_init(feeder_t *feeder, const char *data, size_t len,
                               size_t max) {
  memset(feeder, 0, sizeof(*feeder));
  feeder->feed.len = len;
  feeder->feed.piece = feeder_piece;
  feeder->data = data;
  feeder->max = max;
}

static inline void call_init(fixture_t *f, call_t *call) {
  memset(call, 0, sizeof(*call));
  tnk__exchange_init(&call->ex);
  call->ex.on_sent = call_sent;
  call->ex.on_done = call_done;
  call->f = f;
}

static inline tnk__http_request_t request_to(const mock_server_t *mock,
                                             tnk__lane_t lane,
                                             const char *method,
                                             const char *target) {
  return (tnk__http_request_t){.origin = {"127.0.0.1", mock_port(mock), 0},
                               .method = method,
                               .target = target,
                               .lane = lane};
}

/* Start with what the request says. */
static inline void call_send(fixture_t *f, call_t *call,
                             const tnk__http_request_t *request) {
  call_init(f, call);
  CHECK_INT(tnk__exchange_start(&f->http, &call->ex, request), TNK_OK);
}

/* Start with everything at its default. */
static inline void call_start(fixture_t *f, call_t *call, tnk__lane_t lane,
                              const char *method, const char *target) {
  const tnk__http_request_t request = request_to(f->mock, lane, method, target);

  call_send(f, call, &request);
  CHECK_INT(call->n_done + call->n_sent, 0);
}

static inline void call_wait(fixture_t *f, call_t *call) {
  mock_wait_flag(f->mock, &call->n_done, 1);
}

/* A whole exchange, however it ends. */
static inline void call_run(fixture_t *f, call_t *call, tnk__lane_t lane,
                            const char *method, const char *target) {
  call_start(f, call, lane, method, target);
  call_wait(f, call);
}

/* A whole exchange that must succeed. */
static inline void call_get(fixture_t *f, const char *target) {
  call_t call;

  call_run(f, &call, TNK__LANE_CONTROL, "GET", target);
  CHECK_INT(call.err, TNK_OK);
  CHECK_INT(call.status, 200);
}

/* On a context that is open. */
static inline void fixture_begin(fixture_t *f,
                                 const tnk__http_options_t *options) {
  tnk__http_options_t own = *options;

  if (mock_over_http2() && own.version == TNK__HTTP_AUTO)
    own.version = TNK__HTTP_2_PRIOR_KNOWLEDGE;
  tnk__context_fake_clock(&f->c.loop, 1000000);
  f->mock = mock_open(&f->c.uv);
  mock_set_clock(f->mock, &f->c.loop);
  mock_json(f->mock, NULL, "/ok", 200, "{\"ok\":true}");
  mock_on(f->mock, NULL, "/hold", mock_hold, NULL);
  CHECK_INT(tnk__http_open(&f->http, &f->c.loop, &own), TNK_OK);
}

static inline void fixture_open_with(fixture_t *f,
                                     const tnk__http_options_t *options) {
  context_open(&f->c);
  fixture_begin(f, options);
}

static inline void fixture_open(fixture_t *f) {
  const tnk__http_options_t options = {.ca_file = NULL};

  fixture_open_with(f, &options);
}

/* The same for tests that are about HTTP/2. */
static inline void fixture_open_http2(fixture_t *f) {
  CHECK_INT(setenv("TNK_TEST_HTTP", "2", 1), 0);
  fixture_open(f);
}

static inline void fixture_close(fixture_t *f) {
  tnk__http_close(&f->http);
  tnk__http_close(&f->http);
  mock_close(f->mock);
  context_close(&f->c);
  CHECK(tnk__list_empty(&f->http.pools));
  CHECK_INT(f->http.n_connections, 0);
  for (int i = 0; i < TNK__N_LANES; i++)
    CHECK_INT(f->http.lanes[i].n_in_flight, 0);
}

#endif
