#ifndef TNK_LIB_BASE_UTF8_H
#define TNK_LIB_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/*
 * Characters as UTF-8, and whether bytes are that. Malformed is what table 3-7
 * of the Unicode standard does not have: overlong forms, surrogates, what is
 * above U+10FFFF, and characters that are cut off.
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
/* Write a character to out, which has room for four bytes; how many it took. c
 * is at most U+10FFFF. */
size_t tnk__utf8_put(uint8_t *out, uint32_t c);
/* Put '?' for each byte that belongs to no character, so that what a peer
 * gave, or what was cut to a length, can be written as JSON. */
void tnk__utf8_repair(char *text);

#endif
