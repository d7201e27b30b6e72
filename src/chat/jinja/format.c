/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "chat/jinja/lex/chars.h"
#include "chat/jinja/text.h"
#include "tnk/error.h"

enum { MAX_PRECISION = 200 };

/* Format a text: truncate it to the precision, then pad it. */
static void layout_text(tnk__run_t *run, tnk__buf_t *out, tnk__value_t text,
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
  layout_text(run, out, tnk__value_text(text, all), &padded);
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

/* ---- Formats ---- */

/* "..." % (...) and "...".format(...). */

/* Maximum of widths and precisions that are arguments. */
enum { MAX_SIZE = 1 << 30 };

/* ---- "%" ---- */

typedef struct {
  tnk__run_t *run;
  tnk__buf_t buf;
  const char *at, *end;
  tnk__value_t args;
  size_t n_used;
} percent_t;

static tnk__value_t next_arg(percent_t *p) {
  const int is_tuple = p->args.kind == TNK__VALUE_TUPLE;

  if (is_tuple ? p->n_used >= p->args.as.list->n : p->n_used > 0)
    return tnk__fail(p->run, TNK_EINVAL, "a format has too few arguments");
  return is_tuple ? p->args.as.list->items[p->n_used++]
                  : (p->n_used++, p->args);
}

/* Get the value of "%(name)". Returns 0 if a name does not follow. */
static int named_arg(percent_t *p, tnk__value_t *out) {
  const char *from = p->at + 1;
  tnk__value_t name;
  int open = 1;

  if (p->at == p->end || *p->at != '(')
    return 0;
  for (p->at++; p->at < p->end && open > 0; p->at++)
    open += (*p->at == '(') - (*p->at == ')');
  name = tnk__value_text(from, (size_t)(p->at - from - (open == 0)));
  *out = tnk__value_undefined();
  if (!tnk__charge(p->run, 2 * TNK__COST_HASH, name.n_text))
    return 1;
  if (open > 0 || p->args.kind != TNK__VALUE_DICT)
    tnk__fail(p->run, TNK_EINVAL, "a format with names needs a dict");
  else if (!tnk__value_has(p->args, name))
    tnk__fail(p->run, TNK_EINVAL, "a format has a name that its dict lacks");
  else
    *out = tnk__value_find(p->args, name);
  return 1;
}

static int64_t read_size(percent_t *p) {
  int64_t size = 0;

  if (p->at < p->end && *p->at == '*') {
    p->at++;
    if (!tnk__arg_whole(p->run, next_arg(p), 0, &size))
      return 0;
    if (size > MAX_SIZE || size < -MAX_SIZE)
      tnk__fail(p->run, TNK_ETOOBIG, "a text becomes too long");
    return p->run->err == TNK_OK ? size : 0;
  }
  for (; p->at < p->end && *p->at >= '0' && *p->at <= '9' && size < 1 << 28;
       p->at++)
    size = size * 10 + (*p->at - '0');
  return size;
}

static void read_flags(percent_t *p, tnk__layout_t *how, int *is_zero) {
  *is_zero = 0;
  for (; p->at < p->end; p->at++)
    switch (*p->at) {
    case '-':
      how->align = '<';
      break;
    case '+':
      how->sign = '+';
      break;
    case ' ':
      how->sign = how->sign == 0 ? ' ' : how->sign;
      break;
    case '#':
      how->is_other = 1;
      break;
    case '0':
      *is_zero = 1;
      break;
    default:
      return;
    }
}

static void put_text(percent_t *p, tnk__value_t value, tnk__layout_t *how,
                     char type) {
  tnk__buf_t buf;

  if (type == 's') {
    value = tnk__text_of(p->run, value);
  } else {
    tnk__scratch(p->run, &buf);
    tnk__print_repr(p->run, &buf, value);
    value = tnk__scratch_text(p->run, &buf);
  }
  if (how->align == 0)
    how->align = '>';
  if (p->run->err == TNK_OK)
    layout_text(p->run, &p->buf, value, how);
}

static void put_char(percent_t *p, tnk__value_t value, tnk__layout_t *how) {
  char bytes[4];
  int64_t c;

  if (tnk__value_whole(value, &c)) {
    if (c < 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
      tnk__fail(p->run, TNK_EINVAL, "%%c needs a character");
      return;
    }
    value = tnk__value_text(bytes, tnk__char_put(bytes, (uint32_t)c));
  } else if (value.kind != TNK__VALUE_TEXT || tnk__length(p->run, value) != 1) {
    tnk__bad_type(p->run, "%c needs a character", value);
    return;
  }
  if (how->align == 0)
    how->align = '>';
  how->precision = -1;
  layout_text(p->run, &p->buf, value, how);
}

static void put_value(percent_t *p, tnk__value_t value, tnk__layout_t *how,
                      char type, int is_zero) {
  if (type == 's' || type == 'r') {
    put_text(p, value, how, type);
    return;
  }
  if (type == 'c') {
    put_char(p, value, how);
    return;
  }
  if (type == 'i' || type == 'u')
    type = 'd';
  if (strchr("doxXeEfFgG", type) == NULL || type == '\0') {
    tnk__fail(p->run, TNK_EUNSUPPORTED,
              "a format has a type that is not "
              "known");
    return;
  }
  if (type == 'd' && value.kind == TNK__VALUE_FLOAT && value.as.real > -9e18 &&
      value.as.real < 9e18)
    value = tnk__value_int((int64_t)value.as.real);
  how->type = type;
  if (strchr("doxX", type) != NULL && how->precision >= 0) {
    tnk__fail(p->run, TNK_EUNSUPPORTED, "a whole number has no precision here");
    return;
  }
  if (is_zero && how->align == 0) {
    how->align = '=';
    how->fill = tnk__value_text("0", 1);
  }
  tnk__layout_number(p->run, &p->buf, value, how);
}

static void one_percent(percent_t *p) {
  tnk__layout_t how = {.fill = tnk__value_text(" ", 1), .precision = -1};
  tnk__value_t value;
  int has_name;
  int is_zero;
  char type;

  if (!tnk__charge(p->run, TNK__COST_FORMAT, 1))
    return;
  has_name = named_arg(p, &value);
  read_flags(p, &how, &is_zero);
  how.width = read_size(p);
  if (how.width < 0) {
    how.align = '<';
    how.width = -how.width;
  }
  if (p->at < p->end && *p->at == '.') {
    p->at++;
    how.precision = read_size(p);
    if (how.precision < 0)
      how.precision = 0;
  }
  while (p->at < p->end && (*p->at == 'l' || *p->at == 'h' || *p->at == 'L'))
    p->at++;
  if (p->at == p->end) {
    tnk__fail(p->run, TNK_EINVAL, "a format ends behind a %%");
    return;
  }
  type = *p->at++;
  if (type == '%') {
    tnk__buf_byte(&p->buf, '%');
    return;
  }
  if (!has_name)
    value = next_arg(p);
  if (p->run->err == TNK_OK)
    put_value(p, value, &how, type, is_zero);
}

/* If the format is markup, escape the arguments. */
static tnk__value_t escape_args(tnk__run_t *run, tnk__value_t args) {
  tnk__value_t tuple;

  if (args.kind == TNK__VALUE_TEXT)
    return tnk__escape(run, args);
  if (args.kind != TNK__VALUE_TUPLE)
    return args;
  tuple = tnk__value_tuple(run->heap);
  if (!tnk__enter(run, 1))
    return tuple;
  for (size_t i = 0; i < args.as.list->n && tnk__charge(run, TNK__COST_ITEM, 1);
       i++)
    tnk__value_append(run->heap, tuple,
                      escape_args(run, args.as.list->items[i]));
  run->depth--;
  return tuple;
}

tnk__value_t tnk__percent(tnk__run_t *run, tnk__value_t format,
                          tnk__value_t args) {
  percent_t p = {.run = run,
                 .at = format.as.text,
                 .end = format.as.text + format.n_text,
                 .args = format.is_markup ? escape_args(run, args) : args};
  tnk__value_t text;
  const char *from;

  if (!tnk__is_fine(run) || !tnk__charge(run, TNK__COST_SCAN, format.n_text))
    return tnk__value_undefined();
  tnk__scratch(run, &p.buf);
  while (p.at < p.end && run->err == TNK_OK && p.buf.err == TNK_OK) {
    for (from = p.at; p.at < p.end && *p.at != '%'; p.at++)
      ;
    tnk__buf_append(&p.buf, from, (size_t)(p.at - from));
    if (p.at < p.end) {
      p.at++;
      one_percent(&p);
    }
  }
  if (p.buf.err == TNK_OK &&
      (args.kind == TNK__VALUE_TUPLE
           ? p.n_used < args.as.list->n
           : p.n_used == 0 && args.kind != TNK__VALUE_DICT &&
                 args.kind != TNK__VALUE_LIST &&
                 args.kind != TNK__VALUE_UNDEFINED))
    tnk__fail(run, TNK_EINVAL, "a format has too many arguments");
  text = tnk__scratch_text(run, &p.buf);
  text.is_markup = format.is_markup;
  return text;
}

/* ---- format() ---- */

/* Read a format such as "<10.2f". Returns 0 if it is malformed. */
static int read_layout(tnk__value_t spec, tnk__layout_t *how) {
  const char *p = spec.as.text;
  const char *end = p + spec.n_text;
  const size_t first = spec.n_text > 0 ? tnk__char_at(spec, 0).n_text : 0;

  *how = (tnk__layout_t){.fill = tnk__value_text(" ", 1), .precision = -1};
#define IS_ALIGN(c) ((c) == '<' || (c) == '>' || (c) == '^' || (c) == '=')
  if (spec.n_text > first && IS_ALIGN(p[first])) {
    how->fill = tnk__value_text(p, first);
    how->align = p[first];
    p += first + 1;
  } else if (p < end && IS_ALIGN(*p)) {
    how->align = *p++;
  }
#undef IS_ALIGN
  if (p < end && (*p == '+' || *p == '-' || *p == ' '))
    how->sign = *p == '-' ? how->sign : *p, p++;
  if (p < end && *p == '#')
    how->is_other = *p++ == '#';
  if (p < end && *p == '0') {
    if (how->align == 0) {
      how->align = '=';
      how->fill = tnk__value_text("0", 1);
    }
    p++;
  }
  for (; p < end && *p >= '0' && *p <= '9' && how->width < 1 << 28; p++)
    how->width = how->width * 10 + (*p - '0');
  if (p < end && (*p == ',' || *p == '_'))
    how->comma = *p++;
  if (p < end && *p == '.') {
    if (++p == end || *p < '0' || *p > '9')
      return 0;
    for (how->precision = 0;
         p < end && *p >= '0' && *p <= '9' && how->precision < 1 << 28; p++)
      how->precision = how->precision * 10 + (*p - '0');
  }
  if (p < end)
    how->type = *p++;
  return p == end;
}

/* Format a value with a format of Python, such as "5.2f". */
static void format_value(tnk__run_t *run, tnk__buf_t *out, tnk__value_t value,
                         tnk__value_t spec) {
  tnk__layout_t how;
  int is_number = tnk__value_is_number(value);

  if (spec.n_text == 0) {
    tnk__print(run, out, value);
    return;
  }
  if (!read_layout(spec, &how)) {
    tnk__fail(run, TNK_EINVAL, "a format is malformed");
    return;
  }
  if (value.kind == TNK__VALUE_TEXT) {
    if ((how.type != 0 && how.type != 's') || how.align == '=' ||
        how.sign != 0 || how.is_other || how.comma != 0)
      tnk__fail(run, TNK_EINVAL, "a format does not fit a text");
    else
      layout_text(run, out, value, &how);
    return;
  }
  if (is_number && how.type == 0 && value.kind != TNK__VALUE_FLOAT &&
      how.precision < 0)
    how.type = 'd';
  if (!is_number || how.type == 0 || strchr("dboxXeEfFgG%", how.type) == NULL ||
      (how.precision >= 0 && strchr("dboxX", how.type) != NULL) ||
      ((how.type | 0x20) == 'g' && how.is_other) ||
      (how.type == 'd' && value.kind == TNK__VALUE_FLOAT))
    tnk__fail(run, TNK_EUNSUPPORTED, "a format is not known for \"%s\"",
              tnk__class_of(run, value)->name);
  else
    tnk__layout_number(run, out, value, &how);
}

typedef struct {
  tnk__run_t *run;
  const tnk__args_t *args;
  int64_t next; /* index of the next field without a number; -1: fields are
                   numbered */
  int is_markup;
  int in_spec; /* inside the format of a field; fields in it may not nest
                  further */
} fields_t;

static tnk__value_t format_fields(fields_t *f, tnk__value_t format);

/* The value at the start of a field: by its number or its name. */
static tnk__value_t first_of(fields_t *f, tnk__value_t name) {
  int64_t number = 0;
  int has_digits = name.n_text > 0;

  for (uint32_t i = 0; i < name.n_text; i++) {
    has_digits &= name.as.text[i] >= '0' && name.as.text[i] <= '9';
    if (has_digits && number < 1 << 20)
      number = number * 10 + (name.as.text[i] - '0');
  }
  if (name.n_text == 0 || has_digits) {
    if ((name.n_text == 0) == (f->next < 0) && f->next != 0)
      return tnk__fail(f->run, TNK_EINVAL,
                       "fields have numbers either all or none");
    if (name.n_text == 0)
      number = f->next++;
    else
      f->next = -1;
    return (size_t)number < f->args->n
               ? f->args->items[number]
               : tnk__fail(f->run, TNK_EINVAL,
                           "a format has too few arguments");
  }
  for (size_t i = 0; i < f->args->n_named &&
                     tnk__charge_equal(f->run, f->args->names[i], name);
       i++)
    if (tnk__value_equal(f->args->names[i], name))
      return f->args->values[i];
  return tnk__fail(f->run, TNK_EINVAL, "a format has a name that is not given");
}

/* The value of a field with attributes and items: "0.name[key]". */
static tnk__value_t field_value(fields_t *f, tnk__value_t name) {
  const char *p = name.as.text;
  const char *end = p + name.n_text;
  const char *from;
  tnk__value_t value;
  tnk__value_t key;

  for (from = p; p < end && *p != '.' && *p != '['; p++)
    ;
  value = first_of(f, tnk__value_text(from, (size_t)(p - from)));
  while (p < end && f->run->err == TNK_OK) {
    const char close = *p == '[' ? ']' : '.';

    for (from = ++p;
         p < end && (close == ']' ? *p != ']' : *p != '.' && *p != '['); p++)
      ;
    key = tnk__value_text(from, (size_t)(p - from));
    if (key.n_text == 0 || (close == ']' && p == end))
      return tnk__fail(f->run, TNK_EINVAL, "a field of a format is malformed");
    if (close == ']')
      p++;
    if (close == '.')
      value = tnk__getattr(f->run, value, key);
    else if (*from >= '0' && *from <= '9')
      value = tnk__fail(f->run, TNK_EUNSUPPORTED,
                        "a format cannot ask for items by number here");
    else
      value = tnk__getitem(f->run, value, key);
  }
  return value;
}

static void put_field(fields_t *f, tnk__buf_t *out, tnk__value_t field) {
  size_t n = 0;
  size_t colon;
  tnk__value_t value;
  tnk__value_t spec;
  int is_repr = 0;

  if (!tnk__charge(f->run, TNK__COST_FORMAT, 1))
    return;

  while (n < field.n_text && field.as.text[n] != '!' && field.as.text[n] != ':')
    n++;
  colon = n;
  if (n < field.n_text && field.as.text[n] == '!') {
    is_repr = n + 1 < field.n_text && field.as.text[n + 1] == 'r';
    colon = n + 2;
    if (colon > field.n_text || (!is_repr && field.as.text[n + 1] != 's') ||
        (colon < field.n_text && field.as.text[colon] != ':')) {
      tnk__fail(f->run, TNK_EUNSUPPORTED, "a conversion is not known");
      return;
    }
  }
  value = field_value(f, tnk__text_part(field, 0, n));
  spec = colon < field.n_text ? tnk__text_part(field, colon + 1, field.n_text)
                              : tnk__value_text("", 0);
  if (spec.n_text > 0 && memchr(spec.as.text, '{', spec.n_text) != NULL) {
    if (f->in_spec) {
      tnk__fail(f->run, TNK_EINVAL, "fields of a format are nested too deep");
      return;
    }
    f->in_spec = 1;
    spec = format_fields(f, spec);
    f->in_spec = 0;
  }
  if (is_repr) {
    tnk__buf_t buf;

    tnk__scratch(f->run, &buf);
    tnk__print_repr(f->run, &buf, value);
    value = tnk__scratch_text(f->run, &buf);
  }
  if (f->is_markup)
    value = tnk__escape(f->run, value);
  if (f->run->err == TNK_OK)
    format_value(f->run, out, value, spec);
}

static tnk__value_t format_fields(fields_t *f, tnk__value_t format) {
  tnk__run_t *run = f->run;
  const char *p = format.as.text;
  const char *end = p + format.n_text;
  const char *from;
  tnk__value_t text;
  tnk__buf_t buf;
  int open;

  if (!tnk__charge(run, TNK__COST_SCAN, format.n_text))
    return tnk__value_undefined();
  tnk__scratch(run, &buf);
  while (p < end && run->err == TNK_OK && buf.err == TNK_OK) {
    for (from = p; p < end && *p != '{' && *p != '}'; p++)
      ;
    tnk__buf_append(&buf, from, (size_t)(p - from));
    if (p == end)
      break;
    if (p + 1 < end && p[1] == *p) {
      tnk__buf_byte(&buf, (uint8_t)*p);
      p += 2;
      continue;
    }
    open = *p == '{';
    for (from = ++p; p < end && open > 0; p++)
      open += (*p == '{') - (*p == '}');
    if (open > 0 || from[-1] == '}')
      tnk__fail(run, TNK_EINVAL, "a format has a bracket alone");
    else
      put_field(f, &buf, tnk__value_text(from, (size_t)(p - from - 1)));
  }
  text = tnk__scratch_text(run, &buf);
  text.is_markup = format.is_markup;
  return text;
}

tnk__value_t tnk__text_format(tnk__run_t *run, tnk__value_t format,
                              const tnk__args_t *args) {
  fields_t f = {
      .run = run, .args = args, .is_markup = format.is_markup, .in_spec = 0};

  return format_fields(&f, format);
}
