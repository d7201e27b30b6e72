/* tnk lint: reads training data, one example in JSON a line, and says of each
 * line what tnk_training_forward_backward() would refuse. */
#include "cli/lint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/utf8.h"
#include "codec/data/check.h"
#include "codec/data/datum_json.h"
#include "codec/format/json_read.h"
#include "codec/format/json_write.h"
#include "tnk/error.h"

enum { MAX_REASON = 512 };

typedef struct {
  cli_lint_options_t options;
  FILE *out;
  size_t n_lines; /* that hold an example */
  size_t n_bad;
} lint_t;

static void print_help(void) {
  printf("usage: tnk lint [switches] FILE\n\n"
         "Check training data without sending it: one example a line, as\n"
         "  {\"model_input\": {\"chunks\": [{\"type\": \"encoded_text\", "
         "\"tokens\": [1, 2]}]},\n"
         "   \"loss_fn_inputs\": {\"target_tokens\": {\"data\": [2, 3], "
         "\"dtype\": \"int64\"}}}\n"
         "FILE - is the standard input; empty lines are skipped. Exit status: "
         "0 all is\nwell, 1 something is wrong with the data, 2 it could not "
         "be read.\n\n"
         "  --loss NAME             the loss it is meant for, such as "
         "cross_entropy;\n"
         "                          without it only forms are checked\n"
         "  --json                  one JSON object a finding, and one at the "
         "end\n"
         "  --help                  this text\n");
}

/* ---- One line ---- */

static void report(const lint_t *lint, size_t line, const char *reason) {
  tnk__json_writer_t w;
  tnk__buf_t buf;

  if (!lint->options.json) {
    fprintf(lint->out, "%s:%zu: %s\n", lint->options.file, line, reason);
    return;
  }
  tnk__buf_init(&buf, tnk__allocator_default(), TNK__MIB);
  tnk__json_writer_init(&w, &buf);
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "file", lint->options.file);
  tnk__json_put_int(&w, "line", (int64_t)line);
  tnk__json_put_text(&w, "reason", reason);
  tnk__json_end(&w);
  if (tnk__json_finish(&w) == TNK_OK)
    fprintf(lint->out, "%.*s\n", (int)buf.len, (const char *)buf.data);
  else /* a file name that is not UTF-8 */
    fprintf(lint->out, "{\"line\":%zu,\"reason\":\"%s\"}\n", line,
            "what is wrong cannot be told in JSON");
  tnk__buf_deinit(&buf);
}

/* The sentence of a check names the example as the first of a call. */
static const char *without_index(const char *text) {
  static const char prefix[] = "datum 0: ";

  return strncmp(text, prefix, sizeof(prefix) - 1) == 0
             ? text + sizeof(prefix) - 1
             : text;
}

static int check(const lint_t *lint, const char *line, size_t n, char *reason) {
  const tnk_allocator_t *alloc = tnk__allocator_default();
  json_t *json = NULL;
  tnk__arena_t arena;
  tnk_datum_t datum;
  int err = tnk__json_parse(&json, line, n);

  /* Lack of memory is not a fault of the data, and ends the run. */
  if (err == TNK_EPROTO) {
    snprintf(reason, MAX_REASON, "it is not JSON");
    return TNK_EINVAL;
  }
  if (err != TNK_OK)
    return err;
  /* The data are the user's own and in memory already: no ceiling. */
  tnk__arena_init(&arena, alloc, SIZE_MAX / 2);
  err = tnk__datum_read(&datum, &arena, json, reason, MAX_REASON);
  if (err == TNK_OK)
    /* The very function that a call would use, so that both always agree. */
    err = tnk_data_check(&datum, 1, lint->options.loss, reason, MAX_REASON);
  tnk__arena_deinit(&arena);
  json_decref(json);
  return err;
}

/* ---- The file ---- */

/* By its length: a line that begins with a NUL is not empty. */
static int is_blank(const char *line, size_t n) {
  return strspn(line, " \t\r\n") == n;
}

/* Names in the data are part of it: they may be cut inside a character, and
 * hold what acts on a terminal. */
