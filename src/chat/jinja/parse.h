/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_JINJA_PARSE_H
#define TNK_CHAT_JINJA_PARSE_H

#include "chat/jinja/lex/lex.h"
#include "chat/jinja/library.h"
#include "chat/jinja/node.h"

/* State of the parser. After an error all functions return NULL, and the
 * current token is EOF. */
typedef struct {
  const tnk__token_t *at;
  const tnk__token_t *eof;
  const tnk__library_t *tables;
  tnk__heap_t *heap;
  tnk__why_t *why;
  int err;
  unsigned depth;   /* nesting of parser calls */
  uintptr_t stack;  /* where they began; see stack.h */
  unsigned n_loops; /* open loops in this body */
  int is_lacking;   /* some filter or test does not exist */
} tnk__parser_t;

int tnk__parse_fail(tnk__parser_t *p, int code, const char *what,
                    tnk__value_t name);
tnk__node_t *tnk__parse_node(tnk__parser_t *p, tnk__node_kind_t kind,
                             uint32_t line);
/* Add a child to a node. The height of the tree is limited. */
tnk__node_t *tnk__parse_child(tnk__parser_t *p, tnk__node_t *node,
                              tnk__node_t *child);
void tnk__parse_add(tnk__parser_t *p, tnk__node_t *node, tnk__nodes_t *list,
                    tnk__node_t *child);
/* Make a node with two operands. NULL after an error. */
tnk__node_t *tnk__parse_make(tnk__parser_t *p, tnk__node_kind_t kind,
                             uint32_t line, tnk__node_t *a, tnk__node_t *b);
/* Increment `depth`. Returns 0 if it is too deep. */
int tnk__parse_enter(tnk__parser_t *p);
int tnk__parse_sees_name(const tnk__parser_t *p, const char *name);
int tnk__parse_skip_name(tnk__parser_t *p, const char *name);
int tnk__parse_sees(const tnk__parser_t *p, int op);
int tnk__parse_skip(tnk__parser_t *p, int op);
int tnk__parse_expect(tnk__parser_t *p, int op);
/* Consume a name. Returns UNDEFINED if the current token is not a name. */
tnk__value_t tnk__parse_name(tnk__parser_t *p);

tnk__node_t *tnk__parse_expression(tnk__parser_t *p);
/* Parse an expression, or several separated by commas. `end`: a name that ends
 * it. */
tnk__node_t *tnk__parse_tuple(tnk__parser_t *p, int with_cond, const char *end,
                              int is_explicit);
/* Parse the target of an assignment. */
tnk__node_t *tnk__parse_target(tnk__parser_t *p, int with_namespace,
                               const char *end);
/* Parse filters. `is_begun`: the next token is the name of the first filter. */
tnk__node_t *tnk__parse_filters(tnk__parser_t *p, tnk__node_t *node,
                                int is_begun);

/* Parse a whole template into the body of *out. Its flag is set if a filter or
 * test that it uses does not exist. */
int tnk__parse(tnk__node_t **out, const tnk__library_t *library,
               tnk__heap_t *heap, const tnk__tokens_t *tokens, tnk__why_t *why);

#endif
