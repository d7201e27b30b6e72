/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/arena.h"
#include "tools/local/base/drain.h"
#include "tools/local/fault/calls.h"
#include "tools/local/future/future.h"
#include "tools/local/ledger/ledger.h"
#include "tools/local/links/link.h"
#include "tools/local/sample/record.h"
#include "tools/local/sample/sampler.h"
#include "tools/local/server/parts.h"
#include "tools/local/train/model.h"

/* ---- Draining ---- */

/*
 * Ends a server after it has finished its work. SERVING lets clients poll for
 * the results of their requests, on new connections too. New work gets 503.
 * LEAVING answers the pending requests, and every connection closes.
 */

static int is_awaited(const local_future_t *future, uint64_t now) {
  return !future->is_fetched && now - future->settled_ms < LOCAL_FETCH_MS;
}

/* Returns whether a result is pending, or available and not fetched yet. */
static int has_work(const local_server_t *server) {
  const uint64_t now = uv_now(server->loop);

  if (server->n_pending > 0)
    return 1;
  TNK__LIST_FOREACH (node, &server->results) {
    if (is_awaited(tnk__container_of(node, local_future_t, link), now))
      return 1;
  }
  return 0;
}

void local_server_drain(local_server_t *server, uint64_t absence_ms) {
  server->drains = 1;
  local_drain_begin(&server->drain, uv_now(server->loop), absence_ms);
}

int local_server_is_drained(local_server_t *server) {
  if (local_drain_waits(&server->drain, uv_now(server->loop),
                        server->http.n_conns, has_work(server)))
    return 0;
  tnk__srv_drain(&server->http);
  return server->http.n_conns == 0;
}

/* ---- Opening and closing ---- */

/*
 * A server is open, then closing: connections, timers and work close in
 * parallel. When all three are closed, no callback can follow, and everything
 * is freed.
 */

/* ---- Opening and closing: options ---- */

static int is_loopback(const char *host) {
  return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
}

static int is_numeric(const char *host) {
  struct sockaddr_in ip4;
  struct sockaddr_in6 ip6;

  return uv_ip4_addr(host, 0, &ip4) == 0 || uv_ip6_addr(host, 0, &ip6) == 0;
}

static const char *refusal(const local_options_t *o) {
  if (o->port < 0 || o->port > 65535)
    return "the port must be a number from 0 to 65535";
  if (!is_numeric(o->host))
    return "the host must be a numeric address";
  if (!is_loopback(o->host) && (o->api_key == NULL || o->api_key[0] == '\0'))
    return "an address other than a loopback one needs an API key";
  if (o->sequence < LOCAL_BUFFERED || o->sequence > LOCAL_STRICT)
    return "the sequence must be lenient, strict or buffered";
  if (o->members != LOCAL_MEMBERS_ANY && o->members != LOCAL_MEMBERS_STRICT)
    return "the members must be any or strict";
  if ((o->tls_cert == NULL) != (o->tls_key == NULL))
    return "a certificate needs its key, and a key its certificate";
  if (o->full < TNK__SRV_FULL_WAIT || o->full > TNK__SRV_FULL_503)
    return "further connections must wait, be closed, be reset or get 503";
  if (o->max_body == 0 || o->max_connections == 0 || o->max_pending == 0 ||
      o->max_results == 0)
    return "a limit must not be 0";
  if (o->n_vocab != 0 &&
      (o->n_vocab < TNK__LM_VOCAB || o->n_vocab > TNK__LM_MAX_VOCAB))
    return "the vocabulary must have 258 to 16777216 ids";
  if (o->model != NULL &&
      (o->model[0] == '\0' || strlen(o->model) > LOCAL_MAX_TEXT))
    return "the model's name must have 1 to 512 bytes";
  if (o->hold_ms > 3600000 || o->latency_ms > 3600000)
    return "times must be at most one hour";
  if (o->archive < LOCAL_ARCHIVE_REDIRECT || o->archive > LOCAL_ARCHIVE_NONE)
    return "the archive must be redirect, json or none";
  if (o->link_life_s == 0 || o->link_life_s > 604800)
    return "links must be valid for one second to one week";
  if (o->token_life_s > 31536000)
    return "a token must be valid for at most one year";
  for (size_t i = 0; i < o->n_flags; i++)
    if (o->flags[i].name == NULL || o->flags[i].name[0] == '\0')
      return "a flag has no name";
  return NULL;
}

