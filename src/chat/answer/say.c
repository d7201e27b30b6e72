/* SPDX-License-Identifier: MIT */
#include "chat/answer/answer.h"

#include <stdio.h>
#include <string.h>

#include "chat/answer/state.h"
#include "lib/base/alloc.h"
#include "lib/base/limits.h"

/* An answer as an object, and its callbacks. step.c parses the text. state.h
 * explains the modes. */

enum { N_DIGITS = 5 };

static void set_first(tnk__answer_t *answer) {
  const tnk__family_t *family = answer->family;

  for (size_t i = 0; i < family->n_marks; i++)
    answer->first[(uint8_t)family->marks[i].text[0]] |= family->marks[i].modes;
  for (size_t i = 0; answer->stops[i] != NULL; i++)
    answer->first[(uint8_t)answer->stops[i][0]] |=
        (uint8_t) ~(unsigned)TNK__MODE_OVER;
}

/* Set the state at the start. */
static void set_start(tnk__answer_t *answer, tnk__answer_start_t start) {
  answer->mode =
      answer->family->has_headers ? TNK__MODE_HEADER : TNK__MODE_START;
  if (start == TNK__ANSWER_THINKS) {
    answer->mode = TNK__MODE_THINKING;
    answer->is_leading = answer->family->trims;
  } else if (start == TNK__ANSWER_SPEAKS) {
    answer->mode = TNK__MODE_CONTENT;
  }
}

static int are_stops_good(const char *const *stops) {
  for (size_t i = 0; stops != NULL && stops[i] != NULL; i++)
    if (stops[i][0] == '\0')
      return 0;
  return 1;
}

int tnk__answer_open(tnk__answer_t **out, const tnk_allocator_t *alloc,
                     tnk_chat_family_t family, tnk__value_t tools,
                     const tnk__answer_options_t *options) {
  static const tnk__answer_options_t defaults;
  tnk__answer_t *answer;
  size_t max;

  *out = NULL;
  if (options == NULL)
    options = &defaults;
  if (tnk__family(family) == NULL || !are_stops_good(options->stops))
    return TNK_EINVAL;
  answer = tnk__calloc(alloc, 1, sizeof(*answer));
  if (answer == NULL)
    return TNK_ENOMEM;
  max = options->max_text > 0 ? options->max_text : 16 * TNK__MIB;
  answer->alloc = alloc;
  answer->family = tnk__family(family);
  answer->tools = tools;
  answer->stops =
      options->stops != NULL ? options->stops : answer->family->stops;
  answer->delta = options->delta;
  answer->user = options->user;
  answer->next_id = options->first_id;
  answer->max_text = max;
  /* A value is larger than its source text, and a block may be read more than
   * once. */
  tnk__heap_init(&answer->heap, alloc, 64 * max + TNK__MIB);
  tnk__buf_init(&answer->pending, alloc, max);
  tnk__buf_init(&answer->stray, alloc, max);
  tnk__buf_init(&answer->scratch, alloc, 8 * max + TNK__MIB);
  tnk__buf_init(&answer->content, alloc, max);
  tnk__buf_init(&answer->thinking, alloc, max);
  answer->id_prefix = tnk__strdup(
      alloc, options->id_prefix != NULL ? options->id_prefix : "call");
  answer->calls = tnk__value_list(&answer->heap);
  answer->unparsed = tnk__value_list(&answer->heap);
  if (answer->id_prefix == NULL || answer->heap.err != TNK_OK) {
    tnk__answer_free(answer);
    return TNK_ENOMEM;
  }
  set_first(answer);
  set_start(answer, options->start);
  *out = answer;
  return TNK_OK;
}

void tnk__answer_free(tnk__answer_t *answer) {
  if (answer == NULL)
    return;
  tnk__free(answer->alloc, answer->id_prefix);
  tnk__buf_deinit(&answer->thinking);
  tnk__buf_deinit(&answer->content);
  tnk__buf_deinit(&answer->scratch);
  tnk__buf_deinit(&answer->stray);
  tnk__buf_deinit(&answer->pending);
  tnk__heap_deinit(&answer->heap);
  tnk__free(answer->alloc, answer);
}

void tnk__answer_listen(tnk__answer_t *answer, tnk_chat_delta_cb delta,
                        void *user) {
  answer->delta = delta;
  answer->user = user;
}

tnk__value_t tnk__answer_unparsed(const tnk__answer_t *answer) {
  return answer->unparsed;
}

static void tell(tnk__answer_t *answer, const tnk_chat_delta_t *delta) {
  if (answer->delta != NULL && answer->err == TNK_OK)
    answer->delta(delta, answer->user);
}

static void fail_with(tnk__answer_t *answer, int err) {
  if (answer->err == TNK_OK)
    answer->err = err;
}

