/* SPDX-License-Identifier: MIT */
/*
 * Attempts whose answers are lost: what is known of them, what is told, and
 * what is counted.
 */
#include "task/kinds.h"
#include "task/tokens.h"

#define NOT_RUN "; it was not run"
#define MAYBE "; it may have been run"
#define PART "; a part of it was run"

static const char step_path[] = "/api/v1/optim_step";
static const char pass_path[] = "/api/v1/forward_backward";
static const char poll_path[] = "/api/v1/retrieve_future";

/* ---- Refused for a state that the lost attempt may have made ---- */

/* The server that has run it counts on; the one that has not does not. */
TEST(S4_14_a_refusal_after_a_lost_answer_gives_the_number_back) {
  static const int statuses[] = {400, 404};
  static const char *const words[] = {
      "{\"detail\":\"not permitted with seq_id 1\"}",
      "{\"detail\":\"Not Found\"}"};

  for (size_t i = 0; i < 2; i++) {
    script_t script;
    outcome_t outcome;

    script_open_train(&script);
    mock_once(script.mock, "POST", step_path, mock_reset, NULL);
    mock_once(script.mock, "POST", step_path, mock_reset, NULL);
    mock_json_once(script.mock, "POST", step_path, statuses[i], words[i]);
    outcome_of(&outcome, script_step(&script));
    script_settle(&script, &outcome);
    CHECK(outcome.status == TNK_EREQUEST || outcome.status == TNK_ENOTFOUND);
    check_ran(&outcome, TNK_RAN_UNKNOWN, MAYBE);
    outcome_drop(&outcome);
    script_ok(&script, &outcome, script_pass(&script, 1));
    script_check_sent(&script, script.n_sent - 1, "forward_backward", 1);
    outcome_drop(&outcome);
    script_close(&script);
  }
}

/* ---- Chunks that came out of turn ---- */

typedef struct {
  script_t script;
  script_held_t polls;
  tnk_promise_t *promise;
  outcome_t outcome;
} chunks_t;

/* Three chunks are accepted, and the server holds their polls. */
static void chunks_open(chunks_t *chunks) {
  script_t *script = &chunks->script;

  memset(chunks, 0, sizeof(*chunks));
  script_open(script);
  script_flags(script, "{\"fwdbwd_max_chunk_len\":1}");
  script_train(script);
  mock_on(script->mock, "POST", poll_path, script_hold, &chunks->polls);
  chunks->promise = script_pass(script, 3);
  outcome_of(&chunks->outcome, tnk_promise_ref(chunks->promise));
  for (int i = 0; i < 10; i++)
    script_turns(script);
  CHECK_INT(chunks->polls.n, 3);
}

static void chunks_close(chunks_t *chunks) {
  tnk_promise_unref(chunks->promise);
  outcome_drop(&chunks->outcome);
  script_close(&chunks->script);
}

static void refuse(chunks_t *chunks, int i) {
  mock_reply_json(chunks->polls.requests[i], 409,
                  "{\"detail\":\"Sequence conflict: expected 1, got 9\"}");
  script_turns(&chunks->script);
}

TEST(S1_7_chunks_that_all_came_out_of_turn_were_not_run) {
  chunks_t chunks;

  chunks_open(&chunks);
  for (int i = 0; i < 3; i++) {
    CHECK_INT(chunks.outcome.n_done, 0);
    refuse(&chunks, i);
  }
  outcome_fails(&chunks.script, &chunks.outcome, TNK_ECONFLICT);
  check_ran(&chunks.outcome, TNK_RAN_NO, NOT_RUN);
  chunks_close(&chunks);
}

TEST(S1_7_a_chunk_that_came_out_of_turn_alone_leaves_a_part) {
  chunks_t chunks;

  chunks_open(&chunks);
  refuse(&chunks, 1);
  script_result(chunks.polls.requests[0], &chunks.script);
  script_turns(&chunks.script);
  CHECK_INT(chunks.outcome.n_done, 0);
  script_result(chunks.polls.requests[2], &chunks.script);
  outcome_fails(&chunks.script, &chunks.outcome, TNK_ECONFLICT);
  check_ran(&chunks.outcome, TNK_RAN_PARTLY, PART);
  chunks_close(&chunks);
}

TEST(S1_7_chunks_behind_one_out_of_turn_may_wait_in_vain) {
  chunks_t chunks;

  chunks_open(&chunks);
  refuse(&chunks, 0);
  tnk_promise_cancel(chunks.promise);
  outcome_fails(&chunks.script, &chunks.outcome, TNK_ECANCELED);
  check_ran(&chunks.outcome, TNK_RAN_UNKNOWN, MAYBE);
  chunks_close(&chunks);
}

/* ---- A kept connection that broke ---- */

