/* SPDX-License-Identifier: MIT */
/*
 * Answers that are well-formed HTTP and mean harm to those who read them: what
 * a call of the public interface makes of each, in what time on the fake
 * clock, and with what peak of memory, that of the JSON library included.
 */
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>
#include <zstd.h>

#include "task/script.h"

enum { KIB = 1024, STEP_MS = 500 };

typedef struct {
  const char *peer;
  const char *call; /* that is answered so, again and again */
  tnk_promise_t *(*start)(script_t *script);
  int status;
  const char *headers;
  /* The body: a text `n` times, between a head and a tail. '~' is a NUL. */
  const char *head;
  const char *unit;
  size_t n;
  const char *tail;
  int zstd; /* it is compressed */
  int err;
  uint64_t max_ms;
  size_t max_kib; /* beside what the client held before, and the body */
} row_t;

/* What is sent: the body of a row, made once. */
typedef struct {
  const row_t *row;
  uint8_t *data;
  size_t n;
} answer_t;

static void *count_malloc(size_t size) {
  return test_allocator()->malloc(size, NULL);
}

static void count_free(void *ptr) {
  test_allocator()->free(ptr, NULL);
}

/* ---- Bodies ---- */

/* A sanitizer needs minutes for a loop over the bytes of what unpacks to much,
 * so what is there already is doubled. */
static void fill(uint8_t *to, const char *unit, size_t n) {
  const size_t n_unit = strlen(unit), size = n_unit * n;
  size_t n_done = size > 0 ? n_unit : 0;

  for (size_t k = 0; k < n_done; k++)
    to[k] = (uint8_t)(unit[k] == '~' ? 0 : unit[k]);
  while (n_done < size) {
    const size_t left = size - n_done, part = left < n_done ? left : n_done;
    memcpy(to + n_done, to, part);
    n_done += part;
  }
}

static void make_answer(answer_t *answer, const row_t *row) {
  const size_t n_head = strlen(row->head), n_tail = strlen(row->tail);
  const size_t n_units = strlen(row->unit) * row->n;
  const size_t n = n_head + n_units + n_tail;
  uint8_t *at = malloc(n + 1), *packed;

  CHECK(at != NULL);
  answer->row = row;
  answer->data = at;
  answer->n = n;
  memcpy(at, row->head, n_head);
  fill(at + n_head, row->unit, row->n);
  memcpy(at + n_head + n_units, row->tail, n_tail);
  if (!row->zstd)
    return;
  packed = malloc(ZSTD_compressBound(n));
  CHECK(packed != NULL);
  answer->n = ZSTD_compress(packed, ZSTD_compressBound(n), answer->data, n, 1);
  CHECK(!ZSTD_isError(answer->n));
  free(answer->data);
  answer->data = packed;
}

static void reply_badly(mock_request_t *request, void *user) {
  const answer_t *answer = user;
  char headers[256];

  snprintf(headers, sizeof(headers), "%s%s",
           answer->row->headers != NULL ? answer->row->headers : "",
           answer->row->zstd ? "Content-Encoding: zstd\r\n" : "");
  mock_reply(request, answer->row->status, headers, answer->data, answer->n);
}

/* ---- One row ---- */

static void report(const row_t *row, const outcome_t *outcome, uint64_t ms,
                   size_t kib, size_t n_requests) {
  printf("# %-44s %-15s %6llu ms %6zu KiB %3zu requests\n", row->peer,
         tnk_err_name(outcome->status), (unsigned long long)ms, kib,
         n_requests);
  fflush(stdout);
  if (outcome->status != row->err)
    test_fail(__FILE__, __LINE__, "%s: %s", row->peer, outcome->text);
  if (ms > row->max_ms)
    test_fail(__FILE__, __LINE__, "%s: it took over %llu ms", row->peer,
              (unsigned long long)row->max_ms);
  if (kib > row->max_kib)
    test_fail(__FILE__, __LINE__, "%s: it took over %zu KiB", row->peer,
              row->max_kib);
}

/* Time goes on when nothing moves any more. A busy system brings an answer in
 * many pieces, and a thread reads it. */
static void settle(script_t *script) {
  const tnk__context_t *context = &script->service->root.context;
  uint64_t before;

  do {
    before = context->counters.n_bytes_received;
    script_turns(script);
  } while (context->counters.n_bytes_received != before ||
           context->n_working > 0 || mock_is_writing(script->mock));
}

/* The request of a row's body is not ours; what the client keeps of it is. */
static void check_row(const row_t *row) {
  uint64_t begin;
  size_t bytes, n_before;
  answer_t answer;
  script_t script;
  outcome_t outcome;
  char path[64];

  make_answer(&answer, row);
  script_open_train(&script);
  script_sampler(&script);
  snprintf(path, sizeof(path), "/api/v1/%s", row->call);
  mock_on(script.mock, NULL, path, reply_badly, &answer);
  n_before = mock_n_requests(script.mock);
  begin = tnk__context_now_ms(&script.service->root.context);
  bytes = test_alloc_bytes();
  test_alloc_reset_peak();
  outcome_of(&outcome, row->start(&script));
  settle(&script);
  while (outcome.n_done == 0) {
    script_advance(&script, STEP_MS);
    settle(&script);
  }
  report(row, &outcome,
         tnk__context_now_ms(&script.service->root.context) - begin,
         (test_alloc_peak() - bytes) / KIB,
         mock_n_requests(script.mock) - n_before);
  CHECK(strlen(outcome.text) < TNK__MAX_ERROR_TEXT + 256);
  outcome_drop(&outcome);
  mock_json(script.mock, NULL, path, 410, "{}");
  script_close(&script);
  free(answer.data);
}

