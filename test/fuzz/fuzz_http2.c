/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/io/http/client.h"
#include "tnk/error.h"

/*
 * What a server of HTTP/2 sends. The streams of bytes are the target's own, in
 * memory, put in the place of those of net by the linker: the first connection
 * of an input gets its bytes, cut in pieces, the second one gets them whole,
 * and further ones are refused. Exchanges of all kinds wait for answers, some
 * leave, time passes.
 *
 * Whatever comes, each exchange ends at most once, and once at last when it was
 * not canceled; what the client writes and holds is bounded; nothing is left
 * when it closes.
 */
enum {
  N_CALLS = 8,
  MAX_CONNS = 40,
  MAX_HELD = 8 << 20,
  MAX_WRITTEN = 1 << 20,
  MAX_BODY = 1 << 16,
  UPLOAD = 100000
};

int __real_tnk__stream_open(tnk__stream_t **out, struct tnk__net *net,
                            const tnk__origin_t *origin, const tnk__via_t *via,
                            uint64_t connect_timeout_ms,
                            const tnk__stream_events_t *events, void *user);
int __wrap_tnk__stream_open(tnk__stream_t **out, struct tnk__net *net,
                            const tnk__origin_t *origin, const tnk__via_t *via,
                            uint64_t connect_timeout_ms,
                            const tnk__stream_events_t *events, void *user);

/* ---- Memory that is counted ---- */

static size_t n_held;

static void *count(size_t *block, size_t n) {
  if (block == NULL)
    return NULL;
  block[0] = n;
  n_held += n;
  FUZZ_CHECK(n_held < MAX_HELD);
  return block + 2;
}

static void *held_malloc(size_t n, void *user) {
  (void)user;
  return count(malloc(n + 2 * sizeof(size_t)), n);
}

static void *held_calloc(size_t n, size_t size, void *user) {
  (void)user;
  return count(calloc(1, n * size + 2 * sizeof(size_t)), n * size);
}

static void held_free(void *ptr, void *user) {
  size_t *block = (size_t *)ptr - 2;

  (void)user;
  if (ptr == NULL)
    return;
  n_held -= block[0];
  free(block);
}

static void *held_realloc(void *ptr, size_t n, void *user) {
  void *to = held_malloc(n, user);

  if (ptr != NULL && to != NULL) {
    const size_t old = ((size_t *)ptr - 2)[0];
    memcpy(to, ptr, old < n ? old : n);
    held_free(ptr, user);
  }
  return to;
}

/* ---- Streams of bytes ---- */

typedef struct {
  tnk__stream_t stream; /* first: what the client has */
  size_t number;
  size_t at; /* of the input; those before it have been read */
  int is_open;
  int is_over; /* ended, or closed by the client */
  int is_paused;
} peer_t;

typedef struct {
  uv_loop_t uv;
  tnk__context_t context;
  tnk__http_t http;
  peer_t *peers[MAX_CONNS];
  size_t n_peers;
  size_t n_written;
  const uint8_t *data;
  size_t size;
} rig_t;

typedef struct {
  tnk__exchange_t ex; /* first: the callbacks cast it back */
  int is_active;
  int n_done;
} call_t;

static rig_t rig;

static int peer_write(tnk__stream_t *stream, const uv_buf_t *bufs,
                      unsigned n_bufs) {
  volatile char ends = 0; /* are read: the bytes must still be there */

  FUZZ_CHECK(!((peer_t *)stream)->is_over && n_bufs <= TNK__STREAM_MAX_BUFS);
  for (unsigned i = 0; i < n_bufs; i++) {
    if (bufs[i].len > 0)
      ends = (char)(bufs[i].base[0] ^ bufs[i].base[bufs[i].len - 1]);
    rig.n_written += bufs[i].len;
  }
  (void)ends;
  FUZZ_CHECK(rig.n_written < MAX_WRITTEN + N_CALLS * UPLOAD * 2);
  return TNK__STREAM_WRITTEN;
}

static uint64_t peer_n_sent(const tnk__stream_t *stream) {
  (void)stream;
  return rig.n_written;
}

