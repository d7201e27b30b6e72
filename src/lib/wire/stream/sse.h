/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_STREAM_SSE_H
#define TNK_LIB_WIRE_STREAM_SSE_H

#include "lib/base/buf.h"

/* Maximum size of an event in bytes. */
#define TNK__SSE_MAX_EVENT ((size_t)1024 * 1024)

/* One event. Strings end with a NUL, are unchanged (UTF-8 or not), and are
 * valid until the next call. */
typedef struct {
  /* Ends at the first NUL; "message" if the stream has none. */
  const char *type;
  const char *data; /* lines joined by '\n' */
  size_t n;         /* size of data, which may contain NULs */
  const char *id;   /* latest id of the stream; "": none */
} tnk__sse_event_t;

/*
 * Reads an event stream (text/event-stream of the WHATWG's HTML) from pieces of
 * any size.
 *
 * - Lines end with CR, LF or both. A byte order mark is allowed at the start.
 * - Comments of any length are skipped. Unknown fields are skipped up to the
 *   size of an event.
 * - A blank line completes an event. Without data it is not an event.
 * - The id remains until another one is sent. It takes effect with the blank
 *   line after it.
 */
typedef struct {
  size_t max;      /* maximum size of an event in bytes */
  tnk__buf_t line; /* beginning of an incomplete line */
  tnk__buf_t data;
  tnk__buf_t type;
  tnk__buf_t new_id; /* id in the lines since the last blank one */
  tnk__buf_t id;
  uint64_t retry_ms; /* delay before reconnecting */
  uint8_t has_retry; /* retry_ms was sent */
  uint8_t has_new_id;
  uint8_t is_given;   /* data and type belong to the previous event */
  uint8_t was_cr;     /* a following LF belongs to the same line end */
  uint8_t is_comment; /* the incomplete line is a comment */
  uint8_t n_bom;      /* bytes of the mark seen so far; 4: past it */
  int err;            /* first failure; never cleared */
} tnk__sse_t;

/* Initialize. `max` limits an event. Nothing is allocated. */
void tnk__sse_init(tnk__sse_t *sse, const tnk_allocator_t *alloc, size_t max);
void tnk__sse_deinit(tnk__sse_t *sse);
/* Continue at *at, which advances to `end` or past the event found. Returns 1
 * if *event is set, 0 if everything was read, TNK_ETOOBIG for an event over
 * `max`, or TNK_ENOMEM. */
int tnk__sse_next(tnk__sse_t *sse, const uint8_t **at, const uint8_t *end,
                  tnk__sse_event_t *event);
/* Note the end of the stream. Returns TNK_OK, or TNK_ECONN inside an incomplete
 * event, which is discarded. */
int tnk__sse_end(const tnk__sse_t *sse);

#endif
