/* SPDX-License-Identifier: MIT */
/* Clients of a sampler that exists already: exported, imported, cloned. */
#include "lib/wire/message/sampler_text.h"
#include "task/script.h"

static const char sample_path[] = "/api/v1/asample";
static const char join_path[] = "/api/v1/join_sampling_session";
static const char beat_path[] = "/api/v1/session_heartbeat";
static const char joins[] = "{\"sample_join_sampling_session\":true}";

enum { CLONE = 1000000000 };

/* A sampler that somebody else has made. */
static const char *theirs(const script_t *script, const char *url) {
  static _Thread_local char text[1024];
  const tnk__sampler_text_t sampler = {
      .session_id = "theirs",
      .sampling_session_id = "theirs:sample:0",
      .base_url = url != NULL ? url : script->service->config.url.text,
      .base_model = "base"};
  tnk__buf_t buf;

  tnk__buf_init(&buf, tnk__allocator_default(), TNK__MIB);
  tnk__sampler_text_write(&buf, &sampler);
  snprintf(text, sizeof(text), "%.*s", (int)buf.len, (const char *)buf.data);
  tnk__buf_deinit(&buf);
  return text;
}

static tnk_promise_t *import(script_t *script, const char *text) {
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;

  options.exported = text;
  return tnk_service_create_sampling(script->service, &options);
}

static void open_with_flags(script_t *script, const char *flags) {
  script_open(script);
  if (flags != NULL)
    script_flags(script, flags);
  mock_json(script->mock, "POST", join_path, 200,
            "{\"type\":\"join_sampling_session\",\"client_counter\":3}");
}

/* Import theirs; it is the script's sampler from now on. */
static void open_joined(script_t *script, const char *flags) {
  open_with_flags(script, flags);
  script_made(script, import(script, theirs(script, NULL)));
}

static void sample_ok(script_t *script) {
  outcome_t outcome;

  script_ok(script, &outcome, script_sample(script));
  outcome_drop(&outcome);
}

static long long last_seq(const script_t *script) {
  CHECK(script->n_sent > 0);
  return script->sent[script->n_sent - 1].seq;
}

/* ---- Export ---- */

TEST(D18_an_export_tells_ids_and_no_secret) {
  tnk__sampler_text_t read = {0};
  tnk__arena_t arena;
  const char *text, *why;
  script_t script;

  script_open(&script);
  script_sampler(&script);
  text = tnk_sampling_export(script.sampling);
  CHECK(text != NULL);
  CHECK(tnk_sampling_export(script.sampling) == text);
  tnk__arena_init(&arena, tnk__allocator_default(), TNK__MIB);
  CHECK_INT(tnk__sampler_text_read(&read, &arena, text, &why), TNK_OK);
  CHECK_STR(read.session_id, "session-0");
  CHECK_STR(read.sampling_session_id, "sampler-0");
  CHECK_STR(read.base_model, "base");
  CHECK_STR(read.base_url, mock_url(script.mock));
  tnk__arena_deinit(&arena);
  CHECK(tnk_sampling_export(NULL) == NULL);
  tnk_sampling_close(script.sampling, NULL, NULL);
  CHECK(tnk_sampling_export(script.sampling) == NULL);
  script_close(&script);
}

TEST(D18_what_was_imported_is_exported_as_it_came) {
  script_t script;

  open_joined(&script, NULL);
  CHECK_STR(tnk_sampling_export(script.sampling), theirs(&script, NULL));
  script_close(&script);
}

/* ---- Import ---- */

