/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_POLICY_WINDOW_H
#define TNK_LIB_POLICY_WINDOW_H

#include <stddef.h>
#include <stdint.h>

/*
 * The number of submissions that may be in flight. On a short path a few keep a
 * server busy. On a long path their number limits the rate.
 *
 * The limit is reviewed after each round of as many responses. It doubles if
 * all slots were in use and few responses took much longer than the shortest
 * recent one. Then they do not wait for each other. TNK__WINDOW_PER_S caps the
 * growth for a path. The limit falls when responses wait for each other, and
 * when a submission fails.
 */
#define TNK__WINDOW_MIN 64
#define TNK__WINDOW_MAX 1024
#define TNK__WINDOW_PER_S 8000

typedef struct {
  size_t limit;
  /* The shortest response time, in this period and in the previous one. */
  uint64_t least_ms[2];
  uint64_t turned_ms; /* when the current period began */
  uint64_t failed_ms; /* when a failure lowered the limit */
  size_t n;           /* responses in this round */
  size_t n_late;      /* responses that took long */
  size_t n_short;     /* responses while other submissions waited */
} tnk__window_t;

void tnk__window_init(tnk__window_t *window);
/* Record a response after `took_ms`. is_short: other submissions were waiting
 * for a slot. Returns the limit. */
size_t tnk__window_answered(tnk__window_t *window, uint64_t took_ms,
                            int is_short, uint64_t now_ms);
/* Record a failed submission. Returns the limit. */
size_t tnk__window_failed(tnk__window_t *window, uint64_t now_ms);

#endif
