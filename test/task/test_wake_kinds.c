/* SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE /* mkdtemp() */
#include <unistd.h>

#include "codec/loss_graph.h"
#include "lib/ledger/ledger.h"
#include "support/tree.h"
#include "task/batch.h"
#include "task/kinds.h"
#include "task/stream.h"
#include "tnk/ledger.h"
#include "tnk/rest.h"

/*
 * The first good response wakes every operation that pauses, within a second.
 * Every kind of operation x what it is at x every kind of failure. A pause that
 * the server asked for keeps its length.
 *
 * Three kinds are not in the table. A ledger that is opened, and one that is
 * closed, wait for the disk alone. Downloads and uploads of files
 * (lib/files/fetch, lib/files/push) go to other origins than the service, and
 * pause by themselves: a response of the service says nothing about them. They
 * do not wake each other either, because their pauses are at most 10 s.
 */

typedef enum {
  REFUSED,
  RESET,
  SILENT,
  NO_NAME,
  S503,
  S503_ASKED,
  S429_ASKED,
  N_FAILURES
} failure_t;

static const char *const failure_names[] = {"connection refused",
                                            "connection reset",
                                            "no response",
                                            "no such name",
                                            "503",
                                            "503 with Retry-After",
                                            "429 with Retry-After"};

enum {
  ASKED_S = 40,
  TIMEOUT_MS = 3000,
  /* Long enough for the longest pauses, and no multiple of them. */
  FAILING_MS = 101700,
  /* A sample that a poll for many waits for also polls for itself, for the
   * first time after 60 s or more. A check of that poll ends before. */
  SHARED_MS = 30000,
  STEP_MS = 100,
  /* Until the longest pauses are reached. Nothing is decided in that time. */
  LONG_STEP_MS = 450,
  /* A second, and the turns of what follows. */
  AWAKE_MS = 2000
};

/* ---- Names ---- */

/* Looking up a name fails, or gives this machine; in a turn of its own, as
 * libuv does it. */
static int has_no_names;

typedef struct {
  uv_timer_t timer;
  uv_getaddrinfo_t *req;
  uv_getaddrinfo_cb cb;
  int status;
} lookup_t;

static void on_lookup_closed(uv_handle_t *handle) {
  free(handle);
}

static void on_lookup(uv_timer_t *timer) {
  lookup_t *lookup = (lookup_t *)timer;
  struct addrinfo *found = NULL;
  const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST,
                                 .ai_socktype = SOCK_STREAM};

  if (lookup->status == 0)
    CHECK_INT(getaddrinfo("127.0.0.1", NULL, &hints, &found), 0);
  lookup->cb(lookup->req, lookup->status, found);
  uv_close((uv_handle_t *)timer, on_lookup_closed);
}

int __wrap_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *req,
                          uv_getaddrinfo_cb cb, const char *node,
                          const char *service, const struct addrinfo *hints);
int __wrap_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *req,
                          uv_getaddrinfo_cb cb, const char *node,
                          const char *service, const struct addrinfo *hints) {
  lookup_t *lookup = calloc(1, sizeof(*lookup));

  (void)node;
  (void)service;
  (void)hints;
  CHECK(lookup != NULL);
  lookup->req = req;
  lookup->cb = cb;
  lookup->status = has_no_names ? UV_EAI_NONAME : 0;
  req->type = UV_UNKNOWN_REQ; /* it cannot be canceled */
  uv_timer_init(loop, &lookup->timer);
  uv_timer_start(&lookup->timer, on_lookup, 0, 0);
  return 0;
}

/* ---- More kinds ---- */

#define RUN "/api/v1/training_runs/r:1/checkpoints/weights/a"

static tnk_promise_t *list_runs(script_t *script) {
  return tnk_rest_list_runs(script->service, NULL);
}

static tnk_promise_t *set_ttl(script_t *script) {
  return tnk_rest_set_checkpoint_ttl(script->service, "tinker://r:1/weights/a",
                                     3600);
}

static tnk_promise_t *publish(script_t *script) {
  return tnk_rest_publish_checkpoint(script->service, "tinker://r:1/weights/a");
}

