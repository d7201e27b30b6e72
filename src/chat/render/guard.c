/* SPDX-License-Identifier: MIT */
#include "chat/render/guard.h"

#include <stdlib.h>

#include "lib/base/utf8.h"
#include "tnk/error.h"

/* Marks are the noncharacters U+FDD0 to U+FDEF, which normal text does not
 * contain. */
enum { FIRST_MARK = 0xfdd0, N_MARKS = 32, N_MARK = 3, N_ESCAPE = 6 };

static int no_memory(tnk__why_t *why) {
  return tnk__why(why, TNK_ENOMEM, 0, "out of memory");
}

/* ---- Characters that get marks ---- */

static int has_mark(const tnk__guard_t *guard, uint32_t c) {
  const uint32_t *others = (const uint32_t *)(const void *)guard->others.data;

  if (c < 128)
    return (int)(guard->ascii[c / 64] >> (c % 64) & 1);
  for (size_t i = 0; i < guard->others.len / sizeof(*others); i++)
    if (others[i] == c)
      return 1;
  return 0;
}

static void add_char(tnk__guard_t *guard, uint32_t c) {
  uint8_t bytes[4];

  (void)tnk__utf8_put(bytes, c);
  guard->leads[bytes[0]] = 1;
  if (c < 128)
    guard->ascii[c / 64] |= (uint64_t)1 << (c % 64);
  else if (!has_mark(guard, c))
    (void)tnk__buf_append(&guard->others, &c, sizeof(c));
}

