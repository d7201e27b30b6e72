/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/number.h"
#include "lib/base/utf8.h"
#include "tnk/error.h"
#include "tnk/promise.h"
#include "tnk/rest.h"
#include "tnk/sampling.h"
#include "tools/common/base/input.h"
#include "tools/common/base/terminal.h"
#include "tools/common/frame/commands.h"
#include "tools/tnk/ask/ask.h"
#include "tools/tnk/out/json.h"
#include "tools/tnk/text/tokenizer.h"

/* ---- Words ---- */

/* Converts text to token ids and back with a tokenizer, or byte by byte for
 * models whose tokens are bytes. */
typedef struct {
  tnk_tokenizer_t *tokenizer; /* NULL: bytes */
} words_t;

/* The model of tnk local; its first 256 tokens are bytes. */
#define BYTE_MODEL "tnk/byte-lm"

/* Open the tokenizer that the options name, else the model's. Returns the exit
 * status; errors have been reported. */
static int words_open(words_t *words, const cli_t *cli,
                      const cli_tokenizer_t *which, const char *model) {
  cli_tokenizer_t wanted = *which;
  char why[512];
  int status = CLI_EXIT_OK;

  words->tokenizer = NULL;
  if (wanted.path == NULL) {
    if (strcmp(model, BYTE_MODEL) == 0)
      return CLI_EXIT_OK;
    wanted.model = model;
  }
  words->tokenizer =
      cli_tokenizer_open(cli, &wanted, &status, why, sizeof(why));
  if (words->tokenizer != NULL)
    return CLI_EXIT_OK;
  return cli_tokenizer_failed(
      cli, &wanted, status, why,
      "--tokenizer names a file with the model's tokenizer.");
}

static void words_close(words_t *words) {
  tnk_tokenizer_unref(words->tokenizer);
}

/* ---- Words: text to ids ---- */

static int32_t *ids_of_bytes(const char *text, size_t n) {
  int32_t *ids = calloc(n > 0 ? n : 1, sizeof(*ids));

  for (size_t i = 0; i < n && ids != NULL; i++)
    ids[i] = (unsigned char)text[i];
  return ids;
}

static int encode(const words_t *words, const char *text, size_t n,
                  int32_t **ids, size_t *n_ids, tnk_tokenizer_error_t *error) {
  tnk_tokens_t *tokens = tnk_tokens_new(NULL);
  const int32_t *found;
  int err = tokens != NULL ? tnk_tokenizer_encode(words->tokenizer, tokens,
                                                  text, n, 0, error)
                           : TNK_ENOMEM;

  if (err == TNK_OK) {
    found = tnk_tokens_ids(tokens, n_ids);
    *ids = calloc(*n_ids > 0 ? *n_ids : 1, sizeof(**ids));
    if (*ids == NULL)
      err = TNK_ENOMEM;
    else if (*n_ids > 0)
      memcpy(*ids, found, *n_ids * sizeof(**ids));
  }
  tnk_tokens_free(tokens);
  return err;
}

/* Get the ids of a text; the caller frees them. Returns the exit status; errors
 * have been reported. */
static int words_encode(const words_t *words, const cli_t *cli,
                        const char *text, size_t n, int32_t **ids,
                        size_t *n_ids) {
  tnk_tokenizer_error_t error = {0, 0, "out of memory"};

  *ids = NULL;
  *n_ids = n;
  if (words->tokenizer == NULL)
    *ids = ids_of_bytes(text, n);
  else
    (void)encode(words, text, n, ids, n_ids, &error);
  return *ids != NULL ? CLI_EXIT_OK
                      : cli_fail(cli, CLI_EXIT_FAILED, "%s", error.text);
}

