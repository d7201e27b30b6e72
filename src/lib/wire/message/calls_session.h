/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_MESSAGE_CALLS_SESSION_H
#define TNK_LIB_WIRE_MESSAGE_CALLS_SESSION_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "tnk/result.h"
#include "tnk/service.h"

/*
 * Bodies and responses of the calls for a session. In all files calls_*:
 *
 * - A writing function appends one JSON object to `out` and keeps the first
 *   failure in `out->err`: TNK_ENOMEM, TNK_ETOOBIG, or TNK_EINVAL for text that
 *   is not UTF-8. A NULL string is omitted if the protocol allows that.
 * - A reading function returns TNK_OK, TNK_EPROTO or TNK_ENOMEM, and leaves
 *   *out unchanged on failure. Its results are in the arena. Unknown members
 *   are ignored, and a null counts as absent.
 */

/* The version of the official client whose protocol this library uses. */
#define TNK__PROTOCOL_VERSION "0.38.0"

/* Write the body of client/config and client/dynamic_config. */
void tnk__client_config_write(tnk__buf_t *out);

/* The response of client/config: chosen by the server, and fixed for the
 * lifetime of the service. */
typedef struct {
  int use_jwt;                /* exchange the key for a JWT (auth/token) */
  int credential_cmd;         /* get that credential from the command */
  int parallel_chunks;        /* send the chunks of a pass in parallel; on */
  int compress_train;         /* use zstd for the bodies of forward_backward */
  int sample_fail_fast;       /* report the first failure of a sample */
  int sample_watch;           /* end samples without progress for 2 h; on */
  int batched_polls;          /* samples may wait on retrieve_futures */
  int join_samplers;          /* request the clone id of a recreated sampler */
  int server_losses;          /* traced custom losses may be uploaded */
  uint64_t train_chunk_items; /* maximum examples in a chunk; 1,024 */
  /* Maximum estimated bytes in a chunk; 5,000,000. */
  uint64_t train_chunk_bytes;
  /* Byte budget of chunks being sent; 50,000,000. */
  uint64_t train_dispatch_bytes;
  /* Byte budget of samples being sent; 10 MiB. */
  uint64_t sample_dispatch_bytes;
  uint64_t sample_concurrency; /* maximum samples under way; 2,000 */
  uint64_t result_bytes;       /* byte budget of large results; 50 MiB */
  uint64_t billing_pause_s;    /* longest pause after a 402; 3,600 */
} tnk__flags_t;

/* Set the defaults, which apply if the server sends nothing. */
void tnk__flags_default(tnk__flags_t *flags);
/* Read the server's values over the defaults. */
int tnk__flags_read(tnk__flags_t *flags, const uint8_t *body, size_t n);

/* The response of client/dynamic_config, which is fetched periodically. */
typedef struct {
  uint64_t refresh_interval_s; /* 300 */
  int sample_cancel;           /* report abandoned samples to the server; off */
  /* Maximum cancels sent in parallel; 64, at least 1. */
  uint64_t sample_cancel_batch;
} tnk__dynamic_flags_t;

void tnk__dynamic_flags_default(tnk__dynamic_flags_t *flags);
int tnk__dynamic_flags_read(tnk__dynamic_flags_t *flags, const uint8_t *body,
                            size_t n);

/* Write the body of auth/token, which returns a token for the key. */
void tnk__auth_token_write(tnk__buf_t *out);
int tnk__auth_token_read(const char **jwt, tnk__arena_t *arena,
                         const uint8_t *body, size_t n);

void tnk__create_session_write(tnk__buf_t *out, const char *const *tags,
                               size_t n_tags, const tnk_pair_t *user_metadata,
                               size_t n_user_metadata, const char *project_id,
                               const char *display_name);

typedef struct {
  const char *session_id;
  const char *info_message; /* messages to log, each at its level; or NULL */
  const char *warning_message;
  const char *error_message;
} tnk__create_session_reply_t;

int tnk__create_session_read(tnk__create_session_reply_t *out,
                             tnk__arena_t *arena, const uint8_t *body,
                             size_t n);

void tnk__heartbeat_write(tnk__buf_t *out, const char *session_id);

/* Write the body of sessions/{id}/finish. `reason` is "success", "errored" or
 * "interrupted". `detail` may be NULL and is still sent. */
void tnk__finish_session_write(tnk__buf_t *out, const char *reason,
                               const char *detail);

/* Read the response of GET get_server_capabilities. The result is in the
 * arena. */
int tnk__capabilities_read(tnk_capabilities_t **out, tnk__arena_t *arena,
                           const uint8_t *body, size_t n);
/* Read the response of GET healthz. TNK_OK means that the server is healthy. */
int tnk__health_read(const uint8_t *body, size_t n);

#endif
