/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_COMMON_FRAME_COMMAND_H
#define TNK_TOOLS_COMMON_FRAME_COMMAND_H
#include <stddef.h>
#include <stdint.h>

#include "tnk/common.h"

/*
 * A command is a table row with all of its properties. A group of commands has
 * `commands`. If it has `run` too, that is what it does without one of them.
 *
 *     static const cli_option_t options[] = {
 *         {.name = "limit", .value = "N", .number = &limit, .min = 0,
 *          .max = INT64_MAX, .help = "At most so many; 0: all (20)."},
 *         {.name = NULL}};
 *     const cli_command_t cli_run_list = {
 *         .name = "list", .brief = "list training runs", .options = options,
 *         .has = CLI_HAS_JSON | CLI_HAS_SERVICE, .run = list};
 */

struct cli_ask;
typedef struct cli cli_t;
typedef struct cli_option cli_option_t;
typedef struct cli_command cli_command_t;

/* Values of an option that may be repeated. */
typedef struct {
  const char **items;
  size_t n;
} cli_texts_t;

/* The suggestions of shell completion for a value or an argument. */
typedef enum {
  CLI_OFFER_NOTHING = 0,
  CLI_OFFER_FILES,
  CLI_OFFER_FOLDERS
} cli_offer_t;

/* An option. Exactly one target is not NULL. It determines the type of the
 * value and holds the default. */
struct cli_option {
  const char *name;  /* without the dashes; NULL ends a table */
  char letter;       /* "-o"; 0: none */
  const char *value; /* the name of its value; NULL: no value */
  const char *help;  /* sentences; a newline starts a new line */
  int *flag;         /* set to 1 */
  const char **text; /* empty only with `is_any` */
  int is_any;
  int64_t *number; /* between `min` and `max` */
  int64_t min;
  int64_t max;
  double *real; /* from 0 to `max_real` */
  double max_real;
  int is_positive; /* `real` may not be 0 */
  int *choice;     /* the index in `choices`, which ends with NULL */
  const char *const *choices;
  cli_texts_t *texts;
  /* Parses the value. Returns 0, or -1 with the reason in `why`. */
  int (*set)(const cli_option_t *option, const char *value, char *why,
             size_t n_why);
  cli_offer_t offer;
};

/* A term and its description. A NULL term ends a list. */
typedef struct {
  const char *term;
  const char *text;
} cli_item_t;

/* A section of a help: text and a list. */
typedef struct {
  const char *title;       /* NULL ends a table */
  const char *text;        /* or NULL */
  const cli_item_t *items; /* or NULL */
} cli_section_t;

/* Flags for the common options that a command has. */
enum {
  CLI_HAS_JSON = 1,   /* --json, --format */
  CLI_HAS_SERVICE = 2 /* --base-url and similar options */
};

struct cli_command {
  const char *name;
  const char *brief; /* a short description without a period */
  const char *about; /* sentences; "\n\n" starts a paragraph; or NULL */
  /* The arguments in the usage line, such as "FILE", "[TEXT]" or "[ID]...". The
   * parser checks their number. NULL: none. */
  const char *words;
  cli_offer_t offer;             /* completion of the arguments */
  const cli_option_t *options;   /* or NULL */
  const char **config;           /* target of its option for a configuration
                                    file, whose options the command line
                                    overrides; or NULL */
  const cli_section_t *sections; /* after the options in its help; or NULL */
  const cli_item_t *examples;    /* command lines with descriptions; or NULL */
  const char *failed;            /* meaning of status 1; NULL: the usual one */
  int is_server;                 /* a signal ends it with status 0 */
  unsigned has;
  /* Checks the combination of options and arguments. Returns NULL or an error
   * message. */
  const char *(*check)(const cli_t *cli);
  /* Runs the command. Returns the exit status. */
  int (*run)(cli_t *cli);
  /* If `run` is cli_ask_once(): create a promise, and print its result. Returns
   * the exit status. */
  tnk_promise_t *(*begin)(tnk_service_t *service, const cli_t *cli);
  int (*show)(const cli_t *cli, const tnk_promise_t *promise);
  /* If `run` is cli_ask_run(): does the work. Returns the exit status. */
  int (*work)(struct cli_ask *ask);
  const cli_command_t *const *commands; /* for a group; ends with NULL */
};

/* Command i of a group; NULL after the last one and for a command that is not a
 * group. */
const cli_command_t *cli_command_at(const cli_command_t *group, size_t i);
/* Option i: first the command's options, then its common ones. NULL after the
 * last one. */
const cli_option_t *cli_option_at(const cli_command_t *command, size_t i);

#endif
