/* SPDX-License-Identifier: MIT */
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
 * Kinds of requests. Each lane has its own queue and its own limit. A thousand
 * long polls therefore cannot delay a heartbeat or a submission.
 */
typedef enum {
  TNK__LANE_CONTROL = 0, /* heartbeat, configuration, session */
  TNK__LANE_TRAIN,       /* submissions of training operations */
  TNK__LANE_SAMPLE,      /* submissions of samples */
  TNK__LANE_POLL,        /* long polls for samples; there may be many */
  TNK__LANE_TRAIN_POLL, /* other long polls; they never wait for sample polls */
  TNK__N_LANES
} tnk__lane_t;

/* The version of HTTP to use. */
typedef enum {
  /* With TLS, the server chooses by ALPN. Without TLS, HTTP/1.1. */
  TNK__HTTP_AUTO = 0,
  TNK__HTTP_1_1,
  TNK__HTTP_2, /* with TLS only HTTP/2; without TLS HTTP/1.1 */
  /* HTTP/2, also without TLS and without negotiation. */
  TNK__HTTP_2_PRIOR_KNOWLEDGE
} tnk__http_version_t;

/* 0 or NULL means the default. */
typedef struct {
  const char *ca_file; /* NULL: SSL_CERT_FILE, then the system's */
  /* The client certificate and its key. Set both, or leave both NULL. */
  const char *cert_file;
  const char *key_file;
  int load_trust; /* 1: read the CA certificates now, not on first use */
  /* Buffer for the reason why the certificates cannot be used, or NULL. */
  char *why;
  size_t why_size;
  /* NULL: no proxy. Must stay valid until tnk__http_close() returns. */
  const struct tnk__proxies *proxies;
  uint64_t connect_timeout_ms; /* until a connection is open; 0: 5,000 */
  /* Until an unused connection is closed; 0: 60,000. */
  uint64_t idle_timeout_ms;
  /* 0: 4, 16, 64 and up to 1,024 in place of polls, 2,048, 256. */
  uint32_t max_in_flight[TNK__N_LANES];
  tnk__http_version_t version;    /* HTTP/1.1 if nghttp2 is missing */
  uint32_t max_http2_connections; /* to one origin; 0: 256 */
} tnk__http_options_t;

typedef struct {
  tnk__list_t queue; /* exchanges without a slot, in order of starting */
  size_t wished;
  size_t few;         /* limit while each exchange may need a connection */
  size_t max;         /* current limit, `few` or `wished`: see queue.h */
  size_t allowed;     /* slots given out now; fewer after an upload timed out */
  size_t n_in_flight; /* exchanges with a slot */
} tnk__http_lane_t;

struct tnk__exchange;

/*
 * The HTTP client of one service, embedded in it. It is open and then closing,
 * until the context is gone. While it is closing, tnk__exchange_start() returns
 * TNK_ECLOSED.
 */
typedef struct tnk__http {
  tnk__context_t *context;
  struct tnk__net *net;
  const struct tnk__proxies *proxies; /* or NULL */
  tnk__list_t pools; /* one for each origin in use; two with HTTP/2 */
  tnk__list_t known; /* remembered HTTP versions of origins, latest first */
  tnk__http_version_t version;
  size_t max_http2_connections;
  tnk__http_lane_t lanes[TNK__N_LANES];
  tnk__list_t news;    /* exchanges whose on_body is due */
  tnk__list_t done;    /* exchanges whose on_done is due */
  tnk__deferred_t due; /* runs callbacks and gives out slots */
  /* Callback of the owner: an exchange with `tells_wait` set has to wait for a
   * slot or for a connection. Called at most once for each exchange. It must
   * not call into this folder. */
  void (*on_wait)(struct tnk__exchange *ex);
  uint64_t connect_timeout_ms;
  uint64_t idle_timeout_ms;
  uint64_t upload_ms; /* when an upload of TNK__LANE_TRAIN last made progress */
  size_t n_connections;
  size_t max_connections;   /* highest number so far */
  uint64_t last_connection; /* number of the latest connection */
  size_t enough; /* number of connections from which unused ones are closed */
  /* The process has run out of descriptors. No connection is opened until the
   * turn of the loop after the next exchange ends. */
  int is_starved;
  int shares_polls;   /* connections for polls are shared */
  int has_told_bound; /* the warning about the bound of polls was logged */
  int shares_places;  /* samples over their own limit take slots of polls */
  int has_warned;     /* the warning about descriptors was logged */
  int closing;
} tnk__http_t;

