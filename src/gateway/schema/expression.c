/* SPDX-License-Identifier: MIT */
#include "gateway/schema/expression.h"

#include <string.h>

enum { MAX_DEPTH = 64, MAX_CHARACTER = 0x10ffff, NO_NUMBER = -1 };

static const char TOO_LARGE[] = "is too large";

typedef struct {
  tnk__gw_expression_t *out;
  tnk__gw_ranges_t *ranges;
  const char *text;
  size_t n;
  size_t at;
  int depth;
  const char *why; /* the first error */
} reader_t;

static uint16_t read_branches(reader_t *r);

/* ---- Characters ---- */

uint32_t tnk__gw_next_character(const char *text, size_t n, size_t *at) {
  const unsigned char *bytes = (const unsigned char *)text;
  uint32_t c = bytes[(*at)++];
  const int n_more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;

  if (n_more > 0)
    c &= 0x3fU >> n_more;
  for (int i = 0; i < n_more && *at < n; i++)
    c = c << 6 | (bytes[(*at)++] & 0x3fU);
  return c;
}

static int refuse(reader_t *r, const char *why) {
  if (r->why == NULL)
    r->why = why;
  return -1;
}

static int is_end(const reader_t *r) {
  return r->at == r->n || r->why != NULL;
}

/* The byte at an offset from here; NUL behind the end. */
static char peek(const reader_t *r, size_t offset) {
  return r->at + offset < r->n ? r->text[r->at + offset] : '\0';
}

static int skip(reader_t *r, const char *text) {
  size_t n = strlen(text);

  if (r->n - r->at < n || memcmp(r->text + r->at, text, n) != 0)
    return 0;
  r->at += n;
  return 1;
}

