#ifndef TNK_GATEWAY_STATE_H
#define TNK_GATEWAY_STATE_H

#include "gateway/record/record.h"
#include "gateway/wire/answer.h"
#include "server/http.h"
#include "tnk/gateway.h"

/* Weights that are sampled from, or were and have requests under way. */
typedef struct tnk__gw_sampler {
  tnk__list_t link;
  tnk_gateway_t *gateway;
  tnk_sampling_t *sampling;
  uint32_t version;
  size_t n_jobs;
  int is_old;     /* another one has taken its place */
  char name[256]; /* for people: its path or base model */
} tnk__gw_sampler_t;

struct tnk_gateway {
  tnk_allocator_t alloc;
  uv_loop_t *loop;
  tnk_service_t *service;
  tnk__srv_t http;
  tnk__gw_record_t *record;
  tnk_chat_template_t *template_;
  tnk_chat_tokenizer_t tokenizer;
  tnk_chat_family_t family;
  int keeps_controls; /* those in messages of users and tools count */
  char *key;          /* NULL: none is asked for */
  char *model;        /* NULL: the base model's name */
  json_t *variables;  /* of templates: an object of texts of JSON */
  int32_t max_tokens;
  uint32_t max_jobs;
  uint64_t max_body;
  tnk_gateway_stats_t stats; /* but for what is counted elsewhere */
  tnk__list_t jobs;
  size_t n_jobs;
  tnk__list_t samplers;       /* all that are open */
  tnk__gw_sampler_t *sampler; /* in use; NULL: none yet */
  tnk__list_t uses;           /* samplers that are being made */
  /* Called when a sampler was made, or could not be. */
  void (*made)(struct tnk_gateway *gateway);
  uint32_t version; /* the latest number of weights */
  int64_t began_s;
  uv_timer_t sweeper; /* drops connections that say nothing */
  uv_timer_t keeper;  /* tells streams that wait that we are alive */
  uint64_t keep_alive_ms;
  uint64_t keep_tick_ms; /* looks for those that wait as often as this */
  uv_idle_t exporter;    /* runs while somebody waits for examples: */
  tnk__list_t exports;   /* these */
  size_t export_bytes;   /* of examples, made in a turn of the loop */
  int is_closing;
  size_t n_open; /* what has to end before it is gone */
  tnk_close_cb closed;
  void *closed_user;
  char address[128];
};

/* A request that is served. */
typedef struct tnk__gw_job {
  tnk__list_t link; /* in the gateway */
  tnk_gateway_t *gateway;
  tnk__srv_req_t *req; /* NULL: the client has hung up */
  tnk__gw_ask_t ask;
  char *session;
  uint64_t number;  /* of the request, in the record */
  tnk_chat_t *chat; /* NULL: a plain text is gone on with */
  json_t *doc;      /* its messages and tools, as templates have them */
  uint64_t key;     /* of the conversation as it was asked */
  uint64_t parent;  /* number of the turn it goes on from; 0: none */
  size_t first;     /* message that is new */
  tnk__buf_t ids;   /* i32: the whole prompt */
  size_t n_before;  /* of them, those of the parent */
  size_t n_forced;  /* of them, the last: the call that the answer is to be */
  tnk__gw_sampler_t *sampler;
  tnk_promise_t *promise;
  tnk__gw_waiter_t waiter;
  int is_waiting;
  int is_held;      /* until there is a model; there is no promise yet */
  uint64_t held_ms; /* of the loop: since when */
  int is_begun;     /* the head of its stream has been sent */
  uint64_t told_ms; /* of the loop: when the client was last told anything */
  tnk__buf_t answer;
} tnk__gw_job_t;

/* ---- end.c ---- */

/* One thing less that has to end before the gateway is gone. */
void tnk__gw_release(tnk_gateway_t *gateway);

/* ---- sampler.c ---- */

/* Take the sampler in use for a request; NULL: there is none. */
tnk__gw_sampler_t *tnk__gw_sampler_take(tnk_gateway_t *gateway);
void tnk__gw_sampler_give_back(tnk__gw_sampler_t *sampler);
/* Close all of them, and forget those that are being made. */
void tnk__gw_samplers_close(tnk_gateway_t *gateway);
/* Make another one, for a request that asks for it. */
void tnk__gw_sampler_ask(tnk_gateway_t *gateway, tnk__srv_req_t *req);

/* ---- job.c ---- */

/* Serve a request of an API. */
void tnk__gw_job_begin(tnk_gateway_t *gateway, tnk__srv_req_t *req,
                       tnk__gw_api_t api, const char *session);
/* Tell the clients of streams that they are waited for, where they would not
 * hear anything for too long before the next look. `now_ms` is of the loop. */
void tnk__gw_jobs_keep(tnk_gateway_t *gateway, uint64_t now_ms);
/* A model has come or has failed: go on with the requests that are held. */
void tnk__gw_jobs_resume(tnk_gateway_t *gateway);
/* End all of them without an answer. */
void tnk__gw_jobs_drop(tnk_gateway_t *gateway);

/* ---- route.c ---- */

enum { TNK__GW_MAX_SESSION = 128 /* of a session */ };

/* A request, as routes have it. */
typedef struct {
  tnk_gateway_t *gateway;
  tnk__srv_req_t *req;
  const char *path;                      /* without the session */
  tnk__gw_api_t api;                     /* for the shape of errors */
  char session[TNK__GW_MAX_SESSION + 1]; /* "": none is named */
} tnk__gw_call_t;

/* Whether a request may come: 0, or a status. */
int tnk__gw_admit(tnk__srv_req_t *req, void *user);
/* Refuse one that does not come to the handler, in the shape of its API. */
void tnk__gw_refuse_early(tnk__srv_req_t *req, int status, const char *text,
                          void *user);
/* The handler of all others. */
void tnk__gw_handle(tnk__srv_req_t *req, void *user);

/* ---- reward.c ---- */

void tnk__gw_reward_take(const tnk__gw_call_t *call);

/* ---- export.c ---- */

void tnk__gw_export(const tnk__gw_call_t *call);
/* End all of them without an answer. */
void tnk__gw_exports_drop(tnk_gateway_t *gateway);

#endif
