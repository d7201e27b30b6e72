/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_TASK_TOKENS_H
#define TNK_TEST_TASK_TOKENS_H

#include "lib/base/base64.h"
#include "task/script.h"

/* A server that gives a token for the key: its number, its life and, for the
 * checks that no secret comes out, a canary are in it. */
typedef struct {
  script_t script;
  int n_made;
  int takes_keys;   /* also for questions */
  long long life_s; /* 0: the token does not tell */
  char token[512];  /* the last one made */
} tokens_t;

static const char tokens_path[] = "/api/v1/auth/token";
static const char tokens_sample_path[] = "/api/v1/asample";

static inline void tokens_make(tokens_t *tokens) {
  char claims[128];
  tnk__buf_t text;

  snprintf(claims, sizeof(claims), "{\"iat\":%d,\"exp\":%lld}", 1000000,
           1000000 + tokens->life_s);
  tnk__buf_init(&text, tnk__allocator_default(), 256);
  if (tokens->life_s != 0)
    tnk__base64_write(&text, claims, strlen(claims));
  snprintf(tokens->token, sizeof(tokens->token), "eyJhIjoxfQ.%s.canary-%d",
           tnk__buf_cstr(&text), ++tokens->n_made);
  tnk__buf_deinit(&text);
}

static inline void tokens_give(mock_request_t *request, void *user) {
  tokens_t *tokens = user;
  char body[600];

  CHECK_STR((const char *)request->body, "{}");
  tokens_make(tokens);
  snprintf(body, sizeof(body), "{\"jwt\":\"%s\"}", tokens->token);
  mock_reply_json(request, 200, body);
}

/* A question, for which this server wants a token. */
static inline void tokens_capabilities(mock_request_t *request, void *user) {
  const tokens_t *tokens = user;
  const char *key = mock_header(request, "x-api-key");

  if (!tokens->takes_keys && strncmp(key, "eyJhIjoxfQ.", 11) != 0)
    mock_reply_json(request, 401, "{\"detail\":\"no token\"}");
  else
    mock_reply_json(request, 200, "{\"supported_models\":[]}");
}

/* Refuses whatever token the request came with, and quotes it. */
static inline void tokens_reject(mock_request_t *request, void *user) {
  char text[300];

  (void)user;
  snprintf(text, sizeof(text), "{\"detail\":\"%s is no token\"}",
           mock_header(request, "x-api-key"));
  mock_reply(request, 401,
             "WWW-Authenticate: Bearer error=\"invalid_token\"\r\n", text,
             strlen(text));
}

static inline void tokens_open_with(tokens_t *tokens,
                                    tnk_service_options_t options,
                                    long long life_s, const char *flags) {
  memset(tokens, 0, sizeof(*tokens));
  tokens->life_s = life_s;
  script_open_with(&tokens->script, options);
  script_flags(&tokens->script, flags);
  tokens->takes_keys = strstr(flags, "pjwt_auth_enabled") == NULL;
  mock_on(tokens->script.mock, "POST", tokens_path, tokens_give, tokens);
  mock_on(tokens->script.mock, "GET", "/api/v1/get_server_capabilities",
          tokens_capabilities, tokens);
}

static inline void tokens_open(tokens_t *tokens, long long life_s) {
  tokens_open_with(tokens, (tnk_service_options_t)TNK_SERVICE_OPTIONS_INIT,
                   life_s, "{\"pjwt_auth_enabled\":true}");
}

static inline void tokens_close(tokens_t *tokens) {
  script_close(&tokens->script);
}

/* What the i-th request of that path was sent with. */
static inline const char *tokens_key(const tokens_t *tokens, const char *path,
                                     size_t i) {
  const mock_request_t *request =
      mock_find(tokens->script.mock, "POST", path, i);

  CHECK(request != NULL);
  return mock_header(request, "x-api-key");
}

static inline size_t tokens_count(const tokens_t *tokens, const char *path) {
  return mock_count(tokens->script.mock, "POST", path);
}

/* Let it end, whatever it is that it waits for. */
static inline void tokens_settle(tokens_t *tokens, const outcome_t *outcome) {
  script_t *script = &tokens->script;

  for (int i = 0; i < 100 && outcome->n_done == 0; i++) {
    script_turns(script);
    while (script->service->session.renewal.command != NULL)
      uv_run(&script->uv, UV_RUN_ONCE);
    script_turns(script);
    if (outcome->n_done == 0)
      script_advance(script, 2000);
  }
  CHECK_INT(outcome->n_done, 1);
}

/* A sample that must end like that. */
static inline void tokens_sample(tokens_t *tokens, int status) {
  outcome_t outcome;

  outcome_of(&outcome, script_sample(&tokens->script));
  tokens_settle(tokens, &outcome);
  if (outcome.status != status)
    test_fail(__FILE__, __LINE__, "status is %d, expected %d: %s",
              outcome.status, status, outcome.text);
  outcome_drop(&outcome);
}

/* A question while the n-th allocation fails; 1: none was left to fail. */
static inline int tokens_ask_without_memory(tokens_t *tokens, long n) {
  outcome_t outcome;
  int did_fail;

  test_alloc_fail_at(n);
  outcome_of(&outcome, tnk_service_capabilities(tokens->script.service));
  tokens_settle(tokens, &outcome);
  did_fail = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  CHECK(outcome.status == TNK_OK || outcome.status == TNK_ENOMEM);
  outcome_drop(&outcome);
  return !did_fail;
}

#endif
