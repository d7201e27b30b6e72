/* SPDX-License-Identifier: MIT */
/* Sampling clients: making, using from callbacks, closing. */
#include "task/script.h"

static const char sample_path[] = "/api/v1/asample";
static const char future_path[] = "/api/v1/retrieve_future";

/* ---- Making ---- */

enum { N_CREATED = 200 };

typedef struct {
  script_t *script;
  outcome_t samples[N_CREATED];
  int n;
} made_t;

static void sample_at_once(tnk_promise_t *promise, int status, void *user) {
  made_t *made = user;
  tnk_sampling_t *sampling = tnk_promise_sampling(promise);

  CHECK_INT(status, TNK_OK);
  CHECK(sampling != NULL);
  CHECK_STR(tnk_sampling_id(sampling), "sampler-0");
  CHECK_STR(tnk_sampling_base_model(sampling), "base");
  outcome_of(&made->samples[made->n++],
             tnk_sampling_sample(sampling, script_prompt(), NULL, NULL));
}

TEST_LIMIT(S4_1_a_client_is_ready_when_its_promise_is, 20) {
  static made_t made;
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;
  script_t script;

  options.base_model = "base";
  script_open(&script);
  for (int i = 0; i < N_CREATED; i++)
    tnk_then(tnk_service_create_sampling(script.service, &options),
             sample_at_once, &made);
  mock_wait_flag(script.mock, &made.n, N_CREATED);
  for (int i = 0; i < N_CREATED; i++) {
    outcome_ok(&script, &made.samples[i]);
    outcome_drop(&made.samples[i]);
  }
  /* Each client counts for itself. */
  for (size_t i = 0; i < N_CREATED; i++)
    CHECK_INT(script.sent[i].seq, 0);
  script_close(&script);
}

TEST(S3_10_a_client_that_cannot_be_made_is_nowhere) {
  static const struct {
    int status;
    int code;
  } cases[] = {{401, TNK_EAUTH},
               {404, TNK_ENOTFOUND},
               {422, TNK_EREQUEST},
               {200, TNK_EPROTO}}; /* an answer without an id */
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;
  script_t script;
  outcome_t outcome;

  options.base_model = "base";
  script_open(&script);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    mock_json_once(script.mock, "POST", "/api/v1/create_sampling_session",
                   cases[i].status, "{\"detail\":\"no\"}");
    outcome_of(&outcome, tnk_service_create_sampling(script.service, &options));
    outcome_fails(&script, &outcome, cases[i].code);
    CHECK(tnk_promise_sampling(outcome.promise) == NULL);
    CHECK(tnk__list_empty(&script.service->session.registry.samplings));
    CHECK(tnk__list_empty(&script.service->session.registry.service_ops));
    outcome_drop(&outcome);
  }
  mock_on(script.mock, "POST", "/api/v1/create_sampling_session", mock_hold,
          NULL);
  outcome_of(&outcome, tnk_service_create_sampling(script.service, &options));
  for (int i = 0; i < 40 && outcome.n_done == 0; i++) {
    script_turns(&script);
    script_advance(&script, 60000);
  }
  outcome_fails(&script, &outcome, TNK_ETIMEDOUT);
  CHECK(tnk__list_empty(&script.service->session.registry.samplings));
  outcome_drop(&outcome);
  script_close(&script);
}

static long long sampling_seqs[8];
static size_t n_sampling_seqs;

static void note_create(mock_request_t *request, void *user) {
  (void)user;
  sampling_seqs[n_sampling_seqs++] =
      script_number(request, "sampling_session_seq_id");
  mock_reply_json(request, 200, "{\"sampling_session_id\":\"s\"}");
}

static void note_save(mock_request_t *request, void *user) {
  sampling_seqs[n_sampling_seqs++] =
      script_number(request, "sampling_session_seq_id");
  script_accept(request, user);
}

static long long model_seqs[4];
static size_t n_model_seqs;

