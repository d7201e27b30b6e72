#ifndef TNK_CHAT_MESSAGE_SHAPES_H
#define TNK_CHAT_MESSAGE_SHAPES_H

#include "chat/message/message.h"

/* What the files of this room share. */

/* Where in the body something is: a member, or an element of a list. */
typedef struct tnk__place {
  const struct tnk__place *up; /* NULL: the body itself */
  const char *name;            /* NULL: an element */
  size_t index;
} tnk__place_t;

/* What is read with, or written with. */
typedef struct {
  tnk__heap_t *heap;
  tnk__why_t *why;
} tnk__io_t;

/*
 * A shape. Items are what its list of messages consists of. Readers append the
 * messages that some items are, and say how many items these were; writers
 * append the items that some messages are, and say how many messages.
 */
typedef struct {
  const char *list;   /* the member of the body with the items */
  const char *system; /* the member with text of the system, or NULL */
  /* Members of `extra` that keep what came. */
  const char *keeps, *keeps_system, *keeps_tools;
  /* The one that says that it was a text in place of a list; or NULL. */
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

/* System text of Anthropic to a message; and back, of the first `n`. */
int tnk__anthropic_read_system(tnk__io_t *io, const tnk__place_t *place,
                               tnk__value_t json, tnk__value_t *message);
int tnk__anthropic_write_system(tnk__io_t *io, const tnk__place_t *place,
                                tnk__value_t messages, size_t n,
                                tnk__value_t *json);
/* Writers of two shapes, which have files of their own. */
int tnk__anthropic_write(tnk__io_t *io, const tnk__place_t *place,
                         tnk__value_t messages, size_t at, size_t *n_messages,
                         tnk__value_t items);
int tnk__anthropic_write_tool(tnk__io_t *io, const tnk__place_t *place,
                              tnk__value_t tool, tnk__value_t *json);
int tnk__responses_write(tnk__io_t *io, const tnk__place_t *place,
                         tnk__value_t messages, size_t at, size_t *n_messages,
                         tnk__value_t items);

/* ---- parts.c ---- */

/* Say what is wrong at a place, and return the code. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
int tnk__io_fail(tnk__io_t *io, const tnk__place_t *place, int code,
                 const char *format, ...);
/* A member that is a text; undefined where it is none or not there. */
int tnk__io_text(tnk__io_t *io, const tnk__place_t *place, tnk__value_t dict,
                 const char *name, tnk__value_t *out);
/* The same for one that must be there. */
int tnk__io_need(tnk__io_t *io, const tnk__place_t *place, tnk__value_t dict,
                 const char *name, tnk__value_t *out);
/* The member `type`, as a text with a NUL behind it in `type`. */
int tnk__io_type(tnk__io_t *io, const tnk__place_t *place, tnk__value_t dict,
                 tnk__value_t *type);
/* Refuse a type by its name. */
int tnk__io_no_type(tnk__io_t *io, const tnk__place_t *place,
                    tnk__value_t type);
/* A list of dicts; TNK_EINVAL for another value. */
int tnk__io_list(tnk__io_t *io, const tnk__place_t *place, tnk__value_t value);

tnk__value_t tnk__io_word(const char *word);
/* {"type": word} */
tnk__value_t tnk__io_typed(tnk__io_t *io, const char *word);
/* {"role": word} */
tnk__value_t tnk__io_message(tnk__io_t *io, const char *role);
void tnk__io_set(tnk__io_t *io, tnk__value_t dict, const char *name,
                 tnk__value_t value);
/* Two texts as one, with something between them unless one is empty. Those that
 * are no texts count as empty. */
tnk__value_t tnk__io_join(tnk__io_t *io, tnk__value_t a, const char *between,
                          tnk__value_t b);
/* The arguments of a call as JSON text. */
int tnk__io_to_json(tnk__io_t *io, const tnk__place_t *place,
                    tnk__value_t value, tnk__value_t *text);
/* A call of the inner form, of the JSON text of its arguments: what is no JSON
 * object stays a text. */
tnk__value_t tnk__io_call(tnk__io_t *io, tnk__value_t id, tnk__value_t name,
                          tnk__value_t arguments);

/* {"type": "text", "text"}, {"type": "image", "image"} */
tnk__value_t tnk__part_text(tnk__io_t *io, tnk__value_t text);
tnk__value_t tnk__part_image(tnk__io_t *io, tnk__value_t url);
/* Parts as content: one that is text, or none, as a text. With `is_joined`, all
 * that are text as one. */
tnk__value_t tnk__part_content(tnk__io_t *io, tnk__value_t parts,
                               int is_joined);
/* Content as parts: a text is one. */
int tnk__part_list(tnk__io_t *io, const tnk__place_t *place,
                   tnk__value_t content, tnk__value_t *parts);

#endif
