/* SPDX-License-Identifier: MIT */
/* Losses of the caller that answer later, and what they tell beside. */
#include <math.h>

#include "task/script.h"

static const char fb_path[] = "/api/v1/forward_backward";

typedef struct {
  script_t *script;
  tnk_custom_loss_t *io; /* deferred */
  tnk_promise_t *cancel;
  uv_work_t work;
  int n_worked;
} plan_t;

static int defer(tnk_custom_loss_t *io, void *user) {
  plan_t *plan = user;

  CHECK_INT(tnk_custom_loss_finish(io, 0), TNK_EINVAL);
  CHECK_INT(tnk_custom_loss_defer(io), TNK_OK);
  CHECK_INT(tnk_custom_loss_defer(io), TNK_EINVAL);
  CHECK_INT(tnk_custom_loss_finish(io, 0), TNK_EREENTRANT);
  plan->io = io;
  if (plan->cancel != NULL)
    tnk_promise_cancel(plan->cancel);
  return 99; /* does not count */
}

static tnk_promise_t *custom(script_t *script, tnk_custom_loss_cb loss,
                             void *user) {
  return tnk_training_forward_backward_custom(script->training, script_data(2),
                                              2, loss, user, NULL);
}

/* Until the function has been called, and has put off its answer. */
static void until_deferred(script_t *script, plan_t *plan) {
  for (int i = 0; i < 100 && plan->io == NULL; i++)
    script_turns(script);
  CHECK(plan->io != NULL);
}

static double metric(const outcome_t *outcome, const char *key) {
  return tnk_metrics_get(tnk_pass_metrics(tnk_promise_pass(outcome->promise)),
                         key);
}

TEST(L28_a_loss_may_answer_later_while_heartbeats_go_on) {
  script_t script;
  plan_t plan = {0};
  outcome_t outcome;
  outcome_t step;
  tnk_promise_t *running;
  char text[200];
  size_t n_beats;

  script_open_train(&script);
  running = custom(&script, defer, &plan);
  outcome_of(&outcome, tnk_promise_ref(running));
  outcome_of(&step, script_step(&script));
  until_deferred(&script, &plan);
  n_beats = mock_count(script.mock, "POST", "/api/v1/session_heartbeat");
  for (int i = 0; i < 4; i++)
    script_advance(&script, 10000);
  CHECK(mock_count(script.mock, "POST", "/api/v1/session_heartbeat") >=
        n_beats + 3);
  CHECK_INT(outcome.n_done + step.n_done, 0);
  CHECK_INT(mock_count(script.mock, "POST", fb_path), 1);
  tnk_promise_explain(running, text, sizeof(text));
  CHECK(strstr(text, "the caller's function is running") != NULL);
  tnk_promise_unref(running);
  for (size_t i = 0; i < 2; i++) {
    CHECK_NEAR(((const float *)plan.io->logprobs[i].data)[1], -2.0, 0);
    plan.io->gradients[i][0] = 0.25f;
  }
  plan.io->loss = 9;
  CHECK_INT(tnk_custom_loss_finish(plan.io, 0), TNK_OK);
  outcome_ok(&script, &outcome);
  outcome_ok(&script, &step);
  CHECK_NEAR(metric(&outcome, "loss:sum"), 9, 0);
  /* The step has come after the backward pass. */
  script_check_sent(&script, 1, "forward_backward", 2);
  script_check_sent(&script, 2, "optim_step", 3);
  outcome_drop(&outcome);
  outcome_drop(&step);
  script_close(&script);
}

static void work(uv_work_t *work) {
  plan_t *plan = work->data;

  plan->io->gradients[1][1] = -1;
  plan->io->loss = 3;
}

static void worked(uv_work_t *work, int status) {
  plan_t *plan = work->data;

  CHECK_INT(status, 0);
  CHECK_INT(tnk_custom_loss_finish(plan->io, 0), TNK_OK);
  plan->n_worked++;
}

