/* SPDX-License-Identifier: MIT */
/*
 * What a question about what the service keeps is sent with: the key, at once;
 * where that is refused, what the server says that it wants for it.
 */
#include "task/tokens.h"
#include "tnk/rest.h"

#define RUN "/api/v1/training_runs/r"
#define CONFIG "/api/v1/client/config"
#define CAPABILITIES "/api/v1/get_server_capabilities"
#define DYNAMIC "/api/v1/client/dynamic_config"

static const char run_answer[] =
    "{\"training_run_id\":\"r\",\"base_model\":\"m\",\"model_owner\":\"o\","
    "\"is_lora\":true,\"last_request_time\":\"2026-01-02\"}";

typedef struct {
  int status; /* for whoever comes with the key itself */
  int n_with_key;
} door_t;

/* Lets in who comes with a token. */
static void answer(mock_request_t *request, void *user) {
  door_t *door = user;

  if (strcmp(mock_header(request, "x-api-key"), script_key()) != 0) {
    mock_reply_json(request, 200, run_answer);
    return;
  }
  door->n_with_key++;
  mock_reply_json(request, door->status, "{\"detail\":\"not with this\"}");
}

static tnk_promise_t *get_run(tokens_t *t) {
  return tnk_rest_get_run(t->script.service, "r", TNK_SCOPE_OWNED);
}

static void ask(tokens_t *t, int status, const char *text) {
  outcome_t outcome;

  outcome_of(&outcome, get_run(t));
  tokens_settle(t, &outcome);
  if (outcome.status != status || strstr(outcome.text, text) == NULL)
    test_fail(__FILE__, __LINE__, "%d, \"%s\" expected: %d, %s", status, text,
              outcome.status, outcome.text);
  outcome_drop(&outcome);
}

static void open_door(tokens_t *t, door_t *door, int status,
                      const char *flags) {
  *door = (door_t){.status = status};
  tokens_open_with(t, (tnk_service_options_t)TNK_SERVICE_OPTIONS_INIT, 3600,
                   flags);
  mock_on(t->script.mock, "GET", RUN, answer, door);
}

TEST(P11_2_a_question_is_one_request) {
  tokens_t t;

  tokens_open(&t, 3600);
  mock_json(t.script.mock, "GET", RUN, 200, run_answer);
  ask(&t, TNK_OK, "");
  CHECK_INT(mock_n_requests(t.script.mock), 1);
  ask(&t, TNK_OK, "");
  CHECK_INT(mock_n_requests(t.script.mock), 2);
  tokens_close(&t);
}

TEST(P1_6_what_is_offered_is_one_request_too) {
  outcome_t outcome;
  tokens_t t;

  tokens_open(&t, 3600);
  t.takes_keys = 1;
  script_ok(&t.script, &outcome, tnk_service_capabilities(t.script.service));
  outcome_drop(&outcome);
  CHECK_INT(mock_n_requests(t.script.mock), 1);
  tokens_close(&t);
}

TEST(P1_6_what_is_offered_is_asked_with_a_token_where_that_is_wanted) {
  outcome_t outcome;
  tokens_t t;

  tokens_open(&t, 3600);
  script_ok(&t.script, &outcome, tnk_service_capabilities(t.script.service));
  outcome_drop(&outcome);
  CHECK_INT(t.n_made, 1);
  CHECK_INT(mock_count(t.script.mock, "GET", CAPABILITIES), 2);
  tokens_close(&t);
}

TEST(P1_6_a_key_that_is_refused_is_exchanged_where_the_server_wants_that) {
  for (int status = 401; status <= 403; status += 2) {
    door_t door;
    tokens_t t;
    open_door(&t, &door, status, "{\"pjwt_auth_enabled\":true}");
    ask(&t, TNK_OK, "");
    CHECK_INT(door.n_with_key, 1);
    CHECK_INT(tokens_count(&t, CONFIG), 1);
    CHECK_INT(tokens_count(&t, tokens_path), 1);
    /* From now on it is known. */
    ask(&t, TNK_OK, "");
    CHECK_INT(door.n_with_key, 1);
    CHECK_INT(tokens_count(&t, CONFIG), 1);
    CHECK_INT(tokens_count(&t, tokens_path), 1);
    tokens_close(&t);
  }
}

TEST(P1_6_a_refusal_that_no_token_would_change_is_told_as_it_was) {
  door_t door;
  tokens_t t;

  open_door(&t, &door, 403, "{}");
  ask(&t, TNK_EAUTH, "get_run");
  CHECK_INT(door.n_with_key, 1);
  CHECK_INT(tokens_count(&t, CONFIG), 1);
  ask(&t, TNK_EAUTH, "not with this");
  CHECK_INT(door.n_with_key, 2);
  CHECK_INT(tokens_count(&t, CONFIG), 1);
  tokens_close(&t);
}

/* Two that were sent before the server had told what it wants. */
TEST(P1_6_questions_that_were_refused_together_share_a_token) {
  outcome_t outcomes[2];
  door_t door;
  tokens_t t;

  open_door(&t, &door, 401, "{\"pjwt_auth_enabled\":true}");
  for (int i = 0; i < 2; i++)
    outcome_of(&outcomes[i], get_run(&t));
  for (int i = 0; i < 2; i++) {
    tokens_settle(&t, &outcomes[i]);
    CHECK_INT(outcomes[i].status, TNK_OK);
  }
  CHECK_INT(tokens_count(&t, CONFIG), 1);
  CHECK_INT(tokens_count(&t, DYNAMIC), 1);
  CHECK_INT(tokens_count(&t, tokens_path), 1);
  outcome_drop_all(outcomes, 2);
  tokens_close(&t);
}

TEST(a_refused_question_can_be_canceled_and_closed) {
  for (int i = 0; i < 2; i++) {
    tnk_promise_t *promise;
    outcome_t outcome;
    door_t door;
    tokens_t t;
    open_door(&t, &door, 401, "{}");
    mock_on(t.script.mock, "POST", CONFIG, mock_hold, NULL);
    promise = get_run(&t);
    outcome_of(&outcome, tnk_promise_ref(promise));
    while (tokens_count(&t, CONFIG) == 0)
      script_turns(&t.script);
    if (i == 0)
      tnk_promise_cancel(promise);
    tnk_promise_unref(promise);
    tokens_close(&t);
    CHECK_INT(outcome.status, i == 0 ? TNK_ECANCELED : TNK_ECLOSED);
    outcome_drop(&outcome);
  }
}
