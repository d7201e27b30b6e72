/* SPDX-License-Identifier: MIT */
/*
 * Locations of variables, by the rules of the reference. A scope determines its
 * own names from its source text. A name that is read first belongs to an outer
 * scope, or to the caller's variables. A name that is written first starts with
 * the value of the outer scope, or undefined, even if the caller has a variable
 * of that name. The branches of an if are analyzed separately. A name that only
 * some of them write is first looked up outside.
 *
 * The scopes of a unit (a template, a macro, a recursive loop) share its slots.
 * A nested unit accesses the current slots of the outer one.
 */
#include "chat/jinja/cost.h"
#include "chat/jinja/node.h"

#include <string.h>

#include "tnk/error.h"

/* Maximum number of comparisons of names. */
enum { MAX_COMPARED = 20 * 1000 * 1000 };

typedef struct {
  uint32_t depth, n_slots;
} unit_t;

/* A slot, with the depth of its unit. */
typedef struct {
  uint32_t depth, slot;
} place_t;

typedef struct {
  tnk__value_t name;
  place_t place, alias;
  tnk__load_kind_t load;
  int is_stored;
} entry_t;

typedef struct symbols symbols_t;
struct symbols {
  symbols_t *parent;
  symbols_t *idents; /* table that assigns the slots: this one, or the one that
                        it was copied from */
  unit_t *unit;
  entry_t *entries;
  size_t n, cap;
};

typedef struct {
  tnk__heap_t *heap;   /* memory of the tree */
  tnk__heap_t scratch; /* memory of this pass */
  tnk__why_t *why;
  uint64_t n_compared;
  uint64_t budget; /* remaining budget for constants */
  tnk__is_known_cb is_known;
  const tnk__node_t *printed; /* the printed expression that contains the
                                 current node, or NULL */
  int is_lacking;             /* some filter or test does not exist */
  int err;
} pass_t;

static void fail(pass_t *pass, int code, uint32_t line, const char *what) {
  if (pass->err == TNK_OK)
    pass->err = tnk__why(pass->why, code, line, "%s", what);
}

static void *take(pass_t *pass, tnk__heap_t *heap, size_t size) {
  void *data = tnk__heap_alloc(heap, size);

  if (data == NULL)
    fail(pass, heap->err, 0, "no memory is left");
  return data;
}

/* ---- Tables of names ---- */

static entry_t *find_own(pass_t *pass, symbols_t *s, tnk__value_t name) {
  pass->n_compared += s->n + 1;
  if (pass->n_compared > MAX_COMPARED)
    fail(pass, TNK_ETOOBIG, 0, "there are too many variables");
  for (size_t i = 0; i < s->n && pass->err == TNK_OK; i++)
    if (s->entries[i].name.n_text == name.n_text &&
        memcmp(s->entries[i].name.as.text, name.as.text, name.n_text) == 0)
      return &s->entries[i];
  return NULL;
}

static entry_t *find(pass_t *pass, symbols_t *s, tnk__value_t name) {
  entry_t *entry = NULL;

  for (; s != NULL && entry == NULL && pass->err == TNK_OK; s = s->parent)
    entry = find_own(pass, s, name);
  return entry;
}

static entry_t *append(pass_t *pass, symbols_t *s, const entry_t *entry) {
  entry_t *entries;

  if (s->n == s->cap) {
    const size_t cap = s->cap == 0 ? 8 : s->cap * 2;

    entries = take(pass, &pass->scratch, cap * sizeof(*entries));
    if (entries == NULL)
      return NULL;
    if (s->n > 0)
      memcpy(entries, s->entries, s->n * sizeof(*entries));
    s->entries = entries;
    s->cap = cap;
  }
  s->entries[s->n] = *entry;
  return &s->entries[s->n++];
}

/* A name has the same slot in all copies of a table. */
static uint32_t slot_for(pass_t *pass, symbols_t *s, tnk__value_t name) {
  entry_t *known = s->idents == s ? NULL : find_own(pass, s->idents, name);
  entry_t entry = {.name = name};

  if (known != NULL)
    return known->place.slot;
  entry.place.slot = s->unit->n_slots++;
  if (s->idents != s)
    append(pass, s->idents, &entry);
  return entry.place.slot;
}

static void define(pass_t *pass, symbols_t *s, tnk__value_t name,
                   tnk__load_kind_t load, place_t alias, int is_stored) {
  entry_t entry = {
      .name = name, .load = load, .alias = alias, .is_stored = is_stored};

  entry.place.depth = s->unit->depth;
  entry.place.slot = slot_for(pass, s, name);
  if (pass->err == TNK_OK)
    append(pass, s, &entry);
}

