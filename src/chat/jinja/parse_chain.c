/* SPDX-License-Identifier: MIT */
/* Binary operators, and lists separated by commas. */
#include "chat/jinja/parse.h"
#include "tnk/error.h"

static tnk__node_t *binary(tnk__parser_t *p, tnk__op_t op, uint32_t line,
                           tnk__node_t *left, tnk__node_t *right) {
  tnk__node_t *node = tnk__parse_make(p, TNK__NODE_BINARY, line, left, right);

  if (node != NULL)
    node->op = (uint8_t)op;
  return node;
}

static tnk__node_t *parse_pow(tnk__parser_t *p) {
  tnk__node_t *left = tnk__parse_unary(p, 1);
  uint32_t line = p->at->line;

  while (tnk__parse_skip(p, TNK__PAIR('*', '*'))) {
    left = binary(p, TNK__OP_POW, line, left, tnk__parse_unary(p, 1));
    line = p->at->line;
  }
  return left;
}

static tnk__op_t take_product(tnk__parser_t *p) {
  if (tnk__parse_skip(p, '*'))
    return TNK__OP_MUL;
  if (tnk__parse_skip(p, '/'))
    return TNK__OP_DIV;
  if (tnk__parse_skip(p, TNK__PAIR('/', '/')))
    return TNK__OP_FLOORDIV;
  return tnk__parse_skip(p, '%') ? TNK__OP_MOD : 0;
}

static tnk__node_t *parse_product(tnk__parser_t *p) {
  tnk__node_t *left = parse_pow(p);
  uint32_t line = p->at->line;
  tnk__op_t op;

  while ((op = take_product(p)) != 0) {
    left = binary(p, op, line, left, parse_pow(p));
    line = p->at->line;
  }
  return left;
}

static tnk__node_t *parse_concat(tnk__parser_t *p) {
  const uint32_t line = p->at->line;
  tnk__node_t *first = parse_product(p);
  tnk__node_t *node;

  if (!tnk__parse_sees(p, '~'))
    return first;
  node = tnk__parse_node(p, TNK__NODE_CONCAT, line);
  if (node == NULL)
    return NULL;
  tnk__parse_add(p, node, &node->list, first);
  while (tnk__parse_skip(p, '~'))
    tnk__parse_add(p, node, &node->list, parse_product(p));
  return node;
}

static tnk__node_t *parse_sum(tnk__parser_t *p) {
  tnk__node_t *left = parse_concat(p);
  uint32_t line = p->at->line;

  for (;;) {
    if (tnk__parse_skip(p, '+'))
      left = binary(p, TNK__OP_ADD, line, left, parse_concat(p));
    else if (tnk__parse_skip(p, '-'))
      left = binary(p, TNK__OP_SUB, line, left, parse_concat(p));
    else
      return left;
    line = p->at->line;
  }
}

