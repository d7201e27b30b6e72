/* SPDX-License-Identifier: MIT */
#include "gateway/base/map.h"

#include "lib/base/alloc.h"
#include "tnk/error.h"

enum { FEWEST = 64 };

void tnk__gw_map_init(tnk__gw_map_t *map, const tnk_allocator_t *alloc) {
  *map = (tnk__gw_map_t){.alloc = alloc};
}

void tnk__gw_map_deinit(tnk__gw_map_t *map) {
  tnk__free(map->alloc, map->buckets);
  map->buckets = NULL;
  map->n_buckets = map->n = 0;
}

uint64_t tnk__gw_hash(uint64_t seed, const void *data, size_t n) {
  const uint8_t *at = data;
  uint64_t h = seed ^ UINT64_C(14695981039346656037);

  for (size_t i = 0; i < n; i++)
    h = (h ^ at[i]) * UINT64_C(1099511628211);
  h ^= h >> 32;
  h *= UINT64_C(0xd6e8feb86659fd93);
  return h ^ h >> 32;
}

static size_t place_of(size_t n_buckets, uint64_t key) {
  uint64_t h = key * UINT64_C(0x9e3779b97f4a7c15);

  return (size_t)(h >> 20) & (n_buckets - 1);
}

static tnk__gw_node_t **bucket_of(const tnk__gw_map_t *map, uint64_t key) {
  return &map->buckets[place_of(map->n_buckets, key)];
}

/* Double the buckets: each bucket is split into two. Nodes keep their order, so
 * this is linear even if many nodes have one key. */
static void move(const tnk__gw_map_t *map, tnk__gw_node_t **to) {
  const size_t n = map->n_buckets;

  for (size_t i = 0; i < n; i++) {
    tnk__gw_node_t **low = &to[i];
    tnk__gw_node_t **high = &to[i + n];

    for (tnk__gw_node_t *node = map->buckets[i]; node != NULL;
         node = node->next) {
      tnk__gw_node_t ***end = place_of(2 * n, node->key) < n ? &low : &high;

      **end = node;
      *end = &node->next;
    }
    *low = *high = NULL;
  }
}

static int grow(tnk__gw_map_t *map) {
  size_t n = map->n_buckets > 0 ? map->n_buckets * 2 : FEWEST;
  tnk__gw_node_t **buckets =
      tnk__calloc(map->alloc, n, sizeof(tnk__gw_node_t *));

  if (buckets == NULL)
    return map->n_buckets > 0 ? TNK_OK
                              : TNK_ENOMEM; /* a fuller table still works */
  move(map, buckets);
  tnk__free(map->alloc, map->buckets);
  map->buckets = buckets;
  map->n_buckets = n;
  return TNK_OK;
}

int tnk__gw_map_add(tnk__gw_map_t *map, tnk__gw_node_t *node, uint64_t key) {
  tnk__gw_node_t **at;

  if (map->n >= map->n_buckets && grow(map) != TNK_OK)
    return TNK_ENOMEM;
  at = bucket_of(map, key);
  node->key = key;
  node->next = *at;
  *at = node;
  map->n++;
  return TNK_OK;
}

tnk__gw_node_t *tnk__gw_map_find(const tnk__gw_map_t *map, uint64_t key) {
  tnk__gw_node_t *node;

  if (map->n_buckets == 0)
    return NULL;
  node = *bucket_of(map, key);
  while (node != NULL && node->key != key)
    node = node->next;
  return node;
}

tnk__gw_node_t *tnk__gw_map_next(const tnk__gw_node_t *node) {
  uint64_t key = node->key;
  tnk__gw_node_t *next = node->next;

  while (next != NULL && next->key != key)
    next = next->next;
  return next;
}

void tnk__gw_map_remove(tnk__gw_map_t *map, tnk__gw_node_t *node) {
  tnk__gw_node_t **at = bucket_of(map, node->key);

  while (*at != node)
    at = &(*at)->next;
  *at = node->next;
  map->n--;
}
