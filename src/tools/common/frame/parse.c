/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/number.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"
#include "tools/common/frame/parts.h"

/* ---- The nearest name ---- */

enum { MAX_WORD = 40 };

static size_t least(size_t a, size_t b, size_t c) {
  size_t ab = a < b ? a : b;

  return ab < c ? ab : c;
}

/* The number of letters to insert, delete, change, or swap with a neighbor.
 * rows[i % 3][k] is the distance between the first i letters of one word and
 * the first k letters of the other. */
static size_t distance(const char *a, size_t n_a, const char *b, size_t n_b) {
  size_t rows[3][MAX_WORD + 1];

  for (size_t k = 0; k <= n_b; k++)
    rows[0][k] = k;
  for (size_t i = 1; i <= n_a; i++) {
    size_t *row = rows[i % 3];
    const size_t *above = rows[(i + 2) % 3];

    row[0] = i;
    for (size_t k = 1; k <= n_b; k++) {
      row[k] = least(above[k] + 1, row[k - 1] + 1,
                     above[k - 1] + (a[i - 1] != b[k - 1]));
      if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
        row[k] = least(row[k], rows[(i + 1) % 3][k - 2] + 1, row[k]);
    }
  }
  return rows[n_a % 3][n_b];
}

/* Find the name that a misspelled word is closest to. `name_of` returns the
 * i-th of n names, valid until its next call. NULL: no name is close. */
static const char *nearest_name(const char *word,
                                const char *(*name_of)(size_t i), size_t n) {
  size_t n_word = strcspn(word, "=");
  size_t nearest = n;
  size_t fewest = 3;

  for (size_t i = 0; i < n; i++) {
    const char *name = name_of(i);
    size_t n_name = strlen(name);
    size_t d;

    if (n_word > MAX_WORD || n_name > MAX_WORD)
      continue;
    d = distance(word, n_word, name, n_name);
    /* If both letters of a two-letter name differ, it is another word. */
    if (d < fewest && 2 * d < n_name) {
      fewest = d;
      nearest = i;
    }
  }
  return nearest < n ? name_of(nearest) : NULL;
}

/* ---- Parsing ---- */

enum { MAX_COMMON = 16 };

typedef struct {
  cli_t *cli;
  int argc;
  char **argv;
  int at;                /* the current argument */
  int given[MAX_COMMON]; /* whether a common option was used, by row */
  int has_own;           /* an option of the command itself was used */
  const char **words;
  char *why;
  size_t n_why;
} parse_t;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static int
refuse(const parse_t *p, const char *format, ...) {
  va_list args;

  va_start(args, format);
  vsnprintf(p->why, p->n_why, format, args);
  va_end(args);
  return -1;
}

/* ---- Parsing: values ---- */

static int read_number(const parse_t *p, const cli_option_t *option,
                       const char *value) {
  int is_negative = value[0] == '-';
  uint64_t n;

  if (tnk__text_u64(value + is_negative, INT64_MAX, &n) == TNK_OK) {
    *option->number = is_negative ? -(int64_t)n : (int64_t)n;
    if (*option->number >= option->min && *option->number <= option->max)
      return 0;
  }
  if (option->max == INT64_MAX)
    return refuse(p, "--%s: \"%s\" is not a whole number%s", option->name,
                  value, option->min < 0 ? "" : " from 0 on");
  return refuse(p, "--%s: \"%s\" is not a whole number from %lld to %lld",
                option->name, value, (long long)option->min,
                (long long)option->max);
}

/* In JSON's syntax, independently of the locale. */
static int read_real(const parse_t *p, const cli_option_t *option,
                     const char *value) {
  json_t *root = NULL;
  double real = NAN;

  if (tnk__json_parse(&root, value, strlen(value)) == TNK_OK &&
      json_is_number(root))
    real = json_number_value(root);
  json_decref(root);
  if (option->is_positive && real == 0)
    return refuse(p, "--%s must be above 0", option->name);
  if (!(real >= 0 && real <= option->max_real))
    return refuse(p, "--%s: \"%.200s\" is not a number from 0 to %g",
                  option->name, value, option->max_real);
  *option->real = real;
  return 0;
}

