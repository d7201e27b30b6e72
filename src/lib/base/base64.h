/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_BASE_BASE64_H
#define TNK_LIB_BASE_BASE64_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

/* Append `data` in the standard alphabet with padding. Failures are kept in
 * `out`. */
void tnk__base64_write(tnk__buf_t *out, const void *data, size_t n);
/* Decode the text and append the bytes. Both alphabets are accepted. Padding
 * may be missing, but must not be wrong. Blanks and nonzero unused bits are
 * TNK_EPROTO. Otherwise returns TNK_OK or the buffer's failure. */
int tnk__base64_read(tnk__buf_t *out, const char *text, size_t n);
/* Decode into the caller's memory, which must have 3 bytes for each 4
 * characters or fewer. Returns the length, or SIZE_MAX for malformed text. */
size_t tnk__base64_decode(uint8_t *out, const char *text, size_t n);
/* Decode text in lines (standard alphabet, padded) into the caller's memory. It
 * must be as large as the text, and may be the same memory. Blanks and line
 * ends are skipped. Returns the length, or SIZE_MAX for malformed text. */
size_t tnk__base64_read_lines(uint8_t *out, const char *text, size_t n);

#endif
