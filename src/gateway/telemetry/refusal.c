/* SPDX-License-Identifier: MIT */
#include "gateway/telemetry/refusal.h"

#include <string.h>

#include "gateway/telemetry/span.h"

enum {
  MS_EACH = 100, /* a span in this time, in the long run */
  MOST_AT_ONCE = 100
};

/* Returns whether another span may be made, which is then counted. */
static int is_permitted(tnk__gw_refusals_t *refusals, uint64_t now_ms) {
  const uint64_t most = (uint64_t)MS_EACH * MOST_AT_ONCE;

  refusals->credit_ms += now_ms - refusals->counted_ms;
  if (refusals->credit_ms > most || refusals->counted_ms == 0)
    refusals->credit_ms = most;
  refusals->counted_ms = now_ms;
  if (refusals->credit_ms < MS_EACH)
    return 0;
  refusals->credit_ms -= MS_EACH;
  return 1;
}

void tnk__gw_refusal_end(tnk_otlp_t *otlp, tnk__gw_refusals_t *refusals,
                         const tnk__gw_refusal_t *refusal) {
  const tnk__gw_ask_t nothing = {.body = NULL};
  tnk__gw_end_of_t end = {.status = refusal->status,
                          .took_ns = refusal->took_ms * 1000000};
  const tnk__gw_span_of_t of = {
      .end = &end, .ask = &nothing, .model = refusal->model};
  tnk_otlp_span_t span;

  if (otlp == NULL || refusal->status < 400 ||
      strcmp(refusal->method, "POST") != 0 ||
      !tnk__gw_span_is_route(refusal->path, &end.api) ||
      !is_permitted(refusals, refusal->now_ms))
    return;
  tnk_otlp_begin(&span, otlp, NULL);
  span.start_ns -= end.took_ns;
  tnk__gw_span_end(otlp, &span, &of);
}
