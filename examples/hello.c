#include <stdio.h>
#include <stdlib.h>
#include <tnk/tnk.h>
#include <uv.h>

static tnk_promise_t *done(tnk_promise_t *promise) {
  if (tnk_wait(promise) == TNK_OK)
    return promise;
  fprintf(stderr, "%s\n", tnk_promise_text(promise));
  exit(1);
}

int main(void) {
  const int32_t text[] = {'h', 'e', 'l', 'l'};
  const int64_t next[] = {'e', 'l', 'l', 'o'};
  const tnk_chunk_t all = tnk_chunk_text(text, 4);
  const tnk_chunk_t first = tnk_chunk_text(text, 1);
  const tnk_model_input_t prompt = {.chunks = &first, .n_chunks = 1};
  const tnk_loss_input_t targets = {"target_tokens", tnk_tensor_i64(next, 4)};
  const tnk_datum_t datum = {.input = {.chunks = &all, .n_chunks = 1},
                             .loss_inputs = &targets,
                             .n_loss_inputs = 1};
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  tnk_service_t *service;
  char why[200];
  size_t n;

  if (tnk_service_open(&service, uv_default_loop(), NULL, why, sizeof(why))) {
    fprintf(stderr, "%s\n", why);
    return 1;
  }
  lora.base_model = "tnk/byte-lm";
  tnk_promise_t *made = done(tnk_service_create_lora(service, &lora));
  tnk_training_t *model = tnk_promise_training(made);
  for (int i = 0; i < 60; i++) {
    tnk_promise_t *pass = tnk_training_forward_backward(model, &datum, 1, NULL);
    tnk_promise_unref(done(tnk_training_optim_step(model, NULL)));
    printf("loss %.3f\n", tnk_pass_loss(tnk_promise_pass(done(pass))));
    tnk_promise_unref(pass);
  }
  tnk_promise_t *saved = done(tnk_training_save_weights_and_get_sampling(
      model, TNK_SAMPLING_SNAPSHOT, NULL));
  params.max_tokens = 4;
  params.temperature = 0; /* Always the likeliest token. */
  tnk_promise_t *sample = done(
      tnk_sampling_sample(tnk_promise_sampling(saved), &prompt, &params, NULL));
  const int32_t *out = tnk_samples_tokens(tnk_promise_samples(sample), 0, &n);
  printf("h");
  for (size_t i = 0; i < n; i++)
    printf("%c", out[i]);
  printf("\n");
  tnk_promise_unref(made);
  tnk_promise_unref(saved);
  tnk_promise_unref(sample);
  tnk_service_close(service, NULL, NULL);
  return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
