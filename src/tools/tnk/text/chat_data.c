/* SPDX-License-Identifier: MIT */
/*
 * tnk chat-data: converts each line of messages to a line of training data and
 * checks it as a training call would. Or it prints the text and marks the
 * trained parts.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#include "lib/base/alloc.h"
#include "lib/base/text.h"
#include "lib/base/utf8.h"
#include "lib/wire/data/check.h"
#include "lib/wire/format/json_write.h"
#include "tnk/batch.h"
#include "tnk/chat.h"
#include "tools/common/base/input.h"
#include "tools/tnk/text/commands.h"
#include "tools/tnk/text/tokenizer.h"

enum { MAX_ROLES = 8 };

static const char *const trains[] = {"last-answer", "all-answers", "roles",
                                     "everything", NULL};
static const char *const shapes[] = {"openai", "responses", "anthropic",
                                     "template", NULL};

static struct {
  cli_tokenizer_t which;
  const char *template_;
  const char *renderer;
  int train_on; /* index in `trains` */
  int shape;    /* index in `shapes` */
  cli_texts_t roles;
  cli_texts_t variables;
  int by_parts;
  int each_answer;
  int show;
  int count;
} args;

/* The state of a run. */
typedef struct {
  cli_t *cli;
  tnk_tokenizer_t *tok; /* NULL: bytes */
  tnk_chat_template_t *template_;
  const tnk_chat_renderer_t *renderer;
  tnk_chat_tokens_t *tokens;
  tnk_chat_tokenizer_t tokenizer;
  tnk_chat_options_t options;
  int has_color;
  size_t line;
  size_t n_good, n_bad, n_tokens;
  double weight; /* sum of the weights */
  tnk_chat_error_t error;
} work_t;

/* ---- One conversation ---- */

/* Local time as if it were UTC, because some templates write the date. */
static int64_t wall_s(void *user) {
  const time_t now = time(NULL);
  struct tm here, utc;
  int64_t days;

  (void)user;
  if (localtime_r(&now, &here) == NULL || gmtime_r(&now, &utc) == NULL)
    return (int64_t)now;
  days = here.tm_year != utc.tm_year ? here.tm_year - utc.tm_year
                                     : here.tm_yday - utc.tm_yday;
  return (int64_t)now + ((days * 24 + here.tm_hour - utc.tm_hour) * 60 +
                         here.tm_min - utc.tm_min) *
                            60;
}

static int set_variables(work_t *work, tnk_chat_t *chat) {
  const tnk_chat_renderer_t *renderer = work->renderer;
  int err = TNK_OK;

  for (uint32_t i = 0; renderer != NULL && i < renderer->n_variables; i++)
    if (err == TNK_OK)
      err = tnk_chat_set(chat, renderer->variables[i].name,
                         renderer->variables[i].value, &work->error);
  for (size_t i = 0; i < args.variables.n && err == TNK_OK; i++) {
    const char *equals = strchr(args.variables.items[i], '=');
    char name[64];

    snprintf(name, sizeof(name), "%.*s",
             (int)(equals - args.variables.items[i]), args.variables.items[i]);
    err = tnk_chat_set(chat, name, equals + 1, &work->error);
  }
  return err;
}

static int read_chat(work_t *work, const char *line, size_t n,
                     tnk_chat_t *chat) {
  static const tnk_chat_shape_t as[] = {TNK_CHAT_OPENAI, TNK_CHAT_RESPONSES,
                                        TNK_CHAT_ANTHROPIC, TNK_CHAT_TEMPLATE};
  const int err = tnk_chat_read(chat, as[args.shape], line, n, &work->error);

  return err == TNK_OK ? set_variables(work, chat) : err;
}

/* ---- Output ---- */

static void put_tensor(tnk__json_writer_t *w, const char *name,
                       const char *dtype, const void *values, size_t n) {
  const int is_float = strcmp(dtype, "float32") == 0;

  tnk__json_key(w, name);
  tnk__json_begin_object(w);
  tnk__json_key(w, "data");
  tnk__json_begin_array(w);
  for (size_t i = 0; i < n; i++)
    if (is_float)
      tnk__json_float(w, ((const float *)values)[i]);
    else
      tnk__json_int(w, ((const int64_t *)values)[i]);
  tnk__json_end(w);
  tnk__json_put_text(w, "dtype", dtype);
  tnk__json_end(w);
}

