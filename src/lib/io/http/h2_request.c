/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/io/http/exchange.h"
#include "lib/io/http/h2.h"
#include "tnk/error.h"

/*
 * The head of an exchange is stored in the format of HTTP/1.1, because its
 * version is not known when it is encoded. This file converts its lines to
 * fields. The client wrote the head itself, so its format can be relied on.
 *
 * nghttp2 takes the body piece by piece when it can send a frame, so the body
 * never exists as a whole.
 */

/* Number of fields that suffices for nearly every request. */
enum { FEW_FIELDS = 32 };

static nghttp2_nv field(const char *name, size_t n_name, const char *value,
                        size_t n_value) {
  /* No copy is needed: nghttp2 writes the fields before they are freed. */
  return (nghttp2_nv){
      (uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, n_name, n_value,
      NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

static inline int is(const char *text, size_t n, const char *name) {
  return n == strlen(name) && memcmp(text, name, n) == 0;
}

/* Fields whose value differs in each request have a bit each; other fields have
 * 0. Such values would be useless in HPACK's table and would evict useful ones,
 * for example the credential. It would then be sent in full every few dozen
 * requests. */
static unsigned fleeting(const char *name, size_t n) {
  return is(name, n, "x-idempotency-key")                        ? 1
         : is(name, n, "x-tinker-create-promise-roundtrip-time") ? 2
         : is(name, n, "traceparent")                            ? 4
                                                                 : 0;
}

/* The first occurrence of each enters the table, for its name. */
static uint8_t flags_of(tnk__h2_t *h2, const char *name, size_t n) {
  const unsigned bit = fleeting(name, n);
  const int is_known = (h2->named & bit) != 0;

  h2->named |= bit;
  return is_known ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE;
}

/* Convert eight ASCII letters of a name to lower case. No sum overflows into
 * the next byte. */
static void lower_eight(char *at) {
  const uint64_t ones = 0x0101010101010101u;
  uint64_t x;

  memcpy(&x, at, sizeof(x));
  x |= ((x + ones * (0x80 - 'A')) & ~(x + ones * (0x7f - 'Z')) & ones * 0x80) >>
       2;
  memcpy(at, &x, sizeof(x));
}

/* Convert a name to lower case, as HTTP/2 requires. This is done in place;
 * HTTP/1.1 ignores case, so the head can still be sent that way. */
static void lower_name(char *name, size_t n) {
  size_t i = 0;

  for (; n >= 8 && i + 8 < n; i += 8)
    lower_eight(name + i);
  if (n >= 8)
    lower_eight(name + n - 8);
  for (; n < 8 && i < n; i++)
    if (name[i] >= 'A' && name[i] <= 'Z')
      name[i] = (char)(name[i] - 'A' + 'a');
}

/* Read the request line. Returns the start of the next line. */
static char *read_line(nghttp2_nv *fields, char *at, const char *end) {
  char *blank = memchr(at, ' ', (size_t)(end - at));
  char *target = blank + 1;

  fields[0] = field(":method", 7, at, (size_t)(blank - at));
  blank = memchr(target, ' ', (size_t)(end - target));
  fields[1] = field(":path", 5, target, (size_t)(blank - target));
  return (char *)memchr(blank, '\n', (size_t)(end - blank)) + 1;
}

/* Read the fields of a head. Returns their number. Only the first `room` fields
 * are written; `room` is more than four. */
static size_t read_head(nghttp2_nv *fields, size_t room, tnk__buf_t *head,
                        tnk__h2_t *h2) {
  char *at = (char *)head->data;
  const char *end = at + head->len;
  size_t n = 4;

  fields[2] = h2->conn->is_tls ? field(":scheme", 7, "https", 5)
                               : field(":scheme", 7, "http", 4);
  at = read_line(fields, at, end);
  while (*at != '\r') {
    const size_t n_name =
        (size_t)((char *)memchr(at, ':', (size_t)(end - at)) - at);
    char *value = at + n_name + 2;
    char *stop = memchr(value, '\r', (size_t)(end - value));
    const size_t n_value = (size_t)(stop - value);

    lower_name(at, n_name);
    if (is(at, n_name, "host"))
      fields[3] = field(":authority", 10, value, n_value);
    else if (!is(at, n_name, "connection") && n++ < room) {
      fields[n - 1] = field(at, n_name, value, n_value);
      fields[n - 1].flags |= flags_of(h2, at, n_name);
    }
    at = stop + 2;
  }
  return n;
}

static size_t body_len(const tnk__exchange_t *ex) {
  return ex->body_len + (ex->feed != NULL ? ex->feed->len : 0);
}

/* The next contiguous bytes of the body at `n_body`. 0: none yet, or out of
 * memory if *data is NULL. */
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
  /* The body was returned to its owner; a reset will follow. */
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

static int32_t submit(tnk__h2_stream_t *stream, const nghttp2_nv *fields,
                      size_t n) {
  const nghttp2_data_provider body = {.source = {.ptr = stream},
                                      .read_callback = read_body};

  return nghttp2_submit_request(stream->h2->session, NULL, fields, n,
                                body_len(stream->ex) > 0 ? &body : NULL,
                                stream);
}

int tnk__h2_request(tnk__h2_stream_t *stream) {
  tnk__h2_t *h2 = stream->h2;
  tnk__exchange_t *ex = stream->ex;
  nghttp2_nv few[FEW_FIELDS];
  nghttp2_nv *fields = few;
  const size_t n = read_head(few, FEW_FIELDS, &ex->head, h2);
  int32_t id;

  if (n > FEW_FIELDS) {
    fields = tnk__alloc_array(h2->alloc, n, sizeof(*fields));
    if (fields == NULL)
      return TNK_ENOMEM;
    (void)read_head(fields, n, &ex->head, h2);
  }
  id = submit(stream, fields, n);
  if (fields != few)
    tnk__free(h2->alloc, fields);
  if (id < 0)
    return TNK_ENOMEM;
  stream->id = id;
  h2->n_open++;
  stream->is_sent = body_len(ex) == 0;
  tnk__list_remove(&stream->link);
  tnk__list_append(&h2->open, &stream->link);
  return TNK_OK;
}