static void peer_pause(tnk__stream_t *stream, int paused) {
  ((peer_t *)stream)->is_paused = paused;
}

static void peer_hold_loop(tnk__stream_t *stream, int hold) {
  (void)stream;
  (void)hold;
}

static void peer_close(tnk__stream_t *stream) {
  peer_t *peer = (peer_t *)stream;

  peer->is_over = 1;
  rig.peers[peer->number] = NULL;
  free(peer);
}

static const tnk__stream_ops_t peer_ops = {.write = peer_write,
                                           .n_sent = peer_n_sent,
                                           .pause = peer_pause,
                                           .hold_loop = peer_hold_loop,
                                           .close = peer_close};

int __wrap_tnk__stream_open(tnk__stream_t **out, struct tnk__net *net,
                            const tnk__origin_t *origin, const tnk__via_t *via,
                            uint64_t connect_timeout_ms,
                            const tnk__stream_events_t *events, void *user) {
  peer_t *peer = calloc(1, sizeof(*peer));

  (void)net;
  (void)origin;
  (void)via;
  (void)connect_timeout_ms;
  FUZZ_CHECK(peer != NULL && rig.n_peers < MAX_CONNS);
  peer->stream =
      (tnk__stream_t){.ops = &peer_ops, .events = events, .user = user};
  peer->number = rig.n_peers;
  rig.peers[rig.n_peers++] = peer;
  *out = &peer->stream;
  return TNK_OK;
}

static void turn(void) {
  uv_run(&rig.uv, UV_RUN_NOWAIT);
}

static void end_peer(size_t i, int code) {
  const tnk__net_error_t error = {.code = code,
                                  .text = "the other side has ended it"};
  peer_t *peer = rig.peers[i];

  if (peer == NULL || peer->is_over)
    return;
  peer->is_over = 1;
  peer->stream.events->on_end(&peer->stream, &error);
  turn();
}

static void open_peer(size_t i) {
  peer_t *peer = rig.peers[i];

  if (peer == NULL || peer->is_open)
    return;
  peer->is_open = 1;
  peer->stream.events->on_open(&peer->stream);
  turn();
}

/* The next n bytes of the input, in a copy that ends where they end. */
static void feed_peer(size_t i, size_t n) {
  peer_t *peer = rig.peers[i];
  uint8_t *copy;

  if (peer == NULL || !peer->is_open || peer->is_over || peer->is_paused)
    return;
  if (n > rig.size - peer->at)
    n = rig.size - peer->at;
  if (n == 0)
    return;
  copy = malloc(n);
  FUZZ_CHECK(copy != NULL);
  memcpy(copy, rig.data + peer->at, n);
  peer->at += n;
  peer->stream.events->on_read(&peer->stream, copy, n);
  free(copy);
  turn();
}

/* ---- Exchanges ---- */

static void on_done(tnk__exchange_t *ex, const tnk__http_result_t *result) {
  call_t *call = (call_t *)(void *)ex;

  FUZZ_CHECK(call->is_active && ++call->n_done == 1);
  call->is_active = 0;
  FUZZ_CHECK(result->err <= 0 && result->body != NULL);
  FUZZ_CHECK(result->body->len <= MAX_BODY || result->status == 0 ||
             ex->is_streamed);
  if (result->err == TNK_OK)
    FUZZ_CHECK(result->status >= 200 && result->status < 1000 && result->sent);
  (void)tnk__http_result_header(result, "retry-after");
}

static void on_body(tnk__exchange_t *ex) {
  tnk__buf_t body;

  FUZZ_CHECK(tnk__exchange_status(ex) >= 200);
  (void)tnk__exchange_header(ex, "etag");
  tnk__buf_init(&body, &rig.context.alloc, 0);
  tnk__exchange_take_body(ex, &body);
  tnk__buf_deinit(&body);
}

/* Short and long uploads, a HEAD, a streamed answer; every second one may be
 * repeated. */