/* As above, for a text that lists ids. */
static int ids_read(const cli_t *cli, const char *text, size_t n, int32_t **ids,
                    size_t *n_ids) {
  const char *end = text + n;

  *n_ids = 0;
  /* Each id has at least one digit. */
  *ids = calloc(n > 0 ? n : 1, sizeof(**ids));
  if (*ids == NULL)
    return cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
  for (;;) {
    uint64_t id;

    while (text < end && *text != '\0' && strchr(" \t\r\n,[]", *text) != NULL)
      text++;
    if (text == end)
      return CLI_EXIT_OK;
    if (tnk__read_u64(&text, end, INT32_MAX, &id) != TNK_OK)
      return cli_fail(cli, CLI_EXIT_USAGE,
                      "the prompt: \"%.*s\" is not a token id",
                      (int)(end - text < 20 ? end - text : 20), text);
    (*ids)[(*n_ids)++] = (int32_t)id;
  }
}

/* ---- Words: ids to text ---- */

/* Ids that are not bytes have no text. */
static char *bytes_of_ids(const int32_t *ids, size_t n_ids, size_t *n) {
  char *text = malloc(n_ids + 1);

  *n = 0;
  for (size_t i = 0; i < n_ids && text != NULL; i++)
    if (ids[i] >= 0 && ids[i] < 256)
      text[(*n)++] = (char)(unsigned char)ids[i];
  if (text != NULL)
    text[*n] = '\0';
  return text;
}

/* Get the text of ids; the caller frees it. NULL without memory. */
static char *words_decode(const words_t *words, const int32_t *ids,
                          size_t n_ids, size_t *n) {
  char *found = NULL;
  char *text;

  if (words->tokenizer == NULL)
    return bytes_of_ids(ids, n_ids, n);
  if (tnk_tokenizer_decode(words->tokenizer, &found, n, ids, n_ids,
                           TNK_DECODE_SKIP_SPECIAL) != TNK_OK)
    return NULL;
  text = malloc(*n + 1);
  if (text != NULL)
    memcpy(text, found, *n + 1);
  tnk_tokenizer_free_text(words->tokenizer, found);
  return text;
}

/* ---- Output ---- */

static const char *reason_of(const tnk_samples_t *samples) {
  return tnk_samples_stop_reason(samples, 0) == TNK_STOP_LENGTH ? "length"
                                                                : "stop";
}

static char *text_of(const words_t *words, const tnk_samples_t *samples,
                     size_t *n) {
  size_t n_ids;
  const int32_t *ids = tnk_samples_tokens(samples, 0, &n_ids);

  return words_decode(words, ids, n_ids, n);
}

/* Print a sample, below a line with its number if there are several (0: only
 * one). Returns the exit status; errors have been reported. */
static int sample_print(const cli_t *cli, const words_t *words,
                        const tnk_samples_t *samples, size_t number) {
  size_t n = 0;
  char *text = text_of(words, samples, &n);

  if (text == NULL)
    return cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
  if (number > 0)
    printf("--- %zu (%s)\n", number, reason_of(samples));
  cli_put_shown(stdout, text, n);
  putchar('\n');
  fflush(stdout);
  free(text);
  return CLI_EXIT_OK;
}

/* Write the log-probabilities of tokens as an array, or null. */
static void sample_put_logprobs(cli_json_t *json, const char *key,
                                const float *logprobs, size_t n) {
  tnk__json_key(&json->w, key);
  if (logprobs == NULL) {
    tnk__json_null(&json->w);
    return;
  }
  tnk__json_begin_array(&json->w);
  for (size_t i = 0; i < n; i++)
    if (isfinite(logprobs[i]))
      tnk__json_float(&json->w, logprobs[i]);
    else
      tnk__json_null(&json->w);
  tnk__json_end(&json->w);
}

/* Each invalid UTF-8 byte becomes U+FFFD. */
static void put_bytes(cli_json_t *json, const char *key, const char *text,
                      size_t n) {
  tnk__buf_t buf;

  tnk__buf_init(&buf, tnk__allocator_default(), SIZE_MAX / 4);
  for (size_t i = 0; i < n;) {
    size_t length = tnk__utf8_char(text + i, n - i);

    if (length == 0)
      tnk__buf_text(&buf, "\xef\xbf\xbd");
    else
      tnk__buf_append(&buf, text + i, length);
    i += length == 0 ? 1 : length;
  }
  if (buf.err != TNK_OK)
    json->buf.err = buf.err;
  tnk__json_key(&json->w, key);
  tnk__json_text_n(&json->w, (const char *)buf.data, buf.len);
  tnk__buf_deinit(&buf);
}

