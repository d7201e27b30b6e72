/* SPDX-License-Identifier: MIT */
#include "chat/render/prompt.h"

#include <string.h>

#include "lib/base/utf8.h"
#include "tnk/error.h"

/* The member that keeps API-specific data of a message. Templates must not see
 * it. */
#define EXTRA "extra"

static int is_there(tnk__value_t value) {
  return value.kind != TNK__VALUE_UNDEFINED && value.kind != TNK__VALUE_NONE;
}

tnk__value_t tnk__prompt_thoughts(tnk__value_t message) {
  static const char *const names[] = {"reasoning_content", "thinking",
                                      "reasoning"};
  tnk__value_t found = tnk__value_undefined();

  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !is_there(found);
       i++)
    found = tnk__value_get(message, names[i]);
  return found;
}

static int needs_change(tnk__value_t message) {
  const tnk__value_dict_t *dict = message.as.dict;

  for (size_t i = 0; i < dict->n; i++)
    if (!is_there(dict->entries[i].value) ||
        tnk__value_is(dict->entries[i].key, EXTRA))
      return 1;
  return is_there(tnk__prompt_thoughts(message));
}

/* A message as the reference passes it to a template. Members that are null are
 * removed, and thoughts are present under both names that templates read. The
 * order of members matters, since a template may print the whole message. */
static tnk__value_t as_seen(tnk__heap_t *heap, tnk__value_t message) {
  const tnk__value_dict_t *dict = message.as.dict;
  tnk__value_t seen, thoughts;

  if (message.kind != TNK__VALUE_DICT || !needs_change(message))
    return message;
  seen = tnk__value_dict(heap);
  thoughts = tnk__prompt_thoughts(message);
  if (is_there(thoughts))
    tnk__value_set(heap, seen, "thinking", thoughts);
  for (size_t i = 0; i < dict->n; i++)
    if (is_there(dict->entries[i].value) &&
        !tnk__value_is(dict->entries[i].key, EXTRA))
      tnk__value_put(heap, seen, dict->entries[i].key, dict->entries[i].value);
  if (is_there(thoughts))
    tnk__value_set(heap, seen, "reasoning_content", thoughts);
  return seen;
}

tnk__value_t tnk__prompt_seen(const tnk__prompt_t *prompt, tnk__heap_t *heap,
                              tnk__value_t messages, size_t n) {
  tnk__value_t list = tnk__value_list(heap);

  for (size_t i = 0; i < n; i++) {
    tnk__value_t seen = as_seen(heap, messages.as.list->items[i]);

    if (prompt->guard != NULL)
      seen = tnk__guard_message(prompt->guard, heap, seen);
    tnk__value_append(heap, list, seen);
  }
  return list;
}

static tnk__value_t variables(tnk__heap_t *heap, const tnk__prompt_t *prompt,
                              tnk__value_t seen, size_t n, int is_open) {
  const tnk__value_dict_t *set = prompt->variables.as.dict;
  tnk__value_t all = tnk__value_dict(heap);
  tnk__value_t list = tnk__value_list(heap);

  /* A list of its own: the template may append to it. */
  for (size_t i = 0; i < n; i++)
    tnk__value_append(heap, list, seen.as.list->items[i]);
  /* Variables that the reference passes to every template. */
  tnk__value_set(heap, all, "messages", list);
  tnk__value_set(heap, all, "tools", tnk__value_none());
  tnk__value_set(heap, all, "documents", tnk__value_none());
  tnk__value_set(heap, all, "add_generation_prompt", tnk__value_bool(is_open));
  for (size_t i = 0; i < set->n; i++)
    tnk__value_put(heap, all, set->entries[i].key, set->entries[i].value);
  return all;
}

/* Render the first messages of a list with a heap that may have an error. */
static int render(const tnk__prompt_t *prompt, tnk__heap_t *heap,
                  tnk__value_t seen, size_t n, int is_open, tnk__buf_t *out,
                  tnk__buf_t *spans, tnk__why_t *why) {
  const tnk__value_t all = heap->err == TNK_OK
                               ? variables(heap, prompt, seen, n, is_open)
                               : tnk__value_none();

  if (heap->err != TNK_OK)
    return tnk__why(why, heap->err, 0, "the messages are too large");
  return tnk__template_render(prompt->template_, heap, all, &prompt->env, out,
                              spans, why);
}