static int defer_to_worker(tnk_custom_loss_t *io, void *user) {
  plan_t *plan = user;

  CHECK_INT(tnk_custom_loss_defer(io), TNK_OK);
  plan->io = io;
  plan->work.data = plan;
  CHECK_INT(uv_queue_work(&plan->script->uv, &plan->work, work, worked), 0);
  return 0;
}

TEST(L28_a_loss_may_be_computed_on_another_thread) {
  script_t script;
  plan_t plan = {.script = &script};
  outcome_t outcome;

  script_open_train(&script);
  outcome_of(&outcome, custom(&script, defer_to_worker, &plan));
  outcome_ok(&script, &outcome);
  CHECK_INT(plan.n_worked, 1);
  CHECK_NEAR(metric(&outcome, "loss:sum"), 3, 0);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(L28_a_loss_may_give_up_later) {
  script_t script;
  outcome_t outcome;
  outcome_t step;

  for (int i = 0; i < 2; i++) {
    plan_t plan = {0};
    script_open_train(&script);
    outcome_of(&outcome, custom(&script, defer, &plan));
    outcome_of(&step, script_step(&script));
    until_deferred(&script, &plan);
    plan.io->loss = i == 0 ? 0 : INFINITY;
    CHECK_INT(tnk_custom_loss_finish(plan.io, i == 0 ? 77 : 0), TNK_OK);
    outcome_fails(&script, &outcome, TNK_EUSER);
    CHECK_INT(tnk_promise_error(outcome.promise)->cause, i == 0 ? 77 : 0);
    outcome_ok(&script, &step);
    script_check_sent(&script, 1, "optim_step", 2);
    outcome_drop(&outcome);
    outcome_drop(&step);
    script_close(&script);
  }
}

/* Whoever computes does not notice, and may still write; the queue goes on. */
TEST(L28_a_deferred_loss_that_is_canceled_holds_up_nobody) {
  for (int is_inside = 0; is_inside < 2; is_inside++) {
    script_t script;
    plan_t plan = {0};
    outcome_t outcome;
    outcome_t step;
    tnk_promise_t *promise;

    script_open_train(&script);
    promise = custom(&script, defer, &plan);
    plan.cancel = is_inside ? promise : NULL;
    outcome_of(&outcome, tnk_promise_ref(promise));
    outcome_of(&step, script_step(&script));
    until_deferred(&script, &plan);
    tnk_promise_cancel(promise);
    tnk_promise_unref(promise);
    outcome_fails(&script, &outcome, TNK_ECANCELED);
    outcome_ok(&script, &step);
    script_check_sent(&script, 1, "optim_step", 2);
    plan.io->gradients[1][1] = 5;
    CHECK_NEAR(((const float *)plan.io->logprobs[1].data)[1], -2.0, 0);
    CHECK_INT(tnk_custom_loss_finish(plan.io, 0), TNK_ECANCELED);
    outcome_drop(&outcome);
    outcome_drop(&step);
    script_close(&script);
  }
}

TEST(L28_a_client_closes_when_its_deferred_loss_is_finished) {
  script_t script;
  plan_t plan = {0};
  outcome_t outcome;

  script_open_train(&script);
  outcome_of(&outcome, custom(&script, defer, &plan));
  until_deferred(&script, &plan);
  script.is_closed = 0;
  tnk_training_close(script.training, script_closed, &script);
  outcome_fails(&script, &outcome, TNK_ECLOSED);
  script_turns(&script);
  CHECK_INT(script.is_closed, 0);
  plan.io->gradients[0][0] = 1;
  CHECK_INT(tnk_custom_loss_finish(plan.io, 0), TNK_ECANCELED);
  CHECK_INT(script.is_closed, 0); /* never inside the call */
  mock_wait_flag(script.mock, &script.is_closed, 1);
  script.is_closed = 0;
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(L28_a_service_closes_when_its_deferred_loss_is_finished) {
  script_t script;
  plan_t plan = {0};
  outcome_t outcome;

  script_open_train(&script);
  outcome_of(&outcome, custom(&script, defer, &plan));
  until_deferred(&script, &plan);
  tnk_service_close(script.service, script_closed, &script);
  outcome_fails(&script, &outcome, TNK_ECLOSED);
  script_turns(&script);
  CHECK_INT(script.is_closed, 0);
  plan.io->gradients[0][0] = 1;
  CHECK_INT(tnk_custom_loss_finish(plan.io, 0), TNK_ECANCELED);
  script_end(&script);
  outcome_drop(&outcome);
}

TEST(L28_what_is_none_is_not_deferred) {
  CHECK_INT(tnk_custom_loss_defer(NULL), TNK_EINVAL);
  CHECK_INT(tnk_custom_loss_finish(NULL, 0), TNK_EINVAL);
}

/* Each allocation behind the answer fails in turn. */
TEST(S3_26a_a_deferred_loss_is_answered_without_memory) {
  static const tnk_custom_metric_t metric = {"kl", 1};

  for (long n = 0;; n++) {
    script_t script;
    plan_t plan = {0};
    outcome_t outcome;
    int did_fail;

    script_open_train(&script);
    outcome_of(&outcome, custom(&script, defer, &plan));
    until_deferred(&script, &plan);
    plan.io->metrics = &metric;
    plan.io->n_metrics = 1;
    test_alloc_fail_at(n);
    CHECK_INT(tnk_custom_loss_finish(plan.io, 0), TNK_OK);
    script_turns(&script);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    for (int i = 0; i < 5 && outcome.n_done == 0; i++)
      script_advance(&script, 30000);
    CHECK(outcome.status == TNK_OK || outcome.status == TNK_ENOMEM);
    outcome_drop(&outcome);
    script_close(&script);
    if (!did_fail)
      break;
  }
}

/* ---- Metrics ---- */

static int tell(tnk_custom_loss_t *io, void *user) {
  const tnk_custom_loss_t *told = user;

  io->loss = told->loss;
  io->metrics = told->metrics;
  io->n_metrics = told->n_metrics;
  return 0;
}

TEST(E8_a_loss_tells_metrics_beside_its_value) {
  char name[] = "kl";
  tnk_custom_metric_t metrics[] = {{name, 0.5}, {"x:mean", 4}, {"loss:sum", 1}};
  tnk_custom_loss_t told = {.loss = 2, .metrics = metrics, .n_metrics = 3};
  script_t script;
  outcome_t outcome;

  script_open_train(&script);
  script_ok(&script, &outcome, custom(&script, tell, &told));
  name[0] = 'x'; /* It was copied. */
  metrics[0].value = 7;
  CHECK_NEAR(metric(&outcome, "kl"), 0.5, 0);
  CHECK_NEAR(metric(&outcome, "x:mean"), 4, 0);
  CHECK_NEAR(metric(&outcome, "loss:sum"), 2, 0);
  CHECK_NEAR(metric(&outcome, "surrogate_loss:sum"), 2, 0);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(E8_metrics_of_a_loss_are_named_and_not_too_many) {
  static const tnk_custom_metric_t metrics[] = {{"kl", 0.5}, {NULL, 1}};
  static const tnk_custom_metric_t many[1025];
  const tnk_custom_loss_t told[] = {{.metrics = metrics, .n_metrics = 2},
                                    {.metrics = NULL, .n_metrics = 1},
                                    {.metrics = many, .n_metrics = 1025}};
  static const char *const words[] = {"no name", "no name", "more than 1,024"};

  for (int i = 0; i < 3; i++) {
    script_t script;
    outcome_t outcome;
    tnk_custom_loss_t copy = told[i];

    script_open_train(&script);
    script_fails(&script, &outcome, custom(&script, tell, &copy), TNK_EUSER);
    CHECK(strstr(outcome.text, words[i]) != NULL);
    CHECK_INT(script.n_sent, 1);
    outcome_drop(&outcome);
    script_close(&script);
  }
}
