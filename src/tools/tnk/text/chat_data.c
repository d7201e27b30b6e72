/* SPDX-License-Identifier: MIT */
/*
 * tnk chat-data: converts each line of messages to a line of training data and
 * checks it as a training call would. Or it prints the text and marks the
 * trained parts. With --packed it writes the examples to a file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/json_write.h"
#include "tools/common/base/input.h"
#include "tools/common/frame/commands.h"
#include "tools/tnk/text/chats.h"
#include "tools/tnk/text/pack.h"

static struct {
  cli_chats_args_t chats;
  const char *packed; /* file to write, or NULL */
  int64_t max_length;
  int show;
  int count;
} args;

/* The state of a run. */
typedef struct {
  cli_t *cli;
  cli_chats_t chats;
  int has_color;
  size_t n_tokens;
  double weight; /* sum of the weights */
  cli_pack_writer_t pack;
} work_t;

/* ---- Output ---- */

static void put_tensor(tnk__json_writer_t *w, const char *name,
                       const char *dtype, const void *values, size_t n) {
  const int is_float = strcmp(dtype, "float32") == 0;

  tnk__json_put_object(w, name);
  tnk__json_put_array(w, "data");
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
  tnk__json_put_object(&w, "model_input");
  tnk__json_put_array(&w, "chunks");
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "type", "encoded_text");
  tnk__json_key(&w, "tokens");
  tnk__json_int32s(&w, datum->input.tokens, n);
  tnk__json_end(&w);
  tnk__json_end(&w);
  tnk__json_end(&w);
  tnk__json_put_object(&w, "loss_fn_inputs");
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
  err = work->chats.tokenizer.plugin->decode(work->chats.tokenizer.tokenizer,
                                             ids, n, 0, put_bytes, &text, why,
                                             sizeof(why));
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

  printf("%zu: %zu tokens\n", work->chats.line, n);
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

/* As tnk train keeps an example. */
static int pack(work_t *work, const cli_example_t *example) {
  cli_pack_head_t *head = &work->pack.head;
  size_t n_cut = 0;
  const size_t n = cli_chats_cut(example, (size_t)args.max_length, &n_cut);

  head->n_cut += n_cut;
  if (n > 0)
    return cli_pack_add(&work->pack, example->ids, example->weights, n);
  head->n_left_out++;
  return TNK_OK;
}

static int give(void *user, const cli_example_t *example) {
  work_t *work = user;
  const double weight = tnk_batch_weight(example->batch);
  size_t n_data;

  work->n_tokens += example->n;
  work->weight += weight;
  if (args.packed != NULL)
    return pack(work, example);
  if (args.count)
    printf("%zu: %zu tokens, %g trained\n", work->chats.line, example->n,
           weight);
  else if (args.show)
    return show(work, example->ids, example->weights, example->n);
  else
    return print_datum(tnk_batch_data(example->batch, &n_data));
  return TNK_OK;
}

/* ---- The file ---- */

static int tell(work_t *work, int err) {
  if (err != TNK_OK)
    return cli_fail(work->cli, CLI_EXIT_FILE, "%s: %s", work->cli->words[0],
                    tnk_strerror(err));
  cli_note(work->cli,
           "%zu conversations, %zu tokens, %g of them trained; %zu wrong",
           work->chats.n_good, work->n_tokens, work->weight, work->chats.n_bad);
  return work->chats.n_bad > 0 ? CLI_EXIT_FAILED : CLI_EXIT_OK;
}

static int pack_failed(const work_t *work, int err) {
  return cli_fail(work->cli, CLI_EXIT_FILE, "%s: %s", args.packed,
                  err == TNK_ENOMEM ? "out of memory" : strerror(errno));
}

static void set_vocabulary(work_t *work) {
  cli_pack_head_t *head = &work->pack.head;

  head->n_vocab = cli_chats_n_vocab(&work->chats);
  head->vocabulary =
      cli_pack_vocabulary(&work->chats.tokenizer, (size_t)head->n_vocab);
}

/* No file is better than one without the wrong conversations. */
static int end_pack(work_t *work) {
  const cli_pack_head_t *head = &work->pack.head;
  int err;

  if (head->n_examples == 0)
    return cli_fail(work->cli, CLI_EXIT_FAILED, "%s: there is no example",
                    work->cli->words[0]);
  set_vocabulary(work);
  err = cli_pack_end(&work->pack);
  if (err != TNK_OK)
    return pack_failed(work, err);
  cli_note(work->cli,
           "%s: %" PRIu64 " examples, %" PRIu64 " tokens; %" PRIu64
           " examples are cut, and %" PRIu64 " that train nothing left out",
           args.packed, head->n_examples, head->n_tokens, head->n_cut,
           head->n_left_out);
  return CLI_EXIT_OK;
}

