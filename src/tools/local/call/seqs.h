/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_CALL_SEQS_H
#define TNK_TOOLS_LOCAL_CALL_SEQS_H

#include "tools/local/call/state.h"

/* The numbered requests of a client, used to detect repeats. Only the latest
 * LOCAL_MAX_KEPT_SEQ are remembered. */
typedef struct {
  local_table_t table;
  tnk__list_t list; /* oldest first */
} local_seqs_t;

typedef struct {
  local_node_t node;
  tnk__list_t link;
  char key[24];
  uint64_t hash;
  char request_id[LOCAL_ID];
} local_seq_t;

void local_seqs_init(local_seqs_t *seqs, const tnk_allocator_t *alloc);
void local_seqs_deinit(local_seqs_t *seqs);
local_seq_t *local_seqs_find(const local_seqs_t *seqs, int64_t seq);
/* Remember a request; it replaces an older one with that number. Returns TNK_OK
 * or TNK_ENOMEM. */
int local_seqs_add(local_seqs_t *seqs, int64_t seq, uint64_t hash,
                   const char *request_id);

#endif
