/* SPDX-License-Identifier: MIT */
/* The entry points of include/tnk/rest.h. */
#include "lib/store/rest.h"

#include <stdio.h>
#include <string.h>

#include "lib/api/service.h"
#include "lib/base/limits.h"
#include "lib/base/options.h"
#include "lib/base/utf8.h"
#include "lib/wire/format/jwt.h"
#include "lib/wire/format/time_text.h"

/* The official client's defaults. */
enum { DEFAULT_LIMIT = 20, DEFAULT_CHECKPOINTS = 100, DEFAULT_SEARCH = 50 };
/* Limits of the service. Its exact maximum is checked by the service itself. */
enum {
  MIN_TTL_S = 3600,
  MAX_TTL_S = 10 * 366 * 86400,
  MAX_SEARCH = 200,
  MAX_OWNERS = 10,
  ALL_STATES = 63
};

/* End of the year 9999, in microseconds. */
#define MAX_US INT64_C(253402300799999999)

/* ---- Checks ---- */

static int check_scope(tnk_scope_t scope, char *why, size_t size) {
  if (scope == TNK_SCOPE_OWNED || scope == TNK_SCOPE_ACCESSIBLE)
    return TNK_OK;
  snprintf(why, size, "scope is %d, which is none", (int)scope);
  return TNK_EINVAL;
}

static int check_text(const char *what, const char *text, char *why,
                      size_t size) {
  const size_t n = strlen(text);

  if (n > 0 && tnk__utf8_valid((const uint8_t *)text, n) == n)
    return TNK_OK;
  snprintf(why, size, "%s is %s", what, n > 0 ? "not UTF-8" : "empty");
  return TNK_EINVAL;
}

/* Check an optional string. */
static int check_optional(const char *what, const char *text, char *why,
                          size_t size) {
  return text == NULL ? TNK_OK : check_text(what, text, why, size);
}

/* Check a path that goes into a body. The service checks the part after the
 * scheme. */
static int check_sent_path(const char *path, char *why, size_t size) {
  int err = check_text("path", path != NULL ? path : "", why, size);

  if (err == TNK_OK && strncmp(path, "tinker://", 9) != 0) {
    snprintf(why, size, "path does not begin with tinker://");
    err = TNK_EINVAL;
  }
  return err;
}

static int check_ttl(int64_t ttl_seconds, char *why, size_t size) {
  if (ttl_seconds == 0 ||
      (ttl_seconds >= MIN_TTL_S && ttl_seconds <= MAX_TTL_S))
    return TNK_OK;
  snprintf(why, size, "ttl_seconds is %lld: an hour (3600) to ten years, or 0",
           (long long)ttl_seconds);
  return TNK_EINVAL;
}

/* ---- Beginning ---- */

/* Send a call, unless the arguments (`err`, `why`) or the state of the service
 * forbid it. */
static tnk_promise_t *start(tnk_service_t *service, const tnk__ask_t *ask,
                            const tnk_page_t *before, int err,
                            const char *why) {
  tnk_promise_t *refusal = tnk__service_refuses(
      &service->session, tnk__rest_name(ask->kind), err, why);

  return refusal != NULL ? refusal
                         : tnk__rest_ask(&service->session, ask, before);
}

static tnk_promise_t *list(tnk_service_t *service, tnk__ask_kind_t kind,
                           const tnk_list_options_t *options,
                           uint32_t default_limit) {
  const int is_scoped = kind != TNK__ASK_LIST_CHECKPOINTS;
  tnk_list_options_t own = TNK_LIST_OPTIONS_INIT;
  tnk__ask_t ask = {.kind = kind};
  char why[TNK__MAX_WHY] = "";
  int err;

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return NULL;
  err = TNK__LOAD(tnk_list_options_t, &own, options, why, sizeof(why));
  if (err == TNK_OK)
    err = check_scope(own.scope, why, sizeof(why));
  if (err == TNK_OK)
    err = check_optional("project_id", own.project_id, why, sizeof(why));
  if (err == TNK_OK && kind != TNK__ASK_LIST_RUNS && own.project_id != NULL) {
    snprintf(why, sizeof(why), "this list cannot be limited to a project");
    err = TNK_EINVAL;
  }
  if (err == TNK_OK && !is_scoped && own.scope != TNK_SCOPE_OWNED) {
    snprintf(why, sizeof(why), "this list has only what is one's own");
    err = TNK_EINVAL;
  }
  ask.limit = own.limit > 0 ? own.limit : default_limit;
  ask.offset = own.offset;
  ask.scope = own.scope;
  ask.project_id = own.project_id;
  return start(service, &ask, NULL, err, why);
}

