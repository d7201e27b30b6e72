/* SPDX-License-Identifier: MIT */
/*
 * Bad arguments reject the promise with a sentence that names the thing, send
 * nothing, and disturb nobody.
 */
#include <math.h>

#include "task/script.h"

typedef struct {
  script_t script;
  outcome_t before; /* an operation that is under way meanwhile */
  size_t n_requests;
} bench_t;

static void bench_open(bench_t *bench) {
  script_open(&bench->script);
  script_train(&bench->script);
  script_sampler(&bench->script);
  outcome_of(&bench->before, script_pass(&bench->script, 1));
}

static void bench_close(bench_t *bench) {
  outcome_t after;

  outcome_ok(&bench->script, &bench->before);
  outcome_of(&after, script_step(&bench->script));
  outcome_ok(&bench->script, &after);
  /* The two that were meant, and no hole. */
  CHECK_INT(bench->script.n_sent, 2);
  script_check_sent(&bench->script, 0, "forward_backward", 1);
  script_check_sent(&bench->script, 1, "optim_step", 2);
  outcome_drop(&bench->before);
  outcome_drop(&after);
  script_close(&bench->script);
}

static void refused(bench_t *bench, tnk_promise_t *promise, int code,
                    const char *name, const char *word) {
  outcome_t outcome;

  (void)bench;
  CHECK(promise != NULL);
  CHECK_INT(tnk_promise_state(promise), TNK_REJECTED);
  outcome_of(&outcome, promise);
  mock_wait_flag(bench->script.mock, &outcome.n_done, 1);
  CHECK_INT(outcome.status, code);
  if (strncmp(outcome.text, name, strlen(name)) != 0 ||
      strstr(outcome.text, word) == NULL)
    test_fail(__FILE__, __LINE__, "%s should speak of %s and \"%s\"",
              outcome.text, name, word);
  CHECK_INT(tnk_promise_error(outcome.promise)->n_attempts, 0);
  outcome_drop(&outcome);
}

/* ---- Creating ---- */

static void refuse_lora(bench_t *bench, const tnk_lora_options_t *options,
                        const char *word) {
  refused(bench, tnk_service_create_lora(bench->script.service, options),
          TNK_EINVAL, "create_lora", word);
}

TEST(bad_options_of_a_new_model) {
  bench_t bench;
  tnk_lora_options_t good = TNK_LORA_OPTIONS_INIT;
  const tnk_pair_t nameless = {NULL, "v"};
  tnk_lora_options_t bad;

  good.base_model = "b";
  bench_open(&bench);
  refuse_lora(&bench, NULL, "base_model");
  bad = good;
  bad.base_model = "";
  refuse_lora(&bench, &bad, "base_model");
  bad.base_model = "\xff";
  refuse_lora(&bench, &bad, "base_model");
  bad = good;
  bad.train_mlp = bad.train_attn = bad.train_unembed = TNK_NO;
  refuse_lora(&bench, &bad, "no part of the model");
  bad = good;
  bad.rank = UINT32_MAX;
  refuse_lora(&bench, &bad, "rank");
  bad = good;
  bad.optimizer = TNK_OPTIMIZER_RAW;
  refuse_lora(&bench, &bad, "optimizer");
  bad.optimizer_json = "[1]";
  refuse_lora(&bench, &bad, "optimizer");
  bad = good;
  bad.optimizer = (tnk_optimizer_t)9;
  refuse_lora(&bench, &bad, "optimizer");
  bad = good;
  bad.n_user_metadata = 1;
  refuse_lora(&bench, &bad, "user_metadata");
  bad.user_metadata = &nameless;
  refuse_lora(&bench, &bad, "user_metadata");
  bad = good;
  bad.size = 3;
  refuse_lora(&bench, &bad, "size");
  bench_close(&bench);
}

TEST(options_of_a_newer_library) {
  struct {
    tnk_sampling_options_t options;
    uint64_t newer;
  } big = {.options = {.size = sizeof(big), .base_model = "b"}, .newer = 1};
  bench_t bench;

  bench_open(&bench);
  refused(&bench,
          tnk_service_create_sampling(bench.script.service, &big.options),
          TNK_ENOTSUP, "create_sampling", "does not know");
  bench_close(&bench);
}

