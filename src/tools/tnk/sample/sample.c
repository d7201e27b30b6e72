/* tnk sample. */
#include <stdlib.h>
#include <string.h>

#include "tnk/rest.h"
#include "tnk/sampling.h"
#include "tools/common/base/input.h"
#include "tools/tnk/ask/ask.h"
#include "tools/tnk/sample/commands.h"
#include "tools/tnk/sample/number.h"
#include "tools/tnk/sample/show.h"

enum { MAX_SAMPLES = 1024 };

static struct {
  const char *model;
  const char *checkpoint;
  const char *file;
  cli_tokenizer_t which;
  int64_t n;
  int64_t max_tokens;
  int64_t top_k;
  int64_t seed;
  double temperature;
  double top_p;
  cli_texts_t stops;
  int prompt_logprobs;
  int is_ids;
} args = {.n = 1,
          .max_tokens = 128,
          .top_k = TNK_ABSENT,
          .seed = TNK_ABSENT,
          .temperature = TNK_ABSENT,
          .top_p = TNK_ABSENT};

static int set_temperature(const cli_option_t *option, const char *value,
                           char *why, size_t n_why) {
  (void)option;
  return cli_set_number(value, 100, &args.temperature, why, n_why);
}

static int set_top_p(const cli_option_t *option, const char *value, char *why,
                     size_t n_why) {
  (void)option;
  return cli_set_number(value, 1, &args.top_p, why, n_why);
}

static const cli_option_t options[] = {
    {.name = "model",
     .letter = 'm',
     .value = "NAME",
     .text = &args.model,
     .help = "Sample from this base model."},
    {.name = "checkpoint",
     .value = "PATH",
     .text = &args.checkpoint,
     .help = "Sample from these weights, tinker://..."},
    {.name = "file",
     .value = "FILE",
     .text = &args.file,
     .offer = CLI_OFFER_FILES,
     .help = "Read the prompt from this file."},
    {.name = "tokens",
     .flag = &args.is_ids,
     .help = "The prompt consists of token ids, separated by blanks, commas or "
             "brackets."},
    {.name = "tokenizer",
     .value = "PATH",
     .text = &args.which.path,
     .offer = CLI_OFFER_FILES,
     .help = "tokenizer.json, tiktoken.model or a SentencePiece model, or the "
             "directory it is in, instead of the model's own."},
    {.name = "max-tokens",
     .value = "N",
     .number = &args.max_tokens,
     .min = 1,
     .max = INT32_MAX,
     .help = "Maximum number of tokens (128)."},
    {.name = "temperature",
     .value = "T",
     .set = set_temperature,
     .help = "Temperature; 0 always takes the likeliest token (1)."},
    {.name = "top-p",
     .value = "P",
     .set = set_top_p,
     .help = "Sample from the likeliest tokens that together have this "
             "probability (1)."},
    {.name = "top-k",
     .value = "K",
     .number = &args.top_k,
     .min = -1,
     .max = INT32_MAX,
     .help = "Sample from the K likeliest tokens; -1 means all (-1)."},
    {.name = "seed",
     .value = "N",
     .number = &args.seed,
     .min = 0,
     .max = INT64_MAX - MAX_SAMPLES,
     .help = "Seed. The same seed gives the same text if the service supports "
             "it. Further samples use the next numbers."},
    {.name = "stop",
     .value = "TEXT",
     .texts = &args.stops,
     .help = "Stop string; may be repeated."},
    {.name = "samples",
     .letter = 'n',
     .value = "N",
     .number = &args.n,
     .min = 1,
     .max = MAX_SAMPLES,
     .help = "Number of samples; each is printed when it arrives (1)."},
    {.name = "prompt-logprobs",
     .flag = &args.prompt_logprobs,
     .help = "With --json: add the logprobs of the prompt's tokens."},
    {.name = NULL}};

