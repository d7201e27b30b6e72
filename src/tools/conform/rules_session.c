/* Rules about configuration, keys, sessions, and the server's information. */
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/text.h"
#include "lib/wire/message/calls_session.h"
#include "tools/conform/state.h"

#define NONE "tnk-conform-none"

/* ---- Configuration ---- */

static conform_call_t *ask_config(conform_t *c, const char *path,
                                  const char *version) {
  return conform_post(c, path,
                      version != NULL
                          ? json_pack("{s:s}", "sdk_version", version)
                          : json_object());
}

/* Members that clients read must have the expected types. The official client
 * does not accept null. */
static const char *wrong_flag(const json_t *flags) {
  static const char *const bools[] = {"pjwt_auth_enabled",
                                      "parallel_fwdbwd_chunks",
                                      "proto_compress_fwdbwd",
                                      "sample_no_retries",
                                      "sample_enable_stuck_detection",
                                      "sample_use_retrieve_futures",
                                      "custom_loss_server_side",
                                      "sample_join_sampling_session"};
  static const char *const ints[] = {"sample_dispatch_bytes_semaphore_size",
                                     "inflight_response_bytes_semaphore_size",
                                     "fwdbwd_max_chunk_len",
                                     "fwdbwd_max_chunk_bytes_count",
                                     "fwdbwd_dispatch_bytes_semaphore_size",
                                     "sample_max_concurrent_requests",
                                     "refresh_interval_sec"};

  for (size_t i = 0; i < sizeof(bools) / sizeof(*bools); i++) {
    const json_t *flag = json_object_get(flags, bools[i]);

    if (flag != NULL && !json_is_boolean(flag))
      return bools[i];
  }
  for (size_t i = 0; i < sizeof(ints) / sizeof(*ints); i++) {
    const json_t *flag = json_object_get(flags, ints[i]);

    if (flag != NULL && !json_is_integer(flag))
      return ints[i];
  }
  return NULL;
}

static conform_verdict_t config(conform_t *c, const conform_rule_t *rule) {
  const char *path = rule->about;
  const conform_call_t *call = ask_config(c, path, TNK__PROTOCOL_VERSION);
  const char *wrong;

  if (call->status == 404 && strcmp(path, "client/dynamic_config") == 0)
    return conform_tell(c, CONFORM_ABSENT, "404, so that defaults hold");
  if (!conform_is_ok(call))
    return conform_other(c, call, "200");
  if (!json_is_object(call->json))
    return conform_tell(c, CONFORM_DIFFERS, "the answer is no JSON object");
  wrong = wrong_flag(call->json);
  if (wrong != NULL)
    return conform_tell(c, CONFORM_DIFFERS, "%s has the wrong type", wrong);
  return conform_tell(c, CONFORM_HOLDS, "%zu flags",
                      json_object_size(call->json));
}

static conform_verdict_t versions(conform_t *c, const conform_rule_t *rule) {
  static const char *const all[] = {"0.1.0",  "0.22.0", "0.25.0",
                                    "0.30.0", "0.38.0", "99.0.0"};
  char text[120];
  tnk__text_t refused;

  (void)rule;
  tnk__text_init(&refused, text, sizeof(text));
  for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
    const conform_call_t *call = ask_config(c, "client/config", all[i]);

    if (call->err != TNK_OK || call->status >= 500)
      return conform_other(c, call, "an answer");
    if (!conform_is_ok(call))
      tnk__text_printf(&refused, " %s", all[i]);
  }
  if (refused.len == 0)
    return conform_tell(c, CONFORM_HOLDS, "from 0.1.0 to 99.0.0");
  return conform_tell(c, CONFORM_ALLOWED, "it refuses%s", text);
}

static conform_verdict_t odd_version(conform_t *c, const conform_rule_t *rule) {
  const conform_call_t *call = ask_config(c, "client/config", rule->about);

  if (conform_is_ok(call))
    return conform_tell(c, CONFORM_HOLDS, "accepted");
  if (conform_is_refusal(call))
    return conform_tell(c, CONFORM_ALLOWED, "refused with %d", call->status);
  return conform_other(c, call, "an answer");
}

/* ---- Keys ---- */