TEST(D18_an_import_makes_no_session_and_has_numbers_of_its_own) {
  script_t script;
  long long first;

  open_joined(&script, NULL);
  CHECK_STR(tnk_sampling_id(script.sampling), "theirs:sample:0");
  CHECK_STR(tnk_sampling_base_model(script.sampling), "base");
  CHECK(tnk_service_session_id(script.service) == NULL);
  CHECK_INT(mock_count(script.mock, "POST", "/api/v1/create_session"), 0);
  CHECK_INT(mock_count(script.mock, "POST", join_path), 0);
  sample_ok(&script);
  first = last_seq(&script);
  CHECK_INT(first % CLONE, 0);
  CHECK(first / CLONE >= 1 && first / CLONE <= CLONE);
  sample_ok(&script);
  CHECK_INT(last_seq(&script), first + 1);
  /* The session is not ours to end. */
  tnk_service_close(script.service, script_closed, &script);
  mock_wait_flag(script.mock, &script.is_closed, 1);
  CHECK(mock_find(script.mock, "POST", "/api/v1/sessions/theirs/finish", 0) ==
        NULL);
  script_end(&script);
}

TEST(P4_9_a_server_that_numbers_clients_is_asked_once) {
  mock_request_t *request;
  script_t script;

  open_joined(&script, joins);
  CHECK_INT(mock_count(script.mock, "POST", join_path), 1);
  request = mock_find(script.mock, "POST", join_path, 0);
  CHECK_MEM(request->body, request->body_len,
            "{\"sampling_session_id\":\"theirs:sample:0\","
            "\"type\":\"join_sampling_session\"}",
            strlen("{\"sampling_session_id\":\"theirs:sample:0\","
                   "\"type\":\"join_sampling_session\"}"));
  sample_ok(&script);
  CHECK_INT(last_seq(&script), 3LL * CLONE);
  sample_ok(&script);
  CHECK_INT(last_seq(&script), 3LL * CLONE + 1);
  CHECK_INT(mock_count(script.mock, "POST", join_path), 1);
  script_close(&script);
}

/* ... whatever its flags say. */
TEST(P4_9_where_the_call_is_missing_the_number_is_drawn) {
  static const struct {
    int status;
    const char *json;
  } cases[] = {{404, "{\"detail\":\"Not Found\"}"},
               {404, "{}"},
               {405, "{\"detail\":\"Method Not Allowed\"}"},
               {400, "{\"detail\":\"unknown call\"}"}};

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    script_t script;

    open_with_flags(&script, joins);
    mock_json(script.mock, "POST", join_path, cases[i].status, cases[i].json);
    script_made(&script, import(&script, theirs(&script, NULL)));
    sample_ok(&script);
    CHECK_INT(last_seq(&script) % CLONE, 0);
    CHECK(last_seq(&script) >= CLONE);
    script_close(&script);
  }
}

TEST(D18_a_client_that_cannot_join_is_nowhere) {
  static const struct {
    int status;
    const char *json;
    int code;
  } cases[] = {
      {404, "{\"detail\":\"Sampling session not found: x\"}", TNK_ESESSION},
      {401, "{\"detail\":\"no\"}", TNK_EAUTH},
      {422, "{\"detail\":\"no\"}", TNK_EREQUEST},
      {200, "{}", TNK_EPROTO},
      {200, "{\"client_counter\":0}", TNK_EPROTO}};
  script_t script;
  outcome_t outcome;

  open_with_flags(&script, joins);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    mock_json_once(script.mock, "POST", join_path, cases[i].status,
                   cases[i].json);
    script_fails(&script, &outcome, import(&script, theirs(&script, NULL)),
                 cases[i].code);
    CHECK(tnk_promise_sampling(outcome.promise) == NULL);
    outcome_drop(&outcome);
    CHECK(tnk__list_empty(&script.service->session.registry.samplings));
    CHECK(tnk__list_empty(&script.service->session.registry.foreigners));
    CHECK(tnk__list_empty(&script.service->session.registry.service_ops));
  }
  script_close(&script);
}

TEST(D18_a_text_that_is_none_is_refused_with_a_sentence) {
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;
  script_t script;
  outcome_t outcome;

  script_open(&script);
  script_fails(&script, &outcome, import(&script, "nonsense"), TNK_EINVAL);
  CHECK(strstr(outcome.text, "exported is not a text of tnk_sampling_export(): "
                             "it was cut or changed on the way") != NULL);
  outcome_drop(&outcome);
  script_fails(&script, &outcome, import(&script, ""), TNK_EINVAL);
  outcome_drop(&outcome);
  options.exported = theirs(&script, NULL);
  options.base_model = "base";
  script_fails(&script, &outcome,
               tnk_service_create_sampling(script.service, &options),
               TNK_EINVAL);
  outcome_drop(&outcome);
  CHECK_INT(mock_n_requests(script.mock), 0);
  script_close(&script);
}

