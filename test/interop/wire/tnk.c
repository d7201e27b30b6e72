/* SPDX-License-Identifier: MIT */
/*
 * Makes the calls of calls.json with this library: reads the name of a case
 * from its input, runs it, answers with a line. A line that ends with
 * `await:PATH` asks for a line once a request for PATH has arrived.
 * official.py is the same for the official client.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "wire/run.h"

#define MODEL "tnk/byte-lm"

static const char *model_or(const json_t *args, const char *otherwise) {
  const char *model = arg_text(args, "base_model");

  return model != NULL ? model : otherwise;
}

const char *path_of(const run_t *run, const json_t *args) {
  const char *path = arg_text(args, "path");

  return path != NULL && strcmp(path, "$") == 0 ? run->path : path;
}

/* ---- Clients ---- */

static tnk_promise_t *call_capabilities(run_t *run, const json_t *args) {
  (void)args;
  return tnk_service_capabilities(run->service);
}

static tnk_promise_t *call_lora(run_t *run, const json_t *args) {
  tnk_lora_options_t options = TNK_LORA_OPTIONS_INIT;

  options.base_model = model_or(args, MODEL);
  options.rank = (uint32_t)arg_int(args, "rank", 0);
  options.seed = arg_int(args, "seed", TNK_ABSENT);
  options.train_mlp = arg_choice(args, "train_mlp");
  options.train_attn = arg_choice(args, "train_attn");
  options.train_unembed = arg_choice(args, "train_unembed");
  options.optimizer = arg_optimizer(&run->pool, args, &options.optimizer_json);
  options.user_metadata =
      arg_pairs(&run->pool, args, "user_metadata", &options.n_user_metadata);
  return tnk_service_create_lora(run->service, &options);
}

static tnk_promise_t *call_restore(run_t *run, const json_t *args) {
  tnk_restore_options_t options = TNK_RESTORE_OPTIONS_INIT;

  options.path = path_of(run, args);
  options.base_model = arg_text(args, "base_model");
  options.with_optimizer = arg_choice(args, "with_optimizer");
  options.weights_access_token = arg_text(args, "weights_access_token");
  options.optimizer = arg_optimizer(&run->pool, args, &options.optimizer_json);
  options.user_metadata =
      arg_pairs(&run->pool, args, "user_metadata", &options.n_user_metadata);
  return tnk_service_restore(run->service, &options);
}

static tnk_sampling_options_t sampler_options(run_t *run, const json_t *args) {
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;

  options.model_path = path_of(run, args);
  options.base_model =
      model_or(args, options.model_path != NULL ? NULL : MODEL);
  options.record_stability_info = arg_choice(args, "record_stability_info");
  return options;
}

static tnk_promise_t *call_sampler(run_t *run, const json_t *args) {
  tnk_sampling_options_t options = sampler_options(run, args);

  return tnk_service_create_sampling(run->service, &options);
}

static tnk_promise_t *call_save_and_sampler(run_t *run, const json_t *args) {
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;
  const char *kind = arg_text(args, "kind");

  options.record_stability_info = arg_choice(args, "record_stability_info");
  return tnk_training_save_weights_and_get_sampling(
      run->training,
      kind != NULL && strcmp(kind, "inflight") == 0 ? TNK_SAMPLING_INFLIGHT
                                                    : TNK_SAMPLING_SNAPSHOT,
      &options);
}

/* ---- Training ---- */

static tnk_pass_options_t pass_options(run_t *run, const json_t *args) {
  tnk_pass_options_t options = TNK_PASS_OPTIONS_INIT;

  options.loss_fn = arg_text(args, "loss");
  options.settings = arg_settings(&run->pool, args, &options.n_settings);
  return options;
}

static tnk_promise_t *call_forward(run_t *run, const json_t *args) {
  tnk_pass_options_t options = pass_options(run, args);
  size_t n;
  const tnk_datum_t *data = arg_data(&run->pool, args, &n);

  return tnk_training_forward(run->training, data, n, &options);
}

static tnk_promise_t *call_forward_backward(run_t *run, const json_t *args) {
  tnk_pass_options_t options = pass_options(run, args);
  size_t n;
  const tnk_datum_t *data = arg_data(&run->pool, args, &n);

  return tnk_training_forward_backward(run->training, data, n, &options);
}

/* Minus the sum of each example's logprobs times its place from 1. */
static int custom_loss(tnk_custom_loss_t *io, void *user) {
  (void)user;
  for (size_t i = 0; i < io->n_data; i++) {
    const float *logprobs = io->logprobs[i].data;

    for (size_t k = 0; k < io->logprobs[i].n_values; k++) {
      io->loss -= (double)logprobs[k] * (double)(i + 1);
      io->gradients[i][k] = -(float)(i + 1);
    }
  }
  return 0;
}

