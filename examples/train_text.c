/*
 * Train a LoRA adapter on a text, read from top to bottom: open a service,
 * create a model, keep two steps in flight, save, sample.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tnk/tnk.h>
#include <uv.h>

#include "local_server.h"
#include "script.h"
#include "train_args.h"
#include "train_show.h"

enum { IN_FLIGHT = 2, SAMPLE_TOKENS = 160 };

/* One step: a pass over windows of the text, then the optimizer. Nothing is
 * waited for; the service runs what it gets in this order. */
typedef struct {
  tnk_promise_t *pass;
  tnk_promise_t *update;
} step_t;

static step_t begin_step(tnk_training_t *training, const train_args_t *args,
                         const train_text_t *text) {
  static tnk_datum_t data[TRAIN_MAX_BATCH];
  tnk_optim_t step = TNK_OPTIM_INIT;

  for (size_t i = 0; i < args->batch; i++) {
    const size_t at = (size_t)rand() % (text->size - args->length);
    data[i].input = (tnk_model_input_t){.tokens = text->tokens + at,
                                        .n_tokens = args->length};
    data[i].targets = text->targets + at;
    data[i].weights = text->weights; /* all 1, which some servers want to see */
  }
  step.learning_rate = args->learning_rate;
  /* The library copies the data before it returns. */
  return (step_t){
      tnk_training_forward_backward(training, data, args->batch, NULL),
      tnk_training_optim_step(training, &step)};
}

/* The mean of a token. Every server sends the logprobs of the targets, not
 * every one sends the loss. */
static double loss_of(const tnk_pass_t *pass) {
  double sum = 0;
  size_t n = 0;

  for (size_t i = 0; i < tnk_pass_count(pass); i++) {
    const tnk_tensor_t *logprobs = tnk_pass_tensor(pass, i, "logprobs");
    const float *values = logprobs != NULL ? logprobs->data : NULL;

    for (size_t t = 0; values != NULL && t < logprobs->n_values; t++, n++)
      sum -= (double)values[t];
  }
  return n > 0 ? sum / (double)n : NAN;
}

static double end_step(step_t step) {
  const double loss = loss_of(tnk_promise_pass(done(step.pass, "the pass")));

  tnk_promise_unref(done(step.update, "the optimizer step"));
  tnk_promise_unref(step.pass);
  return loss;
}

static void train(tnk_training_t *training, const train_args_t *args,
                  const train_text_t *text, train_show_t *show) {
  const size_t n_tokens = (size_t)args->batch * args->length;
  step_t flight[IN_FLIGHT];
  unsigned begun = 0;

  train_show_training(show);
  for (unsigned i = 0; i < args->steps; i++) {
    for (; begun < args->steps && begun < i + IN_FLIGHT; begun++)
      flight[begun % IN_FLIGHT] = begin_step(training, args, text);
    train_show_step(show, i + 1, end_step(flight[i % IN_FLIGHT]), n_tokens);
  }
}

/* Sample from what `made` resolves to, and show it. */
static void sample(tnk_promise_t *made, const char *when,
                   const train_show_t *show) {
  static const int32_t tokens[] = {'T', 'h', 'e', ' '};
  const tnk_model_input_t prompt = {.tokens = tokens, .n_tokens = 4};
  tnk_sampling_t *sampler = tnk_promise_sampling(done(made, "the sampler"));
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  tnk_promise_t *answer;
  const int32_t *out;
  size_t n;

  params.max_tokens = SAMPLE_TOKENS;
  params.temperature = 0.5;
  params.seed = 1;
  answer = tnk_sampling_sample(sampler, &prompt, &params, NULL);
  out =
      tnk_samples_tokens(tnk_promise_samples(done(answer, "sampling")), 0, &n);
  train_show_sample(show, when, "The ", out, n);
  tnk_promise_unref(answer);
  tnk_promise_unref(made);
  tnk_sampling_close(sampler, NULL, NULL);
}

int main(int argc, char **argv) {
  uv_loop_t *loop = uv_default_loop();
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  tnk_sampling_options_t base = TNK_SAMPLING_OPTIONS_INIT;
  tnk_save_options_t save = TNK_SAVE_OPTIONS_INIT;
  tnk_totals_t used = TNK_TOTALS_INIT;
  train_args_t args;
  train_text_t text;
  train_show_t show;

  const int code = train_args_read(&args, argc, argv);
  if (code >= 0)
    return code;
  if (train_text_read(&text, args.file, args.length + 2) != 0 ||
      local_server_unless_set() != 0)
    return 1;

  tnk_service_t *service = open_service(loop);
  tnk_promise_t *offer = done(tnk_service_capabilities(service), "models");
  lora.base_model = args.model != NULL ? args.model : first_model(offer);
  lora.rank = args.rank;
  tnk_promise_t *made = done(tnk_service_create_lora(service, &lora), "model");
  tnk_training_t *training = tnk_promise_training(made);

  train_show_begin(&show, args.steps, args.json);
  base.base_model = lora.base_model;
  sample(tnk_service_create_sampling(service, &base), "before", &show);
  train(training, &args, &text, &show);
  save.overwrite = TNK_YES;
  tnk_promise_t *saved =
      done(tnk_training_save_state(training, "train-text", &save), "saving");
  train_show_saved(&show, tnk_promise_path(saved));
  sample(tnk_training_save_weights_and_get_sampling(
             training, TNK_SAMPLING_SNAPSHOT, NULL),
         "after", &show);
  tnk_service_totals(&used, service);
  train_show_end(&show, &used);

  tnk_promise_unref(saved);
  tnk_promise_unref(made);
  tnk_promise_unref(offer);
  train_text_free(&text);
  tnk_service_close(service, NULL, NULL); /* Closes its clients as well. */
  uv_run(loop, UV_RUN_DEFAULT);
  return uv_loop_close(loop) != 0;
}
