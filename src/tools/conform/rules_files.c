/* Rules about weights for other programs: the links to their files, and the
 * files. Links are credentials, so no part of them is reported. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "tools/conform/state.h"

#define EXPORT "save_weights_external"
enum { MAX_NAME = 255 };

/* ---- Prerequisites ---- */

typedef struct {
  char *path;         /* path of the export */
  int64_t size;       /* size of all files; -1: unknown */
  const json_t *urls; /* from the last answer */
} export_t;

static void forget(export_t *e) {
  tnk__free(tnk__allocator_default(), e->path);
  e->path = NULL;
}

/* Create an export. Returns 0 if the finding is recorded already. */
static int make(conform_t *c, export_t *e, conform_verdict_t *verdict) {
  conform_made_t *model = conform_any_model(c);
  const conform_call_t *call;
  const char *path;
  conform_end_t end = {0};
  char name[64];

  memset(e, 0, sizeof(*e));
  if (model == NULL) {
    *verdict = conform_skip(c);
    return 0;
  }
  conform_name(c, name, sizeof(name));
  call = conform_post(c, EXPORT,
                      json_pack("{s:s,s:s,s:i,s:i,s:s}", "model_id", model->id,
                                "path", name, "seq_id", (int)model->seq++,
                                "ttl_seconds", 3600, "type", EXPORT));
  if (conform_is_absent(c, call)) {
    *verdict = conform_tell(c, CONFORM_ABSENT, "%d", call->status);
    return 0;
  }
  conform_follow(c, call, 0, &end);
  path = end.fate == CONFORM_RESULT ? conform_text(end.last, "path") : NULL;
  if (path == NULL) {
    *verdict = conform_tell(c, CONFORM_DIFFERS, "no export: %s", end.how);
    return 0;
  }
  conform_made(c, CONFORM_CHECKPOINT, path);
  e->size = -1;
  tnk__json_get_int(end.last->json, "size_bytes", 0, INT64_MAX, &e->size);
  e->path = tnk__strdup(tnk__allocator_default(), path);
  *verdict = conform_tell(c, CONFORM_SKIPPED, "out of memory");
  return e->path != NULL;
}

/* Request the links. Returns NULL if the finding is recorded already. */
static const conform_call_t *links(conform_t *c, export_t *e,
                                   conform_verdict_t *verdict) {
  const conform_call_t *call =
      conform_of_checkpoint(c, "GET", e->path, "/external_weights_urls", NULL);

  if (conform_is_absent(c, call)) {
    *verdict = conform_tell(c, CONFORM_ABSENT, "%d", call->status);
    return NULL;
  }
  if (!conform_is_ok(call)) {
    *verdict = conform_other(c, call, "200");
    return NULL;
  }
  e->urls = tnk__json_obj(call->json, "urls");
  if (json_object_size(e->urls) > 0)
    return call;
  *verdict = conform_tell(c, CONFORM_DIFFERS, "there are none");
  return NULL;
}

/* ---- Links ---- */

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

static int same_names(const json_t *a, const json_t *b) {
  void *at;

  if (json_object_size(a) != json_object_size(b))
    return 0;
  for (at = json_object_iter((json_t *)(uintptr_t)a); at != NULL;
       at = json_object_iter_next((json_t *)(uintptr_t)a, at))
    if (json_object_get(b, json_object_iter_key(at)) == NULL)
      return 0;
  return 1;
}