static tnk_promise_t *call_custom(run_t *run, const json_t *args) {
  size_t n;
  const tnk_datum_t *data = arg_data(&run->pool, args, &n);

  return tnk_training_forward_backward_custom(run->training, data, n,
                                              custom_loss, NULL, NULL);
}

static tnk_promise_t *call_optim_step(run_t *run, const json_t *args) {
  const json_t *given = json_object_get(args, "adam");
  tnk_optim_t step = TNK_OPTIM_INIT;

  if (given == NULL && (given = json_object_get(args, "dimuon")) != NULL)
    step.optimizer = TNK_OPTIMIZER_DIMUON;
  if (given == NULL) {
    step.optimizer = TNK_OPTIMIZER_RAW;
    step.json = arg_dump(&run->pool, json_object_get(args, "raw"));
  } else {
    step.learning_rate = arg_number(given, "learning_rate", TNK_ABSENT);
    step.beta1 = arg_number(given, "beta1", TNK_ABSENT);
    step.beta2 = arg_number(given, "beta2", TNK_ABSENT);
    step.eps = arg_number(given, "eps", TNK_ABSENT);
    step.weight_decay = arg_number(given, "weight_decay", TNK_ABSENT);
    step.grad_clip_norm = arg_number(given, "grad_clip_norm", TNK_ABSENT);
  }
  return tnk_training_optim_step(run->training, &step);
}

static tnk_save_options_t save_options(run_t *run, const json_t *args) {
  tnk_save_options_t options = TNK_SAVE_OPTIONS_INIT;

  options.ttl_seconds = (uint64_t)arg_int(args, "ttl_seconds", 0);
  options.overwrite = arg_choice(args, "overwrite");
  options.user_metadata =
      arg_pairs(&run->pool, args, "user_metadata", &options.n_user_metadata);
  options.recipients = arg_texts(&run->pool, args, "age_encryption_recipients",
                                 &options.n_recipients);
  return options;
}

static tnk_promise_t *call_save_state(run_t *run, const json_t *args) {
  tnk_save_options_t options = save_options(run, args);

  return tnk_training_save_state(run->training, arg_text(args, "name"),
                                 &options);
}

static tnk_promise_t *call_save_sampler(run_t *run, const json_t *args) {
  tnk_save_options_t options = save_options(run, args);

  return tnk_training_save_weights_for_sampler(
      run->training, arg_text(args, "name"), &options);
}

static tnk_promise_t *call_save_external(run_t *run, const json_t *args) {
  tnk_save_options_t options = save_options(run, args);

  return tnk_training_save_weights_external(run->training,
                                            arg_text(args, "name"), &options);
}

static tnk_promise_t *call_load_state(run_t *run, const json_t *args) {
  tnk_load_options_t options = TNK_LOAD_OPTIONS_INIT;

  options.path = path_of(run, args);
  options.with_optimizer = arg_choice(args, "with_optimizer");
  return tnk_training_load_state(run->training, &options);
}

/* ---- Sampling ---- */

static tnk_promise_t *call_sample(run_t *run, const json_t *args) {
  tnk_model_input_t prompt =
      arg_input(&run->pool, json_object_get(args, "prompt"));
  tnk_sampling_params_t params = arg_params(&run->pool, args);
  tnk_sample_options_t options = arg_sample_options(&run->pool, args);

  return tnk_sampling_sample(run->sampling, &prompt, &params, &options);
}

static tnk_promise_t *call_samples(run_t *run, const json_t *args) {
  size_t n = (size_t)arg_int(args, "times", 1);
  tnk_promise_t **all = pool_get(&run->pool, n * sizeof(*all));

  for (size_t i = 0; i < n; i++)
    all[i] = call_sample(run, args);
  return tnk_all_settled(all, n);
}

static void set_true(void *flag) {
  *(int *)flag = 1;
}

/* What was promised by a callback rather than a promise. */
static void run_until(run_t *run, const int *flag) {
  while (!*flag)
    uv_run(&run->loop, UV_RUN_ONCE);
}

static void read_line(uv_work_t *work) {
  char line[256];

  (void)work;
  if (fgets(line, sizeof(line), stdin) == NULL)
    exit(1);
}

static void on_line(uv_work_t *work, int status) {
  (void)status;
  set_true(work->data);
}

/* Run the loop until a request for @p path has arrived at the server. */
static void await_request(run_t *run, const char *path) {
  uv_work_t work;
  int arrived = 0;

  printf("await:%s\n", path);
  fflush(stdout);
  work.data = &arrived;
  uv_queue_work(&run->loop, &work, read_line, on_line);
  run_until(run, &arrived);
}

