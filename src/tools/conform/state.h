/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_CONFORM_STATE_H
#define TNK_TOOLS_CONFORM_STATE_H

#include "lib/api/config.h"
#include "lib/base/list.h"
#include "lib/io/http/client.h"
#include "lib/io/loop/context.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/location.h"
#include "tnk/data.h"
#include "tnk/result.h"
#include "tools/conform/conform.h"

struct tnk__net;

typedef struct conform conform_t;

/* ---- Rules ---- */

typedef enum {
  CONFORM_HOLDS = 0,
  CONFORM_ALLOWED, /* differs, but clients tolerate it */
  CONFORM_DIFFERS,
  CONFORM_ABSENT,  /* not offered, and optional */
  CONFORM_SKIPPED, /* could not be tried */
  CONFORM_N_VERDICTS
} conform_verdict_t;

typedef enum { CONFORM_FREE = 0, CONFORM_SPENDS } conform_cost_t;

/*
 * A rule is run in three steps.
 *
 * needs  Provides in the conform_t what the rule stands on: a session, a model,
 *        an accepted request. Returns 0 if the finding is recorded already.
 *        NULL: nothing is needed.
 * send   Sends the request of the rule and returns it; it becomes c->call.
 *        NULL: `judge` sends the requests.
 * judge  Records the finding with conform_tell(), and returns its verdict.
 */
typedef struct {
  const char *id;
  const char *title;   /* the property, as a sentence */
  const char *section; /* section of the protocol's description */
  conform_cost_t cost;
  int (*needs)(conform_t *c);
  struct conform_call *(*send)(conform_t *c);
  conform_verdict_t (*judge)(conform_t *c);
  const void *about; /* c->about, for functions that implement several rules */
} conform_rule_t;

typedef struct {
  const char *title;
  const conform_rule_t *rules;
  size_t n;
} conform_group_t;

extern const conform_group_t conform_http, conform_calls, conform_session,
    conform_sequence, conform_futures, conform_model, conform_training,
    conform_weights, conform_files, conform_sampler, conform_sampling,
    conform_rest, conform_end;

/* The i-th group in execution order; NULL after the last. */
const conform_group_t *conform_group_at(size_t i);

enum { CONFORM_MAX_DETAIL = 240, CONFORM_MAX_RULES = 256 };

/* The finding for one rule. */
typedef struct {
  const conform_group_t *group;
  const conform_rule_t *rule;
  conform_verdict_t verdict;
  uint64_t ms;
  char detail[CONFORM_MAX_DETAIL];
} conform_finding_t;

/* Record the detail of the current rule. Returns the verdict. Strings from the
 * server are sanitized. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
conform_verdict_t
conform_tell(conform_t *c, conform_verdict_t verdict, const char *format, ...);
/* Replace all occurrences of a string by stars; NULL and "" match nothing. */
void conform_hide_text(void *data, size_t n, const char *text);
/* Replace the key, the token and configured headers by stars, because a server
 * may echo them. */
void conform_hide(const conform_t *c, void *data, size_t n);
/* The verdict that was recorded last. */
conform_verdict_t conform_told(const conform_t *c);
/* Record that the rule holds, without a detail. */
conform_verdict_t conform_holds(conform_t *c);

/* ---- Requests ---- */

/* One request, which is sent once. */
typedef struct {
  const char *method;
  const char *path;  /* below /api/v1/, encoded */
  const char *url;   /* instead of path: any URL, without the key */
  const char *range; /* NULL: the whole body */
  json_t *json;      /* the body; ownership is taken; NULL: see below */
  const void *body;  /* instead of json; valid until the answer */
  size_t n_body;
  const char *type;            /* content type; NULL: JSON */
  const char *encoding;        /* content encoding; NULL: none */
  const char *accept;          /* NULL: JSON */
  const char *idempotency_key; /* NULL: a new one; "": none */
  const char *api_key;         /* NULL: the configured key; "": none */
  int is_poll;                 /* the server may hold it */
} conform_ask_t;

