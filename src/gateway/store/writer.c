/* SPDX-License-Identifier: MIT */
#include "gateway/store/writer.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"

typedef struct {
  tnk__gw_node_t node; /* by its number */
  uint64_t n;          /* count of its lines that were read */
} writer_t;

#define WRITER(at) tnk__container_of(at, writer_t, node)

void tnk__gw_writers_init(tnk__gw_writers_t *writers,
                          const tnk_allocator_t *alloc) {
  tnk__gw_map_init(&writers->map, alloc);
}

void tnk__gw_writers_deinit(tnk__gw_writers_t *writers) {
  const tnk__gw_map_t *map = &writers->map;

  for (size_t i = 0; i < map->n_buckets; i++)
    for (tnk__gw_node_t *node = map->buckets[i], *next; node != NULL;
         node = next) {
      next = node->next;
      tnk__free(map->alloc, WRITER(node));
    }
  tnk__gw_map_deinit(&writers->map);
}

static writer_t *find(tnk__gw_writers_t *writers, uint64_t number) {
  tnk__gw_node_t *node = tnk__gw_map_find(&writers->map, number);
  writer_t *writer;

  if (node != NULL)
    return WRITER(node);
  writer = tnk__calloc(writers->map.alloc, 1, sizeof(*writer));
  if (writer != NULL &&
      tnk__gw_map_add(&writers->map, &writer->node, number) != TNK_OK) {
    tnk__free(writers->map.alloc, writer);
    return NULL;
  }
  return writer;
}

int tnk__gw_writers_take(tnk__gw_writers_t *writers, uint64_t writer,
                         uint64_t n) {
  writer_t *found;

  if (writer == 0)
    return 1;
  found = find(writers, writer);
  if (found == NULL)
    return -1;
  if (n <= found->n)
    return 0;
  found->n = n;
  return 1;
}

/* ---- Lines that are not confirmed ---- */

#define UNSAFE(at) tnk__container_of(at, tnk__gw_unsafe_t, link)

void tnk__gw_queue_init(tnk__gw_queue_t *queue, const tnk_allocator_t *alloc,
                        size_t max_kept) {
  *queue = (tnk__gw_queue_t){.alloc = alloc, .max_kept = max_kept};
  tnk__list_init(&queue->list);
  tnk__list_init(&queue->kept);
  queue->unsent = &queue->list;
}

static void trim_kept(tnk__gw_queue_t *queue, size_t max) {
  while (queue->n_kept > max) {
    tnk__gw_unsafe_t *one = UNSAFE(tnk__list_pop(&queue->kept));

    queue->n_kept -= one->len;
    tnk__free(queue->alloc, one);
  }
}

/* Move the first one to those that are kept. */
static void keep_first(tnk__gw_queue_t *queue) {
  tnk__gw_unsafe_t *one = tnk__gw_queue_first(queue);

  if (queue->unsent == &one->link)
    queue->unsent = one->link.next;
  tnk__list_remove(&one->link);
  queue->n_bytes -= one->len;
  tnk__list_append(&queue->kept, &one->link);
  queue->n_kept += one->len;
}

void tnk__gw_queue_deinit(tnk__gw_queue_t *queue) {
  while (!tnk__list_empty(&queue->list))
    keep_first(queue);
  trim_kept(queue, 0);
}

static tnk__gw_unsafe_t *new_unsafe(const tnk__gw_queue_t *queue,
                                    const tnk__gw_about_t *about,
                                    const char *data, size_t len) {
  const tnk__gw_about_t none = {.session = NULL};
  tnk__gw_unsafe_t *one = tnk__malloc(queue->alloc, sizeof(*one) + len);

  if (one == NULL)
    return NULL;
  if (about == NULL)
    about = &none;
  one->len = len;
  one->is = about->is;
  one->number = about->number;
  one->n_closed = 0;
  (void)snprintf(one->session, sizeof(one->session), "%s",
                 about->session != NULL ? about->session : "");
  memcpy(one->data, data, len);
  return one;
}

int tnk__gw_queue_add(tnk__gw_queue_t *queue, const tnk__gw_about_t *about,
                      const char *data, size_t len) {
  tnk__gw_unsafe_t *one = new_unsafe(queue, about, data, len);

  if (one == NULL)
    return TNK_ENOMEM;
  one->n = ++queue->n_added;
  tnk__list_append(&queue->list, &one->link);
  if (queue->unsent == &queue->list)
    queue->unsent = &one->link;
  queue->n_bytes += len;
  return TNK_OK;
}

tnk__gw_unsafe_t *tnk__gw_queue_first(const tnk__gw_queue_t *queue) {
  return tnk__list_empty(&queue->list) ? NULL : UNSAFE(queue->list.next);
}

int tnk__gw_queue_replace_first(tnk__gw_queue_t *queue,
                                const tnk__gw_about_t *about, const char *data,
                                size_t len) {
  tnk__gw_unsafe_t *old = tnk__gw_queue_first(queue);
  tnk__gw_unsafe_t *one = new_unsafe(queue, about, data, len);

  if (one == NULL)
    return TNK_ENOMEM;
  one->n = old->n;
  tnk__list_remove(&old->link);
  tnk__list_prepend(&queue->list, &one->link);
  queue->n_bytes += len - old->len;
  tnk__free(queue->alloc, old);
  tnk__gw_queue_rewind(queue);
  return TNK_OK;
}

tnk__gw_unsafe_t *tnk__gw_queue_send(tnk__gw_queue_t *queue, size_t window) {
  tnk__gw_unsafe_t *one;

  if (queue->unsent == &queue->list || queue->n_sent >= window)
    return NULL;
  one = UNSAFE(queue->unsent);
  queue->unsent = one->link.next;
  queue->n_sent++;
  return one;
}

void tnk__gw_queue_rewind(tnk__gw_queue_t *queue) {
  queue->unsent = queue->list.next;
  queue->n_sent = 0;
}

void tnk__gw_queue_confirm(tnk__gw_queue_t *queue, uint64_t n) {
  tnk__gw_unsafe_t *first;

  while ((first = tnk__gw_queue_first(queue)) != NULL && first->n <= n)
    keep_first(queue);
  trim_kept(queue, queue->max_kept);
  if (n > queue->n_safe)
    queue->n_safe = n;
}

uint64_t tnk__gw_queue_take_back(tnk__gw_queue_t *queue, uint64_t n,
                                 uint64_t *n_lost) {
  uint64_t first = queue->n_safe + 1;
  uint64_t n_again = 0;

  while (!tnk__list_empty(&queue->kept) && UNSAFE(queue->kept.prev)->n > n) {
    tnk__gw_unsafe_t *one = UNSAFE(queue->kept.prev);

    tnk__list_remove(&one->link);
    queue->n_kept -= one->len;
    tnk__list_prepend(&queue->list, &one->link);
    queue->n_bytes += one->len;
    first = one->n;
    n_again++;
  }
  *n_lost = n < first ? first - n - 1 : 0;
  queue->n_safe = first - 1;
  tnk__gw_queue_rewind(queue);
  return n_again;
}
