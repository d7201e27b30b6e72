/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_WIRE_PARTS_H
#define TNK_GATEWAY_WIRE_PARTS_H

#include "gateway/wire/answer.h"
#include "lib/wire/format/json_write.h"

/* Helpers of the writers of the four endpoints. */

typedef tnk__json_writer_t tnk__gw_w_t;

/* Begin and end an event of a stream. `event` is NULL for an event without a
 * name. */
void tnk__gw_event(tnk__gw_w_t *w, tnk__buf_t *out, const char *event);
void tnk__gw_event_end(tnk__gw_w_t *w, tnk__buf_t *out);
/* Write a member with all text of a kind. If the text is empty and `or_null` is
 * set, write null. */
void tnk__gw_put_joined(tnk__gw_w_t *w, const char *key,
                        const tnk__gw_said_t *said, tnk__gw_piece_kind_t kind,
                        int or_null);
/* Write a member with the arguments of the call at piece `i`, as a string or as
 * an object. */
void tnk__gw_put_arguments(tnk__gw_w_t *w, const char *key,
                           const tnk__gw_said_t *said, size_t i, int is_text);
/* Write a string or member that need not be UTF-8. Invalid bytes become
 * U+FFFD. */
void tnk__gw_text(tnk__gw_w_t *w, const char *text, size_t n);
/* Write a member with the id of a call. */
void tnk__gw_put_call_id(tnk__gw_w_t *w, const char *key,
                         const tnk__gw_said_t *said,
                         const tnk__gw_piece_t *piece);
/* Write an object for a token: token, logprob, bytes, and with `top` the
 * likeliest tokens. */
void tnk__gw_token(tnk__gw_w_t *w, const tnk__gw_answer_t *answer,
                   const tnk__gw_choice_t *choice, size_t i, int with_top);
size_t tnk__gw_n_sampled(const tnk__gw_answer_t *answer);
/* Write the common members at the start and the end of responses of OpenAI's
 * older endpoints. */
void tnk__gw_put_head(tnk__gw_w_t *w, const tnk__gw_answer_t *answer,
                      tnk__gw_api_t api, const char *object);
void tnk__gw_put_usage(tnk__gw_w_t *w, const tnk__gw_answer_t *answer);
/* Write the last events of a stream of these endpoints: the usage, if the
 * client asked for it, and the end mark. Returns TNK_OK or the error of `out`.
 */
int tnk__gw_put_last(tnk__buf_t *out, const tnk__gw_answer_t *answer,
                     tnk__gw_api_t api, const char *object);

int tnk__gw_chat_write(const tnk__gw_answer_t *answer, tnk__buf_t *out);
int tnk__gw_completion_write(const tnk__gw_answer_t *answer, tnk__buf_t *out);
int tnk__gw_response_write(const tnk__gw_answer_t *answer, tnk__buf_t *out);
int tnk__gw_message_write(const tnk__gw_answer_t *answer, tnk__buf_t *out);

#endif
