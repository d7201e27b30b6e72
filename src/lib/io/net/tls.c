/* SPDX-License-Identifier: MIT */
#include <mbedtls/ssl.h>
#include <mbedtls/version.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/limits.h"
#include "lib/io/net/net.h"
#include "lib/io/net/peer.h"
#include "lib/io/net/sessions.h"
#include "lib/io/net/stream.h"
#include "lib/io/net/tls_error.h"
#include "lib/io/net/trust.h"
#include "tnk/error.h"

/*
 * CONNECTING: waits for TCP and for the trusted certificates in parallel.
 * HANDSHAKE: handshake records are exchanged.
 * OPEN: on_open was called.
 * ENDED: on_end was called; only on_closed is left.
 * CLOSING: by the owner; freed when the TCP stream is closed.
 *
 * mbedTLS reads from a window of the bytes that TCP delivered (`in`), and keeps
 * a partial record itself. If the owner pauses, or the handshake waits for its
 * turn, the rest of the window is copied to `rest`. TCP stays paused until
 * `rest` is used up.
 *
 * Events of TCP, the deadline and deferred calls call the owner. The functions
 * write, pause and close never do.
 */

typedef enum { CONNECTING, HANDSHAKE, OPEN, ENDED, CLOSING } tls_state_t;

typedef struct {
  tnk__stream_t base;
  tnk__net_t *net;
  tnk__stream_t *tcp;
  tls_state_t state;
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
} tls_t;

static tls_t *tls_of(const tnk__stream_t *stream) {
  return tnk__container_of(stream, tls_t, base);
}

/* ---- Writing ---- */

/*
 * One write of the owner at a time. mbedTLS takes it piece by piece and makes
 * records. They gather in `filling` while TCP writes the records in `flying`.
 * The write is complete when both are empty and nothing of it is left. If TCP
 * sent all of it inside the owner's call, the write completes at once;
 * otherwise on_written reports it.
 */

/* Encrypt no more than this ahead of TCP. One record may exceed it. */
#define AHEAD_SIZE ((size_t)64 * 1024)
#define FILLING_SIZE (2 * AHEAD_SIZE)
/* Maximum payload of a record, and its overhead. */
#define RECORD_SIZE ((size_t)16 * 1024)
#define RECORD_COST ((size_t)64)

/* Always accepts the whole record, because mbedTLS 3.6 does not read while a
 * write is blocked. encrypt() bounds `filling`. Its ceiling can be reached only
 * by a peer that makes us respond repeatedly and does not read. */
static int bio_send(void *user, const unsigned char *data, size_t n) {
  tls_t *tls = user;

  if (tnk__buf_append(&tls->filling, data, n) != TNK_OK)
    return MBEDTLS_ERR_SSL_ALLOC_FAILED;
  return (int)n;
}

static void write_failed(tls_t *tls, int cause) {
  tls->write_error = cause;
  tnk__buf_deinit(&tls->filling);
  if (tls->is_writing && tls->state == OPEN)
    tnk__defer(tls->net->context, &tls->written);
}

/* A waiting stream keeps no buffer, because many streams may wait for long. */
static void flush(tls_t *tls) {
  const tnk__buf_t empty = tls->flying;
  uv_buf_t buf;
  int n;

  if (tls->tcp_writing || tls->filling.len == 0 || tls->write_error != 0)
    return;
  tls->flying = tls->filling;
  tls->filling = empty;
  buf = uv_buf_init((char *)tls->flying.data, (unsigned)tls->flying.len);
  n = tnk__stream_write(tls->tcp, &buf, 1);
  if (n < 0)
    write_failed(tls, UV_EPIPE);
  else if (n == TNK__STREAM_WRITTEN)
    tnk__buf_deinit(&tls->flying);
  else
    tls->tcp_writing = 1;
}

/* Returns whether the system has taken all of the owner's write. */
static int is_written(const tls_t *tls) {
  return tls->is_writing && tls->at == tls->n_plain && !tls->tcp_writing &&
         tls->filling.len == 0 && tls->write_error == 0 && tls->broken == 0;
}

/* Reserve capacity for the records of the remaining write, within the limit, in
 * one step. Growing the buffer would copy it. */
