/* SPDX-License-Identifier: MIT */
#include <unistd.h>

#include "local/e2e.h"
#include "local/fast.h"
#include "support/tree.h"

/*
 * The server is restarted in the middle of a training, with what it had saved
 * or without. The client says so within a heartbeat, or goes on from the last
 * saved state; it never trains other weights in silence.
 */

enum { SPEED = 300, N_MODES = 3 };

static const local_sequence_t modes[N_MODES] = {LOCAL_BUFFERED, LOCAL_LENIENT,
                                                LOCAL_STRICT};

typedef struct {
  e2e_t e2e;
  fast_clock_t clock;
  char dir[64];
  local_options_t options;
  int n_completed; /* of the training client */
  int n_exhausted;
  uint64_t n_steps;
  double saved_loss; /* of one example, with the weights that were saved */
} run_t;

static void on_recovery(const tnk_recovery_event_t *event, void *user) {
  run_t *run = user;

  if (event->training == NULL)
    return;
  CHECK(event->training == run->e2e.training);
  run->n_completed += event->state == TNK_RECOVERY_COMPLETED;
  run->n_exhausted += event->state == TNK_RECOVERY_EXHAUSTED;
  if (event->state == TNK_RECOVERY_COMPLETED)
    run->n_steps = event->n_steps;
}

/* The loss of one example, which changes nothing. */
static double look(run_t *run) {
  e2e_example_t ex;

  return e2e_loss(
      tnk_training_forward(run->e2e.training, e2e_datum(&ex, 3), 1, NULL));
}

/* Three steps, a saved state, and two more. */
static void open_run(run_t *run, local_sequence_t sequence, int recovers) {
  e2e_t *e2e = &run->e2e;

  memset(run, 0, sizeof(*run));
  snprintf(run->dir, sizeof(run->dir), "/tmp/tnk-test-XXXXXX");
  CHECK(mkdtemp(run->dir) != NULL);
  run->options = (local_options_t)LOCAL_OPTIONS_INIT;
  run->options.sequence = sequence;
  run->options.hold_ms = 50;
  run->options.data = run->dir;
  e2e_open(e2e, run->options);
  e2e_stop_client(e2e);
  e2e->heeds_losses = 1;
  e2e->on_recovery = recovers ? on_recovery : NULL;
  e2e->recovery_user = run;
  e2e_start_client(e2e);
  fast_start(&run->clock, &e2e->uv, e2e->service, SPEED);
  e2e_train(e2e, 4);
  for (int i = 0; i < 5; i++) {
    e2e_done(e2e_pass(e2e, (size_t)i * 5));
    e2e_done(e2e_step(e2e));
    if (i != 2)
      continue;
    e2e_done(tnk_training_save_state(e2e->training, "a", NULL));
    run->saved_loss = look(run);
  }
}

static void close_run(run_t *run) {
  fast_stop(&run->clock);
  e2e_close(&run->e2e);
  remove_below(run->dir);
  rmdir(run->dir);
}

/* At the same address; no heartbeat need have been answered before. */
static void restart(run_t *run, int keeps_data) {
  e2e_t *e2e = &run->e2e;

  run->options.port = local_server_port(e2e->server);
  e2e_stop_server(e2e);
  if (!keeps_data)
    remove_below(run->dir);
  e2e_start_server(e2e, run->options);
}

static void until(run_t *run, const int *flag) {
  while (*flag == 0)
    uv_run(&run->e2e.uv, UV_RUN_ONCE);
}

/* It is rejected, and with words that name the loss. */
static void refused(tnk_promise_t *promise) {
  CHECK_INT(tnk_wait(promise), TNK_ESESSION);
  tnk_promise_unref(promise);
}

TEST_LIMIT(S0_3_a_restart_is_told_within_a_heartbeat, 100) {
  for (int i = 0; i < 2 * N_MODES; i++) {
    run_t run;
    e2e_t *e2e = &run.e2e;
    size_t n_beats = 0;
    tnk_promise_t *pass;

    open_run(&run, modes[i / 2], 0);
    restart(&run, i % 2);
    pass = e2e_pass(e2e, 1); /* whatever comes of it, it is no success */
    until(&run, &e2e->n_ended);
    for (size_t k = 0; k < e2e->n_seen; k++)
      n_beats += strcmp(e2e->seen[k].call, "session_heartbeat") == 0;
    CHECK_INT(n_beats, 1); /* the first that came told */
    CHECK(tnk_wait(pass) != TNK_OK);
    tnk_promise_unref(pass);
    refused(e2e_step(e2e));
    CHECK_INT(run.n_completed + run.n_exhausted, 0);
    close_run(&run);
  }
}

TEST_LIMIT(Q1_a_restart_that_kept_what_was_saved_is_recovered_from, 100) {
  for (int i = 0; i < N_MODES; i++) {
    run_t run;
    e2e_t *e2e = &run.e2e;

    open_run(&run, modes[i], 1);
    restart(&run, 1);
    until(&run, &run.n_completed);
    CHECK_INT(run.n_steps, 3);
    CHECK(look(&run) == run.saved_loss);
    e2e_done(e2e_pass(e2e, 1));
    e2e_done(e2e_step(e2e));
    CHECK(look(&run) != run.saved_loss);
    CHECK_INT(run.n_exhausted, 0);
    close_run(&run);
  }
}

TEST_LIMIT(Q1_a_restart_that_kept_nothing_is_told, 100) {
  for (int i = 0; i < N_MODES; i++) {
    run_t run;
    e2e_t *e2e = &run.e2e;

    open_run(&run, modes[i], 1);
    restart(&run, 0);
    until(&run, &run.n_exhausted);
    refused(e2e_step(e2e));
    CHECK_INT(run.n_completed, 0);
    close_run(&run);
  }
}

/* What is under way when it happens: everything settles, and nothing that comes
 * after the loss is a success until the state is there again. */
TEST_LIMIT(S0_3_what_is_under_way_in_a_restart_settles, 100) {
  for (int i = 0; i < N_MODES; i++) {
    run_t run;
    e2e_t *e2e = &run.e2e;
    e2e_tally_t tally = {0, 0};

    open_run(&run, modes[i], 1);
    for (int k = 0; k < 6; k++)
      tnk_then(k % 2 == 0 ? e2e_pass(e2e, (size_t)k) : e2e_step(e2e), e2e_tally,
               &tally);
    restart(&run, 1);
    until(&run, &run.n_completed);
    e2e_until_settled(e2e, &tally, 6);
    CHECK(look(&run) == run.saved_loss);
    close_run(&run);
  }
}
