#ifndef TNK_TOOLS_CONFORM_STATE_H
#define TNK_TOOLS_CONFORM_STATE_H

#include "lib/api/config.h"
#include "lib/base/list.h"
#include "lib/io/http/client.h"
#include "lib/io/loop/context.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/location.h"
#include "tnk/data.h"
#include "tools/conform/conform.h"

struct tnk__net;

typedef struct conform conform_t;

/* ---- Rules ---- */

typedef enum {
  CONFORM_HOLDS = 0,
  CONFORM_ALLOWED, /* differs, as servers do that clients get on with */
  CONFORM_DIFFERS,
  CONFORM_ABSENT,  /* not offered, and need not be */
  CONFORM_SKIPPED, /* could not be tried */
  CONFORM_N_VERDICTS
} conform_verdict_t;

typedef enum { CONFORM_FREE = 0, CONFORM_SPENDS } conform_cost_t;

typedef struct conform_rule {
  const char *id;
  const char *title;   /* what holds, as a sentence */
  const char *section; /* of the protocol's description */
  conform_cost_t cost;
  conform_verdict_t (*run)(conform_t *c, const struct conform_rule *rule);
  const void *about; /* of a function that stands for several rules */
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

/* The i-th group in the order of running; NULL behind the last. */
const conform_group_t *conform_group_at(size_t i);

enum { CONFORM_MAX_DETAIL = 240, CONFORM_MAX_RULES = 256 };

/* What was found of one rule. */
typedef struct {
  const conform_group_t *group;
  const conform_rule_t *rule;
  conform_verdict_t verdict;
  uint64_t ms;
  char detail[CONFORM_MAX_DETAIL];
} conform_finding_t;

/* Write the detail of the rule that runs, and return the verdict. What comes
 * from the server is made harmless. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
conform_verdict_t
conform_tell(conform_t *c, conform_verdict_t verdict, const char *format, ...);
/* Put stars in place of a text wherever it stands; NULL and "" stand
 * nowhere. */
void conform_hide_text(void *data, size_t n, const char *text);
/* Put stars in place of our key and token, and of headers that were set for us,
 * all of which a server may send back. */
void conform_hide(const conform_t *c, void *data, size_t n);
/* Skip the rule for what the last helper wrote into c->why. The run is no
 * success then. */
conform_verdict_t conform_skip(conform_t *c);

/* ---- Requests ---- */

/* One request, which is sent once. */
typedef struct {
  const char *method;
  const char *path;  /* below /api/v1/, encoded */
  const char *url;   /* in its place: anywhere, and without our key */
  const char *range; /* NULL: all of it */
  json_t *json;      /* the body, taken over; NULL: see below */
  const void *body;  /* in its place; must stay until the answer */
  size_t n_body;
  const char *type;            /* of the body; NULL: JSON */
  const char *encoding;        /* of the body; NULL: none */
  const char *accept;          /* NULL: JSON */
  const char *idempotency_key; /* NULL: a new one; "": none */
  const char *api_key;         /* NULL: ours; "": none */
  int is_poll;                 /* may be held for long */
} conform_ask_t;

/* A request and its answer; lives until the rule ends. */
typedef struct conform_call {
  tnk__list_t link;
  conform_t *c;
  tnk__exchange_t exchange;
  tnk__timer_t deadline;
  tnk__location_t at; /* of a url */
  tnk__buf_t target;
  tnk__buf_t sent;     /* the body */
  const char *api_key; /* that was sent in place of ours, or NULL */
  uint64_t since_ms;
  int is_done;
  int err;           /* TNK_OK: there is an answer */
  int status;        /* 0 without one */
  char how[160];     /* "503", or why there is no answer */
  char words[160];   /* the server's own for a failure; "" without any */
  char type[64];     /* Content-Type; "" without one */
  char range[64];    /* Content-Range; "" without one */
  char location[16]; /* the scheme that a redirection leads to */
  int invalid_token; /* a 401 that says so */
  uint64_t ms;
  tnk__buf_t body;
  json_t *json; /* NULL: the body is none */
} conform_call_t;

/* Begin a request; never NULL. Failures are told when it is waited for. */
conform_call_t *conform_send(conform_t *c, const conform_ask_t *ask);
/* Wait for the answer, or until the time is up. */
void conform_wait(conform_t *c, conform_call_t *call);
/* Both; and of the most common kinds. `json` is taken over, NULL is a lack of
 * memory. */
conform_call_t *conform_ask(conform_t *c, const conform_ask_t *ask);
conform_call_t *conform_post(conform_t *c, const char *path, json_t *json);
conform_call_t *conform_get(conform_t *c, const char *path);
/* Break a request off. */
void conform_give_up(conform_call_t *call);
/* Free what a rule has asked. */
void conform_forget_calls(conform_t *c);
/* Let time pass. */
void conform_pause(conform_t *c, uint64_t ms);

int conform_is_ok(const conform_call_t *call);      /* a 2xx */
int conform_is_refusal(const conform_call_t *call); /* a 4xx */
/* The server does not know the call itself. */
int conform_is_absent(const conform_t *c, const conform_call_t *call);
const char *conform_text(const conform_call_t *call, const char *key);
/* Tell that an answer is another one than `wanted`, or none. */
conform_verdict_t conform_other(conform_t *c, const conform_call_t *call,
                                const char *wanted);

/* ---- Bytes on a connection of its own ---- */

typedef struct {
  int err;          /* TNK_OK; TNK_ETIMEDOUT: the peer keeps it open */
  int is_open;      /* a connection was made */
  int is_ended;     /* the peer has ended it */
  char alpn[16];    /* what was chosen, with TLS */
  char why[160];    /* of an err */
  uint64_t head_ms; /* when the first byte came, and the last one */
  uint64_t last_ms;
  tnk__buf_t in;
} conform_wire_t;

/* Send bytes over a new connection and read until the peer ends it, or nothing
 * has come for `quiet_ms`, or until the time is up. `out` is to be given to
 * conform_wire_free(). */
void conform_wire(conform_t *c, conform_wire_t *out, const void *data, size_t n,
                  int offers_h2, uint64_t quiet_ms);
void conform_wire_free(conform_wire_t *wire);
/* Open `n` connections side by side, with a request on each, and return how
 * many were answered. */
size_t conform_wire_many(conform_t *c, size_t n, const void *data,
                         size_t n_data);
/* Write the head of a request as it is on the wire, with our key. */
void conform_wire_head(conform_t *c, tnk__buf_t *out, const char *method,
                       const char *path, const char *more);
/* Whether connections of our own can be made: not by way of a proxy. */
int conform_wire_is_possible(conform_t *c);

/* ---- What rules need ---- */

/* What was made on the server and is to be removed. */
typedef enum {
  CONFORM_SESSION = 0,
  CONFORM_MODEL,
  CONFORM_CHECKPOINT
} conform_kind_t;

typedef struct {
  tnk__list_t link;
  conform_kind_t kind;
  int is_kept; /* until the end, not the rule's own */
  int64_t seq; /* of a model: the next number */
  char id[1];  /* as long as it is */
} conform_made_t;

/* Remember what was made; NULL: no memory, or the id is none. */
conform_made_t *conform_made(conform_t *c, conform_kind_t kind, const char *id);
/* Forget what is gone already. */
void conform_gone(conform_t *c, conform_made_t *made);
/* Remove what the rule made, or all of it. What cannot be removed is noted in
 * c->left. */
void conform_clean(conform_t *c, int all);

/* Ask something of a checkpoint, by its tinker:// path; `suffix` is "" or
 * begins with a slash. */
conform_call_t *conform_of_checkpoint(conform_t *c, const char *method,
                                      const char *path, const char *suffix,
                                      json_t *json);
/* End a session. */
conform_call_t *conform_finish(conform_t *c, const char *session);

/* The session of the run; NULL with c->why. */
const char *conform_session_id(conform_t *c);
/* Make another one, for a rule that ends it. */
conform_made_t *conform_new_session(conform_t *c);
/* The base model to try things with; NULL with c->why. */
const char *conform_base_model(conform_t *c);
/* A new model, or the one that rules share which need not their own; NULL with
 * c->why. */
conform_made_t *conform_new_model(conform_t *c);
conform_made_t *conform_shared_model(conform_t *c);
/* A model for a rule that needs no new one: its requests take their numbers
 * from `seq`. A new one where models can be unloaded; else one that other such
 * rules have used. NULL with c->why. */
conform_made_t *conform_any_model(conform_t *c);
/* The body of create_model, and the model that such a call has made. */
json_t *conform_model_body(conform_t *c, const char *session, int64_t number);
conform_made_t *conform_take_model(conform_t *c, const conform_call_t *call);
/* Have the next one that asks for it get another one. */
void conform_spoil(conform_t *c);
/* A number in the session's count of sampling sessions. */
int64_t conform_next_sampler(conform_t *c);
/* The sampling session of the base model; NULL with c->why. */
const char *conform_sampler_id(conform_t *c);
/* The next number in it. */
int64_t conform_next_sample(conform_t *c);

/* How a request ended that was accepted. */
typedef enum {
  CONFORM_RESULT = 0,
  CONFORM_FAILED,  /* the server says so */
  CONFORM_PENDING, /* not in the time that we have */
  CONFORM_LOST     /* an answer that means nothing, or none */
} conform_fate_t;

typedef struct {
  conform_fate_t fate;
  const conform_call_t *last; /* the poll that told; NULL: none was sent */
  int is_proto;
  const char *category; /* of a failure in a 200; or NULL */
  char how[240];        /* "failed with 409: Sequence conflict" */
} conform_end_t;

/* One poll. */
conform_call_t *conform_poll(conform_t *c, const char *id, int wants_proto,
                             int allow_metadata);
/* Poll until there is an end; `call` is the answer that accepted it, and may
 * be a refusal, which is CONFORM_FAILED with `last` NULL. */
void conform_follow(conform_t *c, const conform_call_t *call, int wants_proto,
                    conform_end_t *end);
/* The same with the id. */
void conform_follow_id(conform_t *c, const char *id, int wants_proto,
                       uint64_t patience_ms, conform_end_t *end);
/* What a poll says. */
conform_fate_t conform_fate_of(const conform_call_t *poll, conform_end_t *end);

/* A pass over "hello"-like tokens; what differs from that is set. */
typedef struct {
  const char *loss; /* NULL: cross_entropy */
  const tnk_datum_t *data;
  size_t n_data;       /* 0 with `data`: none at all */
  const char *setting; /* of the loss, with the value 0.5 */
  int forward_only;
  int is_zstd;
  const char *idempotency_key;
} conform_pass_t;

conform_call_t *conform_pass(conform_t *c, const char *model, int64_t seq,
                             const conform_pass_t *pass);
/* The datum that a pass has unless it says otherwise. */
extern const tnk_datum_t conform_datum;
conform_call_t *conform_step(conform_t *c, const char *model, int64_t seq);
json_t *conform_step_body(const char *model, int64_t seq);
/* Weights that nobody has, and loading such into a model. */
#define CONFORM_NO_WEIGHTS "tinker://tnk-conform-none/weights/none"
conform_call_t *conform_load(conform_t *c, const char *model, int64_t seq,
                             const char *path);
/* Compress; TNK_OK or a code. */
int conform_zstd(tnk__buf_t *out, const void *data, size_t n);
/* A sample of `base` without a sampling session where `sampler` is NULL.
 * `params` and `more`, both taken over, go over the defaults. */
conform_call_t *conform_sample(conform_t *c, const char *sampler, int64_t seq,
                               json_t *params, json_t *more);

/* ---- The run ---- */

/* What was seen in all answers, whatever the rule. */
typedef struct {
  unsigned n_answers;
  unsigned n_server_errors; /* 500 and above */
  unsigned n_empty_errors;
  unsigned n_wrong_types; /* JSON that is called something else */
  unsigned n_unreadable;  /* 2xx in JSON by name that is none */
  unsigned n_lengths;     /* answers that tell their length */
  unsigned n_waits;       /* 429, 408 and 503 to calls that are no polls */
  unsigned n_waits_told;  /* of them, with a readable time */
  unsigned n_waits_state; /* of them, with a state of the queue */
  unsigned n_waits_odd;   /* with one that cannot be read, or too long */
  char wait_form[80];     /* the last one's form */
  unsigned n_states;      /* queue states */
  char odd_state[48];     /* one that is unknown */
  unsigned n_deprecated;
  char server_error[120]; /* the first one: "POST asample" */
  char wrong_type[120];
  char empty_error[120];
} conform_seen_t;

typedef struct {
  unsigned passes, steps, samples, saves, models, sessions;
} conform_spent_t;

/* What a request behind a gap went through; it costs a hold, so several rules
 * look at one try. */
typedef struct {
  int is_tried;
  int is_accepted;
  char refused[160]; /* how, if it was */
  conform_fate_t first;
  int first_status;
  char first_how[240];
  int is_json;
  int has_id; /* the answer names the request */
  char state[48];
  uint64_t held_ms;
  conform_fate_t before; /* of the number that closed the gap */
  conform_fate_t then;   /* of the one behind it, afterwards */
  char then_how[240];
} conform_gap_t;

/* Send number 2 of a model before number 1, once a run; NULL with c->why. */
const conform_gap_t *conform_try_gap(conform_t *c);

struct conform {
  conform_options_t options;
  uv_loop_t loop;
  tnk__context_t context;
  tnk__http_t http;
  struct tnk__net *net; /* of connections of our own */
  tnk__config_t config;
  int has_config;
  int is_loop_open;
  int is_context_open;
  int is_closed;
  uv_signal_t signals[2];
  int is_interrupted;  /* until it is cleaned up */
  int was_interrupted; /* from there on */
  int signal;          /* by which */
  /* A token in place of the key, where the server wants that. */
  char *token;
  uint64_t token_ms;   /* when it came */
  uint64_t token_life; /* in ms */
  int wants_tokens;
  int is_refused; /* the key is */
  unsigned n_keys;
  tnk__list_t calls;
  tnk__list_t made;
  tnk__buf_t left; /* what could not be removed, each with a NUL behind it */
  size_t n_left;
  tnk__buf_t no_such; /* the answer to a call that no server has */
  int no_such_status;
  json_t *flags;        /* the answer of client/config; or NULL */
  json_t *capabilities; /* or NULL */
  char *base_model;
  char *session;
  char *sampler;
  conform_made_t *shared;
  conform_made_t *any; /* of conform_any_model(), where models stay */
  int keeps_models;    /* the server cannot unload them */
  unsigned n_kept;     /* so many that are of no more use */
  int64_t n_models;    /* numbers given out, of the session */
  int64_t n_samplers;
  int64_t n_samples;
  unsigned n_names;
  conform_gap_t gap;
  conform_seen_t seen;
  conform_spent_t spent;
  unsigned n_unmet;  /* rules skipped for want of what they stand on */
  unsigned n_silent; /* requests in a row without an answer */
  char why[200];     /* why the last helper could not help */
  conform_finding_t *finding;
  conform_finding_t findings[CONFORM_MAX_RULES];
  size_t n_findings;
  int status; /* of the run */
  char complaint[CONFORM_MAX_WHY];
};

/* Open and close what requests go over. CONFORM_OK or another status. */
int conform_open(conform_t *c);
void conform_close(conform_t *c);
/* Get a token if one is wanted and the last is getting old. */
void conform_renew(conform_t *c);
/* A name that nobody else has, for what is made. */
void conform_name(conform_t *c, char *out, size_t size);
/* Note what an answer shows, whatever it is about. */
void conform_note(conform_t *c, const conform_call_t *call,
                  const tnk__http_result_t *result, int is_poll);
/* Print the latest finding, for people, who see how it goes. */
void conform_report_last(const conform_t *c, FILE *out);
/* Print what is to be said at the end: for people the sum, for programs all. */
void conform_report(const conform_t *c, FILE *out);
/* Write what rules there are, of those that were chosen. */
void conform_report_rules(const conform_t *c, FILE *out);
/* Whether it is among those that are to be tried; and whether each word of that
 * choice names a rule: CONFORM_OK, or CONFORM_USAGE with a complaint. */
int conform_is_chosen(const conform_t *c, const conform_rule_t *rule);
int conform_check_rules(conform_t *c);

#endif
