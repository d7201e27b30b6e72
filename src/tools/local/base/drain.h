/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_BASE_DRAIN_H
#define TNK_TOOLS_LOCAL_BASE_DRAIN_H

#include <stddef.h>
#include <stdint.h>

/* An active client polls for its result within this time, also if it has no
 * connection. */
enum { LOCAL_FETCH_MS = 5000 };

/* The time that a draining server waits for its clients. */
typedef struct {
  uint64_t absence_ms; /* limit without any connection */
  uint64_t seen_ms;    /* last time with a connection */
} local_drain_t;

static inline void local_drain_begin(local_drain_t *drain, uint64_t now,
                                     uint64_t absence_ms) {
  drain->absence_ms = absence_ms;
  drain->seen_ms = now;
}

/* Returns whether clients may still fetch results. Call it repeatedly. */
static inline int local_drain_waits(local_drain_t *drain, uint64_t now,
                                    size_t n_conns, int has_work) {
  if (n_conns > 0)
    drain->seen_ms = now;
  return has_work && now - drain->seen_ms < drain->absence_ms;
}

#endif
