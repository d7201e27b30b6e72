/* SPDX-License-Identifier: MIT */
/* Statements. */
#include "chat/jinja/parse.h"

#include <string.h>

#include "tnk/error.h"

static void parse_body(tnk__parser_t *p, tnk__node_t *node, tnk__nodes_t *list,
                       const char *const *ends);

/* Parse the rest of a tag and the body up to one of the names. The tag with
 * that name is then the current one. */
static void parse_block(tnk__parser_t *p, tnk__node_t *node, tnk__nodes_t *list,
                        const char *const *ends) {
  tnk__parse_skip(p, ':');
  if (p->at->kind == TNK__TOKEN_BLOCK_END) {
    p->at++;
    parse_body(p, node, list, ends);
  } else {
    tnk__parse_fail(p, TNK_EINVAL, "the tag does not end where it should",
                    tnk__value_undefined());
  }
}

/* The same up to a single name, which is skipped. */
static void parse_last_block(tnk__parser_t *p, tnk__node_t *node,
                             const char *end) {
  const char *const ends[] = {end, NULL};

  if (node == NULL)
    return;
  parse_block(p, node, &node->body, ends);
  tnk__parse_skip_name(p, end);
}

static tnk__node_t *parse_set(tnk__parser_t *p, uint32_t line) {
  tnk__node_t *target = tnk__parse_target(p, 1, NULL);
  tnk__node_t *node;

  if (tnk__parse_skip(p, '='))
    return tnk__parse_make(p, TNK__NODE_SET, line, target,
                           tnk__parse_tuple(p, 1, NULL, 0));
  node = tnk__parse_make(p, TNK__NODE_SETBLOCK, line, target, NULL);
  if (node == NULL)
    return NULL;
  if (tnk__parse_sees(p, '|'))
    node->b = tnk__parse_child(p, node, tnk__parse_filters(p, NULL, 0));
  parse_last_block(p, node, "endset");
  return node;
}

/* Copy the tree of a target. */
static tnk__node_t *copy_target(tnk__parser_t *p, const tnk__node_t *target) {
  tnk__node_t *node;

  if (target == NULL)
    return NULL;
  node = tnk__parse_node(p, (tnk__node_kind_t)target->kind, target->line);
  if (node == NULL)
    return NULL;
  node->value = target->value;
  for (uint32_t i = 0; i < target->list.n; i++)
    tnk__parse_add(p, node, &node->list, copy_target(p, target->list.items[i]));
  return node;
}

static tnk__node_t *parse_for(tnk__parser_t *p, uint32_t line) {
  static const char *const ends[] = {"endfor", "else", NULL};
  static const char *const last[] = {"endfor", NULL};
  tnk__node_t *target = tnk__parse_target(p, 0, "in");
  tnk__node_t *node;

  if (!tnk__parse_skip_name(p, "in"))
    tnk__parse_fail(p, TNK_EINVAL, "\"in\" is missing in {% for %}",
                    tnk__value_undefined());
  node = tnk__parse_make(p, TNK__NODE_FOR, line, target,
                         tnk__parse_tuple(p, 0, "recursive", 0));
  if (node == NULL)
    return NULL;
  if (tnk__parse_skip_name(p, "if")) {
    node->c = tnk__parse_child(p, node, tnk__parse_expression(p));
    tnk__parse_add(p, node, &node->list, copy_target(p, target));
  }
  node->flag = (uint8_t)tnk__parse_skip_name(p, "recursive");
  p->n_loops++;
  parse_block(p, node, &node->body, ends);
  p->n_loops--;
  if (tnk__parse_skip_name(p, "else"))
    parse_block(p, node, &node->other, last);
  tnk__parse_skip_name(p, "endfor");
  return node;
}

static tnk__node_t *parse_if(tnk__parser_t *p, uint32_t line) {
  static const char *const ends[] = {"elif", "else", "endif", NULL};
  static const char *const last[] = {"endif", NULL};
  tnk__node_t *result = NULL;
  tnk__node_t *node;

  do {
    node = tnk__parse_make(p, TNK__NODE_IF, line,
                           tnk__parse_tuple(p, 0, NULL, 0), NULL);
    if (node == NULL)
      return NULL;
    if (result == NULL)
      result = node;
    parse_block(p, node, &node->body, ends);
    if (node != result)
      tnk__parse_add(p, result, &result->more, node);
    line = p->at->line;
  } while (tnk__parse_skip_name(p, "elif"));
  if (tnk__parse_skip_name(p, "else"))
    parse_block(p, result, &result->other, last);
  tnk__parse_skip_name(p, "endif");
  return result;
}

