/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_SAMPLE_SAMPLER_H
#define TNK_TOOLS_LOCAL_SAMPLE_SAMPLER_H

#include "lib/base/arena.h"
#include "tools/local/call/seqs.h"
#include "tools/local/future/future.h"
#include "tools/local/ledger/ledger.h"
#include "tools/local/sample/weights.h"
#include "tools/local/store/store.h"

/* A sampling session. */
typedef struct local_sampler {
  local_node_t node;
  tnk__list_t in_session;
  local_session_t *session;
  local_server_t *server;
  char id[LOCAL_ID];
  int is_base; /* samples from the base; otherwise from `place` */
  local_place_t place;
  int64_t n_clients; /* joined clients so far; the original is 0 */
  local_seqs_t seqs;
  local_lane_t lane;   /* waiting samples */
  tnk__list_t futures; /* local_future_t.in_sampler */
  tnk__list_t polls;   /* held batched polls (sample.c) */
  uint64_t cursor;     /* cursor of the latest completion */
} local_sampler_t;

/* A sampling request. */
typedef struct local_sample {
  local_job_t job;
  tnk__list_t link;   /* in a lane, or in the server's `drawing` */
  local_lane_t *lane; /* while it runs and its lane exists, else NULL */
  local_server_t *server;
  local_future_t *future; /* NULL: the result is not needed */
  local_weights_t *weights;
  tnk__arena_t arena;
  tnk__lm_draw_options_t options;
  tnk__lm_draw_t *draw;
  char session[40]; /* the session that records it (record.h); "": none */
  /* The layout of target_prompt_logprobs, repeated in the answer. */
  size_t n_asked; /* listed cells of a sparse layout, else 0 */
  const int64_t *crow;
  const int64_t *col;
  int err;
  tnk__lm_why_t why;
  const char *path; /* path of the weights, for the log; NULL: the base */
  char payer[40];   /* the session that sent the request; "": none */
  int is_streamed;  /* its result is a stream of events */
  int64_t begin_ms; /* when it began to run, since 1970; 0: not yet */
} local_sample_t;

/* ---- sampler.c ---- */

/* Create a sampling session; NULL without memory or if there are too many. */
local_sampler_t *local_sampler_new(local_session_t *session, const char *id,
                                   const local_place_t *place);
void local_sampler_free(local_sampler_t *sampler);
local_sampler_t *local_sampler_find(local_server_t *server, const char *id);

/* ---- Requests ---- */

/* Determine the weights of a request. Returns 1 with *place, or with *is_base
 * for the base; 0 if answered. */
int local_read_source(local_call_t *call, local_place_t *place, int *is_base);
void local_create_sampling_session(local_call_t *call);
void local_join_sampling_session(local_call_t *call);
void local_get_sampler(local_call_t *call);
void local_retrieve_futures(local_call_t *call);

/* ---- sample.c: running ---- */

void local_sample_start(local_sample_t *sample, local_lane_t *lane);
/* End a lane; its samples continue to wait without it. */
void local_lane_end(local_server_t *server, local_lane_t *lane);
void local_sample_free(local_sample_t *sample);
void local_samples_free(local_server_t *server);

/* ---- asample.c: reading ---- */

void local_asample(local_call_t *call);
void local_stream_sample(local_call_t *call);

/* ---- Streams ---- */

/* Large enough for four replacement characters and a special token. */
enum { LOCAL_TEXT_MAX = 32 };

/* Bytes of a sequence that are not a whole character yet. Initially zero. */
typedef struct {
  uint8_t bytes[4];
  size_t n;
} local_text_t;

/* Write the text that the next token completes, and return its length. The
 * token that ends a character has the whole of it, and the tokens before have
 * an empty text. U+FFFD replaces bytes that belong to no character. It replaces
 * a NUL byte too, which clients cannot have in a string. */
size_t local_text_add(local_text_t *text, int32_t token, int is_last,
                      char out[LOCAL_TEXT_MAX]);

/* Write a finished draw of one sequence as a stream of events. */
void local_stream_write(tnk__buf_t *out, const local_sample_t *sample);

/* ---- Batched polls ---- */

/* Answer with the completions since a cursor. If there are none and `may_wait`
 * is set, wait for one. */
void local_batch_poll(local_call_t *call, local_sampler_t *sampler,
                      uint64_t clone, uint64_t prev, int may_wait);
/* For local_future_t.settled of a sample. */
void local_batch_settled(local_future_t *future);
void local_batch_end(local_sampler_t *sampler);

#endif
