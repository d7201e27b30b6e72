#ifndef TNK_LIB_IO_HTTP_CLIENT_H
#define TNK_LIB_IO_HTTP_CLIENT_H

#include "lib/base/buf.h"
#include "lib/base/text.h"
#include "lib/io/loop/context.h"
#include "lib/io/net/stream.h"

struct tnk__conn;
struct tnk__h2_stream;
struct tnk__pool;
struct tnk__net;
struct tnk__proxies;
struct tnk__response;

/*
 * Kinds of requests. Each has a queue and an allowance of its own, so that a
 * thousand long polls cannot keep a heartbeat or a submission from being sent.
 */
typedef enum {
  TNK__LANE_CONTROL = 0, /* heartbeat, configuration, session */
  TNK__LANE_TRAIN,       /* submissions of training operations */
  TNK__LANE_SAMPLE,      /* submissions of samples */
  TNK__LANE_POLL,        /* long polls for samples, of which there are many */
  TNK__LANE_TRAIN_POLL,  /* other long polls, which wait for none of those */
  TNK__N_LANES
} tnk__lane_t;

/* Which version of HTTP is spoken. */
typedef enum {
  /* With TLS what the server prefers of the two, else HTTP/1.1. */
  TNK__HTTP_AUTO = 0,
  TNK__HTTP_1_1,
  TNK__HTTP_2,                /* with TLS no other; else HTTP/1.1 */
  TNK__HTTP_2_PRIOR_KNOWLEDGE /* without TLS as well, without asking */
} tnk__http_version_t;

/* Zero means the default. */
typedef struct {
  const char *ca_file; /* NULL: SSL_CERT_FILE, then the system's */
  /* Ours, for servers that ask; both or none. */
  const char *cert_file;
  const char *key_file;
  int load_trust; /* 1: read the certificates now, not lazily */
  char *why;      /* NULL, or where it is written why they cannot be used */
  size_t why_size;
  /* NULL: none. Stays until tnk__http_close(). */
  const struct tnk__proxies *proxies;
  uint64_t connect_timeout_ms;          /* all until it is open; 0: 5,000 */
  uint64_t idle_timeout_ms;             /* of an unused connection; 0: 60,000 */
  uint32_t max_in_flight[TNK__N_LANES]; /* 0: 4, 16, 64 and up to 1,024 in place
                                           of polls, 2,048, 256 */
  tnk__http_version_t version;          /* HTTP/1.1 if nghttp2 is missing */
  uint32_t max_http2_connections;       /* to one origin; 0: 256 */
} tnk__http_options_t;

typedef struct {
  tnk__list_t queue; /* exchanges without a slot, in order of starting */
  size_t wished;
  size_t few;         /* those that may each have a connection */
  size_t max;         /* one of the two: see bound.h */
  size_t allowed;     /* of them now: fewer after a time-out of an upload */
  size_t n_in_flight; /* exchanges with a slot */
} tnk__http_lane_t;

struct tnk__exchange;

/*
 * The HTTP client of one service, embedded in it. Open, then closing for ever:
 * tnk__exchange_start() returns TNK_ECLOSED until the context is gone.
 */