/* A request and its answer; valid until the rule ends. */
typedef struct conform_call {
  tnk__list_t link;
  conform_t *c;
  tnk__exchange_t exchange;
  tnk__timer_t deadline;
  tnk__location_t at; /* location of a url */
  tnk__buf_t target;
  tnk__buf_t sent;     /* the request body */
  const char *api_key; /* another key than the configured one, or NULL */
  uint64_t since_ms;
  int is_done;
  int err;           /* TNK_OK: an answer was received */
  int status;        /* 0 without an answer */
  char how[160];     /* "503", or the reason for a missing answer */
  char words[160];   /* the server's error message; "" if none */
  char type[64];     /* Content-Type; "" if none */
  char range[64];    /* Content-Range; "" if none */
  char location[16]; /* the scheme of a redirection's target */
  int invalid_token; /* a 401 with the error invalid_token */
  uint64_t ms;
  tnk__buf_t body;
  json_t *json; /* NULL: the body is not JSON */
} conform_call_t;

/* Start a request; never returns NULL. Errors are reported when the caller
 * waits for it. */
conform_call_t *conform_send(conform_t *c, const conform_ask_t *ask);
/* Wait for the answer or the timeout. */
void conform_wait(conform_t *c, conform_call_t *call);
/* Start a request and wait. The others are variants for common requests. They
 * take ownership of `json`; NULL means that memory was missing. */
conform_call_t *conform_ask(conform_t *c, const conform_ask_t *ask);
conform_call_t *conform_post_json(conform_t *c, const char *path, json_t *json);
/* With the arguments of json_pack(). */
conform_call_t *conform_post(conform_t *c, const char *path, const char *format,
                             ...);
conform_call_t *conform_get(conform_t *c, const char *path);
/* The path of the request is c->about. */
conform_call_t *conform_get_about(conform_t *c);
/* Cancel a request. */
void conform_give_up(conform_call_t *call);
/* Free the requests of a rule. */
void conform_forget_calls(conform_t *c);
/* Wait for some time. */
void conform_pause(conform_t *c, uint64_t ms);

int conform_is_ok(const conform_call_t *call);      /* a 2xx */
int conform_is_refusal(const conform_call_t *call); /* a 4xx */
/* Returns whether the server does not support the call. */
int conform_is_absent(const conform_t *c, const conform_call_t *call);
const char *conform_text(const conform_call_t *call, const char *key);
/* Record that the answer is not `wanted`, or is missing. */
conform_verdict_t conform_other(conform_t *c, const conform_call_t *call,
                                const char *wanted);
/* Returns whether the answer is a 2xx. Otherwise it is recorded as
 * conform_other(). */
int conform_accepted(conform_t *c, const conform_call_t *call,
                     const char *wanted);
/* As above, and it is recorded if the server does not support the call. */
int conform_offered(conform_t *c, const conform_call_t *call,
                    const char *wanted);
/* As above, for a call that the server must support if this flag is set. */
int conform_announced(conform_t *c, const conform_call_t *call,
                      const char *flag);
/* Returns whether a flag of client/config is true. */
int conform_flag(const conform_t *c, const char *name);

/* Judge c->call, which the server must refuse. If `taken` is not NULL, clients
 * tolerate a 2xx, and it is the detail. */
conform_verdict_t conform_refusal(conform_t *c, const char *taken,
                                  const char *wanted);
conform_verdict_t conform_refused(conform_t *c); /* wanted is "a 4xx" */
conform_verdict_t conform_refused_404(conform_t *c);
/* Judge a repeat of a request that creates `what`. */
conform_verdict_t conform_same(conform_t *c, int is_same, const char *what);

/* ---- Direct connections ---- */

typedef struct {
  int err;          /* TNK_OK; TNK_ETIMEDOUT: the peer keeps it open */
  int is_open;      /* the connection was established */
  int is_ended;     /* the peer has closed it */
  char alpn[16];    /* the negotiated protocol, with TLS */
  char why[160];    /* reason of an error */
  uint64_t head_ms; /* time of the first byte and of the last one */
  uint64_t last_ms;
  tnk__buf_t in;
} conform_wire_t;

/* Send bytes over a new connection. Read until the peer closes it, nothing
 * arrives for `quiet_ms`, or the timeout expires. The caller passes `out` to
 * conform_wire_free(). */
void conform_wire(conform_t *c, conform_wire_t *out, const void *data, size_t n,
                  int offers_h2, uint64_t quiet_ms);
