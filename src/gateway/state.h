/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_STATE_H
#define TNK_GATEWAY_STATE_H

#include <stdatomic.h>

#include "gateway/keys/grant.h"
#include "gateway/keys/watch.h"
#include "gateway/telemetry/metrics.h"
#include "gateway/telemetry/refusal.h"
#include "gateway/record/record.h"
#include "gateway/wire/answer.h"
#include "server/http.h"
#include "tnk/gateway.h"

/* A set of weights in use, or replaced and with requests in progress. */
typedef struct tnk__gw_sampler {
  tnk__list_t link;
  tnk_gateway_t *gateway;
  tnk_sampling_t *sampling;
  uint32_t version;
  size_t n_jobs;
  int is_old;     /* has been replaced */
  int is_lost;    /* the service no longer knows it */
  char name[256]; /* for logs: its path or base model */
} tnk__gw_sampler_t;

struct tnk__gw_job;
struct tnk__gw_once;

/* Requests that clients may repeat, see again.h. */
typedef struct {
  const tnk_allocator_t *alloc;
  tnk__gw_map_t map; /* by name */
  tnk__list_t ended; /* answered, failed and kept ones, the latest last */
  size_t n_ended;
  size_t n_kept;
  size_t n_bytes; /* of answers */
} tnk__gw_again_t;

struct tnk__gw_other;

/* Requests of the other gateways of a shared record, see elsewhere.h. */
typedef struct {
  int is_on;             /* the record is shared */
  tnk__gw_map_t names;   /* by session, and key or body */
  tnk__gw_map_t numbers; /* by number in the record */
  tnk__list_t order;     /* the one with the latest line last */
  tnk__list_t waiting;   /* those that jobs wait for */
  int has_claims;        /* the record returns the own lines */
  tnk__list_t claims;    /* jobs, by `follow`, that wait for their own line */
  size_t n;
  size_t n_bytes;        /* of answers */
  uint64_t available_ms; /* when a wait has last found the store available */
  uv_timer_t timer;      /* runs while there is something to do */
} tnk__gw_elsewhere_t;

struct tnk_gateway {
  tnk_allocator_t alloc;
  uv_loop_t *loop;
  tnk_service_t *service;
  tnk__srv_t http;
  tnk__gw_record_t *record;
  tnk_chat_template_t *template_;
  tnk__gw_refusals_t refusals;
  int has_client_ca; /* clients have certificates, or may have one */
  int is_plain;      /* it is the library's own, and not one that was given */
  tnk_chat_tokenizer_t tokenizer;
  tnk_chat_family_t family;
  int keeps_controls;      /* control tokens in user and tool messages count */
  char *key;               /* key of agents, or NULL */
  char *admin_key;         /* key of administrators, or NULL */
  tnk__gw_watch_t watch;   /* zeros: no program watches the sessions */
  tnk__gw_grants_t grants; /* keys of one session each */
  double pico_prompt;      /* price of a token in 10^-12 USD; 0: unknown */
  double pico_sampled;
  double pico_cached; /* of a prompt token that was a cache hit */
  char *model;        /* NULL: the base model's name */
  json_t *variables;  /* template variables: an object of JSON values */
  tnk_gateway_formats_t formats;
  uint32_t max_attempts; /* samples for one response of a format */
  int32_t max_tokens;
  uint32_t max_jobs;
  uint64_t max_body;
  tnk_gateway_stats_t stats; /* without the values that are counted elsewhere */
  tnk__gw_metrics_t metrics;
  tnk_otlp_t *otlp; /* or NULL */
  tnk__list_t jobs;
  size_t n_jobs;
  int is_walking; /* the jobs are being visited; see job.c */
  tnk__gw_again_t again;
  tnk__gw_elsewhere_t elsewhere;
  tnk__gw_map_t hidden; /* deleted responses, see response.h */
  uint64_t repeat_ms;   /* how long a sample waits for its client */
  tnk__list_t renders;  /* renderings that are queued, by `link` */
  size_t n_renders;     /* renderings on threads */
  size_t max_renders;
  tnk__list_t samplers;       /* all open ones */
  tnk__gw_sampler_t *sampler; /* the current one; NULL: none yet */
  tnk__list_t uses;           /* samplers that are being created */
  tnk__list_t holds;          /* requests that wait for a shared record */
  /* Called when a sampler was created or could not be. */
  void (*made)(struct tnk_gateway *gateway);
  uint32_t version; /* latest version of the weights */
  /* The latest weights of a shared record. Version 0: none. */
  uint32_t fleet_version;
  int fleet_is_path; /* `fleet_name` is a path, and not a base model */
  char fleet_name[256];
  int64_t began_s;
  uv_timer_t sweeper; /* drops idle connections */
  uv_timer_t keeper;  /* sends keep-alives to waiting clients */
  uint64_t keep_alive_ms;
  uint64_t keep_tick_ms; /* interval of checks for waiting streams */
  uv_idle_t exporter;    /* runs while `exports` is not empty */
  tnk__list_t exports;   /* exports in progress */
  size_t export_bytes;   /* bytes to export in one turn of the loop */
  int is_leaving;        /* the program has said that it will end */
  int is_closing;
  size_t n_open; /* handles and parts that must close first */
  tnk_close_cb closed;
  void *closed_user;
  tnk_logger_t logger;
  char worker[33]; /* label of the metrics; "": none */
  char address[128];
};

