/* SPDX-License-Identifier: MIT */
#include "gateway/store/resp.h"

#include <stdio.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/limits.h"
#include "lib/io/net/net.h"
#include "lib/io/net/stream.h"
#include "tnk/error.h"

/* Commands wait in `ready` while `busy` is being written, a part at a time. */
enum { KEEP_CAPACITY = 1 << 20, MAX_HEARD = 4096, MAX_WRITE = 256 << 10 };

struct tnk__gw_resp {
  tnk__gw_resp_options_t options;
  tnk_allocator_t alloc;
  tnk__stream_t *stream;
  redisReader *reader;
  size_t n_partial; /* bytes since the last whole reply */
  tnk__buf_t ready;
  tnk__buf_t busy;
  size_t n_written; /* bytes of `busy` */
  size_t n_writing; /* bytes of the part that is being written */
  uint64_t n_moved;
  tnk__buf_t tags; /* of the commands from n_heard on, replies are due */
  size_t n_heard;
  int is_writing;
  int is_open;
  int has_replied;
  int is_lost;
  int is_closing;
};

static void free_resp(tnk__gw_resp_t *resp) {
  tnk_allocator_t alloc = resp->alloc;

  if (resp->reader != NULL)
    redisReaderFree(resp->reader);
  tnk__buf_deinit(&resp->ready);
  tnk__buf_deinit(&resp->busy);
  tnk__buf_deinit(&resp->tags);
  tnk__free(&alloc, resp);
}

static void on_closed(void *user) {
  tnk__gw_resp_t *resp = user;
  void (*closed)(void *) = resp->options.on_closed;
  void *closed_user = resp->options.user;

  free_resp(resp);
  closed(closed_user);
}

static void lose(tnk__gw_resp_t *resp, int code, const char *why) {
  if (resp->is_closing || resp->is_lost)
    return;
  resp->is_lost = 1;
  resp->options.on_lost(resp->options.user, code, why);
}

/* The same for an error that the other kind of address may cure. */
static void lose_with_hint(tnk__gw_resp_t *resp, int code, const char *why) {
  char text[TNK__MAX_ERROR_TEXT];

  if (resp->has_replied) {
    lose(resp, code, why);
    return;
  }
  (void)snprintf(text, sizeof(text), "%s; the address of a server %s TLS %s",
                 why, resp->options.is_tls ? "without" : "with",
                 resp->options.is_tls ? "begins with valkey://"
                                      : "begins with valkeys://");
  lose(resp, code, text);
}

void tnk__gw_resp_close(tnk__gw_resp_t *resp) {
  if (resp->is_closing)
    return;
  resp->is_closing = 1;
  tnk__stream_close(resp->stream);
}

/* ---- Writing ---- */

static void written(tnk__gw_resp_t *resp) {
  resp->is_writing = 0;
  resp->n_moved += resp->n_writing;
  resp->n_written += resp->n_writing;
  if (resp->n_written < resp->busy.len)
    return;
  resp->n_written = 0;
  if (resp->busy.cap > KEEP_CAPACITY)
    tnk__buf_deinit(&resp->busy);
  else
    tnk__buf_clear(&resp->busy);
}

/* Returns whether there is a next part. */
static int begin_part(tnk__gw_resp_t *resp) {
  size_t left;

  if (resp->busy.len == 0) {
    tnk__buf_t ready = resp->ready;

    resp->ready = resp->busy;
    resp->busy = ready;
  }
  left = resp->busy.len - resp->n_written;
  resp->n_writing = left < MAX_WRITE ? left : MAX_WRITE;
  return left > 0;
}

static void flush(tnk__gw_resp_t *resp) {
  while (!resp->is_writing && resp->is_open && !resp->is_closing &&
         !resp->is_lost && begin_part(resp)) {
    uv_buf_t buf = uv_buf_init((char *)resp->busy.data + resp->n_written,
                               (unsigned)resp->n_writing);

    resp->is_writing = 1;
    /* After an error on_end() follows. */
    if (tnk__stream_write(resp->stream, &buf, 1) == TNK__STREAM_WRITTEN)
      written(resp);
  }
}

static void on_written(tnk__stream_t *stream, int cause) {
  tnk__gw_resp_t *resp = stream->user;

  written(resp);
  /* After a failure on_end() says why. */
  if (cause == 0)
    flush(resp);
}

static void forget_heard(tnk__gw_resp_t *resp) {
  tnk__buf_consume(&resp->tags, resp->n_heard * sizeof(tnk__gw_tag_t));
  resp->n_heard = 0;
}

