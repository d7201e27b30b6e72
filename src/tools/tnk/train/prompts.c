/* SPDX-License-Identifier: MIT */
#include "tools/tnk/train/prompts.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"
#include "tnk/promise.h"
#include "tnk/sampling.h"
#include "tools/tnk/train/args.h"

enum { SAMPLE_TOKENS = 200, MAX_TEXT = 1 << 20, SHOWN = 150 };
/* A rate limit may hold a sample for as long as it lasts. The run continues. */
enum { SAMPLE_MS = 120000 };
/* How often the samples of a step are repeated after the service has lost the
 * session. */
enum { MAX_LOST = 10 };
/* Low enough for a weak model to make sense, and high enough to avoid endless
 * repetition. */
#define TEMPERATURE 0.7

/* ---- The prompts ---- */

static int add(train_prompts_t *prompts, const char *text) {
  const int32_t *ids = NULL;
  size_t n = 0;
  int err = cli_chats_prompt(&prompts->chats, text, &ids, &n);
  int32_t *copy;

  if (err != TNK_OK)
    return err;
  copy = malloc(n * sizeof(*copy));
  if (copy == NULL)
    return TNK_ENOMEM;
  memcpy(copy, ids, n * sizeof(*copy));
  prompts->ids[prompts->n] = copy;
  prompts->n_ids[prompts->n++] = n;
  return TNK_OK;
}

int train_prompts_open(train_prompts_t *prompts, const cli_t *cli,
                       const char *path, int64_t now_s) {
  const cli_texts_t *texts = &train_args.samples;
  int status;

  prompts->path = path;
  if (texts->n == 0 && train_args.method != TRAIN_DISTILL)
    return CLI_EXIT_OK;
  prompts->chats =
      (cli_chats_t){.cli = cli, .args = &train_args.chats, .now_s = now_s};
  prompts->ids = calloc(texts->n + 1, sizeof(*prompts->ids));
  prompts->n_ids = calloc(texts->n + 1, sizeof(*prompts->n_ids));
  if (prompts->ids == NULL || prompts->n_ids == NULL)
    return cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
  status = cli_chats_open(&prompts->chats);
  for (size_t i = 0; i < texts->n && status == CLI_EXIT_OK; i++)
    if (add(prompts, texts->items[i]) != TNK_OK)
      status = cli_fail(cli, CLI_EXIT_FAILED, "--sample %zu: %s", i + 1,
                        prompts->chats.error.text);
  return status;
}

void train_prompts_free(train_prompts_t *prompts) {
  for (size_t i = 0; i < prompts->n; i++)
    free(prompts->ids[i]);
  free(prompts->ids);
  free(prompts->n_ids);
  learn_sampler_free(&prompts->weights);
  cli_chats_close(&prompts->chats);
}

/* ---- Samples ---- */

/* The text of an answer, without its end mark. */
typedef struct {
  tnk__buf_t text;
  int err;
} answer_t;

/* Many readers of JSON refuse a string with a zero byte, which an untrained
 * model may sample. A blank stands for it. */
static void take_text(const tnk_chat_delta_t *delta, void *user) {
  answer_t *answer = user;

  for (size_t i = 0; i < delta->n && answer->err == TNK_OK; i++) {
    const char c = delta->text[i];

    answer->err = tnk__buf_byte(&answer->text, (uint8_t)(c == '\0' ? ' ' : c));
  }
}

static tnk_chat_family_t family_of(const train_prompts_t *prompts) {
  return prompts->chats.renderer != NULL ? prompts->chats.renderer->family
                                         : TNK_CHAT_PLAIN;
}

static int read_answer(const train_prompts_t *prompts, size_t i,
                       const int32_t *ids, size_t n, answer_t *answer) {
  tnk_chat_parser_t *parser = NULL;
  const char *json;
  int err = tnk_chat_parser_open(&parser, family_of(prompts),
                                 &prompts->chats.tokenizer, NULL, NULL, NULL);

  if (err == TNK_OK)
    err = tnk_chat_parser_prompt(
        parser, prompts->ids[i], prompts->n_ids[i],
        tnk_chat_template_stops(prompts->chats.template_));
  if (err == TNK_OK)
    err = tnk_chat_parser_feed(parser, ids, n, take_text, answer);
  if (err == TNK_OK)
    err = tnk_chat_parser_finish(parser, take_text, answer, &json, NULL);
  tnk_chat_parser_free(parser);
  return err == TNK_OK ? answer->err : err;
}

/* Append a line, as `tnk report` reads it. */
static int append(const train_prompts_t *prompts, const char *prompt,
                  const tnk__buf_t *text, uint64_t number) {
  json_t *line = json_pack(
      "{s:I,s:s,s:s%}", "step", (json_int_t)number, "prompt", prompt, "text",
      text->len > 0 ? (const char *)text->data : "", text->len);
  char *dumped = line != NULL ? json_dumps(line, JSON_COMPACT) : NULL;
  FILE *out = dumped != NULL ? fopen(prompts->path, "ae") : NULL;
  int is_ok = out != NULL && fprintf(out, "%s\n", dumped) > 0;

  if (out != NULL)
    is_ok = fclose(out) == 0 && is_ok;
  tnk__json_free_string(dumped);
  json_decref(line);
  if (dumped == NULL)
    return TNK_ENOMEM;
  return is_ok ? TNK_OK : TNK_EFILE;
}

