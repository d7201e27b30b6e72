/* SPDX-License-Identifier: MIT */
#include "lib/wire/message/sampler_text.h"
#include "task/recover.h"

/* Samplers that the server has lost, and the samples that were under way. */

TEST(Q1_samplers_are_made_again_from_what_they_were_made_of) {
  mend_t mend;
  script_t *script = &mend.script;
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;
  outcome_t made;
  outcome_t unnamed;
  outcome_t sample;
  int n_lost = 0;

  script_open_with(script, options_of(&mend));
  script_train(script);
  options.model_path = "tinker://run/sampler_weights/a";
  script_ok(script, &made,
            tnk_service_create_sampling(script->service, &options));
  script->sampling = tnk_promise_sampling(made.promise);
  script_ok(script, &unnamed,
            tnk_training_save_weights_and_get_sampling(
                script->training, TNK_SAMPLING_SNAPSHOT, NULL));
  mock_json(script->mock, "POST", sampler_path, 200,
            "{\"sampling_session_id\":\"sampler-1\"}");
  mock_json(script->mock, "GET", "/api/v1/samplers/sampler-1", 200,
            "{\"sampler_id\":\"sampler-1\",\"base_model\":\"base\"}");
  restart(script);
  for (int i = 0; i < mend.n; i++)
    n_lost += mend.events[i].kind == TNK_RECOVERY_EXHAUSTED &&
              mend.events[i].has_sampling &&
              strcmp(mend.events[i].client, "e-1") == 0;
  CHECK_INT(n_lost, 1);
  CHECK_STR(tnk_sampling_id(script->sampling), "sampler-1");
  CHECK(
      strstr(
          (const char *)mock_find(script->mock, "POST", sampler_path, 1)->body,
          "tinker://run/sampler_weights/a") != NULL);
  script_ok(script, &sample, script_sample(script));
  script_check_sent(script, script->n_sent - 1, "asample", 0);
  outcome_drop(&sample);
  outcome_drop(&made);
  outcome_drop(&unnamed);
  script_close(script);
}

static const char sample_path[] = "/api/v1/asample";

/* The server that comes back has another sampler. */
static void new_sampler(script_t *script, int status) {
  mock_json(script->mock, "POST", sampler_path, status,
            "{\"sampling_session_id\":\"a-new-sampler-1\"}");
  mock_json(script->mock, "GET", "/api/v1/samplers/a-new-sampler-1", 200,
            "{\"sampler_id\":\"a-new-sampler-1\",\"base_model\":\"base\"}");
}

/* Two samples, of which the first is accepted and the second is on the wire. */
static void sample_two(mend_t *mend, tnk_service_options_t options,
                       outcome_t *outcomes) {
  script_t *script = &mend->script;

  script_open_with(script, options);
  script_sampler(script);
  mock_on(script->mock, "POST", poll_path, mock_hold, NULL);
  mend->first = seeded(script, 101);
  outcome_of(&outcomes[0], tnk_promise_ref(mend->first));
  while (mock_n_held(script->mock) < 1)
    mock_turns(script->mock, 1);
  mock_on(script->mock, "POST", sample_path, mock_hold, NULL);
  outcome_of(&outcomes[1], seeded(script, 102));
  while (mock_n_held(script->mock) < 2)
    mock_turns(script->mock, 1);
}

/* Among the submissions from the `first` on, in whatever order they came. */
static void check_resent(const script_t *script, size_t first, const char *seed,
                         const char *number) {
  const size_t end = mock_count(script->mock, "POST", sample_path);
  const char *body = NULL;

  for (size_t i = first; i < end && body == NULL; i++) {
    body = (const char *)mock_find(script->mock, "POST", sample_path, i)->body;
    body = strstr(body, seed) != NULL ? body : NULL;
  }
  CHECK(body != NULL);
  CHECK(strstr(body, number) != NULL);
  CHECK(strstr(body, "\"sampling_session_id\":\"a-new-sampler-1\"") != NULL);
}

