/* SPDX-License-Identifier: MIT */
/*
 * A training run whose operations are spans in a collector of OpenTelemetry:
 *
 *   OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 otlp
 *
 * Without that variable nothing is exported. The loss is a metric.
 */
#include <uv.h>

#include "tnk/otlp.h"
#include "tnk/script.h"

enum { STEPS = 5 };

typedef struct {
  int64_t step;
  double loss;
} progress_t;

/* Called when metrics are exported. */
static void put_metrics(tnk_otlp_metrics_t *out, void *user) {
  const progress_t *progress = user;
  const tnk_otlp_metric_t step = {.name = "train.step",
                                  .description = "Steps of the optimizer.",
                                  .is_counter = 1};
  const tnk_otlp_metric_t loss = {.name = "train.loss.millis",
                                  .description = "Loss times 1000."};

  tnk_otlp_put_numbers(out, &step,
                       &(tnk_otlp_number_t){.value = progress->step}, 1);
  tnk_otlp_put_numbers(
      out, &loss,
      &(tnk_otlp_number_t){.value = (int64_t)(progress->loss * 1000)}, 1);
}

static void train(tnk_service_t *service, tnk_otlp_t *otlp,
                  progress_t *progress) {
  const int32_t text[] = {'h', 'e', 'l', 'l'};
  const int64_t next[] = {'e', 'l', 'l', 'o'};
  const tnk_datum_t datum = {.input = {.tokens = text, .n_tokens = 4},
                             .targets = next};
  const tnk_otlp_end_t end = {.name = "step", .kind = TNK_OTLP_INTERNAL};
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  tnk_training_t *model;

  lora.base_model = "tnk/byte-lm";
  model = tnk_must_training(tnk_service_create_lora(service, &lora));
  while (progress->step < STEPS) {
    tnk_otlp_span_t span;
    tnk_promise_t *pass, *update;

    /* The operations of the step are below its span. */
    tnk_otlp_begin(&span, otlp, NULL);
    tnk_otlp_set_parent(otlp, &span);
    pass = tnk_training_forward_backward(model, &datum, 1, NULL);
    update = tnk_training_optim_step(model, NULL);
    tnk_otlp_set_parent(otlp, NULL);
    tnk_must(update);
    progress->loss = tnk_must_loss(pass);
    progress->step++;
    tnk_otlp_end(otlp, &span, &end);
  }
  printf("loss %.3f\n", progress->loss);
}

/* The service reports to the exporter until it has closed. */
static void on_closed(void *user) {
  tnk_otlp_close(user, NULL, NULL);
}

int main(void) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  progress_t progress = {.step = 0};
  tnk_service_t *service;
  tnk_otlp_t *otlp;
  char why[256];

  if (tnk_otlp_open(&otlp, uv_default_loop(), NULL, why, sizeof(why)) !=
          TNK_OK ||
      tnk_otlp_add_source(otlp, put_metrics, &progress) != TNK_OK)
    tnk_must_not(why);
  if (otlp != NULL) {
    options.observer = tnk_otlp_event;
    options.observer_user = otlp;
  }
  service = tnk_must_open(&options);
  train(service, otlp, &progress);
  tnk_otlp_remove_source(otlp, put_metrics, &progress);
  tnk_service_close(service, on_closed, otlp);
  uv_run(uv_default_loop(), UV_RUN_DEFAULT);
  return uv_loop_close(uv_default_loop()) == 0 ? 0 : 1;
}
