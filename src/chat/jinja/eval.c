/* SPDX-License-Identifier: MIT */
/* Expressions. */
#include <string.h>

#include "chat/jinja/run.h"
#include "tnk/error.h"

/* Calls with at most this many arguments need no lists. */
enum { FEW = 8 };

/* Factor of the charge for the name of an argument, which is hashed or compared
 * four times. */
enum { NAMES = 4 * TNK__COST_HASH / TNK__COST_COPY };

/* Memory for the arguments of a call. Calls are nested and stacks are small, so
 * it is allocated in the heap. It is reused when the call has ended. */
typedef struct tnk__call {
  struct tnk__call *next; /* next in the list of free ones */
  tnk__args_t args;
  tnk__value_t items[FEW];
  tnk__value_t names[FEW];
  tnk__value_t values[FEW];
} call_t;

static call_t *take_call(tnk__run_t *run) {
  call_t *call = run->free_calls;

  if (call == NULL)
    return tnk__heap_alloc(run->heap, sizeof(*call));
  run->free_calls = call->next;
  return call;
}

/* Release the memory of a call; it may be NULL. */
static void give_call(tnk__run_t *run, call_t *call) {
  if (call == NULL)
    return;
  call->next = run->free_calls;
  run->free_calls = call;
}

/* Constants are evaluated at compile time, without a frame. Returns 1 and fails
 * in that case. */
static int is_too_early(tnk__run_t *run) {
  if (run->frame == NULL)
    tnk__fail(run, TNK_EUNSUPPORTED, "this is known when it is run");
  return run->frame == NULL;
}

static tnk__value_t read_name(tnk__run_t *run, const tnk__node_t *node) {
  const tnk__frame_t *frame = run->frame;
  tnk__value_t value;

  if (is_too_early(run))
    return tnk__value_undefined();
  if (!tnk__charge(run, TNK__COST_SLOT, node->ref.up))
    return tnk__value_undefined();
  for (uint32_t up = node->ref.up; up > 0; up--)
    frame = frame->parent;
  value = frame->slots[node->ref.slot];
  return tnk__is_given(value) ? value : tnk__undefined(node->value);
}

static tnk__value_t eval_name(tnk__run_t *run, const tnk__node_t *node) {
  const tnk__value_t value = read_name(run, node);

  run->n_kept += tnk__is_object(value, TNK__OBJECT_LOOP) != 0;
  return value;
}

/* ---- Arguments ---- */

static int add_spread(tnk__run_t *run, const tnk__node_t *node,
                      tnk__value_t list) {
  tnk__iter_t iter;
  tnk__value_t item;

  if (!tnk__iter_begin(run, &iter, tnk__eval(run, node)))
    return 0;
  while (tnk__iter_next(run, &iter, &item))
    tnk__value_append(run->heap, list, item);
  return tnk__is_fine(run);
}

/* Collect arguments in lists, if there are many or if there is *args or
 * **kwargs. */
static int gather_many(tnk__run_t *run, const tnk__node_t *node,
                       tnk__value_t caller, call_t *call) {
  const tnk__value_t items = tnk__value_list(run->heap);
  const tnk__value_t named = tnk__value_dict(run->heap);
  const tnk__value_t names = tnk__value_list(run->heap);
  const tnk__value_t values = tnk__value_list(run->heap);
  tnk__value_t more;

  for (uint32_t i = 0; i < node->list.n; i++)
    tnk__value_append(run->heap, items, tnk__eval(run, node->list.items[i]));
  if (node->b != NULL && !add_spread(run, node->b, items))
    return 0;
  for (uint32_t i = 0; i < node->more.n; i++)
    if (tnk__charge_value(run, node->more.items[i]->value, NAMES))
      tnk__value_put(run->heap, named, node->more.items[i]->value,
                     tnk__eval(run, node->more.items[i]->a));
  if (tnk__is_given(caller))
    tnk__value_set(run->heap, named, "caller", caller);
  if (node->c != NULL) {
    more = tnk__eval(run, node->c);
    if (more.kind != TNK__VALUE_DICT)
      tnk__bad_type(run, "a dict is needed behind **", more);
    for (size_t i = 0;
         run->err == TNK_OK && i < more.as.dict->n &&
         tnk__charge_value(run, more.as.dict->entries[i].key, NAMES);
         i++) {
      if (more.as.dict->entries[i].key.kind != TNK__VALUE_TEXT ||
          tnk__value_has(named, more.as.dict->entries[i].key))
        tnk__fail(run, TNK_EINVAL,
                  "an argument is given twice, or its name "
                  "is no text");
      else
        tnk__value_put(run->heap, named, more.as.dict->entries[i].key,
                       more.as.dict->entries[i].value);
    }
  }
  if (!tnk__is_fine(run))
    return 0;
  for (size_t i = 0; i < named.as.dict->n; i++) {
    tnk__value_append(run->heap, names, named.as.dict->entries[i].key);
    tnk__value_append(run->heap, values, named.as.dict->entries[i].value);
  }
  if (!tnk__is_fine(run))
    return 0;
  call->args = (tnk__args_t){items.as.list->items, items.as.list->n,
                             names.as.list->items, values.as.list->items,
                             names.as.list->n};
  return 1;
}

