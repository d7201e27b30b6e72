/* SPDX-License-Identifier: MIT */
#include "chat/jinja/run.h"
#include "tnk/error.h"

/* ---- Variables ---- */

tnk__frame_t *tnk__frame_new(tnk__run_t *run, tnk__frame_t *parent,
                             uint32_t n_slots) {
  tnk__frame_t *frame = NULL;

  if (tnk__charge(run, TNK__COST_SLOT, n_slots))
    frame = tnk__heap_alloc(run->heap,
                            sizeof(*frame) + n_slots * sizeof(tnk__value_t));
  if (frame == NULL) {
    tnk__is_fine(run);
    return NULL;
  }
  frame->parent = parent;
  frame->slots = (tnk__value_t *)(void *)(frame + 1);
  for (uint32_t i = 0; i < n_slots; i++)
    frame->slots[i] = tnk__missing();
  return frame;
}

static tnk__value_t call_function(tnk__run_t *run, tnk__value_t self,
                                  const tnk__args_t *args) {
  return tnk__builtin_call(run, self.as.object, tnk__value_none(), args);
}

const tnk__class_t tnk__class_function = {.name = "function",
                                          .call = call_function};

/* Look up a name that the template does not set. */
static tnk__value_t resolve(tnk__run_t *run, tnk__value_t name) {
  const tnk__builtin_t *known;
  tnk__value_t value;

  if (!tnk__charge(run, TNK__COST_RESOLVE, 1) || !tnk__charge_name(run, name))
    return tnk__missing();
  if (tnk__value_look_up(run->variables, name, &value))
    return value;
  known = tnk__builtin_find(run->tables->globals, name);
  if (known == NULL)
    return tnk__missing();
  return tnk__object(TNK__OBJECT_FUNCTION,
                     (void *)(uintptr_t)(const void *)known);
}

void tnk__scope_enter(tnk__run_t *run, const tnk__scope_t *scope) {
  const tnk__frame_t *frame;

  if (!tnk__charge(run, 2 * TNK__COST_SLOT, scope->n_loads))
    return;
  for (uint32_t i = 0; i < scope->n_loads; i++) {
    const tnk__load_t *load = &scope->loads[i];

    if (load->kind == TNK__LOAD_RESOLVE) {
      run->frame->slots[load->slot] = resolve(run, load->name);
    } else if (load->kind == TNK__LOAD_ALIAS) {
      frame = run->frame;
      for (uint32_t up = load->alias.up; up > 0; up--)
        frame = frame->parent;
      run->frame->slots[load->slot] = frame->slots[load->alias.slot];
    } else if (load->kind == TNK__LOAD_UNDEFINED) {
      run->frame->slots[load->slot] = tnk__missing();
    }
  }
}

void tnk__scope_leave(tnk__run_t *run, const tnk__scope_t *scope) {
  for (uint32_t i = 0; i < scope->n_loads; i++)
    run->frame->slots[scope->loads[i].slot] = tnk__missing();
}

static void assign_member(tnk__run_t *run, const tnk__node_t *target,
                          tnk__value_t value) {
  tnk__value_t space = tnk__eval(run, target->a);

  if (run->err != TNK_OK)
    return;
  if (!tnk__is_object(space, TNK__OBJECT_NAMESPACE)) {
    tnk__fail(run, TNK_EINVAL,
              "only a namespace has attributes that can be set");
    return;
  }
  space = (tnk__value_t){.kind = TNK__VALUE_DICT, .as.dict = space.as.dict};
  tnk__value_put(run->heap, space, target->value, value);
}

