/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_USAGE_ALLOWANCE_H
#define TNK_LIB_USAGE_ALLOWANCE_H

#include "lib/base/text.h"
#include "lib/usage/totals.h"

/* Price of one token of a model, in units of TNK__USD. */
typedef struct {
  const char *model; /* NULL: the default row, for models without their own */
  uint64_t prompt;
  uint64_t cached;
  uint64_t sampled;
  uint64_t trained;
} tnk__price_t;

/* The share of an operation: reserved and not yet given back. */
typedef struct {
  uint64_t tokens;
  uint64_t cost;
  int is_taken;
} tnk__held_t;

/*
 * Budget of a service: its use and its limits. Before a request is sent, its
 * maximum use is reserved. The reservation is refused if used, reserved and new
 * use together exceed a limit. When the request ends, the reservation is given
 * back and the actual use is counted. Use that cannot be confirmed stays
 * counted as doubtful.
 *
 * Therefore use never exceeds a limit, and an operation with a reservation can
 * always finish.
 */
typedef struct {
  tnk__totals_t used;    /* since the service was opened */
  tnk__totals_t before;  /* earlier use of the run; counts against the limits */
  tnk__totals_t kept;    /* the part of `before` from the run's ledger */
  uint64_t max_tokens;   /* 0: unlimited */
  uint64_t max_cost;     /* 0: unlimited */
  uint64_t taken_tokens; /* sum over all reservations */
  uint64_t taken_cost;
  uint64_t n_held;            /* number of reservations */
  int is_lost;                /* an overflow: the reserved sums are unknown
                               * until n_held is 0 */
  const tnk__price_t *prices; /* owned by the caller */
  size_t n_prices;
} tnk__allowance_t;

/* Upper bound on the use of one operation. */
typedef struct {
  const char *model; /* NULL: the model is not known */
  tnk__use_t most;
  int is_open; /* the operation may use more, by an unknown amount */
} tnk__claim_t;

typedef enum {
  TNK__ALLOWANCE_GRANTED = 0,
  TNK__ALLOWANCE_TOKENS, /* the token limit would be exceeded */
  TNK__ALLOWANCE_COST,   /* the money limit would be exceeded */
  TNK__ALLOWANCE_PRICE,  /* a money limit is set, but the price is unknown */
  TNK__ALLOWANCE_OPEN    /* a limit is set, but the maximum use is unknown */
} tnk__grant_t;

/* Returns whether any limit is set. */
int tnk__allowance_is_limited(const tnk__allowance_t *allowance);
/* Reserve the claim; *held must hold nothing before the call. Without a limit
 * every claim is granted. */
tnk__grant_t tnk__allowance_take(tnk__allowance_t *allowance,
                                 const tnk__claim_t *claim, tnk__held_t *held);
/* Write the reason for a refusal, as a sentence. */
void tnk__allowance_explain(const tnk__allowance_t *allowance,
                            tnk__grant_t grant, const tnk__claim_t *claim,
                            tnk__text_t *out);
/* Give back the whole reservation. Does nothing if nothing is held. */
void tnk__allowance_give_back(tnk__allowance_t *allowance, tnk__held_t *held);
/* Give back n_tokens of the reservation and their share of the money. All
 * tokens of the operation must cost the same. */
void tnk__allowance_give_part(tnk__allowance_t *allowance, tnk__held_t *held,
                              uint64_t n_tokens);
/* Count use, for the service and for a client, which may be NULL. */
void tnk__allowance_use(tnk__allowance_t *allowance, tnk__totals_t *client,
                        const char *model, const tnk__use_t *use);
/* As above, for all or a part, but count the amount as doubtful. */
void tnk__allowance_doubt(tnk__allowance_t *allowance, tnk__totals_t *client,
                          tnk__held_t *held);
void tnk__allowance_doubt_part(tnk__allowance_t *allowance,
                               tnk__totals_t *client, tnk__held_t *held,
                               uint64_t n_tokens);

#endif