static void note_model(mock_request_t *request, void *user) {
  model_seqs[n_model_seqs++] = script_number(request, "model_seq_id");
  script_accept(request, user);
}

TEST(S3_3_a_session_counts_its_clients) {
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_on(script.mock, "POST", "/api/v1/create_sampling_session", note_create,
          NULL);
  mock_on(script.mock, "POST", "/api/v1/save_weights_for_sampler", note_save,
          &script);
  mock_on(script.mock, "POST", "/api/v1/create_model", note_model, &script);
  script_sampler(&script);
  script_train(&script);
  script_train(&script);
  script_ok(&script, &outcome,
            tnk_training_save_weights_and_get_sampling(
                script.training, TNK_SAMPLING_SNAPSHOT, NULL));
  outcome_drop(&outcome);
  script_sampler(&script);
  CHECK_INT(n_sampling_seqs, 3);
  for (size_t i = 0; i < n_sampling_seqs; i++)
    CHECK_INT(sampling_seqs[i], (long long)i);
  CHECK_INT(n_model_seqs, 2);
  CHECK_INT(model_seqs[0], 0);
  CHECK_INT(model_seqs[1], 1);
  script_close(&script);
}

TEST(S3_8_a_save_may_be_answered_at_once) {
  static const char *const answers[] = {
      "{\"path\":\"tinker://r/sampler_weights/x\",\"sampling_session_id\":"
      "\"e-7\"}",
      "{\"sampling_session_id\":\"e-7\",\"path\":null}"};

  for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
    script_t script;
    outcome_t outcome;
    script_open_train(&script);
    mock_json(script.mock, "POST", "/api/v1/save_weights_for_sampler", 200,
              answers[i]);
    script_ok(&script, &outcome,
              tnk_training_save_weights_and_get_sampling(
                  script.training, TNK_SAMPLING_SNAPSHOT, NULL));
    CHECK_STR(tnk_sampling_id(tnk_promise_sampling(outcome.promise)), "e-7");
    outcome_drop(&outcome);
    script_close(&script);
  }
}

TEST(S3_8_a_save_of_a_server_that_only_knows_paths) {
  script_t script;
  outcome_t outcome;
  const mock_request_t *create;

  script_open_train(&script);
  mock_json(script.mock, "POST", "/api/v1/save_weights_for_sampler", 200,
            "{\"path\":\"tinker://r/sampler_weights/x\"}");
  script_ok(&script, &outcome,
            tnk_training_save_weights_and_get_sampling(
                script.training, TNK_SAMPLING_SNAPSHOT, NULL));
  create = mock_find(script.mock, "POST", "/api/v1/create_sampling_session", 0);
  CHECK(create != NULL);
  CHECK(strstr((const char *)create->body, "tinker://r/sampler_weights/x"));
  CHECK_STR(tnk_sampling_id(tnk_promise_sampling(outcome.promise)),
            "sampler-0");
  outcome_drop(&outcome);
  script_close(&script);
}

/* ---- Calls from callbacks ---- */

typedef struct {
  script_t *script;
  int n_left;
  int n_done;
} again_t;

static void sample_again(tnk_promise_t *promise, int status, void *user) {
  again_t *again = user;

  (void)promise;
  CHECK_INT(status, TNK_OK);
  again->n_done++;
  if (again->n_left-- > 0)
    tnk_then(script_sample(again->script), sample_again, again);
}

static void on_queue(const char *client, tnk_queue_state_t state,
                     const char *reason, void *user) {
  again_t *again = user;

  CHECK_STR(client, "sampler-0");
  CHECK_INT(state, TNK_QUEUE_PAUSED_CAPACITY);
  CHECK(reason != NULL);
  tnk_then(script_sample(again->script), sample_again, again);
}

