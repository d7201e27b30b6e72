/* SPDX-License-Identifier: MIT */
/*
 * A gateway opens at once. It closes connections and their requests first, then
 * samplers, then the record, which may have to be written.
 */
#include <stdio.h>
#include <string.h>

#include "gateway/again.h"
#include "gateway/elsewhere.h"
#include "gateway/record/vocabulary.h"
#include "gateway/store/where.h"
#include "gateway/response.h"
#include "lib/base/alloc.h"
#include "lib/base/options.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

enum {
  MAX_BODY = 64 << 20,
  MAX_CONNECTIONS = 65536,
  MAX_REQUESTS = 16384,
  MAX_TOKENS = 1024,
  ATTEMPTS = 3,
  MAX_ATTEMPTS = 16,
  EXPORT_BYTES = 256 << 10,
  SWEEP_MS = 60000,
  KEEP_ALIVE_MS = 15000,
  REPEAT_MS = 30000, /* the SDKs retry after eight seconds at most */
  KEEP_TICKS = 4,    /* checks for waiting streams in that interval */
  /* Of the four threads of libuv's pool. The others are for the record, and for
   * the library. */
  MAX_RENDERS = 2,
  IDLE_MS = 600000 /* agents may think for minutes between their turns */
};

/* Numbers that the scripts of a store compute with are exact up to this. */
static const uint64_t MAX_KEEP = UINT64_C(1) << 52;

static int is_loopback(const char *host) {
  return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
}

static int is_numeric(const char *host) {
  struct sockaddr_in ip4;
  struct sockaddr_in6 ip6;

  return uv_ip4_addr(host, 0, &ip4) == 0 || uv_ip6_addr(host, 0, &ip6) == 0;
}

/* ---- Closing ---- */

/* Last callback of a gateway. Everything except its record has been closed. */

static void on_record_closed(void *user) {
  tnk_gateway_t *gateway = user;
  tnk_allocator_t alloc = gateway->alloc;
  tnk_close_cb closed = gateway->closed;
  void *closed_user = gateway->closed_user;

  tnk__gw_grants_deinit(&gateway->grants);
  tnk__gw_again_deinit(&gateway->again);
  tnk__gw_elsewhere_deinit(gateway);
  tnk__gw_responses_deinit(gateway);
  tnk_chat_template_unref(gateway->template_);
  json_decref(gateway->variables);
  tnk__free_secret(&alloc, gateway->key);
  tnk__free_secret(&alloc, gateway->admin_key);
  tnk__free(&alloc, gateway->model);
  tnk__free(&alloc, gateway);
  if (closed != NULL)
    closed(closed_user);
}

void tnk__gw_release(tnk_gateway_t *gateway) {
  if (--gateway->n_open > 0 || !gateway->is_closing)
    return;
  if (gateway->record != NULL)
    tnk__gw_record_close(gateway->record, on_record_closed, gateway);
  else
    on_record_closed(gateway);
}

static void on_http_closed(void *user) {
  tnk__gw_release(user);
}

static void on_sweeper_closed(uv_handle_t *handle) {
  tnk__gw_release(
      tnk__container_of((uv_timer_t *)(void *)handle, tnk_gateway_t, sweeper));
}

static void on_keeper_closed(uv_handle_t *handle) {
  tnk__gw_release(
      tnk__container_of((uv_timer_t *)(void *)handle, tnk_gateway_t, keeper));
}

static void on_exporter_closed(uv_handle_t *handle) {
  tnk__gw_release(
      tnk__container_of((uv_idle_t *)(void *)handle, tnk_gateway_t, exporter));
}

static void on_elsewhere_closed(uv_handle_t *handle) {
  tnk__gw_release(tnk__container_of((uv_timer_t *)(void *)handle, tnk_gateway_t,
                                    elsewhere.timer));
}

