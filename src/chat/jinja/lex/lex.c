/* SPDX-License-Identifier: MIT */
#include "chat/jinja/lex/lex.h"

#include <string.h>

#include "chat/jinja/lex/chars.h"
#include "lib/base/utf8.h"
#include "tnk/error.h"

static int digit_of(char c, int base) {
  int digit = 99;

  if (c >= '0' && c <= '9')
    digit = c - '0';
  else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
    digit = (c | 0x20) - 'a' + 10;
  return digit < base ? digit : -1;
}

/* ---- Texts ---- */

/* Read n hexadecimal digits into *out. */
static int read_hex(const char *p, const char *end, int n, uint32_t *out) {
  *out = 0;
  if (end - p < n)
    return 0;
  for (int i = 0; i < n; i++) {
    const int digit = digit_of(p[i], 16);

    if (digit < 0)
      return 0;
    *out = *out << 4 | (uint32_t)digit;
  }
  return 1;
}

/* Read a numeric escape: \x41 \u0041 \U00000041 \101. Returns the number of
 * bytes after the backslash, or 0. */
static size_t number_escape(const char *p, const char *end, uint32_t *out) {
  const int n = *p == 'x' ? 2 : *p == 'u' ? 4 : *p == 'U' ? 8 : 0;
  size_t i = 0;

  if (n > 0)
    return read_hex(p + 1, end, n, out) && *out < 0x110000 ? (size_t)n + 1 : 0;
  for (*out = 0; i < 3 && p + i < end && digit_of(p[i], 8) >= 0; i++)
    *out = *out << 3 | (uint32_t)digit_of(p[i], 8);
  return i;
}

/* Read the text between quotes, with the escapes of Python. TNK_EINVAL;
 * TNK_EUNSUPPORTED for characters by name and for halves of surrogate pairs;
 * errors of the heap. */
static int literal_text(tnk__heap_t *heap, const char *text, size_t n,
                        tnk__value_t *out) {
  static const char from[] = "\\'\"abfnrtv";
  static const char to[] = "\\'\"\a\b\f\n\r\t\v";
  const char *p = text;
  const char *end = text + n;
  const char *known;
  char *copy;
  size_t at = 0;
  size_t used;
  uint32_t c;

  *out = tnk__value_text(text, n);
  if (n == 0 || memchr(text, '\\', n) == NULL)
    return TNK_OK;
  copy = tnk__heap_alloc(heap, n); /* no escape is shorter than its result */
  if (copy == NULL)
    return heap->err;
  for (; p < end; p += used) {
    used = 1;
    if (*p != '\\' || p + 1 == end) {
      copy[at++] = *p;
      continue;
    }
    p++;
    known = memchr(from, *p, sizeof(from) - 1);
    if (known != NULL) {
      copy[at++] = to[known - from];
    } else if (*p == 'N') {
      return TNK_EUNSUPPORTED;
    } else if (strchr("xuU01234567", *p) != NULL && *p != '\0') {
      used = number_escape(p, end, &c);
      if (used == 0)
        return TNK_EINVAL;
      if (c >= 0xd800 && c < 0xe000)
        return TNK_EUNSUPPORTED;
      at += tnk__char_put(copy + at, c);
    } else if (*p != '\n') {
      copy[at++] = '\\';
      copy[at++] = *p;
    }
  }
  *out = tnk__value_text(copy, at);
  return TNK_OK;
}

/* ---- Numbers ---- */

/* The end of digits in a base. Single underscores are allowed between them, and
 * before the first one after a prefix. */
static const char *digits_end(const char *p, const char *end, int base) {
  while (p < end && (digit_of(*p, base) >= 0 ||
                     (*p == '_' && p + 1 < end && digit_of(p[1], base) >= 0)))
    p++;
  return p;
}

