#ifndef TNK_CLI_LINT_H
#define TNK_CLI_LINT_H

/* tnk lint: argv begins behind the word. Returns the exit status. */
int cli_lint(int argc, char *const *argv);

#endif
