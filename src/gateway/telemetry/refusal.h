/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_TELEMETRY_REFUSAL_H
#define TNK_GATEWAY_TELEMETRY_REFUSAL_H

#include <stdint.h>

#include "tnk/otlp.h"

/*
 * Spans of requests for samples that were refused before they were read, for
 * example without a key. Anybody can send such requests, so their number is
 * limited: they must not displace the spans of others from the exporter's
 * queue. They begin a trace of their own, because a header traceparent would
 * let a client without a key choose what is exported.
 */

/* How many may be made. Zeroed at the begin. */
typedef struct {
  uint64_t credit_ms;
  uint64_t counted_ms; /* time of the last one; 0: none */
} tnk__gw_refusals_t;

typedef struct {
  const char *method;
  const char *path;  /* after the session */
  const char *model; /* the name for clients */
  int status;
  uint64_t took_ms;
  uint64_t now_ms; /* monotonic, above 0 */
} tnk__gw_refusal_t;

/* Export the span of a request, if it was one for a sample. `otlp` may be
 * NULL. */
void tnk__gw_refusal_end(tnk_otlp_t *otlp, tnk__gw_refusals_t *refusals,
                         const tnk__gw_refusal_t *refusal);

#endif
