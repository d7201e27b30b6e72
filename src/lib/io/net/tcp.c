/* SPDX-License-Identifier: MIT */
#include "lib/io/net/stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/system.h"
#include "lib/io/net/net.h"
#include "lib/policy/bounds.h"
#include "tnk/error.h"

/*
 * RESOLVING: the name is being looked up.
 * CONNECTING: one or more sockets try the addresses in order. The next attempt
 *   starts when one fails, or TNK__NEXT_ADDRESS_MS after the previous one.
 * OPEN: `socket` is the first that connected; the others are closed.
 * ENDED: on_end was called; only on_closed can follow.
 * CLOSING: by the owner, from any state. When the last socket is closed, the
 *   memory is freed and on_closed is called.
 *
 * Only callbacks of libuv, timers and deferred calls call the owner. Memory is
 * freed in a separate callback, so after calling the owner it suffices to check
 * the state.
 */
typedef enum { RESOLVING, CONNECTING, OPEN, ENDED, CLOSING } state_t;

/* Limit of unsent bytes in the system's buffer. It keeps the reported progress
 * of a request close to the truth, and leaves the link to other streams. */
enum { MAX_UNSENT = 128 * 1024 };

struct tcp;

typedef struct {
  tnk__list_t link; /* in `attempts` while connecting */
  uv_tcp_t handle;
  /* Connecting has ended before the first write begins. */
  union {
    uv_connect_t connect;
    uv_write_t write;
  } req;
  struct tcp *tcp;
  size_t address;
} socket_t;

/* State that is needed only until the stream is open. Streams may stay open for
 * long, and there may be thousands, so it is freed then. */
typedef struct {
  struct tcp *tcp;
  tnk__dns_query_t query;
  tnk__timer_t deadline;
  tnk__timer_t next; /* starts the attempt with the next address */
  tnk__list_t attempts;
  size_t n_tried; /* addresses tried */
  int cause;      /* failure of the last attempt */
} dial_t;

typedef struct tcp {
  tnk__stream_t base;
  tnk__net_t *net;
  state_t state;
  dial_t *dial;     /* NULL once OPEN */
  size_t n_sockets; /* sockets that libuv knows */
  socket_t *socket;
  size_t n_writing; /* bytes in the current uv_write() */
  uint64_t n_sent;  /* bytes sent before that write */
  int is_writing;
  int is_patient;  /* TNK__LOST_WRITING_MS applies */
  int write_error; /* code of the first failed write */
  int paused;
  int hold;
  tnk__deferred_t written;
  tnk__deferred_t gone;
  int is_proxy; /* it connects to a proxy */
  uint16_t port;
  const char *host; /* belongs to the owner; not used when CLOSING */
} tcp_t;

static tcp_t *tcp_of(const tnk__stream_t *stream) {
  return tnk__container_of(stream, tcp_t, base);
}

/* Free the rest, when libuv has closed all sockets. */
static void finish(tcp_t *tcp) {
  tnk__net_t *net = tcp->net;
  tnk__context_t *context = net->context;
  void (*on_closed)(void *) = tcp->base.events->on_closed;
  void *user = tcp->base.user;

  tnk__free(&context->alloc, tcp);
  tnk__net_unref(net);
  if (on_closed != NULL)
    on_closed(user);
  tnk__context_release(context);
}

static void on_gone(tnk__deferred_t *call) {
  finish(tnk__container_of(call, tcp_t, gone));
}

static void on_socket_closed(uv_handle_t *handle) {
  socket_t *socket = handle->data;
  tcp_t *tcp = socket->tcp;

  tnk__free(&tcp->net->context->alloc, socket);
  if (--tcp->n_sockets == 0 && tcp->state == CLOSING)
    finish(tcp);
}

static void socket_close(socket_t *socket) {
  tnk__list_remove(&socket->link);
  uv_close((uv_handle_t *)&socket->handle, on_socket_closed);
}