/* Maximum number of turns that a prompt tries to continue. Each costs as much
 * as the whole conversation, and a template that rejects one usually rejects
 * all. */
enum { TNK__GW_MAX_TRIES = 2 };

/* A turn that a prompt may continue. The record may drop it meanwhile. */
typedef struct {
  uint64_t number;
  size_t first; /* index of the first message after it */
} tnk__gw_try_t;

/* `fault` is NULL after success. */
typedef void (*tnk__gw_rendered_cb)(struct tnk__gw_job *job,
                                    const tnk__gw_fault_t *fault);

/* The rendering of a job on a thread, see render.h. */
typedef struct {
  struct tnk__gw_job *job;
  tnk__list_t link; /* in the gateway, while it is queued */
  uv_work_t work;
  int is_running;
  atomic_int is_canceled; /* set by the loop, read by the thread */
  int result;
  tnk__gw_fault_t fault;
  tnk__gw_rendered_cb done;
} tnk__gw_render_t;

/* The wait of another gateway for the answer of a job, see elsewhere.h. */
typedef enum {
  TNK__GW_NOT_WANTED = 0,
  TNK__GW_WANTED,     /* it waits for a line "here" */
  TNK__GW_WANTED_TOLD /* it has got that */
} tnk__gw_wanted_t;

/* The values by which a request is recognized. The hashes have 128 bits. */
typedef struct {
  const char *session;
  int has_key; /* the client has named it */
  uint64_t key[2];
  uint64_t body[2];
  int is_repeat;  /* the client says so */
  int may_repeat; /* it may repeat one that is in progress */
} tnk__gw_same_t;

/* Whether a job has the right to sample its request, see elsewhere.h. */
typedef enum {
  TNK__GW_NO_CLAIM = 0, /* none is needed */
  TNK__GW_CLAIMING,
  TNK__GW_CLAIM_WON,
  TNK__GW_CLAIM_LOST /* to the request `claimed_by` */
} tnk__gw_claim_t;

/* A request in progress. While it is rendered, the thread uses its conversation
 * and its ids, and the loop does not. */
typedef struct tnk__gw_job {
  tnk__list_t link; /* in the gateway */
  tnk_gateway_t *gateway;
  tnk__srv_req_t *req; /* NULL: the client has hung up */
  tnk__gw_ask_t ask;
  struct tnk__gw_once *once; /* by which it is found again; or NULL */
  int is_open; /* the record has the line "asked", and none of its end */
  struct tnk__gw_job *leader; /* it waits for the answer of this one; or NULL */
  tnk__list_t follow;         /* in the leader */
  tnk__list_t followers;
  tnk__buf_t body;  /* of a client that has disconnected, while it is held */
  uint64_t gone_ms; /* loop time when the last client has disconnected */
  int is_follower;  /* has or had a leader */
  int is_ending;    /* its clients are being answered */
  int is_kept;      /* has samples, but no client */
  tnk__gw_wanted_t wanted;
  int says_repeat; /* the client says that it repeats a request */
  int may_repeat;  /* it may repeat one that is in progress */
  tnk__gw_claim_t claim;
  tnk__gw_same_t same; /* during a claim; its session is the job's */
  uint64_t claimed_ms; /* when it began */
  uint64_t claimed_by;
  char *session;
  tnk__gw_grant_t *grant; /* of its key, or NULL; see account.h */
  tnk__gw_use_t most;     /* reserved for it */
  tnk__gw_use_t spent;    /* used by it */
  uint64_t began_ns;      /* when it arrived, by uv_hrtime() */
  tnk_otlp_span_t span;   /* zeroed without an exporter */
  uint64_t number;        /* number of the request in the record */
  tnk_chat_t *chat;       /* NULL: completion of a plain prompt */
  json_t *doc;            /* its messages and tools, as templates see them */
  uint64_t key;           /* key of the conversation as asked */
  tnk__buf_t variables;   /* of the template, see talk.h */
  tnk__gw_try_t tries[TNK__GW_MAX_TRIES];
  size_t n_tries;
  size_t n_tried;
  tnk__gw_render_t *render; /* NULL: no thread is to render it */
  /* The tools whose calls are forced: the first and the last by name. Their
   * memory is the document's. NULL: none. */
  const char *force_first, *force_last;
  json_t *begun;         /* the message that the response continues; or NULL */
  tnk__buf_t begun_list; /* it as JSON, in a list */
  tnk__buf_t begun_mark; /* the same with another content, see prefill.c */
  tnk__buf_t begun_text; /* its content */
  int is_own;      /* it is a recorded response, and the prompt is complete */
  uint64_t parent; /* number of the turn it continues; 0: none */
  size_t first;    /* index of the first new message */
  tnk__buf_t ids;  /* i32: the whole prompt, or all prompts */
  tnk__buf_t ends; /* size_t: where each prompt ends; empty: there is one */
  size_t n_before; /* how many ids are the parent's */
  size_t n_forced; /* how many of the last ids start the response */
  uint32_t n_attempts; /* samples so far, see form.h */
  int is_misfit;       /* the last one does not have the requested format */
  tnk__gw_sampler_t *sampler;
  tnk_promise_t *promise;
  tnk__gw_waiter_t waiter;
  int is_waiting;
  int is_too_long;    /* the store cannot take a turn of it */
  int is_held;        /* waits for a model and has no promise yet */
  uint64_t held_ms;   /* loop time when it was held */
  int is_begun;       /* the head of its stream was sent */
  uint64_t told_ms;   /* loop time of the last data sent to the client */
  uint64_t n_sampled; /* tokens in the response */
  /* Of the response, for its span: its number, or 0; a bit for each
   * tnk__gw_end_t of its choices; and the cached tokens of the prompt. */
  uint64_t answer_number;
  unsigned answer_ends;
  size_t n_cached;
  tnk__buf_t answer;
} tnk__gw_job_t;

