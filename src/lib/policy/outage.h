#ifndef TNK_LIB_POLICY_OUTAGE_H
#define TNK_LIB_POLICY_OUTAGE_H

#include <stdint.h>

/* An origin is unreachable after failures for this long without any
 * response. */
#define TNK__OUTAGE_MS 5000
/* The origin refuses all requests after refusals for this long without a
 * success. */
#define TNK__REFUSALS_MS 30000
/* Interval of the probes that are sent during an outage, before their regular
 * delay. */
#define TNK__OUTAGE_PROBE_MS 2000

/*
 * Whether an origin responds at all. Any status is a response. Connections that
 * were refused, broken or silent for too long are failures. The same state also
 * serves origins that only report that they are unable to serve.
 */
typedef struct {
  uint64_t since_ms; /* first failure with no response after it */
  int is_failing;
  int is_out;
} tnk__outage_t;

/* Record an attempt without a response. Returns 1 if the origin is out from now
 * on, because nothing was received for least_ms. */
int tnk__outage_failed(tnk__outage_t *outage, uint64_t now_ms,
                       uint64_t least_ms);
/* Record a response. Returns 1 if this ends an outage. */
int tnk__outage_answered(tnk__outage_t *outage);

#endif
