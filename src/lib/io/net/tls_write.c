#include "lib/io/net/tls_stream.h"

#include <string.h>

#include "tnk/error.h"

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
int tnk__tls_send(void *user, const unsigned char *data, size_t n) {
  tnk__tls_t *tls = user;

  if (tnk__buf_append(&tls->filling, data, n) != TNK_OK)
    return MBEDTLS_ERR_SSL_ALLOC_FAILED;
  return (int)n;
}

static void write_failed(tnk__tls_t *tls, int cause) {
  tls->write_error = cause;
  tnk__buf_deinit(&tls->filling);
  if (tls->is_writing && tls->state == TNK__TLS_OPEN)
    tnk__defer(tls->net->context, &tls->written);
}

/* A waiting stream keeps no buffer, because many streams may wait for long. */
void tnk__tls_flush(tnk__tls_t *tls) {
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

/* Whether the system has taken all of the owner's write. */
static int is_written(const tnk__tls_t *tls) {
  return tls->is_writing && tls->at == tls->n_plain && !tls->tcp_writing &&
         tls->filling.len == 0 && tls->write_error == 0 && tls->broken == 0;
}

/* Reserve capacity for the records of the remaining write, within the limit, in
 * one step. Growing the buffer would copy it. */
static void make_room(tnk__tls_t *tls) {
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
static void encrypt(tnk__tls_t *tls) {
  tls->wants_read = 0;
  if (tls->at < tls->n_plain)
    make_room(tls);
  while (tls->state == TNK__TLS_OPEN && tls->write_error == 0 &&
         tls->broken == 0 && tls->at < tls->n_plain &&
         tls->filling.len < AHEAD_SIZE) {
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
  tnk__tls_flush(tls);
}

/* Continue a write outside of the owner's call. TCP does not report bytes that
 * it took at once, so the rest of a long write waits for the next turn of the
 * loop. */
void tnk__tls_push(tnk__tls_t *tls) {
  encrypt(tls);
  if (tls->is_writing && !tls->tcp_writing && !tls->wants_read &&
      tls->broken == 0)
    tnk__defer(tls->net->context, &tls->written);
}

static void forget_write(tnk__tls_t *tls) {
  tnk__defer_cancel(&tls->written);
  tls->is_writing = 0;
  tls->n_plain = 0;
  tls->at = 0;
}

static void on_written(tnk__deferred_t *call) {
  tnk__tls_t *tls = tnk__container_of(call, tnk__tls_t, written);

  if (tls->write_error == 0 && !is_written(tls)) {
    tnk__tls_push(tls);
    return;
  }
  forget_write(tls);
  tls->base.events->on_written(&tls->base, tls->write_error);
}

void tnk__tls_on_tcp_written(tnk__stream_t *tcp, int cause) {
  tnk__tls_t *tls = tcp->user;

  tls->tcp_writing = 0;
  if (cause != 0) {
    write_failed(tls, cause);
    return;
  }
  tnk__buf_deinit(&tls->flying);
  if (tls->state != TNK__TLS_OPEN)
    tnk__tls_flush(tls);
  else if (is_written(tls))
    on_written(&tls->written);
  else
    tnk__tls_push(tls);
}

void tnk__tls_init_write(tnk__tls_t *tls) {
  const tnk_allocator_t *alloc = &tls->net->context->alloc;

  tnk__deferred_init(&tls->written, on_written);
  tnk__buf_init(&tls->filling, alloc, FILLING_SIZE);
  tnk__buf_init(&tls->flying, alloc, FILLING_SIZE);
}

void tnk__tls_deinit_write(tnk__tls_t *tls) {
  tnk__buf_deinit(&tls->filling);
  tnk__buf_deinit(&tls->flying);
}

int tnk__tls_write(tnk__stream_t *stream, const uv_buf_t *bufs,
                   unsigned n_bufs) {
  tnk__tls_t *tls = tnk__tls_of(stream);
  unsigned i;

  if (tls->state != TNK__TLS_OPEN || tls->is_writing || tls->write_error != 0 ||
      n_bufs > TNK__STREAM_MAX_BUFS)
    return TNK_ECONN;
  tls->is_writing = 1;
  for (i = 0; i < n_bufs; i++)
    tls->plain[i] = bufs[i];
  tls->n_plain = n_bufs;
  tls->at = 0;
  tls->n_taken_before = tls->n_taken;
  tls->tcp_sent_before = tnk__stream_n_sent(tls->tcp);
  tnk__tls_push(tls);
  if (!is_written(tls))
    return TNK_OK;
  forget_write(tls);
  return TNK__STREAM_WRITTEN;
}

uint64_t tnk__tls_n_sent(const tnk__stream_t *stream) {
  const tnk__tls_t *tls = tnk__tls_of(stream);

  if (tls->tcp == NULL || tnk__stream_n_sent(tls->tcp) == tls->tcp_sent_before)
    return tls->n_taken_before;
  return tls->n_taken;
}