TEST(Q1_samples_in_flight_go_to_the_new_sampler_with_their_seeds) {
  mend_t mend;
  script_t *script = &mend.script;
  outcome_t outcomes[3];
  char text[256];
  size_t n;

  sample_two(&mend, options_of(&mend), outcomes);
  new_sampler(script, 200);
  mock_once(script->mock, "POST", sampler_path, mock_hold, NULL);
  restart(script);
  CHECK_INT(outcomes[0].n_done + outcomes[1].n_done, 0);
  tnk_promise_explain(mend.first, text, sizeof(text));
  CHECK(strstr(text, "waits for its sampler to be made again") != NULL);
  /* One that is called meanwhile waits as well. */
  outcome_of(&outcomes[2], seeded(script, 103));
  script_turns(script);
  n = mock_count(script->mock, "POST", sample_path);
  mock_on(script->mock, "POST", sample_path, script_accept, script);
  mock_on(script->mock, "POST", poll_path, script_result, script);
  mock_release(script->mock, 200,
               "{\"sampling_session_id\":\"a-new-sampler-1\"}");
  for (int i = 0; i < 3; i++)
    outcome_ok(script, &outcomes[i]);
  CHECK_INT(mock_count(script->mock, "POST", sample_path), n + 3);
  check_resent(script, n, "\"seed\":101", "\"seq_id\":0");
  check_resent(script, n, "\"seed\":102", "\"seq_id\":1");
  check_resent(script, n, "\"seed\":103", "\"seq_id\":2");
  tnk_promise_unref(mend.first);
  outcome_drop_all(outcomes, 3);
  script_close(script);
}

TEST(Q1_samples_of_a_sampler_that_cannot_be_made_again_are_rejected) {
  mend_t mend;
  script_t *script = &mend.script;
  outcome_t outcomes[2];

  sample_two(&mend, options_of(&mend), outcomes);
  new_sampler(script, 403);
  restart(script);
  for (int i = 0; i < 2; i++) {
    outcome_fails(script, &outcomes[i], TNK_ESESSION);
    CHECK(strstr(outcomes[i].text, "it could not be created again") != NULL);
  }
  tnk_promise_unref(mend.first);
  outcome_drop_all(outcomes, 2);
  script_close(script);
}

TEST(Q1_samples_are_rejected_when_there_is_no_new_session) {
  mend_t mend;
  script_t *script = &mend.script;
  tnk_service_options_t options = options_of(&mend);
  outcome_t outcomes[2];

  options.recovery_attempts = 1;
  sample_two(&mend, options, outcomes);
  mock_json_once(script->mock, "POST", session_path, 403, "{}");
  restart(script);
  for (int i = 0; i < 2; i++)
    outcome_fails(script, &outcomes[i], TNK_ESESSION);
  tnk_promise_unref(mend.first);
  outcome_drop_all(outcomes, 2);
  script_close(script);
}

TEST(Q1_samples_that_are_not_to_be_repeated_are_not) {
  mend_t mend;
  script_t *script = &mend.script;
  tnk_service_options_t options = options_of(&mend);
  outcome_t outcomes[2];

  options.retry_samples = TNK_NO;
  sample_two(&mend, options, outcomes);
  new_sampler(script, 200);
  restart(script);
  outcome_fails(script, &outcomes[0], TNK_ESESSION);
  script_settle(script, &outcomes[1]); /* perhaps for another reason before */
  CHECK(outcomes[1].status != TNK_OK);
  for (size_t i = 0; i < mock_count(script->mock, "POST", sample_path); i++)
    CHECK(
        strstr(
            (const char *)mock_find(script->mock, "POST", sample_path, i)->body,
            "a-new-sampler-1") == NULL);
  tnk_promise_unref(mend.first);
  outcome_drop_all(outcomes, 2);
  script_close(script);
}

TEST(Q1_samples_that_wait_for_their_sampler_can_be_canceled_and_closed) {
  mend_t mend;
  script_t *script = &mend.script;
  outcome_t outcomes[2];

  sample_two(&mend, options_of(&mend), outcomes);
  mock_on(script->mock, "POST", sampler_path, mock_hold, NULL);
  restart(script);
  tnk_promise_cancel(mend.first);
  outcome_fails(script, &outcomes[0], TNK_ECANCELED);
  script_close(script);
  CHECK_INT(outcomes[1].status, TNK_ECLOSED);
  tnk_promise_unref(mend.first);
  outcome_drop_all(outcomes, 2);
}

/* ---- A sample finds out before a heartbeat does ---- */

/* The sampler of the old session is not known any more. */
static void sample_of_old(mock_request_t *request, void *user) {
  if (strstr((const char *)request->body, "\"sampler-0\"") != NULL)
    mock_reply_json(request, 404, "{}");
  else
    script_accept(request, user);
}

