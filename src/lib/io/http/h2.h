#ifndef TNK_LIB_IO_HTTP_H2_H
#define TNK_LIB_IO_HTTP_H2_H

#include <nghttp2/nghttp2.h>

#include "lib/io/http/conn.h"
#include "lib/io/http/h2_memory.h"
#include "lib/wire/format/h2_read.h"

/*
 * The inside of a connection of HTTP/2. conn_h2.c has its life; h2_session.c
 * makes nghttp2's session and hears what it reads, h2_request.c gives it what
 * is to be written, h2_stream.c has the streams. Of these only conn_h2.c
 * reports to the pool, and never from inside of nghttp2.
 */

/* Streams of one connection, whatever more the peer allows. */
#define TNK__H2_MAX_STREAMS 100

/*
 * One stream. Where it is: FRESH, not given to nghttp2 yet; OPEN; OVER, when
 * its exchange is to be told; ORPHAN, when no exchange waits for it any more
 * and the server has not ended it.
 */
typedef struct tnk__h2_stream {
  tnk__list_t link; /* in the list of its place */
  struct tnk__h2 *h2;
  tnk__exchange_t *ex; /* NULL: an orphan */
  tnk__h2_reader_t *reader;
  int32_t id;         /* 0: FRESH */
  uint64_t begins_at; /* byte of the connection; UINT64_MAX: not written yet */
  size_t n_body;      /* bytes of the body that nghttp2 has taken */
  const uint8_t *piece; /* of the feed: what is left of the latest one */
  size_t piece_len;
  size_t n_held;       /* bytes of the answer that keep the window shut */
  const char *why;     /* static text beside `err`, or NULL */
  int err;             /* how it ended; read when OVER */
  uint8_t is_over;     /* `err` is set */
  uint8_t is_waiting;  /* for the feed, which has nothing yet */
  uint8_t is_sent;     /* the whole request is with nghttp2 */
  uint8_t is_answered; /* with END_STREAM */
  uint8_t is_closed;   /* nghttp2 has forgotten it */
  uint8_t is_unseen;   /* the server certainly has not acted on it */
  uint8_t was_reset;   /* by the server */
  uint8_t needs_reset; /* an orphan of which something may still come */
} tnk__h2_stream_t;

typedef struct tnk__h2 {
  tnk__conn_t *conn;
  const tnk_allocator_t *alloc;
  nghttp2_session *session;
  tnk__list_t fresh;
  tnk__list_t open;
  tnk__list_t over;
  tnk__list_t orphans; /* those that need a reset first */
  size_t n_streams;    /* in all four, but for those that are closed */
  size_t n_open;       /* of them, those that nghttp2 has */
  uint32_t peer_max;   /* streams, as the latest SETTINGS say */
  uint32_t own_max;    /* lowered when the server refuses, raised by answers */
  size_t n_told_room;  /* what the pool knows of */
  int cause;           /* libuv's code, when the stream has ended */
  int has_settings;    /* of the server */
  int is_draining;     /* takes no further exchange */
  int wants_http1;     /* the server has asked for HTTP/1.1 */
  tnk__h2_memory_t memory;
  int broken;      /* nghttp2's code, once the session is of no use */
  uint32_t goaway; /* the server's reason, or NGHTTP2_NO_ERROR */
  const char *why; /* static text on what the server has done, or NULL */
  tnk__buf_t out;  /* being written */
  size_t n_last;   /* bytes of it the last time */
  uint64_t n_out;  /* bytes given to the stream, with those of `out` */
  int is_writing;
  int write_failed;
  tnk__deferred_t flush;
  /* Frames since something was of use: a peer must not keep us busy. */
  size_t n_idle_frames;
  uint64_t
      now_ms; /* when reading or writing began, as it asks for every frame */
  uint64_t
      alive_ms; /* when the server was last heard of, or took what waited */
  tnk__timer_t pulse; /* looks for silence, and gives resets back */
  int is_pinging;
  int is_doubted;     /* the time for an answer to it is over */
  uint64_t pinged_ms; /* from when its answer is waited for; 0: not yet */
  uint64_t resets_ms; /* when n_resets was counted */
  double n_resets;    /* that may be sent */
  unsigned named;     /* fields of h2_request.c whose names HPACK's table has */
} tnk__h2_t;

/* h2_stream.c */

/* Make a FRESH stream for an exchange. NULL without memory. */
tnk__h2_stream_t *tnk__h2_stream_new(tnk__h2_t *h2, tnk__exchange_t *ex);
/* Forget a stream that nghttp2 does not know, or has closed. */
void tnk__h2_stream_free(tnk__h2_stream_t *stream);
/* Say how it ended, unless that has been said. */
void tnk__h2_stream_over(tnk__h2_stream_t *stream, int err, const char *why);
/* Let it go on without its exchange. */
void tnk__h2_stream_leave(tnk__h2_stream_t *stream);
/* What a code of RST_STREAM or GOAWAY means, in words. */
const char *tnk__h2_words(uint32_t code);

/* h2_session.c */

/* Make the session, with our settings to be sent. TNK_OK or TNK_ENOMEM. */
int tnk__h2_session_new(tnk__h2_t *h2);
void tnk__h2_session_free(tnk__h2_t *h2);

/* h2_request.c */

/* Give nghttp2 the request of a FRESH stream, which is OPEN after that. Its
 * fields point into the head of the exchange, so nghttp2 must write them before
 * anything else happens. TNK_OK or TNK_ENOMEM. */
int tnk__h2_request(tnk__h2_stream_t *stream);

#endif
