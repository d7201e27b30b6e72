#ifndef TNK_LIB_IO_HTTP_EXCHANGE_H
#define TNK_LIB_IO_HTTP_EXCHANGE_H

#include "lib/io/http/client.h"
#include "lib/wire/format/h2_read.h"

/* The inside of exchanges: what connections, pools and the client share. */

typedef enum {
  TNK__EXCHANGE_IDLE = 0,
  TNK__EXCHANGE_QUEUED,
  TNK__EXCHANGE_WAITING,
  TNK__EXCHANGE_ACTIVE,
  TNK__EXCHANGE_DONE
} tnk__exchange_state_t;

/* A request of this size takes its time on a slow way. */
#define TNK__MIN_UPLOAD ((size_t)64 * 1024)

/* Copy the request and encode its head. TNK_OK, TNK_ENOMEM, TNK_EINVAL or
 * TNK_ETOOBIG, and then the exchange is as before. */
int tnk__exchange_load(tnk__exchange_t *ex, tnk__http_t *http,
                       const tnk__http_request_t *request);
/* Allocate an answer. Returns what reads it, which lives as long as it; NULL
 * without memory. */
tnk__http_reader_t *tnk__exchange_begin_answer(tnk__exchange_t *ex);
/* The same for one that comes over HTTP/2. */
tnk__h2_reader_t *tnk__exchange_begin_h2(tnk__exchange_t *ex);
/* Free an answer that does not count. */
void tnk__exchange_forget_answer(tnk__exchange_t *ex);
/* It is with the socket: call on_sent, the first time. */
void tnk__exchange_note_sent(tnk__exchange_t *ex);
/* Note that more of the answer has come. Of one that is streamed, on_body may
 * be due; with is_paused set, reading must stop until the body is taken. */
void tnk__exchange_note_body(tnk__exchange_t *ex, uint64_t now_ms);
/* Note that the peer has taken some of the request or sent some of the
 * response. What waits for a connection to this origin may wait on. */
void tnk__exchange_note_moved(tnk__exchange_t *ex, uint64_t now_ms);
/* Begin to wait for a connection, with all of its time. */
void tnk__exchange_wait(tnk__exchange_t *ex);
/* Note that the request is out: from now on the answer is waited for. */
void tnk__exchange_note_out(tnk__exchange_t *ex, uint64_t now_ms);
/* Begin the timeout, anew, of an exchange that has a slot of its lane; to look
 * after it in `after_ms` at the latest. */
void tnk__exchange_arm(tnk__exchange_t *ex, uint64_t after_ms);
/* Look after it again in `after_ms`. */
void tnk__exchange_look_in(tnk__exchange_t *ex, uint64_t after_ms);
/* The length of its request. */
uint64_t tnk__exchange_size(const tnk__exchange_t *ex);
/* Give the lane's slot back, if it has one, and let on_done follow. It has left
 * its pool already. */
void tnk__exchange_settle(tnk__exchange_t *ex, int err, int cause);
/* Write why it ends when its time is over. */
void tnk__exchange_describe_end(const tnk__exchange_t *ex, tnk__text_t *out);
/* Keep a sentence for the result; NULL does nothing. */
void tnk__exchange_explain(tnk__exchange_t *ex, const char *text);
/* Make it IDLE without calling anything; it has left its pool already. */
void tnk__exchange_drop(tnk__exchange_t *ex);
/* Call what is due: on_body, or on_done as the last touch. It is in no
 * list. */
void tnk__exchange_deliver(tnk__exchange_t *ex);

#endif
