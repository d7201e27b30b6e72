#ifndef TNK_CHAT_TEMPLATE_FORMAT_H
#define TNK_CHAT_TEMPLATE_FORMAT_H

#include "chat/template/run.h"

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

#endif
