/* SPDX-License-Identifier: MIT */
#include "chat/render/bridge.h"

#include <string.h>

#include "tnk/error.h"

#define MAX_BYTES (SIZE_MAX / 2)

/* Content and thoughts of the placeholder answer: words that no template
 * contains. */
static const char SAYS[] = "Zq7answer7qZ";
static const char THINKS[] = "Zq7thought7qZ";

/* The conversations: the beginning, the answer, and the new messages. */
typedef struct {
  const tnk__prompt_t *prompt;
  tnk__heap_t *heap;
  tnk__value_t messages; /* the caller's */
  size_t first;
  int is_whole; /* starts with the caller's messages, instead of a minimal
                   beginning */
  int thinks;
  tnk__value_t all; /* [opening ..., answer, new ...] */
  size_t n_closed;  /* number of messages up to the answer, included */
  size_t n_ending;  /* bytes that end the answer when it is the last message */
} tiny_t;

static int has_role(tnk__value_t message, const char *role) {
  return tnk__value_is(tnk__value_get(message, "role"), role);
}

static tnk__value_t text_of(const char *text) {
  return tnk__value_text(text, strlen(text));
}

static tnk__value_t make_call(tnk__heap_t *heap, tnk__value_t result) {
  tnk__value_t call = tnk__value_dict(heap), function = tnk__value_dict(heap);
  const tnk__value_t name = tnk__value_get(result, "name");
  const tnk__value_t id = tnk__value_get(result, "tool_call_id");

  if (id.kind == TNK__VALUE_TEXT)
    tnk__value_set(heap, call, "id", id);
  tnk__value_set(heap, call, "type", text_of("function"));
  tnk__value_set(heap, function, "name",
                 name.kind == TNK__VALUE_TEXT ? name : text_of("function"));
  tnk__value_set(heap, function, "arguments", tnk__value_dict(heap));
  tnk__value_set(heap, call, "function", function);
  return call;
}

/* The calls of the answer: the caller's, or one for each result if the caller
 * has passed none. */
static tnk__value_t calls_of(const tiny_t *tiny) {
  const tnk__value_list_t *list = tiny->messages.as.list;
  tnk__value_t calls = tnk__value_undefined();

  if (tiny->first > 0)
    return tnk__value_get(list->items[tiny->first - 1], "tool_calls");
  for (size_t i = tiny->first; i < list->n && has_role(list->items[i], "tool");
       i++) {
    if (calls.kind == TNK__VALUE_UNDEFINED)
      calls = tnk__value_list(tiny->heap);
    tnk__value_append(tiny->heap, calls, make_call(tiny->heap, list->items[i]));
  }
  return calls;
}

static tnk__value_t make_message(tnk__heap_t *heap, const char *role,
                                 const char *text) {
  tnk__value_t message = tnk__value_dict(heap);

  tnk__value_set(heap, message, "role", text_of(role));
  tnk__value_set(heap, message, "content", text_of(text));
  return message;
}

static void build(tiny_t *tiny) {
  const tnk__value_list_t *list = tiny->messages.as.list;
  tnk__value_t answer = make_message(tiny->heap, "assistant", SAYS);
  const tnk__value_t calls = calls_of(tiny);

  tiny->all = tnk__value_list(tiny->heap);
  for (size_t i = 0; tiny->is_whole && i + 1 < tiny->first; i++)
    tnk__value_append(tiny->heap, tiny->all, list->items[i]);
  if (!tiny->is_whole && tiny->first > 0 &&
      (has_role(list->items[0], "system") ||
       has_role(list->items[0], "developer")))
    tnk__value_append(tiny->heap, tiny->all, list->items[0]);
  if (!tiny->is_whole)
    tnk__value_append(tiny->heap, tiny->all,
                      make_message(tiny->heap, "user", "?"));
  if (tiny->thinks)
    tnk__value_set(tiny->heap, answer, "reasoning_content", text_of(THINKS));
  if (tnk__value_truth(calls))
    tnk__value_set(tiny->heap, answer, "tool_calls", calls);
  tnk__value_append(tiny->heap, tiny->all, answer);
  if (tiny->heap->err != TNK_OK)
    return;
  tiny->n_closed = tiny->all.as.list->n;
  for (size_t i = tiny->first; i < list->n; i++)
    tnk__value_append(tiny->heap, tiny->all, list->items[i]);
}

/* The end of the last occurrence of the answer's content. 0: the template does
 * not contain it. */
static size_t end_of_words(const tnk__buf_t *text, size_t from) {
  const size_t n = sizeof(SAYS) - 1;

  for (size_t at = text->len; at >= from + n; at--)
    if (memcmp(text->data + at - n, SAYS, n) == 0)
      return at;
  return 0;
}

/* Find the end of the answer in the closed conversation. It is before the text
 * that ends answers, or after the answer's content. */
