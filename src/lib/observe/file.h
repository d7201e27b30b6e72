#ifndef TNK_LIB_OBSERVE_FILE_H
#define TNK_LIB_OBSERVE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "tnk/common.h"

/* Write all n bytes. Returns TNK_OK or TNK_EFILE. */
int tnk__file_write(int fd, const uint8_t *data, size_t n);
/* Replace the contents of a file through a new file next to it. Readers find
 * either the old or the new contents, complete. Returns TNK_OK, TNK_EFILE or
 * TNK_ENOMEM. */
int tnk__file_replace(const tnk_allocator_t *alloc, const char *path,
                      const uint8_t *data, size_t n);

#endif
