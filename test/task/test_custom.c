/* SPDX-License-Identifier: MIT */
/* Losses of the caller, and data that the caller lends. */
#include "task/script.h"

static const char fb_path[] = "/api/v1/forward_backward";

/* What the loss function is to do. */
typedef struct {
  script_t *script;
  int n_calls;
  int answer;
  double gradient;
  double loss;
  tnk_promise_t *cancel;
  int close_client;
  int close_service;
  outcome_t inside; /* of an operation begun in there */
  int begin;
} plan_t;

static int on_loss(tnk_custom_loss_t *io, void *user) {
  plan_t *plan = user;

  plan->n_calls++;
  for (size_t i = 0; i < io->n_data; i++) {
    CHECK_INT(io->logprobs[i].n_values, 2);
    CHECK_NEAR(((const float *)io->logprobs[i].data)[1], -2.0, 0);
    CHECK_NEAR(io->gradients[i][0], 0, 0);
    io->gradients[i][0] = (float)plan->gradient;
  }
  io->loss = plan->loss;
  CHECK_INT(tnk_wait(plan->inside.promise), TNK_EINVAL);
  if (plan->begin)
    outcome_of(&plan->inside, script_step(plan->script));
  if (plan->cancel != NULL)
    tnk_promise_cancel(plan->cancel);
  if (plan->close_client)
    tnk_training_close(plan->script->training, NULL, NULL);
  if (plan->close_service)
    tnk_service_close(plan->script->service, script_closed, plan->script);
  return plan->answer;
}

static tnk_promise_t *custom(script_t *script, plan_t *plan, size_t n) {
  plan->script = script;
  return tnk_training_forward_backward_custom(script->training, script_data(n),
                                              n, on_loss, plan, NULL);
}

/* The weights that were sent in the i-th backward pass. */
static void check_weights(const script_t *script, size_t i, float first) {
  const mock_request_t *request = mock_find(script->mock, "POST", fb_path, i);
  const float want[] = {first, -0.0f};

  CHECK(request != NULL);
  for (size_t k = 0; k + sizeof(want) <= request->body_len; k++)
    if (memcmp(request->body + k, want, sizeof(want)) == 0)
      return;
  test_fail(__FILE__, __LINE__, "no such weights were sent");
}

TEST(a_custom_loss_in_chunks_is_called_once_for_all) {
  static const char *const flags[] = {
      "{\"fwdbwd_max_chunk_len\":1,\"parallel_fwdbwd_chunks\":false}",
      "{\"fwdbwd_max_chunk_len\":1}"};

  for (size_t i = 0; i < 2; i++) {
    script_t script;
    plan_t plan = {.gradient = 0.25, .loss = 9.0};
    outcome_t outcome;
    outcome_t step;
    script_open(&script);
    script_flags(&script, flags[i]);
    script_train(&script);
    outcome_of(&outcome, custom(&script, &plan, 3));
    outcome_of(&step, script_step(&script));
    outcome_ok(&script, &outcome);
    outcome_ok(&script, &step);
    CHECK_INT(plan.n_calls, 1);
    CHECK_INT(script.n_sent, 7);
    for (size_t k = 0; k < 6; k++)
      CHECK_INT(script.sent[k].forward_only, k < 3);
    for (size_t k = 3; k < 6; k++)
      check_weights(&script, k, -0.25f);
    script_check_sent(&script, 6, "optim_step", 7);
    CHECK_NEAR(
        tnk_metrics_get(tnk_pass_metrics(tnk_promise_pass(outcome.promise)),
                        "loss:sum"),
        9.0, 0);
    outcome_drop(&outcome);
    outcome_drop(&step);
    script_close(&script);
  }
}

/* One custom loss that fails, and a step behind it with that number. */
static void check_failure(plan_t *plan, int code, long long next) {
  script_t script;
  outcome_t outcome;
  outcome_t step;

  script_open_train(&script);
  outcome_of(&outcome, custom(&script, plan, 2));
  outcome_of(&step, script_step(&script));
  outcome_fails(&script, &outcome, code);
  CHECK_INT(tnk_promise_error(outcome.promise)->cause, plan->answer);
  outcome_ok(&script, &step);
  script_check_sent(&script, script.n_sent - 1, "optim_step", next);
  CHECK_INT(mock_count(script.mock, "POST", fb_path), 1);
  outcome_drop(&outcome);
  outcome_drop(&step);
  script_close(&script);
}

TEST(a_custom_loss_that_gives_up_sends_nothing_more) {
  check_failure(&(plan_t){.answer = 77}, TNK_EUSER, 2);
}

TEST(a_custom_loss_must_be_finite) {
  check_failure(&(plan_t){.gradient = 1e39}, TNK_EUSER, 2);
}

