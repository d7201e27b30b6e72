/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_CALL_CALL_H
#define TNK_TOOLS_LOCAL_CALL_CALL_H
#include <jansson.h>

#include "lib/wire/format/json_write.h"
#include "tools/local/call/state.h"

/*
 * A request, as passed to its handler, and the functions to answer it. A
 * handler answers exactly once. After that only `server` may be used.
 */
typedef struct {
  local_server_t *server;
  tnk__srv_req_t *req;
  const json_t *body;   /* the parsed object, or NULL for protobuf */
  const uint8_t *bytes; /* the decompressed body */
  size_t n_bytes;
  char *args[3]; /* the variable parts of the path */
} local_call_t;

/* ---- Answers ---- */

/* Answer with the contents of `buf`, which is emptied. */
void local_reply_buf(tnk__srv_req_t *req, int status, tnk__buf_t *buf);
void local_reply_text(tnk__srv_req_t *req, int status, const char *json);
/* Answer {"detail": sentence}. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
void local_reply_error(tnk__srv_req_t *req, int status, const char *format, ...);
/* Answer 422 with FastAPI's list: one entry about one member of the body. */
void local_reply_invalid(tnk__srv_req_t *req, const char *type,
                         const char *member, const char *message);
/* Answer with a future; `ids` is NULL or a JSON array. */
void local_reply_future(local_call_t *call, const char *request_id,
                        const char *model_id, const char *ids);

/* A writer for an answer. It begins with an object. local_out_reply() closes
 * the object and answers the request. */
typedef struct {
  tnk__buf_t buf;
  tnk__json_writer_t w;
} local_out_t;
void local_out_begin(local_out_t *out, const tnk_allocator_t *alloc);
void local_out_reply(local_out_t *out, tnk__srv_req_t *req, int status);
/* Write a time, in milliseconds since 1970. */
void local_put_time(tnk__json_writer_t *w, const char *key, int64_t ms);

/* ---- Members of the body ---- */

/* Get a member: `need` requires it; `want` leaves *out unchanged if it is
 * absent or null. If the member is invalid, they answer the request and return
 * 0. */
int local_need_text(local_call_t *call, const char *key, const char **out);
int local_want_text(local_call_t *call, const char *key, const char **out);
int local_want_int(local_call_t *call, const char *key, int64_t min,
                   int64_t max, int64_t *out);
/* Get "ttl_seconds", between one hour and ten years; 0 if absent. */
int local_want_ttl(local_call_t *call, int64_t *out);
int local_want_bool(local_call_t *call, const char *key, int *out);
int local_want_double(local_call_t *call, const json_t *object, const char *key,
                      double *out);

/* Get "user_metadata" as a string from the server's allocator; NULL: none. */
char *local_metadata(local_call_t *call);
/* Get the active session in "session_id"; NULL: answered. */
local_session_t *local_need_session(local_call_t *call);

/* Write bytes as hexadecimal digits and a NUL. */
void local_hex(char *out, const unsigned char *bytes, size_t n);
/* The same for n random bytes, at most 32. Returns 0, or libuv's error code. */
int local_random_hex(char *out, size_t n);
/* ---- scan.c ---- */

/* The sequence number in the bytes of a ForwardBackwardRequest, or -1. It
 * parses only tags and lengths of the outermost fields. That is cheaper than
 * decoding a body before its fault is decided. */
int64_t local_scan_seq(const uint8_t *bytes, size_t n);

/*
 * Refuse a body with members that protocol version 0.25 does not have, as
 * strict servers do: answer 422 and name each of them. Returns 1 if nothing is
 * refused, else 0, and the request has been answered. `path` is the route below
 * /api/v1. Calls that version 0.25 does not have are not checked.
 */
int local_members_check(local_call_t *call, const char *path);

/* ---- The server ---- */

/* Milliseconds since 1970, by the server's clock. May be called on any
 * thread. */
int64_t local_now_ms(const local_server_t *server);
/* The names of the base model and of its tokenizer. */
const char *local_base_name(const local_server_t *server);
const char *local_tokenizer_name(const local_server_t *server);
int local_is_base(const local_server_t *server, const char *name);
/* The status for a created object, which differs between servers. */
int local_status_created(const local_server_t *server);

#endif
