#ifndef TNK_LIB_POLICY_STALL_H
#define TNK_LIB_POLICY_STALL_H

#include <stdint.h>

/* Silence before the first notice. Each further notice doubles it. */
#define TNK__STALL_MS 60000

/* When to report that an operation has not progressed. */
typedef struct {
  uint64_t moved_ms;
  uint64_t notice_ms; /* time without progress until the next notice */
} tnk__stall_t;

/* Record a start or progress. */
void tnk__stall_moved(tnk__stall_t *stall, uint64_t now_ms);
/* Returns 1 if a notice is due. Thresholds that passed between two calls cause
 * one notice together. */
int tnk__stall_due(tnk__stall_t *stall, uint64_t now_ms);

#endif
