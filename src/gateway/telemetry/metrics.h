/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_TELEMETRY_METRICS_H
#define TNK_GATEWAY_TELEMETRY_METRICS_H

#include "gateway/wire/ask.h"
#include "lib/base/buf.h"
#include "tnk/otlp.h"

/*
 * Metrics for Prometheus. The names are those of OpenTelemetry's conventions
 * for generative AI, which other gateways use too. The number of time series is
 * bounded: no label has a session, a key or a text of a client.
 */

/* Bounds of a histogram, and the bucket above them. */
enum { TNK__GW_BUCKETS = 15 };

typedef struct {
  uint64_t n[TNK__GW_BUCKETS];
  uint64_t sum; /* of nanoseconds, or of tokens */
} tnk__gw_histogram_t;

typedef enum {
  TNK__GW_OPERATION_CHAT = 0,
  TNK__GW_OPERATION_TEXT, /* completion of a plain prompt */
  TNK__GW_OPERATIONS
} tnk__gw_operation_t;

/* No error, and the values of `error_type`. */
enum { TNK__GW_OUTCOMES = 16 };

typedef struct {
  tnk__gw_histogram_t durations[TNK__GW_OPERATIONS][TNK__GW_OUTCOMES];
  tnk__gw_histogram_t firsts[TNK__GW_OPERATIONS];    /* times to first token */
  tnk__gw_histogram_t tokens[TNK__GW_OPERATIONS][2]; /* input, output */
} tnk__gw_metrics_t;

/* Status of a request whose client has disconnected. */
enum { TNK__GW_CLIENT_GONE = -1 };

/* The end of a request for a sample. */
typedef struct {
  tnk__gw_api_t api;
  int status; /* of HTTP, or TNK__GW_CLIENT_GONE */
  int is_stream;
  uint64_t took_ns;
  uint64_t n_prompt; /* tokens; only read if it was answered */
  uint64_t n_sampled;
} tnk__gw_end_of_t;

void tnk__gw_metrics_add(tnk__gw_metrics_t *metrics,
                         const tnk__gw_end_of_t *end);
/* Write the histograms. `model` is a name for clients; it may be any text. */
void tnk__gw_metrics_put(const tnk__gw_metrics_t *metrics, const char *model,
                         tnk__buf_t *out);
/* The same histograms, with the names of OpenTelemetry's metrics. */
void tnk__gw_metrics_export(const tnk__gw_metrics_t *metrics, const char *model,
                            tnk_otlp_metrics_t *out);
/* The values of `gen_ai.operation.name`, and of `error.type`: "" for success.
 */
const char *tnk__gw_operation_name(tnk__gw_api_t api);
const char *tnk__gw_error_type(int status);
/* Write one value other than a histogram, with its help. `labels` is "", or
 * labels with their braces. `type` is "counter" or "gauge". */
void tnk__gw_metrics_put_value(tnk__buf_t *out, const char *name,
                               const char *type, const char *help,
                               const char *labels, uint64_t value);

#endif