int tnk__gw_resp_send(tnk__gw_resp_t *resp, const tnk__gw_tag_t *tag,
                      const void *data, size_t n) {
  if (tnk__gw_resp_n_due(resp) == 0 || resp->n_heard >= MAX_HEARD)
    forget_heard(resp);
  if (tnk__buf_append(&resp->tags, tag, sizeof(*tag)) != TNK_OK ||
      tnk__buf_append(&resp->ready, data, n) != TNK_OK)
    return TNK_ENOMEM;
  flush(resp);
  return TNK_OK;
}

size_t tnk__gw_resp_n_due(const tnk__gw_resp_t *resp) {
  return resp->tags.len / sizeof(tnk__gw_tag_t) - resp->n_heard;
}

uint64_t tnk__gw_resp_n_moved(const tnk__gw_resp_t *resp) {
  return resp->n_moved;
}

/* ---- Reading ---- */

/* Returns whether the connection is still open. */
static int take_reply(tnk__gw_resp_t *resp, const redisReply *reply) {
  const tnk__gw_tag_t *tags = (const void *)resp->tags.data;
  tnk__gw_tag_t tag = {0};
  int has_tag = tnk__gw_resp_n_due(resp) > 0;

  /* A command that is sent meanwhile may move the tags. */
  if (has_tag)
    tag = tags[resp->n_heard++];
  return resp->options.on_reply(resp->options.user, has_tag ? &tag : NULL,
                                reply) == 0 &&
         !resp->is_closing;
}

/* Returns whether the connection is still open. */
static int take_replies(tnk__gw_resp_t *resp) {
  for (;;) {
    void *reply = NULL;
    int is_open;

    if (redisReaderGetReply(resp->reader, &reply) != REDIS_OK) {
      lose_with_hint(resp, TNK_EFILE, "the answer is not of Valkey or Redis");
      return 0;
    }
    if (reply == NULL)
      return 1;
    resp->has_replied = 1;
    resp->n_partial = resp->reader->len - resp->reader->pos;
    is_open = take_reply(resp, reply);
    freeReplyObject(reply);
    if (!is_open)
      return 0;
  }
}

static void on_read(tnk__stream_t *stream, const uint8_t *data, size_t n) {
  tnk__gw_resp_t *resp = stream->user;

  if (resp->is_lost || resp->is_closing)
    return;
  if (redisReaderFeed(resp->reader, (const char *)data, n) != REDIS_OK) {
    lose(resp, TNK_ENOMEM, "out of memory");
    return;
  }
  resp->n_partial += n;
  resp->n_moved += n;
  if (take_replies(resp) && resp->n_partial > resp->options.max_reply)
    lose(resp, TNK_ETOOBIG, "a reply is too long");
}

/* ---- Opening ---- */

static void on_open(tnk__stream_t *stream) {
  tnk__gw_resp_t *resp = stream->user;

  resp->is_open = 1;
  resp->options.on_open(resp->options.user);
  flush(resp);
}

static void on_end(tnk__stream_t *stream, const tnk__net_error_t *error) {
  tnk__gw_resp_t *resp = stream->user;
  int code = error->code;

  if (code == TNK_OK)
    lose_with_hint(resp, TNK_ECONN, "the connection was closed");
  else if (resp->is_open ? code == TNK_ECONN
                         : resp->options.is_tls &&
                               (code == TNK_ETLS || code == TNK_ETIMEDOUT))
    lose_with_hint(resp, code, error->text);
  else
    lose(resp, code, error->text);
}

int tnk__gw_resp_open(tnk__gw_resp_t **out,
                      const tnk__gw_resp_options_t *options) {
  static const tnk__stream_events_t events = {.on_open = on_open,
                                              .on_read = on_read,
                                              .on_written = on_written,
                                              .on_end = on_end,
                                              .on_closed = on_closed};
  const tnk__origin_t origin = {options->host, options->port, options->is_tls};
  tnk__gw_resp_t *resp = tnk__calloc(options->alloc, 1, sizeof(*resp));

  *out = NULL;
  if (resp == NULL)
    return TNK_ENOMEM;
  resp->options = *options;
  resp->alloc = *options->alloc;
  tnk__buf_init(&resp->ready, &resp->alloc, SIZE_MAX);
  tnk__buf_init(&resp->busy, &resp->alloc, SIZE_MAX);
  tnk__buf_init(&resp->tags, &resp->alloc, SIZE_MAX);
  resp->reader = redisReaderCreate();
  if (resp->reader == NULL ||
      tnk__stream_open(&resp->stream, options->net, &origin, NULL,
                       options->connect_ms, &events, resp) != TNK_OK) {
    free_resp(resp);
    return TNK_ENOMEM;
  }
  tnk__stream_offer(resp->stream, TNK__ALPN_NONE);
  *out = resp;
  return TNK_OK;
}

int tnk__gw_resp_is_open(const tnk__gw_resp_t *resp) {
  return resp->is_open;
}
