#include <stdio.h>
#include <tnk/tnk.h>
#include <uv.h>

enum { STEPS = 20 };

static const int32_t text[] = {'h', 'e', 'l', 'l'};
static const int64_t next[] = {'e', 'l', 'l', 'o'};

typedef struct {
  tnk_service_t *service;
  tnk_training_t *model;
  int n_called;
  int n_done;
  int failed;
} run_t;

static void fail(run_t *run, tnk_promise_t *promise) {
  fprintf(stderr, "%s\n", tnk_promise_text(promise));
  run->failed = 1;
  tnk_service_close(run->service, NULL, NULL);
}

static void next_step(run_t *run);

static void on_step(tnk_promise_t *promise, int status, void *user) {
  run_t *run = user;

  if (status == TNK_ECLOSED)
    return;
  if (status != TNK_OK) {
    fail(run, promise);
    return;
  }
  run->n_done++;
  if (run->n_done == STEPS)
    tnk_service_close(run->service, NULL, NULL);
  else if (run->n_called < STEPS)
    next_step(run);
}

static void on_pass(tnk_promise_t *promise, int status, void *user) {
  (void)user;
  if (status == TNK_OK)
    printf("loss %.3f\n", tnk_pass_loss(tnk_promise_pass(promise)));
}

static void next_step(run_t *run) {
  const tnk_datum_t datum = {.input = {.tokens = text, .n_tokens = 4},
                             .targets = next};

  run->n_called++;
  tnk_then(tnk_training_forward_backward(run->model, &datum, 1, NULL), on_pass,
           run);
  tnk_then(tnk_training_optim_step(run->model, NULL), on_step, run);
}

static void on_model(tnk_promise_t *promise, int status, void *user) {
  run_t *run = user;

  if (status != TNK_OK) {
    fail(run, promise);
    return;
  }
  run->model = tnk_promise_training(promise);
  next_step(run); /* Two steps are in flight, so the service never waits. */
  next_step(run);
}

int main(void) {
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  run_t run = {0};
  char why[256];

  if (tnk_service_open(&run.service, uv_default_loop(), NULL, why,
                       sizeof(why)) != TNK_OK) {
    fprintf(stderr, "%s\n", why);
    return 1;
  }
  lora.base_model = "tnk/byte-lm";
  tnk_then(tnk_service_create_lora(run.service, &lora), on_model, &run);
  uv_run(uv_default_loop(), UV_RUN_DEFAULT);
  uv_loop_close(uv_default_loop());
  return run.failed;
}
