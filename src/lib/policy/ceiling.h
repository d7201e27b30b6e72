/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_POLICY_CEILING_H
#define TNK_LIB_POLICY_CEILING_H

#include <stddef.h>
#include <stdint.h>

/*
 * The number of connections to one origin that may be open, where a proxy or
 * server refuses more. When a connection is refused, the number of working
 * connections becomes the limit. Later the limit rises, slowly at first and
 * faster while no connection is refused.
 */
typedef struct {
  size_t max;       /* SIZE_MAX: no connection was refused yet */
  size_t step;      /* size of the next rise */
  uint64_t next_ms; /* time of the next rise */
  uint64_t pause_ms;
  int has_risen; /* since the last refusal that counted */
} tnk__ceiling_t;

void tnk__ceiling_init(tnk__ceiling_t *ceiling);
int tnk__ceiling_is_set(const tnk__ceiling_t *ceiling);
/* Record that a new connection was refused while n others worked. n is 0 if
 * this process has none and others exist that are counted elsewhere. `u` is
 * uniform in [0, 1). */
void tnk__ceiling_refused(tnk__ceiling_t *ceiling, size_t n, uint64_t now_ms,
                          double u);
/* The number of connections that may be open now. Called when one more is
 * wanted; raises the limit when it is time. */
size_t tnk__ceiling_max(tnk__ceiling_t *ceiling, uint64_t now_ms);
/* Time until the limit may rise. */
uint64_t tnk__ceiling_wait_ms(const tnk__ceiling_t *ceiling, uint64_t now_ms);

/* The number of n_places connections that long polls may use, so that short
 * requests find a free one. The second function gives the share of polls for
 * samples. At least one, unless a short request waits for the only
 * connection. */
size_t tnk__ceiling_polls(size_t n_places, int is_short_waiting);
size_t tnk__ceiling_sample_polls(size_t n_places, int is_short_waiting);

#endif