static int gather(tnk__run_t *run, const tnk__node_t *node, tnk__value_t caller,
                  call_t *call) {
  tnk__args_t *args;

  if (call == NULL)
    return tnk__is_fine(run);
  args = &call->args;

  if (node->b != NULL || node->c != NULL || node->list.n > FEW ||
      node->more.n >= FEW)
    return gather_many(run, node, caller, call);
  *args = (tnk__args_t){call->items, node->list.n, call->names, call->values,
                        node->more.n};
  for (uint32_t i = 0; i < node->list.n; i++)
    call->items[i] = tnk__eval(run, node->list.items[i]);
  for (uint32_t i = 0; i < node->more.n; i++) {
    call->names[i] = node->more.items[i]->value;
    tnk__charge_value(run, call->names[i], FEW);
    call->values[i] = tnk__eval(run, node->more.items[i]->a);
    for (uint32_t k = 0; k < i; k++)
      if (tnk__value_equal(call->names[k], call->names[i]))
        tnk__fail(run, TNK_EINVAL, "an argument is given twice");
  }
  if (tnk__is_given(caller)) {
    call->names[args->n_named] = tnk__value_text("caller", 6);
    call->values[args->n_named++] = caller;
  }
  return tnk__is_fine(run);
}

/* ---- Calls ---- */

tnk__value_t tnk__call(tnk__run_t *run, tnk__value_t callee,
                       const tnk__args_t *args) {
  const tnk__class_t *class = tnk__class_of(run, callee);

  if (class->call == NULL)
    return tnk__bad_type(run, "something that can be called is needed", callee);
  return class->call(run, callee, args);
}

/* Evaluate the callee. A method of a text is not made into a value: the result
 * is the text, and *known is the method. */
static tnk__value_t eval_callee(tnk__run_t *run, const tnk__node_t *node,
                                const tnk__builtin_t **known) {
  tnk__value_t of;

  if (node->kind != TNK__NODE_GETATTR || node->known == NULL)
    return tnk__eval(run, node);
  if (!tnk__charge(run, TNK__COST_NODE, 1) || !tnk__enter(run, 1))
    return tnk__value_undefined();
  run->line = node->line;
  of = tnk__eval(run, node->a);
  if (of.kind == TNK__VALUE_TEXT)
    *known = node->known;
  else
    of = tnk__getattr(run, of, node->value);
  run->depth--;
  return of;
}

tnk__value_t tnk__eval_call(tnk__run_t *run, const tnk__node_t *node,
                            tnk__value_t caller) {
  const tnk__builtin_t *known = NULL;
  const tnk__value_t callee = eval_callee(run, node->a, &known);
  tnk__value_t result = tnk__value_undefined();
  call_t *call;

  if (is_too_early(run))
    return result;
  call = take_call(run);
  if (gather(run, node, caller, call)) {
    run->line = node->line;
    result = known != NULL ? tnk__builtin_call(run, known, callee, &call->args)
                           : tnk__call(run, callee, &call->args);
    run->line = node->line;
  }
  give_call(run, call);
  return result;
}

/* The name of the member that an expression gets; undefined for others. */
static tnk__value_t member_of(const tnk__node_t *node) {
  if (node != NULL && node->kind == TNK__NODE_GETATTR)
    return node->value;
  return node != NULL && node->kind == TNK__NODE_GETITEM && node->flag
             ? node->b->value
             : tnk__value_undefined();
}

