/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_BASE_LIST_H
#define TNK_LIB_BASE_LIST_H

#include <stddef.h>

/*
 * Intrusive doubly linked ring. A head and an unlinked node point to
 * themselves, so unlinking twice is harmless.
 */
typedef struct tnk__list {
  struct tnk__list *next;
  struct tnk__list *prev;
} tnk__list_t;

static inline void tnk__list_init(tnk__list_t *node) {
  node->next = node;
  node->prev = node;
}

static inline int tnk__list_empty(const tnk__list_t *head) {
  return head->next == head;
}

static inline void tnk__list_append(tnk__list_t *head, tnk__list_t *node) {
  node->prev = head->prev;
  node->next = head;
  head->prev->next = node;
  head->prev = node;
}

static inline void tnk__list_prepend(tnk__list_t *head, tnk__list_t *node) {
  node->next = head->next;
  node->prev = head;
  head->next->prev = node;
  head->next = node;
}

static inline void tnk__list_remove(tnk__list_t *node) {
  node->prev->next = node->next;
  node->next->prev = node->prev;
  tnk__list_init(node);
}

/* The first node, or NULL. */
static inline tnk__list_t *tnk__list_first(const tnk__list_t *head) {
  return tnk__list_empty(head) ? NULL : head->next;
}

/* Remove the first node. NULL if the list is empty. */
static inline tnk__list_t *tnk__list_pop(tnk__list_t *head) {
  tnk__list_t *node = tnk__list_first(head);

  if (node != NULL)
    tnk__list_remove(node);
  return node;
}

/* Move all nodes to an empty head. A loop that drains the local head does not
 * meet nodes that callbacks add to the old one. */
static inline void tnk__list_move(tnk__list_t *to, tnk__list_t *from) {
  tnk__list_init(to);
  if (tnk__list_empty(from))
    return;
  to->next = from->next;
  to->prev = from->prev;
  to->next->prev = to;
  to->prev->next = to;
  tnk__list_init(from);
}

#define TNK__LIST_FOREACH(node, head)                                          \
  for (tnk__list_t *node = (head)->next; node != (head); node = node->next)

/* The loop's body may remove the current node. */
#define TNK__LIST_FOREACH_SAFE(node, tmp, head)                                \
  for (tnk__list_t *node = (head)->next, *tmp = node->next; node != (head);    \
       node = tmp, tmp = node->next)

#endif
