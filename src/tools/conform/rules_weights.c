/* SPDX-License-Identifier: MIT */
/* Rules about saves and loads, and about weights for other programs: the links
 * to their files, and the files. Saves get a time to live of one hour if the
 * server supports it. They are deleted when the rule returns. Links are
 * credentials, so no part of them is reported. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "tools/conform/state.h"

enum { MAX_NAME = 255 };

/* ---- Saving ---- */

typedef struct {
  const char *call;
  const char *kind; /* the part between run and name in its path */
} save_t;

static const save_t weights = {"save_weights", "weights"};
static const save_t for_sampler = {"save_weights_for_sampler",
                                   "sampler_weights"};
static const save_t external = {"save_weights_external", "external_weights"};

/* Save a checkpoint of a model. `what` begins the detail of a failure. */
static int save(conform_t *c, const save_t *kind, const char *what) {
  const conform_call_t *call;

  if (!conform_needs_any_model(c))
    return 0;
  call = conform_save(c, kind->call, c->model->seq++, NULL);
  c->path =
      c->end.fate == CONFORM_RESULT ? conform_text(c->end.last, "path") : NULL;
  if (conform_is_absent(c, call))
    conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  else if (c->path == NULL)
    conform_tell(c, CONFORM_DIFFERS, "%s%s", what,
                 c->end.fate == CONFORM_RESULT && what[0] == '\0'
                     ? "the result has no path"
                     : c->end.how);
  return c->path != NULL;
}

static int saved(conform_t *c) {
  return save(c, &weights, "");
}

static int saved_as(conform_t *c) {
  return save(c, c->about, "");
}

static conform_verdict_t path_form(conform_t *c) {
  const char *kind = ((const save_t *)c->about)->kind;
  const size_t n_kind = strlen(kind);
  const char *rest;

  if (strncmp(c->path, "tinker://", 9) != 0)
    return conform_tell(c, CONFORM_DIFFERS, "no tinker:// path");
  rest = strchr(c->path + 9, '/');
  if (rest != NULL && strncmp(rest + 1, kind, n_kind) == 0 &&
      rest[1 + n_kind] == '/')
    return conform_tell(c, CONFORM_HOLDS, "tinker://run/%s/name", kind);
  return conform_tell(c, CONFORM_ALLOWED, "another form");
}

static conform_verdict_t repeat(conform_t *c) {
  const int64_t seq = c->model->seq++;
  const char *ids[2];
  char name[64];

  conform_name(c, name, sizeof(name));
  for (size_t i = 0; i < 2; i++) {
    ids[i] =
        conform_text(conform_save(c, weights.call, seq, name), "request_id");
    if (i == 0 && c->end.fate != CONFORM_RESULT)
      return conform_tell(c, CONFORM_DIFFERS, "%s", c->end.how);
  }
  if (ids[0] != NULL && ids[1] != NULL && strcmp(ids[0], ids[1]) == 0)
    return conform_tell(c, CONFORM_HOLDS, "the same request");
  if (c->end.fate == CONFORM_FAILED)
    return conform_tell(c, CONFORM_ALLOWED, "%s",
                        c->end.last == NULL ? "it is rejected" : "it fails");
  return conform_tell(c, CONFORM_ALLOWED, "it is saved twice");
}

static conform_verdict_t taken_name(conform_t *c) {
  const conform_call_t *last;
  char name[64];

  conform_name(c, name, sizeof(name));
  conform_save(c, weights.call, c->model->seq++, name);
  if (c->end.fate != CONFORM_RESULT)
    return conform_tell(c, CONFORM_DIFFERS, "%s", c->end.how);
  last = conform_save(c, weights.call, c->model->seq++, name);
  if (c->end.last != NULL)
    last = c->end.last;
  if (c->end.fate == CONFORM_FAILED)
    return conform_tell(c, CONFORM_HOLDS, "%s with %d",
                        c->end.last == NULL ? "at once" : "in the result",
                        last->status);
  if (c->end.fate == CONFORM_RESULT)
    return conform_tell(c, CONFORM_ALLOWED, "it is overwritten");
  return conform_tell(c, CONFORM_DIFFERS, "%s", c->end.how);
}

