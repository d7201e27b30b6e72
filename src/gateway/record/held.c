/* SPDX-License-Identifier: MIT */
#include "gateway/record/held.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"

#define NODE(at) tnk__container_of(at, tnk__gw_held_line_t, node)
#define LINE(at) tnk__container_of(at, tnk__gw_held_line_t, link)

void tnk__gw_held_init(tnk__gw_held_t *held, const tnk_allocator_t *alloc,
                       size_t max_bytes) {
  tnk__gw_map_init(&held->map, alloc);
  tnk__list_init(&held->order);
  tnk__list_init(&held->ready);
  held->n_bytes = 0;
  held->max_bytes = max_bytes;
}

/* Bytes of a line with its session. */
static size_t size_of(const tnk__gw_held_line_t *line) {
  return sizeof(*line) + line->n +
         (line->session != NULL ? strlen(line->session) + 1 : 0);
}

void tnk__gw_held_free(tnk__gw_held_t *held, tnk__gw_held_line_t *line) {
  held->n_bytes -= size_of(line);
  tnk__free(held->map.alloc, line);
}

static void drop(tnk__gw_held_t *held, tnk__gw_held_line_t *line) {
  tnk__gw_map_remove(&held->map, &line->node);
  tnk__list_remove(&line->link);
  tnk__gw_held_free(held, line);
}

void tnk__gw_held_deinit(tnk__gw_held_t *held) {
  tnk__gw_held_line_t *line;

  while (!tnk__list_empty(&held->order))
    drop(held, LINE(held->order.next));
  while ((line = tnk__gw_held_next(held)) != NULL)
    tnk__gw_held_free(held, line);
  tnk__gw_map_deinit(&held->map);
}

int tnk__gw_held_add(tnk__gw_held_t *held, uint64_t needed, const char *session,
                     const char *line, size_t n) {
  size_t n_session = session != NULL ? strlen(session) + 1 : 0;
  tnk__gw_held_line_t *one =
      tnk__malloc(held->map.alloc, sizeof(*one) + n + n_session);

  if (one == NULL)
    return TNK_ENOMEM;
  if (tnk__gw_map_add(&held->map, &one->node, needed) != TNK_OK) {
    tnk__free(held->map.alloc, one);
    return TNK_ENOMEM;
  }
  one->n = n;
  memcpy(one->line, line, n);
  one->session = NULL;
  if (session != NULL)
    one->session = memcpy(one->line + n, session, n_session);
  tnk__list_append(&held->order, &one->link);
  held->n_bytes += size_of(one);
  while (held->n_bytes > held->max_bytes && !tnk__list_empty(&held->order))
    drop(held, LINE(held->order.next));
  return TNK_OK;
}

void tnk__gw_held_arrived(tnk__gw_held_t *held, uint64_t turn) {
  tnk__list_t *before = &held->ready;
  tnk__gw_node_t *node;

  /* The latest one is found first. */
  while ((node = tnk__gw_map_find(&held->map, turn)) != NULL) {
    tnk__gw_held_line_t *line = NODE(node);

    tnk__gw_map_remove(&held->map, node);
    tnk__list_remove(&line->link);
    tnk__list_append(before, &line->link);
    before = &line->link;
  }
}

tnk__gw_held_line_t *tnk__gw_held_next(tnk__gw_held_t *held) {
  tnk__list_t *node = tnk__list_pop(&held->ready);

  return node != NULL ? LINE(node) : NULL;
}

void tnk__gw_held_drop(tnk__gw_held_t *held, const char *session) {
  TNK__LIST_FOREACH_SAFE (node, next, &held->order) {
    if (LINE(node)->session != NULL &&
        strcmp(LINE(node)->session, session) == 0)
      drop(held, LINE(node));
  }
}

const char *tnk__gw_held_session(const tnk__gw_held_t *held) {
  TNK__LIST_FOREACH (node, &held->order) {
    if (LINE(node)->session != NULL)
      return LINE(node)->session;
  }
  return NULL;
}
