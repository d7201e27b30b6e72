/* SPDX-License-Identifier: MIT */
#include "codec/loss_graph.h"
#include "local/e2e.h"

#include <math.h>
#include <unistd.h>

static local_options_t personality(local_sequence_t sequence) {
  local_options_t options = LOCAL_OPTIONS_INIT;

  options.sequence = sequence;
  return options;
}

TEST_LIMIT(e2e_training_lowers_the_loss, 60) {
  e2e_t e2e;
  double first;
  double last = 0;

  e2e_open(&e2e, personality(LOCAL_BUFFERED));
  e2e_train(&e2e, 4);
  first = e2e_loss(e2e_pass(&e2e, 0));
  for (int i = 0; i < 8; i++) {
    tnk_promise_t *pass = e2e_pass(&e2e, 0);
    e2e_done(e2e_step(&e2e));
    last = e2e_loss(pass);
  }
  CHECK(isfinite(first) && last < 0.9 * first);
  e2e_close(&e2e);
}

/* Passes as JSON give the same losses as passes in protobuf, bit for bit. */
TEST_LIMIT(B17_e2e_training_with_passes_as_JSON, 60) {
  enum { N_STEPS = 4 };
  double losses[2][2 * N_STEPS];

  for (int is_json = 0; is_json < 2; is_json++) {
    e2e_example_t ex;
    e2e_t e2e;

    e2e_open(&e2e, personality(LOCAL_BUFFERED));
    e2e_train(&e2e, 4);
    if (is_json)
      e2e_faults(&e2e, "415/forward_backward@1");
    for (size_t i = 0; i < N_STEPS; i++) {
      tnk_promise_t *pass = e2e_pass(&e2e, i);

      e2e_done(e2e_step(&e2e));
      losses[is_json][2 * i] = e2e_loss(pass);
      losses[is_json][2 * i + 1] = e2e_loss(
          tnk_training_forward(e2e.training, e2e_datum(&ex, 1), 1, NULL));
    }
    CHECK_INT(e2e.service->session.start.progress.pass_form,
              is_json ? TNK__FORM_JSON : TNK__FORM_PROTO);
    e2e_close(&e2e);
  }
  for (size_t i = 0; i < 2 * N_STEPS; i++)
    CHECK(losses[0][i] == losses[1][i] && isfinite(losses[0][i]));
}

/* ---- Ten operations in one turn ---- */

static void ten_in_one_turn(local_sequence_t sequence) {
  tnk_pass_options_t bad = TNK_PASS_OPTIONS_INIT;
  tnk_promise_t *promises[10];
  e2e_example_t ex;
  int64_t highest = 0;
  e2e_t e2e;

  e2e_open(&e2e, personality(sequence));
  e2e_train(&e2e, 2);
  /* The sixth operation is done, but its answer never arrives. */
  e2e_faults(&e2e, "drop_after_commit/forward_backward@6");
  bad.loss_fn = "no_such_loss";
  for (size_t i = 0; i < 10; i++)
    promises[i] = tnk_training_forward_backward(e2e.training, e2e_datum(&ex, i),
                                                1, i == 2 ? &bad : NULL);
  for (int i = 0; i < 10; i++) {
    int status = tnk_wait(promises[i]);
    if (i == 2)
      CHECK_INT(tnk_promise_error(promises[i])->http_status, 422);
    else if (i == 5 && sequence == LOCAL_STRICT)
      ; /* done, but this server does not show it to whom has missed it */
    else if (status != TNK_OK)
      test_fail(__FILE__, __LINE__, "operation %d: %s", i,
                tnk_promise_text(promises[i]));
    tnk_promise_unref(promises[i]);
  }
  CHECK_INT(local_faults_count(e2e.faults, "drop_after_commit"), 1);
  /* No hole: nine numbers for nine accepted operations. */
  for (size_t i = 0; i < e2e.n_seen; i++)
    if (strcmp(e2e.seen[i].call, "forward_backward") == 0 &&
        e2e.seen[i].status / 100 == 2 && e2e.seen[i].seq > highest)
      highest = e2e.seen[i].seq;
  CHECK_INT(highest, 9);
  e2e_done(e2e_step(&e2e));
  e2e_close(&e2e);
}

TEST_LIMIT(S0_3_S3_1_ten_in_one_turn_lenient, 60) {
  ten_in_one_turn(LOCAL_LENIENT);
}

TEST_LIMIT(S0_3_S3_1_ten_in_one_turn_strict, 60) {
  ten_in_one_turn(LOCAL_STRICT);
}

TEST_LIMIT(S0_3_S3_1_ten_in_one_turn_buffered, 60) {
  ten_in_one_turn(LOCAL_BUFFERED);
}

/* ---- A restart between save and load ---- */

static double learn(e2e_t *e2e, size_t from, size_t n) {
  double loss = 0;

  for (size_t i = from; i < from + n; i++) {
    loss = e2e_loss(e2e_pass(e2e, i * 5));
    e2e_done(e2e_step(e2e));
  }
  return loss;
}

