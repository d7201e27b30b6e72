/* SPDX-License-Identifier: MIT */
#include "lib/store/rest.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/log.h"
#include "lib/client/call/headers.h"
#include "lib/client/future/service_op.h"
#include "lib/policy/retry_after.h"
#include "lib/wire/format/location.h"

/* Maximum size of an answer. A run may have tens of thousands of checkpoints,
 * all in one answer. */
#define MAX_ANSWER (64 * TNK__MIB)
/* Interval between two requests for the status of a trace. */
enum { TRACE_MS = 5000 };
/* Lifetime of an archive's address, if the server does not state it. */
enum { ARCHIVE_S = 900 };

static void begin(tnk__service_op_t *op);
static void on_page(tnk__call_t *call, const tnk__reply_t *reply);
static void on_done(tnk__call_t *call, const tnk__reply_t *reply);
static void on_copied(tnk__call_t *call, const tnk__reply_t *reply);
static void on_trace(tnk__call_t *call, const tnk__reply_t *reply);
static void on_archive(tnk__call_t *call, const tnk__reply_t *reply);

typedef struct {
  const char *name;
  const char *method_name; /* name in the official client, or NULL */
  tnk__route_id_t route;
  void (*done)(tnk__call_t *call, const tnk__reply_t *reply);
} row_t;

static const row_t rows[TNK__N_ASKS] = {
    [TNK__ASK_LIST_RUNS] = {"list_runs", "RestClient.list_training_runs",
                            TNK__ROUTE_REST_GET, on_page},
    [TNK__ASK_GET_RUN] = {"get_run", "RestClient.get_training_run",
                          TNK__ROUTE_REST_GET, on_page},
    [TNK__ASK_LIST_RUN_CHECKPOINTS] = {"list_run_checkpoints",
                                       "RestClient.list_checkpoints",
                                       TNK__ROUTE_REST_GET, on_page},
    [TNK__ASK_LIST_CHECKPOINTS] = {"list_checkpoints",
                                   "RestClient.list_user_checkpoints",
                                   TNK__ROUTE_REST_GET, on_page},
    [TNK__ASK_WEIGHTS_INFO] = {"get_weights_info",
                               "RestClient.get_weights_info_by_tinker_path",
                               TNK__ROUTE_REST_POST, on_page},
    [TNK__ASK_EXTERNAL_FILES] = {"get_external_files",
                                 "RestClient.get_external_weights_urls",
                                 TNK__ROUTE_REST_GET, on_page},
    [TNK__ASK_ARCHIVE] = {"get_archive",
                          "RestClient.get_checkpoint_archive_url_from_tinker_"
                          "path",
                          TNK__ROUTE_ARCHIVE, on_archive},
    [TNK__ASK_DELETE] = {"delete_checkpoint",
                         "RestClient.delete_checkpoint_from_tinker_path",
                         TNK__ROUTE_REST_DELETE, on_done},
    [TNK__ASK_PUBLISH] = {"publish_checkpoint",
                          "RestClient.publish_checkpoint_from_tinker_path",
                          TNK__ROUTE_PUBLISH, on_done},
    [TNK__ASK_UNPUBLISH] = {"unpublish_checkpoint",
                            "RestClient.unpublish_checkpoint_from_tinker_path",
                            TNK__ROUTE_UNPUBLISH, on_done},
    [TNK__ASK_SET_TTL] = {"set_checkpoint_ttl",
                          "RestClient.set_checkpoint_ttl_from_tinker_path",
                          TNK__ROUTE_REST_PUT, on_done},
    [TNK__ASK_COPY] = {"copy_weights", "RestClient.copy_weights",
                       TNK__ROUTE_COPY_WEIGHTS, on_copied},
    [TNK__ASK_GET_SESSION] = {"get_session", "RestClient.get_session",
                              TNK__ROUTE_REST_GET, on_page},
    [TNK__ASK_LIST_SESSIONS] = {"list_sessions", "RestClient.list_sessions",
                                TNK__ROUTE_REST_GET, on_page},
    [TNK__ASK_SEARCH_SESSIONS] = {"search_sessions",
                                  "RestClient.search_sessions",
                                  TNK__ROUTE_SEARCH_SESSIONS, on_page},
    [TNK__ASK_MOVE_SESSION] = {"move_session",
                               "RestClient.assign_session_project",
                               TNK__ROUTE_REST_PUT, on_done},
    [TNK__ASK_EXPORT_TRACE] = {"export_trace",
                               "RestClient.export_session_trace",
                               TNK__ROUTE_REST_GET, on_trace},
    [TNK__ASK_USAGE] = {"get_usage", "AdminClient.get_billing_usage",
                        TNK__ROUTE_USAGE, on_page},
    [TNK__ASK_STORAGE] = {"get_storage",
                          "AdminClient.get_current_checkpoint_storage_usage",
                          TNK__ROUTE_STORAGE, on_page},
    [TNK__ASK_AUDIT] = {"get_audit_log", "AdminClient.get_audit_log",
                        TNK__ROUTE_AUDIT, on_page},
    [TNK__ASK_GET_KEY] = {"get_api_key", NULL, TNK__ROUTE_GET_KEY, on_page},
    [TNK__ASK_REVOKE_KEY] = {"revoke_api_key", NULL, TNK__ROUTE_REVOKE_KEY,
                             on_done},
    [TNK__ASK_GET_SAMPLER] = {"get_sampler", "RestClient.get_sampler",
                              TNK__ROUTE_REST_GET, on_page},
};

