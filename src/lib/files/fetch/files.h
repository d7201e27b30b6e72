#ifndef TNK_LIB_FILES_FETCH_FILES_H
#define TNK_LIB_FILES_FETCH_FILES_H

#include <stddef.h>

#include "tnk/common.h"

/* Small things about files. All of it blocks: for the thread pool. Failures
 * are given as libuv's codes, which are negated errnos. */

/* Make the folders on the way to `path`, its last part not included. */
int tnk__files_make_way(const char *path);
/* Bring the folder's entry for a path to the disk. Best effort: not every file
 * system lets a folder be synchronized. */
void tnk__files_sync_folder_of(const char *path);
/* Rename a file beside it to `path`, durably. */
int tnk__files_rename(const char *from, const char *path);
/* Write a small file by way of a temporary one, whose name ends on `tag`. */
int tnk__files_write(const char *path, const char *text, const char *tag);
/* Write all of it where the descriptor is. */
int tnk__files_write_all(int fd, const void *data, size_t n);
/* Read the text of a small file, without blanks at its end; a longer one is an
 * error. */
int tnk__files_read(const char *path, char *out, size_t size);

#endif
