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