/* Leave any state before OPEN. */
static void stop_connecting(tcp_t *tcp) {
  dial_t *dial = tcp->dial;
  tnk__list_t *node;

  if (dial == NULL)
    return;
  tcp->dial = NULL;
  tnk__timer_stop(&dial->deadline);
  tnk__timer_stop(&dial->next);
  tnk__dns_cancel(&dial->query);
  while ((node = tnk__list_first(&dial->attempts)) != NULL)
    socket_close(tnk__container_of(node, socket_t, link));
  tnk__free(&tcp->net->context->alloc, dial);
}

static void end(tcp_t *tcp, int code, int cause, const char *what) {
  char text[TNK__MAX_ERROR_TEXT];
  const tnk__net_error_t error = {.code = code, .cause = cause, .text = text};

  stop_connecting(tcp);
  tnk__defer_cancel(&tcp->written);
  if (tcp->socket != NULL)
    uv_read_stop((uv_stream_t *)&tcp->socket->handle);
  tcp->state = ENDED;
  snprintf(text, sizeof(text), "%s %s%s port %u%s%s", what,
           tcp->is_proxy ? "the proxy " : "", tcp->host, (unsigned)tcp->port,
           cause != 0 ? ": " : "", cause != 0 ? uv_strerror(cause) : "");
  tcp->base.events->on_end(&tcp->base, &error);
}

static void on_deadline(tnk__timer_t *timer) {
  tcp_t *tcp = tnk__container_of(timer, dial_t, deadline)->tcp;

  end(tcp, TNK_ETIMEDOUT, UV_ETIMEDOUT,
      tcp->state == RESOLVING ? "looking up" : "connecting to");
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf) {
  socket_t *socket = handle->data;

  (void)hint;
  *buf = uv_buf_init((char *)socket->tcp->net->read_buf,
                     (unsigned)TNK__NET_READ_SIZE);
}

/* If a reset follows data closely, libuv reports an end of the stream; the
 * socket still has the error. Returns 0 or libuv's code. */
static int hidden_error(const socket_t *socket) {
  socklen_t len = sizeof(int);
  uv_os_fd_t fd;
  int err = 0;

  if (uv_fileno((const uv_handle_t *)&socket->handle, &fd) != 0 ||
      getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0)
    return 0;
  return err != 0 ? uv_translate_sys_error(err) : 0;
}

static void on_read(uv_stream_t *handle, ssize_t n, const uv_buf_t *buf) {
  socket_t *socket = handle->data;
  tcp_t *tcp = socket->tcp;

  if (n == UV_EOF)
    n = hidden_error(socket) != 0 ? UV_ECONNRESET : UV_EOF;
  if (n > 0) {
    tcp->net->context->counters.n_bytes_received += (uint64_t)n;
    tcp->base.events->on_read(&tcp->base, (const uint8_t *)buf->base,
                              (size_t)n);
  } else if (n == UV_EOF) {
    end(tcp, TNK_OK, 0, "connection ended by");
  } else if (n < 0) {
    end(tcp, TNK_ECONN, (int)n, "connection lost to");
  }
}

/* Starting twice is harmless. On a connected socket that is not closing nothing
 * else can fail. */
static void start_reading(tcp_t *tcp) {
  if (tcp->state == OPEN && !tcp->paused)
    (void)uv_read_start((uv_stream_t *)&tcp->socket->handle, on_alloc, on_read);
}

static void apply_hold(tcp_t *tcp) {
  if (tcp->hold)
    uv_ref((uv_handle_t *)&tcp->socket->handle);
  else
    uv_unref((uv_handle_t *)&tcp->socket->handle);
}

static void be_patient(tcp_t *tcp, int is_patient) {
  uv_os_fd_t fd;

  if (tcp->is_patient == is_patient)
    return;
  tcp->is_patient = is_patient;
  if (uv_fileno((const uv_handle_t *)&tcp->socket->handle, &fd) == 0)
    tnk__system_tcp_lost_after(fd, is_patient ? TNK__LOST_WRITING_MS
                                              : TNK__LOST_MS);
}

