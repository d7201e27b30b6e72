/* SPDX-License-Identifier: MIT */
/*
 * Peers that make random moves, legal and illegal: answers in pieces, junk,
 * closes, frames, settings, windows, refusals. A small program of operations
 * runs against each of them. Every promise settles once, within its bound or,
 * where the service has accepted it, after the peer has come to its senses;
 * then the service works, and closes in time.
 *
 * TNK_TEST_PEERS: how many (200). TNK_TEST_SEED: this one alone.
 */
#include "silence/bounds.h"

enum {
  N_PEERS = 200,
  MAX_PROMISES = 40,
  MAX_HELD = 200,
  SHORT_MADNESS_MS = 40000,
  /* A request may be too slow in each attempt, and each pause be the server's
   * wish; and what goes on after an optional request has its own bound. */
  BOUND_MS =
      2 * ((RETRIES + 1) * (2 * CONNECT_MS + 2 * TIMEOUT_MS + TNK__SLOW_MS) +
           RETRIES * TNK__RETRY_AFTER_MAX_MS) +
      PATIENCE_MS + BILLING_MS
};

/* A request whose answer has begun, or will perhaps. */
typedef struct {
  mock_request_t *request;
  int has_begun;
} held_t;

typedef struct {
  outcome_t outcome;
  const char *name;
  uint64_t began_ms;
  int may_be_accepted;
} promise_t;

typedef struct {
  world_t world;
  uint64_t seed;
  uint64_t random;
  int is_mad;
  int sanity; /* of ten requests so many are answered well */
  held_t held[MAX_HELD];
  size_t n_held;
  promise_t promises[MAX_PROMISES];
  size_t n_promises;
} peer_t;

static uint32_t below(peer_t *peer, uint32_t n) {
  return (uint32_t)(test_random(&peer->random) >> 33) % n;
}

static const char *one_of(peer_t *peer, const char *const *texts, size_t n) {
  return texts[below(peer, (uint32_t)n)];
}

#define ONE_OF(peer, texts)                                                    \
  one_of(peer, texts, sizeof(texts) / sizeof((texts)[0]))

static size_t junk(peer_t *peer, uint8_t *out, size_t max) {
  const size_t n = below(peer, (uint32_t)max + 1);

  for (size_t i = 0; i < n; i++)
    out[i] = (uint8_t)test_random(&peer->random);
  return n;
}

/* ---- Moves on a request ---- */

static void move_status(peer_t *peer, mock_request_t *request) {
  static const int statuses[] = {
      200, 201, 202, 204, 206, 301, 302, 304, 307, 400, 401, 402, 403, 404, 405,
      406, 407, 408, 409, 410, 411, 413, 414, 415, 418, 421, 422, 425, 426, 429,
      431, 451, 500, 501, 502, 503, 504, 505, 507, 511, 520, 599, 600, 999};
  static const char *const headers[] = {
      "",
      JSON,
      JSON "Retry-After: 1\r\n",
      JSON "Retry-After: 4000000000\r\n",
      JSON "Retry-After: -5\r\n",
      JSON "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT\r\n",
      JSON "Retry-After-Ms: 18446744073709551615\r\n",
      JSON "X-Should-Retry: true\r\n",
      JSON "X-Should-Retry: false\r\n",
      JSON "Connection: close\r\n",
      JSON "Location: /x\r\n",
      JSON "Location: http://0.0.0.0:1/\r\n",
      JSON "Content-Encoding: zstd\r\n",
      "Content-Type: text/html\r\n",
      "Content-Type: application/x-protobuf\r\n",
      "Content-Type: text/event-stream\r\n"};
  static const char *const bodies[] = {
      "",
      "{}",
      "[]",
      "null",
      "{\"request_id\":\"optim_step:1:1\"}",
      "{\"request_id\":\"\"}",
      "{\"type\":\"try_again\",\"request_id\":\"r\",\"retry_after_ms\":1}",
      "{\"error\":\"no\",\"category\":\"user\"}",
      "{\"error\":\"no\",\"category\":\"server\"}",
      "{\"detail\":\"expected seq_id 7, got 1\"}",
      "{\"session_id\":\"other\"}",
      "{\"status\":\"complete_metadata\",\"response_payload_size\":"
      "99999999999}",
      "<html>",
      "data: {\"token_id\":7}\n\n",
      "\x08\x01\x12\xff\xff\xff\xff\x0f"};
  const char *body = ONE_OF(peer, bodies);

  /* Some of these have no body, so that the client may be done before us. */
  mock_set_drip(peer->world.script.mock, 0);
  mock_reply(request,
             statuses[below(peer, sizeof(statuses) / sizeof(statuses[0]))],
             ONE_OF(peer, headers), body, strlen(body));
}

