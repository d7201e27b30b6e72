/* SPDX-License-Identifier: MIT */
/*
 *   NEW --both configurations have come--> CONFIGURED --create_session--> READY
 *   NEW, CONFIGURED --a call fails--> the same; all waiting operations fail,
 *     and the next one begins again with that level's first call
 *   READY --a heartbeat reports the end of the session--> READY;
 *     `ended_session` is set, and no further heartbeat is sent
 *   READY --tnk__start_renew()--> CONFIGURED, and a new session is made
 *   any --tnk__start_shut()--> waiting and new operations fail. Then
 *     tnk__start_finish(), if there is a session that has not ended, and
 *     tnk__start_close()
 */
#include "lib/client/session/start.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/log.h"

enum { MIN_REFRESH_MS = 10000, MAX_STARTUP_BODY = 1024 * 1024 };

static void step(tnk__start_t *start);

/* ---- Waiting for a level ---- */

static void on_need_settled(tnk__deferred_t *call) {
  tnk__need_t *need = tnk__container_of(call, tnk__need_t, call);
  tnk__error_t *error = need->error;

  need->error = NULL;
  need->done(need, error);
  tnk__error_unref(error);
}

void tnk__need_init(tnk__need_t *need,
                    void (*done)(tnk__need_t *self, tnk__error_t *error)) {
  memset(need, 0, sizeof(*need));
  tnk__list_init(&need->link);
  tnk__deferred_init(&need->call, on_need_settled);
  need->done = done;
}

static void settle_need(tnk__start_t *start, tnk__need_t *need,
                        tnk__error_t *error) {
  tnk__list_remove(&need->link);
  need->error = error != NULL ? tnk__error_ref(error) : NULL;
  tnk__defer(start->endpoint->context, &need->call);
}

void tnk__start_need(tnk__start_t *start, tnk__need_t *need,
                     tnk__session_level_t level) {
  need->level = level;
  need->start = start;
  if (start->endpoint->closing)
    settle_need(start, need, tnk__error_static(TNK_ECLOSED));
  else if (start->level >= level)
    settle_need(start, need, NULL);
  else {
    tnk__list_append(&start->needs, &need->link);
    step(start);
  }
}

void tnk__need_cancel(tnk__need_t *need) {
  tnk__list_remove(&need->link);
  tnk__defer_cancel(&need->call);
  tnk__error_unref(need->error);
  need->error = NULL;
}

static void fail_needs(tnk__start_t *start, tnk__error_t *error) {
  tnk__list_t *node;

  while ((node = tnk__list_first(&start->needs)) != NULL)
    settle_need(start, tnk__container_of(node, tnk__need_t, link), error);
}

/* ---- Background: heartbeat and refresh ---- */

static void start_refresh(tnk__start_t *start);

/* The server has ended the session. Requests in flight get the server's own
 * responses; the errors of refused ones then name the session. */
static void on_ended(tnk__heartbeat_t *heartbeat, tnk__error_t *error) {
  tnk__start_t *start = tnk__container_of(heartbeat, tnk__start_t, heartbeat);

  start->endpoint->ended_session = start->id;
  if (start->registry->losses != NULL)
    start->registry->losses->lost(start->registry->losses, NULL);
  tnk__registry_answered(start->registry);
  tnk__restart_over(start->endpoint);
  tnk__registry_tell(start->registry, start->id, TNK_QUEUE_SESSION_LOST,
                     error->pub.text);
}

/* Clients are notified of a restart before any request is sent for them. */
static void on_kept(tnk__heartbeat_t *heartbeat) {
  tnk__start_t *start = tnk__container_of(heartbeat, tnk__start_t, heartbeat);

  tnk__registry_answered(start->registry);
  if (start->endpoint->restart.is_suspected && start->registry->losses != NULL)
    start->registry->losses->restarted(start->registry->losses);
  tnk__restart_over(start->endpoint);
}

static void on_refreshed(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__start_t *start = tnk__container_of(call, tnk__start_t, refresh);
  tnk__dynamic_flags_t flags;

  /* On any failure the last good values stay. */
  if (reply->error == NULL &&
      tnk__dynamic_flags_read(&flags, reply->body, reply->body_len) == TNK_OK)
    start->dynamic = flags;
  start_refresh(start);
}