static size_t read_whole(const char *text, const char *end, int base,
                         size_t skip, tnk__value_t *out) {
  uint64_t value = 0;

  for (const char *p = text + skip; p < end; p++) {
    const int digit = digit_of(*p, base);

    if (digit < 0)
      continue; /* an underscore */
    if (value > ((uint64_t)INT64_MAX - (uint64_t)digit) / (uint64_t)base)
      return 0;
    value = value * (uint64_t)base + (uint64_t)digit;
  }
  *out = tnk__value_int((int64_t)value);
  return (size_t)(end - text);
}

/* The end of the float that starts here, or NULL. */
static const char *float_end(const char *text, const char *end) {
  const char *p = digits_end(text, end, 10);
  const char *q;

  if (p + 1 < end && *p == '.' && digit_of(p[1], 10) >= 0)
    p = digits_end(p + 1, end, 10);
  q = p;
  if (q < end && (*q | 0x20) == 'e') {
    q++;
    q += q < end && (*q == '+' || *q == '-');
    if (q < end && digit_of(*q, 10) >= 0)
      return digits_end(q, end, 10);
  }
  return memchr(text, '.', (size_t)(p - text)) != NULL ? p : NULL;
}

static size_t read_float(const char *text, const char *end, tnk__value_t *out) {
  char copy[512];
  size_t n = 0;
  double real = 0;

  for (const char *p = text; p < end; p++) {
    if (n == sizeof(copy))
      return 0;
    if (*p != '_')
      copy[n++] = *p;
  }
  if (!tnk__value_read_float(copy, n, &real))
    return 0;
  *out = tnk__value_float(real);
  return (size_t)(end - text);
}

/* Read the number that starts here; `may_be_float` allows a point. Returns its
 * length, or 0 if it needs more than 64 bits. */
static size_t literal_number(const char *text, size_t n, int may_be_float,
                             tnk__value_t *out) {
  const char *end = text + n;
  const char *p = may_be_float ? float_end(text, end) : NULL;
  int base = 0;

  if (p != NULL)
    return read_float(text, p, out);
  if (n > 2 && text[0] == '0') {
    const char c = (char)(text[1] | 0x20);

    base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
    if (base > 0 && digits_end(text + 2, end, base) > text + 2)
      return read_whole(text, digits_end(text + 2, end, base), base, 2, out);
  }
  if (text[0] == '0') {
    /* Only zeros: other digits after them are a separate number. */
    for (p = text + 1;
         p < end && (*p == '0' || (*p == '_' && p + 1 < end && p[1] == '0'));)
      p++;
    return read_whole(text, p, 10, 0, out);
  }
  return read_whole(text, digits_end(text, end, 10), 10, 0, out);
}

/* ---- Tags and tokens ---- */

/*
 * Text outside tags is data. A tag starts in data, and the sign after its
 * bracket controls the white space before it. Inside a tag there are tokens of
 * expressions. While brackets are open, the tag cannot end.
 */

enum { MAX_BRACKETS = 200 };

typedef struct {
  tnk__tokens_t *out;
  tnk__heap_t *heap;
  const char *at, *end;
  uint32_t line;
  int line_starting; /* the previous part ended with a newline */
  int err;
  tnk__why_t *why;
  char open[MAX_BRACKETS]; /* open brackets in this tag */
  size_t n_open;
} lexer_t;

static int fail(lexer_t *l, const char *what) {
  l->err = tnk__why(l->why, TNK_EINVAL, l->line, "%s", what);
  return l->err;
}

/* Move to `to` and count lines. */
static void go_to(lexer_t *l, const char *to) {
  const char *p = l->at;

  while (p < to && (p = memchr(p, '\n', (size_t)(to - p))) != NULL) {
    l->line++;
    p++;
  }
  if (to > l->at)
    l->line_starting = to[-1] == '\n';
  l->at = to;
}

