/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_LM_FILE_H
#define TNK_TOOLS_LOCAL_LM_FILE_H

#include "lib/base/buf.h"
#include "tools/local/lm/lm.h"

/* Reads and writes whole files of a checkpoint. All functions block. An error
 * message names the file and the system's reason. */

/* Write a file under a temporary name, synchronize it, then rename it.
 * TNK_EFAILED, TNK_ENOMEM. */
int tnk__lm_file_write(const char *dir, const char *name,
                       const tnk__buf_t *contents, tnk__lm_why_t *why);
/* Append the file to the buffer, up to the buffer's `max`. TNK_ENOTFOUND,
 * TNK_EPROTO (too big), TNK_EFAILED, TNK_ENOMEM. */
int tnk__lm_file_read(const char *dir, const char *name, tnk__buf_t *contents,
                      tnk__lm_why_t *why);
/* Remove a file if it exists. */
void tnk__lm_file_remove(const tnk_allocator_t *alloc, const char *dir,
                         const char *name);
/* Synchronize the directory, so that renames survive a crash. */
void tnk__lm_dir_sync(const char *dir);

/* A checksum that detects truncated and mixed-up files: FNV-1a, as 16
 * digits. */
typedef struct {
  char text[17];
} tnk__lm_sum_t;
tnk__lm_sum_t tnk__lm_file_sum(const uint8_t *data, size_t n);

#endif
