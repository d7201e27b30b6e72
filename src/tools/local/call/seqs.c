/* SPDX-License-Identifier: MIT */
/*
 * A number is unknown, or known with its request. It is forgotten after too
 * many others. The caller decides then whether it is new or too old
 * (train/run.c).
 */
#include "tools/local/call/seqs.h"

#include <stdio.h>

#include "lib/base/alloc.h"

static void drop(local_seqs_t *seqs, local_seq_t *entry) {
  local_table_remove(&seqs->table, &entry->node);
  tnk__list_remove(&entry->link);
  tnk__free(seqs->table.alloc, entry);
}

void local_seqs_init(local_seqs_t *seqs, const tnk_allocator_t *alloc) {
  local_table_init(&seqs->table, alloc);
  tnk__list_init(&seqs->list);
}

void local_seqs_deinit(local_seqs_t *seqs) {
  while (!tnk__list_empty(&seqs->list))
    drop(seqs, tnk__container_of(seqs->list.next, local_seq_t, link));
  local_table_deinit(&seqs->table);
}

local_seq_t *local_seqs_find(const local_seqs_t *seqs, int64_t seq) {
  char key[24];
  local_node_t *node;

  snprintf(key, sizeof(key), "%lld", (long long)seq);
  node = local_table_find(&seqs->table, key);
  return node != NULL ? tnk__container_of(node, local_seq_t, node) : NULL;
}

int local_seqs_add(local_seqs_t *seqs, int64_t seq, uint64_t hash,
                   const char *request_id) {
  local_seq_t *old = local_seqs_find(seqs, seq);
  local_seq_t *entry = tnk__calloc(seqs->table.alloc, 1, sizeof(*entry));

  if (entry == NULL)
    return TNK_ENOMEM;
  /* The key is stored in the old entry, so the whole entry is replaced.
   */
  if (old != NULL)
    drop(seqs, old);
  else if (seqs->table.n >= LOCAL_MAX_KEPT_SEQ)
    drop(seqs, tnk__container_of(seqs->list.next, local_seq_t, link));
  snprintf(entry->key, sizeof(entry->key), "%lld", (long long)seq);
  snprintf(entry->request_id, sizeof(entry->request_id), "%s", request_id);
  entry->hash = hash;
  if (local_table_add(&seqs->table, &entry->node, entry->key) != TNK_OK) {
    tnk__free(seqs->table.alloc, entry);
    return TNK_ENOMEM;
  }
  tnk__list_append(&seqs->list, &entry->link);
  return TNK_OK;
}
