/* SPDX-License-Identifier: MIT */
/*
 * Describes the state of a service, as text or JSON. One description serves
 * both formats. Values are numbers and strings without secrets: only the kind
 * of the key, and only the names of headers.
 */
#include "lib/api/service.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/limits.h"
#include "lib/wire/format/json_write.h"
#include "lib/io/http/pool.h"
#include "lib/client/session/member.h"
#include "lib/client/future/service_op.h"
#include "lib/client/sample/sampling.h"
#include "lib/client/train/training.h"
#include "lib/files/weights/job.h"

/* Number of pending operations listed for a client, the oldest first. */
enum { MAX_OPERATIONS = 8, MAX_SENTENCE = 768 };

typedef struct {
  tnk__buf_t *buf;
  tnk__json_writer_t json;
  int is_json;
  int depth;
} dump_t;

/* ---- The two formats ---- */

static void indent(dump_t *d, const char *key) {
  int i;

  for (i = 0; i < d->depth; i++)
    tnk__buf_text(d->buf, "  ");
  if (key != NULL)
    tnk__buf_text(d->buf, key);
}

static void begin(dump_t *d, const char *key, int is_array) {
  if (!d->is_json) {
    indent(d, key);
    tnk__buf_text(d->buf, key != NULL ? ":\n" : "-\n");
    d->depth++;
    return;
  }
  if (key != NULL)
    tnk__json_key(&d->json, key);
  if (is_array)
    tnk__json_begin_array(&d->json);
  else
    tnk__json_begin_object(&d->json);
}

static void end(dump_t *d) {
  if (d->is_json)
    tnk__json_end(&d->json);
  else
    d->depth--;
}

static void put_uint(dump_t *d, const char *key, uint64_t value) {
  if (d->is_json) {
    tnk__json_key(&d->json, key);
    tnk__json_uint(&d->json, value);
    return;
  }
  indent(d, key);
  tnk__buf_printf(d->buf, ": %llu\n", (unsigned long long)value);
}

static void put_int(dump_t *d, const char *key, int64_t value) {
  if (d->is_json) {
    tnk__json_put_int(&d->json, key, value);
    return;
  }
  indent(d, key);
  tnk__buf_printf(d->buf, ": %lld\n", (long long)value);
}

static void put_bool(dump_t *d, const char *key, int value) {
  if (d->is_json) {
    tnk__json_put_bool(&d->json, key, value);
    return;
  }
  indent(d, key);
  tnk__buf_text(d->buf, value ? ": yes\n" : ": no\n");
}

/* Without a key it is an element of a list. The string may come from a server.
 * tnk__text_t removes control characters and cuts at a character boundary. */
static void put_text(dump_t *d, const char *key, const char *value) {
  char clean[MAX_SENTENCE];
  tnk__text_t text;

  if (value == NULL)
    return;
  tnk__text_init(&text, clean, sizeof(clean));
  tnk__text_printf(&text, "%s", value);
  if (d->is_json) {
    if (key != NULL)
      tnk__json_key(&d->json, key);
    tnk__json_text(&d->json, clean);
    return;
  }
  indent(d, key);
  tnk__buf_printf(d->buf, key != NULL ? ": %s\n" : "- %s\n", clean);
}

/* ---- The service ---- */

/* Process and time, for the readers of a dump file. */
static void dump_process(dump_t *d, const tnk__context_t *context) {
  begin(d, "process", 0);
  put_int(d, "pid", context->pid);
  put_int(d, "time_s", tnk__context_wall_s(context));
  put_uint(d, "clock_ms", tnk__context_now_ns(context) / 1000000);
  end(d);
}

static void dump_config(dump_t *d, const tnk__config_t *config) {
  size_t i;

  put_text(d, "host", config->url.host);
  put_uint(d, "port", config->url.port);
  put_bool(d, "tls", config->url.is_tls);
  put_text(d, "api_key",
           config->api_key == NULL      ? "none"
           : config->key_expires_s == 0 ? "tml-***"
                                        : "*** (JWT)");
  put_bool(d, "credential_cmd", config->credential_cmd != NULL);
  put_text(d, "project_id", config->options.project_id);
  begin(d, "headers", 1);
  for (i = 0; i < config->n_headers; i++)
    put_text(d, NULL, config->headers[i].name);
  end(d);
}

