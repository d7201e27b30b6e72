/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "chat/answer/state.h"

/* Harmony: messages with headers. A header names a channel, and optionally the
 * recipient of the message. */

#define START_MARK "<|start|>"
#define CHANNEL_MARK "<|channel|>"
#define MESSAGE_MARK "<|message|>"

int tnk__harmony_may_begin(const char *text, size_t n, int is_end) {
  static const char *const fronts[] = {START_MARK, CHANNEL_MARK, MESSAGE_MARK,
                                       " to=", "to="};

  for (size_t i = 0; i < sizeof(fronts) / sizeof(fronts[0]); i++) {
    size_t n_front = strlen(fronts[i]);

    if ((n >= n_front || !is_end) &&
        memcmp(text, fronts[i], n < n_front ? n : n_front) == 0)
      return 1;
  }
  return 0;
}

/* Read a word, up to a space or a mark. */
static void take_word(const char **text, size_t *n, const char **word,
                      size_t *n_word) {
  *word = *text;
  while (*n > 0 && **text != ' ' && **text != '<')
    (*text)++, (*n)--;
  *n_word = (size_t)(*text - *word);
}

static int is_word(const char *word, size_t n, const char *what) {
  return n == strlen(what) && memcmp(word, what, n) == 0;
}

tnk__header_t tnk__harmony_header(const char *text, size_t n, const char **to,
                                  size_t *n_to) {
  const char *channel = "final", *word;
  size_t n_channel = 5, n_word;

  *to = NULL;
  *n_to = 0;
  if (tnk__call_skip(&text, &n, START_MARK)) {
    take_word(&text, &n, &word, &n_word);
    if (!is_word(word, n_word, "assistant")) {
      *to = word;
      *n_to = n_word;
      return TNK__HEADER_OTHER;
    }
  }
  while (n > 0) {
    if (tnk__call_skip(&text, &n, " "))
      continue;
    if (tnk__call_skip(&text, &n, "to=")) {
      take_word(&text, &n, to, n_to);
    } else if (tnk__call_skip(&text, &n, CHANNEL_MARK)) {
      take_word(&text, &n, &channel, &n_channel);
    } else {
      /* The type of the content. A mark may precede it. */
      (void)tnk__call_skip(&text, &n, "<|constrain|>");
      take_word(&text, &n, &word, &n_word);
      if (n_word == 0)
        return TNK__HEADER_BAD;
    }
  }
  if (*to != NULL)
    return *n_to > 0 ? TNK__HEADER_CALL : TNK__HEADER_BAD;
  if (is_word(channel, n_channel, "analysis"))
    return TNK__HEADER_THINKING;
  return is_word(channel, n_channel, "final") ||
                 is_word(channel, n_channel, "commentary")
             ? TNK__HEADER_CONTENT
             : TNK__HEADER_BAD;
}

tnk__read_t tnk__read_harmony(tnk__answer_t *answer, const char *text,
                              size_t n) {
  const char *header = (const char *)answer->pending.data + answer->at, *to;
  size_t n_header = answer->inner - answer->at - (sizeof(MESSAGE_MARK) - 1);
  size_t n_to;
  tnk__value_t arguments;
  tnk__read_t what;

  if (tnk__harmony_header(header, n_header, &to, &n_to) != TNK__HEADER_CALL)
    return tnk__call_bad(answer, "the message is not the assistant's");
  what = tnk__call_arguments(answer, text, n, &arguments);
  if (what != TNK__READ_CALLS)
    return what;
  (void)tnk__call_skip(&to, &n_to, "functions.");
  if (n_to == 0)
    return tnk__call_bad(answer, "the call has no name");
  tnk__call_add(answer, to, n_to, NULL, 0, arguments);
  return TNK__READ_CALLS;
}