static void move_junk_body(peer_t *peer, mock_request_t *request) {
  uint8_t bytes[300];
  const size_t n = junk(peer, bytes, sizeof(bytes));

  mock_reply(request, 200, JSON, bytes, n);
}

static void move_cut(peer_t *peer, mock_request_t *request) {
  mock_reply_cut(request, 200, JSON, "{\"request_id\":\"optim_step:1:1\"}", 31,
                 below(peer, 80));
}

static void move_raw(peer_t *peer, mock_request_t *request) {
  static const char *const texts[] = {
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}{}{}",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
      "HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
      "HTTP/1.1 101 Go\r\n\r\n",
      "HTTP/1.0 200 OK\r\n\r\n{}",
      "HTTP/9.9 200 OK\r\n\r\n",
      "HTTP/1.1 200\r\nA: \x01\r\n\r\n",
      "\r\n\r\n",
      "HTTP/1.1 200 OK\r\n A: folded\r\n\r\n"};
  uint8_t bytes[100];
  const char *text = ONE_OF(peer, texts);

  /* What follows a whole answer must not come after the next request. */
  mock_set_drip(peer->world.script.mock, 0);
  if (request->stream != NULL) {
    mock_nonsense(request);
  } else if (below(peer, 4) == 0) {
    mock_raw(request, bytes, junk(peer, bytes, sizeof(bytes)));
    mock_end(request, (int)below(peer, 2));
  } else {
    mock_raw(request, text, strlen(text));
    mock_end(request, (int)below(peer, 2));
  }
}

static void move_end(peer_t *peer, mock_request_t *request) {
  end_conn(&peer->world, request, (int)below(peer, 2));
}

static void move_rst(peer_t *peer, mock_request_t *request) {
  if (request->stream != NULL)
    mock_rst(request, below(peer, MOCK_N_CODES + 2));
  else
    mock_cut(request, NULL);
}

static void move_hold(peer_t *peer, mock_request_t *request) {
  const int begins = below(peer, 2) == 0;

  if (peer->n_held == MAX_HELD)
    return;
  peer->held[peer->n_held++] = (held_t){request, begins};
  if (begins)
    mock_begin(request, 200, JSON "Content-Length: 100000\r\n");
}

static void on_peer_request(mock_request_t *request, void *user) {
  static void (*const moves[])(peer_t *, mock_request_t *) = {
      move_status, move_status, move_junk_body, move_cut, move_raw,
      move_end,    move_rst,    move_hold,      move_hold};
  peer_t *peer = user;

  if (!peer->is_mad || (int)below(peer, 10) < peer->sanity)
    mock_pass(request);
  else
    moves[below(peer, sizeof(moves) / sizeof(moves[0]))](peer, request);
}

/* ---- Moves on connections ---- */

static void release_one(peer_t *peer) {
  held_t *held;

  if (peer->n_held == 0)
    return;
  held = &peer->held[below(peer, (uint32_t)peer->n_held)];
  if (!held->has_begun && below(peer, 2) == 0) {
    mock_inform(held->request, 100 + (int)below(peer, 4), NULL);
  } else if (held->has_begun) {
    mock_piece(held->request, "{\"request_id\":\"", below(peer, 15));
    if (below(peer, 3) == 0)
      mock_end(held->request, (int)below(peer, 2));
  } else {
    move_status(peer, held->request);
  }
}

