/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_SESSION_MEMBER_H
#define TNK_LIB_CLIENT_SESSION_MEMBER_H

#include "lib/base/alloc.h"
#include "lib/base/error.h"
#include "lib/base/list.h"
#include "lib/base/text.h"

struct tnk__member;

/* The functions of one kind of operation. */
typedef struct {
  /* The client is closing: fail, and cancel everything, including requests in
   * flight. The operation may be freed afterwards. `error` is borrowed. */
  void (*abort)(struct tnk__member *self, tnk__error_t *error);
  /* Describe why it waits, unless `out` is NULL. Returns 0 if it is not
   * pending. */
  int (*explain)(const struct tnk__member *self, tnk__text_t *out);
  /* Whether requests have transferred data since the last call. */
  int (*advances)(struct tnk__member *self);
} tnk__member_type_t;

/* A node in the list of a client's operations, embedded in the operation. There
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
