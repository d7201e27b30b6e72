/* SPDX-License-Identifier: MIT */
/* Rules about configuration, keys, sessions, and the server's information. */
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/text.h"
#include "lib/wire/message/calls_session.h"
#include "tools/conform/state.h"

/* ---- Configuration ---- */

static conform_call_t *ask_config(conform_t *c, const char *path,
                                  const char *version) {
  json_t *body = json_object();

  if (version != NULL)
    json_object_set_new(body, "sdk_version", json_string(version));
  return conform_post_json(c, path, body);
}

/* Members that clients read must have the expected types. The official client
 * does not accept null. */
static const char *wrong_flag(const json_t *flags) {
  enum { N_BOOLS = 8 };
  static const char *const names[] = {
      "pjwt_auth_enabled", "parallel_fwdbwd_chunks", "proto_compress_fwdbwd",
      "sample_no_retries", "sample_enable_stuck_detection",
      "sample_use_retrieve_futures", "custom_loss_server_side",
      "sample_join_sampling_session",
      /* the numbers */
      "sample_dispatch_bytes_semaphore_size",
      "inflight_response_bytes_semaphore_size", "fwdbwd_max_chunk_len",
      "fwdbwd_max_chunk_bytes_count", "fwdbwd_dispatch_bytes_semaphore_size",
      "sample_max_concurrent_requests", "refresh_interval_sec"};

  for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
    const json_t *flag = json_object_get(flags, names[i]);

    if (flag != NULL &&
        (i < N_BOOLS ? !json_is_boolean(flag) : !json_is_integer(flag)))
      return names[i];
  }
  return NULL;
}

static conform_call_t *get_config(conform_t *c) {
  return ask_config(c, c->about, TNK__PROTOCOL_VERSION);
}

static conform_verdict_t config(conform_t *c) {
  const conform_call_t *call = c->call;
  const char *wrong;

  if (call->status == 404 && strcmp(c->about, "client/dynamic_config") == 0)
    return conform_tell(c, CONFORM_ABSENT, "404: defaults apply");
  if (!conform_accepted(c, call, "200"))
    return conform_told(c);
  if (!json_is_object(call->json))
    return conform_tell(c, CONFORM_DIFFERS,
                        "the response is not a JSON object");
  wrong = wrong_flag(call->json);
  if (wrong != NULL)
    return conform_tell(c, CONFORM_DIFFERS, "%s has the wrong type", wrong);
  return conform_tell(c, CONFORM_HOLDS, "%zu flags",
                      json_object_size(call->json));
}

static conform_verdict_t versions(conform_t *c) {
  static const char *const all[] = {"0.1.0",  "0.22.0", "0.25.0",
                                    "0.30.0", "0.38.0", "99.0.0"};
  char text[120];
  tnk__text_t refused;

  tnk__text_init(&refused, text, sizeof(text));
  for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
    const conform_call_t *call = ask_config(c, "client/config", all[i]);

    if (call->err != TNK_OK || call->status >= 500)
      return conform_other(c, call, "a response");
    if (!conform_is_ok(call))
      tnk__text_printf(&refused, " %s", all[i]);
  }
  if (refused.len == 0)
    return conform_tell(c, CONFORM_HOLDS, "from 0.1.0 to 99.0.0");
  return conform_tell(c, CONFORM_ALLOWED, "rejected:%s", text);
}

static conform_call_t *odd_version(conform_t *c) {
  return ask_config(c, "client/config", c->about);
}

static conform_verdict_t any_version(conform_t *c) {
  if (conform_is_ok(c->call))
    return conform_tell(c, CONFORM_HOLDS, "accepted");
  if (conform_is_refusal(c->call))
    return conform_tell(c, CONFORM_ALLOWED, "rejected with %d",
                        c->call->status);
  return conform_other(c, c->call, "a response");
}

/* ---- Keys ---- */

static conform_call_t *with_key(conform_t *c) {
  const conform_ask_t ask = {
      .method = "GET", .path = "get_server_capabilities", .api_key = c->about};

  return conform_ask(c, &ask);
}

