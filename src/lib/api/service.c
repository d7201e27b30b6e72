/* SPDX-License-Identifier: MIT */
#include "lib/api/service.h"

#include <stdio.h>

#include "lib/api/config.h"
#include "lib/base/alloc.h"
#include "lib/base/arena.h"
#include "lib/base/limits.h"
#include "lib/base/options.h"
#include "lib/wire/data/check.h"
#include "lib/client/service/service.h"
#include "lib/client/sample/sampling.h"
#include "lib/store/rest.h"

/* ---- Opening ---- */

static tnk_service_t *service_of(tnk__root_t *root) {
  return tnk__container_of(root, tnk_service_t, root);
}

static void close_left(tnk__root_t *root) {
  tnk_service_close(service_of(root), NULL, NULL);
}

static void free_rest(tnk__root_t *root) {
  tnk_service_t *service = service_of(root);

  /* All reservations have ended by now. */
  if (service->session.limits.allowance.n_held > 0)
    TNK__BROKEN("something is still held of the allowance");
  tnk__arena_deinit(&service->prices);
  tnk__free(&root->alloc, service->session.start.id);
  tnk__config_deinit(&service->config);
}

static const tnk__root_kind_t kind = {.magic = TNK__MAGIC_SERVICE,
                                      .size = sizeof(tnk_service_t),
                                      .close = close_left,
                                      .free_rest = free_rest};

static const tnk__http_version_t versions[] = {
    [TNK_HTTP_AUTO] = TNK__HTTP_AUTO,
    [TNK_HTTP_1_1] = TNK__HTTP_1_1,
    [TNK_HTTP_2] = TNK__HTTP_2,
    [TNK_HTTP_2_PRIOR_KNOWLEDGE] = TNK__HTTP_2_PRIOR_KNOWLEDGE,
};

static int write_dump(const tnk_service_t *service, tnk__buf_t *out) {
  return tnk__dump_write(service, TNK_DUMP_JSON, out);
}

static int open_parts(tnk_service_t *service, uv_loop_t *loop,
                      const tnk_service_options_t *options, const char **why) {
  const tnk_service_options_t *o = &service->config.options;
  tnk__root_t *root = &service->root;
  tnk__http_options_t http = {0};
  uv_timeval64_t now;
  int err;

  uv_gettimeofday(&now);
  err = tnk__config_load(&service->config, &root->alloc, options, now.tv_sec,
                         why);
  if (err != TNK_OK)
    return err;
  http.ca_file = o->ca_file;
  http.proxies = &service->config.proxies;
  http.cert_file = o->cert_file;
  http.key_file = o->key_file;
  http.load_trust = o->ca_file != NULL;
  http.why = service->config.complaint;
  http.why_size = sizeof(service->config.complaint);
  http.connect_timeout_ms = o->connect_timeout_ms;
  http.max_in_flight[TNK__LANE_POLL] = o->max_polls;
  http.version = versions[o->http_version];
  http.max_http2_connections = o->max_http2_connections;
  err = tnk__root_start(root, loop, options->logger, &http, why);
  if (err == TNK_EFILE) {
    *why = service->config.complaint;
  } else if (err == TNK_ECERT) {
    snprintf(service->config.complaint, sizeof(service->config.complaint),
             "%s: ca_file cannot be read as certificates", o->ca_file);
    *why = service->config.complaint;
  }
  if (err == TNK_OK && o->keep_loop_alive == TNK_YES)
    tnk__context_keep_loop_alive(&root->context);
  if (err == TNK_OK) {
    root->context.observer = o->observer;
    root->context.observer_user = o->observer_user;
  }
  if (err == TNK_OK) {
    tnk__session_open(&service->session, &root->context, &service->config,
                      &root->http);
    tnk__recovery_open(&service->recovery, &service->session,
                       &tnk__store_run_query);
    tnk__watch_open(&service->watch, &service->session);
  }
  tnk__weights_init(&service->weights, &service->session);
  tnk__ledgers_init(&service->ledgers, &service->session);
  if (err == TNK_OK)
    tnk__dump_file_open(&service->dump_file, &root->context,
                        service->config.options.dump_file, write_dump, service);
  return err;
}

int tnk_service_open(tnk_service_t **out, uv_loop_t *loop,
                     const tnk_service_options_t *options, char *why,
                     size_t why_size) {
  tnk_service_options_t own = TNK_SERVICE_OPTIONS_INIT;
  char text[TNK__MAX_WHY];
  const char *said = text;
  tnk__root_t *root = NULL;
  int err;

  if (out == NULL)
    return tnk__root_say(why, why_size, TNK_EINVAL, "out is NULL");
  err = TNK__LOAD(tnk_service_options_t, &own, options, text, sizeof(text));
  if (err == TNK_OK)
    err = tnk__root_new(&root, &kind, loop, own.allocator, &said);
  if (err == TNK_OK)
    err = open_parts(service_of(root), loop, &own, &said);
  tnk__root_finish(root, err, said, why, why_size);
  *out = err == TNK_OK ? service_of(root) : NULL;
  return err;
}

/* ---- Closing ---- */

static void on_finished(tnk__start_t *start) {
  tnk_service_t *service =
      tnk__container_of(start, tnk_service_t, session.start);

  tnk__session_close(&service->session);
  tnk__root_end_close(&service->root);
}

static void on_swept(tnk__session_t *session) {
  tnk__start_finish(&session->start, on_finished);
}

