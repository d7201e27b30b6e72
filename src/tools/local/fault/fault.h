#ifndef TNK_TOOLS_LOCAL_FAULT_FAULT_H
#define TNK_TOOLS_LOCAL_FAULT_FAULT_H

#include <stddef.h>
#include <stdint.h>

#include "tnk/common.h"

/*
 * Faults that a server injects into its own answers, as a text asks for. The
 * text is described in README.md beside this; spec.c reads it, plan.c decides
 * what happens to a request, answer.c does it, and log.c
 * writes down what was done.
 *
 * Each request suffers at most one fault. What it is depends only on the seed,
 * on which call it is and on how many of that call came before, so that the
 * third forward_backward has the same fate however many polls lie between.
 */
typedef enum {
  LOCAL_FAULT_NONE = 0,
  LOCAL_FAULT_REFUSE, /* of a connection, the others are of a request */
  LOCAL_FAULT_RESET,
  LOCAL_FAULT_GOAWAY,
  LOCAL_FAULT_DROP,
  LOCAL_FAULT_CUT,
  LOCAL_FAULT_SLOW,
  LOCAL_FAULT_STATUS,
  LOCAL_FAULT_TRY_AGAIN,
  LOCAL_FAULT_BAD_JSON,
  LOCAL_FAULT_BAD_PROTO,
  LOCAL_FAULT_WRONG_TYPE,
  LOCAL_FAULT_OTHER_ANSWER,
  LOCAL_FAULT_EXTRA_ANSWER,
  LOCAL_FAULT_TWICE_HEADER,
  LOCAL_FAULT_OVERSIZED,
  LOCAL_FAULT_NO_RANGE,
  LOCAL_FAULT_OTHER_RANGE,
  LOCAL_FAULT_SHORT,
  LOCAL_FAULT_REDIRECT,
  LOCAL_FAULT_OTHER_NAMES,
  LOCAL_FAULT_PENDING
} local_fault_kind_t;

/* What is reset: the whole connection, else over HTTP/2 the stream with a code
 * of its own. */
#define LOCAL_ARG_CONNECTION "connection"
#define LOCAL_RESET_REFUSED "refused"
#define LOCAL_RESET_CALM "calm"
#define LOCAL_RESET_CANCEL "cancel"
#define LOCAL_RESET_PROTOCOL "protocol"
#define LOCAL_RESET_HTTP_1_1 "http_1_1"

/* Where a file is said to be. */
#define LOCAL_TO_SAME "same"
#define LOCAL_TO_ORIGIN "origin"
#define LOCAL_TO_HTTP "http"
#define LOCAL_TO_FILE "file"

/* What the files of external weights are called. */
#define LOCAL_NAME_OTHER "other"
#define LOCAL_NAME_PARENT "parent"
#define LOCAL_NAME_ABSOLUTE "absolute"
#define LOCAL_NAME_EMPTY "empty"
#define LOCAL_NAME_DOT "dot"
#define LOCAL_NAME_LONG "long"

typedef enum {
  LOCAL_BODY_JSON = 0,
  LOCAL_BODY_HTML,
  LOCAL_BODY_EMPTY
} local_fault_body_t;

/* How an answer says when to come back. */
typedef enum {
  LOCAL_RETRY_NONE = 0,
  LOCAL_RETRY_MS,      /* retry-after-ms */
  LOCAL_RETRY_SECONDS, /* Retry-After, and so are the three forms of a date: */
  LOCAL_RETRY_DATE,    /* Sun, 06 Nov 1994 08:49:37 GMT */
  LOCAL_RETRY_RFC850,  /* Sunday, 06-Nov-94 08:49:37 GMT */
  LOCAL_RETRY_ASCTIME  /* Sun Nov  6 08:49:37 1994 */
} local_fault_retry_t;

/* How a 409 names the sequence number that it expects. */
typedef enum {
  LOCAL_EXPECT_NONE = 0,
  LOCAL_EXPECT_NUMBER,
  LOCAL_EXPECT_RELATIVE /* to the request's own */
} local_fault_expect_t;

