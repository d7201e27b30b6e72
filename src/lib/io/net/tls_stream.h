#ifndef TNK_LIB_IO_NET_TLS_STREAM_H
#define TNK_LIB_IO_NET_TLS_STREAM_H

#include <mbedtls/ssl.h>

#include "lib/base/buf.h"
#include "lib/base/alloc.h"
#include "lib/io/net/net.h"
#include "lib/io/net/peer.h"
#include "lib/io/net/stream.h"
#include "lib/io/net/trust.h"

/* The inside of a TLS stream: tls.c has its states and reads, tls_write.c
 * writes. */

typedef enum {
  TNK__TLS_CONNECTING,
  TNK__TLS_HANDSHAKE,
  TNK__TLS_OPEN,
  TNK__TLS_ENDED,
  TNK__TLS_CLOSING
} tnk__tls_state_t;

typedef struct {
  tnk__stream_t base;
  tnk__net_t *net;
  tnk__stream_t *tcp;
  tnk__tls_state_t state;
  int tcp_open;
  int has_trust;
  int has_read; /* the peer has said something to the owner */
  tnk__trust_waiter_t trust;
  tnk__timer_t deadline;
  tnk__peer_t peer;
  uint16_t port;
  tnk__alpn_t alpn;      /* what is offered */
  const tnk__via_t *via; /* or NULL; not looked at when CLOSING */
  mbedtls_ssl_context ssl;
  uint8_t *plain_buf; /* the net's, for what is decrypted */
  const uint8_t *in;
  size_t in_len;
  tnk__buf_t rest;
  int paused;
  tnk__deferred_t resume;
  tnk__pace_step_t step; /* of the handshake, when it has to wait */
  tnk__buf_t filling;
  tnk__buf_t flying;
  int tcp_writing;
  /* The owner's write: what mbedTLS has not taken yet. */
  uv_buf_t plain[TNK__STREAM_MAX_BUFS];
  unsigned n_plain;
  unsigned at;
  int is_writing;
  int wants_read;          /* mbedTLS, before it takes more to write */
  int write_error;         /* libuv's code, for ever */
  tnk__deferred_t written; /* to go on with the write, or end it */
  /* The owner's bytes that mbedTLS took; those of the latest write count only
   * once TCP has sent something since it began. */
  uint64_t n_taken;
  uint64_t n_taken_before;
  uint64_t tcp_sent_before;
  int broken; /* mbedTLS's code while `fail` is due */
  tnk__deferred_t fail;
  uint8_t goodbye[128]; /* so that closing allocates nothing */
} tnk__tls_t;

static inline tnk__tls_t *tnk__tls_of(const tnk__stream_t *stream) {
  return tnk__container_of(stream, tnk__tls_t, base);
}

void tnk__tls_init_write(tnk__tls_t *tls);
void tnk__tls_deinit_write(tnk__tls_t *tls);
/* Take a record that mbedTLS has to send, all of it. */
int tnk__tls_send(void *user, const unsigned char *data, size_t n);
/* Hand the records that gathered to TCP. */
void tnk__tls_flush(tnk__tls_t *tls);
/* Go on with the owner's write, who is told from a deferred call. */
void tnk__tls_push(tnk__tls_t *tls);
/* Handle TCP's event of that name. Calls the owner. */
void tnk__tls_on_tcp_written(tnk__stream_t *tcp, int cause);
int tnk__tls_write(tnk__stream_t *stream, const uv_buf_t *bufs,
                   unsigned n_bufs);
uint64_t tnk__tls_n_sent(const tnk__stream_t *stream);

#endif
