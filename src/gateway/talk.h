/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_TALK_H
#define TNK_GATEWAY_TALK_H

#include "gateway/state.h"

/*
 * Conversations of libtnk-chat. All functions return 0, or -1 with the reason
 * in `fault`. Those that do not use jansson, which has the allocator of the
 * program, may be called on the thread that renders.
 */

/* Read a new conversation. `*out` is NULL on failure. */
int tnk__gw_talk_read(const tnk__gw_job_t *job, tnk_chat_shape_t shape,
                      const char *json, size_t n, tnk_chat_t **out,
                      tnk__gw_fault_t *fault);
/* The same from a document in the format of templates. Uses jansson. */
int tnk__gw_talk_make(const tnk__gw_job_t *job, const json_t *doc,
                      tnk_chat_t **out, tnk__gw_fault_t *fault);
/* Collect the variables of the gateway, and after them those of the request:
 * pairs of a name and its value in JSON, each NUL-terminated. Uses jansson. */
int tnk__gw_talk_collect(tnk__gw_job_t *job, tnk__gw_fault_t *fault);
/* Set the collected variables. */
int tnk__gw_talk_set(const tnk__gw_job_t *job, tnk_chat_t *chat,
                     tnk__gw_fault_t *fault);
/* Create the parser of the response, and feed it the `n` ids of the prompt. The
 * caller frees it. */
int tnk__gw_talk_parser(const tnk__gw_job_t *job, const int32_t *prompt,
                        size_t n, tnk_chat_parser_t **out,
                        tnk__gw_fault_t *fault);
/* Options to render the conversation of a job: with a clock, and canceled with
 * the job. Only the template and the assistant may use control tokens, unless
 * the gateway keeps all of them. */
tnk_chat_options_t tnk__gw_talk_options(const tnk__gw_job_t *job);
/* Sets the fault of something that the template or the tokenizer cannot do.
 * Returns -1. */
typedef int (*tnk__gw_cannot_t)(tnk__gw_fault_t *fault, const char *why);
/* Append the text of a conversation, with or without the generation prompt. */
int tnk__gw_talk_text(const tnk__gw_job_t *job, const tnk_chat_t *chat,
                      tnk_choice_t is_prompt, tnk__buf_t *out,
                      tnk__gw_cannot_t cannot, tnk__gw_fault_t *fault);
/* Render the conversation with more messages, a list in the format of
 * templates, into the empty buffer `out`, without the `prompt` in front of
 * them. `misplaced` is the reason for a template that writes them in another
 * place. */
int tnk__gw_talk_after(const tnk__gw_job_t *job, const tnk__buf_t *prompt,
                       const tnk__buf_t *list, const char *misplaced,
                       tnk__buf_t *out, tnk__gw_cannot_t cannot,
                       tnk__gw_fault_t *fault);
/* Append the ids of a text. Fails if they do not decode to the same text. */
int tnk__gw_talk_ids(const tnk__gw_job_t *job, const tnk__buf_t *text,
                     tnk__buf_t *ids, tnk__gw_cannot_t cannot,
                     tnk__gw_fault_t *fault);
/* Set the fault of a failure. Returns -1. */
int tnk__gw_talk_failed(const tnk_chat_error_t *error, tnk__gw_fault_t *fault);

#endif
