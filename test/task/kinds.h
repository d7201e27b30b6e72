/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_TASK_KINDS_H
#define TNK_TEST_TASK_KINDS_H

#include "lib/client/train/op.h"
#include "task/script.h"

/*
 * Every public operation in one table, for tests that do the same to each.
 * The first SCRIPT_N_NUMBERED carry a sequence number of a training client.
 */
typedef enum { OWNER_TRAINING, OWNER_SAMPLING, OWNER_SERVICE } script_owner_t;

typedef struct {
  const char *name;
  const char *call; /* the first request that it makes */
  script_owner_t owner;
  tnk_promise_t *(*start)(script_t *script);
} script_kind_t;

static tnk_promise_t *start_pass(script_t *script) {
  return script_pass(script, 2);
}

static tnk_promise_t *start_forward(script_t *script) {
  return tnk_training_forward(script->training, script_data(2), 2, NULL);
}

static tnk_promise_t *start_save(script_t *script) {
  tnk_save_options_t options = TNK_SAVE_OPTIONS_INIT;
  static const tnk_pair_t pair = {"k", "v"};

  options.user_metadata = &pair;
  options.n_user_metadata = 1;
  return tnk_training_save_state(script->training, "a", &options);
}

static tnk_promise_t *start_save_sampler(script_t *script) {
  return tnk_training_save_weights_for_sampler(script->training, "a", NULL);
}

static tnk_promise_t *start_save_external(script_t *script) {
  return tnk_training_save_weights_external(script->training, "a", NULL);
}

static tnk_promise_t *start_ephemeral(script_t *script) {
  return tnk_training_save_weights_and_get_sampling(
      script->training, TNK_SAMPLING_SNAPSHOT, NULL);
}

static tnk_promise_t *start_load(script_t *script) {
  tnk_load_options_t options = TNK_LOAD_OPTIONS_INIT;

  options.path = "tinker://r/weights/a";
  return tnk_training_load_state(script->training, &options);
}

static tnk_promise_t *start_raw(script_t *script) {
  tnk_optim_t step = TNK_OPTIM_INIT;

  step.optimizer = TNK_OPTIMIZER_RAW;
  step.json = "{\"type\":\"x\"}";
  return tnk_training_optim_step(script->training, &step);
}

static int kind_loss(tnk_custom_loss_t *io, void *user) {
  (void)user;
  io->gradients[0][0] = 0.5f;
  io->loss = 1.0;
  return 0;
}

static tnk_promise_t *start_custom(script_t *script) {
  return tnk_training_forward_backward_custom(script->training, script_data(2),
                                              2, kind_loss, NULL, NULL);
}

static tnk_promise_t *start_unload(script_t *script) {
  return tnk_training_unload(script->training);
}

static tnk_promise_t *start_logprobs(script_t *script) {
  return tnk_sampling_compute_logprobs(script->sampling, script_prompt(), NULL);
}

static tnk_promise_t *start_lora(script_t *script) {
  tnk_lora_options_t options = TNK_LORA_OPTIONS_INIT;

  options.base_model = "base";
  return tnk_service_create_lora(script->service, &options);
}

static tnk_promise_t *restore(script_t *script, tnk_choice_t classic) {
  tnk_restore_options_t options = TNK_RESTORE_OPTIONS_INIT;

  options.path = "tinker://r/weights/a";
  options.classic = classic;
  return tnk_service_restore(script->service, &options);
}

static tnk_promise_t *start_restore(script_t *script) {
  return restore(script, TNK_NO);
}

static tnk_promise_t *start_classic(script_t *script) {
  return restore(script, TNK_YES);
}

static tnk_promise_t *start_sampler(script_t *script) {
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;

  options.model_path = "tinker://r/sampler_weights/a";
  return tnk_service_create_sampling(script->service, &options);
}

static tnk_promise_t *start_capabilities(script_t *script) {
  return tnk_service_capabilities(script->service);
}

static tnk_promise_t *start_health(script_t *script) {
  return tnk_service_health(script->service);
}

static const script_kind_t script_kinds[] = {
    {"forward_backward", "forward_backward", OWNER_TRAINING, start_pass},
    {"forward", "forward_backward", OWNER_TRAINING, start_forward},
    {"optim_step", "optim_step", OWNER_TRAINING, script_step},
    {"optim_step_raw", "optim_step", OWNER_TRAINING, start_raw},
    {"save_state", "save_weights", OWNER_TRAINING, start_save},
    {"save_weights_for_sampler", "save_weights_for_sampler", OWNER_TRAINING,
     start_save_sampler},
    {"save_weights_external", "save_weights_external", OWNER_TRAINING,
     start_save_external},
    {"save_weights_and_get_sampling", "save_weights_for_sampler",
     OWNER_TRAINING, start_ephemeral},
    {"load_state", "load_weights", OWNER_TRAINING, start_load},
    {"forward_backward_custom", "forward_backward", OWNER_TRAINING,
     start_custom},
    {"unload", "unload_model", OWNER_TRAINING, start_unload},
    {"sample", "asample", OWNER_SAMPLING, script_sample},
    {"compute_logprobs", "asample", OWNER_SAMPLING, start_logprobs},
    {"create_lora", "create_model", OWNER_SERVICE, start_lora},
    {"restore", "load_weights", OWNER_SERVICE, start_restore},
    {"restore (classic)", "weights_info", OWNER_SERVICE, start_classic},
    {"create_sampling", "create_sampling_session", OWNER_SERVICE,
     start_sampler},
    {"get_server_capabilities", "get_server_capabilities", OWNER_SERVICE,
     start_capabilities},
    {"healthz", "healthz", OWNER_SERVICE, start_health},
};