static int read_choice(const parse_t *p, const cli_option_t *option,
                       const char *value) {
  char list[256] = "";
  size_t n = 0;

  for (int i = 0; option->choices[i] != NULL; i++) {
    const char *choice = option->choices[i];
    const char *link = i == 0 ? "" : option->choices[i + 1] ? ", " : " or ";

    if (strcmp(choice, value) == 0) {
      *option->choice = i;
      return 0;
    }
    if (n + strlen(link) + strlen(choice) < sizeof(list))
      n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", link, choice);
  }
  return refuse(p, "--%s: \"%s\" is not one of %s", option->name, value, list);
}

static int add_text(const parse_t *p, const cli_option_t *option,
                    const char *value) {
  cli_texts_t *texts = option->texts;
  const char **more =
      realloc(texts->items, (texts->n + 1) * sizeof(*texts->items));

  if (more == NULL)
    return refuse(p, "out of memory");
  texts->items = more;
  texts->items[texts->n++] = value;
  return 0;
}

static int set_value(const parse_t *p, const cli_option_t *option,
                     const char *value) {
  char why[512] = "";

  if (option->text != NULL) {
    *option->text = value;
    if (value[0] != '\0' || option->is_any)
      return 0;
    return refuse(p, "--%s: \"\" is empty", option->name);
  }
  if (option->number != NULL)
    return read_number(p, option, value);
  if (option->real != NULL)
    return read_real(p, option, value);
  if (option->choice != NULL)
    return read_choice(p, option, value);
  if (option->texts != NULL)
    return add_text(p, option, value);
  if (option->set(option, value, why, sizeof(why)) == 0)
    return 0;
  /* A message that quotes the value begins with it. */
  if (why[0] == '"')
    return refuse(p, "--%s: %s", option->name, why);
  return refuse(p, "--%s: \"%.200s\" %s", option->name, value, why);
}

/* ---- Parsing: options ---- */

static int is_called(const cli_option_t *option, const char *name, size_t n,
                     char letter) {
  return letter != 0
             ? option->letter == letter
             : strlen(option->name) == n && memcmp(option->name, name, n) == 0;
}

/* Find an option by its letter or, if that is 0, by its name. */
static const cli_option_t *find_option(parse_t *p, const char *name, size_t n,
                                       char letter) {
  const cli_option_t *option = p->cli->command->options;
  unsigned needs;

  for (; option != NULL && option->name != NULL; option++)
    if (is_called(option, name, n, letter)) {
      p->has_own = 1;
      return option;
    }
  /* Whether the command supports it is checked later, when the command is
   * known. */
  for (size_t i = 0; (option = cli_common_at(i, &needs)) != NULL; i++)
    if (is_called(option, name, n, letter)) {
      p->given[i] = 1;
      return option;
    }
  return NULL;
}

static const cli_command_t *command_of_names;

/* The name with its dashes, which make a short name long enough for
 * nearest_name(). */
static const char *option_name(size_t i) {
  static char name[64];

  snprintf(name, sizeof(name), "--%s",
           cli_option_at(command_of_names, i)->name);
  return name;
}

static const char *command_name(size_t i) {
  return cli_command_at(command_of_names, i)->name;
}

static int refuse_option(const parse_t *p, const char *arg) {
  const char *meant = NULL;
  size_t n = 0;

  while (cli_option_at(p->cli->command, n) != NULL)
    n++;
  command_of_names = p->cli->command;
  if (arg[1] == '-')
    meant = nearest_name(arg, option_name, n);
  if (meant == NULL)
    return refuse(p, "unknown option \"%.200s\"", arg);
  return refuse(p, "unknown option \"%.200s\", did you mean \"%s\"?", arg,
                meant);
}

/* The next argument, as a value. */
static const char *next_value(parse_t *p) {
  return p->at + 1 < p->argc ? p->argv[++p->at] : NULL;
}

static int refuse_missing(const parse_t *p, const cli_option_t *option) {
  return refuse(p, "--%s needs a value: --%s %s", option->name, option->name,
                option->value);
}

