#ifndef TNK_LIB_IO_NET_TLS_STREAM_H
#define TNK_LIB_IO_NET_TLS_STREAM_H

#include <mbedtls/ssl.h>

#include "lib/base/buf.h"
#include "lib/base/alloc.h"
#include "lib/io/net/net.h"
#include "lib/io/net/peer.h"
#include "lib/io/net/stream.h"
#include "lib/io/net/trust.h"

/* The internal interface of a TLS stream. tls.c has its states and reads;
 * tls_write.c writes. */

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
  int has_read; /* the peer has sent bytes for the owner */
  tnk__trust_waiter_t trust;
  tnk__timer_t deadline;
  tnk__peer_t peer;
  uint16_t port;
  tnk__alpn_t alpn;      /* the ALPN offer */
  const tnk__via_t *via; /* NULL: no proxy. Not used when CLOSING. */
  mbedtls_ssl_context ssl;
  uint8_t *plain_buf; /* shared buffer of the net for decrypted bytes */
  const uint8_t *in;
  size_t in_len;
  tnk__buf_t rest;
  int paused;
  tnk__deferred_t resume;
  tnk__pace_step_t step; /* waiting step of the handshake */
  tnk__buf_t filling;
  tnk__buf_t flying;
  int tcp_writing;
  /* The rest of the owner's write that mbedTLS has not taken yet. */
  uv_buf_t plain[TNK__STREAM_MAX_BUFS];
  unsigned n_plain;
  unsigned at;
  int is_writing;
  int wants_read;          /* mbedTLS must read before it takes more to write */
  int write_error;         /* code of libuv; never cleared */
  tnk__deferred_t written; /* continues or completes the write */
  /* Number of the owner's bytes that mbedTLS took. Bytes of the latest write
   * count only once TCP has sent something since that write began. */
  uint64_t n_taken;
  uint64_t n_taken_before;
  uint64_t tcp_sent_before;
  int broken; /* code of mbedTLS while `fail` is due */
  tnk__deferred_t fail;
  uint8_t goodbye[128]; /* embedded, so that closing allocates nothing */
} tnk__tls_t;

static inline tnk__tls_t *tnk__tls_of(const tnk__stream_t *stream) {
  return tnk__container_of(stream, tnk__tls_t, base);
}

void tnk__tls_init_write(tnk__tls_t *tls);
void tnk__tls_deinit_write(tnk__tls_t *tls);
/* Take a complete record from mbedTLS for sending. */
int tnk__tls_send(void *user, const unsigned char *data, size_t n);
/* Give the gathered records to TCP. */
void tnk__tls_flush(tnk__tls_t *tls);
/* Continue the owner's write. A deferred call reports its end to the owner. */
void tnk__tls_push(tnk__tls_t *tls);
/* Handle TCP's event of this name. Calls the owner. */
void tnk__tls_on_tcp_written(tnk__stream_t *tcp, int cause);
int tnk__tls_write(tnk__stream_t *stream, const uv_buf_t *bufs,
                   unsigned n_bufs);
uint64_t tnk__tls_n_sent(const tnk__stream_t *stream);

#endif
