/* SPDX-License-Identifier: MIT */
/* S1.8: a stream of events, cut anywhere. */
#include "lib/wire/stream/sse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test.h"
#include "tnk/error.h"

/* What was read, as text: "type|id|data;" for each event, with NULs as '0'. */
typedef struct {
  char text[8192];
  size_t n;
  size_t n_events;
  int err;
  int end;
  uint64_t retry_ms;
  int has_retry;
} seen_t;

static void note(seen_t *seen, const tnk__sse_event_t *event) {
  int n = snprintf(seen->text + seen->n, sizeof(seen->text) - seen->n, "%s|%s|",
                   event->type, event->id);

  CHECK(n > 0 && seen->n + (size_t)n + event->n + 2 < sizeof(seen->text));
  seen->n += (size_t)n;
  CHECK_INT(event->data[event->n], 0);
  for (size_t i = 0; i < event->n; i++)
    seen->text[seen->n++] = event->data[i] == '\0' ? '0' : event->data[i];
  seen->text[seen->n++] = ';';
  seen->text[seen->n] = '\0';
  seen->n_events++;
}

static void give(tnk__sse_t *sse, const char *text, size_t n, seen_t *seen) {
  /* A copy of just that length: a sanitizer sees who reads past it. */
  uint8_t *copy = malloc(n + (n == 0));
  const uint8_t *at = copy;
  tnk__sse_event_t event;

  CHECK(copy != NULL);
  memcpy(copy, text, n);
  while ((seen->err = tnk__sse_next(sse, &at, copy + n, &event)) == 1)
    note(seen, &event);
  CHECK(seen->err < 0 || at == copy + n);
  free(copy);
}

static void begin(tnk__sse_t *sse, seen_t *seen, size_t max) {
  memset(seen, 0, sizeof(*seen));
  tnk__sse_init(sse, test_allocator(), max);
}

static void finish(tnk__sse_t *sse, seen_t *seen) {
  seen->end = tnk__sse_end(sse);
  seen->retry_ms = sse->retry_ms;
  seen->has_retry = sse->has_retry;
  tnk__sse_deinit(sse);
}

/* In two pieces, the first of `cut` bytes; or, for SIZE_MAX, byte by byte. */
static seen_t read_cut(const char *text, size_t n, size_t cut, size_t max) {
  tnk__sse_t sse;
  seen_t seen;

  begin(&sse, &seen, max);
  if (cut == SIZE_MAX) {
    for (size_t i = 0; i < n && seen.err == 0; i++)
      give(&sse, text + i, 1, &seen);
  } else {
    give(&sse, text, cut, &seen);
    if (seen.err == 0)
      give(&sse, text + cut, n - cut, &seen);
  }
  finish(&sse, &seen);
  return seen;
}

static void check_same(const char *text, const seen_t *a, const seen_t *b) {
  if (strcmp(a->text, b->text) != 0 || a->err != b->err || a->end != b->end ||
      a->retry_ms != b->retry_ms || a->has_retry != b->has_retry)
    test_fail(__FILE__, __LINE__, "%s: \"%s\" (%d, %d), not \"%s\" (%d, %d)",
              text, b->text, b->err, b->end, a->text, a->err, a->end);
}

/* However it is cut, it is the same. */
static seen_t read_all(const char *text, size_t n) {
  seen_t whole = read_cut(text, n, n, TNK__SSE_MAX_EVENT);
  seen_t other = read_cut(text, n, SIZE_MAX, TNK__SSE_MAX_EVENT);

  check_same(text, &whole, &other);
  for (size_t cut = 0; cut < n; cut++) {
    other = read_cut(text, n, cut, TNK__SSE_MAX_EVENT);
    check_same(text, &whole, &other);
  }
  return whole;
}

#define ROW(text, events, end)                                                 \
  { text, sizeof(text) - 1, events, end }

