/* SPDX-License-Identifier: MIT */
/*
 * Late calls that do no harm: on clients that are closing or closed, and on
 * promises whose service is gone. What a finalizer or a coroutine does.
 */
#include "task/script.h"

typedef struct {
  script_t script;
  outcome_t training; /* promises that show the clients */
  outcome_t sampling;
  tnk_training_t *t;
  tnk_sampling_t *s;
  int n_closed;
} late_t;

static void on_closed(void *user) {
  ((late_t *)user)->n_closed++;
}

static void late_open(late_t *late) {
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  tnk_sampling_options_t sampling = TNK_SAMPLING_OPTIONS_INIT;

  memset(late, 0, sizeof(*late));
  script_open(&late->script);
  lora.base_model = sampling.base_model = "base";
  script_ok(&late->script, &late->training,
            tnk_service_create_lora(late->script.service, &lora));
  script_ok(&late->script, &late->sampling,
            tnk_service_create_sampling(late->script.service, &sampling));
  late->script.training = late->t =
      tnk_promise_training(late->training.promise);
  late->script.sampling = late->s =
      tnk_promise_sampling(late->sampling.promise);
  CHECK(late->t != NULL && late->s != NULL);
  late->script.n_sent = 0;
}

static void late_drop(late_t *late) {
  outcome_drop(&late->training);
  outcome_drop(&late->sampling);
}

static void refused(tnk_promise_t *promise, const char *text) {
  CHECK(promise != NULL);
  CHECK_INT(tnk_promise_status(promise), TNK_ECLOSED);
  CHECK_INT(tnk_promise_error(promise)->ran, TNK_RAN_NO);
  CHECK_STR(tnk_promise_text(promise), text);
  tnk_promise_unref(promise);
}

static void count_release(void *user) {
  ++*(int *)user;
}

/* Everything that can be called of a client. */
static void call_all(late_t *late) {
  const tnk_datum_t *data = script_data(1);
  tnk_training_info_t info = TNK_TRAINING_INFO_INIT;
  tnk_training_t *t = late->t;

  CHECK(tnk_promise_training(late->training.promise) == NULL);
  CHECK(tnk_promise_sampling(late->sampling.promise) == NULL);
  refused(tnk_training_forward(t, data, 1, NULL),
          "forward: the object is closed or closing");
  refused(tnk_training_forward_backward(t, data, 1, NULL),
          "forward_backward: the object is closed or closing");
  refused(tnk_training_forward_backward_custom(t, data, 1, NULL, NULL, NULL),
          "forward_backward_custom: the object is closed or closing");
  refused(tnk_training_optim_step(t, NULL),
          "optim_step: the object is closed or closing");
  refused(tnk_training_save_state(t, "a", NULL),
          "save_state: the object is closed or closing");
  refused(tnk_training_load_state(t, NULL),
          "load_state: the object is closed or closing");
  refused(tnk_training_save_weights_and_get_sampling(t, TNK_SAMPLING_SNAPSHOT,
                                                     NULL),
          "save_weights_and_get_sampling: the object is closed or closing");
  refused(tnk_training_ready(t), "ready: the object is closed or closing");
  refused(tnk_training_unload(t), "unload: the object is closed or closing");
  refused(tnk_sampling_sample(late->s, script_prompt(), NULL, NULL),
          "sample: the object is closed or closing");
  refused(tnk_sampling_compute_logprobs(late->s, script_prompt(), NULL),
          "compute_logprobs: the object is closed or closing");
  refused(tnk_sampling_clone(late->s),
          "clone: the object is closed or closing");
  CHECK(tnk_sampling_export(late->s) == NULL);
  CHECK(tnk_sampling_id(late->s) == NULL);
  CHECK(tnk_sampling_base_model(late->s) == NULL);
  CHECK_INT(tnk_training_go_on(t), TNK_ECLOSED);
  CHECK_INT(tnk_training_info(&info, t), TNK_OK);
  CHECK(info.model_id == NULL && info.base_model == NULL);
  tnk_training_close(t, on_closed, late);
  tnk_sampling_close(late->s, on_closed, late);
}

TEST(calls_on_a_client_that_is_closing_or_closed_reject) {
  late_t late;

  late_open(&late);
  tnk_training_close(late.t, on_closed, &late);
  tnk_sampling_close(late.s, on_closed, &late);
  call_all(&late);
  CHECK_INT(late.n_closed, 0);
  script_turns(&late.script);
  CHECK_INT(late.n_closed, 2);
  call_all(&late);
  script_turns(&late.script);
  /* Only those that closed them were told. */
  CHECK_INT(late.n_closed, 2);
  CHECK_INT(late.script.n_sent, 0);
  late_drop(&late);
  script_close(&late.script);
}

