/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/http_read.h"

#include <string.h>

#include "codec/packed.h"
#include "lib/base/limits.h"
#include "support/test.h"
#include "tnk/error.h"

enum { MAX_BODY = 1000 };

typedef struct {
  tnk__response_t response;
  tnk__http_reader_t reader;
  int err;
} reading_t;

static void reading_init(reading_t *r, int is_head) {
  tnk__response_init(&r->response, test_allocator(), MAX_BODY);
  tnk__http_reader_init(&r->reader, &r->response, is_head);
  r->err = TNK_OK;
}

static void feed(reading_t *r, const char *data, size_t n) {
  /* A copy of exactly that size lets sanitizers see reads beyond it. */
  uint8_t *copy = test_allocator()->malloc(n, test_allocator()->user);

  memcpy(copy, data, n);
  r->err = tnk__http_reader_feed(&r->reader, copy, n);
  test_allocator()->free(copy, test_allocator()->user);
}

/* Feed in pieces: step > 0 has them all of that size, 0 makes random cuts. */
static void feed_chopped(reading_t *r, const char *data, size_t n, size_t step,
                         uint64_t *state) {
  while (n > 0 && r->err == TNK_OK) {
    size_t piece = step > 0 ? step : 1 + (size_t)(test_random(state) % 40);
    if (piece > n)
      piece = n;
    feed(r, data, piece);
    data += piece;
    n -= piece;
  }
}

typedef struct {
  int err;    /* of feeding */
  int is_eof; /* the stream ends behind it; then err is of the end */
  int is_head;
  int state;
  int status;
  int keep_alive;
  const char *body;
} expected_t;

static void check_one(const char *data, size_t n, const expected_t *e,
                      size_t step, uint64_t *state) {
  reading_t r;

  reading_init(&r, e->is_head);
  feed_chopped(&r, data, n, step, state);
  if (e->is_eof && r.err == TNK_OK)
    r.err = tnk__http_reader_eof(&r.reader);
  CHECK_INT(r.err, e->err);
  if (e->err == TNK_OK) {
    CHECK_INT(r.reader.state, e->state);
    CHECK_INT(r.response.status, e->status);
    if (e->state == TNK__HTTP_READ_DONE)
      CHECK_INT(r.response.is_keep_alive, e->keep_alive);
    CHECK_MEM(r.response.body.data, r.response.body.len, e->body,
              strlen(e->body));
  }
  tnk__response_deinit(&r.response);
}

static void check_n(const char *data, size_t n, const expected_t *e) {
  uint64_t state = 7;

  check_one(data, n, e, n, &state);
  check_one(data, n, e, 1, &state);
  check_one(data, n, e, 2, &state);
  for (int i = 0; i < 20; i++)
    check_one(data, n, e, 0, &state);
}

static void check(const char *text, const expected_t *e) {
  check_n(text, strlen(text), e);
}

static void check_done(const char *text, int status, int keep_alive,
                       const char *body) {
  const expected_t e = {.state = TNK__HTTP_READ_DONE,
                        .status = status,
                        .keep_alive = keep_alive,
                        .body = body};

  check(text, &e);
}

static void check_fails(const char *text, int err) {
  const expected_t e = {.err = err};

  check(text, &e);
}

TEST(length) {
  check_done("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, 1,
             "hello");
  check_done("HTTP/1.1 404 \r\ncontent-length:0\r\n\r\n", 404, 1, "");
  check_done("HTTP/1.1 500\r\nContent-Length: 2\r\n\r\nno", 500, 1, "no");
}

TEST(keep_alive) {
  check_done("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n"
             "\r\nx",
             200, 0, "x");
  check_done("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, 0, "x");
  check_done("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n"
             "Content-Length: 1\r\n\r\nx",
             200, 1, "x");
  check_done("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
             200, 1, "");
}

TEST(chunks_with_extensions_and_trailers) {
  check_done("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
             "3;name=value\r\nabc\r\nA\r\n0123456789\r\n0\r\n"
             "X-Trailer: 1\r\nContent-Type: evil\r\n\r\n",
             200, 1, "abc0123456789");
}

TEST(interim_responses_are_skipped) {
  check_done("HTTP/1.1 100 Continue\r\nX-A: 1\r\n\r\n"
             "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
             "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
             200, 1, "ok");
  check_fails("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n"
              "Connection: upgrade\r\n\r\n",
              TNK_EPROTO);
}

TEST(responses_without_a_body) {
  const expected_t head = {.is_head = 1,
                           .state = TNK__HTTP_READ_DONE,
                           .status = 200,
                           .keep_alive = 1,
                           .body = ""};

  check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", &head);
  check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &head);
  check("HTTP/1.1 200 OK\r\n\r\n", &head);
  check_done("HTTP/1.1 204 No Content\r\n\r\n", 204, 1, "");
  check_done("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304, 1,
             "");
  /* A length that says what cannot be: the bytes are not ours to read, and
   * the connection is not used again. */
  check_done("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", 204,
             0, "");
}

