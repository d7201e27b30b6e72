/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_JINJA_TEXT_H
#define TNK_CHAT_JINJA_TEXT_H

#include "chat/jinja/run.h"

/* Shared by the methods and filters of texts. All functions take texts. */

/* The ends to strip. */
enum { TNK__STRIP_LEFT = 1, TNK__STRIP_RIGHT = 2 };

/* Remove the characters of `chars` at the ends; white space if it is not
 * given. */
tnk__value_t tnk__text_strip(tnk__run_t *run, tnk__value_t text,
                             tnk__value_t chars, int ends);
/* Replace at most `most` occurrences, or all if `most` is negative. */
tnk__value_t tnk__text_replace(tnk__run_t *run, tnk__value_t text,
                               tnk__value_t from, tnk__value_t to,
                               int64_t most);
tnk__value_t tnk__text_lower(tnk__run_t *run, tnk__value_t text);
tnk__value_t tnk__text_upper(tnk__run_t *run, tnk__value_t text);
tnk__value_t tnk__text_title(tnk__run_t *run, tnk__value_t text);
tnk__value_t tnk__text_capitalize(tnk__run_t *run, tnk__value_t text);
tnk__value_t tnk__text_swapcase(tnk__run_t *run, tnk__value_t text);
/* The part between two byte offsets. */
tnk__value_t tnk__text_part(tnk__value_t text, size_t from, size_t to);
/* Pad with `fill`. `where` is '<', '>' or '^'. */
tnk__value_t tnk__text_pad(tnk__run_t *run, tnk__value_t text, int64_t width,
                           tnk__value_t fill, char where);
tnk__value_t tnk__text_join(tnk__run_t *run, tnk__value_t between,
                            tnk__value_t items, int is_any);
tnk__value_t tnk__text_lines(tnk__run_t *run, tnk__value_t text, int keeps);
/* "{} {name}".format() */
tnk__value_t tnk__text_format(tnk__run_t *run, tnk__value_t format,
                              const tnk__args_t *args);

/* The options of a format, for both ways of formatting. */
typedef struct {
  tnk__value_t fill; /* one character */
  char align;        /* '<' '>' '^' '=' or 0 */
  char sign;         /* '+' ' ' or 0 */
  char comma;        /* ',' '_' or 0 */
  char type;         /* conversion, or 0 */
  int is_other;      /* '#' */
  int64_t width;
  int64_t precision; /* -1: none */
} tnk__layout_t;

/* Format a number. The type is one of d b o x X e E f F g G %. */
void tnk__layout_number(tnk__run_t *run, tnk__buf_t *out, tnk__value_t value,
                        const tnk__layout_t *how);

/* A list with an attribute of every item. */
tnk__value_t tnk__pick_all(tnk__run_t *run, tnk__value_t items,
                           tnk__value_t attribute);

#endif
