/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>

#include "lib/api/config.h"
#include "lib/base/alloc.h"
#include "lib/base/utf8.h"
#include "lib/client/call/auth.h"
#include "lib/client/call/reach.h"
#include "lib/client/future/poller.h"
#include "lib/wire/format/http_read.h"
#include "lib/wire/format/json_read.h"
#include "lines.h"
#include "tnk/error.h"

/*
 * The batched polls of a sampling client. Each line of the input is a step:
 *
 *   w ID            somebody waits for the completion of a request
 *   l N HOW         the N-th of them leaves, in one of the three ways
 *   t MS            time passes
 *   r TEXT          the Retry-After of the next answer
 *   a STATUS BODY   the answer to the poll that is under way
 *   e N             it fails in one of four ways
 *
 * Whatever comes, everybody is woken at most once, nobody is forgotten, what
 * is sent is well-formed, and off is for ever.
 */
enum { N_WAITERS = 12, MAX_STEPS = 200, MAX_WAIT_MS = 200000 };

typedef struct {
  tnk__awaited_t awaited; /* first: woken() casts it back */
  int is_waiting;
  int was_woken;
} waiter_t;

typedef struct {
  uv_loop_t uv;
  tnk__context_t loop;
  tnk__http_t http;
  tnk__config_t config;
  tnk__endpoint_t endpoint;
  tnk__auth_t auth;
  int is_open;
} rig_t;

typedef struct {
  tnk__poller_t poller;
  waiter_t waiters[N_WAITERS];
  size_t n_waiters;
  char retry_after[64];
  int was_off;
} state_t;

static rig_t *get(void) {
  static rig_t rig;
  const tnk__http_options_t http = {.ca_file = NULL};
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  const tnk_allocator_t *alloc = tnk__allocator_default();
  const char *why = NULL;

  if (rig.is_open)
    return &rig;
  options.api_key = "tml-key";
  options.base_url = "http://127.0.0.1:9";
  FUZZ_CHECK(uv_loop_init(&rig.uv) == 0);
  FUZZ_CHECK(tnk__context_open(&rig.loop, &rig.uv, alloc, NULL) == TNK_OK);
  tnk__context_fake_clock(&rig.loop, 1000000);
  FUZZ_CHECK(tnk__config_load(&rig.config, alloc, &options, 0, &why) == TNK_OK);
  FUZZ_CHECK(tnk__http_open(&rig.http, &rig.loop, &http) == TNK_OK);
  /* Requests stay in their lane: the input says what becomes of them. */
  rig.http.lanes[TNK__LANE_POLL].max = 0;
  rig.is_open = 1;
  return &rig;
}

static void on_woken(tnk__awaited_t *awaited, int is_complete,
                     uint64_t result_bytes) {
  waiter_t *waiter = (waiter_t *)(void *)awaited;

  (void)is_complete;
  FUZZ_CHECK(waiter->is_waiting && result_bytes < (uint64_t)1 << 63);
  waiter->is_waiting = 0;
  waiter->was_woken = 1;
}

/* ---- What holds between any two steps ---- */

static void check_lists(const tnk__poller_t *poller) {
  const tnk__list_t *const lists[] = {&poller->awaited, &poller->loose,
                                      &poller->reports};
  const size_t n[] = {poller->n_awaited, poller->n_loose, poller->n_reports};

  for (size_t i = 0; i < 3; i++) {
    size_t count = 0;

    for (const tnk__list_t *at = lists[i]->next; at != lists[i]; at = at->next)
      count++;
    FUZZ_CHECK(count == n[i]);
  }
}

static void check_body(const tnk__poller_t *poller) {
  const json_t *retrieved;
  json_t *json;

  FUZZ_CHECK(tnk__json_parse_object(&json, poller->body.data,
                                    poller->body.len) == TNK_OK);
  retrieved = tnk__json_arr(json, "retrieved_request_ids");
  for (size_t i = 1; i < json_array_size(retrieved); i++)
    FUZZ_CHECK(strcmp(json_string_value(json_array_get(retrieved, i - 1)),
                      json_string_value(json_array_get(retrieved, i))) < 0);
  json_decref(json);
}

static void check(state_t *s) {
  const tnk__poller_t *poller = &s->poller;
  int is_busy = tnk__call_is_active(&poller->call) ||
                tnk__timer_is_active(&poller->timer);
  size_t n_waiting = 0;

  for (size_t i = 0; i < s->n_waiters; i++)
    n_waiting += (size_t)s->waiters[i].is_waiting;
  FUZZ_CHECK(poller->n_awaited == n_waiting);
  FUZZ_CHECK(n_waiting == 0 || is_busy);
  FUZZ_CHECK(!s->was_off || poller->batch.is_off);
  FUZZ_CHECK(!poller->batch.is_off ||
             (!is_busy && poller->tickets.n <= (size_t)N_WAITERS));
  s->was_off = poller->batch.is_off;
  check_lists(poller);
  if (tnk__call_is_active(&poller->call))
    check_body(poller);
}

/* ---- Steps ---- */

