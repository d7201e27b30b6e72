#ifndef TNK_LIB_CLIENT_SESSION_MEMBER_H
#define TNK_LIB_CLIENT_SESSION_MEMBER_H

#include "lib/base/alloc.h"
#include "lib/base/error.h"
#include "lib/base/list.h"
#include "lib/base/text.h"

struct tnk__member;

/* What the operations of one kind can do. */
typedef struct {
  /* The client is closing: fail and forget everything, on the wire too. The
   * operation may be gone afterwards; `error` stays the caller's. */
  void (*abort)(struct tnk__member *self, tnk__error_t *error);
  /* Writes what it waits for, unless `out` is NULL. 0: it is not pending. */
  int (*explain)(const struct tnk__member *self, tnk__text_t *out);
  /* Whether requests have moved bytes since this was last asked. */
  int (*advances)(struct tnk__member *self);
} tnk__member_type_t;

/* A node in the list of a client's operations; embedded in the operation. There
 * may be very many, so it is kept small. */
typedef struct tnk__member {
  tnk__list_t link;
  const tnk__member_type_t *type;
} tnk__member_t;

static inline void tnk__member_abort(tnk__member_t *member,
                                     tnk__error_t *error) {
  member->type->abort(member, error);
}

static inline tnk__member_t *tnk__member_of(tnk__list_t *link) {
  return tnk__container_of(link, tnk__member_t, link);
}

#endif
