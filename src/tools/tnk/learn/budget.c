/* SPDX-License-Identifier: MIT */
#include "tools/tnk/learn/budget.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/arena.h"
#include "lib/wire/data/prices.h"
#include "tnk/error.h"
#include "tools/common/base/input.h"

int learn_read_price(tnk_price_t *out, const cli_t *cli, const char *file,
                     const char *model) {
  tnk__arena_t arena;
  tnk_price_t *prices = NULL;
  char why[512] = "";
  size_t n = 0, n_text;
  char *text;
  int err;

  *out = (tnk_price_t){
      .prompt = NAN, .cached = NAN, .sampled = NAN, .trained = NAN};
  if (file == NULL)
    return CLI_EXIT_OK;
  text = cli_read_file(file, &n_text, why, sizeof(why));
  if (text == NULL)
    return cli_fail(cli, CLI_EXIT_FILE, "%s", why);
  tnk__arena_init(&arena, tnk__allocator_default(), SIZE_MAX / 2);
  err = tnk__prices_read(&prices, &n, &arena, text, n_text, why, sizeof(why));
  if (err == TNK_OK)
    err = tnk__prices_check(prices, n, why, sizeof(why));
  for (size_t i = 0; i < n && err == TNK_OK; i++)
    if (prices[i].model == NULL ? isnan(out->trained)
                                : strcmp(prices[i].model, model) == 0)
      *out = prices[i];
  out->model = NULL;
  free(text);
  tnk__arena_deinit(&arena);
  return err == TNK_OK ? CLI_EXIT_OK
                       : cli_fail(cli, CLI_EXIT_FILE, "%s: %s", file, why);
}

int learn_check_price(const cli_t *cli, const learn_budget_t *budget,
                      const char *model) {
  tnk_price_t price;
  /* No row has an empty name. */
  int status =
      learn_read_price(&price, cli, budget->prices, model != NULL ? model : "");

  if (status == CLI_EXIT_OK && budget->max_usd > 0 && isnan(price.trained))
    status =
        cli_fail(cli, CLI_EXIT_FILE, "%s has no price for %s", budget->prices,
                 model != NULL ? model
                               : "a model that the service does not name: "
                                 "add a row without \"model\"");
  return status;
}

int learn_set_budget(cli_ask_t *ask, const learn_budget_t *budget,
                     const char *model) {
  tnk_budget_t limits = TNK_BUDGET_INIT;
  char why[512] = "";
  int status = learn_check_price(ask->cli, budget, model);

  limits.max_tokens = budget->max_tokens;
  limits.max_usd = budget->max_usd;
  limits.prices_file = budget->prices;
  if (status == CLI_EXIT_OK &&
      tnk_service_set_budget(ask->service, &limits, why, sizeof(why)) != TNK_OK)
    status = cli_fail(ask->cli, CLI_EXIT_FILE, "%s", why);
  return status;
}

learn_used_t learn_budget_used(const cli_ask_t *ask) {
  tnk_totals_t used = TNK_TOTALS_INIT;

  (void)tnk_service_run_totals(&used, ask->service);
  return (learn_used_t){
      .tokens = used.n_prompt_tokens + used.n_sampled_tokens +
                used.n_trained_tokens + used.n_doubtful_tokens +
                used.n_reserved_tokens,
      .usd = used.cost_usd + used.doubtful_usd + used.reserved_usd};
}

int learn_budget_has(const learn_budget_t *budget, const learn_used_t *used,
                     const learn_used_t *more) {
  return (budget->max_tokens == 0 ||
          used->tokens + more->tokens <= budget->max_tokens) &&
         (!(budget->max_usd > 0) || used->usd + more->usd <= budget->max_usd);
}

int learn_report_broke(const cli_t *cli, const tnk_ledger_t *ledger, int why,
                       const char *remedy) {
  const int is_saved = tnk_ledger_last(ledger) != NULL;
  char hint[256];

  snprintf(hint, sizeof(hint), "%s%s The same command with %s %s.",
           why == LEARN_REFUSED ? "A request reserves the most that it can use "
                                  "until it ends. "
                                : "",
           is_saved ? "Its state is saved."
                    : "The run has no complete step and no saved state.",
           remedy, is_saved ? "continues it" : "begins it again");
  return cli_report(
      cli,
      &(cli_problem_t){
          .status = CLI_EXIT_FAILED,
          .message = why == LEARN_REFUSED
                         ? "the limit of the run has refused a request"
                         : "the next step would exceed the limit of the run",
          .code = "budget",
          .hint = hint});
}