void tnk__assign(tnk__run_t *run, const tnk__node_t *target,
                 tnk__value_t value) {
  tnk__frame_t *frame = run->frame;
  tnk__value_t items;

  if (run->err != TNK_OK)
    return;
  run->line = target->line;
  if (target->kind == TNK__NODE_NAME) {
    for (uint32_t up = target->ref.up; up > 0; up--)
      frame = frame->parent;
    frame->slots[target->ref.slot] = value;
    return;
  }
  if (target->kind == TNK__NODE_NSREF) {
    assign_member(run, target, value);
    return;
  }
  items = tnk__list_of(run, value);
  if (run->err == TNK_OK && items.as.list->n != target->list.n)
    tnk__fail(run, TNK_EINVAL, "%d variables cannot take %d items",
              (int)target->list.n, (int)items.as.list->n);
  for (uint32_t i = 0; run->err == TNK_OK && i < target->list.n; i++)
    tnk__assign(run, target->list.items[i], items.as.list->items[i]);
}

/* ---- {% macro %}, and the bodies that {% call %} passes to one ---- */

typedef struct {
  const tnk__node_t *node;
  tnk__frame_t *frame; /* frame in which it was defined */
  int is_caller;
} macro_t;

static tnk__value_t macro_new(tnk__run_t *run, const tnk__node_t *node,
                              int is_caller) {
  macro_t *macro = tnk__heap_alloc(run->heap, sizeof(*macro));

  run->n_kept++;
  if (macro != NULL)
    *macro = (macro_t){node, run->frame, is_caller};
  return tnk__object(TNK__OBJECT_MACRO, macro);
}

/* Arguments that no parameter has used. */
typedef struct {
  const tnk__args_t *args;
  uint64_t taken; /* a bit for each of the first 64 named arguments */
} named_t;

static tnk__value_t take_named(named_t *named, tnk__value_t name) {
  for (size_t i = 0; i < named->args->n_named && i < 64; i++)
    if (!(named->taken >> i & 1) &&
        tnk__value_equal(named->args->names[i], name)) {
      named->taken |= (uint64_t)1 << i;
      return named->args->values[i];
    }
  return tnk__missing();
}

static int has_rest(const named_t *named) {
  for (size_t i = 0; i < named->args->n_named; i++)
    if (!(named->taken >> i & 1))
      return 1;
  return 0;
}

/* Charge for looking up each parameter among the named arguments. */
static int charge_bind(tnk__run_t *run, const tnk__node_t *node,
                       const tnk__args_t *args) {
  for (size_t i = 0; i < args->n_named; i++)
    if (!tnk__charge_value(run, args->names[i], 1 + node->list.n))
      return 0;
  return tnk__charge(run, TNK__COST_ITEM, node->list.n + args->n);
}

static tnk__value_t rest_named(tnk__run_t *run, const named_t *named) {
  const tnk__value_t dict = tnk__value_dict(run->heap);

  for (size_t i = 0; i < named->args->n_named; i++)
    if (!(named->taken >> i & 1))
      tnk__value_put(run->heap, dict, named->args->names[i],
                     named->args->values[i]);
  return dict;
}

static tnk__value_t rest_items(tnk__run_t *run, const tnk__args_t *args,
                               size_t from) {
  const tnk__value_t tuple = tnk__value_tuple(run->heap);

  for (; from < args->n; from++)
    tnk__value_append(run->heap, tuple, args->items[from]);
  return tuple;
}

