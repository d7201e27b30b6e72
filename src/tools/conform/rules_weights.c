/* Rules about saves and loads. Saves get a time to live of one hour if the
 * server supports it. They are deleted when the rule returns. */
#include <stdio.h>
#include <string.h>

#include "tools/conform/state.h"

#define NONE "tnk-conform-none"
enum { HOUR_S = 3600 };

/* ---- Saving ---- */

typedef struct {
  const char *call;
  const char *kind; /* the part between run and name in its path */
} save_t;

static const save_t weights = {"save_weights", "weights"};
static const save_t for_sampler = {"save_weights_for_sampler",
                                   "sampler_weights"};
static const save_t external = {"save_weights_external", "external_weights"};

static json_t *save_body(const save_t *save, const char *model, int64_t seq,
                         const char *name) {
  return json_pack("{s:s,s:s,s:I,s:i,s:s}", "model_id", model, "path", name,
                   "seq_id", (json_int_t)seq, "ttl_seconds", HOUR_S, "type",
                   save->call);
}

/* Send a save. If the time to live is refused, send it again without one. */
static const conform_call_t *send_save(conform_t *c, const save_t *save,
                                       const conform_made_t *model, int64_t seq,
                                       const char *name, conform_end_t *end) {
  json_t *body = save_body(save, model->id, seq, name);
  const conform_call_t *call = conform_post(c, save->call, body);

  if (call->status == 400 || call->status == 422) {
    body = save_body(save, model->id, seq, name);
    json_object_del(body, "ttl_seconds");
    call = conform_post(c, save->call, body);
  }
  conform_follow(c, call, 0, end);
  if (end->fate == CONFORM_RESULT)
    conform_made(c, CONFORM_CHECKPOINT, conform_text(end->last, "path"));
  return call;
}

/* Save a checkpoint of a model. Returns NULL if the finding is recorded
 * already. */
static const char *saved(conform_t *c, const save_t *save,
                         conform_made_t *model, conform_verdict_t *verdict) {
  const conform_call_t *call;
  conform_end_t end = {0};
  char name[64];

  if (model == NULL) {
    *verdict = conform_skip(c);
    return NULL;
  }
  conform_name(c, name, sizeof(name));
  call = send_save(c, save, model, model->seq++, name, &end);
  if (conform_is_absent(c, call)) {
    *verdict = conform_tell(c, CONFORM_ABSENT, "%d", call->status);
    return NULL;
  }
  if (end.fate == CONFORM_RESULT && conform_text(end.last, "path") != NULL)
    return conform_text(end.last, "path");
  *verdict = end.fate == CONFORM_RESULT
                 ? conform_tell(c, CONFORM_DIFFERS, "the result has no path")
                 : conform_tell(c, CONFORM_DIFFERS, "%s", end.how);
  return NULL;
}

static conform_verdict_t path_form(conform_t *c, const conform_rule_t *rule) {
  const save_t *save = rule->about;
  conform_verdict_t verdict = CONFORM_DIFFERS;
  conform_made_t *model = conform_any_model(c);
  const char *path = saved(c, save, model, &verdict);
  const char *rest;
  const size_t n_kind = strlen(save->kind);

  if (path == NULL)
    return verdict;
  if (strncmp(path, "tinker://", 9) != 0)
    return conform_tell(c, CONFORM_DIFFERS, "no tinker:// path");
  rest = strchr(path + 9, '/');
  if (rest != NULL && strncmp(rest + 1, save->kind, n_kind) == 0 &&
      rest[1 + n_kind] == '/')
    return conform_tell(c, CONFORM_HOLDS, "tinker://run/%s/name", save->kind);
  return conform_tell(c, CONFORM_ALLOWED, "another form");
}

static conform_verdict_t repeat(conform_t *c, const conform_rule_t *rule) {
  conform_made_t *model = conform_any_model(c);
  const conform_call_t *calls[2];
  const char *ids[2];
  conform_end_t end = {0};
  char name[64];
  int64_t seq;

  (void)rule;
  if (model == NULL)
    return conform_skip(c);
  seq = model->seq++;
  conform_name(c, name, sizeof(name));
  for (size_t i = 0; i < 2; i++) {
    calls[i] = send_save(c, &weights, model, seq, name, &end);
    ids[i] = conform_text(calls[i], "request_id");
    if (i == 0 && end.fate != CONFORM_RESULT)
      return conform_tell(c, CONFORM_DIFFERS, "%s", end.how);
  }
  if (ids[0] != NULL && ids[1] != NULL && strcmp(ids[0], ids[1]) == 0)
    return conform_tell(c, CONFORM_HOLDS, "the same request");
  if (end.fate == CONFORM_FAILED)
    return conform_tell(c, CONFORM_ALLOWED, "%s",
                        end.last == NULL ? "it is refused" : "it fails");
  return conform_tell(c, CONFORM_ALLOWED, "it is saved twice");
}

