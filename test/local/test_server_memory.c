/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "client.h"
#include "support/test.h"

/* Every allocation fails once: what was asked for is refused or its connection
 * closed, nothing leaks, and the next request is served. Only requests that
 * put nothing on a thread, because the counting allocator belongs to one. */

static const local_options_t *counting(void) {
  static local_options_t options = LOCAL_OPTIONS_INIT;

  options.alloc = test_allocator();
  return &options;
}

TEST_LIMIT(opening_without_memory, 30) {
  local_server_t *server;
  int failed = 1;
  uv_loop_t loop;

  CHECK_INT(uv_loop_init(&loop), 0);
  for (long n = 0; failed; n++) {
    test_alloc_fail_at(n);
    failed = local_server_open(&server, &loop, counting()) != 0;
    test_alloc_fail_at(-1);
    if (!failed)
      local_server_close(server, NULL, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(test_alloc_live(), 0);
  }
  CHECK_INT(uv_loop_close(&loop), 0);
}

typedef struct {
  const char *method;
  const char *path;
  const char *headers;
  const char *body;
} probe_t;

static void hurt(rig_t *rig, const probe_t *probe) {
  int hit = 1;

  for (long n = 0; hit; n++) {
    exchange_t *x = rig_send(rig, probe->method, probe->path, probe->headers,
                             probe->body, strlen(probe->body));

    test_alloc_fail_at(n);
    rig_wait(x, 1);
    hit = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    CHECK(x->closed || (x->status >= 200 && x->status <= 503));
    rig_free(x);
    CHECK_INT(rig_status(rig_get(rig, "healthz")), 200);
  }
}

TEST_LIMIT(requests_without_memory, 60) {
  static char pass[700];
  static char sampler[200];
  static char path[200];
  static char trace[200];
  char session[96];
  rig_t rig;

  rig_open(&rig, counting());
  rig_session(&rig, session);
  snprintf(trace, sizeof(trace), "/api/v1/sessions/%s/trace_export", session);
  snprintf(sampler, sizeof(sampler),
           "{\"session_id\":\"%s\",\"base_model\":\"tnk/byte-lm\"}", session);
  snprintf(path, sizeof(path), "/api/v1/sessions/%s", session);
  snprintf(pass, sizeof(pass),
           "{\"model_id\":\"m\",\"seq_id\":1,\"forward_backward_input\":{"
           "\"loss_fn\":\"cross_entropy\",\"data\":[{\"model_input\":{"
           "\"chunks\":[{\"tokens\":[1,2]}]},\"loss_fn_inputs\":{"
           "\"target_tokens\":{\"data\":[1],\"dtype\":\"int64\",\"shape\":"
           "[2,1],\"sparse_crow_indices\":[0,0,1],\"sparse_col_indices\":"
           "[0]}}}]}}");
  {
    const probe_t probes[] = {
        {"GET", trace, NULL, ""},
        {"GET",
         "/api/v1/billing/usage/events?starting_on=2026-01-01&"
         "ending_before=2026-01-02",
         NULL, ""},
        {"GET", "/api/v1/audit", NULL, ""},
        {"GET", "/files/x", NULL, ""},
        {"GET", "/api/v1/healthz", NULL, ""},
        {"POST", "/api/v1/create_session", "X-Idempotency-Key: k\r\n",
         "{\"sdk_version\":\"1\",\"user_metadata\":{\"a\":\"b\"}}"},
        {"POST", "/api/v1/create_sampling_session", NULL, sampler},
        {"POST", "/api/v1/forward_backward", NULL, pass},
        {"POST", "/api/v1/retrieve_future", NULL, "{\"request_id\":\"x\"}"},
        {"POST", "/api/v1/telemetry", "Content-Encoding: zstd\r\n", "{}"},
        {"GET", "/api/v1/training_runs", NULL, ""},
        {"GET", "/api/v1/sessions", NULL, ""},
        {"GET", path, NULL, ""},
    };

    for (size_t i = 0; i < sizeof(probes) / sizeof(*probes); i++)
      hurt(&rig, &probes[i]);
  }
  rig_close(&rig);
}

static void *no_memory(size_t size) {
  (void)size;
  return NULL;
}

/* jansson has an allocator of its own. What it lacks is not the client's
 * fault. */
TEST(json_without_memory) {
  json_malloc_t alloc;
  json_free_t release;
  rig_t rig;
  exchange_t *x;

  rig_open(&rig, NULL);
  json_get_alloc_funcs(&alloc, &release);
  json_set_alloc_funcs(no_memory, release);
  x = rig_post(&rig, "create_session", "{\"sdk_version\":\"0.38.0\"}");
  json_set_alloc_funcs(alloc, release);
  CHECK_INT(x->status, 503);
  rig_free(x);
  rig_close(&rig);
}
