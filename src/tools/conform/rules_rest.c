/* Rules about stored records: lists of runs, checkpoints and sessions. */
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/store/page.h"
#include "tools/conform/state.h"

enum { MAX_PATH = 8192 };

/* Request a page. Returns NULL if the finding is recorded already. */
static tnk_page_t *page_of(conform_t *c, const tnk__ask_t *about,
                           conform_verdict_t *verdict) {
  const tnk_allocator_t *alloc = tnk__allocator_default();
  conform_ask_t ask = {.method = "GET"};
  const conform_call_t *call;
  const char *what = NULL;
  tnk_page_t *page = NULL;
  tnk__buf_t target;
  uint8_t *copy;

  tnk__buf_init(&target, alloc, MAX_PATH);
  tnk__ask_write_target(&target, about);
  ask.path = tnk__buf_cstr(&target) != NULL ? (const char *)target.data : "";
  if (strncmp(ask.path, "/api/v1/", 8) == 0)
    ask.path += 8;
  call = conform_ask(c, &ask);
  tnk__buf_deinit(&target);
  if (conform_is_absent(c, call)) {
    *verdict = conform_tell(c, CONFORM_ABSENT, "%d", call->status);
    return NULL;
  }
  if (!conform_is_ok(call)) {
    *verdict = conform_other(c, call, "200");
    return NULL;
  }
  copy = tnk__malloc(alloc, call->body.len + 1);
  if (copy != NULL)
    memcpy(copy, call->body.data, call->body.len);
  if (copy != NULL && tnk__page_read(&page, alloc, about, NULL, copy,
                                     call->body.len, &what) == TNK_OK)
    return page;
  *verdict = conform_tell(c, CONFORM_DIFFERS, "\"%s\" is missing or wrong",
                          what != NULL ? what : "the list");
  return NULL;
}

static void free_page(tnk_page_t *page) {
  tnk__page_free(tnk__allocator_default(), page);
}

/* The records have the required members, and a page has at most the requested
 * number. */
static conform_verdict_t list(conform_t *c, const conform_rule_t *rule) {
  const tnk__ask_kind_t *kind = rule->about;
  const tnk__ask_t ask = {.kind = *kind, .limit = 1};
  conform_verdict_t verdict = CONFORM_DIFFERS;
  tnk_page_t *page = page_of(c, &ask, &verdict);

  if (page == NULL)
    return verdict;
  verdict = page->n_received <= 1
                ? conform_tell(c, CONFORM_HOLDS, "%s", "")
                : conform_tell(c, CONFORM_ALLOWED, "%zu where 1 was asked for",
                               page->n_received);
  free_page(page);
  return verdict;
}

/* A page after the last one is empty. */
static conform_verdict_t behind(conform_t *c, const conform_rule_t *rule) {
  const tnk__ask_kind_t *kind = rule->about;
  const tnk__ask_t ask = {.kind = *kind, .limit = 1, .offset = 999999999};
  conform_verdict_t verdict = CONFORM_DIFFERS;
  tnk_page_t *page = page_of(c, &ask, &verdict);

  if (page == NULL)
    return verdict;
  verdict = page->n_received == 0
                ? conform_tell(c, CONFORM_HOLDS, "%s", "")
                : conform_tell(c, CONFORM_DIFFERS, "%zu", page->n_received);
  free_page(page);
  return verdict;
}

static conform_verdict_t unknown(conform_t *c, const conform_rule_t *rule) {
  const conform_call_t *call = conform_get(c, rule->about);

  if (conform_is_absent(c, call))
    return conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  if (call->status == 404)
    return conform_tell(c, CONFORM_HOLDS, "%d", call->status);
  if (conform_is_refusal(call) || call->status == 500)
    return conform_tell(c, CONFORM_ALLOWED, "%d", call->status);
  if (conform_is_ok(call))
    return conform_tell(c, CONFORM_ALLOWED, "an empty list");
  return conform_other(c, call, "404");
}

/* ---- Objects of the run ---- */