static void make_room(tls_t *tls) {
  size_t n = 0;

  for (unsigned i = tls->at; i < tls->n_plain; i++)
    n += tls->plain[i].len;
  if (n > AHEAD_SIZE)
    n = AHEAD_SIZE;
  n += (n / RECORD_SIZE + 1) * RECORD_COST;
  if (n > tls->filling.cap && tls->filling.len == 0)
    (void)tnk__buf_reserve(&tls->filling, n);
}

/* Encrypt as much of the owner's write as may be ahead of TCP. */
static void encrypt(tls_t *tls) {
  tls->wants_read = 0;
  if (tls->at < tls->n_plain)
    make_room(tls);
  while (tls->state == OPEN && tls->write_error == 0 && tls->broken == 0 &&
         tls->at < tls->n_plain && tls->filling.len < AHEAD_SIZE) {
    uv_buf_t *buf = &tls->plain[tls->at];
    int n;
    if (buf->len == 0) {
      tls->at++;
      continue;
    }
    n = mbedtls_ssl_write(&tls->ssl, (const uint8_t *)buf->base, buf->len);
    /* mbedTLS must read first. read_records() then calls again with the same
     * arguments, as mbedTLS requires. */
    if (n == MBEDTLS_ERR_SSL_WANT_READ) {
      tls->wants_read = 1;
      break;
    }
    if (n < 0) {
      tls->broken = n;
      tnk__defer(tls->net->context, &tls->fail);
      break;
    }
    buf->base += n;
    buf->len -= (size_t)n;
    tls->n_taken += (uint64_t)n;
  }
  flush(tls);
}

/* Continue a write outside of the owner's call. TCP does not report bytes that
 * it took at once, so the rest of a long write waits for the next turn of the
 * loop. */
static void push(tls_t *tls) {
  encrypt(tls);
  if (tls->is_writing && !tls->tcp_writing && !tls->wants_read &&
      tls->broken == 0)
    tnk__defer(tls->net->context, &tls->written);
}

static void forget_write(tls_t *tls) {
  tnk__defer_cancel(&tls->written);
  tls->is_writing = 0;
  tls->n_plain = 0;
  tls->at = 0;
}

static void on_written(tnk__deferred_t *call) {
  tls_t *tls = tnk__container_of(call, tls_t, written);

  if (tls->write_error == 0 && !is_written(tls)) {
    push(tls);
    return;
  }
  forget_write(tls);
  tls->base.events->on_written(&tls->base, tls->write_error);
}

static void on_tcp_written(tnk__stream_t *tcp, int cause) {
  tls_t *tls = tcp->user;

  tls->tcp_writing = 0;
  if (cause != 0) {
    write_failed(tls, cause);
    return;
  }
  tnk__buf_deinit(&tls->flying);
  if (tls->state != OPEN)
    flush(tls);
  else if (is_written(tls))
    on_written(&tls->written);
  else
    push(tls);
}

static void init_write(tls_t *tls) {
  const tnk_allocator_t *alloc = &tls->net->context->alloc;

  tnk__deferred_init(&tls->written, on_written);
  tnk__buf_init(&tls->filling, alloc, FILLING_SIZE);
  tnk__buf_init(&tls->flying, alloc, FILLING_SIZE);
}

static void deinit_write(tls_t *tls) {
  tnk__buf_deinit(&tls->filling);
  tnk__buf_deinit(&tls->flying);
}

static int tls_write(tnk__stream_t *stream, const uv_buf_t *bufs,
                     unsigned n_bufs) {
  tls_t *tls = tls_of(stream);
  unsigned i;

  if (tls->state != OPEN || tls->is_writing || tls->write_error != 0 ||
      n_bufs > TNK__STREAM_MAX_BUFS)
    return TNK_ECONN;
  tls->is_writing = 1;
  for (i = 0; i < n_bufs; i++)
    tls->plain[i] = bufs[i];
  tls->n_plain = n_bufs;
  tls->at = 0;
  tls->n_taken_before = tls->n_taken;
  tls->tcp_sent_before = tnk__stream_n_sent(tls->tcp);
  push(tls);
  if (!is_written(tls))
    return TNK_OK;
  forget_write(tls);
  return TNK__STREAM_WRITTEN;
}