/* Canceled once the server has accepted it. Its result is held back. */
static tnk_promise_t *call_cancel(run_t *run, const json_t *args) {
  tnk_promise_t *sample = call_sample(run, args);

  await_request(run, "retrieve_future");
  tnk_promise_cancel(sample);
  return sample;
}

static tnk_promise_t *call_logprobs(run_t *run, const json_t *args) {
  tnk_model_input_t prompt =
      arg_input(&run->pool, json_object_get(args, "prompt"));

  tnk_logprobs_options_t options = TNK_LOGPROBS_OPTIONS_INIT;

  options.last_n = (uint32_t)arg_int(args, "last_n", 0);
  return tnk_sampling_compute_logprobs(run->sampling, &prompt, &options);
}

/* ---- A case ---- */

static const struct {
  const char *name;
  call_fn call;
} calls[] = {
    {"capabilities", call_capabilities},
    {"lora", call_lora},
    {"restore", call_restore},
    {"sampler", call_sampler},
    {"save_and_sampler", call_save_and_sampler},
    {"forward", call_forward},
    {"forward_backward", call_forward_backward},
    {"custom", call_custom},
    {"optim_step", call_optim_step},
    {"save_state", call_save_state},
    {"save_sampler", call_save_sampler},
    {"save_external", call_save_external},
    {"load_state", call_load_state},
    {"sample", call_sample},
    {"samples", call_samples},
    {"cancel", call_cancel},
    {"logprobs", call_logprobs},
};

static call_fn find(const char *name) {
  for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
    if (strcmp(calls[i].name, name) == 0)
      return calls[i].call;
  return rest_call(name);
}

static int open_service(run_t *run, const json_t *given);

static void close_service(run_t *run) {
  int closed = 0;

  tnk_promise_unref(run->last);
  run->last = NULL;
  tnk_service_close(run->service, set_true, &closed);
  run_until(run, &closed);
}

static void do_call(run_t *run, const json_t *step) {
  const char *name = json_string_value(json_array_get(step, 0));
  const call_fn call = find(name);
  tnk_promise_t *promise;

  /* Another service, as another program has it. */
  if (strcmp(name, "again") == 0) {
    close_service(run);
    open_service(run, json_array_get(step, 1));
    return;
  }
  if (call == NULL) {
    printf("unknown call %s; ", name);
    return;
  }
  promise = call(run, json_array_get(step, 1));
  tnk_wait(promise);
  printf("%s; ", promise != NULL ? tnk_promise_text(promise) : "no client");
  if (tnk_promise_training(promise) != NULL)
    run->training = tnk_promise_training(promise);
  if (tnk_promise_sampling(promise) != NULL)
    run->sampling = tnk_promise_sampling(promise);
  if (tnk_promise_path(promise) != NULL)
    snprintf(run->path, sizeof(run->path), "%s", tnk_promise_path(promise));
  tnk_promise_unref(run->last);
  run->last = promise;
  if (strcmp(name, "cancel") == 0)
    await_request(run, "cancel_future");
}

static int open_service(run_t *run, const json_t *given) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  char why[256];
  int err;

  options.project_id = arg_text(given, "project_id");
  options.display_name = arg_text(given, "display_name");
  options.user_metadata =
      arg_pairs(&run->pool, given, "user_metadata", &options.n_user_metadata);
  options.headers = arg_pairs(&run->pool, given, "headers", &options.n_headers);
  err = tnk_service_open(&run->service, &run->loop, &options, why, sizeof(why));
  if (err != TNK_OK)
    printf("cannot open: %s; ", why);
  return err;
}

static void do_case(const json_t *one) {
  run_t run = {0};
  size_t i;
  json_t *step;

  uv_loop_init(&run.loop);
  if (open_service(&run, json_object_get(one, "service")) == TNK_OK) {
    json_array_foreach(json_object_get(one, "do"), i, step) do_call(&run, step);
    close_service(&run);
  }
  uv_run(&run.loop, UV_RUN_DEFAULT);
  uv_loop_close(&run.loop);
  pool_free(&run.pool);
  printf("\n");
  fflush(stdout);
}

int main(int argc, char **argv) {
  json_t *cases = argc == 2 ? json_load_file(argv[1], 0, NULL) : NULL;
  char line[256];
  size_t i;
  json_t *one;

  if (cases == NULL) {
    fprintf(stderr, "usage: wire_tnk calls.json\n");
    return 2;
  }
  while (fgets(line, sizeof(line), stdin) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    json_array_foreach(cases, i, one) if (strcmp(arg_text(one, "name"), line) ==
                                          0) do_case(one);
  }
  json_decref(cases);
  return 0;
}