static void on_keep(uv_timer_t *timer) {
  tnk__gw_jobs_keep(tnk__container_of(timer, tnk_gateway_t, keeper),
                    uv_now(timer->loop));
}

static void on_sweep(uv_timer_t *timer) {
  tnk_gateway_t *gateway = tnk__container_of(timer, tnk_gateway_t, sweeper);
  uint64_t now = uv_now(gateway->loop);

  if (now > IDLE_MS)
    tnk__srv_sweep(&gateway->http, now - IDLE_MS);
}

void tnk_gateway_leave(tnk_gateway_t *gateway) {
  if (gateway != NULL)
    gateway->is_leaving = 1;
}

void tnk_gateway_drain(tnk_gateway_t *gateway) {
  if (gateway == NULL || gateway->is_closing)
    return;
  gateway->is_leaving = 1;
  tnk__srv_drain(&gateway->http);
}

void tnk_gateway_close(tnk_gateway_t *gateway, tnk_close_cb cb, void *user) {
  if (gateway == NULL || gateway->is_closing)
    return;
  gateway->is_closing = 1;
  gateway->closed = cb;
  gateway->closed_user = user;
  tnk_otlp_remove_source(gateway->otlp, tnk__gw_export_metrics, gateway);
  tnk__gw_holds_drop(gateway);
  tnk__gw_jobs_drop(gateway);
  tnk__gw_exports_drop(gateway);
  tnk__gw_samplers_close(gateway);
  uv_close((uv_handle_t *)&gateway->sweeper, on_sweeper_closed);
  uv_close((uv_handle_t *)&gateway->keeper, on_keeper_closed);
  uv_close((uv_handle_t *)&gateway->exporter, on_exporter_closed);
  uv_close((uv_handle_t *)&gateway->elsewhere.timer, on_elsewhere_closed);
  tnk__srv_close(&gateway->http, on_http_closed, gateway);
}

/* ---- Opening ---- */

static int say(char *why, size_t why_size, int err, const char *text) {
  if (why_size > 0)
    (void)snprintf(why, why_size, "%s", text);
  return err;
}

static int is_set(const char *text) {
  return text != NULL && text[0] != '\0';
}

static int is_price(double usd) {
  return usd >= 0 && usd <= TNK__GW_MAX_USD;
}

static int is_worker(const char *name) {
  size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                          "0123456789-_");

  return n > 0 && n < sizeof(((tnk_gateway_t *)0)->worker) && name[n] == '\0';
}

static const char *check(const tnk_gateway_options_t *o) {
  const char *host = o->host != NULL ? o->host : "127.0.0.1";

  if (o->tokenizer.plugin == NULL || o->tokenizer.plugin->encode == NULL ||
      o->tokenizer.plugin->size <= offsetof(tnk_tokenizer_plugin_t, decode) ||
      o->tokenizer.plugin->decode == NULL)
    return "a tokenizer is needed that can encode and decode";
  if (!is_numeric(host))
    return "the host must be a numeric address, such as 127.0.0.1";
  if (!is_loopback(host) && !is_set(o->key) && !is_set(o->admin_key))
    return "an address other than a loopback one needs a key";
  if (!is_price(o->usd_prompt) || !is_price(o->usd_sampled) ||
      !is_price(o->usd_cached))
    return "a price must be from 0 to 1000000";
  if (o->worker != NULL && !is_worker(o->worker))
    return "a worker's name has 1 to 32 letters, digits, '-' and '_'";
  if (o->port < 0 || o->port > 65535)
    return "the port is out of range";
  if (o->max_tokens < 0)
    return "max_tokens is below 0";
  if (o->formats > TNK_GATEWAY_FORMATS_REFUSE)
    return "formats is out of range";
  if (o->max_attempts > MAX_ATTEMPTS)
    return "max_attempts is above 16";
  if ((o->tls_cert == NULL) != (o->tls_key == NULL))
    return "a certificate and its key go together";
  if (o->client_ca_file != NULL && o->tls_cert == NULL)
    return "client_ca_file needs tls_cert";
  if ((o->client_crl_file != NULL || o->client_optional == TNK_YES) &&
      o->client_ca_file == NULL)
    return "client_crl_file and client_optional need client_ca_file";
  if ((o->keep_sessions > 0 || o->keep_age_ms > 0 ||
       o->keep_unexported == TNK_YES) &&
      (o->record == NULL || !tnk__gw_is_where(o->record)))
    return "sessions are removed from a shared record only: keep_sessions, "
           "keep_age_ms and keep_unexported need a record at valkey://";
  if (o->keep_sessions > MAX_KEEP || o->keep_age_ms > MAX_KEEP)
    return "keep_sessions or keep_age_ms is above 2^52";
  if ((o->record_cert_file == NULL) != (o->record_key_file == NULL))
    return "record_cert_file and record_key_file go together";
  return NULL;
}

