#include "lib/io/net/tls.h"

#include <mbedtls/version.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/io/net/sessions.h"
#include "lib/io/net/tls_error.h"
#include "lib/io/net/tls_stream.h"
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
 * `rest` is used up. tls_write.c handles output.
 *
 * Events of TCP, the deadline and deferred calls call the owner. The functions
 * write, pause and close never do.
 */

/* Called on the change to ENDED and to CLOSING. */
static void stop(tnk__tls_t *tls, tnk__tls_state_t state) {
  tls->state = state;
  tnk__timer_stop(&tls->deadline);
  tnk__trust_forget(&tls->trust);
  tnk__defer_cancel(&tls->resume);
  tnk__pace_forget(&tls->step);
  tnk__defer_cancel(&tls->written);
  tnk__defer_cancel(&tls->fail);
  tls->in_len = 0;
}

static void end_with(tnk__tls_t *tls, const tnk__net_error_t *error) {
  stop(tls, TNK__TLS_ENDED);
  tnk__stream_pause(tls->tcp, 1);
  tls->base.events->on_end(&tls->base, error);
}

static void end(tnk__tls_t *tls, int code, int cause, const char *text) {
  const tnk__net_error_t error = {.code = code, .cause = cause, .text = text};

  end_with(tls, &error);
}

/* End the stream after an error of mbedTLS. */
static void end_tls(tnk__tls_t *tls, int cause) {
  char text[TNK__MAX_ERROR_TEXT];
  const tnk__net_error_t error = {
      .code =
          tnk__tls_explain(&tls->peer, &tls->ssl, cause, text, sizeof(text)),
      .cause = cause,
      .text = text,
      /* With TLS 1.3 the server rejects a client certificate after our
       * handshake is complete, but before it sends a response. */
      .is_final = !tls->has_read && tnk__tls_is_final(&tls->ssl, cause)};

  if (tls->state == TNK__TLS_HANDSHAKE)
    tnk__sessions_forget(tls->net->sessions, tls->peer.host, tls->port);
  end_with(tls, &error);
}

/* A hint for an end of the connection before any byte arrived. */
static const char *words_of_end(const tnk__tls_t *tls) {
  return tls->state == TNK__TLS_OPEN && !tls->has_read &&
                 mbedtls_ssl_get_alpn_protocol(&tls->ssl) == NULL
             ? " before it said anything; it may speak HTTP/2 only"
             : "";
}

static void on_fail(tnk__deferred_t *call) {
  tnk__tls_t *tls = tnk__container_of(call, tnk__tls_t, fail);

  end_tls(tls, tls->broken);
}

static void on_deadline(tnk__timer_t *timer) {
  tnk__tls_t *tls = tnk__container_of(timer, tnk__tls_t, deadline);
  char text[TNK__MAX_ERROR_TEXT];
  const char *what = "connecting to";

  if (tls->state == TNK__TLS_HANDSHAKE)
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
  tnk__tls_t *tls = user;

  if (tls->in_len == 0)
    return MBEDTLS_ERR_SSL_WANT_READ;
  if (n > tls->in_len)
    n = tls->in_len;
  memcpy(data, tls->in, n);
  tls->in += n;
  tls->in_len -= n;
  return (int)n;
}

static void set_tcp_pause(tnk__tls_t *tls) {
  int ready = tls->state == TNK__TLS_HANDSHAKE || tls->state == TNK__TLS_OPEN;

  tnk__stream_pause(tls->tcp, !ready || tls->paused || tls->rest.len > 0);
}

/* TLS 1.3 sends session tickets after the handshake, if at all. */
static int has_session(const tnk__tls_t *tls) {
#if defined(MBEDTLS_SSL_PROTO_TLS1_3) && MBEDTLS_VERSION_MAJOR >= 3
  return mbedtls_ssl_get_version_number(&tls->ssl) !=
         MBEDTLS_SSL_VERSION_TLS1_3;
#else
  (void)tls;
  return 1;
#endif
}

static void opened(tnk__tls_t *tls) {
  tnk__net_counters_t *counters = &tls->net->counters;
  int resumed = tls->peer.n_checked == 0;

  counters->n_handshakes++;
  counters->n_resumed += (uint64_t)resumed;
  if (has_session(tls))
    tnk__sessions_keep(tls->net->sessions, tls->peer.host, tls->port, &tls->ssl,
                       resumed);
  tnk__timer_stop(&tls->deadline);
  tls->state = TNK__TLS_OPEN;
  tls->base.events->on_open(&tls->base);
}