TEST(bad_options_of_a_restored_model) {
  bench_t bench;
  tnk_restore_options_t bad = TNK_RESTORE_OPTIONS_INIT;
  tnk_service_t *service;

  bench_open(&bench);
  service = bench.script.service;
  refused(&bench, tnk_service_restore(service, NULL), TNK_EINVAL, "restore",
          "path");
  bad.path = "/tmp/x";
  refused(&bench, tnk_service_restore(service, &bad), TNK_EINVAL, "restore",
          "tinker://");
  bad.path = "tinker://r/weights/a";
  bad.with_optimizer = TNK_YES;
  bad.optimizer = TNK_OPTIMIZER_DIMUON;
  refused(&bench, tnk_service_restore(service, &bad), TNK_EINVAL, "restore",
          "optimizer");
  bench_close(&bench);
}

TEST(bad_options_of_a_sampling_client) {
  bench_t bench;
  tnk_sampling_options_t bad = TNK_SAMPLING_OPTIONS_INIT;
  tnk_service_t *service;

  bench_open(&bench);
  service = bench.script.service;
  refused(&bench, tnk_service_create_sampling(service, NULL), TNK_EINVAL,
          "create_sampling", "base_model");
  bad.model_path = "weights";
  refused(&bench, tnk_service_create_sampling(service, &bad), TNK_EINVAL,
          "create_sampling", "tinker://");
  bench_close(&bench);
}

/* ---- Training ---- */

TEST(bad_data_of_a_pass) {
  bench_t bench;
  tnk_training_t *training;
  const tnk_datum_t *good = script_data(4);
  const int64_t targets[] = {1, 2, 3};
  const float weights[] = {1, NAN};
  tnk_loss_input_t inputs[2];
  tnk_datum_t data[4];

  bench_open(&bench);
  training = bench.script.training;
  good = script_data(4);
  refused(&bench, tnk_training_forward_backward(training, good, 0, NULL),
          TNK_EINVAL, "forward_backward", "no datum");
  refused(&bench, tnk_training_forward(training, NULL, 2, NULL), TNK_EINVAL,
          "forward", "no datum");
  memcpy(data, good, sizeof(data));
  data[3].targets = NULL;
  refused(&bench, tnk_training_forward_backward(training, data, 4, NULL),
          TNK_EINVAL, "forward_backward", "datum 3");
  inputs[0] = (tnk_loss_input_t){"target_tokens", tnk_tensor_i64(targets, 3)};
  data[3].loss_inputs = inputs;
  data[3].n_loss_inputs = 1;
  refused(&bench, tnk_training_forward_backward(training, data, 4, NULL),
          TNK_EINVAL, "forward_backward",
          "datum 3: \"target_tokens\" has 3 values, expected 2");
  inputs[0] = (tnk_loss_input_t){"target_tokens", tnk_tensor_i64(targets, 2)};
  inputs[1] = (tnk_loss_input_t){"weights", tnk_tensor_f32(weights, 2)};
  data[3].n_loss_inputs = 2;
  refused(&bench, tnk_training_forward_backward(training, data, 4, NULL),
          TNK_EINVAL, "forward_backward", "datum 3: \"weights\" value 1");
  refused(
      &bench,
      tnk_training_forward_backward_custom(training, good, 4, NULL, NULL, NULL),
      TNK_EINVAL, "forward_backward_custom", "no loss function");
  bench_close(&bench);
}

