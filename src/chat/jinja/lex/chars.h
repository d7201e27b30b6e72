#ifndef TNK_CHAT_JINJA_LEX_CHARS_H
#define TNK_CHAT_JINJA_LEX_CHARS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Characters of texts that are UTF-8, which the caller has seen to, as Python's
 * texts know them.
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
  TNK__CHAR_IGNORABLE /* inside of a word, for what is capital */
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
/* What a character becomes: one to three, the number of which is returned. */
size_t tnk__char_to(uint32_t c, tnk__char_to_t to, uint32_t out[3]);

/* The character at *at, which goes behind it. */
uint32_t tnk__char_next(const char **at);
/* The character that ends before *at, which goes before it. */
uint32_t tnk__char_prev(const char **at);
/* Write up to 4 bytes. */
size_t tnk__char_put(char *out, uint32_t c);

size_t tnk__chars_count(const char *text, size_t n);
/* The place in bytes of the character with this number, or n. */
size_t tnk__chars_place(const char *text, size_t n, size_t number);
/* Bytes of blanks at the front, and at the end. */
size_t tnk__blank_prefix(const char *text, size_t n);
size_t tnk__blank_suffix(const char *text, size_t n);
/* Bytes of a name at the front, or 0. */
size_t tnk__name_prefix(const char *text, size_t n);

#endif
