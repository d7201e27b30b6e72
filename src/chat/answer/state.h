#ifndef TNK_CHAT_ANSWER_STATE_H
#define TNK_CHAT_ANSWER_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "chat/answer/answer.h"
#include "lib/base/buf.h"

/*
 * The inside of an answer, for the files of this room.
 *
 * Modes, and what moves between them. Marks are looked for in the modes that
 * their family gives them; all else is text.
 *
 *   START    nothing was said: a think block or a bare call may begin here.
 *            A mark acts; newlines wait; anything else leads to CONTENT.
 *   CONTENT  what people read.
 *   THINKING until its block closes, then START.
 *   SECTION  between the calls of a section; text here is not understood.
 *   BLOCK    inside of a call: all is kept until the call ends, then it is
 *            read as a whole. Leads back to the mode it was in.
 *   HEADER   before a message of Harmony: all is kept until the message begins.
 *   OVER     a stop was seen; text here is not understood.
 *
 * Everybody here may call out, by tnk__answer_tell().
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

/* What a mark does. */
typedef enum {
  TNK__DOES_STOP,
  TNK__DOES_THINK,
  TNK__DOES_THINK_END,
  TNK__DOES_SPEAK, /* what follows is content */
  TNK__DOES_SECTION,
  TNK__DOES_SECTION_END,
  TNK__DOES_BLOCK,
  TNK__DOES_BARE, /* a block that is content if it is no call */
  TNK__DOES_BLOCK_END,
  TNK__DOES_BLOCK_NEXT, /* ends a block, begins another */
  TNK__DOES_HEADER,     /* a message begins, with its header */
  TNK__DOES_MESSAGE,    /* the header ends */
  TNK__DOES_MESSAGE_END
} tnk__mark_does_t;

typedef struct {
  const char *text;
  uint8_t modes; /* in which it is looked for */
  uint8_t does;
} tnk__mark_t;

/* What came of reading a block. */
typedef enum {
  TNK__READ_CALLS, /* they are in `found` */
  TNK__READ_BAD,   /* and `why` says why */
  TNK__READ_OPEN   /* the end that was found may lie inside of a text */
} tnk__read_t;

typedef struct {
  const char *name; /* to say it to people */
  const tnk__mark_t *marks;
  size_t n_marks;
  const char *const *stops;
  /* Newlines beside marks belong to the marks. */
  uint8_t trims;
  /* A block may end where the answer does. */
  uint8_t is_open_ended;
  uint8_t has_headers;
  /* Reads what a block holds, without its marks. */
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
  int err; /* the first failure; sticky */

  tnk__answer_mode_t mode;
  tnk__answer_mode_t back;   /* of BLOCK: the mode that it ends in */
  tnk__mark_does_t block_by; /* of BLOCK: what began it */
  uint8_t is_finished;
  uint8_t is_leading; /* held newlines are dropped before text: a mark was there
                       */
  uint8_t section_is_empty;
  uint8_t no_headers; /* what looked like one was none: all is content */
  unsigned n_ends;   /* of BLOCK: ends that were passed, as it was open there */
  size_t first_end;  /* of BLOCK: behind the first of them, in `pending` */
  size_t n_newlines; /* held: they may stand beside a mark */
  size_t n_text;     /* bytes that were fed */
  size_t max_text;

  tnk__buf_t pending; /* what is not decided */
  size_t at;          /* in pending: what lies before was dealt with */
  size_t scan;        /* in pending: no mark begins between at and here */
  size_t inner;       /* of BLOCK: behind the mark that began it */
  tnk__buf_t stray;   /* of SECTION and OVER: text that is not understood */
  tnk__buf_t scratch;

  tnk__buf_t content, thinking;
  tnk__value_t found;    /* calls of the block that is being read */
  tnk__value_t calls;    /* of the message */
  tnk__value_t unparsed; /* {"text", "why"} */
  uint8_t first[256];    /* modes in which a mark begins with this byte */
  const char *section;   /* the mark that began the section */
  char why[200];         /* why the block could not be read */
};

/* Append to what the message has, and tell it. */
void tnk__answer_say(tnk__answer_t *answer, tnk_chat_delta_kind_t kind,
                     const char *text, size_t n);
/* Keep text that was not understood. */
void tnk__answer_keep(tnk__answer_t *answer, const char *text, size_t n,
                      const char *why);
/* Take the calls in `found` for those of the message. */
void tnk__answer_tell_calls(tnk__answer_t *answer);

/* Note a call in `found`. The id may be NULL. The arguments are a dict. */
void tnk__call_add(tnk__answer_t *answer, const char *name, size_t n_name,
                   const char *id, size_t n_id, tnk__value_t arguments);
/* Say why a block could not be read, and return TNK__READ_BAD. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
tnk__read_t
tnk__call_bad(tnk__answer_t *answer, const char *format, ...);
/* Say that a block was cut inside of a text, and return TNK__READ_OPEN. */
tnk__read_t tnk__call_open(tnk__answer_t *answer);
/* Whether JSON is cut inside of a text. */
int tnk__call_json_is_open(const char *text, size_t n);
/* Read a text as arguments. */
tnk__read_t tnk__call_arguments(tnk__answer_t *answer, const char *text,
                                size_t n, tnk__value_t *out);
/* The value of an argument that was written without its type: what the tool's
 * schema says, else what JSON says, else a text. */
tnk__value_t tnk__call_typed(tnk__answer_t *answer, const char *tool,
                             size_t n_tool, const char *key, size_t n_key,
                             const char *text, size_t n);
/* Whether a tool of that name was given. */
int tnk__call_is_known(const tnk__answer_t *answer, const char *name,
                       size_t n_name);

/* What stands at the two ends of a text. */
void tnk__call_trim(const char **text, size_t *n);
/* Where `what` begins in a text, or NULL. */
const char *tnk__call_find(const char *text, size_t n, const char *what);
/* Pass over `what` at the front of a text; 0: something else stands there. */
int tnk__call_skip(const char **text, size_t *n, const char *what);
/* The text up to `what`, which is passed over too; 0: it is not there. */
int tnk__call_upto(const char **text, size_t *n, const char *what,
                   const char **part, size_t *n_part);

/* Readers of blocks, by family. */
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

/* What a header of Harmony announces. */
typedef enum {
  TNK__HEADER_BAD,
  TNK__HEADER_THINKING,
  TNK__HEADER_CONTENT,
  TNK__HEADER_CALL,
  TNK__HEADER_OTHER /* a message that is not the assistant's */
} tnk__header_t;
/* Read a header, without the mark that ends it. *to is whom the message is for
 * or, if it is not the assistant's, of; NULL: not said. */
tnk__header_t tnk__harmony_header(const char *text, size_t n, const char **to,
                                  size_t *n_to);
/* Whether a text may be the beginning of a header; at the end, whether it is.
 */
int tnk__harmony_may_begin(const char *text, size_t n, int is_end);

#endif
