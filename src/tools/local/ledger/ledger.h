#ifndef TNK_TOOLS_LOCAL_LEDGER_LEDGER_H
#define TNK_TOOLS_LOCAL_LEDGER_LEDGER_H

#include "tools/local/base/table.h"
#include "tools/local/call/call.h"

/*
 * What was done, for those who ask later: what was used, by the hour and by
 * session; who did what to checkpoints and projects; when each request ran.
 * Nothing is made up. Each has a ceiling, beyond which the oldest goes. The
 * first two are kept with the checkpoints, where those are kept. All of it is
 * the loop's.
 */
enum {
  LOCAL_USE_DAYS = 15, /* uses are kept so long, and asked for 14 days */
  LOCAL_MAX_USES = 16384,
  LOCAL_MAX_AUDIT = 4096,
  LOCAL_MAX_SPANS = 16384
};
#define LOCAL_HOUR_MS INT64_C(3600000)
/* The file it is kept in, among the runs. */
#define LOCAL_LEDGER_FILE ".ledger.json"

typedef enum {
  LOCAL_USE_TRAINING,   /* tokens */
  LOCAL_USE_PREFILL,    /* tokens */
  LOCAL_USE_SAMPLE,     /* tokens */
  LOCAL_USE_CHECKPOINT, /* times */
  LOCAL_USE_STORAGE     /* gigabyte hours of what is no longer there */
} local_use_kind_t;

/* What one session used of a kind in an hour. */
typedef struct {
  local_node_t node;
  tnk__list_t link; /* oldest hour first */
  int64_t hour;     /* since 1970 */
  local_use_kind_t kind;
  char session[40]; /* "": none */
  double amount;
  char key[96];
} local_use_t;

typedef struct {
  int64_t time_ms;
  char event[32]; /* "checkpoint_read" */
  char *path;     /* or, of a project, its id; owned */
} local_audit_t;

/* A request that ran. */
typedef struct {
  char session[40];
  const char *name; /* constant */
  int64_t begin_ms;
  int64_t end_ms;
  int64_t seq;   /* -1: none */
  int64_t track; /* the number of its model; -1: a sample */
} local_span_t;

typedef struct local_ledger {
  const tnk_allocator_t *alloc;
  local_table_t uses;
  tnk__list_t use_list;
  local_audit_t *audit; /* a ring */
  size_t n_audit;       /* made so far */
  local_span_t *spans;  /* a ring, made with the first */
  size_t n_spans;       /* made so far */
  int is_dirty;
} local_ledger_t;

/* Make it. TNK_OK or TNK_ENOMEM. */
int local_ledger_open(local_server_t *server);
void local_ledger_close(local_server_t *server);

/* Add to what a session has used in this hour; NULL: none has. Without memory
 * it is lost. */
void local_ledger_use(const local_server_t *server, local_use_kind_t kind,
                      const char *session, double amount);
/* The same, for any hour. */
void local_ledger_add(const local_server_t *server, int64_t hour,
                      local_use_kind_t kind, const char *session,
                      double amount);
/* Something of so many bytes was there from one time until another, which is
 * not to come. */
void local_ledger_stored(const local_server_t *server, int64_t n_bytes,
                         int64_t from_ms, int64_t until_ms);
/* The gigabyte hours of an hour that these bytes make. */
double local_ledger_overlap(int64_t hour, int64_t n_bytes, int64_t from_ms,
                            int64_t until_ms);
/* Note an event, and what it is about. */
void local_ledger_note(const local_server_t *server, const char *event,
                       const char *path);
void local_ledger_add_event(const local_server_t *server, int64_t time_ms,
                            const char *event, const char *path);
/* The i-th event that is remembered, oldest first; NULL behind the last. */
const local_audit_t *local_ledger_event(const local_server_t *server, size_t i);
void local_ledger_span(const local_server_t *server, const local_span_t *span);
/* The i-th request that is remembered, in the order of their ends. */
const local_span_t *local_ledger_ran(const local_server_t *server, size_t i);

#endif
