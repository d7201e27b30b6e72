/* SPDX-License-Identifier: MIT */
#include "lib/io/net/stream.h"

#include <stdio.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/io/net/net.h"
#include "lib/wire/format/http_read.h"
#include "lib/wire/format/socks.h"
#include "tnk/error.h"

/*
 * CONNECTING: TCP connects to the proxy, or TLS does over it.
 * RESOLVING: for SOCKS, the name of the origin is looked up here.
 * ASKING: CONNECT is written and its response arrives; or one SOCKS message.
 * OPEN: the proxy has agreed; bytes pass unchanged.
 * ENDED: on_end was called; only on_closed is left.
 * CLOSING: by the owner; freed when the TCP stream is closed.
 *
 * Only events of the stream below (called TCP here), of the look-up and of the
 * deadline call the owner. The proxy is not trusted. No error contains its
 * text, because it knows the credentials. Its response is bounded. Bytes after
 * a successful response are an error: nothing was sent to the server yet, so
 * they cannot be the server's.
 */
typedef enum { CONNECTING, RESOLVING, ASKING, OPEN, ENDED, CLOSING } state_t;

struct tunnel;

/* State that is needed only for the request to the proxy, for HTTP or SOCKS. */
typedef struct {
  struct tunnel *tunnel;
  tnk__response_t response;
  tnk__http_reader_t reader;
  tnk__dns_query_t query;
  tnk__address_t address;
  tnk__socks_target_t target;
  tnk__socks_t socks; /* its output is borrowed until TCP has written it */
} asking_t;

typedef struct tunnel {
  tnk__stream_t base;
  tnk__net_t *net;
  tnk__stream_t *tcp;
  const tnk__via_t *via; /* not used when CLOSING */
  asking_t *asking;      /* from the request until it is OPEN or ended */
  uint64_t n_asked;      /* bytes sent to the proxy */
  state_t state;
  tnk__timer_t deadline;
  int is_asking; /* a message to the proxy is being written */
  int paused;    /* set by the owner */
} tunnel_t;

static tunnel_t *tunnel_of(const tnk__stream_t *stream) {
  return tnk__container_of(stream, tunnel_t, base);
}

static int is_http(const tunnel_t *tunnel) {
  return tunnel->via->kind == TNK__PROXY_HTTP;
}

static void free_asking(tunnel_t *tunnel) {
  asking_t *asking = tunnel->asking;

  if (asking == NULL)
    return;
  tnk__dns_cancel(&asking->query);
  tnk__response_deinit(&asking->response);
  tnk__wipe(asking, sizeof(*asking));
  tnk__free(&tunnel->net->context->alloc, asking);
  tunnel->asking = NULL;
}

/* Called on every way out of the states before OPEN. */
static void stop_asking(tunnel_t *tunnel) {
  tnk__timer_stop(&tunnel->deadline);
  if (tunnel->asking != NULL)
    tnk__dns_cancel(&tunnel->asking->query);
}

static void end_with(tunnel_t *tunnel, const tnk__net_error_t *error) {
  stop_asking(tunnel);
  tunnel->state = ENDED;
  tnk__stream_pause(tunnel->tcp, 1);
  tunnel->base.events->on_end(&tunnel->base, error);
}

static void end(tunnel_t *tunnel, int code, int cause, const char *what) {
  char text[TNK__MAX_ERROR_TEXT];
  const tnk__net_error_t error = {.code = code, .cause = cause, .text = text};

  snprintf(text, sizeof(text), "proxy %.300s %.1500s", tunnel->via->name, what);
  end_with(tunnel, &error);
}

/* ---- The response ---- */

