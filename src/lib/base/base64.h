#ifndef TNK_LIB_BASE_BASE64_H
#define TNK_LIB_BASE_BASE64_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

/* Append `data` in the standard alphabet, padded. Failures stick to `out`. */
void tnk__base64_write(tnk__buf_t *out, const void *data, size_t n);
/* Append what the text stands for. Both alphabets are understood; padding may
 * be missing but not be wrong; blanks, and bits that a byte has no room for,
 * are TNK_EPROTO. TNK_OK or the buffer's failure otherwise. */
int tnk__base64_read(tnk__buf_t *out, const char *text, size_t n);
/* Decode into memory of the caller's, which has 3 bytes for every 4 characters
 * or fewer. Returns the length, or SIZE_MAX for malformed text. */
size_t tnk__base64_decode(uint8_t *out, const char *text, size_t n);
/* Decode text in lines, of the standard alphabet and padded, into memory of the
 * caller's: as many bytes as the text has are enough, and they may be its own.
 * Blanks and ends of lines do not count. Returns the length, or SIZE_MAX for
 * malformed text. */
size_t tnk__base64_read_lines(uint8_t *out, const char *text, size_t n);

#endif