static int keep(train_prompts_t *prompts, const cli_t *cli, size_t i,
                const tnk_promise_t *sampled, uint64_t number) {
  answer_t answer = {.err = TNK_OK};
  size_t n = 0;
  const int32_t *ids = tnk_samples_tokens(tnk_promise_samples(sampled), 0, &n);
  const char *text = train_args.samples.items[i];
  int err;

  tnk__buf_init(&answer.text, tnk__allocator_default(), MAX_TEXT);
  err = read_answer(prompts, i, ids, n, &answer);
  errno = 0;
  if (err == TNK_OK)
    err = append(prompts, text, &answer.text, number);
  if (err == TNK_OK)
    cli_note(cli, "sample after step %" PRIu64 "  %.*s ->%.*s", number, SHOWN,
             text, (int)(answer.text.len < SHOWN ? answer.text.len : SHOWN),
             answer.text.len > 0 ? (const char *)answer.text.data : "");
  tnk__buf_deinit(&answer.text);
  if (err == TNK_OK)
    return CLI_EXIT_OK;
  return cli_fail(cli, CLI_EXIT_FILE, "%s: %s", prompts->path,
                  errno != 0 ? strerror(errno) : tnk_strerror(err));
}

static tnk_promise_t *begin(const train_prompts_t *prompts,
                            tnk_sampling_t *sampler, size_t i) {
  const tnk_model_input_t prompt = {.tokens = prompts->ids[i],
                                    .n_tokens = prompts->n_ids[i]};
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;

  params.max_tokens = SAMPLE_TOKENS;
  params.temperature = TEMPERATURE;
  params.seed = train_args.seed;
  cli_chats_stops(&prompts->chats, &params);
  return tnk_with_timeout(tnk_sampling_sample(sampler, &prompt, &params, NULL),
                          SAMPLE_MS);
}

static void warn(const cli_ask_t *ask, const tnk_promise_t *promise,
                 uint64_t number) {
  cli_warn(ask->cli, "samples of step %" PRIu64 " are missing: %s", number,
           tnk_promise_error(promise)->text);
}

train_use_t train_prompts_use(const train_prompts_t *prompts) {
  train_use_t use = {.sampled = prompts->n * SAMPLE_TOKENS};

  for (size_t i = 0; i < prompts->n; i++)
    use.prompt += prompts->n_ids[i];
  return use;
}

tnk_promise_t *train_prompts_begin(train_prompts_t *prompts,
                                   tnk_training_t *model, uint64_t number) {
  char name[64];

  snprintf(name, sizeof(name), "sample-%" PRIu64 "-%" PRIu64, number,
           ++prompts->n_begun);
  return learn_sampler_begin(model, name);
}

/* Returns NULL after a warning. */
static tnk_sampling_t *open_sampler(const train_prompts_t *prompts,
                                    cli_ask_t *ask, uint64_t number) {
  tnk_sampling_options_t what = TNK_SAMPLING_OPTIONS_INIT;
  tnk_sampling_t *sampler = NULL;
  int err = TNK_ESESSION;

  what.model_path = prompts->weights.path;
  for (size_t i = 0; i < MAX_LOST && err == TNK_ESESSION; i++) {
    tnk_promise_t *created = tnk_service_create_sampling(ask->service, &what);

    err = cli_ask_wait(ask, created);
    if (err == TNK_OK)
      sampler = tnk_promise_sampling(created);
    else if (err != TNK_ESESSION || i + 1 == MAX_LOST)
      warn(ask, created, number);
    tnk_promise_unref(created);
  }
  return sampler;
}

static int sample_all(train_prompts_t *prompts, cli_ask_t *ask,
                      uint64_t number) {
  tnk_sampling_t *sampler = open_sampler(prompts, ask, number);
  size_t n_lost = 0;
  int status = CLI_EXIT_OK;

  for (size_t i = 0;
       i < prompts->n && sampler != NULL && status == CLI_EXIT_OK;) {
    tnk_promise_t *sampled = begin(prompts, sampler, i);
    const int err = cli_ask_wait(ask, sampled);

    if (err == TNK_ESESSION && ++n_lost < MAX_LOST) {
      tnk_sampling_close(sampler, NULL, NULL);
      sampler = open_sampler(prompts, ask, number);
    } else {
      if (err == TNK_OK)
        status = keep(prompts, ask->cli, i, sampled, number);
      else
        warn(ask, sampled, number);
      i++;
    }
    tnk_promise_unref(sampled);
  }
  tnk_sampling_close(sampler, NULL, NULL);
  return status;
}

int train_prompts_sample(train_prompts_t *prompts, cli_ask_t *ask,
                         tnk_promise_t *saved, uint64_t number) {
  int status;

  if (cli_ask_wait(ask, saved) != TNK_OK) {
    warn(ask, saved, number);
    return CLI_EXIT_OK;
  }
  status = learn_sampler_take(&prompts->weights, ask, saved);
  if (status == CLI_EXIT_OK)
    status = sample_all(prompts, ask, number);
  learn_sampler_drop(&prompts->weights, ask);
  return status;
}
