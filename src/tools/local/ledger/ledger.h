/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_LEDGER_LEDGER_H
#define TNK_TOOLS_LOCAL_LEDGER_LEDGER_H

#include "tools/local/base/table.h"
#include "tools/local/call/call.h"

#define LOCAL_HOUR_MS INT64_C(3600000)

typedef enum {
  LOCAL_USE_TRAINING,   /* tokens */
  LOCAL_USE_PREFILL,    /* tokens */
  LOCAL_USE_SAMPLE,     /* tokens */
  LOCAL_USE_CHECKPOINT, /* count */
  LOCAL_USE_STORAGE     /* gigabyte hours of removed checkpoints */
} local_use_kind_t;

/* The use of one kind in one hour by one session. */
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
  char *path;     /* path, or the id of a project; owned */
} local_audit_t;

/* The time of one request. */
typedef struct {
  char session[40];
  const char *name; /* static */
  int64_t begin_ms;
  int64_t end_ms;
  int64_t seq;   /* -1: none */
  int64_t track; /* number of its model; -1: a sample */
} local_span_t;

typedef struct local_ledger {
  const tnk_allocator_t *alloc;
  local_table_t uses;
  tnk__list_t use_list;
  local_audit_t *audit; /* a ring */
  size_t n_audit;       /* number of events so far */
  local_span_t *spans;  /* a ring, allocated with the first span */
  size_t n_spans;       /* number of spans so far */
  int is_dirty;
} local_ledger_t;

/* Create the ledger. Returns TNK_OK or TNK_ENOMEM. */
int local_ledger_open(local_server_t *server);
void local_ledger_close(local_server_t *server);

/* Add to the current hour's use of a session; NULL: no session. Without memory
 * the use is lost. */
void local_ledger_use(const local_server_t *server, local_use_kind_t kind,
                      const char *session, double amount);

/* Count the storage of a removed object for the time of its existence. */
void local_ledger_stored(const local_server_t *server, int64_t n_bytes,
                         int64_t from_ms, int64_t until_ms);
/* The gigabyte hours of n_bytes in one hour. */
double local_ledger_overlap(int64_t hour, int64_t n_bytes, int64_t from_ms,
                            int64_t until_ms);
/* Record an event and its path. */
void local_ledger_note(const local_server_t *server, const char *event,
                       const char *path);

/* The i-th remembered event, oldest first; NULL after the last. */
const local_audit_t *local_ledger_event(const local_server_t *server, size_t i);
void local_ledger_span(const local_server_t *server, const local_span_t *span);
/* The i-th remembered request, in the order of completion. */
const local_span_t *local_ledger_ran(const local_server_t *server, size_t i);

/* Read the ledger of earlier servers; an unreadable file counts as missing. */
void local_ledger_load(local_server_t *server);
/* Write the ledger if it is kept and has changed. */
void local_ledger_save(local_server_t *server);

#endif
