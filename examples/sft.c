/* Supervised fine-tuning on chat messages: only what the assistant says is
 * learned. The learning rate warms up and decays as a cosine, and the loss of
 * examples held out is shown. A ledger in DIRECTORY lets the next run continue
 * where this one has ended. If the server is restarted, the run returns to the
 * last saved step and continues. FILE holds a line
 * {"messages": [{"role": ..., "content": ...}]} for each chat; bytes are
 * tokens, and the template is a plain one of roles. */
#include <stdlib.h>
#include <sys/types.h>
#include <tnk/chat.h>
#include <tnk/script.h>
#include "local_server.h"

enum { BATCH = 16, HELD_OUT = 32, IN_FLIGHT = 2, WARM_UP = 10 };
static const double PEAK = 0.01;

typedef struct {
  tnk_promise_t *done; /* the pass and the update */
  double weight;
} step_t;

static void add_chat(tnk_batch_t *all, const tnk_chat_template_t *plain,
                     tnk_chat_tokens_t *tokens, const char *line, size_t n) {
  const tnk_chat_tokenizer_t bytes = {tnk_chat_bytes_plugin(), NULL};
  tnk_chat_options_t options = TNK_CHAT_OPTIONS_INIT;
  tnk_chat_t *chat = tnk_chat_new(NULL);
  tnk_chat_error_t error;
  options.train_on = TNK_CHAT_TRAIN_ALL_ANSWERS;
  if (tnk_chat_read(chat, TNK_CHAT_OPENAI, line, n, &error) != TNK_OK ||
      tnk_chat_encode(tokens, plain, &bytes, chat, &options, &error) != TNK_OK)
    tnk_must_not(error.text);
  const int32_t *ids = tnk_chat_tokens_ids(tokens, &n);
  if (tnk_batch_add_tokens(all, ids, tnk_chat_tokens_weights(tokens), n) !=
      TNK_OK)
    tnk_must_not(tnk_batch_text(all));
  tnk_chat_free(chat);
}

/* All examples; a batch to learn from is a choice of them. */
static tnk_batch_t *read_chats(const char *path) {
  tnk_batch_t *all = tnk_batch_new(NULL);
  tnk_chat_tokens_t *tokens = tnk_chat_tokens_new(NULL);
  tnk_chat_template_t *plain = NULL;
  FILE *file = fopen(path, "r");
  char *line = NULL;
  size_t room = 0;
  if (file == NULL || all == NULL || tokens == NULL ||
      tnk_chat_template_open(&plain, NULL, 0, NULL, NULL) != TNK_OK)
    tnk_must_not("the file of examples cannot be read");
  for (ssize_t n; (n = getline(&line, &room, file)) > 0;)
    add_chat(all, plain, tokens, line, (size_t)n);
  fclose(file);
  free(line);
  tnk_chat_tokens_free(tokens);
  tnk_chat_template_unref(plain);
  return all;
}

static step_t begin(tnk_training_t *model, const tnk_datum_t *examples,
                    const tnk_plan_t *plan, unsigned step) {
  const tnk_schedule_t schedule = {.size = sizeof(schedule),
                                   .decay = TNK_DECAY_COSINE,
                                   .peak = PEAK,
                                   .n_warm_up = WARM_UP,
                                   .n_steps = tnk_plan_steps(plan)};
  tnk_optim_t optim = TNK_OPTIM_INIT;
  tnk_datum_t data[BATCH];
  for (size_t i = 0; i < BATCH; i++)
    data[i] = examples[tnk_plan_example(plan, step, i)];
  optim.learning_rate = tnk_schedule_rate(&schedule, step);
  step_t begun = {.weight = tnk_data_weight(data, BATCH)};
  tnk_promise_t *both[2] = {
      tnk_training_forward_backward(model, data, BATCH, NULL),
      tnk_training_optim_step(model, &optim)};
  begun.done = tnk_all(both, 2);
  return begun;
}