static int copy_flags(local_server_t *server, const local_options_t *from) {
  tnk_pair_t *flags =
      tnk__arena_calloc(&server->texts, from->n_flags, sizeof(*flags));

  if (flags == NULL)
    return TNK_ENOMEM;
  for (size_t i = 0; i < from->n_flags; i++) {
    flags[i].name = tnk__arena_strdup(&server->texts, from->flags[i].name);
    flags[i].value = tnk__arena_strdup(
        &server->texts,
        from->flags[i].value != NULL ? from->flags[i].value : "true");
    if (flags[i].name == NULL || flags[i].value == NULL)
      return TNK_ENOMEM;
  }
  server->options.flags = flags;
  return TNK_OK;
}

static int copy_options(local_server_t *server, const local_options_t *from) {
  local_options_t *o = &server->options;
  const char **const texts[] = {&o->host,      &o->api_key, &o->data,
                                &o->model_dir, &o->model,   &o->tls_cert,
                                &o->tls_key};

  *o = *from;
  o->why = NULL;
  for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
    if (*texts[i] != NULL &&
        (*texts[i] = tnk__arena_strdup(&server->texts, *texts[i])) == NULL)
      return TNK_ENOMEM;
  if (o->n_threads == 0)
    o->n_threads = 2;
  return copy_flags(server, from);
}

/* ---- Opening and closing: opening ---- */

static void init(local_server_t *server, const tnk_allocator_t *alloc,
                 uv_loop_t *loop) {
  server->alloc = alloc;
  server->loop = loop;
  server->lock = -1;
  tnk__arena_init(&server->texts, alloc, (size_t)1 << 24);
  local_table_init(&server->sessions, alloc);
  local_table_init(&server->models, alloc);
  local_table_init(&server->samplers, alloc);
  local_table_init(&server->futures, alloc);
  local_table_init(&server->weights, alloc);
  local_table_init(&server->keys, alloc);
  local_table_init(&server->records, alloc);
  tnk__list_init(&server->record_list);
  tnk__list_init(&server->held);
  tnk__list_init(&server->key_list);
  tnk__list_init(&server->session_list);
  tnk__list_init(&server->pending);
  tnk__list_init(&server->results);
  tnk__list_init(&server->weight_list);
  tnk__list_init(&server->lanes);
  tnk__list_init(&server->loose.link);
  tnk__list_init(&server->loose.samples);
  tnk__list_init(&server->drawing);
  local_timer_init(&server->reaper);
}

/* `why` stays empty if the code is sufficient. */
static int open_parts(local_server_t *server, const local_options_t *options,
                      tnk__lm_why_t *why) {
  tnk__srv_config_t http = {.handle = local_route,
                            .on_answer = local_keys_answered,
                            .on_reply = local_route_replied,
                            .on_full = local_hold_oldest_ends,
                            .user = server};
  int err = copy_options(server, options);

  if (err == TNK_OK)
    err = local_random_hex(server->run, 6);
  if (err == TNK_OK)
    err = local_links_init(server);
  if (err == TNK_OK)
    err = local_config_init(server);
  if (err == TNK_OK)
    err = local_data_open(server, why);
  if (err == TNK_OK)
    err = local_ledger_open(server);
  if (err == TNK_OK)
    local_ledger_load(server);
  if (err == TNK_OK)
    err = local_model_dir_open(server, why);
  if (err == TNK_OK) {
    server->base = tnk__lm_base_new(server->alloc);
    err = server->base != NULL ? TNK_OK : TNK_ENOMEM;
  }
  if (err != TNK_OK)
    return err;
  http.host = server->options.host;
  http.port = server->options.port;
  http.max_body = server->options.max_body;
  http.tls_cert = server->options.tls_cert;
  http.tls_key = server->options.tls_key;
  http.max_conns = server->options.max_connections;
  http.full = server->options.full;
  http.max_streams = server->options.max_streams;
  http.why = why->text;
  http.n_why = sizeof(why->text);
  http.alloc = server->alloc;
  if (server->options.faults != NULL)
    http.hooks = &local_fault_hooks;
  http.hooks_user = server->options.faults;
  return tnk__srv_open(&server->http, server->loop, &http);
}

static int explain(const local_options_t *options, int err, const char *text) {
  if (options->why != NULL && options->n_why > 0)
    snprintf(options->why, options->n_why, "%s", text);
  return err;
}

/* For an unknown code libuv allocates a string and never frees it. */
static const char *sentence(int err) {
  if (err == TNK_ENOMEM)
    return "out of memory";
  if (strcmp(tnk_err_name(err), "TNK_EUNKNOWN") == 0)
    return uv_strerror(err);
  return tnk_strerror(err);
}