/* The meaning of a proxy's status. Some proxies send 401 instead of 407. */
static const char *meaning(int status, int has_credentials) {
  switch (status) {
  case 400:
    return " Bad Request: it does not support CONNECT, or not to this host or "
           "port";
  case 401:
    return has_credentials
               ? " Unauthorized: it rejects the given user and password"
               : " Unauthorized: it requires a user and a password, as in "
                 "http://USER:PASSWORD@HOST:PORT";
  case 403:
    return " Forbidden: it does not allow this host or port";
  case 404:
    return " Not Found: it is not a proxy, or does not find the host";
  case 405:
    return " Method Not Allowed: it does not allow tunnels";
  case 407:
    return has_credentials
               ? " Proxy Authentication Required: it rejects the given user "
                 "and password"
               : " Proxy Authentication Required: it requires a user and a "
                 "password, as in http://USER:PASSWORD@HOST:PORT";
  case 429:
    return " Too Many Requests";
  case 500:
    return " Internal Server Error: it failed, or could not find or reach the "
           "host";
  case 502:
    return " Bad Gateway: it could not connect";
  case 503:
    return " Service Unavailable";
  case 504:
    return " Gateway Timeout: it could not connect in time";
  default:
    return "";
  }
}

/* A failure of the proxy may be temporary, and no byte has reached the server.
 * A refusal of the request or the credentials will repeat. */
static int code_of(int status) {
  return status >= 500 || status == 408 || status == 429 ? TNK_ECONN
                                                         : TNK_EPROXY;
}

void tnk__tunnel_explain(char *text, size_t size, const tnk__via_t *via,
                         const char *what, int status) {
  snprintf(text, size, "proxy %s refused %s: %d%s", via->name, what, status,
           meaning(status, via->has_credentials));
}

static void refused(tunnel_t *tunnel, int status) {
  char text[TNK__MAX_ERROR_TEXT];
  const tnk__net_error_t error = {.code = code_of(status), .text = text};

  tnk__tunnel_explain(text, sizeof(text), tunnel->via, "the tunnel", status);
  end_with(tunnel, &error);
}

static void agreed(tunnel_t *tunnel) {
  stop_asking(tunnel);
  free_asking(tunnel);
  tunnel->state = OPEN;
  tnk__stream_pause(tunnel->tcp, tunnel->paused);
  tunnel->base.events->on_open(&tunnel->base);
}

static void read_http(tunnel_t *tunnel, const uint8_t *data, size_t n) {
  tnk__http_reader_t *reader = &tunnel->asking->reader;
  const int err = tnk__http_reader_feed(reader, data, n);
  const int status = tunnel->asking->response.status;

  /* A refusal counts even if the rest of the response is invalid. */
  if (status / 100 > 2)
    refused(tunnel, status);
  else if (err == TNK_ENOMEM)
    end(tunnel, err, 0,
        "has answered, but there is no memory for its response");
  else if (err == TNK_ETOOBIG)
    end(tunnel, err, 0, "answered CONNECT with a head that is too large");
  else if (err != TNK_OK)
    end(tunnel, err, 0, "did not answer CONNECT in HTTP");
  else if (reader->state == TNK__HTTP_READ_DONE &&
           (reader->has_more || tunnel->is_asking))
    end(tunnel, TNK_EPROTO, 0,
        tunnel->is_asking ? "answered before it was asked"
                          : "sent bytes that do not come from the server");
  else if (reader->state == TNK__HTTP_READ_DONE)
    agreed(tunnel);
}

/* ---- Requesting the tunnel ---- */

/* Write bytes to the proxy. They must stay valid until they are written. */
static int say(tunnel_t *tunnel, const void *data, size_t n) {
  uv_buf_t buf = uv_buf_init((char *)(uintptr_t)data, (unsigned)n);
  const int err = tnk__stream_write(tunnel->tcp, &buf, 1);

  tunnel->state = ASKING;
  tunnel->n_asked += n;
  tunnel->is_asking = err == TNK_OK;
  return err < 0 ? err : TNK_OK;
}

static int say_socks(tunnel_t *tunnel) {
  return say(tunnel, tunnel->asking->socks.out, tunnel->asking->socks.n_out);
}

static void read_socks(tunnel_t *tunnel, const uint8_t *data, size_t n) {
  tnk__socks_t *socks = &tunnel->asking->socks;
  tnk__socks_result_t result;

  if (tunnel->is_asking) {
    end(tunnel, TNK_EPROTO, 0, "answered before it was asked");
    return;
  }
  result = tnk__socks_feed(socks, &tunnel->asking->target, data, n);
  if (result == TNK__SOCKS_FAILED)
    end(tunnel, socks->err, 0, socks->text);
  else if (result == TNK__SOCKS_AGREED)
    agreed(tunnel);
  else if (result == TNK__SOCKS_SAY && say_socks(tunnel) != TNK_OK)
    end(tunnel, TNK_ECONN, UV_EPIPE,
        "could not be sent the request for a tunnel");
}