static int set_variables(tnk_gateway_t *gateway, const tnk_gateway_options_t *o,
                         char *why, size_t why_size) {
  gateway->variables = json_object();
  if (gateway->variables == NULL)
    return TNK_ENOMEM;
  for (size_t i = 0; i < o->n_variables; i++) {
    const tnk_pair_t *pair = &o->variables[i];
    json_t *value = NULL;
    int err = tnk__json_parse(&value, pair->value, strlen(pair->value));

    if (err == TNK_ENOMEM)
      return err;
    if (err == TNK_OK &&
        json_object_set_new(gateway->variables, pair->name, value) == 0)
      continue;
    if (why_size > 0)
      (void)snprintf(why, why_size,
                     "the variable %s is not JSON, or its name is not UTF-8",
                     pair->name);
    return TNK_EINVAL;
  }
  return TNK_OK;
}

static int set_texts(tnk_gateway_t *gateway, const tnk_gateway_options_t *o,
                     char *why, size_t why_size) {
  const tnk_allocator_t *alloc = &gateway->alloc;

  if (is_set(o->key)) {
    gateway->key = tnk__strdup(alloc, o->key);
    if (gateway->key == NULL)
      return TNK_ENOMEM;
  }
  if (is_set(o->admin_key)) {
    gateway->admin_key = tnk__strdup(alloc, o->admin_key);
    if (gateway->admin_key == NULL)
      return TNK_ENOMEM;
  }
  if (o->model != NULL) {
    gateway->model = tnk__strdup(alloc, o->model);
    if (gateway->model == NULL)
      return TNK_ENOMEM;
  }
  return set_variables(gateway, o, why, why_size);
}

static int open_template(tnk_gateway_t *gateway, const tnk_gateway_options_t *o,
                         char *why, size_t why_size) {
  tnk_chat_template_options_t options = TNK_CHAT_TEMPLATE_OPTIONS_INIT;
  tnk_chat_error_t error = {0};
  int err;

  if (o->template_ != NULL) {
    gateway->template_ = tnk_chat_template_ref(o->template_);
    return TNK_OK;
  }
  gateway->is_plain = 1;
  options.allocator = &gateway->alloc;
  err = tnk_chat_template_open(&gateway->template_, NULL, 0, &options, &error);
  return err == TNK_OK ? err : say(why, why_size, err, error.text);
}

/* All lines of a session were removed from a shared record. While the record is
 * opened, the gateway has nothing but its keys. */
static int take_removed(tnk_gateway_t *gateway, const json_t *line) {
  const char *name = tnk__json_str(line, "session");
  const tnk__gw_session_t *session;

  tnk__gw_grants_drop(&gateway->grants, name);
  if (gateway->record == NULL)
    return TNK_OK;
  session = tnk__gw_record_session(gateway->record, name);
  if (session != NULL)
    tnk__gw_responses_drop(gateway, session);
  tnk__gw_elsewhere_removed(gateway, name);
  return TNK_OK;
}

