#include "api/service.h"

#include <stdio.h>
#include <string.h>

#include "api/config.h"
#include "base/alloc.h"
#include "base/options.h"
#include "codec/check.h"
#include "task/clients.h"
#include "task/create.h"
#include "task/create_sampling.h"
#include "task/query.h"
#include "task/watch.h"

/* ---- Opening ---- */

static int open_http(tnk_service_t *service) {
  const tnk_service_options_t *o = &service->config.options;
  tnk__http_options_t options = {0};

  options.ca_file = o->ca_file;
  options.load_trust = o->ca_file != NULL;
  options.connect_timeout_ms = o->connect_timeout_ms;
  options.max_in_flight[TNK__LANE_POLL] = o->max_polls;
  return tnk__http_open(&service->http, &service->loop, &options);
}

/* Only the parts that opening failed on need to be taken down. */
static void on_open_undone(void *user) {
  tnk_service_t *service = user;

  tnk__config_deinit(&service->config);
  tnk__free(&service->alloc, service);
}

static int open_parts(tnk_service_t *service, uv_loop_t *loop,
                      const tnk_service_options_t *options,
                      const tnk_logger_t *logger, char *text, size_t size) {
  uv_timeval64_t now;
  int err;

  uv_gettimeofday(&now);
  err = tnk__config_load(&service->config, &service->alloc, options, now.tv_sec,
                         text, size);
  if (err != TNK_OK) {
    tnk__free(&service->alloc, service);
    return err;
  }
  err = tnk__loop_open(&service->loop, loop, &service->alloc, logger);
  if (err != TNK_OK) {
    on_open_undone(service);
    return tnk__opened_say(text, size, err, NULL);
  }
  err = open_http(service);
  if (err == TNK_OK)
    err = tnk__session_open(&service->session, &service->loop, &service->config,
                            &service->http);
  if (err != TNK_OK) {
    /* libuv frees the context in a later turn. */
    tnk__loop_close(&service->loop, on_open_undone, service);
    return tnk__opened_say(
        text, size, err,
        err == TNK_ECERT ? "ca_file cannot be read as certificates" : NULL);
  }
  return TNK_OK;
}

static void close_left(tnk__opened_t *opened) {
  tnk_service_close(tnk__container_of(opened, tnk_service_t, opened), NULL,
                    NULL);
}

int tnk_service_open(tnk_service_t **out, uv_loop_t *loop,
                     const tnk_service_options_t *options, char *text,
                     size_t text_size) {
  tnk_service_options_t own = TNK_SERVICE_OPTIONS_INIT;
  const tnk_allocator_t *alloc = tnk__allocator_default();
  tnk_service_t *service;
  int err;

  *out = NULL;
  tnk__opened_say(text, text_size, TNK_OK, "");
  if (loop == NULL)
    return tnk__opened_say(text, text_size, TNK_EINVAL, "no loop was given");
  err = tnk__options_load(&own, sizeof(own), options, sizeof(own));
  if (err != TNK_OK)
    return tnk__opened_say(text, text_size, err,
                           "options: size is wrong, or a field is "
                           "set that this library does not know");
  if (own.allocator != NULL)
    alloc = own.allocator;
  service = tnk__calloc(alloc, 1, sizeof(*service));
  if (service == NULL)
    return tnk__opened_say(text, text_size, TNK_ENOMEM, NULL);
  service->alloc = *alloc;
  err = open_parts(service, loop, options, own.logger, text, text_size);
  if (err != TNK_OK)
    return err;
  tnk__opened_add(&service->opened, loop, close_left);
  *out = service;
  return TNK_OK;
}

/* ---- Closing ---- */

static void on_closed(void *user) {
  tnk_service_t *service = user;
  const tnk_allocator_t alloc = service->alloc;
  tnk_close_cb cb = service->close_cb;
  void *cb_user = service->close_user;

  tnk__free(&alloc, service->session.id);
  tnk__config_deinit(&service->config);
  tnk__free(&alloc, service);
  if (cb != NULL) {
    tnk__callout_begin();
    cb(cb_user);
    tnk__callout_end();
  }
}

static void on_finished(tnk__session_t *session) {
  tnk_service_t *service = tnk__container_of(session, tnk_service_t, session);

  tnk__session_close(session);
  tnk__http_close(&service->http);
  tnk__loop_close(&service->loop, on_closed, service);
}

void tnk_service_close(tnk_service_t *service, tnk_close_cb cb, void *user) {
  if (service == NULL || service->closing ||
      tnk__loop_is_forked(&service->loop))
    return;
  service->closing = 1;
  service->close_cb = cb;
  service->close_user = user;
  tnk__opened_remove(&service->opened);
  tnk__session_shut(&service->session);
  tnk__clients_close(&service->session);
  tnk__session_finish(&service->session, on_finished);
}

/* ---- Beginning operations ---- */

static tnk_promise_t *reject(tnk__session_t *session, int code,
                             const char *name, const char *text) {
  const tnk_allocator_t *alloc = &session->loop->alloc;
  tnk__error_t *error;

  /* All other checks say what they found. */
  if (code == TNK_EINVAL && (text == NULL || text[0] == '\0'))
    text = "the size of the options is wrong";
  error = text != NULL && text[0] != '\0'
              ? tnk__error_new(alloc, code, "%s: %s", name, text)
              : tnk__error_from(alloc, name, &(tnk_error_t){.code = code});

  return tnk__promise_rejected(session->loop, error);
}

