/* SPDX-License-Identifier: MIT */
#include "gateway/record/resp.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/list.h"
#include "tnk/error.h"

/* Commands wait in `ready` while `busy` is being written. */
enum { READ_SIZE = 64 * 1024, KEEP_CAPACITY = 1 << 20 };

const char tnk__gw_resp_too_long[] = "a reply is too long";

struct tnk__gw_resp {
  tnk__gw_resp_options_t options;
  tnk_allocator_t alloc;
  uv_tcp_t tcp;
  uv_getaddrinfo_t resolve;
  uv_connect_t connect;
  struct addrinfo *found;      /* the addresses of the host */
  const struct addrinfo *next; /* the first one that was not tried */
  uv_write_t write;
  redisReader *reader;
  size_t n_open;    /* the handle, and the request for the address */
  size_t n_partial; /* bytes since the last whole reply */
  tnk__buf_t ready;
  tnk__buf_t busy;
  int is_writing;
  int is_open;
  int is_lost;
  int is_closing;
  char scratch[READ_SIZE];
};

static void release(tnk__gw_resp_t *resp) {
  tnk_allocator_t alloc = resp->alloc;
  void (*closed)(void *) = resp->options.on_closed;
  void *user = resp->options.user;

  if (--resp->n_open > 0)
    return;
  uv_freeaddrinfo(resp->found);
  redisReaderFree(resp->reader);
  tnk__buf_deinit(&resp->ready);
  tnk__buf_deinit(&resp->busy);
  tnk__free(&alloc, resp);
  closed(user);
}

static void on_tcp_closed(uv_handle_t *handle) {
  release(handle->data);
}

static void lose(tnk__gw_resp_t *resp, const char *why) {
  if (resp->is_closing || resp->is_lost)
    return;
  resp->is_lost = 1;
  resp->options.on_lost(resp->options.user, why);
}

void tnk__gw_resp_close(tnk__gw_resp_t *resp) {
  if (resp->is_closing)
    return;
  resp->is_closing = 1;
  (void)uv_cancel((uv_req_t *)&resp->resolve);
  /* Otherwise on_refused() does the rest. */
  if (!uv_is_closing((uv_handle_t *)&resp->tcp))
    uv_close((uv_handle_t *)&resp->tcp, on_tcp_closed);
}

/* ---- Writing ---- */

static void flush(tnk__gw_resp_t *resp);

static void on_written(uv_write_t *write, int status) {
  tnk__gw_resp_t *resp = write->data;

  resp->is_writing = 0;
  if (resp->busy.cap > KEEP_CAPACITY)
    tnk__buf_deinit(&resp->busy);
  else
    tnk__buf_clear(&resp->busy);
  if (status != 0)
    lose(resp, "the connection is lost");
  else
    flush(resp);
}

static void flush(tnk__gw_resp_t *resp) {
  tnk__buf_t ready = resp->ready;
  uv_buf_t buf;

  if (resp->is_writing || !resp->is_open || resp->is_closing || resp->is_lost ||
      ready.len == 0)
    return;
  resp->ready = resp->busy;
  resp->busy = ready;
  buf = uv_buf_init((char *)ready.data, (unsigned)ready.len);
  resp->write.data = resp;
  resp->is_writing = uv_write(&resp->write, (uv_stream_t *)&resp->tcp, &buf, 1,
                              on_written) == 0;
  /* Otherwise the replies never come, and the owner's time bound ends it. */
}

int tnk__gw_resp_send(tnk__gw_resp_t *resp, const void *data, size_t n) {
  if (tnk__buf_append(&resp->ready, data, n) != TNK_OK)
    return TNK_ENOMEM;
  flush(resp);
  return TNK_OK;
}

/* ---- Reading ---- */

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf) {
  tnk__gw_resp_t *resp = handle->data;

  (void)hint;
  *buf = uv_buf_init(resp->scratch, sizeof(resp->scratch));
}

/* Returns whether the connection is still open. */
static int take_replies(tnk__gw_resp_t *resp) {
  for (;;) {
    void *reply = NULL;
    int err;

    if (redisReaderGetReply(resp->reader, &reply) != REDIS_OK) {
      lose(resp, "the answer is not of Valkey or Redis");
      return 0;
    }
    if (reply == NULL)
      return 1;
    resp->n_partial = resp->reader->len - resp->reader->pos;
    err = resp->options.on_reply(resp->options.user, reply);
    freeReplyObject(reply);
    if (err != 0 || resp->is_closing)
      return 0;
  }
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  tnk__gw_resp_t *resp = stream->data;

  if (n == 0 || resp->is_lost || resp->is_closing)
    return;
  if (n < 0) {
    lose(resp, "the connection was closed");
    return;
  }
  if (redisReaderFeed(resp->reader, buf->base, (size_t)n) != REDIS_OK) {
    lose(resp, "out of memory");
    return;
  }
  resp->n_partial += (size_t)n;
  if (take_replies(resp) && resp->n_partial > resp->options.max_reply)
    lose(resp, tnk__gw_resp_too_long);
}

