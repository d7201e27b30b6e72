/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_JINJA_LIBRARY_H
#define TNK_CHAT_JINJA_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#include "chat/value/value.h"
#include "lib/base/buf.h"

struct tnk__run;

/* Arguments of a call: positional ones, then named ones. */
typedef struct {
  const tnk__value_t *items;
  size_t n;
  const tnk__value_t *names;
  const tnk__value_t *values;
  size_t n_named;
} tnk__args_t;

/* Maximum number of parameters of a function. */
enum { TNK__MAX_PARAMS = 8 };

/*
 * A filter, test, method or function. `self` is the input of a filter or test,
 * or the object of a method. v has the arguments in the order of the
 * parameters. Arguments that are not given are marked as missing.
 */
typedef struct tnk__builtin {
  const char *name;
  const char *params; /* names separated by spaces; a leading slash: positional
                         only; NULL: any arguments */
  unsigned n_needed;
  tnk__value_t (*run)(struct tnk__run *run, tnk__value_t self,
                      const tnk__value_t *v, const tnk__args_t *args);
} tnk__builtin_t;

/* Find a function in a table, which ends with a row without a name. NULL: not
 * found. */
const tnk__builtin_t *tnk__builtin_find(const tnk__builtin_t *table,
                                        tnk__value_t name);
/* The same for several tables; the list ends with NULL. */
const tnk__builtin_t *tnk__builtin_among(const tnk__builtin_t *const *tables,
                                         tnk__value_t name);

/* Kinds of objects, in `spare` of the value. */
typedef enum {
  TNK__OBJECT_NAMESPACE = 1, /* tnk__value_dict_t */
  TNK__OBJECT_MACRO,
  TNK__OBJECT_LOOP,
  TNK__OBJECT_RANGE,
  TNK__OBJECT_STREAM,   /* can be iterated once */
  TNK__OBJECT_METHOD,   /* of a value */
  TNK__OBJECT_FUNCTION, /* const tnk__builtin_t */
  TNK__OBJECT_CYCLER,
  TNK__OBJECT_JOINER,
  TNK__OBJECT_VIEW /* items, keys or values of a dict */
} tnk__object_kind_t;

/*
 * A type of values: its attributes and operations. A member that is NULL is not
 * supported by the type.
 */
typedef struct {
  const char *name; /* name of the type in Python */
  const char
      *lacking; /* attributes of Python's type that are missing here, separated
                   by spaces; using one is an error instead of undefined */
  const char *unsafe; /* methods that the sandbox hides, separated by spaces */
  const tnk__builtin_t *const *methods; /* tables; ends with NULL */
  /* Get an attribute that is not a method. Returns 0 if the type has none with
   * this name. */
  int (*attr)(struct tnk__run *run, tnk__value_t self, tnk__value_t name,
              tnk__value_t *out);
  tnk__value_t (*call)(struct tnk__run *run, tnk__value_t self,
                       const tnk__args_t *args);
  /* len(), if the type must run code for it. tnk__length() handles other
   * types. */
  int64_t (*length)(struct tnk__run *run, tnk__value_t self);
  /* Append repr(); `depth` is the number of values around it. */
  void (*print)(struct tnk__run *run, tnk__buf_t *out, tnk__value_t self,
                int depth);
} tnk__class_t;

/* Returns whether a name is in a list separated by spaces. NULL is an empty
 * list. */
int tnk__is_listed(const char *list, tnk__value_t name);
/* Names that all objects of Python have and that the sandbox hides. */
int tnk__is_hidden(tnk__value_t name);
/* Returns whether all values of a type may have an attribute of this name,
 * apart from items and `attr`. */
int tnk__class_has(const tnk__class_t *class, tnk__value_t name);

/*
 * All names that a template can use, and the types of its values. The parser
 * and a run get a pointer to it, so that lower files do not depend on higher
 * ones.
 */
typedef struct tnk__library {
  const tnk__builtin_t *const *filters; /* tables; ends with NULL */
  const tnk__builtin_t *tests;
  const tnk__builtin_t *globals;
  const tnk__class_t *values; /* indexed by tnk__value_kind_t, except objects */
  const tnk__class_t *const *objects; /* indexed by tnk__object_kind_t */
} tnk__library_t;

/* The library of this interpreter. Its parts are defined in the files that
 * implement them. */
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
