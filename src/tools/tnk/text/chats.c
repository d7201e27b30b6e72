/* SPDX-License-Identifier: MIT */
/* Reads conversations and makes examples of them. Each example is checked by
 * the same functions as in a training call. */
#include "tools/tnk/text/chats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#include "tnk/data.h"
#include "tnk/error.h"
#include "tools/tnk/text/row.h"

const char *const cli_chats_trains[] = {"last-answer", "all-answers", "roles",
                                        "everything", NULL};
const char *const cli_chats_shapes[] = {"openai", "responses", "anthropic",
                                        "template", NULL};

/* ---- One conversation ---- */

/* Local time as if it were UTC, because some templates write the date. */
static int64_t wall_s(void *user) {
  const cli_chats_t *chats = user;
  const time_t now = time(NULL);
  struct tm here, utc;
  int64_t days;

  if (chats->now_s != 0)
    return chats->now_s;
  if (localtime_r(&now, &here) == NULL || gmtime_r(&now, &utc) == NULL)
    return (int64_t)now;
  days = here.tm_year != utc.tm_year ? here.tm_year - utc.tm_year
                                     : here.tm_yday - utc.tm_yday;
  return (int64_t)now + ((days * 24 + here.tm_hour - utc.tm_hour) * 60 +
                         here.tm_min - utc.tm_min) *
                            60;
}

static int set_variables(cli_chats_t *chats, tnk_chat_t *chat) {
  const tnk_chat_renderer_t *renderer = chats->renderer;
  int err = TNK_OK;

  for (uint32_t i = 0; renderer != NULL && i < renderer->n_variables; i++)
    if (err == TNK_OK)
      err = tnk_chat_set(chat, renderer->variables[i].name,
                         renderer->variables[i].value, &chats->error);
  for (size_t i = 0; i < chats->args->variables.n && err == TNK_OK; i++) {
    const char *equals = strchr(chats->args->variables.items[i], '=');
    char name[64];

    snprintf(name, sizeof(name), "%.*s",
             (int)(equals - chats->args->variables.items[i]),
             chats->args->variables.items[i]);
    err = tnk_chat_set(chat, name, equals + 1, &chats->error);
  }
  return err;
}

static int read_chat(cli_chats_t *chats, const char *line, size_t n,
                     tnk_chat_t *chat) {
  static const tnk_chat_shape_t as[] = {TNK_CHAT_OPENAI, TNK_CHAT_RESPONSES,
                                        TNK_CHAT_ANTHROPIC, TNK_CHAT_TEMPLATE};
  const int err =
      tnk_chat_read(chat, as[chats->args->shape], line, n, &chats->error);

  return err == TNK_OK ? set_variables(chats, chat) : err;
}

static int refuse(cli_chats_t *chats, int err, const char *text) {
  chats->error.code = err;
  snprintf(chats->error.text, sizeof(chats->error.text), "%s", text);
  return err;
}

static int give(cli_chats_t *chats) {
  tnk_batch_t *batch = tnk_batch_new(NULL);
  cli_example_t example = {.batch = batch,
                           .part = chats->part,
                           .weights = tnk_chat_tokens_weights(chats->tokens)};
  size_t n_data;
  char why[256] = "";
  int err;

  example.ids = tnk_chat_tokens_ids(chats->tokens, &example.n);
  if (batch == NULL)
    return TNK_ENOMEM;
  err = tnk_batch_add_tokens(batch, example.ids, example.weights, example.n);
  if (err == TNK_EINVAL)
    (void)refuse(chats, err, tnk_batch_text(batch));
  if (err == TNK_OK) {
    err = tnk_data_check(tnk_batch_data(batch, &n_data), 1, "cross_entropy",
                         why, sizeof(why));
    if (err != TNK_OK)
      (void)refuse(chats, err, why);
  }
  if (err == TNK_OK)
    err = chats->give(chats->user, &example);
  tnk_batch_free(batch);
  return err;
}

/* Lack of memory and write errors end the run. */
static int is_end(int err) {
  return err == TNK_ENOMEM || err == TNK_EFILE;
}

/* One example for the whole conversation. */
static int take_whole(cli_chats_t *chats, const tnk_chat_t *chat) {
  const int err =
      tnk_chat_encode(chats->tokens, chats->template_, &chats->tokenizer, chat,
                      &chats->options, &chats->error);

  return err == TNK_OK ? give(chats) : err;
}

/* One example for each answer. The first error is returned, but the remaining
 * examples are still made. */