typedef struct tnk__http {
  tnk__context_t *context;
  struct tnk__net *net;
  const struct tnk__proxies *proxies; /* or NULL */
  tnk__list_t pools; /* one an origin and version that is in use */
  tnk__list_t known; /* what origins speak, latest first */
  tnk__http_version_t version;
  size_t max_http2_connections;
  tnk__http_lane_t lanes[TNK__N_LANES];
  tnk__list_t news;    /* exchanges whose on_body is due */
  tnk__list_t done;    /* exchanges whose on_done is due */
  tnk__deferred_t due; /* calls the callers, and gives slots */
  void (*on_timeout)(tnk__timer_t *self); /* of an exchange */
  /* The owner's: an exchange that has `tells_wait` has to wait, as there is
   * neither a place in its lane nor a connection for it at once. Called once at
   * most, and must not call into this folder. */
  void (*on_wait)(struct tnk__exchange *ex);
  uint64_t connect_timeout_ms;
  uint64_t idle_timeout_ms;
  uint64_t upload_ms; /* when an upload of TNK__LANE_TRAIN last moved */
  size_t n_connections;
  size_t max_connections;   /* the most there ever were */
  uint64_t last_connection; /* number of the latest */
  size_t enough;            /* connections; over it, unused ones are closed */
  /* The process has run out of descriptors: no connection is opened until the
   * turn of the loop after the next exchange's end. */
  int is_starved;
  int shares_polls;   /* connections for polls are shared */
  int has_told_bound; /* of polls */
  int shares_places; /* more samples than their lane has go in those of polls */
  int has_warned;    /* of that */
  int closing;
} tnk__http_t;

/*
 * A body that is made while it is sent, so that it never exists as a whole.
 * Embedded in its owner, who says how long it is; every sending asks for the
 * same bytes from the start again.
 */
typedef struct tnk__feed {
  size_t len;
  /* The bytes from `at` < len on, as many as *n becomes. They stay until the
   * next call, or until the feed is given back. *n == 0 with any pointer: they
   * are not here yet, and tnk__exchange_go_on() will tell when they are. NULL:
   * there is no memory for them. Must not call into this folder. */
  const uint8_t *(*piece)(struct tnk__feed *self, size_t at, size_t *n);
} tnk__feed_t;

/* What is asked. All of it is read or copied by tnk__exchange_start(), except
 * the body. */
typedef struct {
  tnk__origin_t origin;
  const char *method;
  const char *target; /* path and query, encoded */
  /* Host, Content-Length, Accept-Encoding and Connection are ours. */
  const tnk_pair_t *headers;
  size_t n_headers;
  const tnk_pair_t *more_headers; /* a second list, written after the first */
  size_t n_more_headers;
  /* Headers as they are sent, each with the end of its line, or NULL: those
   * that the caller has made itself, as they are not checked. */
  const char *lines;
  size_t lines_len;
  /* The body is these bytes, then those of the feed, which may be NULL. Both
   * are borrowed until on_done is called or tnk__exchange_cancel() has
   * returned. A method with a body but zero bytes is sent with
   * Content-Length: 0, except GET, HEAD and DELETE. */
  const void *body;
  size_t body_len;
  tnk__feed_t *feed;
  tnk__lane_t lane;
  /* The longest time in which nothing moves; 0: none. It begins with the slot
   * in the lane and with the connection, and anew while the request goes out
   * (found out four times in it), with its last byte, with the answer's head,
   * and with each part of the answer's body. While the exchange waits for a
   * connection, it also begins anew when another exchange with the same origin
   * moves. What moves, but by less than TNK__MIN_BYTES_PER_S over TNK__SLOW_MS
   * or more, is too slow and ends too (lib/policy/bounds.h). */
  uint64_t timeout_ms;
  size_t max_body; /* of the answer, decoded; 0: TNK__MAX_RESPONSE_BODY */
  /* The answer's body is taken out with tnk__exchange_take_body() as it comes,
   * may be of any length and is not compressed. When nobody takes it, the
   * server is made to wait. The time of waiting for the owner does not count
   * for timeout_ms, and no rate is asked for. */
  int is_streamed;
  /* The server recognizes a repeat: when a kept connection turns out to be
   * closed before any byte of an answer, send once more on a fresh one. */
  int replayable;
  /* Send it on a new connection, if there may be one. */
  int wants_fresh;
  /* Its answer takes its time, and costs: that it is silent is no sign that
   * nobody serves it. */
  int is_long;
  /* It alone does not keep uv_run() going, as suits a heartbeat, but for a
   * connection that is being made for it: libuv waits for those. */
  int background;
} tnk__http_request_t;