static tnk__token_t *put(lexer_t *l, tnk__token_kind_t kind) {
  tnk__tokens_t *out = l->out;
  tnk__token_t *items;

  if (out->n == out->cap) {
    const size_t cap = out->cap == 0 ? 64 : out->cap * 2;

    items = tnk__heap_alloc(l->heap, cap * sizeof(*items));
    if (items == NULL) {
      l->err = tnk__why(l->why, l->heap->err, l->line, "no memory is left");
      return NULL;
    }
    if (out->n > 0)
      memcpy(items, out->items, out->n * sizeof(*items));
    out->items = items;
    out->cap = cap;
  }
  out->items[out->n] = (tnk__token_t){.kind = (uint8_t)kind, .line = l->line};
  return &out->items[out->n++];
}

static void put_value(lexer_t *l, tnk__token_kind_t kind, tnk__value_t value) {
  tnk__token_t *token = put(l, kind);

  if (token != NULL)
    token->value = value;
}

static void put_data(lexer_t *l, const char *from, const char *to) {
  if (to > from)
    put_value(l, TNK__TOKEN_DATA, tnk__value_text(from, (size_t)(to - from)));
}

static const char *skip_blanks(const lexer_t *l, const char *p) {
  return p + tnk__blank_prefix(p, (size_t)(l->end - p));
}

/* Returns whether these characters come next. */
static int sees(const lexer_t *l, const char *p, const char *text) {
  const size_t n = strlen(text);

  return (size_t)(l->end - p) >= n && memcmp(p, text, n) == 0;
}

/* ---- Data, and the start of tags ---- */

/* The end of the data before a tag with this sign. `is_variable`: for a {{ }}
 * tag, the white space before it is kept. */
static const char *data_end(const lexer_t *l, const char *from, const char *to,
                            char sign, int is_variable) {
  const char *p = to;
  const char *line;

  if (sign == '-')
    return from + (size_t)(to - from) -
           tnk__blank_suffix(from, (size_t)(to - from));
  if (sign == '+' || is_variable)
    return to;
  while (p > from && p[-1] != '\n')
    p--;
  line = p;
  if (line == from && !l->line_starting)
    return to;
  return line < to && skip_blanks(l, line) >= to ? line : to;
}

static const char *find_tag(const lexer_t *l) {
  const char *p = l->at;

  while (p < l->end && (p = memchr(p, '{', (size_t)(l->end - p))) != NULL) {
    if (l->end - p >= 2 && (p[1] == '{' || p[1] == '%' || p[1] == '#'))
      return p;
    p++;
  }
  return NULL;
}

/* The end of the part that a closing bracket consumes: white space after "-".
 * Without a sign it is one newline, if the tag is a block or comment. */
static const char *after_tag(const lexer_t *l, const char *p, char sign,
                             int is_variable) {
  if (sign == '-')
    return skip_blanks(l, p);
  if (sign != '+' && !is_variable && p < l->end && *p == '\n')
    return p + 1;
  return p;
}

static void lex_comment(lexer_t *l, const char *from) {
  const char *p = from;
  char sign;

  /* The reference ignores a comment that ends right after its start. */
  if (from == l->end)
    return;
  while (p < l->end && !sees(l, p, "#}"))
    p++;
  if (p == l->end) {
    fail(l, "a comment has no end");
    return;
  }
  sign = p > from ? p[-1] : '\0';
  go_to(l, after_tag(l, p + 2, sign, 0));
}

/* If the tag is "raw", return the position after its bracket, otherwise
 * NULL. */
static const char *raw_begin(const lexer_t *l, const char *p) {
  p = skip_blanks(l, p);
  if (!sees(l, p, "raw"))
    return NULL;
  p = skip_blanks(l, p + 3);
  if (sees(l, p, "-%}"))
    return skip_blanks(l, p + 3);
  return sees(l, p, "%}") ? p + 2 : NULL;
}