TEST(S4_12_samples_from_callbacks_with_one_place) {
  script_t script;
  again_t again = {&script, 20, 0};
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  const tnk__session_t *session;

  options.on_queue_state = on_queue;
  options.queue_state_user = &again;
  script_open_with(&script, options);
  script_flags(&script, "{\"sample_max_concurrent_requests\":1,"
                        "\"sample_dispatch_bytes_semaphore_size\":0}");
  script_sampler(&script);
  mock_json_once(script.mock, "POST", future_path, 408,
                 "{\"queue_state\":\"paused_capacity\"}");
  tnk_then(script_sample(&script), sample_again, &again);
  for (int i = 0; i < 50 && again.n_done < 22; i++)
    script_advance(&script, 1000);
  /* The first, 20 from completions, and the observer's. */
  CHECK_INT(again.n_done, 22);
  session = &script.service->session;
  CHECK_INT(session->limits.sample_running.n_held, 0);
  CHECK_INT(session->limits.sample_slots.n_held, 0);
  CHECK_INT(session->limits.sample_bytes.balance,
            session->limits.sample_bytes.size);
  script_close(&script);
}

static void close_client(tnk_promise_t *promise, int status, void *user) {
  script_t *script = user;

  (void)promise;
  CHECK_INT(status, TNK_OK);
  tnk_then(script_sample(script), NULL, NULL);
  tnk_sampling_close(script->sampling, NULL, NULL);
}

TEST(S4_12_a_client_closed_in_the_callback_of_its_sample) {
  script_t script;
  outcome_t outcomes[10];
  tnk_promise_t *first;

  script_open(&script);
  script_flags(&script, "{\"sample_max_concurrent_requests\":1}");
  script_sampler(&script);
  first = script_sample(&script);
  tnk_then(tnk_promise_ref(first), close_client, &script);
  outcome_of(&outcomes[0], first);
  for (int i = 1; i < 10; i++)
    outcome_of(&outcomes[i], script_sample(&script));
  outcome_ok(&script, &outcomes[0]);
  for (int i = 1; i < 10; i++)
    outcome_fails(&script, &outcomes[i], TNK_ECLOSED);
  CHECK_INT(script.service->session.limits.sample_running.n_held, 0);
  outcome_drop_all(outcomes, 10);
  script_close(&script);
}

/* ---- Closing ---- */

static int n_closed;

static void count_closed(tnk_promise_t *promise, int status, void *user) {
  (void)promise;
  (void)user;
  CHECK_INT(status, TNK_ECLOSED);
  n_closed++;
}

static void on_gone(void *user) {
  ++*(int *)user;
}

TEST_LIMIT(S3_17_closing_with_many_under_way_and_more_queued, 20) {
  enum { N = 1400 };
  script_t script;
  tnk_stats_t stats = TNK_STATS_INIT;
  int is_gone = 0;

  script_open(&script);
  script_flags(&script, "{\"sample_max_concurrent_requests\":400}");
  script_sampler(&script);
  mock_on(script.mock, "POST", future_path, mock_hold, NULL);
  for (int i = 0; i < N; i++)
    tnk_then(script_sample(&script), count_closed, NULL);
  while (mock_n_held(script.mock) < 400)
    uv_run(&script.uv, UV_RUN_ONCE);
  script_turns(&script);
  CHECK_INT(script.n_sent, 400);
  tnk_sampling_close(script.sampling, on_gone, &is_gone);
  CHECK_INT(n_closed, 0);
  mock_wait_flag(script.mock, &is_gone, 1);
  mock_wait_flag(script.mock, &n_closed, N);
  script_turns(&script);
  CHECK_INT(script.n_sent, 400);
  tnk_service_stats(&stats, script.service);
  CHECK_INT(stats.n_pending, 0);
  CHECK_INT(script.service->session.limits.sample_running.n_held, 0);
  CHECK_INT(script.service->session.limits.sample_bytes.balance,
            script.service->session.limits.sample_bytes.size);
  script_close(&script);
}

