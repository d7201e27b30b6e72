/* SPDX-License-Identifier: MIT */
/* What trace/trace.py drives: trace_tool TRACE. Runs operations of many
 * kinds against the server of the environment, some of which fail and some of
 * which are canceled, writes a trace and metrics of them, and every event as a
 * line to the standard output. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tnk/script.h>

static tnk_trace_t *trace;

static void on_event(const tnk_event_t *event, void *user) {
  (void)user;
  tnk_trace_event(event, trace);
  printf("%" PRIu64 " %" PRIu64 " %u %s %s %s %s %s %u %" PRIu64 " %d %s\n",
         event->time_ns, event->operation, event->part,
         tnk_phase_name(event->phase), tnk_waits_for_name(event->waits_for),
         event->name, event->client != NULL ? event->client : "-",
         event->code != TNK_OK ? tnk_err_name(event->code) : "-",
         event->attempt, event->bytes, event->status,
         event->request_id != NULL ? event->request_id : "-");
}

static void forget(tnk_promise_t *promise) {
  tnk_wait(promise);
  tnk_promise_unref(promise);
}

static void train(tnk_training_t *model) {
  static int32_t text[4];
  static int64_t next[4];
  static tnk_datum_t data[1025];
  tnk_load_options_t missing = TNK_LOAD_OPTIONS_INIT;
  tnk_promise_t *step;

  for (int i = 0; i < 4; i++)
    next[i] = text[i] = 'a' + i % 26;
  for (size_t i = 0; i < 1025; i++)
    data[i] = (tnk_datum_t){.input = {.tokens = text, .n_tokens = 4},
                            .targets = next};
  for (int i = 0; i < 2; i++) {
    tnk_promise_t *pass =
        tnk_training_forward_backward(model, data, 1025, NULL);
    step = tnk_training_optim_step(model, NULL);
    forget(pass);
    forget(step);
  }
  step = tnk_training_optim_step(model, NULL);
  tnk_promise_cancel(step);
  tnk_promise_unref(step);
  missing.path = "tinker://nowhere/weights/none";
  forget(tnk_training_load_state(model, &missing));
}

static void sample(tnk_sampling_t *sampler) {
  enum { N = 40 };
  static const int32_t text[] = {'a', 'b'};
  const tnk_model_input_t prompt = {.tokens = text, .n_tokens = 2};
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  tnk_promise_t *samples[N];

  params.max_tokens = 4;
  for (int i = 0; i < N; i++)
    samples[i] = tnk_sampling_sample(sampler, &prompt, &params, NULL);
  tnk_promise_cancel(samples[N - 1]);
  for (int i = 0; i < N; i++)
    forget(samples[i]);
}

int main(int argc, char **argv) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  tnk_training_t *model;
  tnk_service_t *service;

  if (argc != 2)
    return 2;
  if (tnk_trace_open(&trace, argv[1], NULL) != TNK_OK)
    return 1;
  options.observer = on_event;
  service = tnk_must_open(&options);
  lora.base_model = "tnk/byte-lm";
  model = tnk_must_training(tnk_service_create_lora(service, &lora));
  train(model);
  sample(tnk_must_sampling(tnk_training_save_weights_and_get_sampling(
      model, TNK_SAMPLING_SNAPSHOT, NULL)));
  tnk_must_close(service);
  return tnk_trace_close(trace) == TNK_OK ? 0 : 1;
}
