#include <tnk/script.h>

int main(void) {
  const int32_t tokens[] = {'h', 'e', 'l', 'l', 'o'};
  const float weights[] = {0, 0, 1, 1, 1}; /* Learn "llo" only. */
  const int64_t targets[] = {'e', 'l', 'l'};
  const tnk_datum_t wrong = {
      .input = {.tokens = tokens, .n_tokens = 4},
      .loss_inputs =
          &(tnk_loss_input_t){
              "target_tokens",
              {.dtype = TNK_I64, .data = targets, .n_values = 3},
          },
      .n_loss_inputs = 1};
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  tnk_batch_t *batch = tnk_batch_new(NULL);
  char why[256];
  size_t n;

  if (tnk_data_check(&wrong, 1, "cross_entropy", why, sizeof(why)) != TNK_OK)
    printf("%s\n", why);
  if (tnk_batch_add_tokens(batch, tokens, weights, 5) != TNK_OK)
    tnk_must_not(tnk_batch_text(batch));
  const tnk_datum_t *data = tnk_batch_data(batch, &n);

  tnk_service_t *service = tnk_must_open(NULL);
  lora.base_model = "tnk/byte-lm";
  tnk_training_t *model =
      tnk_must_training(tnk_service_create_lora(service, &lora));
  const double sum = tnk_must_loss(tnk_training_forward(model, data, n, NULL));
  printf("loss per token: %.3f\n", sum / tnk_batch_weight(batch));
  tnk_batch_free(batch);
  return tnk_must_close(service);
}