static tnk__node_t *parse_with(tnk__parser_t *p, uint32_t line) {
  tnk__node_t *node = tnk__parse_node(p, TNK__NODE_WITH, line);

  if (node == NULL)
    return NULL;
  while (p->err == TNK_OK && p->at->kind != TNK__TOKEN_BLOCK_END) {
    if (node->list.n > 0)
      tnk__parse_expect(p, ',');
    tnk__parse_add(p, node, &node->list, tnk__parse_target(p, 0, NULL));
    tnk__parse_expect(p, '=');
    tnk__parse_add(p, node, &node->more, tnk__parse_expression(p));
  }
  parse_last_block(p, node, "endwith");
  return node;
}

/* ---- Macros and calls ---- */

static tnk__node_t *name_node(tnk__parser_t *p) {
  tnk__node_t *node = tnk__parse_node(p, TNK__NODE_NAME, p->at->line);

  if (node != NULL)
    node->value = tnk__parse_name(p);
  return p->err == TNK_OK ? node : NULL;
}

static void parse_signature(tnk__parser_t *p, tnk__node_t *node) {
  if (node == NULL || !tnk__parse_expect(p, '('))
    return;
  while (p->err == TNK_OK && !tnk__parse_sees(p, ')')) {
    if (node->list.n > 0)
      tnk__parse_expect(p, ',');
    tnk__parse_add(p, node, &node->list, name_node(p));
    if (tnk__parse_skip(p, '='))
      tnk__parse_add(p, node, &node->more, tnk__parse_expression(p));
    else if (node->more.n > 0)
      tnk__parse_fail(p, TNK_EINVAL,
                      "a parameter without a default stands behind one that "
                      "has one",
                      tnk__value_undefined());
  }
  tnk__parse_expect(p, ')');
}

/* Parse a body that is called from elsewhere. It is not part of the loops
 * around it. */
static void parse_called_body(tnk__parser_t *p, tnk__node_t *node,
                              const char *end) {
  const unsigned n_loops = p->n_loops;

  p->n_loops = 0;
  parse_last_block(p, node, end);
  p->n_loops = n_loops;
}

static tnk__node_t *parse_macro(tnk__parser_t *p, uint32_t line) {
  tnk__node_t *name = name_node(p);
  tnk__node_t *node = tnk__parse_make(p, TNK__NODE_MACRO, line, name, NULL);

  parse_signature(p, node);
  parse_called_body(p, node, "endmacro");
  return node;
}

static tnk__node_t *parse_call_block(tnk__parser_t *p, uint32_t line) {
  tnk__node_t *node = tnk__parse_node(p, TNK__NODE_CALLBLOCK, line);

  if (tnk__parse_sees(p, '('))
    parse_signature(p, node);
  if (node == NULL)
    return NULL;
  node->b = tnk__parse_child(p, node, tnk__parse_expression(p));
  if (p->err == TNK_OK && node->b->kind != TNK__NODE_CALL)
    tnk__parse_fail(p, TNK_EINVAL, "{% call %} needs a call",
                    tnk__value_undefined());
  parse_called_body(p, node, "endcall");
  return node;
}

static tnk__node_t *parse_generation(tnk__parser_t *p, uint32_t line) {
  tnk__node_t *node = tnk__parse_node(p, TNK__NODE_GENERATION, line);

  parse_called_body(p, node, "endgeneration");
  return node;
}

static tnk__node_t *parse_filter_block(tnk__parser_t *p, uint32_t line) {
  tnk__node_t *node = tnk__parse_node(p, TNK__NODE_FILTERBLOCK, line);

  if (node == NULL)
    return NULL;
  node->b = tnk__parse_child(p, node, tnk__parse_filters(p, NULL, 1));
  if (tnk__parse_sees(p, '|') && p->err == TNK_OK)
    node->b = tnk__parse_child(p, node, tnk__parse_filters(p, node->b, 0));
  parse_last_block(p, node, "endfilter");
  return node;
}

