/* SPDX-License-Identifier: MIT */
#include "tools/tnk/train/pass.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/wire/data/data.h"
#include "tnk/result.h"
#include "tnk/rl.h"
#include "tools/tnk/learn/drift.h"
#include "tools/tnk/train/args.h"

static void add(train_step_t *step, const char *name, double value) {
  if (step->n_more < TRAIN_MAX_MORE)
    step->more[step->n_more++] = (tnk_number_t){name, value};
}

/* The library computes the loss for a server that sends no metrics, but not of
 * data that it has not copied. */
static double loss_sum(const tnk_promise_t *promise, const train_part_t *part) {
  const tnk_pass_t *pass = tnk_promise_pass(promise);
  const tnk_datum_t *data = part->pass->data + part->first;
  double sum = 0;

  if (train_args.method != TRAIN_SFT || tnk_pass_count(pass) != part->n ||
      tnk_metrics_count(tnk_pass_metrics(pass)) > 0)
    return tnk_pass_loss_sum(pass);
  for (size_t i = 0; i < part->n; i++)
    if (!tnk__datum_add_loss(&sum, tnk_pass_tensor(pass, i, "logprobs"),
                             &data[i]))
      return NAN;
  return sum;
}

/* ---- DPO ---- */

/* Sums over pairs. The reward of an answer is beta times the rise of its
 * logprob. */
typedef struct {
  double loss;
  double chosen, rejected;
  double n_right; /* pairs in which the chosen reward is higher */
} sums_t;

static double reward(const tnk_rl_tokens_t *tokens) {
  double sum = 0;

  for (size_t t = 0; t < tokens->n; t++)
    sum += (double)tokens->weights[t] *
           ((double)tokens->logprobs[t] - (double)tokens->reference[t]);
  return train_args.beta * sum;
}

/* Add a pair, whose loss counts `scale`. */
static void add_pair(sums_t *sums, const tnk_rl_tokens_t *pair, double scale) {
  double margin = 0;

  sums->loss += tnk_rl_dpo(&pair[0], &pair[1], train_args.beta, scale, &margin);
  sums->chosen += reward(&pair[0]);
  sums->rejected += reward(&pair[1]);
  sums->n_right += margin > 0;
}

static tnk_rl_tokens_t tokens_of(const tnk_datum_t *datum,
                                 const tnk_tensor_t *logprobs,
                                 const float *reference, float *gradient) {
  return (tnk_rl_tokens_t){.n = datum->input.n_tokens,
                           .logprobs = logprobs->data,
                           .reference = reference,
                           .weights = datum->weights,
                           .gradient = gradient};
}

/* The mean of the pairs of a step, as in Rafailov et al. 2023: what this part
 * has of it. */
static int dpo(tnk_custom_loss_t *io, void *user) {
  train_part_t *part = user;
  const tnk_datum_t *data = part->pass->data + part->first;
  const float **reference = part->pass->reference + part->first;
  const double scale = 2 / (double)part->pass->n;
  sums_t sums = {0};

  for (size_t i = 0; i < io->n_data; i += 2) {
    tnk_rl_tokens_t pair[2];

    for (size_t k = i; k < i + 2; k++)
      pair[k - i] =
          tokens_of(&data[k], &io->logprobs[k], reference[k], io->gradients[k]);
    add_pair(&sums, pair, scale);
  }
  io->loss = sums.loss;
  part->chosen = sums.chosen;
  part->rejected = sums.rejected;
  part->n_right = sums.n_right;
  return 0;
}

static void add_dpo(train_step_t *step, const train_pass_t *pass) {
  const double n_pairs = (double)pass->n / 2;
  train_part_t sum = {0};

  for (size_t i = 0; i < pass->n_parts; i++) {
    sum.chosen += pass->parts[i].chosen;
    sum.rejected += pass->parts[i].rejected;
    sum.n_right += pass->parts[i].n_right;
  }
  add(step, "accuracy", sum.n_right / n_pairs);
  add(step, "margin", (sum.chosen - sum.rejected) / n_pairs);
  add(step, "chosen_reward", sum.chosen / n_pairs);
  add(step, "rejected_reward", sum.rejected / n_pairs);
}

/* ---- RL ---- */

static void add_rl(train_step_t *step, const tnk_promise_t *promise,
                   const train_pass_t *pass) {
  tnk_number_t drift[LEARN_N_DRIFT];
  learn_drift_t sums = {0};
  size_t n;

  for (size_t i = 0; i < pass->n_parts; i++)
    learn_drift_add(&sums, tnk_promise_child(promise, i),
                    pass->data + pass->parts[i].first, pass->parts[i].n);
  n = learn_drift_means(drift, &sums);
  if (!isnan(pass->reward))
    add(step, "reward", pass->reward / (double)pass->n);
  for (size_t i = 0; i < n; i++)
    add(step, drift[i].key, drift[i].value);
}

static void add_distill(train_step_t *step, const train_pass_t *pass) {
  add(step, "teacher_kl", pass->teacher_kl / pass->n_sampled);
  add(step, "answer_tokens", pass->n_sampled / (double)pass->n);
}

/* ---- Memory ---- */

static void destroy(train_pass_t *pass) {
  free(pass->data);
  free(pass->reference);
  free(pass->parts);
  free(pass->begun);
  tnk__arena_deinit(&pass->arena);
  free(pass);
}