/* A service operation with the state to read its answer. */
typedef struct {
  tnk__service_op_t op; /* its arena has the strings */
  tnk__ask_t ask;
  tnk__seen_t *seen; /* or NULL */
  const char *target;
  int is_told; /* the wait for a trace was logged */
} rest_t;

static rest_t *rest_of(tnk__service_op_t *op) {
  return tnk__container_of(op, rest_t, op);
}

static tnk__service_op_t *op_of(tnk__call_t *call) {
  return tnk__container_of(call, tnk__service_op_t, call);
}

static const tnk_allocator_t *alloc_of(const tnk__service_op_t *op) {
  return &op->session->context->alloc;
}

const char *tnk__rest_name(tnk__ask_kind_t kind) {
  return rows[kind].name;
}

/* ---- Answers ---- */

/* Fail with TNK_EPROTO or TNK_ENOMEM; the message names the member, if
 * known. */
static void fail_reading(tnk__service_op_t *op, int err, const char *what) {
  const char *name = op->call.owner.name;
  tnk__error_t *error;

  if (err != TNK_EPROTO || what == NULL) {
    tnk__service_op_fail_code(op, name, err);
    return;
  }
  error = tnk__error_new(alloc_of(op), TNK_EPROTO,
                         "%s: malformed answer from the server: its member "
                         "\"%s\" is missing, or is not what it should be",
                         name, what);
  tnk__service_op_fail(op, error);
  tnk__error_unref(error);
}

static void on_page(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__service_op_t *op = op_of(call);
  const rest_t *rest = rest_of(op);
  const char *what;
  tnk_page_t *page;
  uint8_t *body;
  size_t n = 0;
  int err;

  if (reply->error != NULL) {
    tnk__service_op_fail(op, reply->error);
    return;
  }
  body = tnk__buf_take(reply->buf, &n);
  err = tnk__page_read(&page, alloc_of(op), &rest->ask, rest->seen, body, n,
                       &what);
  if (err == TNK_OK)
    tnk__service_op_resolve(op, TNK__RESULT_PAGE, page, tnk__page_free);
  else
    fail_reading(op, err, what);
}

/* Any 2xx answer is a success. */
static void on_done(tnk__call_t *call, const tnk__reply_t *reply) {
  if (reply->error != NULL)
    tnk__service_op_fail(op_of(call), reply->error);
  else
    tnk__service_op_resolve(op_of(call), TNK__RESULT_NONE, NULL, NULL);
}

static void free_text(const tnk_allocator_t *alloc, void *text) {
  tnk__free(alloc, text);
}

static void resolve_text(tnk__service_op_t *op, const char *text) {
  char *copy = tnk__strdup(alloc_of(op), text);

  if (copy != NULL)
    tnk__service_op_resolve(op, TNK__RESULT_PATH, copy, free_text);
  else
    fail_reading(op, TNK_ENOMEM, NULL);
}

static void on_copied(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__service_op_t *op = op_of(call);
  const char *what;
  const char *path;
  int err;

  if (reply->error != NULL) {
    tnk__service_op_fail(op, reply->error);
    return;
  }
  err = tnk__copied_read(&path, &op->arena, reply->buf->data, reply->buf->len,
                         &what);
  if (err == TNK_OK)
    resolve_text(op, path);
  else
    fail_reading(op, err, what);
}

/* ---- Archives ---- */

