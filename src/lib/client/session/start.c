/*
 *   NEW --both configurations have come--> CONFIGURED --create_session--> READY
 *   NEW, CONFIGURED --a call fails--> the same; all waiting operations fail,
 *     and the next one begins again with that level's first call
 *   READY --a heartbeat reports the end of the session--> READY;
 *     `ended_session` is set, and no further heartbeat is sent
 *   READY --tnk__session_renew()--> CONFIGURED, and a new session is made
 *   any --tnk__start_shut()--> waiting and new operations fail. Then
 *     tnk__session_finish(), if there is a session that has not ended, and
 *     tnk__start_close()
 */
#include "lib/client/session/start.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/client/session/session.h"

enum { MIN_REFRESH_MS = 10000, MAX_STARTUP_BODY = 1024 * 1024 };

static void step(tnk__session_t *session);

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

static void settle_need(tnk__session_t *session, tnk__need_t *need,
                        tnk__error_t *error) {
  tnk__list_remove(&need->link);
  need->error = error != NULL ? tnk__error_ref(error) : NULL;
  tnk__defer(session->context, &need->call);
}

void tnk__session_need(tnk__session_t *session, tnk__need_t *need,
                       tnk__session_level_t level) {
  need->level = level;
  need->session = session;
  if (session->endpoint.closing)
    settle_need(session, need, tnk__error_static(TNK_ECLOSED));
  else if (session->start.level >= level)
    settle_need(session, need, NULL);
  else {
    tnk__list_append(&session->start.needs, &need->link);
    step(session);
  }
}

void tnk__need_cancel(tnk__need_t *need) {
  tnk__list_remove(&need->link);
  tnk__defer_cancel(&need->call);
  tnk__error_unref(need->error);
  need->error = NULL;
}

static void fail_needs(tnk__session_t *session, tnk__error_t *error) {
  tnk__list_t *node;

  while ((node = tnk__list_first(&session->start.needs)) != NULL)
    settle_need(session, tnk__container_of(node, tnk__need_t, link), error);
}

/* ---- Background: heartbeat and refresh ---- */

static void start_refresh(tnk__session_t *session);

/* The server has ended the session. Requests in flight get the server's own
 * responses; the errors of refused ones then name the session. */
static void on_ended(tnk__heartbeat_t *heartbeat, tnk__error_t *error) {
  tnk__session_t *session =
      tnk__container_of(heartbeat, tnk__session_t, start.heartbeat);

  session->endpoint.ended_session = session->start.id;
  if (session->losses != NULL)
    session->losses->lost(session->losses, NULL);
  tnk__session_answered(session);
  tnk__restart_over(&session->endpoint);
  tnk__session_tell(session, session->start.id, TNK_QUEUE_SESSION_LOST,
                    error->pub.text);
}

/* Clients are notified of a restart before any request is sent for them. */
static void on_kept(tnk__heartbeat_t *heartbeat) {
  tnk__session_t *session =
      tnk__container_of(heartbeat, tnk__session_t, start.heartbeat);

  tnk__session_answered(session);
  if (session->endpoint.restart.is_suspected && session->losses != NULL)
    session->losses->restarted(session->losses);
  tnk__restart_over(&session->endpoint);
}

static void on_refreshed(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__session_t *session =
      tnk__container_of(call, tnk__session_t, start.refresh);
  tnk__dynamic_flags_t flags;

  /* On any failure the last good values stay. */
  if (reply->error == NULL &&
      tnk__dynamic_flags_read(&flags, reply->body, reply->body_len) == TNK_OK)
    session->start.dynamic = flags;
  start_refresh(session);
}

static void on_refresh_due(tnk__timer_t *timer) {
  tnk__call_start(tnk__container_of(timer, tnk__call_t, timer), on_refreshed);
}

static void start_refresh(tnk__session_t *session) {
  uint64_t ms = (uint64_t)session->start.dynamic.refresh_interval_s * 1000;

  if (session->endpoint.missing &
      tnk__route_bit(session->start.refresh.request.route))
    return;
  tnk__timer_start_background(session->context, &session->start.refresh.timer,
                              ms > MIN_REFRESH_MS ? ms : MIN_REFRESH_MS,
                              on_refresh_due);
}