static void lex_raw(lexer_t *l) {
  const char *from = l->at;
  const char *p;
  const char *q;
  char sign;

  if (from == l->end)
    return;
  for (p = from; p < l->end; p++) {
    if (!sees(l, p, "{%"))
      continue;
    q = p + 2;
    sign = q < l->end && (*q == '-' || *q == '+') ? *q++ : '\0';
    q = skip_blanks(l, q);
    if (!sees(l, q, "endraw"))
      continue;
    q = skip_blanks(l, q + 6);
    if (q < l->end && (*q == '-' || *q == '+') && sees(l, q + 1, "%}"))
      q = after_tag(l, q + 3, *q, 0);
    else if (sees(l, q, "%}"))
      q = after_tag(l, q + 2, '\0', 0);
    else
      continue;
    put_data(l, from, data_end(l, from, p, sign, 0));
    go_to(l, q);
    return;
  }
  fail(l, "{% raw %} has no end");
}

/* ---- Inside a tag ---- */

static int is_digit(char c) {
  return c >= '0' && c <= '9';
}

/* Returns whether the tag ends here, and moves after it. */
static int lex_end(lexer_t *l, int is_variable) {
  const char *close = is_variable ? "}}" : "%}";
  const char *p = l->at;
  char sign = '\0';

  if (l->n_open > 0)
    return 0;
  if (p < l->end && (*p == '-' || (*p == '+' && !is_variable)))
    sign = *p++;
  if (!sees(l, p, close))
    return 0;
  put(l, is_variable ? TNK__TOKEN_VARIABLE_END : TNK__TOKEN_BLOCK_END);
  go_to(l, after_tag(l, p + 2, sign, is_variable));
  return 1;
}

static void lex_bracket(lexer_t *l, char c) {
  char wanted;

  if (c == '(' || c == '[' || c == '{') {
    if (l->n_open == MAX_BRACKETS)
      fail(l, "brackets are nested too deep");
    else
      l->open[l->n_open++] = c;
    return;
  }
  wanted = c == ')' ? '(' : c == ']' ? '[' : '{';
  if (l->n_open == 0 || l->open[l->n_open - 1] != wanted)
    fail(l, "a bracket closes what is not open");
  else
    l->n_open--;
}

static void lex_operator(lexer_t *l) {
  static const char *const pairs[] = {"//", "**", "==", "!=", ">=", "<="};
  const char c = *l->at;
  tnk__token_t *token;
  char text[64];

  for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
    if (!sees(l, l->at, pairs[i]))
      continue;
    token = put(l, TNK__TOKEN_OPERATOR);
    if (token != NULL)
      token->op = (uint16_t)TNK__PAIR(pairs[i][0], pairs[i][1]);
    l->at += 2;
    return;
  }
  if (strchr("+-/*%~[](){}><=.:|,;", c) == NULL || c == '\0') {
    memcpy(text, "unexpected character \"?\"", 25);
    text[22] = c >= 0x20 && c < 0x7f ? c : '?';
    fail(l, text);
    return;
  }
  if (strchr("()[]{}", c) != NULL)
    lex_bracket(l, c);
  token = put(l, TNK__TOKEN_OPERATOR);
  if (token != NULL)
    token->op = (uint16_t)c;
  l->at++;
}

static void lex_text(lexer_t *l) {
  const char quote = *l->at;
  const char *p = l->at + 1;
  const char *from = p;
  tnk__value_t value = tnk__value_undefined();
  int err;

  for (; p < l->end && *p != quote; p++)
    p += *p == '\\' && p + 1 < l->end;
  if (p >= l->end) {
    fail(l, "a text has no closing quote");
    return;
  }
  err = literal_text(l->heap, from, (size_t)(p - from), &value);
  if (err != TNK_OK) {
    l->err = tnk__why(
        l->why, err, l->line,
        err == TNK_ENOMEM || err == TNK_ETOOBIG ? "no memory is left"
        : err == TNK_EUNSUPPORTED ? "\\N and surrogates are not known here"
                                  : "a text has a bad escape");
    return;
  }
  put_value(l, TNK__TOKEN_TEXT, value);
  go_to(l, p + 1);
  l->line_starting = 0;
}

