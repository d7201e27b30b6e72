/* SPDX-License-Identifier: MIT */
#include "task/script.h"

/*
 * An error of a creation that the service has refused names the base model or
 * the path. Every creation x every way to refuse it.
 */

#define MODEL "org/no-such-model"
#define PATH "tinker://run-7/weights/none"

static tnk_promise_t *lora(script_t *script) {
  tnk_lora_options_t options = TNK_LORA_OPTIONS_INIT;

  options.base_model = MODEL;
  return tnk_service_create_lora(script->service, &options);
}

static tnk_promise_t *restore_as(script_t *script, tnk_choice_t classic) {
  tnk_restore_options_t options = TNK_RESTORE_OPTIONS_INIT;

  options.path = PATH;
  options.classic = classic;
  return tnk_service_restore(script->service, &options);
}

static tnk_promise_t *restore(script_t *script) {
  return restore_as(script, TNK_NO);
}

static tnk_promise_t *classic(script_t *script) {
  return restore_as(script, TNK_YES);
}

static tnk_promise_t *sampler_of(script_t *script, const char *model,
                                 const char *path) {
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;

  options.base_model = model;
  options.model_path = path;
  return tnk_service_create_sampling(script->service, &options);
}

static tnk_promise_t *sampler(script_t *script) {
  return sampler_of(script, MODEL, NULL);
}

static tnk_promise_t *saved_sampler(script_t *script) {
  return sampler_of(script, NULL, PATH);
}

static const struct {
  const char *name;
  const char *thing;
  tnk_promise_t *(*start)(script_t *script);
  const char *path; /* of the call that is refused */
  int is_job;
} creations[] = {
    {"create_lora", MODEL, lora, "/api/v1/create_model", 1},
    {"restore", PATH, restore, "/api/v1/load_weights", 1},
    {"restore", PATH, classic, "/api/v1/weights_info", 0},
    {"create_sampling", MODEL, sampler, "/api/v1/create_sampling_session", 0},
    {"create_sampling", PATH, saved_sampler, "/api/v1/create_sampling_session",
     0},
    {"create_sampling", PATH, saved_sampler, "/api/v1/samplers/sampler-0", 0},
};

typedef enum { SUBMISSION, RESULT, RESULT_STATUS } when_t;

static const struct {
  when_t when;
  int status;
  const char *words;
  int err;
  int names; /* the library adds the name */
} ends[] = {
    {SUBMISSION, 400, "no such thing", TNK_EREQUEST, 1},
    {SUBMISSION, 404, "no such thing", TNK_ENOTFOUND, 1},
    {SUBMISSION, 422, "no such thing", TNK_EREQUEST, 1},
    {SUBMISSION, 401, "no such key", TNK_EAUTH, 0},
    {SUBMISSION, 403, "not yours", TNK_EAUTH, 0},
    {SUBMISSION, 402, "no credit", TNK_EBILLING, 0},
    {RESULT, 200, "no such thing", TNK_EFAILED, 1},
    {RESULT_STATUS, 400, "no such thing", TNK_EFAILED, 1},
    {RESULT_STATUS, 422, "no such thing", TNK_EFAILED, 1},
};

enum {
  N_CREATIONS = sizeof(creations) / sizeof(creations[0]),
  N_ENDS = sizeof(ends) / sizeof(ends[0])
};

static void refuse(mock_request_t *request, void *user) {
  const size_t end = *(const size_t *)user;
  char text[200];

  if (ends[end].when == RESULT)
    snprintf(text, sizeof(text), "{\"error\":\"%s\",\"category\":\"user\"}",
             ends[end].words);
  else
    snprintf(text, sizeof(text), "{\"detail\":\"%s\"}", ends[end].words);
  mock_reply_json(request, ends[end].status, text);
}

static int is_possible(size_t i, size_t end) {
  if (strstr(creations[i].path, "/samplers/") != NULL)
    return ends[end].status == 404; /* the others only leave a fact unknown */
  return ends[end].when == SUBMISSION || creations[i].is_job;
}

TEST(B18_an_error_of_a_creation_names_the_model_or_the_path) {
  for (size_t i = 0; i < N_CREATIONS; i++)
    for (size_t end = 0; end < N_ENDS; end++) {
      outcome_t outcome;
      script_t script;
      char expected[160];

      if (!is_possible(i, end))
        continue;
      script_open(&script);
      mock_on(script.mock, NULL,
              ends[end].when == SUBMISSION ? creations[i].path
                                           : "/api/v1/retrieve_future",
              refuse, &end);
      outcome_of(&outcome, creations[i].start(&script));
      while (outcome.n_done == 0)
        script_advance(&script, 5 * 60000);
      CHECK_INT(outcome.status, ends[end].err);
      snprintf(expected, sizeof(expected), "%s%s%s: ", creations[i].name,
               ends[end].names ? " of " : "",
               ends[end].names ? creations[i].thing : "");
      CHECK_MEM(outcome.text, strlen(expected), expected, strlen(expected));
      CHECK(strstr(outcome.text, ends[end].words) != NULL);
      CHECK_STR(tnk_promise_error(outcome.promise)->message, ends[end].words);
      CHECK_INT(tnk_promise_error(outcome.promise)->http_status,
                ends[end].status);
      if (ends[end].when == SUBMISSION && i < 2)
        CHECK_STR(outcome.text + strlen(outcome.text) -
                      strlen("; it was not run"),
                  "; it was not run");
      outcome_drop(&outcome);
      script_close(&script);
    }
}

/* ---- What the service says is enough ---- */

static void say(mock_request_t *request, void *user) {
  mock_reply_json(request, 400, user);
}

TEST(B18_a_name_that_the_service_says_is_not_said_twice) {
  outcome_t outcome;
  script_t script;

  script_open(&script);
  mock_on(script.mock, NULL, "/api/v1/create_model", say,
          (void *)(uintptr_t) "{\"detail\":\"" MODEL " is unknown\"}");
  script_fails(&script, &outcome, lora(&script), TNK_EREQUEST);
  CHECK(strncmp(outcome.text, "create_lora: ", 13) == 0);
  CHECK(strstr(strstr(outcome.text, MODEL) + 1, MODEL) == NULL);
  outcome_drop(&outcome);
  script_close(&script);
}

/* A name of any length and with any bytes makes a sentence of one line. */
TEST(B18_a_name_is_cleaned_and_cut_in_an_error) {
  tnk_lora_options_t options = TNK_LORA_OPTIONS_INIT;
  char name[5000];
  outcome_t outcome;
  script_t script;

  memset(name, 'x', sizeof(name) - 1);
  name[sizeof(name) - 1] = '\0';
  memcpy(name, "a\nb\033[1m", 8);
  name[8] = 'c';
  options.base_model = name;
  script_open(&script);
  mock_on(script.mock, NULL, "/api/v1/create_model", say,
          (void *)(uintptr_t) "{\"detail\":\"no\"}");
  script_fails(&script, &outcome,
               tnk_service_create_lora(script.service, &options), TNK_EREQUEST);
  CHECK(strstr(outcome.text, "create_lora of a b ") == outcome.text);
  CHECK(strpbrk(outcome.text, "\n\033") == NULL);
  CHECK(strlen(tnk_promise_text(outcome.promise)) < 2 * TNK__MAX_ERROR_TEXT);
  CHECK(strstr(tnk_promise_text(outcome.promise), ": no; it was not run") !=
        NULL);
  outcome_drop(&outcome);
  script_close(&script);
}
