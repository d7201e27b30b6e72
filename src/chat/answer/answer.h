/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_ANSWER_ANSWER_H
#define TNK_CHAT_ANSWER_ANSWER_H

#include <stddef.h>

#include "tnk/chat.h"
#include "chat/value/value.h"

/*
 * Parser of a sampled answer. It takes the text as it is sampled, and reports
 * thinking, content and calls. The result does not depend on how the text is
 * split. A call is reported when it is complete, so nothing that was reported
 * is withdrawn. Text that was meant as a call and cannot be parsed is kept
 * unchanged, with the reason.
 *
 *     tnk__answer_open(&answer, alloc, TNK_CHAT_HERMES, tools, &options);
 *     tnk__answer_feed(answer, text, n);
 *     tnk__answer_finish(answer);
 *     message = tnk__answer_message(answer);
 */
typedef struct tnk__answer tnk__answer_t;

/* State at the start of an answer, as the prompt has left it. */
typedef enum {
  TNK__ANSWER_BEGINS = 0, /* nothing: the normal start of the family */
  TNK__ANSWER_THINKS,     /* a think block */
  TNK__ANSWER_SPEAKS      /* content, even if the family has headers */
} tnk__answer_start_t;

/* Zeros are the defaults. */
typedef struct {
  tnk__answer_start_t start;
  /* Texts that end the answer; ends with NULL. NULL: the stops of the
   * family. */
  const char *const *stops;
  /* Prefix of the ids of calls, if the model gives none: four characters or
   * more. A number of five digits follows. NULL: "call". */
  const char *id_prefix;
  size_t first_id; /* number of the first call */
  size_t max_text; /* maximum length of the answer in bytes; 0: 16 MiB */
  tnk_chat_delta_cb delta; /* may be NULL */
  void *user;
} tnk__answer_options_t;

/* Start an answer. `tools` is the list of tools, which has the types of
 * arguments, or undefined. It and the stops are borrowed until the answer is
 * freed. */
int tnk__answer_open(tnk__answer_t **out, const tnk_allocator_t *alloc,
                     tnk_chat_family_t family, tnk__value_t tools,
                     const tnk__answer_options_t *options);
void tnk__answer_free(tnk__answer_t *answer);
/* Replace the callback. */
void tnk__answer_listen(tnk__answer_t *answer, tnk_chat_delta_cb delta,
                        void *user);
/* Add text. Returns TNK_EINVAL after the end. TNK_ETOOBIG and TNK_ENOMEM are
 * permanent. */
int tnk__answer_feed(tnk__answer_t *answer, const char *text, size_t n);
/* End the text: report everything that was held back. */
int tnk__answer_finish(tnk__answer_t *answer);
/* The message of a finished answer: role, content, reasoning_content if there
 * is any thinking, and tool_calls if there are any calls. `content` may be an
 * empty string. The message lives as long as the answer. Undefined if the
 * answer has failed or memory is out. */
tnk__value_t tnk__answer_message(tnk__answer_t *answer);
/* Text that was not understood: a list of {"text", "why"}, which may be
 * empty. */
tnk__value_t tnk__answer_unparsed(const tnk__answer_t *answer);

/* Determine the state at the start of an answer from the end of its prompt. */
tnk__answer_start_t tnk__answer_start(tnk_chat_family_t family,
                                      const char *prompt, size_t n);

#endif
