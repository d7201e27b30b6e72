/*
 * Reinforcement learning (GRPO): groups of answers to many prompts, advantages
 * within a group, the loss importance_sampling, and fresh weights after each
 * iteration. While one iteration learns, the next one samples, so its answers
 * come from weights that are one step older.
 *
 *   rl [ITERATIONS [LEARNING_RATE]]
 *
 * The reward is the share of vowels.
 */
#include <math.h>
#include <string.h>
#include <tnk/script.h>

#include "local_server.h"

enum { GROUP = 8, ANSWER = 24, IN_FLIGHT = 2, MAX_PROMPT = 32 };

static const char *const prompts[] = {
    "Say: ",   "Tell me: ", "Sing: ",  "The word is ", "Answer: ", "Write: ",
    "Now: ",   "Again: ",   "Speak: ", "Quote: ",      "A line: ", "Rhyme: ",
    "Verse: ", "Tell: ",    "Voice: ", "Echo: "};
enum { PROMPTS = sizeof(prompts) / sizeof(prompts[0]) };

typedef struct {
  tnk_sampling_t *sampler;
  tnk_promise_t *groups; /* one child a prompt */
} iteration_t;

static size_t tokens_of(int32_t *tokens, const char *text) {
  const size_t n = strlen(text);

  for (size_t i = 0; i < n; i++)
    tokens[i] = (unsigned char)text[i];
  return n;
}

static double reward_of(const int32_t *tokens, size_t n) {
  size_t hits = 0;

  for (size_t i = 0; i < n; i++)
    hits += tokens[i] > 0 && tokens[i] < 128 && strchr("aeiouAEIOU", tokens[i]);
  return n == 0 ? 0 : (double)hits / (double)n;
}

/* Asks for all groups at once; nothing is waited for. */
static void ask(iteration_t *it, tnk_sampling_t *sampler) {
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  tnk_sample_options_t options = TNK_SAMPLE_OPTIONS_INIT;
  tnk_promise_t *groups[PROMPTS];

  params.max_tokens = ANSWER;
  options.n_samples = GROUP;
  for (size_t p = 0; p < PROMPTS; p++) {
    int32_t tokens[MAX_PROMPT];
    const size_t n = tokens_of(tokens, prompts[p]);
    const tnk_model_input_t input = {.tokens = tokens, .n_tokens = n};
    groups[p] = tnk_sampling_sample(sampler, &input, &params, &options);
  }
  it->sampler = sampler;
  it->groups = tnk_all(groups, PROMPTS);
}

/* Adds the answers of a group, each as much better than the mean as it is, in
 * standard deviations. Returns the mean reward. */
static double add_group(tnk_batch_t *batch, const char *prompt,
                        const tnk_samples_t *group) {
  const size_t n_group = tnk_samples_count(group);
  double rewards[GROUP], mean = 0, variance = 0;
  int32_t tokens[MAX_PROMPT];
  const size_t n = tokens_of(tokens, prompt);

  for (size_t g = 0; g < n_group; g++) {
    size_t n_answer;
    const int32_t *answer = tnk_samples_tokens(group, g, &n_answer);
    rewards[g] = reward_of(answer, n_answer);
    mean += rewards[g] / (double)n_group;
  }
  for (size_t g = 0; g < n_group; g++)
    variance += (rewards[g] - mean) * (rewards[g] - mean) / (double)n_group;
  /* Where all are alike there is nothing to learn. */
  for (size_t g = 0; g < n_group && variance > 1e-9; g++) {
    const double advantage = (rewards[g] - mean) / sqrt(variance);
    const int err = tnk_batch_add_sample(batch, tokens, n, group, g, advantage);
    if (err != TNK_OK && err != TNK_EINVAL) /* An empty answer is left out. */
      tnk_must_not(tnk_strerror(err));
  }
  return mean;
}

/* Trains on an iteration's answers. Returns their mean reward. */
static double learn(tnk_training_t *model, tnk_batch_t *batch, iteration_t *it,
                    double learning_rate) {
  tnk_pass_options_t options = TNK_PASS_OPTIONS_INIT;
  tnk_optim_t step = TNK_OPTIM_INIT;
  double reward = 0;
  size_t n;

  tnk_must_keep(it->groups);
  tnk_batch_clear(batch);
  for (size_t p = 0; p < PROMPTS; p++)
    reward += add_group(batch, prompts[p],
                        tnk_promise_samples(tnk_promise_child(it->groups, p))) /
              PROMPTS;
  tnk_promise_unref(it->groups);
  tnk_sampling_close(it->sampler, NULL, NULL);
  options.loss_fn = "importance_sampling";
  step.learning_rate = learning_rate;
  const tnk_datum_t *data = tnk_batch_data(batch, &n);
  if (n == 0)
    return reward;
  /* Not waited for together: the step follows the pass on the service. */
  tnk_promise_t *pass = tnk_training_forward_backward(model, data, n, &options);
  tnk_must(tnk_training_optim_step(model, &step));
  tnk_must(pass);
  return reward;
}

static tnk_sampling_t *sampler_of(tnk_training_t *model) {
  return tnk_must_sampling(tnk_training_save_weights_and_get_sampling(
      model, TNK_SAMPLING_SNAPSHOT, NULL));
}

int main(int argc, char **argv) {
  const int iterations = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 20;
  const double learning_rate = argc > 2 ? strtod(argv[2], NULL) : 0.005;
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  tnk_batch_t *batch = tnk_batch_new(NULL);
  iteration_t flight[IN_FLIGHT];

  if (batch == NULL || local_server_unless_set() != 0)
    return 1;
  tnk_service_t *service = tnk_must_open(NULL);
  lora.base_model = "tnk/byte-lm";
  tnk_training_t *model =
      tnk_must_training(tnk_service_create_lora(service, &lora));
  for (int i = 0; i < IN_FLIGHT && i < iterations; i++)
    ask(&flight[i], sampler_of(model));
  for (int i = 0; i < iterations; i++) {
    iteration_t *it = &flight[i % IN_FLIGHT];
    printf("iteration %d reward %.3f\n", i,
           learn(model, batch, it, learning_rate));
    fflush(stdout);
    if (i + IN_FLIGHT < iterations)
      ask(it, sampler_of(model));
  }
  tnk_batch_free(batch);
  return tnk_must_close(service);
}
