/* SPDX-License-Identifier: MIT */
#include "gateway/again.h"
#include "gateway/render.h"
#include "rig.h"

/* Requests that clients repeat. */

enum { SAMPLING_MS = 300 };

static tnk_gateway_stats_t stats_of(const rig_t *rig) {
  tnk_gateway_stats_t stats = TNK_GATEWAY_STATS_INIT;

  CHECK_INT(tnk_gateway_stats(&stats, rig->gateway), TNK_OK);
  return stats;
}

/* Send a request with a header line, or "". */
static peer_t *post(rig_t *rig, const char *session, const char *header,
                    const char *text, int is_stream) {
  peer_t *peer = ask(rig, "", "");
  char body[256];

  snprintf(body, sizeof(body),
           "{\"max_tokens\":3,\"stream\":%s,\"messages\":[{\"role\":\"user\","
           "\"content\":\"%s\"}]}",
           is_stream ? "true" : "false", text);
  snprintf(peer->request, sizeof(peer->request),
           "POST %s/v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
           "Connection: close\r\n%sContent-Length: %zu\r\n\r\n%s",
           session, header, strlen(body), body);
  return peer;
}

static size_t n_turns(const rig_t *rig, const char *name) {
  const tnk__gw_session_t *session =
      tnk__gw_record_session(rig->gateway->record, name);

  return session != NULL ? session->n_turns : 0;
}

static const char *body_of(const peer_t *peer) {
  const char *at = strstr(peer->got, "\r\n\r\n");

  return at != NULL ? at : "";
}

/* Both have the same answer. Frees them. */
static void expect_same(rig_t *rig, peer_t *a, peer_t *b) {
  until_closed(rig, a);
  until_closed(rig, b);
  CHECK_STR(body_of(b), body_of(a));
  CHECK_INT(peer_end(rig, a), 200);
  CHECK_INT(peer_end(rig, b), 200);
}

static void until_gone(rig_t *rig, uint64_t n) {
  while (stats_of(rig).n_gone < n)
    uv_run(&rig->e2e.uv, UV_RUN_ONCE);
}

static void until_joined(rig_t *rig) {
  for (;;) {
    TNK__LIST_FOREACH (node, &rig->gateway->jobs)
      if (tnk__container_of(node, tnk__gw_job_t, link)->leader != NULL)
        return;
    uv_run(&rig->e2e.uv, UV_RUN_ONCE);
  }
}

static void until_kept(rig_t *rig) {
  while (rig->gateway->again.n_kept == 0)
    uv_run(&rig->e2e.uv, UV_RUN_ONCE);
}

/* ---- Each state, each repetition ---- */

typedef enum { HELD, QUEUED, SAMPLING, KEPT, ANSWERED, FAILED, N_STATES } at_t;
typedef enum { SAME, OTHER_BODY, OTHER_SESSION, N_HOW } how_t;

#define KEY "Idempotency-Key: a-key\r\n"

typedef struct {
  rig_t rig;
  at_t at;
  int is_stream;
  peer_t *first;
  tnk_promise_t *use;
} cell_t;

static void begin_use(cell_t *cell) {
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;

  options.base_model = "tnk/byte-lm";
  cell->use = tnk_gateway_use(cell->rig.gateway, &options);
}

static void until_jobs(rig_t *rig, size_t n) {
  while (rig->gateway->n_jobs != n)
    uv_run(&rig->e2e.uv, UV_RUN_ONCE);
}

static void open_cell(cell_t *cell) {
  tnk_chat_template_options_t options = TNK_CHAT_TEMPLATE_OPTIONS_INIT;
  static const char source[] = "{{ messages[0].content }}";
  tnk_chat_error_t error;
  const int has_no_model = cell->at == HELD || cell->at == FAILED;

  options.allocator = test_allocator();
  if (cell->at == QUEUED)
    CHECK_INT(tnk_chat_template_open(&rig_template, source, sizeof(source) - 1,
                                     &options, &error),
              TNK_OK);
  rig_open(&cell->rig, has_no_model ? NEVER : SAMPLING_MS);
  if (cell->at == QUEUED)
    cell->rig.gateway->max_renders = 0;
}

/* A request that is in the state. */
static void reach(cell_t *cell) {
  rig_t *rig = &cell->rig;

  if (cell->at == HELD)
    begin_use(cell);
  cell->first = post(rig, "/s/me", KEY, "hi", cell->is_stream);
  if (cell->at == HELD || cell->at == QUEUED)
    until_jobs(rig, 1);
  if (cell->at == SAMPLING || cell->at == KEPT)
    until_sampled(rig, 1);
  if (cell->at == KEPT) {
    peer_close(cell->first);
    until_kept(rig);
  }
  if (cell->at == ANSWERED || cell->at == FAILED)
    until_closed(rig, cell->first);
  if (cell->at == FAILED)
    use(rig);
}

