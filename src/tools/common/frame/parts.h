/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_COMMON_FRAME_PARTS_H
#define TNK_TOOLS_COMMON_FRAME_PARTS_H
#include <stdio.h>

#include "tools/common/frame/cli.h"

/* Declarations that the files of this folder share. */

/* ---- common.c ---- */

/* The command line of the process; the common options write to it. */
cli_t *cli_common(void);
/* Common option i. *needs receives the flags that a command needs for it; 0:
 * none. NULL after the last one. */
const cli_option_t *cli_common_at(size_t i, unsigned *needs);
/* The description of a command: its `about`, or sentences made from its brief
 * in `text`. */
const char *cli_about(const cli_command_t *command, char *text, size_t n);
/* Returns the word for a command in the usage line of a group. The name of a
 * command must follow unless the group runs without it. `name` is the group's,
 * from the root on. */
const char *cli_command_word(const cli_command_t *group, const char *name);
/* The next exit status of a command, from *i on, and its meaning; *i is
 * advanced. NULL after the last one. */
const char *cli_exit_at(const cli_command_t *command, unsigned *i, int *status);

/* ---- parse.c ---- */

/* Parse a command line into `cli` and into the targets of its options. Returns
 * 0, or -1 with a message in `why`; then cli->name is the command in question.
 * Strings point into argv. */
int cli_parse(cli_t *cli, int argc, char **argv, char *why, size_t n_why);
/* Descend from the root to the command that the arguments name. Returns 0, or
 * -1 with a message in `why`. */
int cli_enter_all(cli_t *cli, char *why, size_t n_why);

/* ---- config.c ---- */

/* Read a configuration file as a command line, which begins with an empty
 * command. It is kept until the process ends. Returns 0, or -1 with a message
 * in `why`. Call it once. */
int cli_config_read(const char *path, int *n, char ***args, char *why,
                    size_t n_why);

/* ---- help.c, manual.c ---- */

/* Write the help for the command in `cli`. */
void cli_print_help(FILE *to, const cli_t *cli);
/* Write the usage of an option, such as "-o, --output DIR"; cut if it does not
 * fit into `n` bytes. */
void cli_option_head(char *out, size_t n, const cli_option_t *option);
/* Write man pages to a folder: one for the command itself, and one for each
 * command directly below it (tnk.1, tnk-run.1 ...). Returns the exit status. */
int cli_write_manual(const cli_t *cli, const char *folder);

#endif
