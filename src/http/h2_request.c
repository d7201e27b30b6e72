#include <string.h>

#include "base/alloc.h"
#include "http/exchange.h"
#include "http/h2.h"
#include "tnk/error.h"

/*
 * The head of an exchange is kept as HTTP/1.1 has it, because its version is
 * not known when it is made; here its lines become fields. We wrote it
 * ourselves, so it has the form that is expected.
 *
 * The body is taken piece by piece when nghttp2 has room for a frame, so it
 * never exists as a whole.
 */

typedef struct {
  const char *at;
  const char *end;
} text_t;

/* Fields of nearly every request. */
enum { FEW_FIELDS = 32 };

/* Up to the next `stop`, which is skipped, or all of it. */
static inline text_t cut(text_t *rest, const char *stop) {
  const size_t n = strlen(stop);
  text_t word = *rest;
  const char *at = rest->at;

  /* Searched for by its first byte: this is done for each line of each request.
   */
  while ((at = memchr(at, *stop, (size_t)(rest->end - at))) != NULL &&
         ((size_t)(rest->end - at) < n || memcmp(at, stop, n) != 0))
    at++;
  word.end = at != NULL ? at : rest->end;
  rest->at = at != NULL ? at + n : rest->end;
  return word;
}

static size_t length(text_t text) {
  return (size_t)(text.end - text.at);
}

static inline int is(text_t text, const char *name) {
  return length(text) == strlen(name) &&
         memcmp(text.at, name, length(text)) == 0;
}

static nghttp2_nv field(const char *name, size_t n_name, text_t value) {
  return (nghttp2_nv){(uint8_t *)(uintptr_t)name,
                      (uint8_t *)(uintptr_t)value.at, n_name, length(value),
                      NGHTTP2_NV_FLAG_NONE};
}

static text_t text_of(const char *text) {
  return (text_t){text, text + strlen(text)};
}

static size_t count_lines(text_t head) {
  size_t n = 0;

  for (const char *at = head.at;
       (at = memchr(at, '\n', (size_t)(head.end - at))) != NULL; at++)
    n++;
  return n;
}

/* Fields whose value is another one in each request, a bit for each; 0: others.
 * In HPACK's table it would be of no use, and push out what is: the credential
 * among others, which would then be sent as a whole every few dozen requests.
 */
static unsigned fleeting(text_t name) {
  return is(name, "X-Idempotency-Key")                        ? 1
         : is(name, "X-Tinker-Create-Promise-Roundtrip-Time") ? 2
         : is(name, "traceparent")                            ? 4
                                                              : 0;
}

/* The first one of each goes into the table, for its name. */
static uint8_t flags_of(tnk__h2_t *h2, text_t name) {
  const unsigned bit = fleeting(name);
  const int is_known = (h2->named & bit) != 0;

  h2->named |= bit;
  return is_known ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE;
}

/* The fields of a head; `fields` has room for a line each and for two more. */
static size_t read_head(nghttp2_nv *fields, text_t head, tnk__h2_t *h2) {
  const char *scheme = h2->conn->is_tls ? "https" : "http";
  size_t n = 4;
  text_t line;

  fields[0] = field(":method", 7, cut(&head, " "));
  fields[1] = field(":path", 5, cut(&head, " "));
  fields[2] = field(":scheme", 7, text_of(scheme));
  cut(&head, "\r\n");
  for (line = cut(&head, "\r\n"); length(line) > 0; line = cut(&head, "\r\n")) {
    text_t value = line;
    text_t name = cut(&value, ": ");
    /* The two that we write ourselves are written just so. */
    if (is(name, "Host"))
      fields[3] = field(":authority", 10, value);
    else if (!is(name, "Connection")) {
      fields[n] = field(name.at, length(name), value);
      fields[n++].flags = flags_of(h2, name);
    }
  }
  return n;
}

static size_t body_len(const tnk__exchange_t *ex) {
  return ex->body_len + (ex->feed != NULL ? ex->feed->len : 0);
}

/* What follows in the body at `n_body`, in one run. 0: nothing yet, or with
 * NULL no memory for it. */
static size_t next_run(tnk__h2_stream_t *stream, const uint8_t **data) {
  const tnk__exchange_t *ex = stream->ex;

  if (stream->n_body < ex->body_len) {
    *data = (const uint8_t *)ex->body + stream->n_body;
    return ex->body_len - stream->n_body;
  }
  if (stream->piece_len == 0) {
    stream->piece = ex->feed->piece(ex->feed, stream->n_body - ex->body_len,
                                    &stream->piece_len);
    if (stream->piece == NULL)
      stream->piece_len = 0;
  }
  *data = stream->piece;
  return stream->piece_len;
}

static void took(tnk__h2_stream_t *stream, size_t n) {
  if (stream->n_body >= stream->ex->body_len) {
    stream->piece += n;
    stream->piece_len -= n;
  }
  stream->n_body += n;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *out,
                         size_t room, uint32_t *flags,
                         nghttp2_data_source *source, void *user) {
  tnk__h2_stream_t *stream = source->ptr;
  size_t total;
  size_t n = 0;

  (void)session;
  (void)id;
  (void)user;
  /* The body is not ours any more; a reset will follow. */
  if (stream->ex == NULL || stream->is_over)
    return NGHTTP2_ERR_DEFERRED;
  total = body_len(stream->ex);
  while (n < room && stream->n_body < total) {
    const uint8_t *data;
    size_t run = next_run(stream, &data);
    if (run == 0 && data != NULL) {
      stream->is_waiting = n == 0;
      return n > 0 ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
    }
    if (run == 0) {
      tnk__h2_stream_over(stream, TNK_ENOMEM, NULL);
      return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    if (run > room - n)
      run = room - n;
    memcpy(out + n, data, run);
    took(stream, run);
    n += run;
  }
  stream->h2->n_idle_frames = 0;
  if (stream->n_body == total) {
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    stream->is_sent = 1;
    tnk__exchange_note_out(stream->ex, stream->h2->now_ms);
  }
  return (ssize_t)n;
}

int tnk__h2_request(tnk__h2_stream_t *stream) {
  tnk__h2_t *h2 = stream->h2;
  tnk__exchange_t *ex = stream->ex;
  const text_t head = {(const char *)ex->head.data,
                       (const char *)ex->head.data + ex->head.len};
  const size_t room = count_lines(head) + 2;
  nghttp2_nv few[FEW_FIELDS];
  nghttp2_nv *fields = room > FEW_FIELDS
                           ? tnk__alloc_array(h2->alloc, room, sizeof(*fields))
                           : few;
  nghttp2_data_provider body = {.source = {.ptr = stream},
                                .read_callback = read_body};
  const int has_body = body_len(ex) > 0;
  int32_t id;

  if (fields == NULL)
    return TNK_ENOMEM;
  id = nghttp2_submit_request(h2->session, NULL, fields,
                              read_head(fields, head, h2),
                              has_body ? &body : NULL, stream);
  if (fields != few)
    tnk__free(h2->alloc, fields);
  if (id < 0)
    return TNK_ENOMEM;
  stream->id = id;
  stream->is_sent = !has_body;
  tnk__list_remove(&stream->link);
  tnk__list_append(&h2->open, &stream->link);
  return TNK_OK;
}
