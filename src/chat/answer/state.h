/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_ANSWER_STATE_H
#define TNK_CHAT_ANSWER_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "chat/answer/answer.h"
#include "lib/base/buf.h"

/*
 * Internals of an answer, for the files of this folder.
 *
 * Modes, and transitions between them. Each mark is searched for in the modes
 * that its family selects. Everything else is text.
 *
 *   START    the beginning: a think block or a bare call may start here. A
 *            mark is processed, and newlines are held. Other text leads to
 *            CONTENT.
 *   CONTENT  text for people.
 *   THINKING until the think block ends, then START.
 *   SECTION  between the calls of a section; text here is not understood.
 *   BLOCK    inside a call: the text is kept until the call ends, and then
 *            read as a whole. Returns to the previous mode.
 *   HEADER   before a message of Harmony: kept until the message starts.
 *   OVER     after a stop; text here is not understood.
 *
 * tnk__answer_say(), tnk__answer_keep() and tnk__answer_tell_calls() call the
 * caller's callback.
 */
typedef enum {
  TNK__MODE_START = 1,
  TNK__MODE_CONTENT = 2,
  TNK__MODE_THINKING = 4,
  TNK__MODE_SECTION = 8,
  TNK__MODE_BLOCK = 16,
  TNK__MODE_HEADER = 32,
  TNK__MODE_OVER = 64
} tnk__answer_mode_t;

/* Effects of marks. */
typedef enum {
  TNK__DOES_STOP,
  TNK__DOES_THINK,
  TNK__DOES_THINK_END,
  TNK__DOES_SPEAK, /* content follows */
  TNK__DOES_SECTION,
  TNK__DOES_SECTION_END,
  TNK__DOES_BLOCK,
  TNK__DOES_BARE, /* a block, or content if it is not a call */
  TNK__DOES_BLOCK_END,
  TNK__DOES_BLOCK_NEXT, /* ends a block and starts another */
  TNK__DOES_HEADER,     /* starts a message with its header */
  TNK__DOES_MESSAGE,    /* ends the header */
  TNK__DOES_MESSAGE_END
} tnk__mark_does_t;

typedef struct {
  const char *text;
  uint8_t modes; /* modes in which it is searched for */
  uint8_t does;
} tnk__mark_t;

/* Result of reading a block. */
typedef enum {
  TNK__READ_CALLS, /* the calls are in `found` */
  TNK__READ_BAD,   /* the reason is in `why` */
  TNK__READ_OPEN   /* the end that was found may be inside a string */
} tnk__read_t;

typedef struct {
  const char *name; /* informational */
  const tnk__mark_t *marks;
  size_t n_marks;
  const char *const *stops;
  /* Newlines next to marks belong to the marks. */
  uint8_t trims;
  /* The end of the answer may end a block. */
  uint8_t is_open_ended;
  uint8_t has_headers;
  /* Read the text of a block, without its marks. */
  tnk__read_t (*read)(tnk__answer_t *answer, const char *text, size_t n);
} tnk__family_t;

const tnk__family_t *tnk__family(tnk_chat_family_t family);

struct tnk__answer {
  const tnk_allocator_t *alloc;
  const tnk__family_t *family;
  tnk__value_t tools;
  const char *const *stops;
  tnk_chat_delta_cb delta;
  void *user;
  tnk__heap_t heap;
  char *id_prefix;
  size_t next_id;
  int err; /* the first error; it is kept */

  tnk__answer_mode_t mode;
  tnk__answer_mode_t back;   /* BLOCK: the mode after it */
  tnk__mark_does_t block_by; /* BLOCK: the mark that started it */
  uint8_t is_finished;
  uint8_t is_leading; /* drop held newlines before text: they follow a mark */
  uint8_t section_is_empty;
  uint8_t no_headers; /* a supposed header was text: everything is content */
  unsigned n_ends;    /* BLOCK: ends that were skipped, as they may be inside a
                         string */
  size_t first_end;   /* BLOCK: the offset in `pending` after the first skipped
                         end */
  size_t n_newlines;  /* held, as a mark may follow */
  size_t n_text;      /* total bytes fed */
  size_t max_text;

  tnk__buf_t pending; /* text that is not processed yet */
  size_t at;    /* offset in `pending`: everything before it is processed */
  size_t scan;  /* offset in `pending`: no mark starts between `at` and here */
  size_t inner; /* BLOCK: offset after the mark that started it */
  tnk__buf_t stray; /* SECTION and OVER: text that is not understood */
  tnk__buf_t scratch;

