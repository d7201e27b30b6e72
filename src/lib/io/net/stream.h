/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_IO_NET_STREAM_H
#define TNK_LIB_IO_NET_STREAM_H

#include <uv.h>

#include "lib/wire/format/proxy.h"

struct tnk__net;

/* The server. Two origins are equal if all three parts are equal. */
typedef struct {
  const char *host; /* name or address; IPv6 without brackets */
  uint16_t port;
  int is_tls;
} tnk__origin_t;

/* Returns whether two origins are equal. The case of host names is ignored. */
int tnk__origin_equal(const tnk__origin_t *a, const tnk__origin_t *b);

/* A proxy on the route to an origin. */
typedef struct {
  const char *host;
  uint16_t port;
  const char *name; /* name for messages */
  tnk__proxy_kind_t kind;
  int is_tls; /* TLS to the proxy itself, below everything else */
  /* HTTP proxy, for origins with TLS: the head of the CONNECT request. The
   * proxy opens a tunnel to the origin, and TLS runs through the tunnel. May
   * contain a credential. */
  const void *request;
  size_t request_len;
  /* SOCKS proxy: the target of the tunnel, and the credentials. NULL: no
   * credentials. */
  const tnk__origin_t *target;
  const char *user;
  const char *password;
  int has_credentials; /* improves the message when they are refused */
} tnk__via_t;

/* The reason why a stream ended. */
typedef struct {
  /* TNK_OK: the peer ended it in an orderly way. Otherwise one of
   *   TNK_EDNS, TNK_ECONN (reset, or TLS closed without close_notify),
   *   TNK_ECERT, TNK_ETLS, TNK_ETIMEDOUT (connecting), TNK_ENOMEM,
   *   TNK_EFILE (the client certificate cannot be used),
   *   TNK_EPROXY (refused permanently), TNK_EPROTO and TNK_ETOOBIG (response
   *   of a proxy that did not open the tunnel) */
  int code;
  int cause;        /* code of libuv or mbedTLS, or 0 */
  const char *text; /* sentence, never NULL; valid until on_end returns */
  /* The peer refused the connection before it processed any sent byte, or no
   * byte was sent. A new connection would be refused in the same way. */
  int is_final;
} tnk__net_error_t;

/* The protocols that a TLS stream offers to the server (ALPN). */
typedef enum {
  TNK__ALPN_HTTP_1 = 0, /* default */
  TNK__ALPN_HTTP_2,
  TNK__ALPN_BOTH,
  TNK__ALPN_NONE, /* no offer, for protocols other than HTTP */
  TNK__N_ALPN
} tnk__alpn_t;

typedef struct tnk__stream tnk__stream_t;

/*
 * The events of a stream. They never occur inside a call of the owner. on_open
 * comes once, then on_read and on_written in any order, then on_end once. Or
 * on_end is the only event. The owner may close the stream in any of them; only
 * on_closed follows. A stream that has ended must still be closed.
 */
typedef struct {
  /* Connected, and the TLS handshake, if any, is complete. */
  void (*on_open)(tnk__stream_t *stream);
  /* `data` is valid until it returns. */
  void (*on_read)(tnk__stream_t *stream, const uint8_t *data, size_t n);
  /* The write is complete, and the bytes are returned to the owner. `cause` is
   * 0, or the code of libuv or mbedTLS for its failure. After a failure, bytes
   * that the peer had already sent are still read, until on_end. */
  void (*on_written)(tnk__stream_t *stream, int cause);
  void (*on_end)(tnk__stream_t *stream, const tnk__net_error_t *error);
  /* The stream is freed and its socket is closed. May be NULL. */
  void (*on_closed)(void *user);
} tnk__stream_events_t;

/* Returned by a write that is already complete. */
#define TNK__STREAM_WRITTEN 1

/* More than a request needs: its head, and two parts of its body. */
#define TNK__STREAM_MAX_BUFS 4

typedef struct {
  int (*write)(tnk__stream_t *stream, const uv_buf_t *bufs, unsigned n_bufs);
  uint64_t (*n_sent)(const tnk__stream_t *stream);
  void (*pause)(tnk__stream_t *stream, int paused);
  void (*hold_loop)(tnk__stream_t *stream, int hold);
  void (*close)(tnk__stream_t *stream);
  /* NULL without TLS. */
  void (*offer)(tnk__stream_t *stream, tnk__alpn_t alpn);
  const char *(*chosen)(const tnk__stream_t *stream);
  const char *(*tls_version)(const tnk__stream_t *stream);
} tnk__stream_ops_t;

/*
 * A bidirectional stream of bytes: TCP, a tunnel through a proxy over TCP, or
 * TLS over either. It begins to connect when it is opened, and reads as soon as
 * it is open.
 */
struct tnk__stream {
  const tnk__stream_ops_t *ops;
  const tnk__stream_events_t *events;
  void *user; /* owner's pointer */
};

/* Opens the stream below another one. The upper stream has the deadline for
 * both. */
typedef int (*tnk__stream_opener_t)(tnk__stream_t **out, struct tnk__net *net,
                                    const tnk__origin_t *origin,
                                    const tnk__via_t *via,
                                    const tnk__stream_events_t *events,
                                    void *user);

