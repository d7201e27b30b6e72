/* SPDX-License-Identifier: MIT */
/* Expressions, from the lowest precedence to the highest. */
#include <string.h>

#include "chat/jinja/parse.h"
#include "chat/jinja/stack.h"
#include "tnk/error.h"

enum { MAX_DEPTH = 150, MAX_HEIGHT = 200 };

/* ---- Tools ---- */

static const char *describe(const tnk__token_t *token) {
  switch (token->kind) {
  case TNK__TOKEN_EOF:
    return "the end of the template";
  case TNK__TOKEN_DATA:
    return "text";
  case TNK__TOKEN_VARIABLE_END:
    return "the end of the tag }}";
  case TNK__TOKEN_BLOCK_END:
    return "the end of the tag %}";
  case TNK__TOKEN_TEXT:
    return "a text";
  case TNK__TOKEN_WHOLE:
  case TNK__TOKEN_FLOAT:
    return "a number";
  default:
    return "an operator or bracket";
  }
}

int tnk__parse_fail(tnk__parser_t *p, int code, const char *what,
                    tnk__value_t name) {
  if (p->err != TNK_OK)
    return p->err;
  if (name.kind == TNK__VALUE_TEXT)
    p->err = tnk__why(p->why, code, p->at->line, "%s \"%.*s\"", what,
                      (int)(name.n_text < 80 ? name.n_text : 80), name.as.text);
  else
    p->err = tnk__why(p->why, code, p->at->line, "%s", what);
  p->at = p->eof;
  return p->err;
}

static void unexpected(tnk__parser_t *p, const char *wanted) {
  const tnk__token_t *token = p->at;

  if (p->err != TNK_OK)
    return;
  if (token->kind == TNK__TOKEN_NAME)
    p->err =
        tnk__why(p->why, TNK_EINVAL, token->line,
                 "%s is expected, and there is \"%.*s\"", wanted,
                 (int)(token->value.n_text < 80 ? token->value.n_text : 80),
                 token->value.as.text);
  else
    p->err =
        tnk__why(p->why, TNK_EINVAL, token->line,
                 "%s is expected, and there is %s", wanted, describe(token));
  p->at = p->eof;
}

tnk__node_t *tnk__parse_node(tnk__parser_t *p, tnk__node_kind_t kind,
                             uint32_t line) {
  tnk__node_t *node = tnk__heap_alloc(p->heap, sizeof(*node));

  if (node == NULL) {
    if (p->err == TNK_OK)
      p->err = tnk__why(p->why, p->heap->err, line, "no memory is left");
    p->at = p->eof;
    return NULL;
  }
  *node = (tnk__node_t){.kind = (uint8_t)kind, .line = line};
  return node;
}

tnk__node_t *tnk__parse_child(tnk__parser_t *p, tnk__node_t *node,
                              tnk__node_t *child) {
  if (node == NULL || child == NULL)
    return child;
  if (child->height + 1 > MAX_HEIGHT)
    tnk__parse_fail(p, TNK_ETOOBIG, "this is nested too deep",
                    tnk__value_undefined());
  else if (node->height <= child->height)
    node->height = (uint16_t)(child->height + 1);
  return child;
}

void tnk__parse_add(tnk__parser_t *p, tnk__node_t *node, tnk__nodes_t *list,
                    tnk__node_t *child) {
  tnk__node_t **items;

  if (node == NULL || child == NULL)
    return;
  if (list->n == list->cap) {
    const uint32_t cap = list->cap == 0 ? 4 : list->cap * 2;

    items = tnk__heap_alloc(p->heap, cap * sizeof(*items));
    if (items == NULL) {
      if (p->err == TNK_OK)
        p->err = tnk__why(p->why, p->heap->err, 0, "no memory is left");
      p->at = p->eof;
      return;
    }
    if (list->n > 0)
      memcpy(items, list->items, list->n * sizeof(*items));
    list->items = items;
    list->cap = cap;
  }
  list->items[list->n++] = tnk__parse_child(p, node, child);
}

int tnk__parse_sees_name(const tnk__parser_t *p, const char *name) {
  return p->at->kind == TNK__TOKEN_NAME && tnk__value_is(p->at->value, name);
}

int tnk__parse_skip_name(tnk__parser_t *p, const char *name) {
  const int sees = tnk__parse_sees_name(p, name);

  p->at += sees;
  return sees;
}