/* Take a line that is not the record's own. */
static int take_line(void *user, const char *type, const json_t *line) {
  tnk_gateway_t *gateway = user;
  int err = tnk__gw_elsewhere_take(gateway, type, line);

  if (err != TNK_OK)
    return err;
  if (strcmp(type, "removed") == 0)
    return take_removed(gateway, line);
  if (strcmp(type, TNK__GW_DELETED) == 0)
    return tnk__gw_response_take(gateway, line);
  if (strcmp(type, TNK__GW_USE) == 0)
    return tnk__gw_sampler_take_use(gateway, line);
  return tnk__gw_grants_take(&gateway->grants, type, line);
}

static void on_too_long(void *user, uint64_t request) {
  tnk__gw_jobs_too_long(user, request);
}

static int open_record(tnk_gateway_t *gateway, const tnk_gateway_options_t *o,
                       char *why, size_t why_size) {
  const tnk__gw_record_options_t options = {
      .alloc = &gateway->alloc,
      .loop = gateway->loop,
      .path = o->record,
      .ca_file = o->record_ca_file,
      .cert_file = o->record_cert_file,
      .key_file = o->record_key_file,
      .keep = {.max_sessions = o->keep_sessions,
               .max_age_ms = o->keep_age_ms,
               .only_exported = o->keep_unexported == TNK_YES},
      .logger = o->logger,
      .syncs = o->record_sync == TNK_YES,
      .max_memory = (size_t)o->max_memory,
      /* If an earlier process lost the end of its record, numbers of its turns
       * are unknown. Starting from the time keeps them from being used
       * again. */
      .first = (uint64_t)gateway->began_s << 20,
      .take = take_line,
      .too_long = on_too_long,
      .user = gateway,
      .vocabulary =
          o->record != NULL ? tnk__gw_vocabulary(&gateway->tokenizer) : 0,
      .why = why,
      .n_why = why_size};
  int err = tnk__gw_record_open(&gateway->record, &options);

  if (err != TNK_OK)
    return err;
  gateway->elsewhere.is_on = gateway->elsewhere.has_claims =
      tnk__gw_record_is_shared(gateway->record);
  gateway->version = tnk__gw_record_version(gateway->record);
  gateway->grants.record = gateway->record;
  if (gateway->grants.n > 0 && gateway->key == NULL &&
      gateway->admin_key == NULL)
    return say(why, why_size, TNK_EINVAL,
               "the record has keys of sessions, so the gateway needs an admin "
               "key: without one it would serve everybody");
  return TNK_OK;
}

