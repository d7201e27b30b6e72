#ifndef TNK_TOOLS_LOCAL_STUB_STATE_H
#define TNK_TOOLS_LOCAL_STUB_STATE_H

#include "lib/base/buf.h"
#include "server/http.h"
#include "tools/local/stub/stub.h"
#include "tools/local/base/timers.h"

/*
 * The name of a future says all about it: "<kind>:<due>:<samples>:<tokens>:
 * <turn>:<number>". For a pass <tokens> is the moment at which its last byte
 * came; <turn> is that of the first answer of a sample.
 */
enum { LOCAL_STUB_MAX_ID = 80 };

/* A sample, for batched polls. */
typedef struct {
  char id[LOCAL_STUB_MAX_ID];
  uint64_t due_ms;
} local_stub_sample_t;

/* What has become of a sample. */
typedef struct {
  uint64_t there_ns; /* when its result was there; 0: it is not */
  int is_cut;        /* a poll for it was */
} local_stub_fate_t;

struct local_stub {
  tnk__srv_t http;
  local_timers_t timers;
  uv_loop_t *loop;
  local_stub_options_t options;
  tnk__buf_t config;       /* the answer of client/config */
  uint64_t n_ids;          /* given out since the start */
  uint64_t n_turns;        /* sequences of samples, of them */
  uint64_t n_cut;          /* polls */
  size_t n_held;           /* polls, now */
  tnk__list_t batch_polls; /* of them, those for all samples */
  uint64_t n_batch_polls;  /* that were ever held */
  /* Samples since the last sampling session was made, in order of their ends;
   * cursors count them. */
  local_stub_sample_t *samples;
  size_t n_samples;
  size_t max_samples;
  /* By number, of samples from `first` on. */
  local_stub_fate_t *fates;
  uint64_t first;
  size_t max_fates;
  int n_open; /* what libuv has not let go of */
  int32_t tokens[LOCAL_STUB_MAX_TOKENS];
  float logprobs[LOCAL_STUB_MAX_TOKENS];
};

/* ---- open.c ---- */

static inline uint64_t local_stub_now(const local_stub_t *stub) {
  return uv_now(stub->loop);
}

/* ---- request.c ---- */

/* A number in the JSON of a body that we trust; `otherwise` when it is not
 * there. */
uint64_t local_stub_number(const tnk__srv_req_t *req, const char *key,
                           uint64_t otherwise);
/* Find the future that the request names, into `out`, which has room for
 * LOCAL_STUB_MAX_ID bytes. NULL: none. */
const char *local_stub_id(const tnk__srv_req_t *req, char *out);

/* ---- poll.c ---- */

/* Let batched polls begin anew. */
void local_stub_forget_samples(local_stub_t *stub);
/* Note that a sample was accepted. */
void local_stub_remember(local_stub_t *stub, const char *id, uint64_t due_ms);
/* Serve a poll for one result, and one for all samples that have ended. */
void local_stub_retrieve(local_stub_t *stub, tnk__srv_req_t *req);
void local_stub_retrieve_batch(local_stub_t *stub, tnk__srv_req_t *req);

/* ---- drawn.c ---- */

/* The tokens of a sequence. */
typedef struct {
  const int32_t *tokens;
  size_t n;
  int is_length; /* they were cut off */
} local_stub_drawn_t;

local_stub_drawn_t local_stub_drawn(const local_stub_t *stub, uint64_t turn,
                                    uint64_t n_tokens);
/* Write the sequences of a sample to the log, if there is one. TNK_OK,
 * TNK_EPROTO (the prompt), TNK_EFILE or TNK_ENOMEM. */
int local_stub_log(const local_stub_t *stub, const tnk__srv_req_t *req,
                   const char *id, uint64_t turn, uint64_t n,
                   uint64_t n_tokens);

/* ---- result.c ---- */

void local_stub_result(local_stub_t *stub, tnk__srv_req_t *req, const char *id,
                       uint64_t there_ns);

#endif
