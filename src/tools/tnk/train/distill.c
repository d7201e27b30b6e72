/* SPDX-License-Identifier: MIT */
#include "tools/tnk/train/distill.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tnk/error.h"
#include "tnk/promise.h"
#include "tnk/result.h"
#include "tools/tnk/learn/kl.h"
#include "tools/tnk/learn/seed.h"
#include "tools/tnk/train/args.h"

enum { FINE = 0, MAX_LOST = 10 };
/* A wait without a limit of its own. */
#define FOREVER_MS ((uint64_t)1 << 40)

/* An answer with its prompt. */
struct train_answer {
  int32_t *ids; /* in the arena of the pass */
  size_t n, n_prompt;
  const float *logprobs; /* [n - n_prompt], of its promise */
  tnk_promise_t *scored;
};

/* ---- Waiting ---- */

static int is_pending(const void *promise) {
  return tnk_promise_status(promise) == TNK_EPENDING;
}

/* Await a promise. A signal or the --timeout ends the waiting, and then
 * cli_ask_is_over() is 1. */
static int await(cli_ask_t *ask, tnk_promise_t *promise) {
  cli_ask_while(ask, is_pending, promise, FOREVER_MS);
  return cli_ask_is_over(ask) ? FINE : learn_await_limited(ask, promise);
}

static int no_memory(const cli_ask_t *ask) {
  return cli_fail(ask->cli, CLI_EXIT_FAILED, "out of memory");
}

/* ---- Samples ---- */

/* Sample from the weights that the step trains. */
static int open_sampler(train_distill_t *distill, cli_ask_t *ask,
                        tnk_training_t *model, uint64_t number,
                        tnk_sampling_t **out) {
  tnk_sampling_options_t what = TNK_SAMPLING_OPTIONS_INIT;
  tnk_promise_t *created;
  char name[64];
  int result;

  snprintf(name, sizeof(name), "distill-%" PRIu64 "-%" PRIu64, number - 1,
           ++distill->n_tries);
  result = learn_sampler_save(&distill->sampler, ask, model, name);
  if (result != FINE)
    return result;
  what.model_path = distill->sampler.path;
  created = tnk_service_create_sampling(ask->service, &what);
  result = learn_await(ask, created);
  if (result == FINE)
    *out = tnk_promise_sampling(created);
  tnk_promise_unref(created);
  learn_sampler_drop_old(&distill->sampler, ask);
  return result;
}

static tnk_promise_t *begin_sample(const train_distill_t *distill,
                                   tnk_sampling_t *sampler,
                                   const tnk_datum_t *prompt, uint64_t seed) {
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  tnk_sample_options_t options = TNK_SAMPLE_OPTIONS_INIT;

  params.max_tokens = (int32_t)train_args.answer_tokens;
  params.temperature = 1;
  params.seed = (int64_t)seed;
  cli_chats_stops(&distill->prompts->chats, &params);
  options.n_samples = (uint32_t)train_args.group_size;
  return tnk_sampling_sample(sampler, &prompt->input, &params, &options);
}

/* Take the answers to a prompt, and let the teacher score them. */
static int take_answers(train_distill_t *distill, cli_ask_t *ask,
                        train_pass_t *pass, const tnk_model_input_t *prompt,
                        const tnk_promise_t *sampled) {
  const tnk_samples_t *samples = tnk_promise_samples(sampled);
  const size_t n_most = (size_t)train_args.group_size;

  for (size_t i = 0; i < tnk_samples_count(samples) && i < n_most; i++) {
    train_answer_t *answer = &distill->answers[distill->n_answers];
    size_t n = 0, n_logprobs = 0;
    const int32_t *ids = tnk_samples_tokens(samples, i, &n);
    const float *logprobs = tnk_samples_logprobs(samples, i, &n_logprobs);

    if (n == 0)
      continue;
    if (logprobs == NULL || n_logprobs != n)
      return cli_fail(ask->cli, CLI_EXIT_FAILED,
                      "the service has not returned the logprobs of its "
                      "samples");
    *answer = (train_answer_t){.n = prompt->n_tokens + n,
                               .n_prompt = prompt->n_tokens,
                               .logprobs = logprobs};
    answer->ids =
        tnk__arena_alloc(&pass->arena, answer->n * sizeof(*answer->ids));
    if (answer->ids == NULL)
      return no_memory(ask);
    memcpy(answer->ids, prompt->tokens, prompt->n_tokens * sizeof(*ids));
    memcpy(answer->ids + prompt->n_tokens, ids, n * sizeof(*ids));
    answer->scored =
        train_teacher_score(&distill->teacher, answer->ids, answer->n);
    distill->n_answers++;
  }
  return FINE;
}

/* ---- Examples ---- */

/* Make the example of an answer. The tokens of the prompt have no logprob and
 * no advantage. */