static conform_verdict_t taken_name(conform_t *c, const conform_rule_t *rule) {
  conform_made_t *model = conform_any_model(c);
  const conform_call_t *call;
  conform_end_t end = {0};
  char name[64];

  (void)rule;
  if (model == NULL)
    return conform_skip(c);
  conform_name(c, name, sizeof(name));
  send_save(c, &weights, model, model->seq++, name, &end);
  if (end.fate != CONFORM_RESULT)
    return conform_tell(c, CONFORM_DIFFERS, "%s", end.how);
  call = send_save(c, &weights, model, model->seq++, name, &end);
  if (end.fate == CONFORM_FAILED)
    return conform_tell(c, CONFORM_HOLDS, "%s with %d",
                        end.last == NULL ? "at once" : "by its result",
                        end.last == NULL ? call->status : end.last->status);
  if (end.fate == CONFORM_RESULT)
    return conform_tell(c, CONFORM_ALLOWED, "it is written over");
  return conform_tell(c, CONFORM_DIFFERS, "%s", end.how);
}

static conform_verdict_t bad_name(conform_t *c, const conform_rule_t *rule) {
  conform_made_t *model = conform_any_model(c);
  conform_end_t end = {0};

  if (model == NULL)
    return conform_skip(c);
  send_save(c, &weights, model, model->seq++, rule->about, &end);
  if (end.fate == CONFORM_FAILED)
    return conform_tell(c, CONFORM_HOLDS, "%s",
                        end.last == NULL ? "at once" : "by its result");
  if (end.fate == CONFORM_RESULT)
    return conform_tell(c, CONFORM_DIFFERS, "it is taken");
  return conform_tell(c, CONFORM_DIFFERS, "%s", end.how);
}

/* A save without a name creates a sampling session. A client that retries it
 * takes a new number of the session. */
static json_t *unnamed_body(conform_t *c, const conform_made_t *model,
                            int64_t seq) {
  return json_pack("{s:s,s:I,s:I,s:s}", "model_id", model->id,
                   "sampling_session_seq_id",
                   (json_int_t)conform_next_sampler(c), "seq_id",
                   (json_int_t)seq, "type", for_sampler.call);
}

static conform_verdict_t unnamed(conform_t *c, const conform_rule_t *rule) {
  conform_made_t *model = conform_any_model(c);
  conform_end_t end = {0};

  (void)rule;
  if (model == NULL)
    return conform_skip(c);
  conform_follow(
      c,
      conform_post(c, for_sampler.call, unnamed_body(c, model, model->seq++)),
      0, &end);
  if (end.fate != CONFORM_RESULT)
    return conform_tell(c, CONFORM_DIFFERS, "%s", end.how);
  if (conform_text(end.last, "sampling_session_id") == NULL)
    return conform_tell(c, CONFORM_DIFFERS, "no \"sampling_session_id\"");
  return conform_tell(c, CONFORM_HOLDS, "%s", "");
}

static conform_verdict_t unnamed_repeat(conform_t *c,
                                        const conform_rule_t *rule) {
  conform_made_t *model = conform_any_model(c);
  const char *ids[2] = {NULL, NULL};
  conform_end_t end = {0};
  int64_t seq;

  (void)rule;
  if (model == NULL)
    return conform_skip(c);
  seq = model->seq++;
  for (size_t i = 0; i < 2; i++) {
    conform_follow(
        c, conform_post(c, for_sampler.call, unnamed_body(c, model, seq)), 0,
        &end);
    if (end.fate == CONFORM_RESULT)
      ids[i] = conform_text(end.last, "sampling_session_id");
    if (i == 0 && ids[0] == NULL)
      return conform_tell(c, CONFORM_DIFFERS, "%s", end.how);
  }
  if (ids[1] == NULL)
    return conform_tell(c, CONFORM_ALLOWED, "%s", end.how);
  if (strcmp(ids[0], ids[1]) == 0)
    return conform_tell(c, CONFORM_HOLDS, "the same sampler");
  return conform_tell(c, CONFORM_ALLOWED, "a second sampler");
}

/* ---- Loading ---- */