static conform_verdict_t key(conform_t *c, const conform_rule_t *rule) {
  const conform_ask_t ask = {.method = "GET",
                             .path = "get_server_capabilities",
                             .api_key = rule->about};
  const conform_call_t *call = conform_ask(c, &ask);

  if (call->status == 401 || call->status == 403)
    return call->body.len > 0
               ? conform_tell(c, CONFORM_HOLDS, "%d", call->status)
               : conform_tell(c, CONFORM_DIFFERS, "%d without words",
                              call->status);
  if (conform_is_ok(call))
    return conform_tell(c, CONFORM_ALLOWED, "it asks for no key");
  return conform_other(c, call, "401 or 403");
}

static conform_verdict_t token(conform_t *c, const conform_rule_t *rule) {
  (void)rule;
  if (!c->wants_tokens)
    return conform_tell(c, CONFORM_ABSENT, "the key itself is taken");
  if (c->token == NULL)
    return conform_tell(c, CONFORM_DIFFERS,
                        "auth/token gives no \"jwt\" that can be sent");
  return conform_tell(c, CONFORM_HOLDS, "it lives %u s",
                      (unsigned)(c->token_life / 1000));
}

static conform_verdict_t bad_token(conform_t *c, const conform_rule_t *rule) {
  const conform_ask_t ask = {.method = "GET",
                             .path = "get_server_capabilities",
                             .api_key = "eyJhbGciOiJub25lIn0.e30.x"};
  const conform_call_t *call;

  (void)rule;
  if (!c->wants_tokens)
    return conform_tell(c, CONFORM_ABSENT, "there are no tokens");
  call = conform_ask(c, &ask);
  if (call->status == 401 && call->invalid_token)
    return conform_tell(c, CONFORM_HOLDS, "401, invalid_token");
  if (call->status == 401)
    return conform_tell(c, CONFORM_DIFFERS,
                        "401 without error=\"invalid_token\"");
  return conform_other(c, call, "401");
}

/* ---- Sessions ---- */

static json_t *session_body(const char *name) {
  return json_pack("{s:[],s:{},s:s,s:s?,s:s}", "tags", "user_metadata",
                   "sdk_version", TNK__PROTOCOL_VERSION, "display_name", name,
                   "type", "create_session");
}

static conform_verdict_t create(conform_t *c, const conform_rule_t *rule) {
  json_t *body = session_body("tnk conform");
  conform_call_t *call;
  const char *type;

  (void)rule;
  /* First omit the members that version 0.25 did not have, because the server
   * may be strict. */
  json_object_del(body, "display_name");
  call = conform_post(c, "create_session", body);
  if (!conform_is_ok(call))
    return conform_other(c, call, "200");
  if (conform_made(c, CONFORM_SESSION, conform_text(call, "session_id")) ==
      NULL)
    return conform_tell(c, CONFORM_DIFFERS,
                        "the answer has no \"session_id\" that is a text");
  type = conform_text(call, "type");
  if (type != NULL && strcmp(type, "create_session") != 0)
    return conform_tell(c, CONFORM_DIFFERS, "its type is \"%.40s\"", type);
  return conform_tell(c, CONFORM_HOLDS, "%d", call->status);
}

/* Optional members that are null, or that version 0.25 did not have. */
static conform_verdict_t odd_session(conform_t *c, const conform_rule_t *rule) {
  const char *name = rule->about;
  const conform_call_t *call =
      conform_post(c, "create_session", session_body(name));

  if (conform_is_refusal(call))
    return conform_tell(c, CONFORM_ALLOWED, "refused with %d", call->status);
  if (!conform_is_ok(call))
    return conform_other(c, call, "200");
  conform_made(c, CONFORM_SESSION, conform_text(call, "session_id"));
  return conform_tell(c, CONFORM_HOLDS, "accepted");
}

static conform_verdict_t repeat(conform_t *c, const conform_rule_t *rule) {
  conform_ask_t ask = {.method = "POST", .path = "create_session"};
  const conform_call_t *calls[2];
  const char *ids[2];
  char name[64];

  (void)rule;
  conform_name(c, name, sizeof(name));
  ask.idempotency_key = name;
  for (size_t i = 0; i < 2; i++) {
    ask.json = session_body(NULL);
    json_object_del(ask.json, "display_name");
    calls[i] = conform_ask(c, &ask);
    ids[i] = conform_text(calls[i], "session_id");
    if (!conform_is_ok(calls[i]) || ids[i] == NULL)
      return conform_other(c, calls[i], "a session");
    conform_made(c, CONFORM_SESSION, ids[i]);
  }
  if (strcmp(ids[0], ids[1]) == 0)
    return conform_tell(c, CONFORM_HOLDS, "the same session");
  return conform_tell(c, CONFORM_ALLOWED, "a second session");
}

