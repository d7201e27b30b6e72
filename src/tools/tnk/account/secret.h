#ifndef TNK_TOOLS_TNK_ACCOUNT_SECRET_H
#define TNK_TOOLS_TNK_ACCOUNT_SECRET_H

#include <stddef.h>

#include "lib/base/limits.h"

/* A key as it was entered, with the line end. The caller must wipe it. */
typedef struct {
  char text[TNK__MAX_CREDENTIAL + 2];
} cli_secret_t;

/* How the input ended. */
typedef enum {
  CLI_SECRET_READ = 0,
  CLI_SECRET_NONE,   /* the input ended without a line */
  CLI_SECRET_LONG,   /* longer than any key */
  CLI_SECRET_FAILED, /* see errno */
  CLI_SECRET_SIGNAL  /* see *signal */
} cli_secret_end_t;

/* Read the first line of the standard input, trimmed. */
cli_secret_end_t cli_secret_read(cli_secret_t *secret);
/* Prompt for a line on the terminal that is the standard input, without echo.
 * The prompt is repeated after an empty line. The terminal is restored in every
 * case. */
cli_secret_end_t cli_secret_type(cli_secret_t *secret, const char *prompt,
                                 int *signal);

#endif
