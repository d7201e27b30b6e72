#include <tnk/script.h>

int main(void) {
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  tnk_save_options_t save = TNK_SAVE_OPTIONS_INIT;
  tnk_service_t *service = tnk_must_open(NULL);

  lora.base_model = "tnk/byte-lm";
  lora.rank = 4;
  tnk_training_t *model =
      tnk_must_training(tnk_service_create_lora(service, &lora));
  save.ttl_seconds = 24 * 3600;
  tnk_promise_t *saved =
      tnk_must_keep(tnk_training_save_weights_external(model, "first", &save));
  printf("saved %s\n", tnk_promise_path(saved));
  tnk_promise_t *download = tnk_must_keep(
      tnk_weights_download(service, tnk_promise_path(saved), "adapter", NULL));
  printf("%s: %zu files\n", tnk_promise_weights(download)->directory,
         tnk_promise_weights(download)->n_files);
  tnk_promise_unref(download);
  tnk_promise_unref(saved);
  return tnk_must_close(service);
}
