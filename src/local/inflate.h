#ifndef TNK_LOCAL_INFLATE_H
#define TNK_LOCAL_INFLATE_H

#include "base/buf.h"

/* Append what the zstd frames hold. TNK_EPROTO, TNK_ETOOBIG (the buffer's
 * ceiling), TNK_ENOMEM. */
int local_inflate(tnk__buf_t *out, const uint8_t *data, size_t n);

#endif