static int take_answers(cli_chats_t *chats, const tnk_chat_t *chat) {
  tnk_chat_error_t first = {0};
  size_t i = tnk_chat_next_answer(chat, 0);
  int failed = TNK_OK;

  if (i == SIZE_MAX)
    return refuse(chats, TNK_EINVAL,
                  "the conversation has no assistant message");
  for (; i != SIZE_MAX && !is_end(failed);
       i = tnk_chat_next_answer(chat, i + 1)) {
    int err = tnk_chat_encode_answer(chats->tokens, chats->template_,
                                     &chats->tokenizer, chat, i,
                                     &chats->options, &chats->error);

    if (err == TNK_OK)
      err = give(chats);
    if (err != TNK_OK && failed == TNK_OK)
      first = chats->error;
    if (err != TNK_OK && (failed == TNK_OK || is_end(err)))
      failed = err;
  }
  if (failed != TNK_OK)
    chats->error = first;
  return failed;
}

static int accepts_each_answer(const cli_chats_t *chats,
                               const tnk_chat_t *chat) {
  size_t i = 0;
  int err = TNK_OK;

  for (; err == TNK_OK && (i = tnk_chat_next_answer(chat, i)) != SIZE_MAX; i++)
    err = tnk_chat_encode_answer(chats->tokens, chats->template_,
                                 &chats->tokenizer, chat, i, &chats->options,
                                 NULL);
  return err == TNK_OK;
}

static int accepts_parts(const cli_chats_t *chats, const tnk_chat_t *chat) {
  tnk_chat_options_t options = chats->options;

  options.by_parts = TNK_YES;
  return tnk_chat_encode(chats->tokens, chats->template_, &chats->tokenizer,
                         chat, &options, NULL) == TNK_OK;
}

/* Offer the options that work for a rejected conversation. */
static const char *find_way_out(const cli_chats_t *chats,
                                const tnk_chat_t *chat, int err) {
  if (err != TNK_EUNSUPPORTED)
    return "";
  if (chats->args->train_on == 1 && accepts_each_answer(chats, chat))
    return "; --each-answer accepts this conversation";
  if (!chats->args->each_answer && !chats->args->by_parts &&
      accepts_parts(chats, chat))
    return "; --by-parts accepts this conversation";
  return "";
}

/* Make the examples of a conversation. After an error `error` has the reason.
 */
static int take_chat(cli_chats_t *chats, const char *text, size_t n) {
  tnk_chat_t *chat = tnk_chat_new(NULL);
  const char *way_out;
  size_t used;
  int err;

  if (chat == NULL)
    return TNK_ENOMEM;
  memset(&chats->error, 0, sizeof(chats->error));
  err = read_chat(chats, text, n, chat);
  if (err == TNK_OK)
    err = chats->args->each_answer ? take_answers(chats, chat)
                                   : take_whole(chats, chat);
  if (err != TNK_OK && !is_end(err)) {
    way_out = find_way_out(chats, chat, err);
    used = strlen(chats->error.text);
    snprintf(chats->error.text + used, sizeof(chats->error.text) - used, "%s",
             way_out);
  }
  tnk_chat_free(chat);
  return err;
}

/* The name of the messages in a request. */
static const char *messages_of(const cli_chats_t *chats) {
  return strcmp(cli_chats_shapes[chats->args->shape], "responses") == 0
             ? "input"
             : "messages";
}

static int encode_prompt(cli_chats_t *chats, const tnk_chat_t *chat) {
  tnk_chat_options_t options = chats->options;

  options.train_on = TNK_CHAT_TRAIN_NOTHING;
  return tnk_chat_encode(chats->tokens, chats->template_, &chats->tokenizer,
                         chat, &options, &chats->error);
}

static int take_pair(cli_chats_t *chats, const char *line, size_t n) {
  static const char *const names[] = {"chosen", "rejected"};
  char why[sizeof(chats->error.text)] = "";
  cli_row_t row;
  int err = cli_row_pair(&row, line, n, messages_of(chats), why, sizeof(why));

  if (err == TNK_EINVAL)
    (void)refuse(chats, err, why);
  for (chats->part = 0; chats->part < CLI_ROW_PARTS && err == TNK_OK;
       chats->part++) {
    err = take_chat(chats, row.chats[chats->part],
                    strlen(row.chats[chats->part]));
    if (err == TNK_OK || is_end(err))
      continue;
    snprintf(why, sizeof(why), "%s: %.*s", names[chats->part],
             (int)sizeof(why) - 16, chats->error.text);
    (void)refuse(chats, err, why);
  }
  cli_row_free(&row);
  return err;
}

/* Take a line as a prompt with its completion. TNK_EPROTO: it has another
 * form. */