static conform_verdict_t no_version(conform_t *c, const conform_rule_t *rule) {
  json_t *body = session_body(NULL);
  const conform_call_t *call;

  (void)rule;
  json_object_del(body, "display_name");
  json_object_del(body, "sdk_version");
  call = conform_post(c, "create_session", body);
  if (conform_is_refusal(call))
    return conform_tell(c, CONFORM_HOLDS, "%d", call->status);
  if (!conform_is_ok(call))
    return conform_other(c, call, "a 4xx");
  conform_made(c, CONFORM_SESSION, conform_text(call, "session_id"));
  return conform_tell(c, CONFORM_ALLOWED, "it is not asked for");
}

static conform_call_t *beat(conform_t *c, const char *session) {
  return conform_post(c, "session_heartbeat",
                      json_pack("{s:s,s:s}", "session_id", session, "type",
                                "session_heartbeat"));
}

static conform_verdict_t heartbeat(conform_t *c, const conform_rule_t *rule) {
  const char *session = conform_session_id(c);
  const conform_call_t *call;
  const char *type;

  (void)rule;
  if (session == NULL)
    return conform_skip(c);
  call = beat(c, session);
  if (!conform_is_ok(call))
    return conform_other(c, call, "200");
  type = conform_text(call, "type");
  if (!json_is_object(call->json) ||
      (type != NULL && strcmp(type, "session_heartbeat") != 0))
    return conform_tell(c, CONFORM_DIFFERS, "the answer is another call's");
  return conform_tell(c, CONFORM_HOLDS, "%d", call->status);
}

static conform_verdict_t no_session(conform_t *c, const conform_rule_t *rule) {
  const conform_call_t *call = beat(c, NONE);

  (void)rule;
  if (call->status == 404 || call->status == 410)
    return conform_tell(c, CONFORM_HOLDS, "%d", call->status);
  if (call->status == 500)
    return conform_tell(c, CONFORM_ALLOWED, "500");
  return conform_other(c, call, "404");
}

static conform_verdict_t finish(conform_t *c, const conform_rule_t *rule) {
  conform_made_t *made = conform_new_session(c);
  const conform_call_t *call;

  (void)rule;
  if (made == NULL)
    return conform_skip(c);
  call = conform_finish(c, made->id);
  if (conform_is_absent(c, call) || call->status == 404)
    return conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  if (!conform_is_ok(call))
    return conform_other(c, call, "a 2xx");
  call = conform_finish(c, made->id);
  if (!conform_is_ok(call) && !conform_is_refusal(call))
    return conform_other(c, call, "an answer the second time");
  return conform_tell(c, CONFORM_HOLDS, "and %d the second time", call->status);
}

static conform_verdict_t finished(conform_t *c, const conform_rule_t *rule) {
  conform_made_t *made = conform_new_session(c);
  const conform_call_t *call;

  (void)rule;
  if (made == NULL)
    return conform_skip(c);
  call = conform_finish(c, made->id);
  if (!conform_is_ok(call))
    return conform_tell(c, CONFORM_SKIPPED, "it cannot be finished: %s",
                        call->how);
  call = beat(c, made->id);
  conform_gone(c, made);
  if (call->status == 410 || call->status == 404)
    return conform_tell(c, CONFORM_HOLDS, "%d", call->status);
  return conform_other(c, call, "410");
}

/* ---- Server information ---- */

static conform_verdict_t health(conform_t *c, const conform_rule_t *rule) {
  const conform_call_t *call = conform_get(c, "healthz");
  const char *status = conform_text(call, "status");

  (void)rule;
  if (conform_is_absent(c, call))
    return conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  if (!conform_is_ok(call))
    return conform_other(c, call, "200");
  if (status == NULL || strcmp(status, "ok") != 0)
    return conform_tell(c, CONFORM_DIFFERS, "no {\"status\":\"ok\"}");
  return conform_tell(c, CONFORM_HOLDS, "ok");
}