/* Send a call about one record, with its id. */
static tnk_promise_t *ask_of(tnk_service_t *service, tnk__ask_kind_t kind,
                             const char *what, const char *id,
                             tnk_scope_t scope) {
  const tnk__ask_t ask = {.kind = kind, .id = id, .scope = scope};
  char why[TNK__MAX_WHY] = "";
  int err;

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return NULL;
  err = tnk__ask_check_id(what, id, why, sizeof(why));
  if (err == TNK_OK)
    err = check_scope(scope, why, sizeof(why));
  return start(service, &ask, NULL, err, why);
}

/* ---- Runs and checkpoints ---- */

tnk_promise_t *tnk_rest_list_runs(tnk_service_t *service,
                                  const tnk_list_options_t *options) {
  return list(service, TNK__ASK_LIST_RUNS, options, DEFAULT_LIMIT);
}

tnk_promise_t *tnk_rest_get_run(tnk_service_t *service, const char *run_id,
                                tnk_scope_t scope) {
  return ask_of(service, TNK__ASK_GET_RUN, "run_id", run_id, scope);
}

tnk_promise_t *tnk_rest_list_run_checkpoints(tnk_service_t *service,
                                             const char *run_id) {
  return ask_of(service, TNK__ASK_LIST_RUN_CHECKPOINTS, "run_id", run_id,
                TNK_SCOPE_OWNED);
}

tnk_promise_t *tnk_rest_list_checkpoints(tnk_service_t *service,
                                         const tnk_list_options_t *options) {
  return list(service, TNK__ASK_LIST_CHECKPOINTS, options, DEFAULT_CHECKPOINTS);
}

/* Send a call about one checkpoint, with its path. */
static tnk_promise_t *ask_path(tnk_service_t *service, tnk__ask_kind_t kind,
                               const char *path, int64_t ttl_seconds) {
  const tnk__ask_t ask = {
      .kind = kind, .path = path, .ttl_seconds = ttl_seconds};
  const tnk_path_kind_t wanted =
      kind == TNK__ASK_EXTERNAL_FILES ? TNK_PATH_EXTERNAL_WEIGHTS : 0;
  char why[TNK__MAX_WHY] = "";
  int err;

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return NULL;
  err = kind == TNK__ASK_WEIGHTS_INFO
            ? check_sent_path(path, why, sizeof(why))
            : tnk__ask_check_path(path, wanted, why, sizeof(why));
  if (err == TNK_OK)
    err = check_ttl(ttl_seconds, why, sizeof(why));
  return start(service, &ask, NULL, err, why);
}

tnk_promise_t *tnk_rest_get_weights_info(tnk_service_t *service,
                                         const char *path) {
  return ask_path(service, TNK__ASK_WEIGHTS_INFO, path, 0);
}

tnk_promise_t *tnk_rest_get_external_files(tnk_service_t *service,
                                           const char *path) {
  return ask_path(service, TNK__ASK_EXTERNAL_FILES, path, 0);
}

tnk_promise_t *tnk_rest_delete_checkpoint(tnk_service_t *service,
                                          const char *path) {
  return ask_path(service, TNK__ASK_DELETE, path, 0);
}

tnk_promise_t *tnk_rest_publish_checkpoint(tnk_service_t *service,
                                           const char *path) {
  return ask_path(service, TNK__ASK_PUBLISH, path, 0);
}

tnk_promise_t *tnk_rest_unpublish_checkpoint(tnk_service_t *service,
                                             const char *path) {
  return ask_path(service, TNK__ASK_UNPUBLISH, path, 0);
}

tnk_promise_t *tnk_rest_set_checkpoint_ttl(tnk_service_t *service,
                                           const char *path,
                                           int64_t ttl_seconds) {
  return ask_path(service, TNK__ASK_SET_TTL, path, ttl_seconds);
}

static int check_copy(const tnk__ask_t *ask, char *why, size_t size) {
  int err = check_sent_path(ask->path, why, size);

  if (err == TNK_OK)
    err = check_ttl(ask->ttl_seconds, why, size);
  if (err == TNK_OK && ask->project_id == NULL) {
    snprintf(why, size,
             "there is no project to copy to: neither project_id here nor that "
             "of the service is set");
    err = TNK_EINVAL;
  }
  if (err == TNK_OK)
    err = check_optional("project_id", ask->project_id, why, size);
  if (err == TNK_OK && ask->access_token != NULL &&
      !tnk__token_is_sound(ask->access_token)) {
    snprintf(why, size, "weights_access_token cannot be sent in a header");
    err = TNK_EINVAL;
  }
  return err;
}

