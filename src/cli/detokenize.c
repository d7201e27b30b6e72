/*
 * tnk detokenize: the ids are gathered first and decoded at once, because bytes
 * of one character may come from several tokens.
 */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "cli/input.h"
#include "cli/tokenizer.h"
#include "cli/tokens.h"

typedef struct {
  cli_tokenizer_t which;
  unsigned flags;
  int json;
  int help;
  int n_ids; /* arguments that are ids come first in `ids` */
  char *const *ids;
} args_t;

static void print_help(void) {
  printf("usage: tnk detokenize --tokenizer PATH [switches] [ID ...]\n"
         "       tnk detokenize --model NAME [switches] [ID ...]\n\n"
         "Prints the text of token ids: of those given, or of those on the\n"
         "standard input, between which may be blanks, commas and "
         "brackets. Ids that no token has are left out.\n\n" CLI_TOKENIZER_HELP
         "  --skip-special    leave special tokens out\n"
         "  --json            print one JSON object\n");
}

static int parse(args_t *args, int argc, char *const *argv, char *why,
                 size_t n_why) {
  int i = 0;

  /* Ids are never negative, so that what begins with a dash is a switch. */
  for (; i < argc && argv[i][0] == '-'; i++) {
    const char **value = cli_tokenizer_switch(&args->which, argv[i]);

    if (value != NULL && i + 1 < argc) {
      *value = argv[++i];
    } else if (value != NULL) {
      (void)snprintf(why, n_why, "%s needs a value", argv[i]);
      return -1;
    } else if (strcmp(argv[i], "--skip-special") == 0) {
      args->flags |= TNK_DECODE_SKIP_SPECIAL;
    } else if (strcmp(argv[i], "--json") == 0) {
      args->json = 1;
    } else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
      args->help = 1;
    } else {
      (void)snprintf(why, n_why, "unexpected argument %s", argv[i]);
      return -1;
    }
  }
  args->ids = argv + i;
  args->n_ids = argc - i;
  if (cli_tokenizer_check(&args->which) != NULL && !args->help) {
    (void)snprintf(why, n_why, "%s", cli_tokenizer_check(&args->which));
    return -1;
  }
  return 0;
}

typedef struct {
  int32_t *ids;
  size_t n;
  size_t cap;
} ids_t;

static int put(ids_t *ids, int32_t id) {
  if (ids->n == ids->cap) {
    size_t cap = ids->cap * 2 + 1024;
    int32_t *more = realloc(ids->ids, cap * sizeof(*more));

    if (more == NULL)
      return -1;
    ids->ids = more;
    ids->cap = cap;
  }
  ids->ids[ids->n++] = id;
  return 0;
}

/* What is quoted must not steer a terminal. */
static void calm(char *why) {
  for (; *why != '\0'; why++)
    if ((unsigned char)*why < 0x20 || (unsigned char)*why >= 0x7f)
      *why = '?';
}

/* Far above any vocabulary. */
#define MAX_ID 99999999

/* All numbers of a text. */
static int put_text(ids_t *ids, const char *text, char *why, size_t n_why) {
  for (;;) {
    uint64_t id;
    int err;

    text += strspn(text, " \t\r\n,[]");
    if (*text == '\0')
      return 0;
    err = tnk__read_u64(&text, NULL, MAX_ID, &id);
    if (err == TNK_ETOOBIG) {
      (void)snprintf(why, n_why, "an id is too large");
      return -1;
    }
    if (err < 0) {
      (void)snprintf(why, n_why, "no id: %.40s", text);
      calm(why);
      return -1;
    }
    if (put(ids, (int32_t)id) < 0) {
      (void)snprintf(why, n_why, "out of memory");
      return -1;
    }
  }
}

static int gather(const args_t *args, ids_t *ids, char *why, size_t n_why) {
  int err = 0;

  if (args->n_ids == 0) {
    size_t n;
    char *text = cli_read_file("-", &n, why, n_why);

    if (text == NULL)
      return -1;
    err = put_text(ids, text, why, n_why);
    if (err == 0 && strlen(text) < n) {
      (void)snprintf(why, n_why, "no id: a NUL byte");
      err = -1;
    }
    free(text);
  }
  for (int i = 0; i < args->n_ids && err == 0; i++)
    err = put_text(ids, args->ids[i], why, n_why);
  return err;
}

static int print_text(const args_t *args, const tnk_tokenizer_t *tok,
                      const ids_t *ids) {
  size_t n;
  char *text;
  int err = tnk_tokenizer_decode(tok, &text, &n, ids->ids, ids->n, args->flags);

  if (err < 0) {
    fprintf(stderr, "tnk detokenize: %s\n",
            err == TNK_ENOMEM ? "out of memory" : "these ids have no text");
    return 1;
  }
  if (args->json) {
    printf("{\"text\": ");
    cli_put_json_text(stdout, text, n);
    printf("}\n");
  } else {
    (void)fwrite(text, 1, n, stdout);
  }
  tnk_tokenizer_free_text(tok, text);
  return 0;
}

static int detokenize(const args_t *args) {
  tnk_tokenizer_t *tok = NULL;
  ids_t ids = {NULL, 0, 0};
  char why[512];
  int status = 1;

  if (gather(args, &ids, why, sizeof(why)) < 0)
    fprintf(stderr, "tnk detokenize: %s\n", why);
  else if ((tok = cli_tokenizer_open(&args->which, why, sizeof(why))) == NULL)
    fprintf(stderr, "tnk detokenize: %s\n", why);
  else
    status = print_text(args, tok, &ids);
  tnk_tokenizer_unref(tok);
  free(ids.ids);
  return status;
}

int cli_detokenize(int argc, char *const *argv) {
  args_t args = {0};
  char why[512];

  if (parse(&args, argc, argv, why, sizeof(why)) < 0) {
    fprintf(stderr, "tnk detokenize: %s\nTry tnk detokenize --help.\n", why);
    return 2;
  }
  if (args.help) {
    print_help();
    return 0;
  }
  return detokenize(&args);
}