static tnk__op_t take_comparison(tnk__parser_t *p) {
  static const struct {
    int text;
    tnk__op_t op;
  } rows[] = {
      {TNK__PAIR('=', '='), TNK__OP_EQ},
      {TNK__PAIR('!', '='), TNK__OP_NE},
      {TNK__PAIR('<', '='), TNK__OP_LE},
      {TNK__PAIR('>', '='), TNK__OP_GE},
      {'<', TNK__OP_LT},
      {'>', TNK__OP_GT},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    if (tnk__parse_skip(p, rows[i].text))
      return rows[i].op;
  if (tnk__parse_skip_name(p, "in"))
    return TNK__OP_IN;
  if (tnk__parse_sees_name(p, "not") && p->at[1].kind == TNK__TOKEN_NAME &&
      tnk__value_is(p->at[1].value, "in")) {
    p->at += 2;
    return TNK__OP_NOTIN;
  }
  return 0;
}

static tnk__node_t *parse_comparison(tnk__parser_t *p) {
  const uint32_t line = p->at->line;
  tnk__node_t *first = parse_sum(p);
  tnk__op_t op = take_comparison(p);
  tnk__node_t *node;
  tnk__node_t *operand;

  if (op == 0)
    return first;
  node = tnk__parse_make(p, TNK__NODE_COMPARE, line, first, NULL);
  for (; op != 0 && node != NULL; op = take_comparison(p)) {
    operand = tnk__parse_make(p, TNK__NODE_OPERAND, line, parse_sum(p), NULL);
    if (operand == NULL)
      return NULL;
    operand->op = (uint8_t)op;
    tnk__parse_add(p, node, &node->list, operand);
  }
  return node;
}

static tnk__node_t *parse_not(tnk__parser_t *p) {
  const uint32_t line = p->at->line;
  tnk__node_t *node;

  if (!tnk__parse_skip_name(p, "not"))
    return parse_comparison(p);
  if (!tnk__parse_enter(p))
    return NULL;
  node = tnk__parse_make(p, TNK__NODE_NOT, line, parse_not(p), NULL);
  p->depth--;
  return node;
}

static tnk__node_t *parse_and(tnk__parser_t *p) {
  tnk__node_t *left = parse_not(p);
  uint32_t line = p->at->line;

  while (tnk__parse_skip_name(p, "and")) {
    left = tnk__parse_make(p, TNK__NODE_AND, line, left, parse_not(p));
    line = p->at->line;
  }
  return left;
}

/* Parse an expression without an inline if. */
static tnk__node_t *parse_or(tnk__parser_t *p) {
  tnk__node_t *left = parse_and(p);
  uint32_t line = p->at->line;

  while (tnk__parse_skip_name(p, "or")) {
    left = tnk__parse_make(p, TNK__NODE_OR, line, left, parse_and(p));
    line = p->at->line;
  }
  return left;
}

tnk__node_t *tnk__parse_expression(tnk__parser_t *p) {
  uint32_t line = p->at->line;
  tnk__node_t *node;
  tnk__node_t *cond;

  if (!tnk__parse_enter(p))
    return NULL;
  node = parse_or(p);
  while (tnk__parse_skip_name(p, "if")) {
    cond = tnk__parse_make(p, TNK__NODE_COND, line, parse_or(p), node);
    if (cond != NULL && tnk__parse_skip_name(p, "else"))
      cond->c = tnk__parse_child(p, cond, tnk__parse_expression(p));
    node = cond;
    line = p->at->line;
  }
  p->depth--;
  return p->err == TNK_OK ? node : NULL;
}

/* ---- Tuples and targets ---- */

static int is_tuple_end(const tnk__parser_t *p, const char *end) {
  return p->at->kind == TNK__TOKEN_VARIABLE_END ||
         p->at->kind == TNK__TOKEN_BLOCK_END || tnk__parse_sees(p, ')') ||
         (end != NULL && tnk__parse_sees_name(p, end));
}

/* Kinds of items of a tuple. */
typedef enum { WITH_COND, WITHOUT_COND, SIMPLE, SIMPLE_OR_NAMESPACE } item_t;

static tnk__node_t *parse_item(tnk__parser_t *p, item_t how) {
  if (how == WITH_COND)
    return tnk__parse_expression(p);
  if (how == WITHOUT_COND)
    return parse_or(p);
  return tnk__parse_simple(p, how == SIMPLE_OR_NAMESPACE);
}

static tnk__node_t *parse_items(tnk__parser_t *p, item_t how, const char *end,
                                int is_explicit) {
  tnk__node_t *node = tnk__parse_node(p, TNK__NODE_TUPLE, p->at->line);
  int is_tuple = 0;

  while (p->err == TNK_OK) {
    if (node->list.n > 0 && !tnk__parse_expect(p, ','))
      return NULL;
    if (is_tuple_end(p, end))
      break;
    tnk__parse_add(p, node, &node->list, parse_item(p, how));
    if (!tnk__parse_sees(p, ','))
      break;
    is_tuple = 1;
  }
  if (p->err != TNK_OK)
    return NULL;
  if (is_tuple)
    return node;
  if (node->list.n > 0)
    return node->list.items[0];
  if (!is_explicit)
    tnk__parse_fail(p, TNK_EINVAL, "an expression is missing",
                    tnk__value_undefined());
  return node;
}

tnk__node_t *tnk__parse_tuple(tnk__parser_t *p, int with_cond, const char *end,
                              int is_explicit) {
  return parse_items(p, with_cond ? WITH_COND : WITHOUT_COND, end, is_explicit);
}

static int can_be_assigned(const tnk__node_t *node) {
  if (node->kind == TNK__NODE_NSREF)
    return 1;
  if (node->kind == TNK__NODE_NAME)
    return 1;
  if (node->kind != TNK__NODE_TUPLE)
    return 0;
  for (uint32_t i = 0; i < node->list.n; i++)
    if (!can_be_assigned(node->list.items[i]))
      return 0;
  return 1;
}

tnk__node_t *tnk__parse_target(tnk__parser_t *p, int with_namespace,
                               const char *end) {
  tnk__node_t *node =
      parse_items(p, with_namespace ? SIMPLE_OR_NAMESPACE : SIMPLE, end, 0);

  if (p->err != TNK_OK)
    return NULL;
  if (!can_be_assigned(node))
    tnk__parse_fail(p, TNK_EINVAL, "this cannot be assigned to",
                    tnk__value_undefined());
  return node;
}
