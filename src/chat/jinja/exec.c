/* SPDX-License-Identifier: MIT */
/* Statements, except loops and macros. */
#include "chat/jinja/run.h"
#include "tnk/error.h"

static void exec_output(tnk__run_t *run, const tnk__node_t *node) {
  for (uint32_t i = 0; i < node->list.n && run->err == TNK_OK; i++)
    tnk__eval_print(run, node->list.items[i]);
}

static int is_true(tnk__run_t *run, const tnk__node_t *test) {
  return tnk__truth(tnk__eval(run, test)) && run->err == TNK_OK;
}

static void exec_if(tnk__run_t *run, const tnk__node_t *node) {
  if (is_true(run, node->a)) {
    tnk__exec_all(run, &node->body);
    return;
  }
  for (uint32_t i = 0; i < node->more.n && run->err == TNK_OK; i++)
    if (is_true(run, node->more.items[i]->a)) {
      tnk__exec_all(run, &node->more.items[i]->body);
      return;
    }
  tnk__exec_all(run, &node->other);
}

/* Execute a body and return its output as a text. */
static tnk__value_t exec_captured(tnk__run_t *run, const tnk__node_t *node) {
  const size_t mark = tnk__capture(run);

  tnk__scope_enter(run, node->scope);
  tnk__exec_all(run, &node->body);
  return tnk__captured(run, mark);
}

static void exec_block(tnk__run_t *run, const tnk__node_t *node) {
  tnk__value_t text = exec_captured(run, node);

  if (run->err != TNK_OK)
    return;
  if (node->b != NULL && run->flow == TNK__GO_ON)
    text = tnk__eval_filter(run, node->b, text);
  if (run->flow != TNK__GO_ON)
    return;
  if (node->kind == TNK__NODE_SETBLOCK)
    tnk__assign(run, node->a, text);
  else if (text.kind == TNK__VALUE_TEXT)
    tnk__print(run, run->out, text);
  else
    tnk__bad_type(run, "the filters of a block must give a text", text);
  tnk__scope_leave(run, node->scope);
}

static void exec_with(tnk__run_t *run, const tnk__node_t *node) {
  const tnk__value_t values = tnk__value_list(run->heap);

  if (!tnk__charge(run, TNK__COST_ITEM, node->more.n))
    return;
  for (uint32_t i = 0; i < node->more.n; i++)
    tnk__value_append(run->heap, values, tnk__eval(run, node->more.items[i]));
  if (!tnk__is_fine(run))
    return;
  tnk__scope_enter(run, node->scope);
  for (uint32_t i = 0; i < node->list.n; i++)
    tnk__assign(run, node->list.items[i], values.as.list->items[i]);
  tnk__exec_all(run, &node->body);
  tnk__scope_leave(run, node->scope);
}

static void exec_call_block(tnk__run_t *run, const tnk__node_t *node) {
  const tnk__value_t caller = tnk__macro_new(run, node, 1);

  tnk__print(run, run->out, tnk__eval_call(run, node->b, caller));
}

/* Execute a generation block. The span is an offset in the output. If the
 * output is captured, the span counts from the start of the outermost
 * capture. */
static void exec_generation(tnk__run_t *run, const tnk__node_t *node) {
  const tnk__args_t none = {.n = 0};
  const tnk__value_t body = tnk__macro_new(run, node, 1);
  const tnk__value_t text = tnk__call(run, body, &none);
  tnk__template_span_t span;

  if (!tnk__is_fine(run))
    return;
  span.start =
      (run->n_captures > 0 ? run->captured : run->out->len) - run->out_start;
  span.end = span.start + text.n_text;
  tnk__print(run, run->out, text);
  if (run->spans != NULL &&
      tnk__buf_append(run->spans, &span, sizeof(span)) != TNK_OK)
    tnk__fail(run, run->spans->err, "there are too many generation blocks");
}

static void exec(tnk__run_t *run, const tnk__node_t *node) {
  switch (node->kind) {
  case TNK__NODE_OUTPUT:
    exec_output(run, node);
    return;
  case TNK__NODE_IF:
    exec_if(run, node);
    return;
  case TNK__NODE_FOR:
    tnk__exec_for(run, node);
    return;
  case TNK__NODE_SET:
    tnk__assign(run, node->a, tnk__eval(run, node->b));
    return;
  case TNK__NODE_SETBLOCK:
  case TNK__NODE_FILTERBLOCK:
    exec_block(run, node);
    return;
  case TNK__NODE_MACRO:
    tnk__assign(run, node->a, tnk__macro_new(run, node, 0));
    return;
  case TNK__NODE_CALLBLOCK:
    exec_call_block(run, node);
    return;
  case TNK__NODE_WITH:
    exec_with(run, node);
    return;
  case TNK__NODE_GENERATION:
    exec_generation(run, node);
    return;
  default:
    run->flow =
        node->kind == TNK__NODE_BREAK ? TNK__GO_BREAK : TNK__GO_CONTINUE;
  }
}

void tnk__exec_all(tnk__run_t *run, const tnk__nodes_t *body) {
  if (run->err != TNK_OK || body->n == 0 || !tnk__enter(run, 1))
    return;
  for (uint32_t i = 0; i < body->n && run->flow == TNK__GO_ON; i++) {
    if (!tnk__charge(run, TNK__COST_NODE, 1) || !tnk__is_fine(run))
      break;
    run->line = body->items[i]->line;
    exec(run, body->items[i]);
  }
  run->depth--;
}
