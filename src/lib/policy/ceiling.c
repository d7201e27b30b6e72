/* SPDX-License-Identifier: MIT */
/*
 * The limit is unset until a connection is refused while others work. Then it
 * drops at once to the number that work. It rises by `step` each time `next_ms`
 * passes, and the step doubles. A refusal resets the step to 1 and doubles the
 * pause before the next rise. At HIGH the limit is unset again.
 */
#include "lib/policy/ceiling.h"

#include "lib/policy/bounds.h"

enum { HIGH = 8192, MAX_RESERVE = 64 };

void tnk__ceiling_init(tnk__ceiling_t *ceiling) {
  *ceiling = (tnk__ceiling_t){.max = SIZE_MAX};
}

int tnk__ceiling_is_set(const tnk__ceiling_t *ceiling) {
  return ceiling->max != SIZE_MAX;
}

void tnk__ceiling_refused(tnk__ceiling_t *ceiling, size_t n, uint64_t now_ms,
                          double u) {
  const int is_new = ceiling->max == SIZE_MAX;

  if (n < ceiling->max)
    ceiling->max = n;
  /* Several concurrent connection attempts are refused together, which counts
   * once. */
  if (!is_new && now_ms < ceiling->next_ms && !ceiling->has_risen)
    return;
  ceiling->has_risen = 0;
  ceiling->pause_ms = is_new ? TNK__PAUSE_MS : ceiling->pause_ms * 2;
  if (ceiling->pause_ms > TNK__MAX_PAUSE_MS)
    ceiling->pause_ms = TNK__MAX_PAUSE_MS;
  ceiling->step = 1;
  ceiling->next_ms = now_ms + ceiling->pause_ms +
                     (uint64_t)((double)ceiling->pause_ms * 0.25 * u);
}

size_t tnk__ceiling_max(tnk__ceiling_t *ceiling, uint64_t now_ms) {
  if (ceiling->max == SIZE_MAX || now_ms < ceiling->next_ms)
    return ceiling->max;
  ceiling->max += ceiling->step;
  ceiling->has_risen = 1;
  ceiling->step *= 2;
  ceiling->next_ms = now_ms + TNK__PAUSE_MS;
  if (ceiling->max >= HIGH)
    tnk__ceiling_init(ceiling);
  return ceiling->max;
}

uint64_t tnk__ceiling_wait_ms(const tnk__ceiling_t *ceiling, uint64_t now_ms) {
  return ceiling->next_ms > now_ms ? ceiling->next_ms - now_ms : 0;
}

static size_t reserve_of(size_t n_places, size_t part) {
  const size_t n = n_places / part + 1;

  return n < MAX_RESERVE ? n : MAX_RESERVE;
}

size_t tnk__ceiling_polls(size_t n_places, int is_short_waiting) {
  if (n_places <= 1)
    return is_short_waiting ? 0 : n_places;
  return n_places - reserve_of(n_places - 1, 4);
}

size_t tnk__ceiling_sample_polls(size_t n_places, int is_short_waiting) {
  const size_t n = tnk__ceiling_polls(n_places, is_short_waiting);

  return n <= 1 ? n : n - reserve_of(n - 1, 8);
}
