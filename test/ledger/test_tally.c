/* SPDX-License-Identifier: MIT */
#include "ledger/bench.h"

static void check_saved(const outcome_t *outcome, uint64_t steps,
                        uint64_t passes) {
  const tnk_saved_t *saved = tnk_promise_saved(outcome->promise);

  CHECK(saved != NULL);
  CHECK_STR(saved->path, tnk_promise_path(outcome->promise));
  CHECK_INT(saved->n_steps, steps);
  CHECK_INT(saved->n_passes, passes);
}

static tnk_promise_t *save(script_t *script, const char *name) {
  return tnk_training_save_state(script->training, name, NULL);
}

TEST(a_save_tells_what_comes_before_it_in_the_sequence) {
  script_t script;
  outcome_t outcomes[8];

  script_open_train(&script);
  outcome_of(&outcomes[0], save(&script, "a"));
  outcome_of(&outcomes[1], script_pass(&script, 1));
  outcome_of(&outcomes[2], script_step(&script));
  outcome_of(&outcomes[3], script_pass(&script, 1));
  outcome_of(&outcomes[4],
             tnk_training_save_weights_for_sampler(script.training, "b", NULL));
  outcome_of(&outcomes[5],
             tnk_training_forward(script.training, script_data(2), 2, NULL));
  outcome_of(&outcomes[6], script_step(&script));
  outcome_of(&outcomes[7], save(&script, "c"));
  for (int i = 0; i < 8; i++)
    outcome_ok(&script, &outcomes[i]);
  check_saved(&outcomes[0], 0, 0);
  check_saved(&outcomes[4], 1, 2);
  check_saved(&outcomes[7], 2, 2);
  CHECK(tnk_promise_saved(outcomes[1].promise) == NULL);
  CHECK(tnk_promise_saved(NULL) == NULL);
  outcome_drop_all(outcomes, 8);
  script_close(&script);
}

TEST(what_is_refused_or_canceled_in_time_does_not_count) {
  script_t script;
  outcome_t outcomes[4];

  script_open_train(&script);
  mock_json_once(script.mock, "POST", "/api/v1/optim_step", 422,
                 "{\"detail\":\"no\"}");
  script_fails(&script, &outcomes[0], script_step(&script), TNK_EREQUEST);
  outcome_of(&outcomes[1], script_step(&script));
  outcome_of(&outcomes[2], script_step(&script));
  outcome_of(&outcomes[3], save(&script, "a"));
  {
    tnk_promise_t *last = script_step(&script);
    tnk_promise_cancel(last);
    tnk_promise_unref(last);
  }
  outcome_ok(&script, &outcomes[3]);
  check_saved(&outcomes[3], 2, 0);
  outcome_ok(&script, &outcomes[1]);
  outcome_ok(&script, &outcomes[2]);
  outcome_drop_all(outcomes, 4);
  script_close(&script);
}

/* Polls of optim_step:N wait; others are answered. */
typedef struct {
  script_t *script;
  script_held_t held;
} late_t;

static void hold_steps(mock_request_t *request, void *user) {
  late_t *late = user;

  if (strstr((const char *)request->body, "\"optim_step:") != NULL)
    script_hold(request, &late->held);
  else
    script_result(request, late->script);
}

TEST(a_step_that_fails_later_is_not_in_what_the_ledger_keeps) {
  bench_t bench;
  outcome_t step;
  outcome_t other;
  outcome_t saved;
  late_t late = {.script = &bench.script};

  bench_open(&bench);
  mock_on(bench.script.mock, "POST", "/api/v1/retrieve_future", hold_steps,
          &late);
  outcome_of(&other, script_step(&bench.script));
  outcome_of(&step, script_step(&bench.script));
  outcome_of(&saved, bench_save(&bench, "a", NULL));
  while (late.held.n < 2 || bench.script.n_sent < 3)
    mock_turns(bench.script.mock, 1);
  script_turns(&bench.script);
  /* The save has its result, and waits for theirs. */
  CHECK_INT(saved.n_done, 0);
  mock_on(bench.script.mock, "POST", "/api/v1/retrieve_future", script_result,
          &bench.script);
  mock_reply_json(late.held.requests[0], 200,
                  "{\"error\":\"diverged\",\"category\":\"user\"}");
  mock_reply_json(late.held.requests[1], 200, "{\"metrics\":{}}");
  outcome_ok(&bench.script, &saved);
  CHECK_INT(tnk_promise_entry(saved.promise)->n_steps, 1);
  outcome_wait(&bench.script, &step);
  outcome_wait(&bench.script, &other);
  CHECK((step.status == TNK_EFAILED) != (other.status == TNK_EFAILED));
  outcome_drop(&step);
  outcome_drop(&other);
  outcome_drop(&saved);
  bench_close(&bench);
}

/* The same where the state is refused, and only weights to sample from are
 * saved. */
TEST(a_step_that_fails_later_is_not_in_what_is_noted_without_a_state) {
  bench_t bench;
  outcome_t steps[2];
  outcome_t saved;
  late_t late = {.script = &bench.script};
  tnk_ledger_save_t how = TNK_LEDGER_SAVE_INIT;
  const tnk_ledger_entry_t *entry;

  bench_open(&bench);
  mock_on(bench.script.mock, "POST", "/api/v1/retrieve_future", hold_steps,
          &late);
  mock_json_once(bench.script.mock, "POST", "/api/v1/save_weights", 422,
                 "{\"detail\":\"quota\"}");
  outcome_of(&steps[0], script_step(&bench.script));
  outcome_of(&steps[1], script_step(&bench.script));
  how.with_sampler = TNK_YES;
  outcome_of(&saved,
             tnk_ledger_save(bench.ledger, bench.script.training, &how));
  while (late.held.n < 2 || bench.script.n_sent < 3)
    mock_turns(bench.script.mock, 1);
  script_turns(&bench.script);
  mock_on(bench.script.mock, "POST", "/api/v1/retrieve_future", script_result,
          &bench.script);
  mock_reply_json(late.held.requests[0], 200,
                  "{\"error\":\"diverged\",\"category\":\"user\"}");
  mock_reply_json(late.held.requests[1], 200, "{\"metrics\":{}}");
  outcome_fails(&bench.script, &saved, TNK_EREQUEST);
  entry = tnk_ledger_entry(bench.ledger, 0);
  CHECK(entry != NULL && entry->state_path == NULL);
  CHECK(entry->sampler_path != NULL);
  CHECK_INT(entry->n_steps, 1);
  outcome_wait(&bench.script, &steps[0]);
  outcome_wait(&bench.script, &steps[1]);
  outcome_drop_all(steps, 2);
  outcome_drop(&saved);
  bench_close(&bench);
}

TEST(a_state_that_is_loaded_begins_the_count_anew) {
  script_t script;
  outcome_t outcomes[5];
  tnk_load_options_t load = TNK_LOAD_OPTIONS_INIT;

  script_open_train(&script);
  load.path = "tinker://run/weights/a";
  outcome_of(&outcomes[0], script_step(&script));
  outcome_of(&outcomes[1], tnk_training_load_state(script.training, &load));
  outcome_of(&outcomes[2], script_pass(&script, 1));
  outcome_of(&outcomes[3], script_step(&script));
  outcome_of(&outcomes[4], save(&script, "b"));
  for (int i = 0; i < 5; i++)
    outcome_ok(&script, &outcomes[i]);
  check_saved(&outcomes[4], 1, 1);
  outcome_drop_all(outcomes, 5);
  script_close(&script);
}