/* One fault, complete. */
typedef struct {
  local_fault_kind_t kind;
  int status;      /* of LOCAL_FAULT_STATUS */
  int after;       /* the request is served first, then answered like this */
  int64_t n;       /* bytes, bytes per second, or time until the retry */
  const char *arg; /* queue state, header, kind of reset; a static text */
  local_fault_body_t body;
  local_fault_retry_t retry;
  local_fault_expect_t expect;
  int64_t expected;
} local_fault_t;

enum {
  LOCAL_MAX_FAULT_RULES = 64,
  LOCAL_FAULT_CALL = 64,      /* memory for the name of a call */
  LOCAL_FAULT_LOG_SIZE = 4096 /* faults that are remembered */
};

/* One item of the text: which requests, and what happens to them. */
typedef struct {
  char call[LOCAL_FAULT_CALL]; /* below /api/v1; "": each that is suitable */
  uint32_t share;              /* of a million; 0: by position */
  uint64_t first;              /* positions among the requests it is about */
  uint64_t last;
  uint64_t n_seen;
  const local_fault_t *group; /* one of these is drawn; NULL: `fault` */
  size_t n_group;
  local_fault_t fault;
} local_fault_rule_t;

/* What a text says. */
typedef struct {
  uint64_t seed;
  size_t n_rules;
  local_fault_rule_t rules[LOCAL_MAX_FAULT_RULES];
} local_fault_spec_t;

/* Read a text; NULL and "" mean no faults. TNK_OK, or TNK_EINVAL with one
 * sentence in `why` that names the item. */
int local_fault_spec_read(local_fault_spec_t *spec, const char *text, char *why,
                          size_t n_why);
/* The text's name of a fault: "drop_after_commit", "503". */
const char *local_fault_name(const local_fault_t *fault, char out[32]);
/* Whether it is of this kind and has this argument; NULL: none. */
int local_fault_is(const local_fault_t *fault, local_fault_kind_t kind,
                   const char *arg);
/* Whether it ends the request as soon as its head has come. */
int local_fault_is_at_head(const local_fault_t *fault);
/* Whether a fault of this kind makes sense for a call. */
int local_fault_suits(const local_fault_t *fault, const char *call);

/* ---- The plan of a server ---- */

typedef struct local_faults local_faults_t;

/* One that was injected. */
typedef struct {
  uint64_t n;     /* running number of the request, or of the connection */
  int64_t seq_id; /* -1: none known */
  char name[32];  /* as in the text */
  char call[LOCAL_FAULT_CALL]; /* "" for a connection */
} local_fault_entry_t;

/* Make a plan without faults; NULL without memory. */
local_faults_t *local_faults_new(const tnk_allocator_t *alloc);
void local_faults_free(local_faults_t *faults);
/* Begin anew with this text: positions count from 1 again, the log is kept.
 * On failure the plan stays as it was. */
int local_faults_set(local_faults_t *faults, const char *text, char *why,
                     size_t n_why);
/* Write each fault to a file too, as a line of JSON. TNK_OK or a code of
 * libuv. */
int local_faults_log_to(local_faults_t *faults, const char *path);
/* How many were injected since the start; NULL: of all names. */
uint64_t local_faults_count(const local_faults_t *faults, const char *name);
/* The i-th of those that are remembered, oldest first; NULL behind the last. */
const local_fault_entry_t *local_faults_entry(const local_faults_t *faults,
                                              size_t i);

/* ---- For the HTTP server ---- */

/* Whether a new connection is refused. */
int local_faults_refuses(local_faults_t *faults);
/* Decide on a request whose head has come; of kind NONE it is served as
 * usual. */
void local_faults_decide(local_faults_t *faults, const char *path,
                         local_fault_t *out);
void local_faults_note(local_faults_t *faults, const local_fault_t *fault,
                       uint64_t n, const char *path, int64_t seq_id);
/* Open the endpoint that lists what was injected and takes other faults. */
#define LOCAL_FAULTS_PATH "/tnk/faults"
void local_faults_open_control(local_faults_t *faults);

#endif