static const struct {
  const char *text;
  size_t n;
  const char *events;
  int end;
} golden[] = {
    ROW("", "", TNK_OK),
    ROW("data: a\n\n", "message||a;", TNK_OK),
    ROW("data: a\r\n\r\ndata: b\r\rdata: c\n\n",
        "message||a;message||b;message||c;", TNK_OK),
    ROW("data: a\r\n\ndata: b\r\r\n", "message||a;message||b;", TNK_OK),
    ROW("data:a\ndata: b\ndata:  c\n\n", "message||a\nb\n c;", TNK_OK),
    ROW("data: a\r\ndata: b\r\n\r\n", "message||a\nb;", TNK_OK),
    ROW("data\n\ndata\ndata\n\ndata:\n", "message||;message||\n;", TNK_ECONN),
    ROW("event: add\ndata: 1\n\ndata: 2\n\n", "add||1;message||2;", TNK_OK),
    ROW("event: add\n\ndata: 2\n\n", "message||2;", TNK_OK),
    ROW("event: \0a\ndata: x\n\nevent: a\0b\ndata: y\n\n", "message||x;a||y;",
        TNK_OK),
    ROW("event: a\nevent: b\ndata: x\n\n", "b||x;", TNK_OK),
    ROW(": hi\n:\n\n:data: 1\ndata: 2\n: x\n\n", "message||2;", TNK_OK),
    ROW("id: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n",
        "message|7|a;message|7|b;message||c;", TNK_OK),
    /* Counts without data too, but not before the blank line. */
    ROW("id: 7\n\ndata: b\n\nid: 8\n", "message|7|b;", TNK_ECONN),
    ROW("id: 7\ndata: a\n\nid: 8\0x\ndata: b\n\n", "message|7|a;message|7|b;",
        TNK_OK),
    ROW("data: a\0b\n\n", "message||a0b;", TNK_OK),
    ROW("\xef\xbb\xbf"
        "data: a\n\n\xef\xbb\xbf"
        "data: b\n\ndata: c\n\n",
        "message||a;message||c;", TNK_OK),
    ROW("\xef\xbb"
        "data: a\n\ndata: b\n\n",
        "message||b;", TNK_OK),
    ROW("\xef\xbb", "", TNK_ECONN),
    ROW("\xef\xbb\xbf", "", TNK_OK),
    ROW("data: \xc3\xa9\xf0\x9f\x98\x80\n\n",
        "message||\xc3\xa9\xf0\x9f\x98\x80;", TNK_OK),
    ROW("data : a\nDATA: b\nxdata: c\ndat: d\n\n", "", TNK_OK),
    ROW("data: a\n", "", TNK_ECONN),
    ROW("data: a\n\ndata: b", "message||a;", TNK_ECONN),
    ROW("data: a\n\nevent: b\n", "message||a;", TNK_ECONN),
    ROW("data: a\n\n: bye", "message||a;", TNK_OK),
    ROW("\n\n\r\n\r\rdata: a\n\n\n", "message||a;", TNK_OK),
    ROW("data: [DONE]\n\n", "message||[DONE];", TNK_OK),
    ROW("data:{\"a\":\"b: c\"}\n\n", "message||{\"a\":\"b: c\"};", TNK_OK),
};

TEST(S1_8_streams_of_events_cut_anywhere) {
  for (size_t i = 0; i < sizeof(golden) / sizeof(*golden); i++) {
    seen_t seen = read_all(golden[i].text, golden[i].n);

    CHECK_STR(seen.text, golden[i].events);
    CHECK_INT(seen.err, 0);
    CHECK_INT(seen.end, golden[i].end);
  }
}

TEST(S1_8_retry_is_digits_alone) {
  static const struct {
    const char *text;
    int has;
    uint64_t ms;
  } rows[] = {{"retry: 1500\n", 1, 1500},
              {"retry:0\n", 1, 0},
              {"retry: 1.5\n", 0, 0},
              {"retry:  7\n", 0, 0},
              {"retry: -1\n", 0, 0},
              {"retry\n", 0, 0},
              {"retry: 99999999999999999999999\n", 0, 0},
              {"retry: 3\nretry: x\n", 1, 3}};

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    seen_t seen = read_all(rows[i].text, strlen(rows[i].text));

    CHECK_INT(seen.has_retry, rows[i].has);
    CHECK(seen.retry_ms == rows[i].ms);
  }
}

/* An event may have so many bytes; comments, and lines that are dropped, any
 * number altogether. */
TEST(S1_8_events_have_a_ceiling) {
  char text[256];
  seen_t seen;
  int n;

  for (int over = 0; over < 2; over++) {
    n = snprintf(text, sizeof(text), "data: %.*s\n\n", 31 + over,
                 "0123456789012345678901234567890123456789");
    for (size_t cut = 0; cut <= (size_t)n; cut++) {
      /* In place, a line counts without its name. */
      seen = read_cut(text, (size_t)n, cut, 37);
      CHECK_INT(seen.err, over ? TNK_ETOOBIG : 0);
      CHECK_INT(seen.n_events, !over);
    }
  }
  for (size_t cut = 0; cut < 40; cut++) {
    seen =
        read_cut("data: 01234567\ndata: 01234567\n\ndata: x\n\n", 40, cut, 17);
    CHECK_INT(seen.err, TNK_ETOOBIG);
    CHECK_STR(seen.text, "");
    seen = read_cut("event: 0123456789\ndata: 01234567\n\n", 35, cut % 35, 16);
    CHECK_INT(seen.err, TNK_ETOOBIG);
  }
  n = snprintf(text, sizeof(text), ":%.*s\nx: 12345\nx: 12345\ndata: 1\n\n",
               100,
               "01234567890123456789012345678901234567890123456789"
               "01234567890123456789012345678901234567890123456789");
  for (size_t cut = 0; cut <= (size_t)n; cut++) {
    seen = read_cut(text, (size_t)n, cut, 12);
    CHECK_STR(seen.text, "message||1;");
    CHECK_INT(seen.err, 0);
  }
  /* It is so for good. */
  {
    tnk__sse_t sse;

    begin(&sse, &seen, 4);
    give(&sse, "data: 12345\n\n", 13, &seen);
    CHECK_INT(seen.err, TNK_ETOOBIG);
    give(&sse, "data: 1\n\n", 9, &seen);
    CHECK_INT(seen.err, TNK_ETOOBIG);
    finish(&sse, &seen);
    CHECK_INT(seen.n_events, 0);
  }
}