static int hello(tunnel_t *tunnel) {
  tnk__socks_hello(&tunnel->asking->socks, &tunnel->asking->target);
  return say_socks(tunnel);
}

static void use_address(asking_t *asking, const tnk__address_t *address) {
  asking->address = *address;
  asking->target.host = NULL;
  asking->target.n_address =
      tnk__address_bytes(&asking->address, &asking->target.address);
}

/* Prefer IPv4, because not every proxy supports IPv6. */
static const tnk__address_t *best_of(const tnk__dns_query_t *query) {
  for (size_t i = 0; i < query->n_addresses; i++)
    if (query->addresses[i].any.sa_family == AF_INET)
      return &query->addresses[i];
  return &query->addresses[0];
}

static void on_resolved(tnk__dns_query_t *query) {
  asking_t *asking = tnk__container_of(query, asking_t, query);
  tunnel_t *tunnel = asking->tunnel;
  char text[TNK__MAX_ERROR_TEXT];

  if (query->err != TNK_OK) {
    snprintf(text, sizeof(text), "needs an address, but cannot look up %s: %s",
             tunnel->via->target->host,
             query->cause != 0 ? uv_strerror(query->cause)
                               : tnk_strerror(query->err));
    end(tunnel, query->err, query->cause, text);
    return;
  }
  use_address(asking, best_of(query));
  if (hello(tunnel) != TNK_OK)
    end(tunnel, TNK_ECONN, UV_EPIPE,
        "could not be sent the request for a tunnel");
}

static int ask_socks(tunnel_t *tunnel) {
  const tnk__via_t *via = tunnel->via;
  asking_t *asking = tunnel->asking;
  tnk__address_t address;

  asking->target = (tnk__socks_target_t){.user = via->user,
                                         .password = via->password,
                                         .host = via->target->host,
                                         .port = via->target->port};
  if (tnk__address_parse(&address, via->target->host)) {
    use_address(asking, &address);
  } else if (via->kind == TNK__PROXY_SOCKS5) {
    tunnel->state = RESOLVING;
    tnk__dns_resolve(&tunnel->net->dns, &asking->query, via->target->host,
                     on_resolved);
    return TNK_OK;
  }
  return hello(tunnel);
}

static int ask(tunnel_t *tunnel) {
  const tnk_allocator_t *alloc = &tunnel->net->context->alloc;
  asking_t *asking = tnk__calloc(alloc, 1, sizeof(*asking));

  if (asking == NULL)
    return TNK_ENOMEM;
  tunnel->asking = asking;
  asking->tunnel = tunnel;
  tnk__list_init(&asking->query.link);
  tnk__deferred_init(&asking->query.call, NULL);
  tnk__response_init(&asking->response, alloc, 0);
  if (!is_http(tunnel))
    return ask_socks(tunnel);
  tnk__http_reader_init(&asking->reader, &asking->response, 1);
  return say(tunnel, tunnel->via->request, tunnel->via->request_len);
}

static void on_deadline(tnk__timer_t *timer) {
  end(tnk__container_of(timer, tunnel_t, deadline), TNK_ETIMEDOUT, UV_ETIMEDOUT,
      "took too long to connect");
}

/* ---- Events of TCP ---- */

static void on_tcp_open(tnk__stream_t *tcp) {
  tunnel_t *tunnel = tcp->user;
  const int err = ask(tunnel);

  if (err != TNK_OK)
    end(tunnel, err, 0, "could not be sent the request for a tunnel");
}

static void on_tcp_read(tnk__stream_t *tcp, const uint8_t *data, size_t n) {
  tunnel_t *tunnel = tcp->user;

  if (tunnel->state == OPEN)
    tunnel->base.events->on_read(&tunnel->base, data, n);
  else if (tunnel->state == RESOLVING)
    end(tunnel, TNK_EPROTO, 0, "answered before it was asked");
  else if (is_http(tunnel))
    read_http(tunnel, data, n);
  else
    read_socks(tunnel, data, n);
}