/* Call a filter or test with its arguments. */
static tnk__value_t apply(tnk__run_t *run, const tnk__node_t *node,
                          tnk__value_t input, const char *what) {
  tnk__value_t result = tnk__value_undefined();
  const int failed = run->err;
  call_t *call = take_call(run);

  if (gather(run, node, tnk__missing(), call)) {
    run->line = node->line;
    if (node->known == NULL)
      tnk__fail(run, TNK_EUNSUPPORTED, "there is no %s \"%.*s\"", what,
                (int)(node->value.n_text < 80 ? node->value.n_text : 80),
                node->value.as.text);
    /* Filters that look up other filters need a running template. */
    else if (run->frame != NULL || node->known->params != NULL ||
             tnk__builtin_find(tnk__filters_pick, node->value) == NULL ||
             !is_too_early(run))
      result = tnk__builtin_call(run, node->known, input, &call->args);
    if (failed == TNK_OK && run->err == TNK_EINVAL)
      tnk__fail_at(run->why, member_of(node->a));
    /* An error that is reported once the items are read. */
    else if (tnk__is_object(result, TNK__OBJECT_STREAM) &&
             input.as.object != result.as.object)
      tnk__fail_at(((tnk__stream_t *)result.as.object)->why,
                   member_of(node->a));
  }
  give_call(run, call);
  return result;
}

tnk__value_t tnk__eval_filter(tnk__run_t *run, const tnk__node_t *node,
                              tnk__value_t input) {
  /* The innermost filter of a chain gets the input. */
  if (node->a != NULL && node->a->kind == TNK__NODE_FILTER &&
      tnk__is_given(input))
    input = tnk__eval_filter(run, node->a, input);
  else if (node->a != NULL)
    input = tnk__eval(run, node->a);
  return apply(run, node, input, "filter");
}

/* ---- Containers and operators ---- */

static tnk__value_t eval_list(tnk__run_t *run, const tnk__node_t *node) {
  const tnk__value_t list = node->kind == TNK__NODE_LIST
                                ? tnk__value_list(run->heap)
                                : tnk__value_tuple(run->heap);

  if (!tnk__charge(run, TNK__COST_ITEM, node->list.n))
    return list;
  for (uint32_t i = 0; i < node->list.n; i++)
    tnk__value_append(run->heap, list, tnk__eval(run, node->list.items[i]));
  return list;
}

static tnk__value_t eval_dict(tnk__run_t *run, const tnk__node_t *node) {
  const tnk__value_t dict = tnk__value_dict(run->heap);
  tnk__value_t key;
  tnk__value_t value;

  for (uint32_t i = 0; i < node->list.n && run->err == TNK_OK; i += 2) {
    key = tnk__eval(run, node->list.items[i]);
    value = tnk__eval(run, node->list.items[i + 1]);
    if (run->err == TNK_OK && !tnk__can_be_key(run, key))
      return tnk__bad_type(run, "this cannot be the name of a member", key);
    tnk__value_put(run->heap, dict, key, value);
  }
  return dict;
}

/* Concatenate texts, in the spare memory of the first one if possible. */
static tnk__value_t join(tnk__run_t *run, const tnk__value_t *parts,
                         size_t n_parts) {
  size_t n = 0;
  char *joined;

  for (size_t i = 0; i < n_parts; i++)
    n += parts[i].n_text;
  if (n > UINT32_MAX)
    return tnk__fail(run, TNK_ETOOBIG, "a text becomes too long");
  if (!tnk__charge(run, TNK__COST_COPY, n - parts[0].n_text) ||
      !tnk__charge(run, TNK__COST_ITEM, n_parts))
    return tnk__value_undefined();
  joined = tnk__text_room(run, parts[0], n - parts[0].n_text);
  if (joined == NULL)
    return tnk__value_undefined();
  n = parts[0].n_text;
  for (size_t i = 1; i < n_parts; n += parts[i++].n_text)
    if (parts[i].n_text > 0)
      memcpy(joined + n, parts[i].as.text, parts[i].n_text);
  return tnk__value_text(joined, n);
}

static tnk__value_t eval_concat(tnk__run_t *run, const tnk__node_t *node) {
  const tnk__value_t list = eval_list(run, node);

  if (!tnk__is_fine(run))
    return tnk__value_undefined();
  for (size_t i = 0; i < list.as.list->n; i++)
    list.as.list->items[i] = tnk__text_of(run, list.as.list->items[i]);
  if (!tnk__is_fine(run))
    return tnk__value_undefined();
  return join(run, list.as.list->items, list.as.list->n);
}

/* ---- Sums ---- */

static int is_plain_text(tnk__value_t value) {
  return value.kind == TNK__VALUE_TEXT && !value.is_markup;
}

/* Add an operand to a sum. While all operands are texts, several are kept and
 * concatenated once, at the end. */
