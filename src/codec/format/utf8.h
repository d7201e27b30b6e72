#ifndef TNK_CODEC_FORMAT_UTF8_H
#define TNK_CODEC_FORMAT_UTF8_H

#include <stddef.h>

/* The number of bytes of the well-formed character at `text`, of which `n`
 * bytes exist; 0 when it is malformed: overlong, a surrogate, cut off, above
 * U+10FFFF. */
size_t tnk__utf8_char(const char *text, size_t n);
/* Put '?' for each byte that belongs to no character, so that what a peer gave,
 * or what was cut to a length, can be written as JSON. */
void tnk__utf8_repair(char *text);

#endif
