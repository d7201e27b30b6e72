#ifndef TNK_CHAT_JINJA_LIBRARY_H
#define TNK_CHAT_JINJA_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#include "chat/value/value.h"
#include "lib/base/buf.h"

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

/* A function of a table, which ends with a row without a name; NULL: there is
 * none of that name. */
const tnk__builtin_t *tnk__builtin_find(const tnk__builtin_t *table,
                                        tnk__value_t name);
/* The same of several tables with NULL at the end. */
const tnk__builtin_t *tnk__builtin_among(const tnk__builtin_t *const *tables,
                                         tnk__value_t name);

/* What objects have in `spare`. */
typedef enum {
  TNK__OBJECT_NAMESPACE = 1, /* tnk__value_dict_t */
  TNK__OBJECT_MACRO,
  TNK__OBJECT_LOOP,
  TNK__OBJECT_RANGE,
  TNK__OBJECT_STREAM,   /* what can be gone through once */
  TNK__OBJECT_METHOD,   /* of a value */
  TNK__OBJECT_FUNCTION, /* const tnk__builtin_t */
  TNK__OBJECT_CYCLER,
  TNK__OBJECT_JOINER,
  TNK__OBJECT_VIEW /* items, keys or values of a dict */
} tnk__object_kind_t;

/*
 * A type of values: what it has and what can be done with it. A member that is
 * NULL: it has none of that, or that cannot be done.
 */
typedef struct {
  const char *name;    /* what Python calls it */
  const char *lacking; /* attributes that Python's has and this has not, with
                          blanks between, so that nothing is taken for undefined
                          that is there */
  const char *unsafe;  /* the same: methods that the sandbox hides */
  const tnk__builtin_t *const *methods; /* tables, with NULL at the end */
  /* An attribute that is no method. 0: there is none of that name. */
  int (*attr)(struct tnk__run *run, tnk__value_t self, tnk__value_t name,
              tnk__value_t *out);
  tnk__value_t (*call)(struct tnk__run *run, tnk__value_t self,
                       const tnk__args_t *args);
  /* len(), where it has to run for that: tnk__length() knows the others. */
  int64_t (*length)(struct tnk__run *run, tnk__value_t self);
  /* Append repr(); `depth` counts the values around it. */
  void (*print)(struct tnk__run *run, tnk__buf_t *out, tnk__value_t self,
                int depth);
} tnk__class_t;

/* Whether a name stands in a list with blanks between; NULL: an empty one. */
int tnk__is_listed(const char *list, tnk__value_t name);
/* Names of Python's own, which all objects have and the sandbox hides. */
int tnk__is_hidden(tnk__value_t name);
/* Whether there may be something of that name in all values of a type, before
 * its items and its `attr` are looked at. */
int tnk__class_has(const tnk__class_t *class, tnk__value_t name);

/*
 * All that a template finds by name, and the types of its values. The parser
 * and a run are handed one, so that files below need not know those above.
 */
typedef struct tnk__library {
  const tnk__builtin_t *const *filters; /* tables, with NULL at the end */
  const tnk__builtin_t *tests;
  const tnk__builtin_t *globals;
  const tnk__class_t *values; /* by tnk__value_kind_t; but for objects */
  const tnk__class_t *const *objects; /* by tnk__object_kind_t */
} tnk__library_t;

/* Of this interpreter; the parts stand in the files that make them. */
extern const tnk__library_t tnk__library;

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
extern const tnk__builtin_t tnk__methods_tuple[];
extern const tnk__builtin_t tnk__globals[];

extern const tnk__class_t tnk__class_cycler;
extern const tnk__class_t tnk__class_function;
extern const tnk__class_t tnk__class_joiner;
extern const tnk__class_t tnk__class_loop;
extern const tnk__class_t tnk__class_macro;
extern const tnk__class_t tnk__class_method;
extern const tnk__class_t tnk__class_namespace;

#endif