static void declare(pass_t *pass, symbols_t *s, tnk__value_t name) {
  entry_t *own = find_own(pass, s, name);

  if (own != NULL) {
    own->load = TNK__LOAD_PARAM;
    own->is_stored = 1;
    return;
  }
  define(pass, s, name, TNK__LOAD_PARAM, (place_t){0, 0}, 1);
}

static void store(pass_t *pass, symbols_t *s, tnk__value_t name) {
  entry_t *own = find_own(pass, s, name);
  entry_t *outer;

  if (own != NULL) {
    own->is_stored = 1;
    return;
  }
  outer = s->parent != NULL ? find(pass, s->parent, name) : NULL;
  if (outer != NULL)
    define(pass, s, name, TNK__LOAD_ALIAS, outer->place, 1);
  else
    define(pass, s, name, TNK__LOAD_UNDEFINED, (place_t){0, 0}, 1);
}

static void load(pass_t *pass, symbols_t *s, tnk__value_t name) {
  if (find(pass, s, name) == NULL)
    define(pass, s, name, TNK__LOAD_RESOLVE, (place_t){0, 0}, 0);
}

static symbols_t *inner(pass_t *pass, symbols_t *parent, unit_t *unit) {
  symbols_t *s = take(pass, &pass->scratch, sizeof(*s));
  symbols_t *idents = take(pass, &pass->scratch, sizeof(*idents));

  if (s == NULL || idents == NULL)
    return NULL;
  *idents = (symbols_t){.idents = idents, .unit = unit};
  *s = (symbols_t){.parent = parent, .idents = idents, .unit = unit};
  return s;
}

static unit_t *new_unit(pass_t *pass, const unit_t *outer) {
  unit_t *unit = take(pass, &pass->scratch, sizeof(*unit));

  if (unit != NULL)
    *unit = (unit_t){.depth = outer != NULL ? outer->depth + 1 : 0};
  return unit;
}

/* ---- Names of a scope ---- */

static void collect(pass_t *pass, symbols_t *s, const tnk__node_t *node);

static void collect_all(pass_t *pass, symbols_t *s, const tnk__nodes_t *list) {
  for (uint32_t i = 0; i < list->n && pass->err == TNK_OK; i++)
    collect(pass, s, list->items[i]);
}

static void collect_target(pass_t *pass, symbols_t *s,
                           const tnk__node_t *target, int is_param) {
  if (target->kind == TNK__NODE_NSREF)
    load(pass, s, target->a->value);
  else if (target->kind == TNK__NODE_TUPLE)
    for (uint32_t i = 0; i < target->list.n; i++)
      collect_target(pass, s, target->list.items[i], is_param);
  else if (is_param)
    declare(pass, s, target->value);
  else
    store(pass, s, target->value);
}

static void copy_into(pass_t *pass, symbols_t *copy, const symbols_t *from) {
  *copy = *from;
  copy->entries = NULL;
  copy->cap = 0;
  copy->n = 0;
  for (size_t i = 0; i < from->n && pass->err == TNK_OK; i++)
    append(pass, copy, &from->entries[i]);
}

/* Merge the names of a branch. Names that only the branch has stored are added
 * to `fresh`. */
static void merge(pass_t *pass, symbols_t *s, const symbols_t *branch,
                  symbols_t *fresh) {
  for (size_t i = 0; i < branch->n && pass->err == TNK_OK; i++) {
    const entry_t *entry = &branch->entries[i];
    entry_t *own = find_own(pass, s, entry->name);
    const int was_stored = own != NULL && own->is_stored;

    if (entry->is_stored && !was_stored &&
        find_own(pass, fresh, entry->name) == NULL)
      append(pass, fresh, entry);
    if (own == NULL) {
      own = append(pass, s, entry);
      if (own != NULL)
        own->is_stored = 0; /* set below, after all branches are merged */
    } else {
      own->load = entry->load;
      own->alias = entry->alias;
    }
  }
}

static void collect_if(pass_t *pass, symbols_t *s, const tnk__node_t *node) {
  const tnk__nodes_t *const lists[] = {&node->body, &node->more, &node->other};
  symbols_t branches[3];
  symbols_t fresh = {.entries = NULL};

  collect(pass, s, node->a);
  for (size_t i = 0; i < 3; i++) {
    copy_into(pass, &branches[i], s);
    collect_all(pass, &branches[i], lists[i]);
  }
  for (size_t i = 0; i < 3; i++)
    merge(pass, s, &branches[i], &fresh);
  for (size_t i = 0; i < fresh.n && pass->err == TNK_OK; i++) {
    const tnk__value_t name = fresh.entries[i].name;
    entry_t *own = find_own(pass, s, name);
    entry_t *outer = s->parent != NULL ? find(pass, s->parent, name) : NULL;

    if (own == NULL)
      continue;
    own->is_stored = 1;
    own->load = outer != NULL ? TNK__LOAD_ALIAS : TNK__LOAD_RESOLVE;
    if (outer != NULL)
      own->alias = outer->place;
  }
}

