/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_STUB_STATE_H
#define TNK_TOOLS_LOCAL_STUB_STATE_H

#include "lib/base/buf.h"
#include "server/http.h"
#include "tools/local/stub/stub.h"
#include "tools/local/base/drain.h"
#include "tools/local/base/timers.h"

/*
 * The name of a future contains all of its data:
 * "<kind>:<due>:<samples>:<tokens>: <turn>:<number>". For a pass <tokens> is
 * the time of its last byte. <turn> is the turn of a sample's first answer.
 */
enum { LOCAL_STUB_MAX_ID = 80 };

/* A sample, for batched polls. */
typedef struct {
  char id[LOCAL_STUB_MAX_ID];
  uint64_t due_ms;
} local_stub_sample_t;

/* The state of a sample. */
typedef struct {
  uint64_t there_ns; /* when its result was available; 0: not yet */
  int is_cut;        /* a poll for it was cut */
} local_stub_fate_t;

struct local_stub {
  tnk__srv_t http;
  local_timers_t timers;
  uv_loop_t *loop;
  local_stub_options_t options;
  tnk__buf_t config;    /* the answer of client/config */
  uint64_t n_ids;       /* number of ids since the start */
  uint64_t n_fetched;   /* number of results sent; a repeated poll counts */
  uint64_t idle_since;  /* when the last of all results was sent; 0: never */
  uint64_t idle_ns;     /* time without accepted work, between two requests */
  uint64_t n_idle;      /* number of these times */
  uint64_t last_due_ms; /* when the last result is available */
  local_drain_t drain;
  int drains;              /* accepts no further work */
  uint64_t n_turns;        /* number of sequences in samples */
  uint64_t n_cut;          /* number of cut polls */
  size_t n_held;           /* number of polls held now */
  tnk__list_t batch_polls; /* held polls for all samples */
  uint64_t n_batch_polls;  /* number of batched polls that were held */
  /* Samples since the last sampling session was created, in the order of their
   * ends; cursors are indexes into it. */
  local_stub_sample_t *samples;
  size_t n_samples;
  size_t max_samples;
  /* By number, for samples from `first` on. */
  local_stub_fate_t *fates;
  uint64_t first;
  size_t max_fates;
  int n_open; /* handles that libuv has not released */
  int32_t tokens[LOCAL_STUB_MAX_TOKENS];
  float logprobs[LOCAL_STUB_MAX_TOKENS];
};

/* ---- The stub ---- */

static inline uint64_t local_stub_now(const local_stub_t *stub) {
  return uv_now(stub->loop);
}

/* ---- Values in a body ---- */

/* Find a number in the JSON of a trusted body; `otherwise` if it is missing. */
uint64_t local_stub_number(const tnk__srv_req_t *req, const char *key,
                           uint64_t otherwise);
/* Copy the id of the request's future to `out`, which has LOCAL_STUB_MAX_ID
 * bytes. Returns NULL without an id. */
const char *local_stub_id(const tnk__srv_req_t *req, char *out);

/* ---- poll.c ---- */

/* Reset batched polls. */
void local_stub_forget_samples(local_stub_t *stub);
/* Add an accepted sample. */
void local_stub_remember(local_stub_t *stub, const char *id, uint64_t due_ms);
/* Handle a poll for one result, and a poll for all finished samples. */
void local_stub_retrieve(local_stub_t *stub, tnk__srv_req_t *req);
void local_stub_retrieve_batch(local_stub_t *stub, tnk__srv_req_t *req);

/* ---- Samples ---- */

/* The tokens of a sequence. */
typedef struct {
  const int32_t *tokens;
  size_t n;
  int is_length; /* truncated */
} local_stub_drawn_t;

/* Write the sequences of a sample to the log, if there is one. Returns TNK_OK,
 * TNK_EPROTO (the prompt), TNK_EFILE or TNK_ENOMEM. */
int local_stub_log(const local_stub_t *stub, const tnk__srv_req_t *req,
                   const char *id, uint64_t turn, uint64_t n,
                   uint64_t n_tokens);

#endif
