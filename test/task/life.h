/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_TASK_LIFE_H
#define TNK_TEST_TASK_LIFE_H

#include "task/script.h"

/*
 * One life of a service, drawn from a seed: the world that it is in. What is
 * done in it is in test_life.c. The server has 14 kinds of faults and 6 sets of
 * flags; what is drawn decides about both, so that a seed is always the same
 * life.
 */
enum { LIFE_MAX_CLIENTS = 64, LIFE_MAX_KEPT = 64 };

typedef struct {
  script_t script;
  uint64_t drawn;
  int has_faults;
  int is_closing;
  int depth; /* of actions inside callbacks of actions */
  tnk_training_t *trainings[LIFE_MAX_CLIENTS];
  int n_trainings;
  tnk_sampling_t *samplings[LIFE_MAX_CLIENTS];
  int n_samplings;
  tnk_promise_t *kept[LIFE_MAX_KEPT]; /* references, to cancel or to drop */
  int n_kept;
  long n_started; /* promises */
  long n_settled;
  long n_lent; /* data */
  long n_released;
  long n_closes; /* of clients */
  long n_closed;
  /* The server's clock goes on when the service's is gone. */
  tnk__context_t clock;
  int is_clock_closed;
} life_t;

static inline uint32_t life_draw(life_t *life, uint32_t n) {
  life->drawn = life->drawn * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(life->drawn >> 33) % n;
}

static inline void life_pass_time(life_t *life, uint64_t ms) {
  tnk__context_advance(&life->script.service->root.context, ms);
  tnk__context_advance(&life->clock, ms);
}

/* ---- The server ---- */

static inline void life_refuse(mock_request_t *request, int status,
                               const char *headers, const char *json) {
  mock_reply(request, status, headers, json, strlen(json));
}

static inline void life_break(life_t *life, mock_request_t *request, int how) {
  static const char accepted[] = "{\"request_id\":\"a:1:1\"}";

  if (how == 0)
    mock_reset(request, NULL);
  else if (how == 1)
    mock_cut(request, NULL);
  else if (how == 2)
    mock_reply_cut(request, 200, NULL, accepted, strlen(accepted),
                   20 + life_draw(life, 38));
  else
    mock_hold(request, NULL);
}

/* 1 when it was answered with a fault. */
static inline int life_fault(life_t *life, mock_request_t *request) {
  static const struct {
    int status;
    const char *headers;
    const char *json;
  } rows[] = {
      {500, NULL, "{}"},
      {429, NULL, "{}"},
      {429, "Retry-After: 2\r\n", "{}"},
      {402, NULL, "{}"},
      {422, NULL, "{\"detail\":\"x\"}"},
      {409, NULL, "{\"detail\":\"Sequence conflict: expected 3, got 5\"}"},
      {410, NULL, "{}"},
      {404, NULL, "{}"},
      {200, NULL, "<html>"},
      {401, NULL, "{}"},
      {401, "WWW-Authenticate: Bearer error=\"invalid_token\"\r\n", "{}"}};
  const uint32_t n_rows = sizeof(rows) / sizeof(rows[0]);
  uint32_t how;

  if (!life->has_faults)
    return 0;
  how = life_draw(life, 40);
  if (how < n_rows)
    life_refuse(request, rows[how].status, rows[how].headers, rows[how].json);
  else if (how < n_rows + 4)
    life_break(life, request, (int)(how - n_rows));
  return how < n_rows + 4;
}

static inline void life_submission(mock_request_t *request, void *user) {
  life_t *life = user;

  life->script.n_sent = 0; /* nobody looks */
  if (!life_fault(life, request))
    script_accept(request, &life->script);
}

static inline void life_poll(mock_request_t *request, void *user) {
  life_t *life = user;

  if (life->has_faults && life_draw(life, 6) == 0)
    mock_reply_json_after(
        request, life_draw(life, 50000), 200,
        "{\"type\":\"try_again\",\"queue_state\":\"paused_capacity\","
        "\"queue_state_reason\":\"r\"}");
  else if (life->has_faults && life_draw(life, 12) == 0)
    mock_reply_json(request, 200,
                    "{\"status\":\"complete_metadata\","
                    "\"response_payload_size\":60000000}");
  else if (life->has_faults && life_draw(life, 25) == 0)
    mock_reply_json(request, 200, "{\"error\":\"e\",\"category\":\"user\"}");
  else if (!life_fault(life, request))
    script_result(request, &life->script);
}

static inline void life_batch(mock_request_t *request, void *user) {
  life_t *life = user;

  if (!life_fault(life, request))
    mock_reply_json_after(
        request, life_draw(life, 20000), 200,
        "{\"completions\":[{\"state\":\"finished\",\"request_id\":\"asample:0:"
        "0\",\"response_payload_uncompressed_size\":10},{\"state\":\"failed\","
        "\"request_id\":\"asample:1:0\"}],\"cursor\":5}");
}