static void let_go(cell_t *cell) {
  if (cell->use != NULL)
    e2e_done(cell->use);
  cell->use = NULL;
  cell->rig.gateway->max_renders = 2;
  tnk__gw_renders_start(cell->rig.gateway);
}

static void expect(cell_t *cell, how_t how, peer_t *second) {
  rig_t *rig = &cell->rig;
  int is_new = how == OTHER_SESSION;

  if (how == OTHER_BODY) {
    until_closed(rig, second);
    CHECK(strstr(second->got, "the Idempotency-Key \\\"a-key\\\" was used with "
                              "another request") != NULL);
    CHECK_INT(peer_end(rig, second), 422);
    let_go(cell);
  } else {
    if (!is_new && cell->at < KEPT)
      until_joined(rig);
    let_go(cell);
    until_closed(rig, second);
    if (!is_new && cell->at != KEPT && cell->at != FAILED) {
      until_closed(rig, cell->first);
      CHECK_STR(body_of(second), body_of(cell->first));
    }
    CHECK_INT(peer_end(rig, second), 200);
  }
  CHECK_INT(peer_end(rig, cell->first), cell->at == KEPT     ? 0
                                        : cell->at == FAILED ? 503
                                                             : 200);
  CHECK_INT(n_calls(&cell->rig, "asample"),
            (cell->at != FAILED) +
                (is_new || (cell->at == FAILED && how == SAME)));
  CHECK_INT(n_turns(rig, "me"),
            cell->at == FAILED || cell->at == KEPT ? how == SAME : 1);
  CHECK_INT(n_turns(rig, "you"), is_new);
}

static void run_cell(at_t at, how_t how, int is_stream) {
  cell_t *cell = calloc(1, sizeof(*cell));
  char text[64];

  CHECK(cell != NULL);
  *cell = (cell_t){.at = at, .is_stream = is_stream};
  snprintf(text, sizeof(text), "state %d, how %d, stream %d", at, how,
           is_stream);
  test_context(text);
  open_cell(cell);
  reach(cell);
  expect(cell, how,
         post(&cell->rig, how == OTHER_SESSION ? "/s/you" : "/s/me", KEY,
              how == OTHER_BODY ? "ho" : "hi", is_stream));
  rig_close(&cell->rig);
  tnk_chat_template_unref(rig_template);
  rig_template = NULL;
  free(cell);
}

static void run_row(at_t at) {
  for (int how = 0; how < N_HOW; how++)
    for (int is_stream = 0; is_stream < 2; is_stream++)
      run_cell(at, (how_t)how, is_stream);
}

TEST_LIMIT(a_key_names_a_request_that_is_held, 60) {
  run_row(HELD);
}

TEST_LIMIT(a_key_names_a_request_that_is_queued, 60) {
  run_row(QUEUED);
}

TEST_LIMIT(a_key_names_a_request_that_is_sampled, 60) {
  run_row(SAMPLING);
}

TEST_LIMIT(a_key_names_a_request_whose_client_has_gone, 60) {
  run_row(KEPT);
}

TEST_LIMIT(a_key_names_a_request_that_is_answered, 60) {
  run_row(ANSWERED);
}

TEST_LIMIT(a_key_names_a_request_that_has_failed, 60) {
  run_row(FAILED);
}

/* ---- Without a key ---- */

#define RETRY "X-Stainless-Retry-Count: 1\r\n"
#define FIRST "X-Stainless-Retry-Count: 0\r\n"

/* The response to a second request with the same body. */
static void run_pair(const char *session, const char *first, const char *second,
                     at_t at, int is_repeat) {
  peer_t *a, *b;
  char text[160];
  rig_t rig;

  snprintf(text, sizeof(text), "%s, %s, %s, state %d", session, first, second,
           at);
  test_context(text);
  rig_open(&rig, SAMPLING_MS);
  a = post(&rig, session, first, "hi", 0);
  until_sampled(&rig, 1);
  if (at == ANSWERED)
    until_closed(&rig, a);
  if (at == KEPT) {
    peer_close(a);
    until_kept(&rig);
  }
  b = post(&rig, session, second, "hi", 0);
  if (is_repeat && at != KEPT) {
    expect_same(&rig, a, b);
  } else {
    CHECK_INT(peer_end(&rig, b), 200);
    CHECK_INT(peer_end(&rig, a), at == KEPT ? 0 : 200);
  }
  CHECK_INT(n_calls(&rig, "asample"), is_repeat ? 1 : 2);
  CHECK_INT(n_turns(&rig, session[0] != '\0' ? "me" : "default"),
            is_repeat || at == KEPT ? 1 : 2);
  rig_close(&rig);
}

