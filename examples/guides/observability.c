#include <tnk/script.h>

int main(void) {
  const int32_t ids[] = {'H', 'i'};
  const tnk_model_input_t prompt = {.tokens = ids, .n_tokens = 2};
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  tnk_sampling_options_t from = TNK_SAMPLING_OPTIONS_INIT;
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  tnk_meter_t *meter = tnk_meter_new(NULL);
  const tnk_number_t numbers[] = {{"sample/count", 1}};
  char text[65536];

  options.observer = tnk_meter_event;
  options.observer_user = meter;
  tnk_service_t *service = tnk_must_open(&options);
  from.base_model = "tnk/byte-lm";
  tnk_sampling_t *sampler =
      tnk_must_sampling(tnk_service_create_sampling(service, &from));
  params.max_tokens = 8;
  tnk_must(tnk_sampling_sample(sampler, &prompt, &params, NULL));
  tnk_numbers_append("metrics.jsonl", 1, numbers, 1);
  const int status = tnk_must_close(service);
  tnk_meter_text(meter, text, sizeof(text));
  fputs(text, stdout);
  tnk_meter_free(meter);
  return status;
}