/* What is given and would be ignored is a mistake. */
TEST(options_that_have_no_part_in_a_call_are_refused) {
  static const tnk_loss_setting_t setting = {"beta", 1, NULL};
  bench_t bench;
  tnk_pass_options_t named = TNK_PASS_OPTIONS_INIT;
  tnk_pass_options_t set = TNK_PASS_OPTIONS_INIT;
  tnk_sampling_options_t based = TNK_SAMPLING_OPTIONS_INIT;
  const tnk_pass_options_t *passes[] = {&named, &set};

  bench_open(&bench);
  named.loss_fn = "ppo";
  set.settings = &setting;
  set.n_settings = 1;
  based.base_model = "base";
  for (size_t i = 0; i < 2; i++)
    refused(&bench,
            tnk_training_forward_backward_custom(bench.script.training,
                                                 script_data(1), 1, NULL, NULL,
                                                 passes[i]),
            TNK_EINVAL, "forward_backward_custom", "the service's losses");
  refused(&bench,
          tnk_training_save_weights_and_get_sampling(
              bench.script.training, TNK_SAMPLING_SNAPSHOT, &based),
          TNK_EINVAL, "save_weights_and_get_sampling", "from this model");
  bench_close(&bench);
}

TEST(bad_options_of_a_pass) {
  bench_t bench;
  tnk_training_t *training;
  tnk_pass_options_t bad = TNK_PASS_OPTIONS_INIT;
  tnk_loss_setting_t setting = {"beta", INFINITY, NULL};

  bench_open(&bench);
  training = bench.script.training;
  bad.loss_fn = "";
  refused(&bench,
          tnk_training_forward_backward(training, script_data(1), 1, &bad),
          TNK_EINVAL, "forward_backward", "loss_fn");
  bad.loss_fn = NULL;
  bad.n_settings = 1;
  refused(&bench,
          tnk_training_forward_backward(training, script_data(1), 1, &bad),
          TNK_EINVAL, "forward_backward", "setting");
  bad.settings = &setting;
  refused(&bench,
          tnk_training_forward_backward(training, script_data(1), 1, &bad),
          TNK_EINVAL, "forward_backward", "beta");
  bad.size = 1;
  refused(&bench,
          tnk_training_forward_backward(training, script_data(1), 1, &bad),
          TNK_EINVAL, "forward_backward", "size");
  bench_close(&bench);
}

TEST(bad_parameters_of_optimizers) {
  static const struct {
    size_t offset;
    double value;
    const char *name;
  } cases[] = {
      {offsetof(tnk_optim_t, learning_rate), -1, "learning_rate"},
      {offsetof(tnk_optim_t, beta1), 1, "beta1"},
      {offsetof(tnk_optim_t, beta2), NAN, "beta2"},
      {offsetof(tnk_optim_t, eps), 0, "eps"},
      {offsetof(tnk_optim_t, weight_decay), -0.5, "weight_decay"},
      {offsetof(tnk_optim_t, grad_clip_norm), INFINITY, "grad_clip_norm"}};
  bench_t bench;
  tnk_training_t *training;
  const tnk_optim_t absent = TNK_OPTIM_INIT;
  tnk_optim_t step = absent;

  bench_open(&bench);
  training = bench.script.training;
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    step = absent;
    memcpy((char *)&step + cases[i].offset, &cases[i].value, sizeof(double));
    refused(&bench, tnk_training_optim_step(training, &step), TNK_EINVAL,
            "optim_step", cases[i].name);
  }
  step = absent;
  step.optimizer = TNK_OPTIMIZER_DIMUON;
  refused(&bench, tnk_training_optim_step(training, &step), TNK_EINVAL,
          "optim_step", "learning_rate is missing");
  step.learning_rate = 0.1;
  step.beta2 = 0.5;
  refused(&bench, tnk_training_optim_step(training, &step), TNK_EINVAL,
          "optim_step", "beta2 is not for this optimizer");
  step = absent;
  step.json = "{\"type\":\"x\"}";
  refused(&bench, tnk_training_optim_step(training, &step), TNK_EINVAL,
          "optim_step", "json is given");
  step.optimizer = TNK_OPTIMIZER_RAW;
  step.learning_rate = 0.1;
  refused(&bench, tnk_training_optim_step(training, &step), TNK_EINVAL,
          "optim_step", "learning_rate is not for this optimizer");
  step.json = NULL;
  refused(&bench, tnk_training_optim_step(training, &step), TNK_EINVAL,
          "optim_step", "JSON");
  step.json = "{\"type\":1}";
  refused(&bench, tnk_training_optim_step(training, &step), TNK_EINVAL,
          "optim_step", "type");
  step.json = "{";
  refused(&bench, tnk_training_optim_step(training, &step), TNK_EINVAL,
          "optim_step", "JSON");
  step = absent;
  step.optimizer = (tnk_optimizer_t)9;
  refused(&bench, tnk_training_optim_step(training, &step), TNK_EINVAL,
          "optim_step", "an unknown kind");
  bench_close(&bench);
}