/* The claims are {"exp":9999999999,"iat":9999999000}. */
static inline void life_token(mock_request_t *request, void *user) {
  if (!life_fault(user, request))
    mock_reply_json(request, 200,
                    "{\"jwt\":\"eyJh.eyJleHAiOjk5OTk5OTk5OTksImlhdCI6OTk5OTk5"
                    "OTAwMH0.x\"}");
}

/* Each client that joins gets a number of its own. */
static inline void life_join(mock_request_t *request, void *user) {
  static _Thread_local int n_joined;
  char text[64];

  if (life_fault(user, request))
    return;
  snprintf(text, sizeof(text), "{\"client_counter\":%d}", ++n_joined);
  mock_reply_json(request, 200, text);
}

static inline void life_serve(life_t *life, const char *flags,
                              const char *dynamic_flags) {
  script_t *script = &life->script;
  mock_server_t *mock = script->mock;

  script_flags(script, flags);
  mock_json(mock, "POST", "/api/v1/client/dynamic_config", 200, dynamic_flags);
  mock_json(mock, "POST", "/api/v1/cancel_future", 200, "{}");
  mock_on(mock, "POST", "/api/v1/auth/token", life_token, life);
  mock_on(mock, "POST", "/api/v1/retrieve_futures", life_batch, life);
  mock_on(mock, "POST", "/api/v1/join_sampling_session", life_join, life);
  for (int i = 0; i < 9; i++)
    mock_on(mock, "POST", script->paths[i], life_submission, life);
  mock_on(mock, "POST", "/api/v1/retrieve_future", life_poll, life);
}

/* ---- Birth and death ---- */

static inline void life_begin(life_t *life, uint64_t seed,
                              tnk_service_options_t options) {
  static const char *const flags[] = {
      "{}",
      "{\"fwdbwd_max_chunk_len\":1}",
      "{\"fwdbwd_max_chunk_len\":1,\"parallel_fwdbwd_chunks\":false}",
      "{\"fwdbwd_max_chunk_len\":2,\"proto_compress_fwdbwd\":true}",
      "{\"sample_use_retrieve_futures\":true,\"fwdbwd_max_chunk_len\":1,"
      "\"sample_join_sampling_session\":true}",
      "{\"pjwt_auth_enabled\":true,\"sample_max_concurrent_requests\":2}"};

  memset(life, 0, sizeof(*life));
  life->drawn = seed * 2654435761u + 12345;
  life->has_faults = seed % 8 != 0;
  options.max_polls = life_draw(life, 2) ? 3 : 0;
  options.max_retries = 3;
  script_open_with(&life->script, options);
  CHECK_INT(tnk__context_open(&life->clock, &life->script.uv,
                              tnk__allocator_default(), NULL),
            0);
  tnk__context_fake_clock(&life->clock, 1000000);
  mock_set_clock(life->script.mock, &life->clock);
  life_serve(life, flags[seed % 6],
             seed % 2 ? "{\"sample_cancel_enabled\":true}" : "{}");
}

static inline void life_close(life_t *life) {
  life->is_closing = 1;
  life->n_trainings = life->n_samplings = 0;
  tnk_service_close(life->script.service, script_closed, &life->script);
}

static inline void life_clock_closed(void *user) {
  ((life_t *)user)->is_clock_closed = 1;
}

/* Every promise has settled once, lent data is back, and every close is told
 * of. */
static inline void life_check(const life_t *life, uint64_t seed) {
  if (life->n_started != life->n_settled || life->n_lent != life->n_released ||
      life->n_closes != life->n_closed)
    test_fail(__FILE__, __LINE__,
              "seed %llu: of %ld promises %ld have settled, of %ld loans %ld "
              "have ended, of %ld clients %ld have closed",
              (unsigned long long)seed, life->n_started, life->n_settled,
              life->n_lent, life->n_released, life->n_closes, life->n_closed);
}

static inline void life_end(life_t *life, uint64_t seed) {
  script_t *script = &life->script;

  if (!life->is_closing)
    life_close(life);
  for (int i = 0; i < 300 && !script->is_closed; i++) {
    mock_turns(script->mock, 2);
    if (!script->is_closed)
      life_pass_time(life, 100);
  }
  mock_wait_flag(script->mock, &script->is_closed, 1);
  while (life->n_kept > 0)
    tnk_promise_unref(life->kept[--life->n_kept]);
  life_check(life, seed);
  mock_close(script->mock);
  tnk__context_close(&life->clock, life_clock_closed, life);
  uv_run(&script->uv, UV_RUN_DEFAULT);
  CHECK_INT(life->is_clock_closed, 1);
  CHECK_INT(uv_loop_close(&script->uv), 0);
  heard_close(&script->heard);
  free(script->sent);
}

#endif
