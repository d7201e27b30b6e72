/* SPDX-License-Identifier: MIT */
/* Rules about stored records: lists of runs, checkpoints and sessions. */
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/store/page.h"
#include "tools/conform/state.h"

enum { MAX_PATH = 8192 };

/* Request a page, and count its records. Returns 0 if the finding is recorded
 * already. */
static int count_page(conform_t *c, const tnk__ask_t *about, size_t *n) {
  const tnk_allocator_t *alloc = tnk__allocator_default();
  conform_ask_t ask = {.method = "GET"};
  const char *what = NULL;
  tnk_page_t *page = NULL;
  const conform_call_t *call;
  tnk__buf_t target;
  uint8_t *copy;

  tnk__buf_init(&target, alloc, MAX_PATH);
  tnk__ask_write_target(&target, about);
  ask.path = tnk__buf_cstr(&target) != NULL ? (const char *)target.data : "";
  if (strncmp(ask.path, "/api/v1/", 8) == 0)
    ask.path += 8;
  call = conform_ask(c, &ask);
  tnk__buf_deinit(&target);
  if (!conform_offered(c, call, "200"))
    return 0;
  copy = tnk__malloc(alloc, call->body.len + 1);
  if (copy != NULL)
    memcpy(copy, call->body.data, call->body.len);
  if (copy == NULL || tnk__page_read(&page, alloc, about, NULL, copy,
                                     call->body.len, &what) != TNK_OK) {
    conform_tell(c, CONFORM_DIFFERS, "\"%s\" is missing or wrong",
                 what != NULL ? what : "the list");
    return 0;
  }
  *n = page->n_received;
  tnk__page_free(alloc, page);
  return 1;
}

/* The records have the required members, and a page has at most the requested
 * number. */
static conform_verdict_t list(conform_t *c) {
  const tnk__ask_kind_t *kind = c->about;
  const tnk__ask_t ask = {.kind = *kind, .limit = 1};
  size_t n;

  if (!count_page(c, &ask, &n))
    return conform_told(c);
  if (n <= 1)
    return conform_holds(c);
  return conform_tell(c, CONFORM_ALLOWED, "%zu instead of 1", n);
}

/* A page after the last one is empty. */
static conform_verdict_t behind(conform_t *c) {
  const tnk__ask_kind_t *kind = c->about;
  const tnk__ask_t ask = {.kind = *kind, .limit = 1, .offset = 999999999};
  size_t n;

  if (!count_page(c, &ask, &n))
    return conform_told(c);
  if (n == 0)
    return conform_holds(c);
  return conform_tell(c, CONFORM_DIFFERS, "%zu", n);
}