/* WANT_READ does not mean that the window is empty. */
static void shake_hands(tnk__tls_t *tls) {
  int err;

  do
    err = mbedtls_ssl_handshake(&tls->ssl);
  while (err == MBEDTLS_ERR_SSL_WANT_READ && tls->in_len > 0);
  tnk__tls_flush(tls);
  if (err == 0)
    opened(tls);
  else if (err != MBEDTLS_ERR_SSL_WANT_READ)
    end_tls(tls, err);
}

static void end_in_order(tnk__tls_t *tls) {
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
static int after_read(tnk__tls_t *tls, int n) {
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

static void read_records(tnk__tls_t *tls) {
  uint8_t *plain = tls->plain_buf;
  int more = 1;

  while (more && tls->state == TNK__TLS_OPEN && !tls->paused) {
    int n = mbedtls_ssl_read(&tls->ssl, plain, TNK__NET_PLAIN_SIZE);
    if (n > 0) {
      tls->has_read = 1;
      tls->base.events->on_read(&tls->base, plain, (size_t)n);
    } else {
      more = after_read(tls, n);
    }
  }
  if (tls->state == TNK__TLS_OPEN)
    tnk__tls_push(tls);
}

static void run(tnk__tls_t *tls) {
  if (tls->state == TNK__TLS_HANDSHAKE)
    shake_hands(tls);
  if (tls->state == TNK__TLS_OPEN)
    read_records(tls);
}

static void on_tcp_read(tnk__stream_t *tcp, const uint8_t *data, size_t n) {
  tnk__tls_t *tls = tcp->user;

  tls->in = data;
  tls->in_len = n;
  if (tls->state != TNK__TLS_HANDSHAKE ||
      tnk__pace_ask(&tls->net->pace, &tls->step))
    run(tls);
  if (tls->in_len > 0 &&
      (tls->state == TNK__TLS_OPEN || tls->state == TNK__TLS_HANDSHAKE)) {
    if (tnk__buf_append(&tls->rest, tls->in, tls->in_len) != TNK_OK)
      end_tls(tls, MBEDTLS_ERR_SSL_ALLOC_FAILED);
    else
      set_tcp_pause(tls);
  }
  tls->in_len = 0;
}

/* Process the bytes left from when reading stopped, then resume TCP. */
static void go_on(tnk__tls_t *tls) {
  size_t n = tls->rest.len;

  tls->in = tls->rest.data;
  tls->in_len = n;
  run(tls);
  if (tls->state != TNK__TLS_OPEN && tls->state != TNK__TLS_HANDSHAKE)
    return;
  tnk__buf_consume(&tls->rest, n - tls->in_len);
  tls->in_len = 0;
  if (tls->rest.len == 0)
    tnk__buf_deinit(&tls->rest);
  set_tcp_pause(tls);
}

static void on_resume(tnk__deferred_t *call) {
  go_on(tnk__container_of(call, tnk__tls_t, resume));
}

static void on_step(tnk__pace_step_t *step) {
  go_on(tnk__container_of(step, tnk__tls_t, step));
}

static int start_handshake(tnk__tls_t *tls) {
  int err = mbedtls_ssl_setup(&tls->ssl, &tls->net->trust->configs[tls->alpn]);

  if (err != 0)
    return err;
  mbedtls_ssl_set_bio(&tls->ssl, tls, tnk__tls_send, bio_recv, NULL);
  tls->peer.trusted = &tls->net->trust->chain;
  err = tnk__peer_require(&tls->peer, &tls->ssl);
  if (err == 0)
    tnk__sessions_offer(tls->net->sessions, tls->peer.host, tls->port,
                        &tls->ssl);
  return err;
}

static void maybe_start(tnk__tls_t *tls) {
  int err;

  if (!tls->tcp_open || !tls->has_trust)
    return;
  err = start_handshake(tls);
  tls->state = TNK__TLS_HANDSHAKE;
  if (err != 0) {
    end_tls(tls, err);
    return;
  }
  set_tcp_pause(tls);
  run(tls);
}

static void on_trust(tnk__trust_waiter_t *waiter) {
  tnk__tls_t *tls = tnk__container_of(waiter, tnk__tls_t, trust);
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
  tnk__tls_t *tls = tcp->user;

  tls->tcp_open = 1;
  maybe_start(tls);
}

static void on_tcp_end(tnk__stream_t *tcp, const tnk__net_error_t *error) {
  tnk__tls_t *tls = tcp->user;
  char text[TNK__MAX_ERROR_TEXT];

  if (error->code != TNK_OK) {
    end(tls, error->code, error->cause, error->text);
    return;
  }
  /* Without close_notify, an attacker may have caused the end. */
  snprintf(text, sizeof(text), "%s port %u cut the connection off%s",
           tls->peer.host, (unsigned)tls->port,
           tls->state == TNK__TLS_OPEN ? words_of_end(tls)
                                       : " during the TLS handshake");
  end(tls, TNK_ECONN, UV_EOF, text);
}

static void free_tls(tnk__tls_t *tls) {
  tnk__net_t *net = tls->net;

  mbedtls_ssl_free(&tls->ssl);
  tnk__buf_deinit(&tls->rest);
  tnk__tls_deinit_write(tls);
  tnk__free(&net->context->alloc, tls);
  tnk__net_unref(net);
}

static void on_tcp_closed(void *user) {
  tnk__tls_t *tls = user;
  void (*on_closed)(void *) = tls->base.events->on_closed;
  void *owner = tls->base.user;

  free_tls(tls);
  if (on_closed != NULL)
    on_closed(owner);
}

static const tnk__stream_events_t tcp_events = {on_tcp_open, on_tcp_read,
                                                tnk__tls_on_tcp_written,
                                                on_tcp_end, on_tcp_closed};

static void tls_pause(tnk__stream_t *stream, int paused) {
  tnk__tls_t *tls = tnk__tls_of(stream);

  tls->paused = paused;
  if (tls->state != TNK__TLS_OPEN)
    return;
  /* mbedTLS may hold bytes too, so resuming TCP does not suffice. */
  if (!paused)
    tnk__defer(tls->net->context, &tls->resume);
  else
    tnk__stream_pause(tls->tcp, 1);
}

static void tls_hold_loop(tnk__stream_t *stream, int hold) {
  tnk__stream_hold_loop(tnk__tls_of(stream)->tcp, hold);
}

static int bio_send_goodbye(void *user, const unsigned char *data, size_t n) {
  tnk__tls_t *tls = user;
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
  tnk__tls_t *tls = tnk__tls_of(stream);
  int was_open = tls->state == TNK__TLS_OPEN || tls->state == TNK__TLS_ENDED;

  if (tls->state == TNK__TLS_CLOSING)
    return;
  stop(tls, TNK__TLS_CLOSING);
  if (was_open && !tls->tcp_writing && tls->write_error == 0 &&
      tls->broken == 0) {
    mbedtls_ssl_set_bio(&tls->ssl, tls, bio_send_goodbye, bio_recv, NULL);
    (void)mbedtls_ssl_close_notify(&tls->ssl);
  }
  tnk__stream_close(tls->tcp);
}

static void tls_offer(tnk__stream_t *stream, tnk__alpn_t alpn) {
  tnk__tls_of(stream)->alpn = alpn;
}

static const char *tls_chosen(const tnk__stream_t *stream) {
  return mbedtls_ssl_get_alpn_protocol(&tnk__tls_of(stream)->ssl);
}

static const char *tls_version(const tnk__stream_t *stream) {
  return mbedtls_ssl_get_version(&tnk__tls_of(stream)->ssl);
}

static const tnk__stream_ops_t tls_ops = {
    tnk__tls_write, tnk__tls_n_sent, tls_pause,  tls_hold_loop,
    tls_close,      tls_offer,       tls_chosen, tls_version};

/* The protocol to a proxy is HTTP/1.1, independent of the server behind it. */
static const tnk__stream_ops_t carrier_ops = {.write = tnk__tls_write,
                                              .n_sent = tnk__tls_n_sent,
                                              .pause = tls_pause,
                                              .hold_loop = tls_hold_loop,
                                              .close = tls_close};

static void init(tnk__tls_t *tls, tnk__net_t *net) {
  const tnk_allocator_t *alloc = &net->context->alloc;

  tls->net = net;
  tnk__net_ref(net);
  mbedtls_ssl_init(&tls->ssl);
  tnk__list_init(&tls->trust.link);
  tnk__deferred_init(&tls->resume, on_resume);
  tnk__pace_step_init(&tls->step, on_step);
  tnk__deferred_init(&tls->fail, on_fail);
  tnk__buf_init(&tls->rest, alloc, TNK__NET_READ_SIZE);
  tnk__tls_init_write(tls);
}

int tnk__tls_open(tnk__stream_t **out, tnk__net_t *net,
                  const tnk__origin_t *origin, const tnk__via_t *via,
                  uint64_t connect_timeout_ms, tnk__stream_opener_t below,
                  tnk__tls_place_t place, const tnk__stream_events_t *events,
                  void *user) {
  tnk__tls_t *tls = tnk__calloc(&net->context->alloc, 1, sizeof(*tls));

  *out = NULL;
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
