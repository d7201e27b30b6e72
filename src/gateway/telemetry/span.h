/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_TELEMETRY_SPAN_H
#define TNK_GATEWAY_TELEMETRY_SPAN_H

#include "gateway/telemetry/metrics.h"
#include "gateway/wire/answer.h"
#include "tnk/otlp.h"

/*
 * The span of a request for a sample, by OpenTelemetry's conventions for
 * generative AI. It has no text of a prompt or of an answer, and no key.
 */
typedef struct {
  const tnk__gw_end_of_t *end;
  const tnk__gw_ask_t *ask; /* its numbers, if the body could be read */
  const char *model;        /* the name for clients */
  const char *session;
  uint64_t number;     /* of the answer; 0: none */
  unsigned ends;       /* a bit for each tnk__gw_end_t of the choices */
  size_t n_cached;     /* tokens of the prompt */
  uint32_t n_attempts; /* samples, of which the last one was sent */
  uint32_t version;    /* of the weights; 0: none */
  int is_repeat;       /* it got the answer of another request */
} tnk__gw_span_of_t;

/* Returns whether a path, without a session, is that of a request for a sample.
 * A slash at its end is ignored. */
int tnk__gw_span_is_route(const char *path, tnk__gw_api_t *api);

void tnk__gw_span_end(tnk_otlp_t *otlp, const tnk_otlp_span_t *span,
                      const tnk__gw_span_of_t *of);

#endif