static const char *level_name(const tnk__session_t *session) {
  if (session->endpoint.closing)
    return "closing";
  if (session->endpoint.ended_session != NULL)
    return "ended by the server";
  switch (session->start.level) {
  case TNK__SESSION_NEW:
    return "not begun";
  case TNK__SESSION_CONFIGURED:
    return "configured";
  case TNK__SESSION_READY:
    return "ready";
  }
  return "";
}

static void dump_session(dump_t *d, const tnk__session_t *session) {
  begin(d, "session", 0);
  put_text(d, "state", level_name(session));
  put_text(d, "id", session->start.id);
  if (session->start.id != NULL)
    put_uint(d, "heartbeat_age_ms",
             tnk__context_now_ms(session->context) -
                 session->start.heartbeat.ok_ms);
  end(d);
}

static void dump_counters(dump_t *d, const tnk_service_t *service) {
  tnk_stats_t s = TNK_STATS_INIT;

  tnk_service_stats(&s, service);
  begin(d, "counters", 0);
  put_uint(d, "pending", s.n_pending);
  put_uint(d, "requests", s.n_requests);
  put_uint(d, "retries", s.n_retries);
  put_uint(d, "retries_connect", s.n_retries_connect);
  put_uint(d, "retries_lost", s.n_retries_lost);
  put_uint(d, "retries_timeout", s.n_retries_timeout);
  put_uint(d, "retries_rate", s.n_retries_rate);
  put_uint(d, "retries_billing", s.n_retries_billing);
  put_uint(d, "retries_server", s.n_retries_server);
  put_uint(d, "retries_other", s.n_retries_other);
  put_uint(d, "resubmits", s.n_resubmits);
  put_uint(d, "stalls", s.n_stalls);
  put_uint(d, "late_events", s.n_late_events);
  put_uint(d, "double_settles", s.n_double_settles);
  put_uint(d, "bytes_sent", s.n_bytes_sent);
  put_uint(d, "bytes_received", s.n_bytes_received);
  put_uint(d, "loop_lag_ms", s.loop_lag_ms);
  put_uint(d, "max_loop_lag_ms", s.max_loop_lag_ms);
  end(d);
}

/* ---- Use ---- */

static void put_usd(dump_t *d, const char *key, uint64_t parts) {
  const double usd = (double)parts / (double)TNK__USD;

  if (d->is_json) {
    tnk__json_put_double(&d->json, key, usd);
    return;
  }
  indent(d, key);
  tnk__buf_printf(d->buf, ": %.6f\n", usd);
}

/* Totals of a service or of one of its clients. */
static void dump_totals(dump_t *d, const char *key,
                        const tnk__totals_t *totals) {
  begin(d, key, 0);
  put_uint(d, "prompt_tokens", totals->prompt_tokens);
  put_uint(d, "cached_tokens", totals->cached_tokens);
  put_uint(d, "sampled_tokens", totals->sampled_tokens);
  put_uint(d, "trained_tokens", totals->trained_tokens);
  put_uint(d, "doubtful_tokens", totals->doubtful_tokens);
  put_usd(d, "usd", totals->cost);
  put_usd(d, "doubtful_usd", totals->doubtful_cost);
  end(d);
}

static void dump_client_totals(dump_t *d, const tnk__totals_t *totals) {
  dump_totals(d, "used", totals);
  put_uint(d, "requests", totals->n_requests);
  put_uint(d, "bytes_sent", totals->n_bytes_sent);
  put_uint(d, "bytes_received", totals->n_bytes_received);
}

static void dump_allowance(dump_t *d, const tnk__allowance_t *allowance) {
  dump_totals(d, "used", &allowance->used);
  begin(d, "budget", 0);
  if (allowance->max_tokens != 0)
    put_uint(d, "max_tokens", allowance->max_tokens);
  if (allowance->max_cost != 0)
    put_usd(d, "max_usd", allowance->max_cost);
  dump_totals(d, "before", &allowance->before);
  put_uint(d, "reserved_tokens", allowance->taken_tokens);
  put_usd(d, "reserved_usd", allowance->taken_cost);
  end(d);
}

/* ---- Connections ---- */

static size_t length(const tnk__list_t *list) {
  size_t n = 0;

  TNK__LIST_FOREACH (node, list)
    n++;
  return n;
}

static void dump_lanes(dump_t *d, const tnk__http_t *http) {
  static const char *const names[TNK__N_LANES] = {
      "control", "training", "samples", "polls", "training_polls"};

  begin(d, "lanes", 0);
  for (int i = 0; i < TNK__N_LANES; i++) {
    begin(d, names[i], 0);
    put_uint(d, "in_flight", http->lanes[i].n_in_flight);
    put_uint(d, "max", http->lanes[i].max);
    put_uint(d, "queued", length(&http->lanes[i].queue));
    end(d);
  }
  end(d);
}