static conform_verdict_t load(conform_t *c, const conform_rule_t *rule) {
  conform_verdict_t verdict = CONFORM_DIFFERS;
  const char *path = saved(c, &weights, conform_any_model(c), &verdict);
  conform_made_t *model = path != NULL ? conform_new_model(c) : NULL;
  conform_end_t end = {0};

  (void)rule;
  if (path == NULL)
    return verdict;
  if (model == NULL)
    return conform_skip(c);
  conform_follow(c, conform_load(c, model->id, 1, path), 0, &end);
  if (end.fate == CONFORM_RESULT)
    return conform_tell(c, CONFORM_HOLDS, "%s", "");
  return conform_tell(c, CONFORM_DIFFERS, "%s", end.how);
}

static conform_verdict_t load_late(conform_t *c, const conform_rule_t *rule) {
  conform_verdict_t verdict = CONFORM_DIFFERS;
  conform_made_t *model = conform_any_model(c);
  const char *path = saved(c, &weights, model, &verdict);
  conform_end_t end = {0};

  (void)rule;
  if (path == NULL)
    return verdict;
  conform_follow(c, conform_load(c, model->id, model->seq++, path), 0, &end);
  if (end.fate == CONFORM_RESULT)
    return conform_tell(c, CONFORM_HOLDS, "%s", "");
  return conform_tell(
      c, end.fate == CONFORM_FAILED ? CONFORM_ALLOWED : CONFORM_DIFFERS, "%s",
      end.how);
}

static conform_verdict_t load_new(conform_t *c, const conform_rule_t *rule) {
  conform_verdict_t verdict = CONFORM_DIFFERS;
  const char *path = saved(c, &weights, conform_any_model(c), &verdict);
  const int64_t number = c->n_models++;
  const conform_call_t *call;
  conform_end_t end = {0};
  char id[600];

  (void)rule;
  if (path == NULL)
    return verdict;
  call =
      conform_post(c, "load_weights",
                   json_pack("{s:s,s:I,s:s,s:b,s:s}", "session_id", c->session,
                             "model_seq_id", (json_int_t)number, "path", path,
                             "optimizer", 0, "type", "load_weights"));
  if (conform_is_refusal(call))
    return conform_tell(c, CONFORM_ALLOWED, "%d: create_model comes first",
                        call->status);
  conform_follow(c, call, 0, &end);
  if (end.fate != CONFORM_RESULT)
    return conform_tell(c, CONFORM_DIFFERS, "%s", end.how);
  snprintf(id, sizeof(id), "%.500s:train:%lld", c->session, (long long)number);
  conform_made(c, CONFORM_MODEL, id);
  /* Clients do not read the id, but know it in advance. */
  conform_follow(c, conform_pass(c, id, 1, NULL), 1, &end);
  if (end.fate == CONFORM_RESULT)
    return conform_tell(c, CONFORM_HOLDS, "%s", "");
  return conform_tell(c, CONFORM_DIFFERS, "its first pass: %s", end.how);
}

static conform_verdict_t bad_load(conform_t *c, const conform_rule_t *rule) {
  conform_made_t *model = conform_any_model(c);
  conform_end_t end = {0};

  if (model == NULL)
    return conform_skip(c);
  conform_follow(c, conform_load(c, model->id, model->seq++, rule->about), 0,
                 &end);
  if (end.fate == CONFORM_FAILED)
    return conform_tell(c, CONFORM_HOLDS, "%s",
                        end.last == NULL ? "at once" : "by its result");
  return conform_tell(c, CONFORM_DIFFERS, "%s", end.how);
}

/* ---- Checkpoints ---- */

static conform_call_t *ask_info(conform_t *c, const char *path) {
  return conform_post(c, "weights_info",
                      json_pack("{s:s}", "tinker_path", path));
}

static conform_verdict_t info(conform_t *c, const conform_rule_t *rule) {
  conform_verdict_t verdict = CONFORM_DIFFERS;
  const char *path = saved(c, &weights, conform_any_model(c), &verdict);
  const conform_call_t *call;

  (void)rule;
  if (path == NULL)
    return verdict;
  call = ask_info(c, path);
  if (conform_is_absent(c, call))
    return conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  if (!conform_is_ok(call))
    return conform_other(c, call, "200");
  if (conform_text(call, "base_model") == NULL ||
      !json_is_boolean(json_object_get(call->json, "is_lora")))
    return conform_tell(c, CONFORM_DIFFERS, "no \"base_model\" or \"is_lora\"");
  return conform_tell(c, CONFORM_HOLDS, "%s", "");
}

static conform_verdict_t no_info(conform_t *c, const conform_rule_t *rule) {
  const conform_call_t *call = ask_info(c, rule->about);

  if (conform_is_absent(c, call))
    return conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  if (conform_is_refusal(call))
    return conform_tell(c, CONFORM_HOLDS, "%d", call->status);
  return conform_other(c, call, "a 4xx");
}

