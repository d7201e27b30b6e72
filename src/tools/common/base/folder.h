#ifndef TNK_TOOLS_COMMON_BASE_FOLDER_H
#define TNK_TOOLS_COMMON_BASE_FOLDER_H

#include <stddef.h>

/* Create a temporary folder, accessible to this user only, in TMPDIR or /tmp,
 * and write its path. Returns 0, or -1 with the reason in `why`. */
int cli_folder_make(char *out, size_t n, char *why, size_t n_why);
/* Remove it with its contents, without following links. Returns 0, or -1 if
 * something is left. */
int cli_folder_remove(const char *path);

/* Remove only its contents. */
int cli_folder_clear(const char *path);

#endif
