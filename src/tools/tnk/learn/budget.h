/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_LEARN_BUDGET_H
#define TNK_TOOLS_TNK_LEARN_BUDGET_H

#include "tnk/ledger.h"
#include "tnk/usage.h"
#include "tools/tnk/ask/ask.h"

/* The limits of a run: --max-tokens, --max-usd and --prices. */
typedef struct {
  uint64_t max_tokens; /* 0: no limit, as for max_usd */
  double max_usd;
  const char *prices; /* file; NULL: unknown */
} learn_budget_t;

/* Why a limit ends a run. */
enum {
  LEARN_AFFORDABLE = 0,
  LEARN_NEXT_EXCEEDS, /* the next step was not begun */
  LEARN_REFUSED       /* the service's budget has refused a request */
};

/* The use of a run, with that of earlier processes. Doubtful and reserved use
 * counts too. */
typedef struct {
  uint64_t tokens;
  double usd;
} learn_used_t;

/* Read the prices of a model per million tokens in USD from a file. They are
 * NaN if they are unknown, or if the file is NULL. Returns the exit status;
 * errors have been reported. */
int learn_read_price(tnk_price_t *out, const cli_t *cli, const char *file,
                     const char *model);
/* Limit the service, after the ledger was opened: the ledger has the use of
 * earlier processes. With max_usd the price of `model` must be known. Returns
 * the exit status; errors have been reported. */
int learn_set_budget(cli_ask_t *ask, const learn_budget_t *budget,
                     const char *model);
/* With max_usd: check that the price of `model` is known. NULL is a model that
 * the service does not name. Returns the exit status. */
int learn_check_price(const cli_t *cli, const learn_budget_t *budget,
                      const char *model);
learn_used_t learn_budget_used(const cli_ask_t *ask);
/* Returns whether the run may use this in addition. */
int learn_budget_has(const learn_budget_t *budget, const learn_used_t *used,
                     const learn_used_t *more);
/* Report that a limit has ended the run. `why` is not LEARN_AFFORDABLE, and the
 * options `remedy` let the run continue. Returns the exit status. */
int learn_report_broke(const cli_t *cli, const tnk_ledger_t *ledger, int why,
                       const char *remedy);

#endif