static void resolve_archive(tnk__service_op_t *op, const char *url,
                            int64_t expires_us) {
  tnk_page_t *page;
  const int err = tnk__page_of_archive(&page, alloc_of(op), url, expires_us);

  if (err == TNK_OK)
    tnk__service_op_resolve(op, TNK__RESULT_PAGE, page, tnk__page_free);
  else
    fail_reading(op, err, NULL);
}

/* The address of the request, as the base of a relative reference. */
static int locate(tnk__location_t *out, const tnk__service_op_t *op) {
  const tnk_allocator_t *alloc = alloc_of(op);
  const char *at;
  tnk__buf_t text;
  int err;

  tnk__buf_init(&text, alloc, TNK__MAX_URL);
  tnk__buf_printf(&text, "%s/api/v1/%s", op->session->config->url.text,
                  op->call.request.target);
  at = tnk__buf_cstr(&text);
  err = at != NULL ? tnk__location_parse(out, alloc, at) : TNK_ENOMEM;
  tnk__buf_deinit(&text);
  return err;
}

static void fail_location(tnk__service_op_t *op, int err) {
  tnk__error_t *error =
      err == TNK_ENOMEM
          ? tnk__error_static(err)
          : tnk__error_new(alloc_of(op), TNK_EPROTO,
                           "%s: redirected to an address that cannot be used",
                           op->name);

  tnk__service_op_fail(op, error);
  tnk__error_unref(error);
}

/* A redirection that is not followed: its target must be requested without the
 * API key. */
static void take_location(tnk__service_op_t *op, const tnk__reply_t *reply) {
  const tnk_allocator_t *alloc = alloc_of(op);
  const int64_t now_s = tnk__context_wall_s(op->session->context);
  const char *date = tnk__http_result_header(reply->result, "expires");
  int64_t expires_s;
  tnk__location_t here;
  tnk__location_t there;
  int err = locate(&here, op);

  if (err == TNK_OK) {
    err =
        tnk__location_join(&there, alloc, &here,
                           tnk__http_result_header(reply->result, "location"));
    tnk__location_deinit(&here, alloc);
  }
  if (err != TNK_OK) {
    fail_location(op, err);
    return;
  }
  if (date == NULL || !tnk__http_date_read(date, now_s, &expires_s))
    expires_s = now_s + ARCHIVE_S;
  resolve_archive(op, there.text, expires_s * 1000000);
  tnk__location_deinit(&there, alloc);
}

static void on_archive(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__service_op_t *op = op_of(call);
  tnk__archive_link_t link;
  const char *what;
  int err;

  if (reply->error != NULL) {
    tnk__service_op_fail(op, reply->error);
    return;
  }
  if (reply->status / 100 == 3) {
    take_location(op, reply);
    return;
  }
  err = tnk__archive_link_read(&link, &op->arena, reply->buf->data,
                               reply->buf->len, &what);
  if (err == TNK_OK)
    resolve_archive(op, link.url, link.expires_us);
  else
    fail_reading(op, err, what);
}

/* ---- Traces ---- */

static void on_trace_due(tnk__timer_t *timer) {
  begin(op_of(tnk__container_of(timer, tnk__call_t, timer)));
}

static void wait_for_trace(tnk__service_op_t *op) {
  rest_t *rest = rest_of(op);

  if (!rest->is_told)
    tnk__log(&op->session->context->logger, TNK_LOG_INFO, "call",
             "%s: the service is making the trace", op->name);
  rest->is_told = 1;
  tnk__timer_start(op->session->context, &op->call.timer, TRACE_MS,
                   on_trace_due);
}

static void fail_trace(tnk__service_op_t *op, const char *why) {
  tnk__error_t *error = tnk__error_new(
      alloc_of(op), TNK_EFAILED, "%s: the service could not make the trace: %s",
      op->name, why != NULL ? why : "it gave no reason");

  tnk__service_op_fail(op, error);
  tnk__error_unref(error);
}

static void on_trace(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__service_op_t *op = op_of(call);
  tnk__trace_t trace;
  const char *what;
  int err;

  if (reply->error != NULL) {
    tnk__service_op_fail(op, reply->error);
    return;
  }
  err = tnk__trace_read(&trace, &op->arena, reply->buf->data, reply->buf->len,
                        &what);
  if (err != TNK_OK)
    fail_reading(op, err, what);
  else if (strcmp(trace.status, "failed") == 0)
    fail_trace(op, trace.error);
  else if (strcmp(trace.status, "ready") != 0)
    wait_for_trace(op); /* "pending", or a status of a later version */
  else if (trace.url == NULL || trace.url[0] == '\0')
    fail_reading(op, TNK_EPROTO, "url");
  else
    resolve_text(op, trace.url);
}

