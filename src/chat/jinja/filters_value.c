/* SPDX-License-Identifier: MIT */
/* Filters of single values. */
#include <math.h>
#include <string.h>

#include "chat/jinja/text.h"
#include "tnk/error.h"

#define FILTER(name)                                                           \
  static tnk__value_t name(tnk__run_t *run, tnk__value_t self,                 \
                           const tnk__value_t *v, const tnk__args_t *args)

FILTER(otherwise) {
  (void)args;
  if (self.kind == TNK__VALUE_UNDEFINED ||
      (tnk__arg_truth(v[1], 0) && !tnk__truth(self)))
    return tnk__is_given(v[0]) ? v[0] : tnk__value_text("", 0);
  (void)run;
  return self;
}

FILTER(length) {
  const tnk__class_t *class = tnk__class_of(run, self);
  const int64_t n =
      class->length != NULL ? class->length(run, self) : tnk__length(run, self);

  (void)v, (void)args;
  return n < 0 ? tnk__bad_type(run, "this has no length", self)
               : tnk__value_int(n);
}

FILTER(attr) {
  tnk__value_t name;

  (void)args;
  if (!tnk__arg_text(run, v[0], NULL, &name))
    return tnk__value_undefined();
  if (self.kind == TNK__VALUE_DICT) {
    /* Look up attributes only, not members. */
    const tnk__value_t empty = tnk__value_dict(run->heap);

    if (tnk__getattr(run, empty, name).kind == TNK__VALUE_UNDEFINED)
      return tnk__undefined(name);
  }
  return tnk__getattr(run, self, name);
}

FILTER(absolute) {
  int64_t number;

  (void)v, (void)args;
  if (self.kind == TNK__VALUE_FLOAT)
    return tnk__value_float(fabs(self.as.real));
  if (!tnk__value_whole(self, &number))
    return tnk__bad_type(run, "a number is needed", self);
  return number < 0 ? tnk__negate(run, self, 1) : tnk__value_int(number);
}

/* ---- Texts as numbers ---- */

/* Remove white space at both ends and the sign. */
static tnk__value_t take_sign(tnk__run_t *run, tnk__value_t text,
                              int *is_negative) {
  text = tnk__text_strip(run, text, tnk__missing(),
                         TNK__STRIP_LEFT | TNK__STRIP_RIGHT);
  *is_negative = text.n_text > 0 && *text.as.text == '-';
  if (text.n_text > 0 && (*text.as.text == '-' || *text.as.text == '+'))
    text = tnk__text_part(text, 1, text.n_text);
  return text;
}

static int read_whole(tnk__run_t *run, tnk__value_t text, int64_t base,
                      tnk__value_t *out) {
  int is_negative;
  int64_t value = 0;
  int was_digit = 0;

  text = take_sign(run, text, &is_negative);
  if (!tnk__charge(run, TNK__COST_COUNT, text.n_text))
    return 0;
  if (text.n_text > 2 && *text.as.text == '0' &&
      ((base == 16 && (text.as.text[1] | 0x20) == 'x') ||
       (base == 8 && (text.as.text[1] | 0x20) == 'o') ||
       (base == 2 && (text.as.text[1] | 0x20) == 'b'))) {
    text = tnk__text_part(text, 2, text.n_text);
    was_digit = 1;
  }
  for (uint32_t i = 0; i < text.n_text; i++) {
    const char c = text.as.text[i];
    const int digit = c >= '0' && c <= '9' ? c - '0'
                      : (c | 0x20) >= 'a' && (c | 0x20) <= 'z'
                          ? (c | 0x20) - 'a' + 10
                          : 99;

    if (c == '_' && was_digit && i + 1 < text.n_text) {
      was_digit = 0;
      continue;
    }
    if (digit >= base)
      return 0;
    if (__builtin_mul_overflow(value, base, &value) ||
        __builtin_add_overflow(value, digit, &value))
      return -1;
    was_digit = 1;
  }
  *out = tnk__value_int(is_negative ? -value : value);
  return was_digit;
}

static int is_word(tnk__value_t text, const char *word) {
  if (text.n_text != strlen(word))
    return 0;
  for (uint32_t i = 0; i < text.n_text; i++)
    if ((text.as.text[i] | 0x20) != word[i])
      return 0;
  return 1;
}

static int read_real(tnk__run_t *run, tnk__value_t text, double *out) {
  char copy[1024];
  size_t n = 0;
  int has_digit = 0;
  int is_negative;

  text = take_sign(run, text, &is_negative);
  if (!tnk__charge(run, TNK__COST_FLOAT, 1))
    return 0;
  if (is_word(text, "inf") || is_word(text, "infinity")) {
    *out = is_negative ? -HUGE_VAL : HUGE_VAL;
    return 1;
  }
  if (is_word(text, "nan")) {
    *out = NAN;
    return 1;
  }
  if (text.n_text >= sizeof(copy))
    return 0;
  for (uint32_t i = 0; i < text.n_text; i++) {
    const char c = text.as.text[i];
    const int is_digit = c >= '0' && c <= '9';

    if (c == '_' && n > 0 && copy[n - 1] >= '0' && copy[n - 1] <= '9' &&
        i + 1 < text.n_text && text.as.text[i + 1] >= '0' &&
        text.as.text[i + 1] <= '9')
      continue;
    if ((c | 0x20) == 'e') {
      uint32_t k = i + 1;

      if (!has_digit || memchr(copy, 'e', n) != NULL)
        return 0;
      k +=
          k < text.n_text && (text.as.text[k] == '+' || text.as.text[k] == '-');
      if (k == text.n_text || text.as.text[k] < '0' || text.as.text[k] > '9')
        return 0;
    } else if (c == '.') {
      if (memchr(copy, '.', n) != NULL || memchr(copy, 'e', n) != NULL)
        return 0;
    } else if (c == '+' || c == '-') {
      if (n == 0 || copy[n - 1] != 'e')
        return 0;
    } else if (!is_digit) {
      return 0;
    }
    has_digit |= is_digit;
    copy[n++] = (c | 0x20) == 'e' ? 'e' : c;
  }
  if (!has_digit || !tnk__value_read_float(copy, n, out))
    return 0;
  if (is_negative)
    *out = -*out;
  return 1;
}

