#ifndef TNK_TASK_SESSION_MEMBER_H
#define TNK_TASK_SESSION_MEMBER_H

#include "base/alloc.h"
#include "base/error.h"
#include "base/list.h"
#include "base/text.h"

/* A node in the list of a client's operations; embedded in the operation. */
typedef struct tnk__member {
  tnk__list_t link;
  /* The client is closing: fail and forget everything, on the wire too. The
   * operation may be gone afterwards; `error` stays the caller's. */
  void (*abort)(struct tnk__member *self, tnk__error_t *error);
  /* Writes what it waits for, unless `out` is NULL. 0: it is not pending. */
  int (*explain)(const struct tnk__member *self, tnk__text_t *out);
  /* Whether requests have moved bytes since this was last asked. */
  int (*advances)(struct tnk__member *self);
} tnk__member_t;

static inline tnk__member_t *tnk__member_of(tnk__list_t *link) {
  return tnk__container_of(link, tnk__member_t, link);
}

#endif