static int find_end(const tiny_t *tiny, const tnk__buf_t *opened,
                    const tnk__buf_t *closed, size_t *end, tnk__why_t *why) {
  const tnk__value_t answer = tiny->all.as.list->items[tiny->n_closed - 1];
  const int calls = tnk__value_truth(tnk__value_get(answer, "tool_calls"));
  const size_t words = end_of_words(closed, opened->len);
  size_t behind;

  if (tnk__prompt_stop(tiny->prompt, closed, opened->len, closed->len, end,
                       &behind))
    return TNK_OK;
  *end = calls ? closed->len : words;
  if (!calls && words == 0)
    return tnk__why(why, TNK_EUNSUPPORTED, 0,
                    "the template does not write what an answer says");
  return TNK_OK;
}

enum { DIFFERS = 1 }; /* not a code: the answer starts differently */

static int differs(tnk__why_t *why, const tnk__buf_t *text,
                   const tnk__buf_t *longer, const char *when) {
  const size_t at = tnk__prompt_common(text, longer);
  char had[40], has[40];

  tnk__prompt_quote(text, at, had, sizeof(had));
  tnk__prompt_quote(longer, at, has, sizeof(has));
  return tnk__why(why, TNK_EUNSUPPORTED, 0,
                  "what was sampled cannot stay: where the template writes "
                  "\"%s\" %s, it writes \"%s\" once these messages follow",
                  had, when, has);
}

/* Render the conversations opened, closed and longer. */
static int try(tiny_t *tiny, tnk__buf_t text[3], tnk__buf_t *out,
               tnk__why_t *why) {
  const size_t n = tiny->all.as.list->n;
  const tnk__value_t seen =
      tnk__prompt_seen(tiny->prompt, tiny->heap, tiny->all, n);
  size_t end = 0;
  int err = TNK_OK;

  if (tiny->heap->err != TNK_OK)
    return tnk__why(why, tiny->heap->err, 0, "the messages are too large");
  for (int i = 0; i < 3 && err == TNK_OK; i++) {
    tnk__buf_clear(&text[i]);
    err = tnk__prompt_seen_text(tiny->prompt, seen,
                                i == 0   ? tiny->n_closed - 1
                                : i == 1 ? tiny->n_closed
                                         : n,
                                i != 1, &text[i], NULL, why);
  }
  if (err != TNK_OK)
    return err;
  if (!tnk__prompt_begins(&text[0], &text[1])) {
    (void)differs(why, &text[0], &text[1], "to begin an answer");
    return DIFFERS;
  }
  if (!tnk__prompt_begins(&text[1], &text[2]))
    return differs(why, &text[1], &text[2], "in the last answer");
  err = find_end(tiny, &text[0], &text[1], &end, why);
  tiny->n_ending = text[1].len - end;
  if (err == TNK_OK && text[2].len > 0 &&
      tnk__buf_append(out, text[2].data + end, text[2].len - end) != TNK_OK)
    err = tnk__why(why, out->err, 0, "out of memory");
  return err;
}

/* Try an answer with thoughts first, as a template may drop thoughts later. Try
 * without thoughts if the start of an answer rules them out. */
static int try_both(const tnk__prompt_t *prompt, tnk__value_t messages,
                    size_t first, int is_whole, tnk__buf_t text[3],
                    tnk__buf_t *out, size_t *n_ending, tnk__why_t *why) {
  int err = DIFFERS;

  for (int thinks = 1; thinks >= 0 && (err == DIFFERS || err == TNK_EINVAL);
       thinks--) {
    tnk__heap_t heap;
    tiny_t tiny = {.prompt = prompt,
                   .heap = &heap,
                   .messages = messages,
                   .first = first,
                   .is_whole = is_whole,
                   .thinks = thinks};

    tnk__heap_init(&heap, prompt->alloc, TNK__CHAT_MAX_HEAP);
    build(&tiny);
    err = heap.err != TNK_OK ? tnk__why(why, heap.err, 0, "out of memory")
                             : try(&tiny, text, out, why);
    *n_ending = tiny.n_ending;
    tnk__heap_deinit(&heap);
  }
  return err;
}

/* Try with all messages first, since the output of a template may depend on any
 * of them. If the template rejects them, because some are missing, try a
 * minimal beginning. */
int tnk__bridge_text(const tnk__prompt_t *prompt, tnk__value_t messages,
                     size_t first, tnk__buf_t *out, size_t *n_ending,
                     tnk__why_t *why) {
  tnk__buf_t text[3];
  int err = TNK_EINVAL;

  for (int i = 0; i < 3; i++)
    tnk__buf_init(&text[i], prompt->alloc, MAX_BYTES);
  if (first > 1)
    err = try_both(prompt, messages, first, 1, text, out, n_ending, why);
  if (err == TNK_EINVAL)
    err = try_both(prompt, messages, first, 0, text, out, n_ending, why);
  for (int i = 0; i < 3; i++)
    tnk__buf_deinit(&text[i]);
  return err == DIFFERS ? TNK_EUNSUPPORTED : err;
}

