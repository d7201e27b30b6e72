#include <string.h>

#include "chat/template/run.h"
#include "tnk/error.h"

/* The number of a parameter, or -1; with no name, how many there are. */
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

/* Put arguments in the order of the parameters. */
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
  /* Filters that are given filters call themselves. */
  const unsigned levels = known->params == NULL ? 2 : 1;
  tnk__value_t v[TNK__MAX_PARAMS], value;

  if (known->params != NULL && !bind(run, known, args, v))
    return tnk__value_undefined();
  if (!tnk__charge(run, self.kind == TNK__VALUE_TEXT ? self.n_text / 64 : 0))
    return tnk__value_undefined();
  if (!tnk__enter(run, levels))
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