static tnk__node_t *parse_print(tnk__parser_t *p, uint32_t line) {
  tnk__node_t *node = tnk__parse_node(p, TNK__NODE_OUTPUT, line);

  while (p->err == TNK_OK && p->at->kind != TNK__TOKEN_BLOCK_END) {
    if (node->list.n > 0)
      tnk__parse_expect(p, ',');
    tnk__parse_add(p, node, &node->list, tnk__parse_expression(p));
  }
  return node;
}

static tnk__node_t *parse_jump(tnk__parser_t *p, tnk__node_kind_t kind,
                               uint32_t line) {
  if (p->n_loops == 0)
    tnk__parse_fail(p, TNK_EINVAL,
                    "{% break %} and {% continue %} stand in loops only",
                    tnk__value_undefined());
  return tnk__parse_node(p, kind, line);
}

static tnk__node_t *parse_break(tnk__parser_t *p, uint32_t line) {
  return parse_jump(p, TNK__NODE_BREAK, line);
}

static tnk__node_t *parse_continue(tnk__parser_t *p, uint32_t line) {
  return parse_jump(p, TNK__NODE_CONTINUE, line);
}

/* ---- Bodies ---- */

static tnk__node_t *parse_statement(tnk__parser_t *p) {
  static const struct {
    const char *name;
    tnk__node_t *(*parse)(tnk__parser_t *p, uint32_t line);
  } rows[] = {
      {"if", parse_if},
      {"for", parse_for},
      {"set", parse_set},
      {"macro", parse_macro},
      {"call", parse_call_block},
      {"filter", parse_filter_block},
      {"with", parse_with},
      {"generation", parse_generation},
      {"print", parse_print},
      {"break", parse_break},
      {"continue", parse_continue},
  };
  static const char *const others[] = {"block",  "extends", "include",
                                       "import", "from",    "autoescape"};
  const tnk__value_t name = p->at->value;
  const uint32_t line = p->at->line;
  tnk__node_t *node = NULL;

  if (p->at->kind != TNK__TOKEN_NAME) {
    tnk__parse_fail(p, TNK_EINVAL, "a tag has no name", tnk__value_undefined());
    return NULL;
  }
  if (!tnk__parse_enter(p))
    return NULL;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && node == NULL; i++)
    if (tnk__parse_skip_name(p, rows[i].name)) {
      node = rows[i].parse(p, line);
      p->depth--;
      return node;
    }
  for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
    if (tnk__value_is(name, others[i]))
      tnk__parse_fail(p, TNK_EUNSUPPORTED, "there is no tag", name);
  tnk__parse_fail(p, TNK_EINVAL, "no such tag can stand here:", name);
  p->depth--;
  return NULL;
}

static int is_one_of(const tnk__parser_t *p, const char *const *names) {
  for (; names != NULL && *names != NULL; names++)
    if (tnk__parse_sees_name(p, *names))
      return 1;
  return 0;
}

/* Adjacent data and {{ }} are one node. */
static void parse_output(tnk__parser_t *p, tnk__node_t *output) {
  tnk__node_t *data;

  while (p->err == TNK_OK && p->at->kind != TNK__TOKEN_BLOCK_BEGIN &&
         p->at->kind != TNK__TOKEN_EOF) {
    if (p->at->kind == TNK__TOKEN_DATA) {
      data = tnk__parse_node(p, TNK__NODE_CONST, p->at->line);
      if (data == NULL)
        return;
      data->value = (p->at++)->value;
      tnk__parse_add(p, output, &output->list, data);
      continue;
    }
    p->at++;
    tnk__parse_add(p, output, &output->list, tnk__parse_tuple(p, 1, NULL, 0));
    if (p->err == TNK_OK && p->at->kind != TNK__TOKEN_VARIABLE_END)
      tnk__parse_fail(p, TNK_EINVAL, "\"}}\" is missing",
                      tnk__value_undefined());
    p->at += p->err == TNK_OK;
  }
}

