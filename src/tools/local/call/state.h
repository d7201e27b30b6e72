/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_CALL_STATE_H
#define TNK_TOOLS_LOCAL_CALL_STATE_H

#include "lib/base/arena.h"
#include "lib/base/list.h"
#include "server/http.h"
#include "tools/local/lm/lm.h"
#include "tools/local/server.h"
#include "tools/local/base/drain.h"
#include "tools/local/base/table.h"
#include "tools/local/base/timers.h"
#include "tools/local/base/work.h"
#include "tnk/error.h"

/*
 * The objects of a server and their ownership:
 *
 *   server -> sessions -> models -> operations (model.h)
 *                      -> samplers -> samples (sampler.h)
 *          -> futures: a pending one also belongs to an operation or a
 *             sample, a settled one waits for a poll (future.h)
 *          -> weights for sampling, which the samples reference (weights.h)
 */

enum {
  LOCAL_ID = 96, /* size of any generated id */
  LOCAL_MAX_SESSIONS = 4096,
  LOCAL_MAX_MODELS = 256, /* each has weights and moments */
  LOCAL_MAX_SAMPLERS = 16384,
  LOCAL_MAX_KEPT_SEQ = 8192, /* numbers kept to detect repeats */
  LOCAL_MAX_TEXT = 512,      /* names and paths from a client */
  LOCAL_MAX_TOKENS = 256,
  LOCAL_TOKEN_ID = 32,
  LOCAL_MAX_REVOKED = 64
};

/* A token from auth/token. */
typedef struct {
  char id[LOCAL_TOKEN_ID + 1];
  uint64_t end_ms; /* end of its lifetime, in loop time */
} local_token_t;

/* The waiting samples of a client, oldest first. */
typedef struct {
  tnk__list_t link; /* in local_server_t.lanes, or local_weights_t.waiting */
  tnk__list_t samples;
  size_t n_drawing; /* number of its running samples */
} local_lane_t;

typedef struct local_session {
  local_node_t node;
  tnk__list_t link; /* in local_server_t.session_list */
  local_server_t *server;
  char id[40];
  char *metadata; /* JSON */
  char *name;     /* display name; or NULL */
  char *project;  /* or NULL */
  /* How the client has ended it; NULL: not ended, or no reason given. */
  const char *reason;
  int64_t created_ms; /* since 1970 */
  uint64_t beat_ms;   /* last heartbeat; 0: none yet */
  int finished;
  tnk__list_t models;   /* local_model_t.in_session */
  tnk__list_t samplers; /* local_sampler_t.in_session */
  int64_t n_samplers;   /* used for ids if the client sends no number */
  int64_t n_models;
} local_session_t;

struct local_server {
  const tnk_allocator_t *alloc;
  uv_loop_t *loop;
  local_options_t options; /* strings are copies */
  tnk__arena_t texts;      /* memory of the strings */
  char *config;            /* answer of client/config */
  char *dynamic_config;
  char *data; /* directory of the checkpoints */
  int data_is_temporary;
  char *model_dir; /* absolute, or NULL */
  int lock;        /* descriptor of the lock; -1: none */
  tnk__srv_t http;
  local_timers_t timers;
  local_work_t work;
  local_timer_t reaper;
  tnk__lm_base_t *base;
  local_table_t sessions;
  local_table_t models;
  local_table_t samplers;
  local_table_t futures;
  local_table_t weights;
  local_table_t keys;   /* idempotency keys, local_key_t */
  tnk__list_t key_list; /* oldest first */
  tnk__list_t session_list;
  local_table_t records;   /* local_record_t of samples */
  tnk__list_t record_list; /* least recently used first */
  size_t n_record_bytes;
  tnk__list_t pending;     /* futures without a result */
  tnk__list_t results;     /* futures with one, oldest first */
  tnk__list_t weight_list; /* least recently used first */
  tnk__list_t lanes;       /* lanes with waiting samples, next one first */
  local_lane_t loose;      /* samples without a sampling session */
  tnk__list_t drawing;     /* running samples */
  size_t n_drawing;
  size_t n_pending;
  size_t n_results;
  size_t n_result_bytes;
  tnk__list_t held; /* held polls, local_hold_t */
  size_t n_waiting;
  uint64_t n_made;                        /* number of futures created */
  local_token_t tokens[LOCAL_MAX_TOKENS]; /* a ring */
  size_t n_tokens;                        /* number of tokens created */
  uint64_t revoked[LOCAL_MAX_REVOKED];    /* ids of revoked keys, a ring */
  size_t n_revoked;                       /* number of revoked keys */
  struct local_ledger *ledger;            /* NULL until opened */
  int64_t next_expiry_ms; /* at most the earliest expiry; 0: none */
  uint8_t link_key[32];   /* signs links to files */
  char run[20];           /* prefix of this server's ids */
  int n_open;             /* parts that are not closed yet */
  int drains;             /* accepts no further work */
  local_drain_t drain;
  int closing;
  void (*closed_cb)(void *user);
  void *closed_user;
};

#endif