TEST_LIMIT(a_retry_of_an_sdk_is_not_sampled_again, 60) {
  run_pair("/s/me", FIRST, RETRY, SAMPLING, 1);
  run_pair("/s/me", FIRST, RETRY, ANSWERED, 1);
  run_pair("/s/me", FIRST, RETRY, KEPT, 1);
  run_pair("", FIRST, RETRY, SAMPLING, 1);
  run_pair("", FIRST, RETRY, ANSWERED, 1);
}

TEST_LIMIT(a_first_request_of_an_sdk_is_none, 60) {
  run_pair("/s/me", FIRST, FIRST, SAMPLING, 0);
  run_pair("/s/me", FIRST, FIRST, ANSWERED, 0);
  run_pair("/s/me", FIRST, FIRST, KEPT, 1);
}

TEST_LIMIT(other_clients_repeat_what_is_in_progress, 60) {
  run_pair("/s/me", "", "", SAMPLING, 1);
  run_pair("/s/me", "", "", ANSWERED, 0);
  run_pair("/s/me", "", "", KEPT, 1);
  run_pair("", "", "", SAMPLING, 0);
  run_pair("", "", "", KEPT, 1);
}

TEST_LIMIT(a_key_that_is_too_long_is_refused, 20) {
  char header[400];
  peer_t *peer;
  rig_t rig;

  rig_open(&rig, 0);
  snprintf(header, sizeof(header), "Idempotency-Key: %0*d\r\n",
           TNK__GW_MAX_AGAIN_KEY + 1, 0);
  peer = post(&rig, "", header, "hi", 0);
  until_closed(&rig, peer);
  CHECK(strstr(peer->got, "Idempotency-Key has more than 256") != NULL);
  CHECK_INT(peer_end(&rig, peer), 400);
  rig_close(&rig);
}

/* ---- Clients that go ---- */

TEST_LIMIT(an_answer_remains_for_those_who_stay, 60) {
  static const at_t states[] = {HELD, QUEUED, SAMPLING};

  for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
    for (int k = 0; k < 2; k++) {
      cell_t *cell = calloc(1, sizeof(*cell));
      peer_t *second;

      CHECK(cell != NULL);
      cell->at = states[i];
      open_cell(cell);
      reach(cell);
      second = post(&cell->rig, "/s/me", KEY, "hi", 0);
      until_joined(&cell->rig);
      peer_close(k == 0 ? cell->first : second);
      until_gone(&cell->rig, 1);
      let_go(cell);
      CHECK_INT(peer_end(&cell->rig, cell->first), k == 0 ? 0 : 200);
      CHECK_INT(peer_end(&cell->rig, second), k == 0 ? 200 : 0);
      CHECK_INT(n_calls(&cell->rig, "asample"), 1);
      CHECK_INT(n_turns(&cell->rig, "me"), 1);
      rig_close(&cell->rig);
      tnk_chat_template_unref(rig_template);
      rig_template = NULL;
      free(cell);
    }
}

/* All go, in either order; nothing is rendered or sampled for them. */
TEST_LIMIT(a_request_without_clients_ends, 60) {
  for (int k = 0; k < 2; k++) {
    cell_t *cell = calloc(1, sizeof(*cell));
    peer_t *second;

    CHECK(cell != NULL);
    cell->at = QUEUED;
    open_cell(cell);
    reach(cell);
    second = post(&cell->rig, "/s/me", KEY, "hi", 0);
    until_joined(&cell->rig);
    peer_close(k == 0 ? cell->first : second);
    until_gone(&cell->rig, 1);
    CHECK_INT(cell->rig.gateway->n_jobs, k == 0 ? 2 : 1);
    peer_close(k == 0 ? second : cell->first);
    until_jobs(&cell->rig, 0);
    let_go(cell);
    CHECK_INT(peer_end(&cell->rig, cell->first), 0);
    CHECK_INT(peer_end(&cell->rig, second), 0);
    CHECK_INT(n_calls(&cell->rig, "asample"), 0);
    rig_close(&cell->rig);
    tnk_chat_template_unref(rig_template);
    rig_template = NULL;
    free(cell);
  }
}