train_pass_t *train_pass_new(size_t n_most) {
  const size_t n_parts = (size_t)train_args.n_passes;
  train_pass_t *pass = calloc(1, sizeof(*pass));

  if (pass == NULL)
    return NULL;
  tnk__arena_init(&pass->arena, tnk__allocator_default(), SIZE_MAX / 2);
  pass->n_most = n_most;
  pass->data = calloc(n_most, sizeof(*pass->data));
  pass->reference = calloc(n_most, sizeof(*pass->reference));
  pass->parts = calloc(n_parts, sizeof(*pass->parts));
  pass->begun = calloc(n_parts, sizeof(*pass->begun));
  if (pass->data != NULL && pass->reference != NULL && pass->parts != NULL &&
      pass->begun != NULL)
    return pass;
  destroy(pass);
  return NULL;
}

void train_pass_free(train_pass_t *pass) {
  if (pass == NULL)
    return;
  pass->is_left = 1;
  if (pass->n_lent == 0)
    destroy(pass);
}

void train_pass_clear(train_pass_t *pass) {
  if (pass->n_lent == 0)
    tnk__arena_deinit(&pass->arena);
}

train_pass_t *train_pass_renew(train_pass_t *pass) {
  train_pass_t *other = pass;

  if (pass->n_lent > 0)
    other = train_pass_new(pass->n_most);
  if (other == NULL)
    return NULL;
  if (other != pass)
    train_pass_free(pass);
  train_pass_clear(other);
  other->n = 0;
  other->weight = other->reward = 0;
  return other;
}

/* ---- Passes ---- */

static void on_release(void *user) {
  train_pass_t *pass = user;

  pass->n_lent--;
  if (pass->n_lent == 0 && pass->is_left)
    destroy(pass);
}

static int is_sampled(void) {
  return train_args.method == TRAIN_RL || train_args.method == TRAIN_DISTILL;
}

static tnk_promise_t *begin_part(tnk_training_t *model, train_pass_t *pass,
                                 train_part_t *part) {
  const tnk_datum_t *data = pass->data + part->first;
  tnk_pass_options_t options = TNK_PASS_OPTIONS_INIT;

  options.release = on_release;
  options.release_user = pass;
  pass->n_lent++;
  if (train_args.method == TRAIN_DPO)
    return tnk_training_forward_backward_custom(model, data, part->n, dpo, part,
                                                &options);
  if (is_sampled())
    learn_loss_set(&train_args.loss, &options);
  return tnk_training_forward_backward(model, data, part->n, &options);
}

tnk_promise_t *train_pass_begin(tnk_training_t *model, train_pass_t *pass) {
  const size_t per = train_args.method == TRAIN_DPO ? 2 : 1;
  const size_t n = pass->n / per;
  const size_t n_wanted = (size_t)train_args.n_passes;
  const size_t n_parts = n_wanted < n ? n_wanted : n;

  pass->n_parts = n_parts;
  for (size_t i = 0; i < n_parts; i++) {
    const size_t first = i * n / n_parts;

    pass->parts[i] = (train_part_t){
        .pass = pass,
        .first = first * per,
        .n = ((i + 1) * n / n_parts - first) * per,
    };
    pass->begun[i] = begin_part(model, pass, &pass->parts[i]);
  }
  return tnk_all(pass->begun, n_parts);
}

double train_pass_end(const tnk_promise_t *promise, const train_pass_t *pass,
                      train_step_t *step) {
  double loss = 0;

  for (size_t i = 0; i < pass->n_parts; i++)
    loss += loss_sum(tnk_promise_child(promise, i), &pass->parts[i]);
  if (train_args.method == TRAIN_DISTILL)
    add_distill(step, pass);
  if (is_sampled())
    add_rl(step, promise, pass);
  /* A sampled token may have the logprob 0, which has no weight. */
  if (train_args.method == TRAIN_DISTILL)
    return loss / pass->n_sampled;
  if (train_args.method != TRAIN_DPO)
    return loss / pass->weight;
  add_dpo(step, pass);
  return loss;
}

tnk_promise_t *train_eval_begin(tnk_training_t *model,
                                const train_set_t *eval) {
  const size_t n = eval->n * eval->per;

  /* The loss of pairs is computed from the logprobs of the pass. */
  return train_args.method == TRAIN_DPO
             ? tnk_training_forward(model, eval->data, n, NULL)
             : tnk_training_evaluate(model, eval->data, n, NULL);
}

double train_eval_end(const tnk_promise_t *promise, const train_set_t *eval,
                      const float **reference, train_step_t *step) {
  const tnk_pass_t *pass = tnk_promise_pass(promise);
  const double n = (double)eval->n;
  sums_t sums = {0};

  if (reference == NULL)
    return tnk_promise_eval(promise)->loss;
  for (size_t i = 0; i < eval->n * 2; i += 2) {
    tnk_rl_tokens_t pair[2];

    for (size_t part = 0; part < 2; part++) {
      const tnk_tensor_t *logprobs =
          tnk_pass_tensor(pass, i + part, "logprobs");

      if (logprobs == NULL || logprobs->dtype != TNK_F32 ||
          logprobs->n_values != eval->data[i + part].input.n_tokens)
        return NAN;
      pair[part] =
          tokens_of(&eval->data[i + part], logprobs, reference[i + part], NULL);
    }
    add_pair(&sums, pair, 1 / n);
  }
  add(step, "eval/accuracy", sums.n_right / n);
  add(step, "eval/margin", (sums.chosen - sums.rejected) / n);
  return sums.loss;
}
