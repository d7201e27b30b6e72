/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_IO_HTTP_EXCHANGE_H
#define TNK_LIB_IO_HTTP_EXCHANGE_H

#include "lib/io/http/client.h"
#include "lib/wire/format/h2_read.h"

/* The internal interface of exchanges, for connections, pools and the
 * client. */

/* A request of this size may take long on a slow link. */
#define TNK__MIN_UPLOAD ((size_t)64 * 1024)

/* Copy the request and encode its head. Returns TNK_OK, TNK_ENOMEM, TNK_EINVAL
 * or TNK_ETOOBIG. After an error the exchange is unchanged. */
int tnk__exchange_load(tnk__exchange_t *ex, tnk__http_t *http,
                       const tnk__http_request_t *request);
/* Allocate a response. Returns its reader, which has the same lifetime, or NULL
 * if out of memory. */
tnk__http_reader_t *tnk__exchange_begin_answer(tnk__exchange_t *ex);
/* The same for a response over HTTP/2. */
tnk__h2_reader_t *tnk__exchange_begin_h2(tnk__exchange_t *ex);
/* Free a response that is not reported. */
void tnk__exchange_forget_answer(tnk__exchange_t *ex);
/* The request was handed to the socket: call on_sent, unless it was called
 * before. */
void tnk__exchange_note_sent(tnk__exchange_t *ex);
/* Note that more of the response has arrived. For a streamed response, on_body
 * may become due. If is_paused is set, reading must stop until the body is
 * taken. */
void tnk__exchange_note_body(tnk__exchange_t *ex, uint64_t now_ms);
/* Note that the peer has taken a part of the request or sent a part of the
 * response. This extends the time of exchanges that wait for a connection to
 * the same origin. */
void tnk__exchange_note_moved(tnk__exchange_t *ex, uint64_t now_ms);
/* Note that the whole request is sent. From now on it waits for the
 * response. */
void tnk__exchange_note_out(tnk__exchange_t *ex, uint64_t now_ms);
/* The length of its request. */
uint64_t tnk__exchange_size(const tnk__exchange_t *ex);
/* Give back the lane's slot, if it has one, and schedule on_done. The exchange
 * must have left its pool. */
void tnk__exchange_settle(tnk__exchange_t *ex, int err, int cause);
/* Write why it ends when its timeout has expired. */
void tnk__exchange_describe_end(const tnk__exchange_t *ex, tnk__text_t *out);
/* Keep a description for the result. NULL does nothing. */
void tnk__exchange_explain(tnk__exchange_t *ex, const char *text);
/* Make it IDLE without calling anything. It must have left its pool. */
void tnk__exchange_drop(tnk__exchange_t *ex);
/* Call on_body or on_done, whichever is due. The exchange must be in no list.
 * It is not touched after on_done. */
void tnk__exchange_deliver(tnk__exchange_t *ex);

#endif