TEST(S3_17_other_clients_of_the_service_go_on) {
  script_t script;
  tnk_sampling_t *first;
  outcome_t outcomes[3];

  script_open(&script);
  script_flags(&script, "{\"sample_max_concurrent_requests\":1}");
  first = script_sampler(&script);
  script_sampler(&script);
  mock_once(script.mock, "POST", sample_path, mock_hold, NULL);
  outcome_of(&outcomes[0],
             tnk_sampling_sample(first, script_prompt(), NULL, NULL));
  outcome_of(&outcomes[1],
             tnk_sampling_sample(first, script_prompt(), NULL, NULL));
  outcome_of(&outcomes[2], script_sample(&script));
  script_turns(&script);
  CHECK_INT(outcomes[2].n_done, 0);
  tnk_sampling_close(first, NULL, NULL);
  outcome_fails(&script, &outcomes[0], TNK_ECLOSED);
  outcome_fails(&script, &outcomes[1], TNK_ECLOSED);
  outcome_ok(&script, &outcomes[2]);
  outcome_drop_all(outcomes, 3);
  script_close(&script);
}

TEST(S4_10_a_pause_told_after_the_close_is_told_to_nobody) {
  enum { N = 200 };
  script_t script;

  script_open(&script);
  mock_on(script.mock, "POST", future_path, mock_hold, NULL);
  for (int i = 0; i < N; i++) {
    outcome_t outcome;
    script_sampler(&script);
    outcome_of(&outcome, script_sample(&script));
    while (mock_n_held(script.mock) == 0)
      uv_run(&script.uv, UV_RUN_ONCE);
    tnk_sampling_close(script.sampling, NULL, NULL);
    CHECK_INT(
        mock_release(script.mock, 408, "{\"queue_state\":\"paused_capacity\"}"),
        1);
    outcome_fails(&script, &outcome, TNK_ECLOSED);
    outcome_drop(&outcome);
    script_turns(&script);
    CHECK(tnk__list_empty(&script.service->session.registry.samplings));
  }
  CHECK_INT(script.n_warnings, 0);
  script_close(&script);
}

/* ---- Begun by those who are told of the close ---- */

typedef struct {
  script_t *script;
  outcome_t outcomes[4];
  int n;
  int n_released;
} late_t;

static void on_released(void *user) {
  ((late_t *)user)->n_released++;
}

/* The client is not valid any more, but its memory is still there. */
static void sample_late(tnk_promise_t *promise, int status, void *user) {
  late_t *late = user;

  (void)promise;
  CHECK_INT(status, TNK_ECLOSED);
  outcome_of(&late->outcomes[late->n++], script_sample(late->script));
}

static void train_late(tnk_promise_t *promise, int status, void *user) {
  late_t *late = user;
  tnk_pass_options_t lent = TNK_PASS_OPTIONS_INIT;

  (void)promise;
  CHECK_INT(status, TNK_ECLOSED);
  lent.release = on_released;
  lent.release_user = late;
  outcome_of(&late->outcomes[late->n++], script_step(late->script));
  outcome_of(&late->outcomes[late->n++],
             tnk_training_forward_backward(late->script->training,
                                           script_data(1), 1, &lent));
}

TEST(S4_1_what_is_begun_while_a_client_closes_is_refused) {
  static late_t late;
  script_t script;

  script_open_train(&script);
  script_sampler(&script);
  late.script = &script;
  tnk_then(script_sample(&script), sample_late, &late);
  tnk_then(script_step(&script), train_late, &late);
  tnk_training_close(script.training, NULL, NULL);
  tnk_sampling_close(script.sampling, NULL, NULL);
  for (int i = 0; i < 4; i++)
    script_turns(&script);
  CHECK_INT(late.n, 3);
  CHECK_INT(late.n_released, 1);
  for (int i = 0; i < late.n; i++) {
    outcome_fails(&script, &late.outcomes[i], TNK_ECLOSED);
    CHECK_INT(tnk_promise_error(late.outcomes[i].promise)->ran, TNK_RAN_NO);
  }
  outcome_drop_all(late.outcomes, 3);
  script_close(&script);
}