static conform_call_t *bad_name(conform_t *c) {
  return conform_save(c, weights.call, c->model->seq++, c->about);
}

static conform_verdict_t refused_name(conform_t *c) {
  return conform_rejected(c, CONFORM_DIFFERS, "it is accepted");
}

static conform_call_t *unnamed(conform_t *c) {
  return conform_save_unnamed(c, c->model->seq++);
}

static conform_verdict_t made_sampler(conform_t *c) {
  if (!conform_succeeds(c, c->call, 0))
    return conform_told(c);
  if (conform_text(c->end.last, "sampling_session_id") == NULL)
    return conform_tell(c, CONFORM_DIFFERS, "no \"sampling_session_id\"");
  return conform_holds(c);
}

static conform_verdict_t unnamed_repeat(conform_t *c) {
  const char *ids[2] = {NULL, NULL};
  const int64_t seq = c->model->seq++;

  for (size_t i = 0; i < 2; i++) {
    if (conform_follow(c, conform_save_unnamed(c, seq), 0) == CONFORM_RESULT)
      ids[i] = conform_text(c->end.last, "sampling_session_id");
    if (ids[i] == NULL)
      return conform_tell(c, i == 0 ? CONFORM_DIFFERS : CONFORM_ALLOWED, "%s",
                          c->end.how);
  }
  return conform_same(c, strcmp(ids[0], ids[1]) == 0, "sampler");
}

/* ---- Loading ---- */

static int saved_and_new(conform_t *c) {
  return saved(c) && conform_needs_model(c);
}

static conform_call_t *load(conform_t *c) {
  return conform_load(c, c->model->id, c->model->seq++, c->path);
}

static conform_verdict_t loaded(conform_t *c) {
  return conform_succeeds(c, c->call, 0) ? conform_holds(c) : conform_told(c);
}

static conform_verdict_t loaded_late(conform_t *c) {
  if (conform_follow(c, c->call, 0) == CONFORM_RESULT)
    return conform_holds(c);
  return conform_tell(
      c, c->end.fate == CONFORM_FAILED ? CONFORM_ALLOWED : CONFORM_DIFFERS,
      "%s", c->end.how);
}

static conform_verdict_t load_new(conform_t *c) {
  const int64_t number = c->n_models++;
  const conform_call_t *call =
      conform_post(c, "load_weights", "{s:s,s:I,s:s,s:b,s:s}", "session_id",
                   c->session, "model_seq_id", (json_int_t)number, "path",
                   c->path, "optimizer", 0, "type", "load_weights");
  char id[600];

  if (conform_is_refusal(call))
    return conform_tell(c, CONFORM_ALLOWED, "%d: create_model is required",
                        call->status);
  if (!conform_succeeds(c, call, 0))
    return conform_told(c);
  snprintf(id, sizeof(id), "%.500s:train:%lld", c->session, (long long)number);
  conform_made(c, CONFORM_MODEL, id);
  /* Clients do not read the id, but know it in advance. */
  call = conform_pass(c, id, 1, NULL);
  if (conform_follow(c, call, 1) == CONFORM_RESULT)
    return conform_holds(c);
  return conform_tell(c, CONFORM_DIFFERS, "its first pass: %s", c->end.how);
}

static conform_call_t *bad_load(conform_t *c) {
  return conform_load(c, c->model->id, c->model->seq++, c->about);
}

static conform_verdict_t not_loaded(conform_t *c) {
  conform_follow(c, c->call, 0);
  return conform_rejected(c, CONFORM_DIFFERS, c->end.how);
}

/* ---- Checkpoints ---- */

static conform_call_t *ask_info(conform_t *c) {
  return conform_post(c, "weights_info", "{s:s}", "tinker_path",
                      c->path != NULL ? c->path : (const char *)c->about);
}

static conform_verdict_t info(conform_t *c) {
  if (!conform_offered(c, c->call, "200"))
    return conform_told(c);
  if (conform_text(c->call, "base_model") == NULL ||
      !json_is_boolean(json_object_get(c->call->json, "is_lora")))
    return conform_tell(c, CONFORM_DIFFERS, "no \"base_model\" or \"is_lora\"");
  return conform_holds(c);
}