/* ---- life.c ---- */

/* Count one part less that must close before the gateway is freed. */
void tnk__gw_release(tnk_gateway_t *gateway);

/* ---- log.c ---- */

/* Note when a request began. */
void tnk__gw_log_begin(const tnk_gateway_t *gateway, tnk__srv_req_t *req);
/* The request is logged by its job, and not by tnk__gw_log_reply(). */
void tnk__gw_log_later(tnk__srv_req_t *req);
/* Log the end of a job, before its response is sent. `status` is -1 if the
 * client has disconnected. */
void tnk__gw_log_job(const tnk__gw_job_t *job, const tnk__srv_req_t *req,
                     int status);
/* Log a change that an administrator has made. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void tnk__gw_log_note(const tnk_gateway_t *gateway, const char *format, ...);
/* The path after the name of a session. */
const char *tnk__gw_path_below(const char *path);
/* Why a client could not connect. */
void tnk__gw_log_refused(const char *why, void *gateway);
/* Log any other request. It is called with each response. */
void tnk__gw_log_reply(tnk__srv_req_t *req, int status, void *user);

/* ---- sampler.c ---- */

/* Take the current sampler for a request. Returns NULL if none has been created
 * yet. */
tnk__gw_sampler_t *tnk__gw_sampler_take(tnk_gateway_t *gateway);
void tnk__gw_sampler_give_back(tnk__gw_sampler_t *sampler);
/* Close all samplers, and cancel the pending ones. */
void tnk__gw_samplers_close(tnk_gateway_t *gateway);
/* The type of a line that names the weights of all gateways. */
#define TNK__GW_USE "use"
/* Take such a line of the record. Returns TNK_OK or TNK_EPROTO. */
int tnk__gw_sampler_take_use(tnk_gateway_t *gateway, const json_t *line);
/* Create a sampler, for a request that asks for it. */
void tnk__gw_sampler_ask(tnk_gateway_t *gateway, tnk__srv_req_t *req);

/* ---- job.c ---- */

/* Returns whether anybody waits for the answer. */
int tnk__gw_job_has_client(const tnk__gw_job_t *job);
/* Serve a request of an API. */
void tnk__gw_job_begin(tnk_gateway_t *gateway, tnk__srv_req_t *req,
                       tnk__gw_api_t api, const char *session);
/* Count the tokens of the prompt of such a request. */
void tnk__gw_job_count(tnk_gateway_t *gateway, tnk__srv_req_t *req,
                       tnk__gw_api_t api, const char *session);
/* Send keep-alives to the clients for which it would otherwise be silent for
 * too long before the next check. `now_ms` is the loop's time. */
void tnk__gw_jobs_keep(tnk_gateway_t *gateway, uint64_t now_ms);
/* A sampler has been created or has failed: resume the requests that are
 * held. */