static int no_loss(tnk_custom_loss_t *io, void *user) {
  (void)io;
  (void)user;
  return 0;
}

TEST(what_would_be_ignored_is_refused) {
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  tnk_save_options_t save = TNK_SAVE_OPTIONS_INIT;
  tnk_pass_options_t pass = TNK_PASS_OPTIONS_INIT;
  const char *const keys[] = {"age1x"};
  const tnk_pair_t pair = {"k", "v"};
  bench_t bench;
  tnk_training_t *training;

  bench_open(&bench);
  training = bench.script.training;
  lora.base_model = "b";
  lora.optimizer_json = "{\"type\":\"x\"}";
  refuse_lora(&bench, &lora, "optimizer is not TNK_OPTIMIZER_RAW");
  save.overwrite = TNK_YES;
  refused(&bench, tnk_training_save_weights_for_sampler(training, "a", &save),
          TNK_EINVAL, "save_weights_for_sampler", "overwrite");
  save = (tnk_save_options_t)TNK_SAVE_OPTIONS_INIT;
  save.recipients = keys;
  save.n_recipients = 1;
  refused(&bench, tnk_training_save_state(training, "a", &save), TNK_EINVAL,
          "save_state", "recipients");
  save = (tnk_save_options_t)TNK_SAVE_OPTIONS_INIT;
  save.user_metadata = &pair;
  save.n_user_metadata = 1;
  refused(&bench, tnk_training_save_weights_external(training, "a", &save),
          TNK_EINVAL, "save_weights_external", "user_metadata");
  pass.loss_fn = "ppo";
  refused(&bench,
          tnk_training_forward_backward_custom(training, script_data(1), 1,
                                               no_loss, NULL, &pass),
          TNK_EINVAL, "forward_backward_custom", "loss_fn and settings");
  bench_close(&bench);
}

TEST(a_secret_key_is_no_recipient_and_is_not_told) {
  const char *const keys[] = {"age1x", "AGE-SECRET-KEY-1CANARY"};
  tnk_save_options_t save = TNK_SAVE_OPTIONS_INIT;
  tnk_promise_t *promise;
  bench_t bench;

  bench_open(&bench);
  save.recipients = keys;
  save.n_recipients = 2;
  promise =
      tnk_training_save_weights_external(bench.script.training, "a", &save);
  CHECK(strstr(tnk_promise_text(promise), "CANARY") == NULL);
  refused(&bench, promise, TNK_EINVAL, "save_weights_external",
          "a recipient is a secret key");
  bench_close(&bench);
}

TEST(a_code_that_no_header_lists_is_noticed) {
  CHECK_INT(test_code_is_listed("sample: lost", TNK_EEXPIRED), 1);
  CHECK_INT(test_code_is_listed("sample: x", TNK_EUSER), 0);
  CHECK_INT(test_code_is_listed("healthz: x", TNK_EFAILED), 0);
  CHECK_INT(test_code_is_listed("canceled", TNK_EUSER), 1);
}

TEST(bad_names_and_paths) {
  bench_t bench;
  tnk_training_t *training;
  tnk_save_options_t bad = TNK_SAVE_OPTIONS_INIT;

  bench_open(&bench);
  training = bench.script.training;
  refused(&bench, tnk_training_save_state(training, NULL, NULL), TNK_EINVAL,
          "save_state", "name");
  refused(&bench, tnk_training_save_weights_for_sampler(training, "", NULL),
          TNK_EINVAL, "save_weights_for_sampler", "name");
  bad.n_recipients = 1;
  refused(&bench, tnk_training_save_weights_external(training, "a", &bad),
          TNK_EINVAL, "save_weights_external", "recipients");
  bad = (tnk_save_options_t)TNK_SAVE_OPTIONS_INIT;
  bad.ttl_seconds = UINT64_MAX;
  refused(&bench, tnk_training_save_state(training, "a", &bad), TNK_EINVAL,
          "save_state", "ttl_seconds");
  refused(&bench, tnk_training_load_state(training, NULL), TNK_EINVAL,
          "load_state", "path");
  refused(&bench,
          tnk_training_save_weights_and_get_sampling(
              training, (tnk_sampling_kind_t)7, NULL),
          TNK_EINVAL, "save_weights_and_get_sampling", "kind");
  bench_close(&bench);
}

