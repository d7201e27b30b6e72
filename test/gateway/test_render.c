/* SPDX-License-Identifier: MIT */
#include <stdatomic.h>

#include "gateway/render.h"
#include "rig.h"

/*
 * The template of a stranger, which renders on a thread. It reads the clock
 * where the request says "hold", and the clock is the test's: it holds the
 * thread until the test lets it go on.
 */

enum { N_READS = 9999 /* of the clock, where the request says "long" */ };

static const char template_text[] =
    "{% set last = messages[-1].content %}"
    "{% if 'hold' in last %}{% for i in range(9999 if 'long' in last "
    "else 9) %}"
    "{% set t = strftime_now('%Y') %}{% endfor %}{% endif %}"
    "{% if 'fail' in last %}{{ raise_exception('not this one') }}{% endif %}"
    "{{ tone }}\n"
    "{% for m in messages %}{{ m.role }}: {% if m.role == 'assistant' and "
    "'rewrite' in last %}gone{% else %}{{ m.content }}{% endif %}"
    "{% for call in m.tool_calls or [] %}"
    "{{ '<tool_call>{\"name\": \"' ~ call.function.name ~ '\", \"arguments\": "
    "' "
    "~ call.function.arguments | tojson ~ '}</tool_call>' }}{% endfor %}\n"
    "{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}";

static struct {
  uv_thread_t loop;
  uv_sem_t held;
  uv_sem_t go;
  atomic_int n_to_hold; /* so many threads are to be held */
  atomic_int n_reads;
} clock_;

int __real_uv_gettimeofday(uv_timeval64_t *tv);
int __wrap_uv_gettimeofday(uv_timeval64_t *tv);

int __wrap_uv_gettimeofday(uv_timeval64_t *tv) {
  const uv_thread_t self = uv_thread_self();

  if (uv_thread_equal(&self, &clock_.loop))
    return __real_uv_gettimeofday(tv);
  atomic_fetch_add(&clock_.n_reads, 1);
  if (atomic_fetch_sub(&clock_.n_to_hold, 1) > 0) {
    uv_sem_post(&clock_.held);
    uv_sem_wait(&clock_.go);
  } else {
    atomic_fetch_add(&clock_.n_to_hold, 1);
  }
  return __real_uv_gettimeofday(tv);
}

/* ---- The stage ---- */

