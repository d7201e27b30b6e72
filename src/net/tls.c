#include "net/tls.h"

#include <mbedtls/version.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/limits.h"
#include "net/peer.h"
#include "net/sessions.h"
#include "net/tcp.h"
#include "net/tls_error.h"
#include "net/trust.h"
#include "tnk/error.h"

/*
 * CONNECTING: waits for TCP and for the trusted certificates, side by side.
 * HANDSHAKE: records go to and fro.
 * OPEN: on_open was told.
 * ENDED: on_end was told; only on_closed is left.
 * CLOSING: by the owner; freed when the TCP stream is gone.
 *
 * mbedTLS reads from a window into the bytes that TCP delivered (`in`), and
 * keeps a partial record itself. What the window holds when the owner pauses,
 * or when the handshake has to wait for its turn, is copied to `rest`, and TCP
 * stays paused until that is used up. Records to
 * send gather in `filling` while TCP writes those in `flying`.
 *
 * TCP's events, the deadline and deferred calls call out; write, pause and
 * close do not.
 */
typedef enum { CONNECTING, HANDSHAKE, OPEN, ENDED, CLOSING } state_t;

/* Encrypt no more ahead of TCP than this. A record may go over it. */
#define AHEAD_SIZE ((size_t)64 * 1024)
#define FILLING_SIZE (2 * AHEAD_SIZE)
/* An idle stream keeps no larger buffer than this. */
#define IDLE_SIZE ((size_t)4 * 1024)

typedef struct {
  tnk__stream_t base;
  tnk__net_t *net;
  tnk__stream_t *tcp;
  state_t state;
  int tcp_open;
  int has_trust;
  tnk__trust_waiter_t trust;
  tnk__timer_t deadline;
  tnk__peer_t peer;
  uint16_t port;
  mbedtls_ssl_context ssl;
  const uint8_t *in;
  size_t in_len;
  tnk__buf_t rest;
  int paused;
  tnk__deferred_t resume;
  tnk__pace_step_t step; /* of the handshake, when it is not our turn */
  tnk__buf_t filling;
  tnk__buf_t flying;
  int tcp_writing;
  /* The owner's write: what mbedTLS has not taken yet. */
  uv_buf_t plain[TNK__STREAM_MAX_BUFS];
  unsigned n_plain;
  unsigned at;
  int is_writing;
  int write_error; /* libuv's code, for ever */
  tnk__deferred_t written;
  /* The owner's bytes that mbedTLS took; those of the latest write count only
   * once TCP has sent something since it began. */
  uint64_t n_taken;
  uint64_t n_taken_before;
  uint64_t tcp_sent_before;
  int broken; /* mbedTLS's code while `fail` is due */
  tnk__deferred_t fail;
  uint8_t goodbye[128]; /* so that closing allocates nothing */
} tls_t;

static tls_t *tls_of(const tnk__stream_t *stream) {
  return tnk__container_of(stream, tls_t, base);
}

/* Both ways of leaving the living states go through here. */
static void stop(tls_t *tls, state_t state) {
  tls->state = state;
  tnk__timer_stop(&tls->deadline);
  tnk__trust_forget(&tls->trust);
  tnk__defer_cancel(&tls->resume);
  tnk__pace_forget(&tls->step);
  tnk__defer_cancel(&tls->written);
  tnk__defer_cancel(&tls->fail);
  tls->in_len = 0;
}

static void end(tls_t *tls, int code, int cause, const char *text) {
  const tnk__net_error_t error = {code, cause, text};

  stop(tls, ENDED);
  tnk__stream_pause(tls->tcp, 1);
  tls->base.events->on_end(&tls->base, &error);
}