/* Returns 0 if the model was lost meanwhile. */
static int finish(const step_t *step, unsigned number) {
  if (!tnk_must_unless_lost(step->done))
    return 0;
  const tnk_pass_t *pass = tnk_promise_pass(tnk_promise_child(step->done, 0));
  printf("step %u loss %.3f\n", number, tnk_pass_loss_sum(pass) / step->weight);
  tnk_promise_unref(step->done);
  return 1;
}

/* What is saved has the steps that are begun, and the ledger counts them.
 * Returns 0 if the model was lost meanwhile. */
static int save(tnk_ledger_t *ledger, tnk_training_t *model,
                const tnk_datum_t *held_out, int is_last) {
  tnk_ledger_save_t how = TNK_LEDGER_SAVE_INIT;
  how.is_final = is_last ? TNK_YES : TNK_NO;
  tnk_promise_t *both[2] = {
      tnk_ledger_save(ledger, model, &how),
      tnk_training_evaluate(model, held_out, HELD_OUT, NULL)};
  tnk_promise_t *done = tnk_all(both, 2);
  if (!tnk_must_unless_lost(done))
    return 0;
  printf("step %u held-out loss %.4f\n",
         (unsigned)tnk_promise_entry(tnk_promise_child(done, 0))->n_steps,
         tnk_promise_eval(tnk_promise_child(done, 1))->loss);
  tnk_promise_unref(done);
  return 1;
}

/* The steps that the weights have, also after they were restored. */
static unsigned ready(tnk_training_t *model) {
  const unsigned step = (unsigned)tnk_must_ready(model);
  if (step > 0)
    printf("resuming at step %u\n", step);
  return step;
}

int main(int argc, char **argv) {
  const unsigned steps = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 100;
  const unsigned every = argc > 4 ? (unsigned)strtoul(argv[4], NULL, 10) : 20;
  tnk_service_options_t with = TNK_SERVICE_OPTIONS_INIT;
  tnk_ledger_options_t options = TNK_LEDGER_OPTIONS_INIT;
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  tnk_plan_options_t order = TNK_PLAN_OPTIONS_INIT;
  step_t flight[IN_FLIGHT];
  size_t n;
  if (argc < 3 || every == 0)
    tnk_must_not("usage: sft FILE DIRECTORY [STEPS [EVERY]]");
  tnk_batch_t *all = read_chats(argv[1]);
  const tnk_datum_t *held_out = tnk_batch_data(all, &n);
  if (n <= HELD_OUT || local_server_unless_set() != 0)
    tnk_must_not("there are too few examples, or no server");
  order.n_examples = n - HELD_OUT;
  order.n_batch = BATCH;
  order.n_steps = steps;
  tnk_plan_t *plan = tnk_must_plan(&order);
  setvbuf(stdout, NULL, _IOLBF, 0);
  with.recovery = TNK_YES;
  tnk_service_t *service = tnk_must_open(&with);
  options.run = argv[2]; /* It is found by that if DIRECTORY is lost. */
  options.every_steps = every;
  tnk_ledger_t *ledger = tnk_must_ledger(service, argv[2], &options);
  lora.base_model = "tnk/byte-lm";
  tnk_training_t *model = tnk_must_resume(service, ledger, &lora);
  unsigned step = ready(model);
  for (unsigned begun = step; step < steps;) {
    for (; begun < steps && begun < step + IN_FLIGHT; begun++)
      flight[begun % IN_FLIGHT] =
          begin(model, held_out + HELD_OUT, plan, begun);
    int is_kept = finish(&flight[step % IN_FLIGHT], step + 1);
    step++;
    if (is_kept &&
        (step == steps || (begun < steps && tnk_ledger_due(ledger, model))))
      is_kept = save(ledger, model, held_out, begun == steps);
    for (; !is_kept && step < begun; step++) /* It is lost as well. */
      finish(&flight[step % IN_FLIGHT], step + 1);
    if (!is_kept)
      begun = step = ready(model);
  }
  tnk_plan_free(plan);
  tnk_batch_free(all);
  return tnk_must_close(service);
}