void conform_wire_free(conform_wire_t *wire);
/* Open `n` parallel connections with a request on each. Returns how many were
 * answered. */
size_t conform_wire_many(conform_t *c, size_t n, const void *data,
                         size_t n_data);
/* Write the head of a request as sent on the connection, with the key. */
void conform_wire_head(conform_t *c, tnk__buf_t *out, const char *method,
                       const char *path, const char *more);
/* Returns whether direct connections are possible: not through a proxy. */
int conform_wire_is_possible(conform_t *c);

/* ---- Objects for rules ---- */

/* An object on the server that must be removed. */
typedef enum {
  CONFORM_SESSION = 0,
  CONFORM_MODEL,
  CONFORM_CHECKPOINT
} conform_kind_t;

typedef struct {
  tnk__list_t link;
  conform_kind_t kind;
  int is_kept; /* until the end of the run, not only the rule */
  int64_t seq; /* next sequence number of a model */
  char id[1];  /* variable length */
} conform_made_t;

/* Record a created object. Returns NULL without memory or if the id is not
 * valid. */
conform_made_t *conform_made(conform_t *c, conform_kind_t kind, const char *id);
/* Forget an object that is removed already. */
void conform_gone(conform_t *c, conform_made_t *made);
/* Remove the objects of the rule, or of the whole run. Objects that cannot be
 * removed are noted in c->left. */
void conform_clean(conform_t *c, int all);

/* Send a request about an object: FOLDER/ID and `suffix`, which is "" or begins
 * with a slash. */
conform_call_t *conform_of(conform_t *c, const char *method, const char *folder,
                           const char *id, const char *suffix, json_t *json);
/* The same about a checkpoint, by its tinker:// path. */
conform_call_t *conform_of_checkpoint(conform_t *c, const char *method,
                                      const char *path, const char *suffix,
                                      json_t *json);
/* End a session. */
conform_call_t *conform_finish(conform_t *c, const char *session);

/*
 * For conform_rule_t.needs. If there is no such object, the rule is skipped,
 * and the run is not a success.
 */

int conform_needs_session(conform_t *c);     /* c->session */
int conform_needs_new_session(conform_t *c); /* c->fresh */
int conform_needs_base(conform_t *c);        /* c->session, c->base_model */
/* The sampling session c->sampler of the base model. */
int conform_needs_sampler(conform_t *c);
/* A new model, or the one that rules share if they need no separate model: in
 * c->model. */
int conform_needs_model(conform_t *c);
int conform_needs_shared_model(conform_t *c);
/* A model for a rule that needs no new one: its requests take their numbers
 * from `seq`. It is new if models can be unloaded. Otherwise such rules share
 * one. */
int conform_needs_any_model(conform_t *c);
/* Send number 2 of a model before number 1, once in a run: in c->gap. */
int conform_needs_gap(conform_t *c);

/* The body of create_model; the second one has the next number in c->session.
 */
json_t *conform_model_body(conform_t *c, const char *session, int64_t number);
json_t *conform_new_model_body(conform_t *c);
/* The model that such a call has created; NULL with c->why. */
conform_made_t *conform_take_model(conform_t *c, const conform_call_t *call);
/* Give the next rule another model. */
void conform_spoil(conform_t *c);
/* Create a sampling session with one more member, which is left out if `value`
 * is NULL. */
conform_call_t *conform_new_sampler(conform_t *c, const char *session,
                                    const char *key, const char *value,
                                    int64_t number);
/* The next number of a sampling session in the session, and of a sample in the
 * sampling session. */
int64_t conform_next_sampler(conform_t *c);
int64_t conform_next_sample(conform_t *c);

/* The end of an accepted request. */
typedef enum {
  CONFORM_RESULT = 0,
  CONFORM_FAILED,  /* the server reports a failure */
  CONFORM_PENDING, /* no result before the timeout */
  CONFORM_LOST     /* an invalid answer, or none */
} conform_fate_t;

typedef struct {
  conform_fate_t fate;
  const conform_call_t *last; /* the last poll; NULL: none was sent */
  int is_proto;
  const char *category; /* of a failure with status 200; or NULL */
  char how[240];        /* "failed with 409: Sequence conflict" */
} conform_end_t;

