/* SPDX-License-Identifier: MIT */
#include "task/script.h"

static void check_sent(const script_t *script, size_t i, const char *call,
                       long long seq) {
  CHECK(i < script->n_sent);
  CHECK_STR(script->sent[i].call, call);
  CHECK_INT(script->sent[i].seq, seq);
}

TEST(a_model_is_created_and_known) {
  script_t script;
  tnk_training_info_t info = TNK_TRAINING_INFO_INIT;

  script_open_train(&script);
  tnk_training_info(&info, script.training);
  CHECK_STR(info.model_id, "model-0");
  CHECK_STR(info.base_model, "base");
  CHECK_STR(info.tokenizer_id, "t");
  CHECK_INT(info.lora_rank, 8);
  CHECK_STR(tnk_service_session_id(script.service), "session-0");
  script_close(&script);
}

TEST(S1_4_a_pass_has_outputs_metrics_and_a_loss) {
  script_t script;
  outcome_t outcome;
  const tnk_pass_t *pass;
  const tnk_tensor_t *logprobs;

  script_open_train(&script);
  script_ok(&script, &outcome, script_pass(&script, 3));
  pass = tnk_promise_pass(outcome.promise);
  CHECK_INT(tnk_pass_count(pass), 3);
  CHECK_NEAR(tnk_pass_loss(pass), 3.0, 0);
  logprobs = tnk_pass_tensor(pass, 2, "logprobs");
  CHECK(logprobs != NULL && logprobs->n_values == 2);
  check_sent(&script, 0, "forward_backward", 1);
  CHECK_INT(script.sent[0].n_data, 3);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(S3_7_an_optimizer_step_has_metrics) {
  script_t script;
  outcome_t outcome;

  script_open_train(&script);
  script_ok(&script, &outcome, tnk_training_optim_step(script.training, NULL));
  CHECK_NEAR(tnk_metrics_get(tnk_promise_metrics(outcome.promise), "grad_norm"),
             0.5, 0);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(S4_14_numbers_follow_the_order_of_calls) {
  script_t script;
  outcome_t outcomes[4];

  script_open_train(&script);
  outcome_of(&outcomes[0], script_pass(&script, 1));
  outcome_of(&outcomes[1], tnk_training_optim_step(script.training, NULL));
  outcome_of(&outcomes[2],
             tnk_training_forward(script.training, script_data(2), 2, NULL));
  outcome_of(&outcomes[3], tnk_training_save_state(script.training, "a", NULL));
  for (int i = 0; i < 4; i++)
    outcome_ok(&script, &outcomes[i]);
  CHECK_INT(script.n_sent, 4);
  check_sent(&script, 0, "forward_backward", 1);
  check_sent(&script, 1, "optim_step", 2);
  check_sent(&script, 2, "forward_backward", 3);
  CHECK_INT(script.sent[2].forward_only, 1);
  check_sent(&script, 3, "save_weights", 4);
  CHECK_STR(tnk_promise_path(outcomes[3].promise), "tinker://run/save_weights");
  for (int i = 0; i < 4; i++)
    outcome_drop(&outcomes[i]);
  script_close(&script);
}

TEST(S0_3_a_refused_operation_rejects_only_itself) {
  script_t script;
  outcome_t outcomes[3];

  script_open_train(&script);
  script_ok(&script, &outcomes[0], script_pass(&script, 1));
  mock_json_once(script.mock, "POST", "/api/v1/forward_backward", 422,
                 "{\"detail\":\"no such loss\"}");
  outcome_of(&outcomes[1], script_pass(&script, 2));
  outcome_of(&outcomes[2], tnk_training_optim_step(script.training, NULL));
  outcome_wait(&script, &outcomes[1]);
  CHECK_INT(outcomes[1].status, TNK_EREQUEST);
  CHECK(strstr(outcomes[1].text, "no such loss") != NULL);
  outcome_ok(&script, &outcomes[2]);
  /* The number that was refused is used by the next one: no hole. */
  check_sent(&script, 1, "optim_step", 2);
  for (int i = 0; i < 3; i++)
    outcome_drop(&outcomes[i]);
  script_close(&script);
}

static int halve(tnk_custom_loss_t *io, void *user) {
  int *n_calls = user;

  ++*n_calls;
  CHECK_INT(io->n_data, 2);
  for (size_t i = 0; i < io->n_data; i++) {
    CHECK_INT(io->logprobs[i].n_values, 2);
    io->gradients[i][0] = 0.5f;
    io->gradients[i][1] = -0.5f;
  }
  io->loss = 42.0;
  return 0;
}

TEST(a_custom_loss_holds_one_place) {
  script_t script;
  outcome_t custom;
  outcome_t step;
  int n_calls = 0;

  script_open_train(&script);
  outcome_of(&custom,
             tnk_training_forward_backward_custom(
                 script.training, script_data(2), 2, halve, &n_calls, NULL));
  outcome_of(&step, tnk_training_optim_step(script.training, NULL));
  outcome_ok(&script, &custom);
  outcome_ok(&script, &step);
  CHECK_INT(n_calls, 1);
  check_sent(&script, 0, "forward_backward", 1);
  CHECK_INT(script.sent[0].forward_only, 1);
  check_sent(&script, 1, "forward_backward", 2);
  CHECK_INT(script.sent[1].forward_only, 0);
  check_sent(&script, 2, "optim_step", 3);
  CHECK_NEAR(tnk_metrics_get(tnk_pass_metrics(tnk_promise_pass(custom.promise)),
                             "loss:sum"),
             42.0, 0);
  outcome_drop(&custom);
  outcome_drop(&step);
  script_close(&script);
}

TEST(an_ephemeral_save_gives_a_sampling_client) {
  script_t script;
  outcome_t outcome;

  script_open_train(&script);
  script_ok(&script, &outcome,
            tnk_training_save_weights_and_get_sampling(
                script.training, TNK_SAMPLING_SNAPSHOT, NULL));
  CHECK_STR(tnk_sampling_id(tnk_promise_sampling(outcome.promise)), "e-1");
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(a_sample_and_its_logprobs) {
  script_t script;
  outcome_t outcome;
  const int32_t *tokens;
  const float *logprobs;
  size_t n;

  script_open(&script);
  script_sampler(&script);
  script_ok(&script, &outcome, script_sample(&script));
  tokens = tnk_samples_tokens(tnk_promise_samples(outcome.promise), 0, &n);
  CHECK_INT(n, 2);
  CHECK_INT(tokens[1], 8);
  outcome_drop(&outcome);
  script_ok(
      &script, &outcome,
      tnk_sampling_compute_logprobs(script.sampling, script_prompt(), NULL));
  logprobs = tnk_promise_logprobs(outcome.promise, &n);
  CHECK_INT(n, 2);
  CHECK_NEAR(logprobs[1], -1.5, 0);
  check_sent(&script, 0, "asample", 0);
  check_sent(&script, 1, "asample", 1);
  outcome_drop(&outcome);
  script_close(&script);
}

/* "The result is ready" is said once; then the result comes, or it is wrong. */
TEST(F7_a_result_that_is_announced_twice_is_an_error) {
  static const char ready[] =
      "{\"status\":\"complete_metadata\",\"response_payload_size\":900}";

  for (int n = 1; n <= 2; n++) {
    script_t script;
    outcome_t outcome;

    script_open_train(&script);
    for (int i = 0; i < n; i++)
      mock_json_once(script.mock, "POST", "/api/v1/retrieve_future", 200,
                     ready);
    outcome_of(&outcome, script_step(&script));
    outcome_wait(&script, &outcome);
    CHECK_INT(outcome.status, n == 1 ? TNK_OK : TNK_EPROTO);
    outcome_drop(&outcome);
    script_close(&script);
  }
}

/* It lacks in the next result, too. */
TEST(S1_4b_what_results_lack_is_a_warning_once_a_client) {
  script_t script;
  outcome_t outcome;

  script_open_train(&script);
  mock_json(script.mock, "POST", "/api/v1/retrieve_future", 200,
            "{\"loss_fn_output_type\":\"ArrayRecord\",\"metrics\":{},"
            "\"loss_fn_outputs\":[]}");
  script.log_text = "the server sent no metric \"loss:sum\"";
  for (int i = 0; i < 3; i++) {
    script_ok(&script, &outcome, script_pass(&script, 1));
    outcome_drop(&outcome);
  }
  CHECK_INT(script.n_log_texts, 3);
  CHECK_INT(script.n_warnings, 1);
  script_close(&script);
}