/* Whether an answer has a list with a string. */
static int lists(const conform_call_t *call, const char *key,
                 const char *text) {
  const json_t *all = tnk__json_arr(call->json, key);

  for (size_t i = 0; i < json_array_size(all); i++) {
    const json_t *item = json_array_get(all, i);

    if (json_is_string(item) && strcmp(json_string_value(item), text) == 0)
      return 1;
  }
  return 0;
}

static conform_call_t *get_by_id(conform_t *c, const char *folder,
                                 const char *id, const char *suffix) {
  conform_ask_t ask = {.method = "GET"};
  conform_call_t *call;
  tnk__buf_t path;

  tnk__buf_init(&path, tnk__allocator_default(), MAX_PATH);
  tnk__buf_printf(&path, "%s/", folder);
  tnk__url_put_segment(&path, id);
  tnk__buf_text(&path, suffix);
  ask.path = tnk__buf_cstr(&path) != NULL ? (const char *)path.data : "";
  call = conform_ask(c, &ask);
  tnk__buf_deinit(&path);
  return call;
}

static conform_verdict_t session(conform_t *c, const conform_rule_t *rule) {
  const char *id = conform_session_id(c);
  const conform_call_t *call;

  (void)rule;
  if (id == NULL)
    return conform_skip(c);
  call = get_by_id(c, "sessions", id, "");
  if (conform_is_absent(c, call))
    return conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  if (!conform_is_ok(call))
    return conform_other(c, call, "200");
  if (tnk__json_arr(call->json, "training_run_ids") == NULL ||
      tnk__json_arr(call->json, "sampler_ids") == NULL)
    return conform_tell(c, CONFORM_DIFFERS,
                        "no \"training_run_ids\" or \"sampler_ids\"");
  return conform_tell(c, CONFORM_HOLDS, "%s", "");
}

static conform_verdict_t search(conform_t *c, const conform_rule_t *rule) {
  const char *id = conform_session_id(c);
  const conform_call_t *call;
  const json_t *found;
  const char *first;

  (void)rule;
  if (id == NULL)
    return conform_skip(c);
  call = conform_post(c, "sessions/search",
                      json_pack("{s:s,s:{},s:{s:s},s:i}", "session_id", id,
                                "user_metadata", "owner", "type", "own",
                                "limit", 2));
  if (conform_is_absent(c, call))
    return conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  if (!conform_is_ok(call))
    return conform_other(c, call, "200");
  found = tnk__json_arr(call->json, "sessions");
  first = tnk__json_str(json_array_get(found, 0), "session_id");
  if (json_array_size(found) != 1 || first == NULL || strcmp(first, id) != 0)
    return conform_tell(c, CONFORM_DIFFERS, "it is not found by its id");
  return conform_tell(c, CONFORM_HOLDS, "%s", "");
}

static conform_verdict_t run(conform_t *c, const conform_rule_t *rule) {
  const conform_made_t *model = conform_shared_model(c);
  const conform_call_t *call;
  const char *id;

  (void)rule;
  if (model == NULL)
    return conform_skip(c);
  call = get_by_id(c, "training_runs", model->id, "");
  id = conform_text(call, "training_run_id");
  if (conform_is_absent(c, call))
    return conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  if (!conform_is_ok(call))
    return conform_other(c, call, "200");
  if (id == NULL || strcmp(id, model->id) != 0 ||
      conform_text(call, "base_model") == NULL)
    return conform_tell(c, CONFORM_DIFFERS, "another run, or no base_model");
  return conform_tell(c, CONFORM_HOLDS, "%s", "");
}

static conform_verdict_t in_session(conform_t *c, const conform_rule_t *rule) {
  const conform_made_t *model = conform_shared_model(c);
  const conform_call_t *call;

  (void)rule;
  if (model == NULL)
    return conform_skip(c);
  call = get_by_id(c, "sessions", c->session, "");
  if (conform_is_absent(c, call))
    return conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  if (!conform_is_ok(call))
    return conform_other(c, call, "200");
  return lists(call, "training_run_ids", model->id)
             ? conform_tell(c, CONFORM_HOLDS, "%s", "")
             : conform_tell(c, CONFORM_DIFFERS, "it is not in the list");
}