static int listen_on(tnk_gateway_t *gateway, const tnk_gateway_options_t *o,
                     char *why, size_t why_size) {
  const char *host = o->host != NULL ? o->host : "127.0.0.1";
  const tnk__srv_config_t config = {
      .host = host,
      .port = o->port,
      .max_body = o->max_body > 0 ? (size_t)o->max_body : MAX_BODY,
      .max_conns =
          o->max_connections > 0 ? o->max_connections : MAX_CONNECTIONS,
      .tls_cert = o->tls_cert,
      .tls_key = o->tls_key,
      .tls_client_ca = o->client_ca_file,
      .tls_client_crl = o->client_crl_file,
      .tls_client_optional = o->client_optional == TNK_YES,
      .on_refused = tnk__gw_log_refused,
      .why = why,
      .n_why = why_size,
      .alloc = &gateway->alloc,
      .shares_port = o->share_port == TNK_YES,
      .admit = tnk__gw_admit,
      .refuse = tnk__gw_refuse_early,
      .handle = tnk__gw_handle,
      .on_reply = tnk__gw_log_reply,
      .on_end = tnk__gw_on_end,
      .user = gateway};
  int is_ip6 = strchr(host, ':') != NULL;
  uint64_t tick;
  int err = tnk__srv_open(&gateway->http, gateway->loop, &config);

  /* From here on the server must be closed, even if opening it failed. */
  uv_timer_init(gateway->loop, &gateway->sweeper);
  uv_timer_start(&gateway->sweeper, on_sweep, SWEEP_MS, SWEEP_MS);
  uv_unref((uv_handle_t *)&gateway->sweeper);
  gateway->has_client_ca = o->client_ca_file != NULL;
  gateway->keep_alive_ms =
      o->keep_alive_ms > 0 ? o->keep_alive_ms : KEEP_ALIVE_MS;
  tick = gateway->keep_alive_ms / KEEP_TICKS + 1;
  gateway->keep_tick_ms = tick;
  uv_timer_init(gateway->loop, &gateway->keeper);
  uv_timer_start(&gateway->keeper, on_keep, tick, tick);
  uv_unref((uv_handle_t *)&gateway->keeper);
  uv_idle_init(gateway->loop, &gateway->exporter);
  uv_timer_init(gateway->loop, &gateway->elsewhere.timer);
  uv_unref((uv_handle_t *)&gateway->elsewhere.timer);
  gateway->n_open = 5;
  (void)snprintf(gateway->address, sizeof(gateway->address),
                 "http%s://%s%s%s:%d", o->tls_cert != NULL ? "s" : "",
                 is_ip6 ? "[" : "", host, is_ip6 ? "]" : "",
                 gateway->http.port);
  if (err == TNK_OK || (why_size > 0 && why[0] != '\0'))
    return err == TNK_OK || err > -4096 ? err : TNK_ESYSTEM;
  return say(why, why_size, err == TNK_ENOMEM ? err : TNK_ESYSTEM,
             err == TNK_ENOMEM ? "out of memory" : uv_strerror(err));
}

/* Older and third-party plug-ins may not list their control tokens. */
static int lists_controls(const tnk_chat_tokenizer_t *tokenizer) {
  return tokenizer->plugin->size >
             offsetof(tnk_tokenizer_plugin_t, plain_flags) &&
         tokenizer->plugin->added != NULL;
}

static tnk_gateway_t *new_gateway(uv_loop_t *loop, tnk_service_t *service,
                                  const tnk_gateway_options_t *o) {
  const tnk_allocator_t *alloc =
      o->allocator != NULL ? o->allocator : tnk__allocator_default();
  tnk_gateway_t *gateway = tnk__calloc(alloc, 1, sizeof(*gateway));
  uv_timeval64_t now = {0};

  if (gateway == NULL)
    return NULL;
  (void)uv_gettimeofday(&now);
  gateway->alloc = *alloc;
  gateway->loop = loop;
  gateway->service = service;
  gateway->tokenizer = o->tokenizer;
  gateway->family = o->family;
  /* 10^12 of the unit per USD, and 10^6 tokens. */
  gateway->pico_prompt = o->usd_prompt * 1e6;
  gateway->pico_sampled = o->usd_sampled * 1e6;
  gateway->pico_cached =
      o->usd_cached > 0 ? o->usd_cached * 1e6 : gateway->pico_prompt;
  gateway->keeps_controls =
      o->keep_control_tokens == TNK_YES || !lists_controls(&o->tokenizer);
  gateway->formats = o->formats;
  (void)snprintf(gateway->worker, sizeof(gateway->worker), "%s",
                 o->worker != NULL ? o->worker : "");
  gateway->max_attempts = o->max_attempts > 0 ? o->max_attempts : ATTEMPTS;
  gateway->max_tokens = o->max_tokens > 0 ? o->max_tokens : MAX_TOKENS;
  gateway->max_jobs = o->max_requests > 0 ? o->max_requests : MAX_REQUESTS;
  gateway->began_s = now.tv_sec;
  gateway->otlp = o->otlp;
  if (o->logger != NULL)
    gateway->logger = *o->logger;
  tnk__gw_grants_init(&gateway->grants, &gateway->alloc);
  tnk__gw_again_init(&gateway->again, &gateway->alloc);
  tnk__gw_elsewhere_init(gateway);
  tnk__gw_map_init(&gateway->hidden, &gateway->alloc);
  gateway->repeat_ms = o->repeat_ms > 0 ? o->repeat_ms : REPEAT_MS;
  tnk__list_init(&gateway->jobs);
  tnk__list_init(&gateway->renders);
  gateway->max_renders = MAX_RENDERS;
  gateway->made = tnk__gw_jobs_resume;
  tnk__list_init(&gateway->samplers);
  tnk__list_init(&gateway->uses);
  tnk__list_init(&gateway->holds);
  tnk__list_init(&gateway->exports);
  gateway->export_bytes = EXPORT_BYTES;
  return gateway;
}

