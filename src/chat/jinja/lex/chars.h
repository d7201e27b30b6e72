/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_JINJA_LEX_CHARS_H
#define TNK_CHAT_JINJA_LEX_CHARS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Characters of texts, with the properties of characters in Python. Texts must
 * be valid UTF-8.
 */
typedef enum {
  TNK__CHAR_ALPHA,
  TNK__CHAR_DECIMAL,
  TNK__CHAR_DIGIT,
  TNK__CHAR_NUMERIC,
  TNK__CHAR_UPPER,
  TNK__CHAR_LOWER,
  TNK__CHAR_TITLE,
  TNK__CHAR_HIDDEN,   /* not printable */
  TNK__CHAR_IGNORABLE /* ignored inside words by case conversion */
} tnk__char_class_t;

typedef enum {
  TNK__CASE_UPPER,
  TNK__CASE_LOWER,
  TNK__CASE_TITLE
} tnk__char_to_t;

int tnk__char_is(uint32_t c, tnk__char_class_t wanted);
int tnk__char_is_blank(uint32_t c);
/* Upper, lower or title case. */
int tnk__char_is_cased(uint32_t c);
/* Convert the case of a character. The result has one to three characters.
 * Returns their number. */
size_t tnk__char_to(uint32_t c, tnk__char_to_t to, uint32_t out[3]);

/* Read the character at *at, and move *at after it. */
uint32_t tnk__char_next(const char **at);
/* Read the character before *at, and move *at to it. */
uint32_t tnk__char_prev(const char **at);
/* Write a character, up to 4 bytes. Returns the number of bytes. */
size_t tnk__char_put(char *out, uint32_t c);

size_t tnk__chars_count(const char *text, size_t n);
/* The byte offset of the character with this index, or n. */
size_t tnk__chars_place(const char *text, size_t n, size_t number);
/* Number of bytes of white space at the start, and at the end. */
size_t tnk__blank_prefix(const char *text, size_t n);
size_t tnk__blank_suffix(const char *text, size_t n);
/* Number of bytes of a name at the start, or 0. */
size_t tnk__name_prefix(const char *text, size_t n);

#endif
