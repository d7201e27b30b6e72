/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_TASK_SCRIPT_H
#define TNK_TEST_TASK_SCRIPT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/api/service.h"
#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/wire/format/zstd.h"
#include "support/mock_server.h"
#include "support/codes.h"
#include "support/test.h"
#include "lib/client/sample/sampling.h"
#include "lib/client/train/training.h"
#include "task/events.h"
#include "tinker.pb-c.h"
#include "tnk/tnk.h"

/*
 * A service on a fake clock and a scripted server that plays Tinker, on one
 * loop. Everything succeeds unless a test says otherwise with mock_on() and
 * mock_once(); script_accept() and script_result() are the normal handlers.
 *
 * A request that carries a number is written down in `sent`, in order of
 * arrival. Its future is called "<call>:<number>:<examples>".
 */
enum { SCRIPT_MAX_SENT = 20000 };

typedef struct {
  char call[32]; /* "forward_backward", "asample" ... */
  long long seq;
  size_t n_data;
  int forward_only;
} script_sent_t;

typedef struct script {
  uv_loop_t uv;
  mock_server_t *mock;
  tnk_service_t *service;
  tnk_training_t *training;
  tnk_sampling_t *sampling;
  script_sent_t *sent;
  size_t n_sent;
  int n_warnings;
  int n_errors;
  int is_closed;
  char last_log[512];
  const char *log_text; /* lines of any level that have this in them ... */
  int n_log_texts;      /* ... so many */
  char paths[9][64];    /* of the calls that are accepted */
  heard_t heard;        /* what the observer heard */
} script_t;

static inline const char *script_key(void) {
  return "tml-canary-key-0123456789";
}

static inline void script_log(tnk_log_level_t level, const char *subject,
                              const char *message, size_t length, void *user) {
  script_t *script = user;

  (void)subject;
  script->n_warnings += level == TNK_LOG_WARN;
  script->n_errors += level == TNK_LOG_ERROR;
  if (level <= TNK_LOG_WARN)
    snprintf(script->last_log, sizeof(script->last_log), "%.*s", (int)length,
             message);
  if (script->log_text != NULL && strstr(message, script->log_text) != NULL)
    script->n_log_texts++;
  CHECK(strstr(message, "canary") == NULL);
}

/* ---- The server's side ---- */

/* A number in JSON text, found without reading the JSON; -1: not there. */
static inline long long script_number(const mock_request_t *request,
                                      const char *key) {
  char text[64];
  const char *at;

  snprintf(text, sizeof(text), "\"%s\":", key);
  if (request->body_len == 0)
    return -1;
  at = strstr((const char *)request->body, text);
  return at != NULL ? atoll(at + strlen(text)) : -1;
}

/* A pass, compressed or not. */
static inline void script_read_pass(const mock_request_t *request,
                                    script_sent_t *sent) {
  const char *encoding = mock_header(request, "content-encoding");
  TinkerPublic__ForwardBackwardRequest *message;
  tnk__unzstd_t unzstd;
  tnk__buf_t body;

  /* Not the allocator that tests make fail. */
  tnk__buf_init(&body, tnk__allocator_default(), TNK__MIB);
  tnk__unzstd_init(&unzstd, tnk__allocator_default());
  if (encoding == NULL) {
    tnk__buf_append(&body, request->body, request->body_len);
  } else {
    CHECK_STR(encoding, "zstd");
    CHECK_INT(
        tnk__unzstd_feed(&unzstd, &body, request->body, request->body_len),
        TNK_OK);
    CHECK_INT(tnk__unzstd_finish(&unzstd), TNK_OK);
  }
  message = tinker_public__forward_backward_request__unpack(NULL, body.len,
                                                            body.data);
  CHECK(message != NULL);
  sent->seq = message->seq_id;
  sent->forward_only = message->forward_only;
  sent->n_data = message->n_data;
  tinker_public__forward_backward_request__free_unpacked(message, NULL);
  tnk__unzstd_deinit(&unzstd);
  tnk__buf_deinit(&body);
}

static inline void script_read(const mock_request_t *request,
                               script_sent_t *sent) {
  const char *type = mock_header(request, "content-type");

  memset(sent, 0, sizeof(*sent));
  snprintf(sent->call, sizeof(sent->call), "%s",
           strrchr(request->path, '/') + 1);
  if (type != NULL && strcmp(type, "application/x-protobuf") == 0) {
    script_read_pass(request, sent);
  } else {
    sent->seq = script_number(request, "seq_id");
  }
}

/* Write it down, without answering. */
static inline script_sent_t *script_note(script_t *script,
                                         const mock_request_t *request) {
  script_sent_t *sent = &script->sent[script->n_sent++];

  CHECK(script->n_sent <= SCRIPT_MAX_SENT);
  script_read(request, sent);
  return sent;
}