static conform_verdict_t telemetry(conform_t *c, const conform_rule_t *rule) {
  const conform_call_t *call =
      conform_post(c, "telemetry",
                   json_pack("{s:[],s:s,s:s,s:s,s:s}", "events", "platform",
                             "Linux", "sdk_version", TNK__PROTOCOL_VERSION,
                             "session_id", "sessionless-" NONE, "process_uuid",
                             "00000000-0000-4000-8000-000000000000"));
  const char *status = conform_text(call, "status");

  (void)rule;
  if (conform_is_absent(c, call))
    return conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  if (!conform_is_ok(call))
    return conform_other(c, call, "200");
  if (status == NULL || strcmp(status, "accepted") != 0)
    return conform_tell(c, CONFORM_DIFFERS, "no {\"status\":\"accepted\"}");
  return conform_tell(c, CONFORM_HOLDS, "accepted");
}

static conform_verdict_t capabilities(conform_t *c,
                                      const conform_rule_t *rule) {
  const conform_call_t *call = conform_get(c, "get_server_capabilities");
  tnk_capabilities_t *read = NULL;
  tnk__arena_t arena;
  size_t n = 0;
  int err;

  (void)rule;
  if (conform_is_absent(c, call))
    return conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  if (!conform_is_ok(call))
    return conform_other(c, call, "200");
  tnk__arena_init(&arena, tnk__allocator_default(), 1 << 24);
  err = tnk__capabilities_read(&read, &arena, call->body.data, call->body.len);
  if (err == TNK_OK)
    n = tnk_capabilities_count(read);
  tnk__arena_deinit(&arena);
  if (err != TNK_OK)
    return conform_tell(c, CONFORM_DIFFERS, "no \"supported_models\"");
  return conform_tell(c, n > 0 ? CONFORM_HOLDS : CONFORM_DIFFERS, "%zu", n);
}

static const conform_rule_t rules[] = {
    {"config", "flags have the types that clients expect", "transport 3.1",
     CONFORM_FREE, config, "client/config"},
    {"config-dynamic", "so have those that change", "transport 3.2",
     CONFORM_FREE, config, "client/dynamic_config"},
    {"config-versions", "versions of the official client are accepted",
     "transport 3.1", CONFORM_FREE, versions, NULL},
    {"config-odd-version", "so is one that is no number", "transport 3.1",
     CONFORM_FREE, odd_version, "tnk-conform"},
    {"config-no-version", "and none at all", "transport 3.1", CONFORM_FREE,
     odd_version, NULL},
    {"key-missing", "who has no key is refused", "transport 1.3", CONFORM_FREE,
     key, ""},
    {"key-wrong", "who has another key is refused", "transport 1.3",
     CONFORM_FREE, key, "tml-conform-wrong"},
    {"token", "the key is exchanged for a token", "transport 1.7", CONFORM_FREE,
     token, NULL},
    {"token-invalid", "a wrong token is told from a wrong key", "transport 1.7",
     CONFORM_FREE, bad_token, NULL},
    {"session-create", "a session is made", "session 4.2", CONFORM_FREE, create,
     NULL},
    {"session-name", "it may have a name to show", "session 4.1", CONFORM_FREE,
     odd_session, "tnk conform"},
    {"session-null", "an optional member may be null", "session 4.1",
     CONFORM_FREE, odd_session, NULL},
    {"session-no-version", "without a version it is refused", "session 4.1",
     CONFORM_FREE, no_version, NULL},
    {"session-repeat", "a repeat with the same key makes no second one",
     "transport 2.2", CONFORM_FREE, repeat, NULL},
    {"heartbeat", "a session's heartbeat is taken", "session 4.4", CONFORM_FREE,
     heartbeat, NULL},
    {"heartbeat-unknown", "that of an unknown session is refused",
     "session 4.4", CONFORM_FREE, no_session, NULL},
    {"finish", "a session is finished, more than once", "session 4.8",
     CONFORM_FREE, finish, NULL},
    {"finish-ends", "the heartbeat of a finished session is refused",
     "session 4.8", CONFORM_FREE, finished, NULL},
    {"healthz", "the server says that it is well", "session 4.2", CONFORM_FREE,
     health, NULL},
    {"telemetry", "telemetry is accepted", "session 10.1", CONFORM_FREE,
     telemetry, NULL},
    {"capabilities", "models are named", "session 4.2", CONFORM_FREE,
     capabilities, NULL},
};

const conform_group_t conform_session = {"configuration, keys, sessions", rules,
                                         sizeof(rules) / sizeof(*rules)};