/* The format that `tnk lint` reads. */
static int print_datum(const tnk_datum_t *datum) {
  const size_t n = datum->input.n_tokens;
  tnk__json_writer_t w;
  tnk__buf_t buf;
  int err;

  tnk__buf_init(&buf, tnk__allocator_default(), SIZE_MAX / 2);
  tnk__json_writer_init(&w, &buf);
  tnk__json_begin_object(&w);
  tnk__json_key(&w, "model_input");
  tnk__json_begin_object(&w);
  tnk__json_key(&w, "chunks");
  tnk__json_begin_array(&w);
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "type", "encoded_text");
  tnk__json_key(&w, "tokens");
  tnk__json_int32s(&w, datum->input.tokens, n);
  tnk__json_end(&w);
  tnk__json_end(&w);
  tnk__json_end(&w);
  tnk__json_key(&w, "loss_fn_inputs");
  tnk__json_begin_object(&w);
  put_tensor(&w, "target_tokens", "int64", datum->targets, n);
  put_tensor(&w, "weights", "float32", datum->weights, n);
  tnk__json_end(&w);
  tnk__json_end(&w);
  err = tnk__json_finish(&w);
  if (err == TNK_OK &&
      (fwrite(buf.data, 1, buf.len, stdout) != buf.len || putchar('\n') == EOF))
    err = TNK_EFILE;
  tnk__buf_deinit(&buf);
  return err;
}

static int put_bytes(const char *bytes, size_t n, void *user) {
  return tnk__buf_append(user, bytes, n);
}

/* Print ids of equal weight as text. Trained text is green, or marked if there
 * are no colors. */
static int show_run(work_t *work, const int32_t *ids, size_t n, float weight) {
  tnk__buf_t text;
  char why[256] = "";
  int err;

  tnk__buf_init(&text, tnk__allocator_default(), SIZE_MAX / 2);
  err = work->tokenizer.plugin->decode(work->tokenizer.tokenizer, ids, n, 0,
                                       put_bytes, &text, why, sizeof(why));
  if (err == TNK_OK && work->has_color) {
    /* Newlines are kept; other control characters are replaced. */
    for (size_t i = 0; i < text.len; i++)
      if (text.data[i] != '\n' && (text.data[i] < 0x20 || text.data[i] == 0x7f))
        text.data[i] = ' ';
    printf("%s%.*s\033[0m", weight != 0.0f ? "\033[32m" : "\033[2m",
           (int)text.len, (const char *)text.data);
  } else if (err == TNK_OK) {
    printf(weight != 0.0f ? "  trained (%g) " : "  given       ",
           (double)weight);
    cli_put_json_text(stdout, (const char *)text.data, text.len);
    printf("\n");
  }
  tnk__buf_deinit(&text);
  return err;
}

static int show(work_t *work, const int32_t *ids, const float *weights,
                size_t n) {
  int err = TNK_OK;

  printf("%zu: %zu tokens\n", work->line, n);
  for (size_t i = 0, begin = 0; i < n && err == TNK_OK; i++)
    if (i + 1 == n || weights[i] < weights[i + 1] ||
        weights[i] > weights[i + 1]) {
      err = show_run(work, ids + begin, i + 1 - begin, weights[i]);
      begin = i + 1;
    }
  if (work->has_color)
    printf("\n");
  return err;
}

static int refuse(work_t *work, int err, const char *text) {
  work->error.code = err;
  snprintf(work->error.text, sizeof(work->error.text), "%s", text);
  return err;
}

