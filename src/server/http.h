/* SPDX-License-Identifier: MIT */
#ifndef TNK_SERVER_HTTP_H
#define TNK_SERVER_HTTP_H

#include <uv.h>

#include "lib/base/buf.h"
#include "lib/base/list.h"
#include "server/certificate.h"
#include "server/full.h"
#include "tnk/common.h"

/*
 * A server for HTTP/1.1 and, if built with nghttp2, HTTP/2. It reads whole
 * requests and passes each one to a handler, which answers at once or later. It
 * does not interpret requests. Handlers are the same for both versions. The
 * name of the version is informational.
 */
typedef struct tnk__srv tnk__srv_t;

enum {
  TNK__SRV_SCRATCH = 64 * 1024,
  TNK__SRV_MAX_KEEP = 256,
  TNK__SRV_STREAMS = 128 /* per connection, by default */
};

struct tnk__srv_req;
struct tnk__srv_tls_conn;

/* A response; `body` was allocated with the server's allocator. */
typedef struct {
  int status; /* -1: no response; the connection or the stream is dropped */
  const char *content_type;
  const char *extra; /* NULL or complete header lines */
  uint8_t *body;
  size_t len;
  /* Only hooks change the following fields. */
  char line[1200];    /* one more header line, or "" */
  uint64_t announced; /* length of the body in the header */
  size_t n_sent;      /* how many bytes of it are sent */
  uint64_t rate;      /* bytes per second; 0: no limit */
  int is_twice;       /* HTTP/1.1: send the whole response twice */
  int is_goodbye;     /* the last response of its connection */
  int ends_conn;      /* if it is dropped, drop the whole connection */
} tnk__srv_answer_t;

/* Operations of a request, implemented by each version of HTTP. */
typedef struct {
  const char *name; /* such as "HTTP/2" */
  /* Send a response and take its body. The handler must not use the request
   * afterwards. */
  void (*answer)(struct tnk__srv_req *req, const tnk__srv_answer_t *answer);
  /* Close the connection or reset the stream, without a response. */
  void (*drop)(struct tnk__srv_req *req);
  /* Stream a response: begin() sends the head, keep() optional pieces, and
   * finish() the last piece. */
  void (*begin)(struct tnk__srv_req *req, const tnk__srv_answer_t *head);
  void (*keep)(struct tnk__srv_req *req, const char *text);
  void (*finish)(struct tnk__srv_req *req, uint8_t *body, size_t len);
} tnk__srv_req_ops_t;

/* The way in which a request ends without a response, if a hook wants that. */
typedef struct {
  enum {
    TNK__SRV_END_NOT = 0, /* it is processed */
    TNK__SRV_END_RESET,   /* HTTP/1.1: reset the connection; HTTP/2: reset the
                             stream with `code` */
    TNK__SRV_END_CONN,    /* reset the connection */
    TNK__SRV_END_AWAY     /* refuse this request and all later ones of the
                             connection */
  } how;
  uint32_t code;
} tnk__srv_end_t;

/* A request. It belongs to its connection, or to its stream. */
typedef struct tnk__srv_req {
  tnk__srv_t *http;
  const tnk__srv_req_ops_t *ops;
  const struct tnk__srv_tls_conn *tls; /* NULL: no TLS */
  const char *method;
  const char *path;    /* percent-decoded, NUL-terminated */
  const char *query;   /* raw, without '?'; may be "" */
  tnk__buf_t url;      /* memory of `path` and `query` */
  tnk__buf_t head;     /* name NUL value NUL ..., names in lowercase */
  tnk__buf_t body;     /* the handler may take it */
  size_t n_bytes_sent; /* size of the request's body, before any decoding */
  int64_t seq_id;      /* for the observer; -1: none */
  uint64_t tag;        /* free for the handler; initially 0 */
  uint32_t note;       /* free for `admit` and what follows; initially 0 */
  void *owner;         /* set by `admit`, see `on_end`; initially NULL */
  size_t max_body;     /* bytes of its body; `admit` may lower it */
  uint64_t key_hash;   /* if not 0: remember the response under this key */
  uint64_t n;          /* running number, from 1 */
  size_t n_headers;
  int is_head;        /* send the response without its body */
  int is_framed;      /* the peer can detect a response that is cut off */
  void *fate;         /* free for hooks */
  tnk__srv_end_t end; /* how it ends without a response */
  /* Set while parked. Called when the connection or stream is lost; the request
   * must not be used afterwards. */
  void (*on_gone)(struct tnk__srv_req *req, void *user);
  void *user;
} tnk__srv_req_t;

