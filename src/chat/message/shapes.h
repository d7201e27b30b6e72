/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_MESSAGE_SHAPES_H
#define TNK_CHAT_MESSAGE_SHAPES_H

#include "chat/message/message.h"

/* Shared by the files of this folder. */

/* Position in the body: a member, or an element of a list. */
typedef struct tnk__place {
  const struct tnk__place *up; /* NULL: the body itself */
  const char *name;            /* NULL: an element */
  size_t index;
} tnk__place_t;

/* Context of reading or writing. */
typedef struct {
  tnk__heap_t *heap;
  tnk__why_t *why;
} tnk__io_t;

/*
 * A format ("shape"). Its list of messages consists of items. A reader appends
 * the messages of some items, and returns the number of items. A writer appends
 * the items of some messages, and returns the number of messages.
 */
typedef struct {
  const char *list; /* the member of the body that has the items */
  const char
      *system; /* the member of the body that has the system text, or NULL */
  /* Members of `extra` that keep original data. */
  const char *keeps, *keeps_system, *keeps_tools;
  /* The member of `extra` that records a string instead of a list; or NULL. */
  const char *text;
  int (*read)(tnk__io_t *io, const tnk__place_t *place, tnk__value_t items,
              size_t at, size_t *n_items, tnk__value_t messages);
  int (*write)(tnk__io_t *io, const tnk__place_t *place, tnk__value_t messages,
               size_t at, size_t *n_messages, tnk__value_t items);
  int (*read_tool)(tnk__io_t *io, const tnk__place_t *place, tnk__value_t json,
                   tnk__value_t *tool);
  int (*write_tool)(tnk__io_t *io, const tnk__place_t *place, tnk__value_t tool,
                    tnk__value_t *json);
} tnk__shape_t;

extern const tnk__shape_t tnk__shape_openai;
extern const tnk__shape_t tnk__shape_responses;
extern const tnk__shape_t tnk__shape_anthropic;

/* Convert the system text of Anthropic to a message, and the first `n` messages
 * back. */
int tnk__anthropic_read_system(tnk__io_t *io, const tnk__place_t *place,
                               tnk__value_t json, tnk__value_t *message);
int tnk__anthropic_write_system(tnk__io_t *io, const tnk__place_t *place,
                                tnk__value_t messages, size_t n,
                                tnk__value_t *json);
/* ---- body.c ---- */

/* Report an error at a position, and return the code. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
int tnk__io_fail(tnk__io_t *io, const tnk__place_t *place, int code,
                 const char *format, ...);
/* Get a member that is a string. Undefined if it is missing or null. */
int tnk__io_text(tnk__io_t *io, const tnk__place_t *place, tnk__value_t dict,
                 const char *name, tnk__value_t *out);
/* The same for a required member. */
int tnk__io_need(tnk__io_t *io, const tnk__place_t *place, tnk__value_t dict,
                 const char *name, tnk__value_t *out);
/* Get the required member `type` of a value, which must be a dict. */
int tnk__io_type(tnk__io_t *io, const tnk__place_t *place, tnk__value_t dict,
                 tnk__value_t *type);
/* Reject a type, and name it. */
int tnk__io_no_type(tnk__io_t *io, const tnk__place_t *place,
                    tnk__value_t type);
/* Check that a value is a list of dicts; otherwise TNK_EINVAL. */
int tnk__io_list(tnk__io_t *io, const tnk__place_t *place, tnk__value_t value);

tnk__value_t tnk__io_word(const char *word);
/* {"type": word} */
tnk__value_t tnk__io_typed(tnk__io_t *io, const char *word);
/* {"role": word} */
tnk__value_t tnk__io_message(tnk__io_t *io, const char *role);
void tnk__io_set(tnk__io_t *io, tnk__value_t dict, const char *name,
                 tnk__value_t value);
/* Join two strings, with `between` unless one is empty. Other values count as
 * empty. */
tnk__value_t tnk__io_join(tnk__io_t *io, tnk__value_t a, const char *between,
                          tnk__value_t b);
/* Write the arguments of a call as a JSON string. */
int tnk__io_to_json(tnk__io_t *io, const tnk__place_t *place,
                    tnk__value_t value, tnk__value_t *text);
/* Make a call in the internal form from JSON arguments. If they are not a JSON
 * object, they stay a string. */
tnk__value_t tnk__io_call(tnk__io_t *io, tnk__value_t id, tnk__value_t name,
                          tnk__value_t arguments);

/* {"type": "text", "text"}, {"type": "image", "image"} */
tnk__value_t tnk__part_text(tnk__io_t *io, tnk__value_t text);
tnk__value_t tnk__part_image(tnk__io_t *io, tnk__value_t url);
/* Convert parts to content. No part, or a single text part, becomes a string.
 * With `is_joined` all text parts become one string. */
tnk__value_t tnk__part_content(tnk__io_t *io, tnk__value_t parts,
                               int is_joined);
/* Convert content to parts. A string is one part. */
int tnk__part_list(tnk__io_t *io, const tnk__place_t *place,
                   tnk__value_t content, tnk__value_t *parts);

#endif
