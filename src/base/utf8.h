#ifndef TNK_BASE_UTF8_H
#define TNK_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/*
 * Whether bytes are UTF-8. Malformed is what table 3-7 of the Unicode standard
 * does not have: overlong forms, surrogates, what is above U+10FFFF, and
 * characters that are cut off.
 */

/* The number of bytes at the front of s that are well-formed. */
size_t tnk__utf8_valid(const uint8_t *s, size_t n);
/* The length of the well-formed character at s, or 0. When 0, *bad is how many
 * bytes one replacement character stands for: the longest beginning of a
 * character that could have been completed, at least 1. *cut says that the
 * input ended inside a character that was good so far. */
size_t tnk__utf8_check(const uint8_t *s, size_t n, size_t *bad, int *cut);
/* The same for those who ask no more than the length. */
size_t tnk__utf8_char(const char *text, size_t n);
/* Put '?' for each byte that belongs to no character, so that what a peer
 * gave, or what was cut to a length, can be written as JSON. */
void tnk__utf8_repair(char *text);

#endif