/* ---- The request ---- */

static void add_token(const tnk__call_t *call, tnk__headers_t *headers) {
  const tnk__service_op_t *op =
      tnk__container_of_const(call, tnk__service_op_t, call);
  const rest_t *rest = tnk__container_of_const(op, rest_t, op);

  tnk__headers_add(headers, "X-Tinker-Weights-Access-Token",
                   rest->ask.access_token);
}

static void on_reply(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__service_op_t *op = op_of(call);

  if (!tnk__service_op_asks_again(op, reply))
    rows[rest_of(op)->ask.kind].done(call, reply);
}

static void begin(tnk__service_op_t *op) {
  const rest_t *rest = rest_of(op);
  const row_t *row = &rows[rest->ask.kind];

  tnk__call_init(&op->call, &op->session->endpoint, row->route, row->name);
  op->call.owner.method_name = row->method_name;
  op->call.request.target = rest->target;
  op->call.request.max_body = MAX_ANSWER;
  op->call.owner.secret = rest->ask.access_token;
  if (rest->ask.access_token != NULL)
    op->call.request.add_headers = add_token;
  tnk__service_op_call(op, on_reply);
}

/* The target, in the operation's arena; NULL without memory. */
static const char *target_of(rest_t *rest) {
  tnk__arena_t *arena = &rest->op.arena;
  const char *target = NULL;
  tnk__buf_t buf;

  tnk__buf_init(&buf, arena->alloc, TNK__MAX_URL);
  tnk__ask_write_target(&buf, &rest->ask);
  if (tnk__buf_cstr(&buf) != NULL)
    target = tnk__arena_strdup(arena, tnk__buf_cstr(&buf));
  tnk__buf_deinit(&buf);
  return target;
}

/* Copy the arguments that must outlive the call. Returns 0 without memory. */
static int keep(rest_t *rest, const tnk_page_t *before) {
  const char **texts[] = {&rest->ask.id, &rest->ask.project_id,
                          &rest->ask.search, &rest->ask.cursor,
                          &rest->ask.access_token};
  tnk__arena_t *arena = &rest->op.arena;

  rest->target = target_of(rest);
  if (rest->target == NULL)
    return 0;
  tnk__ask_write_body(&rest->op.body, &rest->ask);
  rest->ask.path = rest->ask.event_type = rest->ask.day = NULL;
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
    if (*texts[i] != NULL &&
        (*texts[i] = tnk__arena_strdup(arena, *texts[i])) == NULL)
      return 0;
  if (before == NULL || before->seen == NULL)
    return 1;
  rest->seen = tnk__arena_copy(arena, before->seen, sizeof(*before->seen));
  return rest->seen != NULL;
}

static int is_about_key(const tnk__ask_t *ask) {
  return (tnk__route(rows[ask->kind].route)->traits & TNK__ABOUT_KEY) != 0;
}

tnk_promise_t *tnk__rest_ask(tnk__session_t *session, const tnk__ask_t *ask,
                             const tnk_page_t *before) {
  tnk_promise_t *promise = NULL;
  tnk__service_op_t *op = tnk__service_op_new(session, rows[ask->kind].name,
                                              sizeof(rest_t), &promise);

  if (op == NULL)
    return promise;
  rest_of(op)->ask = *ask;
  if (ask->access_token != NULL)
    tnk__service_op_keep_secret(op);
  if (!keep(rest_of(op), before))
    tnk__service_op_fail_code(op, rows[ask->kind].name, TNK_ENOMEM);
  else if (is_about_key(ask))
    tnk__service_op_enter(op, TNK__SESSION_NEW, begin);
  else
    tnk__service_op_ask(op, begin);
  return promise;
}

/* ---- The query for the monitor of lost runs ---- */

static tnk_promise_t *ask_run(tnk__session_t *session, const char *run_id) {
  const tnk__ask_t question = {.kind = TNK__ASK_GET_RUN, .id = run_id};

  return tnk__rest_ask(session, &question, NULL);
}

static int is_corrupted(const tnk_promise_t *promise) {
  const tnk_page_t *page = tnk__promise_value(promise, TNK__RESULT_PAGE);
  const tnk_run_t *run;

  if (page == NULL || page->kind != TNK__PAGE_RUNS || page->n == 0)
    return 0;
  run = page->items;
  return run->is_corrupted;
}

const tnk__run_query_t tnk__store_run_query = {ask_run, is_corrupted};