static void collect(pass_t *pass, symbols_t *s, const tnk__node_t *node) {
  if (node == NULL || pass->err != TNK_OK)
    return;
  switch (node->kind) {
  case TNK__NODE_NAME:
    load(pass, s, node->value);
    return;
  case TNK__NODE_IF:
    collect_if(pass, s, node);
    return;
  case TNK__NODE_SET:
    collect(pass, s, node->b);
    collect_target(pass, s, node->a, 0);
    return;
  case TNK__NODE_SETBLOCK:
    collect_target(pass, s, node->a, 0);
    return;
  case TNK__NODE_MACRO:
    store(pass, s, node->a->value);
    return;
  case TNK__NODE_FOR:
  case TNK__NODE_CALLBLOCK:
  case TNK__NODE_FILTERBLOCK:
    collect(pass, s, node->b);
    return;
  case TNK__NODE_WITH:
    collect_all(pass, s, &node->more);
    return;
  case TNK__NODE_GENERATION:
    return;
  default:
    collect(pass, s, node->a);
    collect(pass, s, node->b);
    collect(pass, s, node->c);
    collect_all(pass, s, &node->list);
    collect_all(pass, s, &node->more);
  }
}

/* ---- Writing the result to the tree ---- */

/* Properties of the context of a node. */
enum {
  SOFT = 1,  /* it may never run, so a missing filter or test is an error only
                when it runs */
  FOLDED = 2 /* its constant parts are evaluated in advance */
};

static void annotate(pass_t *pass, symbols_t *s, tnk__node_t *node, int how);

static void annotate_all(pass_t *pass, symbols_t *s, tnk__nodes_t *list,
                         int how) {
  for (uint32_t i = 0; i < list->n && pass->err == TNK_OK; i++)
    annotate(pass, s, list->items[i], how);
}

static tnk__ref_t ref_to(const symbols_t *s, place_t place) {
  return (tnk__ref_t){s->unit->depth - place.depth, place.slot};
}

static tnk__scope_t *finish(pass_t *pass, const symbols_t *s) {
  tnk__scope_t *scope = take(pass, pass->heap, sizeof(*scope));

  if (scope == NULL)
    return NULL;
  *scope = (tnk__scope_t){.n_loads = 0};
  scope->loads = take(pass, pass->heap, s->n * sizeof(*scope->loads) + 1);
  if (scope->loads == NULL)
    return NULL;
  for (size_t i = 0; i < s->n; i++)
    scope->loads[scope->n_loads++] = (tnk__load_t){
        s->entries[i].load, s->entries[i].place.slot,
        s->entries[i].load == TNK__LOAD_ALIAS ? ref_to(s, s->entries[i].alias)
                                              : (tnk__ref_t){0, 0},
        s->entries[i].name};
  return scope;
}

static uint32_t param_slot(pass_t *pass, symbols_t *s, const char *name) {
  const tnk__value_t text = tnk__value_text(name, strlen(name));
  const entry_t *entry;

  declare(pass, s, text);
  entry = find_own(pass, s, text);
  return entry != NULL ? entry->place.slot : 0;
}

static void annotate_for(pass_t *pass, symbols_t *s, tnk__node_t *node,
                         int how) {
  unit_t *unit = node->flag ? new_unit(pass, s->unit) : s->unit;
  symbols_t *body = inner(pass, s, unit);
  symbols_t *test = inner(pass, s, unit);
  symbols_t *other = inner(pass, s, unit);

  if (pass->err != TNK_OK)
    return;
  if (tnk__node_sets_loop(node)) {
    fail(pass, TNK_EINVAL, node->line, "{% for %} cannot assign to \"loop\"");
    return;
  }
  annotate(pass, s, node->b, how);
  node->loop_slot = param_slot(pass, body, "loop");
  collect_target(pass, body, node->a, 1);
  collect_all(pass, body, &node->body);
  collect_all(pass, other, &node->other);
  if (node->c != NULL) {
    collect_target(pass, test, node->list.items[0], 1);
    collect(pass, test, node->c);
    annotate(pass, test, node->list.items[0], 0);
    annotate(pass, test, node->c, 0);
    node->third = finish(pass, test);
  }
  annotate(pass, body, node->a, 0);
  annotate_all(pass, body, &node->body, 0);
  annotate_all(pass, other, &node->other, 0);
  node->scope = finish(pass, body);
  node->second = finish(pass, other);
  if (node->flag && node->scope != NULL)
    node->scope->n_slots = unit->n_slots;
}

