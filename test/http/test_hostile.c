/* SPDX-License-Identifier: MIT */
/*
 * Peers that mean harm, or are out of order: each ends an exchange within a
 * ceiling of time, on the fake clock, and of memory, which are both checked.
 * Every case prints its rows: peer, error, status, time, peak of memory (all
 * that goes through our allocator; mbedTLS's buffers, of a fixed size, do not).
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <zstd.h>

#include "fixture.h"
#include "support/tls_server.h"

enum {
  TIMEOUT_MS = 60000, /* of the exchange: what a service has by default */
  CONNECT_MS = 5000,
  MAX_BODY = 8 << 20,
  KIB = 1024,
  PORTION = 64 * KIB /* what a fast peer sends in a turn of the loop */
};

/* A peer that answers with `head` and then with `part`, again and again: as
 * fast as it can, or one every `every_ms`. NULL: nothing (more). */
typedef struct {
  const char *peer;
  const char *head;
  const char *part;
  uint64_t every_ms;
  int err;
  int status;
  uint64_t max_ms;
  size_t max_kib; /* beside what the client held before */
} row_t;

typedef struct {
  uint64_t began_ms;
  size_t bytes; /* live at the begin */
} meter_t;

static void meter_start(meter_t *meter, const fixture_t *f) {
  meter->began_ms = tnk__context_now_ms(&f->c.loop);
  meter->bytes = test_alloc_bytes();
  test_alloc_reset_peak();
}

static void meter_check(const meter_t *meter, const fixture_t *f,
                        const char *peer, const call_t *call, uint64_t max_ms,
                        size_t max_kib) {
  uint64_t ms = tnk__context_now_ms(&f->c.loop) - meter->began_ms;
  size_t kib = (test_alloc_peak() - meter->bytes + KIB - 1) / KIB;

  printf("# %-44s %-13s %3d %6llu ms %6zu KiB\n", peer, tnk_err_name(call->err),
         call->status, (unsigned long long)ms, kib);
  fflush(stdout);
  if (ms > max_ms)
    test_fail(__FILE__, __LINE__, "%s: it took over %llu ms", peer,
              (unsigned long long)max_ms);
  if (kib > max_kib)
    test_fail(__FILE__, __LINE__, "%s: it took over %zu KiB", peer, max_kib);
}

static void start(fixture_t *f, call_t *call, const char *target) {
  tnk__http_request_t request =
      request_to(f->mock, TNK__LANE_TRAIN, "POST", target);

  request.timeout_ms = TIMEOUT_MS;
  request.max_body = MAX_BODY;
  call_send(f, call, &request);
}

/* As many parts as make a portion. */
static char *portion_of(const char *part, size_t *n) {
  size_t n_part = strlen(part), n_parts = PORTION / n_part + 1;
  char *portion = malloc(n_parts * n_part);

  CHECK(portion != NULL);
  for (size_t i = 0; i < n_parts; i++)
    memcpy(portion + i * n_part, part, n_part);
  *n = n_parts * n_part;
  return portion;
}

/* The peer does its worst until the exchange ends. */
static void send_all(fixture_t *f, const call_t *call, const row_t *row) {
  mock_request_t *request = mock_request(f->mock, mock_n_requests(f->mock) - 1);
  char *portion = NULL;
  size_t n = 0;

  if (row->head != NULL)
    mock_raw(request, row->head, strlen(row->head));
  mock_turns(f->mock, 3);
  if (row->part != NULL && row->every_ms == 0)
    portion = portion_of(row->part, &n);
  while (call->n_done == 0) {
    if (portion != NULL)
      mock_raw(request, portion, n);
    else if (row->part != NULL)
      mock_raw(request, row->part, strlen(row->part));
    mock_turns(f->mock, 3);
    tnk__context_advance(&f->c.loop, row->every_ms > 0 ? row->every_ms : 1);
    mock_turns(f->mock, 1);
  }
  free(portion);
}

/* A request has come, and the meter is on. */
static void open_measured(fixture_t *f, meter_t *meter, call_t *call) {
  fixture_open(f);
  meter_start(meter, f);
  start(f, call, "/hold");
  mock_wait(f->mock, 1);
}

static void check_row(const row_t *row) {
  meter_t meter;
  fixture_t f;
  call_t call;

  open_measured(&f, &meter, &call);
  send_all(&f, &call, row);
  meter_check(&meter, &f, row->peer, &call, row->max_ms, row->max_kib);
  CHECK_INT(call.err, row->err);
  CHECK_INT(call.status, row->status);
  /* Whatever was left on that connection, nobody reads it. */
  mock_wait_open(f.mock, 0);
  call_get(&f, "/ok");
  CHECK_INT(mock_n_connections(f.mock), 2);
  fixture_close(&f);
}

