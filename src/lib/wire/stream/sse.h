#ifndef TNK_LIB_WIRE_STREAM_SSE_H
#define TNK_LIB_WIRE_STREAM_SSE_H

#include "lib/base/buf.h"

/* What an event may hold, in bytes. */
#define TNK__SSE_MAX_EVENT ((size_t)1024 * 1024)

/* One event. Texts end with a NUL, are as they came, UTF-8 or not, and live
 * until the next call. */
typedef struct {
  const char *type; /* cut at a NUL; "message" where the stream names none */
  const char *data; /* its lines, with a '\n' between them */
  size_t n;         /* bytes of it, among which a NUL may be */
  const char *id;   /* the last one that the stream has given; "": none */
} tnk__sse_event_t;

/*
 * Reads a stream of events (text/event-stream of the WHATWG's HTML), in pieces
 * cut anywhere. Lines end with CR, LF or both; a byte order mark counts at the
 * start alone; comments and unknown fields are skipped, at any length and
 * length of an event respectively; an event is there with its blank line, and
 * is none without data. The id stays until another one is given, and counts
 * once the lines that it came with are whole.
 */
typedef struct {
  size_t max;      /* bytes of an event */
  tnk__buf_t line; /* what has come of a line that is cut */
  tnk__buf_t data;
  tnk__buf_t type;
  tnk__buf_t new_id; /* of the lines since the last blank one */
  tnk__buf_t id;
  uint64_t retry_ms; /* how long to wait before asking again */
  uint8_t has_retry; /* the stream has said that */
  uint8_t has_new_id;
  uint8_t is_given;   /* data and type are those of the last event */
  uint8_t was_cr;     /* a LF that follows is of the same end */
  uint8_t is_comment; /* so is the line that is cut */
  uint8_t n_bom;      /* bytes of the mark seen; 4: past it */
  int err;            /* the first failure; sticky */
} tnk__sse_t;

/* Begin. `max` bounds an event; nothing is allocated. */
void tnk__sse_init(tnk__sse_t *sse, const tnk_allocator_t *alloc, size_t max);
void tnk__sse_deinit(tnk__sse_t *sse);
/* Read on from *at, which moves to `end`, or behind the event that was found.
 * 1: *event is there. 0: all is read. Or TNK_ETOOBIG (an event beyond `max`),
 * TNK_ENOMEM. */
int tnk__sse_next(tnk__sse_t *sse, const uint8_t **at, const uint8_t *end,
                  tnk__sse_event_t *event);
/* The stream has ended. TNK_OK; or TNK_ECONN: within an event, which is not
 * one. */
int tnk__sse_end(const tnk__sse_t *sse);

#endif
