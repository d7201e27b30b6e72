/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_FILES_PUSH_MESSAGE_H
#define TNK_LIB_FILES_PUSH_MESSAGE_H

#include <jansson.h>

#include "lib/base/buf.h"
#include "lib/files/push/folder.h"

/* Files in one request, as in Python's library. */
#define TNK__PUSH_BATCH 256

/* Write the request bodies of a push. Errors are kept in `out`. */
void tnk__push_put_create(tnk__buf_t *out, const char *owner, const char *name,
                          int is_private);
/* Ask how the files from `first` on are transferred. Returns the number of
 * files in the request. */
size_t tnk__push_put_sorting(tnk__buf_t *out, const tnk__folder_t *folder,
                             size_t first);
/* Request addresses for the large files from `first` on. Returns the index of
 * the next file. *n receives the number of files. */
size_t tnk__push_put_batch(tnk__buf_t *out, const tnk__folder_t *folder,
                           size_t first, const char *revision, size_t *n);
/* Report that all parts of a file were sent; `parts` is JSON. */
void tnk__push_put_parts(tnk__buf_t *out, const tnk__push_file_t *file,
                         const tnk__buf_t *parts);
void tnk__push_put_object(tnk__buf_t *out, const tnk__push_file_t *file);
/* Write one line for each file. Returns the number of files. */
size_t tnk__push_put_commit(tnk__buf_t *out, const tnk__folder_t *folder,
                            const char *message);

/* Parse the answer for `n` files from `first` on. Returns TNK_OK or
 * TNK_EPROTO. */
int tnk__push_read_sorting(tnk__folder_t *folder, size_t first, size_t n,
                           const json_t *answer);

#endif
