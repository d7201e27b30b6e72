#ifndef TNK_TOOLS_COMMON_FRAME_COMMAND_H
#define TNK_TOOLS_COMMON_FRAME_COMMAND_H

#include <stddef.h>
#include <stdint.h>

/*
 * A command is a row: everything that is to be known of it. A group of commands
 * has no `run` but `commands`.
 *
 *     static const cli_option_t options[] = {
 *         {.name = "limit", .value = "N", .number = &limit, .min = 0,
 *          .max = INT64_MAX, .help = "At most so many; 0: all (20)."},
 *         {.name = NULL}};
 *     const cli_command_t cli_run_list = {
 *         .name = "list", .brief = "list training runs", .options = options,
 *         .has = CLI_HAS_JSON | CLI_HAS_SERVICE, .run = list};
 */

typedef struct cli cli_t;
typedef struct cli_option cli_option_t;
typedef struct cli_command cli_command_t;

/* Values of an option that may be given several times. */
typedef struct {
  const char **items;
  size_t n;
} cli_texts_t;

/* What shells offer for a value or an argument. */
typedef enum {
  CLI_OFFER_NOTHING = 0,
  CLI_OFFER_FILES,
  CLI_OFFER_FOLDERS
} cli_offer_t;

/* An option. Exactly one of the targets is not NULL, and says what kind of
 * value it takes; what they point to holds the default. */
struct cli_option {
  const char *name;  /* without the dashes; NULL ends a table */
  char letter;       /* "-o"; 0: none */
  const char *value; /* the name of its value; NULL: it takes none */
  const char *help;  /* sentences; a line break begins a new line */
  int *flag;         /* set to 1 */
  const char **text; /* empty only with `is_any` */
  int is_any;
  int64_t *number; /* from `min` to `max` */
  int64_t min;
  int64_t max;
  int *choice; /* the place in `choices`, which NULL ends */
  const char *const *choices;
  cli_texts_t *texts;
  /* Read the value; 0, or -1 with a sentence in `why`. */
  int (*set)(const cli_option_t *option, const char *value, char *why,
             size_t n_why);
  cli_offer_t offer;
};

/* A term and what is to be said of it. A NULL term ends a list. */
typedef struct {
  const char *term;
  const char *text;
} cli_item_t;

/* A chapter of a help: a sentence or more, and a list. */
typedef struct {
  const char *title;       /* NULL ends a table */
  const char *text;        /* or NULL */
  const cli_item_t *items; /* or NULL */
} cli_section_t;

/* Which of the common options a command has; to be added up. */
enum {
  CLI_HAS_JSON = 1,   /* --json, --format */
  CLI_HAS_SERVICE = 2 /* --base-url and the like */
};

struct cli_command {
  const char *name;
  const char *brief; /* what it does, in a few words and without a full stop */
  const char *about; /* sentences; "\n\n" begins a paragraph; or NULL */
  const char *words; /* the arguments as people write them; NULL: none */
  size_t min_words;
  size_t max_words;              /* SIZE_MAX: any number */
  cli_offer_t offer;             /* for the arguments */
  const cli_option_t *options;   /* or NULL */
  const cli_section_t *sections; /* behind the options in its help; or NULL */
  const cli_item_t *examples;    /* command lines with what they do; or NULL */
  const char *failed; /* what status 1 means of it; NULL: as everywhere */
  int is_server;      /* a signal is how it ends, with status 0 */
  unsigned has;
  /* Whether options and arguments go together. NULL, or a sentence. */
  const char *(*check)(const cli_t *cli);
  /* Do it. Returns the exit status. */
  int (*run)(cli_t *cli);
  const cli_command_t *const *commands; /* of a group; NULL ends them */
};

/* Command i of a group; NULL behind the last one, and of what is no group. */
const cli_command_t *cli_command_at(const cli_command_t *group, size_t i);
/* Option i: of the command first, then the common ones that it has. NULL behind
 * the last one. */
const cli_option_t *cli_option_at(const cli_command_t *command, size_t i);

#endif