/*
 * A request body that is produced while it is sent, so it never exists as a
 * whole. It is embedded in its owner, who sets its length. Each time the
 * request is sent, the same bytes are requested again from the start.
 */
typedef struct tnk__feed {
  size_t len;
  /* Return the bytes from `at` < len and store their number in *n. They must
   * stay valid until the next call, or until the feed is given back. Any
   * pointer with *n == 0 means that the bytes are not ready yet; the owner then
   * calls tnk__exchange_go_on() when they are. NULL means out of memory. Must
   * not call into this folder. */
  const uint8_t *(*piece)(struct tnk__feed *self, size_t at, size_t *n);
} tnk__feed_t;

/* A request. tnk__exchange_start() reads or copies all of it except the
 * body. */
typedef struct {
  tnk__origin_t origin;
  const char *method;
  const char *target; /* path and query, encoded */
  /* Host, Content-Length, Accept-Encoding and Connection are added by the
   * client. */
  const tnk_pair_t *headers;
  size_t n_headers;
  const tnk_pair_t *more_headers; /* a second list, written after the first */
  size_t n_more_headers;
  /* Encoded headers, each with its line end, or NULL. They are not checked, so
   * the caller must have encoded them itself. */
  const char *lines;
  size_t lines_len;
  /* The body: these bytes, then the bytes of the feed, which may be NULL. Both
   * are borrowed until on_done is called or tnk__exchange_cancel() has
   * returned. An empty body is sent with Content-Length: 0, except with GET,
   * HEAD and DELETE. */
  const void *body;
  size_t body_len;
  tnk__feed_t *feed;
  tnk__lane_t lane;
  /* Longest time without progress, in milliseconds. 0 means no limit.
   *
   * The time restarts when the exchange gets its slot in the lane and when it
   * gets its connection. It restarts while the request goes out, which is
   * checked four times within the limit. It also restarts with the last byte of
   * the request, the head of the response, and each part of the response's
   * body. While the exchange waits for a connection, progress of another
   * exchange with the same origin restarts it too.
   *
   * An exchange that makes progress, but less than TNK__MIN_BYTES_PER_S over
   * TNK__SLOW_MS or more, is too slow and ends too (lib/policy/bounds.h). */
  uint64_t timeout_ms;
  size_t max_body; /* decoded response body; 0: TNK__MAX_RESPONSE_BODY */
  /* Stream the response's body: the owner takes it with
   * tnk__exchange_take_body() as it arrives. It may have any length and is not
   * compressed. While the owner takes nothing, reading stops and the server has
   * to wait. That time does not count toward timeout_ms, and no minimum rate
   * applies. */
  int is_streamed;
  /* The server recognizes a repeated request. If a kept connection turns out to
   * be closed before any byte of a response, the request is sent once more on a
   * new connection. */
  int replayable;
  /* Send it on a new connection, if one can be opened. */
  int wants_fresh;
  /* The response takes long and is expensive to produce. Silence is then no
   * sign that the connection is not served. */
  int is_long;
  /* The exchange does not keep uv_run() running, which suits a heartbeat.
   * Exception: while a connection is being opened for it, libuv waits. */
  int background;
} tnk__http_request_t;

