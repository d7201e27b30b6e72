#ifndef TNK_CHAT_TEMPLATE_BUILTIN_H
#define TNK_CHAT_TEMPLATE_BUILTIN_H

#include <stddef.h>

#include "chat/value/value.h"

struct tnk__run;

/* Arguments of a call: those without a name, then those with one. */
typedef struct {
  const tnk__value_t *items;
  size_t n;
  const tnk__value_t *names;
  const tnk__value_t *values;
  size_t n_named;
} tnk__args_t;

/* Parameters that a function has at most. */
enum { TNK__MAX_PARAMS = 8 };

/*
 * A filter, test, method or function. `self` is what a filter or test is
 * applied to, or the object of a method; v has the arguments in the order of
 * the parameters, those that were not given as missing.
 */
typedef struct tnk__builtin {
  const char *name;
  const char *params; /* names with blanks between them; a slash in front: they
                         cannot be given by name; NULL: takes what comes */
  unsigned n_needed;
  tnk__value_t (*run)(struct tnk__run *run, tnk__value_t self,
                      const tnk__value_t *v, const tnk__args_t *args);
} tnk__builtin_t;

/* A table that ends with a row without a name. */
const tnk__builtin_t *tnk__builtin_find(const tnk__builtin_t *table,
                                        tnk__value_t name);
/* NULL: there is none of that name. */
const tnk__builtin_t *tnk__filter_find(tnk__value_t name);
const tnk__builtin_t *tnk__test_find(tnk__value_t name);

extern const tnk__builtin_t tnk__filters_text[];
extern const tnk__builtin_t tnk__filters_list[];
extern const tnk__builtin_t tnk__filters_pick[];
extern const tnk__builtin_t tnk__filters_value[];
extern const tnk__builtin_t tnk__tests[];
extern const tnk__builtin_t tnk__methods_text[];
extern const tnk__builtin_t tnk__methods_split[];
extern const tnk__builtin_t tnk__methods_class[];
extern const tnk__builtin_t tnk__methods_dict[];
extern const tnk__builtin_t tnk__methods_list[];
extern const tnk__builtin_t tnk__methods_loop[];
extern const tnk__builtin_t tnk__methods_cycler[];
extern const tnk__builtin_t tnk__globals[];

#endif
