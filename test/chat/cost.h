/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_CHAT_COST_H
#define TNK_TEST_CHAT_COST_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chat/jinja/cost.h"
#include "chat/jinja/library.h"
#include "chat/jinja/template.h"
#include "lib/base/alloc.h"
#include "tnk/error.h"

/*
 * Every operation that a template has, put together with values of every kind,
 * small and large, and what it costs: what it paid, and what was counted.
 */
extern uint64_t test_counted;

/* S: the value; A, B: arguments. */
static const char *const cost_shapes[] = {
    "S + A",
    "S - A",
    "S * A",
    "S / A",
    "S // A",
    "S % A",
    "S ** A",
    "S ~ A",
    "S ~ A ~ B",
    "S == A",
    "S != A",
    "S < A",
    "S in A",
    "A in S",
    "S[A]",
    "S[A:]",
    "S[:A]",
    "S[A:B]",
    "S[::A]",
    "S[::-1]",
    "-S",
    "not S",
    "S if A else B",
    "S and A",
    "{S: A}",
    "[S, A]",
    "S.name",
    "S.a.b",
    "'%s %r' % (S, A)",
    "'%5d' % S",
    "'%.9f' % S",
    "'{} {!r:>9}'.format(S, A)",
    "S | list | sort",
    "S | list | unique | list",
    "S | map('upper') | list",
    "S | map('string') | join(A)",
    "S | map(attribute=A) | list",
    "S | select('in', A) | list",
    "S | tojson(indent=A)",
    "S | tojson(indent=2, sort_keys=true)",
    "S | tojson(ensure_ascii=true)",
    "S | tojson(separators=(A, A))",
    "S | sort(attribute='0,1,2')",
    "S | safe | replace(A, B)",
    "(S | safe) % A",
    "(S | safe) ~ A",
    "dict(S)",
    "dict(**S)",
    "namespace(**S)",
    "range(*S)",
    "cycler(*S)",
    "(S | list)[-1]",
};

/* Values: each kind of text, list and number, of a size. */
enum { COST_TEXTS = 16, COST_VALUES = 32 };

static const char *const cost_texts[COST_TEXTS] = {
    "a",
    " ",
    "A",
    "\xc3\xa9",
    "\xce\xa3",
    "\xce\x90",
    "\x01",
    "<",
    "7",
    "\n",
    "%s",
    "{}",
    "a.",
    "\xef\xbc\xa1",
    "\xf0\x9d\x9f\x98",
    "\xc2\xa0",
};

static inline tnk__value_t cost_text(tnk__heap_t *heap, const char *unit,
                                     size_t n, const char *end) {
  const size_t each = strlen(unit);
  char *text = tnk__heap_alloc(heap, n + each + 8);
  size_t at = 0;

  if (text == NULL)
    return tnk__value_undefined();
  for (; at < n; at += each)
    memcpy(text + at, unit, each);
  memcpy(text + at, end, strlen(end));
  return tnk__value_text(text, at + strlen(end));
}

static inline tnk__value_t cost_list(tnk__heap_t *heap, size_t n,
                                     unsigned kind) {
  const tnk__value_t list = tnk__value_list(heap);
  const tnk__value_t text = cost_text(heap, "a", n < 64 ? n : 64, "b");

  for (size_t i = 0; i < n; i++) {
    tnk__value_t item = tnk__value_int((int64_t)(n - i));
    tnk__value_t pair;

    if (kind == 1)
      item = text;
    if (kind == 2) {
      pair = tnk__value_list(heap);
      tnk__value_append(heap, pair, item);
      tnk__value_append(heap, pair, text);
      item = pair;
    }
    if (kind == 3) {
      pair = tnk__value_dict(heap);
      tnk__value_set(heap, pair, "name", item);
      item = pair;
    }
    if (kind == 4)
      item = tnk__value_float((double)i * 1.1e-300);
    tnk__value_append(heap, list, item);
  }
  return list;
}

static inline tnk__value_t cost_dict(tnk__heap_t *heap, size_t n) {
  const tnk__value_t dict = tnk__value_dict(heap);
  char key[64];

  tnk__value_set(heap, dict, "name", tnk__value_text("b", 1));
  for (size_t i = 0; i < n; i++) {
    snprintf(key, sizeof(key), "key%zu", n - i);
    tnk__value_set(heap, dict, key, tnk__value_int((int64_t)i));
  }
  return dict;
}