static void on_refresh_due(tnk__timer_t *timer) {
  tnk__call_start(tnk__container_of(timer, tnk__call_t, timer), on_refreshed);
}

static void start_refresh(tnk__start_t *start) {
  uint64_t ms = (uint64_t)start->dynamic.refresh_interval_s * 1000;

  if (start->endpoint->missing & tnk__route_bit(start->refresh.request.route))
    return;
  tnk__timer_start_background(start->endpoint->context, &start->refresh.timer,
                              ms > MIN_REFRESH_MS ? ms : MIN_REFRESH_MS,
                              on_refresh_due);
}

/* ---- Start-up ---- */

static void raise_level(tnk__start_t *start, tnk__session_level_t level) {
  start->level = level;
  TNK__LIST_FOREACH_SAFE (node, next, &start->needs) {
    tnk__need_t *need = tnk__container_of(node, tnk__need_t, link);
    if (need->level <= level)
      settle_need(start, need, NULL);
  }
  step(start);
}

/* A start-up call has failed: all waiting operations fail. */
static void startup_failed(tnk__start_t *start, tnk__error_t *error) {
  start->busy = 0;
  fail_needs(start, error);
}

static void startup_malformed(tnk__start_t *start, int err) {
  tnk__error_t *error =
      err == TNK_ENOMEM
          ? tnk__error_static(TNK_ENOMEM)
          : tnk__error_new(&start->endpoint->context->alloc, err,
                           "%s: the server's answer cannot be understood; does "
                           "base_url name a Tinker server?",
                           start->call.owner.name);

  startup_failed(start, error);
  tnk__error_unref(error);
}

/* A request that cannot be encoded is not the server's fault. */
static void startup_unsendable(tnk__start_t *start, int err) {
  const tnk_error_t pub = {.code = err};
  tnk__error_t *error = tnk__error_from(&start->endpoint->context->alloc,
                                        start->call.owner.name, &pub);

  startup_failed(start, error);
  tnk__error_unref(error);
}

/* The pause is the server's value, or the program's if that is less. */
static void open_billing(tnk__start_t *start) {
  const uint64_t longest =
      start->endpoint->config->options.max_billing_pause_ms;
  const uint64_t said = start->flags.billing_pause_s * 1000;

  tnk__billing_init(&start->endpoint->billing,
                    longest != 0 && longest < said ? longest : said);
}

/* Begin a start-up call. Its body must be written. */
static void startup_send(tnk__start_t *start, tnk__route_id_t route,
                         const char *name,
                         void (*done)(tnk__call_t *, const tnk__reply_t *)) {
  start->busy = 1;
  tnk__call_init(&start->call, start->endpoint, route, name);
  start->call.request.body = start->body.data;
  start->call.request.body_len = start->body.len;
  if (start->body.err != TNK_OK)
    startup_unsendable(start, start->body.err);
  else
    tnk__call_start(&start->call, done);
}

/* Servers without the configuration call are used with the defaults. */
static int is_missing(const tnk__reply_t *reply) {
  return reply->status == 404 || reply->status == 405;
}

/* Returns whether the flags can be used: `err` is the result of reading them.
 * Else the start has failed. */
static int took_flags(tnk__start_t *start, const tnk__reply_t *reply, int err) {
  if (reply->error != NULL && !is_missing(reply))
    startup_failed(start, reply->error);
  else if (err != TNK_OK)
    startup_malformed(start, err);
  else
    return 1;
  return 0;
}

static void on_dynamic(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__start_t *start = tnk__container_of(call, tnk__start_t, call);
  int err = TNK_OK;

  if (reply->error == NULL)
    err =
        tnk__dynamic_flags_read(&start->dynamic, reply->body, reply->body_len);
  if (!took_flags(start, reply, err))
    return;
  start->busy = 0;
  raise_level(start, TNK__SESSION_CONFIGURED);
}

static void send_dynamic(tnk__start_t *start) {
  tnk__buf_clear(&start->body);
  tnk__client_config_write(&start->body);
  startup_send(start, TNK__ROUTE_DYNAMIC_CONFIG, "client/dynamic_config",
               on_dynamic);
}

