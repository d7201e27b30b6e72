#ifndef TNK_CHAT_MESSAGE_MESSAGE_H
#define TNK_CHAT_MESSAGE_MESSAGE_H

#include "tnk/chat.h"
#include "chat/value/value.h"
#include "chat/value/why.h"

/*
 * Conversations and tools, from and to the JSON of APIs. Inside they have the
 * form that templates want: a list of dicts with `role`; `content`, a text,
 * which is empty beside calls alone, or a list of {"type": "text", "text"} and
 * {"type": "image", "image"}, which is an address or a data: URL;
 * `reasoning_content`; `tool_calls`, a list of {"id", "type": "function",
 * "function": {"name", "arguments"}}, whose arguments are a dict;
 * `tool_call_id`; `name`. Tools are a list of
 * {"type": "function", "function": {"name", "description", "parameters"}}.
 *
 * What a shape says and this form does not is in the member `extra` of the
 * message: there and back gives what came. Once a message is changed, what was
 * kept of it counts no more.
 */

/* Read a body of a shape, of which other members than those with messages and
 * tools are passed over; or a list, which is of messages. What comes shares
 * texts with `json`. `tools` is undefined where there are none.
 * TNK_EINVAL: no message, with its place; TNK_EUNSUPPORTED: a kind of content,
 * tool or role that is not known; TNK_ENOMEM; TNK_ETOOBIG. */
int tnk__message_read(tnk__heap_t *heap, tnk_chat_shape_t shape,
                      tnk__value_t json, tnk__value_t *messages,
                      tnk__value_t *tools, tnk__why_t *why);
/* Write a body with messages and, unless they are undefined, tools.
 * TNK_EUNSUPPORTED: the shape cannot say it; the rest likewise. */
int tnk__message_write(tnk__heap_t *heap, tnk_chat_shape_t shape,
                       tnk__value_t messages, tnk__value_t tools,
                       tnk__value_t *json, tnk__why_t *why);

#endif
