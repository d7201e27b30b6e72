#ifndef TNK_LOCAL_HTTP_HTTP_H
#define TNK_LOCAL_HTTP_HTTP_H

#include <uv.h>

#include "base/buf.h"
#include "base/list.h"
#include "local/base/full.h"
#include "local/fault/fault.h"
#include "tnk/common.h"

/*
 * A server of HTTP/1.1 and, where it is built with nghttp2, of HTTP/2: reads
 * requests whole, hands each to one handler, which answers now or later. Knows
 * nothing of what the requests mean. A handler cannot tell the versions apart,
 * but by a name that is for people.
 */
typedef struct local_http local_http_t;

enum {
  LOCAL_HTTP_SCRATCH = 64 * 1024,
  LOCAL_HTTP_STREAMS = 128 /* of a connection, unless it is told otherwise */
};

struct local_req;

/* What a version of HTTP does with a request in hand. */
typedef struct {
  const char *name; /* "HTTP/2" */
  /* Send the answer, whose body is taken. The request is over for whoever
   * handled it. */
  void (*answer)(struct local_req *req, const local_answer_t *answer);
  /* Let the peer see that there will be none. */
  void (*drop)(struct local_req *req);
} local_req_ops_t;

/* One request; belongs to its connection, or to its stream of one. */
typedef struct local_req {
  local_http_t *http;
  const local_req_ops_t *ops;
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
  int is_head;         /* the answer goes without its body */
  local_fault_t fault; /* what will go wrong with it */
  /* Set while parked: the connection is gone, forget the request. */
  void (*on_gone)(struct local_req *req, void *user);
  void *user;
} local_req_t;

typedef struct {
  const char *host;
  int port;         /* 0: any free one */
  size_t max_body;  /* bytes as received; larger: 413 */
  size_t max_conns; /* for more, see `full` */
  local_full_t full;
  uint32_t max_streams; /* at a time on a connection; 0: LOCAL_HTTP_STREAMS */
  /* Files in PEM or DER. NULL, both of them: no TLS. */
  const char *tls_cert;
  const char *tls_key;
  /* Gets a sentence when opening fails and the code does not say it all. May
   * be NULL. Not used later. */
  char *why;
  size_t n_why;
  const tnk_allocator_t *alloc;
  /* What goes wrong. May be NULL; outlives the server. */
  local_faults_t *faults;
  /* Called for each complete request; must answer or park it. Calls
   * local_fault_answers() before it does anything else with it. */
  void (*handle)(local_req_t *req, void *user);
  /* Called with each answer, before a fault replaces it; may be NULL. */
  void (*on_answer)(local_req_t *req, int status, const uint8_t *body,
                    size_t len, void *user);
  /* Called with the status that goes out, -1: none does; may be NULL. */
  void (*on_reply)(local_req_t *req, int status, void *user);
  /* Called when a connection waits and all others are busy: whoever holds a
   * request may answer it now. May be NULL. */
  void (*on_full)(void *user);
  void *user;
} local_http_config_t;

struct local_http {
  uv_tcp_t listener;
  local_http_config_t config;
  struct local_versions *versions; /* what connections share, of both */
  struct local_tls *tls;           /* NULL: without it */
  uv_idle_t resumer;               /* runs while one of these lists has some, */
  uv_idle_cb resume;               /* which it goes on with */
  tnk__list_t resuming; /* connections that go on from the loop, see conn.h */
  tnk__list_t shaking;  /* handshakes of TLS that wait for their turn */
  tnk__list_t conns;
  size_t n_conns;
  size_t most_conns; /* that there ever were */
  size_t n_refused;  /* of them, those that get 503 */
  int waiting;       /* libuv has a connection that has not been taken */
  void (*take)(struct local_http *http); /* it, if there is room */
  void (*free_parts)(struct local_http *http);
  size_t n_open; /* handles libuv still knows: listener and connections */
  uint64_t n_requests;
  uint64_t n_requests_h2; /* of them, those by HTTP/2 */
  uint64_t n_accepted;
  int port;
  int closing;
  void (*closed_cb)(void *user);
  void *closed_user;
  uv_tcp_t refused; /* a connection that is not served */
  int refusing;     /* it is open */
  int refuse_again; /* another one waits */
  char *scratch;    /* what connections read into; consumed at once */
};

/* Whether this build speaks HTTP/2. */
int local_http_has_h2(void);
/* Listen. Must be closed afterwards, also when it failed. TNK_OK or a negative
 * code, libuv's own included. */
int local_http_open(local_http_t *http, uv_loop_t *loop,
                    const local_http_config_t *config);
/* Drop the connections that have waited for the rest of a request, or for the
 * next one, since before `since_ms` of the loop's time. */
void local_http_sweep(local_http_t *http, uint64_t since_ms);
/* Drop all connections, answered or not; then `closed` runs. */
void local_http_close(local_http_t *http, void (*closed)(void *user),
                      void *user);

/* The value of a header, or NULL; `name` in lower case. */
const char *local_req_header(const local_req_t *req, const char *name);
/* Decode a parameter of the query into `out`; 1 when present and short
 * enough. */
int local_req_query(const local_req_t *req, const char *name, char *out,
                    size_t size);
/*
 * Answer. `body` is an allocation that is taken (NULL with len 0: none).
 * `extra` is NULL or complete header lines. The request must not be touched
 * afterwards.
 */
void local_req_reply(local_req_t *req, int status, const char *content_type,
                     const char *extra, uint8_t *body, size_t len);
/* Answer with text, which is copied. */
void local_req_reply_text(local_req_t *req, int status,
                          const char *content_type, const char *text);
/* Hang up instead of answering. */
void local_req_drop(local_req_t *req);
/* Answer later; `on_gone` is called instead if the peer hangs up. */
void local_req_park(local_req_t *req,
                    void (*on_gone)(local_req_t *req, void *user), void *user);

#endif
