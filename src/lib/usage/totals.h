/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_USAGE_TOTALS_H
#define TNK_LIB_USAGE_TOTALS_H

#include <stdint.h>

#include "tnk/usage.h"

/*
 * Use of a client, a service or a run. The counts only grow. They saturate at
 * the largest number.
 */
typedef struct {
  uint64_t prompt_tokens; /* prompts of samples; includes `cached_tokens` */
  uint64_t cached_tokens;
  uint64_t sampled_tokens;
  uint64_t trained_tokens;
  uint64_t unpriced_tokens; /* tokens of all kinds that had no price */
  uint64_t doubtful_tokens; /* maximum of additional, unconfirmed use */
  uint64_t cost; /* in units of TNK__USD, for tokens that had a price */
  uint64_t doubtful_cost;
  uint64_t n_requests; /* per client; the context counts for services */
  uint64_t n_bytes_sent;
  uint64_t n_bytes_received;
} tnk__totals_t;

/* One dollar in units of money. Integers keep sums exact. For example, a token
 * at 0.01 dollars per million costs 10,000 units. */
#define TNK__USD UINT64_C(1000000000000)

/* Tokens of one operation, by kind. */
typedef struct {
  uint64_t prompt;
  uint64_t cached; /* included in the prompt's tokens */
  uint64_t sampled;
  uint64_t trained;
} tnk__use_t;

/* Sums and products that stay at UINT64_MAX. */
uint64_t tnk__sum(uint64_t a, uint64_t b);
uint64_t tnk__product(uint64_t a, uint64_t b);

/* The sum over all kinds. */
uint64_t tnk__use_tokens(const tnk__use_t *use);
void tnk__totals_use(tnk__totals_t *totals, const tnk__use_t *use);
/* Add the counts of `more`. */
void tnk__totals_add(tnk__totals_t *totals, const tnk__totals_t *more);
/* Convert to the public struct. Reserved amounts are not included. */
void tnk__totals_show(tnk_totals_t *out, const tnk__totals_t *totals);
/* Count one request with n_bytes, or n_bytes received. */
void tnk__totals_sent(tnk__totals_t *totals, uint64_t n_bytes);
void tnk__totals_received(tnk__totals_t *totals, uint64_t n_bytes);

#endif