static uint64_t tls_n_sent(const tnk__stream_t *stream) {
  const tls_t *tls = tls_of(stream);

  if (tls->tcp == NULL || tnk__stream_n_sent(tls->tcp) == tls->tcp_sent_before)
    return tls->n_taken_before;
  return tls->n_taken;
}

/* ---- The states, and reading ---- */

/* Called on the change to ENDED and to CLOSING. */
static void stop(tls_t *tls, tls_state_t state) {
  tls->state = state;
  tnk__timer_stop(&tls->deadline);
  tnk__trust_forget(&tls->trust);
  tnk__defer_cancel(&tls->resume);
  tnk__pace_forget(&tls->step);
  tnk__defer_cancel(&tls->written);
  tnk__defer_cancel(&tls->fail);
  tls->in_len = 0;
}

static void end_with(tls_t *tls, const tnk__net_error_t *error) {
  stop(tls, ENDED);
  tnk__stream_pause(tls->tcp, 1);
  tls->base.events->on_end(&tls->base, error);
}

static void end(tls_t *tls, int code, int cause, const char *text) {
  const tnk__net_error_t error = {.code = code, .cause = cause, .text = text};

  end_with(tls, &error);
}

/* End the stream after an error of mbedTLS. */
static void end_tls(tls_t *tls, int cause) {
  char text[TNK__MAX_ERROR_TEXT];
  const tnk__net_error_t error = {
      .code =
          tnk__tls_explain(&tls->peer, &tls->ssl, cause, text, sizeof(text)),
      .cause = cause,
      .text = text,
      /* With TLS 1.3 the server rejects a client certificate after our
       * handshake is complete, but before it sends a response. */
      .is_final = !tls->has_read && tnk__tls_is_final(&tls->ssl, cause)};

  if (tls->state == HANDSHAKE)
    tnk__sessions_forget(tls->net->sessions, tls->peer.host, tls->port);
  end_with(tls, &error);
}

/* A hint for an end of the connection before any byte arrived. */
static const char *words_of_end(const tls_t *tls) {
  return tls->state == OPEN && !tls->has_read && tls->alpn != TNK__ALPN_NONE &&
                 mbedtls_ssl_get_alpn_protocol(&tls->ssl) == NULL
             ? " before it sent anything; it may support only HTTP/2"
             : "";
}

static void on_fail(tnk__deferred_t *call) {
  tls_t *tls = tnk__container_of(call, tls_t, fail);

  end_tls(tls, tls->broken);
}

static void on_deadline(tnk__timer_t *timer) {
  tls_t *tls = tnk__container_of(timer, tls_t, deadline);
  char text[TNK__MAX_ERROR_TEXT];
  const char *what = "connecting to";

  if (tls->state == HANDSHAKE)
    what = "TLS handshake with";
  else if (tls->tcp_open)
    what = "reading the trusted certificates for";
  snprintf(text, sizeof(text), "%s %s port %u%s%s took too long", what,
           tls->peer.host, (unsigned)tls->port,
           tls->via != NULL ? " through proxy " : "",
           tls->via != NULL ? tls->via->name : "");
  end(tls, TNK_ETIMEDOUT, UV_ETIMEDOUT, text);
}

static int bio_recv(void *user, unsigned char *data, size_t n) {
  tls_t *tls = user;

  if (tls->in_len == 0)
    return MBEDTLS_ERR_SSL_WANT_READ;
  if (n > tls->in_len)
    n = tls->in_len;
  memcpy(data, tls->in, n);
  tls->in += n;
  tls->in_len -= n;
  return (int)n;
}

static void set_tcp_pause(tls_t *tls) {
  int ready = tls->state == HANDSHAKE || tls->state == OPEN;

  tnk__stream_pause(tls->tcp, !ready || tls->paused || tls->rest.len > 0);
}

/* TLS 1.3 sends session tickets after the handshake, if at all. */
static int has_session(const tls_t *tls) {
#if defined(MBEDTLS_SSL_PROTO_TLS1_3) && MBEDTLS_VERSION_MAJOR >= 3
  return mbedtls_ssl_get_version_number(&tls->ssl) !=
         MBEDTLS_SSL_VERSION_TLS1_3;
#else
  (void)tls;
  return 1;
#endif
}