/* Send one poll, and wait for the answer. */
conform_call_t *conform_begin_poll(conform_t *c, const char *id,
                                   int wants_proto, int allow_metadata);
conform_call_t *conform_poll(conform_t *c, const char *id, int wants_proto,
                             int allow_metadata);
/* Poll until the request ends: in c->end. `call` is the answer that accepted
 * it. If it is a refusal, the end is CONFORM_FAILED with `last` NULL. */
conform_fate_t conform_follow(conform_t *c, const conform_call_t *call,
                              int wants_proto);
/* Returns whether it has a result. Otherwise it is recorded how it ended. */
int conform_succeeds(conform_t *c, const conform_call_t *call, int wants_proto);
/* Judge c->end of a request that the server must refuse. If it had a result,
 * the verdict is `verdict`, with the detail `taken`. */
conform_verdict_t conform_rejected(conform_t *c, conform_verdict_t verdict,
                                   const char *taken);
/* As conform_follow(), with the id. */
void conform_follow_id(conform_t *c, const char *id, int wants_proto,
                       uint64_t patience_ms, conform_end_t *end);
/* Classify a poll's answer. */
conform_fate_t conform_fate_of(const conform_call_t *poll, conform_end_t *end);

/* A pass over tokens like those of "hello"; set members replace the
 * defaults. */
typedef struct {
  const char *loss; /* NULL: cross_entropy */
  const tnk_datum_t *data;
  size_t n_data;       /* 0 with `data`: no examples */
  const char *setting; /* setting of the loss, with the value 0.5 */
  int forward_only;
  int is_zstd;
  const char *idempotency_key;
} conform_pass_t;

conform_call_t *conform_pass(conform_t *c, const char *model, int64_t seq,
                             const conform_pass_t *pass);
/* The default example of a pass. */
extern const tnk_datum_t conform_datum;
conform_call_t *conform_step(conform_t *c, const char *model, int64_t seq);
json_t *conform_step_body(const char *model, int64_t seq);
/* The name of what does not exist, weights that do not exist, and a request to
 * load weights into a model. */
#define CONFORM_NONE "tnk-conform-none"
#define CONFORM_NO_WEIGHTS "tinker://" CONFORM_NONE "/weights/none"
conform_call_t *conform_load(conform_t *c, const char *model, int64_t seq,
                             const char *path);
/* Save a checkpoint of c->model, and follow it to c->end. Without a time to
 * live if the server refuses that. `name` NULL: a new one. */
conform_call_t *conform_save(conform_t *c, const char *call, int64_t seq,
                             const char *name);
/* Save without a name, which creates a sampling session. A client that retries
 * it takes a new number of the session. */
conform_call_t *conform_save_unnamed(conform_t *c, int64_t seq);
/* One look at all samples of a sampling session. */
conform_call_t *conform_batch(conform_t *c, const char *sampler);
/* Compress; returns TNK_OK or an error. */
int conform_zstd(tnk__buf_t *out, const void *data, size_t n);
/* Sample, without a sampling session if `sampler` is NULL. `params` and `more`
 * are JSON that is merged into the defaults, or NULL. */
#define CONFORM_NO_NUMBER INT64_C(-1)
conform_call_t *conform_sample(conform_t *c, const char *sampler, int64_t seq,
                               const char *params, const char *more);

/* ---- The run ---- */

/* Properties of all answers, independent of the rule. */
typedef struct {
  unsigned n_answers;
  unsigned n_server_errors; /* 500 and above */
  unsigned n_empty_errors;
  unsigned n_wrong_types; /* JSON with another content type */
  unsigned n_unreadable;  /* 2xx that claims to be JSON and is not */
  unsigned n_lengths;     /* answers with a length */
  unsigned n_waits;       /* 429, 408 and 503 to calls that are not polls */
  unsigned n_waits_told;  /* the ones with a valid time */
  unsigned n_waits_state; /* the ones with a queue state */
  unsigned n_waits_odd;   /* the ones with an invalid or excessive time */
  char wait_form[80];     /* form of the last one */
  unsigned n_states;      /* queue states */
  char odd_state[48];     /* an unknown one */
  unsigned n_deprecated;
  char server_error[120]; /* the first one: "POST asample" */
  char wrong_type[120];
  char empty_error[120];
} conform_seen_t;

