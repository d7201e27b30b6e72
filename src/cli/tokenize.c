/*
 * tnk tokenize: reads its text as a whole, because tokens depend on what is on
 * both sides of them; asks for offsets only when they are printed.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/input.h"
#include "cli/tokenizer.h"
#include "cli/tokens.h"

typedef struct {
  cli_tokenizer_t which;
  const char *text; /* of --text, or NULL */
  const char *file;
  unsigned flags;
  int pieces;
  int count;
  int json;
  int help;
} args_t;

static void print_help(void) {
  printf(
      "usage: tnk tokenize --tokenizer PATH [switches] [FILE]\n"
      "       tnk tokenize --model NAME [switches] [FILE]\n\n"
      "Prints the token ids of a text: FILE, or --text, or the standard\n"
      "input.\n\n" CLI_TOKENIZER_HELP "  --text TEXT       take this text\n"
      "  --pieces          a line for each token: id, first byte, byte behind\n"
      "                    the last, text\n"
      "  --count           print only how many tokens there are\n"
      "  --json            print one JSON object\n"
      "  --add-special     put around the text what the file says (BOS ...)\n"
      "  --split-special   special tokens in the text are ordinary text\n"
      "  --plain           the same for all added tokens\n"
      "  --lossy           replace what is not UTF-8 instead of refusing it\n");
}

static int take_flag(args_t *args, const char *arg) {
  if (strcmp(arg, "--pieces") == 0)
    args->pieces = 1;
  else if (strcmp(arg, "--count") == 0)
    args->count = 1;
  else if (strcmp(arg, "--json") == 0)
    args->json = 1;
  else if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0)
    args->help = 1;
  else if (strcmp(arg, "--add-special") == 0)
    args->flags |= TNK_ENCODE_ADD_SPECIAL;
  else if (strcmp(arg, "--split-special") == 0)
    args->flags |= TNK_ENCODE_SPLIT_SPECIAL;
  else if (strcmp(arg, "--plain") == 0)
    args->flags |= TNK_ENCODE_PLAIN;
  else if (strcmp(arg, "--lossy") == 0)
    args->flags |= TNK_ENCODE_LOSSY;
  else
    return 0;
  return 1;
}

static int parse(args_t *args, int argc, char *const *argv, char *why,
                 size_t n_why) {
  for (int i = 0; i < argc; i++) {
    const char *arg = argv[i];
    const char **value = strcmp(arg, "--text") == 0
                             ? &args->text
                             : cli_tokenizer_switch(&args->which, arg);

    if (value != NULL) {
      if (++i == argc) {
        (void)snprintf(why, n_why, "%s needs a value", arg);
        return -1;
      }
      *value = argv[i];
    } else if (!take_flag(args, arg)) {
      /* A dash alone is the standard input. */
      if ((arg[0] == '-' && arg[1] != '\0') || args->file != NULL) {
        (void)snprintf(why, n_why, "unexpected argument %s", arg);
        return -1;
      }
      args->file = arg;
    }
  }
  if (args->help)
    return 0;
  if (cli_tokenizer_check(&args->which) != NULL)
    (void)snprintf(why, n_why, "%s", cli_tokenizer_check(&args->which));
  else if (args->text != NULL && args->file != NULL)
    (void)snprintf(why, n_why, "either --text or a file");
  else
    return 0;
  return -1;
}

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

static void print_tokens(const args_t *args, const tnk_tokens_t *tokens,
                         const char *text) {
  size_t n;

  (void)tnk_tokens_ids(tokens, &n);
  if (args->json) {
    printf("{\"count\": %zu, \"ids\": [", n);
    print_ids(tokens, ", ");
    printf("]");
    if (args->pieces) {
      printf(", \"pieces\": [");
      print_pieces(tokens, text, 1);
      printf("]");
    }
    printf("}\n");
  } else if (args->pieces) {
    print_pieces(tokens, text, 0);
  } else {
    print_ids(tokens, " ");
    printf("\n");
  }
}

static int run(const args_t *args, const tnk_tokenizer_t *tok, const char *text,
               size_t n, tnk_tokenizer_error_t *error) {
  unsigned flags = args->flags | (args->pieces ? TNK_ENCODE_OFFSETS : 0);
  tnk_tokens_t *tokens;
  size_t count;
  int err;

  if (args->count) {
    err = tnk_tokenizer_count(tok, text, n, flags, &count, error);
    if (err == TNK_OK)
      printf(args->json ? "{\"count\": %zu}\n" : "%zu\n", count);
    return err;
  }
  tokens = tnk_tokens_new(NULL);
  if (tokens == NULL)
    return TNK_ENOMEM;
  err = tnk_tokenizer_encode(tok, tokens, text, n, flags, error);
  if (err == TNK_OK)
    print_tokens(args, tokens, text);
  tnk_tokens_free(tokens);
  return err;
}

static int tokenize(const args_t *args) {
  /* The sentence for a failure that brings none of its own. */
  tnk_tokenizer_error_t error = {0, 0, "out of memory"};
  tnk_tokenizer_t *tok = NULL;
  char why[512], *read = NULL;
  size_t n = 0;
  int err;

  if (args->text == NULL) {
    read = cli_read_file(args->file == NULL ? "-" : args->file, &n, why,
                         sizeof(why));
    if (read == NULL) {
      fprintf(stderr, "tnk tokenize: %s\n", why);
      return 1;
    }
  } else {
    n = strlen(args->text);
  }
  tok = cli_tokenizer_open(&args->which, error.text, sizeof(error.text));
  err = tok == NULL
            ? -1
            : run(args, tok, read != NULL ? read : args->text, n, &error);
  if (err < 0)
    fprintf(stderr, "tnk tokenize: %s\n", error.text);
  tnk_tokenizer_unref(tok);
  free(read);
  return err < 0 ? 1 : 0;
}

int cli_tokenize(int argc, char *const *argv) {
  args_t args = {0};
  char why[512];

  if (parse(&args, argc, argv, why, sizeof(why)) < 0) {
    fprintf(stderr, "tnk tokenize: %s\nTry tnk tokenize --help.\n", why);
    return 2;
  }
  if (args.help) {
    print_help();
    return 0;
  }
  return tokenize(&args);
}
