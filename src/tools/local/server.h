#ifndef TNK_TOOLS_LOCAL_SERVER_H
#define TNK_TOOLS_LOCAL_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "tools/local/base/drawn.h"
#include "server/full.h"
#include "tools/local/fault/fault.h"
#include "tnk/common.h"

/*
 * The local server: the Tinker API over HTTP/1.1 and HTTP/2, with a small
 * byte-level model that really trains. It runs on the caller's loop; model work
 * goes to libuv's thread pool in slices, so the loop stays quick. SIGPIPE is
 * blocked in the calling thread, because libuv's writes raise it.
 *
 *     local_options_t options = LOCAL_OPTIONS_INIT;
 *     local_server_t *server;
 *
 *     err = local_server_open(&server, loop, &options);
 *     ... http://127.0.0.1:<local_server_port(server)> ...
 *     local_server_close(server, on_closed, user);
 */
typedef struct local_server local_server_t;

/*
 * How the server treats the sequence numbers of a model's training requests,
 * and which of three known servers it resembles in its answers.
 *
 * LENIENT   Runs in the order of arrival; gaps do not matter. A repeated
 *           number with the same bytes gives the same request id, with other
 *           bytes 409. A failed request answers 400 {"detail"}; a poll that
 *           finds nothing answers 408.
 * STRICT    Runs only the very next number. Any other is accepted and its
 *           future fails with 409 "Sequence conflict: expected N, got M". A
 *           request that failed has not used its number up. Polls that find
 *           nothing answer 200 try_again; creations answer 201 and 202.
 * BUFFERED  Holds requests until the gap before them closes, without a limit
 *           in time, as the hosted service does. A repeated number with the
 *           same bytes gives the same request id, with other bytes 422. A
 *           failed request answers 200 {"error","category"} and has used its
 *           number up; one refused at once has not, but is no gap either.
 */
typedef enum {
  LOCAL_BUFFERED = 0,
  LOCAL_LENIENT = 1,
  LOCAL_STRICT = 2
} local_sequence_t;

/*
 * What the server does with members of a request's body that it does not know.
 *
 * ANY     Ignores them, as the hosted service does.
 * STRICT  Answers 422 that names them. Known are those that clients of the
 *         protocol's 0.25 sent, as on a server of that age which declares its
 *         requests strictly. Such a server makes no model from a checkpoint in
 *         one call either: load_weights without model_id is answered 400.
 */
typedef enum {
  LOCAL_MEMBERS_ANY = 0,
  LOCAL_MEMBERS_STRICT = 1
} local_members_t;

/* How the server answers the archive call of clients up to 0.25. */
typedef enum {
  LOCAL_ARCHIVE_REDIRECT = 0, /* 302, the link in Location */
  LOCAL_ARCHIVE_JSON = 1,     /* 200, the link in the body */
  LOCAL_ARCHIVE_NONE = 2      /* 404: it is not offered */
} local_archive_t;

/* One request, as the observer sees it. Texts live until it returns. */
typedef struct {
  const char *method;
  const char *path; /* decoded, without the query */
  const void *body; /* decompressed; NULL once answered */
  size_t n_body;
  int64_t seq_id;      /* -1: none in the request */
  uint64_t n;          /* running number of the request, from 1 */
  const char *version; /* of HTTP: "HTTP/1.1" or "HTTP/2" */
  int status; /* 0: it has arrived; -1: dropped; else the answer's status */
  const char *accept;          /* "" without the header */
  const char *idempotency_key; /* "" without the header */
} local_seen_t;

