#ifndef TNK_LIB_POLICY_OUTAGE_H
#define TNK_LIB_POLICY_OUTAGE_H

#include <stdint.h>

/* What fails for this long without an answer in between, fails for want of
 * anybody who answers. */
#define TNK__OUTAGE_MS 5000
/* What is refused for this long, and nothing granted in between, is refused to
 * all. */
#define TNK__REFUSALS_MS 30000
/* Between two attempts that go ahead of their time to see whether it is over.
 */
#define TNK__OUTAGE_PROBE_MS 2000

/*
 * Whether anything of an origin answers at all. Any status is an answer; a
 * connection that was refused, broken, or silent for too long is none. The same
 * serves for an origin that answers nothing but that it cannot.
 */
typedef struct {
  uint64_t since_ms; /* the first failure with no answer after it */
  int is_failing;
  int is_out;
} tnk__outage_t;

/* An attempt has ended without an answer. 1: it is out from now on, as nothing
 * has been answered for least_ms. */
int tnk__outage_failed(tnk__outage_t *outage, uint64_t now_ms,
                       uint64_t least_ms);
/* Something was answered. 1: it was out, and is no more. */
int tnk__outage_answered(tnk__outage_t *outage);

#endif