TEST_LIMIT(closing_ends_those_who_wait_and_what_is_kept, 60) {
  peer_t *peers[3];
  rig_t rig;

  rig_open(&rig, SAMPLING_MS);
  peers[0] = post(&rig, "/s/me", KEY, "hi", 0);
  until_sampled(&rig, 1);
  peer_close(peers[0]);
  until_kept(&rig);
  CHECK_INT(stats_of(&rig).n_under_way, 0);
  peers[1] = post(&rig, "/s/you", KEY, "hi", 0);
  until_sampled(&rig, 2);
  peers[2] = post(&rig, "/s/you", KEY, "hi", 0);
  until_joined(&rig);
  rig_close(&rig);
  for (int i = 0; i < 3; i++)
    free(peers[i]);
}

/* ---- Time and memory ---- */

TEST_LIMIT(an_answer_is_known_for_ten_minutes, 60) {
  peer_t *a, *b;
  rig_t rig;

  rig_open(&rig, 0);
  a = post(&rig, "/s/me", KEY, "hi", 0);
  until_closed(&rig, a);
  tnk__gw_jobs_keep(rig.gateway, uv_now(&rig.e2e.uv) + TNK__GW_AGAIN_MS - 1000);
  b = post(&rig, "/s/me", KEY, "hi", 0);
  expect_same(&rig, a, b);
  CHECK(rig.gateway->again.n_bytes > 0);
  tnk__gw_jobs_keep(rig.gateway, uv_now(&rig.e2e.uv) + TNK__GW_AGAIN_MS + 1000);
  CHECK_INT(rig.gateway->again.n_bytes, 0);
  CHECK_INT(rig.gateway->again.map.n, 0);
  CHECK_INT(peer_end(&rig, post(&rig, "/s/me", KEY, "hi", 0)), 200);
  CHECK_INT(n_calls(&rig, "asample"), 2);
  rig_close(&rig);
}

TEST_LIMIT(a_sample_is_kept_for_ten_minutes, 60) {
  peer_t *peer;
  rig_t rig;

  rig_open(&rig, SAMPLING_MS);
  peer = post(&rig, "/s/me", "", "hi", 0);
  until_sampled(&rig, 1);
  peer_close(peer);
  until_kept(&rig);
  tnk__gw_jobs_keep(rig.gateway, uv_now(&rig.e2e.uv) + TNK__GW_AGAIN_MS + 1000);
  CHECK_INT(rig.gateway->n_jobs, 0);
  CHECK_INT(rig.gateway->again.map.n, 0);
  CHECK_INT(peer_end(&rig, peer), 0);
  CHECK_INT(n_turns(&rig, "me"), 0);
  rig_close(&rig);
}

/* What is not marked is not remembered. */
TEST_LIMIT(an_answer_that_was_sent_costs_nothing, 20) {
  rig_t rig;

  rig_open(&rig, 0);
  for (int i = 0; i < 3; i++)
    CHECK_INT(peer_end(&rig, post(&rig, "/s/me", "", "hi", 0)), 200);
  CHECK_INT(rig.gateway->again.map.n, 0);
  CHECK_INT(n_calls(&rig, "asample"), 3);
  rig_close(&rig);
}

/* A sample of replaced weights is only for the client that asked for it. */
TEST_LIMIT(what_is_kept_is_not_older_than_the_weights, 60) {
  for (int is_retry = 0; is_retry < 2; is_retry++) {
    peer_t *peer;
    rig_t rig;

    rig_open(&rig, SAMPLING_MS);
    peer = post(&rig, "/s/me", FIRST, "hi", 0);
    until_sampled(&rig, 1);
    peer_close(peer);
    until_kept(&rig);
    use(&rig);
    CHECK_INT(
        peer_end(&rig, post(&rig, "/s/me", is_retry ? RETRY : FIRST, "hi", 0)),
        200);
    CHECK_INT(n_calls(&rig, "asample"), is_retry ? 1 : 2);
    CHECK_INT(peer_end(&rig, peer), 0);
    rig_close(&rig);
  }
}

TEST_LIMIT(each_allocation_of_a_repetition_fails_in_turn, 60) {
  int did_fail = 1;

  for (long n = 0; did_fail; n++) {
    peer_t *a, *b;
    rig_t rig;

    rig_open(&rig, 0);
    a = post(&rig, "/s/me", KEY, "hi", 0);
    until_closed(&rig, a);
    b = post(&rig, "/s/me", KEY, "hi", 0);
    test_alloc_fail_at(n);
    until_closed(&rig, b);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    if (!did_fail)
      CHECK_STR(body_of(b), body_of(a));
    CHECK_INT(n_calls(&rig, "asample"), 1);
    (void)peer_end(&rig, a);
    (void)peer_end(&rig, b);
    rig_close(&rig);
  }
}
