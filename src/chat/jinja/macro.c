/* SPDX-License-Identifier: MIT */
/* {% macro %}, and the bodies that {% call %} passes to one. */
#include "chat/jinja/run.h"
#include "tnk/error.h"

typedef struct {
  const tnk__node_t *node;
  tnk__frame_t *frame; /* frame in which it was defined */
  int is_caller;
} macro_t;

tnk__value_t tnk__macro_new(tnk__run_t *run, const tnk__node_t *node,
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
