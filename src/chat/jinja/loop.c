/* SPDX-License-Identifier: MIT */
/* {% for %} and the variable `loop`. */
#include <string.h>

#include "chat/jinja/run.h"
#include "tnk/error.h"

typedef struct tnk__loop {
  struct tnk__loop *next; /* next in the list of free ones */
  uint64_t n_kept;        /* of the run, at the start */
  tnk__item_t item;
  const tnk__node_t *node;
  tnk__frame_t *frame;
  tnk__iter_t iter;
  tnk__value_t current, before, after;
  tnk__value_t changed; /* TUPLE, or undefined at first */
  int has_after, is_over;
  int is_tested; /* the remaining items have passed the test */
  int64_t index0;
  int64_t length; /* -1: unknown */
  int64_t depth0;
} loop_t;

/* Get the next item. Most loops go through a list or a range. */
static int step(tnk__run_t *run, tnk__iter_t *iter, tnk__value_t *out) {
  const tnk__value_t of = iter->of;
  const int is_range = tnk__is_object(of, TNK__OBJECT_RANGE);
  const tnk__range_t *range = of.as.object;

  if (of.kind != TNK__VALUE_LIST && of.kind != TNK__VALUE_TUPLE && !is_range)
    return tnk__iter_next(run, iter, out);
  if (!tnk__charge(run, TNK__COST_NEXT, 1) ||
      iter->at >= (is_range ? range->n : of.as.list->n))
    return 0;
  *out = is_range ? tnk__value_int(tnk__range_at(range, iter->at))
                  : of.as.list->items[iter->at];
  iter->at++;
  return 1;
}

/* Get the next item that passes the test of the loop. */
static int pull(tnk__run_t *run, loop_t *loop, tnk__value_t *out) {
  const tnk__node_t *node = loop->node;
  tnk__frame_t *frame = run->frame;
  int found = 0;

  if (loop->is_over)
    return 0;
  run->frame = loop->frame;
  while (!found && step(run, &loop->iter, out)) {
    if (node->c == NULL || loop->is_tested) {
      found = 1;
      break;
    }
    tnk__assign(run, node->list.items[0], *out);
    found = tnk__truth(tnk__eval(run, node->c)) && run->err == TNK_OK;
  }
  run->frame = frame;
  loop->is_over = !found;
  return found && run->err == TNK_OK;
}

static int peek(tnk__run_t *run, loop_t *loop) {
  if (!loop->has_after)
    loop->has_after = pull(run, loop, &loop->after);
  return loop->has_after;
}

static int next(tnk__run_t *run, loop_t *loop) {
  tnk__value_t item;

  if (loop->has_after) {
    item = loop->after;
    loop->has_after = 0;
  } else if (!pull(run, loop, &item)) {
    return 0;
  }
  loop->index0++;
  loop->before = loop->current;
  loop->current = item;
  loop->item.value = item;
  return 1;
}

/* The number of items. Items of a stream, or of a loop with a test, are all
 * read first. */
static int64_t length(tnk__run_t *run, loop_t *loop) {
  tnk__value_t rest;
  tnk__value_t item;
  loop_t fresh;

  if (loop->length >= 0)
    return loop->length;
  loop->length = loop->node->c == NULL ? tnk__length(run, loop->iter.of) : -1;
  if (loop->length >= 0)
    return loop->length;
  rest = tnk__value_list(run->heap);
  fresh = *loop;
  while (pull(run, &fresh, &item))
    tnk__value_append(run->heap, rest, item);
  if (!tnk__is_fine(run))
    return 0;
  loop->length = (int64_t)rest.as.list->n + loop->index0 + 1 + loop->has_after;
  /* These items have already passed the test. */
  loop->iter = (tnk__iter_t){.of = rest};
  loop->is_tested = 1;
  return loop->length;
}

static tnk__value_t attribute(tnk__run_t *run, loop_t *loop,
                              tnk__value_t name) {
  if (tnk__value_is(name, "index"))
    return tnk__value_int(loop->index0 + 1);
  if (tnk__value_is(name, "index0"))
    return tnk__value_int(loop->index0);
  if (tnk__value_is(name, "first"))
    return tnk__value_bool(loop->index0 == 0);
  if (tnk__value_is(name, "last"))
    return tnk__value_bool(!peek(run, loop));
  if (tnk__value_is(name, "length"))
    return tnk__value_int(length(run, loop));
  if (tnk__value_is(name, "revindex"))
    return tnk__value_int(length(run, loop) - loop->index0);
  if (tnk__value_is(name, "revindex0"))
    return tnk__value_int(length(run, loop) - loop->index0 - 1);
  if (tnk__value_is(name, "depth"))
    return tnk__value_int(loop->depth0 + 1);
  if (tnk__value_is(name, "depth0"))
    return tnk__value_int(loop->depth0);
  if (tnk__value_is(name, "previtem"))
    return loop->index0 == 0 ? tnk__value_undefined() : loop->before;
  if (tnk__value_is(name, "nextitem"))
    return peek(run, loop) ? loop->after : tnk__value_undefined();
  return tnk__missing();
}

static tnk__value_t cycle(tnk__run_t *run, tnk__value_t self,
                          const tnk__value_t *v, const tnk__args_t *args) {
  const loop_t *loop = self.as.object;

  (void)v;
  if (args->n == 0 || args->n_named > 0)
    return tnk__fail(run, TNK_EINVAL, "loop.cycle() needs items");
  return args->items[(size_t)loop->index0 % args->n];
}

