/* SPDX-License-Identifier: MIT */
#include TNK_TEST_HEADER

/* The macros as well: what they leave out is warned about where they are used.
 */
int main(void) {
#ifdef TNK_SERVICE_H
  tnk_service_options_t service = TNK_SERVICE_OPTIONS_INIT;
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  if (service.size != sizeof(service) || service.api_key != nullptr ||
      lora.size != sizeof(lora) || lora.seed != TNK_ABSENT)
    return 1;
#endif
#ifdef TNK_TRAINING_H
  tnk_optim_t step = TNK_OPTIM_INIT;
  tnk_load_options_t load = TNK_LOAD_OPTIONS_INIT;
  if (step.size != sizeof(step) || step.beta1 != TNK_ABSENT ||
      load.size != sizeof(load))
    return 1;
#endif
#ifdef TNK_SAMPLING_H
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  if (params.size != sizeof(params) || params.max_tokens != TNK_ABSENT ||
      params.temperature != TNK_ABSENT)
    return 1;
#endif
  return 0;
}
