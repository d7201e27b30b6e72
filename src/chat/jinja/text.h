#ifndef TNK_CHAT_JINJA_TEXT_H
#define TNK_CHAT_JINJA_TEXT_H

#include "chat/jinja/run.h"

/* What methods and filters of texts share. All take texts. */

/* Which ends are stripped. */
enum { TNK__STRIP_LEFT = 1, TNK__STRIP_RIGHT = 2 };

/* Without the characters of `chars` at its ends; blanks where that is not
 * given. */
tnk__value_t tnk__text_strip(tnk__run_t *run, tnk__value_t text,
                             tnk__value_t chars, int ends);
/* At most `most` times; below 0: all. */
tnk__value_t tnk__text_replace(tnk__run_t *run, tnk__value_t text,
                               tnk__value_t from, tnk__value_t to,
                               int64_t most);
tnk__value_t tnk__text_lower(tnk__run_t *run, tnk__value_t text);
tnk__value_t tnk__text_upper(tnk__run_t *run, tnk__value_t text);
tnk__value_t tnk__text_title(tnk__run_t *run, tnk__value_t text);
tnk__value_t tnk__text_capitalize(tnk__run_t *run, tnk__value_t text);
tnk__value_t tnk__text_swapcase(tnk__run_t *run, tnk__value_t text);
/* The rest of it from a byte on, or up to one. */
tnk__value_t tnk__text_part(tnk__value_t text, size_t from, size_t to);
/* With fill on both sides, or one: `where` is '<', '>' or '^'. */
tnk__value_t tnk__text_pad(tnk__run_t *run, tnk__value_t text, int64_t width,
                           tnk__value_t fill, char where);
tnk__value_t tnk__text_join(tnk__run_t *run, tnk__value_t between,
                            tnk__value_t items, int is_any);
tnk__value_t tnk__text_lines(tnk__run_t *run, tnk__value_t text, int keeps);
/* "{} {name}".format() */
tnk__value_t tnk__text_format(tnk__run_t *run, tnk__value_t format,
                              const tnk__args_t *args);

/* How a value is laid out: what both ways of formatting can say. */
typedef struct {
  tnk__value_t fill; /* one character */
  char align;        /* '<' '>' '^' '=' or 0 */
  char sign;         /* '+' ' ' or 0 */
  char comma;        /* ',' '_' or 0 */
  char type;         /* or 0 */
  int is_other;      /* '#' */
  int64_t width;
  int64_t precision; /* -1: none */
} tnk__layout_t;

/* A number by a layout with one of the types d b o x X e E f F g G %. */
void tnk__layout_number(tnk__run_t *run, tnk__buf_t *out, tnk__value_t value,
                        const tnk__layout_t *how);
/* A text, cut to the precision and padded. */
void tnk__layout_text(tnk__run_t *run, tnk__buf_t *out, tnk__value_t text,
                      const tnk__layout_t *how);

/* The attribute of every item, in a list. */
tnk__value_t tnk__pick_all(tnk__run_t *run, tnk__value_t items,
                           tnk__value_t attribute);
/* An attribute of an item: a number, or names with points between. */
tnk__value_t tnk__pick(tnk__run_t *run, tnk__value_t item,
                       tnk__value_t attribute);
/* For comparisons: texts in lower case unless `as_is`. */
tnk__value_t tnk__fold(tnk__run_t *run, tnk__value_t value, int as_is);

#endif