TEST(a_failure_of_either_pass_is_reported) {
  for (int i = 0; i < 2; i++) {
    script_t script;
    plan_t plan = {.loss = 1};
    outcome_t outcome;
    outcome_t step;
    script_open_train(&script);
    if (i == 1)
      mock_once(script.mock, "POST", fb_path, script_accept, &script);
    mock_json_once(script.mock, "POST", fb_path, 400, "{\"detail\":\"no\"}");
    outcome_of(&outcome, custom(&script, &plan, 2));
    outcome_of(&step, script_step(&script));
    outcome_fails(&script, &outcome, TNK_EREQUEST);
    CHECK_INT(plan.n_calls, i);
    outcome_ok(&script, &step);
    script_check_sent(&script, (size_t)i, "optim_step", i + 1);
    outcome_drop(&outcome);
    outcome_drop(&step);
    script_close(&script);
  }
}

TEST(logprobs_that_do_not_fit_are_no_input_of_a_loss) {
  static const char *const answers[] = {
      "{\"loss_fn_output_type\":\"A\",\"metrics\":{},\"loss_fn_outputs\":[]}",
      "{\"loss_fn_output_type\":\"A\",\"metrics\":{},\"loss_fn_outputs\":["
      "{\"logprobs\":{\"data\":[1.0],\"dtype\":\"float32\",\"shape\":[1]}}]}",
      "{\"loss_fn_output_type\":\"A\",\"metrics\":{},\"loss_fn_outputs\":["
      "{\"other\":{\"data\":[1.0,2.0],\"dtype\":\"float32\",\"shape\":[2]}}]}"};

  for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
    script_t script;
    plan_t plan = {.loss = 1};
    outcome_t outcome;
    script_open_train(&script);
    mock_json_once(script.mock, "POST", "/api/v1/retrieve_future", 200,
                   answers[i]);
    script_fails(&script, &outcome, custom(&script, &plan, 1), TNK_EPROTO);
    CHECK_INT(plan.n_calls, 0);
    outcome_drop(&outcome);
    script_close(&script);
  }
}

TEST(S4_12_a_custom_loss_may_begin_operations) {
  script_t script;
  plan_t plan = {.begin = 1};
  outcome_t outcome;

  script_open_train(&script);
  script_ok(&script, &outcome, custom(&script, &plan, 1));
  outcome_ok(&script, &plan.inside);
  /* It comes after the backward pass of the operation it was begun in. */
  script_check_sent(&script, 2, "optim_step", 3);
  outcome_drop(&outcome);
  outcome_drop(&plan.inside);
  script_close(&script);
}

TEST(S4_12_a_custom_loss_may_cancel_itself) {
  script_t script;
  plan_t plan = {.loss = 1};
  outcome_t outcome;
  outcome_t step;

  script_open_train(&script);
  plan.cancel = custom(&script, &plan, 1);
  outcome_of(&outcome, tnk_promise_ref(plan.cancel));
  outcome_of(&step, script_step(&script));
  outcome_fails(&script, &outcome, TNK_ECANCELED);
  outcome_ok(&script, &step);
  script_check_sent(&script, 1, "optim_step", 2);
  tnk_promise_unref(plan.cancel);
  outcome_drop(&outcome);
  outcome_drop(&step);
  script_close(&script);
}

