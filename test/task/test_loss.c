/* SPDX-License-Identifier: MIT */
/* Losses of the caller's that run on the service. */
#include "codec/loss_graph.h"
#include "task/script.h"

static const char create_path[] = "/api/v1/create_custom_loss";
static const char future_path[] = "/api/v1/retrieve_future";
static const char flags[] = "{\"custom_loss_server_side\":true}";

static void on_create(mock_request_t *request, void *user) {
  char text[64];

  (void)user;
  snprintf(text, sizeof(text), "{\"request_id\":\"loss:%lld\"}",
           script_number(request, "custom_loss_seq_id"));
  mock_reply_json(request, 200, text);
}

static void on_future(mock_request_t *request, void *user) {
  if (strstr((const char *)request->body, "\"loss:") != NULL)
    mock_reply_json(request, 200,
                    "{\"loss_id\":\"L1\",\"type\":\"create_custom_loss\"}");
  else
    script_result(request, user);
}

static void open_with(script_t *script, const char *json) {
  script_open(script);
  script_flags(script, json);
  mock_on(script->mock, "POST", create_path, on_create, NULL);
  mock_on(script->mock, "POST", future_path, on_future, script);
}

static tnk_promise_t *create(script_t *script) {
  const tnk_loss_options_t options = loss_options();

  return tnk_service_create_loss(script->service, &options);
}

/* Two examples of two tokens, with advantages. */
static const tnk_datum_t *data_of(void) {
  static const float advantages[] = {1, -1};
  static tnk_loss_input_t input;
  static tnk_datum_t data[2];

  input = (tnk_loss_input_t){"advantages", tnk_tensor_f32(advantages, 2)};
  for (int i = 0; i < 2; i++) {
    data[i] = script_data(1)[0];
    data[i].loss_inputs = &input;
    data[i].n_loss_inputs = 1;
  }
  return data;
}

static tnk_pass_options_t with_loss(const tnk_promise_t *promise) {
  tnk_pass_options_t options = TNK_PASS_OPTIONS_INIT;

  options.loss = tnk_promise_loss(promise);
  CHECK(options.loss != NULL);
  return options;
}

/* ---- Making and using one ---- */

static char pass_loss[32];
static char pass_id[32];

static void note_pass(mock_request_t *request, void *user) {
  TinkerPublic__ForwardBackwardRequest *message =
      tinker_public__forward_backward_request__unpack(
          NULL, request->body_len, (const uint8_t *)request->body);

  CHECK(message != NULL);
  snprintf(pass_loss, sizeof(pass_loss), "%s", message->loss_fn);
  CHECK_INT(message->n_loss_fn_config, 0);
  CHECK_INT(message->n_loss_fn_config_v2, 1);
  CHECK_STR(message->loss_fn_config_v2[0]->key, "loss_id");
  snprintf(pass_id, sizeof(pass_id), "%s",
           message->loss_fn_config_v2[0]->value->text);
  tinker_public__forward_backward_request__free_unpacked(message, NULL);
  script_accept(request, user);
}

TEST(P5_7_a_loss_runs_on_the_service) {
  tnk_pass_options_t options;
  script_t script;
  outcome_t loss, pass;

  open_with(&script, flags);
  script_train(&script);
  mock_on(script.mock, "POST", "/api/v1/forward_backward", note_pass, &script);
  script_ok(&script, &loss, create(&script));
  CHECK_STR(tnk_loss_id(tnk_promise_loss(loss.promise)), "L1");
  CHECK(tnk_loss_id(NULL) == NULL);
  options = with_loss(loss.promise);
  outcome_of(&pass, tnk_training_forward_backward(script.training, data_of(), 2,
                                                  &options));
  /* The call has what it needs of it. */
  outcome_drop(&loss);
  outcome_ok(&script, &pass);
  CHECK_STR(pass_loss, "custom");
  CHECK_STR(pass_id, "L1");
  outcome_drop(&pass);
  script_close(&script);
}