static void tune_all(tcp_t *tcp) {
  uv_os_fd_t fd;

  (void)uv_tcp_nodelay(&tcp->socket->handle, 1);
  (void)uv_tcp_keepalive(&tcp->socket->handle, 1, TNK__KEEPALIVE_S);
  if (uv_fileno((const uv_handle_t *)&tcp->socket->handle, &fd) == 0) {
    tnk__system_tcp_probe(fd, TNK__KEEPALIVE_S * 1000, TNK__LOST_MS);
    tnk__system_tcp_unsent(fd, MAX_UNSENT);
  }
  tcp->is_patient = 1;
  be_patient(tcp, 0);
}

static void open_with(tcp_t *tcp, socket_t *socket) {
  tnk__dns_prefer(&tcp->net->dns, tcp->host,
                  &tcp->dial->query.addresses[socket->address]);
  tnk__list_remove(&socket->link);
  stop_connecting(tcp);
  tcp->socket = socket;
  tcp->state = OPEN;
  tcp->net->counters.n_connected++;
  tune_all(tcp);
  apply_hold(tcp);
  tcp->base.events->on_open(&tcp->base);
  start_reading(tcp);
}

static void try_next(tcp_t *tcp);

static void on_next(tnk__timer_t *timer) {
  try_next(tnk__container_of(timer, dial_t, next)->tcp);
}

static void on_connect(uv_connect_t *req, int status) {
  socket_t *socket = req->data;
  tcp_t *tcp = socket->tcp;

  if (uv_is_closing((uv_handle_t *)&socket->handle))
    return;
  if (status == 0) {
    open_with(tcp, socket);
    return;
  }
  tcp->dial->cause = status;
  socket_close(socket);
  try_next(tcp);
}

/* libuv aborts the process if it cannot grow its table of descriptors. The
 * table grows when a descriptor beyond its size is watched for the first time.
 * This function checks before whether that much memory is available. */
static int is_watchable(const tnk__context_t *context, const socket_t *socket) {
  uv_os_fd_t fd;
  void *table;

  if (uv_fileno((const uv_handle_t *)&socket->handle, &fd) != 0 ||
      (unsigned)fd < context->uv->nwatchers)
    return 1;
  /* libuv rounds up to the next power of two. */
  table = tnk__malloc(&context->alloc, ((size_t)fd + 3) * 2 * sizeof(void *));
  tnk__free(&context->alloc, table);
  return table != NULL;
}

/* Add a socket to the attempts. Returns TNK_OK, TNK_ENOMEM, or libuv's code. */
static int new_socket(tcp_t *tcp, socket_t **out, int family) {
  tnk__context_t *context = tcp->net->context;
  socket_t *socket = tnk__calloc(&context->alloc, 1, sizeof(*socket));
  int err;

  *out = socket;
  if (socket == NULL)
    return TNK_ENOMEM;
  err = uv_tcp_init_ex(context->uv, &socket->handle, (unsigned)family);
  if (err != 0) {
    tnk__free(&context->alloc, socket);
    return err;
  }
  socket->tcp = tcp;
  socket->handle.data = socket;
  socket->req.connect.data = socket;
  tnk__list_append(&tcp->dial->attempts, &socket->link);
  tcp->n_sockets++;
  if (is_watchable(context, socket))
    return TNK_OK;
  socket_close(socket);
  return TNK_ENOMEM;
}

/* Returns TNK_OK, TNK_ENOMEM, or libuv's code. */
static int attempt(tcp_t *tcp, size_t i) {
  tnk__address_t address = tcp->dial->query.addresses[i];
  socket_t *socket;
  int err = new_socket(tcp, &socket, address.any.sa_family);

  if (err != TNK_OK)
    return err;
  socket->address = i;
  if (address.any.sa_family == AF_INET)
    address.v4.sin_port = htons(tcp->port);
  else
    address.v6.sin6_port = htons(tcp->port);
  err = uv_tcp_connect(&socket->req.connect, &socket->handle, &address.any,
                       on_connect);
  if (err != 0)
    socket_close(socket);
  return err;
}

/* Try the next address. End the stream if none is left and no attempt is under
 * way. */