int tnk__parse_sees(const tnk__parser_t *p, int op) {
  return p->at->kind == TNK__TOKEN_OPERATOR && p->at->op == op;
}

int tnk__parse_skip(tnk__parser_t *p, int op) {
  const int sees = tnk__parse_sees(p, op);

  p->at += sees;
  return sees;
}

int tnk__parse_expect(tnk__parser_t *p, int op) {
  char wanted[] = "\"?\"";

  if (tnk__parse_skip(p, op))
    return 1;
  wanted[1] = (char)op;
  unexpected(p, wanted);
  return 0;
}

tnk__value_t tnk__parse_name(tnk__parser_t *p) {
  if (p->at->kind == TNK__TOKEN_NAME)
    return (p->at++)->value;
  unexpected(p, "a name");
  return tnk__value_undefined();
}

int tnk__parse_enter(tnk__parser_t *p) {
  if (p->err != TNK_OK)
    return 0;
  if (++p->depth <= MAX_DEPTH && !tnk__stack_is_used_up(&p->stack))
    return 1;
  p->depth--;
  tnk__parse_fail(p, TNK_ETOOBIG, "this is nested too deep",
                  tnk__value_undefined());
  return 0;
}

tnk__node_t *tnk__parse_make(tnk__parser_t *p, tnk__node_kind_t kind,
                             uint32_t line, tnk__node_t *a, tnk__node_t *b) {
  tnk__node_t *node = tnk__parse_node(p, kind, line);

  if (node == NULL)
    return NULL;
  node->a = tnk__parse_child(p, node, a);
  node->b = tnk__parse_child(p, node, b);
  return p->err == TNK_OK ? node : NULL;
}

/* ---- Arguments, filters, tests ---- */

static void parse_argument(tnk__parser_t *p, tnk__node_t *node) {
  tnk__node_t *keyword;

  if (tnk__parse_skip(p, '*')) {
    if (node->b != NULL || node->c != NULL)
      unexpected(p, "one *argument");
    node->b = tnk__parse_child(p, node, tnk__parse_expression(p));
  } else if (tnk__parse_skip(p, TNK__PAIR('*', '*'))) {
    if (node->c != NULL)
      unexpected(p, "one **argument");
    node->c = tnk__parse_child(p, node, tnk__parse_expression(p));
  } else if (p->at->kind == TNK__TOKEN_NAME &&
             p->at[1].kind == TNK__TOKEN_OPERATOR && p->at[1].op == '=') {
    if (node->c != NULL)
      unexpected(p, "no argument behind a **argument");
    keyword = tnk__parse_node(p, TNK__NODE_KEYWORD, p->at->line);
    if (keyword == NULL)
      return;
    keyword->value = p->at->value;
    p->at += 2;
    keyword->a = tnk__parse_child(p, keyword, tnk__parse_expression(p));
    tnk__parse_add(p, node, &node->more, keyword);
  } else {
    if (node->b != NULL || node->c != NULL || node->more.n > 0)
      unexpected(p, "no argument without a name behind those with one");
    tnk__parse_add(p, node, &node->list, tnk__parse_expression(p));
  }
}

static void parse_arguments(tnk__parser_t *p, tnk__node_t *node) {
  int needs_comma = 0;

  if (node == NULL || !tnk__parse_expect(p, '('))
    return;
  while (p->err == TNK_OK && !tnk__parse_sees(p, ')')) {
    if (needs_comma && (!tnk__parse_expect(p, ',') || tnk__parse_sees(p, ')')))
      break;
    parse_argument(p, node);
    needs_comma = 1;
  }
  tnk__parse_expect(p, ')');
}

/* A name with dots is a single name. */
static tnk__value_t dotted_name(tnk__parser_t *p) {
  const tnk__value_t name = tnk__parse_name(p);

  if (tnk__parse_sees(p, '.'))
    tnk__parse_fail(p, TNK_EUNSUPPORTED,
                    "there are no filters and tests with a point in their "
                    "name, as this:",
                    name);
  return name;
}

