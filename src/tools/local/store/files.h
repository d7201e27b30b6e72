/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_STORE_FILES_H
#define TNK_TOOLS_LOCAL_STORE_FILES_H

#include <stdint.h>

enum { LOCAL_FILE = 1536 }; /* size of any generated path */

/* Create a directory and its parents. Returns 0, also if it exists, or libuv's
 * error code. */
int local_make_dirs(const char *dir);
/* Remove a directory with its contents. */
void local_remove_tree(const char *dir);
int local_file_exists(const char *path);
/* 0 if it does not exist. */
int64_t local_file_size(const char *path);

#endif
