#ifndef TNK_SERVER_HTTP_H
#define TNK_SERVER_HTTP_H

#include <uv.h>

#include "lib/base/buf.h"
#include "lib/base/list.h"
#include "server/full.h"
#include "tnk/common.h"

/*
 * A server of HTTP/1.1 and, where it is built with nghttp2, of HTTP/2: reads
 * requests whole, hands each to one handler, which answers now or later. Knows
 * nothing of what the requests mean. A handler cannot tell the versions apart,
 * but by a name that is for people.
 */
typedef struct tnk__srv tnk__srv_t;

enum {
  TNK__SRV_SCRATCH = 64 * 1024,
  TNK__SRV_MAX_KEEP = 256,
  TNK__SRV_STREAMS = 128 /* of a connection, unless it is told otherwise */
};

struct tnk__srv_req;

/* What an answer will be; `body` is an allocation of the server. */
typedef struct {
  int status; /* -1: none, the connection or the stream is dropped */
  const char *content_type;
  const char *extra; /* NULL or complete header lines */
  uint8_t *body;
  size_t len;
  /* What only hooks change. */
  char line[1200];    /* one more line of the header, or "" */
  uint64_t announced; /* length of the body, as the header says */
  size_t n_sent;      /* bytes of it that are sent */
  uint64_t rate;      /* at this many a second; 0: at once */
  int is_twice;       /* HTTP/1.1: the whole answer, directly behind itself */
  int is_goodbye;     /* the connection takes no further requests */
  int ends_conn;      /* where it is dropped, so are the neighbours */
} tnk__srv_answer_t;

/* What a version of HTTP does with a request in hand. */
typedef struct {
  const char *name; /* "HTTP/2" */
  /* Send the answer, whose body is taken. The request is over for whoever
   * handled it. */
  void (*answer)(struct tnk__srv_req *req, const tnk__srv_answer_t *answer);
  /* Let the peer see that there will be none. */
  void (*drop)(struct tnk__srv_req *req);
  /* Send the head of an answer in pieces, then some of them, then the last. */
  void (*begin)(struct tnk__srv_req *req, const tnk__srv_answer_t *head);
  void (*keep)(struct tnk__srv_req *req, const char *text);
  void (*finish)(struct tnk__srv_req *req, uint8_t *body, size_t len);
} tnk__srv_req_ops_t;

/* How a request ends unserved, when a hook wants it. */
typedef struct {
  enum {
    TNK__SRV_END_NOT = 0, /* it does not */
    TNK__SRV_END_RESET,   /* HTTP/1.1: the connection is reset; HTTP/2: its
                             stream, with `code` */
    TNK__SRV_END_CONN,    /* the connection is reset */
    TNK__SRV_END_AWAY     /* the connection takes neither this one nor others */
  } how;
  uint32_t code;
} tnk__srv_end_t;

/* One request; belongs to its connection, or to its stream of one. */
typedef struct tnk__srv_req {
  tnk__srv_t *http;
  const tnk__srv_req_ops_t *ops;
  const char *method;
  const char *path;    /* percent-decoded, NUL-terminated */
  const char *query;   /* as received, without '?'; "" without one */
  tnk__buf_t url;      /* what the two lie in */
  tnk__buf_t head;     /* name NUL value NUL ..., names in lower case */
  tnk__buf_t body;     /* the handler may take it */
  size_t n_bytes_sent; /* of the request's body, before any decoding */
  int64_t seq_id;      /* for the observer; -1: none */
  uint64_t tag;        /* the handler's own, 0 at first */
  uint64_t key_hash;   /* not 0: remember the answer under its key */
  uint64_t n;          /* running number, from 1 */
  size_t n_headers;
  int is_head;        /* the answer goes without its body */
  void *fate;         /* the hooks' own */
  tnk__srv_end_t end; /* how it ends unserved */
  /* Set while parked: the connection is gone, forget the request. */
  void (*on_gone)(struct tnk__srv_req *req, void *user);
  void *user;
} tnk__srv_req_t;

/* What a server that fails on purpose has a say in; none is NULL. */
typedef struct {
  /* Whether a new connection is reset. */
  int (*refuses)(void *user);
  /* The head has come, with this target: whether the request goes on. May set
   * its `fate`. */
  tnk__srv_end_t (*on_head)(tnk__srv_req_t *req, const char *url, void *user);
  /* Change its answer. */
  void (*shape)(tnk__srv_req_t *req, tnk__srv_answer_t *answer, void *user);
  /* Forget its `fate`, which is not NULL. */
  void (*forget)(tnk__srv_req_t *req, void *user);
} tnk__srv_hooks_t;