typedef struct {
  unsigned passes, steps, samples, saves, models, sessions;
} conform_spent_t;

/* The history of a request after a gap. It costs one hold, so several rules
 * share one attempt. */
typedef struct {
  int is_tried;
  int is_accepted;
  char refused[160]; /* the refusal, if any */
  conform_fate_t first;
  int first_status;
  char first_how[240];
  int is_json;
  int has_id; /* the answer has the request id */
  char state[48];
  uint64_t held_ms;
  conform_fate_t before; /* end of the request that closed the gap */
  conform_fate_t then;   /* end of the request after the gap */
  char then_how[240];
} conform_gap_t;

struct conform {
  conform_options_t options;
  uv_loop_t loop;
  tnk__context_t context;
  tnk__http_t http;
  struct tnk__net *net; /* for direct connections */
  tnk__config_t config;
  int has_config;
  int is_loop_open;
  int is_context_open;
  int is_closed;
  uv_signal_t signals[2];
  int is_interrupted;  /* until the cleanup begins */
  int was_interrupted; /* from then on */
  int signal;          /* the signal that interrupted */
  /* The token that replaces the key, if the server requires one. */
  char *token;
  uint64_t token_ms;   /* when it was received */
  uint64_t token_life; /* lifetime in ms */
  int wants_tokens;
  int is_refused; /* the key is refused */
  unsigned n_keys;
  tnk__list_t calls;
  tnk__list_t made;
  tnk__buf_t left; /* objects that could not be removed, NUL-terminated */
  size_t n_left;
  tnk__buf_t no_such; /* the answer to a call that does not exist */
  int no_such_status;
  json_t *flags;        /* the answer of client/config; or NULL */
  json_t *capabilities; /* or NULL */
  char *base_model;
  char *session;
  char *sampler;
  conform_made_t *shared;
  conform_made_t *any; /* shared, if models cannot be unloaded */
  int keeps_models;    /* the server cannot unload models */
  unsigned n_kept;     /* number of models left behind */
  int64_t n_models;    /* used numbers of the session */
  int64_t n_samplers;
  int64_t n_samples;
  unsigned n_names;
  conform_gap_t gap;
  conform_seen_t seen;
  conform_spent_t spent;
  unsigned n_unmet;  /* rules that were skipped without their prerequisites */
  unsigned n_silent; /* consecutive requests without an answer */
  char why[200];     /* why the last helper failed */

  /* What the current rule has; empty at its begin. */
  const void *about;
  conform_made_t *model;
  conform_made_t *fresh; /* a session for a rule that ends it */
  conform_call_t *call;  /* the request of the rule */
  conform_end_t end;     /* of the request that was followed last */
  const char *id;        /* id of a request */
  const char *path;      /* of a checkpoint */
  json_t *urls;          /* links to the files of an export */
  int64_t size;          /* their size; -1: unknown */
  conform_wire_t wire;
  /* Results, freed when the rule ends. */
  tnk_samples_t *samples[2];
  tnk_pass_t *passes[2];

  conform_finding_t *finding;
  conform_finding_t findings[CONFORM_MAX_RULES];
  size_t n_findings;
  int status; /* status of the run */
  char complaint[CONFORM_MAX_WHY];
};

/* Open and close the connections of the run. Returns CONFORM_OK or another
 * status. */
int conform_open(conform_t *c);
void conform_close(conform_t *c);
/* Get a token if one is required and the last one expires soon. */
void conform_renew(conform_t *c);
/* A unique name for a created object. */
void conform_name(conform_t *c, char *out, size_t size);
/* Print the latest finding, so that people see the progress. */
void conform_report_last(const conform_t *c, FILE *out);
/* Print the end of the report: a summary for people, everything for
 * programs. */
void conform_report(const conform_t *c, FILE *out);
/* List the selected rules. */
void conform_report_rules(const conform_t *c, FILE *out);
/* Returns whether a rule is selected. */
int conform_is_chosen(const conform_t *c, const conform_rule_t *rule);

#endif