/* ---- Start-up ---- */

static void raise_level(tnk__session_t *session, tnk__session_level_t level) {
  session->start.level = level;
  TNK__LIST_FOREACH_SAFE (node, next, &session->start.needs) {
    tnk__need_t *need = tnk__container_of(node, tnk__need_t, link);
    if (need->level <= level)
      settle_need(session, need, NULL);
  }
  step(session);
}

/* A start-up call has failed: all waiting operations fail. */
static void startup_failed(tnk__session_t *session, tnk__error_t *error) {
  session->start.busy = 0;
  fail_needs(session, error);
}

static void startup_malformed(tnk__session_t *session, int err) {
  tnk__error_t *error =
      err == TNK_ENOMEM
          ? tnk__error_static(TNK_ENOMEM)
          : tnk__error_new(&session->context->alloc, err,
                           "%s: the server's answer cannot be understood; does "
                           "base_url name a Tinker server?",
                           session->start.call.owner.name);

  startup_failed(session, error);
  tnk__error_unref(error);
}

/* A request that cannot be encoded is not the server's fault. */
static void startup_unsendable(tnk__session_t *session, int err) {
  const tnk_error_t pub = {.code = err};
  tnk__error_t *error = tnk__error_from(&session->context->alloc,
                                        session->start.call.owner.name, &pub);

  startup_failed(session, error);
  tnk__error_unref(error);
}

/* The pause is the server's value, or the program's if that is less. */
static void open_billing(tnk__session_t *session) {
  const uint64_t longest = session->config->options.max_billing_pause_ms;
  const uint64_t said = session->start.flags.billing_pause_s * 1000;

  tnk__billing_init(&session->endpoint.billing,
                    longest != 0 && longest < said ? longest : said);
}

/* Begin a start-up call. Its body must be written. */
static void startup_send(tnk__session_t *session, tnk__route_id_t route,
                         const char *name,
                         void (*done)(tnk__call_t *, const tnk__reply_t *)) {
  session->start.busy = 1;
  tnk__call_init(&session->start.call, &session->endpoint, route, name);
  session->start.call.request.body = session->start.body.data;
  session->start.call.request.body_len = session->start.body.len;
  if (session->start.body.err != TNK_OK)
    startup_unsendable(session, session->start.body.err);
  else
    tnk__call_start(&session->start.call, done);
}

/* Servers without the configuration call are used with the defaults. */
static int is_missing(const tnk__reply_t *reply) {
  return reply->status == 404 || reply->status == 405;
}

static void on_dynamic(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__session_t *session = tnk__container_of(call, tnk__session_t, start.call);
  int err;

  if (reply->error != NULL && !is_missing(reply)) {
    startup_failed(session, reply->error);
    return;
  }
  if (reply->error == NULL) {
    err = tnk__dynamic_flags_read(&session->start.dynamic, reply->body,
                                  reply->body_len);
    if (err != TNK_OK) {
      startup_malformed(session, err);
      return;
    }
  }
  session->start.busy = 0;
  raise_level(session, TNK__SESSION_CONFIGURED);
}

static void send_dynamic(tnk__session_t *session) {
  tnk__buf_clear(&session->start.body);
  tnk__client_config_write(&session->start.body);
  startup_send(session, TNK__ROUTE_DYNAMIC_CONFIG, "client/dynamic_config",
               on_dynamic);
}

static void on_config(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__session_t *session = tnk__container_of(call, tnk__session_t, start.call);
  int err;

  if (reply->error != NULL && !is_missing(reply)) {
    startup_failed(session, reply->error);
    return;
  }
  if (reply->error == NULL) {
    err = tnk__flags_read(&session->start.flags, reply->body, reply->body_len);
    if (err != TNK_OK) {
      startup_malformed(session, err);
      return;
    }
  }
  tnk__limits_apply(&session->limits, &session->start.flags);
  open_billing(session);
  tnk__renewal_configure(&session->renewal, &session->start.flags);
  send_dynamic(session);
}