static tnk_promise_t *delete_it(script_t *script) {
  return tnk_rest_delete_checkpoint(script->service, "tinker://r:1/weights/a");
}

static tnk_promise_t *get_key(script_t *script) {
  return tnk_rest_get_api_key(script->service);
}

static int ignore_token(const tnk_stream_token_t *token, void *user) {
  (void)token;
  (void)user;
  return 0;
}

static tnk_promise_t *start_stream(script_t *script) {
  tnk_sample_stream_options_t options = TNK_SAMPLE_STREAM_OPTIONS_INIT;

  options.on_token = ignore_token;
  options.silence_ms = TIMEOUT_MS;
  return tnk_sampling_sample_stream(script->sampling, script_prompt(), NULL,
                                    &options);
}

static tnk_promise_t *hosted(script_t *script) {
  tnk_hosted_request_t request = TNK_HOSTED_REQUEST_INIT;

  request.body = "{\"model\":\"m\"}";
  request.silence_ms = TIMEOUT_MS;
  return tnk_service_hosted(script->service, &request);
}

static tnk_promise_t *clone(script_t *script) {
  return tnk_sampling_clone(script->sampling);
}

static tnk_promise_t *create_loss(script_t *script) {
  const tnk_loss_options_t options = loss_options();

  return tnk_service_create_loss(script->service, &options);
}

/* ---- Ledgers ---- */

/* Of the service of a cell. */
static tnk_ledger_t *the_ledger;
static char ledger_dir[64];

static const char ledger_line[] =
    "{\"name\":\"a\",\"batch\":1,\"state_path\":\"tinker://r/weights/a\"}\n";

/* The pool has real time, which the clock must not run away from. */
static void wait_for_disk(script_t *script) {
  while (the_ledger != NULL &&
         (the_ledger->is_reading || the_ledger->pen.is_busy))
    mock_turns(script->mock, 1);
}

static void open_ledger(script_t *script) {
  char path[96];
  outcome_t outcome;
  FILE *file;

  snprintf(ledger_dir, sizeof(ledger_dir), "/tmp/tnk-wake-XXXXXX");
  CHECK(mkdtemp(ledger_dir) != NULL);
  snprintf(path, sizeof(path), "%s/checkpoints.jsonl", ledger_dir);
  file = fopen(path, "w");
  CHECK(file != NULL && fputs(ledger_line, file) >= 0 && fclose(file) == 0);
  script_ok(script, &outcome,
            tnk_ledger_open(script->service, ledger_dir, NULL));
  the_ledger = tnk_promise_ledger(outcome.promise);
  outcome_drop(&outcome);
}

static void forget_ledger(void) {
  the_ledger = NULL;
  remove_below(ledger_dir);
  rmdir(ledger_dir);
}

/* The checkpoints of the run, and then load_weights. */
static tnk_promise_t *resume(script_t *script) {
  (void)script;
  return tnk_ledger_resume(the_ledger, NULL);
}

/* The intent is on the disk before the request is sent. */
static tnk_promise_t *ledger_save(script_t *script) {
  tnk_promise_t *promise = tnk_ledger_save(the_ledger, script->training, NULL);

  wait_for_disk(script);
  return promise;
}

static const script_kind_t more_kinds[] = {
    {"list_runs", "training_runs", OWNER_SERVICE, list_runs},
    {"set_checkpoint_ttl", "ttl", OWNER_SERVICE, set_ttl},
    {"publish_checkpoint", "publish", OWNER_SERVICE, publish},
    {"delete_checkpoint", "a", OWNER_SERVICE, delete_it},
    {"get_api_key", "me", OWNER_SERVICE, get_key},
    {"sample_stream", "stream_sample", OWNER_SAMPLING, start_stream},
    {"hosted", "completions", OWNER_SERVICE, hosted},
    {"clone", "join_sampling_session", OWNER_SAMPLING, clone},
    {"create_loss", "create_custom_loss", OWNER_SERVICE, create_loss},
    {"ledger_resume", "checkpoints", OWNER_SERVICE, resume},
    {"ledger_save", "save_weights", OWNER_TRAINING, ledger_save},
};