static int make(tnk_datum_t *out, train_pass_t *pass,
                const train_answer_t *answer, const float *teacher) {
  tnk__arena_t *arena = &pass->arena;
  const size_t n = answer->n - 1;
  const size_t first = answer->n_prompt - 1; /* target of the first one */
  const size_t n_sampled = n - first;
  int64_t *targets = tnk__arena_alloc(arena, n * sizeof(*targets));
  float *logprobs = tnk__arena_calloc(arena, n, sizeof(*logprobs));
  float *advantages = tnk__arena_calloc(arena, n, sizeof(*advantages));
  tnk_loss_input_t *inputs = tnk__arena_alloc(arena, 2 * sizeof(*inputs));

  if (targets == NULL || logprobs == NULL || advantages == NULL ||
      inputs == NULL)
    return TNK_ENOMEM;
  for (size_t t = 0; t < n; t++)
    targets[t] = answer->ids[t + 1];
  memcpy(logprobs + first, answer->logprobs, n_sampled * sizeof(*logprobs));
  pass->teacher_kl += learn_kl_advantages(
      advantages + first, answer->logprobs, teacher + answer->n_prompt,
      n_sampled, train_args.kl_coefficient, train_args.discount);
  pass->n_sampled += (double)n_sampled;
  inputs[0] = (tnk_loss_input_t){"logprobs", tnk_tensor_f32(logprobs, n)};
  inputs[1] = (tnk_loss_input_t){"advantages", tnk_tensor_f32(advantages, n)};
  *out = (tnk_datum_t){.input = {.tokens = answer->ids, .n_tokens = n},
                       .targets = targets,
                       .loss_inputs = inputs,
                       .n_loss_inputs = 2};
  return TNK_OK;
}

static int take_scores(train_distill_t *distill, cli_ask_t *ask,
                       train_pass_t *pass, train_step_t *step) {
  int result = FINE;

  step->n_tokens = 0;
  pass->n = 0;
  for (size_t i = 0; i < distill->n_answers && result == FINE; i++) {
    const train_answer_t *answer = &distill->answers[i];
    const float *teacher;

    cli_ask_while(ask, is_pending, answer->scored, FOREVER_MS);
    if (cli_ask_is_over(ask))
      return FINE;
    teacher = train_teacher_logprobs(&distill->teacher, ask, answer->scored,
                                     answer->n_prompt, answer->n, &result);
    if (teacher != NULL &&
        make(&pass->data[pass->n++], pass, answer, teacher) != TNK_OK)
      result = no_memory(ask);
    step->n_tokens += answer->n - 1;
  }
  if (result == LEARN_LOST)
    distill->n_teacher_lost++;
  else
    distill->n_teacher_lost = 0;
  distill->is_empty = result == FINE && pass->n == 0;
  if (distill->is_empty)
    result = cli_fail(ask->cli, CLI_EXIT_FAILED,
                      "step %" PRIu64 ": all answers are empty, so there is "
                      "nothing to train",
                      step->number);
  return result;
}

/* ---- A step ---- */

/* The library restores a lost teacher, unless it cannot: then each score fails
 * as lost. A new client is the teacher again, or has the cause. */
static int renew_teacher(train_distill_t *distill, cli_ask_t *ask) {
  train_teacher_t *teacher = &distill->teacher;

  if (distill->n_teacher_lost == 0)
    return FINE;
  if (distill->n_teacher_lost >= MAX_LOST)
    return cli_fail(ask->cli, CLI_EXIT_NETWORK,
                    "--teacher %s: the service has lost it %" PRIu64
                    " times in a row",
                    teacher->name, distill->n_teacher_lost);
  tnk_sampling_close(teacher->client, NULL, NULL);
  teacher->client = NULL;
  return train_teacher_create(teacher, ask);
}

static int play(train_distill_t *distill, cli_ask_t *ask,
                tnk_sampling_t *sampler, train_pass_t *pass,
                train_step_t *step) {
  const size_t n = pass->n;
  int result = FINE;

  for (size_t i = 0; i < n; i++)
    distill->sampled[i] =
        begin_sample(distill, sampler, &pass->data[i],
                     learn_seed((uint64_t)train_args.seed,
                                (step->number - 1) * distill->n_batch + i));
  for (size_t i = 0; i < n && result == FINE; i++) {
    result = await(ask, distill->sampled[i]);
    if (cli_ask_is_over(ask))
      return result;
    if (result == FINE)
      result = take_answers(distill, ask, pass, &pass->data[i].input,
                            distill->sampled[i]);
  }
  return result == FINE ? take_scores(distill, ask, pass, step) : result;
}

/* Release a promise, of an operation that nobody needs if it is pending. Its
 * failure is not reported. */
static void drop(tnk_promise_t **promise) {
  if (*promise == NULL)
    return;
  tnk_promise_cancel(*promise);
  (void)tnk_then(*promise, NULL, NULL);
  *promise = NULL;
}

static int make_room(train_distill_t *distill) {
  const size_t n = distill->n_batch * (size_t)train_args.group_size;

  if (distill->answers == NULL)
    distill->answers = calloc(n, sizeof(*distill->answers));
  if (distill->sampled == NULL)
    distill->sampled = calloc(distill->n_batch, sizeof(*distill->sampled));
  return distill->answers != NULL && distill->sampled != NULL;
}

int train_distill_step(train_distill_t *distill, cli_ask_t *ask,
                       tnk_training_t *model, train_pass_t *pass,
                       train_step_t *step) {
  tnk_sampling_t *sampler = NULL;
  int result;

  if (!make_room(distill))
    return no_memory(ask);
  distill->n_answers = 0;
  pass->reward = NAN;
  pass->teacher_kl = pass->n_sampled = 0;
  result = renew_teacher(distill, ask);
  if (result == FINE)
    result = open_sampler(distill, ask, model, step->number, &sampler);
  if (result == FINE && !cli_ask_is_over(ask))
    result = play(distill, ask, sampler, pass, step);
  for (size_t i = 0; i < distill->n_batch; i++)
    drop(&distill->sampled[i]);
  for (size_t i = 0; i < distill->n_answers; i++)
    drop(&distill->answers[i].scored);
  tnk_sampling_close(sampler, NULL, NULL);
  return result;
}

void train_distill_free(train_distill_t *distill) {
  free(distill->answers);
  free(distill->sampled);
  learn_sampler_free(&distill->sampler);
  train_teacher_free(&distill->teacher);
}