static int read_all(work_t *work, FILE *in) {
  const char *name = work->cli->words[0];
  int status = CLI_EXIT_OK;
  int err = TNK_OK;

  if (args.packed != NULL) {
    err = cli_pack_begin(&work->pack, args.packed);
    if (err != TNK_OK)
      status = pack_failed(work, err);
  }
  if (status == CLI_EXIT_OK) {
    err = cli_chats_read(&work->chats, in, name);
    status = err != TNK_OK && args.packed != NULL && !ferror(in)
                 ? pack_failed(work, err)
                 : tell(work, err);
  }
  if (status == CLI_EXIT_OK && args.packed != NULL)
    status = end_pack(work);
  cli_pack_drop(&work->pack);
  return status;
}

static int run_chat_data(cli_t *cli) {
  const int is_stdin = strcmp(cli->words[0], "-") == 0;
  work_t work = {
      .cli = cli,
      .chats = {.cli = cli, .args = &args.chats, .give = give, .user = &work}};
  FILE *in = is_stdin ? stdin : fopen(cli->words[0], "r");
  int status;

  if (in == NULL)
    return cli_fail(cli, CLI_EXIT_FILE, "%s: %s", cli->words[0],
                    strerror(errno));
  work.has_color = cli_has_color(stdout, (cli_color_t)cli->color);
  status = cli_chats_open(&work.chats);
  if (status == CLI_EXIT_OK)
    status = read_all(&work, in);
  if (!is_stdin)
    fclose(in);
  cli_chats_close(&work.chats);
  return status;
}

static const char *check(const cli_t *cli) {
  (void)cli;
  if (args.show + args.count + (args.packed != NULL) > 1)
    return "only one of --show, --count and --packed";
  if (args.max_length > 0 && args.packed == NULL)
    return "--max-length needs --packed";
  return cli_chats_check(&args.chats);
}

static const cli_option_t options[] = {
    CLI_TOKENIZER_OPTIONS(args.chats.which),
    CLI_CHATS_OPTIONS(args.chats),
    {.name = "show",
     .flag = &args.show,
     .help = "Show the text and its trained parts instead of data."},
    {.name = "count",
     .flag = &args.count,
     .help = "Print only the number of tokens."},
    {.name = "packed",
     .value = "OUT",
     .text = &args.packed,
     .offer = CLI_OFFER_FILES,
     .help = "Write the examples to the file OUT, which tnk train reads in "
             "constant memory. It appears only if all conversations can be "
             "used."},
    {.name = "max-length",
     .value = "N",
     .number = &args.max_length,
     .min = 0,
     .max = INT32_MAX,
     .help = "With --packed: cut examples after N tokens, as tnk train does. "
             "0 means no limit (0)."},
    {.name = NULL}};

static const cli_item_t examples[] = {
    {"tnk chat-data --tokenizer DIR chats.jsonl > data.jsonl",
     "Training data, which tnk lint reads, from conversations."},
    {"tnk chat-data --show chats.jsonl",
     "Show what would be trained, for the built-in model."},
    {"tnk chat-data --tokenizer DIR --packed chats.pack chats.jsonl",
     "Prepare data that do not fit into memory, for tnk train."},
    {NULL, NULL}};

const cli_command_t cli_chat_data = {
    .name = "chat-data",
    .brief = "make training data from conversations",
    .about = "Make an example for next-token training from each line of FILE. "
             "A line is a conversation:\n  {\"messages\": [{\"role\": "
             "\"user\", \"content\": \"Hi\"},\n                {\"role\": "
             "\"assistant\", \"content\": \"Hello\"}]}\nIt may also have "
             "\"tools\". A \"prompt\" and its \"completion\", each a text or "
             "messages, are a conversation too. The model's own template "
             "renders the text. Without a "
             "tokenizer each byte is a token, and a plain template is used. "
             "FILE - is standard input. Empty lines are skipped.",
    .words = "FILE",
    .offer = CLI_OFFER_FILES,
    .options = options,
    .examples = examples,
    .failed = "A conversation cannot be used for training.",
    .check = check,
    .run = run_chat_data,
};