int tnk__prompt_seen_text(const tnk__prompt_t *prompt, tnk__value_t seen,
                          size_t n, int is_open, tnk__buf_t *out,
                          tnk__buf_t *spans, tnk__why_t *why) {
  tnk__heap_t heap;
  int err;

  tnk__heap_init(&heap, prompt->alloc, TNK__CHAT_MAX_HEAP);
  err = render(prompt, &heap, seen, n, is_open, out, spans, why);
  tnk__heap_deinit(&heap);
  return err;
}

int tnk__prompt_text(const tnk__prompt_t *prompt, tnk__value_t messages,
                     size_t n, int is_open, tnk__buf_t *out, tnk__buf_t *spans,
                     tnk__why_t *why) {
  tnk__heap_t heap;
  tnk__value_t seen;
  int err;

  tnk__heap_init(&heap, prompt->alloc, TNK__CHAT_MAX_HEAP);
  seen = tnk__prompt_seen(prompt, &heap, messages, n);
  err = render(prompt, &heap, seen, n, is_open, out, spans, why);
  tnk__heap_deinit(&heap);
  return err;
}

size_t tnk__prompt_common(const tnk__buf_t *a, const tnk__buf_t *b) {
  const size_t max = a->len < b->len ? a->len : b->len;
  size_t n = 0;

  while (n < max && a->data[n] == b->data[n])
    n++;
  /* Go back to the start of a character. */
  while (n > 0 && ((n < a->len && (a->data[n] & 0xc0) == 0x80) ||
                   (n < b->len && (b->data[n] & 0xc0) == 0x80)))
    n--;
  return n;
}

int tnk__prompt_begins(const tnk__buf_t *a, const tnk__buf_t *b) {
  return a->len <= b->len &&
         (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

static int is_blank(const tnk__buf_t *text, size_t from, size_t to) {
  while (from < to && (text->data[from] == ' ' ||
                       (text->data[from] >= '\t' && text->data[from] <= '\r')))
    from++;
  return from == to;
}

/* The last position of `stop` in [from, to), or SIZE_MAX. */
static size_t find_last(const tnk__buf_t *text, size_t from, size_t to,
                        const char *stop, size_t n) {
  for (size_t at = to - from < n ? from : to - n + 1; at > from; at--)
    if (memcmp(text->data + at - 1, stop, n) == 0)
      return at - 1;
  return SIZE_MAX;
}

size_t tnk__prompt_stop_at(const tnk__prompt_t *prompt, const tnk__buf_t *text,
                           size_t at) {
  size_t from = at;

  while (from < text->len && is_blank(text, from, from + 1))
    from++;
  for (const char *const *stop = prompt->stops; *stop != NULL; stop++) {
    const size_t n = strlen(*stop);

    if (n > 0 && n <= text->len - from &&
        memcmp(text->data + from, *stop, n) == 0)
      return from + n - at;
  }
  return 0;
}

int tnk__prompt_stop(const tnk__prompt_t *prompt, const tnk__buf_t *text,
                     size_t from, size_t to, size_t *begin, size_t *end) {
  int is_there = 0;

  for (const char *const *stop = prompt->stops; *stop != NULL; stop++) {
    const size_t n = strlen(*stop);
    const size_t at = n == 0 ? SIZE_MAX : find_last(text, from, to, *stop, n);

    if (at == SIZE_MAX || !is_blank(text, at + n, to) ||
        (is_there && at <= *begin))
      continue;
    *begin = at;
    *end = at + n;
    is_there = 1;
  }
  return is_there;
}

void tnk__prompt_quote(const tnk__buf_t *text, size_t at, char *piece,
                       size_t size) {
  size_t n = 0;

  while (at < text->len) {
    const size_t n_char =
        tnk__utf8_char((const char *)text->data + at, text->len - at);

    if (n_char == 0 || n + n_char >= size || n >= 24)
      break;
    memcpy(piece + n, text->data + at, n_char);
    at += n_char;
    n += n_char;
  }
  piece[n] = '\0';
}
