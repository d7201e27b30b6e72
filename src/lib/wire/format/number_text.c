/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/number_text.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Digits d of the number 0.ddd * 10^point. */
struct decimal {
  char digits[20];
  size_t n;
  int point;
};

static const char pairs[] = "00010203040506070809"
                            "10111213141516171819"
                            "20212223242526272829"
                            "30313233343536373839"
                            "40414243444546474849"
                            "50515253545556575859"
                            "60616263646566676869"
                            "70717273747576777879"
                            "80818283848586878889"
                            "90919293949596979899";

static char *put_two(char *out, uint32_t value) {
  memcpy(out, pairs + 2 * value, 2);
  return out + 2;
}

static char *put_four(char *out, uint32_t value) {
  return put_two(put_two(out, value / 100), value % 100);
}

/* Write a number below 10,000 without leading zeros. */
static inline char *put_small(char *out, uint32_t value) {
  if (value >= 1000)
    return put_four(out, value);
  if (value >= 100) {
    *out++ = (char)('0' + value / 100);
    return put_two(out, value % 100);
  }
  if (value >= 10)
    return put_two(out, value);
  *out++ = (char)('0' + value);
  return out;
}

/* Most numbers here are tokens and counts, which take one or two steps. */
static char *put_uint(char *out, uint64_t value) {
  if (value < 10000)
    return put_small(out, (uint32_t)value);
  return put_four(put_uint(out, value / 10000), (uint32_t)(value % 10000));
}

size_t tnk__uint_text(char *out, uint64_t value) {
  return (size_t)(put_uint(out, value) - out);
}

size_t tnk__int32s_text(char *out, const int32_t *values, size_t n) {
  char *at = out;

  for (size_t i = 0; i < n; i++) {
    const int32_t value = values[i];
    if (value >= 0 && value < 100000000) {
      const uint32_t high = (uint32_t)value / 10000;
      at = high == 0 ? put_small(at, (uint32_t)value)
                     : put_four(put_small(at, high), (uint32_t)value % 10000);
    } else {
      at += tnk__int_text(at, value);
    }
    *at++ = ',';
  }
  return (size_t)(at - out);
}

size_t tnk__int_text(char *out, int64_t value) {
  if (value >= 0)
    return tnk__uint_text(out, (uint64_t)value);
  *out = '-';
  return 1 + tnk__uint_text(out + 1, 0 - (uint64_t)value);
}

/* Read "d.ddde-xx", with the locale's decimal point. */
static void read_scientific(struct decimal *d, const char *text) {
  const char *e = strchr(text, 'e');
  int exponent = 0;

  d->n = 0;
  /* Skips the decimal point, whichever character it is. */
  for (; text < e; text++)
    if (*text >= '0' && *text <= '9')
      d->digits[d->n++] = *text;
  while (d->n > 1 && d->digits[d->n - 1] == '0')
    d->n--;
  for (text = e + 2; *text >= '0' && *text <= '9'; text++)
    exponent = exponent * 10 + (*text - '0');
  d->point = (e[1] == '-' ? -exponent : exponent) + 1;
}

/* snprintf and strtod use the same locale, so reading back is exact. The digits
 * are extracted without interpreting the decimal point. */
static int try_digits(struct decimal *d, double value, int n, int is_float) {
  char text[64];
  double back;

  snprintf(text, sizeof(text), "%.*e", n - 1, value);
  back = strtod(text, NULL);
  if (is_float ? (float)back != (float)value : back != value)
    return 0;
  read_scientific(d, text);
  return 1;
}

/* Below a power of two, numbers are closer together than above it. The nearest
 * decimal of 16 digits, below, may then fail while the next one above reads
 * back; 2^-44 is an example. */
static int try_above(struct decimal *d, double value) {
  char text[64];
  char *digit;

  snprintf(text, sizeof(text), "%.15e", value);
  digit = strchr(text, 'e') - 1;
  if (*digit < '0' || *digit >= '9')
    return 0;
  ++*digit;
  if (strtod(text, NULL) != value)
    return 0;
  read_scientific(d, text);
  return 1;
}

/* ---- Without snprintf() and strtod() ---- */

/* These powers are exact, and so are integers below 2^53. */
static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* The numbers whose digits are tried without text. */
static int is_moderate(double value) {
  return FLT_EVAL_METHOD == 0 && value >= 1e-5 && value < 1e6;
}

/* The point of a moderate number. */
static int point_of(double value) {
  static const double parts[] = {1e-1, 1e-2, 1e-3, 1e-4, 1e-5};
  int point = 0;

  while (value >= powers[point])
    point++;
  while (point <= 0 && value < parts[-point])
    point--;
  return point;
}

