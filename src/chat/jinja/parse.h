#ifndef TNK_CHAT_JINJA_PARSE_H
#define TNK_CHAT_JINJA_PARSE_H

#include "chat/jinja/lex/lex.h"
#include "chat/jinja/library.h"
#include "chat/jinja/node.h"

/* The way through the tokens. After a failure all that is returned is NULL, and
 * the current token is EOF. */
typedef struct {
  const tnk__token_t *at;
  const tnk__token_t *eof;
  const tnk__library_t *tables;
  tnk__heap_t *heap;
  tnk__why_t *why;
  int err;
  unsigned depth;   /* of calls of the parser */
  unsigned n_loops; /* loops that are open in this body */
  int is_lacking;   /* there is no such filter or test as one that was named */
} tnk__parser_t;

int tnk__parse_fail(tnk__parser_t *p, int code, const char *what,
                    tnk__value_t name);
tnk__node_t *tnk__parse_node(tnk__parser_t *p, tnk__node_kind_t kind,
                             uint32_t line);
/* Hang a child below a node; heights are bounded. */
tnk__node_t *tnk__parse_child(tnk__parser_t *p, tnk__node_t *node,
                              tnk__node_t *child);
void tnk__parse_add(tnk__parser_t *p, tnk__node_t *node, tnk__nodes_t *list,
                    tnk__node_t *child);
/* A node with two operands, or NULL after a failure. */
tnk__node_t *tnk__parse_make(tnk__parser_t *p, tnk__node_kind_t kind,
                             uint32_t line, tnk__node_t *a, tnk__node_t *b);
/* One level deeper, which `depth` counts; 0: that is too deep. */
int tnk__parse_enter(tnk__parser_t *p);
int tnk__parse_sees_name(const tnk__parser_t *p, const char *name);
int tnk__parse_skip_name(tnk__parser_t *p, const char *name);
int tnk__parse_sees(const tnk__parser_t *p, int op);
int tnk__parse_skip(tnk__parser_t *p, int op);
int tnk__parse_expect(tnk__parser_t *p, int op);
/* Take a name; UNDEFINED where there is none. */
tnk__value_t tnk__parse_name(tnk__parser_t *p);

/* An operand with its signs, attributes, calls, filters and tests. */
tnk__node_t *tnk__parse_unary(tnk__parser_t *p, int with_filter);
/* A name, literal or bracket. */
tnk__node_t *tnk__parse_simple(tnk__parser_t *p, int with_namespace);
tnk__node_t *tnk__parse_expression(tnk__parser_t *p);
/* An expression, or several with commas. `end`: a name that ends it. */
tnk__node_t *tnk__parse_tuple(tnk__parser_t *p, int with_cond, const char *end,
                              int is_explicit);
/* What can be assigned to. */
tnk__node_t *tnk__parse_target(tnk__parser_t *p, int with_namespace,
                               const char *end);
/* Filters from here on; `is_begun`: the name of the first comes next. */
tnk__node_t *tnk__parse_filters(tnk__parser_t *p, tnk__node_t *node,
                                int is_begun);

/* All of a template, into the body of *out, whose flag says that there is no
 * such filter or test as one that it names. */
int tnk__parse(tnk__node_t **out, const tnk__library_t *library,
               tnk__heap_t *heap, const tnk__tokens_t *tokens, tnk__why_t *why);

#endif
