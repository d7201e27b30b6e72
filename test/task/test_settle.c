/* SPDX-License-Identifier: MIT */
#include "task/kinds.h"

/*
 * A request whose fate is not known in the end: the next one goes under its
 * number, and what becomes of that tells. A server that has run the first one
 * answers as real ones do; nothing is run twice, and nothing waits in vain.
 */

static const char step_path[] = "/api/v1/optim_step";
static const char fb_path[] = "/api/v1/forward_backward";

/* How a server treats a number that it has had. */
typedef enum {
  REPLAYS, /* the same bytes: the same id; other ones: "was reused" */
  EXPECTS, /* "expected N, got M", whatever the bytes are */
  REFUSES, /* 422 without a reason */
  N_MANNERS
} manner_t;

typedef struct {
  script_t script;
  manner_t manner;
  int drops; /* answers are lost, the requests are not */
  int loses; /* neither arrives */
  long long n_run;
  char bodies[16][4096];
  size_t lens[16];
  int runs[16];
} keeper_t;

static void answer_taken(keeper_t *keeper, mock_request_t *request,
                         const script_sent_t *sent) {
  const size_t n = (size_t)sent->seq;
  const int is_same =
      keeper->lens[n] == request->body_len &&
      memcmp(keeper->bodies[n], request->body, request->body_len) == 0;
  char text[128];

  if (keeper->manner == REPLAYS && is_same)
    script_accept(request, &keeper->script);
  else if (keeper->manner == REPLAYS)
    mock_reply_json(request, 409,
                    "{\"detail\":\"the sequence number was reused\"}");
  else if (keeper->manner == REFUSES && is_same)
    script_accept(request, &keeper->script);
  else if (keeper->manner == REFUSES)
    mock_reply_json(request, 422, "{\"detail\":\"no\"}");
  else {
    snprintf(text, sizeof(text), "{\"detail\":\"expected %lld, got %lld\"}",
             keeper->n_run + 1, sent->seq);
    mock_reply_json(request, 409, text);
  }
}

static void take(mock_request_t *request, void *user) {
  keeper_t *keeper = user;
  script_sent_t sent;

  if (keeper->loses) {
    mock_reset(request, NULL);
    return;
  }
  script_read(request, &sent);
  CHECK(sent.seq > 0 && sent.seq < 16);
  if (sent.seq <= keeper->n_run) {
    if (keeper->drops)
      mock_reset(request, NULL);
    else
      answer_taken(keeper, request, &sent);
    return;
  }
  CHECK_INT(sent.seq, keeper->n_run + 1);
  CHECK(request->body_len < sizeof(keeper->bodies[0]));
  keeper->n_run = sent.seq;
  memcpy(keeper->bodies[sent.seq], request->body, request->body_len);
  keeper->lens[sent.seq] = request->body_len;
  keeper->runs[sent.seq]++;
  if (keeper->drops)
    mock_reset(request, NULL);
  else
    script_accept(request, &keeper->script);
}

static void keeper_open(keeper_t *keeper, manner_t manner) {
  memset(keeper, 0, sizeof(*keeper));
  keeper->manner = manner;
  script_open_train(&keeper->script);
  mock_on(keeper->script.mock, "POST", step_path, take, keeper);
  mock_on(keeper->script.mock, "POST", fb_path, take, keeper);
}

/* A pass goes well, and the step after it is lost for longer than anybody
 * waits. */
static void lose_step(keeper_t *keeper, int was_run) {
  outcome_t outcomes[2];
  script_t *script = &keeper->script;

  script_ok(script, &outcomes[0], script_pass(script, 1));
  keeper->drops = was_run;
  keeper->loses = !was_run;
  outcome_of(&outcomes[1], script_step(script));
  for (int i = 0; i < 40 && outcomes[1].n_done == 0; i++)
    script_advance(script, 30000);
  outcome_fails(script, &outcomes[1], TNK_ECONN);
  check_ran(&outcomes[1], TNK_RAN_UNKNOWN, "; it may have been run");
  keeper->drops = keeper->loses = 0;
  outcome_drop_all(outcomes, 2);
}

