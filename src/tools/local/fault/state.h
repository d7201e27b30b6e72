/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_FAULT_STATE_H
#define TNK_TOOLS_LOCAL_FAULT_STATE_H

#include <stdio.h>

#include "lib/wire/format/json_write.h"
#include "tools/local/fault/fault.h"

enum {
  LOCAL_FAULT_CALLS = 64, /* separately counted calls */
  LOCAL_FAULT_KEPT = 4096 /* largest answer that is kept */
};

/* A fault with a name; faults without one are statuses. */
typedef struct {
  const char *name;
  local_fault_kind_t kind;
  /* The only call that it applies to by default; NULL: all. */
  const char *call;
  int takes_n; /* accepts a number as an argument */
  int64_t n;   /* default of the number */
} local_fault_kind_info_t;

struct local_faults {
  const tnk_allocator_t *alloc;
  local_fault_spec_t spec;
  char *text;                            /* text of spec; never NULL */
  uint64_t call_hash[LOCAL_FAULT_CALLS]; /* 0: free entry */
  uint64_t n_of_call[LOCAL_FAULT_CALLS];
  uint64_t n_connections;
  /* The last successful answer, which another client gets. */
  uint8_t kept[LOCAL_FAULT_KEPT];
  size_t n_kept;
  int kept_is_proto;
  /* The injected faults: `log` is a ring, allocated with the first fault. */
  local_fault_entry_t *log;
  uint64_t n_logged;
  struct {
    char name[32];
    uint64_t n;
  } counts[LOCAL_MAX_FAULT_RULES];
  size_t n_counts;
  FILE *file;
  int is_open; /* the control endpoint is enabled */
};

#endif
