/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_MESSAGE_MESSAGE_H
#define TNK_CHAT_MESSAGE_MESSAGE_H

#include "tnk/chat.h"
#include "chat/value/value.h"

/*
 * Conversations and tools, from and to the JSON of APIs. Internally messages
 * have the form of templates: a list of dicts with these members.
 *
 * - `role`
 * - `content`: a string, or a list of {"type": "text", "text"} and {"type":
 *   "image", "image"}. It is empty if there are only calls. An image is a URL
 *   or a data: URL.
 * - `reasoning_content`
 * - `tool_calls`: a list of {"id", "type": "function", "function": {"name",
 *   "arguments"}}. The arguments are a dict.
 * - `tool_call_id` and `name`
 *
 * Tools are a list of {"type": "function", "function": {"name", "description",
 * "parameters"}}.
 *
 * Data of an API that this form does not have is kept in the member `extra` of
 * the message, so that a round trip returns it. If a message is changed, its
 * kept data is ignored.
 */

/* Read a body in the format of an API, or a list of messages. Other members of
 * the body are ignored. The result shares strings with `json`. Without tools
 * `tools` is undefined. TNK_EINVAL: malformed, reported with the position.
 * TNK_EUNSUPPORTED: unknown kind of content, tool or role. Also TNK_ENOMEM and
 * TNK_ETOOBIG. */
int tnk__message_read(tnk__heap_t *heap, tnk_chat_shape_t shape,
                      tnk__value_t json, tnk__value_t *messages,
                      tnk__value_t *tools, tnk__why_t *why);
/* Write a body with messages and, unless they are undefined, tools.
 * TNK_EUNSUPPORTED: the format cannot express it. The other codes are the
 * same. */
int tnk__message_write(tnk__heap_t *heap, tnk_chat_shape_t shape,
                       tnk__value_t messages, tnk__value_t tools,
                       tnk__value_t *json, tnk__why_t *why);

#endif
