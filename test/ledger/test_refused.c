/* SPDX-License-Identifier: MIT */
#include "ledger/bench.h"

/*
 * A server that refuses members which the library adds to requests by itself:
 * the request is sent again without them, later ones go without them at once,
 * and the program is warned once. Requests with each of these members, by the
 * forms of refusals that servers have.
 */

typedef struct {
  bench_t bench;
  const char *member; /* with its name in quotes and its colon */
  const char *name;
  const char *form; /* of the refusal, with "%s" for the name */
  int refuses_all;  /* also what does not have the member */
  mock_handler_t next;
  int n_with;
  int n_without;
  char keys[2][64]; /* of the first request with it and the first without */
} refuser_t;

static void keep_key(const mock_request_t *request, char key[64]) {
  const char *found = mock_header(request, "x-idempotency-key");

  CHECK(found != NULL);
  snprintf(key, 64, "%s", found);
}

static void refuse(mock_request_t *request, void *user) {
  refuser_t *refuser = user;
  const char *body = (const char *)request->body;
  char text[512];

  if (strstr(body, refuser->member) != NULL) {
    if (refuser->n_with++ == 0)
      keep_key(request, refuser->keys[0]);
  } else {
    if (refuser->n_without++ == 0)
      keep_key(request, refuser->keys[1]);
    if (!refuser->refuses_all) {
      refuser->next(request, &refuser->bench.script);
      return;
    }
  }
  snprintf(text, sizeof(text), refuser->form, refuser->name);
  mock_reply_json(request, 422, text);
}

/* ---- The requests ---- */

static tnk_promise_t *save(refuser_t *refuser, tnk_choice_t with_sampler) {
  tnk_ledger_save_t how = TNK_LEDGER_SAVE_INIT;

  how.with_sampler = with_sampler;
  return tnk_ledger_save(refuser->bench.ledger, refuser->bench.script.training,
                         &how);
}

static tnk_promise_t *ledger_state(refuser_t *refuser) {
  return save(refuser, TNK_NO);
}

static tnk_promise_t *ledger_sampler(refuser_t *refuser) {
  return save(refuser, TNK_YES);
}

static tnk_promise_t *state(refuser_t *refuser) {
  return tnk_training_save_state(refuser->bench.script.training, "a", NULL);
}

static tnk_promise_t *load(refuser_t *refuser) {
  tnk_load_options_t options = TNK_LOAD_OPTIONS_INIT;

  options.path = "tinker://run/weights/a";
  options.with_optimizer = TNK_NO;
  return tnk_training_load_state(refuser->bench.script.training, &options);
}

static tnk_promise_t *sample(refuser_t *refuser) {
  return script_sample(&refuser->bench.script);
}

static tnk_promise_t *step(refuser_t *refuser) {
  return script_step(&refuser->bench.script);
}

static const struct {
  const char *path;
  const char *name;
  tnk_promise_t *(*start)(refuser_t *refuser);
  mock_handler_t next;
} requests[] = {
    {"save_weights", "user_metadata", ledger_state, script_accept},
    {"save_weights_for_sampler", "user_metadata", ledger_sampler,
     script_accept},
    {"save_weights", "overwrite", state, script_accept},
    {"load_weights", "optimizer", load, script_accept},
    {"asample", "prompt_logprobs", sample, script_accept},
    {"asample", "topk_prompt_logprobs", sample, script_accept},
    {"retrieve_future", "allow_metadata_only", step, script_result},
    {"retrieve_future", "allow_metadata_only", sample, script_result},
};

enum { N_REQUESTS = sizeof(requests) / sizeof(requests[0]) };

/* ---- Refusals ---- */

/* They name the member. */
static const char *const named[] = {
    "{\"detail\":[{\"type\":\"extra_forbidden\",\"loc\":[\"body\",\"%s\"],"
    "\"msg\":\"Extra inputs are not permitted\",\"input\":1}]}",
    "{\"detail\":[{\"type\":\"missing\",\"loc\":[\"header\",\"x\"]},"
    "{\"loc\":[\"body\",\"Request\",\"%s\"],\"msg\":\"extra fields not "
    "permitted\"}]}",
    "{\"detail\":\"Unexpected member: %s\"}",
    "{\"error\":{\"message\":\"'%s' is not supported\"}}",
    "unknown field `%s`, expected one of `model_id`, `path`",
};

