/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_RENDER_PROMPT_H
#define TNK_CHAT_RENDER_PROMPT_H

#include "chat/jinja/template.h"
#include "chat/render/guard.h"
#include "chat/value/value.h"

/* Memory limit of a conversation, and of a rendering with its variables and its
 * output. */
#define TNK__CHAT_MAX_HEAP ((size_t)256 * 1024 * 1024)

/* The input of a rendering, except the messages. Everything is borrowed. */
typedef struct {
  const tnk__template_t *template_;
  tnk__value_t variables;   /* a dict: tools, special tokens, the caller's */
  const char *const *stops; /* texts that end an answer; ends with NULL */
  /* Text of a stop that follows the answer, if the next message starts with it.
   * NULL: none. */
  const char *rest;
  const tnk__guard_t *guard; /* NULL: messages may contain control tokens */
  tnk__template_env_t env;
  const tnk_allocator_t *alloc;
} tnk__prompt_t;

/* Return the messages of a list as the template sees them: with marks, without
 * null members, with thoughts under all names. Memory is from `heap`, which has
 * an error if it is full. */
tnk__value_t tnk__prompt_seen(const tnk__prompt_t *prompt, tnk__heap_t *heap,
                              tnk__value_t messages, size_t n);
/* Append the text of the first `n` messages that tnk__prompt_seen() returned.
 * The rest is as for tnk__prompt_text(). */
int tnk__prompt_seen_text(const tnk__prompt_t *prompt, tnk__value_t seen,
                          size_t n, int is_open, tnk__buf_t *out,
                          tnk__buf_t *spans, tnk__why_t *why);
/* Append the text of the first `n` messages of a list, and the start of an
 * answer if `is_open` is set. `spans` receives the spans of the template's
 * generation blocks; it may be NULL. */
int tnk__prompt_text(const tnk__prompt_t *prompt, tnk__value_t messages,
                     size_t n, int is_open, tnk__buf_t *out, tnk__buf_t *spans,
                     tnk__why_t *why);

/* The thoughts of a message, under the first of the names that it has.
 * Undefined or NONE if it has no thoughts. */
tnk__value_t tnk__prompt_thoughts(tnk__value_t message);
/* Length of the common prefix of two texts, in whole characters. */
size_t tnk__prompt_common(const tnk__buf_t *a, const tnk__buf_t *b);
/* Returns whether `a` is a prefix of `b`. */
int tnk__prompt_begins(const tnk__buf_t *a, const tnk__buf_t *b);
/* Length of a text that ends answers at this position, including the white
 * space before it. 0: none. */
size_t tnk__prompt_stop_at(const tnk__prompt_t *prompt, const tnk__buf_t *text,
                           size_t at);
/* Find the text that ends an answer in [from, to). Only white space may follow
 * it; *end is its own end. Returns 0 if the range has none. */
int tnk__prompt_stop(const tnk__prompt_t *prompt, const tnk__buf_t *text,
                     size_t from, size_t to, size_t *begin, size_t *end);
/* Copy a few characters from `at` on to `piece`, for an error message. Control
 * characters become spaces. */
void tnk__prompt_quote(const tnk__buf_t *text, size_t at, char *piece,
                       size_t size);

#endif
