/* SPDX-License-Identifier: MIT */
/* Promises and their results by type. */
#include "task/kinds.h"

/* Which of the results a promise has; a letter each. */
static const char *kinds_of(const tnk_promise_t *promise) {
  static char text[16];
  size_t n = 0;
  size_t count = 99;

  if (tnk_promise_training(promise) != NULL)
    text[n++] = 't';
  if (tnk_promise_sampling(promise) != NULL)
    text[n++] = 's';
  if (tnk_promise_pass(promise) != NULL)
    text[n++] = 'p';
  if (tnk_promise_samples(promise) != NULL)
    text[n++] = 'a';
  if (tnk_promise_logprobs(promise, &count) != NULL)
    text[n++] = 'l';
  else
    CHECK_INT(count, 0);
  if (tnk_promise_metrics(promise) != NULL)
    text[n++] = 'm';
  if (tnk_promise_path(promise) != NULL)
    text[n++] = 'h';
  if (tnk_promise_capabilities(promise) != NULL)
    text[n++] = 'c';
  text[n] = '\0';
  return text;
}

static const struct {
  const char *name;
  const char *has;
} expected[] = {
    {"forward_backward", "p"},
    {"forward", "p"},
    {"optim_step", "m"},
    {"optim_step_raw", "m"},
    {"save_state", "h"},
    {"save_weights_for_sampler", "h"},
    {"save_weights_external", "h"},
    {"save_weights_and_get_sampling", "s"},
    {"load_state", "h"},
    {"forward_backward_custom", "p"},
    {"unload", ""},
    {"sample", "a"},
    {"compute_logprobs", "l"},
    {"create_lora", "t"},
    {"restore", "t"},
    {"restore (classic)", "t"},
    {"create_sampling", "s"},
    {"get_server_capabilities", "c"},
    {"healthz", ""},
};

TEST(a_result_has_one_type) {
  for (size_t i = 0; i < SCRIPT_N_KINDS; i++) {
    script_t script;
    outcome_t outcome;
    CHECK_STR(script_kinds[i].name, expected[i].name);
    script_open_for(&script, &script_kinds[i], NULL);
    script_ok(&script, &outcome, script_kinds[i].start(&script));
    CHECK_STR(kinds_of(outcome.promise), expected[i].has);
    CHECK_INT(tnk_promise_state(outcome.promise), TNK_RESOLVED);
    CHECK_STR(tnk_promise_text(outcome.promise), "success");
    CHECK(tnk_promise_error(outcome.promise) == NULL);
    CHECK(tnk_promise_child(outcome.promise, 0) == NULL);
    outcome_drop(&outcome);
    script_close(&script);
  }
}