static void check_rows(const row_t *rows, size_t n) {
  json_set_alloc_funcs(count_malloc, count_free);
  for (size_t i = 0; i < n; i++)
    check_row(&rows[i]);
}

#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof((rows)[0]))

/* ---- Operations ---- */

static tnk_promise_t *pass(script_t *script) {
  return script_pass(script, 2);
}

static tnk_promise_t *models(script_t *script) {
  return tnk_service_capabilities(script->service);
}

#define SUBMIT "optim_step"
#define RESULT "retrieve_future"
#define PROTO "Content-Type: application/x-protobuf\r\n"

TEST_LIMIT(json_that_is_too_much, 60) {
  static const row_t rows[] = {
      {"lists a million deep", RESULT, script_step, 200, NULL, "", "[", 1000000,
       "", 0, TNK_EPROTO, 1000, 4096},
      {"objects 100,000 deep", RESULT, script_step, 200, NULL, "",
       "{\"a\":", 100000, "", 0, TNK_EPROTO, 1000, 4096},
      {"objects 100,000 deep as a promise", SUBMIT, script_step, 200, NULL, "",
       "{\"a\":", 100000, "", 0, TNK_EPROTO, 4000, 4096},
      {"a million empty lists", RESULT, script_step, 200, NULL,
       "{\"metrics\":{},\"x\":[[]", ",[]", 1000000, "]}", 0, TNK_OK, 1000,
       260000},
      {"a million empty lists as a pass", RESULT, pass, 200, NULL,
       "{\"loss_fn_outputs\":[[]", ",[]", 1000000, "]}", 0, TNK_EPROTO, 1000,
       260000},
      {"a million empty lists as samples", RESULT, script_sample, 200, NULL,
       "{\"sequences\":[[]", ",[]", 1000000, "]}", 0, TNK_EPROTO, 1000, 260000},
      {"a number of a million digits", RESULT, script_step, 200, NULL,
       "{\"metrics\":{\"a\":1", "0", 1000000, "}}", 0, TNK_EPROTO, 1000, 8192},
      {"an exponent of a million digits", RESULT, script_step, 200, NULL,
       "{\"metrics\":{\"a\":1e", "9", 1000000, "}}", 0, TNK_EPROTO, 1000, 8192},
      {"a promise of 16 MiB", SUBMIT, script_step, 200, NULL,
       "{\"request_id\":\"", "a", (size_t)16 << 20, "\"}", 0, TNK_ETOOBIG, 1000,
       8192},
      {"a refusal of 3 MiB", SUBMIT, script_step, 400, NULL, "{\"detail\":\"",
       "a", (size_t)3 << 20, "\"}", 0, TNK_EREQUEST, 1000, 16384},
      {"a list of models of 16 MiB", "get_server_capabilities", models, 200,
       NULL, "{\"supported_models\":[{}", ",{}", (size_t)16 << 20, "]}", 0,
       TNK_ETOOBIG, 1000, 8192},
  };

  CHECK_ROWS(rows);
}

TEST_LIMIT(protobuf_that_is_too_much, 60) {
  static const row_t rows[] = {
      {"a million empty outputs of a pass", RESULT, pass, 200, PROTO, "",
       "\x12~", 1000000, "", 0, TNK_OK, 1000, 131072},
      {"a million empty samples", RESULT, script_sample, 200, PROTO, "",
       "\x0a~", 1000000, "", 0, TNK_EPROTO, 1000, 131072},
      {"a field of 2 GiB", RESULT, pass, 200, PROTO, "\x0a\xff\xff\xff\xff\x07",
       "a", 1000, "", 0, TNK_EPROTO, 1000, 512},
      {"100,000 unknown fields", RESULT, pass, 200, PROTO, "", "\x78\x01",
       100000, "", 0, TNK_OK, 1000, 16384},
  };

  CHECK_ROWS(rows);
}

TEST_LIMIT(what_unpacks_to_much, 60) {
  static const row_t rows[] = {
      {"zstd: a promise of 256 MiB", SUBMIT, script_step, 200, NULL, "", " ",
       (size_t)256 << 20, "{}", 1, TNK_ETOOBIG, 1000, 8192 + 2048},
      {"zstd: a list of models of 256 MiB", "get_server_capabilities", models,
       200, NULL, "", " ", (size_t)256 << 20, "{}", 1, TNK_ETOOBIG, 1000,
       8192 + 2048},
      {"zstd: a refusal of 256 MiB", SUBMIT, script_step, 400, NULL, "", " ",
       (size_t)256 << 20, "{}", 1, TNK_ETOOBIG, 1000, 8192 + 2048},
  };

  CHECK_ROWS(rows);
}

TEST_LIMIT(servers_that_never_come_to_an_end, 60) {
  static const row_t rows[] = {
      {"redirect loop", SUBMIT, script_step, 302,
       "Location: /api/v1/optim_step\r\n", "", "", 0, "", 0, TNK_EREQUEST, 1000,
       64},
      {"redirect loop of results", RESULT, script_step, 307,
       "Location: /api/v1/retrieve_future\r\n", "", "", 0, "", 0, TNK_EREQUEST,
       1000, 64},
      {"503 for ever, come back in a year", SUBMIT, script_step, 503,
       "Retry-After: 31536000\r\n", "{}", "", 0, "", 0, TNK_ESERVER, 360000,
       256},
      {"429 for ever", SUBMIT, script_step, 429, "Retry-After: 1\r\n", "{}", "",
       0, "", 0, TNK_ERATE, 360000, 256},
      {"402 for ever", SUBMIT, script_step, 402, NULL, "{}", "", 0, "", 0,
       TNK_EBILLING, 3700000, 256},
  };

  CHECK_ROWS(rows);
}
