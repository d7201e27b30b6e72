#ifndef TNK_LIB_FILES_PUSH_MESSAGE_H
#define TNK_LIB_FILES_PUSH_MESSAGE_H

#include <jansson.h>

#include "lib/base/buf.h"
#include "lib/files/push/folder.h"

/* Files in one question, as Python's library asks. */
#define TNK__PUSH_BATCH 256

/* The bodies of a push. Failures stick to `out`. */
void tnk__push_put_create(tnk__buf_t *out, const char *owner, const char *name,
                          int is_private);
/* How the files from `first` on come into the repository; returns how many of
 * them are asked about. */
size_t tnk__push_put_sorting(tnk__buf_t *out, const tnk__folder_t *folder,
                             size_t first);
/* Where the large ones from `first` on go; returns where the next ones begin.
 * *n receives how many there are. */
size_t tnk__push_put_batch(tnk__buf_t *out, const tnk__folder_t *folder,
                           size_t first, const char *revision, size_t *n);
/* That all parts of a file have come; `parts` is JSON. */
void tnk__push_put_parts(tnk__buf_t *out, const tnk__push_file_t *file,
                         const tnk__buf_t *parts);
void tnk__push_put_object(tnk__buf_t *out, const tnk__push_file_t *file);
/* One line for each file; returns how many. */
size_t tnk__push_put_commit(tnk__buf_t *out, const tnk__folder_t *folder,
                            const char *message);

/* Read the answer about `n` files from `first` on. TNK_OK or TNK_EPROTO. */
int tnk__push_read_sorting(tnk__folder_t *folder, size_t first, size_t n,
                           const json_t *answer);

#endif