void tnk__gw_jobs_resume(tnk_gateway_t *gateway);
/* A job that waited for another gateway gets its answer. NULL: there is none,
 * and the request is sampled here, or it fails with `err`, a code of the
 * record. */
void tnk__gw_job_told(tnk__gw_job_t *job, const tnk__buf_t *answer, int err);
/* The claim of a job is decided: it samples, or waits for the earlier request
 * of another gateway. TNK_EINVAL: that one has its key, and another body.
 * Another code is the record's. */
void tnk__gw_job_claimed(tnk__gw_job_t *job, struct tnk__gw_other *other,
                         int err);
/* The store cannot take a turn of a request, which fails when it is answered.
 */
void tnk__gw_jobs_too_long(tnk_gateway_t *gateway, uint64_t request);
/* Tell other gateways that the requests they wait for are here. Take the
 * samples of those that have them. */
void tnk__gw_jobs_wanted(tnk_gateway_t *gateway);
/* End all jobs without a response. */
void tnk__gw_jobs_drop(tnk_gateway_t *gateway);

/* ---- route.c ---- */

enum { TNK__GW_MAX_SESSION = 128 /* bytes of a name */ };

/* A routed request. */
typedef struct {
  tnk_gateway_t *gateway;
  tnk__srv_req_t *req;
  const char *path;                      /* without the session prefix */
  tnk__gw_api_t api;                     /* selects the error format */
  char session[TNK__GW_MAX_SESSION + 1]; /* "": not named */
} tnk__gw_call_t;

/* Reject a request that does not reach the handler, in the error format of its
 * API. */
void tnk__gw_refuse_early(tnk__srv_req_t *req, int status, const char *text,
                          void *user);
/* End all requests that wait for a shared record, without a response. */
void tnk__gw_holds_drop(tnk_gateway_t *gateway);
/* The handler of all other requests. */
void tnk__gw_handle(tnk__srv_req_t *req, void *user);

/* Returns whether a request has this method. HEAD counts as GET. */
int tnk__gw_is_method(const tnk__gw_call_t *call, const char *method);
/* Answer with 405. `method` is what the Allow header says; GET adds HEAD. */
void tnk__gw_refuse_method(const tnk__gw_call_t *call, const char *method);
/* The name of the model that clients see. */
const char *tnk__gw_model_name(const tnk_gateway_t *gateway);
/* Why this gateway should get no new requests, or NULL. */
const char *tnk__gw_why_not_ready(const tnk_gateway_t *gateway);

/* ---- access.c ---- */

/* Check the credential of a request. Returns 0 or an HTTP status. */
int tnk__gw_admit(tnk__srv_req_t *req, void *user);
/* The key of a request is free again. */
void tnk__gw_on_end(void *owner, void *user);
/* Explain a refusal of tnk__gw_admit(). Others stay as they are. */
void tnk__gw_explain(const tnk__srv_req_t *req, tnk__gw_fault_t *fault);
/* Returns 0, or -1 if the session was removed from the record. */
int tnk__gw_check_session(const tnk_gateway_t *gateway, const char *session,
                          tnk__gw_fault_t *fault);
/* Returns whether this is a name of a session. */
int tnk__gw_is_session(const char *name, size_t n);
/* Returns whether the key of a request permits rewards of this session. */
int tnk__gw_may_reward(const tnk__gw_call_t *call, const char *session);
/* Find the session that a request names, and cut its prefix off the path.
 * Returns 0, or -1 after rejecting the request. */
int tnk__gw_find_session(tnk__gw_call_t *call);
/* Returns whether the credential of a request permits its path. If not, the
 * request has been rejected. */
int tnk__gw_may(const tnk__gw_call_t *call);

/* ---- session.c ---- */

#define TNK__GW_SESSIONS "/tnk/sessions/"

/* Create a key for a session; list all keys; rotate or revoke the key that the
 * path names. */
void tnk__gw_key_create(const tnk__gw_call_t *call);
void tnk__gw_key_list(const tnk__gw_call_t *call);
void tnk__gw_key_change(const tnk__gw_call_t *call);

/* ---- reward.c ---- */

void tnk__gw_reward_take(const tnk__gw_call_t *call);

/* ---- scrape.c ---- */

void tnk__gw_scrape(const tnk__gw_call_t *call);
/* The name of the model in metrics and spans. */
const char *tnk__gw_metrics_model(const tnk_gateway_t *gateway);
/* The same metrics for OTLP. `user` is the gateway. */
void tnk__gw_export_metrics(tnk_otlp_metrics_t *out, void *user);

/* ---- export.c ---- */

void tnk__gw_export(const tnk__gw_call_t *call);
/* End all exports without a response. */
void tnk__gw_exports_drop(tnk_gateway_t *gateway);

#endif