static tnk__value_t changed(tnk__run_t *run, tnk__value_t self,
                            const tnk__value_t *v, const tnk__args_t *args) {
  loop_t *loop = self.as.object;
  const tnk__value_t now = tnk__value_tuple(run->heap);

  (void)v;
  if (args->n_named > 0)
    return tnk__fail(run, TNK_EINVAL, "loop.changed() takes no names");
  if (!tnk__charge(run, TNK__COST_ITEM, args->n))
    return tnk__value_undefined();
  for (size_t i = 0; i < args->n; i++)
    tnk__value_append(run->heap, now, args->items[i]);
  if (loop->changed.kind == TNK__VALUE_TUPLE &&
      tnk__charge_equal(run, loop->changed, now) &&
      tnk__value_equal(loop->changed, now))
    return tnk__value_bool(0);
  loop->changed = now;
  return tnk__value_bool(1);
}

static const tnk__builtin_t functions[] = {
    {"changed", NULL, 0, changed},
    {"cycle", NULL, 0, cycle},
    {NULL, NULL, 0, NULL},
};

/* ---- Running ---- */

static loop_t *take_loop(tnk__run_t *run) {
  loop_t *loop = run->free_loops;

  if (loop == NULL)
    return tnk__heap_alloc(run->heap, sizeof(*loop));
  run->free_loops = loop->next;
  return loop;
}

/* Release the memory of a loop, unless something may still refer to it.
 * Templates run short loops once for each message, or for each pair of
 * messages. */
static void give_loop(tnk__run_t *run, const tnk__node_t *node, loop_t *loop) {
  if (loop->n_kept != run->n_kept)
    return;
  run->frame->slots[node->loop_slot] = tnk__missing();
  loop->next = run->free_loops;
  run->free_loops = loop;
}

/* Run the loop in the current frame. */
static void run_loop(tnk__run_t *run, const tnk__node_t *node,
                     tnk__value_t items, int64_t depth0) {
  loop_t *loop = take_loop(run);
  int is_whole = 0; /* an iteration was completed */

  if (loop == NULL)
    return;
  *loop = (loop_t){.n_kept = run->n_kept,
                   .item = {.outer = run->item},
                   .node = node,
                   .frame = run->frame,
                   .index0 = -1,
                   .length = -1,
                   .depth0 = depth0};
  if (!tnk__iter_begin(run, &loop->iter, items))
    return;
  if (node->third != NULL)
    tnk__scope_enter(run, node->third);
  run->item = &loop->item;
  while (next(run, loop)) {
    tnk__assign(run, node->a, loop->current);
    run->frame->slots[node->loop_slot] = tnk__object(TNK__OBJECT_LOOP, loop);
    tnk__scope_enter(run, node->scope);
    tnk__exec_all(run, &node->body);
    if (run->err != TNK_OK)
      return;
    is_whole |= run->flow == TNK__GO_ON;
    if (run->flow == TNK__GO_BREAK) {
      run->flow = TNK__GO_ON;
      break;
    }
    run->flow = TNK__GO_ON;
  }
  run->item = loop->item.outer;
  tnk__scope_leave(run, node->scope);
  give_loop(run, node, loop);
  if (!is_whole && node->other.n > 0) {
    tnk__scope_enter(run, node->second);
    tnk__exec_all(run, &node->other);
    tnk__scope_leave(run, node->second);
  }
}

/* Run a recursive loop over these items, and return its output. */
static tnk__value_t run_recursive(tnk__run_t *run, const tnk__node_t *node,
                                  tnk__frame_t *parent, tnk__value_t items,
                                  int64_t depth0) {
  tnk__frame_t *outer = run->frame;
  size_t mark;

  if (!tnk__enter(run, 1))
    return tnk__value_undefined();
  mark = tnk__capture(run);
  run->frame = tnk__frame_new(run, parent, node->scope->n_slots);
  if (run->frame != NULL)
    run_loop(run, node, items, depth0);
  run->frame = outer;
  run->depth--;
  return tnk__captured(run, mark);
}

void tnk__exec_for(tnk__run_t *run, const tnk__node_t *node) {
  const tnk__value_t items = tnk__eval(run, node->b);

  if (run->err != TNK_OK)
    return;
  if (node->flag)
    tnk__print(run, run->out, run_recursive(run, node, run->frame, items, 0));
  else
    run_loop(run, node, items, 0);
}

/* ---- The variable ---- */

static int loop_attr(tnk__run_t *run, tnk__value_t self, tnk__value_t name,
                     tnk__value_t *out) {
  *out = attribute(run, self.as.object, name);
  return tnk__is_given(*out);
}

static int64_t loop_length(tnk__run_t *run, tnk__value_t self) {
  return length(run, self.as.object);
}

static void loop_print(tnk__run_t *run, tnk__buf_t *out, tnk__value_t self,
                       int depth) {
  loop_t *loop = self.as.object;
  const int64_t n = length(run, loop);

  (void)depth;
  tnk__buf_printf(out, "<LoopContext %lld/%lld>", (long long)loop->index0 + 1,
                  (long long)n);
}

/* Run the loop again, over the items inside an item. */
static tnk__value_t loop_call(tnk__run_t *run, tnk__value_t self,
                              const tnk__args_t *args) {
  const loop_t *loop = self.as.object;

  if (!loop->node->flag)
    return tnk__fail(run, TNK_EINVAL,
                     "only a loop that is \"recursive\" can be called");
  if (args->n != 1 || args->n_named > 0)
    return tnk__fail(run, TNK_EINVAL, "loop() takes what to go through");
  return run_recursive(run, loop->node, loop->frame->parent, args->items[0],
                       loop->depth0 + 1);
}

static const tnk__builtin_t *const methods[] = {functions, NULL};

const tnk__class_t tnk__class_loop = {
    .name = "loop",
    .methods = methods,
    .attr = loop_attr,
    .call = loop_call,
    .length = loop_length,
    .print = loop_print,
};
