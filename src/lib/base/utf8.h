/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_BASE_UTF8_H
#define TNK_LIB_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/*
 * UTF-8 characters and their validation. Everything outside of table 3-7 of the
 * Unicode standard is malformed: overlong forms, surrogates, characters above
 * U+10FFFF, and truncated characters.
 */

/* The number of well-formed bytes at the front of s. */
size_t tnk__utf8_valid(const uint8_t *s, size_t n);
/* The length of the well-formed character at s, or 0. If 0, *bad is the number
 * of bytes for one replacement character: the longest beginning of a valid
 * character, at least 1. *cut is 1 if the input ended inside a character that
 * was valid so far. */
size_t tnk__utf8_check(const uint8_t *s, size_t n, size_t *bad, int *cut);
/* The same, returning only the length. */
size_t tnk__utf8_char(const char *text, size_t n);
/* Write a character to `out`, which has at least four bytes. Returns the number
 * of bytes written. c is at most U+10FFFF. */
size_t tnk__utf8_put(uint8_t *out, uint32_t c);
/* Replace each byte that belongs to no character by '?'. Text from a peer, or
 * truncated text, can then be written as JSON. */
void tnk__utf8_repair(char *text);

#endif