/*
 * How it ended. Valid until on_done returns; the body may be taken out with
 * tnk__buf_take().
 *
 * err TNK_OK: there is a status, of whatever class; redirects are not
 * followed. Else one of
 *   TNK_EDNS, TNK_ECONN, TNK_ETLS, TNK_ECERT  transport
 *   TNK_EPROXY     the proxy refused, and will again
 *   TNK_ETIMEDOUT  connect_timeout_ms or timeout_ms
 *   TNK_EPROTO     not HTTP, or a Content-Encoding we did not ask for
 *   TNK_ETOOBIG    the answer's head or body over its limit
 *   TNK_ECLOSED    tnk__http_close()
 *   TNK_ENOMEM
 */
typedef struct {
  int err;
  int cause; /* libuv's or mbedTLS's code, or 0 */
  /* What happened to the connection, in words: "certificate has expired on
   * 2026-01-02". NULL when there are none, or no memory for them. */
  const char *detail;
  /* 1: the server refused to speak with us, has run nothing, and will refuse
   * again. */
  int is_final;
  /* 0: no byte of the request has left, so it is safe to repeat. 1: the
   * server may have seen and executed it. */
  int sent;
  /* 0: no head of an answer has come. With an err: the answer is cut off,
   * and `body` is what there is of it. */
  int status;
  tnk__buf_t *body; /* decoded, never NULL */
  const struct tnk__response *answer;
} tnk__http_result_t;

/* The value of a header (name in any case; repeats are joined by ", "), or
 * NULL. Valid until on_done returns. */
const char *tnk__http_result_header(const tnk__http_result_t *result,
                                    const char *name);

/*
 * One request and its one answer. Owned by the caller, zeroed by
 * tnk__exchange_init(); may be started again from on_done and later, and may be
 * freed in on_done.
 *
 * States: IDLE; QUEUED in its lane; WAITING for a connection; ACTIVE on one;
 * DONE, with on_done due. It has a slot of its lane while WAITING or ACTIVE.
 */
typedef struct tnk__exchange {
  /* The caller's. on_sent may be NULL: called once, right when the request is
   * handed to the socket, also from inside start; it notes that and calls
   * nothing of the client. on_done is called exactly once for each successful
   * start, unless canceled; it and on_body never from inside start or cancel.
   * on_body is for streamed answers only: there is something to take; what
   * comes last is told by on_done alone. */
  void (*on_sent)(struct tnk__exchange *ex);
  void (*on_body)(struct tnk__exchange *ex);
  void (*on_done)(struct tnk__exchange *ex, const tnk__http_result_t *result);
  /* Private. There is one for each operation in flight, so it is kept small. */
  tnk__list_t link; /* in the lane's queue, the pool's, `news`, or `done` */
  tnk__http_t *http;
  struct tnk__pool *pool;    /* while QUEUED, WAITING or ACTIVE */
  struct tnk__conn *conn;    /* while ACTIVE */
  struct tnk__h2_stream *h2; /* while ACTIVE on HTTP/2 */
  tnk__timer_t timer;
  uint64_t timeout_ms;
  uint64_t moved_ms;         /* when something was last seen to move */
  uint64_t *others_moved_ms; /* the pool's: when any of its exchanges moved */
  uint64_t phase_ms; /* since when the request goes out, or the body comes */
  union {
    uint32_t took_ms;  /* from its being written to the answer's head */
    uint32_t since_ms; /* before: low bits of when it began to wait */
  };
  union {
    uint64_t n_seen; /* bytes of the request that had left by the last look */
    uint64_t place;  /* in line, while WAITING */
  };
  size_t max_body;
  tnk__buf_t head; /* the encoded request head; wiped when done */
  const void *body;
  size_t body_len;
  tnk__feed_t *feed;
  struct tnk__response *answer; /* what arrived; NULL before the first byte */
  char *detail;
  int err;
  int cause;
  uint8_t state;   /* a tnk__exchange_state_t */
  uint8_t lane;    /* a tnk__lane_t */
  uint8_t is_head; /* the method is HEAD */
  uint8_t replayable;
  uint8_t replayed;
  uint8_t is_unseen;   /* the server has said that it did not act on it */
  uint8_t n_unseen;    /* how often it was sent again for that */
  uint8_t n_refused;   /* new connections that broke under it at once */
  uint8_t wants_fresh; /* a connection that is new */
  uint8_t was_on_mute; /* its time was over on one that nobody has served */
  uint8_t background;
  uint8_t is_streamed;
  uint8_t is_long;
  uint8_t has_head;  /* of the answer */
  uint8_t has_body;  /* on_body is due */
  uint8_t is_paused; /* the server waits until the body is taken */
  uint8_t is_final;  /* as in the result */
  uint8_t told;      /* on_sent has been called */
  /* The caller's, for on_wait of the client; 0 again when that was called. */
  uint8_t tells_wait;
  uint8_t sent;
} tnk__exchange_t;