/* Checked by the same functions as in a training call. */
static int give(work_t *work) {
  tnk_batch_t *batch = tnk_batch_new(NULL);
  size_t n, n_data;
  const int32_t *ids = tnk_chat_tokens_ids(work->tokens, &n);
  const float *weights = tnk_chat_tokens_weights(work->tokens);
  char why[256] = "";
  int err;

  if (batch == NULL)
    return TNK_ENOMEM;
  err = tnk_batch_add_tokens(batch, ids, weights, n);
  if (err == TNK_EINVAL)
    (void)refuse(work, err, tnk_batch_text(batch));
  if (err == TNK_OK) {
    err = tnk_data_check(tnk_batch_data(batch, &n_data), 1, "cross_entropy",
                         why, sizeof(why));
    if (err != TNK_OK)
      (void)refuse(work, err, why);
  }
  if (err == TNK_OK) {
    work->n_tokens += n;
    work->weight += tnk_batch_weight(batch);
    if (args.count)
      printf("%zu: %zu tokens, %g trained\n", work->line, n,
             tnk_batch_weight(batch));
    else if (args.show)
      err = show(work, ids, weights, n);
    else
      err = print_datum(tnk_batch_data(batch, &n_data));
  }
  tnk_batch_free(batch);
  return err;
}

/* ---- The file ---- */

/* Lack of memory and write errors end the run. */
static int is_end(int err) {
  return err == TNK_ENOMEM || err == TNK_EFILE;
}

/* One example for the whole conversation. */
static int take_whole(work_t *work, const tnk_chat_t *chat) {
  const int err =
      tnk_chat_encode(work->tokens, work->template_, &work->tokenizer, chat,
                      &work->options, &work->error);

  return err == TNK_OK ? give(work) : err;
}

/* One example for each answer. The first error is returned, but the remaining
 * examples are still made. */
static int take_answers(work_t *work, const tnk_chat_t *chat) {
  tnk_chat_error_t first = {0};
  size_t i = tnk_chat_next_answer(chat, 0);
  int failed = TNK_OK;

  if (i == SIZE_MAX)
    return refuse(work, TNK_EINVAL, "there is no answer of the assistant");
  for (; i != SIZE_MAX && !is_end(failed);
       i = tnk_chat_next_answer(chat, i + 1)) {
    int err =
        tnk_chat_encode_answer(work->tokens, work->template_, &work->tokenizer,
                               chat, i, &work->options, &work->error);

    if (err == TNK_OK)
      err = give(work);
    if (err != TNK_OK && failed == TNK_OK)
      first = work->error;
    if (err != TNK_OK && (failed == TNK_OK || is_end(err)))
      failed = err;
  }
  if (failed != TNK_OK)
    work->error = first;
  return failed;
}

static int accepts_each_answer(const work_t *work, const tnk_chat_t *chat) {
  size_t i = 0;
  int err = TNK_OK;

  for (; err == TNK_OK && (i = tnk_chat_next_answer(chat, i)) != SIZE_MAX; i++)
    err =
        tnk_chat_encode_answer(work->tokens, work->template_, &work->tokenizer,
                               chat, i, &work->options, NULL);
  return err == TNK_OK;
}

static int accepts_parts(const work_t *work, const tnk_chat_t *chat) {
  tnk_chat_options_t options = work->options;

  options.by_parts = TNK_YES;
  return tnk_chat_encode(work->tokens, work->template_, &work->tokenizer, chat,
                         &options, NULL) == TNK_OK;
}

/* Offer the options that work for a rejected conversation. */
static const char *find_way_out(const work_t *work, const tnk_chat_t *chat,
                                int err) {
  if (err != TNK_EUNSUPPORTED)
    return "";
  if (args.train_on == 1 && accepts_each_answer(work, chat))
    return "; --each-answer accepts this conversation";
  if (!args.each_answer && !args.by_parts && accepts_parts(work, chat))
    return "; --by-parts accepts this conversation";
  return "";
}

static int take_line(work_t *work, const char *line, size_t n) {
  tnk_chat_t *chat = tnk_chat_new(NULL);
  int err;

  if (chat == NULL)
    return TNK_ENOMEM;
  memset(&work->error, 0, sizeof(work->error));
  err = read_chat(work, line, n, chat);
  if (err == TNK_OK)
    err = args.each_answer ? take_answers(work, chat) : take_whole(work, chat);
  if (err == TNK_OK) {
    work->n_good++;
  } else if (!is_end(err)) {
    work->n_bad++;
    cli_warn(work->cli, "%s:%zu: %s%s", work->cli->words[0], work->line,
             work->error.text, find_way_out(work, chat, err));
    err = TNK_OK;
  }
  tnk_chat_free(chat);
  return err;
}

