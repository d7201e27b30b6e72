/* SPDX-License-Identifier: MIT */
#include "chat/jinja/template.h"

#include "chat/jinja/parse.h"
#include "chat/jinja/run.h"
#include "lib/base/alloc.h"
#include "tnk/error.h"

#define MIB ((size_t)1024 * 1024)

/* Maximum memory of a compiled template. */
#define MAX_TREE (64 * MIB)

/* Maximum size of a template in bytes. */
#define MAX_TEXT MIB

/* Maximum work for one constant, and the cost of setting up a run for it. */
#define MAX_CONSTANT ((uint64_t)20 * 1000 * 1000)
#define CONSTANT ((uint64_t)20 * 1000)

struct tnk__template {
  const tnk_allocator_t *alloc;
  tnk__heap_t heap;
  tnk__node_t *root;
};

/* Returns whether the reference can write a value as a constant. */
static int is_plain(tnk__value_t value, int depth) {
  if (value.kind == TNK__VALUE_UNDEFINED || value.kind == TNK__VALUE_OBJECT ||
      depth > 64)
    return 0;
  if (value.kind == TNK__VALUE_LIST || value.kind == TNK__VALUE_TUPLE)
    for (size_t i = 0; i < value.as.list->n; i++)
      if (!is_plain(value.as.list->items[i], depth + 1))
        return 0;
  if (value.kind == TNK__VALUE_DICT)
    for (size_t i = 0; i < value.as.dict->n; i++)
      if (!is_plain(value.as.dict->entries[i].key, depth + 1) ||
          !is_plain(value.as.dict->entries[i].value, depth + 1))
        return 0;
  return 1;
}

/* Returns whether an expression can be evaluated without variables and calls,
 * and whether it is valid as the name of a member (node.h). */
static int is_known(const tnk__node_t *node, const tnk_allocator_t *alloc,
                    uint64_t *budget) {
  tnk__why_t why;
  tnk__heap_t heap;
  tnk__buf_t out;
  tnk__run_t run = {.tables = &tnk__library,
                    .heap = &heap,
                    .out = &out,
                    .why = &why,
                    .variables = tnk__value_undefined(),
                    .env = {.max_output = MIB, .max_depth = 100}};
  tnk__value_t value;
  int result;

  if (*budget <= CONSTANT) {
    *budget = 0;
    return 0;
  }
  *budget -= CONSTANT;
  run.env.max_work = *budget < MAX_CONSTANT ? *budget : MAX_CONSTANT;

  tnk__heap_init(&heap, alloc, MIB);
  tnk__buf_init(&out, alloc, MIB);
  value = tnk__eval(&run, node);
  tnk__charge(&run, 0, 0); /* charge for its memory */
  result = tnk__is_fine(&run) && is_plain(value, 0)
               ? 1 + !tnk__value_is_hashable(value)
               : 0;
  *budget -= run.n_work;
  tnk__buf_deinit(&out);
  tnk__heap_deinit(&heap);
  return result;
}

static int compile(tnk__template_t *tpl, const char *text, size_t n,
                   tnk__why_t *why) {
  tnk__tokens_t tokens;
  int err;

  if (n > MAX_TEXT)
    return tnk__why(why, TNK_ETOOBIG, 0, "the template is longer than 1 MiB");
  err = tnk__lex(&tokens, &tpl->heap, text, n, why);
  if (err == TNK_OK)
    err = tnk__parse(&tpl->root, &tnk__library, &tpl->heap, &tokens, why);
  if (err == TNK_OK)
    err = tnk__scope_resolve(tpl->root, is_known, &tpl->heap, why);
  return err;
}

int tnk__template_compile(tnk__template_t **out, const tnk_allocator_t *alloc,
                          const char *text, size_t n, tnk__why_t *why) {
  tnk__template_t *tpl = tnk__calloc(alloc, 1, sizeof(*tpl));
  int err;

  *out = NULL;
  if (tpl == NULL)
    return tnk__why(why, TNK_ENOMEM, 0, "no memory is left");
  tpl->alloc = alloc;
  tnk__heap_init(&tpl->heap, alloc, MAX_TREE);
  err = compile(tpl, text, n, why);
  if (err == TNK_OK)
    *out = tpl;
  else
    tnk__template_free(tpl);
  return err;
}

void tnk__template_free(tnk__template_t *tpl) {
  if (tpl == NULL)
    return;
  tnk__heap_deinit(&tpl->heap);
  tnk__free(tpl->alloc, tpl);
}

static tnk__template_env_t with_defaults(const tnk__template_env_t *env) {
  tnk__template_env_t all = {.now_s = NULL};

  if (env != NULL)
    all = *env;
  if (all.max_work == 0)
    all.max_work = TNK__COST_MAX;
  if (all.max_cpu_ns == 0)
    all.max_cpu_ns = TNK__COST_MAX_CPU_NS;
  if (all.max_output == 0)
    all.max_output = 64 * MIB;
  if (all.max_depth == 0)
    all.max_depth = 300;
  return all;
}

int tnk__template_render(const tnk__template_t *tpl, tnk__heap_t *heap,
                         tnk__value_t variables, const tnk__template_env_t *env,
                         tnk__buf_t *out, tnk__buf_t *spans, tnk__why_t *why) {
  tnk__run_t run = {.tables = &tnk__library,
                    .heap = heap,
                    .out = out,
                    .spans = spans,
                    .why = why,
                    .variables = variables,
                    .n_memory = heap->arena.total,
                    .env = with_defaults(env),
                    .out_start = out->len};

  if (run.env.cpu_ns != NULL)
    run.cpu_ns = run.env.cpu_ns();
  run.frame = tnk__frame_new(&run, NULL, tpl->root->scope->n_slots);
  if (run.frame != NULL) {
    tnk__scope_enter(&run, tpl->root->scope);
    tnk__exec_all(&run, &tpl->root->body);
    tnk__is_fine(&run);
  }
  if (run.env.used != NULL)
    *run.env.used = run.n_work;
  if (run.err != TNK_OK && out->len > run.out_start)
    out->len = run.out_start;
  return run.err;
}
