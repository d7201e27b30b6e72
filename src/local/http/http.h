#ifndef TNK_LOCAL_HTTP_HTTP_H
#define TNK_LOCAL_HTTP_HTTP_H

#include <llhttp.h>
#include <uv.h>

#include "base/buf.h"
#include "base/list.h"
#include "local/fault/fault.h"
#include "tnk/common.h"

/*
 * An HTTP/1.1 server: reads requests whole, hands each to one handler, which
 * answers now or later. Knows nothing of what the requests mean.
 */
typedef struct local_http local_http_t;

enum { LOCAL_HTTP_SCRATCH = 64 * 1024 };

/* One request; embedded in its connection, which serves one at a time. */
typedef struct local_req {
  local_http_t *http;
  const char *method;
  const char *path;    /* percent-decoded, NUL-terminated */
  const char *query;   /* as received, without '?'; "" without one */
  tnk__buf_t head;     /* name NUL value NUL ..., names in lower case */
  tnk__buf_t body;     /* the handler may take it */
  size_t n_bytes_sent; /* of the request's body, before any decoding */
  int64_t seq_id;      /* for the observer; -1: none */
  uint64_t tag;        /* the handler's own, 0 at first */
  uint64_t key_hash;   /* not 0: remember the answer under its key */
  uint64_t n;          /* running number, from 1 */
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
  size_t max_conns; /* more wait until one of them ends */
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
  llhttp_settings_t settings;
  uv_idle_t resumer;    /* runs while `resuming` has connections, */
  uv_idle_cb resume;    /* which it goes on with */
  tnk__list_t resuming; /* answered, with the next request at hand */
  tnk__list_t conns;
  size_t n_conns;
  int waiting; /* libuv has a connection that has not been taken */
  void (*take)(struct local_http *http); /* it, if there is room */
  size_t n_open; /* handles libuv still knows: listener and connections */
  uint64_t n_requests;
  uint64_t n_accepted;
  int port;
  int closing;
  void (*closed_cb)(void *user);
  void *closed_user;
  uv_tcp_t refused; /* a connection that there is no memory for */
  int refusing;     /* it is open */
  int refuse_again; /* another one waits */
  char *scratch;    /* what connections read into; consumed at once */
};

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