static void change_setting(peer_t *peer) {
  static const uint32_t values[] = {0, 1, 2, 100, 65535, 0x7fffffff};
  static const uint32_t ids[] = {MOCK_TABLE_SIZE, MOCK_MAX_STREAMS, MOCK_WINDOW,
                                 MOCK_MAX_HEAD};

  mock_setting(peer->world.script.mock, ids[below(peer, 4)],
               values[below(peer, 6)]);
}

static void send_frame(peer_t *peer) {
  uint8_t payload[64];
  const size_t n = junk(peer, payload, sizeof(payload));
  const size_t told = below(peer, 6) == 0 ? below(peer, 1 << 24) : n;

  mock_frame_of(peer->world.script.mock, MOCK_ALL, (uint8_t)below(peer, 12),
                (uint8_t)test_random(&peer->random),
                (int32_t)below(peer, 3) == 0 ? 0 : (int32_t)below(peer, 30),
                payload, n, told);
}

static void send_setting(peer_t *peer) {
  uint8_t payload[6] = {0};

  payload[1] = (uint8_t)below(peer, 9);
  for (size_t i = 2; i < sizeof(payload); i++)
    payload[i] = (uint8_t)test_random(&peer->random);
  mock_frame(peer->world.script.mock, MOCK_ALL, MOCK_SETTINGS, 0, 0, payload,
             sizeof(payload));
}