/* They are about something else, also where they have its name in them. */
static const char *const others[] = {
    "{\"detail\":[{\"type\":\"missing\",\"loc\":[\"body\",\"path\"],\"input\":"
    "{\"%s\":1}}]}",
    "{\"detail\":[{\"type\":\"string_type\",\"loc\":[\"body\",\"%s\",\"x\"]}]}",
    "{\"detail\":[{\"type\":\"extra_forbidden\",\"loc\":[\"body\",\"type\"]}]}",
    "unknown field `name`, expected one of `path`, `%s`",
    "my_%s_2 is out of range",
    "Unprocessable Entity",
    "",
};

/* ---- Cases ---- */

static void open_refuser(refuser_t *refuser, size_t i, const char *form,
                         char *member, size_t size) {
  char path[64];

  memset(refuser, 0, sizeof(*refuser));
  bench_open(&refuser->bench);
  script_sampler(&refuser->bench.script);
  snprintf(path, sizeof(path), "/api/v1/%s", requests[i].path);
  snprintf(member, size, "\"%s\":", requests[i].name);
  refuser->member = member;
  refuser->name = requests[i].name;
  refuser->form = form;
  refuser->next = requests[i].next;
  mock_on(refuser->bench.script.mock, "POST", path, refuse, refuser);
}

static void shorten(size_t i, const char *form) {
  refuser_t refuser;
  script_t *script = &refuser.bench.script;
  outcome_t outcome;
  char member[64];
  int n;

  open_refuser(&refuser, i, form, member, sizeof(member));
  script_ok(script, &outcome, requests[i].start(&refuser));
  outcome_drop(&outcome);
  CHECK_INT(refuser.n_with, 1);
  CHECK(refuser.n_without > 0);
  CHECK(strcmp(refuser.keys[0], refuser.keys[1]) != 0);
  CHECK_INT(script->n_warnings, 1);
  CHECK(strstr(script->last_log, requests[i].name) != NULL);
  n = refuser.n_without;
  script_ok(script, &outcome, requests[i].start(&refuser));
  outcome_drop(&outcome);
  CHECK_INT(refuser.n_with, 1);
  CHECK(refuser.n_without > n);
  CHECK_INT(script->n_warnings, 1);
  bench_close(&refuser.bench);
}

TEST_LIMIT(B16_a_request_is_repeated_without_what_the_server_refuses, 60) {
  for (size_t i = 0; i < N_REQUESTS; i++)
    for (size_t k = 0; k < sizeof(named) / sizeof(*named); k++)
      shorten(i, named[k]);
}

/* One request with the member and `n_without` without it; the next operation
 * sends the member again. */
static void stays(size_t i, const char *form, int n_without) {
  refuser_t refuser;
  script_t *script = &refuser.bench.script;
  outcome_t outcome;
  char member[64];

  open_refuser(&refuser, i, form, member, sizeof(member));
  refuser.refuses_all = n_without > 0;
  for (int n = 0; n < 2; n++) {
    outcome_of(&outcome, requests[i].start(&refuser));
    outcome_wait(script, &outcome);
    CHECK(outcome.status != TNK_OK);
    CHECK(strstr(outcome.text, "422") != NULL);
    outcome_drop(&outcome);
    if (n > 0)
      break;
    CHECK_INT(refuser.n_with, 1);
    CHECK_INT(refuser.n_without, n_without);
  }
  CHECK(refuser.n_with > 1);
  CHECK_INT(script->n_warnings, 0);
  bench_close(&refuser.bench);
}

TEST_LIMIT(B16_a_refusal_of_something_else_stays_one, 60) {
  for (size_t i = 0; i < N_REQUESTS; i++)
    for (size_t k = 0; k < sizeof(others) / sizeof(*others); k++)
      stays(i, others[k], 0);
}

/* Nothing is learned from a server that refuses the shorter request too. */
TEST_LIMIT(B16_a_request_that_is_refused_without_it_too_fails, 60) {
  for (size_t i = 0; i < N_REQUESTS; i++)
    stays(i, named[0], 1);
}