static void lex_number(lexer_t *l) {
  tnk__value_t value = tnk__value_undefined();
  /* In "x.0.1" the numbers are integers. */
  const int after_point =
      l->out->n > 0 &&
      l->out->items[l->out->n - 1].kind == TNK__TOKEN_OPERATOR &&
      l->out->items[l->out->n - 1].op == '.' && l->at[-1] == '.';
  const size_t n =
      literal_number(l->at, (size_t)(l->end - l->at), !after_point, &value);

  if (n == 0) {
    fail(l, "a number has more than 64 bits");
    return;
  }
  put_value(
      l, value.kind == TNK__VALUE_FLOAT ? TNK__TOKEN_FLOAT : TNK__TOKEN_WHOLE,
      value);
  l->at += n;
}

static void lex_tag(lexer_t *l, int is_variable) {
  const char *p;
  size_t n;

  l->n_open = 0;
  while (l->err == TNK_OK) {
    if (l->at == l->end) {
      fail(l, "the template ends inside of a tag");
      return;
    }
    if (lex_end(l, is_variable))
      return;
    p = skip_blanks(l, l->at);
    if (p > l->at) {
      go_to(l, p);
      continue;
    }
    n = tnk__name_prefix(l->at, (size_t)(l->end - l->at));
    if (is_digit(*l->at)) {
      lex_number(l);
    } else if (n > 0) {
      put_value(l, TNK__TOKEN_NAME, tnk__value_text(l->at, n));
      l->at += n;
    } else if (*l->at == '"' || *l->at == '\'') {
      lex_text(l);
    } else {
      lex_operator(l);
    }
  }
}

/* ---- Whole templates ---- */

static void lex_one(lexer_t *l) {
  const char *from = l->at;
  const char *tag = find_tag(l);
  const char *raw;
  const char *p;
  char sign;

  if (tag == NULL) {
    put_data(l, from, l->end);
    go_to(l, l->end);
    return;
  }
  p = tag + 2;
  sign = p < l->end && (*p == '-' || *p == '+') ? *p++ : '\0';
  raw = tag[1] == '%' ? raw_begin(l, p) : NULL;
  put_data(l, from, data_end(l, from, tag, sign, tag[1] == '{'));
  if (l->err != TNK_OK)
    return;
  go_to(l, raw != NULL ? raw : p);
  if (raw != NULL) {
    lex_raw(l);
  } else if (tag[1] == '#') {
    lex_comment(l, p);
  } else {
    put(l, tag[1] == '{' ? TNK__TOKEN_VARIABLE_BEGIN : TNK__TOKEN_BLOCK_BEGIN);
    lex_tag(l, tag[1] == '{');
  }
}

/* Convert all newlines to one character, and remove one at the end. */
static size_t normalize(char *out, const char *text, size_t n) {
  size_t at = 0;

  for (size_t i = 0; i < n; i++) {
    out[at++] = text[i] == '\r' ? '\n' : text[i];
    i += text[i] == '\r' && i + 1 < n && text[i + 1] == '\n';
  }
  return at > 0 && out[at - 1] == '\n' ? at - 1 : at;
}

int tnk__lex(tnk__tokens_t *out, tnk__heap_t *heap, const char *text, size_t n,
             tnk__why_t *why) {
  lexer_t l = {
      .out = out, .heap = heap, .line = 1, .line_starting = 1, .why = why};
  char *copy;

  *out = (tnk__tokens_t){.items = NULL};
  if (n > UINT32_MAX / 4 || tnk__utf8_valid((const uint8_t *)text, n) != n)
    return tnk__why(why, n > UINT32_MAX / 4 ? TNK_ETOOBIG : TNK_EINVAL, 0,
                    "the template is too long or no UTF-8");
  copy = tnk__heap_alloc(heap, n + 1);
  if (copy == NULL)
    return tnk__why(why, heap->err, 0, "no memory is left");
  l.at = copy;
  l.end = copy + normalize(copy, text, n);
  while (l.err == TNK_OK && l.at < l.end)
    lex_one(&l);
  if (l.err == TNK_OK)
    put(&l, TNK__TOKEN_EOF);
  return l.err;
}