static conform_verdict_t key(conform_t *c) {
  const conform_call_t *call = c->call;

  if (conform_is_ok(call))
    return conform_tell(c, CONFORM_ALLOWED, "no key is required");
  if (call->status != 401 && call->status != 403)
    return conform_other(c, call, "401 or 403");
  if (call->body.len > 0)
    return conform_tell(c, CONFORM_HOLDS, "%d", call->status);
  return conform_tell(c, CONFORM_DIFFERS, "%d without a message", call->status);
}

static conform_verdict_t token(conform_t *c) {
  if (!c->wants_tokens)
    return conform_tell(c, CONFORM_ABSENT, "the key itself is accepted");
  if (c->token == NULL)
    return conform_tell(c, CONFORM_DIFFERS,
                        "auth/token returns no usable \"jwt\"");
  return conform_tell(c, CONFORM_HOLDS, "valid for %u s",
                      (unsigned)(c->token_life / 1000));
}

static int tokens(conform_t *c) {
  if (!c->wants_tokens)
    conform_tell(c, CONFORM_ABSENT, "the server uses no tokens");
  return c->wants_tokens;
}

static conform_verdict_t bad_token(conform_t *c) {
  if (c->call->status != 401)
    return conform_other(c, c->call, "401");
  if (c->call->invalid_token)
    return conform_tell(c, CONFORM_HOLDS, "401, invalid_token");
  return conform_tell(c, CONFORM_DIFFERS,
                      "401 without error=\"invalid_token\"");
}

/* ---- Sessions ---- */

static json_t *session_body(void) {
  return json_pack("{s:[],s:{},s:s,s:s}", "tags", "user_metadata",
                   "sdk_version", TNK__PROTOCOL_VERSION, "type",
                   "create_session");
}

/* Without the members that version 0.25 did not have, because the server may be
 * strict. */
static conform_call_t *create(conform_t *c) {
  return conform_post_json(c, "create_session", session_body());
}

static conform_verdict_t created(conform_t *c) {
  const char *type = conform_text(c->call, "type");

  if (!conform_accepted(c, c->call, "200"))
    return conform_told(c);
  if (conform_made(c, CONFORM_SESSION, conform_text(c->call, "session_id")) ==
      NULL)
    return conform_tell(c, CONFORM_DIFFERS,
                        "the response has no string \"session_id\"");
  if (type != NULL && strcmp(type, "create_session") != 0)
    return conform_tell(c, CONFORM_DIFFERS, "its type is \"%.40s\"", type);
  return conform_tell(c, CONFORM_HOLDS, "%d", c->call->status);
}

/* An optional member that is null, or that version 0.25 did not have. */
static conform_call_t *odd_session(conform_t *c) {
  json_t *body = session_body();

  json_object_set_new(body, "display_name",
                      c->about != NULL ? json_string(c->about) : json_null());
  return conform_post_json(c, "create_session", body);
}

static conform_verdict_t odd_created(conform_t *c) {
  if (conform_is_refusal(c->call))
    return conform_tell(c, CONFORM_ALLOWED, "rejected with %d",
                        c->call->status);
  if (!conform_accepted(c, c->call, "200"))
    return conform_told(c);
  conform_made(c, CONFORM_SESSION, conform_text(c->call, "session_id"));
  return conform_tell(c, CONFORM_HOLDS, "accepted");
}

static conform_verdict_t repeat(conform_t *c) {
  conform_ask_t ask = {.method = "POST", .path = "create_session"};
  const char *ids[2];
  char name[64];

  conform_name(c, name, sizeof(name));
  ask.idempotency_key = name;
  for (size_t i = 0; i < 2; i++) {
    const conform_call_t *call;

    ask.json = session_body();
    call = conform_ask(c, &ask);
    ids[i] = conform_text(call, "session_id");
    if (!conform_is_ok(call) || ids[i] == NULL)
      return conform_other(c, call, "a session");
    conform_made(c, CONFORM_SESSION, ids[i]);
  }
  return conform_same(c, strcmp(ids[0], ids[1]) == 0, "session");
}

