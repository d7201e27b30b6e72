/* SPDX-License-Identifier: MIT */
/*
 * HTTP/2: whatever becomes of a stream or of its connection, no operation is
 * run twice, numbers have no holes, and an error says whether it was run.
 */
#include "support/mock_http2.h"
#include "task/kinds.h"

static const char step_path[] = "/api/v1/optim_step";
static const char poll_path[] = "/api/v1/retrieve_future";

/* What the server does to a request: it looks at it (or not), and then the
 * stream or the connection ends. */
typedef struct {
  const char *name;
  int is_seen;
  void (*end)(mock_request_t *request);
  /* Whether the client can know that nobody has seen it. */
  int is_surely_unseen;
} fate_t;

static void refuse(mock_request_t *request) {
  mock_rst(request, MOCK_REFUSED_STREAM);
}

static void fail(mock_request_t *request) {
  mock_rst(request, MOCK_INTERNAL_ERROR);
}

static void calm(mock_request_t *request) {
  mock_rst(request, MOCK_ENHANCE_YOUR_CALM);
}

static void cancel(mock_request_t *request) {
  mock_rst(request, MOCK_CANCEL);
}

static void reset(mock_request_t *request) {
  mock_reset(request, NULL);
}

/* The last stream before that of a request, or none. */
static int32_t before(const mock_request_t *request) {
  return request->stream_id > 2 ? request->stream_id - 2 : 0;
}

static void go_away_before(mock_request_t *request) {
  mock_goaway(request->server, (int)request->connection, before(request),
              MOCK_NO_ERROR);
}

static void go_away_calmly(mock_request_t *request) {
  mock_goaway(request->server, (int)request->connection, before(request),
              MOCK_ENHANCE_YOUR_CALM);
}

static void go_away_after(mock_request_t *request) {
  mock_goaway(request->server, (int)request->connection, MOCK_LAST,
              MOCK_INTERNAL_ERROR);
  mock_close_connection(request->server, (int)request->connection, 0);
}

static void cut_answer(mock_request_t *request) {
  static const char answer[] = "{\"request_id\":\"optim_step:1:0\"}";

  mock_reply_cut(request, 200, NULL, answer, sizeof(answer) - 1, 60);
}

static void nonsense(mock_request_t *request) {
  mock_nonsense(request);
}

static const fate_t fates[] = {
    {"REFUSED_STREAM", 0, refuse, 1},
    {"GOAWAY that leaves it out", 0, go_away_before, 1},
    {"GOAWAY that leaves it out, ENHANCE_YOUR_CALM", 0, go_away_calmly, 1},
    {"INTERNAL_ERROR, seen", 1, fail, 0},
    {"INTERNAL_ERROR, unseen", 0, fail, 0},
    {"ENHANCE_YOUR_CALM", 0, calm, 0},
    {"CANCEL", 1, cancel, 0},
    {"a lost connection, seen", 1, reset, 0},
    {"a lost connection, unseen", 0, reset, 0},
    {"GOAWAY that names it, and the end", 1, go_away_after, 0},
    {"half an answer", 1, cut_answer, 0},
    {"no answer at all", 1, nonsense, 0},
};
enum { N_FATES = sizeof(fates) / sizeof(fates[0]), MAX_SEQ = 20 };

/* A server that runs each number once, as the service does. */
typedef struct {
  script_t script;
  const fate_t *fate;
  int n_fates; /* to come */
  int n_seen[MAX_SEQ];
  char keys[MAX_SEQ][80]; /* of the first request of each number */
} server_t;

static void note_key(server_t *server, const mock_request_t *request,
                     long long seq) {
  const char *key = mock_header(request, "x-idempotency-key");

  if (key == NULL)
    return;
  if (server->keys[seq][0] == '\0')
    snprintf(server->keys[seq], sizeof(server->keys[seq]), "%s", key);
  else
    CHECK_STR(key, server->keys[seq]);
}

static void on_step(mock_request_t *request, void *user) {
  server_t *server = user;
  script_sent_t sent;

  script_read(request, &sent);
  CHECK(sent.seq >= 1 && sent.seq < MAX_SEQ);
  note_key(server, request, sent.seq);
  if (sent.seq == 2 && server->n_fates > 0) {
    server->n_fates--;
    server->n_seen[sent.seq] += server->fate->is_seen;
    server->fate->end(request);
    return;
  }
  server->n_seen[sent.seq]++;
  script_accept(request, &server->script);
}

static void open_server(server_t *server, const fate_t *fate, int n_fates) {
  CHECK_INT(setenv("TNK_TEST_HTTP", "2", 1), 0);
  memset(server, 0, sizeof(*server));
  script_open_train(&server->script);
  server->fate = fate;
  server->n_fates = n_fates;
  mock_on(server->script.mock, "POST", step_path, on_step, server);
}

