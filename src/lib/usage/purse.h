#ifndef TNK_LIB_USAGE_PURSE_H
#define TNK_LIB_USAGE_PURSE_H

#include "lib/base/text.h"
#include "lib/usage/totals.h"

/* What a token of a model costs, in parts of TNK__USD. */
typedef struct {
  const char *model; /* NULL: each model without a row of its own */
  uint64_t prompt;
  uint64_t cached;
  uint64_t sampled;
  uint64_t trained;
} tnk__price_t;

/* What an operation has taken out of the purse, and not given back. */
typedef struct {
  uint64_t tokens;
  uint64_t cost;
  int is_taken;
} tnk__held_t;

/*
 * What a service may still use. Whoever is about to send takes out what that
 * may use at most, and is refused when used, taken and that are more than a
 * limit together. The end gives back what was taken, and counts what was used;
 * what may have been used, as nobody can tell, stays counted as doubtful.
 *
 * So what was used never goes over a limit, and whoever has taken something can
 * always go on.
 */
typedef struct {
  tnk__totals_t used;    /* since the service was opened */
  tnk__totals_t before;  /* earlier in the run, which counts too */
  tnk__totals_t kept;    /* what the ledger of the run says of that */
  uint64_t max_tokens;   /* 0: any number */
  uint64_t max_cost;     /* 0: any */
  uint64_t taken_tokens; /* of all who hold something */
  uint64_t taken_cost;
  uint64_t n_held;            /* so many do */
  int is_lost;                /* the sums went over what fits: while n_held > 0
                                 nobody knows what is taken */
  const tnk__price_t *prices; /* the owner's */
  size_t n_prices;
} tnk__purse_t;

/* What an operation may use at most. */
typedef struct {
  const char *model; /* or NULL, where nobody knows */
  tnk__use_t most;
  int is_open; /* it may use more than that: nobody knows how much */
} tnk__claim_t;

typedef enum {
  TNK__PURSE_GRANTED = 0,
  TNK__PURSE_TOKENS, /* over the limit in tokens */
  TNK__PURSE_COST,   /* over that in money */
  TNK__PURSE_PRICE,  /* there is one in money, and no price */
  TNK__PURSE_OPEN    /* there is one, and the need is not known */
} tnk__grant_t;

/* Whether there is a limit. */
int tnk__purse_is_limited(const tnk__purse_t *purse);
/* Take out what is asked for; *held holds nothing before. Without a limit all
 * is granted. */
tnk__grant_t tnk__purse_take(tnk__purse_t *purse, const tnk__claim_t *claim,
                             tnk__held_t *held);
/* Write why it was refused, as a sentence. */
void tnk__purse_explain(const tnk__purse_t *purse, tnk__grant_t grant,
                        const tnk__claim_t *claim, tnk__text_t *out);
/* Give all back; harmless when nothing is held. */
void tnk__purse_give_back(tnk__purse_t *purse, tnk__held_t *held);
/* Give back this many of the tokens that are held, with their part of the
 * money: of an operation whose tokens all cost the same. */
void tnk__purse_give_part(tnk__purse_t *purse, tnk__held_t *held,
                          uint64_t n_tokens);
/* Count what was used, for the service and for a client, which may be NULL. */
void tnk__purse_use(tnk__purse_t *purse, tnk__totals_t *client,
                    const char *model, const tnk__use_t *use);
/* Give back as above, all or a part, and count that as doubtful. */
void tnk__purse_doubt(tnk__purse_t *purse, tnk__totals_t *client,
                      tnk__held_t *held);
void tnk__purse_doubt_part(tnk__purse_t *purse, tnk__totals_t *client,
                           tnk__held_t *held, uint64_t n_tokens);

#endif
