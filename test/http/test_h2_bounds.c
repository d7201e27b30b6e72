/* SPDX-License-Identifier: MIT */
/*
 * HTTP/2: servers that mean harm, or are out of order. Each ends an exchange
 * within a ceiling of time, on the fake clock, and of memory, and the next
 * exchange works. Every case prints its rows: peer, error, time, peak of
 * memory.
 */
#include <stdio.h>
#include <stdlib.h>

#include "http/fixture.h"
#include "support/mock_http2.h"

enum {
  TIMEOUT_MS = 60000,
  MAX_BODY = 8 << 20,
  KIB = 1024,
  PORTION = 64 * KIB, /* what a peer sends in a turn of the loop */
  END_STREAM = 1,
  END_HEADERS = 4,
  MAX_FRAME = 16384
};

typedef struct {
  uint8_t data[4 * MAX_FRAME];
  size_t n;
} bytes_t;

typedef struct row {
  const char *peer;
  /* Sends a portion; the first one is number 0. */
  void (*send)(fixture_t *f, mock_request_t *request, size_t number);
  int err;
  uint64_t every_ms; /* a portion */
  uint64_t max_ms;
  size_t max_kib; /* beside what the client held before */
} row_t;

/* ---- Frames ---- */

static void frame(fixture_t *f, uint8_t type, uint8_t flags, int32_t stream,
                  const void *payload, size_t n) {
  mock_frame(f->mock, 0, type, flags, stream, payload, n);
}

/* A literal that is not indexed. Lengths below 2^14 + 127. */
static void add_length(bytes_t *bytes, size_t n) {
  if (n < 127) {
    bytes->data[bytes->n++] = (uint8_t)n;
    return;
  }
  bytes->data[bytes->n++] = 127;
  bytes->data[bytes->n++] = (uint8_t)((n - 127) % 128 | 128);
  bytes->data[bytes->n++] = (uint8_t)((n - 127) / 128);
}

static void add_header(bytes_t *bytes, uint8_t how, const char *name,
                       size_t n_value) {
  const size_t n = strlen(name);

  CHECK(bytes->n + n + n_value + 8 < sizeof(bytes->data));
  bytes->data[bytes->n++] = how;
  add_length(bytes, n);
  memcpy(bytes->data + bytes->n, name, n);
  bytes->n += n;
  add_length(bytes, n_value);
  memset(bytes->data + bytes->n, 'v', n_value);
  bytes->n += n_value;
}

static void begin_200(fixture_t *f, const mock_request_t *request) {
  frame(f, MOCK_HEADERS, END_HEADERS, request->stream_id, "\x88", 1);
}

/* ---- Heads ---- */

static void endless_continuation(fixture_t *f, mock_request_t *request,
                                 size_t number) {
  bytes_t bytes = {.n = 0};

  if (number == 0)
    frame(f, MOCK_HEADERS, 0, request->stream_id, "\x88", 1);
  while (bytes.n < MAX_FRAME - 2000)
    add_header(&bytes, 0, "x-a", 1000);
  for (int i = 0; i < 4; i++)
    frame(f, MOCK_CONTINUATION, 0, request->stream_id, bytes.data, bytes.n);
}

static void empty_continuation(fixture_t *f, mock_request_t *request,
                               size_t number) {
  if (number == 0)
    frame(f, MOCK_HEADERS, 0, request->stream_id, "\x88", 1);
  for (int i = 0; i < 1000; i++)
    frame(f, MOCK_CONTINUATION, 0, request->stream_id, NULL, 0);
}

/* One head of 80 KiB, all of it proper. */
static void long_head(fixture_t *f, mock_request_t *request, size_t number) {
  bytes_t bytes = {.n = 0};

  if (number > 0)
    return;
  frame(f, MOCK_HEADERS, 0, request->stream_id, "\x88", 1);
  while (bytes.n < MAX_FRAME - 2000)
    add_header(&bytes, 0, "x-a", 1000);
  for (int i = 0; i < 6; i++)
    frame(f, MOCK_CONTINUATION, i == 5 ? END_HEADERS : 0, request->stream_id,
          bytes.data, bytes.n);
}