TEST(S4_12_a_custom_loss_may_close_its_client) {
  script_t script;
  plan_t plan = {.close_client = 1};
  outcome_t outcome;

  script_open_train(&script);
  script_fails(&script, &outcome, custom(&script, &plan, 1), TNK_ECLOSED);
  script_turns(&script);
  CHECK_INT(mock_count(script.mock, "POST", fb_path), 1);
  CHECK(tnk__list_empty(&script.service->session.registry.trainings));
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(S4_12_a_custom_loss_may_close_its_service) {
  script_t script;
  plan_t plan = {.close_service = 1};
  outcome_t outcome;

  script_open_train(&script);
  outcome_of(&outcome, custom(&script, &plan, 1));
  outcome_wait(&script, &outcome);
  CHECK_INT(outcome.status, TNK_ECLOSED);
  script_end(&script);
  outcome_drop(&outcome);
}

/* ---- Data that was lent ---- */

static void on_release(void *user) {
  ++*(int *)user;
}

static tnk_promise_t *lend(script_t *script, size_t n, int *n_released) {
  tnk_pass_options_t options = TNK_PASS_OPTIONS_INIT;
  tnk_promise_t *promise;
  int before = *n_released;

  options.release = on_release;
  options.release_user = n_released;
  promise = tnk_training_forward_backward(script->training, script_data(n), n,
                                          &options);
  CHECK_INT(*n_released, before); /* never inside the call */
  return promise;
}

TEST(lent_data_comes_back_when_it_has_been_submitted) {
  script_t script;
  script_held_t polls = {.n = 0};
  outcome_t outcome;
  int n_released = 0;

  script_open(&script);
  script_flags(&script, "{\"fwdbwd_max_chunk_len\":1}");
  script_train(&script);
  mock_on(script.mock, "POST", "/api/v1/retrieve_future", script_hold, &polls);
  outcome_of(&outcome, lend(&script, 2, &n_released));
  mock_wait_flag(script.mock, &polls.n, 2);
  script_turns(&script);
  CHECK_INT(n_released, 1);
  CHECK_INT(outcome.n_done, 0);
  script_result(polls.requests[0], &script);
  script_result(polls.requests[1], &script);
  outcome_ok(&script, &outcome);
  CHECK_INT(n_released, 1);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(lent_data_comes_back_once_whatever_happens) {
  script_t script;
  outcome_t outcomes[4];
  tnk_promise_t *promise;
  int n_released[4] = {0};

  script_open_train(&script);
  /* Refused by the check of arguments. */
  script_fails(&script, &outcomes[0], lend(&script, 0, &n_released[0]),
               TNK_EINVAL);
  /* Refused by the server, which reads protobuf. */
  script_ok(&script, &outcomes[1], script_pass(&script, 1));
  outcome_drop(&outcomes[1]);
  mock_json_once(script.mock, "POST", fb_path, 422, "{}");
  script_fails(&script, &outcomes[1], lend(&script, 1, &n_released[1]),
               TNK_EREQUEST);
  /* Canceled in the queue. */
  promise = lend(&script, 1, &n_released[2]);
  outcome_of(&outcomes[2], tnk_promise_ref(promise));
  tnk_promise_cancel(promise);
  tnk_promise_unref(promise);
  outcome_fails(&script, &outcomes[2], TNK_ECANCELED);
  /* Closed while it is being submitted. */
  mock_on(script.mock, "POST", fb_path, mock_hold, NULL);
  outcome_of(&outcomes[3], lend(&script, 1, &n_released[3]));
  script_turns(&script);
  tnk_training_close(script.training, NULL, NULL);
  outcome_fails(&script, &outcomes[3], TNK_ECLOSED);
  script_turns(&script);
  for (int i = 0; i < 4; i++)
    CHECK_INT(n_released[i], 1);
  outcome_drop_all(outcomes, 4);
  script_close(&script);
}

TEST(S3_26a_lent_data_comes_back_without_memory) {
  for (long n = 0;; n++) {
    script_t script;
    outcome_t outcome;
    int n_released = 0;
    int did_fail;
    tnk_pass_options_t options = TNK_PASS_OPTIONS_INIT;
    script_open_train(&script);
    options.release = on_release;
    options.release_user = &n_released;
    test_alloc_fail_at(n);
    outcome_of(&outcome, tnk_training_forward_backward(
                             script.training, script_data(2), 2, &options));
    script_turns(&script);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    for (int i = 0; i < 5 && outcome.n_done == 0; i++)
      script_advance(&script, 30000);
    CHECK(outcome.status == TNK_OK || outcome.status == TNK_ENOMEM);
    outcome_drop(&outcome);
    script_close(&script);
    CHECK_INT(n_released, 1);
    if (!did_fail)
      break;
  }
}

/* Also of a call that is refused, when there is none for the refusal. */
TEST(S3_26a_lent_data_of_a_refused_call_comes_back_later) {
  for (long n = 0;; n++) {
    script_t script;
    outcome_t outcome;
    int n_released = 0;
    int did_fail;

    script_open_train(&script);
    test_alloc_fail_at(n);
    outcome_of(&outcome, lend(&script, 0, &n_released));
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    outcome_wait(&script, &outcome);
    script_turns(&script);
    CHECK_INT(n_released, 1);
    CHECK(outcome.status == TNK_EINVAL || outcome.status == TNK_ENOMEM);
    outcome_drop(&outcome);
    script_close(&script);
    if (!did_fail)
      break;
  }
}

TEST(data_lent_to_a_full_service_is_given_back) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  outcome_t outcomes[2];
  int n_released = 0;
  script_t script;

  options.max_pending = 1;
  script_open_with(&script, options);
  script_train(&script);
  outcome_of(&outcomes[0], script_step(&script));
  script_fails(&script, &outcomes[1], lend(&script, 1, &n_released), TNK_EFULL);
  outcome_ok(&script, &outcomes[0]);
  CHECK_INT(n_released, 1);
  outcome_drop(&outcomes[0]);
  outcome_drop(&outcomes[1]);
  script_close(&script);
}