/*
 * How an exchange ended. Valid until on_done returns; the body may be moved out
 * with tnk__buf_take().
 *
 * err TNK_OK: there is a status, of any class. Redirects are not followed.
 * Otherwise `err` is one of
 *   TNK_EDNS, TNK_ECONN, TNK_ETLS, TNK_ECERT  transport
 *   TNK_EPROXY     the proxy refused, and will again
 *   TNK_ETIMEDOUT  connect_timeout_ms or timeout_ms
 *   TNK_EPROTO     not HTTP, or a Content-Encoding we did not ask for
 *   TNK_ETOOBIG    the response's head or body is over its limit
 *   TNK_ECLOSED    tnk__http_close()
 *   TNK_ENOMEM
 */
typedef struct {
  int err;
  int cause; /* code of libuv or mbedTLS, or 0 */
  /* Description of the connection's failure, for example "certificate has
   * expired on 2026-01-02". NULL: none, or out of memory. */
  const char *detail;
  /* 1: the server rejected the connection, ran nothing, and will reject it
   * again. */
  int is_final;
  /* 0: no byte of the request has left, so it is safe to repeat. 1: the
   * server may have seen and executed it. */
  int sent;
  /* 0: no head of a response has arrived. Nonzero with an err: the response is
   * cut off, and `body` has the part that arrived. */
  int status;
  tnk__buf_t *body; /* decoded, never NULL */
  const struct tnk__response *answer;
} tnk__http_result_t;

/* The value of a header (name in any case; repeats are joined by ", "), or
 * NULL. Valid until on_done returns. */
const char *tnk__http_result_header(const tnk__http_result_t *result,
                                    const char *name);

typedef enum {
  TNK__EXCHANGE_IDLE = 0,
  TNK__EXCHANGE_QUEUED,
  TNK__EXCHANGE_WAITING,
  TNK__EXCHANGE_ACTIVE,
  TNK__EXCHANGE_DONE
} tnk__exchange_state_t;

/*
 * One request and its response. The caller owns it and calls
 * tnk__exchange_init() first. It may be started again from on_done and later,
 * and may be freed in on_done.
 *
 * States: IDLE; QUEUED in its lane; WAITING for a connection; ACTIVE on one;
 * DONE, with on_done due. It has a slot of its lane while WAITING or ACTIVE.
 */
typedef struct tnk__exchange {
  /* Callbacks of the caller.
   *
   * on_sent may be NULL. It is called once, when the request is handed to the
   * socket, possibly inside tnk__exchange_start(). It must not call the client.
   *
   * on_done is called exactly once for each successful start, unless the
   * exchange is canceled.
   *
   * on_body is for streamed responses only: bytes can be taken. For the last
   * bytes only on_done is called. on_done and on_body are never called inside
   * start or cancel. */
  void (*on_sent)(struct tnk__exchange *ex);
  void (*on_body)(struct tnk__exchange *ex);
  void (*on_done)(struct tnk__exchange *ex, const tnk__http_result_t *result);
  /* Private. One exists for each operation in flight, so it is kept small. */
  tnk__list_t link; /* in the lane's queue, the pool's, `news`, or `done` */
  tnk__http_t *http;
  struct tnk__pool *pool;    /* while QUEUED, WAITING or ACTIVE */
  struct tnk__conn *conn;    /* while ACTIVE */
  struct tnk__h2_stream *h2; /* while ACTIVE on HTTP/2 */
  tnk__timer_t timer;
  uint64_t timeout_ms;
  uint64_t moved_ms; /* time of the last observed progress */
  /* In the pool: time of the last progress of any exchange. */
  uint64_t *others_moved_ms;
  /* Start of sending the request, or of receiving the body. */
  uint64_t phase_ms;
  union {
    uint32_t took_ms; /* time from writing the request to the response's head */
    uint32_t since_ms; /* before that: low bits of when it began to wait */
  };
  union {
    uint64_t n_seen; /* bytes of the request that had left at the last check */
    uint64_t place;  /* order in the wait queue, while WAITING */
  };
  size_t max_body;
  tnk__buf_t head; /* the encoded request head; wiped when done */
  const void *body;
  size_t body_len;
  tnk__feed_t *feed;
  /* The response so far; NULL before the first byte. */
  struct tnk__response *answer;
  char *detail;
  int err;
  int cause;
  uint8_t state;   /* a tnk__exchange_state_t */
  uint8_t lane;    /* a tnk__lane_t */
  uint8_t is_head; /* the method is HEAD */
  uint8_t replayable;
  uint8_t replayed;
  uint8_t is_unseen; /* the server said that it did not act on it */
  uint8_t n_unseen;  /* number of repeats for that reason */
  /* Number of new connections that failed under it at once. */
  uint8_t n_refused;
  uint8_t wants_fresh; /* it needs a new connection */
  uint8_t was_on_mute; /* it timed out on an unresponsive connection */
  uint8_t background;
  uint8_t is_streamed;
  uint8_t is_long;
  uint8_t has_head;  /* the head of the response has arrived */
  uint8_t has_body;  /* on_body is due */
  uint8_t is_paused; /* the server waits until the body is taken */
  uint8_t is_final;  /* as in the result */
  uint8_t told;      /* on_sent has been called */
  /* Set by the caller: call the client's on_wait. The client clears it then. */
  uint8_t tells_wait;
  uint8_t sent;
} tnk__exchange_t;