static conform_verdict_t no_info(conform_t *c) {
  if (conform_is_absent(c, c->call))
    return conform_tell(c, CONFORM_ABSENT, "%d", c->call->status);
  return conform_refused(c);
}

static conform_call_t *erase(conform_t *c) {
  return conform_of_checkpoint(c, "DELETE", c->path, "", NULL);
}

static conform_verdict_t erased(conform_t *c) {
  const conform_call_t *call;

  if (!conform_offered(c, c->call, "a 2xx"))
    return conform_told(c);
  call = erase(c);
  if (call->status == 404)
    return conform_tell(c, CONFORM_HOLDS, "404 the second time");
  return conform_other(c, call, "404 the second time");
}

static conform_call_t *set_ttl(conform_t *c, json_t *value) {
  return conform_of_checkpoint(c, "PUT", c->path, "/ttl",
                               json_pack("{s:o}", "ttl_seconds", value));
}

static conform_verdict_t ttl(conform_t *c) {
  if (!conform_offered(c, set_ttl(c, json_null()), "a 2xx for null (never)") ||
      !conform_accepted(c, set_ttl(c, json_integer(3600)), "a 2xx for an hour"))
    return conform_told(c);
  c->call = set_ttl(c, json_integer(-1));
  if (conform_is_refusal(c->call))
    return conform_holds(c);
  return conform_other(c, c->call, "a 4xx for -1");
}

static const conform_rule_t saving[] = {
    {"weights-unknown", "weights_info of unknown weights is rejected",
     "session 4.2", CONFORM_FREE, NULL, ask_info, no_info, CONFORM_NO_WEIGHTS},
    {"weights-odd-path", "weights_info of an invalid path is rejected",
     "session 4.2", CONFORM_FREE, NULL, ask_info, no_info,
     "tinker://../../etc"},
    {"save-path", "a save has a path of three parts", "training 5.6",
     CONFORM_SPENDS, saved_as, NULL, path_form, &weights},
    {"save-sampler-path", "a save for sampling has a path of three parts",
     "training 5.6", CONFORM_SPENDS, saved_as, NULL, path_form, &for_sampler},
    {"save-external-path", "an export has a path of three parts",
     "training 5.6", CONFORM_SPENDS, saved_as, NULL, path_form, &external},
    {"save-repeat", "a repeated save is the same request", "training 5.6",
     CONFORM_SPENDS, conform_needs_any_model, NULL, repeat, NULL},
    {"save-taken", "a used name is rejected", "training 5.6", CONFORM_SPENDS,
     conform_needs_any_model, NULL, taken_name, NULL},
    {"save-slash", "a name with a slash is rejected", "training 5.6",
     CONFORM_SPENDS, conform_needs_any_model, bad_name, refused_name, "a/b"},
    {"save-dots", "a name that leaves the folder is rejected", "training 5.6",
     CONFORM_SPENDS, conform_needs_any_model, bad_name, refused_name, ".."},
    {"save-unnamed", "a save without a name creates a sampler", "training 5.6",
     CONFORM_SPENDS, conform_needs_any_model, unnamed, made_sampler, NULL},
    {"save-unnamed-repeat",
     "a repeated save without a name creates no second sampler", "training 5.6",
     CONFORM_SPENDS, conform_needs_any_model, NULL, unnamed_repeat, NULL},
    {"load", "saved weights can be loaded", "training 5.6", CONFORM_SPENDS,
     saved_and_new, load, loaded, NULL},
    {"load-late", "saved weights can be loaded into a used model",
     "training 5.6", CONFORM_SPENDS, saved, load, loaded_late, NULL},
    {"load-new", "load_weights can create a model", "session 4.6",
     CONFORM_SPENDS, saved, NULL, load_new, NULL},
    {"load-unknown", "unknown weights cannot be loaded", "training 5.6",
     CONFORM_SPENDS, conform_needs_any_model, bad_load, not_loaded,
     CONFORM_NO_WEIGHTS},
    {"load-odd-path", "an invalid path cannot be loaded", "training 5.6",
     CONFORM_SPENDS, conform_needs_any_model, bad_load, not_loaded,
     "/etc/passwd"},
    {"weights-info", "weights_info describes saved weights", "session 4.2",
     CONFORM_SPENDS, saved, ask_info, info, NULL},
    {"weights-delete", "saved weights can be deleted", "rest 9", CONFORM_SPENDS,
     saved, erase, erased, NULL},
    {"weights-ttl", "the time to live can be set and removed", "rest 9",
     CONFORM_SPENDS, saved, NULL, ttl, NULL},
};

