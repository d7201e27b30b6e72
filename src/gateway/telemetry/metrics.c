/* SPDX-License-Identifier: MIT */
#include "gateway/telemetry/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/utf8.h"

/* ---- Buckets ---- */

typedef struct {
  uint64_t most;
  const char *text;
} bound_t;

typedef struct {
  const char *name;
  const char *otlp_name;
  const char *help;
  const bound_t *bounds; /* TNK__GW_BUCKETS - 1 of them */
  int is_time;
} kind_t;

#define MS UINT64_C(1000000)
/* The bounds that the conventions recommend. */
static const bound_t times[TNK__GW_BUCKETS - 1] = {
    {10 * MS, "0.01"},     {20 * MS, "0.02"},     {40 * MS, "0.04"},
    {80 * MS, "0.08"},     {160 * MS, "0.16"},    {320 * MS, "0.32"},
    {640 * MS, "0.64"},    {1280 * MS, "1.28"},   {2560 * MS, "2.56"},
    {5120 * MS, "5.12"},   {10240 * MS, "10.24"}, {20480 * MS, "20.48"},
    {40960 * MS, "40.96"}, {81920 * MS, "81.92"}};
#undef MS

static const bound_t counts[TNK__GW_BUCKETS - 1] = {{1, "1"},
                                                    {4, "4"},
                                                    {16, "16"},
                                                    {64, "64"},
                                                    {256, "256"},
                                                    {1024, "1024"},
                                                    {4096, "4096"},
                                                    {16384, "16384"},
                                                    {65536, "65536"},
                                                    {262144, "262144"},
                                                    {1048576, "1048576"},
                                                    {4194304, "4194304"},
                                                    {16777216, "16777216"},
                                                    {67108864, "67108864"}};

static const kind_t durations = {
    "gen_ai_server_request_duration", "gen_ai.server.request.duration",
    "Time from a request to its answer, in seconds.", times, 1};
static const kind_t firsts = {
    "gen_ai_server_time_to_first_token", "gen_ai.server.time_to_first_token",
    "Time from a streamed request to its first token, in seconds.", times, 1};
static const kind_t tokens = {
    "gen_ai_client_token_usage", "gen_ai.client.token.usage",
    "Tokens of prompts and of answers, of answered requests.", counts, 0};

static void add(tnk__gw_histogram_t *histogram, const bound_t *bounds,
                uint64_t value) {
  size_t i = 0;

  while (i < TNK__GW_BUCKETS - 1 && value > bounds[i].most)
    i++;
  histogram->n[i]++;
  histogram->sum += value;
}

/* ---- Outcomes ---- */

/* The first one is success, and the last one stands for all others. */
static const struct {
  int status;
  const char *error;
} outcomes[TNK__GW_OUTCOMES] = {
    {200, ""},    {TNK__GW_CLIENT_GONE, "client_gone"},
    {400, "400"}, {401, "401"},
    {402, "402"}, {403, "403"},
    {404, "404"}, {408, "408"},
    {409, "409"}, {413, "413"},
    {429, "429"}, {500, "500"},
    {502, "502"}, {503, "503"},
    {504, "504"}, {0, "_OTHER"}};

static size_t outcome_of(int status) {
  size_t i = 0;

  while (i < TNK__GW_OUTCOMES - 1 && outcomes[i].status != status)
    i++;
  return i;
}

static tnk__gw_operation_t operation_of(tnk__gw_api_t api) {
  return api == TNK__GW_COMPLETION ? TNK__GW_OPERATION_TEXT
                                   : TNK__GW_OPERATION_CHAT;
}

const char *tnk__gw_error_type(int status) {
  return outcomes[outcome_of(status)].error;
}

void tnk__gw_metrics_add(tnk__gw_metrics_t *metrics,
                         const tnk__gw_end_of_t *end) {
  const tnk__gw_operation_t operation = operation_of(end->api);

  add(&metrics->durations[operation][outcome_of(end->status)], times,
      end->took_ns);
  if (end->status != 200)
    return;
  add(&metrics->tokens[operation][0], counts, end->n_prompt);
  add(&metrics->tokens[operation][1], counts, end->n_sampled);
  /* The service answers with all tokens at once. */
  if (end->is_stream)
    add(&metrics->firsts[operation], times, end->took_ns);
}

/* ---- Writing ---- */

static const char *const operations[TNK__GW_OPERATIONS] = {
    [TNK__GW_OPERATION_CHAT] = "chat",
    [TNK__GW_OPERATION_TEXT] = "text_completion"};