TEST_LIMIT(e2e_a_restart_continues_bit_for_bit, 60) {
  char dir[] = "/tmp/tnk-test-XXXXXX";
  local_options_t options = LOCAL_OPTIONS_INIT;
  tnk_restore_options_t restore = TNK_RESTORE_OPTIONS_INIT;
  char path[256];
  char command[64];
  double uninterrupted;
  double continued;
  tnk_promise_t *promise;
  e2e_t e2e;

  CHECK(mkdtemp(dir) != NULL);
  options.data = dir;
  e2e_open(&e2e, options);
  e2e_train(&e2e, 4);
  learn(&e2e, 0, 3);
  promise = e2e_ok(tnk_training_save_state(e2e.training, "half", NULL));
  snprintf(path, sizeof(path), "%s", tnk_promise_path(promise));
  tnk_promise_unref(promise);
  uninterrupted = learn(&e2e, 3, 3);

  e2e_stop_client(&e2e);
  e2e_stop_server(&e2e);
  e2e_start_server(&e2e, options);
  e2e_start_client(&e2e);
  restore.path = path;
  restore.with_optimizer = TNK_YES;
  e2e_client(&e2e, tnk_service_restore(e2e.service, &restore));
  continued = learn(&e2e, 3, 3);
  CHECK(memcmp(&continued, &uninterrupted, sizeof(continued)) == 0);

  /* The classic way arrives at the same. */
  restore.classic = TNK_YES;
  e2e_client(&e2e, tnk_service_restore(e2e.service, &restore));
  continued = learn(&e2e, 3, 3);
  CHECK(memcmp(&continued, &uninterrupted, sizeof(continued)) == 0);
  e2e_close(&e2e);
  snprintf(command, sizeof(command), "rm -rf %s", dir);
  CHECK_INT(system(command), 0);
}

/* ---- A custom loss is the same as the built-in one ---- */

static int negative_mean(tnk_custom_loss_t *io, void *user) {
  (void)user;
  for (size_t i = 0; i < io->n_data; i++)
    for (size_t k = 0; k < io->logprobs[i].n_values; k++) {
      io->loss -= ((const float *)io->logprobs[i].data)[k];
      io->gradients[i][k] = -1.0f;
    }
  return 0;
}

TEST_LIMIT(e2e_a_custom_loss_trains_like_cross_entropy, 60) {
  e2e_example_t ex;
  double after[2];
  e2e_t e2e;

  e2e_open(&e2e, personality(LOCAL_BUFFERED));
  for (int custom = 0; custom < 2; custom++) {
    e2e_train(&e2e, 4);
    if (custom)
      e2e_done(tnk_training_forward_backward_custom(
          e2e.training, e2e_datum(&ex, 0), 1, negative_mean, NULL, NULL));
    else
      e2e_done(e2e_pass(&e2e, 0));
    e2e_done(e2e_step(&e2e));
    after[custom] = e2e_loss(e2e_pass(&e2e, 0));
  }
  CHECK_NEAR(after[1], after[0], 1e-6);
  e2e_close(&e2e);
}

/* It runs no losses of its clients, and says so, whatever its flags say. */
TEST_LIMIT(P5_7_the_local_server_runs_no_losses_of_its_clients, 60) {
  static const tnk_pair_t flags[] = {{"custom_loss_server_side", "true"}};
  const tnk_loss_options_t loss = loss_options();

  for (size_t n_flags = 0; n_flags < 2; n_flags++) {
    local_options_t options = LOCAL_OPTIONS_INIT;
    tnk_promise_t *promise;
    e2e_t e2e;

    options.flags = flags;
    options.n_flags = n_flags;
    e2e_open(&e2e, options);
    promise = tnk_service_create_loss(e2e.service, &loss);
    CHECK_INT(tnk_wait(promise), TNK_EUNSUPPORTED);
    tnk_promise_unref(promise);
    e2e_close(&e2e);
  }
}

/* Nor does its model hear anything. */
TEST_LIMIT(J5_the_local_server_refuses_audio, 60) {
  static const tnk_chunk_t chunk = {
      .kind = TNK_CHUNK_DMEL, .bytes = "\2\2\3\4", .n_bytes = 4};
  static const int64_t targets[] = {1, 2, 3};
  const tnk_datum_t datum = {.input = {.chunks = &chunk, .n_chunks = 1},
                             .targets = targets};
  tnk_promise_t *promise;
  e2e_t e2e;

  e2e_open(&e2e, (local_options_t)LOCAL_OPTIONS_INIT);
  e2e_train(&e2e, 4);
  promise = tnk_training_forward(e2e.training, &datum, 1, NULL);
  CHECK(tnk_wait(promise) != TNK_OK);
  CHECK(strstr(tnk_promise_text(promise), "reads text chunks only") != NULL);
  tnk_promise_unref(promise);
  promise = tnk_sampling_sample(e2e_snapshot(&e2e), &datum.input, NULL, NULL);
  CHECK(tnk_wait(promise) != TNK_OK);
  CHECK(strstr(tnk_promise_text(promise), "reads text chunks only") != NULL);
  tnk_promise_unref(promise);
  e2e_close(&e2e);
}
