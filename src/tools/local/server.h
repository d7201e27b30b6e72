/* SPDX-License-Identifier: MIT */
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
 * byte-level model that can be trained. It runs on the caller's loop. Model
 * work runs on libuv's thread pool in short slices, so the loop stays
 * responsive. SIGPIPE is blocked in the calling thread, because writes by libuv
 * can raise it.
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
 * The way in which the server handles the sequence numbers of a model's
 * training requests, and which of three known servers its answers resemble.
 *
 * LENIENT   Runs requests in the order of arrival; gaps do not matter. A
 *           repeated number with the same bytes gives the same request id,
 *           with other bytes 409. A failed request answers 400 {"detail"}; a
 *           poll without a result answers 408.
 * STRICT    Runs only the next number. Any other number is accepted, but its
 *           future fails with 409 "Sequence conflict: expected N, got M". A
 *           failed request has not used its number. Polls without a result
 *           answer 200 try_again; creations answer 201 and 202.
 * BUFFERED  Holds requests until the gap before them closes, without a time
 *           limit, as the hosted service does. A repeated number with the same
 *           bytes gives the same request id, with other bytes 422. A failed
 *           request answers 200 {"error","category"} and has used its number.
 *           A request that is refused at once has not used its number, but
 *           leaves no gap either.
 */
typedef enum {
  LOCAL_BUFFERED = 0,
  LOCAL_LENIENT = 1,
  LOCAL_STRICT = 2
} local_sequence_t;

/*
 * The way in which the server handles unknown members of a request body.
 *
 * ANY     Ignores them, as the hosted service does.
 * STRICT  Answers 422 and names them. The members of protocol version 0.25
 *         are known, as on a server of that version that parses strictly.
 *         Such a server cannot create a model from a checkpoint in one call:
 *         load_weights without model_id is answered 400.
 */
typedef enum {
  LOCAL_MEMBERS_ANY = 0,
  LOCAL_MEMBERS_STRICT = 1
} local_members_t;

/* The answer to the archive call of clients up to version 0.25. */
typedef enum {
  LOCAL_ARCHIVE_REDIRECT = 0, /* 302, the link in Location */
  LOCAL_ARCHIVE_JSON = 1,     /* 200, the link in the body */
  LOCAL_ARCHIVE_NONE = 2      /* 404: not offered */
} local_archive_t;

/* A request, as passed to the observer. Strings are valid during the
 * callback. */
typedef struct {
  const char *method;
  const char *path; /* decoded, without the query */
  const void *body; /* decompressed; NULL after the answer */
  size_t n_body;
  int64_t seq_id;      /* -1: the request has none */
  uint64_t n;          /* number of the request, from 1 */
  const char *version; /* HTTP version: "HTTP/1.1" or "HTTP/2" */
  int status; /* 0: it has arrived; -1: dropped; else status of the answer */
  const char *accept;          /* "" without the header */
  const char *idempotency_key; /* "" without the header */
} local_seen_t;

