/*
 *   NEW --both configurations have come--> CONFIGURED --create_session--> READY
 *   NEW, CONFIGURED --a call fails--> the same; all waiting operations fail,
 *     and the next one begins again with that level's first call
 *   READY --a heartbeat reports the end of the session--> READY;
 *     `ended_session` is set, and no further heartbeat is sent
 *   READY --tnk__session_renew()--> CONFIGURED, and a new session is made
 *   any --tnk__session_shut()--> closing: waiting and new operations fail.
 *     Then tnk__session_finish(), if there is a session that has not ended, and
 *     tnk__session_close()
 *
 * Only tnk__session_tell() calls the program. It must be the last action of its
 * caller, because the program may close the service.
 */
#include "lib/client/session/session.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/client/call/reach.h"
#include "lib/client/call/tenant.h"

enum {
  MIN_REFRESH_MS = 10000,
  MAX_STARTUP_BODY = 1024 * 1024,
  MAX_TRAIN_BYTES = 16 * 1000 * 1000,
  SAMPLE_THROTTLED_SLOTS = 10,
  /* With batched polls: results fetched in parallel, and the share of all polls
   * that may check silent samples. */
  MAX_FETCHES = 64,
  CHECKS_PART = 8
};

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
  else if (session->level >= level)
    settle_need(session, need, NULL);
  else {
    tnk__list_append(&session->needs, &need->link);
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

  while ((node = tnk__list_first(&session->needs)) != NULL)
    settle_need(session, tnk__container_of(node, tnk__need_t, link), error);
}

/* ---- The observer ---- */

void tnk__session_tell(tnk__session_t *session, const char *client,
                       tnk_queue_state_t state, const char *reason) {
  const tnk_service_options_t *options = &session->config->options;

  if (options->on_queue_state == NULL)
    return;
  tnk__callout_begin();
  options->on_queue_state(client, state, reason, options->queue_state_user);
  tnk__callout_end();
}

static void on_reach(tnk__endpoint_t *endpoint, int is_out,
                     const char *reason) {
  tnk__session_tell(tnk__container_of(endpoint, tnk__session_t, endpoint),
                    endpoint->config->url.host,
                    is_out ? TNK_QUEUE_UNREACHABLE : TNK_QUEUE_ACTIVE, reason);
}

/* ---- Background: heartbeat and refresh ---- */

static void start_refresh(tnk__session_t *session);

/* The server has ended the session. Requests in flight get the server's own
 * responses; the errors of refused ones then name the session. */
static void on_ended(tnk__heartbeat_t *heartbeat, tnk__error_t *error) {
  tnk__session_t *session =
      tnk__container_of(heartbeat, tnk__session_t, heartbeat);

  session->endpoint.ended_session = session->id;
  if (session->lost != NULL)
    session->lost(session, NULL);
  tnk__session_answered(session);
  tnk__restart_over(&session->endpoint);
  tnk__session_tell(session, session->id, TNK_QUEUE_SESSION_LOST,
                    error->pub.text);
}

/* Clients are notified of a restart before any request is sent for them. */
static void on_kept(tnk__heartbeat_t *heartbeat) {
  tnk__session_t *session =
      tnk__container_of(heartbeat, tnk__session_t, heartbeat);

  tnk__session_answered(session);
  if (session->endpoint.restart.is_suspected && session->restarted != NULL)
    session->restarted(session);
  tnk__restart_over(&session->endpoint);
}

static void on_refreshed(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__session_t *session = tnk__container_of(call, tnk__session_t, refresh);
  tnk__dynamic_flags_t flags;

  /* On any failure the last good values stay. */
  if (reply->error == NULL &&
      tnk__dynamic_flags_read(&flags, reply->body, reply->body_len) == TNK_OK)
    session->dynamic = flags;
  start_refresh(session);
}

static void on_refresh_due(tnk__timer_t *timer) {
  tnk__call_start(tnk__container_of(timer, tnk__call_t, timer), on_refreshed);
}