enum {
  SCRIPT_N_NUMBERED = 9,
  SCRIPT_N_KINDS = sizeof(script_kinds) / sizeof(script_kinds[0])
};

static int script_n_batches;

/* Answers polls for many: everything that has been accepted is done. */
static inline void script_batch(mock_request_t *request, void *user) {
  const script_t *script = user;
  char text[8192] = "{\"completions\":[";
  size_t n = strlen(text);

  script_n_batches++;
  for (size_t i = 0; i < script->n_sent && n < 7000; i++)
    if (strcmp(script->sent[i].call, "asample") == 0)
      n += (size_t)snprintf(text + n, sizeof(text) - n,
                            "%s{\"state\":\"finished\",\"request_id\":"
                            "\"asample:%lld:0\"}",
                            text[n - 1] == '}' ? "," : "", script->sent[i].seq);
  snprintf(text + n, sizeof(text) - n, "],\"cursor\":%zu}", script->n_sent);
  mock_reply_json(request, 200, text);
}

static const char *const script_batched =
    "{\"sample_use_retrieve_futures\":true}";

/* A service with the client that the operation needs. */
static inline void script_open_for(script_t *script, const script_kind_t *kind,
                                   const char *flags) {
  script_open(script);
  mock_on(script->mock, "POST", "/api/v1/retrieve_futures", script_batch,
          script);
  if (flags != NULL)
    script_flags(script, flags);
  if (kind->owner == OWNER_SAMPLING)
    script_sampler(script);
  else
    script_train(script);
}

/* Whether a body is being compressed on another thread. */
static inline int script_is_packing(const script_t *script) {
  if (script->training == NULL)
    return 0;
  TNK__LIST_FOREACH (link, &script->training->ops) {
    tnk__op_t *op = tnk__container_of(tnk__member_of(link), tnk__op_t, member);
    if (op->n_holds > 0)
      return 1;
  }
  return 0;
}

/* Let everything happen that time and turns of the loop can bring about. */
static inline void script_settle(script_t *script, const outcome_t *outcome) {
  for (int i = 0; i < 40 && outcome->n_done == 0; i++) {
    script_turns(script);
    while (script_is_packing(script))
      uv_run(&script->uv, UV_RUN_ONCE);
    script_turns(script);
    if (outcome->n_done == 0)
      script_advance(script, 30000);
  }
}

/* Numbers that were accepted: 1, 2 ... without a hole. */
static inline void script_check_numbers(const script_t *script) {
  char seen[16] = {0};
  long long max = 0;

  for (size_t i = 0; i < script->n_sent; i++) {
    long long seq = script->sent[i].seq;
    if (strcmp(script->sent[i].call, "asample") == 0 || seq < 0)
      continue;
    CHECK(seq >= 1 && seq < (long long)sizeof(seen));
    seen[seq] = 1;
    max = seq > max ? seq : max;
  }
  for (long long seq = 1; seq <= max; seq++)
    if (!seen[seq])
      test_fail(__FILE__, __LINE__, "number %lld of %lld is a hole", seq, max);
}

/* What follows must still work, unless it was closed. */
static inline void script_check_next(script_t *script) {
  outcome_t outcome;

  if (script->training != NULL)
    outcome_of(&outcome, script_step(script));
  else if (script->sampling != NULL)
    outcome_of(&outcome, script_sample(script));
  else
    return;
  script_settle(script, &outcome);
  outcome_ok(script, &outcome);
  outcome_drop(&outcome);
  if (script->training != NULL)
    script_check_numbers(script);
}

/* What a rejection says of whether the operation was run. */
static inline void check_ran(const outcome_t *outcome, tnk_ran_t ran,
                             const char *ending) {
  size_t n = strlen(outcome->text);
  size_t n_ending = strlen(ending);

  if (tnk_promise_error(outcome->promise)->ran != ran || n < n_ending ||
      strcmp(outcome->text + n - n_ending, ending) != 0)
    test_fail(__FILE__, __LINE__, "ran is %d, expected %d: %s",
              (int)tnk_promise_error(outcome->promise)->ran, (int)ran,
              outcome->text);
}

#endif