tnk_promise_t *tnk_rest_copy_weights(tnk_service_t *service,
                                     const tnk_copy_options_t *options) {
  tnk_copy_options_t own = TNK_COPY_OPTIONS_INIT;
  tnk__ask_t ask = {.kind = TNK__ASK_COPY};
  char why[TNK__MAX_WHY] = "";
  int err;

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return NULL;
  err = TNK__LOAD(tnk_copy_options_t, &own, options, why, sizeof(why));
  ask.path = own.path;
  ask.ttl_seconds = own.ttl_seconds;
  ask.project_id = own.project_id != NULL ? own.project_id
                                          : service->config.options.project_id;
  ask.access_token = own.weights_access_token;
  if (err == TNK_OK)
    err = check_copy(&ask, why, sizeof(why));
  return start(service, &ask, NULL, err, why);
}

/* ---- Sessions and samplers ---- */

tnk_promise_t *tnk_rest_get_session(tnk_service_t *service,
                                    const char *session_id, tnk_scope_t scope) {
  return ask_of(service, TNK__ASK_GET_SESSION, "session_id", session_id, scope);
}

tnk_promise_t *tnk_rest_list_sessions(tnk_service_t *service,
                                      const tnk_list_options_t *options) {
  return list(service, TNK__ASK_LIST_SESSIONS, options, DEFAULT_LIMIT);
}

tnk_promise_t *tnk_rest_export_trace(tnk_service_t *service,
                                     const char *session_id) {
  return ask_of(service, TNK__ASK_EXPORT_TRACE, "session_id", session_id,
                TNK_SCOPE_OWNED);
}

tnk_promise_t *tnk_rest_get_sampler(tnk_service_t *service,
                                    const char *sampler_id) {
  return ask_of(service, TNK__ASK_GET_SAMPLER, "sampler_id", sampler_id,
                TNK_SCOPE_OWNED);
}

tnk_promise_t *tnk_rest_move_session(tnk_service_t *service,
                                     const char *session_id,
                                     const char *project_id) {
  const tnk__ask_t ask = {.kind = TNK__ASK_MOVE_SESSION,
                          .id = session_id,
                          .project_id = project_id};
  char why[TNK__MAX_WHY] = "";
  int err;

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return NULL;
  err = tnk__ask_check_id("session_id", session_id, why, sizeof(why));
  if (err == TNK_OK)
    err = check_text("project_id", project_id != NULL ? project_id : "", why,
                     sizeof(why));
  return start(service, &ask, NULL, err, why);
}

static int check_texts(const char *what, const char *const *texts, size_t n,
                       char *why, size_t size) {
  int err = TNK_OK;

  if (n > 0 && texts == NULL) {
    snprintf(why, size, "%s is NULL", what);
    return TNK_EINVAL;
  }
  for (size_t i = 0; i < n && err == TNK_OK; i++)
    err = check_text(what, texts[i] != NULL ? texts[i] : "", why, size);
  return err;
}

static int check_pairs(const tnk_pair_t *pairs, size_t n, char *why,
                       size_t size) {
  for (size_t i = 0; i < n; i++)
    if (pairs == NULL || pairs[i].name == NULL || pairs[i].value == NULL) {
      snprintf(why, size, "user_metadata has a NULL in it");
      return TNK_EINVAL;
    }
  return TNK_OK;
}

static int check_numbers(const tnk_search_options_t *options, char *why,
                         size_t size) {
  const int is_users = options->owner == TNK_OWNER_USERS;

  if (options->owner != TNK_OWNER_SELF && options->owner != TNK_OWNER_ANY &&
      !is_users)
    snprintf(why, size, "owner is %d, which is none", (int)options->owner);
  else if (is_users != (options->n_owner_urns > 0) ||
           options->n_owner_urns > MAX_OWNERS)
    snprintf(why, size,
             "owner_urns has %zu texts: one to ten for TNK_OWNER_USERS, else "
             "none",
             options->n_owner_urns);
  else if (options->states > ALL_STATES)
    snprintf(why, size, "states is %lu, of which some bits mean nothing",
             (unsigned long)options->states);
  else if (options->limit > MAX_SEARCH)
    snprintf(why, size, "limit is %lu: at most %d",
             (unsigned long)options->limit, MAX_SEARCH);
  else
    return TNK_OK;
  return TNK_EINVAL;
}