/* Without tokens: an earlier response that required them may be out of date. */
static void send_config(tnk__session_t *session) {
  tnk__flags_default(&session->start.flags);
  tnk__renewal_configure(&session->renewal, &session->start.flags);
  tnk__buf_clear(&session->start.body);
  tnk__client_config_write(&session->start.body);
  startup_send(session, TNK__ROUTE_CLIENT_CONFIG, "client/config", on_config);
}

static void log_message(tnk__session_t *session, tnk_log_level_t level,
                        const char *text) {
  if (text == NULL || text[0] == '\0')
    return;
  tnk__auth_hide(session->endpoint.auth, text);
  tnk__log(&session->context->logger, level, "session", "%s: %s",
           session->start.id, text);
}

/* Encode the bodies of the heartbeat and the refresh, which never change. */
static int prepare_background(tnk__session_t *session) {
  tnk__call_t *refresh = &session->start.refresh;
  int err = tnk__heartbeat_prepare(&session->start.heartbeat,
                                   &session->endpoint, session->start.id);

  tnk__buf_clear(&session->start.body);
  tnk__client_config_write(&session->start.body);
  if (err != TNK_OK || session->start.body.err != TNK_OK)
    return TNK_ENOMEM;
  tnk__call_init(refresh, &session->endpoint, TNK__ROUTE_DYNAMIC_CONFIG,
                 "client/dynamic_config");
  refresh->request.once = 1;
  refresh->request.background = 1;
  refresh->request.body = session->start.body.data;
  refresh->request.body_len = session->start.body.len;
  return TNK_OK;
}

/* The old session's id, if there is one, is kept until here. */
static int take_id(tnk__session_t *session, const char *text) {
  const tnk_allocator_t *alloc = &session->context->alloc;
  char *old = session->start.id;

  session->start.id = tnk__strdup(alloc, text);
  if (session->start.id == NULL || prepare_background(session) != TNK_OK) {
    tnk__free(alloc, session->start.id);
    session->start.id = old;
    return TNK_ENOMEM;
  }
  session->endpoint.ended_session = NULL;
  tnk__free(alloc, old);
  return TNK_OK;
}

void tnk__session_renew(tnk__session_t *session) {
  tnk__heartbeat_stop(&session->start.heartbeat);
  tnk__session_answered(session);
  tnk__call_cancel(&session->start.refresh);
  session->start.progress = (tnk__progress_t){0};
  if (session->start.level == TNK__SESSION_READY)
    session->start.level = TNK__SESSION_CONFIGURED;
}

static void on_created(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__session_t *session = tnk__container_of(call, tnk__session_t, start.call);
  const tnk_allocator_t *alloc = &session->context->alloc;
  tnk__create_session_reply_t answer;
  tnk__arena_t arena;
  int err;

  if (reply->error != NULL) {
    startup_failed(session, reply->error);
    return;
  }
  tnk__arena_init(&arena, alloc, MAX_STARTUP_BODY);
  err = tnk__create_session_read(&answer, &arena, reply->body, reply->body_len);
  if (err == TNK_OK)
    err = take_id(session, answer.session_id);
  if (err == TNK_OK) {
    log_message(session, TNK_LOG_INFO, answer.info_message);
    log_message(session, TNK_LOG_WARN, answer.warning_message);
    log_message(session, TNK_LOG_ERROR, answer.error_message);
  }
  tnk__arena_deinit(&arena);
  if (err != TNK_OK) {
    startup_malformed(session, err);
    return;
  }
  session->start.busy = 0;
  tnk__restart_over(&session->endpoint);
  session->endpoint.restart.is_watching = 1;
  tnk__heartbeat_begin(&session->start.heartbeat);
  start_refresh(session);
  raise_level(session, TNK__SESSION_READY);
}

static void send_create(tnk__session_t *session) {
  tnk__buf_clear(&session->start.body);
  tnk__create_session_write(&session->start.body, session->config->tags,
                            session->config->n_tags,
                            session->config->options.user_metadata,
                            session->config->options.n_user_metadata,
                            session->config->options.project_id,
                            session->config->options.display_name);
  startup_send(session, TNK__ROUTE_CREATE_SESSION, "create_session",
               on_created);
}