/* The value with a number. */
static inline tnk__value_t cost_value(tnk__heap_t *heap, unsigned i, size_t n) {
  if (i < COST_TEXTS)
    return cost_text(heap, cost_texts[i], n, "");
  switch (i - COST_TEXTS) {
  case 0:
    return cost_text(heap, "a", n / 2, "b");
  case 1:
    return tnk__value_int((int64_t)n);
  case 2:
    return tnk__value_int(-1);
  case 3:
    return tnk__value_int(1);
  case 4:
    return tnk__value_float(1.7e308);
  case 5:
    return tnk__value_float(3.3e-300);
  case 6:
    return tnk__value_none();
  case 7:
    return tnk__value_text("upper", 5);
  case 8:
    return tnk__value_text("name", 4);
  case 9:
  case 10:
  case 11:
  case 12:
  case 13:
    return cost_list(heap, n, i - COST_TEXTS - 9);
  case 14:
    return cost_dict(heap, n);
  default:
    return cost_text(heap, "b", 1, "");
  }
}

/* Variables v0, v1 ... of a size. */
static inline tnk__value_t cost_variables(tnk__heap_t *heap, size_t n) {
  const tnk__value_t all = tnk__value_dict(heap);
  char name[16];

  for (unsigned i = 0; i < COST_VALUES; i++) {
    snprintf(name, sizeof(name), "v%u", i);
    tnk__value_set(heap, all, name, cost_value(heap, i, n));
  }
  return all;
}

/* ---- Operations ---- */

typedef struct {
  char kind; /* '|' filter, '?' test, '.' method, 'f'unction, 's'hape */
  const char *name;
  unsigned n_args; /* at most; those beyond two are not given */
} cost_op_t;

enum { COST_MAX_OPS = 400 };

typedef struct {
  cost_op_t items[COST_MAX_OPS];
  size_t n;
} cost_ops_t;

static inline unsigned cost_params(const char *params) {
  unsigned n = 0;

  if (params == NULL)
    return 2;
  params += *params == '/';
  for (; *params != '\0'; params++)
    n += n == 0 || params[-1] == ' ';
  return n < 2 ? n : 2;
}

static inline void cost_add(cost_ops_t *ops, char kind,
                            const tnk__builtin_t *table) {
  for (; table->name != NULL && ops->n < COST_MAX_OPS; table++)
    if ((table->name[0] | 0x20) >= 'a' && (table->name[0] | 0x20) <= 'z')
      ops->items[ops->n++] =
          (cost_op_t){kind, table->name, cost_params(table->params)};
}

static inline void cost_all(cost_ops_t *ops) {
  ops->n = 0;
  for (const tnk__builtin_t *const *t = tnk__library.filters; *t != NULL; t++)
    cost_add(ops, '|', *t);
  cost_add(ops, '?', tnk__library.tests);
  cost_add(ops, 'f', tnk__library.globals);
  for (unsigned kind = 0; kind < TNK__VALUE_OBJECT; kind++)
    for (const tnk__builtin_t *const *t = tnk__library.values[kind].methods;
         t != NULL && *t != NULL; t++)
      cost_add(ops, '.', *t);
  for (size_t i = 0; i < sizeof(cost_shapes) / sizeof(cost_shapes[0]); i++)
    ops->items[ops->n++] = (cost_op_t){'s', cost_shapes[i], 2};
}

/* A shape with its letters replaced. 0: it does not fit, or takes another
 * number of arguments. */
static inline size_t cost_shape(char *out, size_t size, const char *shape,
                                const char *self, const char *a, const char *b,
                                unsigned n_args) {
  const unsigned wanted =
      (strchr(shape, 'B') != NULL) + (unsigned)(strchr(shape, 'A') != NULL);
  size_t n = 0;

  for (const char *p = shape; wanted == n_args && *p != '\0'; p++) {
    const char *with = *p == 'S' ? self : *p == 'A' ? a : *p == 'B' ? b : NULL;

    n += with != NULL ? (size_t)snprintf(out + n, size - n, "(%s)", with)
                      : (size_t)snprintf(out + n, size - n, "%c", *p);
    if (n >= size)
      return 0;
  }
  return n;
}

/* The expression of an operation; n_args of a and b are given. 0: there is none
 * with so many, or it does not fit. */
static inline size_t cost_expression(char *out, size_t size,
                                     const cost_op_t *op, const char *self,
                                     const char *a, const char *b,
                                     unsigned n_args) {
  const char *between = n_args > 1 ? ", " : "";
  size_t n;

  if (op->kind == 's')
    return cost_shape(out, size, op->name, self, a, b, n_args);
  a = n_args > 0 ? a : "";
  b = n_args > 1 ? b : "";
  switch (op->kind) {
  case '|':
    n = (size_t)snprintf(out, size, "(%s) | %s(%s%s%s)", self, op->name, a,
                         between, b);
    break;
  case '?':
    n = (size_t)snprintf(out, size, "(%s) is %s(%s%s%s)", self, op->name, a,
                         between, b);
    break;
  case '.':
    n = (size_t)snprintf(out, size, "(%s).%s(%s%s%s)", self, op->name, a,
                         between, b);
    break;
  default:
    n = (size_t)snprintf(out, size, "%s(%s%s%s%s%s)", op->name, self,
                         n_args > 0 ? ", " : "", a, between, b);
  }
  return n < size ? n : 0;
}