TEST(pending_and_rejected_promises_have_no_result) {
  script_t script;
  outcome_t outcome;
  tnk_promise_t *promise;

  CHECK_STR(kinds_of(NULL), "");
  script_open_train(&script);
  mock_json(script.mock, "POST", "/api/v1/optim_step", 400, "{}");
  promise = script_step(&script);
  CHECK_INT(tnk_promise_state(promise), TNK_PENDING);
  CHECK_INT(tnk_promise_status(promise), TNK_EPENDING);
  CHECK(tnk_promise_error(promise) == NULL);
  CHECK_STR(kinds_of(promise), "");
  script_fails(&script, &outcome, promise, TNK_EREQUEST);
  CHECK_INT(tnk_promise_state(outcome.promise), TNK_REJECTED);
  CHECK_STR(kinds_of(outcome.promise), "");
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(S3_6c_results_outlive_their_service) {
  script_t script;
  outcome_t outcomes[3];
  const tnk_pass_t *pass;
  size_t n;

  script_open_train(&script);
  script_sampler(&script);
  outcome_of(&outcomes[0], script_pass(&script, 2));
  outcome_of(&outcomes[1], script_sample(&script));
  outcome_of(&outcomes[2], tnk_service_capabilities(script.service));
  for (int i = 0; i < 3; i++)
    outcome_ok(&script, &outcomes[i]);
  script_close(&script);
  pass = tnk_promise_pass(outcomes[0].promise);
  CHECK_INT(tnk_pass_count(pass), 2);
  CHECK_NEAR(tnk_pass_loss(pass), 2.0, 0);
  CHECK_INT(
      tnk_samples_tokens(tnk_promise_samples(outcomes[1].promise), 0, &n)[0],
      7);
  CHECK_INT(
      tnk_capabilities_count(tnk_promise_capabilities(outcomes[2].promise)), 1);
  outcome_drop_all(outcomes, 3);
}

TEST(S3_7_a_step_need_not_have_metrics) {
  script_t script;
  outcome_t outcome;

  script_open_train(&script);
  mock_json(script.mock, "POST", "/api/v1/retrieve_future", 200, "{}");
  script_ok(&script, &outcome, script_step(&script));
  CHECK_INT(tnk_metrics_count(tnk_promise_metrics(outcome.promise)), 0);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(S1_4_a_pass_without_a_loss_has_none) {
  script_t script;
  outcome_t outcome;
  const tnk_pass_t *pass;

  script_open_train(&script);
  mock_json(script.mock, "POST", "/api/v1/retrieve_future", 200,
            "{\"loss_fn_output_type\":\"A\",\"metrics\":{\"x:sum\":1},"
            "\"loss_fn_outputs\":[{},{}]}");
  script_ok(&script, &outcome, script_pass(&script, 2));
  pass = tnk_promise_pass(outcome.promise);
  CHECK(tnk_pass_loss(pass) != tnk_pass_loss(pass)); /* NaN */
  CHECK_INT(tnk_pass_count(pass), 2);
  CHECK(tnk_pass_tensor(pass, 0, "logprobs") == NULL);
  CHECK(tnk_pass_tensor(pass, 7, "logprobs") == NULL);
  CHECK_STR(tnk_pass_output_type(pass), "A");
  outcome_drop(&outcome);
  script_close(&script);
}

/* Servers that send logprobs and no metrics. */
static void on_bare(mock_request_t *request, void *user) {
  const char *text = strstr((const char *)request->body, "forward_backward:");
  const int n = text != NULL ? atoi(strchr(strchr(text, ':') + 1, ':') + 1) : 0;
  char out[1024];
  size_t at = 0;

  (void)user;
  at += (size_t)snprintf(out, sizeof(out),
                         "{\"metrics\":{},"
                         "\"loss_fn_outputs\":[");
  for (int i = 0; i < n; i++)
    at += (size_t)snprintf(out + at, sizeof(out) - at,
                           "%s{\"logprobs\":{\"data\":[-1.5,-2.0],\"dtype\":"
                           "\"float32\",\"shape\":[2]}}",
                           i > 0 ? "," : "");
  snprintf(out + at, sizeof(out) - at, "]}");
  mock_reply_json(request, 200, out);
}

static void on_no_loan(void *user) {
  (void)user;
}

/* A pass over n examples, two of them in a request. */
typedef struct {
  const float *weights;
  const tnk_loss_input_t *input;
  const char *loss_fn;
  int is_lent;
  double loss; /* of one example; -1: none */
} bare_t;

static double loss_of_bare(const bare_t *row, size_t n) {
  tnk_pass_options_t options = TNK_PASS_OPTIONS_INIT;
  tnk_datum_t data[3];
  script_t script;
  outcome_t outcome;
  double loss;

  memcpy(data, script_data(3), sizeof(data));
  for (size_t k = 0; k < 3; k++) {
    data[k].weights = row->weights;
    data[k].loss_inputs = row->input;
    data[k].n_loss_inputs = row->input != NULL;
  }
  options.loss_fn = row->loss_fn;
  options.release = row->is_lent ? on_no_loan : NULL;
  script_begin(&script);
  script_flags(&script, "{\"fwdbwd_max_chunk_len\":2}");
  script_open_service(&script, (tnk_service_options_t)TNK_SERVICE_OPTIONS_INIT);
  script_train(&script);
  mock_on(script.mock, "POST", "/api/v1/retrieve_future", on_bare, NULL);
  script_ok(&script, &outcome,
            tnk_training_forward_backward(script.training, data, n, &options));
  loss = tnk_pass_loss(tnk_promise_pass(outcome.promise));
  outcome_drop(&outcome);
  script_close(&script);
  return loss;
}

TEST(S1_4_a_loss_without_metrics_is_computed) {
  static const float some[] = {0.5F, 0};
  static const double halves[] = {1, 0.25};
  static const float no[] = {0, 0};
  static const float crow_values[] = {1};
  static const int64_t crow[] = {0, 1, 1};
  static const int64_t col[] = {0};
  const tnk_loss_input_t doubles = {
      "weights", {.dtype = TNK_F64, .data = halves, .n_values = 2}};
  const tnk_loss_input_t sparse = {"weights",
                                   {.dtype = TNK_F32,
                                    .n_dims = 2,
                                    .shape = {2, 1},
                                    .data = crow_values,
                                    .n_values = 1,
                                    .crow = crow,
                                    .col = col}};
  const bare_t rows[] = {
      {NULL, NULL, NULL, 0, 3.5},
      {some, NULL, NULL, 0, 0.75},
      {NULL, &doubles, "cross_entropy", 0, 2.0},
      {no, NULL, NULL, 0, 0},
      {NULL, &sparse, NULL, 0, -1},
      {some, NULL, NULL, 1, -1},
      {NULL, NULL, "importance_sampling_of_ours", 0, -1},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    for (size_t n = 1; n <= 3; n++) {
      const double loss = loss_of_bare(&rows[i], n);

      if (rows[i].loss < 0)
        CHECK(loss != loss);
      else
        CHECK_NEAR(loss, (double)n * rows[i].loss, 1e-9);
    }
}

TEST(S1_9_the_category_of_a_failure_in_any_case) {
  static const struct {
    const char *text;
    tnk_category_t category;
  } cases[] = {{"\"user\"", TNK_CATEGORY_USER},
               {"\"User\"", TNK_CATEGORY_USER},
               {"\"USER\"", TNK_CATEGORY_USER},
               {"\"server\"", TNK_CATEGORY_SERVER},
               {"\"Server\"", TNK_CATEGORY_SERVER},
               {"\"\"", TNK_CATEGORY_UNKNOWN},
               {"null", TNK_CATEGORY_UNKNOWN},
               {"5", TNK_CATEGORY_UNKNOWN},
               {"\"unknown\"", TNK_CATEGORY_UNKNOWN},
               {"\"somebody\"", TNK_CATEGORY_UNKNOWN}};
  script_t script;
  outcome_t outcome;

  script_open_train(&script);
  for (size_t i = 0; i <= sizeof(cases) / sizeof(cases[0]); i++) {
    int is_missing = i == sizeof(cases) / sizeof(cases[0]);
    char body[128];
    snprintf(
        body, sizeof(body), "{\"error\":\"no memory\"%s%s}",
        is_missing ? "" : ",\"category\":", is_missing ? "" : cases[i].text);
    mock_json_once(script.mock, "POST", "/api/v1/retrieve_future", 200, body);
    script_fails(&script, &outcome, script_step(&script), TNK_EFAILED);
    CHECK_INT(tnk_promise_error(outcome.promise)->category,
              is_missing ? TNK_CATEGORY_UNKNOWN : cases[i].category);
    CHECK_STR(tnk_promise_error(outcome.promise)->message, "no memory");
    CHECK(tnk_promise_error(outcome.promise)->request_id != NULL);
    outcome_drop(&outcome);
  }
  script_close(&script);
}

TEST(an_error_says_what_is_known) {
  script_t script;
  outcome_t outcome;
  const tnk_error_t *error;

  script_open_train(&script);
  mock_json(script.mock, "POST", "/api/v1/optim_step", 503,
            "{\"detail\":\"down for maintenance\"}");
  outcome_of(&outcome, script_step(&script));
  script_settle(&script, &outcome);
  CHECK_INT(outcome.status, TNK_ESERVER);
  error = tnk_promise_error(outcome.promise);
  CHECK_INT(error->http_status, 503);
  CHECK_INT(error->n_attempts, 11);
  CHECK_STR(error->message, "down for maintenance");
  CHECK(strncmp(error->text, "optim_step", 10) == 0);
  CHECK(strstr(error->text, "503") != NULL);
  CHECK(strstr(error->text, "down for maintenance") != NULL);
  outcome_drop(&outcome);
  script_close(&script);
}

/* ---- Waiting and grouping, over the whole client ---- */

static void stuck(tnk_promise_t *promise, int status, void *user) {
  tnk_promise_t *pending = user;

  (void)promise;
  (void)status;
  CHECK_INT(tnk_wait(pending), TNK_EREENTRANT);
}

TEST(a_script_from_top_to_bottom) {
  script_t script;
  tnk_promise_t *pass;
  tnk_promise_t *step;

  script_open_train(&script);
  pass = script_pass(&script, 2);
  step = script_step(&script);
  tnk_then(tnk_promise_ref(pass), stuck, step);
  CHECK_INT(tnk_wait(pass), TNK_OK);
  CHECK_INT(tnk_wait(step), TNK_OK);
  CHECK_INT(tnk_wait(step), TNK_OK);
  CHECK_NEAR(tnk_pass_loss(tnk_promise_pass(pass)), 2.0, 0);
  tnk_promise_unref(pass);
  tnk_promise_unref(step);
  script_close(&script);
}

TEST(a_timeout_cancels_the_operation_behind_it) {
  script_t script;
  outcome_t outcomes[2];

  script_open_train(&script);
  mock_on(script.mock, "POST", "/api/v1/retrieve_future", mock_hold, NULL);
  outcome_of(&outcomes[0], tnk_with_timeout(script_step(&script), 5000));
  script_turns(&script);
  script_advance(&script, 4999);
  CHECK_INT(outcomes[0].n_done, 0);
  script_advance(&script, 1);
  outcome_fails(&script, &outcomes[0], TNK_ETIMEDOUT);
  script_turns(&script);
  CHECK(tnk__list_empty(&script.training->ops));
  /* A result reads the same through it. */
  mock_on(script.mock, "POST", "/api/v1/retrieve_future", script_result,
          &script);
  script_ok(&script, &outcomes[1],
            tnk_with_timeout(script_step(&script), 5000));
  CHECK_STR(kinds_of(outcomes[1].promise), "m");
  outcome_drop_all(outcomes, 2);
  script_close(&script);
}

TEST(many_samples_as_one_promise) {
  enum { N = 50 };
  script_t script;
  tnk_promise_t *samples[N];
  outcome_t outcome;

  script_open(&script);
  script_sampler(&script);
  for (int i = 0; i < N; i++)
    samples[i] = script_sample(&script);
  script_ok(&script, &outcome, tnk_all(samples, N));
  for (size_t i = 0; i < N; i++)
    CHECK_STR(kinds_of(tnk_promise_child(outcome.promise, i)), "a");
  CHECK(tnk_promise_child(outcome.promise, N) == NULL);
  outcome_drop(&outcome);
  script_close(&script);
}

/* Some servers put a result into another object, and results may be long. */
TEST(a_long_result_in_a_wrapper) {
  enum { N = 50000, SIZE = N * 40 };
  char *body = malloc(SIZE);
  size_t n;
  script_t script;
  outcome_t outcome;

  CHECK(body != NULL);
  n = (size_t)snprintf(body, SIZE,
                       "{\"status\":\"completed\","
                       "\"result\":{\"metrics\":{\"m:sum\":1");
  for (int i = 0; i < N; i++)
    n += (size_t)snprintf(body + n, SIZE - n, ",\"metric_%09d:sum\":0.1", i);
  snprintf(body + n, SIZE - n, "}}}");
  script_open(&script);
  script_train(&script);
  mock_json(script.mock, "POST", "/api/v1/retrieve_future", 200, body);
  outcome_of(&outcome, script_step(&script));
  outcome_ok(&script, &outcome);
  CHECK_INT(tnk_metrics_count(tnk_promise_metrics(outcome.promise)), N + 1);
  outcome_drop(&outcome);
  script_close(&script);
  free(body);
}

/* ---- Outputs and examples ---- */

static void check_outputs(size_t n_data, size_t n_outputs, const char *says) {
  script_t script;
  outcome_t outcome;
  char text[256] = "{\"metrics\":{},\"loss_fn_outputs\":[";

  for (size_t i = 0; i < n_outputs; i++)
    strcat(text, i > 0 ? ",{}" : "{}");
  strcat(text, "]}");
  script_open_train(&script);
  mock_json(script.mock, "POST", "/api/v1/retrieve_future", 200, text);
  outcome_of(&outcome, script_pass(&script, n_data));
  outcome_wait(&script, &outcome);
  if (says == NULL) {
    CHECK_INT(outcome.status, TNK_OK);
    CHECK_INT(tnk_pass_count(tnk_promise_pass(outcome.promise)), n_outputs);
  } else {
    CHECK_INT(outcome.status, TNK_EPROTO);
    CHECK(strstr(outcome.text, says) != NULL);
    CHECK_INT(tnk_promise_error(outcome.promise)->ran, TNK_RAN_YES);
  }
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(S3_6b_as_many_outputs_as_examples_or_none) {
  check_outputs(2, 2, NULL);
  check_outputs(2, 0, NULL);
  check_outputs(2, 3, "2 examples");
  check_outputs(2, 1, "1 outputs for 2 examples");
  check_outputs(3, 7, "7 outputs for 3 examples");
}