/* Annotate a macro, or a body that is passed to one. */
static void annotate_macro(pass_t *pass, symbols_t *s, tnk__node_t *node) {
  unit_t *unit = new_unit(pass, s->unit);
  symbols_t *own = inner(pass, s, unit);
  tnk__macro_extras_t *extras = take(pass, pass->heap, sizeof(*extras));
  int has_kwargs = 0, has_varargs = 0;

  if (pass->err != TNK_OK)
    return;
  *extras = (tnk__macro_extras_t){.caller = 0};
  node->extras = extras;
  for (uint32_t i = 0; i < node->list.n; i++) {
    const tnk__value_t name = node->list.items[i]->value;

    declare(pass, own, name);
    if (tnk__value_is(name, "caller"))
      extras->explicit_caller = i + 1;
    has_kwargs |= tnk__value_is(name, "kwargs");
    has_varargs |= tnk__value_is(name, "varargs");
  }
  if (tnk__node_reads(&node->body, "caller")) {
    if (extras->explicit_caller == 0)
      extras->caller = 1 + param_slot(pass, own, "caller");
    else if (extras->explicit_caller + node->more.n <= node->list.n)
      fail(pass, TNK_EINVAL, node->line,
           "the parameter \"caller\" of a macro needs a default");
  }
  if (!has_kwargs && tnk__node_reads(&node->body, "kwargs"))
    extras->kwargs = 1 + param_slot(pass, own, "kwargs");
  if (!has_varargs && tnk__node_reads(&node->body, "varargs"))
    extras->varargs = 1 + param_slot(pass, own, "varargs");
  collect_all(pass, own, &node->more);
  collect_all(pass, own, &node->body);
  annotate_all(pass, own, &node->list, 0);
  annotate_all(pass, own, &node->more, 0);
  annotate_all(pass, own, &node->body, 0);
  node->scope = finish(pass, own);
  if (node->scope != NULL)
    node->scope->n_slots = unit->n_slots;
}

static void annotate_with(pass_t *pass, symbols_t *s, tnk__node_t *node,
                          int how) {
  symbols_t *own = inner(pass, s, s->unit);

  if (own == NULL)
    return;
  annotate_all(pass, s, &node->more, how);
  for (uint32_t i = 0; i < node->list.n; i++)
    collect_target(pass, own, node->list.items[i], 1);
  collect_all(pass, own, &node->body);
  annotate_all(pass, own, &node->list, 0);
  annotate_all(pass, own, &node->body, 0);
  node->scope = finish(pass, own);
}

/* Annotate a block whose output is captured, with its filter. */
static void annotate_block(pass_t *pass, symbols_t *s, tnk__node_t *node) {
  symbols_t *own = inner(pass, s, s->unit);

  if (own == NULL)
    return;
  annotate(pass, s, node->a, 0);
  collect_all(pass, own, &node->body);
  collect(pass, own, node->b);
  annotate_all(pass, own, &node->body, 0);
  annotate(pass, own, node->b, 0);
  node->scope = finish(pass, own);
}

static void annotate_children(pass_t *pass, symbols_t *s, tnk__node_t *node,
                              int how) {
  annotate(pass, s, node->a, how);
  annotate(pass, s, node->b, how);
  annotate(pass, s, node->c, how);
  annotate_all(pass, s, &node->list, how);
  annotate_all(pass, s, &node->more, how);
  annotate_all(pass, s, &node->body, how);
  annotate_all(pass, s, &node->other, how);
}

static void annotate_name(pass_t *pass, symbols_t *s, tnk__node_t *node) {
  const entry_t *entry = find(pass, s, node->value);

  if (entry != NULL)
    node->ref = ref_to(s, entry->place);
  else
    fail(pass, TNK_EINTERNAL, node->line, "a variable has no place");
}

/* Call the callback (node.h). Fails when the budget is used up. */
static int is_known(pass_t *pass, const tnk__node_t *node) {
  const int result =
      pass->is_known(node, pass->heap->arena.alloc, &pass->budget);

  if (pass->budget == 0)
    fail(pass, TNK_ETOOBIG, node->line, "constants take too much work");
  return result;
}

/* Returns whether parts of an expression may never be evaluated: parts that
 * depend on a condition. In the reference these are also parts that are not
 * needed to evaluate the expression in advance, as in "() and x is odd". */