const char *tnk__gw_operation_name(tnk__gw_api_t api) {
  return operations[operation_of(api)];
}

typedef struct {
  const char *operation;
  const char *model; /* escaped */
  const char *name;  /* of one more label, or NULL */
  const char *value;
} labels_t;

enum { MAX_MODEL = 200 };

/* Escape the value of a label. */
static void write_model(char out[2 * MAX_MODEL + 1], const char *model) {
  char text[MAX_MODEL + 1];
  size_t n = 0;

  (void)snprintf(text, sizeof(text), "%s", model);
  tnk__utf8_repair(text);
  for (const char *at = text; *at != '\0'; at++) {
    if (*at == '"' || *at == '\\' || *at == '\n')
      out[n++] = '\\';
    out[n++] = *at;
    if (*at == '\n')
      out[n - 1] = 'n';
  }
  out[n] = '\0';
}

static void put_head(tnk__buf_t *out, const char *name, const char *type,
                     const char *help) {
  tnk__buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_labels(tnk__buf_t *out, const labels_t *labels) {
  tnk__buf_printf(out,
                  "gen_ai_operation_name=\"%s\",gen_ai_request_model=\"%s\"",
                  labels->operation, labels->model);
  if (labels->name != NULL)
    tnk__buf_printf(out, ",%s=\"%s\"", labels->name, labels->value);
}

static void put_histogram(tnk__buf_t *out, const kind_t *kind,
                          const labels_t *labels,
                          const tnk__gw_histogram_t *histogram) {
  uint64_t n = 0;

  for (size_t i = 0; i < TNK__GW_BUCKETS; i++) {
    n += histogram->n[i];
    tnk__buf_printf(out, "%s_bucket{", kind->name);
    put_labels(out, labels);
    tnk__buf_printf(out, ",le=\"%s\"} %" PRIu64 "\n",
                    i < TNK__GW_BUCKETS - 1 ? kind->bounds[i].text : "+Inf", n);
  }
  tnk__buf_printf(out, "%s_sum{", kind->name);
  put_labels(out, labels);
  if (kind->is_time)
    tnk__buf_printf(out, "} %" PRIu64 ".%09" PRIu64 "\n",
                    histogram->sum / 1000000000, histogram->sum % 1000000000);
  else
    tnk__buf_printf(out, "} %" PRIu64 "\n", histogram->sum);
  tnk__buf_printf(out, "%s_count{", kind->name);
  put_labels(out, labels);
  tnk__buf_printf(out, "} %" PRIu64 "\n", n);
}

static int is_empty(const tnk__gw_histogram_t *histogram) {
  uint64_t n = 0;

  for (size_t i = 0; i < TNK__GW_BUCKETS; i++)
    n += histogram->n[i];
  return n == 0;
}

/* Errors that have not happened are not shown. */
static void put_durations(const tnk__gw_metrics_t *metrics, size_t operation,
                          labels_t labels, tnk__buf_t *out) {
  for (size_t i = 0; i < TNK__GW_OUTCOMES; i++) {
    const tnk__gw_histogram_t *histogram = &metrics->durations[operation][i];

    if (i > 0 && is_empty(histogram))
      continue;
    labels.name = i > 0 ? "error_type" : NULL;
    labels.value = outcomes[i].error;
    put_histogram(out, &durations, &labels, histogram);
  }
}

static void put_tokens(const tnk__gw_metrics_t *metrics, size_t operation,
                       labels_t labels, tnk__buf_t *out) {
  static const char *const types[2] = {"input", "output"};

  labels.name = "gen_ai_token_type";
  for (size_t i = 0; i < 2; i++) {
    labels.value = types[i];
    put_histogram(out, &tokens, &labels, &metrics->tokens[operation][i]);
  }
}

void tnk__gw_metrics_put(const tnk__gw_metrics_t *metrics, const char *model,
                         tnk__buf_t *out) {
  char name[2 * MAX_MODEL + 1];
  labels_t labels[TNK__GW_OPERATIONS];

  write_model(name, model);
  for (size_t i = 0; i < TNK__GW_OPERATIONS; i++)
    labels[i] = (labels_t){.operation = operations[i], .model = name};
  put_head(out, durations.name, "histogram", durations.help);
  for (size_t i = 0; i < TNK__GW_OPERATIONS; i++)
    put_durations(metrics, i, labels[i], out);
  put_head(out, firsts.name, "histogram", firsts.help);
  for (size_t i = 0; i < TNK__GW_OPERATIONS; i++)
    put_histogram(out, &firsts, &labels[i], &metrics->firsts[i]);
  put_head(out, tokens.name, "histogram", tokens.help);
  for (size_t i = 0; i < TNK__GW_OPERATIONS; i++)
    put_tokens(metrics, i, labels[i], out);
}

/* ---- OTLP ---- */

enum { MAX_POINTS = TNK__GW_OPERATIONS * TNK__GW_OUTCOMES, N_ATTRIBUTES = 4 };

/* The points of one metric. */
typedef struct {
  const kind_t *kind;
  const char *model;
  double bounds[TNK__GW_BUCKETS - 1];
  tnk_otlp_attribute_t attributes[MAX_POINTS][N_ATTRIBUTES];
  tnk_otlp_histogram_t items[MAX_POINTS];
  size_t n;
} points_t;

/* `name` and `value` are of one more attribute, or NULL. */
static void add_point(points_t *points, size_t operation,
                      const tnk__gw_histogram_t *histogram, const char *name,
                      const char *value) {
  tnk_otlp_attribute_t *attributes = points->attributes[points->n];
  const double unit = points->kind->is_time ? 1e9 : 1;

  attributes[0] = (tnk_otlp_attribute_t){.key = "gen_ai.operation.name",
                                         .text = operations[operation]};
  attributes[1] =
      (tnk_otlp_attribute_t){.key = "gen_ai.provider.name", .text = "tinker"};
  attributes[2] = (tnk_otlp_attribute_t){.key = "gen_ai.request.model",
                                         .text = points->model};
  attributes[3] = (tnk_otlp_attribute_t){.key = name, .text = value};
  points->items[points->n++] =
      (tnk_otlp_histogram_t){.attributes = attributes,
                             .n_attributes = N_ATTRIBUTES,
                             .bounds = points->bounds,
                             .n_bounds = TNK__GW_BUCKETS - 1,
                             .counts = histogram->n,
                             .sum = (double)histogram->sum / unit};
}

static void begin_points(points_t *points, const kind_t *kind,
                         const char *model) {
  points->kind = kind;
  points->model = model;
  points->n = 0;
  for (size_t i = 0; i < TNK__GW_BUCKETS - 1; i++)
    points->bounds[i] =
        (double)kind->bounds[i].most / (kind->is_time ? 1e9 : 1);
}

static void put_points(const points_t *points, tnk_otlp_metrics_t *out) {
  const tnk_otlp_metric_t metric = {.name = points->kind->otlp_name,
                                    .unit =
                                        points->kind->is_time ? "s" : "{token}",
                                    .description = points->kind->help};

  if (points->n > 0)
    tnk_otlp_put_histograms(out, &metric, points->items, points->n);
}

void tnk__gw_metrics_export(const tnk__gw_metrics_t *metrics, const char *model,
                            tnk_otlp_metrics_t *out) {
  static const char *const types[2] = {"input", "output"};
  points_t points;

  begin_points(&points, &durations, model);
  for (size_t i = 0; i < TNK__GW_OPERATIONS; i++)
    for (size_t k = 0; k < TNK__GW_OUTCOMES; k++)
      if (!is_empty(&metrics->durations[i][k]))
        add_point(&points, i, &metrics->durations[i][k],
                  k > 0 ? "error.type" : NULL, outcomes[k].error);
  put_points(&points, out);
  begin_points(&points, &firsts, model);
  for (size_t i = 0; i < TNK__GW_OPERATIONS; i++)
    if (!is_empty(&metrics->firsts[i]))
      add_point(&points, i, &metrics->firsts[i], NULL, NULL);
  put_points(&points, out);
  begin_points(&points, &tokens, model);
  for (size_t i = 0; i < TNK__GW_OPERATIONS; i++)
    for (size_t k = 0; k < 2; k++)
      if (!is_empty(&metrics->tokens[i][k]))
        add_point(&points, i, &metrics->tokens[i][k], "gen_ai.token.type",
                  types[k]);
  put_points(&points, out);
}

void tnk__gw_metrics_put_value(tnk__buf_t *out, const char *name,
                               const char *type, const char *help,
                               const char *labels, uint64_t value) {
  put_head(out, name, type, help);
  tnk__buf_printf(out, "%s%s %" PRIu64 "\n", name, labels, value);
}