static int take_long(parse_t *p, const char *arg) {
  size_t n = strcspn(arg + 2, "=");
  const cli_option_t *option = find_option(p, arg + 2, n, 0);
  const char *value = arg[2 + n] == '=' ? arg + 3 + n : NULL;

  if (option == NULL)
    return refuse_option(p, arg);
  if (option->value == NULL) {
    if (value != NULL)
      return refuse(p,
                    "--%s: \"%.200s\" is given, but the option takes no "
                    "value",
                    option->name, value);
    *option->flag = 1;
    return 0;
  }
  if (value == NULL)
    value = next_value(p);
  return value != NULL ? set_value(p, option, value)
                       : refuse_missing(p, option);
}

/* Letters without a value may share a dash. */
static int take_letters(parse_t *p, const char *arg) {
  for (const char *at = arg + 1; *at != '\0'; at++) {
    const cli_option_t *option = find_option(p, NULL, 0, *at);
    const char *value;

    if (option == NULL)
      return refuse_option(p, arg);
    if (option->value == NULL) {
      *option->flag = 1;
      continue;
    }
    value = at[1] != '\0' ? at + 1 : next_value(p);
    return value != NULL ? set_value(p, option, value)
                         : refuse_missing(p, option);
  }
  return 0;
}

/* ---- Parsing: commands and arguments ---- */

static void add_name(cli_t *cli, const char *name) {
  size_t n = strlen(cli->name);

  snprintf(cli->name + n, sizeof(cli->name) - n, "%s%s", n > 0 ? " " : "",
           name);
}

static int enter(parse_t *p, const char *name) {
  const cli_command_t *command;
  const char *meant;
  size_t n = 0;

  for (; (command = cli_command_at(p->cli->command, n)) != NULL; n++)
    if (strcmp(command->name, name) == 0) {
      if (p->has_own)
        return refuse(p, "the options before \"%.200s\" are not its own", name);
      p->cli->command = command;
      add_name(p->cli, name);
      return 0;
    }
  command_of_names = p->cli->command;
  meant = nearest_name(name, command_name, n);
  if (meant == NULL)
    return refuse(p, "unknown command \"%.200s\"", name);
  return refuse(p, "unknown command \"%.200s\", did you mean \"%s\"?", name,
                meant);
}

int cli_enter_all(cli_t *cli, char *why, size_t n_why) {
  parse_t p = {.cli = cli, .why = why, .n_why = n_why};

  cli->command = cli->root;
  snprintf(cli->name, sizeof(cli->name), "%s", cli->root->name);
  for (size_t i = 0; i < cli->n_words; i++)
    if (enter(&p, cli->words[i]) != 0)
      return -1;
  return 0;
}

static int check_common(const parse_t *p) {
  unsigned needs;

  for (size_t i = 0; i < MAX_COMMON; i++) {
    const cli_option_t *option = cli_common_at(i, &needs);

    if (option != NULL && p->given[i] && needs != 0 &&
        (needs & p->cli->command->has) == 0)
      return refuse(p, "this command has no option \"--%s\"", option->name);
  }
  return 0;
}

/* Count the arguments that a usage line requires and allows. */
static void count_words(const char *words, size_t *min, size_t *max) {
  *min = *max = 0;
  for (const char *at = words; at != NULL && *at != '\0';
       at += strspn(at, " ")) {
    *min += at[0] != '[';
    ++*max;
    at += strcspn(at, " ");
  }
  if (words != NULL && strstr(words, "...") != NULL)
    *max = SIZE_MAX;
}

static int check_words(const parse_t *p) {
  const cli_command_t *command = p->cli->command;
  size_t n = p->cli->n_words;
  size_t min, max;

  count_words(command->words, &min, &max);
  if (n < min)
    return refuse(p, "an argument is missing: %s %s", p->cli->name,
                  command->words);
  if (n <= max)
    return 0;
  if (max == 0)
    return refuse(p, "this command takes no argument, but \"%.200s\" is given",
                  p->cli->words[0]);
  return refuse(p, "too many arguments, from \"%.200s\" on: %s %s",
                p->cli->words[max], p->cli->name, command->words);
}

