/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_TASK_RECOVER_H
#define TNK_TEST_TASK_RECOVER_H

#include "task/kinds.h"

/* A service that mends what a restarted server has lost, and what it tells. */

static const char beat_path[] = "/api/v1/session_heartbeat";
static const char session_path[] = "/api/v1/create_session";
static const char load_path[] = "/api/v1/load_weights";
static const char sampler_path[] = "/api/v1/create_sampling_session";
static const char poll_path[] = "/api/v1/retrieve_future";

enum { MAX_EVENTS = 40, NEVER = -1 };

typedef struct {
  tnk_recovery_state_t kind;
  uint32_t attempt;
  char client[64];
  char path[64];
  char reason[256];
  uint64_t n_steps;
  uint64_t retry_ms;
  int has_training;
  int has_sampling;
} event_t;

typedef struct {
  script_t script;
  event_t events[MAX_EVENTS];
  int n;
  int closes_at; /* this event */
  int goes_on_at;
  tnk_promise_t *first; /* of two samples */
} mend_t;

static inline void keep(char *to, size_t size, const char *text) {
  snprintf(to, size, "%s", text != NULL ? text : "");
}

static inline void on_recovery(const tnk_recovery_event_t *event, void *user) {
  mend_t *mend = user;
  event_t *to = &mend->events[mend->n];

  CHECK(mend->n < MAX_EVENTS);
  to->kind = event->state;
  to->attempt = event->attempt;
  keep(to->client, sizeof(to->client), event->client);
  keep(to->path, sizeof(to->path), event->path);
  keep(to->reason, sizeof(to->reason), event->reason);
  to->n_steps = event->n_steps;
  to->retry_ms = event->retry_ms;
  to->has_training = event->training != NULL;
  to->has_sampling = event->sampling != NULL;
  if (mend->n == mend->closes_at)
    tnk_service_close(mend->script.service, script_closed, &mend->script);
  if (mend->n == mend->goes_on_at)
    CHECK_INT(tnk_training_go_on(mend->script.training), TNK_OK);
  mend->n++;
}

static inline tnk_service_options_t options_of(mend_t *mend) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  memset(mend, 0, sizeof(*mend));
  mend->closes_at = mend->goes_on_at = NEVER;
  options.recovery = TNK_YES;
  options.on_recovery = on_recovery;
  options.recovery_user = mend;
  return options;
}

/* Two steps, a saved state, and one more step. */
static inline void train(mend_t *mend) {
  script_t *script = &mend->script;
  tnk_promise_t *promises[4];
  outcome_t outcomes[4];

  promises[0] = script_step(script);
  promises[1] = script_step(script);
  promises[2] = tnk_training_save_state(script->training, "a", NULL);
  promises[3] = script_step(script);
  for (int i = 0; i < 4; i++)
    outcome_of(&outcomes[i], promises[i]);
  for (int i = 0; i < 4; i++)
    outcome_ok(script, &outcomes[i]);
  outcome_drop_all(outcomes, 4);
}

/* A service with a client that has been trained. */
static inline void open_trained(mend_t *mend, tnk_service_options_t options) {
  script_open_with(&mend->script, options);
  script_train(&mend->script);
  train(mend);
}

/* The old session is not known any more. */
static inline void beat(mock_request_t *request, void *user) {
  int is_old = strstr((const char *)request->body, "session-0") != NULL;

  (void)user;
  mock_reply_json(request, is_old ? 404 : 200, "{}");
}

/* The server is restarted: one good heartbeat, and then none. */
static inline void restart(script_t *script) {
  script_advance(script, 10000);
  script_turns(script);
  mock_on(script->mock, "POST", beat_path, beat, NULL);
  mock_json(script->mock, "POST", session_path, 200,
            "{\"session_id\":\"session-1\"}");
  mock_json(script->mock, "POST", "/api/v1/sessions/session-1/finish", 200,
            "{}");
  script_advance(script, 10000);
  for (int i = 0; i < 4; i++)
    script_turns(script);
}

static inline void check_event(const mend_t *mend, int i,
                               tnk_recovery_state_t kind, const char *client) {
  CHECK(i < mend->n);
  CHECK_INT(mend->events[i].kind, kind);
  CHECK_STR(mend->events[i].client, client);
}

/* One with a seed of its own. */
static inline tnk_promise_t *seeded(script_t *script, int64_t seed) {
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;

  params.max_tokens = 8;
  params.seed = seed;
  return tnk_sampling_sample(script->sampling, script_prompt(), &params, NULL);
}

#endif
