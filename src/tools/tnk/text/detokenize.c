/* SPDX-License-Identifier: MIT */
/*
 * tnk detokenize: decodes all ids at once, because the bytes of a character may
 * come from several tokens.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/number.h"
#include "tools/common/base/input.h"
#include "tools/common/frame/commands.h"
#include "tools/tnk/text/tokenizer.h"

static struct {
  cli_tokenizer_t which;
  int skip_special;
} args;

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

/* Far above any vocabulary. */
#define MAX_ID 99999999

/* Parse all numbers of a text. */
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
      return -1;
    }
    if (put(ids, (int32_t)id) < 0) {
      (void)snprintf(why, n_why, "out of memory");
      return -1;
    }
  }
}

/* Returns the exit status. */
static int gather(const cli_t *cli, ids_t *ids, char *why, size_t n_why) {
  int err = 0;

  if (cli->n_words == 0) {
    size_t n;
    char *text = cli_read_file("-", &n, why, n_why);

    if (text == NULL)
      return CLI_EXIT_FILE;
    err = put_text(ids, text, why, n_why);
    if (err == 0 && strlen(text) < n) {
      (void)snprintf(why, n_why, "no id: a NUL byte");
      err = -1;
    }
    free(text);
  }
  for (size_t i = 0; i < cli->n_words && err == 0; i++)
    err = put_text(ids, cli->words[i], why, n_why);
  return err == 0 ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}

static int print_text(const cli_t *cli, const tnk_tokenizer_t *tok,
                      const ids_t *ids) {
  unsigned flags = args.skip_special ? TNK_DECODE_SKIP_SPECIAL : 0;
  size_t n;
  char *text;
  int err = tnk_tokenizer_decode(tok, &text, &n, ids->ids, ids->n, flags);

  if (err < 0)
    return cli_fail(cli, CLI_EXIT_FAILED, "%s",
                    err == TNK_ENOMEM ? "out of memory"
                                      : "these ids have no text");
  if (cli->json) {
    printf("{\"text\": ");
    cli_put_json_text(stdout, text, n);
    printf("}\n");
  } else {
    (void)fwrite(text, 1, n, stdout);
  }
  tnk_tokenizer_free_text(tok, text);
  return CLI_EXIT_OK;
}

static int run_detokenize(cli_t *cli) {
  tnk_tokenizer_t *tok = NULL;
  ids_t ids = {NULL, 0, 0};
  char why[512];
  int status = gather(cli, &ids, why, sizeof(why));

  if (status != CLI_EXIT_OK) {
    status = cli_fail(cli, status, "%s", why);
  } else {
    tok = cli_tokenizer_open(cli, &args.which, &status, why, sizeof(why));
    status = tok != NULL
                 ? print_text(cli, tok, &ids)
                 : cli_tokenizer_failed(cli, &args.which, status, why, NULL);
  }
  tnk_tokenizer_unref(tok);
  free(ids.ids);
  return status;
}

static const char *check(const cli_t *cli) {
  (void)cli;
  return cli_tokenizer_check(&args.which);
}

static const cli_option_t options[] = {CLI_TOKENIZER_OPTIONS(args.which),
                                       {.name = "skip-special",
                                        .flag = &args.skip_special,
                                        .help = "Leave special tokens out."},
                                       {.name = NULL}};

const cli_command_t cli_detokenize = {
    .name = "detokenize",
    .brief = "convert token ids to text",
    .about = "Print the text of token ids. Without ID, reads standard input, "
             "where blanks, commas and brackets may separate ids. Unknown ids "
             "are skipped. Needs --tokenizer or --model.",
    .words = "[ID]...",
    .options = options,
    .has = CLI_HAS_JSON,
    .check = check,
    .run = run_detokenize,
};
