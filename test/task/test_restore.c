/* SPDX-License-Identifier: MIT */
/* Training clients and samplers from saved states. */
#include "task/kinds.h"

static const char load_path[] = "/api/v1/load_weights";
static const char info_path[] = "/api/v1/weights_info";
static const char create_path[] = "/api/v1/create_model";

static const char wants_model[] =
    "{\"detail\":[{\"loc\":[\"body\",\"model_id\"],\"msg\":\"Field "
    "required\"}]}";

static tnk_promise_t *restore_with(script_t *script, tnk_choice_t classic,
                                   tnk_choice_t with_optimizer) {
  tnk_restore_options_t options = TNK_RESTORE_OPTIONS_INIT;

  options.path = "tinker://run/weights/a";
  options.classic = classic;
  options.with_optimizer = with_optimizer;
  return tnk_service_restore(script->service, &options);
}

static size_t n_of(const script_t *script, const char *path) {
  return mock_count(script->mock, "POST", path);
}

/* What the i-th request of that path has in its body. */
static int says(const script_t *script, const char *path, size_t i,
                const char *text) {
  const mock_request_t *request = mock_find(script->mock, "POST", path, i);

  CHECK(request != NULL);
  return strstr((const char *)request->body, text) != NULL;
}

/* ---- Servers that restore needs several calls ---- */

/* One that knows no form but that with a model. */
static void load_into_model(mock_request_t *request, void *user) {
  if (strstr((const char *)request->body, "\"model_id\"") != NULL)
    script_accept(request, user);
  else
    mock_reply_json(request, 422, wants_model);
}

TEST(P4_7_a_server_without_the_one_call_is_asked_in_several) {
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_on(script.mock, "POST", load_path, load_into_model, &script);
  script.log_text = "needs several calls";
  for (int i = 0; i < 2; i++) {
    script_ok(&script, &outcome,
              restore_with(&script, TNK_DEFAULT, TNK_DEFAULT));
    CHECK(tnk_promise_training(outcome.promise) != NULL);
    outcome_drop(&outcome);
  }
  /* It is asked in one call once only. */
  CHECK_INT(script.n_log_texts, 1);
  CHECK_INT(n_of(&script, load_path), 3);
  CHECK_INT(n_of(&script, info_path), 2);
  CHECK_INT(n_of(&script, create_path), 2);
  CHECK(says(&script, load_path, 1, "\"path\":\"tinker://run/weights/a\""));
  script_close(&script);
}

TEST(P4_7_whoever_wants_one_call_gets_the_refusal) {
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_on(script.mock, "POST", load_path, load_into_model, &script);
  script_fails(&script, &outcome, restore_with(&script, TNK_NO, TNK_DEFAULT),
               TNK_EREQUEST);
  check_ran(&outcome, TNK_RAN_NO, "model_id: Field required; it was not run");
  outcome_drop(&outcome);
  CHECK_INT(n_of(&script, info_path), 0);
  script_close(&script);
}

/* Other refusals, and this one after an attempt that may have been run. */
TEST(P4_7_nothing_is_asked_twice_that_may_have_been_done) {
  for (int is_lost = 0; is_lost < 2; is_lost++) {
    script_t script;
    outcome_t outcome;

    script_open(&script);
    for (int i = 0; i < 2 && is_lost; i++)
      mock_once(script.mock, "POST", load_path, mock_reset, NULL);
    mock_json(script.mock, "POST", load_path, 400,
              is_lost ? wants_model : "{\"detail\":\"no such thing\"}");
    outcome_of(&outcome, restore_with(&script, TNK_DEFAULT, TNK_DEFAULT));
    script_settle(&script, &outcome);
    outcome_fails(&script, &outcome, TNK_EREQUEST);
    CHECK_INT(n_of(&script, info_path), 0);
    outcome_drop(&outcome);
    script_close(&script);
  }
}

/* ---- What is taken over from the state ---- */

static const char saved[] =
    "{\"base_model\":\"other\",\"is_lora\":true,\"lora_rank\":64,"
    "\"train_mlp\":false,\"train_attn\":null,\"optimizer_config\":{"
    "\"type\":\"dimuon\",\"version\":7}}";

TEST(D12_the_classic_way_makes_a_model_like_the_saved_one) {
  for (int with_optimizer = 0; with_optimizer < 2; with_optimizer++) {
    script_t script;
    outcome_t outcome;
    const char *optimizer = "\"optimizer_config\":{\"type\":\"dimuon\","
                            "\"version\":7}";

    script_open(&script);
    mock_json(script.mock, "POST", info_path, 200, saved);
    script_ok(
        &script, &outcome,
        restore_with(&script, TNK_YES, with_optimizer ? TNK_YES : TNK_NO));
    outcome_drop(&outcome);
    CHECK(says(&script, create_path, 0, "\"base_model\":\"other\""));
    CHECK(says(&script, create_path, 0, "\"rank\":64"));
    CHECK(says(&script, create_path, 0, "\"train_mlp\":false"));
    CHECK(says(&script, create_path, 0, "\"train_attn\":true"));
    CHECK_INT(says(&script, create_path, 0, optimizer), with_optimizer);
    CHECK_INT(says(&script, load_path, 0, "\"optimizer\":true"),
              with_optimizer);
    script_close(&script);
  }
}

/* ---- What is known of the model ---- */

static const char *base_model_of(script_t *script, tnk_promise_t *promise) {
  outcome_t outcome;
  const char *base_model;

  script_ok(script, &outcome, promise);
  base_model = tnk_promise_training(outcome.promise)->info.base_model;
  outcome_drop(&outcome);
  return base_model;
}

/* Without an answer, or with one that does not name it, the model is the one
 * that was asked for; and where none was, it is not known. */
TEST(D12_nothing_loses_the_name_of_the_model) {
  static const struct {
    int status;
    const char *json;
  } rows[] = {{404, "{}"},
              {200, "<html>"},
              {200, "{\"model_id\":\"model-0\",\"model_data\":{}}"}};

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    script_t script;

    script_open(&script);
    mock_json(script.mock, "POST", "/api/v1/get_info", rows[i].status,
              rows[i].json);
    CHECK_STR(base_model_of(&script, start_lora(&script)), "base");
    CHECK(base_model_of(&script, restore_with(&script, TNK_NO, TNK_NO)) ==
          NULL);
    script_close(&script);
  }
}

/* ---- Samplers ---- */

static tnk_promise_t *sampler_from_path(script_t *script) {
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;

  options.model_path = "tinker://run/sampler_weights/a";
  return tnk_service_create_sampling(script->service, &options);
}

TEST(P7_7_a_sampler_from_a_missing_path_is_none) {
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_json(script.mock, "GET", "/api/v1/samplers/sampler-0", 404,
            "{\"detail\":\"Model not found\"}");
  script_fails(&script, &outcome, sampler_from_path(&script), TNK_ENOTFOUND);
  CHECK(strstr(outcome.text, "Model not found") != NULL);
  outcome_drop(&outcome);
  script_close(&script);
}

/* The base model is not known then, and all else works. */
TEST(P7_7_a_server_may_not_tell_of_samplers) {
  static const char *const bodies[] = {"{\"detail\":\"Not Found\"}", "{}", ""};

  for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
    script_t script;
    outcome_t outcome;

    script_open(&script);
    mock_json(script.mock, "GET", "/api/v1/samplers/sampler-0", 404, bodies[i]);
    script_ok(&script, &outcome, sampler_from_path(&script));
    CHECK(tnk_sampling_base_model(tnk_promise_sampling(outcome.promise)) ==
          NULL);
    outcome_drop(&outcome);
    script_close(&script);
  }
}
