#include <tnk/script.h>

int main(void) {
  const int32_t text[] = {'h', 'e', 'l', 'l'};
  const int64_t next[] = {'e', 'l', 'l', 'o'};
  const tnk_datum_t datum = {.input = {.tokens = text, .n_tokens = 4},
                             .targets = next};
  const tnk_model_input_t prompt = {.tokens = text, .n_tokens = 1};
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  tnk_service_t *service = tnk_must_open(NULL);
  size_t n;

  lora.base_model = "tnk/byte-lm";
  tnk_training_t *model =
      tnk_must_training(tnk_service_create_lora(service, &lora));
  for (int i = 0; i < 60; i++) {
    tnk_promise_t *pass = tnk_training_forward_backward(model, &datum, 1, NULL);
    tnk_must(tnk_training_optim_step(model, NULL));
    printf("loss %.3f\n", tnk_must_loss(pass));
  }
  tnk_sampling_t *sampler =
      tnk_must_sampling(tnk_training_save_weights_and_get_sampling(
          model, TNK_SAMPLING_SNAPSHOT, NULL));
  params.max_tokens = 4;
  params.temperature = 0; /* Always the likeliest token. */
  tnk_promise_t *sample =
      tnk_must_keep(tnk_sampling_sample(sampler, &prompt, &params, NULL));
  const int32_t *out = tnk_samples_tokens(tnk_promise_samples(sample), 0, &n);
  printf("h");
  for (size_t i = 0; i < n; i++)
    printf("%c", out[i]);
  printf("\n");
  tnk_promise_unref(sample);
  return tnk_must_close(service);
}