/* Ids come out of JSON, so they are UTF-8. */
static void wait_for(state_t *s, char *id) {
  waiter_t *waiter = &s->waiters[s->n_waiters];
  uint64_t bytes = 0;
  tnk__await_t await;

  if (s->n_waiters == N_WAITERS || id[0] == '\0')
    return;
  s->n_waiters++;
  tnk__utf8_repair(id);
  waiter->awaited.woken = on_woken;
  waiter->is_waiting = 1;
  await = tnk__poller_wait(&s->poller, &waiter->awaited, id, &bytes);
  FUZZ_CHECK(!waiter->was_woken);
  FUZZ_CHECK(await != TNK__AWAIT_WAIT || !s->poller.batch.is_off);
  waiter->is_waiting = await == TNK__AWAIT_WAIT;
}

static void leave(state_t *s, const char *text) {
  size_t i = (size_t)(text[0] & 15);
  tnk__leave_t how =
      text[0] != '\0' ? (tnk__leave_t)((text[1] & 3) % 3) : TNK__LEAVE_LOST;

  if (i >= s->n_waiters)
    return;
  s->waiters[i].is_waiting = 0;
  tnk__awaited_leave(&s->waiters[i].awaited, how);
}

static void pass_time(rig_t *rig, const char *text) {
  unsigned long ms = strtoul(text, NULL, 10);

  tnk__context_advance(&rig->loop, ms % MAX_WAIT_MS);
  uv_run(&rig->uv, UV_RUN_NOWAIT);
}

/* The exchange ends as if a connection had brought this. */
static void finish(state_t *s, int err, tnk__response_t *answer) {
  tnk__exchange_t *exchange = &s->poller.call.exchange;
  const tnk__http_result_t result = {.err = err,
                                     .sent = 1,
                                     .status = answer->status,
                                     .body = &answer->body,
                                     .answer = answer};

  tnk__exchange_cancel(exchange);
  exchange->on_done(exchange, &result);
}

static void answer(state_t *s, int err, const char *status, const char *body) {
  tnk__http_reader_t reader;
  tnk__response_t response;
  tnk__buf_t bytes;

  if (!tnk__exchange_is_active(&s->poller.call.exchange))
    return;
  tnk__response_init(&response, tnk__allocator_default(), (size_t)1 << 20);
  tnk__http_reader_init(&reader, &response, 0);
  tnk__buf_init(&bytes, tnk__allocator_default(), (size_t)1 << 20);
  tnk__buf_printf(&bytes,
                  "HTTP/1.1 %.3s x\r\nRetry-After: %s\r\nContent-Length: "
                  "%zu\r\n\r\n%s",
                  status, s->retry_after, strlen(body), body);
  if (tnk__http_reader_feed(&reader, bytes.data, bytes.len) == TNK_OK &&
      reader.state == TNK__HTTP_READ_DONE)
    finish(s, err, &response);
  else
    finish(s, TNK_EPROTO, &response);
  tnk__buf_deinit(&bytes);
  tnk__response_deinit(&response);
  s->retry_after[0] = '\0';
}

static void fail(state_t *s, const char *text) {
  static const int errs[] = {TNK_ECONN, TNK_ETIMEDOUT, TNK_ETOOBIG, TNK_EDNS};
  tnk__response_t none;

  if (!tnk__exchange_is_active(&s->poller.call.exchange))
    return;
  tnk__response_init(&none, tnk__allocator_default(), 0);
  finish(s, errs[text[0] & 3], &none);
  tnk__response_deinit(&none);
}

static void step(rig_t *rig, state_t *s, char *line) {
  char *text = line[0] != '\0' && line[1] == ' ' ? line + 2 : line;

  switch (line[0]) {
  case 'w':
    wait_for(s, text);
    break;
  case 'l':
    leave(s, text);
    break;
  case 't':
    pass_time(rig, text);
    break;
  case 'r':
    snprintf(s->retry_after, sizeof(s->retry_after), "%s", text);
    break;
  case 'a':
    if (strlen(text) >= 4)
      answer(s, TNK_OK, text, text + 4);
    break;
  case 'e':
    fail(s, text);
    break;
  default:
    break;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  rig_t *rig = get();
  state_t s = {.n_waiters = 0};
  fuzz_lines_t lines;
  char *line;

  rig->endpoint = (tnk__endpoint_t){.context = &rig->loop,
                                    .config = &rig->config,
                                    .http = &rig->http,
                                    .auth = &rig->auth};
  tnk__reach_open(&rig->endpoint);
  tnk__auth_open(&rig->auth, &rig->loop, &rig->config);
  tnk__poller_open(&s.poller, &rig->endpoint, "sampler-0", 0);
  fuzz_lines_open(&lines, data, size);
  for (int i = 0; i < MAX_STEPS && (line = fuzz_lines_next(&lines)) != NULL;
       i++) {
    step(rig, &s, line);
    check(&s);
  }
  fuzz_lines_close(&lines);
  tnk__poller_close(&s.poller);
  tnk__reach_shut(&rig->endpoint);
  tnk__auth_close(&rig->auth);
  for (size_t i = 0; i < s.n_waiters; i++)
    FUZZ_CHECK(!s.waiters[i].is_waiting);
  FUZZ_CHECK(s.poller.tickets.n == 0);
  return 0;
}
