#ifndef TNK_TOOLS_COMMON_BASE_KEPT_H
#define TNK_TOOLS_COMMON_BASE_KEPT_H

#include <stddef.h>

/*
 * A folder for what a later command may go on from: of this user alone, in that
 * of TMPDIR or in /tmp, and locked by whoever uses it. Where there cannot be
 * one, since somebody else has it or its name, one for a while takes its place.
 */
typedef struct {
  char path[1024];
  int lock;     /* its descriptor; -1: it is not kept */
  int is_found; /* an earlier command has left it, about the same thing */
} cli_kept_t;

/* Open the folder for what `about` describes: what was there about other things
 * is removed. 0, or -1 with a sentence in `why`. */
int cli_kept_open(cli_kept_t *kept, const char *about, char *why, size_t n_why);
/* Whether it stays when it is closed, as it may. */
int cli_kept_may_stay(const cli_kept_t *kept);
/* Let go of it, with all that is in it unless it is to stay. 0, or -1 when
 * something is left that was not to stay. */
int cli_kept_close(cli_kept_t *kept, int stays);

#endif
