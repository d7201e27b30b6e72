#include "net/tunnel.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "codec/format/http_read.h"
#include "net/tcp.h"
#include "tnk/error.h"

/*
 * CONNECTING: TCP connects to the proxy.
 * ASKING: CONNECT is written, its answer comes.
 * OPEN: the proxy has agreed; bytes go through as they are.
 * ENDED: on_end was told; only on_closed is left.
 * CLOSING: by the owner; freed when the TCP stream is gone.
 *
 * Only TCP's events call out. The proxy is not trusted: its words appear in no
 * error, for it knows the credentials; its answer is bounded; and what it
 * sends behind a head that agrees, before we have said anything to the server,
 * cannot be the server's.
 */
typedef enum { CONNECTING, ASKING, OPEN, ENDED, CLOSING } state_t;

/* What only asking needs. */
typedef struct {
  tnk__response_t response;
  tnk__http_reader_t reader;
} answer_t;

typedef struct {
  tnk__stream_t base;
  tnk__net_t *net;
  tnk__stream_t *tcp;
  const tnk__via_t *via; /* not looked at when CLOSING */
  answer_t *answer;      /* while ASKING */
  uint64_t n_asked;      /* bytes of the CONNECT */
  state_t state;
  int is_asking; /* CONNECT is not written yet */
  int paused;    /* by the owner */
} tunnel_t;

static tunnel_t *tunnel_of(const tnk__stream_t *stream) {
  return tnk__container_of(stream, tunnel_t, base);
}

static void free_answer(tunnel_t *tunnel) {
  if (tunnel->answer == NULL)
    return;
  tnk__response_deinit(&tunnel->answer->response);
  tnk__free(&tunnel->net->context->alloc, tunnel->answer);
  tunnel->answer = NULL;
}

static void end_with(tunnel_t *tunnel, const tnk__net_error_t *error) {
  free_answer(tunnel);
  tunnel->state = ENDED;
  tnk__stream_pause(tunnel->tcp, 1);
  tunnel->base.events->on_end(&tunnel->base, error);
}

static void end(tunnel_t *tunnel, int code, int cause, const char *what) {
  char text[TNK__MAX_ERROR_TEXT];
  const tnk__net_error_t error = {.code = code, .cause = cause, .text = text};

  snprintf(text, sizeof(text), "proxy %s %s", tunnel->via->name, what);
  end_with(tunnel, &error);
}

/* ---- The answer ---- */