  tnk__buf_t content, thinking;
  tnk__value_t found;    /* calls of the current block */
  tnk__value_t calls;    /* of the message */
  tnk__value_t unparsed; /* list of {"text", "why"} */
  uint8_t first[256];    /* modes in which a mark starts with this byte */
  const char *section;   /* the mark that started the section */
  char why[200];         /* why the block could not be read */
};

/* Append to the message, and report it. */
void tnk__answer_say(tnk__answer_t *answer, tnk_chat_delta_kind_t kind,
                     const char *text, size_t n);
/* Keep text that was not understood. */
void tnk__answer_keep(tnk__answer_t *answer, const char *text, size_t n,
                      const char *why);
/* Add the calls in `found` to the message, and report them. */
void tnk__answer_tell_calls(tnk__answer_t *answer);

/* Add a call to `found`. The id may be NULL. The arguments are a dict. */
void tnk__call_add(tnk__answer_t *answer, const char *name, size_t n_name,
                   const char *id, size_t n_id, tnk__value_t arguments);
/* Set the reason why a block could not be read. Returns TNK__READ_BAD. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
tnk__read_t
tnk__call_bad(tnk__answer_t *answer, const char *format, ...);
/* Report that a block ends inside a string. Returns TNK__READ_OPEN. */
tnk__read_t tnk__call_open(tnk__answer_t *answer);
/* Returns whether JSON ends inside a string. */
int tnk__call_json_is_open(const char *text, size_t n);
/* Read JSON arguments. */
tnk__read_t tnk__call_arguments(tnk__answer_t *answer, const char *text,
                                size_t n, tnk__value_t *out);
/* The value of an argument that has no type in the text. The schema of the tool
 * selects the type. Otherwise the text is read as JSON; if it is not JSON, it
 * is a string. */
tnk__value_t tnk__call_typed(tnk__answer_t *answer, const char *tool,
                             size_t n_tool, const char *key, size_t n_key,
                             const char *text, size_t n);
/* Returns whether there is a tool with this name. Without any tools, every name
 * is known. */
int tnk__call_is_known(const tnk__answer_t *answer, const char *name,
                       size_t n_name);

/* Remove white space at both ends. */
void tnk__call_trim(const char **text, size_t *n);
/* The first occurrence of `what`, or NULL. */
const char *tnk__call_find(const char *text, size_t n, const char *what);
/* Skip `what` at the start of a text. Returns 0 if it is not there. */
int tnk__call_skip(const char **text, size_t *n, const char *what);
/* Get the text before `what`, and skip both. Returns 0 if `what` is not
 * there. */
int tnk__call_upto(const char **text, size_t *n, const char *what,
                   const char **part, size_t *n_part);

/* Readers of blocks, one per family. */
tnk__read_t tnk__read_hermes(tnk__answer_t *, const char *, size_t);
tnk__read_t tnk__read_xml(tnk__answer_t *, const char *, size_t);
tnk__read_t tnk__read_deepseek(tnk__answer_t *, const char *, size_t);
tnk__read_t tnk__read_dsml(tnk__answer_t *, const char *, size_t);
tnk__read_t tnk__read_kimi(tnk__answer_t *, const char *, size_t);
tnk__read_t tnk__read_glm(tnk__answer_t *, const char *, size_t);
tnk__read_t tnk__read_harmony(tnk__answer_t *, const char *, size_t);
tnk__read_t tnk__read_mistral(tnk__answer_t *, const char *, size_t);
tnk__read_t tnk__read_llama(tnk__answer_t *, const char *, size_t);
tnk__read_t tnk__read_xtml(tnk__answer_t *, const char *, size_t);

/* Kinds of messages, as their headers of Harmony say. */
typedef enum {
  TNK__HEADER_BAD,
  TNK__HEADER_THINKING,
  TNK__HEADER_CONTENT,
  TNK__HEADER_CALL,
  TNK__HEADER_OTHER /* a message that is not from the assistant */
} tnk__header_t;
/* Read a header, without the mark that ends it. *to is the recipient of the
 * message. For a message that is not from the assistant it is the sender. NULL:
 * not given. */
tnk__header_t tnk__harmony_header(const char *text, size_t n, const char **to,
                                  size_t *n_to);
/* Returns whether a text may be the start of a header. At the end, returns
 * whether it is one. */
int tnk__harmony_may_begin(const char *text, size_t n, int is_end);

#endif
