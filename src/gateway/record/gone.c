/* SPDX-License-Identifier: MIT */
#include "gateway/record/gone.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"

typedef struct {
  tnk__gw_node_t node;
  tnk__list_t link;
  char name[];
} gone_t;

#define GONE(at) tnk__container_of(at, gone_t, node)

void tnk__gw_gone_init(tnk__gw_gone_t *gone, const tnk_allocator_t *alloc) {
  tnk__gw_map_init(&gone->map, alloc);
  tnk__list_init(&gone->order);
}

static void forget(tnk__gw_gone_t *gone, gone_t *one) {
  tnk__gw_map_remove(&gone->map, &one->node);
  tnk__list_remove(&one->link);
  tnk__free(gone->map.alloc, one);
}

static gone_t *first_of(const tnk__gw_gone_t *gone) {
  return tnk__container_of(tnk__list_first(&gone->order), gone_t, link);
}

void tnk__gw_gone_deinit(tnk__gw_gone_t *gone) {
  while (!tnk__list_empty(&gone->order))
    forget(gone, first_of(gone));
  tnk__gw_map_deinit(&gone->map);
}

static gone_t *find(const tnk__gw_gone_t *gone, const char *session) {
  tnk__gw_node_t *node =
      tnk__gw_map_find(&gone->map, tnk__gw_hash(0, session, strlen(session)));

  for (; node != NULL; node = tnk__gw_map_next(node))
    if (strcmp(GONE(node)->name, session) == 0)
      return GONE(node);
  return NULL;
}

int tnk__gw_gone_add(tnk__gw_gone_t *gone, const char *session) {
  size_t n = strlen(session);
  gone_t *one = find(gone, session);

  if (one != NULL)
    return TNK_OK;
  one = tnk__calloc(gone->map.alloc, 1, sizeof(*one) + n + 1);
  if (one == NULL)
    return TNK_ENOMEM;
  memcpy(one->name, session, n + 1);
  if (tnk__gw_map_add(&gone->map, &one->node, tnk__gw_hash(0, session, n)) !=
      TNK_OK) {
    tnk__free(gone->map.alloc, one);
    return TNK_ENOMEM;
  }
  tnk__list_append(&gone->order, &one->link);
  if (gone->map.n > TNK__GW_MAX_GONE)
    forget(gone, first_of(gone));
  return TNK_OK;
}

int tnk__gw_gone_has(const tnk__gw_gone_t *gone, const char *session) {
  return find(gone, session) != NULL;
}

void tnk__gw_gone_drop(tnk__gw_gone_t *gone, const char *session) {
  gone_t *one = find(gone, session);

  if (one != NULL)
    forget(gone, one);
}
