/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chat/value/value.h"
#include "lib/wire/format/number_text.h"

/* Digits and the position of the decimal point: 0.ddd * 10^point. */
typedef struct {
  char digits[TNK__NUMBER_TEXT];
  size_t n;
  int point;
} decimal_t;

/* Parse the codec's output. It has the shortest digits, but uses exponents in
 * other cases. */
static void take_apart(decimal_t *d, const char *text, size_t n) {
  int seen_point = 0;
  int exponent = 0;
  size_t i = 0;

  *d = (decimal_t){.n = 0};
  for (; i < n && text[i] != 'e'; i++) {
    if (text[i] == '.') {
      seen_point = 1;
      continue;
    }
    if (d->n == 0 && text[i] == '0') {
      d->point -= seen_point;
      continue;
    }
    d->digits[d->n++] = text[i];
    d->point += !seen_point;
  }
  if (i < n) {
    const int is_negative = text[i + 1] == '-';

    for (i += 1 + (size_t)is_negative; i < n; i++)
      if (text[i] != '+')
        exponent = exponent * 10 + (text[i] - '0');
    d->point += is_negative ? -exponent : exponent;
  }
  while (d->n > 1 && d->digits[d->n - 1] == '0')
    d->n--;
}

static size_t put(char *out, const char *text, size_t n) {
  memcpy(out, text, n);
  return n;
}

static size_t put_exponent(char *out, const decimal_t *d) {
  const int exponent = d->point - 1;
  size_t at = 0;

  out[at++] = d->digits[0];
  if (d->n > 1) {
    out[at++] = '.';
    at += put(out + at, d->digits + 1, d->n - 1);
  }
  out[at++] = 'e';
  out[at++] = exponent < 0 ? '-' : '+';
  if (abs(exponent) < 10)
    out[at++] = '0';
  return at + tnk__uint_text(out + at, (uint64_t)abs(exponent));
}

/* Python uses an exponent below 1e-4 and from 1e16 on. */
static size_t put_decimal(char *out, const decimal_t *d) {
  size_t at = 0;
  size_t before;

  if (d->point < -3 || d->point > 16)
    return put_exponent(out, d);
  if (d->point <= 0) {
    at = put(out, "0.", 2);
    for (int i = d->point; i < 0; i++)
      out[at++] = '0';
    return at + put(out + at, d->digits, d->n);
  }
  before = (size_t)d->point;
  for (; at < before; at++)
    out[at] = at < d->n ? d->digits[at] : '0';
  out[at++] = '.';
  if (d->n > before)
    return at + put(out + at, d->digits + before, d->n - before);
  out[at++] = '0';
  return at;
}

/* ---- Kinds of numbers ---- */

int tnk__value_whole(tnk__value_t value, int64_t *out) {
  if (value.kind == TNK__VALUE_BOOL)
    *out = value.as.is_true;
  else if (value.kind == TNK__VALUE_INT)
    *out = value.as.number;
  else
    return 0;
  return 1;
}

int tnk__value_number(tnk__value_t value, double *out) {
  int64_t whole;

  if (value.kind == TNK__VALUE_FLOAT)
    *out = value.as.real;
  else if (tnk__value_whole(value, &whole))
    *out = (double)whole;
  else
    return 0;
  return 1;
}

int tnk__value_is_number(tnk__value_t value) {
  return value.kind == TNK__VALUE_BOOL || value.kind == TNK__VALUE_INT ||
         value.kind == TNK__VALUE_FLOAT;
}

/* Compare an integer with a double exactly. Returns -1, 0, 1, or 2 for NaN. */
static int compare_mixed(int64_t whole, double real) {
  double floor_of;
  int64_t other;

  if (isnan(real))
    return 2;
  if (real >= 9223372036854775808.0)
    return -1;
  if (real < -9223372036854775808.0)
    return 1;
  floor_of = floor(real);
  other = (int64_t)floor_of;
  if (whole != other)
    return whole < other ? -1 : 1;
  return floor_of < real ? -1 : 0;
}

int tnk__value_compare_numbers(tnk__value_t a, tnk__value_t b) {
  int64_t x = 0;
  int64_t y = 0;
  int order;

  if (tnk__value_whole(a, &x)) {
    if (tnk__value_whole(b, &y))
      return (x > y) - (x < y);
    return compare_mixed(x, b.as.real);
  }
  if (tnk__value_whole(b, &y)) {
    order = compare_mixed(y, a.as.real);
    return order == 2 ? 2 : -order;
  }
  if (isnan(a.as.real) || isnan(b.as.real))
    return 2;
  return (a.as.real > b.as.real) - (a.as.real < b.as.real);
}

size_t tnk__value_float_text(char *out, double real) {
  char text[TNK__NUMBER_TEXT];
  decimal_t d;
  size_t at = 0;

  if (isnan(real))
    return put(out, "nan", 3);
  if (signbit(real))
    out[at++] = '-';
  real = fabs(real);
  if (isinf(real))
    return at + put(out + at, "inf", 3);
  if (real == 0)
    return at + put(out + at, "0.0", 3);
  take_apart(&d, text, tnk__double_text(text, real));
  return at + put_decimal(out + at, &d);
}

int tnk__value_read_float(const char *text, size_t n, double *out) {
  char copy[1100];
  char point[8];
  char *dot;

  if (n >= sizeof(copy))
    return 0;
  memcpy(copy, text, n);
  copy[n] = '\0';
  /* strtod() needs the decimal point of the current locale. */
  snprintf(point, sizeof(point), "%.1f", 0.5);
  dot = strchr(copy, '.');
  if (dot != NULL && point[2] == '5')
    *dot = point[1];
  *out = strtod(copy, NULL);
  return 1;
}