int tnk_gateway_open(tnk_gateway_t **out, uv_loop_t *loop,
                     tnk_service_t *service,
                     const tnk_gateway_options_t *options, char *why,
                     size_t why_size) {
  tnk_gateway_options_t own = TNK_GATEWAY_OPTIONS_INIT;
  const tnk_gateway_options_t *o = &own;
  tnk_gateway_t *gateway;
  const char *wrong;
  int err;

  if (why == NULL)
    why_size = 0;
  if (why_size > 0)
    why[0] = '\0';
  if (out == NULL)
    return say(why, why_size, TNK_EINVAL, "out is NULL");
  *out = NULL;
  err = TNK__LOAD(tnk_gateway_options_t, &own, options, why, why_size);
  if (err != TNK_OK)
    return err;
  wrong =
      loop == NULL || service == NULL ? "loop or service is NULL" : check(o);
  if (wrong != NULL)
    return say(why, why_size, TNK_EINVAL, wrong);
  gateway = new_gateway(loop, service, o);
  if (gateway == NULL)
    return say(why, why_size, TNK_ENOMEM, "out of memory");
  err = set_texts(gateway, o, why, why_size);
  if (err == TNK_OK)
    err = open_template(gateway, o, why, why_size);
  if (err == TNK_OK)
    err = open_record(gateway, o, why, why_size);
  if (err == TNK_OK)
    err = listen_on(gateway, o, why, why_size);
  if (err == TNK_OK && o->otlp != NULL)
    err = tnk_otlp_add_source(o->otlp, tnk__gw_export_metrics, gateway);
  if (err == TNK_OK) {
    *out = gateway;
    return TNK_OK;
  }
  if (why_size > 0 && why[0] == '\0')
    (void)say(why, why_size, err, tnk_strerror(err));
  if (gateway->n_open > 0) {
    tnk_gateway_close(gateway, NULL, NULL);
  } else {
    gateway->n_open = 1;
    gateway->is_closing = 1;
    tnk__gw_release(gateway);
  }
  return err;
}

const char *tnk_gateway_address(const tnk_gateway_t *gateway) {
  return gateway != NULL ? gateway->address : NULL;
}

int tnk_gateway_stats(tnk_gateway_stats_t *out, const tnk_gateway_t *gateway) {
  tnk_gateway_stats_t stats = TNK_GATEWAY_STATS_INIT;

  if (out == NULL)
    return TNK_EINVAL;
  if (gateway != NULL) {
    stats = gateway->stats;
    stats.n_requests = gateway->http.n_requests;
    stats.n_under_way = (uint32_t)(gateway->n_jobs - gateway->again.n_kept);
    stats.n_connections = (uint32_t)gateway->http.n_conns;
    stats.version = gateway->sampler != NULL ? gateway->sampler->version : 0;
    TNK__LIST_FOREACH (node, &gateway->samplers) {
      stats.n_old_samplers +=
          (uint32_t)tnk__container_of(node, tnk__gw_sampler_t, link)->is_old;
    }
  }
  return TNK__FILL(tnk_gateway_stats_t, out, &stats);
}