/*
 * Open a stream. Returns TNK_OK or TNK_ENOMEM; after TNK_ENOMEM no stream
 * exists and no event follows. The host name and `via` must stay valid until
 * the stream is closed, and `events` forever. The stream ends with
 * TNK_ETIMEDOUT if it is not open after `connect_timeout_ms`. That time covers
 * the name, TCP, tunnel and TLS; 0 means no limit.
 *
 * If `via` is not NULL, TCP connects to the proxy. The origin's name is then
 * not looked up here, except with TNK__PROXY_SOCKS5. Without TLS, an HTTP proxy
 * is the end of the stream, whereas a SOCKS proxy opens a tunnel in this case
 * too.
 */
int tnk__stream_open(tnk__stream_t **out, struct tnk__net *net,
                     const tnk__origin_t *origin, const tnk__via_t *via,
                     uint64_t connect_timeout_ms,
                     const tnk__stream_events_t *events, void *user);

/* Write at most TNK__STREAM_MAX_BUFS buffers, between on_open and on_end. Only
 * one write at a time is allowed. The array is copied; its bytes are borrowed.
 * TNK__STREAM_WRITTEN: the system took all bytes at once, and on_written does
 * not follow. TNK_OK: on_written follows, unless the stream ends or is closed
 * before. The bytes are borrowed until then. TNK_ECONN: an earlier write has
 * failed. */
static inline int tnk__stream_write(tnk__stream_t *stream, const uv_buf_t *bufs,
                                    unsigned n_bufs) {
  return stream->ops->write(stream, bufs, n_bufs);
}

/* The number of the owner's bytes that may have left this machine since the
 * stream was opened. Valid until the stream is closed. */
static inline uint64_t tnk__stream_n_sent(const tnk__stream_t *stream) {
  return stream->ops->n_sent(stream);
}

/* Stop or resume reading. Stopping slows the peer down. */
static inline void tnk__stream_pause(tnk__stream_t *stream, int paused) {
  stream->ops->pause(stream, paused);
}

/* Set whether the stream keeps uv_run() running. It does by default; an unused
 * connection must not. */
static inline void tnk__stream_hold_loop(tnk__stream_t *stream, int hold) {
  stream->ops->hold_loop(stream, hold);
}

/* Set the ALPN offer, right after opening the stream. Does nothing without
 * TLS. */
static inline void tnk__stream_offer(tnk__stream_t *stream, tnk__alpn_t alpn) {
  if (stream->ops->offer != NULL)
    stream->ops->offer(stream, alpn);
}

/* The protocol that the server chose, "h2" or "http/1.1", once the stream is
 * open. NULL: it chose none, or nothing was offered. */
static inline const char *tnk__stream_chosen(const tnk__stream_t *stream) {
  return stream->ops->chosen != NULL ? stream->ops->chosen(stream) : NULL;
}

/* The version of TLS as a static string, once the stream is open. NULL without
 * TLS. */
static inline const char *tnk__stream_tls_version(const tnk__stream_t *stream) {
  return stream->ops->tls_version != NULL ? stream->ops->tls_version(stream)
                                          : NULL;
}

/* Close it, once, in any state. Only on_closed follows; until then the context
 * is held. Allocates nothing. */
static inline void tnk__stream_close(tnk__stream_t *stream) {
  stream->ops->close(stream);
}

/* ---- The kinds of streams ----
 *
 * tnk__stream_open() stacks them, so no kind knows another. */

/* Open a TCP stream, like tnk__stream_open(). One of `origin` and `via`
 * suffices. */
int tnk__tcp_open(tnk__stream_t **out, struct tnk__net *net,
                  const tnk__origin_t *origin, const tnk__via_t *via,
                  uint64_t connect_timeout_ms,
                  const tnk__stream_events_t *events, void *user);

/* The position in a stack of streams. A carrier leads to a proxy and may have
 * another TLS stream on top. */
typedef enum { TNK__TLS_TOP = 0, TNK__TLS_CARRIER } tnk__tls_place_t;

/* Open a stream of TLS 1.2 or later, like tnk__stream_open(), over the stream
 * that `below` opens. */
int tnk__tls_open(tnk__stream_t **out, struct tnk__net *net,
                  const tnk__origin_t *origin, const tnk__via_t *via,
                  uint64_t connect_timeout_ms, tnk__stream_opener_t below,
                  tnk__tls_place_t place, const tnk__stream_events_t *events,
                  void *user);

/* Open a stream to a proxy with `below`. The proxy then connects it to the
 * origin in via->request or via->target. The stream is open when the proxy has
 * agreed. Otherwise it works like tnk__stream_open(). */
int tnk__tunnel_open(tnk__stream_t **out, struct tnk__net *net,
                     const tnk__via_t *via, uint64_t connect_timeout_ms,
                     tnk__stream_opener_t below,
                     const tnk__stream_events_t *events, void *user);
/* Describe a proxy that refused `what` with this status. The text contains
 * nothing from the proxy, because the proxy knows the credentials. */
void tnk__tunnel_explain(char *text, size_t size, const tnk__via_t *via,
                         const char *what, int status);

#endif