static inline void script_accept(mock_request_t *request, void *user) {
  script_sent_t *sent = script_note(user, request);
  char text[128];

  snprintf(text, sizeof(text), "{\"request_id\":\"%s:%lld:%zu\"}", sent->call,
           sent->seq, sent->n_data);
  mock_reply_json(request, 200, text);
}

/* The results of passes: two tokens an example. */
static inline void script_pass_result(mock_request_t *request, size_t n_data) {
  size_t size = 256 + n_data * 96;
  char *text = malloc(size);
  size_t n = 0;

  CHECK(text != NULL);
  n += (size_t)snprintf(text, size,
                        "{\"loss_fn_output_type\":\"ArrayRecord\","
                        "\"metrics\":{\"loss:sum\":%zu.0,\"x:mean\":%zu.0},"
                        "\"loss_fn_outputs\":[",
                        n_data, n_data);
  for (size_t i = 0; i < n_data; i++)
    n += (size_t)snprintf(text + n, size - n,
                          "%s{\"logprobs\":{\"data\":[-1.0,-2.0],"
                          "\"dtype\":\"float32\",\"shape\":[2]}}",
                          i > 0 ? "," : "");
  snprintf(text + n, size - n, "]}");
  mock_reply_json(request, 200, text);
  free(text);
}

/* Answers a poll by the name of the future. */
static inline void script_result(mock_request_t *request, void *user) {
  const char *body = (const char *)request->body;
  const char *id = strstr(body, "\"request_id\":\"");
  const char *colon;
  char text[256];

  (void)user;
  CHECK(id != NULL);
  id += strlen("\"request_id\":\"");
  colon = strchr(id, ':');
  if (strncmp(id, "create_model", 12) == 0) {
    mock_reply_json(request, 200, "{\"model_id\":\"model-0\"}");
  } else if (strncmp(id, "forward_backward", 16) == 0) {
    script_pass_result(request, (size_t)atol(strchr(colon + 1, ':') + 1));
  } else if (strncmp(id, "optim_step", 10) == 0) {
    mock_reply_json(request, 200, "{\"metrics\":{\"grad_norm\":0.5}}");
  } else if (strncmp(id, "asample", 7) == 0) {
    mock_reply_json(request, 200,
                    "{\"sequences\":[{\"tokens\":[7,8],\"logprobs\":[-0.5,"
                    "-0.25],\"stop_reason\":\"stop\"}],"
                    "\"prompt_logprobs\":[null,-1.5]}");
  } else {
    snprintf(text, sizeof(text),
             "{\"path\":\"tinker://run/%.*s\",\"sampling_session_id\":\"e-1\"}",
             (int)(colon - id), id);
    mock_reply_json(request, 200, text);
  }
}

/* Requests that a test answers later, in an order of its own. */
enum { SCRIPT_MAX_HELD = 64 };

typedef struct script_held {
  mock_request_t *requests[SCRIPT_MAX_HELD];
  int n;
} script_held_t;

static inline void script_hold(mock_request_t *request, void *user) {
  script_held_t *held = user;

  CHECK(held->n < SCRIPT_MAX_HELD);
  held->requests[held->n++] = request;
}

/* The server's flags, before anything was sent. */
static inline void script_flags(script_t *script, const char *json) {
  mock_json(script->mock, "POST", "/api/v1/client/config", 200, json);
}

/* ---- Opening ---- */

static inline void script_routes(script_t *script) {
  static const char *const accepted[] = {"forward_backward",
                                         "optim_step",
                                         "save_weights",
                                         "load_weights",
                                         "save_weights_for_sampler",
                                         "save_weights_external",
                                         "unload_model",
                                         "asample",
                                         "create_model"};
  mock_server_t *mock = script->mock;

  mock_json(mock, "POST", "/api/v1/client/config", 200, "{}");
  mock_json(mock, "POST", "/api/v1/client/dynamic_config", 200, "{}");
  mock_json(mock, "POST", "/api/v1/create_session", 200,
            "{\"session_id\":\"session-0\"}");
  mock_json(mock, "POST", "/api/v1/session_heartbeat", 200, "{}");
  mock_json(mock, "POST", "/api/v1/sessions/session-0/finish", 200, "{}");
  mock_json(mock, "POST", "/api/v1/get_info", 200,
            "{\"model_id\":\"model-0\",\"model_data\":{\"arch\":\"a\","
            "\"model_name\":\"base\",\"tokenizer_id\":\"t:1\"},"
            "\"is_lora\":true,\"lora_rank\":8}");
  mock_json(mock, "POST", "/api/v1/weights_info", 200,
            "{\"base_model\":\"base\",\"is_lora\":true,\"lora_rank\":8}");
  mock_json(mock, "GET", "/api/v1/healthz", 200, "{\"status\":\"ok\"}");
  mock_json(mock, "GET", "/api/v1/get_server_capabilities", 200,
            "{\"supported_models\":[{\"model_name\":\"base\"}]}");
  mock_json(mock, "POST", "/api/v1/create_sampling_session", 200,
            "{\"sampling_session_id\":\"sampler-0\"}");
  mock_json(mock, "GET", "/api/v1/samplers/sampler-0", 200,
            "{\"sampler_id\":\"sampler-0\",\"base_model\":\"base\"}");
  for (size_t i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
    snprintf(script->paths[i], sizeof(script->paths[i]), "/api/v1/%s",
             accepted[i]);
    mock_on(mock, "POST", script->paths[i], script_accept, script);
  }
  mock_on(mock, "POST", "/api/v1/retrieve_future", script_result, script);
}