#define OK "HTTP/1.1 200 OK\r\n"
#define CHUNKED OK "Transfer-Encoding: chunked\r\n\r\n"

TEST_LIMIT(slow_peers, 30) {
  static const row_t rows[] = {
      {"silence", NULL, NULL, 1000, TNK_ETIMEDOUT, 0, TIMEOUT_MS, 64},
      {"one byte of a header a second", OK "X-A: ", "a", 1000, TNK_ETIMEDOUT, 0,
       TIMEOUT_MS, 64},
      {"one byte of the body a second", OK "Content-Length: 1000000\r\n\r\n",
       "a", 1000, TNK_ETIMEDOUT, 200, TIMEOUT_MS, 1200},
      {"one chunk of one byte a second", CHUNKED, "1\r\na\r\n", 1000,
       TNK_ETIMEDOUT, 200, TIMEOUT_MS, 64},
      {"one 103 a second", NULL, "HTTP/1.1 103 Wait\r\n\r\n", 1000,
       TNK_ETIMEDOUT, 0, TIMEOUT_MS, 64},
      {"a length of 8 MiB and nothing more",
       OK "Content-Length: 8388608\r\n\r\n", NULL, 1000, TNK_ETIMEDOUT, 200,
       TIMEOUT_MS, 2100},
      {"a body to the end that never ends", OK "\r\n", "a", 1000, TNK_ETIMEDOUT,
       200, TIMEOUT_MS, 64},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    check_row(&rows[i]);
}

TEST_LIMIT(endless_peers, 30) {
  static const row_t rows[] = {
      {"endless reason", "HTTP/1.1 200 ", "a", 0, TNK_ETOOBIG, 0, 100, 256},
      {"endless headers", OK, "X-A: b\r\n", 0, TNK_ETOOBIG, 0, 100, 256},
      {"endless header", OK "X-A: ", "a", 0, TNK_ETOOBIG, 0, 100, 256},
      {"endless blanks before a value", OK "X-A:", " ", 0, TNK_ETOOBIG, 0, 100,
       256},
      {"endless 100", NULL, "HTTP/1.1 100 Continue\r\n\r\n", 0, TNK_ETOOBIG, 0,
       100, 256},
      {"endless empty lines before an answer", NULL, "\r\n", 0, TNK_ETOOBIG, 0,
       100, 256},
      {"endless body", OK "\r\n", "a", 0, TNK_ETOOBIG, 200, 1000, 18000},
      {"endless chunks", CHUNKED, "8\r\naaaaaaaa\r\n", 0, TNK_ETOOBIG, 200,
       1000, 18000},
      {"endless chunk size", CHUNKED, "0", 0, TNK_ETOOBIG, 200, 100, 256},
      {"endless chunk extension", CHUNKED "1;", "a", 0, TNK_ETOOBIG, 200, 100,
       256},
      {"endless trailers", CHUNKED "0\r\n", "A: b\r\n", 0, TNK_ETOOBIG, 200,
       100, 256},
      {"a length of 10 GB", OK "Content-Length: 10000000000\r\n\r\n", NULL, 0,
       TNK_ETOOBIG, 200, 100, 64},
      {"a length of 2^64 + 1",
       OK "Content-Length: 18446744073709551617\r\n\r\n", NULL, 0, TNK_EPROTO,
       0, 100, 64},
      {"a chunk of 2^60 bytes", CHUNKED "1000000000000000\r\n", "a", 0,
       TNK_ETOOBIG, 200, 1000, 18000},
      {"two lengths", OK "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", NULL,
       0, TNK_EPROTO, 0, 100, 64},
      {"an answer that is no HTTP", NULL, "\x16\x03\x01", 0, TNK_EPROTO, 0, 100,
       64},
      {"another protocol", "HTTP/1.1 101 Go\r\nUpgrade: x\r\n\r\n", NULL, 0,
       TNK_EPROTO, 0, 100, 64},
      {"gzip", OK "Content-Encoding: gzip\r\n\r\n", "\x1f\x8b\x08", 0,
       TNK_EPROTO, 200, 100, 64},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    check_row(&rows[i]);
}

/* ---- What unpacks to much ---- */

static uint8_t *pack_zeros(size_t n_zeros, size_t *n) {
  size_t room = ZSTD_compressBound(n_zeros);
  uint8_t *zeros = calloc(1, n_zeros), *packed = malloc(room);

  CHECK(zeros != NULL && packed != NULL);
  *n = ZSTD_compress(packed, room, zeros, n_zeros, 1);
  CHECK(!ZSTD_isError(*n));
  free(zeros);
  return packed;
}

static void check_packed(const char *peer, const void *packed, size_t n,
                         int err, size_t max_kib) {
  static const char headers[] = "Content-Encoding: zstd\r\n";
  meter_t meter;
  fixture_t f;
  call_t call;

  open_measured(&f, &meter, &call);
  mock_reply(mock_request(f.mock, 0), 200, headers, packed, n);
  call_wait(&f, &call);
  meter_check(&meter, &f, peer, &call, 100, max_kib);
  CHECK_INT(call.err, err);
  CHECK_INT(call.status, 200);
  fixture_close(&f);
}

TEST_LIMIT(zstd_bombs, 30) {
  /* a window of 2 GiB; a frame that says it has 2^56 bytes; old zstd */
  static const uint8_t window[] = {0x28, 0xb5, 0x2f, 0xfd, 0, 21 << 3, 1, 0, 0};
  static const uint8_t size[] = {0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0,
                                 0,    0,    0,    0,    1,    1, 0, 0};
  static const uint8_t old[] = {0x25, 0xb5, 0x2f, 0xfd, 0, 0, 0, 0};
  size_t n, n_frames = 100000;
  uint8_t *packed = pack_zeros((size_t)256 << 20, &n);

  CHECK(n < 64 * KIB);
  check_packed("zstd: 256 MiB of zeros", packed, n, TNK_ETOOBIG, 18000);
  free(packed);
  check_packed("zstd: a window of 2 GiB", window, sizeof(window), TNK_ETOOBIG,
               512);
  check_packed("zstd: a frame of 2^56 bytes", size, sizeof(size), TNK_ETOOBIG,
               512);
  check_packed("zstd: of before 0.8", old, sizeof(old), TNK_EPROTO, 512);
  /* Frames with nothing in them; the last one is cut off. */
  packed = malloc(n_frames * 9);
  CHECK(packed != NULL);
  for (size_t i = 0; i < n_frames; i++)
    memcpy(packed + 9 * i, "\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00", 9);
  check_packed("zstd: 100,000 empty frames", packed, 9 * n_frames - 1,
               TNK_EPROTO, 1024);
  free(packed);
}

/* ---- More than one answer, or too early ---- */

#define ANSWER(body) OK "Content-Length: 2\r\nX-Header: " body "\r\n\r\n" body

static void reply_raw(mock_request_t *request, void *user) {
  mock_raw(request, user, strlen(user));
  mock_end(request, 0);
}

/* A short exchange, measured. */
static void run(fixture_t *f, call_t *call, const char *target,
                const char *peer) {
  meter_t meter;

  meter_start(&meter, f);
  start(f, call, target);
  call_wait(f, call);
  meter_check(&meter, f, peer, call, 100, 128);
}

/* The first answer counts. What is behind it meets nobody: the next request
 * goes out on a new connection. */
static void check_surplus(const char *peer, char *bytes) {
  fixture_t f;
  call_t call;

  fixture_open(&f);
  mock_on(f.mock, "POST", "/surplus", reply_raw, bytes);
  run(&f, &call, "/surplus", peer);
  CHECK_INT(call.err, TNK_OK);
  CHECK_STR(call.body, "a1");
  mock_wait_open(f.mock, 0);
  call_get(&f, "/ok");
  CHECK_INT(mock_n_connections(f.mock), 2);
  fixture_close(&f);
}

TEST(answers_that_nobody_asked_for) {
  static char two[] = ANSWER("a1") ANSWER("b2");
  static char garbage[] = ANSWER("a1") "\r\n\x01garbage";
  static char late[] = ANSWER("x9");
  fixture_t f;
  call_t call;

  check_surplus("two answers to one request", two);
  check_surplus("garbage behind the answer", garbage);
  /* On a kept connection, before the next request. */
  fixture_open(&f);
  call_get(&f, "/ok");
  mock_write_idle(f.mock, late);
  mock_wait_open(f.mock, 0);
  run(&f, &call, "/ok", "an answer before the request");
  CHECK_INT(call.err, TNK_OK);
  CHECK_STR(call.body, "{\"ok\":true}");
  CHECK_INT(mock_n_connections(f.mock), 2);
  fixture_close(&f);
}

/* Not followed here, so nothing can go round. */
TEST(a_redirect_is_an_answer) {
  static char loop[] = "HTTP/1.1 302 Found\r\nLocation: /loop\r\n"
                       "Content-Length: 0\r\n\r\n";
  fixture_t f;
  call_t call;

  fixture_open(&f);
  mock_on(f.mock, "POST", "/loop", reply_raw, loop);
  run(&f, &call, "/loop", "redirect loop");
  CHECK_INT(call.status, 302);
  CHECK_INT(mock_n_requests(f.mock), 1);
  fixture_close(&f);
}

/* ---- TLS ---- */

/* A peer that speaks TLS only as far as it goes. */
typedef struct {
  const char *peer;
  const char *head;
  size_t n_head;
  size_t n_zeros; /* after each head */
  uint64_t every_ms;
  int repeat; /* head and zeros again and again */
  int err;
  uint64_t max_ms;
  size_t max_kib;
} tls_row_t;

static void send_tls(fixture_t *f, test_server_t *server, const call_t *call,
                     const tls_row_t *row) {
  size_t n = row->n_head + row->n_zeros;
  char *bytes = calloc(1, n + 1);

  CHECK(bytes != NULL);
  memcpy(bytes, row->head, row->n_head);
  /* The certificates are read and the client has said hello. */
  TEST_RUN_UNTIL(&f->c.uv, server->n_received > 0);
  for (int i = 0; call->n_done == 0; i++) {
    if (n > 0 && (i == 0 || row->repeat) && server->conns != NULL)
      test_conn_write(server->conns, bytes, n);
    mock_turns(f->mock, 5);
    if (call->n_done == 0)
      tnk__context_advance(&f->c.loop, row->every_ms);
    mock_turns(f->mock, 1);
  }
  free(bytes);
}

static void check_tls(const tls_row_t *row,
                      const tnk__http_options_t *options) {
  const test_server_options_t nothing = {.identity = NULL};
  test_server_t server;
  tnk__http_request_t request;
  meter_t meter;
  fixture_t f;
  call_t call;

  fixture_open_with(&f, options);
  test_server_open(&server, &f.c.uv, &nothing);
  meter_start(&meter, &f);
  request = request_to(f.mock, TNK__LANE_TRAIN, "POST", "/x");
  request.origin.port = (uint16_t)server.port;
  request.origin.is_tls = 1;
  request.timeout_ms = TIMEOUT_MS;
  call_send(&f, &call, &request);
  send_tls(&f, &server, &call, row);
  meter_check(&meter, &f, row->peer, &call, row->max_ms, row->max_kib);
  CHECK_INT(call.err, row->err);
  CHECK_INT(call.sent, 0);
  test_server_close(&server);
  fixture_close(&f);
}

#define BYTES(text) text, sizeof(text) - 1

TEST_LIMIT(tls_peers, 30) {
  static const tls_row_t rows[] = {
      {"tls: silence", BYTES(""), 0, 500, 0, TNK_ETIMEDOUT, CONNECT_MS, 512},
      {"tls: a handshake that never ends", BYTES("\x16\x03\x03\x40\x00\x02"), 0,
       500, 0, TNK_ETIMEDOUT, CONNECT_MS, 512},
      {"tls: one byte of a handshake at a time", BYTES("\x16"), 0, 500, 1,
       TNK_ETLS, CONNECT_MS, 512},
      {"tls: a record of 64 KiB", BYTES("\x16\x03\x03\xff\xff"), 65535, 10, 1,
       TNK_ETLS, 100, 512},
      {"tls: a hello of 16 MiB",
       BYTES("\x16\x03\x03\x40\x00\x02\xff\xff\xff\x03\x03"), 16384 - 6, 10, 1,
       TNK_ETLS, 200, 512},
      {"tls: endless requests to begin anew",
       BYTES("\x16\x03\x03\x00\x04\x00\x00\x00\x00"), 0, 10, 1, TNK_ETLS,
       CONNECT_MS, 512},
      {"tls: endless warnings", BYTES("\x15\x03\x03\x00\x02\x01\x5a"), 0, 10, 1,
       TNK_ETIMEDOUT, CONNECT_MS, 512},
      {"tls: endless empty records", BYTES("\x16\x03\x03\x00\x00"), 0, 10, 1,
       TNK_ETLS, CONNECT_MS, 512},
      {"tls: no TLS at all", BYTES("HTTP/1.1 200 OK\r\n\r\n"), 0, 10, 1,
       TNK_ETLS, 200, 512},
  };

  const test_cert_t authority = {.subject = "CN=test authority", .is_ca = 1};
  char ca_path[256];
  const tnk__http_options_t options = {.ca_file = ca_path};
  test_identity_t ca;

  test_identity_make(&ca, &authority);
  test_identity_save(&ca, ca_path, sizeof(ca_path));
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    check_tls(&rows[i], &options);
  CHECK_INT(unlink(ca_path), 0);
  test_identity_free(&ca);
}
