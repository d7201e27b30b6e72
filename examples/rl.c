/* rl DIRECTORY [ITERATIONS]: reinforcement learning (GRPO), whose reward is the
 * share of vowels. While one iteration learns, the next one samples, from
 * weights that are one step older. A run continues from the ledger in
 * DIRECTORY, also within the process if the server is restarted: samples in
 * flight are drawn again, with the same weights and seeds. */
#include <string.h>
#include <tnk/script.h>
#include "local_server.h"

enum { PROMPTS = 9, GROUP = 16, ANSWER = 24, IN_FLIGHT = 2, EVERY = 2 };

/* A character is a token of this model. */
#define SAY(t)                                                                 \
  { .tokens = (const int32_t *)L##t, .n_tokens = sizeof(t) - 1 }
static const tnk_model_input_t prompts[PROMPTS] = {
    SAY("Say: "),    SAY("Tell me: "), SAY("Sing: "),
    SAY("Answer: "), SAY("Write: "),   SAY("Now: "),
    SAY("Rhyme: "),  SAY("A line: "),  SAY("Verse: ")};

typedef struct {
  char weights[256]; /* that it samples from; "": those of the model */
  tnk_sampling_t *sampler;
  tnk_promise_t *groups; /* one child a prompt */
} iteration_t;

static float reward_of(const tnk_samples_t *group, size_t index) {
  size_t n, hits = 0;
  const int32_t *tokens = tnk_samples_tokens(group, index, &n);
  for (size_t i = 0; i < n; i++)
    hits += tokens[i] > 0 && tokens[i] < 128 && strchr("aeiouAEIOU", tokens[i]);
  return n == 0 ? 0 : (float)hits / (float)n;
}

/* Asks for all groups at once and waits only for the weights. They have a name,
 * so that the next run finds them. Returns 0 if the model was lost. */
static int ask(iteration_t *it, tnk_service_t *service, tnk_training_t *model,
               size_t number) {
  tnk_sampling_options_t from = TNK_SAMPLING_OPTIONS_INIT;
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  tnk_sample_options_t how = TNK_SAMPLE_OPTIONS_INIT;
  tnk_promise_t *groups[PROMPTS];
  if (it->weights[0] == '\0') {
    snprintf(it->weights, 256, "iteration-%zu", number);
    tnk_promise_t *saved =
        tnk_training_save_weights_for_sampler(model, it->weights, NULL);
    if (!tnk_must_unless_lost(saved))
      return 0;
    snprintf(it->weights, 256, "%s", tnk_promise_path(saved));
    tnk_promise_unref(saved);
  }
  from.model_path = it->weights;
  tnk_promise_t *made = tnk_service_create_sampling(service, &from);
  if (!tnk_must_unless_lost(made))
    return 0;
  it->sampler = tnk_must_sampling(made);
  params.max_tokens = ANSWER;
  how.n_samples = GROUP;
  for (size_t p = 0; p < PROMPTS; p++) {
    params.seed = (int64_t)(number * PROMPTS + p);
    groups[p] = tnk_sampling_sample(it->sampler, &prompts[p], &params, &how);
  }
  it->groups = tnk_all(groups, PROMPTS);
  return 1;
}

static void forget(iteration_t *it) {
  tnk_promise_unref(it->groups);
  tnk_sampling_close(it->sampler, NULL, NULL);
  *it = (iteration_t){.weights = ""};
}

/* Trains on an iteration's answers. The advantage of an answer is its reward
 * compared with the mean of its group. Returns 0 if the model was lost. */
static int learn(tnk_training_t *model, iteration_t *it, size_t number) {
  tnk_pass_options_t options = TNK_PASS_OPTIONS_INIT;
  tnk_optim_t step = TNK_OPTIM_INIT;
  tnk_batch_t *batch = tnk_batch_new(NULL);
  float rewards[GROUP], advantages[GROUP];
  double sum = 0;
  size_t n;
  if (!tnk_must_unless_lost(tnk_promise_ref(it->groups)))
    return 0;
  for (size_t p = 0; p < PROMPTS; p++) {
    const tnk_samples_t *group =
        tnk_promise_samples(tnk_promise_child(it->groups, p));
    for (size_t g = 0; g < GROUP; g++)
      sum += (double)(rewards[g] = reward_of(group, g));
    tnk_rl_group_advantages(advantages, rewards, GROUP, GROUP,
                            TNK_ADVANTAGE_NORMALIZED);
    for (size_t g = 0; g < GROUP; g++) /* An empty answer is left out. */
      if (tnk_batch_add_sample(batch, prompts[p].tokens, prompts[p].n_tokens,
                               group, g, advantages[g]) == TNK_ENOMEM)
        tnk_must_not(tnk_batch_text(batch));
  }
  tnk_promise_unref(it->groups);
  forget(it);
  options.loss_fn = "importance_sampling";
  step.learning_rate = 0.01;
  const tnk_datum_t *data = tnk_batch_data(batch, &n);
  tnk_promise_t *both[2] = {
      tnk_training_forward_backward(model, data, n, &options),
      tnk_training_optim_step(model, &step)};
  tnk_batch_free(batch); /* The pass has copied it. */
  tnk_promise_t *learned = tnk_all(both, 2);
  if (!tnk_must_unless_lost(learned))
    return 0;
  tnk_promise_unref(learned);
  printf("iteration %zu reward %.3f\n", number, sum / (PROMPTS * GROUP));
  return 1;
}

/* The iteration that the model's weights are to learn next. What is in flight
 * belongs to other weights; those of the last save are in the ledger. */
static size_t go_back(iteration_t flight[IN_FLIGHT], tnk_training_t *model,
                      const tnk_ledger_t *ledger) {
  const size_t next = (size_t)tnk_must_ready(model);
  const tnk_ledger_entry_t *last = tnk_ledger_last(ledger);
  for (size_t i = 0; i < IN_FLIGHT; i++)
    forget(&flight[i]);
  if (last != NULL && last->n_steps == next)
    snprintf(flight[next % IN_FLIGHT].weights, 256, "%s", last->cursor);
  if (next > 0)
    printf("resuming at iteration %zu\n", next);
  return next;
}

/* Saves if it is time. Returns 0 if the model was lost. */
static int save(tnk_ledger_t *ledger, tnk_training_t *model,
                const char *weights, int is_last) {
  tnk_ledger_save_t how = TNK_LEDGER_SAVE_INIT;
  how.cursor = weights;
  how.is_final = is_last ? TNK_YES : TNK_NO;
  if (!is_last && !tnk_ledger_due(ledger, model))
    return 1;
  tnk_promise_t *saved = tnk_ledger_save(ledger, model, &how);
  if (!tnk_must_unless_lost(saved))
    return 0;
  tnk_promise_unref(saved);
  return 1;
}

int main(int argc, char **argv) {
  const size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 20;
  tnk_service_options_t with = TNK_SERVICE_OPTIONS_INIT;
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  tnk_ledger_options_t options = TNK_LEDGER_OPTIONS_INIT;
  iteration_t flight[IN_FLIGHT] = {{.weights = ""}, {.weights = ""}};
  if (argc < 2 || local_server_unless_set() != 0)
    tnk_must_not("usage: rl DIRECTORY [ITERATIONS]");
  setvbuf(stdout, NULL, _IOLBF, 0);
  with.recovery = TNK_YES;
  tnk_service_t *service = tnk_must_open(&with);
  options.run = argv[1]; /* It is found by that if DIRECTORY is lost. */
  options.every_steps = EVERY;
  tnk_ledger_t *ledger = tnk_must_ledger(service, argv[1], &options);
  lora.base_model = "tnk/byte-lm";
  tnk_training_t *model = tnk_must_resume(service, ledger, &lora);
  size_t i = go_back(flight, model, ledger);
  for (size_t next = i; i < n;) {
    int is_kept = 1;
    for (; is_kept && next < n && next < i + IN_FLIGHT; next++)
      is_kept = ask(&flight[next % IN_FLIGHT], service, model, next);
    is_kept =
        is_kept && learn(model, &flight[i % IN_FLIGHT], i) &&
        save(ledger, model, flight[(i + 1) % IN_FLIGHT].weights, i + 1 == n);
    if (is_kept)
      i++;
    else
      i = next = go_back(flight, model, ledger);
  }
  return tnk_must_close(service);
}