/* The integer part of a float. */
static tnk__value_t cut_fraction(tnk__run_t *run, double real,
                                 tnk__value_t otherwise) {
  if (isnan(real) || isinf(real))
    return otherwise;
  if (real >= 9223372036854775808.0 || real < -9223372036854775808.0)
    return tnk__fail(run, TNK_EUNSUPPORTED,
                     "a whole number has more than 64 bits");
  return tnk__value_int((int64_t)real);
}

FILTER(whole) {
  const tnk__value_t or_else = tnk__is_given(v[0]) ? v[0] : tnk__value_int(0);
  tnk__value_t out;
  int64_t base;
  double real;
  int read;

  (void)args;
  if (!tnk__arg_whole(run, v[1], 10, &base))
    return tnk__value_undefined();
  if (tnk__value_whole(self, &base))
    return tnk__value_int(base);
  if (self.kind == TNK__VALUE_FLOAT) {
    if (isinf(self.as.real))
      return tnk__fail(run, TNK_EINVAL, "infinity is no whole number");
    return cut_fraction(run, self.as.real, or_else);
  }
  if (self.kind == TNK__VALUE_UNDEFINED) {
    tnk__refuse_undefined(run, self);
    return self;
  }
  if (self.kind != TNK__VALUE_TEXT)
    return or_else;
  if (base < 2 || base > 36)
    return tnk__fail(run, TNK_EUNSUPPORTED, "bases are 2 to 36 here");
  read = read_whole(run, self, base, &out);
  if (read > 0)
    return out;
  if (read < 0)
    return tnk__fail(run, TNK_EUNSUPPORTED,
                     "a whole number has more than 64 bits");
  return read_real(run, self, &real) ? cut_fraction(run, real, or_else)
                                     : or_else;
}

FILTER(real_number) {
  const tnk__value_t or_else = tnk__is_given(v[0]) ? v[0] : tnk__value_float(0);
  double real;

  (void)args;
  if (self.kind == TNK__VALUE_UNDEFINED) {
    tnk__refuse_undefined(run, self);
    return self;
  }
  if (tnk__value_number(self, &real) ||
      (self.kind == TNK__VALUE_TEXT && read_real(run, self, &real)))
    return tnk__value_float(real);
  return or_else;
}

/* Round to a number of decimal places. The decimal value of the number is
 * rounded, half to even. */
static tnk__value_t round_common(tnk__run_t *run, tnk__value_t self,
                                 int64_t places) {
  const tnk__layout_t how = {
      .type = 'f', .precision = places, .fill = tnk__value_text(" ", 1)};
  tnk__value_t text;
  tnk__buf_t buf;
  double real;

  if (self.kind != TNK__VALUE_FLOAT && places >= 0)
    return self.kind == TNK__VALUE_BOOL ? tnk__value_int(self.as.is_true)
                                        : self;
  if (places < 0 || places > 100)
    return tnk__fail(run, TNK_EUNSUPPORTED,
                     "numbers are rounded to 0 to 100 places here");
  if (isnan(self.as.real) || isinf(self.as.real))
    return self;
  tnk__scratch(run, &buf);
  tnk__layout_number(run, &buf, self, &how);
  text = tnk__scratch_text(run, &buf);
  if (run->err != TNK_OK || !read_real(run, text, &real))
    return tnk__value_undefined();
  return tnk__value_float(real);
}

FILTER(rounded) {
  tnk__value_t method;
  int64_t places;
  double real = 0;
  double scale;

  (void)args;
  if (!tnk__arg_whole(run, v[0], 0, &places) ||
      !tnk__arg_text(run, v[1], "common", &method))
    return tnk__value_undefined();
  if (!tnk__value_number(self, &real))
    return tnk__bad_type(run, "a number is needed to be rounded", self);
  if (tnk__value_is(method, "common"))
    return round_common(run, self, places);
  if (!tnk__value_is(method, "ceil") && !tnk__value_is(method, "floor"))
    return tnk__fail(run, TNK_EINVAL,
                     "numbers are rounded \"common\", \"ceil\" or \"floor\"");
  if (!tnk__charge(run, TNK__COST_DIVIDE, 1))
    return tnk__value_undefined();
  scale = pow(10, (double)places);
  if (isnan(real) || isinf(real * scale))
    return tnk__fail(run, TNK_EINVAL, "the number cannot be rounded");
  real =
      tnk__value_is(method, "ceil") ? ceil(real * scale) : floor(real * scale);
  return tnk__value_float((real == 0 ? 0 : real) / scale);
}

const tnk__builtin_t tnk__filters_value[] = {
    {"default", "default_value boolean", 0, otherwise},
    {"d", "default_value boolean", 0, otherwise},
    {"length", "", 0, length},
    {"count", "", 0, length},
    {"attr", "name", 1, attr},
    {"int", "default base", 0, whole},
    {"float", "default", 0, real_number},
    {"round", "precision method", 0, rounded},
    {"abs", "", 0, absolute},
    {NULL, NULL, 0, NULL},
};
