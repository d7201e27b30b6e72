/* SPDX-License-Identifier: MIT */
/* Operators of Python. */
#include <math.h>
#include <string.h>

#include "chat/jinja/run.h"
#include "tnk/error.h"

static tnk__value_t too_large(tnk__run_t *run) {
  return tnk__fail(run, TNK_EUNSUPPORTED,
                   "a whole number has more than 64 bits");
}

static tnk__value_t no_operator(tnk__run_t *run, const char *what,
                                tnk__value_t a, tnk__value_t b) {
  if (tnk__refuse_undefined(run, a) || tnk__refuse_undefined(run, b))
    return tnk__value_undefined();
  return tnk__fail(run, TNK_EINVAL, "there is no \"%s\" of \"%s\" and \"%s\"",
                   what, tnk__class_of(run, a)->name,
                   tnk__class_of(run, b)->name);
}

/* ---- Integers ---- */

static int64_t floor_div(int64_t a, int64_t b) {
  int64_t quotient;

  if (b == 0) /* The caller has checked this. */
    return 0;
  quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

static tnk__value_t power_whole(tnk__run_t *run, int64_t a, int64_t b) {
  int64_t result = 1;

  if (b < 0) {
    if (a == 0)
      return tnk__fail(run, TNK_EINVAL, "zero has no negative power");
    return tnk__value_float(pow((double)a, (double)b));
  }
  if (a == 0 || a == 1)
    return tnk__value_int(b == 0 ? 1 : a);
  if (a == -1)
    return tnk__value_int(b % 2 == 0 ? 1 : -1);
  for (; b > 0; b--)
    if (__builtin_mul_overflow(result, a, &result))
      return too_large(run);
  return tnk__value_int(result);
}

static tnk__value_t whole(tnk__run_t *run, tnk__op_t op, int64_t a, int64_t b) {
  int64_t result = 0;
  int is_over = 0;

  if (b == 0 &&
      (op == TNK__OP_DIV || op == TNK__OP_FLOORDIV || op == TNK__OP_MOD))
    return tnk__fail(run, TNK_EINVAL, "division by zero");
  switch (op) {
  case TNK__OP_ADD:
    is_over = __builtin_add_overflow(a, b, &result);
    break;
  case TNK__OP_SUB:
    is_over = __builtin_sub_overflow(a, b, &result);
    break;
  case TNK__OP_MUL:
    is_over = __builtin_mul_overflow(a, b, &result);
    break;
  case TNK__OP_DIV:
    return tnk__value_float((double)a / (double)b);
  case TNK__OP_POW:
    return power_whole(run, a, b);
  default:
    if (b == -1) {
      /* The only division with a result beyond 64 bits. */
      is_over = op == TNK__OP_FLOORDIV && __builtin_sub_overflow(0, a, &result);
      break;
    }
    result = floor_div(a, b);
    if (op == TNK__OP_MOD)
      result = a - result * b;
  }
  return is_over ? too_large(run) : tnk__value_int(result);
}

/* ---- Others ---- */

static double float_mod(double a, double b) {
  double rest = fmod(a, b);

  if (rest != 0 && (rest < 0) != (b < 0))
    rest += b;
  else if (rest == 0)
    rest = copysign(0, b);
  return rest;
}

static double float_floor_div(double a, double b) {
  const double quotient = (a - float_mod(a, b)) / b;
  double floored = floor(quotient);

  if (quotient == 0)
    return copysign(0, a / b);
  if (quotient - floored > 0.5)
    floored += 1;
  return floored;
}

static tnk__value_t power_real(tnk__run_t *run, double a, double b) {
  const double result = pow(a, b);

  if (a == 0 && b < 0)
    return tnk__fail(run, TNK_EINVAL, "zero has no negative power");
  if (isfinite(a) && isfinite(b) && a < 0 && b != floor(b))
    return tnk__fail(run, TNK_EUNSUPPORTED, "the power is no real number");
  if (isinf(result) && isfinite(a) && isfinite(b))
    return tnk__fail(run, TNK_EINVAL, "the power is too large");
  return tnk__value_float(result);
}

static tnk__value_t real(tnk__run_t *run, tnk__op_t op, double a, double b) {
  if (b == 0 &&
      (op == TNK__OP_DIV || op == TNK__OP_FLOORDIV || op == TNK__OP_MOD))
    return tnk__fail(run, TNK_EINVAL, "division by zero");
  switch (op) {
  case TNK__OP_ADD:
    return tnk__value_float(a + b);
  case TNK__OP_SUB:
    return tnk__value_float(a - b);
  case TNK__OP_MUL:
    return tnk__value_float(a * b);
  case TNK__OP_DIV:
    return tnk__value_float(a / b);
  case TNK__OP_FLOORDIV:
    return tnk__value_float(float_floor_div(a, b));
  case TNK__OP_MOD:
    return tnk__value_float(float_mod(a, b));
  default:
    return power_real(run, a, b);
  }
}

tnk__value_t tnk__add_texts(tnk__run_t *run, tnk__value_t a, tnk__value_t b) {
  const size_t n = (size_t)a.n_text + b.n_text;
  tnk__value_t text;
  char *joined;

  if (a.is_markup != b.is_markup) {
    a = tnk__escape(run, a);
    b = tnk__escape(run, b);
    if (run->err != TNK_OK)
      return tnk__value_undefined();
    return tnk__add_texts(run, a, b);
  }
  if (n > UINT32_MAX)
    return tnk__fail(run, TNK_ETOOBIG, "a text becomes too long");
  if (a.n_text == 0 || b.n_text == 0)
    return a.n_text == 0 ? b : a;
  if (!tnk__charge(run, TNK__COST_COPY, b.n_text))
    return tnk__value_undefined();
  joined = tnk__text_room(run, a, b.n_text);
  if (joined == NULL)
    return tnk__value_undefined();
  memcpy(joined + a.n_text, b.as.text, b.n_text);
  text = tnk__value_text(joined, n);
  text.is_markup = a.is_markup;
  return text;
}

static tnk__value_t add_lists(tnk__run_t *run, tnk__value_t a, tnk__value_t b) {
  const tnk__value_t sum = a.kind == TNK__VALUE_LIST
                               ? tnk__value_list(run->heap)
                               : tnk__value_tuple(run->heap);

  if (!tnk__charge(run, TNK__COST_ITEM, a.as.list->n + b.as.list->n))
    return tnk__value_undefined();
  for (size_t i = 0; i < a.as.list->n; i++)
    tnk__value_append(run->heap, sum, a.as.list->items[i]);
  for (size_t i = 0; i < b.as.list->n; i++)
    tnk__value_append(run->heap, sum, b.as.list->items[i]);
  return sum;
}

static tnk__value_t repeat_text(tnk__run_t *run, tnk__value_t text,
                                int64_t times) {
  tnk__value_t repeated;
  char *copy;
  size_t n;

  if (times <= 0 || text.n_text == 0)
    times = 0;
  else if ((uint64_t)times > run->env.max_output / text.n_text ||
           (uint64_t)times > UINT32_MAX / text.n_text)
    return tnk__fail(run, TNK_ETOOBIG, "a text becomes too long");
  n = (size_t)times * text.n_text;
  copy = tnk__charge(run, TNK__COST_COPY, n) ? tnk__heap_alloc(run->heap, n + 1)
                                             : NULL;
  if (copy == NULL)
    return tnk__value_undefined();
  if (n > 0)
    memcpy(copy, text.as.text, text.n_text);
  /* Double the copied part until the rest is full. */
  for (size_t at = text.n_text; at < n; at *= 2)
    memcpy(copy + at, copy, at < n - at ? at : n - at);
  repeated = tnk__value_text(copy, n);
  repeated.is_markup = text.is_markup;
  return repeated;
}

static tnk__value_t repeat_list(tnk__run_t *run, tnk__value_t list,
                                int64_t times) {
  const tnk__value_t repeated = list.kind == TNK__VALUE_LIST
                                    ? tnk__value_list(run->heap)
                                    : tnk__value_tuple(run->heap);

  for (int64_t i = 0; i < times && list.as.list->n > 0; i++) {
    if (!tnk__charge(run, TNK__COST_ITEM, list.as.list->n) ||
        !tnk__is_fine(run))
      return tnk__value_undefined();
    for (size_t k = 0; k < list.as.list->n; k++)
      tnk__value_append(run->heap, repeated, list.as.list->items[k]);
  }
  return repeated;
}

static int is_list(tnk__value_t value) {
  return value.kind == TNK__VALUE_LIST || value.kind == TNK__VALUE_TUPLE;
}

/* Repeat a text or list. */
static int repeat(tnk__run_t *run, tnk__value_t a, tnk__value_t b,
                  tnk__value_t *out) {
  int64_t times;

  if (tnk__value_whole(a, &times)) {
    const tnk__value_t other = a;

    a = b;
    b = other;
  }
  if (!tnk__value_whole(b, &times))
    return 0;
  if (a.kind == TNK__VALUE_TEXT)
    *out = repeat_text(run, a, times);
  else if (is_list(a))
    *out = repeat_list(run, a, times);
  else
    return 0;
  return 1;
}

tnk__value_t tnk__binary(tnk__run_t *run, tnk__op_t op, tnk__value_t a,
                         tnk__value_t b) {
  static const char *const names[] = {"", "+", "-", "*", "/", "//", "%", "**"};
  tnk__value_t out;
  int64_t x;
  int64_t y;
  double u;
  double v;

  if (!tnk__charge(run, TNK__COST_NODE, 1))
    return tnk__value_undefined();
  if (a.kind == TNK__VALUE_TEXT && b.kind == TNK__VALUE_TEXT &&
      op == TNK__OP_ADD)
    return tnk__add_texts(run, a, b);
  if (a.kind == TNK__VALUE_TEXT && op == TNK__OP_MOD)
    return tnk__percent(run, a, b);
  if (tnk__value_whole(a, &x) && tnk__value_whole(b, &y))
    return whole(run, op, x, y);
  if (tnk__value_number(a, &u) && tnk__value_number(b, &v))
    return tnk__charge(run,
                       op == TNK__OP_ADD || op == TNK__OP_SUB ||
                               op == TNK__OP_MUL || op == TNK__OP_DIV
                           ? TNK__COST_CONST
                           : TNK__COST_DIVIDE,
                       1)
               ? real(run, op, u, v)
               : tnk__value_undefined();
  if (op == TNK__OP_ADD && is_list(a) && a.kind == b.kind)
    return add_lists(run, a, b);
  if (op == TNK__OP_MUL && repeat(run, a, b, &out))
    return out;
  return no_operator(run, names[op], a, b);
}

tnk__value_t tnk__negate(tnk__run_t *run, tnk__value_t value, int is_minus) {
  int64_t number;

  if (value.kind == TNK__VALUE_FLOAT)
    return tnk__value_float(is_minus ? -value.as.real : value.as.real);
  if (!tnk__value_whole(value, &number))
    return tnk__bad_type(run, "a number is needed behind a sign", value);
  if (is_minus && number == INT64_MIN)
    return too_large(run);
  return tnk__value_int(is_minus ? -number : number);
}

/* Compare two texts for equality. This is the most frequent comparison in
 * templates. */
static int compare_texts(tnk__run_t *run, tnk__op_t op, tnk__value_t a,
                         tnk__value_t b) {
  const uint32_t n = a.n_text < b.n_text ? a.n_text : b.n_text;

  return tnk__charge(run, TNK__COST_COPY, n) &&
         (a.n_text == b.n_text && (n == 0 || memcmp(a.as.text, b.as.text, n) ==
                                                 0)) == (op == TNK__OP_EQ);
}

int tnk__compare(tnk__run_t *run, tnk__op_t op, tnk__value_t a,
                 tnk__value_t b) {
  int order = 0;

  if (run->err != TNK_OK)
    return 0;
  if (op == TNK__OP_IN || op == TNK__OP_NOTIN)
    return tnk__contains(run, b, a) == (op == TNK__OP_IN);
  if (a.kind == TNK__VALUE_TEXT && b.kind == TNK__VALUE_TEXT &&
      (op == TNK__OP_EQ || op == TNK__OP_NE))
    return compare_texts(run, op, a, b);
  if (!tnk__charge_equal(run, a, b))
    return 0;
  if (op == TNK__OP_EQ || op == TNK__OP_NE)
    return tnk__value_equal(a, b) == (op == TNK__OP_EQ);
  if (!tnk__value_compare(a, b, &order)) {
    no_operator(run, "order", a, b);
    return 0;
  }
  if (order == 2)
    return 0;
  return op == TNK__OP_LT   ? order < 0
         : op == TNK__OP_LE ? order <= 0
         : op == TNK__OP_GT ? order > 0
                            : order >= 0;
}
