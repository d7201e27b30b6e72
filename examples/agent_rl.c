/* agent_rl DIRECTORY: one step of reinforcement learning (GRPO) from what tnk
 * gateway has recorded: examples on standard input as it prints them, with an
 * empty line behind each group that is compared. Prints the weights to sample
 * from next. The run goes on from the ledger in DIRECTORY. */
#include <string.h>
#include <tnk/script.h>

enum { MAX_EXAMPLES = 4096 };

typedef struct {
  size_t n;
  int32_t *tokens;
  int64_t *targets;
  float *logprobs, *advantages;
  tnk_loss_input_t inputs[2];
} example_t;

static example_t examples[MAX_EXAMPLES];
static tnk_datum_t data[MAX_EXAMPLES];
static size_t n_examples;

static void *room(size_t n, size_t size) {
  void *memory = calloc(n + 1, size);
  if (memory == NULL)
    tnk_must_not("out of memory");
  return memory;
}

/* The numbers of the list that begins behind these bytes of a line. */
static double *numbers(const char *line, const char *begin, size_t *n) {
  const char *at = strstr(line, begin);
  double *list = room(strlen(line) / 2, sizeof(*list));
  *n = 0;
  if (at == NULL)
    tnk_must_not("a line is no example of tnk gateway");
  for (at += strlen(begin); *at != ']'; at += *at == ',') {
    char *end;
    list[(*n)++] = strtod(at, &end);
    if (end == at)
      tnk_must_not("a line is no example of tnk gateway");
    at = end;
  }
  return list;
}

static void read_example(const char *line) {
  example_t *e = &examples[n_examples];
  size_t n[4];
  if (n_examples++ == MAX_EXAMPLES)
    tnk_must_not("too many examples");
  double *tokens = numbers(line, "\"tokens\":[", &n[0]);
  double *targets = numbers(line, "\"target_tokens\":{\"data\":[", &n[1]);
  double *logprobs = numbers(line, "\"logprobs\":{\"data\":[", &n[2]);
  double *advantages = numbers(line, "\"advantages\":{\"data\":[", &n[3]);
  e->n = n[0];
  if (n[1] != e->n || n[2] != e->n || n[3] != e->n)
    tnk_must_not("a line has lists of different lengths");
  e->tokens = room(e->n, sizeof(*e->tokens));
  e->targets = room(e->n, sizeof(*e->targets));
  e->logprobs = room(e->n, sizeof(*e->logprobs));
  e->advantages = room(e->n, sizeof(*e->advantages));
  for (size_t i = 0; i < e->n; i++) {
    e->tokens[i] = (int32_t)tokens[i];
    e->targets[i] = (int64_t)targets[i];
    e->logprobs[i] = (float)logprobs[i];
    e->advantages[i] = (float)advantages[i];
  }
  free(tokens), free(targets), free(logprobs), free(advantages);
}

/* Each token has the reward as its advantage: let that be how much better the
 * conversation was than the others of its group. */
static void compare(size_t first) {
  size_t n = n_examples - first;
  float *rewards = room(n, sizeof(*rewards));
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < examples[first + i].n; k++)
      if (examples[first + i].advantages[k] != 0)
        rewards[i] = examples[first + i].advantages[k];
  tnk_rl_group_advantages(rewards, rewards, n, n, TNK_ADVANTAGE_NORMALIZED);
  for (size_t i = 0; i < n; i++) {
    example_t *e = &examples[first + i];
    for (size_t k = 0; k < e->n; k++) /* Others were not sampled. */
      e->advantages[k] = e->logprobs[k] != 0 ? rewards[i] : 0;
    e->inputs[0].name = "logprobs";
    e->inputs[0].tensor = tnk_tensor_f32(e->logprobs, e->n);
    e->inputs[1].name = "advantages";
    e->inputs[1].tensor = tnk_tensor_f32(e->advantages, e->n);
    data[first + i].input.tokens = e->tokens;
    data[first + i].input.n_tokens = e->n;
    data[first + i].targets = e->targets;
    data[first + i].loss_inputs = e->inputs;
    data[first + i].n_loss_inputs = 2;
  }
  free(rewards);
}

static void read_all(void) {
  char *line = NULL;
  size_t size = 0, first = 0;
  while (getline(&line, &size, stdin) >= 0) {
    if (line[0] != '\n') {
      read_example(line);
    } else if (n_examples > first) {
      compare(first);
      first = n_examples;
    }
  }
  free(line);
  if (n_examples > first)
    compare(first);
}

int main(int argc, char **argv) {
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  tnk_pass_options_t options = TNK_PASS_OPTIONS_INIT;
  tnk_optim_t step = TNK_OPTIM_INIT;
  tnk_ledger_options_t how = TNK_LEDGER_OPTIONS_INIT;
  tnk_ledger_save_t save = TNK_LEDGER_SAVE_INIT;
  read_all();
  if (argc != 2 || n_examples == 0)
    tnk_must_not("usage: agent_rl DIRECTORY <EXAMPLES");
  tnk_service_t *service = tnk_must_open(NULL);
  how.n_rolling = 1; /* The last state is enough to go on from. */
  tnk_ledger_t *ledger = tnk_must_ledger(service, argv[1], &how);
  lora.base_model = "tnk/byte-lm";
  tnk_training_t *model = tnk_must_resume(service, ledger, &lora);
  options.loss_fn = "importance_sampling";
  step.learning_rate = 0.01;
  save.with_sampler = TNK_YES;
  tnk_promise_t *both[2] = {
      tnk_training_forward_backward(model, data, n_examples, &options),
      tnk_training_optim_step(model, &step)};
  tnk_must(tnk_all(both, 2));
  tnk_promise_t *saved = tnk_must_keep(tnk_ledger_save(ledger, model, &save));
  puts(tnk_promise_entry(saved)->sampler_path);
  tnk_promise_unref(saved);
  for (size_t i = 0; i < n_examples; i++) {
    free(examples[i].tokens), free(examples[i].targets);
    free(examples[i].logprobs), free(examples[i].advantages);
  }
  return tnk_must_close(service);
}