static void on_config(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__start_t *start = tnk__container_of(call, tnk__start_t, call);
  int err = TNK_OK;

  if (reply->error == NULL)
    err = tnk__flags_read(&start->flags, reply->body, reply->body_len);
  if (!took_flags(start, reply, err))
    return;
  tnk__limits_apply(start->limits, &start->flags);
  open_billing(start);
  tnk__renewal_configure(start->renewal, &start->flags);
  send_dynamic(start);
}

/* Without tokens: an earlier response that required them may be out of date. */
static void send_config(tnk__start_t *start) {
  tnk__flags_default(&start->flags);
  tnk__renewal_configure(start->renewal, &start->flags);
  tnk__buf_clear(&start->body);
  tnk__client_config_write(&start->body);
  startup_send(start, TNK__ROUTE_CLIENT_CONFIG, "client/config", on_config);
}

static void log_message(tnk__start_t *start, tnk_log_level_t level,
                        const char *text) {
  if (text == NULL || text[0] == '\0')
    return;
  tnk__auth_hide(start->endpoint->auth, text);
  tnk__log(&start->endpoint->context->logger, level, "session", "%s: %s",
           start->id, text);
}

/* Encode the bodies of the heartbeat and the refresh, which never change. */
static int prepare_background(tnk__start_t *start) {
  tnk__call_t *refresh = &start->refresh;
  int err =
      tnk__heartbeat_prepare(&start->heartbeat, start->endpoint, start->id);

  tnk__buf_clear(&start->body);
  tnk__client_config_write(&start->body);
  if (err != TNK_OK || start->body.err != TNK_OK)
    return TNK_ENOMEM;
  tnk__call_init(refresh, start->endpoint, TNK__ROUTE_DYNAMIC_CONFIG,
                 "client/dynamic_config");
  refresh->request.once = 1;
  refresh->request.background = 1;
  refresh->request.body = start->body.data;
  refresh->request.body_len = start->body.len;
  return TNK_OK;
}

/* The old session's id, if there is one, is kept until here. */
static int take_id(tnk__start_t *start, const char *text) {
  const tnk_allocator_t *alloc = &start->endpoint->context->alloc;
  char *old = start->id;

  start->id = tnk__strdup(alloc, text);
  if (start->id == NULL || prepare_background(start) != TNK_OK) {
    tnk__free(alloc, start->id);
    start->id = old;
    return TNK_ENOMEM;
  }
  start->endpoint->ended_session = NULL;
  start->endpoint->n_sessions++;
  tnk__free(alloc, old);
  return TNK_OK;
}

void tnk__start_renew(tnk__start_t *start) {
  tnk__heartbeat_stop(&start->heartbeat);
  start->registry->own = NULL;
  tnk__registry_answered(start->registry);
  tnk__call_cancel(&start->refresh);
  start->progress = (tnk__progress_t){0};
  if (start->level == TNK__SESSION_READY)
    start->level = TNK__SESSION_CONFIGURED;
}

static void on_created(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__start_t *start = tnk__container_of(call, tnk__start_t, call);
  const tnk_allocator_t *alloc = &start->endpoint->context->alloc;
  tnk__create_session_reply_t answer;
  tnk__arena_t arena;
  int err;

  if (reply->error != NULL) {
    startup_failed(start, reply->error);
    return;
  }
  tnk__arena_init(&arena, alloc, MAX_STARTUP_BODY);
  err = tnk__create_session_read(&answer, &arena, reply->body, reply->body_len);
  if (err == TNK_OK)
    err = take_id(start, answer.session_id);
  if (err == TNK_OK) {
    log_message(start, TNK_LOG_INFO, answer.info_message);
    log_message(start, TNK_LOG_WARN, answer.warning_message);
    log_message(start, TNK_LOG_ERROR, answer.error_message);
  }
  tnk__arena_deinit(&arena);
  if (err != TNK_OK) {
    startup_malformed(start, err);
    return;
  }
  start->busy = 0;
  tnk__restart_over(start->endpoint);
  start->endpoint->restart.is_watching = 1;
  tnk__heartbeat_begin(&start->heartbeat);
  start->registry->own = &start->heartbeat;
  start_refresh(start);
  raise_level(start, TNK__SESSION_READY);
}