enum {
  N_MORE = sizeof(more_kinds) / sizeof(more_kinds[0]),
  N_KINDS = SCRIPT_N_KINDS + N_MORE
};

static const script_kind_t *kind_at(size_t i) {
  return i < SCRIPT_N_KINDS ? &script_kinds[i]
                            : &more_kinds[i - SCRIPT_N_KINDS];
}

static void accept_loss(mock_request_t *request, void *user) {
  (void)user;
  mock_reply_json(request, 200, "{\"request_id\":\"loss:0\"}");
}

static void on_poll(mock_request_t *request, void *user) {
  if (strstr((const char *)request->body, "\"loss:") != NULL)
    mock_reply_json(request, 200,
                    "{\"loss_id\":\"L1\",\"type\":\"create_custom_loss\"}");
  else
    script_result(request, user);
}

static void serve_more(script_t *script) {
  mock_server_t *mock = script->mock;

  mock_json(mock, "GET", "/api/v1/training_runs", 200,
            "{\"training_runs\":[],\"cursor\":{\"offset\":0,\"limit\":20,"
            "\"total_count\":0}}");
  mock_json(mock, "DELETE", RUN, 200, "{}");
  mock_json(mock, "POST", RUN "/publish", 200, "{}");
  mock_json(mock, "PUT", RUN "/ttl", 200, "{}");
  mock_json(mock, "GET", "/api/v1/auth/apikey/me", 200,
            "{\"key_id\":42,\"name\":\"n\",\"note\":\"\",\"details\":{"
            "\"org_details\":{\"name\":\"O\"},\"user_details\":{\"email\":"
            "\"e\"}}}");
  mock_json(mock, "POST", "/api/v1/join_sampling_session", 200,
            "{\"type\":\"join_sampling_session\",\"client_counter\":3}");
  mock_json(mock, "POST", CHAT, 200, "{\"id\":\"x\"}");
  mock_on(mock, "POST", STREAM, reply_text, (void *)(uintptr_t)three_tokens);
  mock_on(mock, "POST", "/api/v1/create_custom_loss", accept_loss, NULL);
  mock_on(mock, "POST", "/api/v1/retrieve_future", on_poll, script);
  mock_json(mock, "GET", "/api/v1/training_runs/r/checkpoints", 200,
            "{\"checkpoints\":[{\"checkpoint_id\":\"weights/a\","
            "\"checkpoint_type\":\"training\",\"time\":\"2026-01-02T03:04:05Z\""
            ",\"tinker_path\":\"tinker://r/weights/a\"}]}");
}

/* ---- The world ---- */

/* What an operation is at when the failures begin. */
typedef enum { AT_START, AT_SUBMISSION, AT_POLL, AT_BATCH, N_STAGES } stage_t;

static const char *const stage_names[] = {"the start-up", "its first request",
                                          "its poll", "a poll for many"};

typedef struct {
  script_t script;
  failure_t failure;
  outcome_t outcome;
  int n_out;
  int n_back;
  int is_failing;
  const char *held_path; /* requests there get no answer; or NULL */
} wake_t;

static void on_notice(const char *client, tnk_queue_state_t state,
                      const char *reason, void *user) {
  wake_t *t = user;

  (void)client;
  (void)reason;
  t->n_out += state == TNK_QUEUE_UNREACHABLE;
  t->n_back += state == TNK_QUEUE_ACTIVE;
  /* A refused connection looks like a restart: the program knows better. */
  if (state == TNK_QUEUE_MEMORY_LOST)
    CHECK_INT(tnk_training_go_on(t->script.training), TNK_OK);
}

static void refuse(mock_request_t *request, const wake_t *t) {
  char headers[64] = "";

  if (t->failure != S503)
    snprintf(headers, sizeof(headers), "Retry-After: %d\r\n", ASKED_S);
  mock_reply(request, t->failure == S429_ASKED ? 429 : 503, headers, "", 0);
}