/* Our words for what the proxy may say. Some answer 401 where 407 is meant. */
static const char *meaning(int status, int has_credentials) {
  switch (status) {
  case 400:
    return " Bad Request: it does not understand CONNECT, or not to this host "
           "or port";
  case 401:
    return has_credentials
               ? " Unauthorized: it does not accept the user and password that "
                 "it was given"
               : " Unauthorized: it wants a user and a password, as in "
                 "http://USER:PASSWORD@HOST:PORT";
  case 403:
    return " Forbidden: it does not let this host or port through";
  case 404:
    return " Not Found: it is no proxy, or does not find the host";
  case 405:
    return " Method Not Allowed: it makes no tunnels";
  case 407:
    return has_credentials
               ? " Proxy Authentication Required: it does not accept the user "
                 "and password that it was given"
               : " Proxy Authentication Required: it wants a user and a "
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

/* A failure of the proxy's may pass, and nothing has been sent to anybody;
 * what it says about us will be the same next time. */
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
  free_answer(tunnel);
  tunnel->state = OPEN;
  tnk__stream_pause(tunnel->tcp, tunnel->paused);
  tunnel->base.events->on_open(&tunnel->base);
}

static void read_answer(tunnel_t *tunnel, const uint8_t *data, size_t n) {
  tnk__http_reader_t *reader = &tunnel->answer->reader;
  const int err = tnk__http_reader_feed(reader, data, n);
  const int status = tunnel->answer->response.status;

  /* Whatever is wrong with the rest of a refusal: it is one. */
  if (status / 100 > 2)
    refused(tunnel, status);
  else if (err == TNK_ENOMEM)
    end(tunnel, err, 0, "has answered, but there is no memory for that");
  else if (err == TNK_ETOOBIG)
    end(tunnel, err, 0, "answered CONNECT with a head that is too large");
  else if (err != TNK_OK)
    end(tunnel, err, 0, "did not answer CONNECT in HTTP");
  else if (reader->state == TNK__HTTP_READ_DONE &&
           (reader->has_more || tunnel->is_asking))
    end(tunnel, TNK_EPROTO, 0,
        tunnel->is_asking ? "answered before it was asked"
                          : "sent bytes that are not the server's");
  else if (reader->state == TNK__HTTP_READ_DONE)
    agreed(tunnel);
}

/* ---- What TCP tells ---- */

static int ask(tunnel_t *tunnel) {
  uv_buf_t buf = uv_buf_init((char *)(uintptr_t)tunnel->via->request,
                             (unsigned)tunnel->via->request_len);
  int err;

  tunnel->answer = tnk__malloc(&tunnel->net->context->alloc, sizeof(answer_t));
  if (tunnel->answer == NULL)
    return TNK_ENOMEM;
  tnk__response_init(&tunnel->answer->response, &tunnel->net->context->alloc,
                     0);
  tnk__http_reader_init(&tunnel->answer->reader, &tunnel->answer->response, 1);
  tunnel->state = ASKING;
  tunnel->n_asked = buf.len;
  err = tnk__stream_write(tunnel->tcp, &buf, 1);
  tunnel->is_asking = err == TNK_OK;
  return err < 0 ? err : TNK_OK;
}

static void on_tcp_open(tnk__stream_t *tcp) {
  tunnel_t *tunnel = tcp->user;
  const int err = ask(tunnel);

  if (err != TNK_OK)
    end(tunnel, err, 0, "could not be asked for a tunnel");
}

static void on_tcp_read(tnk__stream_t *tcp, const uint8_t *data, size_t n) {
  tunnel_t *tunnel = tcp->user;

  if (tunnel->state == OPEN)
    tunnel->base.events->on_read(&tunnel->base, data, n);
  else
    read_answer(tunnel, data, n);
}

/* Why a CONNECT failed is told by on_end. */
static void on_tcp_written(tnk__stream_t *tcp, int cause) {
  tunnel_t *tunnel = tcp->user;

  if (tunnel->state == OPEN)
    tunnel->base.events->on_written(&tunnel->base, cause);
  else
    tunnel->is_asking = 0;
}

static void on_tcp_end(tnk__stream_t *tcp, const tnk__net_error_t *error) {
  tunnel_t *tunnel = tcp->user;

  if (tunnel->state == ASKING && error->code != TNK_ENOMEM)
    end(tunnel, TNK_ECONN, error->cause != 0 ? error->cause : UV_EOF,
        "cut the connection off instead of answering CONNECT");
  else
    end_with(tunnel, error);
}

static void free_tunnel(tunnel_t *tunnel) {
  tnk__net_t *net = tunnel->net;

  free_answer(tunnel);
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

/* ---- What the owner does ---- */

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

/* While the proxy is asked, its answer has to be read all the same. */
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
  tunnel->state = CLOSING;
  tnk__stream_close(tunnel->tcp);
}

static const tnk__stream_ops_t tunnel_ops = {
    tunnel_write, tunnel_n_sent, tunnel_pause, tunnel_hold_loop, tunnel_close};

int tnk__tunnel_open(tnk__stream_t **out, tnk__net_t *net,
                     const tnk__via_t *via, const tnk__stream_events_t *events,
                     void *user) {
  tunnel_t *tunnel = tnk__calloc(&net->context->alloc, 1, sizeof(*tunnel));

  *out = NULL;
  if (tunnel == NULL)
    return TNK_ENOMEM;
  tunnel->base = (tnk__stream_t){&tunnel_ops, events, user};
  tunnel->net = net;
  tunnel->via = via;
  tnk__net_ref(net);
  if (tnk__tcp_open(&tunnel->tcp, net, NULL, via, 0, &tcp_events, tunnel) !=
      TNK_OK) {
    free_tunnel(tunnel);
    return TNK_ENOMEM;
  }
  *out = &tunnel->base;
  return TNK_OK;
}
