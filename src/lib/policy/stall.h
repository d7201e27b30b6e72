#ifndef TNK_LIB_POLICY_STALL_H
#define TNK_LIB_POLICY_STALL_H

#include <stdint.h>

#define TNK__STALL_MS                                                          \
  60000 /* of the first notice; each next one doubles it                       \
         */

/* When to say that something has not moved for long. */
typedef struct {
  uint64_t moved_ms;
  uint64_t notice_ms; /* how long without a move until the next notice */
} tnk__stall_t;

/* It began, or moved. */
void tnk__stall_moved(tnk__stall_t *stall, uint64_t now_ms);
/* 1: say so now. Once for each threshold that has been passed, however late
 * this is asked. */
int tnk__stall_due(tnk__stall_t *stall, uint64_t now_ms);

#endif
