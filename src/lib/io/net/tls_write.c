#include "lib/io/net/tls_stream.h"

#include <string.h>

#include "tnk/error.h"

/*
 * One write of the owner's at a time. mbedTLS takes it piece by piece and makes
 * records, which gather in `filling` while TCP writes those in `flying`. When
 * both are empty and nothing is left of the write, it is over: at once, if TCP
 * could send all of it inside of the owner's call, else by on_written.
 */

/* Encrypt no more ahead of TCP than this. A record may go over it. */
#define AHEAD_SIZE ((size_t)64 * 1024)
#define FILLING_SIZE (2 * AHEAD_SIZE)
/* What a record takes at most, and what is in it beside the owner's bytes. */
#define RECORD_SIZE ((size_t)16 * 1024)
#define RECORD_COST ((size_t)64)

/* Always takes all: mbedTLS 3.6 does not read while it could not write. What
 * bounds `filling` is encrypt(), and its ceiling, which only a peer that makes
 * us answer again and again without reading can reach. */
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

/* A stream that waits keeps no buffer: there may be many, and for long. */
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

/* All of the owner's write is with the system. */
static int is_written(const tnk__tls_t *tls) {
  return tls->is_writing && tls->at == tls->n_plain && !tls->tcp_writing &&
         tls->filling.len == 0 && tls->write_error == 0 && tls->broken == 0;
}

/* Make room for the records of what is left of the owner's write, or for what
 * may go ahead: at once, for they would grow by being copied. */
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

/* Encrypt as much of the owner's write as may go ahead of TCP. */
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
    /* It has to read first: read_records() calls again, with the same
     * arguments, as mbedTLS wants them. */
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

/* The same when nobody waits for a return value. What TCP has taken at once it
 * does not report, and the rest of a long write is for the next turn of the
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