void tnk__answer_say(tnk__answer_t *answer, tnk_chat_delta_kind_t kind,
                     const char *text, size_t n) {
  tnk__buf_t *buf =
      kind == TNK_CHAT_DELTA_THINKING ? &answer->thinking : &answer->content;
  tnk_chat_delta_t delta = {.kind = kind, .text = text, .n = n};

  if (n == 0)
    return;
  fail_with(answer, tnk__buf_append(buf, text, n));
  tell(answer, &delta);
}

void tnk__answer_keep(tnk__answer_t *answer, const char *text, size_t n,
                      const char *why) {
  tnk_chat_delta_t delta = {
      .kind = TNK_CHAT_DELTA_UNPARSED, .text = text, .n = n};
  tnk__value_t item = tnk__value_dict(&answer->heap);

  if (n == 0)
    return;
  tnk__value_set(&answer->heap, item, "text",
                 tnk__value_copy_text(&answer->heap, text, n));
  tnk__value_set(&answer->heap, item, "why",
                 tnk__value_copy_text(&answer->heap, why, strlen(why)));
  tnk__value_append(&answer->heap, answer->unparsed, item);
  fail_with(answer, answer->heap.err);
  tell(answer, &delta);
}

/* A copy with a NUL at the end. Strings in a heap have none. */
static const char *cstr(tnk__answer_t *answer, tnk__value_t text) {
  tnk__buf_t *buf = &answer->scratch;
  const char *out = (const char *)buf->data + buf->len;

  if (tnk__buf_append(buf, text.as.text, text.n_text) != TNK_OK ||
      tnk__buf_byte(buf, 0) != TNK_OK)
    return "";
  return out;
}

/* Report one call: its start, its arguments, its end. */
static void tell_call(tnk__answer_t *answer, uint32_t index,
                      tnk__value_t call) {
  tnk__value_t function = tnk__value_get(call, "function");
  tnk__value_t name = tnk__value_get(function, "name");
  tnk__value_t id = tnk__value_get(call, "id");
  tnk__buf_t *buf = &answer->scratch;
  tnk_chat_delta_t delta = {.call = index};
  size_t n;

  tnk__buf_clear(buf);
  (void)tnk__value_to_json(buf, tnk__value_get(function, "arguments"), NULL);
  n = buf->len;
  /* Reserve memory for both strings first, so that pointers into the buffer
   * stay valid. */
  (void)tnk__buf_reserve(buf, (size_t)name.n_text + id.n_text + 2);
  fail_with(answer, buf->err);
  if (answer->err != TNK_OK)
    return;
  delta.name = cstr(answer, name);
  delta.id = cstr(answer, id);
  delta.kind = TNK_CHAT_DELTA_CALL_BEGIN;
  tell(answer, &delta);
  delta.name = delta.id = NULL;
  delta.kind = TNK_CHAT_DELTA_ARGUMENTS;
  delta.text = (const char *)buf->data;
  delta.n = n;
  tell(answer, &delta);
  delta.kind = TNK_CHAT_DELTA_CALL_END;
  delta.text = NULL;
  delta.n = 0;
  tell(answer, &delta);
}

void tnk__answer_tell_calls(tnk__answer_t *answer) {
  fail_with(answer, answer->heap.err);
  if (answer->err != TNK_OK)
    return;
  for (size_t i = 0; i < answer->found.as.list->n; i++) {
    tnk__value_t call = answer->found.as.list->items[i];

    tnk__value_append(&answer->heap, answer->calls, call);
    tell_call(answer, (uint32_t)(answer->calls.as.list->n - 1), call);
    answer->next_id++;
  }
  fail_with(answer, answer->heap.err);
}

/* The content of a buffer, as a value. */
static tnk__value_t whole(const tnk__buf_t *buf) {
  return tnk__value_text(buf->len > 0 ? (const char *)buf->data : "", buf->len);
}

tnk__value_t tnk__answer_message(tnk__answer_t *answer) {
  tnk__heap_t *heap = &answer->heap;
  tnk__value_t message, content = whole(&answer->content);
  size_t n_calls;

  if (!answer->is_finished || answer->err != TNK_OK)
    return tnk__value_undefined();
  n_calls = answer->calls.as.list->n;
  message = tnk__value_dict(heap);
  tnk__value_set(heap, message, "role", tnk__value_text("assistant", 9));
  if (answer->thinking.len > 0)
    tnk__value_set(heap, message, "reasoning_content",
                   whole(&answer->thinking));
  tnk__value_set(heap, message, "content", content);
  if (n_calls > 0)
    tnk__value_set(heap, message, "tool_calls", answer->calls);
  return heap->err == TNK_OK ? message : tnk__value_undefined();
}