/* Every request comes here first. */
static void on_request(mock_request_t *request, void *user) {
  const wake_t *t = user;

  if (t->is_failing && t->failure == RESET)
    mock_reset(request, NULL);
  else if (t->is_failing && t->failure == SILENT)
    mock_hold(request, NULL);
  else if (t->is_failing)
    refuse(request, t);
  else if (t->held_path != NULL && strcmp(request->path, t->held_path) == 0)
    mock_hold(request, NULL);
  else
    mock_pass(request);
}

static void open_wake(wake_t *t, stage_t stage) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  char url[64];

  memset(t, 0, sizeof(*t));
  has_no_names = 0;
  script_begin(&t->script);
  snprintf(url, sizeof(url), "http://tinker.test:%d",
           (int)mock_port(t->script.mock));
  options.base_url = url;
  options.on_queue_state = on_notice;
  options.queue_state_user = t;
  options.patience_ms = UINT64_MAX;
  options.max_retries = 1000; /* questions pause as long as the others */
  options.timeout_ms = options.poll_timeout_ms = TIMEOUT_MS;
  script_open_service(&t->script, options);
  serve_more(&t->script);
  script_flags(&t->script, stage == AT_BATCH
                               ? script_batched
                               : "{\"sample_join_sampling_session\":true,"
                                 "\"custom_loss_server_side\":true}");
  open_ledger(&t->script);
  if (stage == AT_BATCH)
    mock_on(t->script.mock, "POST", "/api/v1/retrieve_futures", script_batch,
            &t->script);
  mock_on(t->script.mock, NULL, NULL, on_request, t);
  if (stage != AT_START) {
    script_train(&t->script);
    script_sampler(&t->script);
  }
}

static int is_lost(failure_t failure) {
  return failure == REFUSED || failure == NO_NAME;
}

/* The address of a name is kept for a while, so nobody listens there either. */
static void fail_all(wake_t *t) {
  mock_server_t *mock = t->script.mock;

  t->is_failing = 1;
  has_no_names = t->failure == NO_NAME;
  if (is_lost(t->failure)) {
    mock_stop_listening(mock);
    mock_close_idle(mock, 1);
  }
  script_turns(&t->script);
}

static void fail_no_more(wake_t *t) {
  t->is_failing = 0;
  has_no_names = 0;
  if (is_lost(t->failure))
    mock_listen_again(t->script.mock);
}

static void pass_time(wake_t *t, uint64_t ms, uint64_t step_ms) {
  for (uint64_t at = 0; at < ms; at += step_ms) {
    script_advance(&t->script, step_ms);
    wait_for_disk(&t->script);
  }
}

/* Bring it to its poll, and let the failures begin there. 0: it has none. */
static int begin_polling(wake_t *t, const script_kind_t *kind, stage_t stage) {
  script_t *script = &t->script;
  mock_server_t *mock = script->mock;

  t->held_path = stage == AT_BATCH ? "/api/v1/retrieve_futures"
                                   : "/api/v1/retrieve_future";
  outcome_of(&t->outcome, kind->start(script));
  for (int i = 0; i < 20 && mock_n_held(mock) == 0; i++)
    script_turns(script);
  if (mock_n_held(mock) == 0)
    return 0;
  fail_all(t);
  mock_release(mock, 503, "");
  script_turns(script);
  if (is_lost(t->failure))
    mock_close_idle(mock, 1);
  t->held_path = NULL;
  script_turns(script);
  return 1;
}

/* 0: this kind is never at that. */
static int begin(wake_t *t, const script_kind_t *kind, stage_t stage) {
  if (stage >= AT_POLL)
    return begin_polling(t, kind, stage);
  if (stage == AT_START && kind->owner != OWNER_SERVICE)
    return 0;
  fail_all(t);
  outcome_of(&t->outcome, kind->start(&t->script));
  script_turns(&t->script);
  return 1;
}

/* The library sends these requests by itself. */
static int is_background(const mock_request_t *request) {
  return strstr(request->path, "heartbeat") != NULL ||
         strstr(request->path, "dynamic_config") != NULL;
}

/* Requests of operations; with `waits`, those without an answer. */
static size_t n_requests(const wake_t *t, int waits) {
  const mock_server_t *mock = t->script.mock;
  size_t n = 0;

  for (size_t i = 0; i < mock_n_requests(mock); i++) {
    const mock_request_t *request = mock_request(mock, i);

    n += !is_background(request) &&
         (!waits || (!request->is_answered && !request->is_gone));
  }
  return n;
}