static conform_call_t *no_version(conform_t *c) {
  json_t *body = session_body();

  json_object_del(body, "sdk_version");
  return conform_post_json(c, "create_session", body);
}

static conform_verdict_t not_asked_for(conform_t *c) {
  if (conform_is_ok(c->call))
    conform_made(c, CONFORM_SESSION, conform_text(c->call, "session_id"));
  return conform_refusal(c, "it is not required", "a 4xx");
}

static conform_call_t *beat(conform_t *c, const char *session) {
  return conform_post(c, "session_heartbeat", "{s:s,s:s}", "session_id",
                      session, "type", "session_heartbeat");
}

static conform_call_t *beat_own(conform_t *c) {
  return beat(c, c->session);
}

static conform_verdict_t heartbeat(conform_t *c) {
  const char *type = conform_text(c->call, "type");

  if (!conform_accepted(c, c->call, "200"))
    return conform_told(c);
  if (!json_is_object(c->call->json) ||
      (type != NULL && strcmp(type, "session_heartbeat") != 0))
    return conform_tell(c, CONFORM_DIFFERS,
                        "the response belongs to another call");
  return conform_tell(c, CONFORM_HOLDS, "%d", c->call->status);
}

static conform_call_t *beat_none(conform_t *c) {
  return beat(c, CONFORM_NONE);
}

static conform_verdict_t no_session(conform_t *c) {
  const int status = c->call->status;

  if (status == 404 || status == 410)
    return conform_tell(c, CONFORM_HOLDS, "%d", status);
  if (status == 500)
    return conform_tell(c, CONFORM_ALLOWED, "500");
  return conform_other(c, c->call, "404");
}

/* Finish a new session. */
static conform_call_t *finish(conform_t *c) {
  return conform_finish(c, c->fresh->id);
}

static conform_verdict_t finish_twice(conform_t *c) {
  const conform_call_t *call = c->call;

  if (conform_is_absent(c, call) || call->status == 404)
    return conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  if (!conform_accepted(c, call, "a 2xx"))
    return conform_told(c);
  call = finish(c);
  if (!conform_is_ok(call) && !conform_is_refusal(call))
    return conform_other(c, call, "a response the second time");
  return conform_tell(c, CONFORM_HOLDS, "%d the second time", call->status);
}

static conform_verdict_t finished(conform_t *c) {
  const conform_call_t *call;

  if (!conform_is_ok(c->call))
    return conform_tell(c, CONFORM_SKIPPED,
                        "the session cannot be finished: %s", c->call->how);
  call = beat(c, c->fresh->id);
  conform_gone(c, c->fresh);
  if (call->status == 410 || call->status == 404)
    return conform_tell(c, CONFORM_HOLDS, "%d", call->status);
  return conform_other(c, call, "410");
}

/* ---- Server information ---- */

/* An answer with this "status". */
static conform_verdict_t has_status(conform_t *c, const char *wanted) {
  const char *status = conform_text(c->call, "status");

  if (!conform_offered(c, c->call, "200"))
    return conform_told(c);
  if (status == NULL || strcmp(status, wanted) != 0)
    return conform_tell(c, CONFORM_DIFFERS, "no {\"status\":\"%s\"}", wanted);
  return conform_tell(c, CONFORM_HOLDS, "%s", wanted);
}

static conform_verdict_t health(conform_t *c) {
  return has_status(c, "ok");
}

static conform_call_t *send_telemetry(conform_t *c) {
  return conform_post(c, "telemetry", "{s:[],s:s,s:s,s:s,s:s}", "events",
                      "platform", "Linux", "sdk_version", TNK__PROTOCOL_VERSION,
                      "session_id", "sessionless-" CONFORM_NONE, "process_uuid",
                      "00000000-0000-4000-8000-000000000000");
}

static conform_verdict_t telemetry(conform_t *c) {
  return has_status(c, "accepted");
}

