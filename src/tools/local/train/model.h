/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_TRAIN_MODEL_H
#define TNK_TOOLS_LOCAL_TRAIN_MODEL_H

#include "lib/base/arena.h"
#include "tools/local/call/seqs.h"
#include "tools/local/future/future.h"
#include "tools/local/sample/weights.h"
#include "tools/local/store/store.h"

/* A run of tokens with the origin that a client names: `length` tokens of the
 * prompt or of the sampled tokens in a sequence. */
typedef struct {
  const char *sequence_id;
  int is_sampled;
  int64_t offset;
  int64_t length;
} local_run_t;

/* The origins of an example's input and targets. */
typedef struct {
  const local_run_t *input;
  size_t n_input;
  const local_run_t *targets;
  size_t n_targets;
} local_origin_t;

/* The data of a pass. */
typedef struct {
  tnk__lm_loss_t loss;
  int backward;
  int32_t n_vocab; /* see lm/vocab.h; 0: ids of bytes */
  size_t n;
  tnk__lm_datum_t *data;
  local_origin_t *origins; /* for stable_reinforce, else NULL */
  float **logprobs;        /* the results, n_tokens x n_targets each */
  double loss_sum;
  size_t next; /* next datum to run */
  uint64_t n_tokens;
} local_pass_t;

typedef struct {
  int dimuon;
  tnk__adam_t adam;
  tnk__dimuon_t muon;
  tnk__lm_step_t out;
} local_step_t;

typedef struct {
  local_place_t place;
  int overwrite;
  int64_t ttl_s;  /* 0: none */
  char *metadata; /* JSON, or NULL */
  char *project;  /* or NULL */
  int with_optimizer;
  const local_recipients_t *to; /* for external weights */
  /* For an unnamed save of sampler weights: */
  int is_unnamed;
  char sampler_id[LOCAL_ID];
  tnk__lm_weights_t *snapshot;
  uint64_t n_bytes;
  int64_t expires_ms;
  int64_t old_ms; /* creation time of the replaced checkpoint; 0: none */
  int64_t old_bytes;
} local_save_t;

typedef struct {
  local_place_t place;
  int with_optimizer;
  int creates;
  tnk__lm_optimizer_t optimizer;
} local_load_t;

/*
 * A training request, from acceptance to its result. Owned by its model.
 */
typedef struct local_op {
  tnk__list_t link; /* in local_model_t.queue or .held */
  struct local_model *model;
  local_future_t *future;
  local_kind_t kind;
  int64_t seq; /* -1: none */
  tnk__arena_t arena;
  union {
    local_pass_t pass;
    local_step_t step;
    local_save_t save;
    local_load_t load;
    tnk__lm_config_t create;
  } u;
  /* Set before it runs (invalid data) or by the thread. */
  int err;
  tnk__lm_why_t why;
  int64_t begin_ms; /* when it began to run, since 1970; 0: not yet */
} local_op_t;

typedef struct local_model {
  local_node_t node;
  tnk__list_t in_session;
  local_session_t *session;
  local_server_t *server;
  char id[LOCAL_ID];
  char *metadata; /* JSON, or NULL */
  tnk__lm_t *lm;  /* NULL until created; the thread's during a job */
  tnk__lm_config_t config;
  int unloaded;      /* by its unload request; ends after that */
  const char *ended; /* the reason; takes effect after the current slice */
  int n_seqd;        /* number of accepted numbered requests */
  tnk__list_t queue; /* ready to run, in order; the first may be running */
  tnk__list_t held;  /* after a gap, sorted by number */
  size_t n_held;
  int64_t next_seq;
  local_seqs_t seqs;
  local_job_t job;
  local_op_t *running;
  uint64_t n_steps;
  uint64_t last_ms; /* wall-clock time of the last request */
} local_model_t;

/* ---- An operation ---- */

local_op_t *local_op_new(local_server_t *server, local_kind_t kind);
void local_op_free(local_op_t *op, local_server_t *server);
/* Create an operation for a call; NULL if answered. */
local_op_t *local_need_op(local_call_t *call, local_kind_t kind);
/* Parse the sequence number of a call, -1 without one; returns 0 if
 * answered. */
int local_want_seq(local_call_t *call, int64_t *seq);

/* Note an invalid example, so that the pass fails in its turn; the first reason
 * is kept. */
void local_pass_note(local_op_t *op, size_t datum, const tnk__lm_why_t *why);

/* ---- The queue ---- */

/* Add an operation at the position of its number: at the end of the queue, or
 * held until the gap before it closes. */
void local_queue_add(local_model_t *model, local_op_t *op);
/* Add an operation without a number at the end. */
void local_queue_append(local_model_t *model, local_op_t *op);
/* Remove the first operation that may run; NULL: none. */
local_op_t *local_queue_take(local_model_t *model);
/* Stop waiting for the request with this number. */
void local_queue_skip(local_model_t *model, int64_t seq);
/* Fail the waiting operations, because the model ends. */
void local_queue_fail(local_model_t *model, const char *why);
void local_queue_free(local_model_t *model);

/* ---- run.c: on a thread, then on the loop ---- */

/* Run one slice; returns 1 when finished. */
int local_op_run(local_op_t *op);
/* Settle the future with the result and free the operation. */
void local_op_settle(local_op_t *op);

/* ---- model.c ---- */

/* Free it at the server's end, when no job is running. */
void local_model_free(local_model_t *model);
/* Get the usable model in "model_id"; NULL if answered. */
local_model_t *local_need_model(local_call_t *call, const char *id);
/* End a model: waiting operations fail with `why`, a static string. */
void local_model_end(local_model_t *model, const char *why);
/*
 * Take the operation, which is freed if it is refused, and answer the call.
 * `hash` distinguishes a repeat from another request with the same number.
 */
void local_model_submit(local_call_t *call, local_model_t *model,
                        local_op_t *op, int64_t seq, uint64_t hash);
/*
 * The request with this number was refused with a final answer. Some clients
 * then count the number as used; others use it for their next request. So a
 * buffering server no longer waits for it, but still accepts it once.
 */
void local_model_refuse(local_model_t *model, int64_t seq);

/* ---- Requests ---- */

/* Create a model for `op`, which creates or loads its weights, and answer the
 * call. Takes ownership of the operation. */
void local_model_make(local_call_t *call, local_session_t *session,
                      local_op_t *op, const tnk__lm_config_t *config,
                      int64_t first_seq);
/* Write the member "optimizer_config". */
void local_put_optimizer(tnk__json_writer_t *w, tnk__lm_optimizer_t optimizer);
/* Parse "optimizer_config" of a request; returns 0 if answered. */
int local_want_optimizer(local_call_t *call, tnk__lm_optimizer_t *out);
void local_create_model(local_call_t *call);
void local_get_info(local_call_t *call);
void local_unload_model(local_call_t *call);

/* ---- train_calls.c ---- */

void local_forward_backward(local_call_t *call);
void local_forward(local_call_t *call);
void local_optim_step(local_call_t *call);

/* ---- checkpoint_calls.c ---- */

void local_save_weights(local_call_t *call);
void local_save_for_sampler(local_call_t *call);
void local_save_external(local_call_t *call);
void local_load_weights(local_call_t *call);

#endif