/* An attempt that is under way without an answer has its own end; what is
 * looked at are pauses. */
static void until_all_pause(wake_t *t) {
  for (int i = 0; i < 600 && n_requests(t, 1) > 0; i++)
    script_advance(&t->script, STEP_MS);
  CHECK_INT(n_requests(t, 1), 0);
}

/* A pause that the server asks for begins with a refusal. Without one, the
 * pause could be nearly over already. */
static void until_refused_again(wake_t *t) {
  const size_t n = n_requests(t, 0);

  for (int i = 0; i < 600 && n_requests(t, 0) == n; i++)
    script_advance(&t->script, STEP_MS);
  CHECK(n_requests(t, 0) > n);
}

static void answer_one(wake_t *t) {
  outcome_t other;

  script_ok(&t->script, &other, tnk_service_health(t->script.service));
  outcome_drop(&other);
}

static void must_wake(wake_t *t, const script_kind_t *kind, stage_t stage) {
  const int is_asked = t->failure == S503_ASKED || t->failure == S429_ASKED;
  const int is_silent_poll = t->failure == SILENT && stage >= AT_POLL;
  uint64_t awake_ms = AWAKE_MS;

  pass_time(t, is_asked && stage == AT_BATCH ? SHARED_MS : FAILING_MS,
            LONG_STEP_MS);
  /* A poll without a response is followed by the next one at once. */
  if (is_silent_poll)
    awake_ms += TIMEOUT_MS;
  else
    until_all_pause(t);
  if (is_asked)
    until_refused_again(t);
  if (t->outcome.n_done != 0)
    test_fail(__FILE__, __LINE__, "%s at %s ends after %s: %s", kind->name,
              stage_names[stage], failure_names[t->failure], t->outcome.text);
  fail_no_more(t);
  answer_one(t);
  if (is_asked) {
    pass_time(t, AWAKE_MS, STEP_MS);
    if (t->outcome.n_done != 0)
      test_fail(__FILE__, __LINE__, "%s at %s wakes early after: %s",
                kind->name, stage_names[stage], failure_names[t->failure]);
    awake_ms = ASKED_S * 1000;
  }
  pass_time(t, awake_ms, STEP_MS);
  if (t->outcome.n_done != 1)
    test_fail(__FILE__, __LINE__, "%s at %s sleeps on after: %s", kind->name,
              stage_names[stage], failure_names[t->failure]);
  outcome_ok(&t->script, &t->outcome);
  CHECK_INT(t->n_back, t->n_out);
  CHECK(t->n_out <= 1);
}

static void wake_all(stage_t stage, failure_t failure) {
  for (size_t i = 0; i < N_KINDS; i++) {
    wake_t t;

    if (strcmp(kind_at(i)->name, "healthz") == 0)
      continue; /* it is what is answered first */
    open_wake(&t, stage);
    t.failure = failure;
    if (begin(&t, kind_at(i), stage))
      must_wake(&t, kind_at(i), stage);
    script_close(&t.script);
    forget_ledger();
    outcome_drop(&t.outcome); /* what was still under way has ended by now */
  }
}

TEST_LIMIT(C5_operations_wake_at_the_start_up, 120) {
  for (int failure = 0; failure < N_FAILURES; failure++)
    wake_all(AT_START, (failure_t)failure);
}

TEST_LIMIT(C5_operations_wake_at_their_first_request, 120) {
  for (int failure = 0; failure < N_FAILURES; failure++)
    wake_all(AT_SUBMISSION, (failure_t)failure);
}

TEST_LIMIT(C5_operations_wake_at_their_poll, 120) {
  for (int failure = 0; failure < N_FAILURES; failure++)
    wake_all(AT_POLL, (failure_t)failure);
}

TEST_LIMIT(C5_samples_wake_at_a_poll_for_many, 120) {
  for (int failure = 0; failure < N_FAILURES; failure++)
    wake_all(AT_BATCH, (failure_t)failure);
}
