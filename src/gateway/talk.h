#ifndef TNK_GATEWAY_TALK_H
#define TNK_GATEWAY_TALK_H

#include "gateway/state.h"

/* Conversations, as libtnk-chat has them. All return 0, or -1 with the reason
 * in `fault`. */

/* A new one; `*out` is NULL on failure. */
int tnk__gw_talk_read(const tnk__gw_job_t *job, tnk_chat_shape_t shape,
                      const char *json, size_t n, tnk_chat_t **out,
                      tnk__gw_fault_t *fault);
/* The same from a document as templates have it. */
int tnk__gw_talk_make(const tnk__gw_job_t *job, const json_t *doc,
                      tnk_chat_t **out, tnk__gw_fault_t *fault);
/* Set the variables of the gateway, then those of the request. */
int tnk__gw_talk_set(const tnk__gw_job_t *job, tnk_chat_t *chat,
                     tnk__gw_fault_t *fault);
/* What reads the answer, told the prompt; to be freed. */
int tnk__gw_talk_parser(const tnk__gw_job_t *job, tnk_chat_parser_t **out,
                        tnk__gw_fault_t *fault);
/* How conversations are encoded: with a clock, and with control tokens only
 * from the template and the assistant, unless the gateway was told otherwise.
 */
tnk_chat_options_t tnk__gw_talk_options(const tnk_gateway_t *gateway);
/* Why it has failed. -1. */
int tnk__gw_talk_failed(const tnk_chat_error_t *error, tnk__gw_fault_t *fault);

#endif