/* The server alone. */
static inline void script_begin(script_t *script) {
  memset(script, 0, sizeof(*script));
  script->sent = calloc(SCRIPT_MAX_SENT, sizeof(*script->sent));
  CHECK(script->sent != NULL);
  CHECK_INT(uv_loop_init(&script->uv), 0);
  script->mock = mock_open(&script->uv);
  script_routes(script);
}

/* The service's URL is filled in unless it has one, and its key unless there is
 * a command. */
static inline void script_open_service(script_t *script,
                                       tnk_service_options_t options) {
  char text[256];
  tnk_logger_t logger;

  logger = (tnk_logger_t){TNK_LOG_TRACE, script_log, script};
  if (options.credential_cmd == NULL)
    options.api_key = script_key();
  if (options.base_url == NULL)
    options.base_url = mock_url(script->mock);
  if (options.allocator == NULL)
    options.allocator = test_allocator();
  if (mock_over_http2() && options.http_version == TNK_HTTP_AUTO)
    options.http_version = TNK_HTTP_2_PRIOR_KNOWLEDGE;
  options.logger = &logger;
  if (options.observer == NULL) {
    options.observer = heard_event;
    options.observer_user = &script->heard;
  }
  if (tnk_service_open(&script->service, &script->uv, &options, text,
                       sizeof(text)) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", text);
  tnk__context_fake_clock(&script->service->root.context, 1000000);
  mock_set_clock(script->mock, &script->service->root.context);
}

static inline void script_open_with(script_t *script,
                                    tnk_service_options_t options) {
  script_begin(script);
  script_open_service(script, options);
}

static inline void script_open(script_t *script) {
  script_open_with(script, (tnk_service_options_t)TNK_SERVICE_OPTIONS_INIT);
}

static inline void script_closed(void *user) {
  ((script_t *)user)->is_closed++;
}

/* The service has been closed: wait until it is gone. */
static inline void script_end(script_t *script) {
  mock_wait_flag(script->mock, &script->is_closed, 1);
  mock_close(script->mock);
  uv_run(&script->uv, UV_RUN_DEFAULT);
  CHECK_INT(uv_loop_close(&script->uv), 0);
  heard_close(&script->heard);
  free(script->sent);
}

static inline void script_close(script_t *script) {
  tnk_stats_t stats = TNK_STATS_INIT;

  tnk_service_stats(&stats, script->service);
  CHECK_INT(stats.n_double_settles, 0);
  tnk_service_close(script->service, script_closed, script);
  CHECK_INT(script->is_closed, 0);
  script_end(script);
}

static inline void script_turns(script_t *script) {
  mock_turns(script->mock, 20);
}

/* Let time pass, and all that it sets off. */
static inline void script_advance(script_t *script, uint64_t ms) {
  tnk__context_advance(&script->service->root.context, ms);
  mock_turns(script->mock, 20);
}

/* The loop is late: time passes, and nothing happens. */
static inline void script_late(script_t *script, uint64_t ms) {
  script->service->root.context.fake_now += ms;
}

/* Right after opening: time passes by itself, for what must let the loop
 * end. */
static inline void script_real_clock(script_t *script) {
  script->service->root.context.is_fake = 0;
}

/* The same where one thing sets off another, and so on. */
static inline void script_later(script_t *script, uint64_t ms) {
  script_advance(script, ms);
  mock_turns(script->mock, 60);
}

/* ---- Promises ---- */

/* Writes down how a promise ended. */
typedef struct outcome {
  int n_done;
  int status;
  int order; /* among all outcomes, from 1 */
  char text[400];
  tnk_promise_t *promise; /* a reference, for reading the result */
} outcome_t;

static _Thread_local int script_n_outcomes;

static inline void outcome_done(tnk_promise_t *promise, int status,
                                void *user) {
  outcome_t *outcome = user;

  CHECK_INT(++outcome->n_done, 1);
  outcome->status = status;
  outcome->order = ++script_n_outcomes;
  outcome->promise = tnk_promise_ref(promise);
  snprintf(outcome->text, sizeof(outcome->text), "%s",
           tnk_promise_text(promise));
  CHECK(strstr(outcome->text, "canary") == NULL);
  if (status != TNK_OK && !test_code_is_listed(outcome->text, status))
    test_fail(__FILE__, __LINE__, "the header does not list %s: %s",
              tnk_err_name(status), outcome->text);
}

static inline void outcome_of(outcome_t *outcome, tnk_promise_t *promise) {
  memset(outcome, 0, sizeof(*outcome));
  CHECK(promise != NULL);
  tnk_then(promise, outcome_done, outcome);
  CHECK_INT(outcome->n_done, 0);
}

static inline void outcome_wait(script_t *script, outcome_t *outcome) {
  mock_wait_flag(script->mock, &outcome->n_done, 1);
}

static inline void outcome_drop(outcome_t *outcome) {
  tnk_promise_unref(outcome->promise);
  outcome->promise = NULL;
}

/* Wait for an operation that must succeed. */
static inline void outcome_ok(script_t *script, outcome_t *outcome) {
  outcome_wait(script, outcome);
  if (outcome->status != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", outcome->text);
}

/* Wait for an operation that must be rejected with that code. */
static inline void outcome_fails(script_t *script, outcome_t *outcome,
                                 int code) {
  outcome_wait(script, outcome);
  if (outcome->status != code)
    test_fail(__FILE__, __LINE__, "status is %d, expected %d: %s",
              outcome->status, code, outcome->text);
}

/* The promise must resolve; the outcome is the caller's to drop. */
static inline void script_ok(script_t *script, outcome_t *outcome,
                             tnk_promise_t *promise) {
  outcome_of(outcome, promise);
  outcome_ok(script, outcome);
}

/* The same for one that must be rejected. */
static inline void script_fails(script_t *script, outcome_t *outcome,
                                tnk_promise_t *promise, int code) {
  outcome_of(outcome, promise);
  outcome_fails(script, outcome, code);
}

static inline void outcome_drop_all(outcome_t *outcomes, size_t n) {
  for (size_t i = 0; i < n; i++)
    outcome_drop(&outcomes[i]);
}

/* ---- Clients and data ---- */

/* Settle a promise of a client; what it made is the script's from now on, and
 * what was sent for it is forgotten. */
static inline void script_made(script_t *script, tnk_promise_t *promise) {
  outcome_t outcome;

  script_ok(script, &outcome, promise);
  if (tnk_promise_training(outcome.promise) != NULL)
    script->training = tnk_promise_training(outcome.promise);
  else
    script->sampling = tnk_promise_sampling(outcome.promise);
  outcome_drop(&outcome);
  script->n_sent = 0;
}

static inline tnk_training_t *script_train(script_t *script) {
  tnk_lora_options_t options = TNK_LORA_OPTIONS_INIT;

  options.base_model = "base";
  script_made(script, tnk_service_create_lora(script->service, &options));
  CHECK(script->training != NULL);
  return script->training;
}

/* Open, with a training client. */
static inline void script_open_train(script_t *script) {
  script_open(script);
  script_train(script);
}

static inline tnk_sampling_t *script_sampler(script_t *script) {
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;

  options.base_model = "base";
  script_made(script, tnk_service_create_sampling(script->service, &options));
  CHECK(script->sampling != NULL);
  return script->sampling;
}

/* n examples of two tokens for cross_entropy. Static: the same each time. */
static inline const tnk_datum_t *script_data(size_t n) {
  static const int32_t tokens[] = {11, 12};
  static const int64_t targets[] = {12, 13};
  static _Thread_local tnk_datum_t data[4096];

  CHECK(n <= sizeof(data) / sizeof(data[0]));
  for (size_t i = 0; i < n; i++)
    data[i] = (tnk_datum_t){.input = {.tokens = tokens, .n_tokens = 2},
                            .targets = targets};
  return data;
}

/* The i-th numbered request that came. */
static inline void script_check_sent(const script_t *script, size_t i,
                                     const char *call, long long seq) {
  CHECK(i < script->n_sent);
  CHECK_STR(script->sent[i].call, call);
  CHECK_INT(script->sent[i].seq, seq);
}

static inline tnk_promise_t *script_step(script_t *script) {
  return tnk_training_optim_step(script->training, NULL);
}

static inline tnk_promise_t *script_pass(script_t *script, size_t n) {
  return tnk_training_forward_backward(script->training, script_data(n), n,
                                       NULL);
}

static inline const tnk_model_input_t *script_prompt(void) {
  static const int32_t tokens[] = {11, 12};
  static const tnk_model_input_t prompt = {.tokens = tokens, .n_tokens = 2};

  return &prompt;
}

static inline tnk_promise_t *script_sample(script_t *script) {
  return tnk_sampling_sample(script->sampling, script_prompt(), NULL, NULL);
}

#endif
