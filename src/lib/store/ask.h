#ifndef TNK_LIB_STORE_ASK_H
#define TNK_LIB_STORE_ASK_H

#include "lib/base/buf.h"
#include "tnk/rest.h"

/* The calls about what a service keeps. */
typedef enum {
  TNK__ASK_LIST_RUNS,
  TNK__ASK_GET_RUN,
  TNK__ASK_LIST_RUN_CHECKPOINTS,
  TNK__ASK_LIST_CHECKPOINTS,
  TNK__ASK_WEIGHTS_INFO,
  TNK__ASK_EXTERNAL_FILES,
  TNK__ASK_ARCHIVE, /* answered by where it is */
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

/* What is asked, with texts that have passed their checks. Each call uses some
 * of it. */
typedef struct {
  tnk__ask_kind_t kind;
  const char *id;   /* of a run, a session, a sampler */
  const char *path; /* "tinker://..." */
  uint32_t limit;
  tnk_scope_t scope;
  uint64_t offset;
  const char *project_id; /* or NULL */
  int64_t ttl_seconds;    /* 0: never */
  const char *search;     /* the body of a search but for its cursor */
  const char *cursor;     /* the server's, in JSON; NULL: from the start */
  const char *access_token;
  int64_t start_us; /* of uses */
  int64_t end_us;
  const char *event_type; /* of an audit log; NULL: all */
  const char *day;        /* of an audit log; NULL: today */
} tnk__ask_t;

/* Write path and query of the request, without what all have in common. */
void tnk__ask_write_target(tnk__buf_t *out, const tnk__ask_t *ask);
/* Write its body; nothing for most. */
void tnk__ask_write_body(tnk__buf_t *out, const tnk__ask_t *ask);
/* Write what is searched, for tnk__ask_t.search. */
void tnk__ask_write_search(tnk__buf_t *out,
                           const tnk_search_options_t *options);

/* Check an id that goes into a path; `what` names it in the sentence: "run_id
 * has '?' in it". TNK_OK or TNK_EINVAL. */
int tnk__ask_check_id(const char *what, const char *id, char *why, size_t size);
/* Check a path whose parts go into another one. `kind`: the kind that it must
 * have; 0: any. */
int tnk__ask_check_path(const char *path, tnk_path_kind_t kind, char *why,
                        size_t size);

#endif