tnk__node_t *tnk__parse_filters(tnk__parser_t *p, tnk__node_t *node,
                                int is_begun) {
  tnk__node_t *filter;

  while (p->err == TNK_OK && (is_begun || tnk__parse_skip(p, '|'))) {
    filter = tnk__parse_make(p, TNK__NODE_FILTER, p->at->line, node, NULL);
    if (filter == NULL)
      return NULL;
    filter->value = dotted_name(p);
    if (p->err != TNK_OK)
      return NULL;
    filter->known = tnk__builtin_among(p->tables->filters, filter->value);
    p->is_lacking |= filter->known == NULL;
    if (tnk__parse_sees(p, '('))
      parse_arguments(p, filter);
    node = filter;
    is_begun = 0;
  }
  return node;
}

static tnk__node_t *parse_primary(tnk__parser_t *p, int with_namespace);
static tnk__node_t *parse_postfix(tnk__parser_t *p, tnk__node_t *node);

static int begins_argument(const tnk__parser_t *p) {
  switch (p->at->kind) {
  case TNK__TOKEN_NAME:
    return !tnk__parse_sees_name(p, "else") && !tnk__parse_sees_name(p, "or") &&
           !tnk__parse_sees_name(p, "and");
  case TNK__TOKEN_TEXT:
  case TNK__TOKEN_WHOLE:
  case TNK__TOKEN_FLOAT:
    return 1;
  case TNK__TOKEN_OPERATOR:
    return p->at->op == '[' || p->at->op == '{';
  default:
    return 0;
  }
}

/* Parse the test after "is". */
static tnk__node_t *parse_test(tnk__parser_t *p, tnk__node_t *node) {
  const uint32_t line = p->at->line;
  const int is_negated = tnk__parse_skip_name(p, "not");
  tnk__node_t *test = tnk__parse_make(p, TNK__NODE_TEST, line, node, NULL);

  if (test == NULL)
    return NULL;
  test->value = dotted_name(p);
  if (p->err != TNK_OK)
    return NULL;
  test->known = tnk__builtin_find(p->tables->tests, test->value);
  p->is_lacking |= test->known == NULL;
  if (tnk__parse_sees(p, '(')) {
    parse_arguments(p, test);
  } else if (begins_argument(p)) {
    if (tnk__parse_sees_name(p, "is"))
      unexpected(p, "no second \"is\"");
    tnk__parse_add(p, test, &test->list, parse_postfix(p, parse_primary(p, 0)));
  }
  return is_negated ? tnk__parse_make(p, TNK__NODE_NOT, line, test, NULL)
                    : test;
}

/* ---- Postfix ---- */

static tnk__node_t *parse_part(tnk__parser_t *p, int may_end) {
  if (may_end && (tnk__parse_sees(p, ']') || tnk__parse_sees(p, ',') ||
                  tnk__parse_sees(p, ':')))
    return NULL;
  return tnk__parse_expression(p);
}

static tnk__node_t *parse_subscribed(tnk__parser_t *p) {
  const uint32_t line = p->at->line;
  tnk__node_t *first = parse_part(p, tnk__parse_sees(p, ':'));
  tnk__node_t *slice;

  if (!tnk__parse_skip(p, ':'))
    return first;
  slice = tnk__parse_make(p, TNK__NODE_SLICE, line, first, NULL);
  if (slice == NULL)
    return NULL;
  slice->b = tnk__parse_child(p, slice, parse_part(p, 1));
  if (tnk__parse_skip(p, ':'))
    slice->c = tnk__parse_child(p, slice, parse_part(p, 1));
  return slice;
}

static tnk__node_t *parse_brackets(tnk__parser_t *p, tnk__node_t *node,
                                   uint32_t line) {
  tnk__node_t *tuple = tnk__parse_node(p, TNK__NODE_TUPLE, line);
  tnk__node_t *one;

  while (p->err == TNK_OK && !tnk__parse_sees(p, ']')) {
    if (tuple->list.n > 0)
      tnk__parse_expect(p, ',');
    tnk__parse_add(p, tuple, &tuple->list, parse_subscribed(p));
  }
  tnk__parse_expect(p, ']');
  if (p->err != TNK_OK)
    return NULL;
  one = tuple->list.n == 1 ? tuple->list.items[0] : tuple;
  node = tnk__parse_make(p, TNK__NODE_GETITEM, line, node, one);
  if (node != NULL && one != NULL && one->kind == TNK__NODE_CONST &&
      one->value.kind == TNK__VALUE_TEXT)
    node->flag =
        !tnk__class_has(&p->tables->values[TNK__VALUE_DICT], one->value);
  return node;
}