/* Store the arguments of a macro in the slots of its frame. */
static int bind(tnk__run_t *run, const tnk__node_t *node, tnk__frame_t *frame,
                const tnk__args_t *args) {
  const tnk__macro_extras_t *extras = node->extras;
  const uint32_t n = node->list.n;
  named_t named = {args, 0};
  tnk__value_t value;

  if (args->n_named > 64) {
    tnk__fail(run, TNK_ETOOBIG, "a macro takes at most 64 arguments by name");
    return 0;
  }
  if (!charge_bind(run, node, args))
    return 0;
  for (uint32_t i = 0; i < n; i++)
    frame->slots[node->list.items[i]->ref.slot] =
        i < args->n ? args->items[i]
                    : take_named(&named, node->list.items[i]->value);
  if (extras->caller > 0) {
    value = take_named(&named, tnk__value_text("caller", 6));
    frame->slots[extras->caller - 1] =
        value.kind == TNK__VALUE_NONE ? tnk__missing() : value;
  }
  if (extras->kwargs > 0)
    frame->slots[extras->kwargs - 1] = rest_named(run, &named);
  else if (has_rest(&named))
    tnk__fail(run, TNK_EINVAL,
              "a macro takes no argument of a name that it "
              "was called with");
  if (extras->varargs > 0)
    frame->slots[extras->varargs - 1] = rest_items(run, args, n);
  else if (args->n > n)
    tnk__fail(run, TNK_EINVAL, "a macro takes at most %d arguments", (int)n);
  return tnk__is_fine(run);
}

static void fill_defaults(tnk__run_t *run, const tnk__node_t *node) {
  const uint32_t first = node->list.n - node->more.n;
  tnk__value_t *slot;

  for (uint32_t i = 0; i < node->list.n && run->err == TNK_OK; i++) {
    slot = &run->frame->slots[node->list.items[i]->ref.slot];
    if (tnk__is_given(*slot))
      continue;
    if (i >= first)
      *slot = tnk__eval(run, node->more.items[i - first]);
    else
      *slot = tnk__undefined(node->list.items[i]->value);
  }
}

static int macro_attr(tnk__run_t *run, tnk__value_t self, tnk__value_t name,
                      tnk__value_t *out) {
  const macro_t *macro = self.as.object;

  (void)run;
  if (!tnk__value_is(name, "name"))
    return 0;
  *out = macro->is_caller ? tnk__value_none() : macro->node->a->value;
  return 1;
}

static void macro_print(tnk__run_t *run, tnk__buf_t *out, tnk__value_t self,
                        int depth) {
  const macro_t *macro = self.as.object;

  (void)depth;
  tnk__buf_text(out, "<Macro ");
  if (macro->is_caller)
    tnk__buf_text(out, "anonymous");
  else
    tnk__print_repr(run, out, macro->node->a->value);
  tnk__buf_byte(out, '>');
}

static tnk__value_t macro_call(tnk__run_t *run, tnk__value_t self,
                               const tnk__args_t *args) {
  const macro_t *macro = self.as.object;
  const tnk__node_t *node = macro->node;
  tnk__frame_t *outer = run->frame;
  tnk__frame_t *frame = tnk__frame_new(run, macro->frame, node->scope->n_slots);
  tnk__value_t text;
  size_t mark;

  if (frame == NULL || !tnk__charge(run, TNK__COST_CALL, 1) ||
      !bind(run, node, frame, args) || !tnk__enter(run, 1))
    return tnk__value_undefined();
  mark = tnk__capture(run);
  run->frame = frame;
  tnk__scope_enter(run, node->scope);
  fill_defaults(run, node);
  tnk__exec_all(run, &node->body);
  run->frame = outer;
  run->depth--;
  text = tnk__captured(run, mark);
  return run->err == TNK_OK ? text : tnk__value_undefined();
}

const tnk__class_t tnk__class_macro = {
    .name = "macro",
    .lacking = "arguments caller catch_kwargs catch_varargs explicit_caller",
    .attr = macro_attr,
    .call = macro_call,
    .print = macro_print,
};

/* ---- Statements, except loops ---- */

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
  const tnk__value_t caller = macro_new(run, node, 1);

  tnk__print(run, run->out, tnk__eval_call(run, node->b, caller));
}

/* Execute a generation block. The span is an offset in the output. If the
 * output is captured, the span counts from the start of the outermost
 * capture. */
static void exec_generation(tnk__run_t *run, const tnk__node_t *node) {
  const tnk__args_t none = {.n = 0};
  const tnk__value_t body = macro_new(run, node, 1);
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
    tnk__assign(run, node->a, macro_new(run, node, 0));
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