/* A checkpoint of the shared model is in the list of its run. */
static conform_verdict_t checkpoint(conform_t *c, const conform_rule_t *rule) {
  conform_made_t *model = conform_any_model(c);
  const conform_call_t *call;
  const char *path;
  const json_t *all;
  conform_end_t end = {0};
  char name[64];

  (void)rule;
  if (model == NULL)
    return conform_skip(c);
  conform_name(c, name, sizeof(name));
  conform_follow(
      c,
      conform_post(c, "save_weights",
                   json_pack("{s:s,s:s,s:i,s:s}", "model_id", model->id, "path",
                             name, "seq_id", (int)model->seq++, "type",
                             "save_weights")),
      0, &end);
  path = end.fate == CONFORM_RESULT ? conform_text(end.last, "path") : NULL;
  if (path == NULL)
    return conform_tell(c, CONFORM_DIFFERS, "no save: %s", end.how);
  conform_made(c, CONFORM_CHECKPOINT, path);
  call = get_by_id(c, "training_runs", model->id, "/checkpoints");
  if (conform_is_absent(c, call))
    return conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  if (!conform_is_ok(call))
    return conform_other(c, call, "200");
  all = tnk__json_arr(call->json, "checkpoints");
  for (size_t i = 0; i < json_array_size(all); i++) {
    const char *other = tnk__json_str(json_array_get(all, i), "tinker_path");

    if (other != NULL && strcmp(other, path) == 0)
      return conform_tell(c, CONFORM_HOLDS, "%s", "");
  }
  return conform_tell(c, CONFORM_DIFFERS, "it is not among %zu",
                      json_array_size(all));
}

static const tnk__ask_kind_t runs = TNK__ASK_LIST_RUNS;
static const tnk__ask_kind_t checkpoints = TNK__ASK_LIST_CHECKPOINTS;
static const tnk__ask_kind_t sessions = TNK__ASK_LIST_SESSIONS;

static const conform_rule_t rules[] = {
    {"list-runs", "runs are listed one by one", "rest 9.11", CONFORM_FREE, list,
     &runs},
    {"list-runs-end", "and none behind the last", "rest 9.11", CONFORM_FREE,
     behind, &runs},
    {"list-checkpoints", "so are checkpoints", "rest 9.11", CONFORM_FREE, list,
     &checkpoints},
    {"list-checkpoints-end", "and none behind the last", "rest 9.11",
     CONFORM_FREE, behind, &checkpoints},
    {"list-sessions", "and sessions", "rest 9.11", CONFORM_FREE, list,
     &sessions},
    {"list-sessions-end", "and none behind the last", "rest 9.11", CONFORM_FREE,
     behind, &sessions},
    {"run-unknown", "a run that nobody has is a 404", "rest 9", CONFORM_FREE,
     unknown, "training_runs/tnk-conform-none"},
    {"session-unknown", "so is a session", "rest 9", CONFORM_FREE, unknown,
     "sessions/tnk-conform-none"},
    {"sampler-unknown", "and a sampler", "rest 9", CONFORM_FREE, unknown,
     "samplers/tnk-conform-none"},
    {"session-told", "what a session has is told", "rest 9", CONFORM_FREE,
     session, NULL},
    {"session-found", "it is found by its id", "rest 9.7", CONFORM_FREE, search,
     NULL},
    {"run-told", "a model is a run", "rest 9", CONFORM_SPENDS, run, NULL},
    {"run-of-session", "of its session", "rest 9", CONFORM_SPENDS, in_session,
     NULL},
    {"run-checkpoint", "whose checkpoints are listed", "rest 9", CONFORM_SPENDS,
     checkpoint, NULL},
};

const conform_group_t conform_rest = {"what a server keeps", rules,
                                      sizeof(rules) / sizeof(*rules)};