static void move_connections(peer_t *peer) {
  static const int32_t last[] = {0, 1, MOCK_LAST, 0x7fffffff};
  mock_server_t *mock = peer->world.script.mock;

  switch (below(peer, 18)) {
  case 0:
    mock_close_idle(mock, (int)below(peer, 2));
    break;
  case 1:
    mock_close_all(mock, (int)below(peer, 2));
    break;
  case 2:
    /* Behind a proxy it might meet a request that is on its way. */
    if (!peer->world.transport->is_http2 &&
        peer->world.transport->way == WAY_DIRECT)
      mock_write_idle(mock, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    break;
  case 3:
    mock_goaway(mock, MOCK_ALL, last[below(peer, 4)],
                below(peer, MOCK_N_CODES));
    break;
  case 4:
  case 5:
    change_setting(peer);
    break;
  case 6:
    send_frame(peer);
    break;
  case 7:
    send_setting(peer);
    break;
  case 8:
    mock_set_windows(mock, (int)below(peer, 2));
    break;
  case 9:
    mock_set_reading(mock, (int)below(peer, 2));
    break;
  case 10:
    mock_set_silent(mock, (int)below(peer, 2));
    break;
  case 11:
    mock_set_pongs(mock, (int)below(peer, 2));
    break;
  case 12:
    mock_set_drip(mock, (int)below(peer, 2));
    break;
  default:
    release_one(peer);
    break;
  }
}

static void calm_down(peer_t *peer) {
  peer->is_mad = 0;
  mock_set_drip(peer->world.script.mock, 0);
  heal(&peer->world);
}

/* ---- The program ---- */

static void add(peer_t *peer, const char *name, tnk_promise_t *promise,
                int may_be_accepted) {
  promise_t *entry = &peer->promises[peer->n_promises++];

  CHECK(peer->n_promises <= MAX_PROMISES);
  entry->name = name;
  entry->began_ms = world_now(&peer->world);
  entry->may_be_accepted = may_be_accepted;
  outcome_of(&entry->outcome, promise);
}

static void begin_program(peer_t *peer) {
  script_t *script = &peer->world.script;

  add(peer, "health", start_health(script), 0);
  add(peer, "capabilities", start_capabilities(script), 0);
  add(peer, "list_checkpoints", list_checkpoints(script), 0);
  add(peer, "delete_checkpoint", delete_it(script), 0);
  add(peer, "hosted", hosted_whole(script), 0);
  add(peer, "hosted stream", hosted_stream(script), 1);
  add(peer, "create_lora", start_lora(script), 1);
  add(peer, "create_sampling", start_sampler(script), 0);
  if (below(peer, 4) == 0)
    add(peer, "download", weights_files(&peer->world), 1);
}

static void use_training(peer_t *peer, tnk_training_t *training) {
  script_t *script = &peer->world.script;

  script->training = training;
  add(peer, "forward_backward", start_pass(script), 1);
  add(peer, "optim_step", script_step(script), 1);
  add(peer, "custom", start_custom(script), 1);
  add(peer, "save_state", start_save(script), 1);
  add(peer, "save and sample", start_ephemeral(script), 1);
}

static void use_sampling(peer_t *peer, tnk_sampling_t *sampling) {
  script_t *script = &peer->world.script;

  script->sampling = sampling;
  for (int i = 0; i < 3; i++)
    add(peer, "sample", script_sample(script), 1);
  add(peer, "sample_stream", sample_stream(script), 1);
  add(peer, "logprobs", start_logprobs(script), 1);
  if (below(peer, 2) == 0)
    tnk_promise_cancel(peer->promises[peer->n_promises - 3].outcome.promise);
}

/* Go on with what has been made. */
static void continue_program(peer_t *peer) {
  const size_t n = peer->n_promises;

  for (size_t i = 0; i < n; i++) {
    const outcome_t *outcome = &peer->promises[i].outcome;
    if (outcome->n_done == 0 || outcome->status != TNK_OK)
      continue;
    if (peer->world.script.training == NULL &&
        tnk_promise_training(outcome->promise) != NULL)
      use_training(peer, tnk_promise_training(outcome->promise));
    if (peer->world.script.sampling == NULL &&
        tnk_promise_sampling(outcome->promise) != NULL)
      use_sampling(peer, tnk_promise_sampling(outcome->promise));
  }
}

/* ---- Time ---- */

static size_t n_waiting(const peer_t *peer) {
  size_t n = 0;

  for (size_t i = 0; i < peer->n_promises; i++)
    n += peer->promises[i].outcome.n_done == 0;
  return n;
}

static void check_bounds(const peer_t *peer) {
  const uint64_t now = world_now(&peer->world);

  for (size_t i = 0; i < peer->n_promises; i++) {
    const promise_t *entry = &peer->promises[i];
    if (entry->outcome.n_done == 0 &&
        (!entry->may_be_accepted || !peer->is_mad) &&
        now - entry->began_ms > 2 * (uint64_t)BOUND_MS)
      test_fail(__FILE__, __LINE__, "%s waits for %llu ms", entry->name,
                (unsigned long long)(now - entry->began_ms));
  }
}

/* Run for so long, or until nothing waits any more. */
static void run_peer(peer_t *peer, uint64_t ms) {
  world_t *world = &peer->world;
  const uint64_t began = world_now(world);
  uint64_t next_move = began;

  for (;;) {
    const uint64_t now = world_now(world);

    world_rest(world);
    continue_program(peer);
    check_bounds(peer);
    if (n_waiting(peer) == 0 || now - began >= ms)
      return;
    if (peer->is_mad && next_move <= now) {
      move_connections(peer);
      next_move = now + 1 + below(peer, 1500);
      continue;
    }
    world_jump(world,
               peer->is_mad && next_move < began + ms ? next_move : began + ms);
  }
}

/* ---- One peer ---- */

static uv_timer_t keep;

static void never(uv_timer_t *timer) {
  (void)timer;
}

static void open_peer(peer_t *peer, uint64_t seed) {
  static const transport_t transports[] = {{"http1", 0, 0, WAY_DIRECT, 0},
                                           {"http2", 1, 0, WAY_DIRECT, 0},
                                           {"http1, SOCKS", 0, 0, WAY_SOCKS, 0},
                                           {"http2, TLS", 1, 1, WAY_DIRECT, 0}};
  static const operation_t none = {.name = "peer", .needs = NEEDS_SERVICE};
  world_t *world = &peer->world;
  size_t i;

  memset(peer, 0, sizeof(*peer));
  peer->seed = peer->random = seed;
  /* TLS costs, and adds little here. */
  i = below(peer, 16);
  i = i < 7 ? 0 : i < 14 ? 1 : i - 12;
#if !TNK__HAS_HTTP2
  i = i == 2 ? 2 : 0;
#endif
  peer->sanity = (int)below(peer, 10);
  world_begin(world, &transports[i], 0);
  world->op = &none;
  CHECK_INT(uv_timer_init(&world->script.uv, &keep), 0);
  CHECK_INT(uv_timer_start(&keep, never, 3600000, 0), 0);
  mock_on(world->script.mock, "POST", "/api/v1/retrieve_future", reply_result,
          world);
  {
    char proxy[64];
    way_proxy(world, proxy);
    open_service(world, NULL, proxy);
  }
  world->context->random = seed;
  mock_set_lenient(world->script.mock, 1);
  serve_rest(world);
  serve_hosted(world);
  serve_stream(world);
  serve_weights(world);
  mock_on(world->script.mock, NULL, NULL, on_peer_request, peer);
}

static void close_peer(peer_t *peer) {
  world_t *world = &peer->world;
  script_t *script = &world->script;
  tnk_stats_t stats = TNK_STATS_INIT;
  const uint64_t began = world_now(world);

  CHECK_INT(tnk_service_stats(&stats, script->service), TNK_OK);
  CHECK_INT(stats.n_double_settles, 0);
  tnk_service_close(script->service, script_closed, script);
  while (!script->is_closed) {
    uv_run(&script->uv, UV_RUN_NOWAIT);
    if (script->is_closed || is_waiting_for_others(world) || !is_quiet(world))
      continue;
    if (world_now(world) - began > CLOSE_MS)
      test_fail(__FILE__, __LINE__, "it is not closed after %d ms", CLOSE_MS);
    tnk__context_advance(world->context, next_due(world) - world_now(world));
  }
  for (size_t i = 0; i < peer->n_promises; i++)
    CHECK_INT(peer->promises[i].outcome.n_done, 1);
  for (size_t i = 0; i < peer->n_promises; i++)
    outcome_drop(&peer->promises[i].outcome);
  way_close(world);
  uv_close((uv_handle_t *)&keep, NULL);
  mock_close(script->mock);
  uv_run(&script->uv, UV_RUN_DEFAULT);
  CHECK_INT(uv_loop_close(&script->uv), 0);
  heard_close(&script->heard);
  free(script->sent);
  remove_below(world->dir);
  rmdir(world->dir);
}

/* Every third is closed in the middle of it. */
static void run_seed(uint64_t seed) {
  static peer_t peer;
  const size_t n_blocks = test_alloc_live();
  outcome_t outcome;
  char name[80];

  snprintf(name, sizeof(name), "TNK_TEST_SEED=%llu", (unsigned long long)seed);
  test_context(name);
  open_peer(&peer, seed);
  peer.is_mad = 1;
  begin_program(&peer);
  run_peer(&peer,
           below(&peer, 8) == 0 ? 2 * (uint64_t)BOUND_MS : SHORT_MADNESS_MS);
  if (below(&peer, 3) > 0) {
    calm_down(&peer);
    run_peer(&peer, 4 * (uint64_t)BOUND_MS);
    if (n_waiting(&peer) > 0)
      test_fail(__FILE__, __LINE__, "it waits though all is well");
    outcome_of(&outcome, tnk_service_health(peer.world.script.service));
    add(&peer, "health", tnk_service_health(peer.world.script.service), 0);
    run_peer(&peer, BOUND_MS);
    CHECK_INT(outcome.n_done, 1);
    if (outcome.status != TNK_OK && outcome.status != TNK_EUNSUPPORTED)
      test_fail(__FILE__, __LINE__, "it does not work again: %s", outcome.text);
    outcome_drop(&outcome);
  }
  close_peer(&peer);
  CHECK_INT(test_alloc_live(), n_blocks);
}

TEST_LIMIT(random_peers, 36000) {
  const char *only = getenv("TNK_TEST_SEED");
  const char *count = getenv("TNK_TEST_PEERS");
  const long n = count != NULL ? atol(count) : N_PEERS;
  const char *first = getenv("TNK_TEST_FIRST_PEER");
  const long from = first != NULL ? atol(first) : 1;

  identities();
  if (only != NULL)
    run_seed(strtoull(only, NULL, 10));
  else
    for (long seed = from; seed < from + n; seed++)
      run_seed((uint64_t)seed);
  identities_free();
}
