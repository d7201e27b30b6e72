/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_BASE_TABLE_H
#define TNK_TOOLS_LOCAL_BASE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "tnk/common.h"

/*
 * A hash table from NUL-terminated keys to nodes that are embedded in their
 * owners. The key belongs to the owner and must stay valid while the node is in
 * the table.
 */
typedef struct local_node {
  struct local_node *next; /* in the same bucket */
  const char *key;
  uint64_t hash;
} local_node_t;

typedef struct {
  const tnk_allocator_t *alloc;
  local_node_t **buckets; /* their number is a power of two */
  size_t n_buckets;
  size_t n;
} local_table_t;

void local_table_init(local_table_t *table, const tnk_allocator_t *alloc);
void local_table_deinit(local_table_t *table);
/* Add a node. Returns TNK_OK or TNK_ENOMEM. The key must not be in the
 * table. */
int local_table_add(local_table_t *table, local_node_t *node, const char *key);
local_node_t *local_table_find(const local_table_t *table, const char *key);
void local_table_remove(local_table_t *table, local_node_t *node);
/* Any node, or NULL; used to empty the table. */
local_node_t *local_table_any(const local_table_t *table);

/* Hash with FNV-1a and a final mix; `seed` chains several pieces. Not suitable
 * for secrets. */
uint64_t local_hash(uint64_t seed, const void *data, size_t n);

#endif
