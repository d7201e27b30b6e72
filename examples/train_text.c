/*
 * Train a LoRA adapter on a text, read from top to bottom: open a service,
 * create a model, keep two steps in flight, save, sample.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tnk/tnk.h>
#include <uv.h>

#include "local_server.h"
#include "train_args.h"
#include "train_show.h"

enum { IN_FLIGHT = 2, SAMPLE_TOKENS = 160 };

static const char prompt_text[] = "The ";

/* Wait for a promise and hand it on, or say what went wrong and give up. */
static tnk_promise_t *done(tnk_promise_t *promise, const char *what) {
  if (tnk_wait(promise) == TNK_OK)
    return promise;
  fprintf(stderr, "\ntrain_text: %s: %s\n", what, tnk_promise_text(promise));
  exit(1);
}

static void *must(void *memory) {
  if (memory != NULL)
    return memory;
  fprintf(stderr, "train_text: out of memory\n");
  exit(1);
}

static void write_warning(tnk_log_level_t level, const char *subject,
                          const char *message, size_t length, void *user) {
  (void)level;
  (void)user;
  fprintf(stderr, "\n%s: %.*s\n", subject, (int)length, message);
}

static tnk_service_t *open_service(uv_loop_t *loop) {
  const tnk_logger_t logger = {TNK_LOG_WARN, write_warning, NULL};
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  tnk_service_t *service;
  char why[256];

  options.logger = &logger;
  if (tnk_service_open(&service, loop, &options, why, sizeof(why)) == TNK_OK)
    return service;
  fprintf(stderr, "train_text: %s\n", why);
  exit(1);
}

/* The first model of the server; its name lives as long as `promise`. */
static const char *first_model(tnk_promise_t *promise) {
  const tnk_capabilities_t *offer = tnk_promise_capabilities(promise);
  size_t i;

  for (i = 0; i < tnk_capabilities_count(offer); i++) {
    const tnk_model_t *model = tnk_capabilities_model(offer, i);
    if (model->name != NULL && model->trainable != TNK_NO)
      return model->name;
  }
  fprintf(stderr, "train_text: the server offers no model; use --model\n");
  exit(1);
}

/* One step: a pass over windows of the text, then the optimizer. Nothing is
 * waited for; the service runs what it gets in this order. */
typedef struct {
  tnk_promise_t *pass;
  tnk_promise_t *update;
} step_t;

static step_t begin_step(tnk_training_t *training, const train_args_t *args,
                         const unsigned char *text, size_t size) {
  const size_t n = args->length;
  int32_t *tokens = must(calloc(args->batch * n, sizeof(*tokens)));
  int64_t *targets = must(calloc(args->batch * n, sizeof(*targets)));
  tnk_chunk_t *chunks = must(calloc(args->batch, sizeof(*chunks)));
  tnk_loss_input_t *inputs = must(calloc(args->batch, sizeof(*inputs)));
  tnk_datum_t *data = must(calloc(args->batch, sizeof(*data)));
  tnk_adam_t adam = TNK_ADAM_INIT;
  step_t step;

  for (size_t i = 0; i < args->batch; i++) {
    const unsigned char *window = text + (size_t)rand() % (size - n);
    for (size_t k = 0; k < n; k++) {
      tokens[i * n + k] = window[k];
      targets[i * n + k] = window[k + 1]; /* What to predict there. */
    }
    chunks[i] = tnk_chunk_text(tokens + i * n, n);
    inputs[i].name = "target_tokens";
    inputs[i].tensor = tnk_tensor_i64(targets + i * n, n);
    data[i].input = (tnk_model_input_t){&chunks[i], 1};
    data[i].loss_inputs = &inputs[i];
    data[i].n_loss_inputs = 1;
  }
  adam.learning_rate = args->learning_rate;
  step.pass = tnk_training_forward_backward(training, data, args->batch, NULL);
  step.update = tnk_training_optim_step(training, &adam);
  /* The library has its own copy by now. */
  free(data);
  free(inputs);
  free(chunks);
  free(targets);
  free(tokens);
  return step;
}

