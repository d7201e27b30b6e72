/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_BASE_MAP_H
#define TNK_GATEWAY_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "tnk/common.h"

/* A hash table from numbers to nodes that are embedded in their owners. Several
 * nodes may have the same key; the latest one is found first. */
typedef struct tnk__gw_node {
  struct tnk__gw_node *next; /* in the same bucket */
  uint64_t key;
} tnk__gw_node_t;

typedef struct {
  const tnk_allocator_t *alloc;
  tnk__gw_node_t **buckets; /* their number is a power of two */
  size_t n_buckets;
  size_t n;
} tnk__gw_map_t;

void tnk__gw_map_init(tnk__gw_map_t *map, const tnk_allocator_t *alloc);
void tnk__gw_map_deinit(tnk__gw_map_t *map);
/* Returns TNK_OK or TNK_ENOMEM. */
int tnk__gw_map_add(tnk__gw_map_t *map, tnk__gw_node_t *node, uint64_t key);
/* Find the latest node of a key, or NULL. tnk__gw_map_next() returns the node
 * of the same key before it. */
tnk__gw_node_t *tnk__gw_map_find(const tnk__gw_map_t *map, uint64_t key);
tnk__gw_node_t *tnk__gw_map_next(const tnk__gw_node_t *node);
void tnk__gw_map_remove(tnk__gw_map_t *map, tnk__gw_node_t *node);

/* Hash bytes (FNV-1a and a final mix); `seed` chains several pieces. */
uint64_t tnk__gw_hash(uint64_t seed, const void *data, size_t n);

#endif
