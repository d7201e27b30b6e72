#ifndef TNK_TOOLS_LOCAL_FAULT_STATE_H
#define TNK_TOOLS_LOCAL_FAULT_STATE_H

#include <stdio.h>

#include "lib/wire/format/json_write.h"
#include "tools/local/fault/fault.h"

enum {
  LOCAL_FAULT_CALLS = 64, /* calls that are counted apart */
  LOCAL_FAULT_KEPT = 4096 /* the largest answer that is kept */
};

/* A fault with a name of its own; others are statuses. */
typedef struct {
  const char *name;
  local_fault_kind_t kind;
  /* The only call that it is about unless the text names one; NULL: all. */
  const char *call;
  int takes_n; /* an argument that is a number */
  int64_t n;   /* without it */
} local_fault_kind_info_t;

/* The i-th kind; NULL behind the last. */
const local_fault_kind_info_t *local_fault_kind_at(size_t i);
/* The faults of "mild" or "all"; NULL for other names. */
const local_fault_t *local_fault_group(const char *name, size_t *n);

/* Shared by plan.c and log.c. */
struct local_faults {
  const tnk_allocator_t *alloc;
  local_fault_spec_t spec;
  char *text;                            /* of spec; never NULL */
  uint64_t call_hash[LOCAL_FAULT_CALLS]; /* 0: the entry is free */
  uint64_t n_of_call[LOCAL_FAULT_CALLS];
  uint64_t n_connections;
  /* The last good answer, for whom it was not meant. */
  uint8_t kept[LOCAL_FAULT_KEPT];
  size_t n_kept;
  int kept_is_proto;
  /* What was done: `log` is a ring, made with the first fault. */
  local_fault_entry_t *log;
  uint64_t n_logged;
  struct {
    char name[32];
    uint64_t n;
  } counts[LOCAL_MAX_FAULT_RULES];
  size_t n_counts;
  FILE *file;
  int is_open; /* the endpoint answers */
};

void local_fault_log_close(local_faults_t *faults);
/* One injected fault as an object. */
void local_fault_write_entry(tnk__json_writer_t *w,
                             const local_fault_entry_t *entry);

#endif
