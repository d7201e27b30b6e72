/* Rules about sampling sessions, and about samples that no server can
 * accept. */
#include <stdio.h>
#include <string.h>

#include "tools/conform/state.h"

#define NONE "tnk-conform-none"

/* ---- Sessions ---- */

static json_t *session_body(conform_t *c, const char *session) {
  return json_pack(
      "{s:s,s:I,s:s}", "session_id", session, "sampling_session_seq_id",
      (json_int_t)conform_next_sampler(c), "type", "create_sampling_session");
}

static conform_verdict_t create(conform_t *c, const conform_rule_t *rule) {
  (void)rule;
  if (conform_sampler_id(c) == NULL)
    return c->session == NULL || c->base_model == NULL
               ? conform_skip(c)
               : conform_tell(c, CONFORM_DIFFERS, "%s", c->why);
  return conform_tell(c, CONFORM_HOLDS, "%s", "");
}

/* Invalid sessions: of nothing, of an invalid path, of weights that do not
 * exist. */
static conform_verdict_t refused(conform_t *c, const conform_rule_t *rule) {
  const char *session = conform_session_id(c);
  const conform_call_t *call;
  json_t *body;

  if (session == NULL)
    return conform_skip(c);
  body = session_body(c, session);
  if (rule->about != NULL)
    json_object_set_new(body, "model_path", json_string(rule->about));
  call = conform_post(c, "create_sampling_session", body);
  if (conform_is_refusal(call))
    return conform_tell(c, CONFORM_HOLDS, "%d", call->status);
  if (conform_is_ok(call))
    return conform_tell(c, CONFORM_ALLOWED, "it is made all the same");
  return conform_other(c, call, "a 4xx");
}

static conform_verdict_t no_session(conform_t *c, const conform_rule_t *rule) {
  const conform_call_t *call;
  json_t *body;

  (void)rule;
  if (conform_base_model(c) == NULL)
    return conform_skip(c);
  body = session_body(c, NONE);
  json_object_set_new(body, "base_model", json_string(c->base_model));
  call = conform_post(c, "create_sampling_session", body);
  if (conform_is_refusal(call))
    return conform_tell(c, CONFORM_HOLDS, "%d", call->status);
  if (conform_is_ok(call))
    return conform_tell(c, CONFORM_ALLOWED, "it is not looked at");
  return conform_other(c, call, "404");
}

static conform_verdict_t repeat_session(conform_t *c,
                                        const conform_rule_t *rule) {
  const char *session = conform_session_id(c);
  const int64_t number = conform_next_sampler(c);
  const char *ids[2];

  (void)rule;
  if (session == NULL || conform_base_model(c) == NULL)
    return conform_skip(c);
  for (size_t i = 0; i < 2; i++) {
    const conform_call_t *call = conform_post(
        c, "create_sampling_session",
        json_pack("{s:s,s:I,s:s,s:s}", "session_id", session,
                  "sampling_session_seq_id", (json_int_t)number, "base_model",
                  c->base_model, "type", "create_sampling_session"));

    ids[i] = conform_text(call, "sampling_session_id");
    if (i == 1 && conform_is_refusal(call))
      return conform_tell(c, CONFORM_ALLOWED, "refused with %d", call->status);
    if (!conform_is_ok(call) || ids[i] == NULL)
      return conform_other(c, call, "a sampling_session_id");
  }
  if (strcmp(ids[0], ids[1]) == 0)
    return conform_tell(c, CONFORM_HOLDS, "the same session");
  return conform_tell(c, CONFORM_ALLOWED, "a second session");
}