static int digit_of(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

/* ---- Classes ---- */

static const tnk__gw_range_t digits[] = {{'0', '9'}};
static const tnk__gw_range_t words[] = {
    {'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
static const tnk__gw_range_t spaces[] = {
    {'\t', '\r'},     {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680},
    {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f},
    {0x3000, 0x3000}, {0xfeff, 0xfeff}};
static const tnk__gw_range_t line_ends[] = {
    {'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

static void add_range(reader_t *r, uint32_t first, uint32_t last) {
  if (r->ranges->n == TNK__GW_EXPRESSION_RANGES)
    (void)refuse(r, TOO_LARGE);
  else
    r->ranges->all[r->ranges->n++] = (tnk__gw_range_t){first, last};
}

/* Add ranges in ascending order, or what is between them. */
static void add_ranges(reader_t *r, const tnk__gw_range_t *ranges, size_t n,
                       int is_not) {
  uint32_t free_from = 0;

  for (size_t i = 0; i < n; i++) {
    if (!is_not)
      add_range(r, ranges[i].first, ranges[i].last);
    else if (ranges[i].first > free_from)
      add_range(r, free_from, ranges[i].first - 1);
    free_from = ranges[i].last + 1;
  }
  if (is_not)
    add_range(r, free_from, MAX_CHARACTER);
}

/* Skip \d, \w or \s, or one of their opposites, and add its ranges. */
static int read_kind(reader_t *r) {
  const char c = peek(r, 0) == '\\' ? peek(r, 1) : '\0';

  if (c == 'd' || c == 'D')
    add_ranges(r, digits, 1, c == 'D');
  else if (c == 'w' || c == 'W')
    add_ranges(r, words, sizeof(words) / sizeof(*words), c == 'W');
  else if (c == 's' || c == 'S')
    add_ranges(r, spaces, sizeof(spaces) / sizeof(*spaces), c == 'S');
  else
    return 0;
  r->at += 2;
  return 1;
}

/* ---- Escapes ---- */

static uint32_t read_hex(reader_t *r, int n_digits) {
  uint32_t value = 0;

  for (int i = 0; i < n_digits; i++) {
    int digit = digit_of(peek(r, 0));

    if (digit < 0) {
      (void)refuse(r, "has an incomplete escape of a character");
      return 0;
    }
    value = value * 16 + (uint32_t)digit;
    r->at++;
  }
  return value;
}

/* After "\u{". */
static uint32_t read_braced(reader_t *r) {
  uint32_t value = 0;
  int digit;

  if (digit_of(peek(r, 0)) < 0)
    (void)refuse(r, "has an incomplete escape of a character");
  while ((digit = digit_of(peek(r, 0))) >= 0 && value <= MAX_CHARACTER) {
    value = value * 16 + (uint32_t)digit;
    r->at++;
  }
  if (value > MAX_CHARACTER || !skip(r, "}"))
    (void)refuse(r, "has an escape of no character");
  return value;
}

/* After "\u". Two escapes may be the two halves of one character. */
static uint32_t read_unicode(reader_t *r) {
  uint32_t high, low;
  size_t at;

  if (skip(r, "{"))
    return read_braced(r);
  high = read_hex(r, 4);
  at = r->at;
  if (high < 0xd800 || high > 0xdbff || r->why != NULL || !skip(r, "\\u") ||
      peek(r, 0) == '{')
    return high;
  low = read_hex(r, 4);
  if (low >= 0xdc00 && low <= 0xdfff)
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
  r->at = at;
  return high;
}

static const char *why_not(char c) {
  if ((c >= '1' && c <= '9') || c == 'k')
    return "has a back reference, which is not supported";
  if (c == 'p' || c == 'P')
    return "has a property of Unicode (\\p), which is not supported";
  return c == '\0' ? "ends with a backslash"
                   : "has an unknown escape of a letter";
}

/* After a backslash: an escape of one character. */
static uint32_t read_escape(reader_t *r) {
  static const char names[] = "tnvfr";
  static const char values[] = "\t\n\v\f\r";
  const char c = peek(r, 0);
  const char *name = c != '\0' ? strchr(names, c) : NULL;

  /* Punctuation stands for itself. */
  if (c > ' ' && c < 0x7f && digit_of(c) < 0 && c != '_' &&
      !((c | 0x20) >= 'a' && (c | 0x20) <= 'z')) {
    r->at++;
    return (uint32_t)c;
  }
  r->at += r->at < r->n;
  if (name != NULL)
    return (uint32_t)values[name - names];
  if (c == '0' && digit_of(peek(r, 0)) < 0)
    return 0;
  if (c == 'x')
    return read_hex(r, 2);
  if (c == 'u')
    return read_unicode(r);
  (void)refuse(r, why_not(c));
  return 0;
}

/* ---- Items ---- */

static uint16_t add(reader_t *r, tnk__gw_node_is_t is, uint32_t value) {
  tnk__gw_expression_t *out = r->out;

  if (out->n == TNK__GW_EXPRESSION_NODES) {
    (void)refuse(r, TOO_LARGE);
    return 0;
  }
  out->nodes[out->n] =
      (tnk__gw_part_t){.is = is, .min = 1, .max = 1, .value = value};
  return (uint16_t)out->n++;
}

/* The class has all ranges since the first one. */
static uint16_t add_class(reader_t *r, size_t first, int is_not) {
  uint16_t node = add(r, TNK__GW_NODE_CLASS, (uint32_t)first);

  r->out->nodes[node].n_ranges = (uint16_t)(r->ranges->n - first);
  r->out->nodes[node].is_not = is_not;
  return node;
}

static uint16_t add_word(reader_t *r, int is_not) {
  uint16_t node = add(r, TNK__GW_NODE_WORD, 0);

  r->out->nodes[node].is_not = is_not;
  return node;
}

/* A character of a class, which may be the end of a range. */
static uint32_t read_member(reader_t *r) {
  if (skip(r, "\\b"))
    return '\b';
  return skip(r, "\\") ? read_escape(r)
                       : tnk__gw_next_character(r->text, r->n, &r->at);
}

static void read_range(reader_t *r) {
  static const char not_a_range[] =
      "has a range that does not go from one character to a later one";
  const int is_kind = read_kind(r);
  uint32_t first = is_kind ? 0 : read_member(r);
  uint32_t last = first;

  if (peek(r, 0) == '-' && r->at + 1 < r->n && peek(r, 1) != ']') {
    r->at++;
    if (is_kind || (peek(r, 0) == '\\' && peek(r, 1) != '\0' &&
                    strchr("dDwWsS", peek(r, 1)) != NULL)) {
      (void)refuse(r, not_a_range);
      return;
    }
    last = read_member(r);
    if (last < first)
      (void)refuse(r, not_a_range);
  }
  if (!is_kind)
    add_range(r, first, last);
}

/* After "[". */
static uint16_t read_class(reader_t *r) {
  const size_t first = r->ranges->n;
  const int is_not = skip(r, "^");

  /* ECMAScript ends the class here, and others do not. */
  if (peek(r, 0) == ']')
    (void)refuse(r, "has an empty class");
  while (!is_end(r) && peek(r, 0) != ']')
    read_range(r);
  if (!skip(r, "]"))
    (void)refuse(r, "has a [ without a ]");
  return add_class(r, first, is_not);
}

static int is_letter(char c) {
  return ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' || c == '$';
}

/* After "(?<". The name has no effect. */
static void skip_name(reader_t *r) {
  if (!is_letter(peek(r, 0)))
    (void)refuse(r, "has a group with a malformed name");
  while (is_letter(peek(r, 0)) || (peek(r, 0) >= '0' && peek(r, 0) <= '9'))
    r->at++;
  if (!skip(r, ">"))
    (void)refuse(r, "has a group with a malformed name");
}

/* After "(". */
static uint16_t read_group(reader_t *r) {
  uint16_t node = add(r, TNK__GW_NODE_GROUP, 0);
  uint16_t child;

  if (skip(r, "?=") || skip(r, "?!") || skip(r, "?<=") || skip(r, "?<!"))
    (void)refuse(r, "has a lookahead or a lookbehind, which is not supported");
  else if (skip(r, "?<"))
    skip_name(r);
  else if (!skip(r, "?:") && peek(r, 0) == '?')
    (void)refuse(r, "has a group with flags or of an unknown kind, which is "
                    "not supported");
  if (++r->depth > MAX_DEPTH)
    (void)refuse(r, "is nested too deeply");
  child = read_branches(r);
  r->depth--;
  r->out->nodes[node].child = child;
  if (!skip(r, ")"))
    (void)refuse(r, "has a ( without a )");
  return node;
}

static uint16_t read_item(reader_t *r) {
  const size_t first = r->ranges->n;

  if (skip(r, "("))
    return read_group(r);
  if (skip(r, "["))
    return read_class(r);
  if (skip(r, "^"))
    return add(r, TNK__GW_NODE_BEGIN, 0);
  if (skip(r, "$"))
    return add(r, TNK__GW_NODE_END, 0);
  if (skip(r, "\\b"))
    return add_word(r, 0);
  if (skip(r, "\\B"))
    return add_word(r, 1);
  if (skip(r, ".")) {
    add_ranges(r, line_ends, sizeof(line_ends) / sizeof(*line_ends), 0);
    return add_class(r, first, 1);
  }
  if (read_kind(r))
    return add_class(r, first, 0);
  if (skip(r, "\\"))
    return add(r, TNK__GW_NODE_CHARACTER, read_escape(r));
  if (strchr("*+?{", peek(r, 0)) != NULL && peek(r, 0) != '\0')
    (void)refuse(r, "has a quantifier without anything before it");
  return add(r, TNK__GW_NODE_CHARACTER,
             tnk__gw_next_character(r->text, r->n, &r->at));
}

/* ---- Quantifiers ---- */

static int32_t read_number(reader_t *r) {
  int32_t value = NO_NUMBER;

  while (peek(r, 0) >= '0' && peek(r, 0) <= '9') {
    value = (value < 0 ? 0 : value) * 10 + (peek(r, 0) - '0');
    r->at++;
    if (value >= TNK__GW_NO_MAX) {
      (void)refuse(r, TOO_LARGE);
      return NO_NUMBER;
    }
  }
  return value;
}

/* After "{". */
static void read_bounds(reader_t *r, tnk__gw_part_t *node) {
  int32_t min = read_number(r), max = min;

  if (skip(r, ",")) {
    max = read_number(r);
    max = max == NO_NUMBER ? TNK__GW_NO_MAX : max;
  }
  /* Other languages read "{,3}" as a repeat, or as five characters. */
  if (min == NO_NUMBER || !skip(r, "}")) {
    (void)refuse(r, "has a { that begins no repeat");
    return;
  }
  if (max < min)
    (void)refuse(r, "has a repeat whose bounds are in the wrong order");
  node->min = (uint16_t)min;
  node->max = (uint16_t)max;
}

static void read_quantifier(reader_t *r, tnk__gw_part_t *node) {
  const size_t at = r->at;

  if (skip(r, "*")) {
    node->min = 0;
    node->max = TNK__GW_NO_MAX;
  } else if (skip(r, "+")) {
    node->max = TNK__GW_NO_MAX;
  } else if (skip(r, "?")) {
    node->min = 0;
  } else if (skip(r, "{")) {
    read_bounds(r, node);
  }
  if (r->at == at)
    return;
  if (node->is == TNK__GW_NODE_BEGIN || node->is == TNK__GW_NODE_END ||
      node->is == TNK__GW_NODE_WORD)
    (void)refuse(r, "repeats a ^, $, \\b or \\B");
  /* Whether a repeat is lazy does not matter for a search. */
  (void)skip(r, "?");
}

static uint16_t read_items(reader_t *r) {
  uint16_t first = 0, last = 0;

  while (!is_end(r) && peek(r, 0) != '|' && peek(r, 0) != ')') {
    uint16_t item = read_item(r);

    read_quantifier(r, &r->out->nodes[item]);
    if (first == 0)
      first = item;
    else
      r->out->nodes[last].next = item;
    last = item;
  }
  return first;
}

static uint16_t read_branches(reader_t *r) {
  uint16_t first = 0, last = 0;

  do {
    uint16_t branch = add(r, TNK__GW_NODE_BRANCH, 0);
    uint16_t items = read_items(r);

    r->out->nodes[branch].child = items;
    if (first == 0)
      first = branch;
    else
      r->out->nodes[last].next = branch;
    last = branch;
  } while (r->why == NULL && skip(r, "|"));
  return first;
}

const char *tnk__gw_expression_read(tnk__gw_expression_t *out,
                                    tnk__gw_ranges_t *ranges, const char *text,
                                    size_t n) {
  reader_t r = {.out = out, .ranges = ranges, .text = text, .n = n};

  ranges->n = 0;
  out->n = 1;
  out->nodes[0] = (tnk__gw_part_t){0};
  out->root = read_branches(&r);
  if (!is_end(&r))
    (void)refuse(&r, "has a ) without a (");
  return r.why;
}
