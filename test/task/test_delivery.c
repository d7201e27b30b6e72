/* SPDX-License-Identifier: MIT */
/*
 * A7: a result arrives as soon as the server has it. The server holds every
 * poll for a time of its own choice, then says that there is nothing yet; the
 * result is ready at some moment, and from then on no time passes at all, only
 * turns of the loop: what the client needs is a round trip.
 */
#include "task/script.h"

typedef enum { STEP, PASS, SAMPLE, SAMPLE_TOGETHER, N_KINDS } kind_t;

enum { MAX_POLLS = 2000, STEPS_A_HOLD = 20 };

typedef struct {
  script_t script;
  kind_t kind;
  uint64_t hold_ms;
  int is_ready; /* the server has the result */
  mock_request_t *polls[MAX_POLLS];
  uint64_t since[MAX_POLLS];
  int n_polls;
} server_t;

static const char one_path[] = "/api/v1/retrieve_future";
static const char all_path[] = "/api/v1/retrieve_futures";

static uint64_t now(const server_t *server) {
  return tnk__context_now_ms(&server->script.service->root.context);
}

static void finish(server_t *server, mock_request_t *request) {
  if (strcmp(request->path, all_path) == 0)
    mock_reply_json(request, 200,
                    "{\"completions\":[{\"state\":\"finished\",\"request_id\":"
                    "\"asample:0:0\"}],\"cursor\":1}");
  else
    script_result(request, &server->script);
}

static void on_poll(mock_request_t *request, void *user) {
  server_t *server = user;

  if (server->is_ready) {
    finish(server, request);
    return;
  }
  CHECK(server->n_polls < MAX_POLLS);
  server->since[server->n_polls] = now(server);
  server->polls[server->n_polls++] = request;
}

static void nothing_yet(mock_request_t *request) {
  if (strcmp(request->path, all_path) == 0)
    mock_reply_json(request, 200, "{\"completions\":[],\"cursor\":0}");
  else
    mock_reply_json(request, 200,
                    "{\"type\":\"try_again\",\"queue_state\":\"active\"}");
}

static int is_held(const mock_request_t *request) {
  return !request->is_answered && !request->is_gone;
}

/* Let time pass, a twentieth of the hold at a time. */
static void pass(server_t *server, uint64_t ms) {
  uint64_t end = now(server) + ms;

  while (now(server) < end) {
    uint64_t step = server->hold_ms / STEPS_A_HOLD;
    script_advance(&server->script,
                   step < end - now(server) ? step : end - now(server));
    for (int i = 0; i < server->n_polls; i++)
      if (is_held(server->polls[i]) &&
          now(server) - server->since[i] >= server->hold_ms)
        nothing_yet(server->polls[i]);
    script_turns(&server->script);
  }
}

static void open_server(server_t *server, kind_t kind, uint64_t hold_ms) {
  script_t *script = &server->script;

  memset(server, 0, sizeof(*server));
  server->kind = kind;
  server->hold_ms = hold_ms;
  script_open(script);
  if (kind == SAMPLE_TOGETHER)
    script_flags(script, "{\"sample_use_retrieve_futures\":true}");
  if (kind == STEP || kind == PASS)
    script_train(script);
  else
    script_sampler(script);
  mock_on(script->mock, "POST", one_path, on_poll, server);
  mock_on(script->mock, "POST", all_path, on_poll, server);
}

static tnk_promise_t *submit(server_t *server) {
  tnk_promise_t *promise = server->kind == STEP ? script_step(&server->script)
                           : server->kind == PASS
                               ? script_pass(&server->script, 2)
                               : script_sample(&server->script);

  mock_turns(server->script.mock, 60);
  CHECK_INT(server->n_polls, 1);
  return promise;
}

/* No time passes between this and the result. */
static void deliver(server_t *server, outcome_t *outcome) {
  uint64_t ready_ms = now(server);

  CHECK_INT(outcome->n_done, 0);
  server->is_ready = 1;
  for (int i = 0; i < server->n_polls; i++)
    if (is_held(server->polls[i]))
      finish(server, server->polls[i]);
  outcome_ok(&server->script, outcome);
  CHECK_INT(now(server), ready_ms);
}

static void ready_after(kind_t kind, uint64_t hold_ms, uint64_t after_ms) {
  static server_t server;
  outcome_t outcome;

  open_server(&server, kind, hold_ms);
  outcome_of(&outcome, submit(&server));
  pass(&server, after_ms);
  deliver(&server, &outcome);
  outcome_drop(&outcome);
  script_close(&server.script);
}

static const uint64_t holds[] = {60, 1000, 10000, 50000, 300000};
enum { N_HOLDS = sizeof(holds) / sizeof(holds[0]) };

TEST_LIMIT(P8_2_a_result_during_the_first_poll, 60) {
  for (int kind = 0; kind < N_KINDS; kind++)
    for (int i = 0; i < N_HOLDS; i++)
      ready_after((kind_t)kind, holds[i], holds[i] * 7 / 10);
}

TEST_LIMIT(P8_2_a_result_many_polls_later, 120) {
  for (int kind = 0; kind < N_KINDS; kind++)
    for (int i = 0; i < N_HOLDS; i++)
      ready_after((kind_t)kind, holds[i], holds[i] * 43 / 10);
}

/* It became ready in the moment in which a poll came back empty. */
TEST_LIMIT(P8_2_a_result_between_two_polls, 60) {
  for (int kind = 0; kind < N_KINDS; kind++)
    for (int i = 0; i < N_HOLDS; i++)
      ready_after((kind_t)kind, holds[i], holds[i]);
}

/* A poll is cut off in the very moment in which the result becomes ready. */
TEST_LIMIT(P8_2_a_result_when_the_poll_breaks, 60) {
  for (int kind = 0; kind < N_KINDS; kind++)
    for (int i = 0; i < N_HOLDS; i++) {
      static server_t server;
      outcome_t outcome;
      open_server(&server, (kind_t)kind, holds[i]);
      outcome_of(&outcome, submit(&server));
      pass(&server, holds[i] * 3 / 10);
      mock_reset(server.polls[0], NULL);
      deliver(&server, &outcome);
      outcome_drop(&outcome);
      script_close(&server.script);
    }
}
