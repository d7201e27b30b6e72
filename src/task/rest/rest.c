#include "task/rest/rest.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "task/future/errand.h"

/* Of an answer. A run may have tens of thousands of checkpoints, and they come
 * all at once. */
#define MAX_ANSWER (64 * TNK__MIB)

typedef struct {
  const char *name;
  const char *method_name;
  tnk__route_id_t route;
} row_t;

static const row_t rows[TNK__N_ASKS] = {
    [TNK__ASK_LIST_RUNS] = {"list_runs", "RestClient.list_training_runs",
                            TNK__ROUTE_REST_GET},
    [TNK__ASK_GET_RUN] = {"get_run", "RestClient.get_training_run",
                          TNK__ROUTE_REST_GET},
    [TNK__ASK_LIST_RUN_CHECKPOINTS] = {"list_run_checkpoints",
                                       "RestClient.list_checkpoints",
                                       TNK__ROUTE_REST_GET},
    [TNK__ASK_LIST_CHECKPOINTS] = {"list_checkpoints",
                                   "RestClient.list_user_checkpoints",
                                   TNK__ROUTE_REST_GET},
};

/* An errand with what it takes to read its answer. */
typedef struct {
  tnk__errand_t errand; /* its arena has the texts */
  tnk__ask_t ask;
  tnk__seen_t *seen; /* or NULL */
  const char *target;
} rest_t;

static rest_t *rest_of(tnk__errand_t *errand) {
  return tnk__container_of(errand, rest_t, errand);
}

const char *tnk__rest_name(tnk__ask_kind_t kind) {
  return rows[kind].name;
}

/* ---- The answer ---- */

/* What is wrong with an answer that came from a server of this kind. */
static void fail_member(tnk__errand_t *errand, const char *name,
                        const char *what) {
  tnk__error_t *error = tnk__error_new(
      &errand->session->context->alloc, TNK_EPROTO,
      "%s: malformed answer from the server: its member \"%s\" is missing, or "
      "is not what it should be",
      name, what);

  tnk__errand_fail(errand, error);
  tnk__error_unref(error);
}

static void on_page(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__errand_t *errand = tnk__container_of(call, tnk__errand_t, call);
  const tnk_allocator_t *alloc = &errand->session->context->alloc;
  const rest_t *rest = rest_of(errand);
  const char *what;
  tnk_page_t *page;
  uint8_t *body;
  size_t n = 0;
  int err;

  if (reply->error != NULL) {
    tnk__errand_fail(errand, reply->error);
    return;
  }
  body = tnk__buf_take(reply->buf, &n);
  err = tnk__page_read(&page, alloc, &rest->ask, rest->seen, body, n, &what);
  if (err == TNK_OK)
    tnk__errand_resolve(errand, TNK__RESULT_PAGE, page, tnk__page_free);
  else if (err == TNK_EPROTO && what != NULL)
    fail_member(errand, call->name, what);
  else
    tnk__errand_fail_code(errand, call->name, err);
}

/* ---- The errand ---- */

static void begin(tnk__errand_t *errand) {
  const rest_t *rest = rest_of(errand);
  const row_t *row = &rows[rest->ask.kind];

  tnk__call_init(&errand->call, &errand->session->endpoint, row->route,
                 row->name);
  errand->call.method_name = row->method_name;
  errand->call.target = rest->target;
  errand->call.max_body = MAX_ANSWER;
  tnk__errand_call(errand, on_page);
}

/* The target, in the errand's arena; or NULL. */
static const char *target_of(rest_t *rest) {
  tnk__arena_t *arena = &rest->errand.arena;
  const char *target = NULL;
  tnk__buf_t buf;

  tnk__buf_init(&buf, arena->alloc, TNK__MAX_URL);
  tnk__ask_write_target(&buf, &rest->ask);
  if (tnk__buf_cstr(&buf) != NULL)
    target = tnk__arena_strdup(arena, tnk__buf_cstr(&buf));
  tnk__buf_deinit(&buf);
  return target;
}

/* Copy what must outlive the call; 0 without memory. */
static int keep(rest_t *rest, const tnk_page_t *before) {
  const char *project = rest->ask.project_id;
  tnk__arena_t *arena = &rest->errand.arena;

  rest->target = target_of(rest);
  if (rest->target == NULL)
    return 0;
  if (project != NULL) {
    rest->ask.project_id = tnk__arena_strdup(arena, project);
    if (rest->ask.project_id == NULL)
      return 0;
  }
  if (before == NULL || before->seen == NULL)
    return 1;
  rest->seen = tnk__arena_copy(arena, before->seen, sizeof(*before->seen));
  return rest->seen != NULL;
}

tnk_promise_t *tnk__rest_ask(tnk__session_t *session, const tnk__ask_t *ask,
                             const tnk_page_t *before) {
  tnk_promise_t *promise = NULL;
  tnk__errand_t *errand =
      tnk__errand_new(session, rows[ask->kind].name, sizeof(rest_t), &promise);

  if (errand == NULL)
    return promise;
  rest_of(errand)->ask = *ask;
  if (keep(rest_of(errand), before))
    tnk__errand_enter(errand, TNK__SESSION_CONFIGURED, begin);
  else
    tnk__errand_fail_code(errand, rows[ask->kind].name, TNK_ENOMEM);
  return promise;
}