TEST(body_until_the_end_of_the_stream) {
  expected_t e = {.is_eof = 1,
                  .state = TNK__HTTP_READ_DONE,
                  .status = 200,
                  .keep_alive = 0,
                  .body = "hello"};

  check("HTTP/1.1 200 OK\r\n\r\nhello", &e);
  e.body = "";
  check("HTTP/1.1 200 OK\r\n\r\n", &e);
}

TEST(cut_off_is_never_a_success) {
  static const char *const whole[] = {
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5\r\nhello\r\n0\r\nX: y\r\n\r\n"};

  for (size_t k = 0; k < 2; k++) {
    for (size_t n = 0; n < strlen(whole[k]); n++) {
      reading_t r;
      reading_init(&r, 0);
      if (n > 0)
        feed(&r, whole[k], n);
      CHECK_INT(r.err, TNK_OK);
      CHECK(r.reader.state != TNK__HTTP_READ_DONE);
      CHECK_INT(tnk__http_reader_eof(&r.reader), TNK_ECONN);
      CHECK_INT(tnk__http_reader_eof(&r.reader), TNK_ECONN);
      tnk__response_deinit(&r.response);
    }
  }
}

TEST(bytes_behind_the_response_end_the_connection) {
  check_done("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"
             "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny",
             200, 0, "x");
  check_done("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n"
             "\r\nxgarbage",
             200, 0, "x");
}

TEST(smuggling_is_refused) {
  static const char *const rows[] = {
      /* Two lengths, the same or not, and a length beside chunks. */
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n"
      "\r\n5\r\nhello\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n"
      "\r\n5\r\nhello\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello",
      "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
      "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\nhello",
      "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n",
      /* Codings that would leave the end to be guessed. */
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
      "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
      /* Lines that are not lines. */
      "HTTP/1.1 200 OK\r\nX:\rContent-Length: 5\r\n\r\nhello",
      "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
      "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello",
      "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
      /* Chunks that are not chunks. */
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
      "10000000000000000\r\n",
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    check_fails(rows[i], TNK_EPROTO);
}

TEST(what_is_not_http) {
  static const char *const rows[] = {
      "garbage\r\n\r\n",
      "HTTP/2.0 200 OK\r\n\r\n",
      "HTTP/0.9 200 OK\r\n\r\n",
      "HTTP/9.9 200 OK\r\n\r\n",
      "HTTP/1.1 99 Low\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 600 High\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 2000 Long\r\n\r\n",
      "HTTP/1.1 OK\r\n\r\n",
      "GET / HTTP/1.1\r\n\r\n",
      "\x16\x03\x01\x02",
  };
  static const char nul[] = "HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n";
  const expected_t refused = {.err = TNK_EPROTO};

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    check_fails(rows[i], TNK_EPROTO);
  check_n(nul, sizeof(nul) - 1, &refused);
}

TEST(encodings_that_were_not_asked_for) {
  check_fails("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
              "Content-Length: 1\r\n\r\nx",
              TNK_EPROTO);
  check_done("HTTP/1.1 200 OK\r\nContent-Encoding: Identity\r\n"
             "Content-Length: 1\r\n\r\nx",
             200, 1, "x");
}

TEST(zstd) {
  static const char plain[] = "abc abc abc abc abc abc abc abc abc abc abc abc";
  tnk__buf_t packed;
  tnk__buf_t text;
  expected_t e = {.state = TNK__HTTP_READ_DONE,
                  .status = 200,
                  .keep_alive = 1,
                  .body = plain};

  tnk__buf_init(&packed, test_allocator(), 1000);
  tnk__buf_init(&text, test_allocator(), 1000);
  CHECK_INT(pack_frame(&packed, plain, sizeof(plain) - 1), TNK_OK);
  tnk__buf_printf(&text,
                  "HTTP/1.1 200 OK\r\nContent-Encoding: ZSTD\r\n"
                  "Content-Length: %zu\r\n\r\n",
                  packed.len);
  tnk__buf_append(&text, packed.data, packed.len);
  check_n((const char *)text.data, text.len, &e);
  /* A frame that lacks its end, in a message that does not. */
  tnk__buf_clear(&text);
  tnk__buf_printf(&text,
                  "HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\n"
                  "Transfer-Encoding: chunked\r\n\r\n%zx\r\n",
                  packed.len - 1);
  tnk__buf_append(&text, packed.data, packed.len - 1);
  tnk__buf_text(&text, "\r\n0\r\n\r\n");
  e.err = TNK_EPROTO;
  check_n((const char *)text.data, text.len, &e);
  tnk__buf_deinit(&packed);
  tnk__buf_deinit(&text);
  check_done("HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\n"
             "Content-Length: 0\r\n\r\n",
             200, 1, "");
  check_fails("HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\n"
              "Content-Length: 7\r\n\r\nnotzstd",
              TNK_EPROTO);
  check_fails("HTTP/1.1 200 OK\r\nContent-Encoding: gzip, zstd\r\n"
              "Content-Length: 7\r\n\r\nnotzstd",
              TNK_EPROTO);
}

/* 100 kB of zeros in some dozens of bytes, against a limit of 1,000. */
TEST(a_bomb_is_cut) {
  static char zeros[100000];
  tnk__buf_t packed;
  tnk__buf_t text;
  const expected_t e = {.err = TNK_ETOOBIG};

  tnk__buf_init(&packed, test_allocator(), 200000);
  tnk__buf_init(&text, test_allocator(), 2000);
  CHECK_INT(pack_frame(&packed, zeros, sizeof(zeros)), TNK_OK);
  tnk__buf_printf(&text,
                  "HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\n"
                  "Content-Length: %zu\r\n\r\n",
                  packed.len);
  tnk__buf_append(&text, packed.data, packed.len);
  check_n((const char *)text.data, text.len, &e);
  tnk__buf_deinit(&packed);
  tnk__buf_deinit(&text);
}

TEST(headers) {
  static const char text[] =
      "HTTP/1.1 100 Continue\r\nX-Interim: 1\r\n\r\n"
      "HTTP/1.1 200 OK\r\nX-Empty:\r\nRetry-After:  7 \r\nX-A: 1\r\n"
      "X-B: b\r\nx-a: 2\r\nX-A:\r\nX-Last: z\r\nContent-Length: 0\r\n\r\n";
  uint64_t state = 3;

  for (size_t step = 0; step < sizeof(text); step++) {
    reading_t r;
    reading_init(&r, 0);
    feed_chopped(&r, text, sizeof(text) - 1, step, &state);
    CHECK_INT(r.err, TNK_OK);
    CHECK_STR(tnk__response_header(&r.response, "retry-after"), "7");
    CHECK_STR(tnk__response_header(&r.response, "x-empty"), "");
    CHECK_STR(tnk__response_header(&r.response, "X-A"), "1, 2, ");
    CHECK_STR(tnk__response_header(&r.response, "x-b"), "b");
    CHECK_STR(tnk__response_header(&r.response, "x-last"), "z");
    CHECK_STR(tnk__response_header(&r.response, "content-length"), "0");
    CHECK(tnk__response_header(&r.response, "x-interim") == NULL);
    CHECK(tnk__response_header(&r.response, "x") == NULL);
    CHECK(tnk__response_header(&r.response, "") == NULL);
    tnk__response_deinit(&r.response);
  }
}

/* Feed a start, then one piece for ever; returns the final error. */
static int feed_for_ever(const char *start, const char *again) {
  reading_t r;
  size_t n = 0;

  reading_init(&r, 0);
  feed(&r, start, strlen(start));
  while (r.err == TNK_OK) {
    CHECK(n < 200 * 1024);
    feed(&r, again, strlen(again));
    n += strlen(again);
  }
  tnk__response_deinit(&r.response);
  return r.err;
}

TEST(every_size_has_a_ceiling) {
  static const char chunked[] =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

  CHECK_INT(feed_for_ever("HTTP/1.1 200 OK\r\n", "X: y\r\n"), TNK_ETOOBIG);
  CHECK_INT(feed_for_ever("HTTP/1.1 200 OK\r\nX: ", "yyyyyyyyyy"), TNK_ETOOBIG);
  CHECK_INT(feed_for_ever("HTTP/1.1 200 OK\r\nX:", "          "), TNK_ETOOBIG);
  CHECK_INT(feed_for_ever("HTTP/1.1 200 ", "reasons "), TNK_ETOOBIG);
  CHECK_INT(feed_for_ever("\r\n", "HTTP/1.1 100 Continue\r\n\r\n"),
            TNK_ETOOBIG);
  CHECK_INT(feed_for_ever(chunked, "5\r\nhello\r\n"), TNK_ETOOBIG);
  CHECK_INT(feed_for_ever("HTTP/1.1 200 OK\r\n\r\n", "body"), TNK_ETOOBIG);
  {
    char start[128];
    size_t n = sizeof(chunked) - 1;
    memcpy(start, chunked, n);
    memcpy(start + n, "1;x=", 5);
    CHECK_INT(feed_for_ever(start, "yyyyyyyyyy"), TNK_ETOOBIG);
    memcpy(start + n, "0\r\n", 4);
    CHECK_INT(feed_for_ever(start, "X: y\r\n"), TNK_ETOOBIG);
  }
}

/* How many bytes are taken, after a head, of a line that never ends. */
static size_t n_taken(const char *head, const char *line) {
  reading_t r;
  size_t n = strlen(line);

  reading_init(&r, 0);
  feed(&r, head, strlen(head));
  feed(&r, line, n);
  CHECK_INT(r.err, TNK_OK);
  for (;; n++) {
    feed(&r, "y", 1);
    if (r.err != TNK_OK)
      break;
  }
  CHECK_INT(r.err, TNK_ETOOBIG);
  tnk__response_deinit(&r.response);
  return n;
}

TEST(heads_and_trailers_end_at_a_byte) {
  static const char head[] = "HTTP/1.1 200 OK\r\n";

  CHECK_INT(sizeof(head) - 1 + n_taken(head, "X: "),
            TNK__MAX_RESPONSE_HEAD - 1);
  CHECK_INT(n_taken("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                    "0\r\nX: "),
            TNK__MAX_RESPONSE_HEAD);
}

TEST(body_at_its_limit) {
  static char text[2000];
  expected_t e = {.state = TNK__HTTP_READ_DONE, .status = 200, .keep_alive = 1};
  size_t n;

  memcpy(text, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", 41);
  n = strlen(text);
  memset(text + n, 'b', MAX_BODY);
  e.body = text + n;
  check(text, &e);
  /* Refused by what it announces, before a byte of it came. */
  check_fails("HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", TNK_ETOOBIG);
  check_fails("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n"
              "\r\n",
              TNK_ETOOBIG);
}

TEST(an_announced_gigabyte_is_not_allocated) {
  tnk__response_t response;
  tnk__http_reader_t reader;
  static const char text[] = "HTTP/1.1 200 OK\r\n"
                             "Content-Length: 1000000000\r\n\r\n";

  tnk__response_init(&response, test_allocator(), TNK__MAX_RESPONSE_BODY);
  tnk__http_reader_init(&reader, &response, 0);
  CHECK_INT(
      tnk__http_reader_feed(&reader, (const uint8_t *)text, sizeof(text) - 1),
      TNK_OK);
  CHECK(response.body.cap <= 2 * TNK__MIB);
  tnk__response_deinit(&response);
}

TEST(every_allocation_fails_once) {
  /* More headers than need no memory of their own. */
  static const char text[] =
      "HTTP/1.1 200 OK\r\nX-A: 1\r\nX-A: 2\r\nTransfer-Encoding: chunked\r\n"
      "A: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\nE: 5\r\nF: 6\r\nG: 7\r\nH: 8\r\nI: 9\r\n"
      "J: 10\r\n\r\n5\r\nhello\r\n0\r\n\r\n";

  for (long n = 0;; n++) {
    reading_t r;
    reading_init(&r, 0);
    test_alloc_fail_at(n + 1); /* the first is the copy of the input */
    feed(&r, text, sizeof(text) - 1);
    tnk__response_deinit(&r.response);
    if (!test_alloc_did_fail()) {
      CHECK(n > 2);
      CHECK_INT(r.err, TNK_OK);
      CHECK_INT(r.response.n_headers, TNK__FEW_HEADERS + 1);
      break;
    }
    CHECK_INT(r.err, TNK_ENOMEM);
  }
  test_alloc_fail_at(-1);
}