static void opened(tls_t *tls) {
  tnk__net_counters_t *counters = &tls->net->counters;
  int resumed = tls->peer.n_checked == 0;

  counters->n_handshakes++;
  counters->n_resumed += (uint64_t)resumed;
  if (has_session(tls))
    tnk__sessions_keep(tls->net->sessions, tls->peer.host, tls->port, &tls->ssl,
                       resumed);
  tnk__timer_stop(&tls->deadline);
  tls->state = OPEN;
  tls->base.events->on_open(&tls->base);
}

/* WANT_READ does not mean that the window is empty. */
static void shake_hands(tls_t *tls) {
  int err;

  do
    err = mbedtls_ssl_handshake(&tls->ssl);
  while (err == MBEDTLS_ERR_SSL_WANT_READ && tls->in_len > 0);
  flush(tls);
  if (err == 0)
    opened(tls);
  else if (err != MBEDTLS_ERR_SSL_WANT_READ)
    end_tls(tls, err);
}

static void end_in_order(tls_t *tls) {
  char text[TNK__MAX_ERROR_TEXT];

  snprintf(text, sizeof(text), "connection ended by the server%s",
           words_of_end(tls));
  end(tls, TNK_OK, 0, text);
}

/* Handle a result of mbedtls_ssl_read() without bytes for the owner. Returns 1
 * if mbedTLS must be called again.
 *
 * mbedTLS 3.6 returns WANT_READ when it finds a session ticket, keeps the
 * ticket, and handles it in the next call. If that call were a write, the write
 * would fail with RECEIVED_NEW_SESSION_TICKET. */
static int after_read(tls_t *tls, int n) {
  switch (n) {
  case 0: /* a record without bytes */
  case MBEDTLS_ERR_SSL_WANT_READ:
    return tls->in_len > 0 || mbedtls_ssl_check_pending(&tls->ssl);
#if defined(MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET)
  case MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET:
    tnk__sessions_keep(tls->net->sessions, tls->peer.host, tls->port, &tls->ssl,
                       tls->peer.n_checked == 0);
    return 1;
#endif
  case MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY:
    end_in_order(tls);
    return 0;
  default:
    end_tls(tls, n);
    return 0;
  }
}

static void read_records(tls_t *tls) {
  uint8_t *plain = tls->plain_buf;
  int more = 1;

  while (more && tls->state == OPEN && !tls->paused) {
    int n = mbedtls_ssl_read(&tls->ssl, plain, TNK__NET_PLAIN_SIZE);
    if (n > 0) {
      tls->has_read = 1;
      tls->base.events->on_read(&tls->base, plain, (size_t)n);
    } else {
      more = after_read(tls, n);
    }
  }
  if (tls->state == OPEN)
    push(tls);
}

static void run(tls_t *tls) {
  if (tls->state == HANDSHAKE)
    shake_hands(tls);
  if (tls->state == OPEN)
    read_records(tls);
}

static void on_tcp_read(tnk__stream_t *tcp, const uint8_t *data, size_t n) {
  tls_t *tls = tcp->user;

  tls->in = data;
  tls->in_len = n;
  if (tls->state != HANDSHAKE || tnk__pace_ask(&tls->net->pace, &tls->step))
    run(tls);
  if (tls->in_len > 0 && (tls->state == OPEN || tls->state == HANDSHAKE)) {
    if (tnk__buf_append(&tls->rest, tls->in, tls->in_len) != TNK_OK)
      end_tls(tls, MBEDTLS_ERR_SSL_ALLOC_FAILED);
    else
      set_tcp_pause(tls);
  }
  tls->in_len = 0;
}

/* Process the bytes left from when reading stopped, then resume TCP. */
static void go_on(tls_t *tls) {
  size_t n = tls->rest.len;

  tls->in = tls->rest.data;
  tls->in_len = n;
  run(tls);
  if (tls->state != OPEN && tls->state != HANDSHAKE)
    return;
  tnk__buf_consume(&tls->rest, n - tls->in_len);
  tls->in_len = 0;
  if (tls->rest.len == 0)
    tnk__buf_deinit(&tls->rest);
  set_tcp_pause(tls);
}