static int take_completion(cli_chats_t *chats, const char *line, size_t n) {
  char why[sizeof(chats->error.text)] = "";
  cli_row_t row;
  int err =
      cli_row_completion(&row, line, n, messages_of(chats), why, sizeof(why));

  if (err == TNK_EINVAL)
    (void)refuse(chats, err, why);
  if (err == TNK_OK)
    err = take_chat(chats, row.chats[0], strlen(row.chats[0]));
  cli_row_free(&row);
  return err;
}

/* Take a line as a prompt, up to the beginning of the answer. */
static int take_prompt(cli_chats_t *chats, const char *line, size_t n) {
  char why[sizeof(chats->error.text)] = "";
  tnk_chat_t *chat = tnk_chat_new(NULL);
  cli_example_t example = {0};
  cli_row_t row;
  int err = cli_row_prompt(&row, line, n, messages_of(chats), why, sizeof(why));

  memset(&chats->error, 0, sizeof(chats->error));
  if (err == TNK_EINVAL)
    (void)refuse(chats, err, why);
  if (chat == NULL)
    err = TNK_ENOMEM;
  if (err == TNK_OK)
    err = read_chat(chats, row.chats[0], strlen(row.chats[0]), chat);
  if (err == TNK_OK)
    err = encode_prompt(chats, chat);
  if (err == TNK_OK) {
    example.ids = tnk_chat_tokens_ids(chats->tokens, &example.n);
    err = chats->give(chats->user, &example);
  }
  tnk_chat_free(chat);
  cli_row_free(&row);
  return err;
}

static int take_other(cli_chats_t *chats, const char *line, size_t n) {
  char why[sizeof(chats->error.text)] = "";
  const int err = chats->other(chats->user, line, n, why, sizeof(why));

  return err == TNK_EINVAL ? refuse(chats, err, why) : err;
}

/* A line that is of no other kind is a wrong conversation. */
static int take_single(cli_chats_t *chats, const char *line, size_t n) {
  int err = take_chat(chats, line, n);
  int other;

  if (err != TNK_EINVAL)
    return err;
  other = take_completion(chats, line, n);
  if (other == TNK_EPROTO && chats->other != NULL)
    other = take_other(chats, line, n);
  return other == TNK_EPROTO ? err : other;
}

static int take(cli_chats_t *chats, const char *line, size_t n) {
  if (chats->has_others)
    return take_other(chats, line, n);
  if (chats->has_prompts)
    return take_prompt(chats, line, n);
  return chats->has_pairs ? take_pair(chats, line, n)
                          : take_single(chats, line, n);
}

static int take_line(cli_chats_t *chats, const char *line, size_t n) {
  const int err = take(chats, line, n);

  if (err == TNK_OK) {
    chats->n_good++;
    return err;
  }
  if (is_end(err))
    return err;
  chats->n_bad++;
  cli_warn(chats->cli, "%s:%zu: %s", chats->file, chats->line,
           chats->error.text);
  return TNK_OK;
}

int cli_chats_read(cli_chats_t *chats, FILE *in, const char *file) {
  char *line = NULL;
  size_t room = 0;
  ssize_t n;
  int err = TNK_OK;

  chats->file = file;
  chats->line = 0;
  while (err == TNK_OK && (n = getline(&line, &room, in)) >= 0) {
    chats->line++;
    if (strspn(line, " \t\r\n") < (size_t)n)
      err = take_line(chats, line, (size_t)n);
  }
  free(line);
  if (err == TNK_OK && ferror(in))
    err = TNK_EFILE;
  return err;
}

int cli_chats_prompt(cli_chats_t *chats, const char *text, const int32_t **ids,
                     size_t *n) {
  tnk_chat_t *chat = tnk_chat_new(NULL);
  int err = chat != NULL ? TNK_OK : TNK_ENOMEM;

  memset(&chats->error, 0, sizeof(chats->error));
  if (err == TNK_OK)
    err = tnk_chat_add(chat, "user", text, &chats->error);
  if (err == TNK_OK)
    err = set_variables(chats, chat);
  if (err == TNK_OK)
    err = encode_prompt(chats, chat);
  if (err != TNK_OK && chats->error.text[0] == '\0')
    (void)refuse(chats, err, tnk_strerror(err));
  *ids = tnk_chat_tokens_ids(chats->tokens, n);
  tnk_chat_free(chat);
  return err;
}

void cli_chats_stops(const cli_chats_t *chats, tnk_sampling_params_t *params) {
  const char *const *stops = tnk_chat_template_stops(chats->template_);

  params->n_stop_texts = 0;
  while (stops[params->n_stop_texts] != NULL)
    params->n_stop_texts++;
  params->stop_texts = params->n_stop_texts > 0 ? stops : NULL;
}

