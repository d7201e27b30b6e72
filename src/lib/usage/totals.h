#ifndef TNK_LIB_USAGE_TOTALS_H
#define TNK_LIB_USAGE_TOTALS_H

#include <stdint.h>

#include "tnk/usage.h"

/*
 * Counts of what was used, of a client, of a service, or of a run. They only
 * grow, and stay at the largest number where they would go over it.
 */
typedef struct {
  uint64_t prompt_tokens; /* of samples; those in `cached_tokens` too */
  uint64_t cached_tokens;
  uint64_t sampled_tokens;
  uint64_t trained_tokens;
  uint64_t unpriced_tokens; /* of all kinds, for which there was no price */
  uint64_t doubtful_tokens; /* beside those above: perhaps used, at most */
  uint64_t cost; /* in parts of TNK__USD, as far as there was a price */
  uint64_t doubtful_cost;
  uint64_t n_requests; /* of a client; a service's are its context's */
  uint64_t n_bytes_sent;
  uint64_t n_bytes_received;
} tnk__totals_t;

/* Money is counted in whole parts of a dollar, so that sums are exact: as many
 * make one. A token of 0.01 dollars a million costs 10,000. */
#define TNK__USD UINT64_C(1000000000000)

/* Tokens of one operation, by kind. */
typedef struct {
  uint64_t prompt;
  uint64_t cached; /* among those of the prompt */
  uint64_t sampled;
  uint64_t trained;
} tnk__use_t;

/* Sums and products that stay at UINT64_MAX. */
uint64_t tnk__sum(uint64_t a, uint64_t b);
uint64_t tnk__product(uint64_t a, uint64_t b);

/* The tokens of all kinds. */
uint64_t tnk__use_tokens(const tnk__use_t *use);
void tnk__totals_use(tnk__totals_t *totals, const tnk__use_t *use);
/* Add all that others have counted. */
void tnk__totals_add(tnk__totals_t *totals, const tnk__totals_t *more);
/* Write what callers see; what is reserved is not a count. */
void tnk__totals_show(tnk_totals_t *out, const tnk__totals_t *totals);
/* Add one request that has this many bytes, and bytes that came back. */
void tnk__totals_sent(tnk__totals_t *totals, uint64_t n_bytes);
void tnk__totals_received(tnk__totals_t *totals, uint64_t n_bytes);

#endif
