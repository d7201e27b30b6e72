/* SPDX-License-Identifier: MIT */
/*
 * Limits of a key. A request reserves the most that it can use before it is
 * sampled, and returns the rest when it ends. So requests in progress together
 * cannot exceed a limit, however many connections they come from.
 */
#include <string.h>

#include "gateway/keys/grant.h"
#include "lib/base/alloc.h"
#include "tnk/error.h"

enum { MINUTE_MS = 60000 };

/* ---- Admission ---- */

/* Add what has accrued since the last request, up to one minute's. */
static void accrue(const tnk__gw_grants_t *grants, tnk__gw_grant_t *grant) {
  uint64_t rate = grant->limits.max_per_minute;
  int64_t now = grants->now_ms();
  int64_t elapsed = now - grant->credit_ms;

  /* The time of day may be set back. */
  if (elapsed > 0)
    grant->credit +=
        rate * (uint64_t)(elapsed < MINUTE_MS ? elapsed : MINUTE_MS);
  if (grant->credit > rate * MINUTE_MS)
    grant->credit = rate * MINUTE_MS;
  grant->credit_ms = now;
}

tnk__gw_entry_t tnk__gw_grant_enter(tnk__gw_grants_t *grants,
                                    tnk__gw_grant_t *grant, uint32_t *wait_s) {
  const tnk__gw_limits_t *limits = &grant->limits;

  *wait_s = 1;
  if (limits->expires_s != 0 && grants->now_ms() / 1000 >= limits->expires_s)
    return TNK__GW_EXPIRED;
  if (limits->max_concurrent > 0 && grant->n_active >= limits->max_concurrent)
    return TNK__GW_TOO_MANY;
  if (limits->max_per_minute > 0) {
    accrue(grants, grant);
    if (grant->credit < MINUTE_MS) {
      *wait_s += (uint32_t)((MINUTE_MS - grant->credit) /
                            limits->max_per_minute / 1000);
      return TNK__GW_TOO_FAST;
    }
    grant->credit -= MINUTE_MS;
  }
  grant->n_active++;
  return TNK__GW_ENTERED;
}

void tnk__gw_grant_leave(tnk__gw_grants_t *grants, tnk__gw_grant_t *grant) {
  if (--grant->n_active == 0 && grant->is_revoked)
    tnk__free(grants->alloc, grant);
}

/* ---- Totals ---- */

int tnk__gw_grant_reserve(tnk__gw_grants_t *grants, tnk__gw_grant_t *grant,
                          const tnk__gw_use_t *most, const char **what,
                          uint64_t *left) {
  const tnk__gw_limits_t *limits = &grant->limits;
  const tnk__gw_use_t before = grant->used;
  const struct {
    const char *name;
    uint64_t max;
    uint64_t used;
    uint64_t most;
  } all[] = {
      {"requests", limits->max_requests, before.n_requests, most->n_requests},
      {"tokens", limits->max_tokens, before.n_tokens, most->n_tokens},
      {"turns", limits->max_turns, before.n_turns, most->n_turns},
      {"USD", limits->max_pico, before.pico, most->pico}};
  int err;

  for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
    /* Without a limit, the largest number that a line of the record can have is
     * one. */
    uint64_t max = all[i].max > 0 ? all[i].max : INT64_MAX;

    *what = all[i].name;
    *left = all[i].used < max ? max - all[i].used : 0;
    if (all[i].most > *left)
      return TNK_EBUDGET;
  }
  grant->used.n_requests += most->n_requests;
  grant->used.n_tokens += most->n_tokens;
  grant->used.n_turns += most->n_turns;
  grant->used.pico += most->pico;
  /* If this process is killed, the next one counts the reservation as used. */
  err = tnk__gw_grant_put_use(grants, grant);
  if (err != TNK_OK)
    grant->used = before;
  return err;
}

void tnk__gw_grant_settle(tnk__gw_grants_t *grants, tnk__gw_grant_t *grant,
                          const tnk__gw_use_t *most,
                          const tnk__gw_use_t *used) {
  if (memcmp(most, used, sizeof(*most)) == 0)
    return;
  grant->used.n_requests -= most->n_requests - used->n_requests;
  grant->used.n_tokens -= most->n_tokens - used->n_tokens;
  grant->used.n_turns -= most->n_turns - used->n_turns;
  grant->used.pico -= most->pico - used->pico;
  /* Without this line the next process counts too much rather than too
   * little. */
  (void)tnk__gw_grant_put_use(grants, grant);
}