static int check_search(const tnk_search_options_t *options, char *why,
                        size_t size) {
  int err = check_numbers(options, why, size);

  if (err == TNK_OK)
    err = check_optional("session_id", options->session_id, why, size);
  if (err == TNK_OK)
    err = check_optional("display_name", options->display_name, why, size);
  if (err == TNK_OK)
    err = check_texts("project_ids", options->project_ids,
                      options->n_project_ids, why, size);
  if (err == TNK_OK)
    err = check_texts("owner_urns", options->owner_urns, options->n_owner_urns,
                      why, size);
  if (err == TNK_OK)
    err = check_pairs(options->user_metadata, options->n_user_metadata, why,
                      size);
  return err;
}

tnk_promise_t *tnk_rest_search_sessions(tnk_service_t *service,
                                        const tnk_search_options_t *options) {
  tnk_search_options_t own = TNK_SEARCH_OPTIONS_INIT;
  tnk__ask_t ask = {.kind = TNK__ASK_SEARCH_SESSIONS};
  char why[TNK__MAX_WHY] = "";
  tnk_promise_t *promise;
  tnk__buf_t search;
  int err;

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return NULL;
  tnk__buf_init(&search, &service->root.alloc, TNK__MIB);
  err = TNK__LOAD(tnk_search_options_t, &own, options, why, sizeof(why));
  if (err == TNK_OK)
    err = check_search(&own, why, sizeof(why));
  if (own.limit == 0)
    own.limit = DEFAULT_SEARCH;
  if (err == TNK_OK) {
    tnk__ask_write_search(&search, &own);
    ask.search = tnk__buf_cstr(&search);
    err = search.err;
  }
  promise = start(service, &ask, NULL, err, why);
  tnk__buf_deinit(&search);
  return promise;
}

tnk_promise_t *tnk_rest_whoami(tnk_service_t *service) {
  tnk_promise_t *refusal;

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return NULL;
  refusal = tnk__service_refuses(&service->session, "whoami", TNK_OK, NULL);
  return refusal != NULL ? refusal : tnk__rest_whoami(&service->session);
}

static tnk_promise_t *ask_about_key(tnk_service_t *service,
                                    tnk__ask_kind_t kind) {
  const tnk__ask_t ask = {.kind = kind};

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return NULL;
  return start(service, &ask, NULL, TNK_OK, NULL);
}

tnk_promise_t *tnk_rest_get_api_key(tnk_service_t *service) {
  return ask_about_key(service, TNK__ASK_GET_KEY);
}

tnk_promise_t *tnk_rest_revoke_api_key(tnk_service_t *service) {
  return ask_about_key(service, TNK__ASK_REVOKE_KEY);
}

/* ---- Administration ---- */

tnk_promise_t *tnk_rest_get_usage(tnk_service_t *service, int64_t start_us,
                                  int64_t end_us) {
  const tnk__ask_t ask = {
      .kind = TNK__ASK_USAGE, .start_us = start_us, .end_us = end_us};
  const int is_sound = start_us >= 0 && end_us > start_us && end_us <= MAX_US;

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return NULL;
  return start(service, &ask, NULL, is_sound ? TNK_OK : TNK_EINVAL,
               is_sound ? NULL
                        : "end_us is not behind start_us, or one of them is no "
                          "time since 1970");
}

tnk_promise_t *tnk_rest_get_storage(tnk_service_t *service,
                                    const char *project_id) {
  const tnk__ask_t ask = {.kind = TNK__ASK_STORAGE, .project_id = project_id};
  char why[TNK__MAX_WHY] = "";
  int err;

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return NULL;
  err = check_optional("project_id", project_id, why, sizeof(why));
  return start(service, &ask, NULL, err, why);
}

tnk_promise_t *tnk_rest_get_audit_log(tnk_service_t *service,
                                      const char *event_type, const char *day) {
  const tnk__ask_t ask = {
      .kind = TNK__ASK_AUDIT, .event_type = event_type, .day = day};
  char why[TNK__MAX_WHY] = "";
  int64_t us;
  int err;

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return NULL;
  err = check_optional("event_type", event_type, why, sizeof(why));
  if (err == TNK_OK && day != NULL &&
      (strlen(day) != 10 || !tnk__time_read(&us, day, 10))) {
    snprintf(why, sizeof(why), "day is no date such as 2026-01-02");
    err = TNK_EINVAL;
  }
  return start(service, &ask, NULL, err, why);
}

/* ---- The rest of a list ---- */

tnk_promise_t *tnk_rest_next_page(tnk_service_t *service,
                                  const tnk_page_t *page) {
  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return NULL;
  if (page == NULL || page->is_last)
    return tnk__service_refuses(&service->session, "next_page", TNK_EINVAL,
                                page == NULL ? "page is NULL"
                                             : "nothing follows the last page");
  return start(service, &page->ask, page, TNK_OK, NULL);
}