static void start_refresh(tnk__session_t *session) {
  uint64_t ms = (uint64_t)session->dynamic.refresh_interval_s * 1000;

  if (session->endpoint.missing & tnk__route_bit(session->refresh.route))
    return;
  tnk__timer_start_background(session->context, &session->refresh.timer,
                              ms > MIN_REFRESH_MS ? ms : MIN_REFRESH_MS,
                              on_refresh_due);
}

/* ---- Start-up ---- */

static void raise_level(tnk__session_t *session, tnk__session_level_t level) {
  session->level = level;
  TNK__LIST_FOREACH_SAFE (node, next, &session->needs) {
    tnk__need_t *need = tnk__container_of(node, tnk__need_t, link);
    if (need->level <= level)
      settle_need(session, need, NULL);
  }
  step(session);
}

/* A start-up call has failed: all waiting operations fail. */
static void startup_failed(tnk__session_t *session, tnk__error_t *error) {
  session->busy = 0;
  fail_needs(session, error);
}

static void startup_malformed(tnk__session_t *session, int err) {
  tnk__error_t *error =
      err == TNK_ENOMEM
          ? tnk__error_static(TNK_ENOMEM)
          : tnk__error_new(&session->context->alloc, err,
                           "%s: the server's answer cannot be understood; does "
                           "base_url name a Tinker server?",
                           session->startup.name);

  startup_failed(session, error);
  tnk__error_unref(error);
}

/* A request that cannot be encoded is not the server's fault. */
static void startup_unsendable(tnk__session_t *session, int err) {
  const tnk_error_t pub = {.code = err};
  tnk__error_t *error =
      tnk__error_from(&session->context->alloc, session->startup.name, &pub);

  startup_failed(session, error);
  tnk__error_unref(error);
}

/* The server's value, or the program's if that is less. */
static uint64_t billing_pause_ms(const tnk__session_t *session) {
  const uint64_t longest = session->config->options.max_billing_pause_ms;
  const uint64_t said = session->flags.billing_pause_s * 1000;

  return longest != 0 && longest < said ? longest : said;
}

static void apply_flags(tnk__session_t *session) {
  const tnk__flags_t *flags = &session->flags;
  uint64_t train_bytes = flags->train_dispatch_bytes;

  /* Encoded chunks take memory. The limit is enough to keep the connections
   * busy, even if the server would accept more. */
  if (train_bytes > MAX_TRAIN_BYTES)
    train_bytes = MAX_TRAIN_BYTES;
  tnk__budget_set_size(&session->train_bytes, train_bytes);
  tnk__budget_set_size(&session->sample_bytes, flags->sample_dispatch_bytes);
  tnk__budget_set_size(&session->result_bytes, flags->result_bytes);
  tnk__semaphore_set_limit(&session->sample_running,
                           flags->batched_polls
                               ? TNK__SEMAPHORE_UNLIMITED
                               : (size_t)flags->sample_concurrency);
  tnk__billing_init(&session->endpoint.billing, billing_pause_ms(session));
}

/* Begin a start-up call. Its body must be written. */
static void startup_send(tnk__session_t *session, tnk__route_id_t route,
                         const char *name,
                         void (*done)(tnk__call_t *, const tnk__reply_t *)) {
  session->busy = 1;
  tnk__call_init(&session->startup, &session->endpoint, route, name);
  session->startup.body = session->startup_body.data;
  session->startup.body_len = session->startup_body.len;
  if (session->startup_body.err != TNK_OK)
    startup_unsendable(session, session->startup_body.err);
  else
    tnk__call_start(&session->startup, done);
}

/* Servers without the configuration call are used with the defaults. */
static int is_missing(const tnk__reply_t *reply) {
  return reply->status == 404 || reply->status == 405;
}