static const char *check(const cli_t *cli) {
  if ((args.model != NULL) == (args.checkpoint != NULL))
    return "one of --model and --checkpoint says what to sample from";
  if ((cli->n_words > 0) == (args.file != NULL))
    return "the prompt is TEXT, - for standard input, or that of --file";
  if (args.prompt_logprobs && !cli->json)
    return "--prompt-logprobs goes with --json";
  return NULL;
}

/* ---- The prompt ---- */

typedef struct {
  const cli_t *cli;
  cli_ask_t ask;
  cli_words_t words;
  int32_t *prompt;
  size_t n_prompt;
  tnk_promise_t *sampler;
  tnk_promise_t **samples; /* args.n of them; NULL: not started */
  size_t n_shown;
  int status; /* result of printing */
} work_t;

static int encode_prompt(work_t *work) {
  const char *text = work->cli->n_words > 0 ? work->cli->words[0] : args.file;
  char *read = NULL;
  char why[512];
  size_t n;
  int status;

  if (args.file != NULL || strcmp(text, "-") == 0) {
    text = read = cli_read_file(text, &n, why, sizeof(why));
    if (read == NULL)
      return cli_fail(work->cli, CLI_EXIT_FILE, "%s", why);
  } else {
    n = strlen(text);
  }
  status = args.is_ids ? cli_ids_read(work->cli, text, n, &work->prompt,
                                      &work->n_prompt)
                       : cli_words_encode(&work->words, work->cli, text, n,
                                          &work->prompt, &work->n_prompt);
  free(read);
  if (status == CLI_EXIT_OK && work->n_prompt == 0)
    return cli_fail(work->cli, CLI_EXIT_USAGE, "the prompt is empty");
  return status;
}

/* Determine the tokenizer of a checkpoint before anything is created at the
 * service. */
static int open_words(work_t *work) {
  tnk_promise_t *promise;
  int status;

  if (args.checkpoint == NULL || args.which.path != NULL)
    return cli_words_open(&work->words, work->cli, &args.which, args.model);
  promise = tnk_rest_get_weights_info(work->ask.service, args.checkpoint);
  if (cli_ask_wait(&work->ask, promise) == TNK_OK)
    status = cli_words_open(
        &work->words, work->cli, &args.which,
        tnk_page_weights_info(tnk_promise_page(promise), 0)->base_model);
  else
    status = cli_ask_failed(&work->ask, promise);
  tnk_promise_unref(promise);
  return status;
}

/* ---- The samples ---- */

static void fill_params(tnk_sampling_params_t *params, size_t i) {
  params->max_tokens = (int32_t)args.max_tokens;
  params->top_k = (int32_t)args.top_k;
  params->temperature = args.temperature;
  params->top_p = args.top_p;
  if (args.seed != TNK_ABSENT)
    params->seed = args.seed + (int64_t)i;
  if (args.stops.n > 0) {
    params->stop_texts = args.stops.items;
    params->n_stop_texts = args.stops.n;
  }
}

static void on_sample(tnk_promise_t *promise, int err, void *user) {
  work_t *work = user;

  if (err != TNK_OK || work->status != CLI_EXIT_OK || work->cli->json)
    return;
  work->status =
      cli_sample_print(work->cli, &work->words, tnk_promise_samples(promise),
                       args.n > 1 ? ++work->n_shown : 0);
}

/* Start all samples. Returns a promise that settles after all of them. */
static tnk_promise_t *begin(work_t *work) {
  const tnk_model_input_t prompt = {.tokens = work->prompt,
                                    .n_tokens = work->n_prompt};
  tnk_sample_options_t wanted = TNK_SAMPLE_OPTIONS_INIT;

  if (args.prompt_logprobs)
    wanted.prompt_logprobs = TNK_YES;
  for (size_t i = 0; i < (size_t)args.n; i++) {
    tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;

    fill_params(&params, i);
    work->samples[i] =
        tnk_sampling_sample(tnk_promise_sampling(work->sampler), &prompt,
                            &params, i == 0 ? &wanted : NULL);
    tnk_then(tnk_promise_ref(work->samples[i]), on_sample, work);
    /* The group takes one reference, and the command keeps one. */
    tnk_promise_ref(work->samples[i]);
  }
  return tnk_all(work->samples, (size_t)args.n);
}

