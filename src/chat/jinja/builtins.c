/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "chat/jinja/run.h"
#include "tnk/error.h"

/* ---- Lookup of names ---- */

const tnk__builtin_t *tnk__builtin_find(const tnk__builtin_t *table,
                                        tnk__value_t name) {
  if (name.kind != TNK__VALUE_TEXT || name.n_text == 0)
    return NULL;
  /* Compare the first byte first; it rules out most names. */
  for (; table->name != NULL; table++)
    if (table->name[0] == name.as.text[0] &&
        strlen(table->name) == name.n_text &&
        memcmp(table->name, name.as.text, name.n_text) == 0)
      return table;
  return NULL;
}

const tnk__builtin_t *tnk__builtin_among(const tnk__builtin_t *const *tables,
                                         tnk__value_t name) {
  const tnk__builtin_t *known = NULL;

  for (; *tables != NULL && known == NULL; tables++)
    known = tnk__builtin_find(*tables, name);
  return known;
}

int tnk__is_listed(const char *list, tnk__value_t name) {
  while (list != NULL) {
    const char *blank = strchr(list, ' ');
    const size_t n = blank != NULL ? (size_t)(blank - list) : strlen(list);

    if (n == name.n_text && memcmp(list, name.as.text, n) == 0)
      return 1;
    list = blank != NULL ? blank + 1 : NULL;
  }
  return 0;
}

int tnk__is_hidden(tnk__value_t name) {
  return name.n_text > 4 && memcmp(name.as.text, "__", 2) == 0 &&
         memcmp(name.as.text + name.n_text - 2, "__", 2) == 0;
}

int tnk__class_has(const tnk__class_t *class, tnk__value_t name) {
  return (class->methods != NULL &&
          tnk__builtin_among(class->methods, name) != NULL) ||
         tnk__is_hidden(name) || tnk__is_listed(class->unsafe, name) ||
         tnk__is_listed(class->lacking, name);
}

/* ---- Arguments ---- */

/* The index of a parameter, or -1. Without a name, the number of parameters. */
static int find_param(const char *params, const tnk__value_t *name) {
  int i = 0;

  for (const char *p = params; *p != '\0'; i++) {
    const size_t n = strcspn(p, " ");

    if (name != NULL && name->n_text == n && memcmp(p, name->as.text, n) == 0)
      return i;
    p += n;
    p += *p == ' ';
  }
  return name != NULL ? -1 : i;
}

/* Sort arguments in the order of the parameters. */
static int bind(tnk__run_t *run, const tnk__builtin_t *known,
                const tnk__args_t *args, tnk__value_t *v) {
  const int by_name = known->params[0] != '/';
  const char *params = known->params + !by_name;
  const size_t n = (size_t)find_param(params, NULL);

  if (args->n > n) {
    tnk__fail(run, TNK_EINVAL, "\"%s\" takes at most %d arguments", known->name,
              (int)n);
    return 0;
  }
  for (size_t i = 0; i < n; i++)
    v[i] = i < args->n ? args->items[i] : tnk__missing();
  for (size_t i = 0; i < args->n_named; i++) {
    const int at = by_name ? find_param(params, &args->names[i]) : -1;

    if (at < 0 || (size_t)at < args->n) {
      tnk__fail(run, TNK_EINVAL, "\"%s\" takes no argument \"%.*s\" here",
                known->name,
                (int)(args->names[i].n_text < 80 ? args->names[i].n_text : 80),
                args->names[i].as.text);
      return 0;
    }
    v[at] = args->values[i];
  }
  for (size_t i = 0; i < n && i < known->n_needed; i++)
    if (!tnk__is_given(v[i])) {
      tnk__fail(run, TNK_EINVAL, "\"%s\" needs %d arguments", known->name,
                (int)known->n_needed);
      return 0;
    }
  return 1;
}

tnk__value_t tnk__builtin_call(tnk__run_t *run, const tnk__builtin_t *known,
                               tnk__value_t self, const tnk__args_t *args) {
  /* Filters that take filters call this function recursively. */
  const unsigned levels = known->params == NULL ? 2 : 1;
  tnk__value_t v[TNK__MAX_PARAMS], value;

  if (known->params != NULL && !bind(run, known, args, v))
    return tnk__value_undefined();
  if (!tnk__charge(run, TNK__COST_CALL, 1) || !tnk__enter(run, levels))
    return tnk__value_undefined();
  value = known->run(run, self, v, args);
  run->depth -= levels;
  return value;
}

