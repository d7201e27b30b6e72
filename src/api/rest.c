/* The entry points of include/tnk/rest.h. */
#include "task/rest/rest.h"

#include <stdio.h>
#include <string.h>

#include "api/service.h"
#include "base/options.h"
#include "base/utf8.h"

/* What the official client asks for when nothing is said. */
enum { DEFAULT_LIMIT = 20, DEFAULT_CHECKPOINTS = 100 };

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

/* ---- Beginning ---- */

/* Ask, unless the arguments (`err`, `why`) or the state of the service forbid
 * it. */
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
  if (err == TNK_OK && own.project_id != NULL)
    err = check_text("project_id", own.project_id, why, sizeof(why));
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

/* One thing, by its id. */
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
