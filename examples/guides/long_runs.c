#include <tnk/script.h>

enum { STEPS = 150 };

static const int32_t text[] = {'h', 'e', 'l', 'l'};
static const int64_t next[] = {'e', 'l', 'l', 'o'};

/* Returns TNK_OK, or TNK_ESESSION if the server has lost the model. Any other
 * error ends the program. */
static int settle(tnk_promise_t *promise) {
  const int status = tnk_wait(promise);

  if (status != TNK_OK && status != TNK_ESESSION)
    tnk_must_not(tnk_promise_text(promise));
  tnk_promise_unref(promise);
  return status;
}

static int train(tnk_training_t *model) {
  const tnk_datum_t datum = {.input = {.tokens = text, .n_tokens = 4},
                             .targets = next};
  tnk_promise_t *pass = tnk_training_forward_backward(model, &datum, 1, NULL);
  const int stepped = settle(tnk_training_optim_step(model, NULL));
  const int passed = settle(pass);

  return passed != TNK_OK ? passed : stepped;
}

static int save(tnk_ledger_t *ledger, tnk_training_t *model, uint64_t step) {
  tnk_ledger_save_t how = TNK_LEDGER_SAVE_INIT;
  char cursor[64];

  snprintf(cursor, sizeof(cursor), "{\"next\": %d}", (int)step);
  how.cursor = cursor;
  how.is_final = step == STEPS ? TNK_YES : TNK_NO;
  return settle(tnk_ledger_save(ledger, model, &how));
}

int main(void) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  tnk_ledger_options_t run = TNK_LEDGER_OPTIONS_INIT;
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  uint64_t step = 0;

  setvbuf(stdout, NULL, _IOLBF, 0);
  options.patience_ms = 6 * 3600 * 1000; /* outages of up to six hours */
  options.recovery = TNK_YES;
  options.dump_file = "run.dump"; /* for tnk top */
  tnk_service_t *service = tnk_must_open(&options);
  run.run = "hello"; /* the service finds the run by this name */
  run.every_steps = 10;
  run.ttl_seconds = 7 * 24 * 3600; /* the service deletes a save after a week */
  run.n_rolling = 3;               /* the ledger keeps the last three */
  tnk_ledger_t *ledger = tnk_must_ledger(service, "long-run", &run);
  lora.base_model = "tnk/byte-lm";
  tnk_training_t *model = tnk_must_resume(service, ledger, &lora);
  if (tnk_ledger_resumed(ledger) != NULL)
    step = tnk_ledger_resumed(ledger)->n_steps;
  printf("begins after step %d\n", (int)step);
  while (step < STEPS) {
    int status = train(model);
    if (status == TNK_OK) {
      printf("step %d\n", (int)++step);
      if (step == STEPS || tnk_ledger_due(ledger, model))
        status = save(ledger, model, step);
    }
    if (status == TNK_ESESSION) {
      step = tnk_must_ready(model); /* steps in the restored weights */
      printf("restored after step %d\n", (int)step);
    }
  }
  return tnk_must_close(service);
}
