/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_TASK_BATCH_H
#define TNK_TEST_TASK_BATCH_H

#include "task/script.h"

/*
 * Samples that wait for their completions together. The test plays the server:
 * it answers each retrieve_futures when it likes, and results are there at
 * once unless it holds them too.
 */
enum { MAX_SAMPLES = 512 };

static outcome_t outcomes[MAX_SAMPLES];
static tnk_promise_t *promises[MAX_SAMPLES];

static const char batch_path[] = "/api/v1/retrieve_futures";
static const char fetch_path[] = "/api/v1/retrieve_future";

static inline void open_batch(script_t *script, tnk_service_options_t options) {
  script_open_with(script, options);
  script_flags(script, "{\"sample_use_retrieve_futures\":true}");
  mock_json(script->mock, "POST", "/api/v1/cancel_future", 200, "{}");
  mock_on(script->mock, "POST", batch_path, mock_hold, NULL);
  script_sampler(script);
}

static inline void open_default(script_t *script) {
  open_batch(script, (tnk_service_options_t)TNK_SERVICE_OPTIONS_INIT);
}

static inline void turns(script_t *script) {
  mock_turns(script->mock, 60);
}

static inline void start(script_t *script, int first, int n) {
  for (int i = first; i < first + n; i++) {
    promises[i] = script_sample(script);
    outcome_of(&outcomes[i], tnk_promise_ref(promises[i]));
  }
  turns(script);
}

static inline size_t n_batches(const script_t *script) {
  return mock_count(script->mock, "POST", batch_path);
}

static inline size_t n_fetches(const script_t *script) {
  return mock_count(script->mock, "POST", fetch_path);
}

static inline mock_request_t *last_of(const script_t *script,
                                      const char *path) {
  size_t n = mock_count(script->mock, "POST", path);

  CHECK(n > 0);
  return mock_find(script->mock, "POST", path, n - 1);
}

static inline mock_request_t *last_batch(const script_t *script) {
  return last_of(script, batch_path);
}

/* Answer the poll that is held. */
static inline void answer(script_t *script, int status, const char *json) {
  mock_request_t *request = last_batch(script);

  CHECK(!request->is_answered);
  mock_reply_json(request, status, json);
  turns(script);
}

/* It is done: the samples from `first` on have finished. */
static inline void tell(script_t *script, int first, int n, int cursor) {
  char *json = malloc((size_t)n * 128 + 64);
  size_t at;

  CHECK(json != NULL);
  at = (size_t)sprintf(json, "{\"completions\":[");
  for (int i = first; i < first + n; i++)
    at += (size_t)sprintf(json + at,
                          "%s{\"state\":\"finished\",\"request_id\":"
                          "\"asample:%d:0\","
                          "\"response_payload_uncompressed_size\":null}",
                          i > first ? "," : "", i);
  sprintf(json + at, "],\"cursor\":%d}", cursor);
  answer(script, 200, json);
  free(json);
}

static inline void check_body(const mock_request_t *request, const char *tail) {
  char expected[512];

  snprintf(expected, sizeof(expected),
           "{\"target\":{\"type\":\"sampling_session\","
           "\"sampling_session_id\":\"sampler-0\",\"cloned_sampler_id\":0},%s",
           tail);
  CHECK_MEM(request->body, request->body_len, expected, strlen(expected));
}

static inline void finish(script_t *script, int n) {
  script_close(script);
  for (int i = 0; i < n; i++) {
    CHECK_INT(outcomes[i].n_done, 1);
    tnk_promise_unref(promises[i]);
    outcome_drop(&outcomes[i]);
  }
}

#endif