static void add_operand(tnk__run_t *run, call_t *sum, tnk__value_t value) {
  tnk__value_t *items = sum->items;
  size_t *n = &sum->args.n;

  if (*n == FEW || (*n > 1 && !is_plain_text(value))) {
    items[0] = join(run, items, *n);
    *n = 1;
  }
  if (*n == 0 || (is_plain_text(items[0]) && is_plain_text(value)))
    items[(*n)++] = value;
  else
    items[0] = tnk__binary(run, TNK__OP_ADD, items[0], value);
}

/* Add the operands of a + b + c ..., from left to right. */
static void add_operands(tnk__run_t *run, const tnk__node_t *node,
                         call_t *sum) {
  if (node->a->kind != TNK__NODE_BINARY || node->a->op != TNK__OP_ADD) {
    add_operand(run, sum, tnk__eval(run, node->a));
  } else if (tnk__charge(run, TNK__COST_NODE, 1) && tnk__enter(run, 1)) {
    run->line = node->a->line;
    add_operands(run, node->a, sum);
    run->depth--;
  }
  add_operand(run, sum, tnk__eval(run, node->b));
}

/* Evaluate a sum. If `prints` is set, its operands are printed one by one. */
static tnk__value_t eval_sum(tnk__run_t *run, const tnk__node_t *node,
                             int prints) {
  call_t *sum = take_call(run);
  tnk__value_t value;

  if (sum == NULL)
    return tnk__value_undefined();
  sum->args.n = 0;
  add_operands(run, node, sum);
  value = sum->items[0];
  for (size_t i = 0; prints && i < sum->args.n; i++)
    tnk__print(run, run->out, sum->items[i]);
  if (!prints && sum->args.n > 1)
    value = join(run, sum->items, sum->args.n);
  give_call(run, sum);
  return value;
}

static tnk__value_t eval_compare(tnk__run_t *run, const tnk__node_t *node) {
  tnk__value_t left = tnk__eval(run, node->a);
  tnk__value_t right;

  for (uint32_t i = 0; i < node->list.n; i++) {
    right = tnk__eval(run, node->list.items[i]->a);
    if (!tnk__compare(run, (tnk__op_t)node->list.items[i]->op, left, right))
      return tnk__value_bool(0);
    left = right;
  }
  return tnk__value_bool(1);
}

/* The value of which an attribute or item is taken. That does not keep a
 * loop. */
static tnk__value_t eval_owner(tnk__run_t *run, const tnk__node_t *node) {
  if (node->kind != TNK__NODE_NAME || !tnk__charge(run, TNK__COST_NODE, 1))
    return tnk__eval(run, node);
  run->line = node->line;
  return read_name(run, node);
}

static tnk__value_t eval_getitem(tnk__run_t *run, const tnk__node_t *node) {
  const tnk__value_t of = tnk__eval(run, node->a);
  const tnk__node_t *key = node->b;
  tnk__value_t parts[3];
  tnk__value_t value;

  /* Fast path: a member of a message by a constant name. */
  if (node->flag && of.kind == TNK__VALUE_DICT && run->err == TNK_OK &&
      tnk__charge(run, TNK__COST_MEMBER, 1) &&
      tnk__charge_name(run, key->value))
    return tnk__value_look_up(of, key->value, &value)
               ? value
               : tnk__undefined(key->value);
  if (key->kind != TNK__NODE_SLICE)
    return tnk__getitem(run, of, tnk__eval(run, key));
  parts[0] = key->a != NULL ? tnk__eval(run, key->a) : tnk__missing();
  parts[1] = key->b != NULL ? tnk__eval(run, key->b) : tnk__missing();
  parts[2] = key->c != NULL ? tnk__eval(run, key->c) : tnk__missing();
  return tnk__slice(run, of, parts[0], parts[1], parts[2]);
}

static tnk__value_t eval_cond(tnk__run_t *run, const tnk__node_t *node) {
  const tnk__value_t test = tnk__eval(run, node->a);

  if (run->err != TNK_OK)
    return tnk__value_undefined();
  if (tnk__truth(test))
    return tnk__eval(run, node->b);
  return node->c != NULL ? tnk__eval(run, node->c) : tnk__value_undefined();
}

static int truth(const tnk__run_t *run, tnk__value_t value) {
  return run->err == TNK_OK && tnk__truth(value);
}

