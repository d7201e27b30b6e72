#ifndef TNK_CHAT_ANSWER_ANSWER_H
#define TNK_CHAT_ANSWER_ANSWER_H

#include <stddef.h>

#include "tnk/chat.h"
#include "chat/value/value.h"

/*
 * Takes the text of an answer in as it is sampled, and tells what it says:
 * thinking, content, calls. How the text is cut makes no difference. A call is
 * told once it is whole, so nothing that was told is taken back; what was meant
 * as one and cannot be read is kept as it came, with the reason.
 *
 *     tnk__answer_open(&answer, alloc, TNK_CHAT_HERMES, tools, &options);
 *     tnk__answer_feed(answer, text, n);
 *     tnk__answer_finish(answer);
 *     message = tnk__answer_message(answer);
 */
typedef struct tnk__answer tnk__answer_t;

/* Where an answer begins: what the prompt has already opened. */
typedef enum {
  TNK__ANSWER_BEGINS = 0, /* nothing: as the family begins */
  TNK__ANSWER_THINKS,     /* a think block */
  TNK__ANSWER_SPEAKS      /* content: also where a family has headers */
} tnk__answer_start_t;

/* Zeros are the defaults. */
typedef struct {
  tnk__answer_start_t start;
  /* Texts that end the answer, up to a NULL; NULL: those of the family. */
  const char *const *stops;
  /* What the ids of calls begin with where the model gives none, four
   * characters or more: a number of five digits follows. NULL: "call". */
  const char *id_prefix;
  size_t first_id;         /* the number of the first call */
  size_t max_text;         /* of the answer; 0: 16 MiB */
  tnk_chat_delta_cb delta; /* NULL: nobody listens */
  void *user;
} tnk__answer_options_t;

/* Begin. `tools` is the list that says what types arguments have, or undefined;
 * it and the stops are borrowed until the end. */
int tnk__answer_open(tnk__answer_t **out, const tnk_allocator_t *alloc,
                     tnk_chat_family_t family, tnk__value_t tools,
                     const tnk__answer_options_t *options);
void tnk__answer_free(tnk__answer_t *answer);
/* Tell another listener from now on. */
void tnk__answer_listen(tnk__answer_t *answer, tnk_chat_delta_cb delta,
                        void *user);
/* Take text in. TNK_EINVAL after the end; TNK_ETOOBIG; TNK_ENOMEM: both stay.
 */
int tnk__answer_feed(tnk__answer_t *answer, const char *text, size_t n);
/* No more comes: tell what was held back. */
int tnk__answer_finish(tnk__answer_t *answer);
/* The message, once it is finished: role, reasoning_content where there is
 * thinking, content, tool_calls where there are calls. Content is none where
 * there is none beside calls. Lives as long as the answer; undefined where
 * memory was short. */
tnk__value_t tnk__answer_message(tnk__answer_t *answer);
/* What was not understood: a list of {"text", "why"}, perhaps empty. */
tnk__value_t tnk__answer_unparsed(const tnk__answer_t *answer);

/* Where an answer to this prompt begins, which is seen by its end. */
tnk__answer_start_t tnk__answer_start(tnk_chat_family_t family,
                                      const char *prompt, size_t n);

#endif
