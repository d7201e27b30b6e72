#ifndef TNK_LIB_WIRE_MESSAGE_CALLS_SESSION_H
#define TNK_LIB_WIRE_MESSAGE_CALLS_SESSION_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "tnk/result.h"
#include "tnk/service.h"

/*
 * Bodies and answers of the calls around a session. In all files calls_*:
 *
 * - A function that writes appends one JSON object to `out`, which keeps the
 *   first failure (TNK_ENOMEM, TNK_ETOOBIG, TNK_EINVAL for text that is not
 *   UTF-8) in `out->err`. A text that is NULL is left out, where the protocol
 *   allows it.
 * - A function that reads returns TNK_OK, TNK_EPROTO or TNK_ENOMEM, and leaves
 *   *out as it was on failure. What it gives out is in the arena. Unknown
 *   members are ignored; a null counts as absent.
 */

/* The version of the official client whose protocol we speak. */
#define TNK__PROTOCOL_VERSION "0.38.0"

/* Write the body of client/config and client/dynamic_config. */
void tnk__client_config_write(tnk__buf_t *out);

/* The answer of client/config: chosen by the server, fixed for the life of
 * the service. */
typedef struct {
  int use_jwt;                /* exchange the key for a JWT (auth/token) */
  int credential_cmd;         /* take the credential for it from the command */
  int parallel_chunks;        /* send the slices of a pass side by side; on */
  int compress_train;         /* zstd for the bodies of forward_backward */
  int sample_fail_fast;       /* report the first failure of a sample */
  int sample_watch;           /* end samples when nothing moves for 2 h; on */
  int batched_polls;          /* samples may wait on retrieve_futures */
  int join_samplers;          /* ask for the clone id of a rebuilt sampler */
  int server_losses;          /* traced custom losses may be uploaded */
  uint64_t train_chunk_items; /* most examples a slice; 1,024 */
  uint64_t train_chunk_bytes; /* most estimated bytes a slice; 5,000,000 */
  uint64_t train_dispatch_bytes;  /* budget of slices being sent; 50,000,000 */
  uint64_t sample_dispatch_bytes; /* budget of samples being sent; 10 MiB */
  uint64_t sample_concurrency;    /* most samples under way; 2,000 */
  uint64_t result_bytes;          /* budget of large results; 50 MiB */
  uint64_t billing_pause_s;       /* longest pause after a 402; 3,600 */
} tnk__flags_t;

/* Set what holds when the server says nothing. */
void tnk__flags_default(tnk__flags_t *flags);
/* Read the server's values over the defaults. */
int tnk__flags_read(tnk__flags_t *flags, const uint8_t *body, size_t n);

/* The answer of client/dynamic_config: fetched again and again. */
typedef struct {
  uint64_t refresh_interval_s;  /* 300 */
  int sample_cancel;            /* tell the server of abandoned samples; off */
  uint64_t sample_cancel_batch; /* cancels sent side by side; 64, at least 1 */
} tnk__dynamic_flags_t;

void tnk__dynamic_flags_default(tnk__dynamic_flags_t *flags);
int tnk__dynamic_flags_read(tnk__dynamic_flags_t *flags, const uint8_t *body,
                            size_t n);

/* Write the body of auth/token, which gives a token for the key. */
void tnk__auth_token_write(tnk__buf_t *out);
int tnk__auth_token_read(const char **jwt, tnk__arena_t *arena,
                         const uint8_t *body, size_t n);

void tnk__create_session_write(tnk__buf_t *out, const char *const *tags,
                               size_t n_tags, const tnk_pair_t *user_metadata,
                               size_t n_user_metadata, const char *project_id,
                               const char *display_name);

typedef struct {
  const char *session_id;
  const char *info_message; /* each to be logged at its level; or NULL */
  const char *warning_message;
  const char *error_message;
} tnk__create_session_reply_t;

int tnk__create_session_read(tnk__create_session_reply_t *out,
                             tnk__arena_t *arena, const uint8_t *body,
                             size_t n);

void tnk__heartbeat_write(tnk__buf_t *out, const char *session_id);

/* Write the body of sessions/{id}/finish. `reason` is "success", "errored" or
 * "interrupted"; `detail` may be NULL and is sent all the same. */
void tnk__finish_session_write(tnk__buf_t *out, const char *reason,
                               const char *detail);

/* Read the answer of GET get_server_capabilities. The result is in the
 * arena. */
int tnk__capabilities_read(tnk_capabilities_t **out, tnk__arena_t *arena,
                           const uint8_t *body, size_t n);
/* Read the answer of GET healthz; TNK_OK: the server says that it is well. */
int tnk__health_read(const uint8_t *body, size_t n);

#endif
