/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_OTLP_ENCODE_H
#define TNK_LIB_OTLP_ENCODE_H

#include "lib/base/buf.h"
#include "tnk/otlp.h"

/*
 * Messages of OpenTelemetry's protobuf definitions. A request has one resource
 * and one scope. Spans and metrics are encoded when they arise, each as a field
 * of its scope, so a request is a head and a concatenation of them. Both kinds
 * of requests have the same field numbers down to the scope.
 *
 * Failures are in the buffer's `err`. Strings that are not UTF-8 are repaired,
 * because decoders reject a request with one.
 */

/* A span, with times since 1970 in nanoseconds. */
typedef struct {
  const tnk_otlp_span_t *span;
  const tnk_otlp_end_t *end;
  uint64_t start_unix_ns;
  uint64_t end_unix_ns;
  const tnk__buf_t *events; /* encoded events, or NULL */
  uint32_t n_dropped_events;
} tnk__otlp_record_t;

void tnk__otlp_put_span(tnk__buf_t *out, const tnk__otlp_record_t *record);
/* Write an event of a span. */
void tnk__otlp_put_event(tnk__buf_t *out, const char *name, uint64_t unix_ns,
                         const tnk_otlp_attribute_t *attributes, size_t n);

/* The time span of all values of a metric, since 1970 in nanoseconds. */
typedef struct {
  uint64_t start_unix_ns;
  uint64_t unix_ns;
} tnk__otlp_period_t;

void tnk__otlp_put_numbers(tnk__buf_t *out, const tnk__otlp_period_t *period,
                           const tnk_otlp_metric_t *metric,
                           const tnk_otlp_number_t *points, size_t n);
void tnk__otlp_put_histograms(tnk__buf_t *out, const tnk__otlp_period_t *period,
                              const tnk_otlp_metric_t *metric,
                              const tnk_otlp_histogram_t *points, size_t n);

/* Write the attributes of a resource, for tnk__otlp_put_head(). */
void tnk__otlp_put_resource(tnk__buf_t *out,
                            const tnk_otlp_attribute_t *attributes, size_t n);
/* Write the head of a request with n_items bytes of spans or metrics. They must
 * follow. */
void tnk__otlp_put_head(tnk__buf_t *out, const tnk__buf_t *resource,
                        size_t n_items);

#endif