static tnk__value_t eval_plain(tnk__run_t *run, const tnk__node_t *node) {
  tnk__value_t left;

  switch (node->kind) {
  case TNK__NODE_LIST:
  case TNK__NODE_TUPLE:
    return eval_list(run, node);
  case TNK__NODE_DICT:
    return eval_dict(run, node);
  case TNK__NODE_NOT:
    return tnk__value_bool(!truth(run, tnk__eval(run, node->a)));
  case TNK__NODE_NEG:
  case TNK__NODE_POS:
    return tnk__negate(run, tnk__eval(run, node->a),
                       node->kind == TNK__NODE_NEG);
  case TNK__NODE_BINARY:
    if (node->op == TNK__OP_ADD)
      return eval_sum(run, node, 0);
    left = tnk__eval(run, node->a);
    return tnk__binary(run, (tnk__op_t)node->op, left, tnk__eval(run, node->b));
  case TNK__NODE_CONCAT:
    return eval_concat(run, node);
  case TNK__NODE_AND:
    left = tnk__eval(run, node->a);
    return truth(run, left) ? tnk__eval(run, node->b) : left;
  case TNK__NODE_OR:
    left = tnk__eval(run, node->a);
    return truth(run, left) ? left : tnk__eval(run, node->b);
  case TNK__NODE_COMPARE:
    return eval_compare(run, node);
  case TNK__NODE_COND:
    return eval_cond(run, node);
  default:
    return tnk__fail(run, TNK_EUNSUPPORTED,
                     "a slice stands where none is known");
  }
}

/* An attribute of the variable `loop`. A method refers to the loop. */
static tnk__value_t eval_loop_attr(tnk__run_t *run, const tnk__node_t *node,
                                   tnk__value_t loop) {
  tnk__value_t value;

  if (tnk__charge(run, TNK__COST_LOOP, 1) &&
      tnk__class_of(run, loop)->attr(run, loop, node->value, &value))
    return value;
  run->n_kept++;
  return tnk__getattr(run, loop, node->value);
}

static tnk__value_t eval_getattr(tnk__run_t *run, const tnk__node_t *node) {
  const tnk__value_t of = eval_owner(run, node->a);
  tnk__value_t dict = of;
  tnk__value_t value;

  if (run->err != TNK_OK)
    return tnk__value_undefined();
  if (tnk__is_object(of, TNK__OBJECT_LOOP))
    return eval_loop_attr(run, node, of);
  /* Fast path: nearly all attributes are members of messages or namespaces. */
  if (tnk__is_object(of, TNK__OBJECT_NAMESPACE) &&
      (node->value.n_text == 0 || node->value.as.text[0] != '_'))
    dict = (tnk__value_t){.kind = TNK__VALUE_DICT, .as.dict = of.as.dict};
  if (!node->flag || dict.kind != TNK__VALUE_DICT ||
      !tnk__charge(run, TNK__COST_MEMBER, 1) ||
      !tnk__charge_name(run, node->value))
    return tnk__getattr(run, of, node->value);
  return tnk__value_look_up(dict, node->value, &value)
             ? value
             : tnk__undefined(node->value);
}

tnk__value_t tnk__eval(tnk__run_t *run, const tnk__node_t *node) {
  tnk__value_t value;

  if (node->kind == TNK__NODE_CONST) {
    tnk__charge(run, TNK__COST_CONST, 1);
    return node->value;
  }
  if (!tnk__charge(run, TNK__COST_NODE, 1))
    return tnk__value_undefined();
  run->line = node->line;
  if (node->kind == TNK__NODE_NAME)
    return eval_name(run, node);
  if (!tnk__enter(run, 1))
    return tnk__value_undefined();
  switch (node->kind) {
  case TNK__NODE_GETATTR:
    value = eval_getattr(run, node);
    break;
  case TNK__NODE_GETITEM:
    value = eval_getitem(run, node);
    break;
  case TNK__NODE_CALL:
    value = tnk__eval_call(run, node, tnk__missing());
    break;
  case TNK__NODE_FILTER:
    value = tnk__eval_filter(run, node, tnk__missing());
    break;
  case TNK__NODE_TEST:
    value = apply(run, node, tnk__eval(run, node->a), "test");
    break;
  default:
    value = eval_plain(run, node);
  }
  run->depth--;
  return value;
}

void tnk__eval_print(tnk__run_t *run, const tnk__node_t *node) {
  if (node->kind != TNK__NODE_BINARY || node->op != TNK__OP_ADD) {
    tnk__print(run, run->out, tnk__eval(run, node));
  } else if (tnk__charge(run, TNK__COST_NODE, 1) && tnk__enter(run, 1)) {
    run->line = node->line;
    (void)eval_sum(run, node, 1);
    run->depth--;
  }
}
