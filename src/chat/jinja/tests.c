/* SPDX-License-Identifier: MIT */
/* Tests after "is". */
#include "chat/jinja/lex/chars.h"
#include "chat/jinja/run.h"
#include "chat/jinja/text.h"
#include "tnk/error.h"

#define TEST(name)                                                             \
  static tnk__value_t name(tnk__run_t *run, tnk__value_t self,                 \
                           const tnk__value_t *v, const tnk__args_t *args)
#define IS(name, condition)                                                    \
  TEST(name) {                                                                 \
    (void)run, (void)v, (void)args;                                            \
    return tnk__value_bool(condition);                                         \
  }
#define COMPARES(name, op)                                                     \
  TEST(name) {                                                                 \
    (void)args;                                                                \
    return tnk__value_bool(tnk__compare(run, op, self, v[0]));                 \
  }

IS(is_defined, self.kind != TNK__VALUE_UNDEFINED)
IS(is_undefined, self.kind == TNK__VALUE_UNDEFINED)
IS(is_none, self.kind == TNK__VALUE_NONE)
IS(is_boolean, self.kind == TNK__VALUE_BOOL)
IS(is_true, self.kind == TNK__VALUE_BOOL && self.as.is_true)
IS(is_false, self.kind == TNK__VALUE_BOOL && !self.as.is_true)
IS(is_integer, self.kind == TNK__VALUE_INT)
IS(is_float, self.kind == TNK__VALUE_FLOAT)
IS(is_number, tnk__value_is_number(self))
IS(is_string, self.kind == TNK__VALUE_TEXT)
IS(is_mapping, self.kind == TNK__VALUE_DICT)
IS(is_iterable,
   tnk__is_iterable(self) || tnk__is_object(self, TNK__OBJECT_LOOP))
IS(is_escaped, self.kind == TNK__VALUE_TEXT && self.is_markup)

static tnk__value_t is_known(tnk__run_t *run, tnk__value_t self,
                             const tnk__builtin_t *known) {
  if (!tnk__charge(run, TNK__COST_LOOKUP, 1) || !tnk__can_be_key(run, self))
    return tnk__bad_type(run, "a name is needed", self);
  return tnk__value_bool(known != NULL);
}

TEST(is_filter) {
  (void)v, (void)args;
  return is_known(run, self, tnk__builtin_among(run->tables->filters, self));
}

TEST(is_test) {
  (void)v, (void)args;
  return is_known(run, self, tnk__builtin_find(run->tables->tests, self));
}

COMPARES(is_eq, TNK__OP_EQ)
COMPARES(is_ne, TNK__OP_NE)
COMPARES(is_lt, TNK__OP_LT)
COMPARES(is_le, TNK__OP_LE)
COMPARES(is_gt, TNK__OP_GT)
COMPARES(is_ge, TNK__OP_GE)
COMPARES(is_in, TNK__OP_IN)

/* Values that have a length and items by index or name. */
IS(is_sequence,
   self.kind == TNK__VALUE_UNDEFINED || self.kind == TNK__VALUE_TEXT ||
       self.kind == TNK__VALUE_LIST || self.kind == TNK__VALUE_TUPLE ||
       self.kind == TNK__VALUE_DICT || tnk__is_object(self, TNK__OBJECT_RANGE))

IS(is_callable,
   self.kind == TNK__VALUE_UNDEFINED || tnk__class_of(run, self)->call != NULL)

static tnk__value_t rest_is(tnk__run_t *run, tnk__value_t self, tnk__value_t by,
                            int64_t wanted) {
  const tnk__value_t rest = tnk__binary(run, TNK__OP_MOD, self, by);

  return tnk__value_bool(tnk__value_equal(rest, tnk__value_int(wanted)));
}

TEST(is_odd) {
  (void)v, (void)args;
  return rest_is(run, self, tnk__value_int(2), 1);
}

TEST(is_even) {
  (void)v, (void)args;
  return rest_is(run, self, tnk__value_int(2), 0);
}

TEST(is_divisible) {
  (void)args;
  return rest_is(run, self, v[0], 0);
}

/* Test the case of str() of the value. */
static tnk__value_t has_case(tnk__run_t *run, tnk__value_t self,
                             const char *method) {
  const tnk__args_t none = {.n = 0};
  const tnk__value_t text = tnk__text_of(run, self);
  const tnk__builtin_t *known =
      tnk__builtin_find(tnk__methods_class, tnk__value_text(method, 7));

  if (run->err != TNK_OK)
    return tnk__value_undefined();
  return tnk__builtin_call(run, known, text, &none);
}

TEST(is_lower) {
  (void)v, (void)args;
  return has_case(run, self, "islower");
}

TEST(is_upper) {
  (void)v, (void)args;
  return has_case(run, self, "isupper");
}

TEST(is_same) {
  (void)args;
  (void)run;
  if (self.kind != v[0].kind)
    return tnk__value_bool(0);
  if (self.kind == TNK__VALUE_NONE)
    return tnk__value_bool(1);
  if (self.kind == TNK__VALUE_BOOL)
    return tnk__value_bool(self.as.is_true == v[0].as.is_true);
  if (self.kind == TNK__VALUE_LIST || self.kind == TNK__VALUE_DICT ||
      self.kind == TNK__VALUE_OBJECT)
    return tnk__value_bool(self.as.object == v[0].as.object);
  return tnk__fail(run, TNK_EUNSUPPORTED,
                   "whether two texts or numbers are one object is not known");
}

const tnk__builtin_t tnk__tests[] = {
    {"defined", "", 0, is_defined},
    {"undefined", "", 0, is_undefined},
    {"none", "", 0, is_none},
    {"string", "", 0, is_string},
    {"mapping", "", 0, is_mapping},
    {"iterable", "", 0, is_iterable},
    {"sequence", "", 0, is_sequence},
    {"boolean", "", 0, is_boolean},
    {"true", "", 0, is_true},
    {"false", "", 0, is_false},
    {"integer", "", 0, is_integer},
    {"float", "", 0, is_float},
    {"number", "", 0, is_number},
    {"callable", "", 0, is_callable},
    {"escaped", "", 0, is_escaped},
    {"filter", "", 0, is_filter},
    {"test", "", 0, is_test},
    {"odd", "", 0, is_odd},
    {"even", "", 0, is_even},
    {"lower", "", 0, is_lower},
    {"upper", "", 0, is_upper},
    {"divisibleby", "num", 1, is_divisible},
    {"sameas", "other", 1, is_same},
    {"in", "seq", 1, is_in},
    {"eq", "/b", 1, is_eq},
    {"equalto", "/b", 1, is_eq},
    {"==", "/b", 1, is_eq},
    {"ne", "/b", 1, is_ne},
    {"!=", "/b", 1, is_ne},
    {"lt", "/b", 1, is_lt},
    {"lessthan", "/b", 1, is_lt},
    {"<", "/b", 1, is_lt},
    {"le", "/b", 1, is_le},
    {"<=", "/b", 1, is_le},
    {"gt", "/b", 1, is_gt},
    {"greaterthan", "/b", 1, is_gt},
    {">", "/b", 1, is_gt},
    {"ge", "/b", 1, is_ge},
    {">=", "/b", 1, is_ge},
    {NULL, NULL, 0, NULL},
};