/* ---- Lengths ---- */

static size_t trained_length(const float *weights, size_t n) {
  while (n > 1 && !(weights[n - 1] != 0.0f))
    n--;
  return n > 1 ? n : 0;
}

size_t cli_chats_cut(const cli_example_t *example, size_t max, size_t *n_cut) {
  const size_t n = trained_length(example->weights, example->n);

  if (max == 0 || n <= max)
    return n;
  ++*n_cut;
  return trained_length(example->weights, max);
}

/* ---- Setup ---- */

static int open_template(cli_chats_t *chats) {
  tnk_chat_template_options_t options = TNK_CHAT_TEMPLATE_OPTIONS_INIT;
  const char *path = chats->args->template_ != NULL ? chats->args->template_
                                                    : chats->args->which.path;

  if (chats->renderer != NULL && chats->renderer->stops[0] != NULL)
    options.stops = chats->renderer->stops;
  return path == NULL ? tnk_chat_template_open(&chats->template_, NULL, 0,
                                               &options, &chats->error)
                      : tnk_chat_template_load(&chats->template_, path,
                                               &options, &chats->error);
}

int cli_chats_open(cli_chats_t *chats) {
  static const tnk_chat_train_t train[] = {
      TNK_CHAT_TRAIN_LAST_ANSWER, TNK_CHAT_TRAIN_ALL_ANSWERS,
      TNK_CHAT_TRAIN_ROLES, TNK_CHAT_TRAIN_EVERYTHING};
  int status = CLI_EXIT_FAILED;

  chats->options = (tnk_chat_options_t)TNK_CHAT_OPTIONS_INIT;
  chats->options.train_on = train[chats->args->train_on];
  chats->options.roles = chats->args->roles.items;
  chats->options.n_roles = (uint32_t)chats->args->roles.n;
  chats->options.by_parts = chats->args->by_parts ? TNK_YES : TNK_NO;
  chats->options.now_s = wall_s;
  chats->options.user = chats;
  chats->tokenizer.plugin = tnk_chat_bytes_plugin();
  if (chats->args->renderer != NULL)
    chats->renderer = tnk_chat_find(chats->args->renderer);
  if (chats->args->which.path != NULL || chats->args->which.model != NULL) {
    chats->tok =
        cli_tokenizer_open(chats->cli, &chats->args->which, &status,
                           chats->error.text, sizeof(chats->error.text));
    if (chats->tok == NULL)
      return cli_tokenizer_failed(chats->cli, &chats->args->which, status,
                                  chats->error.text, NULL);
    chats->tokenizer.plugin = tnk_tokenizer_plugin();
    chats->tokenizer.tokenizer = chats->tok;
  }
  chats->tokens = tnk_chat_tokens_new(NULL);
  if (chats->tokens == NULL)
    return cli_fail(chats->cli, CLI_EXIT_FAILED, "out of memory");
  if (open_template(chats) != TNK_OK)
    return cli_fail(chats->cli, CLI_EXIT_FILE, "%s", chats->error.text);
  return CLI_EXIT_OK;
}

size_t cli_chats_n_vocab(const cli_chats_t *chats) {
  return chats->tok != NULL ? tnk_tokenizer_vocab_size(chats->tok)
                            : CLI_CHATS_BYTES;
}

void cli_chats_close(cli_chats_t *chats) {
  tnk_chat_tokens_free(chats->tokens);
  tnk_chat_template_unref(chats->template_);
  tnk_tokenizer_unref(chats->tok);
}

const char *cli_chats_check(const cli_chats_args_t *args) {
  if (args->which.path != NULL && args->which.model != NULL)
    return "either --tokenizer or --model";
  if (args->which.revision != NULL && args->which.model == NULL)
    return "--revision needs --model";
  if (args->which.model != NULL && args->template_ == NULL)
    return "--model needs a --template as well";
  if (args->each_answer && args->train_on != 0)
    return "either --each-answer or --train-on";
  if ((args->roles.n > 0) != (args->train_on == 2))
    return "--train-on roles and --role go together";
  if (args->renderer != NULL && tnk_chat_find(args->renderer) == NULL)
    return "--renderer: unknown renderer";
  for (size_t i = 0; i < args->variables.n; i++) {
    const char *equals = strchr(args->variables.items[i], '=');

    if (equals == NULL || equals == args->variables.items[i] ||
        equals - args->variables.items[i] > 63)
      return "--set needs NAME=JSON";
  }
  return NULL;
}