static conform_verdict_t join(conform_t *c, const conform_rule_t *rule) {
  const char *sampler = conform_sampler_id(c);
  json_int_t counters[2];

  (void)rule;
  if (sampler == NULL)
    return conform_skip(c);
  for (size_t i = 0; i < 2; i++) {
    const conform_call_t *call =
        conform_post(c, "join_sampling_session",
                     json_pack("{s:s,s:s}", "sampling_session_id", sampler,
                               "type", "join_sampling_session"));
    const json_t *counter = json_object_get(call->json, "client_counter");

    if (conform_is_absent(c, call))
      return json_is_true(
                 json_object_get(c->flags, "sample_join_sampling_session"))
                 ? conform_tell(c, CONFORM_DIFFERS,
                                "%d, though client/config asks for it",
                                call->status)
                 : conform_tell(c, CONFORM_ABSENT, "%d", call->status);
    if (!conform_is_ok(call))
      return conform_other(c, call, "200");
    if (!json_is_integer(counter))
      return conform_tell(c, CONFORM_DIFFERS, "no \"client_counter\"");
    counters[i] = json_integer_value(counter);
  }
  if (counters[0] < 1 || counters[0] == counters[1])
    return conform_tell(c, CONFORM_DIFFERS, "%lld, then %lld",
                        (long long)counters[0], (long long)counters[1]);
  return conform_tell(c, CONFORM_HOLDS, "%lld, then %lld",
                      (long long)counters[0], (long long)counters[1]);
}

static conform_verdict_t info(conform_t *c, const conform_rule_t *rule) {
  const char *sampler = conform_sampler_id(c);
  const conform_call_t *call;
  char path[600];
  const char *base;

  (void)rule;
  if (sampler == NULL)
    return conform_skip(c);
  /* The id goes into a path unencoded, so an id with special characters cannot
   * be tried. */
  if (strpbrk(sampler, " ?#%/\\") != NULL || strlen(sampler) > 500)
    return conform_tell(c, CONFORM_SKIPPED, "its id does not fit into a path");
  snprintf(path, sizeof(path), "samplers/%s", sampler);
  call = conform_get(c, path);
  base = conform_text(call, "base_model");
  if (conform_is_absent(c, call))
    return conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  if (!conform_is_ok(call))
    return conform_other(c, call, "200");
  if (base == NULL || strcmp(base, c->base_model) != 0)
    return conform_tell(c, CONFORM_DIFFERS, "its base_model is another one");
  return conform_tell(c, CONFORM_HOLDS, "%s", "");
}

/* ---- Refused samples ---- */

static conform_verdict_t unknown_sampler(conform_t *c,
                                         const conform_rule_t *rule) {
  const conform_call_t *call = conform_sample(c, NONE, 0, NULL, NULL);

  (void)rule;
  if (conform_is_refusal(call))
    return conform_tell(c, CONFORM_HOLDS, "%d", call->status);
  return conform_other(c, call, "404");
}

static conform_verdict_t no_weights(conform_t *c, const conform_rule_t *rule) {
  const conform_call_t *call = conform_sample(c, NULL, 0, NULL, NULL);

  (void)rule;
  if (conform_is_refusal(call))
    return conform_tell(c, CONFORM_HOLDS, "%d", call->status);
  return conform_other(c, call, "a 4xx");
}

static const conform_rule_t rules[] = {
    {"sampler-create", "a sampler of the base model is made", "session 4.1",
     CONFORM_FREE, create, NULL},
    {"sampler-no-session", "one in an unknown session is refused",
     "session 4.1", CONFORM_FREE, no_session, NULL},
    {"sampler-no-model", "so is one of nothing", "session 4.5", CONFORM_FREE,
     refused, NULL},
    {"sampler-no-weights", "of weights that nobody has", "session 4.5",
     CONFORM_FREE, refused, "tinker://tnk-conform-none/sampler_weights/none"},
    {"sampler-odd-path", "and of a path that is none", "session 4.5",
     CONFORM_FREE, refused, "file:///etc/passwd"},
    {"sampler-repeat", "a repeat with its number makes no second one",
     "session 4.5", CONFORM_FREE, repeat_session, NULL},
    {"sampler-join", "who joins gets a number that no other has", "session 4.9",
     CONFORM_FREE, join, NULL},
    {"sampler-info", "its base model is told", "rest 9", CONFORM_FREE, info,
     NULL},
    {"sample-unknown", "a sample of an unknown sampler is refused",
     "sampling 7.1", CONFORM_FREE, unknown_sampler, NULL},
    {"sample-nothing", "so is one of nothing", "sampling 7.1", CONFORM_FREE,
     no_weights, NULL},
};

const conform_group_t conform_sampler = {"samplers", rules,
                                         sizeof(rules) / sizeof(*rules)};