tnk_promise_t *tnk__service_refuses(tnk__session_t *session, const char *name,
                                    int err, const char *text) {
  char full[160];
  int service_err = tnk__loop_check_caller(session->loop);

  if (service_err == TNK_OK)
    service_err = tnk__session_admits(session);
  if (service_err == TNK_EFULL) {
    snprintf(full, sizeof(full),
             "%zu operations are pending, and max_pending allows no more; "
             "wait for results first",
             session->loop->n_pending);
    return reject(session, service_err, name, full);
  }
  if (service_err != TNK_OK)
    return reject(session, service_err, name, NULL);
  if (err != TNK_OK)
    return reject(session, err, name, text);
  tnk__watch_arm(session);
  return NULL;
}

tnk_promise_t *tnk_service_capabilities(tnk_service_t *service) {
  tnk_promise_t *refusal;

  if (service == NULL)
    return NULL;
  refusal = tnk__service_refuses(&service->session, "get_server_capabilities",
                                 TNK_OK, NULL);
  return refusal != NULL ? refusal : tnk__query_capabilities(&service->session);
}

tnk_promise_t *tnk_service_health(tnk_service_t *service) {
  tnk_promise_t *refusal;

  if (service == NULL)
    return NULL;
  refusal = tnk__service_refuses(&service->session, "healthz", TNK_OK, NULL);
  return refusal != NULL ? refusal : tnk__query_health(&service->session);
}

const char *tnk_service_session_id(const tnk_service_t *service) {
  return service != NULL ? service->session.id : NULL;
}

tnk_promise_t *tnk_service_create_lora(tnk_service_t *service,
                                       const tnk_lora_options_t *options) {
  tnk_lora_options_t own = TNK_LORA_OPTIONS_INIT;
  tnk_promise_t *refusal;
  char text[256] = "";
  int err;

  if (service == NULL)
    return NULL;
  err = tnk__options_load(&own, sizeof(own), options, sizeof(own));
  if (err == TNK_OK)
    err = tnk__check_lora(&own, text, sizeof(text));
  refusal = tnk__service_refuses(&service->session, "create_lora", err, text);
  return refusal != NULL ? refusal : tnk__create_lora(&service->session, &own);
}

tnk_promise_t *tnk_service_restore(tnk_service_t *service,
                                   const tnk_restore_options_t *options) {
  tnk_restore_options_t own = TNK_RESTORE_OPTIONS_INIT;
  tnk_promise_t *refusal;
  char text[256] = "";
  int err;

  if (service == NULL)
    return NULL;
  err = tnk__options_load(&own, sizeof(own), options, sizeof(own));
  if (err == TNK_OK)
    err = tnk__check_restore(&own, text, sizeof(text));
  refusal = tnk__service_refuses(&service->session, "restore", err, text);
  return refusal != NULL ? refusal : tnk__restore(&service->session, &own);
}

tnk_promise_t *
tnk_service_create_sampling(tnk_service_t *service,
                            const tnk_sampler_options_t *options) {
  tnk_sampler_options_t own = TNK_SAMPLER_OPTIONS_INIT;
  tnk_promise_t *refusal;
  char text[256] = "";
  int err;

  if (service == NULL)
    return NULL;
  err = tnk__options_load(&own, sizeof(own), options, sizeof(own));
  if (err == TNK_OK)
    err = tnk__check_sampler(&own, text, sizeof(text));
  refusal =
      tnk__service_refuses(&service->session, "create_sampling", err, text);
  return refusal != NULL ? refusal
                         : tnk__create_sampling(&service->session, &own);
}

void tnk_service_stats(const tnk_service_t *service, tnk_stats_t *out) {
  const tnk__counters_t *counters;

  memset(out, 0, sizeof(*out));
  if (service == NULL)
    return;
  counters = &service->loop.counters;
  out->n_requests = counters->n_requests;
  out->n_retries = counters->n_retries;
  out->n_late_events = counters->n_late_events;
  out->n_double_settles = counters->n_double_settles;
  out->n_bytes_sent = counters->n_bytes_sent;
  out->n_bytes_received = counters->n_bytes_received;
  out->n_pending = (uint32_t)service->loop.n_pending;
  out->n_connections = (uint32_t)service->http.n_connections;
  out->max_connections = (uint32_t)service->http.max_connections;
  out->n_polls = (uint32_t)tnk__http_n_polls(&service->http);
  out->n_retries_connect = counters->n_retries_by[TNK__RETRY_CONNECT];
  out->n_retries_lost = counters->n_retries_by[TNK__RETRY_LOST];
  out->n_retries_timeout = counters->n_retries_by[TNK__RETRY_TIMEOUT];
  out->n_retries_rate = counters->n_retries_by[TNK__RETRY_RATE];
  out->n_retries_billing = counters->n_retries_by[TNK__RETRY_BILLING];
  out->n_retries_server = counters->n_retries_by[TNK__RETRY_SERVER];
  out->n_retries_other = counters->n_retries_by[TNK__RETRY_OTHER];
  out->n_resubmits = counters->n_resubmits;
  out->n_stalls = counters->n_stalls;
  out->loop_lag_ms = counters->lag_ms;
  out->max_loop_lag_ms = counters->max_lag_ms;
}
