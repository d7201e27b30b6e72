/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_FAULT_FAULT_H
#define TNK_TOOLS_LOCAL_FAULT_FAULT_H

#include <stddef.h>
#include <stdint.h>

#include "tnk/common.h"

/*
 * Faults that a server injects into its own answers. README.md describes the
 * syntax. spec.c parses it, plan.c selects the fault of a request and records
 * it, and answer.c injects it.
 *
 * Each request has at most one fault. The fault depends only on the seed, the
 * call, and the number of earlier requests of that call. So the third
 * forward_backward has the same fault, independently of the polls before it.
 */
typedef enum {
  LOCAL_FAULT_NONE = 0,
  LOCAL_FAULT_REFUSE, /* affects a connection; the others affect a request */
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

/* The scope of a reset: the whole connection or, over HTTP/2, the stream with a
 * specific code. */
#define LOCAL_ARG_CONNECTION "connection"
#define LOCAL_RESET_REFUSED "refused"
#define LOCAL_RESET_CALM "calm"
#define LOCAL_RESET_CANCEL "cancel"
#define LOCAL_RESET_PROTOCOL "protocol"
#define LOCAL_RESET_HTTP_1_1 "http_1_1"

/* The target of a redirected file. */
#define LOCAL_TO_SAME "same"
#define LOCAL_TO_ORIGIN "origin"
#define LOCAL_TO_HTTP "http"
#define LOCAL_TO_FILE "file"

/* The names of external weights' files. */
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

/* The form in which an answer states the delay before a retry. */
typedef enum {
  LOCAL_RETRY_NONE = 0,
  LOCAL_RETRY_MS,      /* retry-after-ms */
  LOCAL_RETRY_SECONDS, /* Retry-After; also the three date formats: */
  LOCAL_RETRY_DATE,    /* Sun, 06 Nov 1994 08:49:37 GMT */
  LOCAL_RETRY_RFC850,  /* Sunday, 06-Nov-94 08:49:37 GMT */
  LOCAL_RETRY_ASCTIME  /* Sun Nov  6 08:49:37 1994 */
} local_fault_retry_t;

/* The form in which a 409 names the expected sequence number. */
typedef enum {
  LOCAL_EXPECT_NONE = 0,
  LOCAL_EXPECT_NUMBER,
  LOCAL_EXPECT_RELATIVE /* relative to the request's number */
} local_fault_expect_t;

/* A complete fault. */
typedef struct {
  local_fault_kind_t kind;
  int status;      /* for LOCAL_FAULT_STATUS */
  int after;       /* handle the request first, then send this answer */
  int64_t n;       /* bytes, bytes per second, or time until the retry */
  const char *arg; /* queue state, header, kind of reset; a static string */
  local_fault_body_t body;
  local_fault_retry_t retry;
  local_fault_expect_t expect;
  int64_t expected;
} local_fault_t;

enum {
  LOCAL_MAX_FAULT_RULES = 64,
  LOCAL_FAULT_CALL = 64,      /* size of a call's name */
  LOCAL_FAULT_LOG_SIZE = 4096 /* number of remembered faults */
};

/* One item of a specification: the requests, and their fault. */
typedef struct {
  char call[LOCAL_FAULT_CALL]; /* below /api/v1; "": every suitable call */
  uint32_t share;              /* in millionths; 0: by position */
  uint64_t first;              /* positions among the matching requests */
  uint64_t last;
  uint64_t n_seen;
  const local_fault_t *group; /* one of these is chosen; NULL: `fault` */
  size_t n_group;
  local_fault_t fault;
} local_fault_rule_t;

/* A parsed specification. */
typedef struct {
  uint64_t seed;
  size_t n_rules;
  local_fault_rule_t rules[LOCAL_MAX_FAULT_RULES];
} local_fault_spec_t;

/* Parse a specification; NULL and "" mean no faults. Returns TNK_OK, or
 * TNK_EINVAL with a message in `why` that names the item. */
int local_fault_spec_read(local_fault_spec_t *spec, const char *text, char *why,
                          size_t n_why);
/* The name of a fault in a specification: "drop_after_commit", "503". */
const char *local_fault_name(const local_fault_t *fault, char out[32]);
/* Returns whether it has this kind and this argument; NULL: no argument. */
int local_fault_is(const local_fault_t *fault, local_fault_kind_t kind,
                   const char *arg);
/* Returns whether it ends the request as soon as its head has arrived. */
int local_fault_is_at_head(const local_fault_t *fault);
/* Returns whether a fault of this kind is possible for a call. */
int local_fault_suits(const local_fault_t *fault, const char *call);

/* ---- The plan of a server ---- */

typedef struct local_faults local_faults_t;

/* An injected fault. */
typedef struct {
  uint64_t n;                  /* number of the request, or of the connection */
  int64_t seq_id;              /* -1: unknown */
  char name[32];               /* as in a specification */
  char call[LOCAL_FAULT_CALL]; /* "" for a connection */
} local_fault_entry_t;

/* Create a plan without faults; NULL without memory. */
local_faults_t *local_faults_new(const tnk_allocator_t *alloc);
void local_faults_free(local_faults_t *faults);
/* Start over with this specification: positions count from 1 again, the log is
 * kept. After a failure the plan is unchanged. */
int local_faults_set(local_faults_t *faults, const char *text, char *why,
                     size_t n_why);
/* Also write each fault to a file, as a line of JSON. Returns TNK_OK or libuv's
 * error code. */
int local_faults_log_to(local_faults_t *faults, const char *path);
/* Number of injected faults since the start; NULL: with any name. */
uint64_t local_faults_count(const local_faults_t *faults, const char *name);
/* The i-th remembered fault, oldest first; NULL after the last. */
const local_fault_entry_t *local_faults_entry(const local_faults_t *faults,
                                              size_t i);

/* ---- For the HTTP server ---- */

/* Returns whether to refuse a new connection. */
int local_faults_refuses(local_faults_t *faults);
/* Choose the fault of a request after its head has arrived; kind NONE means
 * normal handling. */
void local_faults_decide(local_faults_t *faults, const char *path,
                         local_fault_t *out);
void local_faults_note(local_faults_t *faults, const local_fault_t *fault,
                       uint64_t n, const char *path, int64_t seq_id);
/* Enable the control endpoint. */
#define LOCAL_FAULTS_PATH "/tnk/faults"
void local_faults_open_control(local_faults_t *faults);

#endif
