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

static float reward_of(const tnk_samples_t *group, size_t index) {
  size_t n, hits = 0;
  const int32_t *tokens = tnk_samples_tokens(group, index, &n);

  for (size_t i = 0; i < n; i++)
    hits += tokens[i] > 0 && tokens[i] < 128 && strchr("aeiouAEIOU", tokens[i]);
  return n == 0 ? 0 : (float)hits / (float)n;
}

/* Asks for all groups at once; nothing is waited for. */
static void ask(iteration_t *it, tnk_training_t *model) {
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  tnk_sample_options_t options = TNK_SAMPLE_OPTIONS_INIT;
  tnk_promise_t *groups[PROMPTS];

  it->sampler = tnk_must_sampling(tnk_training_save_weights_and_get_sampling(
      model, TNK_SAMPLING_SNAPSHOT, NULL));
  params.max_tokens = ANSWER;
  options.n_samples = GROUP;
  for (size_t p = 0; p < PROMPTS; p++) {
    int32_t tokens[MAX_PROMPT];
    const size_t n = tokens_of(tokens, prompts[p]);
    const tnk_model_input_t input = {.tokens = tokens, .n_tokens = n};
    groups[p] = tnk_sampling_sample(it->sampler, &input, &params, &options);
  }
  it->groups = tnk_all(groups, PROMPTS);
}

/* Adds the answers to a prompt, each as much better than the mean of its group
 * as it is. Returns the sum of the rewards. */
static double add_group(tnk_batch_t *batch, const char *prompt,
                        const tnk_samples_t *group) {
  float rewards[GROUP] = {0}, advantages[GROUP];
  int32_t tokens[MAX_PROMPT];
  const size_t n = tokens_of(tokens, prompt);
  double sum = 0;

  for (size_t g = 0; g < GROUP; g++)
    sum += (double)(rewards[g] = reward_of(group, g));
  tnk_rl_group_advantages(advantages, rewards, GROUP, GROUP,
                          TNK_ADVANTAGE_NORMALIZED);
  for (size_t g = 0; g < GROUP; g++)
    if (advantages[g] != 0 && tnk_batch_add_sample(batch, tokens, n, group, g,
                                                   advantages[g]) == TNK_ENOMEM)
      tnk_must_not(tnk_batch_text(batch)); /* An empty answer is left out. */
  return sum;
}

/* Trains on an iteration's answers. Returns their mean reward. */
static double learn(tnk_training_t *model, tnk_batch_t *batch, iteration_t *it,
                    double learning_rate) {
  tnk_pass_options_t options = TNK_PASS_OPTIONS_INIT;
  tnk_optim_t step = TNK_OPTIM_INIT;
  double sum = 0;
  size_t n;

  tnk_must_keep(it->groups);
  tnk_batch_clear(batch);
  for (size_t p = 0; p < PROMPTS; p++)
    sum += add_group(batch, prompts[p],
                     tnk_promise_samples(tnk_promise_child(it->groups, p)));
  tnk_promise_unref(it->groups);
  tnk_sampling_close(it->sampler, NULL, NULL);
  options.loss_fn = "importance_sampling";
  step.learning_rate = learning_rate;
  const tnk_datum_t *data = tnk_batch_data(batch, &n);
  if (n > 0) { /* Not waited for one by one: the step follows the pass. */
    tnk_promise_t *both[2] = {
        tnk_training_forward_backward(model, data, n, &options),
        tnk_training_optim_step(model, &step)};
    tnk_must(tnk_all(both, 2));
  }
  return sum / (PROMPTS * GROUP);
}

int main(int argc, char **argv) {
  const int iterations = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 20;
  const double rate = argc > 2 ? strtod(argv[2], NULL) : 0.005;
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
    ask(&flight[i], model);
  for (int i = 0; i < iterations; i++) {
    iteration_t *it = &flight[i % IN_FLIGHT];
    printf("iteration %d reward %.3f\n", i, learn(model, batch, it, rate));
    fflush(stdout);
    if (i + IN_FLIGHT < iterations)
      ask(it, model);
  }
  tnk_batch_free(batch);
  return tnk_must_close(service);
}
