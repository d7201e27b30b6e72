/* SPDX-License-Identifier: MIT */
/*
 * tnk tokenize: reads the whole text, because tokens depend on the context on
 * both sides. Offsets are requested only if they are printed.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/base/input.h"
#include "tools/common/frame/commands.h"
#include "tools/tnk/text/tokenizer.h"

static struct {
  cli_tokenizer_t which;
  const char *text; /* argument of --text, or NULL */
  int pieces;
  int count;
  int add_special;
  int split_special;
  int plain;
  int lossy;
} args;

static void print_pieces(const tnk_tokens_t *tokens, const char *text,
                         int json) {
  const tnk_token_span_t *spans = tnk_tokens_offsets(tokens);
  size_t n;
  const int32_t *ids = tnk_tokens_ids(tokens, &n);

  for (size_t i = 0; i < n; i++) {
    if (json)
      printf("%s{\"id\": %" PRId32 ", \"start\": %zu, \"end\": %zu, \"text\": ",
             i > 0 ? ", " : "", ids[i], spans[i].start, spans[i].end);
    else
      printf("%" PRId32 " %zu %zu ", ids[i], spans[i].start, spans[i].end);
    cli_put_json_text(stdout, text + spans[i].start,
                      spans[i].end - spans[i].start);
    printf(json ? "}" : "\n");
  }
}

static void print_ids(const tnk_tokens_t *tokens, const char *between) {
  size_t n;
  const int32_t *ids = tnk_tokens_ids(tokens, &n);

  for (size_t i = 0; i < n; i++)
    printf("%s%" PRId32, i > 0 ? between : "", ids[i]);
}

static void print_tokens(const cli_t *cli, const tnk_tokens_t *tokens,
                         const char *text) {
  size_t n;

  (void)tnk_tokens_ids(tokens, &n);
  if (cli->json) {
    printf("{\"count\": %zu, \"ids\": [", n);
    print_ids(tokens, ", ");
    printf("]");
    if (args.pieces) {
      printf(", \"pieces\": [");
      print_pieces(tokens, text, 1);
      printf("]");
    }
    printf("}\n");
  } else if (args.pieces) {
    print_pieces(tokens, text, 0);
  } else {
    print_ids(tokens, " ");
    printf("\n");
  }
}

static int run(const cli_t *cli, const tnk_tokenizer_t *tok, const char *text,
               size_t n, tnk_tokenizer_error_t *error) {
  unsigned flags = (args.pieces ? TNK_ENCODE_OFFSETS : 0) |
                   (args.add_special ? TNK_ENCODE_ADD_SPECIAL : 0) |
                   (args.split_special ? TNK_ENCODE_SPLIT_SPECIAL : 0) |
                   (args.plain ? TNK_ENCODE_PLAIN : 0) |
                   (args.lossy ? TNK_ENCODE_LOSSY : 0);
  tnk_tokens_t *tokens;
  size_t count;
  int err;

  if (args.count) {
    err = tnk_tokenizer_count(tok, text, n, flags, &count, error);
    if (err == TNK_OK)
      printf(cli->json ? "{\"count\": %zu}\n" : "%zu\n", count);
    return err;
  }
  tokens = tnk_tokens_new(NULL);
  if (tokens == NULL)
    return TNK_ENOMEM;
  err = tnk_tokenizer_encode(tok, tokens, text, n, flags, error);
  if (err == TNK_OK)
    print_tokens(cli, tokens, text);
  tnk_tokens_free(tokens);
  return err;
}

static int tokenize(const cli_t *cli, const char *text, size_t n) {
  /* The message for a failure without one. */
  tnk_tokenizer_error_t error = {0, 0, "out of memory"};
  int status = CLI_EXIT_FAILED;
  tnk_tokenizer_t *tok = cli_tokenizer_open(cli, &args.which, &status,
                                            error.text, sizeof(error.text));

  if (tok == NULL)
    return cli_tokenizer_failed(cli, &args.which, status, error.text, NULL);
  status = run(cli, tok, text, n, &error) == TNK_OK
               ? CLI_EXIT_OK
               : cli_fail(cli, CLI_EXIT_FAILED, "%s", error.text);
  tnk_tokenizer_unref(tok);
  return status;
}

static int run_tokenize(cli_t *cli) {
  char why[512], *read;
  size_t n = 0;
  int status;

  if (args.text != NULL)
    return tokenize(cli, args.text, strlen(args.text));
  read = cli_read_file(cli->n_words > 0 ? cli->words[0] : "-", &n, why,
                       sizeof(why));
  if (read == NULL)
    return cli_fail(cli, CLI_EXIT_FILE, "%s", why);
  status = tokenize(cli, read, n);
  free(read);
  return status;
}

static const char *check(const cli_t *cli) {
  if (args.text != NULL && cli->n_words > 0)
    return "either --text or a file";
  return cli_tokenizer_check(&args.which);
}

static const cli_option_t options[] = {
    CLI_TOKENIZER_OPTIONS(args.which),
    {.name = "text",
     .value = "TEXT",
     .text = &args.text,
     .is_any = 1,
     .help = "Take this text."},
    {.name = "pieces",
     .flag = &args.pieces,
     .help = "Print a line for each token: id, first byte, byte after the "
             "last, text."},
    {.name = "count",
     .flag = &args.count,
     .help = "Print only the number of tokens."},
    {.name = "add-special",
     .flag = &args.add_special,
     .help = "Add the special tokens that the file defines (BOS and so on)."},
    {.name = "split-special",
     .flag = &args.split_special,
     .help = "Treat special tokens in the text as plain text."},
    {.name = "plain",
     .flag = &args.plain,
     .help = "The same for all added tokens."},
    {.name = "lossy",
     .flag = &args.lossy,
     .help = "Replace invalid UTF-8 instead of rejecting it."},
    {.name = NULL}};

const cli_command_t cli_tokenize = {
    .name = "tokenize",
    .brief = "convert text to token ids",
    .about = "Print the token ids of FILE, of --text, or of standard input. "
             "Needs --tokenizer or --model.",
    .words = "[FILE]",
    .offer = CLI_OFFER_FILES,
    .options = options,
    .has = CLI_HAS_JSON,
    .check = check,
    .run = run_tokenize,
};