static int take_lines(work_t *work, FILE *in) {
  char *line = NULL;
  size_t room = 0;
  ssize_t n;
  int err = TNK_OK;

  while (err == TNK_OK && (n = getline(&line, &room, in)) >= 0) {
    work->line++;
    if (strspn(line, " \t\r\n") < (size_t)n)
      err = take_line(work, line, (size_t)n);
  }
  free(line);
  if (err == TNK_OK && ferror(in))
    err = TNK_EFILE;
  return err;
}

static int tell(work_t *work, int err) {
  if (err != TNK_OK)
    return cli_fail(work->cli, CLI_EXIT_FILE, "%s: %s", work->cli->words[0],
                    tnk_strerror(err));
  cli_note(work->cli,
           "%zu conversations, %zu tokens, %g of them trained; %zu wrong",
           work->n_good, work->n_tokens, work->weight, work->n_bad);
  return work->n_bad > 0 ? CLI_EXIT_FAILED : CLI_EXIT_OK;
}

/* ---- Setup ---- */

static int open_template(work_t *work) {
  tnk_chat_template_options_t options = TNK_CHAT_TEMPLATE_OPTIONS_INIT;
  const char *path = args.template_ != NULL ? args.template_ : args.which.path;

  if (work->renderer != NULL && work->renderer->stops[0] != NULL)
    options.stops = work->renderer->stops;
  return path == NULL ? tnk_chat_template_open(&work->template_, NULL, 0,
                                               &options, &work->error)
                      : tnk_chat_template_load(&work->template_, path, &options,
                                               &work->error);
}

static int open_all(work_t *work) {
  static const tnk_chat_train_t train[] = {
      TNK_CHAT_TRAIN_LAST_ANSWER, TNK_CHAT_TRAIN_ALL_ANSWERS,
      TNK_CHAT_TRAIN_ROLES, TNK_CHAT_TRAIN_EVERYTHING};
  int status = CLI_EXIT_FAILED;

  work->options.train_on = train[args.train_on];
  work->options.roles = args.roles.items;
  work->options.n_roles = (uint32_t)args.roles.n;
  work->options.by_parts = args.by_parts ? TNK_YES : TNK_NO;
  work->options.now_s = wall_s;
  work->tokenizer.plugin = tnk_chat_bytes_plugin();
  if (args.renderer != NULL)
    work->renderer = tnk_chat_find(args.renderer);
  if (args.which.path != NULL || args.which.model != NULL) {
    work->tok = cli_tokenizer_open(work->cli, &args.which, &status,
                                   work->error.text, sizeof(work->error.text));
    if (work->tok == NULL)
      return cli_tokenizer_failed(work->cli, &args.which, status,
                                  work->error.text, NULL);
    work->tokenizer.plugin = tnk_tokenizer_plugin();
    work->tokenizer.tokenizer = work->tok;
  }
  work->tokens = tnk_chat_tokens_new(NULL);
  if (work->tokens == NULL)
    return cli_fail(work->cli, CLI_EXIT_FAILED, "out of memory");
  if (open_template(work) != TNK_OK)
    return cli_fail(work->cli, CLI_EXIT_FILE, "%s", work->error.text);
  return CLI_EXIT_OK;
}

static int run_chat_data(cli_t *cli) {
  const int is_stdin = strcmp(cli->words[0], "-") == 0;
  work_t work = {.cli = cli, .options = TNK_CHAT_OPTIONS_INIT};
  FILE *in = is_stdin ? stdin : fopen(cli->words[0], "r");
  int status;

  if (in == NULL)
    return cli_fail(cli, CLI_EXIT_FILE, "%s: %s", cli->words[0],
                    strerror(errno));
  work.has_color = cli_has_color(stdout, (cli_color_t)cli->color);
  status = open_all(&work);
  if (status == CLI_EXIT_OK)
    status = tell(&work, take_lines(&work, in));
  if (!is_stdin)
    fclose(in);
  tnk_chat_tokens_free(work.tokens);
  tnk_chat_template_unref(work.template_);
  tnk_tokenizer_unref(work.tok);
  return status;
}