static void many_headers(fixture_t *f, mock_request_t *request, size_t number) {
  bytes_t bytes = {.n = 1};

  if (number > 0)
    return;
  bytes.data[0] = 0x88;
  while (bytes.n < MAX_FRAME - 100)
    add_header(&bytes, 0, "a", 0);
  frame(f, MOCK_HEADERS, END_HEADERS, request->stream_id, bytes.data, bytes.n);
}

/* One header of 4,000 bytes, and then 12,000 times a byte that repeats it. */
static void head_bomb(fixture_t *f, mock_request_t *request, size_t number) {
  bytes_t bytes = {.n = 1};

  if (number > 0)
    return;
  bytes.data[0] = 0x88;
  add_header(&bytes, 0x40, "x-a", 4000);
  memset(bytes.data + bytes.n, 0xbe, 12000);
  bytes.n += 12000;
  frame(f, MOCK_HEADERS, END_HEADERS | END_STREAM, request->stream_id,
        bytes.data, bytes.n);
}

static void endless_informs(fixture_t *f, mock_request_t *request,
                            size_t number) {
  bytes_t bytes = {.n = 0};

  (void)number;
  /* ":status" by its name in the static table, 103 as a literal. */
  memcpy(bytes.data,
         "\x08\x03"
         "103",
         5);
  for (int i = 0; i < 1000; i++)
    frame(f, MOCK_HEADERS, END_HEADERS, request->stream_id, bytes.data, 5);
}

static void endless_trailers(fixture_t *f, mock_request_t *request,
                             size_t number) {
  bytes_t bytes = {.n = 0};

  if (number == 0)
    begin_200(f, request);
  while (bytes.n < MAX_FRAME - 2000)
    add_header(&bytes, 0, "x-a", 1000);
  if (number == 0)
    frame(f, MOCK_HEADERS, END_STREAM, request->stream_id, bytes.data, bytes.n);
  frame(f, MOCK_CONTINUATION, 0, request->stream_id, bytes.data, bytes.n);
}

/* No status, two of them, one that is no number, a name in upper case. */
static void bad_head(fixture_t *f, mock_request_t *request, size_t number,
                     const char *head, size_t n) {
  if (number == 0)
    frame(f, MOCK_HEADERS, END_HEADERS | END_STREAM, request->stream_id, head,
          n);
}

static void no_status(fixture_t *f, mock_request_t *request, size_t number) {
  bad_head(f, request, number, "\xa1", 1);
}

static void two_statuses(fixture_t *f, mock_request_t *request, size_t number) {
  bad_head(f, request, number, "\x88\x88", 2);
}

static void odd_status(fixture_t *f, mock_request_t *request, size_t number) {
  bad_head(f, request, number, "\x08\x03\x32\x78\x78", 5);
}

static void upper_case(fixture_t *f, mock_request_t *request, size_t number) {
  bad_head(f, request, number, "\x88\x00\x01X\x01v", 6);
}

static void connection_header(fixture_t *f, mock_request_t *request,
                              size_t number) {
  bad_head(f, request, number,
           "\x88\x00\x0a"
           "connection\x05"
           "close",
           19);
}

static void broken_huffman(fixture_t *f, mock_request_t *request,
                           size_t number) {
  bad_head(f, request, number, "\x88\x00\x84\xff\xff\xff\xff\x01v", 9);
}

static void no_such_index(fixture_t *f, mock_request_t *request,
                          size_t number) {
  bad_head(f, request, number, "\x88\xff\x7f", 3);
}

/* ---- Bodies ---- */

static void endless_empty_data(fixture_t *f, mock_request_t *request,
                               size_t number) {
  if (number == 0)
    begin_200(f, request);
  for (int i = 0; i < 1000; i++)
    frame(f, MOCK_DATA, 0, request->stream_id, NULL, 0);
}

static void endless_body(fixture_t *f, mock_request_t *request, size_t number) {
  static char zeros[PORTION];

  (void)f;
  if (number == 0)
    mock_begin(request, 200, NULL);
  mock_piece(request, zeros, sizeof(zeros));
}

static void longer_than_told(fixture_t *f, mock_request_t *request,
                             size_t number) {
  (void)f;
  if (number > 0)
    return;
  mock_begin(request, 200, "Content-Length: 2\r\n");
  mock_piece(request, "three", 5);
  mock_end(request, 0);
}

