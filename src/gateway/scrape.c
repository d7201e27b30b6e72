/* SPDX-License-Identifier: MIT */
/* The state of the gateway: GET /metrics for Prometheus, and OTLP. */
#include <stdio.h>
#include <string.h>

#include "gateway/send.h"
#include "lib/base/alloc.h"
#include "tnk/error.h"
#include "tnk/version.h"

enum { MAX_BODY = 1 << 20 };

/* The name of the weights would be a new time series whenever they change. */
const char *tnk__gw_metrics_model(const tnk_gateway_t *gateway) {
  const char *name = gateway->model;

  if (name == NULL && gateway->sampler != NULL)
    name = tnk_sampling_base_model(gateway->sampler->sampling);
  return name != NULL ? name : "tnk";
}

/* Requests that wait for the first model, or for a thread that renders. */
static uint64_t n_waiting(const tnk_gateway_t *gateway) {
  uint64_t n = 0;

  TNK__LIST_FOREACH (node, &gateway->jobs) {
    n += tnk__container_of(node, tnk__gw_job_t, link)->is_held != 0;
  }
  TNK__LIST_FOREACH (node, &gateway->renders) {
    n++;
  }
  return n;
}

/* A value other than a histogram. */
typedef struct {
  const char *name;
  const char *type;
  const char *help;
  uint64_t value;
} row_t;

enum { MAX_ROWS = 20, MAX_NAME = 64 };

/* Fill the rows. Returns their number. */
static size_t fill_rows(const tnk_gateway_t *gateway,
                        const tnk_gateway_stats_t *stats,
                        row_t rows[MAX_ROWS]) {
  const row_t all[] = {
      {"tnk_gateway_http_requests_total", "counter",
       "Requests of any kind that arrived as a whole.", stats->n_requests},
      {"tnk_gateway_continued_prompts_total", "counter",
       "Prompts that continued from sampled tokens.", stats->n_continued},
      {"tnk_gateway_requests_in_progress", "gauge",
       "Requests for samples that have no answer yet.", stats->n_under_way},
      {"tnk_gateway_requests_waiting", "gauge",
       "Those of them that wait for a model or for a thread that renders.",
       n_waiting(gateway)},
      {"tnk_gateway_connections", "gauge", "Open connections.",
       stats->n_connections},
      {"tnk_gateway_sessions", "gauge", "Sessions in memory.",
       tnk__gw_record_n_sessions(gateway->record)},
      {"tnk_gateway_keys", "gauge", "Keys of sessions.", gateway->grants.n},
      {"tnk_gateway_record_bytes", "gauge", "Size of the record.",
       tnk__gw_record_size(gateway->record)},
      {"tnk_gateway_store_older_copies_total", "counter",
       "How often the store of the record came back with an older copy.",
       tnk__gw_record_n_older(gateway->record)},
      {"tnk_gateway_ready", "gauge", "1 if /readyz says so, else 0.",
       tnk__gw_why_not_ready(gateway) == NULL},
      {"tnk_gateway_sampler_version", "gauge",
       "Version of the weights in use, or 0.", stats->version},
      {"tnk_gateway_old_samplers", "gauge",
       "Replaced weights that still have requests.", stats->n_old_samplers},
      {"tnk_gateway_start_time_seconds", "gauge",
       "When the gateway started, in seconds since 1970.",
       (uint64_t)gateway->began_s},
  };

  memcpy(rows, all, sizeof(all));
  return sizeof(all) / sizeof(*all);
}

static size_t read_state(const tnk_gateway_t *gateway, row_t rows[MAX_ROWS]) {
  tnk_gateway_stats_t stats = TNK_GATEWAY_STATS_INIT;
  tnk_otlp_stats_t exported = TNK_OTLP_STATS_INIT;
  size_t n;

  (void)tnk_gateway_stats(&stats, gateway);
  n = fill_rows(gateway, &stats, rows);
  if (gateway->otlp == NULL)
    return n;
  (void)tnk_otlp_stats(&exported, gateway->otlp);
  rows[n++] =
      (row_t){"tnk_gateway_otlp_exported_spans_total", "counter",
              "Spans that the collector has accepted.", exported.n_exported};
  rows[n++] = (row_t){"tnk_gateway_otlp_dropped_spans_total", "counter",
                      "Spans that were dropped.", exported.n_dropped};
  return n;
}