/* If CONNECT failed, on_end reports why. */
static void on_tcp_written(tnk__stream_t *tcp, int cause) {
  tunnel_t *tunnel = tcp->user;

  if (tunnel->state == OPEN)
    tunnel->base.events->on_written(&tunnel->base, cause);
  else
    tunnel->is_asking = 0;
}

static void on_tcp_end(tnk__stream_t *tcp, const tnk__net_error_t *error) {
  tunnel_t *tunnel = tcp->user;

  if ((tunnel->state == ASKING || tunnel->state == RESOLVING) &&
      error->code != TNK_ENOMEM)
    end(tunnel, TNK_ECONN, error->cause != 0 ? error->cause : UV_EOF,
        is_http(tunnel)
            ? "closed the connection instead of answering CONNECT"
            : "closed the connection before it had connected to the server");
  else
    end_with(tunnel, error);
}

static void free_tunnel(tunnel_t *tunnel) {
  tnk__net_t *net = tunnel->net;

  free_asking(tunnel);
  tnk__free(&net->context->alloc, tunnel);
  tnk__net_unref(net);
}

static void on_tcp_closed(void *user) {
  tunnel_t *tunnel = user;
  void (*on_closed)(void *) = tunnel->base.events->on_closed;
  void *owner = tunnel->base.user;

  free_tunnel(tunnel);
  if (on_closed != NULL)
    on_closed(owner);
}

static const tnk__stream_events_t tcp_events = {
    on_tcp_open, on_tcp_read, on_tcp_written, on_tcp_end, on_tcp_closed};

/* ---- Calls of the owner ---- */

static int tunnel_write(tnk__stream_t *stream, const uv_buf_t *bufs,
                        unsigned n_bufs) {
  const tunnel_t *tunnel = tunnel_of(stream);

  if (tunnel->state != OPEN)
    return TNK_ECONN;
  return tnk__stream_write(tunnel->tcp, bufs, n_bufs);
}

static uint64_t tunnel_n_sent(const tnk__stream_t *stream) {
  const tunnel_t *tunnel = tunnel_of(stream);
  const uint64_t n = tnk__stream_n_sent(tunnel->tcp);

  return n > tunnel->n_asked ? n - tunnel->n_asked : 0;
}

/* While the tunnel is being opened, the proxy's response must still be read. */
static void tunnel_pause(tnk__stream_t *stream, int paused) {
  tunnel_t *tunnel = tunnel_of(stream);

  tunnel->paused = paused;
  if (tunnel->state == OPEN)
    tnk__stream_pause(tunnel->tcp, paused);
}

static void tunnel_hold_loop(tnk__stream_t *stream, int hold) {
  tnk__stream_hold_loop(tunnel_of(stream)->tcp, hold);
}

static void tunnel_close(tnk__stream_t *stream) {
  tunnel_t *tunnel = tunnel_of(stream);

  if (tunnel->state == CLOSING)
    return;
  stop_asking(tunnel);
  tunnel->state = CLOSING;
  tnk__stream_close(tunnel->tcp);
}

static const tnk__stream_ops_t tunnel_ops = {.write = tunnel_write,
                                             .n_sent = tunnel_n_sent,
                                             .pause = tunnel_pause,
                                             .hold_loop = tunnel_hold_loop,
                                             .close = tunnel_close};

int tnk__tunnel_open(tnk__stream_t **out, tnk__net_t *net,
                     const tnk__via_t *via, uint64_t connect_timeout_ms,
                     tnk__stream_opener_t below,
                     const tnk__stream_events_t *events, void *user) {
  tunnel_t *tunnel = tnk__calloc(&net->context->alloc, 1, sizeof(*tunnel));

  *out = NULL;
  if (tunnel == NULL)
    return TNK_ENOMEM;
  tunnel->base = (tnk__stream_t){&tunnel_ops, events, user};
  tunnel->net = net;
  tunnel->via = via;
  tnk__net_ref(net);
  if (below(&tunnel->tcp, net, NULL, via, &tcp_events, tunnel) != TNK_OK) {
    free_tunnel(tunnel);
    return TNK_ENOMEM;
  }
  if (connect_timeout_ms > 0)
    tnk__timer_start(net->context, &tunnel->deadline, connect_timeout_ms,
                     on_deadline);
  *out = &tunnel->base;
  return TNK_OK;
}
