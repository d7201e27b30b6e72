/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_JINJA_LEX_CHARS_TABLES_H
#define TNK_CHAT_JINJA_LEX_CHARS_TABLES_H

#include <stddef.h>
#include <stdint.h>

/* Ranges of characters of a class, sorted. */
typedef struct {
  uint32_t first, last;
} tnk__char_range_t;

/* Every step-th character is converted by adding the distance. */
typedef struct {
  uint32_t first, last, step;
  int32_t distance;
} tnk__char_case_t;

/* Characters that convert to several characters. 0 is unused. */
typedef struct {
  uint32_t from, to[3];
} tnk__char_special_t;

#define TNK__CHARS_CLASS(name)                                                 \
  extern const tnk__char_range_t tnk__chars_##name[];                          \
  extern const size_t tnk__chars_n_##name;
TNK__CHARS_CLASS(alpha)
TNK__CHARS_CLASS(decimal)
TNK__CHARS_CLASS(digit)
TNK__CHARS_CLASS(numeric)
TNK__CHARS_CLASS(upper)
TNK__CHARS_CLASS(lower)
TNK__CHARS_CLASS(title)
TNK__CHARS_CLASS(hidden)
TNK__CHARS_CLASS(ignorable)

#define TNK__CHARS_CASE(name)                                                  \
  extern const tnk__char_case_t tnk__chars_##name[];                           \
  extern const size_t tnk__chars_n_##name;                                     \
  extern const tnk__char_special_t tnk__chars_##name##_special[];              \
  extern const size_t tnk__chars_n_##name##_special;
TNK__CHARS_CASE(to_upper)
TNK__CHARS_CASE(to_lower)
TNK__CHARS_CASE(to_title)

#endif