static void on_resume(tnk__deferred_t *call) {
  go_on(tnk__container_of(call, tls_t, resume));
}

static void on_step(tnk__pace_step_t *step) {
  go_on(tnk__container_of(step, tls_t, step));
}

static int start_handshake(tls_t *tls) {
  int err = mbedtls_ssl_setup(&tls->ssl, &tls->net->trust->configs[tls->alpn]);

  if (err != 0)
    return err;
  mbedtls_ssl_set_bio(&tls->ssl, tls, bio_send, bio_recv, NULL);
  tls->peer.trusted = &tls->net->trust->chain;
  err = tnk__peer_require(&tls->peer, &tls->ssl);
  if (err == 0)
    tnk__sessions_offer(tls->net->sessions, tls->peer.host, tls->port,
                        &tls->ssl);
  return err;
}

static void maybe_start(tls_t *tls) {
  int err;

  if (!tls->tcp_open || !tls->has_trust)
    return;
  err = start_handshake(tls);
  tls->state = HANDSHAKE;
  if (err != 0) {
    end_tls(tls, err);
    return;
  }
  set_tcp_pause(tls);
  run(tls);
}

static void on_trust(tnk__trust_waiter_t *waiter) {
  tls_t *tls = tnk__container_of(waiter, tls_t, trust);
  const tnk__trust_t *trust = tls->net->trust;
  char text[TNK__MAX_ERROR_TEXT];

  if (trust->err != TNK_OK) {
    const tnk__net_error_t error = {.code = trust->err,
                                    .cause = trust->cause,
                                    .text = text,
                                    .is_final = trust->err == TNK_EFILE};
    tnk__trust_explain(trust, text, sizeof(text));
    end_with(tls, &error);
    return;
  }
  tls->has_trust = 1;
  maybe_start(tls);
}

static void on_tcp_open(tnk__stream_t *tcp) {
  tls_t *tls = tcp->user;

  tls->tcp_open = 1;
  maybe_start(tls);
}

static void on_tcp_end(tnk__stream_t *tcp, const tnk__net_error_t *error) {
  tls_t *tls = tcp->user;
  char text[TNK__MAX_ERROR_TEXT];

  if (error->code != TNK_OK) {
    end(tls, error->code, error->cause, error->text);
    return;
  }
  /* Without close_notify, an attacker may have caused the end. */
  snprintf(text, sizeof(text), "%s port %u cut the connection off%s",
           tls->peer.host, (unsigned)tls->port,
           tls->state == OPEN ? words_of_end(tls)
                              : " during the TLS handshake");
  end(tls, TNK_ECONN, UV_EOF, text);
}

static void free_tls(tls_t *tls) {
  tnk__net_t *net = tls->net;

  mbedtls_ssl_free(&tls->ssl);
  tnk__buf_deinit(&tls->rest);
  deinit_write(tls);
  tnk__free(&net->context->alloc, tls);
  tnk__net_unref(net);
}

static void on_tcp_closed(void *user) {
  tls_t *tls = user;
  void (*on_closed)(void *) = tls->base.events->on_closed;
  void *owner = tls->base.user;

  free_tls(tls);
  if (on_closed != NULL)
    on_closed(owner);
}

static const tnk__stream_events_t tcp_events = {
    on_tcp_open, on_tcp_read, on_tcp_written, on_tcp_end, on_tcp_closed};

static void tls_pause(tnk__stream_t *stream, int paused) {
  tls_t *tls = tls_of(stream);

  tls->paused = paused;
  if (tls->state != OPEN)
    return;
  /* mbedTLS may hold bytes too, so resuming TCP does not suffice. */
  if (!paused)
    tnk__defer(tls->net->context, &tls->resume);
  else
    tnk__stream_pause(tls->tcp, 1);
}

static void tls_hold_loop(tnk__stream_t *stream, int hold) {
  tnk__stream_hold_loop(tls_of(stream)->tcp, hold);
}