static void stage_open(rig_t *rig, uint64_t latency_ms,
                       uint32_t keep_alive_ms) {
  tnk_chat_template_options_t options = TNK_CHAT_TEMPLATE_OPTIONS_INIT;
  tnk_chat_error_t error;

  clock_.loop = uv_thread_self();
  CHECK_INT(uv_sem_init(&clock_.held, 0), 0);
  CHECK_INT(uv_sem_init(&clock_.go, 0), 0);
  atomic_init(&clock_.n_to_hold, 0);
  atomic_init(&clock_.n_reads, 0);
  options.allocator = test_allocator();
  if (tnk_chat_template_open(&rig_template, template_text,
                             sizeof(template_text) - 1, &options,
                             &error) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", error.text);
  rig_open_with(rig, latency_ms, NULL, 0, keep_alive_ms);
  tnk_chat_template_unref(rig_template);
}

static void stage_drop(void) {
  uv_sem_destroy(&clock_.held);
  uv_sem_destroy(&clock_.go);
}

static void stage_close(rig_t *rig) {
  rig_close(rig);
  stage_drop();
}

/* Each request is a new one. `more` is "" or further members of the body. */
static peer_t *say_with(rig_t *rig, const char *words, int is_stream,
                        const char *more) {
  static int n;
  char body[1024];

  snprintf(
      body, sizeof(body),
      "{\"max_tokens\":3,\"user\":\"%d\",\"stream\":%s,\"messages\":[{\"role\":"
      "\"user\",\"content\":\"%s\"}],\"chat_template_kwargs\":{\"tone\":"
      "\"dry\"}"
      "%s}",
      n++, is_stream ? "true" : "false", words, more);
  return ask(rig, "/s/me/v1/chat/completions", body);
}

static peer_t *say(rig_t *rig, const char *words, int is_stream) {
  return say_with(rig, words, is_stream, "");
}

static void until_queued(rig_t *rig, size_t n) {
  size_t n_queued = 0;

  while (n_queued < n) {
    uv_run(&rig->e2e.uv, UV_RUN_ONCE);
    n_queued = 0;
    TNK__LIST_FOREACH (node, &rig->gateway->renders) {
      n_queued++;
    }
  }
}

/* Until one more thread is held. It does not end by itself, so that an answer
 * means that it was not held. */
static void until_held(rig_t *rig, const peer_t *peer) {
  while (uv_sem_trywait(&clock_.held) != 0) {
    CHECK_INT(peer->n_got, 0);
    CHECK(!peer->is_closed);
    uv_run(&rig->e2e.uv, UV_RUN_NOWAIT);
  }
}

static void until_no_jobs(rig_t *rig) {
  while (rig->gateway->n_jobs > 0)
    uv_run(&rig->e2e.uv, UV_RUN_ONCE);
}

/* Turns of the loop in which nothing may happen. */
static void turns(rig_t *rig, int n) {
  while (n-- > 0)
    uv_run(&rig->e2e.uv, UV_RUN_NOWAIT);
}

static tnk_gateway_stats_t stats_of(const rig_t *rig) {
  tnk_gateway_stats_t stats = TNK_GATEWAY_STATS_INIT;

  CHECK_INT(tnk_gateway_stats(&stats, rig->gateway), TNK_OK);
  return stats;
}

static const tnk__gw_turn_t *latest(const rig_t *rig) {
  const tnk__gw_session_t *session =
      tnk__gw_record_session(rig->gateway->record, "me");

  return session == NULL
             ? NULL
             : tnk__container_of(session->turns.prev, tnk__gw_turn_t, link);
}

/* ---- What happens to a request in each of its states ---- */

typedef enum { QUEUED, RENDERING, SETTLED, N_STATES } at_t;
typedef enum { GONE, CLOSED, REPLACED, NO_MEMORY, FAILS, N_EVENTS } event_t;

typedef struct {
  rig_t rig;
  at_t at;
  event_t event;
  int is_stream;
  int is_long; /* the rendering has work left when it is canceled */
  peer_t *peer;
} cell_t;

/* A request that is in the state. */
static void reach(cell_t *cell) {
  rig_t *rig = &cell->rig;
  const char *words = cell->event == FAILS && cell->at != SETTLED ? "fail"
                      : cell->is_long                             ? "long"
                                                                  : "";
  const int n_sampled = n_calls(rig, "asample");
  char text[32];

  snprintf(text, sizeof(text), "%s %s", cell->at == RENDERING ? "hold" : "hi",
           words);
  atomic_store(&clock_.n_to_hold, cell->at == RENDERING);
  rig->gateway->max_renders = cell->at == QUEUED ? 0 : 2;
  cell->peer = say(rig, text, cell->is_stream);
  if (cell->at == QUEUED)
    until_queued(rig, 1);
  else if (cell->at == RENDERING)
    until_held(rig, cell->peer);
  else
    until_sampled(rig, n_sampled + 1);
  CHECK_INT(rig->gateway->n_jobs, 1);
  CHECK_INT(rig->gateway->n_renders, cell->at == RENDERING);
}

/* Let it go on from there. */
static void let_go(cell_t *cell) {
  cell->rig.gateway->max_renders = 2;
  tnk__gw_renders_start(cell->rig.gateway);
  if (cell->at == RENDERING)
    uv_sem_post(&clock_.go);
}

static void expect_nothing(const cell_t *cell, tnk_gateway_stats_t stats) {
  CHECK_INT(stats.n_answered, 0);
  CHECK_INT(stats.n_failed, 0);
  CHECK(latest(&cell->rig) == NULL);
  CHECK_INT(n_calls(&cell->rig, "asample"), cell->at == SETTLED);
}

/* A rendering that nobody waits for ends after a part of its work. */
static void expect_end(const cell_t *cell) {
  if (cell->at == RENDERING)
    CHECK(atomic_load(&clock_.n_reads) < N_READS / 2);
}

static void on_gone(cell_t *cell) {
  rig_t *rig = &cell->rig;

  reach(cell);
  peer_close(cell->peer);
  while (stats_of(rig).n_gone == 0)
    uv_run(&rig->e2e.uv, UV_RUN_ONCE);
  if (cell->at == QUEUED)
    CHECK_INT(rig->gateway->n_jobs, 0);
  turns(rig, 10);
  CHECK_INT(rig->gateway->n_renders, cell->at == RENDERING);
  let_go(cell);
  /* The client does not repeat its request. */
  if (cell->at == SETTLED)
    tnk__gw_jobs_keep(rig->gateway, uv_now(&rig->e2e.uv) + LONG_MS);
  until_no_jobs(rig);
  expect_nothing(cell, stats_of(rig));
  CHECK_INT(stats_of(rig).n_gone, 1);
  expect_end(cell);
  CHECK_INT(peer_end(rig, cell->peer), 0);
  stage_close(rig);
}

static void on_closing(cell_t *cell) {
  rig_t *rig = &cell->rig;

  reach(cell);
  expect_nothing(cell, stats_of(rig));
  tnk_gateway_close(rig->gateway, on_closed, rig);
  if (cell->at == RENDERING) {
    until_closed(rig, cell->peer);
    turns(rig, 100);
    CHECK_INT(rig->n_closed, 0);
    uv_sem_post(&clock_.go);
  }
  while (rig->n_closed == 0)
    uv_run(&rig->e2e.uv, UV_RUN_ONCE);
  CHECK_INT(rig->n_closed, 1);
  CHECK_INT(n_calls(rig, "asample"), cell->at == SETTLED);
  expect_end(cell);
  CHECK_INT(peer_end(rig, cell->peer), 0);
  e2e_close(&rig->e2e);
  stage_drop();
}

/* It ends with the weights that it began with, which are closed after it. */
static void on_replaced(cell_t *cell) {
  rig_t *rig = &cell->rig;

  reach(cell);
  use(rig);
  while (stats_of(rig).version < 2)
    uv_run(&rig->e2e.uv, UV_RUN_ONCE);
  if (cell->at != SETTLED)
    CHECK_INT(stats_of(rig).n_old_samplers, 1);
  let_go(cell);
  CHECK_INT(peer_end(rig, cell->peer), 200);
  CHECK_INT(latest(rig)->version, 1);
  CHECK_INT(stats_of(rig).n_old_samplers, 0);
  CHECK_INT(stats_of(rig).n_answered, 1);
  stage_close(rig);
}

static int is_rendered(const tnk_gateway_t *gateway) {
  return gateway->n_renders == 0 && tnk__list_empty(&gateway->renders);
}

/* One answer, or the end of the connection. Behind the rendering only the first
 * allocation fails: the rest is another test's. */
static void without_memory(cell_t *cell) {
  const int is_settled = cell->at == SETTLED;
  rig_t *rig = &cell->rig;
  int did_fail = 1;
  int n_refused = 0;

  for (long n = 0; did_fail && (n == 0 || !is_settled); n++) {
    const char *got;
    int status;

    reach(cell);
    test_alloc_fail_at(n);
    let_go(cell);
    while (is_settled ? !test_alloc_did_fail() : !is_rendered(rig->gateway))
      uv_run(&rig->e2e.uv, UV_RUN_ONCE);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    until_closed(rig, cell->peer);
    until_no_jobs(rig);
    got = cell->peer->got;
    CHECK(got[0] == '\0' || strstr(got + 1, "HTTP/1.1 ") == NULL);
    status = peer_end(rig, cell->peer);
    if (!did_fail)
      CHECK_INT(status, 200);
    n_refused += status != 200;
    CHECK_INT(rig->gateway->n_renders, 0);
  }
  CHECK(n_refused > 0 || is_settled);
  stage_close(rig);
}

static void on_failure(cell_t *cell) {
  rig_t *rig = &cell->rig;
  peer_t *failed;

  reach(cell);
  let_go(cell);
  failed = cell->at == SETTLED ? say(rig, "fail", cell->is_stream) : cell->peer;
  until_closed(rig, failed);
  CHECK(strstr(failed->got, "not this one") != NULL);
  CHECK_INT(peer_end(rig, failed), 400);
  if (cell->at == SETTLED)
    CHECK_INT(peer_end(rig, cell->peer), 200);
  CHECK_INT(stats_of(rig).n_failed, 1);
  CHECK_INT(stats_of(rig).n_answered, cell->at == SETTLED);
  CHECK_INT(n_calls(rig, "asample"), cell->at == SETTLED);
  CHECK((latest(rig) != NULL) == (cell->at == SETTLED));
  stage_close(rig);
}

static void run_cell(at_t at, event_t event, int is_stream, int is_long) {
  static void (*const events[])(cell_t *) = {[GONE] = on_gone,
                                             [CLOSED] = on_closing,
                                             [REPLACED] = on_replaced,
                                             [NO_MEMORY] = without_memory,
                                             [FAILS] = on_failure};
  cell_t *cell = calloc(1, sizeof(*cell));
  char text[64];

  CHECK(cell != NULL);
  *cell = (cell_t){
      .at = at, .event = event, .is_stream = is_stream, .is_long = is_long};
  snprintf(text, sizeof(text), "state %d, event %d, stream %d, long %d", at,
           event, is_stream, is_long);
  test_context(text);
  /* A sample that is to be canceled never comes by itself. */
  stage_open(&cell->rig,
             at != SETTLED                      ? 0
             : event == GONE || event == CLOSED ? LONG_MS
                                                : 20,
             0);
  events[event](cell);
  free(cell);
}

static void run_row(event_t event) {
  const int can_end = event == GONE || event == CLOSED;

  for (int at = 0; at < N_STATES; at++)
    for (int is_stream = 0; is_stream < 2; is_stream++)
      for (int is_long = 0; is_long <= can_end; is_long++)
        run_cell((at_t)at, event, is_stream, is_long);
}

TEST_LIMIT(a_client_that_goes_ends_its_rendering, 60) {
  run_row(GONE);
}

TEST_LIMIT(closing_waits_for_what_renders, 60) {
  run_row(CLOSED);
}

TEST_LIMIT(weights_are_replaced_while_it_renders, 60) {
  run_row(REPLACED);
}

TEST_LIMIT(each_allocation_fails_in_turn, 120) {
  run_row(NO_MEMORY);
}

TEST_LIMIT(a_template_fails, 60) {
  run_row(FAILS);
}

/* ---- The loop meanwhile ---- */

TEST_LIMIT(the_loop_serves_others_while_it_renders, 60) {
  peer_t *slow, *fast;
  rig_t rig;

  stage_open(&rig, 0, 0);
  atomic_store(&clock_.n_to_hold, 1);
  slow = say(&rig, "hold long", 0);
  until_held(&rig, slow);
  fast = ask_by(&rig, "GET", "/v1/models", "");
  CHECK_INT(peer_end(&rig, fast), 200);
  CHECK_INT(peer_end(&rig, say(&rig, "hi", 0)), 200);
  CHECK_INT(rig.gateway->n_renders, 1);
  CHECK_INT(slow->n_got, 0);
  uv_sem_post(&clock_.go);
  CHECK_INT(peer_end(&rig, slow), 200);
  CHECK_INT(atomic_load(&clock_.n_reads), N_READS);
  stage_close(&rig);
}

/* Two requests on one connection, sent at once. */
TEST_LIMIT(answers_of_a_connection_keep_their_order, 60) {
  static const char body[] =
      "{\"max_tokens\":3,\"messages\":[{\"role\":\"user\",\"content\":"
      "\"hold\"}]}";
  peer_t *peer;
  char *chat_at, *models_at;
  rig_t rig;

  stage_open(&rig, 0, 0);
  atomic_store(&clock_.n_to_hold, 1);
  peer = say(&rig, "", 0); /* what it sends is replaced before it is sent */
  snprintf(peer->request, sizeof(peer->request),
           "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
           "Content-Length: %zu\r\n\r\n%s"
           "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n"
           "Connection: close\r\n\r\n",
           sizeof(body) - 1, body);
  until_held(&rig, peer);
  turns(&rig, 100);
  CHECK_INT(peer->n_got, 0);
  uv_sem_post(&clock_.go);
  until_closed(&rig, peer);
  chat_at = strstr(peer->got, "\"chat.completion\"");
  models_at = strstr(peer->got, "\"object\":\"list\"");
  CHECK(chat_at != NULL && models_at != NULL && chat_at < models_at);
  CHECK_INT(peer_end(&rig, peer), 200);
  stage_close(&rig);
}

/* The pool has threads left, and nobody is forgotten. */
TEST_LIMIT(few_render_at_a_time, 60) {
  enum { N = 6 };
  peer_t *peers[N], *scrape;
  rig_t rig;

  stage_open(&rig, 0, 0);
  atomic_store(&clock_.n_to_hold, N);
  for (int i = 0; i < N; i++)
    peers[i] = say(&rig, "hold", 0);
  until_queued(&rig, N - 2);
  CHECK_INT(rig.gateway->n_renders, 2);
  scrape = ask_by(&rig, "GET", "/metrics", "");
  until_closed(&rig, scrape);
  CHECK(strstr(scrape->got, "\ntnk_gateway_requests_in_progress 6\n") != NULL);
  CHECK(strstr(scrape->got, "\ntnk_gateway_requests_waiting 4\n") != NULL);
  CHECK_INT(peer_end(&rig, scrape), 200);
  for (int i = 0; i < N; i++)
    uv_sem_post(&clock_.go);
  for (int i = 0; i < N; i++)
    CHECK_INT(peer_end(&rig, peers[i]), 200);
  CHECK_INT(stats_of(&rig).n_answered, N);
  stage_close(&rig);
}

/* ---- Turns that are continued ---- */

/* A request that goes on from the latest turn. */
static peer_t *say_on(rig_t *rig, const char *words) {
  json_t *line, *body, *messages;
  peer_t *peer;
  char *text;

  CHECK_INT(tnk__gw_record_line(rig->gateway->record, latest(rig), &line),
            TNK_OK);
  messages = json_object_get(line, "messages");
  json_array_append_new(
      messages, json_pack("{s:s,s:s}", "role", "user", "content", words));
  body = json_pack("{s:i,s:O}", "max_tokens", 3, "messages", messages);
  text = json_dumps(body, JSON_COMPACT);
  CHECK(text != NULL);
  peer = ask(rig, "/s/me/v1/chat/completions", text);
  free(text);
  json_decref(body);
  json_decref(line);
  return peer;
}

/* A template that writes history differently is rendered once more, as a
 * whole. */
TEST_LIMIT(a_turn_is_continued_where_the_template_allows_it, 60) {
  for (int rewrites = 0; rewrites < 2; rewrites++) {
    const tnk__gw_turn_t *first;
    rig_t rig;

    stage_open(&rig, 0, 0);
    CHECK_INT(peer_end(&rig, say(&rig, "hi", 0)), 200);
    first = latest(&rig);
    CHECK_INT(peer_end(&rig, say_on(&rig, rewrites ? "rewrite" : "more")), 200);
    CHECK(latest(&rig) != first);
    CHECK(latest(&rig)->parent == (rewrites ? NULL : first));
    CHECK_INT(stats_of(&rig).n_continued, !rewrites);
    stage_close(&rig);
  }
}

/* ---- Calls that are forced ---- */

static peer_t *force(rig_t *rig, const char *words) {
  return say_with(
      rig, words, 0,
      ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"look\","
      "\"parameters\":{}}}],\"tool_choice\":\"required\"");
}

/* The call is rendered on the thread too, with the same variables. */
TEST_LIMIT(a_forced_call_is_rendered_with_the_prompt, 60) {
  static const char begin[] =
      " <tool_call>{\"name\": \"look\", \"arguments\": {";
  peer_t *peer, *other;
  json_t *line;
  rig_t rig;

  rig_family = TNK_CHAT_HERMES;
  stage_open(&rig, 0, 0);
  atomic_store(&clock_.n_to_hold, 1);
  peer = force(&rig, "hold");
  until_held(&rig, peer);
  other = ask_by(&rig, "GET", "/v1/models", "");
  CHECK_INT(peer_end(&rig, other), 200);
  uv_sem_post(&clock_.go);
  CHECK_INT(peer_end(&rig, peer), 200);
  CHECK_INT(tnk__gw_record_line(rig.gateway->record, latest(&rig), &line),
            TNK_OK);
  CHECK_INT(json_integer_value(json_object_get(line, "forced")),
            sizeof(begin) - 1);
  json_decref(line);
  stage_close(&rig);
}

TEST_LIMIT(each_allocation_of_a_forced_call_fails, 60) {
  int did_fail = 1;
  int n_refused = 0;
  rig_t rig;

  rig_family = TNK_CHAT_HERMES;
  stage_open(&rig, 0, 0);
  for (long n = 0; did_fail; n++) {
    peer_t *peer;
    int status;

    rig.gateway->max_renders = 0;
    peer = force(&rig, "hi");
    until_queued(&rig, 1);
    test_alloc_fail_at(n);
    rig.gateway->max_renders = 2;
    tnk__gw_renders_start(rig.gateway);
    while (!is_rendered(rig.gateway))
      uv_run(&rig.e2e.uv, UV_RUN_ONCE);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    status = peer_end(&rig, peer);
    CHECK(status == 200 || (did_fail && status == 500));
    n_refused += status == 500;
  }
  CHECK(n_refused > 0);
  stage_close(&rig);
}

/* ---- Streams that wait for their rendering ---- */

TEST_LIMIT(a_stream_is_kept_alive_while_it_renders, 60) {
  for (int fails = 0; fails < 2; fails++) {
    peer_t *peer;
    rig_t rig;

    stage_open(&rig, 0, 1);
    atomic_store(&clock_.n_to_hold, 1);
    peer = say(&rig, fails ? "hold fail" : "hold", 1);
    until_got(&rig, peer, ": keep-alive\n\n", 2);
    CHECK_INT(rig.gateway->n_renders, 1);
    uv_sem_post(&clock_.go);
    until_closed(&rig, peer);
    CHECK((strstr(peer->got, "data: {\"error\":{\"message\":") != NULL) ==
          fails);
    CHECK((strstr(peer->got, "data: [DONE]") != NULL) == !fails);
    CHECK_INT(peer_end(&rig, peer), 200);
    stage_close(&rig);
  }
}

/* The head of the stream cannot be sent, so its connection ends at once, and
 * its request with it. */
TEST_LIMIT(a_queued_stream_ends_while_it_is_kept_alive, 60) {
  peer_t *peers[2];
  rig_t rig;

  stage_open(&rig, 0, 0);
  rig.gateway->max_renders = 0;
  for (int i = 0; i < 2; i++)
    peers[i] = say(&rig, "hi", 1);
  until_queued(&rig, 2);
  test_alloc_fail_at(0);
  tnk__gw_jobs_keep(rig.gateway, uv_now(&rig.e2e.uv) + LONG_MS);
  CHECK(test_alloc_did_fail());
  test_alloc_fail_at(-1);
  CHECK_INT(rig.gateway->n_jobs, 1);
  CHECK_INT(stats_of(&rig).n_gone, 1);
  rig.gateway->max_renders = 2;
  tnk__gw_renders_start(rig.gateway);
  for (int i = 0; i < 2; i++)
    (void)peer_end(&rig, peers[i]);
  CHECK_INT(stats_of(&rig).n_answered, 1);
  stage_close(&rig);
}