static int print_json(const work_t *work) {
  const tnk_samples_t *first = tnk_promise_samples(work->samples[0]);
  cli_json_t json;
  int is_whole = 1;

  cli_json_begin(&json);
  tnk__json_put_text(
      &json.w, "model",
      tnk_sampling_base_model(tnk_promise_sampling(work->sampler)));
  tnk__json_put_text(&json.w, "checkpoint", args.checkpoint);
  tnk__json_key(&json.w, "prompt_tokens");
  tnk__json_int32s(&json.w, work->prompt, work->n_prompt);
  if (args.prompt_logprobs) {
    size_t n;
    const float *logprobs = tnk_samples_prompt_logprobs(first, &n);

    cli_sample_put_logprobs(&json, "prompt_logprobs", logprobs, n);
  }
  tnk__json_key(&json.w, "samples");
  tnk__json_begin_array(&json.w);
  for (size_t i = 0; i < (size_t)args.n && is_whole; i++)
    is_whole = cli_sample_put(&json, &work->words,
                              tnk_promise_samples(work->samples[i]));
  tnk__json_end(&json.w);
  if (is_whole)
    return cli_json_end(&json, work->cli);
  cli_json_drop(&json);
  return cli_fail(work->cli, CLI_EXIT_FAILED, "out of memory");
}

static int take_samples(work_t *work) {
  tnk_promise_t *all = begin(work);
  int status = CLI_EXIT_OK;

  if (cli_ask_wait(&work->ask, all) != TNK_OK)
    status = cli_ask_failed(&work->ask, all);
  else if (work->cli->json)
    status = print_json(work);
  else
    status = work->status;
  tnk_promise_unref(all);
  return status;
}

/* ---- The command ---- */

static int sample(work_t *work) {
  tnk_sampling_options_t what = TNK_SAMPLING_OPTIONS_INIT;
  int status = open_words(work);

  if (status == CLI_EXIT_OK)
    status = encode_prompt(work);
  if (status != CLI_EXIT_OK)
    return status;
  what.base_model = args.model;
  what.model_path = args.checkpoint;
  work->sampler = tnk_service_create_sampling(work->ask.service, &what);
  work->samples = calloc((size_t)args.n, sizeof(tnk_promise_t *));
  if (work->samples == NULL)
    return cli_fail(work->cli, CLI_EXIT_FAILED, "out of memory");
  if (cli_ask_wait(&work->ask, work->sampler) == TNK_OK)
    return take_samples(work);
  return args.model != NULL
             ? cli_ask_model_failed(&work->ask, work->sampler, args.model)
             : cli_ask_failed(&work->ask, work->sampler);
}

static int run(cli_t *cli) {
  work_t work = {.cli = cli};
  int status = cli_ask_open(&work.ask, cli, NULL);

  if (status == CLI_EXIT_OK)
    status = sample(&work);
  for (size_t i = 0; work.samples != NULL && i < (size_t)args.n; i++)
    tnk_promise_unref(work.samples[i]);
  free(work.samples);
  tnk_promise_unref(work.sampler);
  status = cli_ask_close(&work.ask, status);
  cli_words_close(&work.words);
  free(work.prompt);
  return status;
}

static const cli_item_t examples[] = {
    {"tnk sample --model Qwen/Qwen3-8B 'Once upon a time'",
     "goes on with a text"},
    {"tnk sample --checkpoint tinker://RUN/sampler_weights/NAME -n 4 - <prompt",
     "four times, from trained weights"},
    {NULL, NULL}};

const cli_command_t cli_sample = {
    .name = "sample",
    .brief = "sample a completion of a text",
    .about = "Print a completion of the prompt, without the prompt. The text "
             "is tokenized with the model's own tokenizer, which is downloaded "
             "to the cache of Hugging Face's library if it is not there, or "
             "with --tokenizer.",
    .words = "[TEXT]",
    .max_words = 1,
    .options = options,
    .examples = examples,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = check,
    .run = run,
};
