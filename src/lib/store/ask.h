/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_STORE_ASK_H
#define TNK_LIB_STORE_ASK_H

#include "lib/base/buf.h"
#include "tnk/rest.h"

/* The calls for the records that a service keeps. */
typedef enum {
  TNK__ASK_LIST_RUNS,
  TNK__ASK_GET_RUN,
  TNK__ASK_LIST_RUN_CHECKPOINTS,
  TNK__ASK_LIST_CHECKPOINTS,
  TNK__ASK_WEIGHTS_INFO,
  TNK__ASK_EXTERNAL_FILES,
  TNK__ASK_ARCHIVE, /* the answer contains its address */
  TNK__ASK_DELETE,
  TNK__ASK_PUBLISH,
  TNK__ASK_UNPUBLISH,
  TNK__ASK_SET_TTL,
  TNK__ASK_COPY,
  TNK__ASK_GET_SESSION,
  TNK__ASK_LIST_SESSIONS,
  TNK__ASK_SEARCH_SESSIONS,
  TNK__ASK_MOVE_SESSION,
  TNK__ASK_EXPORT_TRACE,
  TNK__ASK_GET_SAMPLER,
  TNK__ASK_USAGE,
  TNK__ASK_STORAGE,
  TNK__ASK_AUDIT,
  TNK__ASK_GET_KEY,
  TNK__ASK_REVOKE_KEY,
  TNK__N_ASKS
} tnk__ask_kind_t;

/* Arguments of a call; the strings have passed their checks. Each call uses
 * some of the members. */
typedef struct {
  tnk__ask_kind_t kind;
  const char *id;   /* id of a run, a session or a sampler */
  const char *path; /* "tinker://..." */
  uint32_t limit;
  tnk_scope_t scope;
  uint64_t offset;
  const char *project_id; /* or NULL */
  int64_t ttl_seconds;    /* 0: no expiry */
  const char *search;     /* request body of a search, without its cursor */
  const char *cursor;     /* from the server, in JSON; NULL: first page */
  const char *access_token;
  int64_t start_us; /* period of a list of uses */
  int64_t end_us;
  const char *event_type; /* filter of an audit log; NULL: all */
  const char *day;        /* day of an audit log; NULL: today */
} tnk__ask_t;

/* Write path and query of the request, without the common prefix. */
void tnk__ask_write_target(tnk__buf_t *out, const tnk__ask_t *ask);
/* Write the request body; most calls have none. */
void tnk__ask_write_body(tnk__buf_t *out, const tnk__ask_t *ask);
/* Write the search filter, for tnk__ask_t.search. */
void tnk__ask_write_search(tnk__buf_t *out,
                           const tnk_search_options_t *options);

/* Check an id before it goes into a path. `what` names it in the error: "run_id
 * has '?' in it". Returns TNK_OK or TNK_EINVAL. */
int tnk__ask_check_id(const char *what, const char *id, char *why, size_t size);
/* Check a path before its parts go into another path. `kind`: the required
 * kind; 0: any. */
int tnk__ask_check_path(const char *path, tnk_path_kind_t kind, char *why,
                        size_t size);

#endif