static int take(parse_t *p) {
  const char *arg = p->argv[p->at];

  if (arg[0] == '-' && arg[1] == '-')
    return take_long(p, arg);
  /* A single dash is the standard input. */
  if (arg[0] == '-' && arg[1] != '\0')
    return take_letters(p, arg);
  if (p->cli->command->commands != NULL)
    return enter(p, arg);
  p->words[p->cli->n_words++] = arg;
  return 0;
}

static int take_all(parse_t *p) {
  for (p->at = 1; p->at < p->argc; p->at++) {
    if (strcmp(p->argv[p->at], "--") == 0)
      break;
    if (take(p) != 0)
      return -1;
  }
  while (++p->at < p->argc)
    p->words[p->cli->n_words++] = p->argv[p->at];
  return 0;
}

/* Errors before --json in the line are reported in JSON too. */
static int wants_json(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], "--json") == 0 || strcmp(argv[i], "-fjson") == 0 ||
        strcmp(argv[i], "--format=json") == 0 ||
        (i + 1 < argc && strcmp(argv[i + 1], "json") == 0 &&
         (strcmp(argv[i], "-f") == 0 || strcmp(argv[i], "--format") == 0)))
      return 1;
  return 0;
}

static int refuse_config(const parse_t *p, const char *path) {
  char why[512];

  snprintf(why, sizeof(why), "%.*s", (int)sizeof(why) - 1, p->why);
  return refuse(p, "%.200s: %s", path, why);
}

static void forget_lists(const cli_command_t *command) {
  const cli_option_t *option = command->options;

  for (; option != NULL && option->name != NULL; option++)
    if (option->texts != NULL)
      option->texts->n = 0;
}

/* Take the options of the file, and then the command line once more, because it
 * overrides the file. Its arguments replace those of the file. */
static int take_config(parse_t *p, const char *path) {
  cli_t *cli = p->cli;
  parse_t file = {.cli = cli, .why = p->why, .n_why = p->n_why};
  size_t n_words;

  if (cli_config_read(path, &file.argc, &file.argv, p->why, p->n_why) != 0)
    return -1;
  file.words = calloc((size_t)(file.argc + p->argc) + 1, sizeof(*file.words));
  if (file.words == NULL)
    return refuse(p, "out of memory");
  free(p->words);
  p->words = file.words;
  cli->words = p->words;
  cli->n_words = 0;
  forget_lists(cli->command);
  if (take_all(&file) != 0 || check_common(&file) != 0)
    return refuse_config(p, path);
  n_words = cli->n_words;
  cli->command = cli->root;
  cli->name[0] = '\0';
  p->has_own = 0;
  add_name(cli, cli->root->name);
  if (take_all(p) != 0)
    return -1;
  if (cli->n_words > n_words) {
    cli->words += n_words;
    cli->n_words -= n_words;
  }
  return 0;
}

int cli_parse(cli_t *cli, int argc, char **argv, char *why, size_t n_why) {
  parse_t p = {
      .cli = cli, .argc = argc, .argv = argv, .why = why, .n_why = n_why};
  const char *wrong;

  cli->command = cli->root;
  add_name(cli, cli->root->name);
  /* Kept until the process ends. */
  p.words = calloc((size_t)argc + 1, sizeof(*p.words));
  if (p.words == NULL)
    return refuse(&p, "out of memory");
  cli->words = p.words;
  if (take_all(&p) != 0 || check_common(&p) != 0 ||
      (cli->command->config != NULL && *cli->command->config != NULL &&
       take_config(&p, *cli->command->config) != 0)) {
    cli->json = cli->json || wants_json(argc, argv);
    return -1;
  }
  /* Help is shown even for an invalid combination. */
  if (cli->help || cli->command->run == NULL)
    return 0;
  if (check_words(&p) != 0)
    return -1;
  wrong = cli->command->check != NULL ? cli->command->check(cli) : NULL;
  return wrong != NULL ? refuse(&p, "%s", wrong) : 0;
}