/* Values that are given as arguments. */
static const unsigned cost_args[] = {0,  3,  9,  16, 17, 18, 19, 22,
                                     23, 24, 25, 26, 28, 29, 30, 31};
enum {
  COST_ARGS = sizeof(cost_args) / sizeof(cost_args[0]),
  COST_CASES = 1 + 2 * COST_ARGS
};

/* An operation on an expression, without arguments, or with one of the ways to
 * give one or two. 0: it has no such way. */
static inline size_t cost_nest(char *out, size_t size, const cost_op_t *op,
                               const char *self, unsigned seed, unsigned way) {
  const unsigned n_args = way == 0 ? 0 : way <= COST_ARGS ? 1 : 2;
  char names[2][8];

  if (n_args > op->n_args)
    return 0;
  snprintf(names[0], sizeof(names[0]), "v%u", cost_args[way % COST_ARGS]);
  snprintf(names[1], sizeof(names[1]), "v%u",
           cost_args[(way * 7 + seed) % COST_ARGS]);
  return cost_expression(out, size, op, self, names[0], names[1], n_args);
}

/* The same on a value. */
static inline size_t cost_case(char *out, size_t size, const cost_op_t *op,
                               unsigned self, unsigned way) {
  char name[8];

  snprintf(name, sizeof(name), "v%u", self);
  return cost_nest(out, size, op, name, self, way);
}

/* ---- Measuring ---- */

typedef struct {
  uint64_t paid, counted; /* units */
  double cpu_ns;
  int err;
} cost_t;

static inline int64_t cost_now(void *user) {
  (void)user;
  return 1767355954;
}

/* Render an expression so many times. */
static inline cost_t cost_of(const char *expression, tnk__value_t variables,
                             unsigned times, uint64_t max_work) {
  cost_t cost = {.err = TNK_OK};
  const tnk__template_env_t env = {
      .now_s = cost_now, .max_work = max_work, .used = &cost.paid};
  tnk__template_t *tpl = NULL;
  struct timespec from;
  struct timespec to;
  char text[2048];
  tnk__why_t why;
  tnk__heap_t heap;
  tnk__buf_t out;
  size_t n;

  n = (size_t)snprintf(text, sizeof(text),
                       "{%% for i in range(%u) %%}{%% set q = %s %%}"
                       "{%% endfor %%}",
                       times, expression);
  tnk__heap_init(&heap, tnk__allocator_default(), (size_t)256 << 20);
  tnk__buf_init(&out, tnk__allocator_default(), (size_t)64 << 20);
  cost.err =
      n < sizeof(text)
          ? tnk__template_compile(&tpl, tnk__allocator_default(), text, n, &why)
          : TNK_ETOOBIG;
  test_counted = 0;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
  if (cost.err == TNK_OK)
    cost.err =
        tnk__template_render(tpl, &heap, variables, &env, &out, NULL, &why);
  tnk__heap_deinit(&heap);
  tnk__buf_deinit(&out);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
  cost.counted = test_counted;
  cost.cpu_ns = (double)(to.tv_sec - from.tv_sec) * 1e9 +
                (double)(to.tv_nsec - from.tv_nsec);
  tnk__template_free(tpl);
  return cost;
}

/* What is counted may be so many times what was paid, and so much more for what
 * every rendering and failure does. */
enum { COST_RATIO = 2, COST_ONCE = 60000 };

static inline int cost_is_paid(const cost_t *cost) {
  return cost->counted <= COST_RATIO * cost->paid + COST_ONCE;
}

enum { COST_DICTS = 9 };

static inline int cost_compare(const void *a, const void *b) {
  const cost_t *left = a;
  const cost_t *right = b;

  return (left->counted > right->counted) - (left->counted < right->counted);
}

/* Render an expression so many times with variables of a size. The hash of a
 * dict depends on its address, so in one process of thousands all lookups of a
 * variable may be slow. A cost that is not paid is therefore replaced by the
 * median of those with other dicts. */
static inline cost_t cost_median(const char *expression, tnk__value_t variables,
                                 tnk__heap_t *heap, size_t size, unsigned times,
                                 uint64_t max_work) {
  cost_t costs[COST_DICTS];

  costs[0] = cost_of(expression, variables, times, max_work);
  if (cost_is_paid(&costs[0]))
    return costs[0];
  for (size_t i = 1; i < COST_DICTS; i++)
    costs[i] = cost_of(expression, cost_variables(heap, size), times, max_work);
  qsort(costs, COST_DICTS, sizeof(*costs), cost_compare);
  return costs[COST_DICTS / 2];
}

#endif