static tnk__node_t *parse_point(tnk__parser_t *p, tnk__node_t *node,
                                uint32_t line) {
  const tnk__class_t *values = p->tables->values;
  tnk__node_t *key;

  if (p->at->kind == TNK__TOKEN_WHOLE) {
    key = tnk__parse_node(p, TNK__NODE_CONST, line);
    if (key != NULL)
      key->value = (p->at++)->value;
    return tnk__parse_make(p, TNK__NODE_GETITEM, line, node, key);
  }
  node = tnk__parse_make(p, TNK__NODE_GETATTR, line, node, NULL);
  if (node == NULL)
    return NULL;
  if (p->at->kind != TNK__TOKEN_NAME) {
    unexpected(p, "a name or number");
    return node;
  }
  node->value = (p->at++)->value;
  node->flag = !tnk__class_has(&values[TNK__VALUE_DICT], node->value);
  node->known =
      tnk__builtin_among(values[TNK__VALUE_TEXT].methods, node->value);
  return node;
}

static tnk__node_t *parse_call(tnk__parser_t *p, tnk__node_t *node) {
  node = tnk__parse_make(p, TNK__NODE_CALL, p->at->line, node, NULL);
  parse_arguments(p, node);
  if (node == NULL)
    return NULL;
  /* *args and **kwargs use the members of operands. */
  return p->err == TNK_OK ? node : NULL;
}

static tnk__node_t *parse_postfix(tnk__parser_t *p, tnk__node_t *node) {
  while (p->err == TNK_OK) {
    const uint32_t line = p->at->line;

    if (tnk__parse_skip(p, '.'))
      node = parse_point(p, node, line);
    else if (tnk__parse_skip(p, '['))
      node = parse_brackets(p, node, line);
    else if (tnk__parse_sees(p, '('))
      node = parse_call(p, node);
    else
      return node;
  }
  return NULL;
}

/* ---- Primaries ---- */

static tnk__node_t *make_const(tnk__parser_t *p, tnk__value_t value,
                               uint32_t line) {
  tnk__node_t *node = tnk__parse_node(p, TNK__NODE_CONST, line);

  if (node != NULL)
    node->value = value;
  return node;
}

static tnk__node_t *parse_named(tnk__parser_t *p, int with_namespace) {
  const tnk__token_t *token = p->at++;
  const tnk__value_t name = token->value;
  tnk__node_t *node;

  if (tnk__value_is(name, "true") || tnk__value_is(name, "True"))
    return make_const(p, tnk__value_bool(1), token->line);
  if (tnk__value_is(name, "false") || tnk__value_is(name, "False"))
    return make_const(p, tnk__value_bool(0), token->line);
  if (tnk__value_is(name, "none") || tnk__value_is(name, "None"))
    return make_const(p, tnk__value_none(), token->line);
  node = tnk__parse_node(p, TNK__NODE_NAME, token->line);
  if (node == NULL)
    return NULL;
  node->value = name;
  if (with_namespace && tnk__parse_skip(p, '.')) {
    node = tnk__parse_make(p, TNK__NODE_NSREF, token->line, node, NULL);
    if (node != NULL)
      node->value = tnk__parse_name(p);
  }
  return node;
}

/* Adjacent texts are one text. */
static tnk__node_t *parse_texts(tnk__parser_t *p) {
  const tnk__token_t *first = p->at;
  size_t n = 0;
  char *joined;

  for (; p->at->kind == TNK__TOKEN_TEXT; p->at++)
    n += p->at->value.n_text;
  if (p->at == first + 1)
    return make_const(p, first->value, first->line);
  joined = tnk__heap_alloc(p->heap, n + 1);
  n = 0;
  for (const tnk__token_t *t = first; joined != NULL && t < p->at; t++) {
    memcpy(joined + n, t->value.as.text, t->value.n_text);
    n += t->value.n_text;
  }
  return make_const(p, tnk__value_text(joined, n), first->line);
}

