#ifndef TNK_LIB_OBSERVE_FILE_H
#define TNK_LIB_OBSERVE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "tnk/common.h"

/* Write all of it. TNK_OK or TNK_EFILE. */
int tnk__file_write(int fd, const uint8_t *data, size_t n);
/* Make it the contents of a file, by way of a new file beside it, so that who
 * reads finds the old or the new one, and whole. TNK_OK, TNK_EFILE or
 * TNK_ENOMEM. */
int tnk__file_replace(const tnk_allocator_t *alloc, const char *path,
                      const uint8_t *data, size_t n);

#endif