static const char *check(const cli_t *cli) {
  (void)cli;
  if (args.which.path != NULL && args.which.model != NULL)
    return "either --tokenizer or --model";
  if (args.which.revision != NULL && args.which.model == NULL)
    return "--revision goes with --model";
  if (args.which.model != NULL && args.template_ == NULL)
    return "--model needs a --template as well";
  if (args.each_answer && args.train_on != 0)
    return "--each-answer learns the answers, and goes without --train-on";
  if (args.show && args.count)
    return "either --show or --count";
  if ((args.roles.n > 0) != (args.train_on == 2))
    return "--train-on roles and --role go together";
  if (args.renderer != NULL && tnk_chat_find(args.renderer) == NULL)
    return "there is no renderer of that name";
  for (size_t i = 0; i < args.variables.n; i++) {
    const char *equals = strchr(args.variables.items[i], '=');

    if (equals == NULL || equals == args.variables.items[i] ||
        equals - args.variables.items[i] > 63)
      return "--set takes NAME=JSON";
  }
  return NULL;
}

static const cli_option_t options[] = {
    CLI_TOKENIZER_OPTIONS(args.which),
    {.name = "template",
     .value = "PATH",
     .text = &args.template_,
     .offer = CLI_OFFER_FILES,
     .help = "chat_template.jinja or tokenizer_config.json, or their "
             "directory. Default: the directory of the tokenizer."},
    {.name = "renderer",
     .value = "NAME",
     .text = &args.renderer,
     .help = "Renderer of Tinker's cookbook, which sets template variables and "
             "stop strings."},
    {.name = "set",
     .value = "NAME=JSON",
     .texts = &args.variables,
     .help = "Set a variable of the template; may be repeated."},
    {.name = "shape",
     .value = "API",
     .choice = &args.shape,
     .choices = shapes,
     .help = "Format of the messages: openai, responses, anthropic, or "
             "template, which passes them unchanged (openai)."},
    {.name = "train-on",
     .value = "WHAT",
     .choice = &args.train_on,
     .choices = trains,
     .help = "What is trained: last-answer, all-answers, roles, everything "
             "(last-answer)."},
    {.name = "role",
     .value = "NAME",
     .texts = &args.roles,
     .help = "Role whose messages are trained; may be repeated."},
    {.name = "each-answer",
     .flag = &args.each_answer,
     .help = "Make one example for each answer, with the messages up to it. "
             "This also works with templates that write earlier answers "
             "differently, which all-answers rejects."},
    {.name = "by-parts",
     .flag = &args.by_parts,
     .help = "Tokenize pieces of the text separately, as the cookbook does."},
    {.name = "show",
     .flag = &args.show,
     .help = "Show the text and its trained parts instead of data."},
    {.name = "count",
     .flag = &args.count,
     .help = "Print only the number of tokens."},
    {.name = NULL}};

static const cli_item_t examples[] = {
    {"tnk chat-data --tokenizer DIR chats.jsonl > data.jsonl",
     "Training data, which tnk lint reads, from conversations."},
    {"tnk chat-data --show chats.jsonl",
     "Show what would be trained, for the built-in model."},
    {NULL, NULL}};

const cli_command_t cli_chat_data = {
    .name = "chat-data",
    .brief = "make training data from conversations",
    .about = "Make an example for next-token training from each line of FILE. "
             "A line is a conversation:\n  {\"messages\": [{\"role\": "
             "\"user\", \"content\": \"Hi\"},\n                {\"role\": "
             "\"assistant\", \"content\": \"Hello\"}]}\nIt may also have "
             "\"tools\". The model's own template renders the text. Without a "
             "tokenizer each byte is a token, and a plain template is used. "
             "FILE - is standard input. Empty lines are skipped.",
    .words = "FILE",
    .min_words = 1,
    .max_words = 1,
    .offer = CLI_OFFER_FILES,
    .options = options,
    .examples = examples,
    .failed = "A conversation cannot be used for training.",
    .check = check,
    .run = run_chat_data,
};