static void try_next(tcp_t *tcp) {
  dial_t *dial = tcp->dial;
  int err;

  tnk__timer_stop(&dial->next);
  while (dial->n_tried < dial->query.n_addresses) {
    err = attempt(tcp, dial->n_tried++);
    if (err == TNK_ENOMEM || err == UV_ENOMEM) {
      end(tcp, TNK_ENOMEM, 0, "no memory for a connection to");
      return;
    }
    if (err == 0) {
      if (dial->n_tried < dial->query.n_addresses)
        tnk__timer_start(tcp->net->context, &dial->next, TNK__NEXT_ADDRESS_MS,
                         on_next);
      return;
    }
    dial->cause = err;
  }
  if (!tnk__list_empty(&dial->attempts))
    return;
  /* If no descriptor was available, no address was tried, and the result stays
   * valid. */
  if (dial->cause != UV_EMFILE && dial->cause != UV_ENFILE)
    tnk__dns_forget(&tcp->net->dns, tcp->host);
  end(tcp, TNK_ECONN, dial->cause, "cannot connect to");
}

static void on_resolved(tnk__dns_query_t *query) {
  tcp_t *tcp = tnk__container_of(query, dial_t, query)->tcp;

  if (query->err != TNK_OK) {
    end(tcp, query->err, query->cause, "cannot look up");
    return;
  }
  tcp->state = CONNECTING;
  try_next(tcp);
}

static void write_done(tcp_t *tcp, int cause) {
  tcp->is_writing = 0;
  if (cause != 0)
    tcp->write_error = cause;
  tcp->base.events->on_written(&tcp->base, cause);
}

static void on_written_deferred(tnk__deferred_t *call) {
  tcp_t *tcp = tnk__container_of(call, tcp_t, written);

  write_done(tcp, tcp->write_error);
}

/* The sent part of a failed write is unknown, so all of it counts. */
static void on_write(uv_write_t *req, int status) {
  tcp_t *tcp = req->data;

  tcp->n_sent += tcp->n_writing;
  tcp->n_writing = 0;
  if (tcp->state == OPEN)
    write_done(tcp, status);
}

/* Pass the rest of `bufs` to libuv, after uv_try_write(). */
static int write_rest(tcp_t *tcp, const uv_buf_t *bufs, unsigned n_bufs,
                      size_t skip) {
  uv_buf_t rest[TNK__STREAM_MAX_BUFS];
  unsigned n = 0;
  unsigned i;

  tcp->n_writing = 0;
  for (i = 0; i < n_bufs; i++) {
    size_t cut = skip < bufs[i].len ? skip : bufs[i].len;
    skip -= cut;
    rest[n].base = bufs[i].base + cut;
    rest[n].len = bufs[i].len - cut;
    tcp->n_writing += rest[n].len;
    if (rest[n].len > 0)
      n++;
  }
  tcp->socket->req.write.data = tcp;
  return uv_write(&tcp->socket->req.write, (uv_stream_t *)&tcp->socket->handle,
                  rest, n, on_write);
}

static size_t total_of(const uv_buf_t *bufs, unsigned n_bufs) {
  size_t total = 0;
  unsigned i;

  for (i = 0; i < n_bufs; i++)
    total += bufs[i].len;
  return total;
}

static int tcp_write(tnk__stream_t *stream, const uv_buf_t *bufs,
                     unsigned n_bufs) {
  tcp_t *tcp = tcp_of(stream);
  const size_t total = total_of(bufs, n_bufs);
  int n = 0;

  if (tcp->state != OPEN || tcp->is_writing || tcp->write_error != 0 ||
      n_bufs > TNK__STREAM_MAX_BUFS)
    return TNK_ECONN;
  tcp->is_writing = 1;
  if (total > 0)
    n = uv_try_write((uv_stream_t *)&tcp->socket->handle, bufs, n_bufs);
  if (n == UV_EAGAIN)
    n = 0;
  if (n >= 0) {
    tcp->n_sent += (uint64_t)n;
    tcp->net->context->counters.n_bytes_sent += total;
    if ((size_t)n == total) {
      tcp->is_writing = 0;
      be_patient(tcp, 0);
      return TNK__STREAM_WRITTEN;
    }
    be_patient(tcp, 1);
    n = write_rest(tcp, bufs, n_bufs, (size_t)n);
    if (n == 0)
      return TNK_OK;
  }
  tcp->n_writing = 0;
  tcp->write_error = n;
  tnk__defer(tcp->net->context, &tcp->written);
  return TNK_OK;
}

