/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chat/answer/answer.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"

/*
 * Parses answers for tests in other languages. Each line of standard input is
 * {"family": number, "prompt": text, "text": text, "tools": list, "stop": text
 * or null}; each line of the output is {"message": ..., "unparsed": [...]}. The
 * answer is fed in pieces of seven bytes.
 */
static tnk__answer_t *parse(tnk__value_t line) {
  static char own_stop[64];
  static const char *const stops[] = {own_stop, NULL};
  tnk__value_t prompt = tnk__value_get(line, "prompt");
  tnk__value_t text = tnk__value_get(line, "text");
  tnk_chat_family_t family =
      (tnk_chat_family_t)tnk__value_get(line, "family").as.number;
  tnk__answer_options_t options = {
      .start =
          tnk__answer_start(family, prompt.as.text, (size_t)prompt.n_text)};
  tnk__value_t stop = tnk__value_get(line, "stop");
  tnk__answer_t *answer;

  if (stop.kind == TNK__VALUE_TEXT) {
    (void)snprintf(own_stop, sizeof(own_stop), "%.*s", (int)stop.n_text,
                   stop.as.text);
    options.stops = stops;
  }

  if (tnk__answer_open(&answer, tnk__allocator_default(), family,
                       tnk__value_get(line, "tools"), &options) != TNK_OK)
    return NULL;
  for (size_t at = 0; at < text.n_text; at += 7)
    (void)tnk__answer_feed(answer, text.as.text + at,
                           text.n_text - at < 7 ? text.n_text - at : 7);
  (void)tnk__answer_finish(answer);
  return answer;
}

static int write_answer(tnk__answer_t *answer) {
  tnk__buf_t buf;
  int err;

  tnk__buf_init(&buf, tnk__allocator_default(), (size_t)1 << 28);
  (void)tnk__buf_text(&buf, "{\"message\": ");
  err = tnk__value_to_json(&buf, tnk__answer_message(answer), NULL);
  (void)tnk__buf_text(&buf, ", \"unparsed\": ");
  if (err == TNK_OK)
    err = tnk__value_to_json(&buf, tnk__answer_unparsed(answer), NULL);
  (void)tnk__buf_text(&buf, "}");
  if (err == TNK_OK && buf.err == TNK_OK)
    puts(tnk__buf_cstr(&buf));
  tnk__buf_deinit(&buf);
  return err;
}

int main(void) {
  char *line = NULL;
  size_t size = 0;
  ssize_t n;
  int err = TNK_OK;

  while (err == TNK_OK && (n = getline(&line, &size, stdin)) > 0) {
    tnk__answer_t *answer = NULL;
    tnk__value_t value;
    tnk__heap_t heap;

    tnk__heap_init(&heap, tnk__allocator_default(), (size_t)1 << 28);
    err = tnk__value_from_json(&heap, line, (size_t)n, &value);
    if (err == TNK_OK)
      answer = parse(value);
    err = answer == NULL ? TNK_EINVAL : write_answer(answer);
    tnk__answer_free(answer);
    tnk__heap_deinit(&heap);
  }
  free(line);
  return err != TNK_OK;
}