static void start(call_t *call, size_t i) {
  static const char upload[UPLOAD];
  const tnk_pair_t header = {"X-API-Key", "tml-key"};
  tnk__http_request_t request = {.origin = {"127.0.0.1", 80, 0},
                                 .method = i == 3 ? "HEAD" : "POST",
                                 .target = "/x",
                                 .headers = &header,
                                 .n_headers = 1,
                                 .body = upload,
                                 .body_len = i % 3 == 2 ? UPLOAD : 9 * i,
                                 .lane = (tnk__lane_t)(i % TNK__N_LANES),
                                 .timeout_ms = 45000,
                                 .max_body = MAX_BODY,
                                 .is_streamed = i == 4,
                                 .replayable = i % 2 == 0};

  if (i == 3)
    request.body_len = 0;
  memset(call, 0, sizeof(*call));
  tnk__exchange_init(&call->ex);
  call->ex.on_done = on_done;
  call->ex.on_body = on_body;
  call->is_active = 1;
  FUZZ_CHECK(tnk__exchange_start(&rig.http, &call->ex, &request) == TNK_OK);
}

static void cancel(call_t *call) {
  tnk__exchange_cancel(&call->ex);
  call->is_active = 0;
}

static void pass_time(uint64_t ms) {
  tnk__context_advance(&rig.context, ms);
  turn();
}

/* ---- One input ---- */

static void open_rig(const uint8_t *data, size_t size) {
  const tnk__http_options_t options = {.version = TNK__HTTP_2_PRIOR_KNOWLEDGE};
  const tnk_allocator_t alloc = {held_malloc, held_calloc, held_realloc,
                                 held_free, NULL};

  memset(&rig, 0, sizeof(rig));
  rig.data = data;
  rig.size = size;
  FUZZ_CHECK(uv_loop_init(&rig.uv) == 0);
  FUZZ_CHECK(tnk__context_open(&rig.context, &rig.uv, &alloc, NULL) == TNK_OK);
  tnk__context_fake_clock(&rig.context, 1000000);
  FUZZ_CHECK(tnk__http_open(&rig.http, &rig.context, &options) == TNK_OK);
}

/* Bytes come, in pieces whose sizes follow from where they are; meanwhile an
 * exchange leaves, another one starts, and time passes. */
static void play(call_t *calls) {
  size_t at = 0;

  for (size_t i = 0; i < N_CALLS / 2; i++)
    start(&calls[i], i);
  turn();
  open_peer(0);
  for (size_t n = N_CALLS / 2; at < rig.size; n++) {
    const size_t size = 1 + (n * 37 + rig.size) % 201;
    feed_peer(0, size);
    at += size;
    open_peer(1);
    feed_peer(1, rig.size);
    if (n < N_CALLS)
      start(&calls[n], n);
    if (n == N_CALLS)
      cancel(&calls[rig.size % N_CALLS]);
    if (n % 4 == 3)
      pass_time(700);
  }
}

/* The other side goes away, and whoever has not ended is given time to. */
static void finish(call_t *calls) {
  pass_time(26000); /* a PING may go out, and meet silence */
  for (size_t i = 0; i < rig.n_peers; i++) {
    open_peer(i);
    end_peer(i, i % 2 == 0 ? TNK_OK : TNK_ECONN);
  }
  pass_time(45000);
  for (size_t i = 0; i < N_CALLS; i++)
    FUZZ_CHECK(!calls[i].is_active);
}

static void on_gone(void *user) {
  *(int *)user = 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static call_t calls[N_CALLS];
  int is_gone = 0;

  memset(calls, 0, sizeof(calls));
  open_rig(data, size);
  play(calls);
  finish(calls);
  tnk__http_close(&rig.http);
  tnk__context_close(&rig.context, on_gone, &is_gone);
  while (!is_gone)
    uv_run(&rig.uv, UV_RUN_ONCE);
  FUZZ_CHECK(uv_loop_close(&rig.uv) == 0);
  FUZZ_CHECK(n_held == 0);
  for (size_t i = 0; i < rig.n_peers; i++)
    FUZZ_CHECK(rig.peers[i] == NULL);
  return 0;
}
