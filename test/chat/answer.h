/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_CHAT_ANSWER_H
#define TNK_TEST_CHAT_ANSWER_H

#include <stdio.h>
#include <string.h>

#include "chat/answer/answer.h"
#include "lib/base/buf.h"
#include "support/test.h"

/*
 * Answers of models, fed in pieces. What is told is noted in one text, pieces
 * of one kind joined, so that two ways to cut an answer can be compared:
 *
 *   T thinking, C content, U what was not understood, each in angle brackets;
 *   name(arguments)#id is a call.
 */
typedef struct {
  tnk__buf_t told;
  int last; /* the kind of the latest delta, or -1 */
  char id[64];
} heard_t;

typedef struct {
  tnk_chat_family_t family;
  const char *tools; /* JSON, or NULL */
  tnk__answer_start_t start;
  const char *text;
  const char *message;  /* expected, as JSON */
  const char *unparsed; /* likewise; NULL: an empty list */
} sample_t;

static inline void hear(const tnk_chat_delta_t *delta, void *user) {
  static const char letters[] = "TC...U";
  heard_t *heard = user;

  switch (delta->kind) {
  case TNK_CHAT_DELTA_THINKING:
  case TNK_CHAT_DELTA_CONTENT:
  case TNK_CHAT_DELTA_UNPARSED:
    CHECK(delta->n > 0);
    if (heard->last != (int)delta->kind ||
        delta->kind == TNK_CHAT_DELTA_UNPARSED)
      (void)tnk__buf_printf(&heard->told, "%s%c<",
                            heard->told.len > 0 ? ">" : "",
                            letters[delta->kind]);
    (void)tnk__buf_append(&heard->told, delta->text, delta->n);
    break;
  case TNK_CHAT_DELTA_CALL_BEGIN:
    CHECK(heard->last != TNK_CHAT_DELTA_CALL_BEGIN);
    (void)tnk__buf_printf(&heard->told, "%s%s", heard->told.len > 0 ? ">" : "",
                          delta->name);
    (void)snprintf(heard->id, sizeof(heard->id), "%s", delta->id);
    break;
  case TNK_CHAT_DELTA_ARGUMENTS:
    (void)tnk__buf_text(&heard->told, "(");
    (void)tnk__buf_append(&heard->told, delta->text, delta->n);
    (void)tnk__buf_text(&heard->told, ")");
    break;
  case TNK_CHAT_DELTA_CALL_END:
    CHECK(heard->last == TNK_CHAT_DELTA_ARGUMENTS);
    (void)tnk__buf_printf(&heard->told, "#%s", heard->id);
    break;
  }
  heard->last = (int)delta->kind;
}

static inline void heard_init(heard_t *heard) {
  memset(heard, 0, sizeof(*heard));
  heard->last = -1;
  tnk__buf_init(&heard->told, test_allocator(), 1 << 24);
}

/* The value as JSON; the caller frees the buffer. */
static inline const char *as_json(tnk__buf_t *buf, tnk__value_t value) {
  tnk__buf_init(buf, test_allocator(), 1 << 24);
  CHECK_INT(tnk__value_to_json(buf, value, NULL), TNK_OK);
  return tnk__buf_cstr(buf);
}

/* Cut the text at two places, or everywhere where `every` is set; the caller
 * frees the answer. */
static inline tnk__answer_t *cut(const sample_t *sample, tnk__value_t tools,
                                 heard_t *heard, size_t a, size_t b,
                                 size_t every) {
  tnk__answer_options_t options = {
      .start = sample->start, .delta = hear, .user = heard};
  size_t n = strlen(sample->text);
  tnk__answer_t *answer;

  CHECK_INT(tnk__answer_open(&answer, test_allocator(), sample->family, tools,
                             &options),
            TNK_OK);
  for (size_t at = 0; every > 0 && at < n; at += every)
    CHECK_INT(tnk__answer_feed(answer, sample->text + at,
                               at + every < n ? every : n - at),
              TNK_OK);
  if (every == 0) {
    CHECK_INT(tnk__answer_feed(answer, sample->text, a), TNK_OK);
    CHECK_INT(tnk__answer_feed(answer, sample->text + a, b - a), TNK_OK);
    CHECK_INT(tnk__answer_feed(answer, sample->text + b, n - b), TNK_OK);
  }
  CHECK_INT(tnk__answer_finish(answer), TNK_OK);
  return answer;
}

/* One way to cut it: the message, and what was told. */
static inline void check_cut(const sample_t *sample, tnk__value_t tools,
                             tnk__buf_t *told, size_t a, size_t b,
                             size_t every) {
  tnk__buf_t message, unparsed;
  tnk__answer_t *answer;
  heard_t heard;

  heard_init(&heard);
  answer = cut(sample, tools, &heard, a, b, every);
  CHECK_STR(as_json(&message, tnk__answer_message(answer)), sample->message);
  CHECK_STR(as_json(&unparsed, tnk__answer_unparsed(answer)),
            sample->unparsed == NULL ? "[]" : sample->unparsed);
  if (told->len == 0)
    (void)tnk__buf_append(told, heard.told.data, heard.told.len);
  CHECK_STR(tnk__buf_cstr(&heard.told), tnk__buf_cstr(told));
  tnk__buf_deinit(&unparsed);
  tnk__buf_deinit(&message);
  tnk__buf_deinit(&heard.told);
  tnk__answer_free(answer);
}

/* Whole, one byte at a time, and cut at every byte. */
static inline void check_sample(const sample_t *sample) {
  size_t n = strlen(sample->text);
  tnk__value_t tools = tnk__value_undefined();
  tnk__heap_t heap;
  tnk__buf_t told;

  tnk__heap_init(&heap, test_allocator(), 1 << 20);
  if (sample->tools != NULL)
    CHECK_INT(tnk__value_from_json(&heap, sample->tools, strlen(sample->tools),
                                   &tools),
              TNK_OK);
  tnk__buf_init(&told, test_allocator(), 1 << 24);
  check_cut(sample, tools, &told, 0, n, 0);
  for (size_t every = 1; every <= 3; every++)
    check_cut(sample, tools, &told, 0, 0, every);
  for (size_t a = 0; a <= n; a++)
    check_cut(sample, tools, &told, a, a + (n - a) / 2, 0);
  tnk__buf_deinit(&told);
  tnk__heap_deinit(&heap);
}

static inline void check_samples(const sample_t *samples, size_t n) {
  for (size_t i = 0; i < n; i++)
    check_sample(&samples[i]);
}

#define CHECK_SAMPLES(samples)                                                 \
  check_samples(samples, sizeof(samples) / sizeof(samples[0]))

#define SAYS(text) "{\"role\": \"assistant\", \"content\": \"" text "\"}"
#define THINKS(thoughts, text)                                                 \
  "{\"role\": \"assistant\", \"reasoning_content\": \"" thoughts               \
  "\", \"content\": \"" text "\"}"
#define CALL(id, name, arguments)                                              \
  "{\"id\": \"" id                                                             \
  "\", \"type\": \"function\", \"function\": {\"name\": \"" name               \
  "\", \"arguments\": " arguments "}}"
#define CALLS(calls)                                                           \
  "{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [" calls "]}"
#define SAYS_CALLS(text, calls)                                                \
  "{\"role\": \"assistant\", \"content\": \"" text                             \
  "\", \"tool_calls\": [" calls "]}"
#define UNPARSED(text, why) "[{\"text\": \"" text "\", \"why\": \"" why "\"}]"

#endif