/* Wait for a step; its loss is a sum over the tokens of the batch. */
static double end_step(step_t step, size_t n_tokens) {
  const tnk_pass_t *pass = tnk_promise_pass(done(step.pass, "the pass"));
  const double loss = tnk_metrics_get(tnk_pass_metrics(pass), "loss:sum");

  if (isnan(loss)) {
    fprintf(stderr, "\ntrain_text: the server reports no loss\n");
    exit(1);
  }
  tnk_promise_unref(done(step.update, "the optimizer step"));
  tnk_promise_unref(step.pass);
  return loss / (double)n_tokens;
}

static void train(tnk_training_t *training, const train_args_t *args,
                  const unsigned char *text, size_t size, train_show_t *show) {
  const size_t n_tokens = (size_t)args->batch * args->length;
  step_t flight[IN_FLIGHT];
  unsigned begun = 0;

  train_show_training(show);
  for (unsigned i = 0; i < args->steps; i++) {
    for (; begun < args->steps && begun < i + IN_FLIGHT; begun++)
      flight[begun % IN_FLIGHT] = begin_step(training, args, text, size);
    train_show_step(show, i + 1, end_step(flight[i % IN_FLIGHT], n_tokens),
                    n_tokens);
  }
}

/* Sample from what `made` resolves to, and show it. */
static void sample(tnk_promise_t *made, const char *when,
                   const train_show_t *show) {
  tnk_sampling_t *sampler = tnk_promise_sampling(done(made, "the sampler"));
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  int32_t prompt[sizeof(prompt_text) - 1];
  const tnk_chunk_t chunk = tnk_chunk_text(prompt, sizeof(prompt) / 4);
  tnk_promise_t *answer;
  const int32_t *tokens;
  size_t n;

  for (size_t i = 0; i < sizeof(prompt) / sizeof(prompt[0]); i++)
    prompt[i] = prompt_text[i];
  params.present = TNK_HAS_MAX_TOKENS | TNK_HAS_TEMPERATURE | TNK_HAS_SEED;
  params.max_tokens = SAMPLE_TOKENS;
  params.temperature = 0.5;
  params.seed = 1;
  answer = tnk_sampling_sample(sampler, &(tnk_model_input_t){&chunk, 1},
                               &params, NULL);
  tokens =
      tnk_samples_tokens(tnk_promise_samples(done(answer, "sampling")), 0, &n);
  train_show_sample(show, when, prompt_text, tokens, n);
  tnk_promise_unref(answer);
  tnk_promise_unref(made);
  tnk_sampling_close(sampler, NULL, NULL);
}

int main(int argc, char **argv) {
  uv_loop_t *loop = uv_default_loop();
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  tnk_sampler_options_t base = TNK_SAMPLER_OPTIONS_INIT;
  tnk_save_options_t save = TNK_SAVE_OPTIONS_INIT;
  train_args_t args;
  train_show_t show;
  size_t size;

  const int code = train_args_read(&args, argc, argv);
  if (code >= 0)
    return code;
  unsigned char *text = train_text_read(args.file, args.length + 2, &size);
  if (text == NULL)
    return 1;

  if (local_server_unless_set() != 0)
    return 1;
  tnk_service_t *service = open_service(loop);
  tnk_promise_t *offer = NULL;
  if (args.model == NULL) {
    offer = done(tnk_service_capabilities(service), "asking for models");
    args.model = first_model(offer);
  }
  lora.base_model = args.model;
  lora.rank = args.rank;
  tnk_promise_t *made =
      done(tnk_service_create_lora(service, &lora), "creating the model");
  tnk_training_t *training = tnk_promise_training(made);

  train_show_begin(&show, args.steps, args.json);
  base.base_model = args.model;
  sample(tnk_service_create_sampling(service, &base), "before", &show);
  train(training, &args, text, size, &show);
  save.overwrite = TNK_YES;
  tnk_promise_t *saved =
      done(tnk_training_save_state(training, "train-text", &save), "saving");
  train_show_saved(&show, tnk_promise_path(saved));
  sample(tnk_training_save_weights_and_get_sampling(training,
                                                    TNK_SAMPLER_SNAPSHOT, NULL),
         "after", &show);
  train_show_end(&show);

  tnk_promise_unref(saved);
  tnk_promise_unref(made);
  tnk_promise_unref(offer);
  free(text);
  tnk_service_close(service, NULL, NULL); /* Closes its clients as well. */
  uv_run(loop, UV_RUN_DEFAULT);
  return uv_loop_close(loop) != 0;
}