typedef struct {
  /* Address to listen on, numeric. NULL: 127.0.0.1. Another one than a
   * loopback address is refused without an api_key. */
  const char *host;
  /* 0: any free port, see local_server_port(). */
  int port;
  /* Files of a certificate and its key, in PEM or DER, for TLS. NULL, both of
   * them: none. */
  const char *tls_cert;
  const char *tls_key;
  /* Wanted in X-API-Key: without it 401, with another one 403. NULL: any. */
  const char *api_key;
  /* How long a token lives that auth/token gives for the key; everything but
   * client/config and auth/token then wants one, else 401. At most a year. 0:
   * the key does. */
  uint64_t token_life_s;
  /* Directory of the checkpoints; made when it is missing, and kept. NULL: a
   * temporary directory that closing removes. */
  const char *data;
  /* Directory that gets the tokenizer of the model, and whose name the model
   * then has beside TNK__LM_NAME. NULL: none. */
  const char *model_dir;
  /* Another name of the base model, which the server then announces. NULL: the
   * directory's, or TNK__LM_NAME. */
  const char *model;
  /* The tokenizer of the model is in model_dir already, and nothing is written
   * there; n_vocab is its number of ids. */
  int has_tokenizer;
  /* A result becomes visible no earlier than this after its request. */
  uint64_t latency_ms;
  /* How long a poll is held before "not yet" is answered. */
  uint64_t hold_ms;
  /* How long links to files of external weights are good. */
  uint64_t link_life_s;
  /* A session whose heartbeats stopped for this long ends; one that never
   * sent any does not. 0: never. */
  uint64_t session_timeout_ms;
  /* A connection that sends nothing for this long while the server waits for a
   * request, or for the rest of one, is closed. 0: never. */
  uint64_t idle_ms;
  local_sequence_t sequence;
  local_members_t members;
  local_archive_t archive;
  /* Ids of the vocabulary, more than the model has: see lm/vocab.h. At most
   * 16,777,216; 0: those of the model. */
  int32_t n_vocab;
  /* Answer JSON also to those who accept protobuf. */
  int json_results;
  /* Answer large results with their size first, to those who allow it, from
   * this many bytes on. 0: never. */
  size_t metadata_from;
  /* Members of client/config and client/dynamic_config: names with values in
   * JSON ("true", "64"); a value that is no JSON is taken as text. */
  const tnk_pair_t *flags;
  size_t n_flags;
  /* Ceilings. */
  size_t max_body;        /* of a request, as sent and decompressed */
  size_t max_connections; /* for more, see `full` */
  tnk__srv_full_t full;
  uint32_t max_streams; /* requests at a time on one of HTTP/2; 0: 128 */
  size_t max_pending;   /* requests without a result; more: 429 */
  size_t max_results;   /* results kept; the oldest give way: 410 */
  size_t max_result_bytes;
  /* Jobs on the thread pool at a time; 0: 2. */
  unsigned n_threads;
  /* Must allow calls from several threads. NULL: malloc. Must outlive the
   * server. */
  const tnk_allocator_t *alloc;
  /* Milliseconds since 1970, for what is dated and expires; may be called on
   * threads. NULL: the system's clock. */
  int64_t (*now_ms)(void *user);
  /* Called when a request has arrived and when it is answered; only the latter
   * for one that is refused for its key or an unreadable body. */
  void (*on_request)(void *user, const local_seen_t *seen);
  /* Faults to inject. NULL: none. The caller's, outlives the server. */
  local_faults_t *faults;
  /* Where it writes what it has drawn, before it answers with it. NULL:
   * nowhere. The caller's, outlives the server. */
  local_drawn_t *sample_log;
  void *user;
  /* Receives one sentence when opening fails. May be NULL. */
  char *why;
  size_t n_why;
} local_options_t;

#define LOCAL_OPTIONS_INIT                                                     \
  {                                                                            \
    .hold_ms = 20000, .session_timeout_ms = 300000, .idle_ms = 300000,         \
    .link_life_s = 900, .max_body = (size_t)256 << 20,                         \
    .max_connections = 4096, .max_pending = 16384, .max_results = 16384,       \
    .max_result_bytes = (size_t)512 << 20                                      \
  }

/*
 * Start listening. `options` is copied, its texts too. NULL: defaults.
 *
 * Returns TNK_OK; TNK_EINVAL for options out of range; TNK_ENOMEM; a code of
 * libuv (negative) when the address or the directory cannot be used. On failure
 * nothing is left, but the loop must still be run for the handles to be closed.
 */
int local_server_open(local_server_t **out, uv_loop_t *loop,
                      const local_options_t *options);
uint16_t local_server_port(const local_server_t *server);
/* Where the checkpoints are. */
const char *local_server_data(const local_server_t *server);
/*
 * Take no further work, and let clients fetch the results of the work under
 * way. A result that nobody fetches is kept for 5 seconds. Then connections
 * close, each after the answers to its requests.
 */
void local_server_drain(local_server_t *server);
/* Whether a server that drains has no connections left. Ask often: draining
 * advances only here. */
int local_server_is_drained(local_server_t *server);
/*
 * Drop all connections and all work; `closed` runs on the loop when nothing
 * is left. NULL: nobody is told. The server must not be used afterwards.
 */
void local_server_close(local_server_t *server, void (*closed)(void *user),
                        void *user);

/* What the server holds at the moment, for tests. */
typedef struct {
  size_t n_sessions;
  size_t n_models;
  size_t n_samplers;
  size_t n_futures; /* with and without a result */
  size_t n_waiting; /* polls that are held */
  size_t n_connections;
  uint64_t n_requests;
} local_counts_t;
local_counts_t local_server_counts(const local_server_t *server);

#endif
