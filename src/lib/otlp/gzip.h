/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_OTLP_GZIP_H
#define TNK_LIB_OTLP_GZIP_H

#include "lib/base/buf.h"

/* Compress the contents of a buffer in the format of gzip, for speed rather
 * than size, because it is done on the loop. Returns TNK_OK, or TNK_ENOMEM with
 * the buffer unchanged. */
int tnk__otlp_gzip(tnk__buf_t *buf);

#endif
