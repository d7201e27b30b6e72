#include <tnk/script.h>

enum { STEPS = 60 };

int main(void) {
  const int32_t text[] = {'h', 'e', 'l', 'l'};
  const int64_t next[] = {'e', 'l', 'l', 'o'};
  const tnk_datum_t datum = {.input = {.tokens = text, .n_tokens = 4},
                             .targets = next};
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  tnk_ledger_options_t options = TNK_LEDGER_OPTIONS_INIT;
  tnk_service_t *service = tnk_must_open(NULL);
  uint64_t step = 0;

  lora.base_model = "tnk/byte-lm";
  options.every_steps = 10;
  tnk_ledger_t *ledger = tnk_must_ledger(service, "hello-run", &options);
  tnk_training_t *model = tnk_must_resume(service, ledger, &lora);
  if (tnk_ledger_resumed(ledger) != NULL)
    step = tnk_ledger_resumed(ledger)->n_steps;
  printf("begins after step %d\n", (int)step);
  while (step < STEPS) {
    tnk_promise_t *pass = tnk_training_forward_backward(model, &datum, 1, NULL);
    tnk_must(tnk_training_optim_step(model, NULL));
    step++;
    printf("step %d: loss %.3f\n", (int)step, tnk_must_loss(pass));
    if (tnk_ledger_due(ledger, model))
      tnk_must(tnk_ledger_save(ledger, model, NULL));
  }
  return tnk_must_close(service);
}
