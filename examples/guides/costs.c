#include <tnk/script.h>

int main(void) {
  const tnk_price_t price = {.model = "tnk/byte-lm",
                             .prompt = 0.13,
                             .cached = 0.03,
                             .sampled = 0.40,
                             .trained = 0.40};
  const int32_t ids[] = {'H', 'i'};
  const tnk_model_input_t prompt = {.tokens = ids, .n_tokens = 2};
  tnk_budget_t budget = TNK_BUDGET_INIT;
  tnk_totals_t used = TNK_TOTALS_INIT;
  tnk_sampling_options_t from = TNK_SAMPLING_OPTIONS_INIT;
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  tnk_service_t *service = tnk_must_open(NULL);
  char why[256];

  budget.max_tokens = 100;
  budget.prices = &price;
  budget.n_prices = 1;
  if (tnk_service_set_budget(service, &budget, why, sizeof(why)) != TNK_OK)
    tnk_must_not(why);
  from.base_model = "tnk/byte-lm";
  tnk_sampling_t *sampler =
      tnk_must_sampling(tnk_service_create_sampling(service, &from));
  params.max_tokens = 40;
  for (;;) {
    tnk_promise_t *sample =
        tnk_sampling_sample(sampler, &prompt, &params, NULL);
    const int status = tnk_wait(sample);
    if (status != TNK_OK)
      printf("%s\n", tnk_promise_text(sample));
    tnk_promise_unref(sample);
    if (status != TNK_OK)
      break;
  }
  tnk_service_totals(&used, service);
  printf("%d tokens sampled, %.6f USD\n", (int)used.n_sampled_tokens,
         used.cost_usd);
  return tnk_must_close(service);
}