/* Fault injection: hooks of a server that fails on purpose. No member is
 * NULL. */
typedef struct {
  /* Returns whether to reset a new connection. */
  int (*refuses)(void *user);
  /* Called when the head of a request with this target has arrived. Returns how
   * the request ends. May set `fate`. */
  tnk__srv_end_t (*on_head)(tnk__srv_req_t *req, const char *url, void *user);
  /* Change the response of a request. */
  void (*shape)(tnk__srv_req_t *req, tnk__srv_answer_t *answer, void *user);
  /* Free the `fate` of a request, which is not NULL. */
  void (*forget)(tnk__srv_req_t *req, void *user);
} tnk__srv_hooks_t;

typedef struct {
  const char *host;
  int port;         /* 0: any free port */
  size_t max_body;  /* bytes of a body as received; larger: 413 */
  size_t max_conns; /* maximum number of connections; see `full` */
  tnk__srv_full_t full;
  uint32_t max_streams; /* per connection; 0: TNK__SRV_STREAMS */
  /* PEM or DER files. Both NULL: no TLS. */
  const char *tls_cert;
  const char *tls_key;
  /* PEM or DER file of the authorities that sign the certificates of clients.
   * NULL: no client is asked for a certificate. */
  const char *tls_client_ca;
  const char *tls_client_crl; /* file of revocation lists, or NULL */
  int tls_client_optional;    /* clients without a certificate are served too */
  /* Receives a sentence if opening fails for a reason that a code cannot
   * express. May be NULL. Not used after tnk__srv_open(). */
  char *why;
  size_t n_why;
  const tnk_allocator_t *alloc;
  int shares_port; /* other processes of this user may listen on the port too */
  /* Fault injection. May be NULL. Must outlive the server. */
  const tnk__srv_hooks_t *hooks;
  void *hooks_user;
  /* Called when a TLS handshake has failed because of the certificate of the
   * client. `why` is a sentence of printable ASCII. May be NULL. */
  void (*on_refused)(const char *why, void *user);
  /* Called when the head of a request has arrived, before its body is read.
   * Returns 0, or a status to refuse it with. May be NULL. */
  int (*admit)(tnk__srv_req_t *req, void *user);
  /* Answers a request that `admit` refused or that cannot be read. `text` is a
   * sentence; it is "" after `admit`. The headers are not available, and the
   * path may be truncated. NULL: respond with {"detail": text}. */
  void (*refuse)(tnk__srv_req_t *req, int status, const char *text, void *user);
  /* Called for each complete request. It must answer or park the request. */
  void (*handle)(tnk__srv_req_t *req, void *user);
  /* Called with each response, before a hook changes it. May be NULL. */
  void (*on_answer)(tnk__srv_req_t *req, int status, const uint8_t *body,
                    size_t len, void *user);
  /* Called with the status that is sent, or -1 for none. May be NULL. */
  void (*on_reply)(tnk__srv_req_t *req, int status, void *user);
  /* Called once with an `owner` when its request has been answered, was dropped
   * or is lost. The handler may take the owner over by setting it to NULL. NULL
   * if there are no owners. */
  void (*on_end)(void *owner, void *user);
  /* Called when a connection waits and all others are busy. A held request
   * should be answered now, to make a connection free. May be NULL. */
  void (*on_full)(void *user);
  void *user;
} tnk__srv_config_t;

struct tnk__srv {
  uv_tcp_t listener;
  tnk__srv_config_t config;
  struct tnk__srv_versions *versions; /* shared by all connections */
  struct tnk__srv_tls *tls;           /* NULL: no TLS */
  uv_idle_t resumer;    /* runs while `resuming` or `shaking` is not empty */
  uv_idle_cb resume;    /* callback of `resumer` */
  tnk__list_t resuming; /* connections to resume from the loop, see conn.c */
  tnk__list_t shaking;  /* TLS handshakes that wait for their turn */
  tnk__list_t conns;
  size_t n_conns;
  size_t most_conns; /* highest number so far */
  size_t n_refused;  /* how many of them get 503 */
  int waiting;       /* libuv has a connection that was not accepted yet */
  void (*take)(struct tnk__srv *http); /* accepts it if possible */
  void (*free_parts)(struct tnk__srv *http);
  size_t n_open; /* open handles: idle handle, listener and connections */
  uint64_t n_requests;
  uint64_t n_requests_h2; /* how many of them over HTTP/2 */
  uint64_t n_accepted;
  int port;
  int draining; /* no more connections are accepted */
  int closing;
  void (*closed_cb)(void *user);
  void *closed_user;
  uv_tcp_t refused; /* a connection that is closed at once */
  int refusing;     /* `refused` is open */
  int refuse_again; /* another connection waits for `refused` */
  char *scratch;    /* read buffer; consumed before the next read */
};