static void parse_body(tnk__parser_t *p, tnk__node_t *node, tnk__nodes_t *list,
                       const char *const *ends) {
  tnk__node_t *child;

  while (p->err == TNK_OK && p->at->kind != TNK__TOKEN_EOF) {
    if (p->at->kind == TNK__TOKEN_BLOCK_BEGIN) {
      p->at++;
      if (is_one_of(p, ends))
        return;
      child = parse_statement(p);
      tnk__parse_add(p, node, list, child);
      if (p->err == TNK_OK && p->at->kind != TNK__TOKEN_BLOCK_END)
        tnk__parse_fail(p, TNK_EINVAL, "\"%}\" is missing",
                        tnk__value_undefined());
      p->at += p->err == TNK_OK;
    } else {
      child = tnk__parse_node(p, TNK__NODE_OUTPUT, p->at->line);
      if (child == NULL)
        return;
      parse_output(p, child);
      tnk__parse_add(p, node, list, child);
    }
  }
  if (ends != NULL && p->err == TNK_OK)
    tnk__parse_fail(p, TNK_EINVAL, "the template ends, and there is no",
                    tnk__value_text(ends[0], strlen(ends[0])));
}

int tnk__parse(tnk__node_t **out, const tnk__library_t *library,
               tnk__heap_t *heap, const tnk__tokens_t *tokens,
               tnk__why_t *why) {
  tnk__parser_t p = {.at = tokens->items,
                     .eof = tokens->items + tokens->n - 1,
                     .tables = library,
                     .heap = heap,
                     .why = why};

  *out = tnk__parse_node(&p, TNK__NODE_OUTPUT, 1);
  if (*out != NULL)
    parse_body(&p, *out, &(*out)->body, NULL);
  if (p.err == TNK_OK)
    (*out)->flag = (uint8_t)p.is_lacking;
  if (p.err == TNK_OK && heap->err != TNK_OK)
    p.err = tnk__why(why, heap->err, 0, "no memory is left");
  return p.err;
}

/* ---- Names that a part reads and writes ---- */

/* Returns 1 if a body reads a name, 0 if not, and -1 if it writes the name
 * first. */
static int reads(const tnk__node_t *node, const char *name) {
  const tnk__nodes_t *lists[4];
  const tnk__node_t *parts[3];
  int found = 0;

  if (node == NULL)
    return 0;
  if (node->kind == TNK__NODE_NAME)
    return tnk__value_is(node->value, name);
  if (node->kind == TNK__NODE_SET || node->kind == TNK__NODE_SETBLOCK) {
    if (node->a->kind == TNK__NODE_NAME && tnk__value_is(node->a->value, name))
      return reads(node->b, name) == 1 ? 1 : -1;
    found = reads(node->b, name);
  } else {
    parts[0] = node->kind == TNK__NODE_FOR || node->kind == TNK__NODE_MACRO
                   ? NULL
                   : node->a;
    parts[1] = node->b;
    parts[2] = node->c;
    for (int i = 0; i < 3 && found == 0; i++)
      found = reads(parts[i], name);
  }
  lists[0] = node->kind == TNK__NODE_FOR || node->kind == TNK__NODE_WITH ||
                     node->kind == TNK__NODE_MACRO ||
                     node->kind == TNK__NODE_CALLBLOCK
                 ? NULL
                 : &node->list;
  lists[1] = &node->more;
  lists[2] = &node->body;
  lists[3] = &node->other;
  for (int i = 0; i < 4; i++)
    for (uint32_t k = 0; lists[i] != NULL && k < lists[i]->n && found == 0; k++)
      found = reads(lists[i]->items[k], name);
  return found;
}

int tnk__node_reads(const tnk__nodes_t *body, const char *name) {
  int found = 0;

  for (uint32_t i = 0; i < body->n && found == 0; i++)
    found = reads(body->items[i], name);
  return found == 1;
}

static int writes_loop(const tnk__node_t *target) {
  if (target->kind == TNK__NODE_TUPLE) {
    for (uint32_t i = 0; i < target->list.n; i++)
      if (writes_loop(target->list.items[i]))
        return 1;
    return 0;
  }
  return target->kind == TNK__NODE_NAME && tnk__value_is(target->value, "loop");
}

int tnk__node_sets_loop(const tnk__node_t *node) {
  const tnk__nodes_t *const lists[] = {&node->body, &node->more, &node->other};

  if ((node->kind == TNK__NODE_SET || node->kind == TNK__NODE_SETBLOCK ||
       node->kind == TNK__NODE_FOR) &&
      writes_loop(node->a))
    return 1;
  for (size_t i = 0; i < 3; i++)
    for (uint32_t k = 0; k < lists[i]->n; k++)
      if (tnk__node_sets_loop(lists[i]->items[k]))
        return 1;
  return 0;
}