static uint64_t n_repeats(const script_t *script, tnk__retry_cause_t cause) {
  return script->service->session.endpoint.n_retries_by[cause];
}

/* The first copy may have been run, whatever the second is answered. */
TEST(D2_a_token_that_is_rejected_after_a_replay_leaves_the_doubt) {
  tokens_t tokens;
  outcome_t outcome;

  tokens_open(&tokens, 3600);
  script_train(&tokens.script);
  mock_once(tokens.script.mock, "POST", step_path, mock_reset, NULL);
  mock_once(tokens.script.mock, "POST", step_path, tokens_reject, NULL);
  mock_json(tokens.script.mock, "POST", step_path, 403, "{}");
  outcome_of(&outcome, script_step(&tokens.script));
  tokens_settle(&tokens, &outcome);
  CHECK_INT(mock_count(tokens.script.mock, "POST", step_path), 3);
  check_ran(&outcome, TNK_RAN_UNKNOWN, MAYBE);
  outcome_drop(&outcome);
  tokens_close(&tokens);
}

TEST(T1_a_replay_is_counted_as_sent_once_more) {
  script_t script;
  outcome_t outcome;
  uint64_t n_before;

  script_open_train(&script);
  n_before = n_repeats(&script, TNK__RETRY_LOST);
  mock_once(script.mock, "POST", step_path, mock_reset, NULL);
  mock_json(script.mock, "POST", step_path, 403, "{}");
  script_fails(&script, &outcome, script_step(&script), TNK_EAUTH);
  CHECK_INT(mock_count(script.mock, "POST", step_path), 2);
  CHECK_INT(tnk_promise_error(outcome.promise)->n_attempts, 2);
  CHECK_INT(n_repeats(&script, TNK__RETRY_LOST) - n_before, 1);
  outcome_drop(&outcome);
  script_close(&script);
}

/* Those that the server did not answer; not those that it answered "not yet".
 */
TEST(T1_polls_that_are_repeated_for_a_failure_are_counted) {
  script_t script;
  outcome_t outcome;

  script_open_train(&script);
  mock_json_once(script.mock, "POST", poll_path, 408, "{}");
  mock_json_once(script.mock, "POST", poll_path, 503, "{}");
  mock_once(script.mock, "POST", poll_path, mock_cut, NULL);
  mock_json_once(script.mock, "POST", poll_path, 200,
                 "{\"type\":\"try_again\"}");
  outcome_of(&outcome, script_step(&script));
  script_settle(&script, &outcome);
  outcome_ok(&script, &outcome);
  CHECK_INT(n_repeats(&script, TNK__RETRY_SERVER), 1);
  CHECK_INT(n_repeats(&script, TNK__RETRY_TIMEOUT), 0);
  CHECK(n_repeats(&script, TNK__RETRY_LOST) > 0);
  outcome_drop(&outcome);
  script_close(&script);
}

/* ---- Numbers that were doubted ---- */

static int flat_loss(tnk_custom_loss_t *io, void *user) {
  (void)user;
  io->gradients[0][0] = 0.5f;
  io->loss = 1.0;
  return 0;
}

/* A number that had been given back is refused once more, so the next one is
 * tried, and that is accepted: why the first was refused is of no use then. */
TEST(S0_3_a_doubted_number_leaves_nothing_behind) {
  for (int is_canceled = 0; is_canceled < 2; is_canceled++) {
    script_t script;
    outcome_t outcome;
    tnk_promise_t *promise;

    script_open_train(&script);
    /* The server reads protobuf, so a refusal is not about the form. */
    script_ok(&script, &outcome, script_pass(&script, 1));
    outcome_drop(&outcome);
    mock_json_once(script.mock, "POST", step_path, 422, "{\"detail\":\"no\"}");
    script_fails(&script, &outcome, script_step(&script), TNK_EREQUEST);
    outcome_drop(&outcome);
    mock_json_once(script.mock, "POST", pass_path, 422, "{\"detail\":\"seq\"}");
    if (is_canceled)
      mock_once(script.mock, "POST", pass_path, mock_hold, NULL);
    promise = tnk_training_forward_backward_custom(
        script.training, script_data(2), 2, flat_loss, NULL, NULL);
    outcome_of(&outcome, tnk_promise_ref(promise));
    for (int i = 0; i < 4; i++)
      script_turns(&script);
    if (is_canceled) {
      tnk_promise_cancel(promise);
      mock_release(script.mock, 200, "{\"request_id\":\"late\"}");
    }
    outcome_wait(&script, &outcome);
    CHECK_INT(outcome.status, is_canceled ? TNK_ECANCELED : TNK_OK);
    tnk_promise_unref(promise);
    outcome_drop(&outcome);
    script_close(&script);
  }
}