/* Start the next step if an operation waits for it and no call is active. */
static void step(tnk__session_t *session) {
  if (session->start.busy || session->endpoint.closing ||
      tnk__list_empty(&session->start.needs))
    return;
  if (session->start.level == TNK__SESSION_NEW)
    send_config(session);
  else if (session->start.level == TNK__SESSION_CONFIGURED)
    send_create(session);
}

/* ---- Lifetime ---- */

void tnk__start_open(tnk__session_t *session) {
  const tnk_allocator_t *alloc = &session->context->alloc;

  tnk__list_init(&session->start.needs);
  tnk__buf_init(&session->start.body, alloc, MAX_STARTUP_BODY);
  tnk__heartbeat_open(&session->start.heartbeat, alloc);
  session->start.heartbeat.ended = on_ended;
  session->start.heartbeat.kept = on_kept;
  tnk__flags_default(&session->start.flags);
  tnk__dynamic_flags_default(&session->start.dynamic);
  open_billing(session);
}

void tnk__start_shut(tnk__session_t *session) {
  tnk__call_cancel(&session->start.call);
  tnk__heartbeat_stop(&session->start.heartbeat);
  tnk__call_cancel(&session->start.refresh);
  fail_needs(session, tnk__error_static(TNK_ECLOSED));
}

void tnk__start_close(tnk__session_t *session) {
  tnk__timer_stop(&session->start.finish_timer);
  tnk__call_cancel(&session->start.call);
  tnk__defer_cancel(&session->start.no_finish);
  tnk__buf_deinit(&session->start.body);
  tnk__heartbeat_close(&session->start.heartbeat);
}

/* The maximum duration of closing a service, as documented in its header. The
 * call's own timeout limits silence, which may begin later: while the request
 * is sent, or while it waits for a connection. */
enum { FINISH_MS = 2000 };

static void on_finish_due(tnk__timer_t *timer) {
  tnk__session_t *session =
      tnk__container_of(timer, tnk__session_t, start.finish_timer);

  tnk__log(&session->context->logger, TNK_LOG_INFO, "session",
           "%s: its end could not be reported in %d ms", session->start.id,
           FINISH_MS);
  tnk__call_cancel(&session->start.call);
  session->start.finished(session);
}

static void on_finished(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__session_t *session = tnk__container_of(call, tnk__session_t, start.call);

  tnk__timer_stop(&session->start.finish_timer);
  if (reply->error != NULL)
    tnk__log(&session->context->logger, TNK_LOG_INFO, "session",
             "%s: its end could not be reported: %s", session->start.id,
             reply->error->pub.text);
  session->start.finished(session);
}

static void on_no_finish(tnk__deferred_t *deferred) {
  tnk__session_t *session =
      tnk__container_of(deferred, tnk__session_t, start.no_finish);

  session->start.finished(session);
}

void tnk__session_finish(tnk__session_t *session,
                         void (*done)(tnk__session_t *session)) {
  session->start.finished = done;
  tnk__deferred_init(&session->start.no_finish, on_no_finish);
  tnk__buf_clear(&session->start.body);
  tnk__finish_session_write(&session->start.body, "success", NULL);
  if (session->start.id == NULL || session->endpoint.ended_session != NULL ||
      session->start.body.err != TNK_OK) {
    tnk__defer(session->context, &session->start.no_finish);
    return;
  }
  tnk__call_init(&session->start.call, &session->endpoint, TNK__ROUTE_FINISH,
                 "finish");
  session->start.call.owner.method_name = "ServiceClient.close";
  session->start.call.request.once = 1;
  session->start.call.request.path_id = session->start.id;
  session->start.call.request.body = session->start.body.data;
  session->start.call.request.body_len = session->start.body.len;
  tnk__call_start(&session->start.call, on_finished);
  tnk__timer_start(session->context, &session->start.finish_timer, FINISH_MS,
                   on_finish_due);
}

void tnk__session_explain(const tnk__session_t *session, tnk__text_t *out) {
  tnk__text_printf(out, "waits for the session to be set up");
  if (!tnk__call_is_active(&session->start.call))
    return;
  tnk__text_printf(out, "; %s ", session->start.call.owner.name);
  tnk__call_explain(&session->start.call, out);
}