/* Open a client. It opens no connection and reserves nothing. Returns TNK_OK or
 * TNK_ENOMEM. Returns TNK_EFILE if cert_file and key_file cannot be used.
 * Returns TNK_ECERT if ca_file or load_trust is set and the CA certificates
 * cannot be read. */
int tnk__http_open(tnk__http_t *http, tnk__context_t *context,
                   const tnk__http_options_t *options);
/* Close for good. Every exchange ends with TNK_ECLOSED, from the deferred
 * queue, and all connections close. The client ends with its context. A second
 * call does nothing. */
void tnk__http_close(tnk__http_t *http);
/* The version of nghttp2, or NULL if HTTP/2 is not built in. */
const char *tnk__http2_library(void);
/* The number of long polls that are under way now. */
size_t tnk__http_n_polls(const tnk__http_t *http);

void tnk__exchange_init(tnk__exchange_t *ex);
/* Start an exchange. Returns TNK_OK, TNK_ECLOSED, TNK_ENOMEM, TNK_EINVAL (a
 * header that cannot be written), TNK_ETOOBIG (the head), or TNK_EPROXY (the
 * proxy of its origin cannot be used). After an error no callback is called. */
int tnk__exchange_start(tnk__http_t *http, tnk__exchange_t *ex,
                        const tnk__http_request_t *request);
/* Cancel it. Legal in every state, any number of times. On return nothing
 * refers to the exchange or its body, and no callback will be called. If the
 * exchange was in progress on a connection, that connection is closed. */
void tnk__exchange_cancel(tnk__exchange_t *ex);
/* The status and a header of a streamed response that is active. 0 or NULL
 * until the head has arrived. */
int tnk__exchange_status(const tnk__exchange_t *ex);
const char *tnk__exchange_header(const tnk__exchange_t *ex, const char *name);
/* Move the received part of the body to `out`, which must be empty. on_body is
 * called again for later bytes. Do not call it in on_done, where the result has
 * the body. */
void tnk__exchange_take_body(tnk__exchange_t *ex, tnk__buf_t *out);
/* The feed has bytes now that it did not have before. Legal in every state. */
void tnk__exchange_go_on(tnk__exchange_t *ex);
/* Returns whether it was started and its on_done has not been called yet. */
int tnk__exchange_is_active(const tnk__exchange_t *ex);
/* Returns whether it is active and the server may have seen it. */
int tnk__exchange_was_sent(const tnk__exchange_t *ex);
/* Bytes of the request that have left, plus received bytes of the response's
 * body. */
uint64_t tnk__exchange_n_moved(const tnk__exchange_t *ex);

/* Write what an active exchange waits for. The text completes a sentence about
 * its owner: "waits for a connection to 127.0.0.1:80 (1 on the way)". */
void tnk__exchange_describe(const tnk__exchange_t *ex, tnk__text_t *out);

#endif