TEST(calls_on_a_client_reject_when_its_service_is_gone) {
  late_t late;
  int n_released = 0;
  const tnk_pass_options_t lent = {.size = sizeof(lent),
                                   .release = count_release,
                                   .release_user = &n_released};

  late_open(&late);
  tnk_service_close(late.script.service, script_closed, &late.script);
  call_all(&late);
  script_end(&late.script);
  call_all(&late);
  /* There is no loop to tell the lender from. */
  refused(tnk_training_forward(late.t, script_data(1), 1, &lent),
          "forward: the object is closed or closing");
  CHECK_INT(n_released, 1);
  late_drop(&late);
  CHECK_INT(late.n_closed, 0);
}

TEST(a_late_call_without_memory_rejects_with_that) {
  late_t late;
  tnk_promise_t *promise;

  late_open(&late);
  tnk_service_close(late.script.service, script_closed, &late.script);
  script_end(&late.script);
  for (long n = 0; n < 4; n++) {
    test_alloc_fail_at(n);
    promise = tnk_training_unload(late.t);
    test_alloc_fail_at(-1);
    CHECK(tnk_promise_status(promise) == TNK_ECLOSED ||
          tnk_promise_status(promise) == TNK_ENOMEM);
    tnk_promise_unref(promise);
  }
  late_drop(&late);
}

/* What a callback of the closing begins is refused, by the service's closing
 * and by the client's own. */
static void sample_again(tnk_promise_t *promise, int status, void *user) {
  late_t *late = user;

  (void)promise;
  CHECK_INT(status, TNK_ECLOSED);
  call_all(late);
  late->script.n_warnings = -1;
}

TEST(an_operation_begun_when_its_client_closes_is_refused) {
  late_t late;

  late_open(&late);
  tnk_then(script_sample(&late.script), sample_again, &late);
  tnk_then(script_step(&late.script), sample_again, &late);
  tnk_training_close(late.t, on_closed, &late);
  tnk_sampling_close(late.s, on_closed, &late);
  script_turns(&late.script);
  CHECK_INT(late.script.n_warnings, -1);
  CHECK_INT(late.n_closed, 2);
  late_drop(&late);
  script_close(&late.script);
}

static void never(tnk_promise_t *promise, int status, void *user) {
  (void)promise;
  (void)status;
  (void)user;
  CHECK(0);
}

TEST(a_promise_whose_service_is_gone_takes_no_callback_and_says_so) {
  late_t late;
  tnk_promise_t *held[2];
  tnk_promise_t *timed;
  tnk_promise_t *all;
  char text[64];

  late_open(&late);
  held[0] = tnk_service_health(late.script.service);
  held[1] = script_sample(&late.script);
  CHECK_INT(tnk_wait(held[0]), TNK_OK);
  tnk_service_close(late.script.service, script_closed, &late.script);
  script_end(&late.script);
  CHECK_INT(tnk_then(tnk_promise_ref(held[0]), never, NULL), TNK_ECLOSED);
  CHECK_INT(tnk_then(tnk_promise_ref(held[1]), never, NULL), TNK_ECLOSED);
  CHECK_INT(tnk_then(tnk_promise_ref(held[1]), NULL, NULL), TNK_OK);
  CHECK_INT(tnk_then(NULL, never, NULL), TNK_EINVAL);
  CHECK_INT(tnk_wait(held[0]), TNK_OK);
  CHECK_INT(tnk_wait(held[1]), TNK_ECLOSED);
  tnk_promise_cancel(held[1]);
  CHECK(tnk_promise_explain(held[1], text, sizeof(text)) > 0);
  timed = tnk_with_timeout(tnk_promise_ref(held[0]), 5);
  CHECK_INT(tnk_promise_status(timed), TNK_ECLOSED);
  tnk_promise_unref(timed);
  tnk_promise_ref(held[0]);
  tnk_promise_ref(held[1]);
  all = tnk_all(held, 2);
  CHECK_INT(tnk_promise_status(all), TNK_ECLOSED);
  tnk_promise_unref(all);
  tnk_promise_unref(held[0]);
  tnk_promise_unref(held[1]);
  late_drop(&late);
}

TEST(a_group_counts_children_whose_service_is_gone) {
  late_t late;
  script_t other;
  outcome_t ok;
  outcome_t failed;
  tnk_promise_t *good[2];
  tnk_promise_t *bad[2];

  late_open(&late);
  good[0] = tnk_service_health(late.script.service);
  bad[0] = script_sample(&late.script);
  CHECK_INT(tnk_wait(good[0]), TNK_OK);
  tnk_service_close(late.script.service, script_closed, &late.script);
  script_end(&late.script);
  late_drop(&late);
  script_open(&other);
  good[1] = tnk_service_health(other.service);
  bad[1] = tnk_service_health(other.service);
  outcome_of(&ok, tnk_all(good, 2));
  outcome_of(&failed, tnk_all(bad, 2));
  outcome_ok(&other, &ok);
  outcome_fails(&other, &failed, TNK_ECLOSED);
  outcome_drop(&ok);
  outcome_drop(&failed);
  script_close(&other);
}