static conform_verdict_t delete (conform_t *c, const conform_rule_t *rule) {
  conform_verdict_t verdict = CONFORM_DIFFERS;
  const char *path = saved(c, &weights, conform_any_model(c), &verdict);
  const conform_call_t *call;

  (void)rule;
  if (path == NULL)
    return verdict;
  call = conform_of_checkpoint(c, "DELETE", path, "", NULL);
  if (conform_is_absent(c, call))
    return conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  if (!conform_is_ok(call))
    return conform_other(c, call, "a 2xx");
  call = conform_of_checkpoint(c, "DELETE", path, "", NULL);
  if (call->status == 404)
    return conform_tell(c, CONFORM_HOLDS, "and 404 the second time");
  return conform_other(c, call, "404 the second time");
}

static conform_verdict_t ttl(conform_t *c, const conform_rule_t *rule) {
  conform_verdict_t verdict = CONFORM_DIFFERS;
  const char *path = saved(c, &weights, conform_any_model(c), &verdict);
  const conform_call_t *call;

  (void)rule;
  if (path == NULL)
    return verdict;
  call = conform_of_checkpoint(c, "PUT", path, "/ttl",
                               json_pack("{s:n}", "ttl_seconds"));
  if (conform_is_absent(c, call))
    return conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  if (!conform_is_ok(call))
    return conform_other(c, call, "a 2xx for null, which is never");
  call = conform_of_checkpoint(c, "PUT", path, "/ttl",
                               json_pack("{s:i}", "ttl_seconds", HOUR_S));
  if (!conform_is_ok(call))
    return conform_other(c, call, "a 2xx for an hour");
  call = conform_of_checkpoint(c, "PUT", path, "/ttl",
                               json_pack("{s:i}", "ttl_seconds", -1));
  if (conform_is_refusal(call))
    return conform_tell(c, CONFORM_HOLDS, "%s", "");
  return conform_other(c, call, "a 4xx for -1");
}

static const conform_rule_t rules[] = {
    {"weights-unknown", "weights that nobody has are a 404", "session 4.2",
     CONFORM_FREE, no_info, CONFORM_NO_WEIGHTS},
    {"weights-odd-path", "a path that is none is refused", "session 4.2",
     CONFORM_FREE, no_info, "tinker://../../etc"},
    {"save-path", "a save has a path of three parts", "training 5.6",
     CONFORM_SPENDS, path_form, &weights},
    {"save-sampler-path", "so has one for sampling", "training 5.6",
     CONFORM_SPENDS, path_form, &for_sampler},
    {"save-external-path", "and one for other programs", "training 5.6",
     CONFORM_SPENDS, path_form, &external},
    {"save-repeat", "a repeat of a save is the same request", "training 5.6",
     CONFORM_SPENDS, repeat, NULL},
    {"save-taken", "a name that is taken is refused", "training 5.6",
     CONFORM_SPENDS, taken_name, NULL},
    {"save-slash", "so is one with a slash", "training 5.6", CONFORM_SPENDS,
     bad_name, "a/b"},
    {"save-dots", "and one that leaves the folder", "training 5.6",
     CONFORM_SPENDS, bad_name, ".."},
    {"save-unnamed", "a save without a name makes a sampler", "training 5.6",
     CONFORM_SPENDS, unnamed, NULL},
    {"save-unnamed-repeat", "and its repeat no second one", "training 5.6",
     CONFORM_SPENDS, unnamed_repeat, NULL},
    {"load", "what was saved can be loaded", "training 5.6", CONFORM_SPENDS,
     load, NULL},
    {"load-late", "into a model that has worked, too", "training 5.6",
     CONFORM_SPENDS, load_late, NULL},
    {"load-new", "and makes a model in one call", "session 4.6", CONFORM_SPENDS,
     load_new, NULL},
    {"load-unknown", "what nobody has cannot be loaded", "training 5.6",
     CONFORM_SPENDS, bad_load, CONFORM_NO_WEIGHTS},
    {"load-odd-path", "nor a path that is none", "training 5.6", CONFORM_SPENDS,
     bad_load, "/etc/passwd"},
    {"weights-info", "what was saved is told of", "session 4.2", CONFORM_SPENDS,
     info, NULL},
    {"weights-delete", "and can be deleted", "rest 9", CONFORM_SPENDS, delete,
     NULL},
    {"weights-ttl", "its time to live is set and taken away", "rest 9",
     CONFORM_SPENDS, ttl, NULL},
};

const conform_group_t conform_weights = {"saves and loads", rules,
                                         sizeof(rules) / sizeof(*rules)};