typedef struct {
  /* Numeric address to listen on. NULL: 127.0.0.1. Any address except loopback
   * requires an api_key. */
  const char *host;
  /* 0: any free port, see local_server_port(). */
  int port;
  /* Files with the certificate and its key, in PEM or DER, for TLS. Both NULL:
   * no TLS. */
  const char *tls_cert;
  const char *tls_key;
  /* The required X-API-Key: a request without a key is answered 401, with
   * another key 403. NULL: no key is required. */
  const char *api_key;
  /* Lifetime of a token from auth/token, in seconds. With it all calls except
   * client/config and auth/token require a token, else they are answered 401.
   * At most one year. 0: the key is used directly. */
  uint64_t token_life_s;
  /* Directory of the checkpoints; it is created if missing and not removed.
   * NULL: a temporary directory, removed at the end. */
  const char *data;
  /* Directory for the model's tokenizer. Its name becomes a second name of the
   * model, in addition to TNK__LM_NAME. NULL: none. */
  const char *model_dir;
  /* Another name for the base model, which the server reports. NULL: the
   * directory's name, or TNK__LM_NAME. */
  const char *model;
  /* model_dir has the model's tokenizer already, and nothing is written there;
   * n_vocab is its number of ids. */
  int has_tokenizer;
  /* Minimum delay between a request and its result, in milliseconds. */
  uint64_t latency_ms;
  /* How long a poll is held before it is answered "not yet", in
   * milliseconds. */
  uint64_t hold_ms;
  /* Lifetime of links to files of external weights, in seconds. */
  uint64_t link_life_s;
  /* A session ends this long after its last heartbeat. A session that never
   * sent one does not end. 0: never. */
  uint64_t session_timeout_ms;
  /* A connection is closed if the server waits this long for a request, or for
   * the rest of one, and receives nothing. 0: never. */
  uint64_t idle_ms;
  local_sequence_t sequence;
  local_members_t members;
  local_archive_t archive;
  /* Size of the vocabulary, if larger than the model's: see lm/vocab.h. At most
   * 16,777,216; 0: the model's size. */
  int32_t n_vocab;
  /* Answer JSON even to clients that accept protobuf. */
  int json_results;
  /* Results of at least this size are answered with their size first, if the
   * client allows it. 0: never. */
  size_t metadata_from;
  /* Members of client/config and client/dynamic_config: names with JSON values
   * ("true", "64"). A value that is not JSON is used as a string. */
  const tnk_pair_t *flags;
  size_t n_flags;
  /* Limits. */
  size_t max_body;        /* size of a request body, as sent and decompressed */
  size_t max_connections; /* for more, see `full` */
  tnk__srv_full_t full;
  uint32_t max_streams; /* concurrent requests per HTTP/2 connection; 0: 128 */
  size_t max_pending;   /* requests without a result; above the limit: 429 */
  size_t max_results;   /* kept results; the oldest are dropped: 410 */
  size_t max_result_bytes;
  /* Concurrent jobs on the thread pool; 0: 2. */
  unsigned n_threads;
  /* Must be thread-safe. NULL: malloc. Must outlive the server. */
  const tnk_allocator_t *alloc;
  /* Milliseconds since 1970, for dates and expiry; may be called on other
   * threads. NULL: the system clock. */
  int64_t (*now_ms)(void *user);
  /* Called when a request has arrived and when it is answered. A request that
   * is refused for its key or an unreadable body is only reported when it is
   * answered. */
  void (*on_request)(void *user, const local_seen_t *seen);
  /* Faults to inject. NULL: none. Owned by the caller; must outlive the
   * server. */
  local_faults_t *faults;
  /* The log for samples, written before they are answered. NULL: no log. Owned
   * by the caller; must outlive the server. */
  local_drawn_t *sample_log;
  void *user;
  /* Receives one sentence if opening fails. May be NULL. */
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
 * Start listening. `options` and its strings are copied. NULL: defaults.
 *
 * Returns TNK_OK, TNK_EINVAL for options out of range, TNK_ENOMEM, or libuv's
 * negative error code if the address or directory cannot be used. After a
 * failure everything is released, but the loop must still run so that handles
 * can close.
 */
int local_server_open(local_server_t **out, uv_loop_t *loop,
                      const local_options_t *options);
uint16_t local_server_port(const local_server_t *server);
/* The directory of the checkpoints. */
const char *local_server_data(const local_server_t *server);
/*
 * Accept no new work, and let clients fetch the results of pending work. A
 * result that no client fetches is kept for 5 seconds. The server stops waiting
 * after absence_ms without a connection. Then each connection closes after the
 * answers to its requests.
 */
void local_server_drain(local_server_t *server, uint64_t absence_ms);
/* Returns whether a draining server has no connections left. Call it
 * repeatedly: draining advances only here. */
int local_server_is_drained(local_server_t *server);
/*
 * Drop all connections and all work; `closed` runs on the loop when everything
 * is released. It may be NULL. The server must not be used after this call.
 */
void local_server_close(local_server_t *server, void (*closed)(void *user),
                        void *user);

/* The current number of objects in the server, for tests. */
typedef struct {
  size_t n_sessions;
  size_t n_models;
  size_t n_samplers;
  size_t n_futures; /* with and without a result */
  size_t n_waiting; /* held polls */
  size_t n_connections;
  uint64_t n_requests;
} local_counts_t;
local_counts_t local_server_counts(const local_server_t *server);

#endif