static conform_verdict_t names(conform_t *c, const conform_rule_t *rule) {
  conform_verdict_t verdict = CONFORM_DIFFERS;
  const json_t *first;
  export_t e;
  void *at;

  (void)rule;
  if (!make(c, &e, &verdict))
    return verdict;
  if (links(c, &e, &verdict) != NULL) {
    first = e.urls;
    verdict = conform_tell(c, CONFORM_HOLDS, "%zu", json_object_size(first));
    for (at = json_object_iter((json_t *)(uintptr_t)first); at != NULL;
         at = json_object_iter_next((json_t *)(uintptr_t)first, at))
      if (!is_safe_name(json_object_iter_key(at)))
        verdict = conform_tell(c, CONFORM_DIFFERS, "\"%.60s\" is not",
                               json_object_iter_key(at));
    if (verdict == CONFORM_HOLDS && links(c, &e, &verdict) != NULL &&
        !same_names(first, e.urls))
      verdict = conform_tell(c, CONFORM_DIFFERS, "others the second time");
  }
  forget(&e);
  return verdict;
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

static conform_verdict_t secure(conform_t *c, const conform_rule_t *rule) {
  conform_verdict_t verdict = CONFORM_DIFFERS;
  const conform_call_t *call;
  const char *expires;
  export_t e;
  void *at;

  (void)rule;
  if (!make(c, &e, &verdict))
    return verdict;
  call = links(c, &e, &verdict);
  forget(&e);
  if (call == NULL)
    return verdict;
  expires = conform_text(call, "expires");
  if (expires == NULL)
    return conform_tell(c, CONFORM_DIFFERS, "no \"expires\"");
  for (at = json_object_iter((json_t *)(uintptr_t)e.urls); at != NULL;
       at = json_object_iter_next((json_t *)(uintptr_t)e.urls, at)) {
    const char *url = json_string_value(json_object_iter_value(at));

    if (url == NULL || !is_secure(url))
      return conform_tell(c, CONFORM_DIFFERS, "one is not");
  }
  return conform_tell(c, CONFORM_HOLDS, "%s", "");
}

/* ---- Files ---- */

static const conform_call_t *get_file(conform_t *c, const char *url,
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
static int get_part(conform_t *c, const char *url, int64_t *whole,
                    conform_verdict_t *verdict) {
  const conform_call_t *call = get_file(c, url, "bytes=1-3");

  if (call->status >= 300 && call->status < 400)
    *verdict =
        conform_tell(c,
                     strcmp(call->location, "https") == 0 ? CONFORM_ALLOWED
                                                          : CONFORM_DIFFERS,
                     "%d to %s:", call->status,
                     call->location[0] != '\0' ? call->location : "nowhere");
  else if (!conform_is_ok(call))
    *verdict = conform_other(c, call, "206");
  else if (call->status == 200)
    *verdict = conform_tell(c, CONFORM_ALLOWED, "all of it comes");
  else if (strncmp(call->range, "bytes 1-3/", 10) != 0)
    *verdict =
        conform_tell(c, CONFORM_DIFFERS, "another part, %s", call->range);
  else if (call->body.len != 3)
    *verdict = conform_tell(c, CONFORM_DIFFERS, "%zu bytes instead of 3",
                            call->body.len);
  else {
    *whole = whole_of(call);
    return 1;
  }
  return 0;
}

static conform_verdict_t parts(conform_t *c, const conform_rule_t *rule) {
  conform_verdict_t verdict = CONFORM_DIFFERS;
  int64_t total = 0;
  int64_t whole = 0;
  export_t e;
  void *at;

  (void)rule;
  if (!make(c, &e, &verdict))
    return verdict;
  if (links(c, &e, &verdict) == NULL) {
    forget(&e);
    return verdict;
  }
  for (at = json_object_iter((json_t *)(uintptr_t)e.urls);
       at != NULL && whole >= 0;
       at = json_object_iter_next((json_t *)(uintptr_t)e.urls, at)) {
    const char *url = json_string_value(json_object_iter_value(at));

    if (url == NULL || !get_part(c, url, &whole, &verdict)) {
      forget(&e);
      return url != NULL ? verdict
                         : conform_tell(c, CONFORM_DIFFERS, "no link");
    }
    total += whole;
  }
  forget(&e);
  if (whole < 0 || e.size < 0)
    return conform_tell(c, CONFORM_HOLDS, "206, without their whole size");
  if (total != e.size)
    return conform_tell(c, CONFORM_DIFFERS,
                        "they have %lld bytes, the export %lld",
                        (long long)total, (long long)e.size);
  return conform_tell(c, CONFORM_HOLDS, "206, and sizes that add up");
}

/* A link without its signature. */
static conform_verdict_t unsigned_link(conform_t *c,
                                       const conform_rule_t *rule) {
  const conform_call_t *call;
  conform_verdict_t verdict = CONFORM_DIFFERS;
  const char *url;
  export_t e;
  char *bare;

  (void)rule;
  if (!make(c, &e, &verdict))
    return verdict;
  call = links(c, &e, &verdict);
  forget(&e);
  if (call == NULL)
    return verdict;
  url = json_string_value(
      json_object_iter_value(json_object_iter((json_t *)(uintptr_t)e.urls)));
  if (url == NULL || strchr(url, '?') == NULL)
    return conform_tell(c, CONFORM_SKIPPED, "it has no query to leave out");
  bare = tnk__strndup(tnk__allocator_default(), url, strcspn(url, "?"));
  if (bare == NULL)
    return conform_tell(c, CONFORM_SKIPPED, "out of memory");
  call = get_file(c, bare, "bytes=0-0");
  tnk__free(tnk__allocator_default(), bare);
  if (conform_is_refusal(call))
    return conform_tell(c, CONFORM_HOLDS, "%d", call->status);
  return conform_other(c, call, "a 4xx");
}

/* ---- Traces ---- */

static conform_verdict_t trace(conform_t *c, const conform_rule_t *rule) {
  const char *session = conform_session_id(c);
  conform_ask_t ask = {.method = "GET"};
  const conform_call_t *call;
  const char *status;
  tnk__buf_t path;

  (void)rule;
  if (session == NULL)
    return conform_skip(c);
  tnk__buf_init(&path, tnk__allocator_default(), 8192);
  tnk__buf_text(&path, "sessions/");
  tnk__url_put_segment(&path, session);
  tnk__buf_text(&path, "/trace_export");
  ask.path = tnk__buf_cstr(&path) != NULL ? (const char *)path.data : "";
  call = conform_ask(c, &ask);
  tnk__buf_deinit(&path);
  status = conform_text(call, "status");
  if (conform_is_absent(c, call))
    return conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  if (!conform_is_ok(call))
    return conform_other(c, call, "200");
  if (status != NULL && strcmp(status, "pending") == 0)
    return conform_tell(c, CONFORM_ALLOWED, "pending");
  if (status != NULL && strcmp(status, "failed") == 0)
    return conform_tell(c, CONFORM_ALLOWED, "failed");
  if (status == NULL || strcmp(status, "ready") != 0)
    return conform_tell(c, CONFORM_DIFFERS, "no status that is known");
  if (conform_text(call, "url") == NULL)
    return conform_tell(c, CONFORM_DIFFERS, "ready, but no link");
  return conform_tell(c, CONFORM_HOLDS, "ready");
}

static const conform_rule_t rules[] = {
    {"trace", "the trace of a session is made", "rest 9.3", CONFORM_FREE, trace,
     NULL},
    {"links-names", "names of files stay in their folder, and the same",
     "rest 9.2.2", CONFORM_SPENDS, names, NULL},
    {"links-secure", "links are of https, and end", "rest 9.2.2",
     CONFORM_SPENDS, secure, NULL},
    {"links-signed", "without their signature they lead nowhere", "rest 9.2.2",
     CONFORM_SPENDS, unsigned_link, NULL},
    {"files-range", "parts of a file can be had", "rest 9.2.2", CONFORM_SPENDS,
     parts, NULL},
};

const conform_group_t conform_files = {"weights for other programs", rules,
                                       sizeof(rules) / sizeof(*rules)};