static conform_verdict_t unknown(conform_t *c) {
  const conform_call_t *call = c->call;

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

static conform_call_t *get_session(conform_t *c) {
  return conform_of(c, "GET", "sessions", c->session, "", NULL);
}

static conform_verdict_t session(conform_t *c) {
  if (!conform_offered(c, c->call, "200"))
    return conform_told(c);
  if (tnk__json_arr(c->call->json, "training_run_ids") == NULL ||
      tnk__json_arr(c->call->json, "sampler_ids") == NULL)
    return conform_tell(c, CONFORM_DIFFERS,
                        "no \"training_run_ids\" or \"sampler_ids\"");
  return conform_holds(c);
}

static conform_call_t *search(conform_t *c) {
  return conform_post(c, "sessions/search", "{s:s,s:{},s:{s:s},s:i}",
                      "session_id", c->session, "user_metadata", "owner",
                      "type", "own", "limit", 2);
}

static conform_verdict_t found(conform_t *c) {
  const json_t *all = tnk__json_arr(c->call->json, "sessions");
  const char *first = tnk__json_str(json_array_get(all, 0), "session_id");

  if (!conform_offered(c, c->call, "200"))
    return conform_told(c);
  if (json_array_size(all) != 1 || first == NULL ||
      strcmp(first, c->session) != 0)
    return conform_tell(c, CONFORM_DIFFERS, "it is not found by its id");
  return conform_holds(c);
}

static conform_call_t *get_run(conform_t *c) {
  return conform_of(c, "GET", "training_runs", c->model->id, "", NULL);
}

static conform_verdict_t run(conform_t *c) {
  const char *id = conform_text(c->call, "training_run_id");

  if (!conform_offered(c, c->call, "200"))
    return conform_told(c);
  if (id == NULL || strcmp(id, c->model->id) != 0 ||
      conform_text(c->call, "base_model") == NULL)
    return conform_tell(c, CONFORM_DIFFERS, "another run, or no base_model");
  return conform_holds(c);
}

static conform_verdict_t in_session(conform_t *c) {
  const json_t *all = tnk__json_arr(c->call->json, "training_run_ids");

  if (!conform_offered(c, c->call, "200"))
    return conform_told(c);
  for (size_t i = 0; i < json_array_size(all); i++) {
    const char *id = json_string_value(json_array_get(all, i));

    if (id != NULL && strcmp(id, c->model->id) == 0)
      return conform_holds(c);
  }
  return conform_tell(c, CONFORM_DIFFERS, "it is not in the list");
}

static int saved(conform_t *c) {
  if (!conform_needs_any_model(c))
    return 0;
  conform_save(c, "save_weights", c->model->seq++, NULL);
  c->path =
      c->end.fate == CONFORM_RESULT ? conform_text(c->end.last, "path") : NULL;
  if (c->path == NULL)
    conform_tell(c, CONFORM_DIFFERS, "no save: %s", c->end.how);
  return c->path != NULL;
}

static conform_call_t *get_checkpoints(conform_t *c) {
  return conform_of(c, "GET", "training_runs", c->model->id, "/checkpoints",
                    NULL);
}

/* A checkpoint of a model is in the list of its run. */
static conform_verdict_t checkpoint(conform_t *c) {
  const json_t *all = tnk__json_arr(c->call->json, "checkpoints");

  if (!conform_offered(c, c->call, "200"))
    return conform_told(c);
  for (size_t i = 0; i < json_array_size(all); i++) {
    const char *other = tnk__json_str(json_array_get(all, i), "tinker_path");

    if (other != NULL && strcmp(other, c->path) == 0)
      return conform_holds(c);
  }
  return conform_tell(c, CONFORM_DIFFERS, "it is not among %zu",
                      json_array_size(all));
}

static const tnk__ask_kind_t runs = TNK__ASK_LIST_RUNS;
static const tnk__ask_kind_t checkpoints = TNK__ASK_LIST_CHECKPOINTS;
static const tnk__ask_kind_t sessions = TNK__ASK_LIST_SESSIONS;

static const conform_rule_t rules[] = {
    {"list-runs", "runs can be listed one by one", "rest 9.11", CONFORM_FREE,
     NULL, NULL, list, &runs},
    {"list-runs-end", "the list of runs is empty after the last one",
     "rest 9.11", CONFORM_FREE, NULL, NULL, behind, &runs},
    {"list-checkpoints", "checkpoints can be listed one by one", "rest 9.11",
     CONFORM_FREE, NULL, NULL, list, &checkpoints},
    {"list-checkpoints-end",
     "the list of checkpoints is empty after the last one", "rest 9.11",
     CONFORM_FREE, NULL, NULL, behind, &checkpoints},
    {"list-sessions", "sessions can be listed one by one", "rest 9.11",
     CONFORM_FREE, NULL, NULL, list, &sessions},
    {"list-sessions-end", "the list of sessions is empty after the last one",
     "rest 9.11", CONFORM_FREE, NULL, NULL, behind, &sessions},
    {"run-unknown", "an unknown run gets 404", "rest 9", CONFORM_FREE, NULL,
     conform_get_about, unknown, "training_runs/tnk-conform-none"},
    {"session-unknown", "an unknown session gets 404", "rest 9", CONFORM_FREE,
     NULL, conform_get_about, unknown, "sessions/tnk-conform-none"},
    {"sampler-unknown", "an unknown sampler gets 404", "rest 9", CONFORM_FREE,
     NULL, conform_get_about, unknown, "samplers/tnk-conform-none"},
    {"session-told", "a session lists its runs and samplers", "rest 9",
     CONFORM_FREE, conform_needs_session, get_session, session, NULL},
    {"session-found", "a search finds a session by its id", "rest 9.7",
     CONFORM_FREE, conform_needs_session, search, found, NULL},
    {"run-told", "a model is also a run", "rest 9", CONFORM_SPENDS,
     conform_needs_shared_model, get_run, run, NULL},
    {"run-of-session", "a session lists the run of its model", "rest 9",
     CONFORM_SPENDS, conform_needs_shared_model, get_session, in_session, NULL},
    {"run-checkpoint", "a run lists its checkpoints", "rest 9", CONFORM_SPENDS,
     saved, get_checkpoints, checkpoint, NULL},
};

const conform_group_t conform_rest = {"stored records", rules,
                                      sizeof(rules) / sizeof(*rules)};