/* A sampler whose session has been answered one heartbeat. */
static void open_beaten(mend_t *mend, tnk_service_options_t options) {
  script_t *script = &mend->script;

  script_open_with(script, options);
  script_sampler(script);
  script_advance(script, 10000);
  CHECK_INT(mock_count(script->mock, "POST", beat_path), 1);
}

TEST(Q1_a_sample_that_finds_the_session_gone_goes_to_a_new_one) {
  mend_t mend;
  script_t *script = &mend.script;
  outcome_t outcomes[2];

  open_beaten(&mend, options_of(&mend));
  mock_on(script->mock, "POST", beat_path, beat, NULL);
  mock_json(script->mock, "POST", session_path, 200,
            "{\"session_id\":\"session-1\"}");
  mock_json(script->mock, "POST", "/api/v1/sessions/session-1/finish", 200,
            "{}");
  new_sampler(script, 200);
  mock_on(script->mock, "POST", sample_path, sample_of_old, script);
  outcome_of(&outcomes[0], seeded(script, 101));
  outcome_of(&outcomes[1], seeded(script, 102));
  for (int i = 0; i < 2; i++)
    outcome_ok(script, &outcomes[i]);
  /* No time has passed: the service was asked, once for both. */
  CHECK_INT(mock_count(script->mock, "POST", beat_path), 2);
  CHECK_INT(mock_count(script->mock, "POST", sample_path), 4);
  check_resent(script, 2, "\"seed\":101", "\"seq_id\":");
  check_resent(script, 2, "\"seed\":102", "\"seq_id\":");
  outcome_drop_all(outcomes, 2);
  script_close(script);
}

TEST(Q1_a_sample_is_asked_about_twice_where_the_session_is_there) {
  mend_t mend;
  script_t *script = &mend.script;
  tnk_promise_t *promise;
  outcome_t outcome;
  char text[256];

  open_beaten(&mend, options_of(&mend));
  mock_on(script->mock, "POST", sample_path, sample_of_old, script);
  mock_once(script->mock, "POST", beat_path, mock_hold, NULL);
  promise = seeded(script, 101);
  outcome_of(&outcome, tnk_promise_ref(promise));
  while (mock_n_held(script->mock) < 1)
    mock_turns(script->mock, 1);
  tnk_promise_explain(promise, text, sizeof(text));
  CHECK(strstr(text, "asked whether the session still exists") != NULL);
  mock_release(script->mock, 200, "{}");
  for (int i = 0; i < 4; i++)
    script_later(script, 1000); /* repeated failures are slowed down */
  outcome_fails(script, &outcome, TNK_ENOTFOUND);
  CHECK_INT(mock_count(script->mock, "POST", beat_path), 4);
  CHECK_INT(mock_count(script->mock, "POST", sample_path), 3);
  CHECK_INT(mend.n, 0);
  tnk_promise_unref(promise);
  outcome_drop(&outcome);
  script_close(script);
}

TEST(Q1_a_sample_that_was_not_found_by_mistake_is_sent_again) {
  mend_t mend;
  script_t *script = &mend.script;
  outcome_t outcome;

  open_beaten(&mend, options_of(&mend));
  mock_json_once(script->mock, "POST", sample_path, 404, "{}");
  script_ok(script, &outcome, seeded(script, 101));
  CHECK_INT(mock_count(script->mock, "POST", sample_path), 2);
  outcome_drop(&outcome);
  script_close(script);
}

/* The question is lost, and so is the next heartbeat. */
TEST(Q1_a_sample_in_doubt_waits_for_an_answer_about_the_session) {
  mend_t mend;
  script_t *script = &mend.script;
  outcome_t outcome;

  open_beaten(&mend, options_of(&mend));
  mock_json_once(script->mock, "POST", sample_path, 404, "{}");
  mock_on(script->mock, "POST", beat_path, mock_reset, NULL);
  outcome_of(&outcome, seeded(script, 101));
  script_turns(script);
  script_advance(script, 10000);
  CHECK_INT(outcome.n_done, 0);
  CHECK_INT(mock_count(script->mock, "POST", sample_path), 1);
  mock_json(script->mock, "POST", beat_path, 200, "{}");
  script_advance(script, 10000);
  outcome_ok(script, &outcome);
  CHECK_INT(mock_count(script->mock, "POST", sample_path), 2);
  outcome_drop(&outcome);
  script_close(script);
}

