/* SPDX-License-Identifier: MIT */
/*
 * A table starts without buckets and doubles them when it has as many nodes; it
 * never shrinks.
 */
#include "tools/local/base/table.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"

enum { FIRST_BUCKETS = 16 };

uint64_t local_hash(uint64_t seed, const void *data, size_t n) {
  const uint8_t *bytes = data;
  uint64_t hash = seed ^ 0xcbf29ce484222325u;

  for (size_t i = 0; i < n; i++)
    hash = (hash ^ bytes[i]) * 0x100000001b3u;
  hash ^= hash >> 32;
  hash *= 0xd6e8feb86659fd93u;
  return hash ^ (hash >> 32);
}

void local_table_init(local_table_t *table, const tnk_allocator_t *alloc) {
  *table = (local_table_t){.alloc = alloc};
}

void local_table_deinit(local_table_t *table) {
  tnk__free(table->alloc, table->buckets);
  table->buckets = NULL;
  table->n_buckets = 0;
}

static void put(local_node_t **buckets, size_t n_buckets, local_node_t *node) {
  local_node_t **at = &buckets[node->hash & (n_buckets - 1)];

  node->next = *at;
  *at = node;
}

/* Double the buckets, so that chains stay short. */
static int grow(local_table_t *table) {
  size_t n = table->n_buckets > 0 ? table->n_buckets * 2 : FIRST_BUCKETS;
  local_node_t **buckets = tnk__calloc(table->alloc, n, sizeof(*buckets));

  if (buckets == NULL)
    return TNK_ENOMEM;
  for (size_t i = 0; i < table->n_buckets; i++) {
    local_node_t *node = table->buckets[i];

    while (node != NULL) {
      local_node_t *next = node->next;

      put(buckets, n, node);
      node = next;
    }
  }
  tnk__free(table->alloc, table->buckets);
  table->buckets = buckets;
  table->n_buckets = n;
  return TNK_OK;
}

int local_table_add(local_table_t *table, local_node_t *node, const char *key) {
  /* With buckets present, failing to grow only makes the table slower. */
  if (table->n >= table->n_buckets && grow(table) != TNK_OK &&
      table->n_buckets == 0)
    return TNK_ENOMEM;
  node->key = key;
  node->hash = local_hash(0, key, strlen(key));
  put(table->buckets, table->n_buckets, node);
  table->n++;
  return TNK_OK;
}

local_node_t *local_table_find(const local_table_t *table, const char *key) {
  uint64_t hash = local_hash(0, key, strlen(key));
  local_node_t *node;

  if (table->n_buckets == 0)
    return NULL;
  node = table->buckets[hash & (table->n_buckets - 1)];
  while (node != NULL && (node->hash != hash || strcmp(node->key, key) != 0))
    node = node->next;
  return node;
}

void local_table_remove(local_table_t *table, local_node_t *node) {
  local_node_t **at = &table->buckets[node->hash & (table->n_buckets - 1)];

  while (*at != node)
    at = &(*at)->next;
  *at = node->next;
  table->n--;
}

local_node_t *local_table_any(const local_table_t *table) {
  for (size_t i = 0; i < table->n_buckets; i++)
    if (table->buckets[i] != NULL)
      return table->buckets[i];
  return NULL;
}