/* Write it as an object. Returns 0 without memory. */
static int sample_put(cli_json_t *json, const words_t *words,
                      const tnk_samples_t *samples) {
  size_t n_ids;
  size_t n;
  const int32_t *ids = tnk_samples_tokens(samples, 0, &n_ids);
  const float *logprobs = tnk_samples_logprobs(samples, 0, &n);
  size_t n_text;
  char *text = text_of(words, samples, &n_text);

  if (text == NULL)
    return 0;
  tnk__json_begin_object(&json->w);
  put_bytes(json, "text", text, n_text);
  tnk__json_key(&json->w, "tokens");
  tnk__json_int32s(&json->w, ids, n_ids);
  sample_put_logprobs(json, "logprobs", logprobs, n);
  tnk__json_put_text(&json->w, "stop_reason", reason_of(samples));
  tnk__json_end(&json->w);
  free(text);
  return 1;
}

/* ---- Sampling ---- */

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
     .real = &args.temperature,
     .max_real = 100,
     .help = "Temperature; 0 always selects the likeliest token (1)."},
    {.name = "top-p",
     .value = "P",
     .real = &args.top_p,
     .max_real = 1,
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
    return "either --model or --checkpoint";
  if ((cli->n_words > 0) == (args.file != NULL))
    return "either TEXT (- is standard input) or --file";
  if (args.prompt_logprobs && !cli->json)
    return "--prompt-logprobs needs --json";
  return NULL;
}

/* ---- Sampling: the prompt ---- */

typedef struct {
  const cli_t *cli;
  cli_ask_t ask;
  words_t words;
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
  status = args.is_ids
               ? ids_read(work->cli, text, n, &work->prompt, &work->n_prompt)
               : words_encode(&work->words, work->cli, text, n, &work->prompt,
                              &work->n_prompt);
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
    return words_open(&work->words, work->cli, &args.which, args.model);
  promise = tnk_rest_get_weights_info(work->ask.service, args.checkpoint);
  if (cli_ask_wait(&work->ask, promise) == TNK_OK)
    status = words_open(
        &work->words, work->cli, &args.which,
        tnk_page_weights_info(tnk_promise_page(promise), 0)->base_model);
  else
    status = cli_ask_failed(&work->ask, promise);
  tnk_promise_unref(promise);
  return status;
}

/* ---- Sampling: the samples ---- */

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
      sample_print(work->cli, &work->words, tnk_promise_samples(promise),
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

    sample_put_logprobs(&json, "prompt_logprobs", logprobs, n);
  }
  tnk__json_put_array(&json.w, "samples");
  for (size_t i = 0; i < (size_t)args.n && is_whole; i++)
    is_whole =
        sample_put(&json, &work->words, tnk_promise_samples(work->samples[i]));
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

/* ---- Sampling: the command ---- */

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
  words_close(&work.words);
  free(work.prompt);
  return status;
}

static const cli_item_t examples[] = {
    {"tnk sample --model Qwen/Qwen3-8B 'Once upon a time'", "continue a text"},
    {"tnk sample --checkpoint tinker://RUN/sampler_weights/NAME -n 4 - <prompt",
     "sample four completions from trained weights"},
    {NULL, NULL}};

const cli_command_t cli_sample = {
    .name = "sample",
    .brief = "sample a completion of a text",
    .about = "Print a completion of the prompt, without the prompt. The text "
             "is tokenized with the model's own tokenizer, which is downloaded "
             "to the cache of Hugging Face's library if it is not there, or "
             "with --tokenizer.",
    .words = "[TEXT]",
    .options = options,
    .examples = examples,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = check,
    .run = run,
};