TEST(P5_7_losses_of_a_session_are_counted) {
  script_t script;
  outcome_t loss;

  open_with(&script, flags);
  for (int i = 0; i < 3; i++) {
    script_ok(&script, &loss, create(&script));
    outcome_drop(&loss);
    CHECK_INT(
        script_number(mock_find(script.mock, "POST", create_path, (size_t)i),
                      "custom_loss_seq_id"),
        i);
  }
  script_close(&script);
}

/* A repeat is the same loss, not another one. */
TEST(P5_7_a_repeat_has_the_same_number) {
  script_t script;
  outcome_t loss;

  open_with(&script, flags);
  mock_json_once(script.mock, "POST", create_path, 503, "{}");
  outcome_of(&loss, create(&script));
  for (int i = 0; i < 20 && loss.n_done == 0; i++)
    script_later(&script, 1000);
  outcome_ok(&script, &loss);
  CHECK_INT(mock_count(script.mock, "POST", create_path), 2);
  for (size_t i = 0; i < 2; i++)
    CHECK_INT(script_number(mock_find(script.mock, "POST", create_path, i),
                            "custom_loss_seq_id"),
              0);
  outcome_drop(&loss);
  script_close(&script);
}

TEST(P5_7_a_loss_may_outlive_its_service) {
  script_t script;
  outcome_t loss;

  open_with(&script, flags);
  script_ok(&script, &loss, create(&script));
  script_close(&script);
  CHECK_STR(tnk_loss_id(tnk_promise_loss(loss.promise)), "L1");
  outcome_drop(&loss);
}

/* ---- Servers and graphs that it does not work with ---- */

TEST(P5_7_a_server_without_losses_is_told_of_before_anything_is_made) {
  script_t script;
  outcome_t loss;

  open_with(&script, "{}");
  script_fails(&script, &loss, create(&script), TNK_EUNSUPPORTED);
  CHECK(strstr(loss.text, "tnk_training_forward_backward_custom()") != NULL);
  outcome_drop(&loss);
  CHECK_INT(mock_count(script.mock, "POST", create_path), 0);
  CHECK_INT(mock_count(script.mock, "POST", "/api/v1/create_session"), 0);
  script_close(&script);
}

TEST(P5_7_refusals_of_the_server) {
  static const struct {
    int status;
    const char *json;
    int code;
  } cases[] = {{422, "{\"detail\":\"no such function\"}", TNK_EREQUEST},
               {401, "{\"detail\":\"no\"}", TNK_EAUTH}};
  script_t script;
  outcome_t loss;

  open_with(&script, flags);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    mock_json_once(script.mock, "POST", create_path, cases[i].status,
                   cases[i].json);
    script_fails(&script, &loss, create(&script), cases[i].code);
    CHECK(tnk_promise_loss(loss.promise) == NULL);
    outcome_drop(&loss);
  }
  mock_json_once(script.mock, "POST", future_path, 200,
                 "{\"error\":\"operator.matmul is not allowed\","
                 "\"category\":\"user\"}");
  script_fails(&script, &loss, create(&script), TNK_EFAILED);
  outcome_drop(&loss);
  mock_json_once(script.mock, "POST", future_path, 200, "{\"loss_id\":1}");
  script_fails(&script, &loss, create(&script), TNK_EPROTO);
  outcome_drop(&loss);
  /* None of them is in the way of the next one. */
  script_ok(&script, &loss, create(&script));
  outcome_drop(&loss);
  script_close(&script);
}

/* ... whatever its flags say. */
TEST(P5_7_a_server_that_lacks_the_call) {
  script_t script;
  outcome_t loss;

  open_with(&script, flags);
  mock_json(script.mock, "POST", create_path, 404,
            "{\"detail\":\"Not Found\"}");
  script_fails(&script, &loss, create(&script), TNK_EUNSUPPORTED);
  outcome_drop(&loss);
  script_close(&script);
}