int local_server_open(local_server_t **out, uv_loop_t *loop,
                      const local_options_t *options) {
  local_options_t o = LOCAL_OPTIONS_INIT;
  tnk__lm_why_t why = {{0}};
  local_server_t *server;
  int err;

  *out = NULL;
  if (options != NULL)
    o = *options;
  if (o.host == NULL)
    o.host = "127.0.0.1";
  if (o.alloc == NULL)
    o.alloc = tnk__allocator_default();
  if (refusal(&o) != NULL)
    return explain(&o, TNK_EINVAL, refusal(&o));
  server = tnk__calloc(o.alloc, 1, sizeof(*server));
  if (server == NULL)
    return explain(&o, TNK_ENOMEM, "out of memory");
  init(server, o.alloc, loop);
  err = local_timers_open(&server->timers, loop);
  if (err != 0) {
    tnk__free(o.alloc, server);
    return explain(&o, err, uv_strerror(err));
  }
  local_work_init(&server->work, loop, o.n_threads > 0 ? o.n_threads : 2);
  err = open_parts(server, &o, &why);
  if (err != TNK_OK) {
    local_server_close(server, NULL, NULL);
    return explain(&o, err, why.text[0] != '\0' ? why.text : sentence(err));
  }
  /* Checkpoints of earlier servers may expire at any time. */
  server->next_expiry_ms = o.data != NULL ? 1 : 0;
  local_reap_start(server);
  *out = server;
  return TNK_OK;
}

/* ---- Opening and closing: closing ---- */

static void free_sessions(local_server_t *server) {
  while (!tnk__list_empty(&server->session_list)) {
    local_session_t *session =
        tnk__container_of(server->session_list.next, local_session_t, link);

    while (!tnk__list_empty(&session->models)) {
      local_model_t *model =
          tnk__container_of(session->models.next, local_model_t, in_session);

      tnk__list_remove(&model->in_session);
      local_table_remove(&server->models, &model->node);
      local_model_free(model);
    }
    while (!tnk__list_empty(&session->samplers))
      local_sampler_free(tnk__container_of(session->samplers.next,
                                           local_sampler_t, in_session));
    local_session_free(session);
  }
}

static void free_all(local_server_t *server) {
  void (*closed)(void *user) = server->closed_cb;
  void *user = server->closed_user;

  local_keys_free(server);
  free_sessions(server);
  local_samples_free(server);
  local_futures_free(server);
  local_weights_free_all(server);
  local_records_free(server, NULL);
  local_table_deinit(&server->sessions);
  local_table_deinit(&server->models);
  local_table_deinit(&server->samplers);
  local_table_deinit(&server->futures);
  local_table_deinit(&server->weights);
  local_table_deinit(&server->keys);
  local_table_deinit(&server->records);
  tnk__lm_base_free(server->base);
  if (server->ledger != NULL)
    local_ledger_save(server);
  local_ledger_close(server);
  local_data_close(server);
  local_config_deinit(server);
  tnk__arena_deinit(&server->texts);
  tnk__free(server->alloc, server);
  if (closed != NULL)
    closed(user);
}

static void release(local_server_t *server) {
  if (--server->n_open == 0)
    free_all(server);
}

static void on_http_closed(void *user) {
  release(user);
}

static void on_timers_closed(uv_handle_t *handle) {
  local_timers_t *timers =
      tnk__container_of((uv_timer_t *)handle, local_timers_t, uv);

  release(tnk__container_of(timers, local_server_t, timers));
}

static void on_work_closed(local_work_t *work) {
  release(tnk__container_of(work, local_server_t, work));
}

void local_server_close(local_server_t *server, void (*closed)(void *user),
                        void *user) {
  if (server->closing)
    return;
  server->closing = 1;
  server->closed_cb = closed;
  server->closed_user = user;
  /* Connections, work and timers; the last one frees everything. */
  server->n_open = 3;
  tnk__srv_close(&server->http, on_http_closed, server);
  local_work_close(&server->work, on_work_closed);
  local_timers_close(&server->timers, on_timers_closed);
}

/* ---- Opening and closing: looking ---- */

uint16_t local_server_port(const local_server_t *server) {
  return (uint16_t)server->http.port;
}

const char *local_server_data(const local_server_t *server) {
  return server->data;
}

local_counts_t local_server_counts(const local_server_t *server) {
  return (local_counts_t){.n_sessions = server->sessions.n,
                          .n_models = server->models.n,
                          .n_samplers = server->samplers.n,
                          .n_futures = server->futures.n,
                          .n_waiting = server->n_waiting,
                          .n_connections = server->http.n_conns,
                          .n_requests = server->http.n_requests};
}