static void shorter_than_told(fixture_t *f, mock_request_t *request,
                              size_t number) {
  (void)f;
  if (number > 0)
    return;
  mock_begin(request, 200, "Content-Length: 9\r\n");
  mock_piece(request, "three", 5);
  mock_end(request, 0);
}

static void length_of_ten_gb(fixture_t *f, mock_request_t *request,
                             size_t number) {
  (void)f;
  if (number == 0)
    mock_begin(request, 200, "Content-Length: 10000000000\r\n");
}

static void data_before_head(fixture_t *f, mock_request_t *request,
                             size_t number) {
  if (number == 0)
    frame(f, MOCK_DATA, 0, request->stream_id, "x", 1);
}

static void gzip(fixture_t *f, mock_request_t *request, size_t number) {
  (void)f;
  if (number == 0)
    mock_reply(request, 200, "Content-Encoding: gzip\r\n", "\x1f\x8b\x08", 3);
}

/* ---- The connection ---- */

static void settings_flood(fixture_t *f, mock_request_t *request,
                           size_t number) {
  (void)request;
  if (number == 0)
    mock_set_reading(f->mock, 0);
  for (int i = 0; i < 1000; i++)
    frame(f, MOCK_SETTINGS, 0, 0, NULL, 0);
}

static void settings_changes(fixture_t *f, mock_request_t *request,
                             size_t number) {
  uint8_t entries[6 * 2000];

  (void)request;
  (void)number;
  for (size_t i = 0; i < 2000; i++)
    memcpy(entries + 6 * i, "\x00\x04\x00\x00\xff\xff", 6);
  frame(f, MOCK_SETTINGS, 0, 0, entries, sizeof(entries));
}

static void ping_flood(fixture_t *f, mock_request_t *request, size_t number) {
  (void)request;
  if (number == 0)
    mock_set_reading(f->mock, 0);
  for (int i = 0; i < 1000; i++)
    frame(f, MOCK_PING, 0, 0, "12345678", 8);
}

static void unknown_frames(fixture_t *f, mock_request_t *request,
                           size_t number) {
  static char payload[1000];

  (void)number;
  for (int i = 0; i < 30; i++)
    frame(f, 0x42, 0xff, request->stream_id, payload, sizeof(payload));
}

static void goaway_flood(fixture_t *f, mock_request_t *request, size_t number) {
  (void)request;
  (void)number;
  for (int i = 0; i < 1000; i++)
    frame(f, MOCK_GOAWAY, 0, 0, "\x7f\xff\xff\xff\x00\x00\x00\x00", 8);
}