static void dump_http(dump_t *d, const char *key, const tnk__http_t *http) {
  static const char *const speaks[] = {
      [TNK__SPEAKS_UNKNOWN] = "not known yet",
      [TNK__SPEAKS_HTTP_1] = "HTTP/1.1",
      [TNK__SPEAKS_HTTP_2] = "HTTP/2",
  };

  begin(d, key, 0);
  put_uint(d, "connections", http->n_connections);
  put_uint(d, "max_connections", http->max_connections);
  put_bool(d, "out_of_descriptors", http->is_starved);
  put_text(d, "nghttp2", tnk__http2_library());
  dump_lanes(d, http);
  begin(d, "pools", 1);
  TNK__LIST_FOREACH (node, &http->pools) {
    const tnk__pool_t *pool = tnk__container_of(node, tnk__pool_t, link);
    begin(d, NULL, 0);
    put_text(d, "host", pool->origin.host);
    put_uint(d, "port", pool->origin.port);
    if (pool->via != NULL)
      put_text(d, "proxy", pool->via->name);
    put_text(d, "speaks", speaks[pool->speaks]);
    put_text(d, "tls_version", pool->tls_version);
    put_uint(d, "connecting", pool->n_connecting);
    put_uint(d, "active", length(&pool->shared) + length(&pool->full));
    put_uint(d, "idle", length(&pool->idle));
    put_uint(d, "waiting", pool->queue.n_waiting);
    if (tnk__queue_is_limited(&pool->queue))
      put_uint(d, "granted", pool->queue.ceiling.max);
    end(d);
  }
  end(d);
  end(d);
}

/* ---- Limits ---- */

static void dump_budget(dump_t *d, const char *key,
                        const tnk__budget_t *budget) {
  begin(d, key, 0);
  put_int(d, "size", budget->size);
  put_int(d, "taken", budget->size - budget->balance);
  put_uint(d, "waiting", budget->n_waiting);
  end(d);
}

static void dump_semaphore(dump_t *d, const char *key,
                           const tnk__semaphore_t *sem) {
  begin(d, key, 0);
  if (sem->limit != TNK__SEMAPHORE_UNLIMITED)
    put_uint(d, "limit", sem->limit);
  put_uint(d, "held", sem->n_held);
  put_uint(d, "waiting", sem->n_waiting);
  end(d);
}

static void dump_limits(dump_t *d, const tnk__session_t *session) {
  const uint64_t now = tnk__context_now_ms(session->context);

  begin(d, "limiter", 0);
  put_uint(d, "wait_ms", tnk__limiter_wait_ms(&session->limits.limiter, now));
  put_bool(d, "recent", tnk__limiter_is_recent(&session->limits.limiter, now));
  put_uint(d, "backoffs", session->limits.limiter.n_backoffs);
  put_uint(d, "waiting", length(&session->limits.gate.waiting));
  end(d);
  dump_budget(d, "train_bytes", &session->limits.train_bytes);
  dump_budget(d, "sample_bytes", &session->limits.sample_bytes);
  dump_budget(d, "result_bytes", &session->limits.result_bytes);
  dump_semaphore(d, "samples_running", &session->limits.sample_running);
  dump_semaphore(d, "sample_slots", &session->limits.sample_slots);
  dump_semaphore(d, "sample_throttle", &session->limits.sample_throttle);
}

/* ---- Clients ---- */

/* The number of pending operations, and a sentence for each of the oldest. */
static void dump_members(dump_t *d, const tnk__list_t *members) {
  char sentence[MAX_SENTENCE];
  tnk__text_t text;
  size_t n = 0;

  begin(d, "operations", 1);
  TNK__LIST_FOREACH (node, members) {
    const tnk__member_t *member = tnk__member_of(node);
    tnk__text_init(&text, sentence, sizeof(sentence));
    if (n < MAX_OPERATIONS && member->type->explain(member, &text)) {
      put_text(d, NULL, sentence);
      n++;
    } else if (n >= MAX_OPERATIONS && member->type->explain(member, NULL)) {
      n++;
    }
  }
  end(d);
  put_uint(d, "pending", n);
}