static void put_state(const tnk_gateway_t *gateway, tnk__buf_t *out) {
  row_t rows[MAX_ROWS];
  const size_t n = read_state(gateway, rows);

  for (size_t i = 0; i < n; i++)
    tnk__gw_metrics_put_value(out, rows[i].name, rows[i].type, rows[i].help, "",
                              rows[i].value);
  tnk__gw_metrics_put_value(out, "tnk_gateway_build_info", "gauge",
                            "Always 1; the label has the version.",
                            "{version=\"" TNK_VERSION_STRING "\"}", 1);
}

/* Convert "tnk_gateway_x_total" to "tnk.gateway.x". */
static void name_for_otlp(const char *name, char out[MAX_NAME]) {
  static const char before[] = "tnk_gateway_", after[] = "_total";
  size_t n;

  (void)snprintf(out, MAX_NAME, "tnk.gateway.%s", name + sizeof(before) - 1);
  n = strlen(out);
  if (n >= sizeof(after) && strcmp(out + n - (sizeof(after) - 1), after) == 0)
    out[n - (sizeof(after) - 1)] = '\0';
}

void tnk__gw_export_metrics(tnk_otlp_metrics_t *out, void *user) {
  const tnk_gateway_t *gateway = user;
  row_t rows[MAX_ROWS];
  const size_t n = read_state(gateway, rows);

  tnk__gw_metrics_export(&gateway->metrics, tnk__gw_metrics_model(gateway),
                         out);
  for (size_t i = 0; i < n; i++) {
    char name[MAX_NAME];
    const tnk_otlp_metric_t metric = {.name = name,
                                      .description = rows[i].help,
                                      .is_counter = rows[i].type[0] == 'c'};
    const tnk_otlp_number_t number = {.value = (int64_t)rows[i].value};

    name_for_otlp(rows[i].name, name);
    tnk_otlp_put_numbers(out, &metric, &number, 1);
  }
}

/* Add a label to each line. A name has no brace, so the first one begins the
 * labels. */
static void put_label(const char *text, size_t n, const char *worker,
                      tnk__buf_t *out) {
  while (n > 0) {
    const char *newline = memchr(text, '\n', n);
    size_t n_line = newline != NULL ? (size_t)(newline - text) + 1 : n;
    size_t n_name = 0;
    int has_labels;

    while (n_name < n_line && text[n_name] != '{' && text[n_name] != ' ')
      n_name++;
    has_labels = n_name < n_line && text[n_name] == '{';
    if (text[0] == '#')
      n_name = n_line;
    (void)tnk__buf_append(out, text, n_name);
    if (text[0] != '#') {
      (void)tnk__buf_printf(out, "{worker=\"%s\"%s", worker,
                            has_labels ? "," : "}");
      n_name += (size_t)has_labels;
      (void)tnk__buf_append(out, text + n_name, n_line - n_name);
    }
    text += n_line;
    n -= n_line;
  }
}

static void put_all(const tnk_gateway_t *gateway, tnk__buf_t *out) {
  tnk__buf_t plain;

  tnk__buf_init(&plain, &gateway->alloc, MAX_BODY);
  tnk__gw_metrics_put(&gateway->metrics, tnk__gw_metrics_model(gateway),
                      &plain);
  put_state(gateway, &plain);
  if (plain.err != TNK_OK)
    out->err = plain.err;
  else if (gateway->worker[0] == '\0')
    (void)tnk__buf_append(out, plain.data, plain.len);
  else
    put_label((const char *)plain.data, plain.len, gateway->worker, out);
  tnk__buf_deinit(&plain);
}

void tnk__gw_scrape(const tnk__gw_call_t *call) {
  tnk__buf_t body;
  uint8_t *data;
  size_t n = 0;

  tnk__buf_init(&body, &call->gateway->alloc, MAX_BODY);
  put_all(call->gateway, &body);
  if (body.err != TNK_OK) {
    tnk__gw_call_refuse(call, 500, NULL, "%s", tnk_strerror(body.err));
    tnk__buf_deinit(&body);
    return;
  }
  data = tnk__buf_take(&body, &n);
  tnk__srv_req_reply(call->req, 200, "text/plain; version=0.0.4; charset=utf-8",
                     NULL, data, n);
}