/* Returns whether this build supports HTTP/2. */
int tnk__srv_has_h2(void);
/* Listen. The server must be closed afterwards, even after a failure. Returns
 * TNK_OK or a negative code, which may be libuv's. */
int tnk__srv_open(tnk__srv_t *http, uv_loop_t *loop,
                  const tnk__srv_config_t *config);
/* Bind a port, 0 for a free one, so that processes with `shares_port` can
 * listen on it until the descriptor is closed. Returns the port, or libuv's
 * code: UV_EADDRINUSE if another program has the port, UV_ENOTSUP if this
 * system spreads no connections. */
int tnk__srv_reserve(const char *host, int port, int *fd);
/* Make a socket for TCP, which commands do not inherit. Returns it or libuv's
 * code. */
int tnk__srv_socket(int family);
/* Let other sockets be bound to the port of this one. Call it before bind().
 * Returns 0 or libuv's code. */
int tnk__srv_share(int fd);
/* Read a numeric address. Returns 0 or libuv's code. */
int tnk__srv_address(struct sockaddr_storage *out, const char *host, int port);
/* Close the connections that have waited since before `since_ms` (loop time)
 * for the rest of a request or for the next one. */
void tnk__srv_sweep(tnk__srv_t *http, uint64_t since_ms);
/* Accept no more connections. Close idle connections now, and the others when
 * their requests are answered. HTTP/2 sends GOAWAY. The server is drained when
 * `n_conns` is 0. */
void tnk__srv_drain(tnk__srv_t *http);
/* Close all connections, with or without a response; then `closed` runs. */
void tnk__srv_close(tnk__srv_t *http, void (*closed)(void *user), void *user);

/* Returns the value of a header, or NULL. `name` must be lowercase. */
const char *tnk__srv_req_header(const tnk__srv_req_t *req, const char *name);
/* Returns how many headers have this name. */
size_t tnk__srv_req_count(const tnk__srv_req_t *req, const char *name);
/* Decode a query parameter into `out`. Returns 1 if it is present and fits. */
int tnk__srv_req_query(const tnk__srv_req_t *req, const char *name, char *out,
                       size_t size);
/* Compare the verified certificate of a client with a name that was read. */
tnk__srv_certificate_t tnk__srv_req_certificate(const tnk__srv_req_t *req,
                                                const char *name);
/* Write the subject of the client's certificate in printable ASCII; "" without
 * a certificate. */
void tnk__srv_req_subject(const tnk__srv_req_t *req,
                          char out[TNK__SRV_SUBJECT]);
/*
 * Send a response. Takes `body`, which the server's allocator has allocated; it
 * is NULL if `len` is 0. `extra` is NULL or complete header lines. The request
 * must not be used afterwards.
 */
void tnk__srv_req_reply(tnk__srv_req_t *req, int status,
                        const char *content_type, const char *extra,
                        uint8_t *body, size_t len);
/* Send a response with a copy of `text`. */
void tnk__srv_req_reply_text(tnk__srv_req_t *req, int status,
                             const char *content_type, const char *text);
/*
 * Start a streamed response and send its head. The request stays parked.
 * `extra` is as above. Not for HEAD. If the peer disconnects during the call,
 * `on_gone` has been called when it returns.
 */
void tnk__srv_req_open(tnk__srv_req_t *req, int status,
                       const char *content_type, const char *extra);
/* Send an optional piece. It is skipped while the previous piece is not written
 * yet, so a peer that reads slowly uses no memory. At most TNK__SRV_MAX_KEEP
 * bytes. */
void tnk__srv_req_keep(tnk__srv_req_t *req, const char *text);
/* Send the last piece. Takes `body` as tnk__srv_req_reply() does. */
void tnk__srv_req_finish(tnk__srv_req_t *req, uint8_t *body, size_t len);
/* Disconnect without a response. */
void tnk__srv_req_drop(tnk__srv_req_t *req);
/* Answer later. If the peer disconnects first, `on_gone` is called instead. */
void tnk__srv_req_park(tnk__srv_req_t *req,
                       void (*on_gone)(tnk__srv_req_t *req, void *user),
                       void *user);

#endif