TEST(P5_7_4_data_that_the_loss_cannot_read_are_refused) {
  tnk_pass_options_t options;
  script_t script;
  outcome_t loss, pass;

  open_with(&script, flags);
  script_train(&script);
  script_ok(&script, &loss, create(&script));
  options = with_loss(loss.promise);
  script_fails(&script, &pass,
               tnk_training_forward_backward(script.training, script_data(1), 1,
                                             &options),
               TNK_EINVAL);
  CHECK(strstr(pass.text, "datum 0: the loss needs \"advantages\"") != NULL);
  outcome_drop(&pass);
  options.loss_fn = "ppo";
  script_fails(&script, &pass,
               tnk_training_forward(script.training, data_of(), 2, &options),
               TNK_EINVAL);
  CHECK(strstr(pass.text, "loss_fn and settings are given beside loss") !=
        NULL);
  outcome_drop(&pass);
  options.loss_fn = NULL;
  script_fails(&script, &pass,
               tnk_training_forward_backward_custom(script.training, data_of(),
                                                    2, NULL, NULL, &options),
               TNK_EINVAL);
  outcome_drop(&pass);
  outcome_drop(&loss);
  script_close(&script);
}

/* An id means something in its own session only. */
TEST(P5_7_4_a_loss_of_another_session_is_refused) {
  tnk_pass_options_t options;
  script_t script;
  outcome_t loss, pass;

  open_with(&script, flags);
  script_ok(&script, &loss, create(&script));
  script_close(&script);
  open_with(&script, flags);
  mock_json(script.mock, "POST", "/api/v1/create_session", 200,
            "{\"session_id\":\"session-1\"}");
  mock_json(script.mock, "POST", "/api/v1/sessions/session-1/finish", 200,
            "{}");
  script_train(&script);
  options = with_loss(loss.promise);
  script_fails(
      &script, &pass,
      tnk_training_forward_backward(script.training, data_of(), 2, &options),
      TNK_EINVAL);
  CHECK(strstr(pass.text, "the loss is one of session session-0, the model of "
                          "session-1") != NULL);
  outcome_drop(&pass);
  outcome_drop(&loss);
  script_close(&script);
}

/* ---- Cancelled, closed, without memory ---- */

TEST(P5_7_making_a_loss_may_be_canceled_and_closed) {
  for (int how = 0; how < 4; how++) {
    script_t script;
    outcome_t outcome;
    tnk_promise_t *promise;

    open_with(&script, flags);
    mock_on(script.mock, "POST", how % 2 == 0 ? create_path : future_path,
            mock_hold, NULL);
    promise = create(&script);
    outcome_of(&outcome, tnk_promise_ref(promise));
    mock_turns(script.mock, 60);
    if (how < 2)
      tnk_promise_cancel(promise);
    else
      tnk_service_close(script.service, script_closed, &script);
    outcome_fails(&script, &outcome, how < 2 ? TNK_ECANCELED : TNK_ECLOSED);
    outcome_drop(&outcome);
    tnk_promise_unref(promise);
    if (how < 2)
      script_close(&script);
    else
      script_end(&script);
  }
}

static int create_without(long n) {
  script_t script;
  outcome_t outcome;
  int did_fail;

  open_with(&script, flags);
  test_alloc_fail_at(n);
  outcome_of(&outcome, create(&script));
  for (int i = 0; i < 40 && outcome.n_done == 0; i++)
    script_later(&script, 30000);
  did_fail = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  CHECK_INT(outcome.n_done, 1);
  CHECK(outcome.status == TNK_OK || outcome.status == TNK_ENOMEM);
  CHECK(did_fail || outcome.status == TNK_OK);
  outcome_drop(&outcome);
  script_ok(&script, &outcome, create(&script));
  outcome_drop(&outcome);
  script_close(&script);
  CHECK_INT(test_alloc_live(), 0);
  return did_fail;
}

TEST_LIMIT(S3_26a_making_a_loss_without_memory, 60) {
  for (long n = 0; create_without(n); n++)
    CHECK(n < 3000);
}
