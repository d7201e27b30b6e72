/* SPDX-License-Identifier: MIT */
#include "local/e2e.h"

/* The client against a server that refuses members which the protocol of 0.25
 * did not have: what carries its default is not sent, so nothing is refused. */

static local_options_t old_server(local_sequence_t sequence) {
  local_options_t options = LOCAL_OPTIONS_INIT;

  options.members = LOCAL_MEMBERS_STRICT;
  options.sequence = sequence;
  return options;
}

static void train_and_sample(local_sequence_t sequence) {
  tnk_save_options_t save = TNK_SAVE_OPTIONS_INIT;
  tnk_promise_t *sample;
  double first;
  double last = 0;
  e2e_t e2e;

  e2e_open(&e2e, old_server(sequence));
  e2e_train(&e2e, 4);
  first = e2e_loss(e2e_pass(&e2e, 0));
  for (int i = 0; i < 6; i++) {
    e2e_done(e2e_step(&e2e));
    last = e2e_loss(e2e_pass(&e2e, 0));
  }
  CHECK(last < first);
  e2e_done(tnk_training_save_state(e2e.training, "state", &save));
  e2e_done(tnk_training_save_weights_for_sampler(e2e.training, "named", &save));
  sample = e2e_ok(e2e_sample(e2e_snapshot(&e2e), 4, 5, NULL));
  CHECK(tnk_promise_samples(sample) != NULL);
  tnk_promise_unref(sample);
  for (size_t i = 0; i < e2e.n_seen; i++)
    CHECK(e2e.seen[i].status != 422);
  e2e_close(&e2e);
}

TEST_LIMIT(a_server_of_0_25_that_reads_strictly_trains_and_samples, 60) {
  train_and_sample(LOCAL_STRICT);
}

TEST_LIMIT(so_does_one_that_holds_back_what_is_early, 60) {
  train_and_sample(LOCAL_BUFFERED);
}

/* What has no default cannot be left out. */
TEST_LIMIT(what_such_a_server_lacks_is_refused, 60) {
  tnk_sampling_t *sampling;
  tnk_sample_options_t options = TNK_SAMPLE_OPTIONS_INIT;
  tnk_promise_t *sample;
  e2e_t e2e;

  e2e_open(&e2e, old_server(LOCAL_BUFFERED));
  e2e_train(&e2e, 2);
  sampling = e2e_snapshot(&e2e);
  options.topk_sample_logprobs = 2;
  sample = e2e_sample(sampling, 2, 5, &options);
  CHECK(tnk_wait(sample) != TNK_OK);
  CHECK_INT(tnk_promise_error(sample)->http_status, 422);
  CHECK(strstr(tnk_promise_text(sample), "topk_sample_logprobs") != NULL);
  tnk_promise_unref(sample);
  e2e_close(&e2e);
}