/* A text is anybody's: it must not say where a key goes. */
TEST(D18_the_address_in_a_text_is_not_obeyed) {
  script_t script;
  int n;

  open_with_flags(&script, NULL);
  n = script.n_warnings;
  script_made(&script, import(&script, theirs(&script, "http://127.0.0.1:1")));
  sample_ok(&script);
  CHECK_INT(script.n_warnings, n + 1);
  CHECK(strstr(script.last_log,
               "was exported where base_url is http://127.0.0.1:1") != NULL);
  script_close(&script);
}

/* ---- Clones ---- */

TEST(D18_clones_never_share_numbers) {
  enum { N = 200 };
  script_t script;
  outcome_t outcomes[N];
  tnk_sampling_t *first;

  script_open(&script);
  first = script_sampler(&script);
  for (int i = 0; i < N; i++)
    outcome_of(&outcomes[i], tnk_sampling_clone(first));
  for (int i = 0; i < N; i++)
    outcome_ok(&script, &outcomes[i]);
  sample_ok(&script);
  CHECK_INT(last_seq(&script), 0);
  for (int i = 0; i < N; i++) {
    script.sampling = tnk_promise_sampling(outcomes[i].promise);
    CHECK_STR(tnk_sampling_id(script.sampling), "sampler-0");
    sample_ok(&script);
    CHECK_INT(last_seq(&script) % CLONE, 0);
    for (size_t j = 0; j + 1 < script.n_sent; j++)
      CHECK(script.sent[j].seq != last_seq(&script));
  }
  CHECK_INT(mock_count(script.mock, "POST", "/api/v1/create_sampling_session"),
            1);
  /* The sampler's session is the service's own, which has its heartbeats. */
  CHECK(tnk__list_empty(&script.service->session.registry.foreigners));
  outcome_drop_all(outcomes, N);
  script_close(&script);
}