/* ---- Sampling ---- */

static void refuse_sample(bench_t *bench, const tnk_sampling_params_t *params,
                          const tnk_sample_options_t *options,
                          const char *word) {
  refused(bench,
          tnk_sampling_sample(bench->script.sampling, script_prompt(), params,
                              options),
          TNK_EINVAL, "sample", word);
}

TEST(bad_samples) {
  bench_t bench;
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  tnk_sample_options_t options = TNK_SAMPLE_OPTIONS_INIT;
  const tnk_model_input_t empty = {.chunks = NULL, .n_chunks = 2};

  bench_open(&bench);
  refused(&bench, tnk_sampling_sample(bench.script.sampling, NULL, NULL, NULL),
          TNK_EINVAL, "sample", "prompt");
  refused(&bench,
          tnk_sampling_compute_logprobs(bench.script.sampling, &empty, NULL),
          TNK_EINVAL, "compute_logprobs", "chunks");
  params.max_tokens = 0;
  refuse_sample(&bench, &params, NULL, "TNK_SAMPLING_PARAMS_INIT");
  params.max_tokens = TNK_ABSENT;
  params.temperature = NAN;
  refuse_sample(&bench, &params, NULL, "temperature");
  params.temperature = TNK_ABSENT;
  params.top_p = 1.5;
  refuse_sample(&bench, &params, NULL, "top_p");
  params.top_p = TNK_ABSENT;
  params.n_stop_texts = 1;
  refuse_sample(&bench, &params, NULL, "stop_texts");
  options.prompt_logprobs_last_n = 3;
  refuse_sample(&bench, NULL, &options, "prompt_logprobs_last_n");
  options.size = 0;
  refuse_sample(&bench, NULL, &options, "size");
  bench_close(&bench);
}

/* ---- No handle, too much, too late ---- */

TEST(S0_1b_without_a_handle_there_is_no_promise) {
  tnk_stats_t stats = TNK_STATS_INIT;
  tnk_training_info_t info = TNK_TRAINING_INFO_INIT;

  CHECK(tnk_service_health(NULL) == NULL);
  CHECK(tnk_service_capabilities(NULL) == NULL);
  CHECK(tnk_service_create_lora(NULL, NULL) == NULL);
  CHECK(tnk_service_restore(NULL, NULL) == NULL);
  CHECK(tnk_service_create_sampling(NULL, NULL) == NULL);
  CHECK(tnk_service_session_id(NULL) == NULL);
  tnk_service_stats(&stats, NULL);
  CHECK_INT(stats.n_requests, 0);
  CHECK(tnk_training_forward(NULL, NULL, 0, NULL) == NULL);
  CHECK(tnk_training_forward_backward(NULL, NULL, 0, NULL) == NULL);
  CHECK(tnk_training_forward_backward_custom(NULL, NULL, 0, NULL, NULL, NULL) ==
        NULL);
  CHECK(tnk_training_optim_step(NULL, NULL) == NULL);
  CHECK(tnk_training_save_state(NULL, NULL, NULL) == NULL);
  CHECK(tnk_training_save_weights_for_sampler(NULL, NULL, NULL) == NULL);
  CHECK(tnk_training_save_weights_external(NULL, NULL, NULL) == NULL);
  CHECK(tnk_training_save_weights_and_get_sampling(NULL, TNK_SAMPLING_SNAPSHOT,
                                                   NULL) == NULL);
  CHECK(tnk_training_load_state(NULL, NULL) == NULL);
  CHECK(tnk_training_unload(NULL) == NULL);
  tnk_training_info(&info, NULL);
  CHECK(info.model_id == NULL);
  CHECK(tnk_sampling_sample(NULL, NULL, NULL, NULL) == NULL);
  CHECK(tnk_sampling_compute_logprobs(NULL, NULL, NULL) == NULL);
  CHECK(tnk_sampling_id(NULL) == NULL);
  CHECK(tnk_sampling_base_model(NULL) == NULL);
  tnk_training_close(NULL, NULL, NULL);
  tnk_sampling_close(NULL, NULL, NULL);
  tnk_service_close(NULL, NULL, NULL);
}