/* The middle one of three steps meets it, once or three times. */
static void check_fate(const fate_t *fate, int n_fates) {
  outcome_t outcomes[4];
  server_t server;
  script_t *script = &server.script;

  open_server(&server, fate, n_fates);
  for (int i = 0; i < 3; i++)
    outcome_of(&outcomes[i], script_step(script));
  for (int i = 0; i < 100 && outcomes[2].n_done == 0; i++)
    script_advance(script, 1000);
  outcome_of(&outcomes[3], script_step(script));
  for (int i = 0; i < 4; i++) {
    outcome_wait(script, &outcomes[i]);
    if (outcomes[i].status != TNK_OK)
      test_fail(__FILE__, __LINE__, "%s: %s", fate->name, outcomes[i].text);
  }
  CHECK_INT(server.n_fates, 0);
  /* The server has all numbers, each under one key, and none beyond. */
  for (int seq = 1; seq <= 4; seq++)
    CHECK(server.n_seen[seq] >= 1);
  CHECK_INT(server.n_seen[5], 0);
  outcome_drop_all(outcomes, 4);
  script_close(script);
}

TEST_LIMIT(S4_14_a_step_has_one_number_whatever_becomes_of_its_stream, 30) {
  for (size_t i = 0; i < N_FATES; i++) {
    check_fate(&fates[i], 1);
    check_fate(&fates[i], 3);
  }
}

/* Given up while it waits to be sent again. */
TEST_LIMIT(S1_7_what_an_error_says_after_each_fate, 30) {
  for (size_t i = 0; i < N_FATES; i++) {
    const fate_t *fate = &fates[i];
    outcome_t outcomes[2];
    server_t server;
    script_t *script = &server.script;
    tnk_promise_t *promise;
    open_server(&server, fate, 1000);
    outcome_of(&outcomes[0], script_step(script));
    promise = script_step(script);
    outcome_of(&outcomes[1], tnk_promise_ref(promise));
    outcome_ok(script, &outcomes[0]);
    mock_turns(script->mock, 200);
    tnk_promise_cancel(promise);
    tnk_promise_unref(promise);
    outcome_fails(script, &outcomes[1], TNK_ECANCELED);
    if (fate->is_surely_unseen !=
        (tnk_promise_error(outcomes[1].promise)->ran == TNK_RAN_NO))
      test_fail(__FILE__, __LINE__, "%s: %s", fate->name, outcomes[1].text);
    outcome_drop_all(outcomes, 2);
    script_close(script);
  }
}

/* The polls of many samples are on few connections: one that is lost takes
 * nobody's result along. */
/* ---- Responses that are cut off ---- */

static void cut_short(mock_request_t *request, void *user) {
  (void)user;
  mock_begin(request, 200,
             "Content-Type: application/json\r\nContent-Length: 100\r\n");
  mock_piece(request, "{\"request_id\":", 14);
  mock_end(request, 0);
}

/* One that ends before its content-length is lost, and asked for again: at the
 * start, of a submission and of a poll. */
TEST_LIMIT(S1_7_a_response_that_is_too_short_is_asked_for_again, 30) {
  static const char *const paths[] = {
      "/api/v1/client/config", "/api/v1/create_session",
      "/api/v1/get_server_capabilities", step_path, poll_path};
  enum { N = sizeof(paths) / sizeof(paths[0]) };

  for (size_t i = 0; i < N; i++) {
    tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
    outcome_t outcome;
    script_t script;

    CHECK_INT(setenv("TNK_TEST_HTTP", "2", 1), 0);
    script_open(&script);
    if (i >= 3)
      script_train(&script);
    mock_once(script.mock, NULL, paths[i], cut_short, NULL);
    lora.base_model = "base";
    if (i >= 3)
      outcome_of(&outcome, script_step(&script));
    else if (i == 2)
      outcome_of(&outcome, tnk_service_capabilities(script.service));
    else
      outcome_of(&outcome, tnk_service_create_lora(script.service, &lora));
    for (int k = 0; k < 100 && outcome.n_done == 0; k++)
      script_advance(&script, 100);
    if (outcome.n_done == 0 || outcome.status != TNK_OK)
      test_fail(__FILE__, __LINE__, "%s: %s", paths[i], outcome.text);
    CHECK(mock_count(script.mock, NULL, paths[i]) >= 2);
    outcome_drop(&outcome);
    script_close(&script);
  }
}

TEST_LIMIT(S1_7_a_lost_connection_loses_no_sample, 30) {
  enum { N = 200 };
  static outcome_t outcomes[N];
  script_t script;
  size_t n;

  CHECK_INT(setenv("TNK_TEST_HTTP", "2", 1), 0);
  script_open(&script);
  script_sampler(&script);
  mock_on(script.mock, "POST", poll_path, mock_hold, NULL);
  for (int i = 0; i < N; i++)
    outcome_of(&outcomes[i], script_sample(&script));
  while (mock_n_held(script.mock) < N)
    script_advance(&script, 1);
  CHECK_INT(script.n_sent, N);
  CHECK(mock_n_open(script.mock) <= 10);
  mock_on(script.mock, "POST", poll_path, script_result, &script);
  n = mock_n_connections(script.mock);
  mock_close_connection(script.mock, MOCK_ALL, 1);
  for (int i = 0; i < N; i++) {
    for (int k = 0; k < 100 && outcomes[i].n_done == 0; k++)
      script_advance(&script, 500);
    outcome_ok(&script, &outcomes[i]);
  }
  /* None was submitted anew. */
  CHECK_INT(script.n_sent, N);
  CHECK(mock_n_connections(script.mock) <= n + 10);
  outcome_drop_all(outcomes, N);
  script_close(&script);
}