/* Metadata that the program gives is not dropped in silence. */
TEST(B16_what_the_program_asked_for_is_never_left_out) {
  static const tnk_pair_t pair = {"mine", "x"};
  tnk_save_options_t options = TNK_SAVE_OPTIONS_INIT;
  refuser_t refuser;
  outcome_t outcome;
  char member[64];

  open_refuser(&refuser, 0, named[0], member, sizeof(member));
  options.user_metadata = &pair;
  options.n_user_metadata = 1;
  script_fails(
      &refuser.bench.script, &outcome,
      tnk_training_save_state(refuser.bench.script.training, "a", &options),
      TNK_EREQUEST);
  outcome_drop(&outcome);
  CHECK_INT(refuser.n_with, 1);
  CHECK_INT(refuser.n_without, 0);
  bench_close(&refuser.bench);
}

static void overwriting(refuser_t *refuser, int code) {
  tnk_save_options_t options = TNK_SAVE_OPTIONS_INIT;
  outcome_t outcome;

  options.overwrite = TNK_YES;
  outcome_of(&outcome, tnk_training_save_state(refuser->bench.script.training,
                                               "a", &options));
  outcome_wait(&refuser->bench.script, &outcome);
  CHECK_INT(outcome.status, code);
  outcome_drop(&outcome);
}

/* A member with another value than the default says something. */
TEST(B16_a_value_that_means_something_is_sent) {
  refuser_t refuser;
  outcome_t outcome;
  char member[64];

  open_refuser(&refuser, 2, named[0], member, sizeof(member));
  overwriting(&refuser, TNK_EREQUEST);
  script_ok(&refuser.bench.script, &outcome, state(&refuser));
  outcome_drop(&outcome);
  CHECK_INT(refuser.n_with, 2);
  overwriting(&refuser, TNK_EREQUEST);
  CHECK_INT(refuser.n_with, 3);
  CHECK_INT(refuser.n_without, 1);
  bench_close(&refuser.bench);
}

/* The next program finds what was saved without metadata by its name, which has
 * the number of the attempt. */
TEST(a_save_without_metadata_is_found_by_its_name) {
  static const char list[] =
      "{\"checkpoints\":[{\"checkpoint_id\":\"weights/save-1\","
      "\"checkpoint_type\":\"training\",\"time\":\"2026-01-02T03:04:05Z\","
      "\"tinker_path\":\"tinker://model-0/weights/save-1\"},"
      "{\"checkpoint_id\":\"weights/save-1-a2\","
      "\"checkpoint_type\":\"training\",\"time\":\"2026-01-02T03:04:06Z\","
      "\"tinker_path\":\"tinker://model-0/weights/save-1-a2\"}]}";
  static const char file[] =
      "{\"name\":\"save-1\",\"batch\":3,\"state_path\":"
      "\"tinker://model-0/weights/save-1\",\"tnk\":\"saved\","
      "\"tnk_attempt\":1,\"tnk_save\":1,\"tnk_steps\":3}\n"
      "{\"name\":\"save-1-a2\",\"tnk\":\"intent\",\"tnk_attempt\":2,"
      "\"tnk_save\":1,\"tnk_what\":1,\"tnk_run\":\"model-0\","
      "\"tnk_steps\":6}\n";
  bench_t bench;
  outcome_t outcome;

  bench_folder(&bench);
  bench_write(&bench, file);
  bench_begin(&bench);
  mock_json(bench.script.mock, "GET",
            "/api/v1/training_runs/model-0/checkpoints", 200, list);
  mock_json(bench.script.mock, "POST", "/api/v1/retrieve_future", 200,
            "{\"path\":\"tinker://x\",\"model_id\":\"model-1\"}");
  bench_open_ledger(&bench);
  script_ok(&bench.script, &outcome, tnk_ledger_resume(bench.ledger, NULL));
  CHECK_STR(tnk_ledger_resumed(bench.ledger)->state_path,
            "tinker://model-0/weights/save-1-a2");
  CHECK_INT(tnk_ledger_resumed(bench.ledger)->n_steps, 6);
  outcome_drop(&outcome);
  bench_close(&bench);
}