TEST(P8_6_a_clone_polls_under_its_own_number) {
  mock_request_t *request;
  script_t script;
  outcome_t outcome;

  open_with_flags(&script, "{\"sample_use_retrieve_futures\":true,"
                           "\"sample_join_sampling_session\":true}");
  mock_on(script.mock, "POST", "/api/v1/retrieve_futures", mock_hold, NULL);
  script_made(&script, import(&script, theirs(&script, NULL)));
  outcome_of(&outcome, script_sample(&script));
  mock_turns(script.mock, 60);
  request = mock_find(script.mock, "POST", "/api/v1/retrieve_futures", 0);
  CHECK_INT(script_number(request, "cloned_sampler_id"), 3);
  mock_reply_json(request, 200,
                  "{\"completions\":[{\"state\":\"finished\",\"request_id\":"
                  "\"asample:3000000000:0\"}],\"cursor\":1}");
  outcome_ok(&script, &outcome);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(D18_numbers_of_another_client_are_never_taken) {
  script_t script;
  outcome_t outcome;

  script_open(&script);
  script_sampler(&script)->next_seq = CLONE - 1;
  sample_ok(&script);
  CHECK_INT(last_seq(&script), CLONE - 1);
  script_fails(&script, &outcome, script_sample(&script), TNK_EFULL);
  CHECK(strstr(outcome.text, "tnk_sampling_clone()") != NULL);
  outcome_drop(&outcome);
  script_made(&script, tnk_sampling_clone(script.sampling));
  sample_ok(&script);
  CHECK(last_seq(&script) >= CLONE);
  script_close(&script);
}

/* ---- The session of somebody else ---- */

static size_t n_beats(const script_t *script, const char *id) {
  size_t n = 0;

  for (size_t i = 0; i < mock_count(script->mock, "POST", beat_path); i++)
    n += strstr(
             (const char *)mock_find(script->mock, "POST", beat_path, i)->body,
             id) != NULL;
  return n;
}

TEST(P4_4_the_session_is_kept_alive_while_a_client_is_there) {
  script_t script;
  tnk_sampling_t *first;

  open_joined(&script, NULL);
  first = script.sampling;
  script_made(&script, tnk_sampling_clone(first));
  script_later(&script, 10000);
  CHECK_INT(n_beats(&script, "\"theirs\""), 1);
  tnk_sampling_close(first, NULL, NULL);
  script_later(&script, 10000);
  CHECK_INT(n_beats(&script, "\"theirs\""), 2);
  /* It has its own beside, when it has one. */
  script_sampler(&script);
  script_later(&script, 10000);
  CHECK_INT(n_beats(&script, "\"theirs\""), 3);
  CHECK_INT(n_beats(&script, "\"session-0\""), 1);
  TNK__LIST_FOREACH_SAFE (node, next,
                          &script.service->session.registry.samplings) {
    tnk_sampling_t *one = tnk__container_of(node, tnk_sampling_t, link);

    if (one->foreign != NULL)
      tnk_sampling_close(one, NULL, NULL);
  }
  script_later(&script, 30000);
  CHECK_INT(n_beats(&script, "\"theirs\""), 3);
  CHECK(n_beats(&script, "\"session-0\"") > 1);
  script_close(&script);
}

typedef struct {
  script_t script;
  char client[64];
  int n_lost;
  int closes;
} lost_t;

static void on_queue_state(const char *client, tnk_queue_state_t state,
                           const char *reason, void *user) {
  lost_t *lost = user;

  (void)reason;
  if (state != TNK_QUEUE_SESSION_LOST)
    return;
  lost->n_lost++;
  snprintf(lost->client, sizeof(lost->client), "%s", client);
  if (lost->closes == 1)
    tnk_sampling_close(lost->script.sampling, NULL, NULL);
  else if (lost->closes == 2)
    tnk_service_close(lost->script.service, script_closed, &lost->script);
}

static void open_lost(lost_t *lost, int closes) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  script_t *script = &lost->script;

  memset(lost, 0, sizeof(*lost));
  lost->closes = closes;
  options.on_queue_state = on_queue_state;
  options.queue_state_user = lost;
  script_open_with(script, options);
  script_made(script, import(script, theirs(script, NULL)));
  mock_json(script->mock, "POST", beat_path, 410,
            "{\"detail\":\"session is finished\"}");
  script_later(script, 10000);
  CHECK_INT(lost->n_lost, 1);
  CHECK_STR(lost->client, "theirs");
}

TEST(P4_4_the_end_of_the_session_is_told_and_explains_refusals) {
  lost_t lost;
  script_t *script = &lost.script;
  outcome_t outcome;

  open_lost(&lost, 0);
  script_later(script, 60000);
  CHECK_INT(n_beats(script, "\"theirs\""), 1);
  mock_json(script->mock, "POST", sample_path, 404, "{\"detail\":\"gone\"}");
  script_fails(script, &outcome, script_sample(script), TNK_ESESSION);
  CHECK(strstr(outcome.text, "sample in theirs") != NULL);
  outcome_drop(&outcome);
  /* Other sessions are not lost with it. */
  CHECK(script->service->session.endpoint.ended_session == NULL);
  script_close(script);
}

TEST(P4_4_from_the_notice_the_client_or_the_service_may_be_closed) {
  lost_t lost;

  open_lost(&lost, 1);
  CHECK(tnk__list_empty(&lost.script.service->session.registry.foreigners));
  script_close(&lost.script);
  open_lost(&lost, 2);
  script_end(&lost.script);
}

