/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_IO_HTTP_H2_H
#define TNK_LIB_IO_HTTP_H2_H

#include <nghttp2/nghttp2.h>

#include "lib/io/http/conn.h"
#include "lib/wire/format/h2_read.h"

/*
 * The internal interface of an HTTP/2 connection. conn_h2.c manages its states.
 * h2_session.c creates nghttp2's session, handles its callbacks, and manages
 * the streams. h2_request.c submits requests. Only conn_h2.c reports to the
 * pool, and never inside a callback of nghttp2.
 */

enum { TNK__H2_SIZES = 64 };

/* The allocator of nghttp2 on one connection. Freed memory is wiped, because it
 * holds credentials. */
typedef struct {
  const tnk_allocator_t *alloc;
  /* Freed blocks, kept for the next allocation of their size. */
  struct tnk__h2_block *kept[TNK__H2_SIZES];
  size_t n_kept; /* bytes in kept blocks */
  /* an allocation failed; nghttp2 does not always report that */
  int was_refused;
} tnk__h2_memory_t;

/* Streams of one connection, even if the peer allows more. */
#define TNK__H2_MAX_STREAMS 100

/*
 * One stream. It is in one of four lists. FRESH: not given to nghttp2 yet.
 * OPEN. OVER: its exchange is to be reported. ORPHAN: no exchange waits for it
 * any more, and the server has not ended it.
 */
typedef struct tnk__h2_stream {
  tnk__list_t link; /* in the list of its state */
  struct tnk__h2 *h2;
  tnk__exchange_t *ex; /* NULL: an orphan */
  tnk__h2_reader_t *reader;
  int32_t id; /* 0: FRESH */
  /* Offset on the connection; UINT64_MAX: not written yet. */
  uint64_t begins_at;
  size_t n_body;        /* bytes of the body that nghttp2 has taken */
  const uint8_t *piece; /* rest of the latest piece of the feed */
  size_t piece_len;
  size_t n_held;       /* bytes of the response that keep the window closed */
  const char *why;     /* static string that explains `err`, or NULL */
  int err;             /* how it ended; read when OVER */
  uint8_t is_over;     /* `err` is set */
  uint8_t is_waiting;  /* the feed has no bytes yet */
  uint8_t is_sent;     /* the whole request is with nghttp2 */
  uint8_t is_answered; /* END_STREAM has arrived */
  uint8_t is_closed;   /* nghttp2 has forgotten it */
  uint8_t is_unseen;   /* the server certainly has not acted on it */
  uint8_t was_reset;   /* by the server */
  uint8_t needs_reset; /* an orphan that may still receive frames */
} tnk__h2_stream_t;

typedef struct tnk__h2 {
  tnk__conn_t *conn;
  const tnk_allocator_t *alloc;
  nghttp2_session *session;
  tnk__list_t fresh;
  tnk__list_t open;
  tnk__list_t over;
  tnk__list_t orphans; /* orphans that need a reset come first */
  size_t n_streams;    /* in all four lists, without closed ones */
  size_t n_open;       /* streams that nghttp2 knows */
  uint32_t peer_max;   /* limit of streams in the latest SETTINGS */
  uint32_t own_max;    /* own limit; lowered by refusals, raised by responses */
  size_t n_told_room;  /* the capacity that the pool knows of */
  int cause;           /* libuv's code, when the stream has ended */
  int has_settings;    /* SETTINGS of the server have arrived */
  int is_draining;     /* takes no further exchange */
  int wants_http1;     /* the server has asked for HTTP/1.1 */
  tnk__h2_memory_t memory;
  int broken;      /* code of nghttp2, once the session cannot be used */
  uint32_t goaway; /* the server's reason, or NGHTTP2_NO_ERROR */
  const char *why; /* static string about the server's fault, or NULL */
  tnk__buf_t out;  /* bytes that are being written */
  size_t n_last;   /* size of the previous write */
  uint64_t n_out;  /* bytes given to the stream, including `out` */
  int is_writing;
  int write_failed;
  tnk__deferred_t flush;
  /* Number of frames since the last useful one. It bounds the work that a peer
   * can cause. */
  size_t n_idle_frames;
  uint64_t now_ms;    /* start of reading or writing; nghttp2 uses it */
  uint64_t alive_ms;  /* when the server last sent or took bytes */
  tnk__timer_t pulse; /* detects silence and refills the budget of resets */
  int is_pinging;
  int is_doubted; /* the time for a response to the PING has expired */
  /* Start of the wait for the PING's response; 0: not yet. */
  uint64_t pinged_ms;
  uint64_t resets_ms; /* when n_resets was counted */
  double n_resets;    /* number of resets that may be sent */
  /* Bits of fields in h2_request.c: the name is in HPACK's table. */
  unsigned named;
} tnk__h2_t;

/* h2_session.c */

/* Make a FRESH stream for an exchange. NULL without memory. */
tnk__h2_stream_t *tnk__h2_stream_new(tnk__h2_t *h2, tnk__exchange_t *ex);
/* Forget a stream that nghttp2 does not know, or has closed. */
void tnk__h2_stream_free(tnk__h2_stream_t *stream);
/* Record how it ended, unless that was recorded before. */
void tnk__h2_stream_over(tnk__h2_stream_t *stream, int err, const char *why);
/* Keep it without its exchange. */
void tnk__h2_stream_leave(tnk__h2_stream_t *stream);

/* Create the session and queue our SETTINGS. Returns TNK_OK or TNK_ENOMEM. */
int tnk__h2_session_new(tnk__h2_t *h2);
void tnk__h2_session_free(tnk__h2_t *h2);

/* h2_request.c */

/* Submit the request of a FRESH stream to nghttp2. The stream is OPEN after
 * that. The fields point into the head of the exchange, so nghttp2 must write
 * them before anything else happens. Returns TNK_OK or TNK_ENOMEM. */
int tnk__h2_request(tnk__h2_stream_t *stream);

/* h2_memory.c */

void tnk__h2_memory_init(tnk__h2_memory_t *memory,
                         const tnk_allocator_t *alloc);
/* Free the kept blocks. nghttp2 must have freed everything. */
void tnk__h2_memory_deinit(tnk__h2_memory_t *memory);
/* The allocation functions for nghttp2. `memory` must not move. */
nghttp2_mem tnk__h2_memory_for_nghttp2(tnk__h2_memory_t *memory);

#endif
