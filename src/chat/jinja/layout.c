/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "chat/jinja/lex/chars.h"
#include "chat/jinja/text.h"
#include "tnk/error.h"

enum { MAX_PRECISION = 200 };

void tnk__layout_text(tnk__run_t *run, tnk__buf_t *out, tnk__value_t text,
                      const tnk__layout_t *how) {
  char where = how->align == '>' ? '>' : how->align == '^' ? 'c' : '<';

  if (how->precision >= 0 && !tnk__charge(run, TNK__COST_COUNT, text.n_text))
    return;
  if (how->precision >= 0)
    text = tnk__text_part(
        text, 0,
        tnk__chars_place(text.as.text, text.n_text, (size_t)how->precision));
  tnk__print(run, out, tnk__text_pad(run, text, how->width, how->fill, where));
}

/* The digits of an integer in the base of its type. */
static size_t whole_digits(char *out, uint64_t value, char type) {
  const char *digits = type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
  const unsigned base = type == 'b'            ? 2
                        : type == 'o'          ? 8
                        : (type | 0x20) == 'x' ? 16
                                               : 10;
  char back[64];
  size_t n = 0;

  do
    back[n++] = digits[value % base];
  while ((value /= base) > 0);
  for (size_t i = 0; i < n; i++)
    out[i] = back[n - 1 - i];
  return n;
}

/* The digits of a real number with a decimal point. The number must not be
 * negative. */
static size_t real_digits(char *out, size_t size, double real,
                          const tnk__layout_t *how) {
  char format[] = "%.*f";
  char point[8];
  char *dot;
  int n;

  if (isnan(real) || isinf(real)) {
    const int is_upper = how->type >= 'A' && how->type <= 'Z';

    memcpy(out,
           isnan(real) ? (is_upper ? "NAN" : "nan")
                       : (is_upper ? "INF" : "inf"),
           3);
    return 3;
  }
  format[3] = how->type == '%' ? 'f' : how->type == 'F' ? 'f' : how->type;
  n = snprintf(out, size, format,
               (int)(how->precision < 0 ? 6 : how->precision),
               how->type == '%' ? real * 100 : real);
  /* printf() writes the decimal point of the locale. */
  snprintf(point, sizeof(point), "%.1f", 0.5);
  dot = strchr(out, point[1]);
  if (dot != NULL)
    *dot = '.';
  if (how->type == '%')
    out[n++] = '%';
  return (size_t)n;
}

/* Insert separators between groups of digits before the point. */
static size_t group(char *out, const char *digits, size_t n, char comma,
                    char type) {
  const size_t every =
      type == 'x' || type == 'X' || type == 'b' || type == 'o' ? 4 : 3;
  size_t whole = 0;
  size_t at = 0;

  while (whole < n && digits[whole] != '.' && digits[whole] != '%' &&
         (every == 4 || digits[whole] != 'e'))
    whole++;
  for (size_t i = 0; i < n; i++) {
    if (i > 0 && i < whole && (whole - i) % every == 0)
      out[at++] = comma;
    out[at++] = digits[i];
  }
  return at;
}

static void put_number(tnk__run_t *run, tnk__buf_t *out, const char *sign,
                       const char *digits, size_t n, const tnk__layout_t *how) {
  const size_t all = strlen(sign) + n;
  tnk__layout_t padded = *how;
  char text[1200];

  if (how->align == '=') {
    tnk__buf_text(out, sign);
    if ((uint64_t)how->width > run->env.max_output) {
      tnk__fail(run, TNK_ETOOBIG, "a text becomes too long");
      return;
    }
    if (!tnk__charge(run, TNK__COST_WRITE,
                     (uint64_t)(how->width > 0 ? how->width : 0)))
      return;
    for (size_t i = all; i < (size_t)(how->width > 0 ? how->width : 0); i++)
      tnk__buf_append(out, how->fill.as.text, how->fill.n_text);
    tnk__buf_append(out, digits, n);
    return;
  }
  memcpy(text, sign, strlen(sign));
  memcpy(text + strlen(sign), digits, n);
  padded.precision = -1;
  if (padded.align == 0)
    padded.align = '>';
  tnk__layout_text(run, out, tnk__value_text(text, all), &padded);
}

void tnk__layout_number(tnk__run_t *run, tnk__buf_t *out, tnk__value_t value,
                        const tnk__layout_t *how) {
  static const char wholes[] = "dboxX";
  char digits[640];
  char grouped[1000];
  char sign[4] = "";
  size_t n;
  double real = 0;
  int64_t whole = 0;
  int is_negative;

  if (how->precision > MAX_PRECISION) {
    tnk__fail(run, TNK_EUNSUPPORTED, "a number has at most 200 digits");
    return;
  }
  if (strchr(wholes, how->type) != NULL) {
    if (!tnk__value_whole(value, &whole)) {
      tnk__bad_type(run, "a whole number is needed to be formatted", value);
      return;
    }
    is_negative = whole < 0;
    n = whole_digits(
        digits, is_negative ? 0 - (uint64_t)whole : (uint64_t)whole, how->type);
  } else {
    if (!tnk__value_number(value, &real)) {
      tnk__bad_type(run, "a number is needed to be formatted", value);
      return;
    }
    if (!tnk__charge(run, TNK__COST_FLOAT, 1))
      return;
    is_negative = signbit(real) != 0 && !isnan(real);
    n = real_digits(digits, sizeof(digits), fabs(real), how);
  }
  if (how->comma != 0) {
    n = group(grouped, digits, n, how->comma, how->type);
    memcpy(digits, grouped, n < sizeof(digits) ? n : sizeof(digits));
  }
  sign[0] = is_negative ? '-' : how->sign;
  if (how->is_other && how->type != 'd' && strchr(wholes, how->type) != NULL) {
    sign[sign[0] != 0] = '0';
    sign[strlen(sign)] = how->type;
  }
  put_number(run, out, sign, digits, n, how);
}