/* ---- Opening ---- */

static void connect_next(tnk__gw_resp_t *resp);

/* The handle of an address that failed is closed. A handle that failed to
 * connect cannot connect again, so the next address gets a new one. */
static void on_refused(uv_handle_t *handle) {
  tnk__gw_resp_t *resp = handle->data;
  uv_loop_t *loop = handle->loop;

  if (resp->is_closing) {
    release(resp);
    return;
  }
  (void)uv_tcp_init(loop, &resp->tcp); /* only fails with flags */
  connect_next(resp);
}

static void on_connect(uv_connect_t *connect, int status) {
  tnk__gw_resp_t *resp = connect->data;

  if (status == UV_ECANCELED || resp->is_closing)
    return;
  if (status != 0 && resp->next != NULL) {
    uv_close((uv_handle_t *)&resp->tcp, on_refused);
    return;
  }
  if (status == 0)
    status = uv_read_start((uv_stream_t *)&resp->tcp, on_alloc, on_read);
  if (status != 0) {
    lose(resp, status == UV_ECONNREFUSED ? "the connection was refused"
                                         : "cannot connect");
    return;
  }
  resp->is_open = 1;
  (void)uv_tcp_nodelay(&resp->tcp, 1);
  resp->options.on_open(resp->options.user);
  flush(resp);
}

/* Try the next address of the host. `localhost` is often ::1 first, while the
 * server listens on 127.0.0.1 only. */
static void connect_next(tnk__gw_resp_t *resp) {
  const struct sockaddr *address = resp->next->ai_addr;
  int err;

  resp->next = resp->next->ai_next;
  err = uv_tcp_connect(&resp->connect, &resp->tcp, address, on_connect);
  if (err == 0)
    return;
  if (resp->next != NULL)
    uv_close((uv_handle_t *)&resp->tcp, on_refused);
  else
    lose(resp, "cannot connect");
}

int tnk__gw_resp_skip(tnk__gw_resp_t *resp) {
  if (resp->next == NULL || resp->is_open || resp->is_lost || resp->is_closing)
    return 0;
  if (!uv_is_closing((uv_handle_t *)&resp->tcp))
    uv_close((uv_handle_t *)&resp->tcp, on_refused);
  return 1;
}

static void on_resolved(uv_getaddrinfo_t *resolve, int status,
                        struct addrinfo *found) {
  tnk__gw_resp_t *resp = resolve->data;

  resp->found = found;
  if (!resp->is_closing) {
    resp->next = found;
    if (status != 0)
      lose(resp, "the host name cannot be resolved");
    else
      connect_next(resp);
  }
  release(resp);
}

int tnk__gw_resp_open(tnk__gw_resp_t **out,
                      const tnk__gw_resp_options_t *options) {
  const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
  tnk__gw_resp_t *resp = tnk__calloc(options->alloc, 1, sizeof(*resp));
  char port[8];

  *out = NULL;
  if (resp == NULL)
    return TNK_ENOMEM;
  resp->options = *options;
  resp->alloc = *options->alloc;
  resp->reader = redisReaderCreate();
  if (resp->reader == NULL || uv_tcp_init(options->loop, &resp->tcp) != 0) {
    int err = resp->reader == NULL ? TNK_ENOMEM : TNK_ESYSTEM;

    if (resp->reader != NULL)
      redisReaderFree(resp->reader);
    tnk__free(options->alloc, resp);
    return err;
  }
  tnk__buf_init(&resp->ready, &resp->alloc, SIZE_MAX);
  tnk__buf_init(&resp->busy, &resp->alloc, SIZE_MAX);
  resp->tcp.data = resp->resolve.data = resp->connect.data = resp;
  resp->n_open = 1;
  *out = resp;
  (void)snprintf(port, sizeof(port), "%d", options->port);
  if (uv_getaddrinfo(options->loop, &resp->resolve, on_resolved, options->host,
                     port, &hints) == 0)
    resp->n_open++;
  /* Otherwise the owner's time bound ends it. */
  return TNK_OK;
}
