#ifndef TNK_CHAT_RENDER_PROMPT_H
#define TNK_CHAT_RENDER_PROMPT_H

#include "chat/jinja/template.h"
#include "chat/render/guard.h"
#include "chat/value/value.h"
#include "chat/value/why.h"

/* Of one conversation, and of one rendering: the variables, and what the
 * template makes of them. */
#define TNK__CHAT_MAX_HEAP ((size_t)256 * 1024 * 1024)

/* What a rendering needs beside the messages. All of it is borrowed. */
typedef struct {
  const tnk__template_t *template_;
  tnk__value_t variables;   /* a dict: tools, special tokens, the caller's */
  const char *const *stops; /* texts that end an answer, up to a NULL */
  /* What a stop has behind the text of an answer, where the next message begins
   * with that; NULL: nothing. */
  const char *rest;
  const tnk__guard_t *guard; /* NULL: messages may hold control tokens */
  tnk__template_env_t env;
  const tnk_allocator_t *alloc;
} tnk__prompt_t;

/* Append the text of the first `n` of a list of messages, and what begins an
 * answer if `is_open`. `spans`, which may be NULL, receives those of the
 * template's generation blocks. */
int tnk__prompt_text(const tnk__prompt_t *prompt, tnk__value_t messages,
                     size_t n, int is_open, tnk__buf_t *out, tnk__buf_t *spans,
                     tnk__why_t *why);

/* The thoughts of a message, by the first of the names that it has; undefined
 * or NONE: there are none. */
tnk__value_t tnk__prompt_thoughts(tnk__value_t message);
/* How many bytes two texts have in common at the beginning: whole characters.
 */
size_t tnk__prompt_common(const tnk__buf_t *a, const tnk__buf_t *b);
/* Whether `a` is the beginning of `b`. */
int tnk__prompt_begins(const tnk__buf_t *a, const tnk__buf_t *b);
/* How many bytes a text that ends an answer has here, with the blanks in front
 * of it; 0: there is none. */
size_t tnk__prompt_stop_at(const tnk__prompt_t *prompt, const tnk__buf_t *text,
                           size_t at);
/* Where the text that ends an answer stands in [from, to), if but blanks are
 * behind it; *end is where it ends. 0: there is none. */
int tnk__prompt_stop(const tnk__prompt_t *prompt, const tnk__buf_t *text,
                     size_t from, size_t to, size_t *begin, size_t *end);
/* A piece of a text for a sentence: a few characters from `at` on, in `piece`,
 * with what acts on a terminal as blanks. */
void tnk__prompt_quote(const tnk__buf_t *text, size_t at, char *piece,
                       size_t size);

#endif