const conform_group_t conform_weights = {"saves and loads", saving,
                                         sizeof(saving) / sizeof(*saving)};

/* ---- Links ---- */

/* Export weights, and request the links to the files. */
static int linked(conform_t *c) {
  if (c->path == NULL && !save(c, &external, "no export: "))
    return 0;
  tnk__json_get_int(c->end.last->json, "size_bytes", 0, INT64_MAX, &c->size);
  c->call =
      conform_of_checkpoint(c, "GET", c->path, "/external_weights_urls", NULL);
  if (!conform_offered(c, c->call, "200"))
    return 0;
  c->urls = json_object_get(c->call->json, "urls");
  if (json_object_size(c->urls) == 0)
    conform_tell(c, CONFORM_DIFFERS, "there are none");
  return json_object_size(c->urls) > 0;
}

static int is_safe_name(const char *name) {
  if (name[0] == '\0' || name[0] == '/' || strlen(name) > MAX_NAME ||
      strchr(name, '\\') != NULL)
    return 0;
  while (*name != '\0') {
    const size_t n = strcspn(name, "/");

    if (n == 0 || (n == 1 && name[0] == '.') ||
        (n == 2 && name[0] == '.' && name[1] == '.'))
      return 0;
    name += n + (name[n] == '/');
  }
  return 1;
}

static conform_verdict_t names(conform_t *c) {
  json_t *first = c->urls;
  const char *name;
  json_t *url;

  conform_tell(c, CONFORM_HOLDS, "%zu", json_object_size(first));
  json_object_foreach(first, name, url) {
    if (!is_safe_name(name))
      conform_tell(c, CONFORM_DIFFERS, "\"%.60s\" is unsafe", name);
  }
  if (conform_told(c) != CONFORM_HOLDS || !linked(c))
    return conform_told(c);
  json_object_foreach(first, name, url) {
    if (json_object_get(c->urls, name) == NULL ||
        json_object_size(first) != json_object_size(c->urls))
      conform_tell(c, CONFORM_DIFFERS, "others in the second response");
  }
  return conform_told(c);
}

static int is_secure(const char *url) {
  tnk__location_t at;
  int is;

  if (tnk__location_parse(&at, tnk__allocator_default(), url) != TNK_OK)
    return 0;
  is = at.is_tls || strcmp(at.host, "127.0.0.1") == 0 ||
       strcmp(at.host, "::1") == 0 || strcmp(at.host, "localhost") == 0;
  tnk__location_deinit(&at, tnk__allocator_default());
  return is;
}

static conform_verdict_t secure(conform_t *c) {
  const char *name;
  json_t *url;

  if (conform_text(c->call, "expires") == NULL)
    return conform_tell(c, CONFORM_DIFFERS, "no \"expires\"");
  json_object_foreach(c->urls, name, url) {
    if (!json_is_string(url) || !is_secure(json_string_value(url)))
      return conform_tell(c, CONFORM_DIFFERS, "a link without https");
  }
  return conform_holds(c);
}

/* ---- Files ---- */

static conform_call_t *get_file(conform_t *c, const char *url,
                                const char *range) {
  const conform_ask_t ask = {
      .method = "GET", .path = "", .url = url, .accept = "*/*", .range = range};

  return conform_ask(c, &ask);
}

/* The total length in a Content-Range; -1: unknown. */
static int64_t whole_of(const conform_call_t *call) {
  const char *slash = strchr(call->range, '/');
  char *end;
  long long whole;

  if (strncmp(call->range, "bytes ", 6) != 0 || slash == NULL)
    return -1;
  whole = strtoll(slash + 1, &end, 10);
  return end != slash + 1 && *end == '\0' && whole >= 0 ? whole : -1;
}

/* Request three bytes after the first; *whole receives the file's length.
 * Returns 1 on success. Otherwise the finding is recorded. */
