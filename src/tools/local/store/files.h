#ifndef TNK_TOOLS_LOCAL_STORE_FILES_H
#define TNK_TOOLS_LOCAL_STORE_FILES_H

#include <stdint.h>

enum { LOCAL_FILE = 1536 }; /* room of any path we make */

/* Make a directory and those above it. 0, also when it is there, or a code of
 * libuv. */
int local_make_dirs(const char *dir);
/* Remove a directory with all in it. */
void local_remove_tree(const char *dir);
int local_file_exists(const char *path);
/* 0 when there is none. */
int64_t local_file_size(const char *path);

#endif
