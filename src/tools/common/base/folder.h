#ifndef TNK_TOOLS_COMMON_BASE_FOLDER_H
#define TNK_TOOLS_COMMON_BASE_FOLDER_H

#include <stddef.h>

/* Make a folder for a while, for this user alone, in that of TMPDIR or in /tmp,
 * and write its path. 0, or -1 with a sentence in `why`. */
int cli_folder_make(char *out, size_t n, char *why, size_t n_why);
/* Remove it with all that is in it, following no links. 0, or -1 when something
 * is left. */
int cli_folder_remove(const char *path);

/* The same of what is in it alone. */
int cli_folder_clear(const char *path);

#endif