int tnk__arg_whole(tnk__run_t *run, tnk__value_t v, int64_t otherwise,
                   int64_t *out) {
  *out = otherwise;
  if (!tnk__is_given(v) || tnk__value_whole(v, out))
    return 1;
  tnk__bad_type(run, "a whole number is needed", v);
  return 0;
}

int tnk__arg_text(tnk__run_t *run, tnk__value_t v, const char *otherwise,
                  tnk__value_t *out) {
  *out = v;
  if (v.kind == TNK__VALUE_TEXT)
    return 1;
  if (!tnk__is_given(v) && otherwise != NULL) {
    *out = tnk__value_text(otherwise, strlen(otherwise));
    return 1;
  }
  tnk__bad_type(run, "a text is needed", v);
  return 0;
}

int tnk__arg_truth(tnk__value_t v, int otherwise) {
  return tnk__is_given(v) ? tnk__truth(v) : otherwise;
}

/* ---- The library: tables of all names, and types of values ---- */

static const tnk__builtin_t *const filters[] = {
    tnk__filters_text, tnk__filters_list, tnk__filters_pick, tnk__filters_value,
    NULL};

static const tnk__builtin_t *const text[] = {
    tnk__methods_text, tnk__methods_split, tnk__methods_class, NULL};
static const tnk__builtin_t *const list[] = {tnk__methods_list, NULL};
static const tnk__builtin_t *const tuple[] = {tnk__methods_tuple, NULL};
static const tnk__builtin_t *const dict[] = {tnk__methods_dict, NULL};

static const char whole_lacks[] =
    "as_integer_ratio bit_count bit_length conjugate denominator from_bytes "
    "imag numerator real to_bytes";

static const tnk__class_t values[] = {
    [TNK__VALUE_UNDEFINED] = {.name = "Undefined"},
    [TNK__VALUE_NONE] = {.name = "NoneType"},
    [TNK__VALUE_BOOL] = {.name = "bool", .lacking = whole_lacks},
    [TNK__VALUE_INT] = {.name = "int", .lacking = whole_lacks},
    [TNK__VALUE_FLOAT] = {.name = "float",
                          .lacking = "as_integer_ratio conjugate fromhex hex "
                                     "imag is_integer real"},
    [TNK__VALUE_TEXT] = {.name = "str",
                         .lacking = "casefold encode expandtabs format_map "
                                    "isidentifier maketrans translate",
                         .methods = text},
    [TNK__VALUE_LIST] = {.name = "list",
                         .unsafe = "append clear pop reverse insert sort "
                                   "extend remove",
                         .methods = list},
    [TNK__VALUE_TUPLE] = {.name = "tuple", .methods = tuple},
    [TNK__VALUE_DICT] = {.name = "dict",
                         .lacking = "fromkeys",
                         .unsafe = "clear pop popitem setdefault update",
                         .methods = dict},
};

/* Objects that are plain data: iter.c and print.c handle them. */
static const tnk__class_t range = {.name = "range",
                                   .lacking = "count index start step stop"};
static const tnk__class_t stream = {.name = "generator",
                                    .lacking = "close send throw"};
static const tnk__class_t view = {.name = "view",
                                  .lacking = "isdisjoint mapping"};

static const tnk__class_t *const objects[] = {
    [TNK__OBJECT_NAMESPACE] = &tnk__class_namespace,
    [TNK__OBJECT_MACRO] = &tnk__class_macro,
    [TNK__OBJECT_LOOP] = &tnk__class_loop,
    [TNK__OBJECT_RANGE] = &range,
    [TNK__OBJECT_STREAM] = &stream,
    [TNK__OBJECT_METHOD] = &tnk__class_method,
    [TNK__OBJECT_FUNCTION] = &tnk__class_function,
    [TNK__OBJECT_CYCLER] = &tnk__class_cycler,
    [TNK__OBJECT_JOINER] = &tnk__class_joiner,
    [TNK__OBJECT_VIEW] = &view,
};

const tnk__library_t tnk__library = {
    .filters = filters,
    .tests = tnk__tests,
    .globals = tnk__globals,
    .values = values,
    .objects = objects,
};