static void dump_training(dump_t *d, const tnk_training_t *training) {
  const tnk__turns_t *turns = &training->turns;

  begin(d, NULL, 0);
  put_text(d, "model_id", training->info.model_id);
  put_text(d, "base_model", training->info.base_model);
  put_bool(d, "closing", training->closing);
  if (training->failed != NULL)
    put_text(d, "failed", training->failed->pub.text);
  put_uint(d, "queued", turns->n_queued);
  put_uint(d, "next_number", turns->next);
  put_uint(d, "open_numbers", turns->n_open);
  put_uint(d, "holes", turns->n_holes);
  dump_client_totals(d, &training->totals);
  dump_members(d, &training->ops);
  end(d);
}

static void dump_sampling(dump_t *d, const tnk_sampling_t *sampling) {
  begin(d, NULL, 0);
  put_text(d, "id", sampling->id);
  put_text(d, "base_model", sampling->base_model);
  if (sampling->foreign != NULL)
    put_text(d, "session", sampling->foreign->id);
  put_bool(d, "closing", sampling->closing);
  put_uint(d, "clone", sampling->clone);
  put_uint(d, "next_number", sampling->next_seq);
  dump_client_totals(d, &sampling->totals);
  dump_members(d, &sampling->samples);
  end(d);
}

/* Describe the current step of a promise. */
static void dump_promise(dump_t *d, const tnk_promise_t *promise) {
  char sentence[MAX_SENTENCE];
  tnk__text_t text;

  tnk__text_init(&text, sentence, sizeof(sentence));
  tnk__promise_explain(promise, &text);
  put_text(d, NULL, sentence);
}

static void dump_clients(dump_t *d, const tnk__session_t *session) {
  begin(d, "trainings", 1);
  TNK__LIST_FOREACH (node, &session->registry.trainings) {
    dump_training(d, tnk__container_of(node, tnk_training_t, link));
  }
  end(d);
  begin(d, "samplings", 1);
  TNK__LIST_FOREACH (node, &session->registry.samplings) {
    dump_sampling(d, tnk__container_of(node, tnk_sampling_t, link));
  }
  end(d);
  begin(d, "requests", 1);
  TNK__LIST_FOREACH (node, &session->registry.service_ops) {
    dump_promise(d, tnk__container_of(node, tnk__service_op_t, link)->promise);
  }
  end(d);
}

/* Only the hosts of addresses are shown, because the addresses are signed. */
static void dump_weights(dump_t *d, const tnk__weights_t *weights) {
  begin(d, "downloads", 1);
  TNK__LIST_FOREACH (node, &weights->jobs) {
    dump_promise(d, tnk__container_of(node, tnk__weights_job_t, link)->promise);
  }
  end(d);
  put_uint(d, "exports_to_remove", length(&weights->sweeps) + weights->n_late);
  if (weights->is_open)
    dump_http(d, "stores", &weights->http);
}

/* ---- All of it ---- */

static int dump(dump_t *d, const tnk_service_t *service) {
  if (d->is_json)
    begin(d, NULL, 0);
  else
    tnk__buf_text(d->buf, "tnk " TNK_VERSION_STRING "\n");
  dump_process(d, &service->root.context);
  dump_config(d, &service->config);
  dump_session(d, &service->session);
  dump_counters(d, service);
  dump_allowance(d, &service->session.limits.allowance);
  dump_http(d, "http", &service->root.http);
  dump_limits(d, &service->session);
  dump_clients(d, &service->session);
  dump_weights(d, &service->weights);
  if (!d->is_json)
    return d->buf->err;
  end(d);
  tnk__buf_byte(d->buf, '\n');
  return tnk__json_finish(&d->json);
}

int tnk__dump_write(const tnk_service_t *service, tnk_dump_format_t format,
                    tnk__buf_t *out) {
  dump_t d = {.is_json = format == TNK_DUMP_JSON, .buf = out};

  tnk__buf_init(out, &service->root.context.alloc, TNK__MAX_RESPONSE_BODY);
  tnk__json_writer_init(&d.json, out);
  return dump(&d, service);
}

int tnk_service_dump(const tnk_service_t *service, tnk_dump_format_t format,
                     tnk_dump_cb write, void *user) {
  tnk__buf_t text;
  int err;

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE) || write == NULL ||
      (format != TNK_DUMP_TEXT && format != TNK_DUMP_JSON))
    return TNK_EINVAL;
  err = tnk__dump_write(service, format, &text);
  /* The function may close what the dump describes, so it is called once at the
   * end. */
  if (err == TNK_OK) {
    tnk__callout_begin();
    write((const char *)text.data, text.len, user);
    tnk__callout_end();
  }
  tnk__buf_deinit(&text);
  return err;
}