static int bio_send_goodbye(void *user, const unsigned char *data, size_t n) {
  tls_t *tls = user;
  uv_buf_t buf;

  if (n > sizeof(tls->goodbye))
    return MBEDTLS_ERR_SSL_WANT_WRITE;
  memcpy(tls->goodbye, data, n);
  buf = uv_buf_init((char *)tls->goodbye, (unsigned)n);
  (void)tnk__stream_write(tls->tcp, &buf, 1);
  return (int)n;
}

/* close_notify is sent only if that is possible at once. The peer's is not
 * awaited. */
static void tls_close(tnk__stream_t *stream) {
  tls_t *tls = tls_of(stream);
  int was_open = tls->state == OPEN || tls->state == ENDED;

  if (tls->state == CLOSING)
    return;
  stop(tls, CLOSING);
  if (was_open && !tls->tcp_writing && tls->write_error == 0 &&
      tls->broken == 0) {
    mbedtls_ssl_set_bio(&tls->ssl, tls, bio_send_goodbye, bio_recv, NULL);
    (void)mbedtls_ssl_close_notify(&tls->ssl);
  }
  tnk__stream_close(tls->tcp);
}

static void tls_offer(tnk__stream_t *stream, tnk__alpn_t alpn) {
  tls_of(stream)->alpn = alpn;
}

static const char *tls_chosen(const tnk__stream_t *stream) {
  return mbedtls_ssl_get_alpn_protocol(&tls_of(stream)->ssl);
}

static const char *tls_version(const tnk__stream_t *stream) {
  return mbedtls_ssl_get_version(&tls_of(stream)->ssl);
}

static const tnk__stream_ops_t tls_ops = {tls_write,     tls_n_sent, tls_pause,
                                          tls_hold_loop, tls_close,  tls_offer,
                                          tls_chosen,    tls_version};

/* The protocol to a proxy is HTTP/1.1, independent of the server behind it. */
static const tnk__stream_ops_t carrier_ops = {.write = tls_write,
                                              .n_sent = tls_n_sent,
                                              .pause = tls_pause,
                                              .hold_loop = tls_hold_loop,
                                              .close = tls_close};

static void init(tls_t *tls, tnk__net_t *net) {
  const tnk_allocator_t *alloc = &net->context->alloc;

  tls->net = net;
  tnk__net_ref(net);
  mbedtls_ssl_init(&tls->ssl);
  tnk__list_init(&tls->trust.link);
  tnk__deferred_init(&tls->resume, on_resume);
  tnk__pace_step_init(&tls->step, on_step);
  tnk__deferred_init(&tls->fail, on_fail);
  tnk__buf_init(&tls->rest, alloc, TNK__NET_READ_SIZE);
  init_write(tls);
}

int tnk__tls_open(tnk__stream_t **out, tnk__net_t *net,
                  const tnk__origin_t *origin, const tnk__via_t *via,
                  uint64_t connect_timeout_ms, tnk__stream_opener_t below,
                  tnk__tls_place_t place, const tnk__stream_events_t *events,
                  void *user) {
  tls_t *tls;

  *out = NULL;
  if (place == TNK__TLS_CARRIER && tnk__net_reserve_carrier(net) != TNK_OK)
    return TNK_ENOMEM;
  tls = tnk__calloc(&net->context->alloc, 1, sizeof(*tls));
  if (tls == NULL)
    return TNK_ENOMEM;
  init(tls, net);
  tls->base = (tnk__stream_t){place == TNK__TLS_TOP ? &tls_ops : &carrier_ops,
                              events, user};
  tls->port = origin->port;
  /* An invalid name also fails in the look-up. */
  (void)tnk__peer_init(&tls->peer, origin->host);
  tls->via = via;
  tls->plain_buf = place == TNK__TLS_TOP ? net->plain_buf : net->carrier_buf;
  /* The deadline of this stream covers the streams below too. */
  if (below(&tls->tcp, net, origin, via, &tcp_events, tls) != TNK_OK) {
    free_tls(tls);
    return TNK_ENOMEM;
  }
  tnk__stream_pause(tls->tcp, 1);
  tnk__trust_wait(net->trust, &tls->trust, on_trust);
  if (connect_timeout_ms > 0)
    tnk__timer_start(net->context, &tls->deadline, connect_timeout_ms,
                     on_deadline);
  *out = &tls->base;
  return TNK_OK;
}