static uint64_t tcp_n_sent(const tnk__stream_t *stream) {
  const tcp_t *tcp = tcp_of(stream);
  size_t left;

  if (tcp->n_writing == 0)
    return tcp->n_sent;
  left =
      uv_stream_get_write_queue_size((const uv_stream_t *)&tcp->socket->handle);
  return tcp->n_sent + (left < tcp->n_writing ? tcp->n_writing - left : 0);
}

static void tcp_pause(tnk__stream_t *stream, int paused) {
  tcp_t *tcp = tcp_of(stream);

  tcp->paused = paused;
  if (tcp->state != OPEN)
    return;
  if (paused)
    uv_read_stop((uv_stream_t *)&tcp->socket->handle);
  else
    start_reading(tcp);
}

static void tcp_hold_loop(tnk__stream_t *stream, int hold) {
  tcp_t *tcp = tcp_of(stream);

  tcp->hold = hold;
  if (tcp->socket != NULL && tcp->state != CLOSING)
    apply_hold(tcp);
}

static void tcp_close(tnk__stream_t *stream) {
  tcp_t *tcp = tcp_of(stream);

  if (tcp->state == CLOSING)
    return;
  stop_connecting(tcp);
  tnk__defer_cancel(&tcp->written);
  tcp->state = CLOSING;
  if (tcp->socket != NULL)
    socket_close(tcp->socket);
  if (tcp->n_sockets == 0)
    tnk__defer(tcp->net->context, &tcp->gone);
}

static const tnk__stream_ops_t tcp_ops = {.write = tcp_write,
                                          .n_sent = tcp_n_sent,
                                          .pause = tcp_pause,
                                          .hold_loop = tcp_hold_loop,
                                          .close = tcp_close};

static tcp_t *new_tcp(const tnk_allocator_t *alloc) {
  tcp_t *tcp = tnk__calloc(alloc, 1, sizeof(*tcp));

  if (tcp == NULL)
    return NULL;
  tcp->dial = tnk__calloc(alloc, 1, sizeof(*tcp->dial));
  if (tcp->dial == NULL) {
    tnk__free(alloc, tcp);
    return NULL;
  }
  tcp->dial->tcp = tcp;
  tnk__list_init(&tcp->dial->attempts);
  return tcp;
}

int tnk__tcp_open(tnk__stream_t **out, tnk__net_t *net,
                  const tnk__origin_t *origin, const tnk__via_t *via,
                  uint64_t connect_timeout_ms,
                  const tnk__stream_events_t *events, void *user) {
  tcp_t *tcp = new_tcp(&net->context->alloc);

  *out = NULL;
  if (tcp == NULL)
    return TNK_ENOMEM;
  tcp->base = (tnk__stream_t){&tcp_ops, events, user};
  tcp->net = net;
  tcp->hold = 1;
  tcp->is_proxy = via != NULL;
  tcp->port = via != NULL ? via->port : origin->port;
  tcp->host = via != NULL ? via->host : origin->host;
  tnk__deferred_init(&tcp->written, on_written_deferred);
  tnk__deferred_init(&tcp->gone, on_gone);
  tnk__net_ref(net);
  tnk__context_hold(net->context);
  tnk__dns_resolve(&net->dns, &tcp->dial->query, tcp->host, on_resolved);
  if (connect_timeout_ms > 0)
    tnk__timer_start(net->context, &tcp->dial->deadline, connect_timeout_ms,
                     on_deadline);
  *out = &tcp->base;
  return TNK_OK;
}
