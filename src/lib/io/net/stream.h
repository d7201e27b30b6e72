#ifndef TNK_LIB_IO_NET_STREAM_H
#define TNK_LIB_IO_NET_STREAM_H

#include <uv.h>

#include "lib/io/net/origin.h"
#include "lib/wire/format/proxy.h"

struct tnk__net;

/* A proxy on the way to an origin. */
typedef struct {
  const char *host;
  uint16_t port;
  const char *name; /* for people */
  tnk__proxy_kind_t kind;
  int is_tls; /* TLS is spoken with the proxy, below all else */
  /* Of HTTP, the head of a CONNECT, for origins with TLS: the proxy makes a
   * tunnel to the origin, and TLS is spoken with that. May hold a credential.
   */
  const void *request;
  size_t request_len;
  /* Of SOCKS, where the tunnel goes, and who asks; NULL: nobody. */
  const tnk__origin_t *target;
  const char *user;
  const char *password;
  int has_credentials; /* for a better sentence when they are refused */
} tnk__via_t;

/* Why a stream ended. */
typedef struct {
  /* TNK_OK: the peer ended it in an orderly way. Else one of
   *   TNK_EDNS, TNK_ECONN (reset, or TLS cut off without a goodbye),
   *   TNK_ECERT, TNK_ETLS, TNK_ETIMEDOUT (connecting), TNK_ENOMEM,
   *   TNK_EFILE (our own certificate, which cannot be used),
   *   TNK_EPROXY (refused for good), TNK_EPROTO and TNK_ETOOBIG (what a proxy
   *   answered instead of opening) */
  int code;
  int cause;        /* libuv's or mbedTLS's own code, or 0 */
  const char *text; /* one sentence, never NULL; valid until on_end returns */
  /* The peer refused to speak with us before anything that was sent could mean
   * something to it, or nothing was sent at all, and it would end so again. */
  int is_final;
} tnk__net_error_t;

/* What a stream with TLS offers the server to speak in it (ALPN). */
typedef enum {
  TNK__ALPN_HTTP_1 = 0, /* unless it is told otherwise */
  TNK__ALPN_HTTP_2,
  TNK__ALPN_BOTH,
  TNK__N_ALPN
} tnk__alpn_t;

typedef struct tnk__stream tnk__stream_t;

/*
 * What a stream tells its owner; never from inside a call of the owner's.
 * The order is: on_open once, then on_read and on_written in any order, then
 * on_end once; or on_end alone. The owner may close the stream in any of them,
 * and only on_closed is called after that. A stream that has ended must still
 * be closed.
 */
typedef struct {
  /* Connected, and with TLS the handshake is over. */
  void (*on_open)(tnk__stream_t *stream);
  /* `data` is valid until the return. */
  void (*on_read)(tnk__stream_t *stream, const uint8_t *data, size_t n);
  /* The write is over: the bytes are the owner's again. `cause` is 0, or
   * libuv's or mbedTLS's reason why it failed. After a failure what the peer
   * has sent before is still read, until on_end. */
  void (*on_written)(tnk__stream_t *stream, int cause);
  void (*on_end)(tnk__stream_t *stream, const tnk__net_error_t *error);
  /* The memory of the stream is gone, its socket closed. May be NULL. */
  void (*on_closed)(void *user);
} tnk__stream_events_t;

/* What a write returns when it is over already. */
#define TNK__STREAM_WRITTEN 1

/* More than a request needs: its head, and the two parts of its body. */
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
 * A stream of bytes in both directions: TCP, a tunnel through a proxy over
 * that, or TLS over either. It begins to connect when it is opened, and reads
 * as soon as it is open.
 */
struct tnk__stream {
  const tnk__stream_ops_t *ops;
  const tnk__stream_events_t *events;
  void *user; /* the owner's */
};

/* Opens what is below a stream, which has the deadline for both. */
typedef int (*tnk__stream_opener_t)(tnk__stream_t **out, struct tnk__net *net,
                                    const tnk__origin_t *origin,
                                    const tnk__via_t *via,
                                    const tnk__stream_events_t *events,
                                    void *user);

/*
 * Open a stream. TNK_OK, or TNK_ENOMEM and then there is no stream and no
 * event. The name of the host and `via` must stay until the stream is closed,
 * `events` for ever. When the stream is not open after `connect_timeout_ms`
 * (name, TCP, tunnel and TLS together; 0: for ever) it ends with TNK_ETIMEDOUT.
 *
 * With a `via`, which may be NULL, TCP goes to the proxy, and the origin's name
 * is looked up by nobody here, except for TNK__PROXY_SOCKS5. A stream without
 * TLS ends at a proxy of HTTP, while one of SOCKS makes a tunnel for it as
 * well.
 */
int tnk__stream_open(tnk__stream_t **out, struct tnk__net *net,
                     const tnk__origin_t *origin, const tnk__via_t *via,
                     uint64_t connect_timeout_ms,
                     const tnk__stream_events_t *events, void *user);

/* Write at most TNK__STREAM_MAX_BUFS pieces; one write at a time, from on_open
 * to on_end; the array is copied. TNK__STREAM_WRITTEN: the system has taken all
 * of it at once, and on_written does not follow. TNK_OK: it does, unless the
 * stream ends or is closed before, and until then the bytes are borrowed.
 * TNK_ECONN: writing has failed before. */
static inline int tnk__stream_write(tnk__stream_t *stream, const uv_buf_t *bufs,
                                    unsigned n_bufs) {
  return stream->ops->write(stream, bufs, n_bufs);
}

/* How many of the owner's bytes may have left this machine since the stream
 * was opened. Valid until the stream is closed. */
static inline uint64_t tnk__stream_n_sent(const tnk__stream_t *stream) {
  return stream->ops->n_sent(stream);
}

/* Stop reading, so that the peer is slowed down, or go on. */
static inline void tnk__stream_pause(tnk__stream_t *stream, int paused) {
  stream->ops->pause(stream, paused);
}

/* Say whether the stream keeps uv_run() going; it does from the start. An
 * unused connection must not. */
static inline void tnk__stream_hold_loop(tnk__stream_t *stream, int hold) {
  stream->ops->hold_loop(stream, hold);
}

/* Say what to offer the server, right after opening the stream. Without TLS
 * nothing is. */
static inline void tnk__stream_offer(tnk__stream_t *stream, tnk__alpn_t alpn) {
  if (stream->ops->offer != NULL)
    stream->ops->offer(stream, alpn);
}

/* What the server has chosen, "h2" or "http/1.1", once the stream is open.
 * NULL: nothing, or it was not asked. */
static inline const char *tnk__stream_chosen(const tnk__stream_t *stream) {
  return stream->ops->chosen != NULL ? stream->ops->chosen(stream) : NULL;
}

/* The version of TLS, for people, once the stream is open; static. NULL without
 * TLS. */
static inline const char *tnk__stream_tls_version(const tnk__stream_t *stream) {
  return stream->ops->tls_version != NULL ? stream->ops->tls_version(stream)
                                          : NULL;
}

/* Close it; legal in every state, once. Only on_closed follows; until then the
 * context is held. Allocates nothing. */
static inline void tnk__stream_close(tnk__stream_t *stream) {
  stream->ops->close(stream);
}

#endif
