/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_RENDER_GUARD_H
#define TNK_CHAT_RENDER_GUARD_H

#include "chat/render/ids.h"
#include "chat/value/value.h"

/*
 * Keeps control tokens out of messages that others wrote.
 *
 * Before a rendering, each character with which a control token starts or ends
 * gets a mark on both sides. This is done in all messages of the given roles. A
 * mark is a character that occurs nowhere in the conversation. The template
 * copies marks like any other character. Whatever it does to a message, it
 * cannot assemble a control token from it: the token would have a mark inside.
 * After the rendering the marks are removed, and their positions become
 * barriers. A control token with a barrier inside is encoded as plain text
 * (ids.h).
 *
 * Not covered: a template that writes both ends of a control token itself and
 * takes the middle from a message.
 */
typedef struct {
  const char *const *roles;
  size_t n_roles;
  uint64_t ascii[2];   /* characters that get marks: bits for those below 128 */
  tnk__buf_t others;   /* uint32_t: the others */
  uint8_t leads[256];  /* whether one of them starts with a byte */
  tnk__buf_t controls; /* tnk__control_t, sorted bytewise */
  char mark[4], escape[8];
} tnk__guard_t;

/* Prepare for a tokenizer and for the values that the template will see.
 * TNK_EUNSUPPORTED: the plug-in does not list its added tokens. TNK_EINVAL:
 * every possible mark occurs in the values. Call tnk__guard_close() even after
 * a failure. */
int tnk__guard_open(tnk__guard_t *guard, const tnk__coder_t *coder,
                    const char *const *roles, size_t n_roles,
                    tnk__value_t messages, tnk__value_t variables,
                    const tnk_allocator_t *alloc, tnk__why_t *why);
void tnk__guard_close(tnk__guard_t *guard);
/* Return a message with marks, if its role is one of `roles`. */
tnk__value_t tnk__guard_message(const tnk__guard_t *guard, tnk__heap_t *heap,
                                tnk__value_t message);
/* Remove the marks from a text. They may also be JSON escapes, written by the
 * template. Appends a barrier (size_t) for each position, in order. `ends` has
 * `n` ascending offsets, `stride` bytes apart, which are adjusted. */
int tnk__guard_strip(const tnk__guard_t *guard, tnk__buf_t *text,
                     tnk__buf_t *barriers, uint8_t *ends, size_t n,
                     size_t stride, tnk__why_t *why);

#endif