void tnk_service_close(tnk_service_t *service, tnk_close_cb cb, void *user) {
  if (!TNK__HANDLE_AT(service, root.magic, SERVICE) ||
      !tnk__root_begin_close(&service->root, cb, user))
    return;
  tnk__session_shut(&service->session);
  tnk__dump_file_close(&service->dump_file);
  tnk__watch_close(&service->watch);
  tnk__recovery_shut(&service->recovery);
  tnk__weights_shut(&service->weights);
  tnk__ledgers_shut(&service->ledgers);
  tnk__clients_close(&service->session);
  tnk__weights_close(&service->weights, on_swept);
}

/* ---- Beginning operations ---- */

tnk_promise_t *tnk__service_refuses(tnk__session_t *session, const char *name,
                                    int err, const char *text) {
  char full[160];
  int service_err = tnk__context_check_caller(session->context);

  if (service_err == TNK_OK)
    service_err = tnk__session_admits(session);
  if (service_err == TNK_EFULL) {
    snprintf(full, sizeof(full),
             "%zu operations are pending, and max_pending allows no more; "
             "wait for results first",
             session->context->n_pending);
    return tnk__root_reject(session->context, service_err, name, full);
  }
  if (service_err != TNK_OK)
    return tnk__root_reject(session->context, service_err, name, NULL);
  if (err != TNK_OK)
    return tnk__root_reject(session->context, err, name, text);
  tnk__watch_arm(&tnk__container_of(session, tnk_service_t, session)->watch);
  return NULL;
}

tnk_promise_t *tnk__client_refuses(const tnk__client_t *client,
                                   const char *name, int err,
                                   const char *text) {
  int caller_err = TNK_OK;

  if (!client->closing)
    return tnk__service_refuses(client->session, name, err, text);
  if (client->session != NULL)
    caller_err = tnk__context_check_caller(client->session->context);
  return tnk__root_reject_beside(
      client->kin, caller_err != TNK_OK ? caller_err : TNK_ECLOSED, name, NULL);
}

tnk_promise_t *tnk_service_capabilities(tnk_service_t *service) {
  tnk_promise_t *refusal;

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return NULL;
  refusal = tnk__service_refuses(&service->session, "get_server_capabilities",
                                 TNK_OK, NULL);
  return refusal != NULL ? refusal : tnk__query_capabilities(&service->session);
}

tnk_promise_t *tnk_service_health(tnk_service_t *service) {
  tnk_promise_t *refusal;

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return NULL;
  refusal = tnk__service_refuses(&service->session, "healthz", TNK_OK, NULL);
  return refusal != NULL ? refusal : tnk__query_health(&service->session);
}

const char *tnk_service_session_id(const tnk_service_t *service) {
  return TNK__HANDLE_AT(service, root.magic, SERVICE)
             ? service->session.start.id
             : NULL;
}

tnk_promise_t *tnk_service_create_lora(tnk_service_t *service,
                                       const tnk_lora_options_t *options) {
  tnk_lora_options_t own = TNK_LORA_OPTIONS_INIT;
  tnk_promise_t *refusal;
  char text[TNK__MAX_WHY] = "";
  int err;

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return NULL;
  err = TNK__LOAD(tnk_lora_options_t, &own, options, text, sizeof(text));
  if (err == TNK_OK)
    err = tnk__check_lora(&own, text, sizeof(text));
  refusal = tnk__service_refuses(&service->session, "create_lora", err, text);
  return refusal != NULL ? refusal : tnk__create_lora(&service->session, &own);
}

tnk_promise_t *tnk_service_restore(tnk_service_t *service,
                                   const tnk_restore_options_t *options) {
  tnk_restore_options_t own = TNK_RESTORE_OPTIONS_INIT;
  tnk_promise_t *refusal;
  char text[TNK__MAX_WHY] = "";
  int err;

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return NULL;
  err = TNK__LOAD(tnk_restore_options_t, &own, options, text, sizeof(text));
  if (err == TNK_OK)
    err = tnk__check_restore(&own, text, sizeof(text));
  refusal = tnk__service_refuses(&service->session, "restore", err, text);
  return refusal != NULL ? refusal : tnk__restore(&service->session, &own);
}

/* Create a client from an exported string. The arena holds the parsed parts
 * until they are copied. */
static tnk_promise_t *import_sampling(tnk_service_t *service,
                                      const char *text) {
  static const char name[] = "create_sampling";
  tnk__session_t *session = &service->session;
  tnk__sampler_text_t sampler = {0};
  tnk_promise_t *promise;
  tnk__arena_t arena;
  char said[TNK__MAX_WHY] = "";
  const char *why = "";
  int err;

  tnk__arena_init(&arena, &service->root.alloc, TNK__MIB);
  err = tnk__sampler_text_read(&sampler, &arena, text, &why);
  if (err == TNK_EINVAL)
    snprintf(said, sizeof(said),
             "exported is not a text of tnk_sampling_export(): %s", why);
  promise =
      tnk__service_refuses(session, name, err, err == TNK_EINVAL ? said : NULL);
  if (promise == NULL)
    promise = tnk__join_sampling(session, name, &sampler);
  tnk__arena_deinit(&arena);
  return promise;
}

tnk_promise_t *
tnk_service_create_sampling(tnk_service_t *service,
                            const tnk_sampling_options_t *options) {
  tnk_sampling_options_t own = TNK_SAMPLING_OPTIONS_INIT;
  tnk_promise_t *refusal;
  char text[TNK__MAX_WHY] = "";
  int err;

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return NULL;
  err = TNK__LOAD(tnk_sampling_options_t, &own, options, text, sizeof(text));
  if (err == TNK_OK)
    err = tnk__check_sampler(&own, text, sizeof(text));
  refusal =
      tnk__service_refuses(&service->session, "create_sampling", err, text);
  if (refusal != NULL)
    return refusal;
  return own.exported != NULL ? import_sampling(service, own.exported)
                              : tnk__create_sampling(&service->session, &own);
}