static void clean(char *reason) {
  tnk__utf8_repair(reason);
  tnk__text_clean(reason, strlen(reason));
}

static int check_lines(lint_t *lint, FILE *in) {
  char reason[MAX_REASON] = "";
  char *line = NULL;
  size_t room = 0;
  size_t number = 0;
  ssize_t n;
  int err = TNK_OK;

  while (err != TNK_ENOMEM && (n = getline(&line, &room, in)) >= 0) {
    number++;
    if (is_blank(line, (size_t)n))
      continue;
    /* Counted although it may be wrong: it was meant to be an example. */
    lint->n_lines++;
    err = check(lint, line, (size_t)n, reason);
    if (err != TNK_EINVAL)
      continue;
    lint->n_bad++;
    clean(reason);
    report(lint, number, without_index(reason));
  }
  free(line);
  if (err != TNK_ENOMEM && !ferror(in))
    return 0;
  fprintf(stderr, "tnk lint: %s: %s\n", lint->options.file,
          err == TNK_ENOMEM ? "out of memory" : strerror(errno));
  return 2;
}

/* Not of a line: whoever misspells a loss would be told that all is well. */
static void note_loss(const lint_t *lint) {
  char text[MAX_REASON];

  if (lint->options.loss == NULL || tnk__loss_is_known(lint->options.loss))
    return;
  snprintf(text, sizeof(text),
           "loss \"%.64s\" is not known here: only forms were checked",
           lint->options.loss);
  clean(text);
  fprintf(stderr, "tnk lint: %s\n", text);
}

int cli_lint_stream(const cli_lint_options_t *options, FILE *in, FILE *out) {
  lint_t lint = {.options = *options, .out = out};

  note_loss(&lint);
  if (check_lines(&lint, in) != 0)
    return 2;
  fprintf(out,
          options->json ? "{\"examples\":%zu,\"wrong\":%zu}\n"
                        : "%zu examples, %zu wrong\n",
          lint.n_lines, lint.n_bad);
  return lint.n_bad > 0;
}

static int lint_file(const cli_lint_options_t *options) {
  int is_stdin = strcmp(options->file, "-") == 0;
  FILE *in = is_stdin ? stdin : fopen(options->file, "r");
  int status;

  if (in == NULL) {
    fprintf(stderr, "tnk lint: %s: %s\n", options->file, strerror(errno));
    return 2;
  }
  status = cli_lint_stream(options, in, stdout);
  if (!is_stdin)
    fclose(in);
  return status;
}

/* ---- The command line ---- */

static int parse(cli_lint_options_t *lint, int *help, int argc,
                 char *const *argv) {
  int i;

  for (i = 0; i < argc; i++) {
    const char *arg = argv[i];
    if (strcmp(arg, "--json") == 0) {
      lint->json = 1;
    } else if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
      *help = 1;
    } else if (strncmp(arg, "--loss=", 7) == 0) {
      lint->loss = arg + 7;
    } else if (strcmp(arg, "--loss") == 0 && i + 1 < argc) {
      lint->loss = argv[++i];
    } else if (arg[0] == '-' && arg[1] != '\0') {
      fprintf(stderr, "tnk lint: there is no switch \"%s\"%s\n", arg,
              strcmp(arg, "--loss") == 0 ? " without a NAME" : "");
      return -1;
    } else if (lint->file != NULL) {
      fprintf(stderr, "tnk lint: one FILE at a time\n");
      return -1;
    } else {
      lint->file = arg;
    }
  }
  if (lint->file == NULL && !*help)
    fprintf(stderr, "tnk lint: a FILE is missing\n");
  return lint->file == NULL && !*help ? -1 : 0;
}

int cli_lint(int argc, char *const *argv) {
  cli_lint_options_t options = {.file = NULL};
  int help = 0;

  if (parse(&options, &help, argc, argv) != 0) {
    fprintf(stderr, "Try tnk lint --help.\n");
    return 2;
  }
  if (help) {
    print_help();
    return 0;
  }
  return lint_file(&options);
}