typedef struct {
  const char *host;
  int port;         /* 0: any free one */
  size_t max_body;  /* bytes as received; larger: 413 */
  size_t max_conns; /* for more, see `full` */
  tnk__srv_full_t full;
  uint32_t max_streams; /* at a time on a connection; 0: TNK__SRV_STREAMS */
  /* Files in PEM or DER. NULL, both of them: no TLS. */
  const char *tls_cert;
  const char *tls_key;
  /* Gets a sentence when opening fails and the code does not say it all. May
   * be NULL. Not used later. */
  char *why;
  size_t n_why;
  const tnk_allocator_t *alloc;
  /* For servers that fail on purpose. May be NULL; outlive the server. */
  const tnk__srv_hooks_t *hooks;
  void *hooks_user;
  /* Called when the head of a request has come, before its body is read: 0, or
   * a status to refuse it with. May be NULL. */
  int (*admit)(tnk__srv_req_t *req, void *user);
  /* Answers a request that is refused, by `admit` or because it cannot be read;
   * `text` is a sentence, "" for those of `admit`. Its headers are gone, and
   * its path may be cut. NULL: {"detail": text}. */
  void (*refuse)(tnk__srv_req_t *req, int status, const char *text, void *user);
  /* Called for each complete request; must answer or park it. */
  void (*handle)(tnk__srv_req_t *req, void *user);
  /* Called with each answer, before a hook changes it; may be NULL. */
  void (*on_answer)(tnk__srv_req_t *req, int status, const uint8_t *body,
                    size_t len, void *user);
  /* Called with the status that goes out, -1: none does; may be NULL. */
  void (*on_reply)(tnk__srv_req_t *req, int status, void *user);
  /* Called when a connection waits and all others are busy: whoever holds a
   * request may answer it now. May be NULL. */
  void (*on_full)(void *user);
  void *user;
} tnk__srv_config_t;

struct tnk__srv {
  uv_tcp_t listener;
  tnk__srv_config_t config;
  struct tnk__srv_versions *versions; /* what connections share, of both */
  struct tnk__srv_tls *tls;           /* NULL: without it */
  uv_idle_t resumer;    /* runs while one of these lists has some, */
  uv_idle_cb resume;    /* which it goes on with */
  tnk__list_t resuming; /* connections that go on from the loop, see conn.h */
  tnk__list_t shaking;  /* handshakes of TLS that wait for their turn */
  tnk__list_t conns;
  size_t n_conns;
  size_t most_conns; /* that there ever were */
  size_t n_refused;  /* of them, those that get 503 */
  int waiting;       /* libuv has a connection that has not been taken */
  void (*take)(struct tnk__srv *http); /* it, if there is room */
  void (*free_parts)(struct tnk__srv *http);
  size_t n_open; /* handles libuv still knows: listener and connections */
  uint64_t n_requests;
  uint64_t n_requests_h2; /* of them, those by HTTP/2 */
  uint64_t n_accepted;
  int port;
  int draining; /* no further connections are taken */
  int closing;
  void (*closed_cb)(void *user);
  void *closed_user;
  uv_tcp_t refused; /* a connection that is not served */
  int refusing;     /* it is open */
  int refuse_again; /* another one waits */
  char *scratch;    /* what connections read into; consumed at once */
};

/* Whether this build speaks HTTP/2. */
int tnk__srv_has_h2(void);
/* Listen. Must be closed afterwards, also when it failed. TNK_OK or a negative
 * code, libuv's own included. */
int tnk__srv_open(tnk__srv_t *http, uv_loop_t *loop,
                  const tnk__srv_config_t *config);
/* Drop the connections that have waited for the rest of a request, or for the
 * next one, since before `since_ms` of the loop's time. */
void tnk__srv_sweep(tnk__srv_t *http, uint64_t since_ms);
/* Take no further connections, close those that are idle, and each of the
 * others when its requests are answered. HTTP/2 sends GOAWAY. `n_conns` is 0
 * then. */
void tnk__srv_drain(tnk__srv_t *http);
/* Drop all connections, answered or not; then `closed` runs. */
void tnk__srv_close(tnk__srv_t *http, void (*closed)(void *user), void *user);

/* The value of a header, or NULL; `name` in lower case. */
const char *tnk__srv_req_header(const tnk__srv_req_t *req, const char *name);
/* How many headers of that name there are. */
size_t tnk__srv_req_count(const tnk__srv_req_t *req, const char *name);
/* Decode a parameter of the query into `out`; 1 when present and short
 * enough. */
int tnk__srv_req_query(const tnk__srv_req_t *req, const char *name, char *out,
                       size_t size);
/*
 * Answer. `body` is an allocation that is taken (NULL with len 0: none).
 * `extra` is NULL or complete header lines. The request must not be touched
 * afterwards.
 */
void tnk__srv_req_reply(tnk__srv_req_t *req, int status,
                        const char *content_type, const char *extra,
                        uint8_t *body, size_t len);
/* Answer with text, which is copied. */
void tnk__srv_req_reply_text(tnk__srv_req_t *req, int status,
                             const char *content_type, const char *text);
/*
 * Answer in pieces: the head now, and the request stays in hand, parked as it
 * is. `extra` as above. Not for HEAD. The peer may be gone when it returns, and
 * `on_gone` has been called then.
 */
void tnk__srv_req_open(tnk__srv_req_t *req, int status,
                       const char *content_type, const char *extra);
/* Send a piece that may be left out, as it is while the one before has not been
 * sent, so that a peer that reads slowly costs no memory. At most
 * TNK__SRV_MAX_KEEP bytes. */
void tnk__srv_req_keep(tnk__srv_req_t *req, const char *text);
/* Send the last piece, which is taken as by tnk__srv_req_reply(). */
void tnk__srv_req_finish(tnk__srv_req_t *req, uint8_t *body, size_t len);
/* Hang up instead of answering. */
void tnk__srv_req_drop(tnk__srv_req_t *req);
/* Answer later; `on_gone` is called instead if the peer hangs up. */
void tnk__srv_req_park(tnk__srv_req_t *req,
                       void (*on_gone)(tnk__srv_req_t *req, void *user),
                       void *user);

#endif
