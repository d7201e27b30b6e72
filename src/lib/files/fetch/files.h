/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_FILES_FETCH_FILES_H
#define TNK_LIB_FILES_FETCH_FILES_H

#include <stddef.h>

#include "tnk/common.h"

/* File utilities. All functions block, so they run on the thread pool. They
 * return libuv's error codes, which are negated errnos. */

/* Create the parent folders of `path`. */
int tnk__files_make_way(const char *path);
/* Synchronize the folder that contains the path. Errors are ignored: not every
 * file system can synchronize a folder. */
void tnk__files_sync_folder_of(const char *path);
/* Rename a file to `path` and synchronize the folder. */
int tnk__files_rename(const char *from, const char *path);
/* Write a small file through a temporary file. The temporary name ends with
 * `tag`. */
int tnk__files_write(const char *path, const char *text, const char *tag);
/* Write all bytes at the descriptor's position. */
int tnk__files_write_all(int fd, const void *data, size_t n);
/* Read a small text file without trailing whitespace. A file larger than the
 * buffer is an error. */
int tnk__files_read(const char *path, char *out, size_t size);

#endif