/* Open a client, which reserves nothing and connects nowhere. TNK_OK,
 * TNK_ENOMEM, TNK_EFILE when cert_file and key_file cannot be used, or
 * TNK_ECERT when ca_file was given, or load_trust set, and it
 * could not be read. */
int tnk__http_open(tnk__http_t *http, tnk__context_t *context,
                   const tnk__http_options_t *options);
/* Close for ever: every exchange ends with TNK_ECLOSED, from the deferred
 * queue, and connections close. The context's end is also the client's. A
 * second call does nothing. */
void tnk__http_close(tnk__http_t *http);
/* The version of nghttp2, or NULL where HTTP/2 is not built in. */
const char *tnk__http2_library(void);
/* The number of long polls that are under way now. */
size_t tnk__http_n_polls(const tnk__http_t *http);

void tnk__exchange_init(tnk__exchange_t *ex);
/* Start an exchange. TNK_OK; or TNK_ECLOSED, TNK_ENOMEM, TNK_EINVAL (a header
 * that cannot be written), TNK_ETOOBIG (the head), TNK_EPROXY (its origin's
 * proxy cannot be used), and then nothing is called. */
int tnk__exchange_start(tnk__http_t *http, tnk__exchange_t *ex,
                        const tnk__http_request_t *request);
/* Cancel it; legal in every state, any number of times. When it returns,
 * nothing refers to the exchange or its body any more and nothing will be
 * called. A connection in the middle of it is closed. */
void tnk__exchange_cancel(tnk__exchange_t *ex);
/* The head of the answer to a streamed exchange that is active: 0 or NULL
 * until it has come. */
int tnk__exchange_status(const tnk__exchange_t *ex);
const char *tnk__exchange_header(const tnk__exchange_t *ex, const char *name);
/* Move what has come of the body to `out`, which is empty. What comes after
 * that is told again. Not in on_done: there it is in the result. */
void tnk__exchange_take_body(tnk__exchange_t *ex, tnk__buf_t *out);
/* The feed has the bytes that it did not have when it was asked; legal in every
 * state. */
void tnk__exchange_go_on(tnk__exchange_t *ex);
/* Whether a start has not been answered yet. */
int tnk__exchange_is_active(const tnk__exchange_t *ex);
/* Whether it is active and the server may have seen it. */
int tnk__exchange_was_sent(const tnk__exchange_t *ex);
/* Bytes of the request that have left, and of the response's body that have
 * come. */
uint64_t tnk__exchange_n_moved(const tnk__exchange_t *ex);

/* Write what an active exchange waits for, as the end of a sentence that begins
 * with its owner: "waits for a connection to 127.0.0.1:80 (1 on the way)". */
void tnk__exchange_describe(const tnk__exchange_t *ex, tnk__text_t *out);

#endif