TEST(S1_8_events_without_memory) {
  static const char text[] = "id: 4\nevent: a\ndata: b\ndata: c\n\ndata: d\n\n";
  int did_fail = 1;

  for (long n = 0; did_fail; n++) {
    tnk__sse_t sse;
    seen_t seen;

    begin(&sse, &seen, 64);
    test_alloc_fail_at(n);
    for (size_t i = 0; i < sizeof(text) - 1 && seen.err == 0; i += 3)
      give(&sse, text + i, sizeof(text) - 1 - i < 3 ? sizeof(text) - 1 - i : 3,
           &seen);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    CHECK_INT(seen.err, did_fail ? TNK_ENOMEM : 0);
    if (!did_fail)
      CHECK_STR(seen.text, "a|4|b\nc;message|4|d;");
    finish(&sse, &seen);
  }
}

/* ---- Ten thousand of them ---- */

typedef struct {
  char text[512];
  size_t n;
  char seen[512]; /* as note() writes it */
} made_t;

static const char *line_end(uint64_t *random) {
  static const char *const ends[] = {"\n", "\r", "\r\n"};

  return ends[test_random(random) % 3];
}

static void put(made_t *made, const char *text) {
  size_t n = strlen(text);

  CHECK(made->n + n < sizeof(made->text));
  memcpy(made->text + made->n, text, n + 1);
  made->n += n;
}

static void put_line(made_t *made, const char *name, const char *value,
                     uint64_t *random) {
  put(made, name);
  put(made, test_random(random) % 2 || value[0] == ' ' ? ": " : ":");
  put(made, value);
  put(made, line_end(random));
}

static void make(made_t *made, char *id, size_t n_id, uint64_t *random) {
  static const char *const values[] = {"",         "a", " b",        "c: d",
                                       "\xc3\xa9", ":", "{\"x\":1}", "[DONE]"};
  const char *type = "message";
  char data[256] = "";
  int n_lines = (int)(test_random(random) % 4);

  made->n = 0;
  made->seen[0] = '\0';
  if (test_random(random) % 4 == 0)
    put_line(made, "", "a comment", random);
  if (test_random(random) % 3 == 0) {
    snprintf(id, n_id, "%u", (unsigned)(test_random(random) % 1000));
    put_line(made, "id", id, random);
  }
  if (test_random(random) % 3 == 0)
    put_line(made, "event", type = "delta", random);
  for (int i = 0; i < n_lines; i++) {
    const char *value = values[test_random(random) % 8];

    put_line(made, "data", value, random);
    snprintf(data + strlen(data), sizeof(data) - strlen(data), "%s%s",
             i > 0 ? "\n" : "", value);
  }
  /* Two: with a CR before it, the first would be of the same end. */
  put(made, "\n\n");
  if (n_lines > 0)
    snprintf(made->seen, sizeof(made->seen), "%s|%s|%s;", type, id, data);
}

TEST_LIMIT(S1_8_ten_thousand_events_in_pieces_of_any_size, 30) {
  uint64_t random = 8;
  char id[8] = "";
  tnk__sse_t sse;
  seen_t seen;

  begin(&sse, &seen, TNK__SSE_MAX_EVENT);
  for (int i = 0; i < 10000; i++) {
    made_t made;

    make(&made, id, sizeof(id), &random);
    seen.n = 0;
    seen.text[0] = '\0';
    for (size_t at = 0; at < made.n;) {
      size_t n = 1 + (size_t)(test_random(&random) % 9);

      n = n < made.n - at ? n : made.n - at;
      give(&sse, made.text + at, n, &seen);
      CHECK_INT(seen.err, 0);
      at += n;
    }
    CHECK_STR(seen.text, made.seen);
  }
  finish(&sse, &seen);
  CHECK_INT(seen.end, TNK_OK);
}