static void send_create(tnk__start_t *start) {
  tnk__buf_clear(&start->body);
  tnk__create_session_write(&start->body, start->endpoint->config->tags,
                            start->endpoint->config->n_tags,
                            start->endpoint->config->options.user_metadata,
                            start->endpoint->config->options.n_user_metadata,
                            start->endpoint->config->options.project_id,
                            start->endpoint->config->options.display_name);
  startup_send(start, TNK__ROUTE_CREATE_SESSION, "create_session", on_created);
}

/* Start the next step if an operation waits for it and no call is active. */
static void step(tnk__start_t *start) {
  if (start->busy || start->endpoint->closing || tnk__list_empty(&start->needs))
    return;
  if (start->level == TNK__SESSION_NEW)
    send_config(start);
  else if (start->level == TNK__SESSION_CONFIGURED)
    send_create(start);
}

/* ---- Lifetime ---- */

void tnk__start_open(tnk__start_t *start) {
  const tnk_allocator_t *alloc = &start->endpoint->context->alloc;

  tnk__list_init(&start->needs);
  tnk__buf_init(&start->body, alloc, MAX_STARTUP_BODY);
  tnk__heartbeat_open(&start->heartbeat, alloc);
  start->heartbeat.ended = on_ended;
  start->heartbeat.kept = on_kept;
  tnk__flags_default(&start->flags);
  tnk__dynamic_flags_default(&start->dynamic);
  open_billing(start);
}

void tnk__start_shut(tnk__start_t *start) {
  tnk__call_cancel(&start->call);
  tnk__heartbeat_stop(&start->heartbeat);
  tnk__call_cancel(&start->refresh);
  fail_needs(start, tnk__error_static(TNK_ECLOSED));
}

void tnk__start_close(tnk__start_t *start) {
  tnk__timer_stop(&start->finish_timer);
  tnk__call_cancel(&start->call);
  tnk__defer_cancel(&start->no_finish);
  tnk__buf_deinit(&start->body);
  tnk__heartbeat_close(&start->heartbeat);
}

/* The maximum duration of closing a service, as documented in its header. The
 * call's own timeout limits silence, which may begin later: while the request
 * is sent, or while it waits for a connection. */
enum { FINISH_MS = 2000 };

static void on_finish_due(tnk__timer_t *timer) {
  tnk__start_t *start = tnk__container_of(timer, tnk__start_t, finish_timer);

  tnk__log(&start->endpoint->context->logger, TNK_LOG_INFO, "session",
           "%s: could not report the end of the session within %d ms",
           start->id, FINISH_MS);
  tnk__call_cancel(&start->call);
  start->finished(start);
}

static void on_finished(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__start_t *start = tnk__container_of(call, tnk__start_t, call);

  tnk__timer_stop(&start->finish_timer);
  if (reply->error != NULL)
    tnk__log(&start->endpoint->context->logger, TNK_LOG_INFO, "session",
             "%s: could not report the end of the session: %s", start->id,
             reply->error->pub.text);
  start->finished(start);
}

static void on_no_finish(tnk__deferred_t *deferred) {
  tnk__start_t *start = tnk__container_of(deferred, tnk__start_t, no_finish);

  start->finished(start);
}

void tnk__start_finish(tnk__start_t *start, void (*done)(tnk__start_t *start)) {
  start->finished = done;
  tnk__deferred_init(&start->no_finish, on_no_finish);
  tnk__buf_clear(&start->body);
  tnk__finish_session_write(&start->body, "success", NULL);
  if (start->id == NULL || start->endpoint->ended_session != NULL ||
      start->body.err != TNK_OK) {
    tnk__defer(start->endpoint->context, &start->no_finish);
    return;
  }
  tnk__call_init(&start->call, start->endpoint, TNK__ROUTE_FINISH, "finish");
  start->call.owner.method_name = "ServiceClient.close";
  start->call.request.once = 1;
  start->call.request.path_id = start->id;
  start->call.request.body = start->body.data;
  start->call.request.body_len = start->body.len;
  tnk__call_start(&start->call, on_finished);
  tnk__timer_start(start->endpoint->context, &start->finish_timer, FINISH_MS,
                   on_finish_due);
}

void tnk__start_explain(const tnk__start_t *start, tnk__text_t *out) {
  tnk__text_printf(out, "waits for the session to be set up");
  if (!tnk__call_is_active(&start->call))
    return;
  tnk__text_printf(out, "; %s ", start->call.owner.name);
  tnk__call_explain(&start->call, out);
}