static conform_verdict_t capabilities(conform_t *c) {
  tnk_capabilities_t *read = NULL;
  tnk__arena_t arena;
  size_t n = 0;
  int err;

  if (!conform_offered(c, c->call, "200"))
    return conform_told(c);
  tnk__arena_init(&arena, tnk__allocator_default(), 1 << 24);
  err = tnk__capabilities_read(&read, &arena, c->call->body.data,
                               c->call->body.len);
  if (err == TNK_OK)
    n = tnk_capabilities_count(read);
  tnk__arena_deinit(&arena);
  if (err != TNK_OK)
    return conform_tell(c, CONFORM_DIFFERS, "no \"supported_models\"");
  return conform_tell(c, n > 0 ? CONFORM_HOLDS : CONFORM_DIFFERS, "%zu", n);
}

static const conform_rule_t rules[] = {
    {"config", "flags have the types that clients expect", "transport 3.1",
     CONFORM_FREE, NULL, get_config, config, "client/config"},
    {"config-dynamic", "dynamic flags have the types that clients expect",
     "transport 3.2", CONFORM_FREE, NULL, get_config, config,
     "client/dynamic_config"},
    {"config-versions", "versions of the official client are accepted",
     "transport 3.1", CONFORM_FREE, NULL, NULL, versions, NULL},
    {"config-odd-version", "a version that is not a number is accepted",
     "transport 3.1", CONFORM_FREE, NULL, odd_version, any_version,
     "tnk-conform"},
    {"config-no-version", "a missing version is accepted", "transport 3.1",
     CONFORM_FREE, NULL, odd_version, any_version, NULL},
    {"key-missing", "a request without a key is rejected", "transport 1.3",
     CONFORM_FREE, NULL, with_key, key, ""},
    {"key-wrong", "a request with a wrong key is rejected", "transport 1.3",
     CONFORM_FREE, NULL, with_key, key, "tml-conform-wrong"},
    {"token", "the key can be exchanged for a token", "transport 1.7",
     CONFORM_FREE, NULL, NULL, token, NULL},
    {"token-invalid", "a wrong token is reported as invalid_token",
     "transport 1.7", CONFORM_FREE, tokens, with_key, bad_token,
     "eyJhbGciOiJub25lIn0.e30.x"},
    {"session-create", "a session can be created", "session 4.2", CONFORM_FREE,
     NULL, create, created, NULL},
    {"session-name", "a session can have a display name", "session 4.1",
     CONFORM_FREE, NULL, odd_session, odd_created, "tnk conform"},
    {"session-null", "an optional member can be null", "session 4.1",
     CONFORM_FREE, NULL, odd_session, odd_created, NULL},
    {"session-no-version", "a session without a version is rejected",
     "session 4.1", CONFORM_FREE, NULL, no_version, not_asked_for, NULL},
    {"session-repeat", "a repeat with the same key creates no second session",
     "transport 2.2", CONFORM_FREE, NULL, NULL, repeat, NULL},
    {"heartbeat", "a heartbeat is accepted", "session 4.4", CONFORM_FREE,
     conform_needs_session, beat_own, heartbeat, NULL},
    {"heartbeat-unknown", "the heartbeat of an unknown session is rejected",
     "session 4.4", CONFORM_FREE, NULL, beat_none, no_session, NULL},
    {"finish", "a session can be finished more than once", "session 4.8",
     CONFORM_FREE, conform_needs_new_session, finish, finish_twice, NULL},
    {"finish-ends", "the heartbeat of a finished session is rejected",
     "session 4.8", CONFORM_FREE, conform_needs_new_session, finish, finished,
     NULL},
    {"healthz", "the server reports that it is healthy", "session 4.2",
     CONFORM_FREE, NULL, conform_get_about, health, "healthz"},
    {"telemetry", "telemetry is accepted", "session 10.1", CONFORM_FREE, NULL,
     send_telemetry, telemetry, NULL},
    {"capabilities", "the supported models are listed", "session 4.2",
     CONFORM_FREE, NULL, conform_get_about, capabilities,
     "get_server_capabilities"},
};

const conform_group_t conform_session = {"configuration, keys, sessions", rules,
                                         sizeof(rules) / sizeof(*rules)};