static int is_left_out(pass_t *pass, const tnk__node_t *node) {
  switch (node->kind) {
  case TNK__NODE_IF:
  case TNK__NODE_COND:
    return 1;
  case TNK__NODE_AND:
  case TNK__NODE_OR:
  case TNK__NODE_COMPARE:
    return pass->is_lacking && is_known(pass, node);
  default:
    return 0;
  }
}

/* Returns whether the reference evaluates constant parts of an expression in
 * advance, whatever its conditions are. It does so for all operators, calls,
 * filters and tests. */
static int is_folded(const tnk__node_t *node) {
  return node->kind >= TNK__NODE_NOT && node->kind <= TNK__NODE_TEST;
}

/* Check a constant dict for keys that are not valid names. */
static void check_names(pass_t *pass, const tnk__node_t *node) {
  for (uint32_t i = 0; i + 1 < node->list.n; i += 2) {
    const int key = is_known(pass, node->list.items[i]);

    if (key == 0 || is_known(pass, node->list.items[i + 1]) == 0)
      return;
    /* The printed expression may be constant without this part. */
    if (key == 2 && (pass->printed == NULL || !is_known(pass, pass->printed)))
      fail(pass, TNK_EINVAL, node->list.items[i]->line,
           "this cannot be the name of a member");
  }
}

/* Returns whether a key of a dict is more than a constant. */
static int has_made_names(const tnk__node_t *node) {
  for (uint32_t i = 0; i < node->list.n; i += 2)
    if (node->list.items[i]->kind != TNK__NODE_CONST)
      return 1;
  return 0;
}

static void annotate(pass_t *pass, symbols_t *s, tnk__node_t *node, int how) {
  if (node == NULL || pass->err != TNK_OK)
    return;
  switch (node->kind) {
  case TNK__NODE_NAME:
    annotate_name(pass, s, node);
    return;
  case TNK__NODE_FOR:
    annotate_for(pass, s, node, how);
    return;
  case TNK__NODE_CALLBLOCK:
    annotate(pass, s, node->b, how);
    annotate_macro(pass, s, node);
    return;
  case TNK__NODE_MACRO:
    annotate(pass, s, node->a, 0);
    annotate_macro(pass, s, node);
    return;
  case TNK__NODE_GENERATION:
    annotate_macro(pass, s, node);
    return;
  case TNK__NODE_WITH:
    annotate_with(pass, s, node, how);
    return;
  case TNK__NODE_FILTERBLOCK:
  case TNK__NODE_SETBLOCK:
    annotate_block(pass, s, node);
    return;
  case TNK__NODE_FILTER:
  case TNK__NODE_TEST:
    if (node->known == NULL && !(how & SOFT) && pass->err == TNK_OK)
      pass->err = tnk__why(
          pass->why, TNK_EUNSUPPORTED, node->line, "there is no %s \"%.*s\"",
          node->kind == TNK__NODE_FILTER ? "filter" : "test",
          (int)(node->value.n_text < 80 ? node->value.n_text : 80),
          node->value.as.text);
    annotate_children(pass, s, node, how | FOLDED);
    return;
  case TNK__NODE_DICT:
    if ((how & FOLDED) && has_made_names(node))
      check_names(pass, node);
    annotate_children(pass, s, node, how);
    return;
  case TNK__NODE_OUTPUT:
    for (uint32_t i = 0; i < node->list.n; i++) {
      pass->printed = node->list.items[i];
      annotate(pass, s, node->list.items[i], how);
    }
    pass->printed = NULL;
    return;
  default:
    if (is_left_out(pass, node))
      how |= SOFT;
    annotate_children(pass, s, node, is_folded(node) ? how | FOLDED : how);
  }
}

int tnk__scope_resolve(tnk__node_t *root, tnk__is_known_cb known,
                       tnk__heap_t *heap, tnk__why_t *why) {
  pass_t pass = {.heap = heap,
                 .why = why,
                 .budget = TNK__COST_MAX_COMPILE,
                 .is_known = known,
                 .is_lacking = root->flag};
  symbols_t *s;
  unit_t *unit;

  tnk__heap_init(&pass.scratch, heap->arena.alloc, heap->arena.max);
  unit = new_unit(&pass, NULL);
  s = unit != NULL ? inner(&pass, NULL, unit) : NULL;
  if (s != NULL) {
    collect_all(&pass, s, &root->body);
    annotate_all(&pass, s, &root->body, 0);
    root->scope = finish(&pass, s);
    if (root->scope != NULL)
      root->scope->n_slots = unit->n_slots;
  }
  tnk__heap_deinit(&pass.scratch);
  return pass.err;
}