static void window_overflow(fixture_t *f, mock_request_t *request,
                            size_t number) {
  (void)number;
  frame(f, MOCK_WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff", 4);
  frame(f, MOCK_WINDOW_UPDATE, 0, request->stream_id, "\x7f\xff\xff\xff", 4);
}

static void window_of_nothing(fixture_t *f, mock_request_t *request,
                              size_t number) {
  (void)number;
  frame(f, MOCK_WINDOW_UPDATE, 0, request->stream_id, "\0\0\0\0", 4);
}

static void push(fixture_t *f, mock_request_t *request, size_t number) {
  if (number == 0)
    frame(f, MOCK_PUSH_PROMISE, END_HEADERS, request->stream_id,
          "\x00\x00\x00\x02\x82", 5);
}

static void huge_frame(fixture_t *f, mock_request_t *request, size_t number) {
  static char payload[PORTION];

  if (number == 0)
    begin_200(f, request);
  frame(f, MOCK_DATA, 0, request->stream_id, payload, sizeof(payload));
}

static void stream_of_nobody(fixture_t *f, mock_request_t *request,
                             size_t number) {
  (void)request;
  if (number == 0)
    frame(f, MOCK_DATA, 0, 99, "x", 1);
}

static void reset_of_nobody(fixture_t *f, mock_request_t *request,
                            size_t number) {
  (void)request;
  if (number == 0)
    frame(f, MOCK_RST_STREAM, 0, 99, "\0\0\0\0", 4);
}

static void bad_settings(fixture_t *f, mock_request_t *request, size_t number) {
  (void)request;
  if (number == 0)
    frame(f, MOCK_SETTINGS, 0, 0, "\x00\x05\x00\x00\x00\x01", 6);
}

static void odd_settings(fixture_t *f, mock_request_t *request, size_t number) {
  (void)request;
  if (number == 0)
    frame(f, MOCK_SETTINGS, 0, 0, "\x00\x05\x00", 3);
}

static void half_a_frame(fixture_t *f, mock_request_t *request, size_t number) {
  if (number > 0)
    return;
  begin_200(f, request);
  mock_frame_of(f->mock, 0, MOCK_DATA, 0, request->stream_id, "x", 1, 10000);
}

/* ---- One row ---- */

static void open_row(fixture_t *f, call_t *call) {
  tnk__http_request_t request;

  fixture_open_http2(f);
  request = request_to(f->mock, TNK__LANE_SAMPLE, "POST", "/hold");
  request.timeout_ms = TIMEOUT_MS;
  request.max_body = MAX_BODY;
  call_send(f, call, &request);
  mock_wait(f->mock, 1);
  mock_turns(f->mock, 5);
}

static void report(const row_t *row, const call_t *call, uint64_t ms,
                   size_t kib) {
  printf("# %-36s %-13s %3d %6llu ms %6zu KiB  %s\n", row->peer,
         tnk_err_name(call->err), call->status, (unsigned long long)ms, kib,
         call->detail);
  fflush(stdout);
  if (call->err != row->err)
    test_fail(__FILE__, __LINE__, "%s: it ended with %s", row->peer,
              tnk_err_name(call->err));
  if (ms > row->max_ms)
    test_fail(__FILE__, __LINE__, "%s: it took over %llu ms", row->peer,
              (unsigned long long)row->max_ms);
  if (kib > row->max_kib)
    test_fail(__FILE__, __LINE__, "%s: it took over %zu KiB", row->peer,
              row->max_kib);
}

static void check_row(const row_t *row) {
  mock_request_t *request;
  uint64_t began_ms;
  size_t bytes;
  fixture_t f;
  call_t call;

  open_row(&f, &call);
  request = mock_request(f.mock, 0);
  began_ms = tnk__context_now_ms(&f.c.loop);
  bytes = test_alloc_bytes();
  test_alloc_reset_peak();
  for (size_t i = 0; call.n_done == 0; i++) {
    row->send(&f, request, i);
    mock_turns(f.mock, 3);
    if (call.n_done == 0)
      tnk__context_advance(&f.c.loop, row->every_ms);
    mock_turns(f.mock, 1);
  }
  report(row, &call, tnk__context_now_ms(&f.c.loop) - began_ms,
         (test_alloc_peak() - bytes + KIB - 1) / KIB);
  /* What it was in the middle of does not matter to anybody. */
  mock_set_reading(f.mock, 1);
  mock_close_connection(f.mock, 0, 1);
  mock_turns(f.mock, 5);
  call_get(&f, "/ok");
  fixture_close(&f);
}

static void check_rows(const row_t *rows, size_t n) {
  for (size_t i = 0; i < n; i++)
    check_row(&rows[i]);
}

#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof(rows[0]))

TEST_LIMIT(heads_without_measure, 30) {
  static const row_t rows[] = {
      {"endless CONTINUATION", endless_continuation, TNK_ETOOBIG, 1, 100, 512},
      {"endless empty CONTINUATION", empty_continuation, TNK_EPROTO, 1, 100,
       128},
      {"a head of 80 KiB", long_head, TNK_ETOOBIG, 1, 100, 512},
      {"4,000 empty headers", many_headers, TNK_ETOOBIG, 1, 100, 512},
      {"12,000 times one header", head_bomb, TNK_ETOOBIG, 1, 100, 512},
      {"endless 103", endless_informs, TNK_ETOOBIG, 1, 100, 256},
      {"endless trailers", endless_trailers, TNK_ETOOBIG, 1, 100, 512},
  };

  CHECK_ROWS(rows);
}

TEST_LIMIT(heads_that_are_none, 30) {
  static const row_t rows[] = {
      {"no status", no_status, TNK_EPROTO, 1, 100, 64},
      {"two statuses", two_statuses, TNK_EPROTO, 1, 100, 64},
      {"a status that is no number", odd_status, TNK_EPROTO, 1, 100, 64},
      {"a name in upper case", upper_case, TNK_EPROTO, 1, 100, 64},
      {"a header of HTTP/1.1", connection_header, TNK_EPROTO, 1, 100, 64},
      {"a broken code", broken_huffman, TNK_EPROTO, 1, 100, 64},
      {"an index of nothing", no_such_index, TNK_EPROTO, 1, 100, 64},
  };

  CHECK_ROWS(rows);
}

TEST_LIMIT(bodies_without_measure, 30) {
  static const row_t rows[] = {
      {"endless empty DATA", endless_empty_data, TNK_EPROTO, 1, 1000, 128},
      {"an endless body", endless_body, TNK_ETOOBIG, 1, 1000, 18000},
      {"a body longer than told", longer_than_told, TNK_EPROTO, 1, 100, 64},
      {"a body shorter than told", shorter_than_told, TNK_ECONN, 1, 100, 64},
      {"a length of 10 GB", length_of_ten_gb, TNK_ETOOBIG, 1, 100, 64},
      {"a body before its head", data_before_head, TNK_EPROTO, 1, 100, 64},
      {"gzip", gzip, TNK_EPROTO, 1, 100, 64},
  };

  CHECK_ROWS(rows);
}

TEST_LIMIT(frames_without_measure, 30) {
  static const row_t rows[] = {
      {"endless SETTINGS, and nothing read", settings_flood, TNK_EPROTO, 1,
       1000, 512},
      {"endless changes of settings", settings_changes, TNK_EPROTO, 1, 1000,
       512},
      {"endless PING, and nothing read", ping_flood, TNK_EPROTO, 1, 1000, 512},
      {"endless frames of an unknown type", unknown_frames, TNK_ETIMEDOUT, 1000,
       TIMEOUT_MS, 128},
      {"endless GOAWAY", goaway_flood, TNK_ECONN, 1, 1000, 128},
      {"windows over 2^31", window_overflow, TNK_EPROTO, 1, 100, 64},
      {"a window of nothing", window_of_nothing, TNK_EPROTO, 1, 100, 64},
      {"a push", push, TNK_EPROTO, 1, 100, 64},
      {"a frame of 64 KiB", huge_frame, TNK_EPROTO, 1, 100, 256},
      {"bytes for nobody's stream", stream_of_nobody, TNK_EPROTO, 1, 100, 64},
      {"a reset of nobody's stream", reset_of_nobody, TNK_EPROTO, 1, 100, 64},
      {"settings that are not allowed", bad_settings, TNK_EPROTO, 1, 100, 64},
      {"settings of an odd length", odd_settings, TNK_EPROTO, 1, 100, 64},
      {"half a frame", half_a_frame, TNK_ETIMEDOUT, 1000, 3 * TIMEOUT_MS, 128},
  };

  CHECK_ROWS(rows);
}

/* What we hold for a server that asks for large tables is ours to say. */
TEST(a_table_of_4_gb_is_not_made) {
  fixture_t f;
  size_t bytes;

  fixture_open_http2(&f);
  mock_setting(f.mock, MOCK_TABLE_SIZE, UINT32_MAX);
  call_get(&f, "/ok");
  bytes = test_alloc_bytes();
  test_alloc_reset_peak();
  for (int i = 0; i < 300; i++) {
    char value[256];
    const tnk_pair_t pair = {"X-Odd", value};
    tnk__http_request_t request =
        request_to(f.mock, TNK__LANE_SAMPLE, "POST", "/ok");
    call_t call;
    memset(value, 'a' + i % 26, sizeof(value));
    snprintf(value + 200, 20, "%d", i);
    request.headers = &pair;
    request.n_headers = 1;
    call_send(&f, &call, &request);
    call_wait(&f, &call);
    CHECK_INT(call.err, TNK_OK);
  }
  CHECK(test_alloc_peak() - bytes < 64 * (size_t)KIB);
  CHECK_INT(mock_n_connections(f.mock), 1);
  fixture_close(&f);
}
