#ifndef TNK_CLI_LOCAL_H
#define TNK_CLI_LOCAL_H

/* Run `tnk local`; argv is without the two words. Returns the exit status: 0, 1
 * when it cannot run, 2 for a wrong command line. */
int cli_local(int argc, char *const *argv);

#endif