TEST(P4_4_refusals_in_one_session_delay_no_report_of_another) {
  tnk_sampling_t *joined;
  outcome_t outcome;
  script_t script;

  open_joined(&script, NULL);
  joined = script.sampling;
  script_sampler(&script);
  mock_json(script.mock, "POST", sample_path, 404,
            "{\"detail\":\"Sampling session not found: x\"}");
  for (int i = 0; i < 4; i++) {
    outcome_of(&outcome, script_sample(&script));
    mock_turns(script.mock, 60); /* refused, and held back */
    script_later(&script, 10000);
    outcome_fails(&script, &outcome, TNK_ESESSION);
    outcome_drop(&outcome);
  }
  script.sampling = joined;
  outcome_of(&outcome, script_sample(&script));
  script_turns(&script);
  script_turns(&script);
  CHECK_INT(outcome.n_done, 1);
  CHECK_INT(outcome.status, TNK_ESESSION);
  outcome_drop(&outcome);
  script_close(&script);
}

/* ---- Cancelled, closed, without memory ---- */

TEST(D18_joining_may_be_canceled_and_closed) {
  for (int how = 0; how < 3; how++) {
    script_t script;
    outcome_t outcome;
    tnk_promise_t *promise;

    open_with_flags(&script, joins);
    mock_on(script.mock, "POST", join_path, mock_hold, NULL);
    promise = import(&script, theirs(&script, NULL));
    outcome_of(&outcome, tnk_promise_ref(promise));
    if (how > 0)
      script_turns(&script);
    if (how > 1) {
      tnk_service_close(script.service, script_closed, &script);
    } else {
      tnk_promise_cancel(promise);
    }
    outcome_fails(&script, &outcome, how > 1 ? TNK_ECLOSED : TNK_ECANCELED);
    outcome_drop(&outcome);
    tnk_promise_unref(promise);
    if (how > 1)
      script_end(&script);
    else
      script_close(&script);
  }
}

TEST(D18_a_client_that_joined_is_closed_in_the_middle_of_its_heartbeat) {
  script_t script;

  open_joined(&script, NULL);
  mock_on(script.mock, "POST", beat_path, mock_hold, NULL);
  script_later(&script, 10000);
  CHECK_INT(n_beats(&script, "\"theirs\""), 1);
  tnk_sampling_close(script.sampling, NULL, NULL);
  script_turns(&script);
  script_close(&script);
}

static int join_without(const char *flags, long n) {
  script_t script;
  outcome_t outcome;
  int did_fail;

  open_with_flags(&script, flags);
  script_sampler(&script);
  test_alloc_fail_at(n);
  outcome_of(&outcome, import(&script, theirs(&script, NULL)));
  for (int i = 0; i < 40 && outcome.n_done == 0; i++) {
    script_turns(&script);
    script_advance(&script, 30000);
  }
  if (outcome.status == TNK_OK)
    tnk_sampling_export(tnk_promise_sampling(outcome.promise));
  did_fail = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  CHECK_INT(outcome.n_done, 1);
  CHECK(outcome.status == TNK_OK || outcome.status == TNK_ENOMEM);
  CHECK(did_fail || outcome.status == TNK_OK);
  if (outcome.status != TNK_OK)
    CHECK(tnk__list_empty(&script.service->session.registry.foreigners));
  outcome_drop(&outcome);
  sample_ok(&script);
  script_close(&script);
  CHECK_INT(test_alloc_live(), 0);
  return did_fail;
}

TEST_LIMIT(S3_26a_joining_without_memory, 60) {
  for (int i = 0; i < 2; i++)
    for (long n = 0; join_without(i == 0 ? NULL : joins, n); n++)
      CHECK(n < 3000);
}

static int export_without(long n) {
  script_t script;
  const char *text;
  int did_fail;

  script_open(&script);
  script_sampler(&script);
  test_alloc_fail_at(n);
  text = tnk_sampling_export(script.sampling);
  did_fail = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  CHECK((text == NULL) == did_fail);
  CHECK(tnk_sampling_export(script.sampling) != NULL);
  script_close(&script);
  return did_fail;
}

TEST(S3_26a_an_export_without_memory_is_NULL_and_may_be_tried_again) {
  for (long n = 0; export_without(n); n++)
    CHECK(n < 100);
}