static void set_digits(struct decimal *d, uint64_t whole, int n, int point) {
  d->n = tnk__uint_text(d->digits, whole);
  /* Rounding up may have given one digit more. */
  d->point = point + (int)d->n - n;
  while (d->n > 1 && d->digits[d->n - 1] == '0')
    d->n--;
}

/* Do the work of try_digits() for a moderate number and at most 15 digits, at a
 * thirtieth of its cost. Returns -1 if the result is uncertain: the
 * multiplication is not exact, so a float half way between two decimals may be
 * rounded to the wrong one. A double cannot be: only one decimal of 15 digits
 * reads back. The division is exact in the same sense as strtod(), which also
 * returns the double that is nearest to the decimal. */
static int try_quickly(struct decimal *d, double value, int n, int is_float) {
  const int point = point_of(value);
  const double power = powers[n - point], scaled = value * power;
  uint64_t whole = (uint64_t)scaled;
  const double part = scaled - (double)whole;
  double back;

  if (is_float && fabs(part - 0.5) < 1e-6)
    return -1;
  whole += part >= 0.5;
  back = (double)whole / power;
  if (is_float ? (float)back != (float)value : back != value)
    return 0;
  set_digits(d, whole, n, point);
  return 1;
}

/* ---- The shortest text ---- */

/* Every decimal of 15 digits survives conversion to a double. If 15 digits read
 * back, they are the shortest text once their final zeros are cut off.
 * Subnormal numbers have fewer digits, so the search starts at one digit. */
static void shortest_double(struct decimal *d, double value) {
  int n = value < DBL_MIN ? 1 : DBL_DIG;
  int half;

  if (is_moderate(value) && try_quickly(d, value, n, 0))
    return;
  for (; n <= 15; n++)
    if (try_digits(d, value, n, 0))
      return;
  if (try_digits(d, value, 16, 0))
    return;
  if (frexp(value, &half) == 0.5 && try_above(d, value))
    return;
  try_digits(d, value, 17, 0);
}

static void shortest_float(struct decimal *d, float value) {
  const int is_quick = is_moderate((double)value);
  int n = value < FLT_MIN ? 1 : FLT_DIG;

  for (; n < 9; n++) {
    int does = is_quick ? try_quickly(d, (double)value, n, 1) : -1;

    if (does < 0)
      does = try_digits(d, (double)value, n, 1);
    if (does)
      return;
  }
  if (!is_quick || try_quickly(d, (double)value, 9, 1) != 1)
    try_digits(d, (double)value, 9, 1);
}

static size_t fill(char *out, char c, size_t n) {
  memset(out, c, n);
  return n;
}

/* Plain notation from 0.00001 up to 16 digits before the point, otherwise with
 * an exponent. The service's other clients use the same form. */
static size_t print_decimal(char *out, const struct decimal *d) {
  size_t at = 0;
  size_t before = d->point > 0 ? (size_t)d->point : 0;

  if (d->point > 16 || d->point <= -5) {
    out[at++] = d->digits[0];
    if (d->n > 1) {
      out[at++] = '.';
      memcpy(out + at, d->digits + 1, d->n - 1);
      at += d->n - 1;
    }
    out[at++] = 'e';
    return at + tnk__int_text(out + at, d->point - 1);
  }
  if (d->point <= 0) {
    memcpy(out, "0.", 2);
    at = 2 + fill(out + 2, '0', (size_t)-d->point);
    memcpy(out + at, d->digits, d->n);
    return at + d->n;
  }
  if (d->n <= before) {
    memcpy(out, d->digits, d->n);
    at = d->n + fill(out + d->n, '0', before - d->n);
    memcpy(out + at, ".0", 2);
    return at + 2;
  }
  memcpy(out, d->digits, before);
  out[before] = '.';
  memcpy(out + before + 1, d->digits + before, d->n - before);
  return d->n + 1;
}

static size_t number_text(char *out, double value, int is_float) {
  struct decimal d = {.n = 0};
  size_t at = 0;

  if (signbit(value)) {
    out[at++] = '-';
    value = -value;
  }
  /* Whole numbers are common (weights, counts) and need no search. */
  if (value < 1e6 && value == (double)(uint32_t)value) {
    at += tnk__uint_text(out + at, (uint32_t)value);
    memcpy(out + at, ".0", 2);
    return at + 2;
  }
  if (is_float)
    shortest_float(&d, (float)value);
  else
    shortest_double(&d, value);
  return at + print_decimal(out + at, &d);
}

size_t tnk__double_text(char *out, double value) {
  return number_text(out, value, 0);
}

size_t tnk__float_text(char *out, float value) {
  return number_text(out, (double)value, 1);
}
