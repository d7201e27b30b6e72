/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_RECORD_HELD_H
#define TNK_GATEWAY_RECORD_HELD_H

#include "gateway/base/map.h"
#include "lib/base/list.h"

/* Lines of a shared record that were read before the turn that they need. When
 * the store has become an older copy, each process writes its lines again, and
 * a process with a later turn may be the first one. The line is held until the
 * turn is read. Beyond a limit the oldest lines are dropped. */

enum { TNK__GW_MAX_HELD = 32 << 20 /* bytes */ };

typedef struct {
  tnk__gw_map_t map; /* by the number of the turn that is needed */
  tnk__list_t order; /* the latest one last */
  tnk__list_t ready; /* their turn was read */
  size_t n_bytes;    /* of both lists */
  size_t max_bytes;
} tnk__gw_held_t;

typedef struct {
  tnk__gw_node_t node;
  tnk__list_t link;
  const char *session; /* of a turn; NULL: it is a reward or a mark */
  size_t n;
  char line[];
} tnk__gw_held_line_t;

void tnk__gw_held_init(tnk__gw_held_t *held, const tnk_allocator_t *alloc,
                       size_t max_bytes);
void tnk__gw_held_deinit(tnk__gw_held_t *held);
/* Hold a line until a turn is read. It is copied. `session`: of a turn, else
 * NULL. Returns TNK_OK or TNK_ENOMEM. */
int tnk__gw_held_add(tnk__gw_held_t *held, uint64_t needed, const char *session,
                     const char *line, size_t n);
/* A turn was read: tnk__gw_held_next() returns the lines that need it. */
void tnk__gw_held_arrived(tnk__gw_held_t *held, uint64_t turn);
/* The next line to be read, in the order of the store, or NULL. The caller
 * frees it with tnk__gw_held_free(). */
tnk__gw_held_line_t *tnk__gw_held_next(tnk__gw_held_t *held);
void tnk__gw_held_free(tnk__gw_held_t *held, tnk__gw_held_line_t *line);
/* Drop the turns of a session. */
void tnk__gw_held_drop(tnk__gw_held_t *held, const char *session);
/* The session of the oldest turn that is held, or NULL. */
const char *tnk__gw_held_session(const tnk__gw_held_t *held);

#endif