static void on_dynamic(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__session_t *session = tnk__container_of(call, tnk__session_t, startup);
  int err;

  if (reply->error != NULL && !is_missing(reply)) {
    startup_failed(session, reply->error);
    return;
  }
  if (reply->error == NULL) {
    err = tnk__dynamic_flags_read(&session->dynamic, reply->body,
                                  reply->body_len);
    if (err != TNK_OK) {
      startup_malformed(session, err);
      return;
    }
  }
  session->busy = 0;
  raise_level(session, TNK__SESSION_CONFIGURED);
}

static void send_dynamic(tnk__session_t *session) {
  tnk__buf_clear(&session->startup_body);
  tnk__client_config_write(&session->startup_body);
  startup_send(session, TNK__ROUTE_DYNAMIC_CONFIG, "client/dynamic_config",
               on_dynamic);
}

static void on_config(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__session_t *session = tnk__container_of(call, tnk__session_t, startup);
  int err;

  if (reply->error != NULL && !is_missing(reply)) {
    startup_failed(session, reply->error);
    return;
  }
  if (reply->error == NULL) {
    err = tnk__flags_read(&session->flags, reply->body, reply->body_len);
    if (err != TNK_OK) {
      startup_malformed(session, err);
      return;
    }
  }
  apply_flags(session);
  tnk__renewal_configure(&session->renewal, &session->flags);
  send_dynamic(session);
}

/* Without tokens: an earlier response that required them may be out of date. */
static void send_config(tnk__session_t *session) {
  tnk__flags_default(&session->flags);
  tnk__renewal_configure(&session->renewal, &session->flags);
  tnk__buf_clear(&session->startup_body);
  tnk__client_config_write(&session->startup_body);
  startup_send(session, TNK__ROUTE_CLIENT_CONFIG, "client/config", on_config);
}

static void log_message(tnk__session_t *session, tnk_log_level_t level,
                        const char *text) {
  if (text == NULL || text[0] == '\0')
    return;
  tnk__auth_hide(session->endpoint.auth, text);
  tnk__log(&session->context->logger, level, "session", "%s: %s", session->id,
           text);
}

/* Encode the bodies of the heartbeat and the refresh, which never change. */
static int prepare_background(tnk__session_t *session) {
  tnk__call_t *refresh = &session->refresh;
  int err = tnk__heartbeat_prepare(&session->heartbeat, &session->endpoint,
                                   session->id);

  tnk__buf_clear(&session->startup_body);
  tnk__client_config_write(&session->startup_body);
  if (err != TNK_OK || session->startup_body.err != TNK_OK)
    return TNK_ENOMEM;
  tnk__call_init(refresh, &session->endpoint, TNK__ROUTE_DYNAMIC_CONFIG,
                 "client/dynamic_config");
  refresh->once = 1;
  refresh->background = 1;
  refresh->body = session->startup_body.data;
  refresh->body_len = session->startup_body.len;
  return TNK_OK;
}

/* The old session's id, if there is one, is kept until here. */
static int take_id(tnk__session_t *session, const char *text) {
  const tnk_allocator_t *alloc = &session->context->alloc;
  char *old = session->id;

  session->id = tnk__strdup(alloc, text);
  if (session->id == NULL || prepare_background(session) != TNK_OK) {
    tnk__free(alloc, session->id);
    session->id = old;
    return TNK_ENOMEM;
  }
  session->endpoint.ended_session = NULL;
  tnk__free(alloc, old);
  return TNK_OK;
}

void tnk__session_renew(tnk__session_t *session) {
  tnk__heartbeat_stop(&session->heartbeat);
  tnk__session_answered(session);
  tnk__call_cancel(&session->refresh);
  session->next_model_seq = 0;
  session->next_loss_seq = 0;
  session->next_sampling_seq = 0;
  session->pass_form = TNK__FORM_UNKNOWN;
  if (session->level == TNK__SESSION_READY)
    session->level = TNK__SESSION_CONFIGURED;
}

static void on_created(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__session_t *session = tnk__container_of(call, tnk__session_t, startup);
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
  session->busy = 0;
  tnk__restart_over(&session->endpoint);
  session->endpoint.restart.is_watching = 1;
  tnk__heartbeat_begin(&session->heartbeat);
  start_refresh(session);
  raise_level(session, TNK__SESSION_READY);
}