/* Find a stop that the sampled ids end with and that the text starts with. *n
 * is its length. *other is set if the ids end with a different stop. Returns 0
 * if only such a stop was found. */
static int count_sampled(const tnk__prompt_t *prompt, const tnk__buf_t *tail,
                         const tnk__buf_t *text, size_t *n,
                         const char **other) {
  *n = 0;
  *other = NULL;
  for (const char *const *stop = prompt->stops; *stop != NULL; stop++) {
    const size_t len = strlen(*stop);

    if (len == 0 || len > tail->len ||
        memcmp(tail->data + tail->len - len, *stop, len) != 0)
      continue;
    if (len <= text->len && memcmp(text->data, *stop, len) == 0) {
      *n = len;
      return 1;
    }
    *other = *stop;
  }
  return *other == NULL;
}

/* Returns how many bytes of the text were sampled, if the sampled ids end with
 * all that ends an answer and the text starts with it. This finds an end of
 * plain text, such as "</answer>", which is in no list of stops. The white
 * space after it may have been sampled too, as a whole, in part or not at all.
 */
static size_t count_ending(const tnk__buf_t *tail, const tnk__buf_t *text,
                           size_t n_ending) {
  size_t n = n_ending < text->len ? n_ending : text->len;
  size_t n_visible = n;

  while (n_visible > 0 && text->data[n_visible - 1] <= ' ')
    n_visible--;
  for (; n_visible > 0 && n >= n_visible; n--)
    if (n <= tail->len &&
        memcmp(tail->data + tail->len - n, text->data, n) == 0)
      return n;
  return 0;
}

/* Returns whether an id is a control token. Plug-ins that do not list theirs
 * leave it open. */
static int may_be_control(const tnk__coder_t *coder, int32_t id) {
  size_t n;
  int32_t control;

  if (coder->calls.added == NULL)
    return 1;
  for (size_t i = 0;; i++) {
    if (coder->calls.added(coder->tokenizer, i, &n, &control) == NULL)
      return 0;
    if (control == id)
      return 1;
  }
}

/* Returns whether the first of the new ids was already sampled. An answer may
 * end with a control token that is not in the list of stops. White space does
 * not count, as it may be on both sides. */
static int is_sampled(const tnk__coder_t *coder, int32_t last,
                      const tnk__buf_t *ids, tnk__buf_t *tail, int *err,
                      tnk__why_t *why) {
  size_t i = 0;

  if (tnk__n_ids(ids) == 0 || tnk__ids(ids)[0] != last ||
      !may_be_control(coder, last))
    return 0;
  tnk__buf_clear(tail);
  *err = tnk__ids_decode(coder, &last, 1, tail, why);
  while (i < tail->len && tail->data[i] <= ' ')
    i++;
  return i < tail->len;
}

int tnk__bridge_ids(const tnk__prompt_t *prompt, const tnk__coder_t *coder,
                    const int32_t *so_far, size_t n_so_far,
                    const tnk__buf_t *text, size_t n_ending, tnk__buf_t *ids,
                    tnk__why_t *why) {
  size_t n_tail = n_ending, n_sampled = 0;
  const char *other = NULL;
  tnk__buf_t tail;
  int err;

  /* A stop or an ending of n bytes has at most n ids. */
  for (const char *const *stop = prompt->stops; *stop != NULL; stop++)
    n_tail = strlen(*stop) > n_tail ? strlen(*stop) : n_tail;
  n_tail = n_tail < n_so_far ? n_tail : n_so_far;
  tnk__buf_init(&tail, ids->alloc, MAX_BYTES);
  err = tnk__ids_decode(coder, so_far + n_so_far - n_tail, n_tail, &tail, why);
  if (err == TNK_OK && !count_sampled(prompt, &tail, text, &n_sampled, &other))
    err = tnk__why(why, TNK_EUNSUPPORTED, 0,
                   "the answer was ended with \"%.64s\", and the template goes "
                   "on otherwise",
                   other);
  if (err == TNK_OK && n_sampled == 0)
    n_sampled = count_ending(&tail, text, n_ending);
  if (err == TNK_OK)
    err = tnk__ids_continue(coder, text, n_sampled, text->len, ids, why);
  if (err == TNK_OK && n_sampled == 0 &&
      is_sampled(coder, so_far[n_so_far - 1], ids, &tail, &err, why))
    tnk__buf_consume(ids, sizeof(int32_t));
  tnk__buf_deinit(&tail);
  return err;
}