static tnk__node_t *parse_list(tnk__parser_t *p) {
  tnk__node_t *node = tnk__parse_node(p, TNK__NODE_LIST, p->at->line);

  for (p->at++; p->err == TNK_OK && !tnk__parse_sees(p, ']');) {
    if (node->list.n > 0 &&
        (!tnk__parse_expect(p, ',') || tnk__parse_sees(p, ']')))
      break;
    tnk__parse_add(p, node, &node->list, tnk__parse_expression(p));
  }
  tnk__parse_expect(p, ']');
  return node;
}

static tnk__node_t *parse_dict(tnk__parser_t *p) {
  tnk__node_t *node = tnk__parse_node(p, TNK__NODE_DICT, p->at->line);

  for (p->at++; p->err == TNK_OK && !tnk__parse_sees(p, '}');) {
    if (node->list.n > 0 &&
        (!tnk__parse_expect(p, ',') || tnk__parse_sees(p, '}')))
      break;
    tnk__parse_add(p, node, &node->list, tnk__parse_expression(p));
    tnk__parse_expect(p, ':');
    tnk__parse_add(p, node, &node->list, tnk__parse_expression(p));
  }
  tnk__parse_expect(p, '}');
  return node;
}

static tnk__node_t *parse_primary(tnk__parser_t *p, int with_namespace) {
  const tnk__token_t *token = p->at;
  tnk__node_t *node;

  if (!tnk__parse_enter(p))
    return NULL;
  if (token->kind == TNK__TOKEN_NAME) {
    node = parse_named(p, with_namespace);
  } else if (token->kind == TNK__TOKEN_TEXT) {
    node = parse_texts(p);
  } else if (token->kind == TNK__TOKEN_WHOLE ||
             token->kind == TNK__TOKEN_FLOAT) {
    p->at++;
    node = make_const(p, token->value, token->line);
  } else if (tnk__parse_skip(p, '(')) {
    node = tnk__parse_tuple(p, 1, NULL, 1);
    tnk__parse_expect(p, ')');
  } else if (tnk__parse_sees(p, '[')) {
    node = parse_list(p);
  } else if (tnk__parse_sees(p, '{')) {
    node = parse_dict(p);
  } else {
    unexpected(p, "an expression");
    node = NULL;
  }
  p->depth--;
  return p->err == TNK_OK ? node : NULL;
}

/* Parse an operand with its signs, attributes, calls, filters and tests. */
static tnk__node_t *parse_unary(tnk__parser_t *p, int with_filter) {
  const uint32_t line = p->at->line;
  tnk__node_t *node;

  if (!tnk__parse_enter(p))
    return NULL;
  if (tnk__parse_skip(p, '-'))
    node = tnk__parse_make(p, TNK__NODE_NEG, line, parse_unary(p, 0), NULL);
  else if (tnk__parse_skip(p, '+'))
    node = tnk__parse_make(p, TNK__NODE_POS, line, parse_unary(p, 0), NULL);
  else
    node = parse_primary(p, 0);
  node = parse_postfix(p, node);
  while (with_filter && p->err == TNK_OK) {
    if (tnk__parse_sees(p, '|'))
      node = tnk__parse_filters(p, node, 0);
    else if (tnk__parse_skip_name(p, "is"))
      node = parse_test(p, node);
    else if (tnk__parse_sees(p, '('))
      node = parse_call(p, node);
    else
      break;
  }
  p->depth--;
  return p->err == TNK_OK ? node : NULL;
}

/* Parse a name, a literal or a bracket. */
static tnk__node_t *parse_simple(tnk__parser_t *p, int with_namespace) {
  return parse_primary(p, with_namespace);
}

/* ---- Binary operators, and lists separated by commas ---- */

static tnk__node_t *binary(tnk__parser_t *p, tnk__op_t op, uint32_t line,
                           tnk__node_t *left, tnk__node_t *right) {
  tnk__node_t *node = tnk__parse_make(p, TNK__NODE_BINARY, line, left, right);

  if (node != NULL)
    node->op = (uint8_t)op;
  return node;
}

static tnk__node_t *parse_pow(tnk__parser_t *p) {
  tnk__node_t *left = parse_unary(p, 1);
  uint32_t line = p->at->line;

  while (tnk__parse_skip(p, TNK__PAIR('*', '*'))) {
    left = binary(p, TNK__OP_POW, line, left, parse_unary(p, 1));
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
  return parse_simple(p, how == SIMPLE_OR_NAMESPACE);
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
