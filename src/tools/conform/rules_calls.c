/* SPDX-License-Identifier: MIT */
/* Checks which calls a server offers. Each call is tried with an invalid
 * request. A server with the call rejects the request; another server does not
 * know the path. */
#include <string.h>

#include "tools/conform/state.h"

/* The need of clients for a call, to train and sample. */
typedef enum { MUST = 0, MAY } need_t;

typedef struct {
  const char *method;
  const char *path;
  need_t need;
} call_t;

/* The body {} lacks all required members. */
static conform_call_t *try_call(conform_t *c) {
  const call_t *about = c->about;
  const int has_body =
      strcmp(about->method, "GET") != 0 && strcmp(about->method, "DELETE") != 0;
  const conform_ask_t ask = {.method = about->method,
                             .path = about->path,
                             .body = "{}",
                             .n_body = has_body ? 2 : 0};

  return conform_ask(c, &ask);
}

static conform_verdict_t offers(conform_t *c) {
  const call_t *about = c->about;
  const conform_call_t *call = c->call;
  const char *session = conform_text(call, "session_id");

  if (conform_is_ok(call) && session != NULL) /* even that was accepted */
    conform_made(c, CONFORM_SESSION, session);
  if (call->err != TNK_OK)
    return conform_tell(c, CONFORM_DIFFERS, "%s", call->how);
  if (call->status == 401 || call->status == 403)
    return conform_tell(c, CONFORM_SKIPPED, "%d: not permitted for this key",
                        call->status);
  if (conform_is_absent(c, call) && about->need == MUST)
    return conform_tell(c, CONFORM_DIFFERS, "%d, but clients need it",
                        call->status);
  if (conform_is_absent(c, call))
    return conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  if (call->status >= 500 || call->status == 402 || call->status == 429)
    return conform_other(c, call, "a response");
  return conform_holds(c);
}

#define SHOWN(name, method, path, need, shown)                                 \
  {                                                                            \
    "call-" name, method " " shown, "reference 14", CONFORM_FREE, NULL,        \
        try_call, offers, &(const call_t) {                                    \
      method, path, need                                                       \
    }                                                                          \
  }
#define CALL(name, method, path, need) SHOWN(name, method, path, need, path)
#define NONE CONFORM_NONE
#define NO_CHECKPOINT "training_runs/" NONE "/checkpoints/weights/" NONE
#define CHECKPOINT "training_runs/*/checkpoints/*/*"
#define NO_EXPORT "training_runs/" NONE "/checkpoints/external_weights/" NONE

static const conform_rule_t rules[] = {
    CALL("healthz", "GET", "healthz", MAY),
    CALL("client-config", "POST", "client/config", MUST),
    CALL("dynamic-config", "POST", "client/dynamic_config", MAY),
    CALL("auth-token", "POST", "auth/token", MAY),
    CALL("apikey-me", "GET", "auth/apikey/me", MAY),
    CALL("telemetry", "POST", "telemetry", MAY),
    CALL("capabilities", "GET", "get_server_capabilities", MAY),
    CALL("create-session", "POST", "create_session", MUST),
    CALL("heartbeat", "POST", "session_heartbeat", MUST),
    SHOWN("finish-session", "POST", "sessions/" NONE "/finish", MAY,
          "sessions/*/finish"),
    CALL("create-model", "POST", "create_model", MUST),
    CALL("get-info", "POST", "get_info", MUST),
    CALL("unload-model", "POST", "unload_model", MAY),
    CALL("forward-backward", "POST", "forward_backward", MUST),
    CALL("forward", "POST", "forward", MAY),
    CALL("optim-step", "POST", "optim_step", MUST),
    CALL("create-custom-loss", "POST", "create_custom_loss", MAY),
    CALL("retrieve-future", "POST", "retrieve_future", MUST),
    CALL("retrieve-futures", "POST", "retrieve_futures", MAY),
    CALL("cancel-future", "POST", "cancel_future", MAY),
    CALL("save-weights", "POST", "save_weights", MUST),
    CALL("save-for-sampler", "POST", "save_weights_for_sampler", MUST),
    CALL("save-external", "POST", "save_weights_external", MAY),
    CALL("load-weights", "POST", "load_weights", MUST),
    CALL("weights-info", "POST", "weights_info", MAY),
    CALL("create-sampler", "POST", "create_sampling_session", MUST),
    CALL("join-sampler", "POST", "join_sampling_session", MAY),
    SHOWN("get-sampler", "GET", "samplers/" NONE, MAY, "samplers/*"),
    CALL("asample", "POST", "asample", MUST),
    CALL("stream-sample", "POST", "stream_sample", MAY),
    SHOWN("runs", "GET", "training_runs?limit=1", MAY, "training_runs"),
    SHOWN("run", "GET", "training_runs/" NONE, MAY, "training_runs/*"),
    SHOWN("run-checkpoints", "GET", "training_runs/" NONE "/checkpoints", MAY,
          "training_runs/*/checkpoints"),
    SHOWN("checkpoints", "GET", "checkpoints?limit=1", MAY, "checkpoints"),
    SHOWN("delete-checkpoint", "DELETE", NO_CHECKPOINT, MAY, CHECKPOINT),
    SHOWN("publish", "POST", NO_CHECKPOINT "/publish", MAY,
          CHECKPOINT "/publish"),
    SHOWN("unpublish", "DELETE", NO_CHECKPOINT "/publish", MAY,
          CHECKPOINT "/publish"),
    SHOWN("ttl", "PUT", NO_CHECKPOINT "/ttl", MAY, CHECKPOINT "/ttl"),
    SHOWN("external-urls", "GET", NO_EXPORT "/external_weights_urls", MAY,
          CHECKPOINT "/external_weights_urls"),
    SHOWN("archive", "GET", NO_CHECKPOINT "/archive", MAY,
          CHECKPOINT "/archive"),
    CALL("copy-weights", "POST", "copy_weights", MAY),
    SHOWN("sessions", "GET", "sessions?limit=1", MAY, "sessions"),
    SHOWN("session", "GET", "sessions/" NONE, MAY, "sessions/*"),
    CALL("search-sessions", "POST", "sessions/search", MAY),
    SHOWN("move-session", "PUT", "sessions/" NONE "/project", MAY,
          "sessions/*/project"),
    SHOWN("trace-export", "GET", "sessions/" NONE "/trace_export", MAY,
          "sessions/*/trace_export"),
    CALL("usage", "GET", "billing/usage/events", MAY),
    CALL("storage", "GET", "billing/usage/checkpoints/current", MAY),
    CALL("audit", "GET", "audit", MAY),
};

const conform_group_t conform_calls = {"supported calls", rules,
                                       sizeof(rules) / sizeof(*rules)};