/* End because of what mbedTLS says. */
static void end_tls(tls_t *tls, int cause) {
  char text[TNK__MAX_ERROR_TEXT];
  int code = tnk__tls_explain(&tls->peer, &tls->ssl, cause, text, sizeof(text));

  if (tls->state == HANDSHAKE)
    tnk__sessions_forget(tls->net->sessions, tls->peer.host, tls->port);
  end(tls, code, cause, text);
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
  snprintf(text, sizeof(text), "%s %s port %u took too long", what,
           tls->peer.host, (unsigned)tls->port);
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

/* Always takes all: mbedTLS 3.6 does not read while it could not write. What
 * bounds `filling` is push(), and its ceiling, which only a peer that makes us
 * answer again and again without reading can reach. */
static int bio_send(void *user, const unsigned char *data, size_t n) {
  tls_t *tls = user;

  if (tnk__buf_append(&tls->filling, data, n) != TNK_OK)
    return MBEDTLS_ERR_SSL_ALLOC_FAILED;
  return (int)n;
}

static void write_failed(tls_t *tls, int cause) {
  tls->write_error = cause;
  tnk__buf_deinit(&tls->filling);
  if (tls->is_writing)
    tnk__defer(tls->net->loop, &tls->written);
}

/* Hand the records that gathered to TCP. */
static void flush(tls_t *tls) {
  tnk__buf_t flown = tls->flying;
  uv_buf_t buf;

  if (tls->tcp_writing || tls->filling.len == 0 || tls->write_error != 0)
    return;
  tls->flying = tls->filling;
  tls->filling = flown;
  tnk__buf_clear(&tls->filling);
  buf = uv_buf_init((char *)tls->flying.data, (unsigned)tls->flying.len);
  if (tnk__stream_write(tls->tcp, &buf, 1) == TNK_OK)
    tls->tcp_writing = 1;
  else
    write_failed(tls, UV_EPIPE);
}

/* Encrypt as much of the owner's write as may go ahead of TCP. */
static void push(tls_t *tls) {
  while (tls->state == OPEN && tls->write_error == 0 && tls->broken == 0 &&
         tls->at < tls->n_plain && tls->filling.len < AHEAD_SIZE) {
    uv_buf_t *buf = &tls->plain[tls->at];
    int n;
    if (buf->len == 0) {
      tls->at++;
      continue;
    }
    n = mbedtls_ssl_write(&tls->ssl, (const uint8_t *)buf->base, buf->len);
    /* It has to read first: read_records() calls again, with the same
     * arguments, as mbedTLS wants them. */
    if (n == MBEDTLS_ERR_SSL_WANT_READ)
      break;
    if (n < 0) {
      tls->broken = n;
      tnk__defer(tls->net->loop, &tls->fail);
      break;
    }
    buf->base += n;
    buf->len -= (size_t)n;
    tls->n_taken += (uint64_t)n;
  }
  flush(tls);
}

static void set_tcp_pause(tls_t *tls) {
  int ready = tls->state == HANDSHAKE || tls->state == OPEN;

  tnk__stream_pause(tls->tcp, !ready || tls->paused || tls->rest.len > 0);
}

/* TLS 1.3 gives its tickets after the handshake, if at all. */
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

/* What mbedtls_ssl_read() says when there is nothing for the owner; 1: go on.
 */
static int after_read(tls_t *tls, int n) {
  switch (n) {
  case 0: /* a record without bytes */
  case MBEDTLS_ERR_SSL_WANT_READ:
    return tls->in_len > 0;
#if defined(MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET)
  case MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET:
    tnk__sessions_keep(tls->net->sessions, tls->peer.host, tls->port, &tls->ssl,
                       tls->peer.n_checked == 0);
    return 1;
#endif
  case MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY:
    end(tls, TNK_OK, 0, "connection ended by the server");
    return 0;
  default:
    end_tls(tls, n);
    return 0;
  }
}

static void read_records(tls_t *tls) {
  uint8_t *plain = tls->net->plain_buf;
  int more = 1;

  while (more && tls->state == OPEN && !tls->paused) {
    int n = mbedtls_ssl_read(&tls->ssl, plain, TNK__NET_PLAIN_SIZE);
    if (n > 0)
      tls->base.events->on_read(&tls->base, plain, (size_t)n);
    else
      more = after_read(tls, n);
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

/* Go on with what was left when reading stopped, then with TCP. */
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
  int err = mbedtls_ssl_setup(&tls->ssl, &tls->net->trust->config);

  if (err != 0)
    return err;
  mbedtls_ssl_set_bio(&tls->ssl, tls, bio_send, bio_recv, NULL);
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
    snprintf(text, sizeof(text), "cannot use the trusted certificates in %s",
             tnk__trust_file(trust));
    end(tls, trust->err, trust->cause, text);
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

static void finish_write(tls_t *tls, int cause) {
  tnk__defer_cancel(&tls->written);
  tls->is_writing = 0;
  tls->n_plain = 0;
  tls->at = 0;
  tls->base.events->on_written(&tls->base, cause);
}

static void on_written(tnk__deferred_t *call) {
  tls_t *tls = tnk__container_of(call, tls_t, written);

  finish_write(tls, tls->write_error);
}

static void trim(tnk__buf_t *buf) {
  if (buf->cap > IDLE_SIZE)
    tnk__buf_deinit(buf);
  else
    tnk__buf_clear(buf);
}

static void on_tcp_written(tnk__stream_t *tcp, int cause) {
  tls_t *tls = tcp->user;

  tls->tcp_writing = 0;
  if (cause != 0) {
    write_failed(tls, cause);
    return;
  }
  push(tls);
  if (tls->tcp_writing || tls->state != OPEN || tls->broken != 0)
    return;
  trim(&tls->filling);
  trim(&tls->flying);
  if (tls->is_writing && tls->write_error == 0)
    finish_write(tls, 0);
}

static void on_tcp_end(tnk__stream_t *tcp, const tnk__net_error_t *error) {
  tls_t *tls = tcp->user;
  char text[TNK__MAX_ERROR_TEXT];

  if (error->code != TNK_OK) {
    end(tls, error->code, error->cause, error->text);
    return;
  }
  /* Without TLS's goodbye the end may be an attacker's. */
  snprintf(text, sizeof(text), "%s port %u cut the connection off%s",
           tls->peer.host, (unsigned)tls->port,
           tls->state == OPEN ? "" : " during the TLS handshake");
  end(tls, TNK_ECONN, UV_EOF, text);
}

static void free_tls(tls_t *tls) {
  tnk__net_t *net = tls->net;

  mbedtls_ssl_free(&tls->ssl);
  tnk__buf_deinit(&tls->rest);
  tnk__buf_deinit(&tls->filling);
  tnk__buf_deinit(&tls->flying);
  tnk__free(&net->loop->alloc, tls);
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
  /* Nothing to send at all: TCP will not report back. */
  if (!tls->tcp_writing && tls->broken == 0)
    tnk__defer(tls->net->loop, &tls->written);
  return TNK_OK;
}

static uint64_t tls_n_sent(const tnk__stream_t *stream) {
  const tls_t *tls = tls_of(stream);

  if (tls->tcp == NULL || tnk__stream_n_sent(tls->tcp) == tls->tcp_sent_before)
    return tls->n_taken_before;
  return tls->n_taken;
}

static void tls_pause(tnk__stream_t *stream, int paused) {
  tls_t *tls = tls_of(stream);

  tls->paused = paused;
  if (tls->state != OPEN)
    return;
  /* mbedTLS may hold bytes too, so going on is more than TCP's matter. */
  if (!paused)
    tnk__defer(tls->net->loop, &tls->resume);
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

/* The goodbye is sent if it can be sent at once, in good order; nobody waits
 * for the peer's. */
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

static const tnk__stream_ops_t tls_ops = {tls_write, tls_n_sent, tls_pause,
                                          tls_hold_loop, tls_close};

static void init(tls_t *tls, tnk__net_t *net) {
  const tnk_allocator_t *alloc = &net->loop->alloc;

  tls->net = net;
  tnk__net_ref(net);
  mbedtls_ssl_init(&tls->ssl);
  tnk__list_init(&tls->trust.link);
  tnk__deferred_init(&tls->resume, on_resume);
  tnk__pace_step_init(&tls->step, on_step);
  tnk__deferred_init(&tls->written, on_written);
  tnk__deferred_init(&tls->fail, on_fail);
  tnk__buf_init(&tls->rest, alloc, TNK__NET_READ_SIZE);
  tnk__buf_init(&tls->filling, alloc, FILLING_SIZE);
  tnk__buf_init(&tls->flying, alloc, FILLING_SIZE);
}

int tnk__tls_open(tnk__stream_t **out, tnk__net_t *net,
                  const tnk__origin_t *origin, uint64_t connect_timeout_ms,
                  const tnk__stream_events_t *events, void *user) {
  tls_t *tls = tnk__calloc(&net->loop->alloc, 1, sizeof(*tls));

  *out = NULL;
  if (tls == NULL)
    return TNK_ENOMEM;
  init(tls, net);
  tls->base = (tnk__stream_t){&tls_ops, events, user};
  tls->port = origin->port;
  /* A name that cannot be one fails in the look-up as well. */
  (void)tnk__peer_init(&tls->peer, origin->host);
  /* Our deadline covers TCP too. */
  if (tnk__tcp_open(&tls->tcp, net, origin, 0, &tcp_events, tls) != TNK_OK) {
    free_tls(tls);
    return TNK_ENOMEM;
  }
  tnk__stream_pause(tls->tcp, 1);
  tnk__trust_wait(net->trust, &tls->trust, on_trust);
  if (connect_timeout_ms > 0)
    tnk__timer_start(net->loop, &tls->deadline, connect_timeout_ms,
                     on_deadline);
  *out = &tls->base;
  return TNK_OK;
}
