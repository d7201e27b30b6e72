#ifndef TNK_TOOLS_LOCAL_CALL_CALL_H
#define TNK_TOOLS_LOCAL_CALL_CALL_H

#include <jansson.h>

#include "lib/wire/format/json_write.h"
#include "tools/local/call/state.h"

/*
 * One request in the hands of its handler, and the ways to answer it. Handlers
 * answer exactly once; after that only `server` may be used.
 */
typedef struct {
  local_server_t *server;
  tnk__srv_req_t *req;
  const json_t *body;   /* the object sent, or NULL when it is protobuf */
  const uint8_t *bytes; /* the body, decompressed */
  size_t n_bytes;
  char *args[3]; /* parts of the path that the route left open */
} local_call_t;

/* ---- Answers ---- */

/* Answer with what is in `buf`, which is emptied. */
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
/* Answer with the promise of a result; `ids` is NULL or a JSON array. */
void local_reply_future(local_call_t *call, const char *request_id,
                        const char *model_id, const char *ids);

/* A writer for an answer; finish with local_reply_written(). */
typedef struct {
  tnk__buf_t buf;
  tnk__json_writer_t w;
} local_out_t;
void local_out_init(local_out_t *out, const tnk_allocator_t *alloc);
void local_out_reply(local_out_t *out, tnk__srv_req_t *req, int status);

/* ---- Members of the body ---- */

/* Get a member: `need` one that is required, `want` one that is optional and
 * leaves *out alone when absent or null. They answer the request themselves
 * when it is not as it must be, and return 0 then. */
int local_need_text(local_call_t *call, const char *key, const char **out);
int local_want_text(local_call_t *call, const char *key, const char **out);
int local_want_int(local_call_t *call, const char *key, int64_t min,
                   int64_t max, int64_t *out);
/* "ttl_seconds", which is 0 without one: an hour to ten years. */
int local_want_ttl(local_call_t *call, int64_t *out);
int local_want_bool(local_call_t *call, const char *key, int *out);
int local_want_double(local_call_t *call, const json_t *object, const char *key,
                      double *out);

/* "user_metadata" as text of the server's allocator; NULL: none. */
char *local_metadata(local_call_t *call);
/* The session in "session_id", which is alive; NULL: answered. */
local_session_t *local_need_session(local_call_t *call);

/* Milliseconds since 1970, by the server's clock. On any thread. */
int64_t local_now_ms(const local_server_t *server);
/* The name of the base model, and of its tokenizer. */
const char *local_base_name(const local_server_t *server);
const char *local_tokenizer_name(const local_server_t *server);
int local_is_base(const local_server_t *server, const char *name);
/* The status of what was made, which differs between the servers that we
 * resemble. */
int local_status_created(const local_server_t *server);

#endif