static void send_create(tnk__session_t *session) {
  tnk__buf_clear(&session->startup_body);
  tnk__create_session_write(&session->startup_body, session->config->tags,
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
  if (session->busy || session->endpoint.closing ||
      tnk__list_empty(&session->needs))
    return;
  if (session->level == TNK__SESSION_NEW)
    send_config(session);
  else if (session->level == TNK__SESSION_CONFIGURED)
    send_create(session);
}

/* ---- Lifetime ---- */

void tnk__session_open(tnk__session_t *session, tnk__context_t *context,
                       const tnk__config_t *config, tnk__http_t *http) {
  memset(session, 0, sizeof(*session));
  session->context = context;
  session->config = config;
  session->endpoint.context = context;
  session->endpoint.config = config;
  session->endpoint.http = http;
  session->endpoint.auth = &session->renewal.auth;
  tnk__reach_open(&session->endpoint);
  session->endpoint.reach.on_change = on_reach;
  tnk__doubts_open(&session->endpoint);
  tnk__restart_open(&session->endpoint);
  session->endpoint.doubts.ask = tnk__session_ask;
  tnk__renewal_open(&session->renewal, &session->endpoint);
  tnk__loans_open(&session->loans, context);
  tnk__list_init(&session->needs);
  tnk__list_init(&session->trainings);
  tnk__list_init(&session->samplings);
  tnk__list_init(&session->foreigners);
  tnk__list_init(&session->errands);
  tnk__buf_init(&session->startup_body, &context->alloc, MAX_STARTUP_BODY);
  tnk__heartbeat_open(&session->heartbeat, &context->alloc);
  session->heartbeat.ended = on_ended;
  session->heartbeat.kept = on_kept;
  tnk__flags_default(&session->flags);
  tnk__dynamic_flags_default(&session->dynamic);
  tnk__budget_init(&session->train_bytes, session->flags.train_dispatch_bytes);
  tnk__budget_init(&session->sample_bytes,
                   session->flags.sample_dispatch_bytes);
  tnk__budget_init(&session->result_bytes, session->flags.result_bytes);
  tnk__semaphore_init(&session->sample_running,
                      (size_t)session->flags.sample_concurrency);
  tnk__window_init(&session->sample_window);
  tnk__semaphore_init(&session->sample_slots, TNK__WINDOW_MIN);
  tnk__semaphore_init(&session->fetches, MAX_FETCHES);
  tnk__semaphore_init(&session->checks,
                      1 + config->options.max_polls / CHECKS_PART);
  tnk__semaphore_init(&session->sample_throttle, TNK__SEMAPHORE_UNLIMITED);
  tnk__billing_init(&session->endpoint.billing, billing_pause_ms(session));
  tnk__tenant_join(&session->limiter, config, tnk__context_now_ms(context),
                   tnk__context_random(context), tnk__context_random(context));
  tnk__canceler_open(&session->canceler, &session->endpoint, &session->dynamic);
  tnk__gate_open(&session->gate, context, &session->limiter,
                 &session->sample_throttle, SAMPLE_THROTTLED_SLOTS);
}

void tnk__session_shut(tnk__session_t *session) {
  session->endpoint.closing = 1;
  tnk__reach_shut(&session->endpoint);
  tnk__timer_stop(&session->watch_timer);
  tnk__call_cancel(&session->startup);
  tnk__heartbeat_stop(&session->heartbeat);
  tnk__call_cancel(&session->refresh);
  tnk__canceler_close(&session->canceler);
  tnk__renewal_shut(&session->renewal);
  fail_needs(session, tnk__error_static(TNK_ECLOSED));
}

/* The maximum duration of closing a service, as documented in its header. The
 * call's own timeout limits silence, which may begin later: while the request
 * is sent, or while it waits for a connection. */
enum { FINISH_MS = 2000 };

static void on_finish_due(tnk__timer_t *timer) {
  tnk__session_t *session =
      tnk__container_of(timer, tnk__session_t, watch_timer);

  tnk__log(&session->context->logger, TNK_LOG_INFO, "session",
           "%s: its end could not be reported in %d ms", session->id,
           FINISH_MS);
  tnk__call_cancel(&session->startup);
  session->finished(session);
}

static void on_finished(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__session_t *session = tnk__container_of(call, tnk__session_t, startup);

  tnk__timer_stop(&session->watch_timer);
  if (reply->error != NULL)
    tnk__log(&session->context->logger, TNK_LOG_INFO, "session",
             "%s: its end could not be reported: %s", session->id,
             reply->error->pub.text);
  session->finished(session);
}

static void on_no_finish(tnk__deferred_t *deferred) {
  tnk__session_t *session =
      tnk__container_of(deferred, tnk__session_t, no_finish);

  session->finished(session);
}

void tnk__session_finish(tnk__session_t *session,
                         void (*done)(tnk__session_t *session)) {
  session->finished = done;
  tnk__deferred_init(&session->no_finish, on_no_finish);
  tnk__buf_clear(&session->startup_body);
  tnk__finish_session_write(&session->startup_body, "success", NULL);
  if (session->id == NULL || session->endpoint.ended_session != NULL ||
      session->startup_body.err != TNK_OK) {
    tnk__defer(session->context, &session->no_finish);
    return;
  }
  tnk__call_init(&session->startup, &session->endpoint, TNK__ROUTE_FINISH,
                 "finish");
  session->startup.method_name = "ServiceClient.close";
  session->startup.once = 1;
  session->startup.path_id = session->id;
  session->startup.body = session->startup_body.data;
  session->startup.body_len = session->startup_body.len;
  tnk__call_start(&session->startup, on_finished);
  tnk__timer_start(session->context, &session->watch_timer, FINISH_MS,
                   on_finish_due);
}

void tnk__session_close(tnk__session_t *session) {
  tnk__timer_stop(&session->watch_timer);
  tnk__call_cancel(&session->startup);
  tnk__defer_cancel(&session->no_finish);
  tnk__renewal_close(&session->renewal);
  tnk__gate_close(&session->gate);
  tnk__limiter_leave(&session->limiter, tnk__context_now_ms(session->context));
  tnk__buf_deinit(&session->startup_body);
  tnk__heartbeat_close(&session->heartbeat);
}

tnk__totals_t tnk__session_used(const tnk__session_t *session) {
  const tnk__counters_t *counters = &session->context->counters;
  tnk__totals_t totals = session->purse.used;

  totals.n_requests = counters->n_requests;
  totals.n_bytes_sent = counters->n_bytes_sent;
  totals.n_bytes_received = counters->n_bytes_received;
  return totals;
}

tnk__totals_t tnk__session_run_used(const tnk__session_t *session) {
  const tnk__totals_t used = tnk__session_used(session);
  tnk__totals_t totals = session->purse.before;

  tnk__totals_add(&totals, &used);
  return totals;
}

void tnk__session_notice(tnk__session_t *session, const char *client,
                         tnk_queue_state_t state, const char *reason) {
  tnk__log(&session->context->logger, TNK_LOG_WARN, "queue", "%s: %s", client,
           reason);
  tnk__session_tell(session, client, state, reason);
}

int tnk__session_admits(const tnk__session_t *session) {
  if (session->endpoint.closing)
    return TNK_ECLOSED;
  if (session->context->n_pending >= session->config->options.max_pending)
    return TNK_EFULL;
  return TNK_OK;
}

void tnk__session_explain(const tnk__session_t *session, tnk__text_t *out) {
  tnk__text_printf(out, "waits for the session to be set up");
  if (!tnk__call_is_active(&session->startup))
    return;
  tnk__text_printf(out, "; %s ", session->startup.name);
  tnk__call_explain(&session->startup, out);
}