static int get_part(conform_t *c, const char *url, int64_t *whole) {
  const conform_call_t *call = get_file(c, url, "bytes=1-3");

  if (call->status >= 300 && call->status < 400)
    conform_tell(c,
                 strcmp(call->location, "https") == 0 ? CONFORM_ALLOWED
                                                      : CONFORM_DIFFERS,
                 "%d to %s:", call->status,
                 call->location[0] != '\0' ? call->location : "no target");
  else if (!conform_is_ok(call))
    conform_other(c, call, "206");
  else if (call->status == 200)
    conform_tell(c, CONFORM_ALLOWED, "the whole file is sent");
  else if (strncmp(call->range, "bytes 1-3/", 10) != 0)
    conform_tell(c, CONFORM_DIFFERS, "another part: %s", call->range);
  else if (call->body.len != 3)
    conform_tell(c, CONFORM_DIFFERS, "%zu bytes instead of 3", call->body.len);
  else {
    *whole = whole_of(call);
    return 1;
  }
  return 0;
}

static conform_verdict_t parts(conform_t *c) {
  int64_t total = 0;
  int64_t whole = 0;
  const char *name;
  json_t *url;

  json_object_foreach(c->urls, name, url) {
    if (whole < 0)
      break;
    if (!json_is_string(url))
      return conform_tell(c, CONFORM_DIFFERS, "no link");
    if (!get_part(c, json_string_value(url), &whole))
      return conform_told(c);
    total += whole;
  }
  if (whole < 0 || c->size < 0)
    return conform_tell(c, CONFORM_HOLDS, "206, without the total size");
  if (total != c->size)
    return conform_tell(c, CONFORM_DIFFERS,
                        "the files have %lld bytes, the export %lld",
                        (long long)total, (long long)c->size);
  return conform_tell(c, CONFORM_HOLDS, "206, and the sizes add up");
}

/* A link without its signature. */
static conform_verdict_t unsigned_link(conform_t *c) {
  const char *url =
      json_string_value(json_object_iter_value(json_object_iter(c->urls)));
  char *bare;

  if (url == NULL || strchr(url, '?') == NULL)
    return conform_tell(c, CONFORM_SKIPPED, "the link has no query to remove");
  bare = tnk__strndup(tnk__allocator_default(), url, strcspn(url, "?"));
  if (bare == NULL)
    return conform_tell(c, CONFORM_SKIPPED, "out of memory");
  c->call = get_file(c, bare, "bytes=0-0");
  tnk__free(tnk__allocator_default(), bare);
  return conform_refused(c);
}

/* ---- Traces ---- */

static conform_call_t *export_trace(conform_t *c) {
  return conform_of(c, "GET", "sessions", c->session, "/trace_export", NULL);
}

static conform_verdict_t trace(conform_t *c) {
  const char *status = conform_text(c->call, "status");

  if (!conform_offered(c, c->call, "200"))
    return conform_told(c);
  if (status != NULL &&
      (strcmp(status, "pending") == 0 || strcmp(status, "failed") == 0))
    return conform_tell(c, CONFORM_ALLOWED, "%s", status);
  if (status == NULL || strcmp(status, "ready") != 0)
    return conform_tell(c, CONFORM_DIFFERS, "unknown status");
  if (conform_text(c->call, "url") == NULL)
    return conform_tell(c, CONFORM_DIFFERS, "ready, but no link");
  return conform_tell(c, CONFORM_HOLDS, "ready");
}

static const conform_rule_t exporting[] = {
    {"trace", "the trace of a session can be exported", "rest 9.3",
     CONFORM_FREE, conform_needs_session, export_trace, trace, NULL},
    {"links-names", "file names stay in their folder and do not change",
     "rest 9.2.2", CONFORM_SPENDS, linked, NULL, names, NULL},
    {"links-secure", "links use https and expire", "rest 9.2.2", CONFORM_SPENDS,
     linked, NULL, secure, NULL},
    {"links-signed", "links do not work without their signature", "rest 9.2.2",
     CONFORM_SPENDS, linked, NULL, unsigned_link, NULL},
    {"files-range", "parts of a file can be downloaded", "rest 9.2.2",
     CONFORM_SPENDS, linked, NULL, parts, NULL},
};

const conform_group_t conform_files = {"external weights", exporting,
                                       sizeof(exporting) / sizeof(*exporting)};
