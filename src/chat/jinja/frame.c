/* SPDX-License-Identifier: MIT */
/* Variables of a running template. */
#include "chat/jinja/run.h"
#include "tnk/error.h"

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
