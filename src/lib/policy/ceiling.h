#ifndef TNK_LIB_POLICY_CEILING_H
#define TNK_LIB_POLICY_CEILING_H

#include <stddef.h>
#include <stdint.h>

/*
 * How many connections to one origin may be open, where something on the way
 * limits their number and refuses more. What works when one is refused is what
 * is granted; more is tried again later, a little at first and more each time
 * that nobody refuses.
 */
typedef struct {
  size_t max;       /* SIZE_MAX: nobody has refused any */
  size_t step;      /* of the next rise */
  uint64_t next_ms; /* of it */
  uint64_t pause_ms;
  int has_risen; /* since the last refusal that counted */
} tnk__ceiling_t;

void tnk__ceiling_init(tnk__ceiling_t *ceiling);
int tnk__ceiling_is_set(const tnk__ceiling_t *ceiling);
/* Note that a new connection was refused while n others worked, or none here
 * but some that are counted elsewhere; u is uniform in [0, 1). */
void tnk__ceiling_refused(tnk__ceiling_t *ceiling, size_t n, uint64_t now_ms,
                          double u);
/* How many may be open now, for somebody who wants one more than there are: it
 * rises when it is time. */
size_t tnk__ceiling_max(tnk__ceiling_t *ceiling, uint64_t now_ms);
/* How long until it may rise. */
uint64_t tnk__ceiling_wait_ms(const tnk__ceiling_t *ceiling, uint64_t now_ms);

/* Of so many places, how many long polls may hold, so that short requests find
 * one; and of those, how many the polls of samples may. At least one, unless
 * the only place is wanted for a short request. */
size_t tnk__ceiling_polls(size_t n_places, int is_short_waiting);
size_t tnk__ceiling_sample_polls(size_t n_places, int is_short_waiting);

#endif