static int is_blank(uint32_t c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Add the first and the last character of a token that are not white space.
 * Templates strip white space from messages, so it must not get marks. Returns
 * 0 if the token is only white space; it is not treated as a control token. */
static int add_ends(tnk__guard_t *guard, const char *text, size_t n) {
  const char *at = text;
  uint32_t last = ' ';
  int has_any = 0;

  while (at < text + n) {
    const uint32_t c = tnk__value_char(&at);

    if (is_blank(c))
      continue;
    if (!has_any)
      add_char(guard, c);
    has_any = 1;
    last = c;
  }
  if (has_any)
    add_char(guard, last);
  return has_any;
}

static int by_text(const void *a, const void *b) {
  const tnk__control_t *one = a, *other = b;
  const size_t n = one->n < other->n ? one->n : other->n;
  const int order = memcmp(one->text, other->text, n);

  return order != 0 ? order : (one->n > other->n) - (one->n < other->n);
}

static int load_controls(tnk__guard_t *guard, const tnk__coder_t *coder,
                         tnk__why_t *why) {
  tnk__control_t control;

  if (coder->calls.added == NULL)
    return tnk__why(why, TNK_EUNSUPPORTED, 0,
                    "the plug-in of the tokenizer does not list its control "
                    "tokens, so text_roles cannot be used");
  for (size_t i = 0;; i++) {
    control.text =
        coder->calls.added(coder->tokenizer, i, &control.n, &control.id);
    if (control.text == NULL)
      break;
    if (tnk__utf8_valid((const uint8_t *)control.text, control.n) !=
            control.n ||
        !add_ends(guard, control.text, control.n))
      continue;
    (void)tnk__buf_append(&guard->controls, &control, sizeof(control));
  }
  if (guard->others.err != TNK_OK || guard->controls.err != TNK_OK)
    return no_memory(why);
  if (guard->controls.len > 0)
    qsort(guard->controls.data, guard->controls.len / sizeof(control),
          sizeof(control), by_text);
  return TNK_OK;
}

/* ---- The mark ---- */

static int hex(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

/* The mark at the beginning of a text, as a bit. */
static uint32_t mark_bit(const char *text, size_t n) {
  const unsigned char *at = (const unsigned char *)text;

  if (n < N_MARK || at[1] != 0xb7 || at[2] < 0x90 || at[2] > 0xaf)
    return 0;
  return (uint32_t)1 << (at[2] - 0x90);
}

/* The same for the escape of a mark. */
static uint32_t escape_bit(const char *text, size_t n) {
  if (n < N_ESCAPE || (text[1] | 32) != 'u' || (text[2] | 32) != 'f' ||
      (text[3] | 32) != 'd' || hex(text[4]) < 0xd || hex(text[4]) > 0xe ||
      hex(text[5]) < 0)
    return 0;
  return (uint32_t)1 << ((hex(text[4]) - 0xd) * 16 + hex(text[5]));
}

/* Find all that start with a byte. Most texts have none, so they are searched
 * with memchr(). */
static uint32_t bits_in(const char *text, size_t n, int first,
                        uint32_t (*bit)(const char *text, size_t n)) {
  const char *end = text + n, *at = n > 0 ? memchr(text, first, n) : NULL;
  uint32_t found = 0;

  while (at != NULL) {
    found |= bit(at, (size_t)(end - at));
    at++;
    at = at < end ? memchr(at, first, (size_t)(end - at)) : NULL;
  }
  return found;
}

/* Find the marks in a text, as characters or as escapes. */
static uint32_t marks_in(const char *text, size_t n) {
  return bits_in(text, n, 0xef, mark_bit) | bits_in(text, n, '\\', escape_bit);
}

static uint32_t marks_of(tnk__value_t value) {
  uint32_t found = 0;

  if (value.kind == TNK__VALUE_TEXT)
    return marks_in(value.as.text, value.n_text);
  if (value.kind == TNK__VALUE_LIST)
    for (size_t i = 0; i < value.as.list->n; i++)
      found |= marks_of(value.as.list->items[i]);
  if (value.kind == TNK__VALUE_DICT)
    for (size_t i = 0; i < value.as.dict->n; i++)
      found |= marks_of(value.as.dict->entries[i].key) |
               marks_of(value.as.dict->entries[i].value);
  return found;
}

static int choose_mark(tnk__guard_t *guard, tnk__value_t messages,
                       tnk__value_t variables, tnk__why_t *why) {
  static const char digits[] = "0123456789abcdef";
  const uint32_t taken = marks_of(messages) | marks_of(variables);

  for (uint32_t i = 0; i < N_MARKS; i++) {
    if ((taken >> i & 1) != 0)
      continue;
    (void)tnk__utf8_put((uint8_t *)guard->mark, FIRST_MARK + i);
    memcpy(guard->escape, "\\ufd", 4);
    guard->escape[4] = i < 16 ? 'd' : 'e';
    guard->escape[5] = digits[i % 16];
    return TNK_OK;
  }
  return tnk__why(why, TNK_EINVAL, 0,
                  "the messages hold all of the noncharacters U+FDD0 to "
                  "U+FDEF, one of which text_roles needs");
}

int tnk__guard_open(tnk__guard_t *guard, const tnk__coder_t *coder,
                    const char *const *roles, size_t n_roles,
                    tnk__value_t messages, tnk__value_t variables,
                    const tnk_allocator_t *alloc, tnk__why_t *why) {
  int err;

  memset(guard, 0, sizeof(*guard));
  guard->roles = roles;
  guard->n_roles = n_roles;
  tnk__buf_init(&guard->others, alloc, SIZE_MAX / 2);
  tnk__buf_init(&guard->controls, alloc, SIZE_MAX / 2);
  err = load_controls(guard, coder, why);
  return err == TNK_OK ? choose_mark(guard, messages, variables, why) : err;
}

void tnk__guard_close(tnk__guard_t *guard) {
  tnk__buf_deinit(&guard->others);
  tnk__buf_deinit(&guard->controls);
}

/* ---- Marking ---- */

/* Write a text with marks to `out`. NULL: only count the bytes. */
static size_t write_marked(const tnk__guard_t *guard, tnk__value_t text,
                           char *out) {
  const char *at = text.as.text, *end = at + text.n_text;
  size_t n = 0;
  int is_behind = 0; /* a mark was written last */

  while (at < end) {
    const char *from = at;
    const int has = has_mark(guard, tnk__value_char(&at));
    const size_t n_char = (size_t)(at - from);

    if (has && !is_behind) {
      if (out != NULL)
        memcpy(out + n, guard->mark, N_MARK);
      n += N_MARK;
    }
    if (out != NULL)
      memcpy(out + n, from, n_char);
    n += n_char;
    if (has) {
      if (out != NULL)
        memcpy(out + n, guard->mark, N_MARK);
      n += N_MARK;
    }
    is_behind = has;
  }
  return n;
}

static tnk__value_t mark_text(const tnk__guard_t *guard, tnk__heap_t *heap,
                              tnk__value_t text) {
  const size_t n = write_marked(guard, text, NULL);
  char *out;

  if (n == text.n_text)
    return text;
  out = n <= UINT32_MAX ? tnk__heap_alloc(heap, n) : NULL;
  if (out == NULL) {
    if (heap->err == TNK_OK)
      heap->err = TNK_ETOOBIG;
    return text;
  }
  (void)write_marked(guard, text, out);
  return tnk__value_text(out, n);
}

/* Returns whether a value could be the type of a part. Templates compare types
 * with words, so such words get no marks. */
static int is_word(tnk__value_t value) {
  if (value.kind != TNK__VALUE_TEXT)
    return 0;
  for (uint32_t i = 0; i < value.n_text; i++)
    if (!((value.as.text[i] >= 'a' && value.as.text[i] <= 'z') ||
          value.as.text[i] == '_'))
      return 0;
  return 1;
}

static tnk__value_t mark(const tnk__guard_t *guard, tnk__heap_t *heap,
                         tnk__value_t value) {
  tnk__value_t made;

  if (value.kind == TNK__VALUE_TEXT)
    return mark_text(guard, heap, value);
  if (value.kind == TNK__VALUE_LIST) {
    made = tnk__value_list(heap);
    for (size_t i = 0; i < value.as.list->n; i++)
      tnk__value_append(heap, made, mark(guard, heap, value.as.list->items[i]));
    return made;
  }
  if (value.kind != TNK__VALUE_DICT)
    return value;
  made = tnk__value_dict(heap);
  for (size_t i = 0; i < value.as.dict->n; i++) {
    const tnk__value_entry_t *entry = &value.as.dict->entries[i];

    tnk__value_put(heap, made,
                   is_word(entry->key) ? entry->key
                                       : mark(guard, heap, entry->key),
                   tnk__value_is(entry->key, "type") && is_word(entry->value)
                       ? entry->value
                       : mark(guard, heap, entry->value));
  }
  return made;
}

static int text_needs_marks(const tnk__guard_t *guard, tnk__value_t text) {
  const uint8_t *bytes = (const uint8_t *)text.as.text;

  for (uint32_t i = 0; i < text.n_text; i++) {
    const char *at = text.as.text + i;

    if (guard->leads[bytes[i]] != 0 && has_mark(guard, tnk__value_char(&at)))
      return 1;
  }
  return 0;
}

/* Returns whether mark() could change a value. Most messages have none of the
 * characters, and a copy costs several times as much as this. */
static int needs_marks(const tnk__guard_t *guard, tnk__value_t value) {
  int needs = 0;

  if (value.kind == TNK__VALUE_TEXT)
    return text_needs_marks(guard, value);
  if (value.kind == TNK__VALUE_LIST)
    for (size_t i = 0; i < value.as.list->n && !needs; i++)
      needs = needs_marks(guard, value.as.list->items[i]);
  if (value.kind == TNK__VALUE_DICT)
    for (size_t i = 0; i < value.as.dict->n && !needs; i++)
      needs = needs_marks(guard, value.as.dict->entries[i].key) ||
              needs_marks(guard, value.as.dict->entries[i].value);
  return needs;
}

tnk__value_t tnk__guard_message(const tnk__guard_t *guard, tnk__heap_t *heap,
                                tnk__value_t message) {
  const tnk__value_t role = tnk__value_get(message, "role");
  tnk__value_t made;

  for (size_t i = 0; i < guard->n_roles; i++) {
    if (!tnk__value_is(role, guard->roles[i]))
      continue;
    if (!needs_marks(guard, message))
      return message;
    made = mark(guard, heap, message);
    tnk__value_set(heap, made, "role", role);
    return made;
  }
  return message;
}

/* ---- Removing the marks ---- */

static size_t mark_at(const tnk__guard_t *guard, const tnk__buf_t *text,
                      size_t at) {
  const uint8_t *from = text->data + at;

  if (text->len - at >= N_MARK && memcmp(from, guard->mark, N_MARK) == 0)
    return N_MARK;
  return text->len - at >= N_ESCAPE &&
                 memcmp(from, guard->escape, N_ESCAPE) == 0
             ? N_ESCAPE
             : 0;
}

int tnk__guard_strip(const tnk__guard_t *guard, tnk__buf_t *text,
                     tnk__buf_t *barriers, uint8_t *ends, size_t n,
                     size_t stride, tnk__why_t *why) {
  size_t to = 0, at = 0, k = 0, barrier = SIZE_MAX;

  while (at <= text->len) {
    const size_t n_mark = at < text->len ? mark_at(guard, text, at) : 0;
    const size_t next = at + (n_mark > 0 ? n_mark : 1);

    for (; k < n; k++) {
      size_t end;

      memcpy(&end, ends + k * stride, sizeof(end));
      if (end >= next)
        break;
      memcpy(ends + k * stride, &to, sizeof(to));
    }
    if (n_mark > 0 && barrier != to) {
      barrier = to;
      (void)tnk__buf_append(barriers, &barrier, sizeof(barrier));
    } else if (n_mark == 0 && at < text->len) {
      text->data[to++] = text->data[at];
    }
    at = next;
  }
  text->len = text->len > 0 ? to : 0;
  return barriers->err == TNK_OK ? TNK_OK : no_memory(why);
}