/* One that is on its way may have been answered before the restart. */
TEST(Q1_a_heartbeat_that_was_under_way_is_followed_by_another) {
  mend_t mend;
  script_t *script = &mend.script;
  outcome_t outcome;

  open_beaten(&mend, options_of(&mend));
  mock_once(script->mock, "POST", beat_path, mock_hold, NULL);
  script_advance(script, 10000);
  CHECK_INT(mock_n_held(script->mock), 1);
  mock_on(script->mock, "POST", beat_path, beat, NULL);
  mock_json(script->mock, "POST", session_path, 200,
            "{\"session_id\":\"session-1\"}");
  mock_json(script->mock, "POST", "/api/v1/sessions/session-1/finish", 200,
            "{}");
  new_sampler(script, 200);
  mock_on(script->mock, "POST", sample_path, sample_of_old, script);
  outcome_of(&outcome, seeded(script, 101));
  while (mock_count(script->mock, "POST", sample_path) < 1)
    mock_turns(script->mock, 1);
  script_turns(script);
  CHECK_INT(outcome.n_done, 0);
  mock_release(script->mock, 200, "{}");
  outcome_ok(script, &outcome);
  CHECK_INT(mock_count(script->mock, "POST", sample_path), 2);
  outcome_drop(&outcome);
  script_close(script);
}

TEST(Q1_a_sample_that_is_not_found_fails_at_once_without_recovery) {
  mend_t mend;
  script_t *script = &mend.script;
  tnk_service_options_t options = options_of(&mend);
  outcome_t outcome;

  options.recovery = TNK_NO;
  open_beaten(&mend, options);
  mock_json_once(script->mock, "POST", sample_path, 404, "{}");
  script_fails(script, &outcome, seeded(script, 101), TNK_ENOTFOUND);
  CHECK_INT(mock_count(script->mock, "POST", sample_path), 1);
  outcome_drop(&outcome);
  script_close(script);
}

TEST(Q1_a_sample_in_doubt_can_be_canceled_and_closed) {
  mend_t mend;
  script_t *script = &mend.script;
  tnk_promise_t *promise;
  outcome_t outcomes[2];

  open_beaten(&mend, options_of(&mend));
  mock_on(script->mock, "POST", sample_path, sample_of_old, script);
  mock_on(script->mock, "POST", beat_path, mock_hold, NULL);
  promise = seeded(script, 101);
  outcome_of(&outcomes[0], tnk_promise_ref(promise));
  outcome_of(&outcomes[1], seeded(script, 102));
  while (mock_n_held(script->mock) < 1)
    mock_turns(script->mock, 1);
  script_turns(script);
  tnk_promise_cancel(promise);
  outcome_fails(script, &outcomes[0], TNK_ECANCELED);
  script_close(script);
  CHECK_INT(outcomes[1].status, TNK_ECLOSED);
  tnk_promise_unref(promise);
  outcome_drop_all(outcomes, 2);
}

/* A sampler of another service lives in a session of its own, which is not
 * lost with ours. */
TEST(Q1_a_sampler_of_another_service_is_not_made_again) {
  const tnk__sampler_text_t theirs = {.session_id = "theirs",
                                      .sampling_session_id = "theirs:sample:0",
                                      .base_model = "base"};
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;
  tnk__sampler_text_t sampler = theirs;
  mend_t mend;
  script_t *script = &mend.script;
  outcome_t outcome;
  tnk__buf_t text;

  open_trained(&mend, options_of(&mend));
  sampler.base_url = script->service->config.url.text;
  tnk__buf_init(&text, tnk__allocator_default(), TNK__MIB);
  tnk__sampler_text_write(&text, &sampler);
  options.exported = tnk__buf_cstr(&text);
  script_made(script, tnk_service_create_sampling(script->service, &options));
  tnk__buf_deinit(&text);
  restart(script);
  script_ok(script, &outcome, script_sample(script));
  outcome_drop(&outcome);
  CHECK(
      strstr((const char *)mock_find(script->mock, "POST", "/api/v1/asample", 0)
                 ->body,
             "\"theirs:sample:0\"") != NULL);
  CHECK_INT(mock_count(script->mock, "POST", sampler_path), 0);
  CHECK(mend.n > 0);
  for (int i = 0; i < mend.n; i++)
    CHECK(!mend.events[i].has_sampling);
  CHECK_INT(mend.events[mend.n - 1].kind, TNK_RECOVERY_COMPLETED);
  script_close(script);
}