static const char *const ends[] = {"had not been run", "had been run"};

TEST_LIMIT(S0_3_what_comes_after_an_unknown_fate_settles_it, 20) {
  for (int i = 0; i < 2 * N_MANNERS; i++) {
    keeper_t keeper;
    outcome_t outcomes[2];
    const int was_run = i % 2;

    keeper_open(&keeper, (manner_t)(i / 2));
    lose_step(&keeper, was_run);
    keeper.script.log_text = ends[was_run];
    outcome_of(&outcomes[0], script_pass(&keeper.script, 2));
    outcome_of(&outcomes[1], script_step(&keeper.script));
    script_settle(&keeper.script, &outcomes[1]);
    outcome_ok(&keeper.script, &outcomes[0]);
    outcome_ok(&keeper.script, &outcomes[1]);
    CHECK_INT(keeper.n_run, 3 + was_run);
    CHECK_INT(keeper.script.n_log_texts, keeper.manner != REFUSES || !was_run);
    outcome_drop_all(outcomes, 2);
    script_close(&keeper.script);
  }
}

/* The program calls it again: it is run once in all. Where the server only says
 * that it has the number, that is told, for the result cannot be had. */
TEST_LIMIT(S0_3_the_same_call_after_an_unknown_fate_is_run_once, 20) {
  for (int i = 0; i < 2 * N_MANNERS; i++) {
    keeper_t keeper;
    outcome_t outcomes[2];
    const int was_run = i % 2;

    keeper_open(&keeper, (manner_t)(i / 2));
    lose_step(&keeper, was_run);
    outcome_of(&outcomes[0], script_step(&keeper.script));
    script_settle(&keeper.script, &outcomes[0]);
    if (was_run && keeper.manner == EXPECTS) {
      outcome_fails(&keeper.script, &outcomes[0], TNK_ECONFLICT);
      check_ran(&outcomes[0], TNK_RAN_YES, "; the service has run it or will");
    } else {
      outcome_ok(&keeper.script, &outcomes[0]);
    }
    CHECK_INT(keeper.n_run, 2);
    script_ok(&keeper.script, &outcomes[1], script_pass(&keeper.script, 1));
    CHECK_INT(keeper.n_run, 3);
    outcome_drop_all(outcomes, 2);
    script_close(&keeper.script);
  }
}

/* Passes are large, and fed or compressed: they are compared all the same. */
TEST_LIMIT(S0_3_the_same_pass_after_an_unknown_fate_is_run_once, 20) {
  for (int is_zstd = 0; is_zstd < 2; is_zstd++) {
    keeper_t keeper;
    outcome_t outcomes[3];
    script_t *script = &keeper.script;

    memset(&keeper, 0, sizeof(keeper));
    keeper.manner = REPLAYS;
    script_open(script);
    if (is_zstd)
      script_flags(script, "{\"proto_compress_fwdbwd\":true}");
    script_train(script);
    mock_on(script->mock, "POST", fb_path, take, &keeper);
    keeper.drops = 1;
    outcome_of(&outcomes[0], script_pass(script, 3));
    script_settle(script, &outcomes[0]);
    outcome_fails(script, &outcomes[0], TNK_ECONN);
    keeper.drops = 0;
    script->log_text = "was sent again, and is run once";
    outcome_of(&outcomes[1], script_pass(script, 3));
    script_settle(script, &outcomes[1]);
    outcome_ok(script, &outcomes[1]);
    CHECK_INT(keeper.n_run, 1);
    CHECK_INT(script->n_log_texts, 1);
    outcome_of(&outcomes[2], script_pass(script, 3));
    script_settle(script, &outcomes[2]);
    outcome_ok(script, &outcomes[2]);
    CHECK_INT(keeper.n_run, 2);
    outcome_drop_all(outcomes, 3);
    script_close(script);
  }
}