TEST(a_service_that_nobody_gets_is_not_opened) {
  char why[40];

  CHECK_INT(tnk_service_open(NULL, NULL, NULL, why, sizeof(why)), TNK_EINVAL);
  CHECK_STR(why, "out is NULL");
}

/* The loop is as it was, and need not turn before it is closed. */
TEST(what_could_not_be_opened_leaves_nothing_on_the_loop) {
  for (int i = 0; i < 3; i++) {
    tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
    tnk_hub_options_t of_hub = TNK_HUB_OPTIONS_INIT;
    tnk_service_t *service;
    tnk_hub_t *hub;
    uv_loop_t loop;

    CHECK_INT(uv_loop_init(&loop), 0);
    options.api_key = "tml-x";
    options.base_url = "https://nowhere.invalid";
    options.allocator = of_hub.allocator = test_allocator();
    of_hub.cache_dir = "/nowhere";
    if (i == 0)
      options.ca_file = "/nowhere.pem";
    else
      options.cert_file = "/nowhere.pem";
    of_hub.ca_file = "/nowhere.pem";
    if (i == 2)
      CHECK_INT(tnk_hub_open(&hub, &loop, &of_hub, NULL, 0), TNK_ECERT);
    else
      CHECK_INT(tnk_service_open(&service, &loop, &options, NULL, 0),
                i == 0 ? TNK_ECERT : TNK_EFILE);
    CHECK_INT(uv_loop_close(&loop), 0);
  }
}

TEST(S0_1b_no_promise_is_one_that_was_rejected) {
  tnk_then(NULL, outcome_done, NULL);
  tnk_promise_cancel(NULL);
  tnk_promise_unref(NULL);
  CHECK(tnk_promise_ref(NULL) == NULL);
  CHECK_INT(tnk_wait(NULL), TNK_EINVAL);
  CHECK_INT(tnk_promise_state(NULL), TNK_REJECTED);
  CHECK_INT(tnk_promise_status(NULL), TNK_EINVAL);
  CHECK_INT(tnk_promise_error(NULL)->code, TNK_EINVAL);
  CHECK(strlen(tnk_promise_text(NULL)) > 0);
}

TEST(more_operations_than_allowed_are_refused) {
  script_t script;
  outcome_t outcomes[4];
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  options.max_pending = 3;
  script_open_with(&script, options);
  script_train(&script);
  for (int i = 0; i < 4; i++)
    outcome_of(&outcomes[i], script_step(&script));
  outcome_fails(&script, &outcomes[3], TNK_EFULL);
  CHECK(strstr(outcomes[3].text, "optim_step") != NULL);
  for (int i = 0; i < 3; i++)
    outcome_ok(&script, &outcomes[i]);
  outcome_drop(&outcomes[3]);
  script_ok(&script, &outcomes[3], script_step(&script));
  outcome_drop_all(outcomes, 4);
  script_close(&script);
}

static void call_elsewhere(void *arg) {
  script_t *script = arg;

  /* Nothing but the refusal may be done with it there. */
  CHECK_INT(tnk__context_check_caller(&script->service->root.context),
            TNK_ETHREAD);
}

TEST(calls_from_another_thread_are_noticed) {
  script_t script;
  uv_thread_t thread;

  script_open(&script);
  CHECK_INT(uv_thread_create(&thread, call_elsewhere, &script), 0);
  CHECK_INT(uv_thread_join(&thread), 0);
  script_close(&script);
}
